"""edit and new --edit: a person's text is never lost, and never overwrites another's."""

from __future__ import annotations

import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import in_a_terminal

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")

Editor = Callable[[str], None]


@pytest.fixture
def editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Editor:
    """Make $EDITOR a program that runs some lines of Python, with the file to edit as `path`."""

    def install(lines: str) -> None:
        script = tmp_path / "my editor"
        head = f"#!{sys.executable}\nimport pathlib, sys\npath = pathlib.Path(sys.argv[-1])\n"
        script.write_text(head + lines, encoding="utf-8")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("EDITOR", f"'{script}' --wait")

    return install


def drafts(vault: Path) -> list[Path]:
    return sorted((vault / ".simplemem" / "drafts").glob("*"))


def test_an_edited_note_is_saved_to_the_byte(run: Run, vault: Path, editor: Editor) -> None:
    (vault / "odd.md").write_bytes(b"\xef\xbb\xbf---\r\na:   'x' # keep\r\n---\r\nbody")
    editor("path.write_bytes(path.read_bytes().replace(b'body', b'new body'))")
    ran = run("edit", "odd")
    assert (ran.code, ran.out) == (0, "Saved odd\n")
    assert (
        vault / "odd.md"
    ).read_bytes() == b"\xef\xbb\xbf---\r\na:   'x' # keep\r\n---\r\nnew body"
    assert (
        drafts(vault) == []
        and run("history", "odd", "--json").json["versions"][0]["tool"] == "edit"
    )


def test_an_unchanged_text_changes_nothing(run: Run, vault: Path, editor: Editor) -> None:
    editor("")
    old_mtime = (vault / "people/Ada.md").stat().st_mtime_ns
    ran = run("edit", "Ada")
    assert (ran.code, ran.out) == (0, "Nothing changed in people/Ada\n")
    assert (vault / "people/Ada.md").stat().st_mtime_ns == old_mtime and drafts(vault) == []


def test_a_text_that_lost_a_race_is_kept_and_compared(
    run: Run, vault: Path, editor: Editor
) -> None:
    note = vault / "people/Ada.md"
    editor(f"path.write_text('Mine.\\n')\npathlib.Path({str(note)!r}).write_text('Theirs.\\n')\n")
    ran = run("edit", "Ada")
    assert ran.code == 1 and note.read_text() == "Theirs.\n"
    (draft,) = drafts(vault)
    assert draft.read_text() == "Mine.\n" and str(draft) in ran.err
    assert "-Theirs." in ran.err and "+Mine." in ran.err
    note.write_text("Again.\n")
    error = run("edit", "Ada", "--json").json["error"]
    assert "-Theirs.\n+Mine.\n" in error["diff"]
    assert error["code"] == "conflict" and Path(error["draft"]).read_text() == "Mine.\n"
    assert error["current_sha256"] == run("show", "Ada", "--json").json["sha256"]


def test_an_editor_that_fails_saves_nothing_and_loses_nothing(
    run: Run, vault: Path, editor: Editor
) -> None:
    old_data = (vault / "people/Ada.md").read_bytes()
    editor("path.write_text('Half.')\nsys.exit(3)")
    ran = run("edit", "Ada")
    assert ran.code == 1 and "code 3" in ran.err
    assert (vault / "people/Ada.md").read_bytes() == old_data
    (draft,) = drafts(vault)
    assert draft.read_text() == "Half." and str(draft) in ran.err


def test_a_note_that_is_not_utf8_is_not_opened(run: Run, vault: Path, editor: Editor) -> None:
    (vault / "latin.md").write_bytes(b"caf\xe9 \x00\n")
    editor("path.write_text('x')")
    assert run("edit", "latin", "--json").json["error"]["code"] == "unreadable"
    assert (vault / "latin.md").read_bytes() == b"caf\xe9 \x00\n" and drafts(vault) == []


