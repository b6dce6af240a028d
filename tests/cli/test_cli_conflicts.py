"""`simplemem conflicts` lists, shows and merges what synchronisers left; what is doubtful it leaves to the person."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

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
    assert ran.code == 0
    assert f"{SYNCTHING}.md" in ran.out and "of log/Kite" in ran.out and "Dropbox Ada" in ran.out
    listed = run("conflicts", "--json").json["conflicts"]
    assert [(copy["name"], copy["by"], copy["when"]) for copy in listed] == [
        (DROPBOX, "Ada", "2026-01-02"),
        (SYNCTHING, "ABCDEFG", "2026-01-01"),
    ]


def test_a_vault_without_copies_says_so(run: Run) -> None:
    assert run("conflicts").out == "No conflict copies.\n"
    assert run("conflicts", "merge", "--all").code == 0
    assert run("conflicts", "--json").json == {"conflicts": []}


def test_a_dry_run_shows_the_difference_and_writes_nothing(run: Run, kite: Path, vault: Path) -> None:
    before = {path: path.read_bytes() for path in vault.rglob("*.md")}
    ran = run("conflicts", "merge", "Kite", "--dry-run")
    assert ran.code == 0
    assert "+A fourth line." in ran.out and "+<<<<<<< Kite.md" in ran.out
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == before
    assert {merge["clean"] for merge in run("conflicts", "merge", "--all", "--dry-run", "--json").json["merges"]} == {
        True,
        False,
    }


def test_all_merges_what_needs_no_decision_and_tells_the_rest(run: Run, kite: Path, vault: Path) -> None:
    ran = run("conflicts", "merge", "--all")
    assert ran.code == 1
    assert kite.read_text() == TEXT + "\nA fourth line.\n"
    assert not (vault / f"{SYNCTHING}.md").exists()
    assert (vault / f"{DROPBOX}.md").exists()
    assert f"{DROPBOX}.md: both say something else in 1 place" in ran.err
    assert "simplemem undo" in ran.out


def test_a_merge_is_undone_as_one(run: Run, kite: Path, vault: Path) -> None:
    merged = run("conflicts", "merge", SYNCTHING, "--json").json
    assert merged["left"] == []
    assert run("undo", merged["merged"][0]["version"]).code == 0
    assert kite.read_text() == TEXT
    assert (vault / f"{SYNCTHING}.md").read_text() == TEXT + "\nA fourth line.\n"


@pytest.mark.parametrize(
    ("keep", "text"),
    [
        ("note", TEXT),
        ("copy", TEXT.replace("A second", "Another second")),
        (
            "both",
            TEXT.replace(
                "A second line.\n",
                f"<<<<<<< Kite.md\nA second line.\n=======\nAnother second line.\n>>>>>>> {DROPBOX[4:]}.md\n",
            ),
        ),
    ],
)
def test_a_person_decides_which_text_is_kept(run: Run, kite: Path, vault: Path, keep: str, text: str) -> None:
    assert run("conflicts", "merge", DROPBOX, "--keep", keep).code == 0
    assert kite.read_text() == text
    assert not (vault / f"{DROPBOX}.md").exists()


def test_a_second_copy_is_merged_with_what_the_first_made_of_the_note(run: Run, kite: Path, vault: Path) -> None:
    (vault / f"{DROPBOX}.md").write_text("A line before.\n\n" + TEXT)
    assert run("conflicts", "merge", "--all").code == 0
    assert kite.read_text() == "A line before.\n\n" + TEXT + "\nA fourth line.\n"


@pytest.mark.parametrize(
    "arguments",
    [
        ("merge",), ("merge", "Kite", "--all"), ("marge", "Kite"), ("--all",), ("--keep", "note"),
        ("merge", "Kite", "--keep", "mine"), ("merge", "--all", "--keep", "note"),
    ],
)  # fmt: skip
def test_a_command_that_is_not_clear_does_nothing(run: Run, kite: Path, arguments: tuple[str, ...]) -> None:
    ran = run("conflicts", *arguments)
    assert ran.code == 2
    assert kite.read_text() == TEXT


def test_a_name_without_a_copy_is_an_error_with_a_way_out(run: Run, kite: Path) -> None:
    ran = run("conflicts", "merge", "Ada", "--json")
    assert (ran.code, ran.json["error"]["code"]) == (1, "not_found")
    assert SYNCTHING in ran.json["error"]["candidates"]


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of our own is a matter of POSIX")
@pytest.mark.parametrize(("answer", "merged"), [(b"n\n", False), (b"y\n", True)])
def test_in_a_terminal_the_person_is_asked(kite: Path, vault: Path, answer: bytes, merged: bool) -> None:
    ours, theirs = os.openpty()
    command = [sys.executable, "-m", "simplemem", "conflicts", "merge", SYNCTHING, "--vault", str(vault)]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, close_fds=True)
    os.close(theirs)
    try:
        os.write(ours, answer)
        said = b""
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:  # the terminal is gone when the program is
                break
            if not piece:
                break
            said += piece
        assert process.wait(60) == (0 if merged else 1)
    finally:
        process.kill()
        os.close(ours)
    assert b"Write this to log/Kite?" in said
    assert (vault / f"{SYNCTHING}.md").exists() is not merged
