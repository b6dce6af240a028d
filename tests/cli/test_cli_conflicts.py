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
    assert ran.code == 0 and f"{SYNCTHING}.md" in ran.out and "of log/Kite" in ran.out and "Dropbox" in ran.out
    listed = run("conflicts", "--json").json["conflicts"]
    assert [(copy["name"], copy["maker"]) for copy in listed] == [(DROPBOX, "Dropbox"), (SYNCTHING, "Syncthing")]


def test_a_dry_run_shows_the_difference_and_writes_nothing(run: Run, kite: Path, vault: Path) -> None:
    before = notes_of(vault)
    ran = run("conflicts", "merge", "Kite", "--dry-run")
    assert ran.code == 0 and "+A fourth line." in ran.out and "+<<<<<<< Kite.md" in ran.out
    assert len(run("conflicts", "merge", "Kite", "--dry-run", "--json").json["merges"]) == 2
    assert notes_of(vault) == before


def test_what_needs_no_decision_is_merged_and_undone_and_else_nothing_is(run: Run, kite: Path, vault: Path) -> None:
    before = notes_of(vault)
    ran = run("conflicts", "merge", "Kite")
    assert ran.code == 1 and "say different things in 1 place" in ran.err and "--keep" in ran.err
    assert notes_of(vault) == before
    ran = run("conflicts", "merge", SYNCTHING)
    assert kite.read_text() == TEXT + "\nA fourth line.\n" and not (vault / f"{SYNCTHING}.md").exists()
    run(*ran.out.split("undo with: simplemem ")[1].split())
    assert notes_of(vault) == before
    (vault / f"{DROPBOX}.md").write_text("A line before.\n\n" + TEXT)
    assert len(run("conflicts", "merge", "Kite", "--json").json["merged"]) == 2
    assert kite.read_text() == "A line before.\n\n" + TEXT + "\nA fourth line.\n"


@pytest.mark.parametrize(
    "arguments", [("merge",), ("marge", "Kite"), ("--keep", "note"), ("merge", "Kite", "--keep", "mine")]
)
def test_a_command_that_is_not_clear_does_nothing(run: Run, kite: Path, arguments: tuple[str, ...]) -> None:
    assert run("conflicts", *arguments).code == 2 and kite.read_text() == TEXT