def test_an_editor_that_is_not_there_is_named(
    run: Run, vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EDITOR", "no-such-editor-here")
    ran = run("edit", "Ada")
    assert ran.code == 1 and "no-such-editor-here" in ran.err and "EDITOR" in ran.err
    assert drafts(vault) == []
    monkeypatch.setenv("VISUAL", "another-that-is-not-there")
    assert "another-that-is-not-there" in run("edit", "Ada").err


def test_a_new_note_can_be_written_in_the_editor(run: Run, vault: Path, editor: Editor) -> None:
    editor("path.write_text(path.read_text() + ' and more\\n')")
    assert run("new", "ideas/kite", "--content", "Begun", "--edit", "--tag", "idea").code == 0
    assert (vault / "ideas/kite.md").read_text().endswith("\nBegun and more\n") and drafts(
        vault
    ) == []


def test_an_empty_text_makes_no_new_note(run: Run, vault: Path, editor: Editor) -> None:
    editor("")
    ran = run("new", "ideas/kite", "--edit")
    assert ran.code == 1 and "empty" in ran.err
    assert not (vault / "ideas/kite.md").exists() and drafts(vault) == []


def edits_beside(note: Path, change: tuple[str, str], other_change: tuple[str, str]) -> str:
    """An editor in which a person changes one thing while somebody else changes another in the note."""
    return (
        f"note = pathlib.Path({str(note)!r})\n"
        f"path.write_text(path.read_text().replace{change!r})\nnote.write_text(note.read_text().replace{other_change!r})\n"
    )


def test_changes_of_other_lines_are_saved_together_when_asked_for(
    run: Run, vault: Path, editor: Editor
) -> None:
    note = vault / "projects/apollo.md"
    editor(edits_beside(note, ("spring", "autumn"), ("approved", "refused")))
    refused = run("edit", "projects/apollo")
    assert refused.code == 1 and "--merge" in refused.err
    drafts(vault)[0].unlink()
    note.write_text(note.read_text().replace("refused", "approved"))
    ran = run("edit", "projects/apollo", "--merge")
    assert (ran.code, drafts(vault)) == (0, [])
    assert "autumn" in note.read_text() and "refused" in note.read_text()
    versions = run("history", "projects/apollo", "--json").json["versions"]
    assert [version["tool"] for version in versions] == ["edit"]


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of our own is a matter of POSIX")
@pytest.mark.parametrize("answer", [b"y\n", b"n\n"])
def test_in_a_terminal_the_person_sees_both_together_and_is_asked(
    vault: Path, editor: Editor, answer: bytes
) -> None:
    note = vault / "projects/apollo.md"
    editor(edits_beside(note, ("spring", "autumn"), ("approved", "refused")))
    code, output = in_a_terminal("edit", "projects/apollo", "--vault", str(vault), answer=answer)
    assert b"Save the merged text" in output
    saved = answer == b"y\n"
    assert "refused" in note.read_text() and ("autumn" in note.read_text()) is saved
    assert (code == 0, drafts(vault) == []) == (saved, saved)
    assert saved or "autumn" in drafts(vault)[0].read_text()


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
@pytest.mark.parametrize("link", ["drafts", ""])
def test_a_draft_goes_through_no_link_out_of_the_vault(
    run: Run, vault: Path, editor: Editor, tmp_path: Path, link: str
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    place = vault / ".simplemem" / link
    if link:
        place.parent.mkdir(exist_ok=True)
    elif place.exists():
        place.rename(tmp_path / "before")
    place.symlink_to(outside)
    editor("path.write_text('Mine.')")
    old_data = (vault / "people/Ada.md").read_bytes()
    ran = run("edit", "Ada")
    assert ran.code == 1 and "link" in ran.err
    assert (vault / "people/Ada.md").read_bytes() == old_data and not list(outside.rglob("*.md"))


@pytest.mark.skipif(sys.platform == "win32", reason="signals are a matter of POSIX")
@pytest.mark.parametrize("moment", ["before", "half", "after"])
def test_an_edit_that_is_killed_loses_no_text(
    run: Run, vault: Path, editor: Editor, moment: str
) -> None:
    text, half = "Mine, all of it.\n", "Mine, a"
    kill = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\n"
    saved = {
        "before": "",
        "half": f"path.write_text({half!r})\n",
        "after": f"path.write_text({text!r})\n",
    }[moment]
    editor(saved + kill)
    note = vault / "people/Ada.md"
    old_data = note.read_bytes()
    command = [sys.executable, "-m", "simplemem", "edit", "Ada", "--vault", str(vault)]
    killed = subprocess.run(command, capture_output=True, check=False, timeout=60)
    assert killed.returncode == -signal.SIGKILL and note.read_bytes() == old_data
    (draft,) = drafts(vault)
    assert (
        draft.read_bytes()
        == {"before": old_data, "half": half.encode(), "after": text.encode()}[moment]
    )
    editor("path.write_text(path.read_text() + 'More.')")
    ran = run("edit", "Ada")
    assert (
        ran.code == 0 and f"earlier edit is kept in {draft}" in ran.err and drafts(vault) == [draft]
    )
    assert note.read_bytes() == old_data + b"More."
