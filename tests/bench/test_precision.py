"""PrecisionMemBench: a case passes only if what should come back does, and nothing else."""

from __future__ import annotations

import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest

from bench.retrieval.loaders import WrongFormat
from bench.retrieval.precision import (
    BELIEFS_FILE,
    CASES_FILE,
    Case,
    Context,
    judge,
    load_precision,
    run_precision,
)


def belief(id_: str, name: str, content: str, **changes: Any) -> dict[str, Any]:
    values = {
        "_id": id_,
        "user_id": "test-user",
        "type": "entity",
        "canonical_name": name,
        "aliases": [],
        "content": content,
        "why_it_matters": "It shapes answers.",
        "scope": ["domain:code"],
        "pinned": False,
        "superseded_by": None,
        "resolved_at": None,
    }
    return {**values, **changes}


BELIEFS = [
    belief("b-k8s", "kubernetes", "Deploys to a cluster on EKS.", aliases=["k8s"]),
    belief("b-old", "kubernetes_old", "Deployed to Nomad.", superseded_by="b-k8s"),
    belief("b-db", "database", "Decided on MongoDB.", type="decision", pinned=True),
    belief("b-auth", "auth", "JWT or sessions?", type="open_question", pinned=True),
    belief("b-style", "style", "Wants direct answers.", scope=["user:universal"], pinned=True),
    belief("b-ear", "earring", "Lost in Lisbon.", scope=["domain:writing"]),
    belief(
        "b-uses",
        "kubernetes_uses_database",
        "Pods use it.",
        type="relation",
        participants=["b-k8s"],
    ),
    belief("b-other", "haskell", "Uses Haskell.", user_id="other-user", pinned=True),
]
CASES = [
    {
        "caseId": "empty",
        "category": "Design boundary cases",
        "scope": ["domain:code"],
        "query": "",
        "expect": {
            "personaPrelude": {
                "nonEmpty": True,
                "contains": ["direct"],
                "mustNotContain": ["Haskell"],
            },
            "pinnedFacts": {"mustInclude": ["b-db"], "mustExclude": ["b-auth", "b-other"]},
            "openQuestions": {"mustInclude": ["b-auth"]},
            "relevantBeliefs": {"shouldOnlyInclude": []},
        },
    },
    {
        "caseId": "stranger",
        "category": "Cold start behavior",
        "userId": "stranger",
        "scope": ["domain:code"],
        "query": "k8s",
        "expect": {
            "personaPrelude": {"isNull": True},
            "relevantBeliefs": {"shouldOnlyInclude": []},
        },
    },
    {
        "caseId": "alias",
        "category": "Alias resolution",
        "scope": ["domain:writing"],
        "query": "earring lost in Lisbon",
        "expect": {"relevantBeliefs": {"shouldOnlyInclude": ["b-ear"]}},
    },
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / BELIEFS_FILE).write_text(json.dumps(BELIEFS))
    (tmp_path / CASES_FILE).write_text(json.dumps(CASES))
    return tmp_path


def case(**expected: Any) -> Case:
    return Case("c", "category", "ann", ("domain:code",), "?", 20, expected)


def test_the_files_are_read_from_a_folder_and_from_an_archive(folder: Path, tmp_path: Path) -> None:
    benchmark = load_precision(folder)
    assert [read.id for read in benchmark.cases] == ["empty", "stranger", "alias"]
    assert not benchmark.by_id()["b-old"].is_current

    archive = tmp_path / "all.tar.gz"
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as packed:
        packed.add(folder / BELIEFS_FILE, arcname=f"x/{BELIEFS_FILE}")
        packed.add(folder / CASES_FILE, arcname=f"x/{CASES_FILE}")
    archive.write_bytes(buffer.getvalue())
    assert load_precision(archive) == benchmark


def test_a_folder_without_the_files_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WrongFormat):
        load_precision(tmp_path)


def test_an_irrelevant_belief_fails_a_case_and_lowers_its_precision() -> None:
    wanted = case(relevantBeliefs={"shouldOnlyInclude": ["a"]})
    exact = judge(wanted, Context(relevant=("a",)))
    noisy = judge(wanted, Context(relevant=("a", "b")))
    missed = judge(wanted, Context())
    assert (exact.failures, exact.precision, exact.recall) == ((), 1, 1)
    assert (noisy.failures, noisy.precision, noisy.recall) == (("irrelevant belief b",), 0.5, 1)
    assert (missed.failures, missed.precision) == (("missing relevant belief a",), 0)


def test_silence_where_nothing_is_relevant_passes_without_a_precision() -> None:
    result = judge(case(relevantBeliefs={"shouldOnlyInclude": []}), Context())
    assert (result.failures, result.precision, result.recall) == ((), None, None)


def test_pinned_facts_questions_and_the_prelude_are_asserted_too() -> None:
    wanted = case(
        pinnedFacts={"mustInclude": ["p"], "mustExclude": ["q"]},
        openQuestions={"mustExclude": ["o"]},
        personaPrelude={"nonEmpty": True},
    )
    assert len(judge(wanted, Context(pinned=("q",), questions=("o",))).failures) == 4
    assert not judge(wanted, Context(prelude="Direct.", pinned=("p",))).failures


@pytest.mark.slow
def test_scopes_users_pins_and_questions_are_kept_apart_by_our_tools(folder: Path) -> None:
    report = run_precision(load_precision(folder), lambda *_: None)
    for results in report.results.values():
        failures = {result.case.id: result.failures for result in results}
        assert failures == {"empty": (), "stranger": (), "alias": ()}
    assert "| default tools | 3/3 | 1/1 | 1.00 | 1.00 |" in report.as_table()
    assert report.as_dict()["providers"][0]["passed"] == 3
