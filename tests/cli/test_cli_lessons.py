"""The commands of `simplemem lessons`: each of them, for people and for programs."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem.cli.lessons import choose_vault
from simplemem.features.lessons.service import lesson_service
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Run

pytestmark = pytest.mark.usefixtures("words_only")


@pytest.fixture(scope="module")
def once_learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    vault = tmp_path_factory.mktemp("once") / "learned"
    with EnhancedStore(vault, Settings.model_validate({"embed": {"provider": "none"}})) as store:
        service = lesson_service(store)
        error = service.save(
            "error", "The pool is exhausted", confidence=0.9, tags=["pg"], context="at night"
        )
        fix = service.save(
            "solution", "Raise the pool", confidence=0.4, verified=True, who="claude 1"
        )
        service.link(fix[0].id, error[0].id, "fixes")
        service.save("decision", "Use Postgres for the billing store.", confidence=0.7)
        service.save("decision", "Use MySQL for the billing store.", confidence=0.6)
    return vault


@pytest.fixture
def vault(once_learned: Path, tmp_path: Path) -> Path:
    return shutil.copytree(once_learned, tmp_path / "learned")


def run_lessons(run: Run, *args: str) -> Ran:
    return run("lessons", *args)


def test_which_vault_is_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert choose_vault(None) is None and choose_vault(Path("a")) == Path("a")
    (tmp_path / ".claude-memory").mkdir()
    assert choose_vault(None) == Path(".claude-memory")
    monkeypatch.setenv("MEMORY_STORAGE_PATH", "elsewhere")
    assert choose_vault(None) == Path("elsewhere")
    monkeypatch.setenv("SIMPLEMEM_VAULT", "own")
    assert choose_vault(None) is None


def test_entries_are_listed_counted_and_narrowed(run: Run) -> None:
    lessons = run_lessons(run, "list", "--json").json["entries"]
    assert sorted(lesson["type"] for lesson in lessons) == [
        "decision",
        "decision",
        "error",
        "solution",
    ]
    (error,) = run_lessons(run, "list", "error", "--json").json["entries"]
    assert (
        error["content"] == "The pool is exhausted"
        and "#pg" in run_lessons(run, "list", "error").out
    )
    assert run_lessons(run, "list", "--min-confidence", "0.7", "--json").json["total"] == 2
    assert "1 of 4 lessons" in run_lessons(run, "list", "--limit", "1").out
    assert run_lessons(run, "list", "fact").code == 2
    facts = run_lessons(run, "stats", "--json").json
    assert facts["total"] == 4 and facts["by_type"] == {"decision": 2, "error": 1, "solution": 1}


def test_search_finds_by_words_and_says_how(run: Run) -> None:
    result = run_lessons(run, "search", "pool", "--json").json
    assert {lesson["type"] for lesson in result["results"]} == {"error", "solution"} and result[
        "method"
    ] == "words"
    assert all(lesson["accessCount"] == 0 and lesson["score"] > 0 for lesson in result["results"])
    result = run_lessons(run, "search", "pool", "--type", "error").out
    assert "The pool is exhausted" in result and "Raise" not in result and "by words" in result
    assert "Nothing found" in run_lessons(run, "search", "zeppelin", "--min-confidence", "0.95").out


def test_show_takes_the_beginning_of_an_id_or_a_name(run: Run) -> None:
    (error,) = run_lessons(run, "list", "error", "--json").json["entries"]
    result = run_lessons(run, "show", error["id"][:8]).out
    for part in ("The pool is exhausted", "Context: at night", "pg", error["id"], "0.9"):
        assert part in result
    assert f"fixes {error['id'][:8]}" in run_lessons(run, "show", "raise-the-pool").out
    value = run_lessons(run, "show", "raise-the-pool", "--json").json
    assert value["relations"] == [
        {"relationship": "fixes", "id": error["id"], "name": error["name"]}
    ]
    assert run_lessons(run, "show", "nobody", "--json").json["error"]["code"] == "not_found"


def test_export_prints_or_writes_each_form(run: Run, tmp_path: Path) -> None:
    text = run_lessons(run, "export").out
    assert (
        text.startswith("# Knowledge")
        and "## Decision (2)" in text
        and "- fixes [[knowledge/error/" in text
    )
    assert "raise-the-pool" in json.dumps(json.loads(run_lessons(run, "export", "json").out))
    assert run_lessons(run, "export", "dot").out.startswith("digraph")
    page = tmp_path / "page.html"
    done = run_lessons(run, "export", "html", "--output", str(page), "--json").json
    assert (
        done == {"file": str(page), "format": "html", "entries": 4}
        and "raise-the-pool" in page.read_text()
    )
    assert run_lessons(run, "export", "pdf").code == 2


def test_analyze_shows_what_to_look_at(run: Run) -> None:
    result = run_lessons(run, "analyze").out
    for part in ("Low confidence (1)", "Unverified (3)", "Never read (4)", "Contradictions (1)"):
        assert part in result
    facts = run_lessons(run, "analyze", "--json").json
    assert [lesson["says"] for lesson in facts["low_confidence"]] == ["Raise the pool"]
    assert facts["looked_at"] == {"what": "entries", "count": 4} and "no vectors" in facts["method"]
    looked = run_lessons(run, "analyze", "--notes", "knowledge/error/", "--json").json["looked_at"]
    assert looked == {"what": "notes in knowledge/error/", "count": 1}
