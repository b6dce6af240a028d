"""The graph on the command line: written as a picture, and drawn around a note."""

from __future__ import annotations

import json
import os
import stat
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simplemem.cli.app import app

pytestmark = pytest.mark.usefixtures("words_only", "entities")

TRACKER = (
    "---\ntype: entity\nentity_type: component\n---\n\n## Observations\n- sends\n\n"
    "## Relations\n- built by [[Ada]] %% strength=0.9 %%\n- needs [[Battery]]\n"
)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def entities(vault: Path) -> None:
    (vault / "graph").mkdir()
    (vault / "graph" / "Tracker.md").write_text(TRACKER, encoding="utf-8")


@pytest.fixture
def run(vault: Path) -> Run:
    def run(*args: str) -> tuple[int, str, str]:
        done = CliRunner().invoke(app, [*args, "--vault", str(vault)], prog_name="simplemem")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done.exit_code, done.stdout, done.stderr

    return run


def export(run: Run, *args: str) -> tuple[int, str, str]:
    return run("export", "graph", *args)


# ------------------------------------------------------------------ to a file


@pytest.mark.parametrize("form", ["html", "dot", "json"])
def test_each_format_is_written_to_a_file_or_to_standard_output_alike(run: Run, form: str, tmp_path: Path) -> None:
    file = tmp_path / "graph.out"
    code, said, _ = export(run, "--format", form, "--output", str(file))
    assert code == 0 and "3 nodes, 2 edges" in said
    code, printed, _ = export(run, "--format", form)
    assert (code, printed) == (0, file.read_text("utf-8"))


def test_a_file_is_what_its_format_says(run: Run, tmp_path: Path) -> None:
    assert export(run, "--format", "html")[1].startswith("<!doctype html>")
    assert export(run, "--format", "dot")[1].startswith('digraph "notes" {')
    assert {node["id"] for node in json.loads(export(run, "--format", "json")[1])["nodes"]} == {
        "Tracker",
        "Ada",
        "Battery",
    }


def test_notes_and_filters_say_what_is_drawn(run: Run) -> None:
    def ids(*args: str) -> set[str]:
        return {node["id"] for node in json.loads(export(run, "--format", "json", *args)[1])["nodes"]}

    assert ids("--notes", "none") == {"Tracker", "Battery"}
    assert ids("--notes", "all") == {"Tracker", "Ada", "Battery", "projects/apollo", "log/2026-01-24"}
    assert ids("--notes", "all", "--tag", "status=active") == {"projects/apollo"}
    assert ids("--notes", "all", "--since", "2026-01-15", "--until", "2026-01-22") == {"projects/apollo"}


def test_a_vault_without_entities_is_drawn_with_all_its_notes_unless_told_otherwise(run: Run, vault: Path) -> None:
    (vault / "graph" / "Tracker.md").unlink()
    assert len(json.loads(export(run, "--format", "json")[1])["nodes"]) == 3
    code, printed, said = export(run, "--format", "json", "--notes", "linked")
    assert (code, json.loads(printed)["nodes"]) == (0, [])
    assert "nothing to draw" in said and "--notes all" in said


def test_what_is_for_another_program_to_read_back_is_always_whole(run: Run) -> None:
    for part in (("--notes", "none"), ("--tag", "core"), ("--no-texts",), ("--private",)):
        code, printed, said = export(run, "--format", "jsonl", *part)
        assert (code, printed) == (1, "") and "always the whole graph" in said


def test_texts_can_be_left_out(run: Run) -> None:
    assert "Ada flies balloons" in export(run, "--format", "html")[1]
    assert "Ada flies balloons" not in export(run, "--format", "html", "--no-texts")[1]
    assert "observations" not in export(run, "--format", "json", "--no-texts")[1]


def test_private_notes_are_drawn_without_their_texts_and_it_is_said(run: Run, vault: Path, tmp_path: Path) -> None:
    page = vault / "graph" / "Tracker.md"
    text = page.read_text().replace("---\n", "---\nprivate: true\n", 1)
    page.write_text(text.replace("- sends\n", "- sends\n- at my home\n"))
    for form in ("html", "json"):
        _, printed, said = export(run, "--format", form)
        assert "at my home" not in printed and "Tracker" in printed
        assert "a private note is drawn without the text (--private puts it in)" in " ".join(said.split())
        _, printed, said = export(run, "--format", form, "--private")
        assert "at my home" in printed and "private note" not in said
    assert '<p id="left">A private note is shown without its text.</p>' in export(run, "--format", "html")[1]
    assert "at my home" in export(run, "--format", "jsonl")[1]
    assert "private" not in export(run, "--format", "dot")[2]
    file = str(tmp_path / "g.html")
    assert json.loads(export(run, "--format", "html", "--output", file, "--json")[1])["private"] == 1


def test_json_says_what_was_written(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "g.dot"
    said = json.loads(export(run, "--format", "dot", "--output", str(file), "--json")[1])
    size = file.stat().st_size
    assert said == {"file": str(file), "format": "dot", "nodes": 3, "edges": 2, "bytes": size, "private": 0}
    code, printed, _ = export(run, "--format", "dot", "--json")
    assert code == 1 and json.loads(printed)["error"]["code"] == "invalid"


def test_an_older_picture_is_replaced_at_once_and_nothing_is_left_beside_it(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "g.html").write_text("old")
    assert export(run, "--format", "html", "--output", str(folder / "g.html"))[0] == 0
    assert [each.name for each in folder.iterdir()] == ["g.html"]
    if sys.platform != "win32":
        mask = os.umask(0o022)
        os.umask(mask)
        assert stat.S_IMODE((folder / "g.html").stat().st_mode) == 0o666 & ~mask


def test_a_picture_is_never_written_over_a_note(run: Run, vault: Path) -> None:
    note = vault / "people" / "Ada.md"
    before = note.read_bytes()
    code, _, said = export(run, "--format", "json", "--output", str(note))
    assert (code, note.read_bytes()) == (1, before)
    assert "would be a note" in said


def test_a_folder_that_is_not_there_is_said_in_one_line(run: Run, tmp_path: Path) -> None:
    code, _, said = export(run, "--format", "dot", "--output", str(tmp_path / "no" / "g.dot"))
    assert code == 1 and said.startswith("error: No such file")
