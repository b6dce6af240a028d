"""The commands of the knowledge graph: what was imported comes back out, and a picture is written."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.conftest import notes_of

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Run

pytestmark = pytest.mark.usefixtures("words_only")

LINES = [
    '{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea","größer \\ud800"]}',
    '{"type":"entity","name":"Bob","entityType":"person","observations":[]}',
    '{"type":"relation","from":"Ann","to":"Bob","relationType":"knows"}',
]
TRACKER = (
    "---\ntype: entity\nentity_type: component\n---\n\n## Observations\n- sends\n\n"
    "## Relations\n- built by [[Ada]] %% strength=0.9 %%\n- needs [[Battery]]\n"
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "memory.jsonl"
    file.write_text("\n".join([*LINES, "no line"]), encoding="utf-8")
    return file


# -- import and export


def test_what_was_imported_is_exported_as_it_was(
    run: Run, vault: Path, file: Path, tmp_path: Path
) -> None:
    refused = run("import", "graph", str(file))
    assert refused.code == 1 and "Add --yes, or preview with --dry-run." in refused.err
    assert "2 entities, 1 relation\n" in run("import", "graph", str(file), "--dry-run").out
    assert not (vault / "graph").exists()
    done = run("import", "graph", str(file), "--yes")
    assert (
        done.code == 0
        and "Imported: 2 entities, 1 relation\n  undo with: simplemem undo v1\n" in done.out
    )
    assert "line 4 was skipped: it is not JSON" in done.err
    assert "- likes tea\n" in (vault / "graph/Ann.md").read_text(encoding="utf-8")
    exported = run("export", "graph").out
    assert exported == "".join(f"{line}\n" for line in LINES)
    out = tmp_path / "out.jsonl"
    assert "2 nodes, 1 edge," in run("export", "graph", "--out", str(out)).out
    assert out.read_text(encoding="utf-8") == exported
    again = run("import", "graph", str(file), "--json").json
    assert (
        again["entities"],
        again["relations"],
        again["entities_there"],
        again["relations_there"],
    ) == (0, 0, 2, 1)
    assert again["broken"] == [{"line": 4, "why": "it is not JSON"}]


def test_what_cannot_be_done_is_said_with_a_way_out(run: Run) -> None:
    assert run("export", "graph", "--format", "painting").code == 2
    missing = run("import", "graph", "nowhere.jsonl")
    assert (
        missing.code == 1
        and "nowhere.jsonl cannot be read: No such file or directory" in missing.err
    )
    for part in (("--notes", "all"), ("--no-texts",), ("--private",)):
        refused = run("export", "graph", "--format", "jsonl", *part)
        assert (refused.code, refused.out) == (
            1,
            "",
        ) and "do not apply to the format jsonl" in refused.err


# -- pictures


@pytest.fixture
def entities(vault: Path) -> None:
    (vault / "graph").mkdir()
    (vault / "graph" / "Tracker.md").write_text(TRACKER, encoding="utf-8")


def export(run: Run, *args: str) -> Ran:
    return run("export", "graph", *args)


@pytest.mark.parametrize(
    ("form", "begins"), [("html", "<!doctype html>"), ("dot", "digraph "), ("json", "{")]
)
def test_each_format_is_written_to_a_file_or_to_standard_output_alike(
    run: Run, entities: None, form: str, begins: str, tmp_path: Path
) -> None:
    file = tmp_path / "graph.out"
    assert "3 nodes, 2 edges" in export(run, "--format", form, "--output", str(file)).out
    assert file.read_text("utf-8") == export(run, "--format", form).out
    assert file.read_text("utf-8").startswith(begins)
    told = export(run, "--format", form, "--output", str(file), "--json").json
    assert told == {
        "file": str(file), "format": form, "nodes": 3, "edges": 2, "bytes": file.stat().st_size, "private": 0,
    }  # fmt: skip
    assert export(run, "--format", form, "--json").json["error"]["code"] == "invalid"


def test_a_picture_of_a_large_vault_is_below_5_mb_unless_all_texts_are_asked_for(
    run: Run, vault: Path
) -> None:
    for number in range(3):
        (vault / f"long {number}.md").write_text("word " * 500_000, encoding="utf-8")
    cut = export(run, "--format", "html", "--notes", "all")
    assert len(cut.out) < 5_000_000 and "texts are cut after 4,000 characters" in cut.err
    assert len(export(run, "--format", "html", "--notes", "all", "--texts").out) > 7_000_000


def test_a_picture_is_never_written_over_a_note(
    run: Run, vault: Path, entities: None, tmp_path: Path
) -> None:
    before = notes_of(vault)
    refused = export(run, "--format", "json", "--output", str(vault / "people/Ada.md"))
    assert refused.code == 1 and "would become a note" in refused.err and notes_of(vault) == before
    assert export(run, "--format", "dot", "--output", str(tmp_path / "no" / "g.dot")).code == 1
