"""The background keeps the index in step with what people do by hand, and somebody always leads."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import apsw
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
        assert eventually(lambda: indexed(store).get("a.md") not in (None, before["a.md"]) and len(indexed(store)) == 2)
        assert [link.name for link in store.backlinks("a", kinds=("link",))] == ["deep/er/b"]
        os.replace(vault / "a.md", vault / "c.md")
        shutil.move(vault / "deep", vault / "shallow")
        assert eventually(lambda: set(indexed(store)) == {"c.md", "shallow/er/b.md"})
        (vault / "c.md").unlink()
        shutil.rmtree(vault / "shallow")
        assert eventually(lambda: indexed(store) == {})


def test_when_most_of_a_vault_vanishes_under_a_server_the_index_is_kept_and_the_answers_say_so(
    vault: Path, write: Write
) -> None:
    for k in range(60):
        write(f"notes/n{k}.md", f"plum {k}")
    write("other.md", "pear")
    with served(vault) as store:
        shutil.move(vault / "notes", vault.parent / "unmounted")
        assert eventually(lambda: store.state().state == "partial")
        assert store.search("plum").hits == ()
        assert len(indexed(store)) == 61
        shutil.move(vault.parent / "unmounted", vault / "notes")
        assert eventually(lambda: store.state().state == "ready")
        assert len(store.search("plum", limit=100).hits) == 60


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


def test_damage_that_only_hides_notes_is_found_when_a_server_starts(vault: Path, write: Write) -> None:
    """Two indexes of a table that stand in each other's place: no question fails, and backlinks are missing."""
    for k in range(5):
        write(f"n{k}.md", f"plum [[n{(k + 1) % 5}]]")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        store._core.index.database.checkpoint(0)
        path = store._core.index.path
    connection = apsw.Connection(str(path))
    names = ("links_by_key", "links_by_path")
    roots = [connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).get for name in names]
    connection.execute("PRAGMA writable_schema = 1").fetchall()
    for name, root in zip(names, reversed(roots), strict=True):
        connection.execute("UPDATE sqlite_schema SET rootpage = ? WHERE name = ?", (root, name)).fetchall()
    connection.close()
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        assert store.backlinks("n1", kinds=("link",)) == ()
    with served(vault) as store:
        assert eventually(lambda: {link.name for link in store.backlinks("n1", kinds=("link",))} == {"n0"})
        assert store.doctor() == ()
