"""The commands of the knowledge graph: what was imported comes back out."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

LINES = [
    '{"type":"entity","name":"Ann","entityType":"person","observations":["likes tea","größer \\ud800"]}',
    '{"type":"entity","name":"Bob","entityType":"person","observations":[]}',
    '{"type":"relation","from":"Ann","to":"Bob","relationType":"knows"}',
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "memory.jsonl"
    file.write_text("\n".join([*LINES, "no line"]), encoding="utf-8")
    return file


@pytest.fixture(autouse=True)
def _by_words(words_only: None) -> None:
    """These commands need no vectors."""


def test_what_was_imported_is_exported_as_it_was(run: Run, vault: Path, file: Path, tmp_path: Path) -> None:
    done = run("import", "graph", str(file), "--vault", str(vault), vault=None)
    assert done.code == 0
    assert done.out.startswith("Imported: 2 entities, 1 relation\n")
    assert "line 4 was left out: it is not JSON" in done.err
    assert "- likes tea\n" in (vault / "graph/Ann.md").read_text(encoding="utf-8")
    exported = run("export", "graph", "--vault", str(vault), vault=None)
    assert exported.out == "".join(f"{line}\n" for line in LINES)
    out = tmp_path / "out.jsonl"
    told = run("export", "graph", "--format", "jsonl", "--out", str(out), "--vault", str(vault), vault=None)
    assert (told.code, out.read_text(encoding="utf-8")) == (0, exported.out)
    assert told.out.startswith(str(out)) and "2 nodes, 1 edge," in told.out


def test_an_import_tells_programs_what_it_did_and_is_done_again_without_harm(run: Run, vault: Path, file: Path) -> None:
    first = run("import", "graph", str(file), "--json", "--vault", str(vault), vault=None).json
    again = run("import", "graph", str(file), "--json", "--vault", str(vault), vault=None).json
    assert (first["entities"], first["relations"], first["entities_there"]) == (2, 1, 0)
    assert (again["entities"], again["relations"], again["entities_there"], again["relations_there"]) == (0, 0, 2, 1)
    assert first["broken"] == again["broken"] == [{"line": 4, "why": "it is not JSON"}]


def test_an_import_of_many_steps_is_taken_back_by_one_command_that_it_names(
    run: Run, vault: Path, tmp_path: Path
) -> None:
    file = tmp_path / "memory.jsonl"
    many = [{"type": "entity", "name": f"e{k}", "entityType": "t", "observations": []} for k in range(300)]
    many.append({"type": "entity", "name": "Ann", "entityType": "t", "observations": ["sings"]})
    file.write_text("\n".join(map(json.dumps, many)), encoding="utf-8")
    (vault / "graph").mkdir(exist_ok=True)
    (vault / "graph/Ann.md").write_text("- likes tea\n", encoding="utf-8")
    run("new", "before", "--content", "mine", "--vault", str(vault), vault=None)
    told = run("import", "graph", str(file), "--vault", str(vault), vault=None).out
    assert len(list((vault / "graph").glob("*.md"))) == 301
    command = shlex.split(told.strip().split("\n")[-1].split("undo with: ")[1])
    assert command[:2] == ["simplemem", "undo"]
    assert run(*command[1:], "--yes", "--vault", str(vault), vault=None).code == 0
    assert [page.name for page in (vault / "graph").glob("*.md")] == ["Ann.md"]
    assert (vault / "graph/Ann.md").read_text(encoding="utf-8") == "- likes tea\n"
    assert (vault / "before.md").exists()
    again = run("import", "graph", str(file), "--vault", str(vault), vault=None).out
    assert "undo with" in again
    assert "undo with" not in run("import", "graph", str(file), "--vault", str(vault), vault=None).out


def test_an_import_is_in_the_history_and_can_be_taken_back(run: Run, vault: Path, file: Path) -> None:
    run("import", "graph", str(file), "--vault", str(vault), vault=None)
    last = run("history", "--limit", "1", "--json").json
    assert "import of memory.jsonl" in json.dumps(last)
    assert run("undo").code == 0
    assert not (vault / "graph/Ann.md").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("export", "graph", "--format", "painting"), "there is no format 'painting'"),
        (("import", "graph", "nowhere.jsonl"), "nowhere.jsonl cannot be read: No such file or directory"),
    ],
)
def test_what_cannot_be_done_is_said_with_a_way_out(run: Run, vault: Path, words: tuple[str, ...], said: str) -> None:
    failed = run(*words, "--vault", str(vault), vault=None)
    assert (failed.code, said in failed.err) == (1, True)
