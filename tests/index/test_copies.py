"""Conflict copies are kept out of recall while their note is there, and the index stays a function of the vault."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
TEXT = (
    "# Kite\n\nThe kite flies over the harbour.\nIts string is forty metres long.\nIda made it.\n"
)
SYNCTHING = "Kite.sync-conflict-20260101-120000-ABCDEFG"


def found(store: EnhancedStore, question: str = "kite") -> set[str]:
    return {hit.name for hit in store.search(question, limit=20).hits}


@pytest.mark.parametrize(
    "copy",
    [
        SYNCTHING,
        "Kite (Ada's conflicted copy 2026-01-01)",
        "Kite 2",
        "Kite (Conflicted copy iPhone 202601011200)",
    ],
)
def test_a_copy_is_in_no_result_and_can_be_read_by_its_name(
    plain_store: EnhancedStore, write: Write, copy: str
) -> None:
    write("Kite.md", TEXT)
    write(f"{copy}.md", TEXT + "Ada flew it.\n")
    plain_store.sync()
    assert found(plain_store) == {"Kite"} and [item.name for item in plain_store.list().items] == [
        "Kite"
    ]
    assert "Ada flew it." in plain_store.read(copy).content
    assert [(each.name, each.of) for each in plain_store.conflict_copies()] == [(copy, "Kite")]
    assert sum(plain_store.stats()["hidden"].values()) == 1


def test_a_title_that_a_copy_has_too_still_names_the_note(
    plain_store: EnhancedStore, write: Write
) -> None:
    header = "---\ntitle: The kite\naliases: [Dragon]\n---\n"
    write("a/Kite.md", header + TEXT)
    write(f"a/{SYNCTHING}.md", header + TEXT + "More.\n")
    plain_store.sync()
    assert plain_store.resolve("The kite") == "a/Kite" and plain_store.resolve("Dragon") == "a/Kite"


def test_a_copy_is_no_backlink(plain_store: EnhancedStore, write: Write) -> None:
    write("Ida.md", "Ida makes kites.\n")
    write("Kite.md", TEXT + "[[Ida]]\n")
    write(f"{SYNCTHING}.md", TEXT + "[[Ida]] and more\n")
    plain_store.sync()
    assert [link.name for link in plain_store.backlinks("Ida")] == ["Kite"]
    assert plain_store.read("Ida").backlinks == ("Kite",)


def test_a_copy_whose_note_goes_becomes_a_note_and_a_copy_again_when_it_comes_back(
    plain_store: EnhancedStore, write: Write, vault: Path
) -> None:
    note = write("Kite.md", TEXT)
    write(f"{SYNCTHING}.md", TEXT)
    plain_store.sync()
    note.unlink()
    plain_store.sync()
    assert found(plain_store) == {SYNCTHING} and plain_store.conflict_copies() == ()
    write("Kite.md", TEXT)
    plain_store.sync()
    assert found(plain_store) == {"Kite"}


def test_a_second_chapter_is_a_note_until_it_says_what_the_first_says(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("Kite.md", TEXT)
    write("Kite 2.md", "# Kite\n\nA second kite, of paper, blue and small.\n")
    plain_store.sync()
    assert found(plain_store) == {"Kite", "Kite 2"} and plain_store.conflict_copies() == ()
    write("Kite.md", "# Kite\n\nA second kite, of paper, blue and small.\nAnd more.\n")
    plain_store.sync()
    assert found(plain_store) == {"Kite"}
    plain_store.update("Kite", content="Something else about a kite altogether.")
    assert found(plain_store) == {"Kite", "Kite 2"}


def test_what_git_leaves_beside_a_note_is_listed(plain_store: EnhancedStore, write: Write) -> None:
    write("Kite.md", TEXT)
    write("Kite.md~HEAD", TEXT)
    write("Kite.md.orig", TEXT)
    write("Gone.md.orig", TEXT)
    plain_store.sync()
    assert [(each.path, each.maker) for each in plain_store.conflict_copies()] == [
        ("Kite.md.orig", "git"),
        ("Kite.md~HEAD", "git"),
    ]


def shared_lines(last: str) -> str:
    return (
        "".join(f"Every week we look at point {number} of the list.\n" for number in range(12))
        + last
    )


@pytest.mark.parametrize(
    "copy", ["Weekly 4", "Weekly (2)", "Weekly-LAPTOP-AB12C", SYNCTHING.replace("Kite", "Weekly")]
)
def test_a_note_that_simplemem_created_is_never_a_conflict_copy(
    plain_store: EnhancedStore, write: Write, vault: Path, copy: str
) -> None:
    write("Weekly.md", shared_lines(""))
    plain_store.sync()
    saved = plain_store.create(copy, shared_lines("The zebra is new.\n"))
    assert found(plain_store, "zebra") == {copy}
    assert plain_store.conflict_copies() == ()
    assert not any("hidden" in warning for warning in saved.warnings)

    write("Weekly.md", shared_lines("The note beside it was changed by hand.\n"))
    plain_store.sync()
    assert found(plain_store, "zebra") == {copy}

    plain_store.sync(rebuild=True)
    assert found(plain_store, "zebra") == {copy}
    assert plain_store.doctor(only=["index", "conflicts"]) == ()

    plain_store.undo(plain_store.delete(copy).version)
    assert found(plain_store, "zebra") == {copy}


def test_a_note_that_simplemem_moved_to_its_name_is_never_a_conflict_copy(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("Weekly.md", shared_lines(""))
    write("Draft.md", shared_lines("The zebra is new.\n"))
    plain_store.sync()
    plain_store.move("Draft", "Weekly 4")
    assert found(plain_store, "zebra") == {"Weekly 4"}
    assert plain_store.conflict_copies() == ()


def test_a_copy_stays_one_when_simplemem_changed_or_brought_it_back(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("Kite.md", TEXT)
    write("Kite 2.md", TEXT + "Ada flew it.\n")
    plain_store.sync()
    plain_store.update("Kite 2", append="And Ben too.")
    assert found(plain_store) == {"Kite"}
    plain_store.undo(plain_store.delete("Kite 2").version)
    assert [each.name for each in plain_store.conflict_copies()] == ["Kite 2"]


def test_a_note_whose_creation_was_logged_after_it_was_indexed_is_no_copy(
    vault: Path, write: Write
) -> None:
    """As when a server sees the file before the process that writes it has logged it, and that process then dies."""
    settings = Settings.model_validate({"embed": {"provider": "none"}})
    write("Weekly.md", shared_lines(""))
    with EnhancedStore(vault, settings) as writer:
        writer.create("Weekly 4", shared_lines("The zebra is new.\n"))
    log = vault / ".simplemem" / "history" / "log.jsonl"
    lines = log.read_bytes()
    log.unlink()
    (vault / ".simplemem" / "index.db").unlink()
    with EnhancedStore(vault, settings) as late:
        late.sync()
        assert found(late, "zebra") == set()
        log.write_bytes(lines)
        late.sync()
        assert found(late, "zebra") == {"Weekly 4"}


def test_two_notes_that_say_they_are_two_are_no_copies_even_without_the_log(
    plain_store: EnhancedStore, write: Write
) -> None:
    write("Sensor.md", f"---\nid: s-1\ncreated: 2026-01-24T10:00:00\n---\n{shared_lines('')}")
    write("Sensor 2.md", f"---\nid: s-2\ncreated: 2026-01-24T10:00:00\n---\n{shared_lines('')}")
    write("Sensor 3.md", f"---\ncreated: 2026-02-01T08:00:00\n---\n{shared_lines('')}")
    write(
        "Sensor 4.md", f"---\nid: s-1\ncreated: 2026-01-24T10:00:00\n---\n{shared_lines('More.')}"
    )
    plain_store.sync()
    assert [each.name for each in plain_store.conflict_copies()] == ["Sensor 4"]
    assert found(plain_store, "point") == {"Sensor", "Sensor 2", "Sensor 3"}
