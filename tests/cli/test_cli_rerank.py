"""A reranker on the command line: named by settings, left out with an option, told of when it fails."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from embedding_service import failing
from rerank_service import RerankService

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")


@pytest.fixture
def service(monkeypatch: pytest.MonkeyPatch) -> Iterator[RerankService]:
    with RerankService(lambda query, text: 0.9 if "rehearsed" in text else 0.2) as running:
        monkeypatch.setenv("SIMPLEMEM_RERANK_PROVIDER", "http")
        monkeypatch.setenv("SIMPLEMEM_RERANK_URL", running.cohere)
        monkeypatch.setenv("SIMPLEMEM_RERANK_MODEL", "tiny")
        monkeypatch.setenv("SIMPLEMEM_RERANK_SECONDS", "20")
        yield running


def names(run: Run, *options: str) -> list[str]:
    return [hit["name"] for hit in run("search", "launch", *options, "--json").json["hits"]]


def test_a_search_is_in_the_rerankers_order_unless_told_otherwise(run: Run, service: RerankService) -> None:
    assert names(run) == ["log/2026-01-24", "projects/apollo"]
    asked = len(service.asked)
    assert names(run, "--no-rerank") == ["projects/apollo", "log/2026-01-24"]
    assert len(service.asked) == asked


def test_explain_shows_its_score_and_the_rank_before(run: Run, service: RerankService) -> None:
    shown = run("search", "launch", "--explain")
    assert "reranker 0.900" in shown.out
    assert "rank_before 2" in shown.out
    assert f"tiny at {service.host}" in shown.out


def test_a_reranker_that_fails_is_told_of_and_the_hits_are_there(run: Run, service: RerankService) -> None:
    service.always = failing(500, "out of memory")
    ran = run("search", "launch")
    assert ran.code == 0
    assert ran.out.index("projects/apollo") < ran.out.index("log/2026-01-24")
    assert f"The reranker tiny at {service.host} does not answer (500, out of memory)" in " ".join(ran.err.split())


def test_stats_name_it_without_asking_it(run: Run, service: RerankService) -> None:
    assert run("stats", "--json").json["reranker"] == f"tiny at {service.host}"
    assert service.asked == []
