"""Links that lead nowhere: what they may mean, what of that is sure, and how they are led there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.memory import Finding
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def broken(store: EnhancedStore) -> Finding:
    store.sync()
    (finding,) = store.doctor(only=["links"])
    return finding


def mended(store: EnhancedStore, path: str) -> str:
    """What a note says once everything sure is mended, and that undoing it gives back every byte."""
    store.sync()
    before = {file: file.read_bytes() for file in store.root.rglob("*.md") if ".simplemem" not in file.parts}
    done = store.mend(store.plan_mending(only=["links"]), who="tests")
    text = (store.root / path).read_bytes().decode()
    assert [finding.message for finding in store.doctor() if finding.level == "error"] == []
    if done.version:
        store.undo(done.version)
        assert {file: file.read_bytes() for file in before} == before
    return text


def test_a_link_to_a_note_that_was_moved_is_led_to_where_the_history_says(
    plain_store: EnhancedStore, write: Write
) -> None:
    plain_store.create("plans/Apollo", "To the moon.")
    plain_store.move("plans/Apollo", "archive/Apollo 11")
    plain_store.move("archive/Apollo 11", "archive/Apollo eleven")
    write("diary.md", "one\r\n\r\nAbout [[Apollo]], [[plans/Apollo#Crew|the crew]] and [it](plans/Apollo.md).")
    plain_store.sync()
    findings = plain_store.doctor(only=["links"])
    assert {(finding.level, finding.line, finding.candidates) for finding in findings} == {
        ("warning", 3, ("archive/Apollo eleven",))
    }
    assert "it was moved to archive/Apollo eleven in v000003" in findings[0].message
    assert findings[0].fix == "lead [[Apollo]] to archive/Apollo eleven"
    assert mended(plain_store, "diary.md") == (
        "one\r\n\r\nAbout [[Apollo eleven]], [[archive/Apollo eleven#Crew|the crew]] and [it](archive/Apollo%20eleven.md)."
    )


def test_a_note_that_another_program_moved_is_known_by_what_it_holds(plain_store: EnhancedStore, write: Write) -> None:
    plain_store.create("plans/Apollo", "To the moon.")
    write("diary.md", "[[plans/Apollo]]\n")
    plain_store.sync()
    (plain_store.root / "plans/Apollo.md").rename(plain_store.root / "Moonshot.md")
    assert broken(plain_store).candidates == ("Moonshot",)
    assert mended(plain_store, "diary.md") == "[[Moonshot]]\n"


def test_two_notes_with_that_very_text_are_one_guess_too_many(plain_store: EnhancedStore, write: Write) -> None:
    plain_store.create("plans/Apollo", "To the moon.")
    write("diary.md", "[[plans/Apollo]]\n")
    plain_store.sync()
    text = (plain_store.root / "plans/Apollo.md").read_bytes()
    (plain_store.root / "plans/Apollo.md").unlink()
    write("One.md", text)
    write("Two.md", text)
    assert broken(plain_store).fix == ""


def test_a_deleted_note_is_brought_back_by_a_person_only(plain_store: EnhancedStore, write: Write) -> None:
    plain_store.create("Apollo", "To the moon.")
    write("diary.md", "[[Apollo]]\n")
    plain_store.delete("Apollo")
    finding = broken(plain_store)
    assert "Apollo was deleted in v000002" in finding.message
    assert finding.hint == "`simplemem undo v000002` brings it back."
    assert (finding.level, finding.fix) == ("warning", "")
    assert plain_store.plan_mending(only=["links"]).is_empty


def test_a_new_note_at_the_old_path_is_what_the_old_path_means(plain_store: EnhancedStore, write: Write) -> None:
    plain_store.create("a/Plan", "first")
    plain_store.move("a/Plan", "b/Old plan")
    plain_store.create("a/Plan", "second")
    plain_store.move("a/Plan", "c/New plan")
    write("diary.md", "[[a/Plan]]\n")
    assert broken(plain_store).candidates == ("c/New plan",)


def test_a_move_that_was_undone_leads_back(plain_store: EnhancedStore, write: Write) -> None:
    plain_store.create("a/Plan", "first")
    plain_store.move("a/Plan", "b/Scheme")
    plain_store.undo("b/Scheme")
    write("diary.md", "[[b/Scheme]]\n")
    assert broken(plain_store).candidates == ("a/Plan",)


def test_the_only_file_of_that_name_is_meant_wherever_it_lies(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "Ada")
    write("img/plan.png", b"\x89PNG")
    write("a.md", "[[team/ADA]] ![[old/plan.png]]\n")
    assert mended(plain_store, "a.md") == "[[people/Ada]] ![[img/plan.png]]\n"


@pytest.mark.parametrize(
    "files",
    [
        ("x/Ada.md", "y/Ada.md"),  # two of them
        ("y/README.md",),  # a name that says nothing
    ],
)
def test_a_name_that_is_not_alone_is_offered_and_not_taken(
    plain_store: EnhancedStore, write: Write, files: tuple[str, ...]
) -> None:
    for path in files:
        write(path, "")
    name = files[0].rpartition("/")[2].removesuffix(".md")
    write("a.md", f"[[team/{name}]]\n")
    finding = broken(plain_store)
    assert set(finding.candidates) == {path.removesuffix(".md") for path in files}
    assert (finding.level, finding.fix) == ("warning", "")


def test_an_alias_or_a_title_goes_on_being_what_a_reader_sees(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "---\naliases: [Countess]\n---\n")
    write("log/2026-01-24.md", "---\ntitle: The long flight\n---\n")
    write("a.md", "[[Countess]] [[countess#Life|her]] [[The long flight]]\n\n| a |\n| --- |\n| [[Countess]] |\n")
    assert mended(plain_store, "a.md") == (
        "[[Ada|Countess]] [[Ada#Life|her]] [[2026-01-24|The long flight]]\n\n| a |\n| --- |\n| [[Ada\\|Countess]] |\n"
    )


def test_a_link_in_a_property_is_led_as_well(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "---\naliases: Countess\n---\n")
    write("a.md", '---\nup: "[[team/Ada]]"  # whose\nof: ["[[Countess]]"]\n---\ntext')
    assert mended(plain_store, "a.md") == '---\nup: "[[people/Ada]]"  # whose\nof: ["[[Ada|Countess]]"]\n---\ntext'


@pytest.mark.parametrize(
    ("there", "asked", "is_near"),
    [
        ("Café notes", "Cafe-notes", True),
        ("Dipper", "Diper", True),
        ("Flight 2 Dipper", "Flight 2 Dippre", True),
        ("Chapter 1", "Chapter 2", False),
        ("2026-01-24", "2026-01-25", False),
        ("Ada", "Eve", False),
        ("京都の計画", "京都の計書", True),
    ],
)
def test_names_a_slip_away_are_offered_and_never_taken(
    plain_store: EnhancedStore, write: Write, there: str, asked: str, is_near: bool
) -> None:
    write(f"x/{there}.md", "")
    write("a.md", f"[[{asked}]]\n")
    finding = broken(plain_store)
    assert finding.candidates == ((f"x/{there}",) if is_near else ())
    assert finding.level == ("warning" if is_near else "note")
    assert finding.fix == ""


def test_at_most_three_are_offered_the_nearest_first(plain_store: EnhancedStore, write: Write) -> None:
    for name in ("Balloons", "Baloon trip", "Balloon tripp", "Balloon  trip", "Balloon-trip"):
        write(f"{name}.md", "")
    write("a.md", "[[Balloon trip]]\n")
    candidates = broken(plain_store).candidates
    assert set(candidates) == {"Balloon  trip", "Balloon-trip"}


def test_what_is_in_code_is_no_link_and_stays(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "")
    write("a.md", "`[[team/Ada]]` [[team/Ada]]\n")
    assert mended(plain_store, "a.md") == "`[[team/Ada]]` [[people/Ada]]\n"


def test_a_note_whose_header_cannot_be_read_is_not_written(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "")
    write("a.md", "---\nx: [\n---\n[[team/Ada]]\n")
    finding = broken(plain_store)
    assert (finding.candidates, finding.fix) == (("people/Ada",), "")
    assert plain_store.plan_mending().is_empty


def test_a_vault_without_broken_links_says_nothing_of_links(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "[[a]] [[#Life]]")
    write("a.md", "[[Ada]] [x](people/Ada.md) https://example.org\n")
    plain_store.sync()
    assert plain_store.doctor(only=["links"]) == ()


def test_a_conflict_copy_is_neither_asked_nor_offered(plain_store: EnhancedStore, write: Write) -> None:
    write("people/Ada.md", "---\naliases: [Countess]\n---\n")
    write("people/Ada.sync-conflict-20260101-120000-ABCDEFG.md", "---\naliases: [Countess]\n---\n[[nowhere]]\n")
    write("a.md", "[[Countess]]\n")
    assert broken(plain_store).path == "a.md"
    assert mended(plain_store, "a.md") == "[[Ada|Countess]]\n"


def test_a_placeholder_of_a_template_is_no_link_yet(plain_store: EnhancedStore, write: Write) -> None:
    write("templates/Daily.md", "[[{{date:YYYY}}]] [[{{yesterday}}]]\n")
    plain_store.sync()
    assert plain_store.doctor(only=["links"]) == ()
