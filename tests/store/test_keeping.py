"""The background keeps the index in step with what people do by hand, and somebody always leads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from waiting import PLAIN, eventually, indexed, served

from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def test_what_is_done_by_hand_becomes_searchable_by_itself(vault: Path, write: Write) -> None:
    write("a.md", "plum")
    with served(vault) as store:
        before = indexed(store)
        assert set(before) == {"a.md"}
        write("a.md", "pear")
        write("deep/er/b.md", "quince [[a]]")
        assert eventually(
            lambda: (
                indexed(store).get("a.md") not in (None, before["a.md"])
                and len(indexed(store)) == 2
            )
        )
        assert [link.name for link in store.backlinks("a", kinds=("link",))] == ["deep/er/b"]
        os.replace(vault / "a.md", vault / "c.md")
        shutil.move(vault / "deep", vault / "shallow")
        assert eventually(lambda: set(indexed(store)) == {"c.md", "shallow/er/b.md"})
        (vault / "c.md").unlink()
        shutil.rmtree(vault / "shallow")
        assert eventually(lambda: indexed(store) == {})


def test_a_leader_hears_of_what_others_change_and_of_its_own_changes_once(vault: Path) -> None:
    heard: list[str] = []
    with served(vault) as leading, EnhancedStore(vault, PLAIN) as other:
        leading.on_change(heard.extend)
        other.create("a", "plum")
        assert eventually(lambda: "a" in heard)
        leading.create("own", "fig")
        leading.update("own", append="ripe")
        known = heard.count("a")
        other.update("a", append="ripe")
        assert eventually(lambda: heard.count("a") > known)
        known = heard.count("a")
        other.delete("a")
        assert eventually(lambda: heard.count("a") > known)  # what is gone is a change as well
        assert heard.count("own") == 2


def test_who_listens_hears_nothing_of_hidden_notes(vault: Path) -> None:
    heard: list[str] = []
    (vault / "secret").mkdir()
    settings = PLAIN.model_copy(
        update={"access": PLAIN.access.model_copy(update={"hidden": ("secret/",)})}
    )
    with EnhancedStore(vault, settings) as store, EnhancedStore(vault, PLAIN) as other:
        store.start()
        assert store.wait_until_settled(10)
        store.on_change(heard.extend)
        other.create("secret/plan", "plum")
        other.delete("secret/plan")
        other.create("seen", "plum")
        assert eventually(lambda: "seen" in heard)
    assert {*heard} == {"seen"}
