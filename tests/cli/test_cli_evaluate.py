"""eval init, run and gate: what a person and a program get to see, and how each ends."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from waiting import eventually

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


def files_of(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_init_makes_a_file_beside_the_index_and_no_note(evaluate: Run, vault: Path) -> None:
    before = files_of(vault)
    told = evaluate("init")
    assert told.code == 0 and "questions" in told.out and "about 4 notes" in told.out
    after = files_of(vault)
    assert after.keys() - before.keys() == {".simplemem/eval.json", ".simplemem/.gitignore"}
    assert {path: data for path, data in after.items() if path in before} == before


def test_init_gives_the_same_file_for_the_same_seed(evaluate: Run, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    told = evaluate("init", "--out", str(one), "--seed", "5", "--size", "3", "--json").json
    evaluate("init", "--out", str(two), "--seed", "5", "--size", "3")
    assert one.read_bytes() == two.read_bytes()
    assert told["questions"] == 3 == len(json.loads(one.read_text(encoding="utf-8"))["pairs"])
    assert told["file"] == str(one) and told["notes"] == 4


def test_a_vault_of_which_nothing_can_be_asked_is_told(evaluate: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    told = evaluate("init", "--vault", str(tmp_path / "empty"), "--json")
    assert told.code == 1 and told.json["error"]["code"] == "invalid"
    assert list((tmp_path / "empty").iterdir()) == []


def test_run_shows_every_figure_with_its_interval_beside_grep(evaluate: Run, vault: Path) -> None:
    evaluate("init")
    before = files_of(vault)
    told = evaluate("run", "--json").json
    base, grep = told["rows"]
    assert (base["name"], grep["name"]) == ("simplemem", "grep -ic")
    assert told["notes"] == 4 and told["seed"] == 1 and told["skipped"] == 0
    assert base["questions"] == grep["questions"] == sum(kind["questions"] for kind in base["kinds"])
    for name in ("recall5", "recall10", "mrr", "tokens", "ms_median", "ms_p95"):
        figure = base[name]
        assert figure["low"] <= figure["value"] <= figure["high"]
    assert "ms_median" not in grep and grep["difference"]["mrr"]["low"] <= grep["difference"]["mrr"]["value"]
    assert files_of(vault) == before


def test_run_for_people_says_what_the_figures_are_about(evaluate: Run, vault: Path) -> None:
    evaluate("init")
    shown = evaluate("run").out
    assert "questions about 4 notes" in shown and str(vault) in shown
    assert all(head in shown for head in ("recall@5", "recall@10", "MRR", "CPU ms, median", "tokens of five"))


def test_a_compared_setting_is_a_row_with_its_difference(evaluate: Run) -> None:
    evaluate("init")
    told = evaluate(
        "run", "--compare", "search.lexical_weight=0.6", "--compare", "embed.provider=wordllama", "--json"
    ).json
    names = [row["name"] for row in told["rows"]]
    assert names == ["simplemem", "search.lexical_weight=0.6", "embed.provider=wordllama", "grep -ic"]
    both = evaluate("run", "--compare", "search.lexical_weight=0.4,embed.provider=wordllama", "--json").json
    assert both["rows"][1]["name"] == "search.lexical_weight=0.4,embed.provider=wordllama"
    same = told["rows"][1]["difference"]  # 0.6 is the default
    assert [same[name] for name in ("recall5", "recall10", "mrr")] == [{"value": 0, "low": 0, "high": 0}] * 3


@pytest.mark.parametrize(
    ("compare", "code", "said"),
    [
        ("search.lexical_wieght=1", 1, "search.lexical_weight"),
        ("search.lexical_weight=7", 1, "less than or equal to 1"),
        ("vault=/elsewhere", 1, "no setting that can be compared"),
        ("embed.api_key=sk-secret", 1, "no setting that can be compared"),
        ("search.lexical_weight", 2, "SETTING=VALUE"),
    ],
)
def test_a_setting_that_cannot_be_compared_is_told_before_anything_is_asked(
    evaluate: Run, compare: str, code: int, said: str
) -> None:
    told = evaluate("run", "--compare", compare)
    assert told.code == code and said in " ".join(told.err.replace("│", " ").split())


def test_without_questions_the_way_to_them_is_told(evaluate: Run) -> None:
    for command in (("run",), ("gate", "--min-mrr", "0.1")):
        told = evaluate(*command)
        assert told.code == 1 and "eval init" in told.err


def test_a_vault_that_is_not_there_is_not_made(evaluate: Run, tmp_path: Path) -> None:
    for command in ("init", "run"):
        assert evaluate(command, "--vault", str(tmp_path / "nowhere")).code == 1
    assert not (tmp_path / "nowhere").exists()


def test_questions_about_notes_that_are_gone_are_counted(evaluate: Run, vault: Path) -> None:
    evaluate("init")
    (vault / "people" / "Bert.md").unlink()
    told = evaluate("run", "--json").json
    assert told["skipped"] > 0
    for path in ("projects/apollo.md", "people/Ada.md", "log/2026-01-24.md"):
        (vault / path).unlink()
    (vault / "other.md").write_text("Nothing of it.\n", encoding="utf-8")
    gone = evaluate("run")
    assert gone.code == 1 and "eval init" in gone.err


def test_questions_of_ones_own_are_asked(evaluate: Run, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    pair = {"kind": "mine", "question": "brass dividers", "gold": ["people/Bert"], "held_out": []}
    file.write_text(json.dumps({"format": 1, "notes": 4, "pairs": [pair]}), encoding="utf-8")
    row = evaluate("run", "--file", str(file), "--json").json["rows"][0]
    assert (row["questions"], row["mrr"]["value"], row["kinds"][0]["kind"]) == (1, 1.0, "mine")


def locomo(tmp_path: Path) -> Path:
    file = tmp_path / "talk.json"
    docs = [
        {"id": name, "date": "1 May", "turns": [["Ann", text]]} for name, text in (("a", "spaniel"), ("b", "violin"))
    ]
    queries = [{"query": "violin", "gold": ["b"], "category": 1}, {"query": "tuba", "gold": ["a"], "category": 2}]
    file.write_text(json.dumps({"docs": docs, "queries": queries}), encoding="utf-8")
    return file


def test_conversations_are_asked_instead_of_the_vault(evaluate: Run, tmp_path: Path, vault: Path) -> None:
    before = files_of(vault)
    told = evaluate("run", "--locomo", str(locomo(tmp_path)), "--json").json
    assert told["notes"] == 2 and told["rows"][0]["recall5"]["value"] == 0.5
    assert [kind["kind"] for kind in told["rows"][0]["kinds"]] == ["category 1", "category 2"]
    assert files_of(vault) == before
    assert evaluate("run", "--locomo", str(locomo(tmp_path)), "--file", "x.json").code == 2


def test_the_gate_ends_with_one_and_a_sentence_below_what_is_wanted(evaluate: Run, tmp_path: Path) -> None:
    talk = str(locomo(tmp_path))
    passed = evaluate("gate", "--locomo", talk, "--min-recall5", "0.5", "--min-mrr", "0.5")
    assert passed.code == 0 and "recall@5 is 0.500" in passed.out
    failed = evaluate("gate", "--locomo", talk, "--min-recall5", "0.5", "--min-mrr", "0.51")
    assert failed.code == 1 and "MRR is 0.500" in failed.out and "below 0.51" in failed.out
    told = evaluate("gate", "--locomo", talk, "--min-recall10", "0.9", "--json")
    assert told.code == 1 and told.json["ok"] is False and told.json["missed"] == ["recall10"]


def test_a_gate_without_a_threshold_is_wrong_usage(evaluate: Run) -> None:
    told = evaluate("gate")
    assert told.code == 2 and "--min-recall5" in told.err


def test_an_interrupted_run_leaves_nothing(evaluate: Run, vault: Path, tmp_path: Path) -> None:
    pairs = [{"kind": "mine", "question": f"chart {n}", "gold": ["people/Bert"], "held_out": []} for n in range(20_000)]
    file = tmp_path / "many.json"
    file.write_text(json.dumps({"format": 1, "notes": 4, "pairs": pairs}), encoding="utf-8")
    before = files_of(vault)
    room = tmp_path / "temporary"
    room.mkdir()
    asked = [sys.executable, "-m", "simplemem", "eval", "run", "--vault", str(vault), "--file", str(file)]
    running = subprocess.Popen(asked, env={**os.environ, "TMPDIR": str(room)}, stdout=subprocess.PIPE)
    assert eventually(lambda: bool(list(room.glob("*/vault/people/Bert.md"))))
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=30)
    # Python ends itself by the signal when it came in the middle of an `exec`, as of a dataclass that is being made.
    assert running.returncode in (130, -signal.SIGINT)
    assert out == b""
    assert list(room.iterdir()) == [] and files_of(vault) == before
