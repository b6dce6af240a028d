"""A memory that is moved or deleted takes along what belongs to it, and every link goes on saying what is true."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.errors import AlreadyExists, Invalid, NotFound
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
ODD = "\ufeff---\r\n# mine\r\nalpha: 'q'   # why\r\n---\r\n\r\nFirst line\r\nlast line"


def found(store: EnhancedStore, query: str) -> list[str]:
    return [hit.name for hit in store.search(query, mode="text", limit=50).hits]


def errors(store: EnhancedStore) -> list[str]:
    return [finding.message for finding in store.doctor() if finding.level == "error"]


def test_a_move_takes_links_words_and_history_along(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("a.md", "---\naliases: [Al]\n---\nplum, see [[b]]\n")
    write("b.md", "[[a]], [[a|A]], ![[a#^x]], [md](a.md), `[[a]]`, [[Al]]\n")
    plain_store.sync()
    moved = plain_store.move("a", "deep/er/c")
    assert (moved.name, moved.previous_name, set(moved.rewritten)) == ("deep/er/c", "a", {"b"})
    assert errors(plain_store) == []
    assert "`[[a]]`" in (vault / "b.md").read_text()
    links = plain_store.read("b").links
    assert [link.target for link in links if link.resolved] == ["deep/er/c"] * 4
    assert found(plain_store, "plum") == ["deep/er/c"]
    assert plain_store.read("c").backlinks == ("b",)
    assert {entry.op for entry in plain_store.history("deep/er/c")} >= {"move"}
    assert errors(plain_store) == []
    plain_store.undo(moved.version)
    assert (
        vault / "b.md"
    ).read_text() == "[[a]], [[a|A]], ![[a#^x]], [md](a.md), `[[a]]`, [[Al]]\n"
    assert found(plain_store, "plum") == ["a"]
    assert errors(plain_store) == []


def test_a_move_onto_another_note_is_refused_as_such(
    plain_store: EnhancedStore, vault: Path
) -> None:
    plain_store.create("a", "one")
    plain_store.create("b", "two [[a]]")
    before = {path.name: path.read_bytes() for path in vault.glob("*.md")}
    with pytest.raises(AlreadyExists):
        plain_store.move("a", "b")
    with pytest.raises(Invalid):
        plain_store.move("a", "a")
    assert {path.name: path.read_bytes() for path in vault.glob("*.md")} == before
    assert errors(plain_store) == []


def test_only_the_case_of_a_name_can_be_moved(plain_store: EnhancedStore, vault: Path) -> None:
    plain_store.create("tea", "oolong")
    plain_store.create("b", "[[tea]]")
    plain_store.move("tea", "Tea")
    assert "Tea.md" in os.listdir(vault)
    assert found(plain_store, "oolong") == ["Tea"]
    assert plain_store.read("b").links[0].target == "Tea"
    assert errors(plain_store) == []


def test_a_deleted_memory_is_gone_from_every_answer_and_comes_back_whole(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    write("a.md", ODD)
    write("b.md", "[[a]] [[a]] plum")
    plain_store.sync()
    deleted = plain_store.delete("a")
    assert (deleted.name, deleted.links_left_unresolved) == ("a", 2)
    assert found(plain_store, "first last") == []
    assert plain_store.list().total == 1
    assert [link.resolved for link in plain_store.read("b").links] == [False, False]
    with pytest.raises(NotFound):
        plain_store.read("a")
    assert errors(plain_store) == []
    undone = plain_store.undo("a")
    assert undone.name == "a"
    assert (vault / "a.md").read_bytes().decode() == ODD
    assert found(plain_store, "first") == ["a"]
    assert plain_store.read("a").backlinks == ("b",)


@pytest.mark.parametrize("watch", ["auto", "off"])
def test_a_link_saved_by_hand_a_moment_before_follows_at_every_move(
    vault: Path, write: Write, watch: str
) -> None:
    """With the kernel's list of changes and without it; also where the index was thrown away."""
    settings = {"embed": {"provider": "none"}, "index": {"watch": watch}}
    for number in range(3):
        write(f"n{number}.md", f"Note {number}")
    with EnhancedStore(vault, Settings.model_validate(settings)) as store:
        for number in range(3):
            write("hand.md", f"See [[n{number}]].")
            if number == 2:
                for left in (vault / ".simplemem").glob("index.db*"):
                    left.unlink()
            store.move(f"n{number}", f"first/other{number}")
            assert (vault / "hand.md").read_text() == f"See [[other{number}]]."


def test_a_single_text_is_not_taken_for_the_names_of_notes_to_delete(
    plain_store: EnhancedStore, write: Callable[[str, str | bytes], Path]
) -> None:
    write("A.md", "One.\n")
    write("b.md", "Two.\n")
    plain_store.sync()
    with pytest.raises(Invalid, match="several names"):
        plain_store.delete_all("Ab")
    assert plain_store.read_text("A").text == "One.\n"
    assert plain_store.read_text("b").text == "Two.\n"
