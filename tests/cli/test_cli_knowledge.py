"""The commands of `simplemem knowledge`: each row of SI-34, for people and for programs."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from simplemem.cli.app import app
from simplemem.cli.knowledge import vault_of
from simplemem.config import Settings
from simplemem.kinds.learned.keeping import knowledge_of
from simplemem.store import EnhancedStore
from tests.cli.conftest import Ran

pytestmark = pytest.mark.usefixtures("words_only")


@pytest.fixture(scope="module")
def once_learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    vault = tmp_path_factory.mktemp("once") / "learned"
    with EnhancedStore(vault, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        knowledge = knowledge_of(store)
        error = knowledge.save(
            "error", "The pool is exhausted", confidence=0.9, tags=["pg"], context="at night", who="claude 1"
        )
        fix = knowledge.save("solution", "Raise the pool", confidence=0.4, verified=True, who="claude 1")
        knowledge.link(fix.entry.id, error.entry.id, "fixes")
        knowledge.save("decision", "Use Postgres for the billing store.", confidence=0.7)
        knowledge.save("decision", "Use MySQL for the billing store.", confidence=0.6)
    return vault


@pytest.fixture
def learned(once_learned: Path, tmp_path: Path) -> Path:
    return shutil.copytree(once_learned, tmp_path / "learned")


@pytest.fixture
def run(learned: Path):
    def run(*args: str, vault: Path | None = learned, text: str | None = None) -> Ran:
        where = () if vault is None else ("--vault", str(vault))
        result = CliRunner().invoke(app, ["knowledge", *args, *where], input=text, prog_name="simplemem")
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Ran(result.exit_code, result.stdout, result.stderr)

    return run


def test_init_makes_a_vault_and_changes_none(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert run("init", "--json", vault=None).json == {
        "vault": str(tmp_path / ".claude-memory"),
        "new": True,
        "entries": 0,
    }
    assert "There already" in run("init", vault=None).out
    assert run("init", "--json").json["entries"] == 4
    (tmp_path / "file").write_text("x")
    assert run("init", str(tmp_path / "file"), vault=None).code == 1
    assert run("init", "x").code == 2


def test_which_vault_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert vault_of(None) is None and vault_of(Path("a")) == Path("a")
    (tmp_path / ".claude-memory").mkdir()
    assert vault_of(None) == Path(".claude-memory")
    monkeypatch.setenv("MEMORY_STORAGE_PATH", "elsewhere")
    assert vault_of(None) == Path("elsewhere")
    monkeypatch.setenv("SIMPLEMEM_VAULT", "own")
    assert vault_of(None) is None


def test_stats_count_what_there_is(run) -> None:
    facts = run("stats", "--json").json
    assert facts["total"] == 4 and facts["by_type"] == {"decision": 2, "error": 1, "solution": 1}
    assert facts["by_confidence"] == {"high": 1, "medium": 2, "low": 1} and facts["verified"] == 1
    run("search", "pool")
    assert "Most read" in run("stats").out


def test_list_is_narrowed_by_type_and_confidence(run) -> None:
    every = run("list", "--json").json["entries"]
    assert sorted(each["type"] for each in every) == ["decision", "decision", "error", "solution"]
    assert [each["timestamp"] for each in every] == sorted((each["timestamp"] for each in every), reverse=True)
    for args in (("list", "error"), ("list", "--type", "error")):
        assert [each["content"] for each in run(*args, "--json").json["entries"]] == ["The pool is exhausted"]
    assert run("list", "--min-confidence", "0.7", "--json").json["total"] == 2
    one = run("list", "--limit", "1")
    assert "3 more: --limit 4" in one.out
    assert run("list", "fact").code == 2


def test_search_finds_by_words_counts_and_says_how(run) -> None:
    found = run("search", "pool", "--json").json
    assert {each["type"] for each in found["results"]} == {"error", "solution"} and found["method"] == "words"
    assert all(each["accessCount"] == 1 and each["score"] > 0 for each in found["results"])
    shown = run("search", "pool", "--type", "error").out
    assert "The pool is exhausted" in shown and "Raise" not in shown and "by words" in shown
    assert "Nothing found" in run("search", "zeppelin", "--type", "error", "--min-confidence", "0.95").out
    assert run("search").code == 2


def test_show_takes_the_beginning_of_an_id_or_a_name(run) -> None:
    (error,) = run("list", "error", "--json").json["entries"]
    shown = run("show", error["id"][:8]).out
    for part in ("The pool is exhausted", "Context: at night", "#pg", "raise-the-pool (fixes)", "confidence 0.90"):
        assert part in shown
    value = run("show", "raise-the-pool", "--json").json
    assert value["relations"] == [{"relationship": "fixes", "id": error["id"], "name": error["name"]}]
    missing = run("show", "nobody", "--json")
    assert missing.code == 1 and missing.json["error"]["code"] == "not_found"


def test_export_prints_or_writes_each_form(run, tmp_path: Path) -> None:
    text = run("export").out
    assert text.startswith("# Knowledge") and "## Decision (2)" in text and "- fixes [[knowledge/error/" in text
    assert run("export", "md").out == text
    for form in ("json",):
        assert "raise-the-pool" in json.dumps(json.loads(run("export", form).out))
    assert run("export", "dot").out.startswith("digraph")
    page = tmp_path / "page.html"
    done = run("export", "html", "--output", str(page), "--json").json
    assert done == {"file": str(page), "format": "html", "entries": 4} and "raise-the-pool" in page.read_text()
    assert run("export", "pdf").code == 2


def test_analyze_shows_what_to_look_at(run) -> None:
    shown = run("analyze").out
    for part in (
        "Confidence below 0.5 (1)",
        "Not verified (3)",
        "Never read (4)",
        "Contradictions (1)",
        "slot",
        "words",
    ):
        assert part in shown
    facts = run("analyze", "--json").json
    assert [each["says"] for each in facts["low_confidence"]] == ["Raise the pool"]
    assert [each["rule"] for each in facts["contradictions"]] == ["slot"]
    assert facts["looked_at"] == {"what": "entries", "count": 4} and "words" in facts["method"]


def test_analyze_looks_at_ordinary_notes_when_it_is_asked_to(run, vault: Path) -> None:
    facts = run("analyze", "--notes", "*", "--json", vault=vault).json
    assert facts["looked_at"]["count"] == 3 and facts["unverified"] == []
    assert run("analyze", "--notes", "people/", "--json", vault=vault).json["looked_at"] == {
        "what": "notes in people/",
        "count": 1,
    }


def test_validate_tells_what_to_mend_and_ends_with_one(run, learned: Path) -> None:
    good = run("validate")
    assert good.code == 0 and "4 entries, 0 to mend" in good.out
    (learned / "knowledge" / "error" / "by-hand.md").write_text("Only a text.\n")
    (learned / "knowledge" / "odd.md").write_text(
        "---\ntype: knowledge\nid: a\nknowledge_type: rumour\nconfidence: 0.5\nstatus: superseded\n---\nx\n\n"
        "## Relations\n- fixes [[nowhere]]\n"
    )
    (learned / "knowledge" / "twin.md").write_text(
        "---\ntype: knowledge\nid: a\nknowledge_type: error\nconfidence: 1\n---\n"
    )
    (learned / "knowledge" / "broken.md").write_text("---\ntags: [a\n---\nx\n")
    found = run("validate", "--json")
    told = {(each["name"], each["says"].split(",")[0].split(" none")[0]) for each in found.json["problems"]}
    assert found.code == 1 and {name for name, _ in told} == {
        "knowledge/error/by-hand", "knowledge/odd", "knowledge/twin", "knowledge/broken"
    }  # fmt: skip
    said = " ".join(sorted(says for _, says in told))
    for part in (
        "no confidence",
        "its type rumour is",
        "its id a is that of 1 more",
        "leads to nowhere",
        "says nothing",
        "superseded",
    ):
        assert part in said
    assert run("validate").code == 1


def test_reset_wants_its_word_and_is_undone_as_one(run, learned: Path) -> None:
    notes = {path: path.read_bytes() for path in learned.glob("knowledge/**/*.md")}
    for args in (("reset",), ("reset", "--confirm", "yes"), ("reset", "--json")):
        refused = run(*args)
        assert refused.code == 1 and len(list(learned.glob("knowledge/**/*.md"))) == 4
    (learned / "other.md").write_text("stays\n")
    done = run("reset", "--confirm", "reset", "--json").json
    assert done["deleted"] == 4 and done["version"] and not list(learned.glob("knowledge/**/*.md"))
    assert (learned / "other.md").exists() and "There was nothing" in run("reset").out
    CliRunner().invoke(app, ["undo", done["version"], "--vault", str(learned)])
    assert {path: path.read_bytes() for path in learned.glob("knowledge/**/*.md")} == notes


def test_every_command_has_an_example_and_json(run) -> None:
    for name in ("init", "stats", "list", "search", "show", "export", "analyze", "validate", "reset"):
        told = run(name, "--help", vault=None).out
        assert "Examples" in told and f"simplemem knowledge {name}" in told and "--json" in told, name
    assert os.environ.get("SIMPLEMEM_EMBED_PROVIDER") == "none"
