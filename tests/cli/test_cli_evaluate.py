"""eval init and run: what a person and a program get to see, and how each ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Run

pytestmark = pytest.mark.usefixtures("words_only")


@pytest.fixture
def evaluate(vault: Path, tmp_path: Path) -> Run:
    """Run `eval` on a vault of a few notes, as `evaluate("run", "--json")`."""
    from typer.testing import CliRunner

    from simplemem.cli.app import app
    from tests.cli.conftest import Ran

    (vault / "people" / "Bert.md").write_text(
        "---\naliases: [The navigator]\ndescription: Reads every chart by candlelight\n---\n# Bert\n\n"
        "Bert plots the course with brass dividers while others sleep through stormy weather. The navigator counts stars "
        "and keeps a private almanac of tides below his bunk.\n",
        encoding="utf-8",
    )

    def run(command: str, *args: str, **_: Any) -> Ran:
        where = () if "--vault" in args else ("--vault", str(vault))
        result = CliRunner().invoke(app, ["eval", command, *where, *args], prog_name="simplemem")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


def test_init_writes_questions_beside_the_index_and_run_asks_them(
    evaluate: Run, vault: Path
) -> None:
    before = {file: file.read_bytes() for file in vault.rglob("*.md")}
    told = evaluate("init")
    assert told.code == 0 and "questions" in told.out and "about 4 notes" in told.out
    assert (vault / ".simplemem/eval.json").is_file()
    figures = evaluate("run", "--compare", "search.lexical_weight=0.5", "--json").json
    base, other = figures["rows"]
    assert (base["name"], other["name"]) == ("simplemem", "search.lexical_weight=0.5")
    assert (
        base["questions"] > 0
        and other["difference"]["mrr"]["low"] <= other["difference"]["mrr"]["high"]
    )
    shown = evaluate("run")
    assert "recall@5" in shown.out and "CPU ms, median" in shown.out and str(vault) in shown.out
    assert {file: file.read_bytes() for file in vault.rglob("*.md")} == before


def test_questions_of_ones_own_are_asked_from_any_file(evaluate: Run, tmp_path: Path) -> None:
    asked = [("tides almanac", "people/Bert"), ("tides almanac", "people/Ada")]
    pairs = [
        {"kind": "mine", "question": text, "gold": [name], "held_out": []} for text, name in asked
    ]
    (file := tmp_path / "mine.json").write_text(
        json.dumps({"format": 1, "notes": 4, "pairs": pairs})
    )
    passed = evaluate("run", "--file", str(file))
    assert passed.code == 0 and "0.500" in passed.out


def test_what_cannot_be_asked_is_told_with_its_way_out(evaluate: Run, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    gone = evaluate("init", "--vault", str(nowhere))
    assert gone.code == 1 and "no vault at" in gone.err and not nowhere.exists()
    (tmp_path / "empty").mkdir()
    assert (
        "no question could be created" in evaluate("init", "--vault", str(tmp_path / "empty")).err
    )
    assert "eval init" in evaluate("run").err
    wrong = evaluate("run", "--compare", "search.lexical_wight=0.5")
    assert wrong.code == 1 and "search.lexical_wight" in wrong.err
    assert evaluate("run", "--compare", "nothing").code == 2
