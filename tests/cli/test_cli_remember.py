"""`documents add` and `facts tidy`: documents become notes, facts that no longer hold go to the trash."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")

GUIDE = "# Release guide\n\nWait for the harbour master to wave the flag.\n\n## Rollback\n\nBlow twice.\n"
ATOM = "---\ntype: atom\nid: {id}\nvalid_from: 2026-01-01T00:00:00Z\nvalid_to: {ends}\nstatus: active\n---\n\n{said}\n"


@pytest.fixture
def files(tmp_path: Path) -> Path:
    room = tmp_path / "room"
    room.mkdir()
    (room / "guide.md").write_text(GUIDE)
    (room / "menu.txt").write_bytes("Crêpes on Friday.\r\nSoup on Monday.\r\n".encode("cp1252"))
    (room / "drawing.xyz").write_bytes(b"\0\1\2")
    return room


def test_files_become_documents_of_a_scope(run: Run, vault: Path, files: Path) -> None:
    done = run(
        "documents", "add", str(files / "guide.md"), str(files / "menu.txt"), "--scope", "alex"
    )
    assert done.code == 0 and done.out.count("Stored documents/alex/") == 2
    guide = (vault / "documents" / "alex" / "guide.md").read_text(encoding="utf-8")
    assert (
        "type: document\n" in guide
        and "scope: alex\n" in guide
        and guide.endswith("## Rollback\n\nBlow twice.\n")
    )
    assert "Crêpes on Friday.\nSoup" in (vault / "documents" / "alex" / "menu.md").read_text(
        encoding="utf-8"
    )
    assert "harbour master" in run("search", "who waves the flag?").out


def test_the_same_again_is_said_and_changes_nothing(run: Run, vault: Path, files: Path) -> None:
    first = run(
        "documents",
        "add",
        str(files / "guide.md"),
        "--scope",
        "alex",
        "--title",
        "The guide",
        "--json",
    ).json
    assert (
        first["title"] == "The guide"
        and first["container_tag"] == "alex"
        and first["status"] == "done"
    )
    original_files = {path: path.read_bytes() for path in vault.rglob("*.md")}
    again = run(
        "documents", "add", str(files / "guide.md"), "--scope", "alex", "--title", "The guide"
    )
    assert again.out.startswith("Already stored: documents/alex/The guide")
    assert {path: path.read_bytes() for path in vault.rglob("*.md")} == original_files


def test_a_text_from_a_pipe(run: Run, vault: Path) -> None:
    done = run(
        "documents",
        "add",
        "-",
        "--scope",
        "team/alex",
        "--title",
        "Letter",
        input=b"Dear all,\n\nthe crane is greased.\n",
    )
    assert (
        done.code == 0
        and "the crane is greased" in (vault / "documents/team/alex/Letter.md").read_text()
    )


def test_what_cannot_be_kept_is_said_and_the_others_are_kept(
    run: Run, vault: Path, files: Path
) -> None:
    sources = [
        files / "drawing.xyz",
        files / "nowhere.pdf",
        files,
        "http://127.0.0.1:9/x",
        files / "guide.md",
    ]
    done = run("documents", "add", *map(str, sources), "--scope", "alex")
    assert done.code == 1 and done.out.count("Stored") == 1
    for source, why in zip(
        sources,
        ("simplemem cannot read", "No such file", "Is a directory", "127.0.0.1"),
        strict=False,
    ):
        assert str(source) in done.err and why in done.err
    answer = run("documents", "add", str(files / "drawing.xyz"), "--scope", "alex", "--json")
    assert answer.code == 1 and answer.json["error"]["code"] == "invalid"


@pytest.mark.parametrize("scope", ["", " alex", "a" * 201, "a\nb"])
def test_a_scope_that_is_none_is_refused(run: Run, vault: Path, files: Path, scope: str) -> None:
    assert run("documents", "add", str(files / "guide.md"), "--scope", scope).code == 1
    assert not (vault / "documents").exists()


def test_only_what_has_not_held_for_so_long_is_tidied_away(run: Run, vault: Path) -> None:
    folder = vault / "atoms" / "alex"
    folder.mkdir(parents=True)
    for name, ends in (("old", "2026-01-05"), ("new", "2999-01-01")):
        (folder / f"{name}.md").write_text(
            ATOM.format(id=f"atom_{name}", ends=ends, said=f"The {name} one.")
        )
    original_files = {path: path.read_bytes() for path in folder.iterdir()}
    answer = run("facts", "tidy", "--dry-run", "--json").json
    assert [fact["memory"] for fact in answer["tidied"]] == ["The old one."] and answer["dry_run"]
    assert run("facts", "tidy", "--older-than", "99999d").out.startswith(
        "0 facts moved to the trash."
    )
    assert {path: path.read_bytes() for path in folder.iterdir()} == original_files
    done = run("facts", "tidy", "--older-than", "30d")
    assert "1 fact moved to the trash." in done.out and [
        path.name for path in folder.iterdir()
    ] == ["new.md"]
    run("undo", "atoms/alex/old")
    assert {path: path.read_bytes() for path in folder.iterdir()} == original_files


def test_days_that_are_none_are_wrong_usage(run: Run) -> None:
    assert run("facts", "tidy", "--older-than", "soon").code == 2
