"""`simplemem conflicts` lists, shows and merges what synchronisers left; what is doubtful it leaves to the person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import notes_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")

TEXT = "The first line.\n\nA second line.\n\nThe third line.\n"
SYNCTHING = "log/Kite.sync-conflict-20260101-120000-ABCDEFG"
DROPBOX = "log/Kite (Ada's conflicted copy 2026-01-02)"


@pytest.fixture
def kite(vault: Path) -> Path:
    """A note with two copies: one that only says more, and one that says something else."""
    note = vault / "log/Kite.md"
    note.write_text(TEXT)
    (vault / f"{SYNCTHING}.md").write_text(TEXT + "\nA fourth line.\n")
    (vault / f"{DROPBOX}.md").write_text(TEXT.replace("A second", "Another second"))
    return note


def test_copies_are_listed_with_their_note_and_whose_they_are(run: Run, kite: Path) -> None:
    ran = run("conflicts")
    assert (
        ran.code == 0
        and f"{SYNCTHING}.md" in ran.out
        and "of log/Kite" in ran.out
        and "Dropbox" in ran.out
    )
    listed = run("conflicts", "--json").json["conflicts"]
    assert [(copy["name"], copy["maker"]) for copy in listed] == [
        (DROPBOX, "Dropbox"),
        (SYNCTHING, "Syncthing"),
    ]


def test_a_dry_run_shows_the_difference_and_writes_nothing(
    run: Run, kite: Path, vault: Path
) -> None:
    old_notes = notes_of(vault)
    ran = run("conflicts", "merge", "Kite", "--dry-run")
    assert ran.code == 0 and "+A fourth line." in ran.out and "+<<<<<<< Kite.md" in ran.out
    assert len(run("conflicts", "merge", "Kite", "--dry-run", "--json").json["merges"]) == 2
    assert notes_of(vault) == old_notes


def test_what_needs_no_decision_is_merged_and_undone_and_else_nothing_is(
    run: Run, kite: Path, vault: Path
) -> None:
    old_notes = notes_of(vault)
    ran = run("conflicts", "merge", "Kite")
    assert ran.code == 1 and "differ in 1 place" in ran.err and "--keep" in ran.err
    assert notes_of(vault) == old_notes
    ran = run("conflicts", "merge", SYNCTHING)
    assert (
        kite.read_text() == TEXT + "\nA fourth line.\n" and not (vault / f"{SYNCTHING}.md").exists()
    )
    run(*ran.out.split("undo with: simplemem ")[1].split())
    assert notes_of(vault) == old_notes
    (vault / f"{DROPBOX}.md").write_text("A line before.\n\n" + TEXT)
    assert len(run("conflicts", "merge", "Kite", "--json").json["merged"]) == 2
    assert kite.read_text() == "A line before.\n\n" + TEXT + "\nA fourth line.\n"


@pytest.mark.parametrize(
    "arguments",
    [("merge",), ("marge", "Kite"), ("--keep", "note"), ("merge", "Kite", "--keep", "mine")],
)
def test_a_command_that_is_not_clear_does_nothing(
    run: Run, kite: Path, arguments: tuple[str, ...]
) -> None:
    assert run("conflicts", *arguments).code == 2 and kite.read_text() == TEXT


LINES = "".join(f"Line {number} of the note says a thing of its own.\n" for number in range(12))
CHANGED = LINES.replace(
    "Line 3 of the note says a thing", "Line 3 of the note tells another"
).replace("Line 4", "Row 4")


@pytest.mark.parametrize("copies", [
    {"Kite 2": "More at the end.", "Kite 3": "More at the end."},
    {"Kite 2": "More at the end.", "Kite 3": "More at the end.", "Kite (1)": ""},
    {SYNCTHING.removeprefix("log/"): "More at the end.", "Kite 2": "More at the end.", "Kite 3": ""},
])  # fmt: skip
def test_several_copies_are_merged_as_one_change_also_when_two_are_identical(
    run: Run, vault: Path, copies: dict[str, str]
) -> None:
    note = vault / "log" / "Kite.md"
    note.write_text(LINES)
    for name, more in copies.items():
        (vault / "log" / f"{name}.md").write_text(LINES + more + "\n" * bool(more))
    old_notes = notes_of(vault)
    ran = run("conflicts", "merge", "Kite")
    assert ran.code == 0 and note.read_text() == LINES + "More at the end.\n"
    assert not [
        path
        for path in old_notes
        if path != "log/Kite.md" and (vault / path).exists() and "Kite" in path
    ]
    assert run("conflicts", "--json").json["conflicts"] == []
    assert ran.out.count("undo with") == 1
    run(*ran.out.split("undo with: simplemem ")[1].split())
    assert notes_of(vault) == old_notes


@pytest.mark.parametrize("keep", ["both", "copy", "note"])
def test_two_identical_copies_that_contradict_the_note_are_one_decision(
    run: Run, vault: Path, keep: str
) -> None:
    note = vault / "log" / "Kite.md"
    note.write_text(LINES)
    for number in (2, 3, 4):
        (vault / "log" / f"Kite {number}.md").write_text(CHANGED)
    old_notes = notes_of(vault)
    refused = run("conflicts", "merge", "Kite")
    assert refused.code == 1 and notes_of(vault) == old_notes
    assert run("conflicts", "merge", "Kite", "--keep", keep).code == 0
    text = note.read_text()
    assert text.count("<<<<<<<") == (1 if keep == "both" else 0)
    assert ("tells another" in text) == (keep != "note") and (
        "says a thing of its own.\nLine 4" in text
    ) == (keep != "copy")
    assert run("conflicts", "--json").json["conflicts"] == []


def test_one_copy_that_needs_a_decision_leaves_all_as_they_are(run: Run, vault: Path) -> None:
    (vault / "log" / "Kite.md").write_text(LINES)
    for number, text in enumerate((f"{LINES}More.\n", f"{LINES}More.\n", CHANGED), 2):
        (vault / "log" / f"Kite {number}.md").write_text(text)
    old_notes = notes_of(vault)
    ran = run("conflicts", "merge", "Kite")
    assert ran.code == 1 and "log/Kite 4" in ran.err
    assert notes_of(vault) == old_notes and len(run("conflicts", "--json").json["conflicts"]) == 3
    ran = run("conflicts", "merge", "Kite", "--keep", "copy")
    assert ran.code == 1 and "copies that differ" in ran.err and notes_of(vault) == old_notes
