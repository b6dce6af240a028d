"""A search in a reranker's order: the best notes only, within its time, with private notes kept at home; and the order
of words and meaning, said aloud, when the reranker fails."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from embedding_service import CUT, HANGS_UP, PAGE, Answer, failing
from hypothesis import given
from hypothesis import strategies as st
from rerank_service import WRONG, RerankService

from simplemem.models import Found
from simplemem.search.rank import Ranked
from simplemem.search.rerank import in_order_of
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]
QUERY = "harbour crane"
ORDER = ["a", "b", "c", "d", "e"]  # of words: the fewer other words, the better


def number_in(query: str, text: str) -> float:
    """A model that reads: a passage is worth what it says of itself."""
    said = re.search(r"worth (-?\d+\.?\d*)", text)
    return float(said[1]) if said else 0.0


@pytest.fixture
def service() -> Iterator[RerankService]:
    with RerankService(number_in) as running:
        yield running


def _filler(name: str, count: int) -> str:
    """Words of its own for every note: what says the same twice would be one voice in a pack."""
    return " ".join(f"{name}{number}" for number in range(count))


@pytest.fixture
def notes(write: Write) -> None:
    for k, (name, worth) in enumerate(zip(ORDER, ("0.1", "0.5", "0.9", "0.3", "0.7"), strict=True)):
        write(
            f"{name}.md",
            f"# About {name}\n\nThe harbour crane, worth {worth}. {_filler(name, 6 + 3 * k)}\n",
        )


def settings(service: RerankService, **more: Any) -> Settings:
    rerank = {"provider": "http", "url": service.cohere, "model": "m", "seconds": 20, **more}
    return Settings.model_validate({"embed": {"provider": "none"}, "rerank": rerank})


def opened(vault: Path, service: RerankService, **more: Any) -> EnhancedStore:
    store = EnhancedStore(vault, settings(service, **more))
    store.sync()
    return store


def names(found: Found) -> list[str]:
    return [hit.name for hit in found.hits]


def test_the_best_notes_stand_in_the_rerankers_order(
    vault: Path, service: RerankService, notes: None
) -> None:
    with opened(vault, service) as store:
        found = store.search(QUERY)
    assert names(found) == ["c", "e", "b", "d", "a"]
    assert [hit.score for hit in found.hits] == [0.9, 0.7, 0.5, 0.3, 0.1]
    assert found.degraded == ""


def test_backlinks_of_a_query_stand_in_its_order_too(
    vault: Path, service: RerankService, notes: None
) -> None:
    (vault / "x.md").write_text("What they are about.")
    for name in ORDER:
        (vault / f"{name}.md").write_text((vault / f"{name}.md").read_text() + "\n[[x]]\n")
    with opened(vault, service) as store:
        assert [each.name for each in store.backlinks("x", query=QUERY, limit=3)] == ["c", "e", "b"]
        assert (
            store.backlinks("a", query=QUERY) == ()
            and len(store.backlinks("x", limit=3)) == 3
            and len(service.requests) == 1
            and store.rerank_trouble == ""
        )
        service.always = failing(500)
        assert (
            len(store.backlinks("x", query=QUERY)) == 5
            and "does not answer" in store.rerank_trouble
        )


def test_only_the_candidates_are_sent_and_the_others_follow(
    vault: Path, service: RerankService, notes: None
) -> None:
    with opened(vault, service, candidates=2) as store:
        found = store.search(QUERY)
    assert names(found) == ["b", "a", "c", "d", "e"]
    assert len(service.sent()) == 2
    assert [hit.score for hit in found.hits] == sorted(
        (hit.score for hit in found.hits), reverse=True
    )


def test_why_shows_the_rerankers_score_and_the_rank_before(
    vault: Path, service: RerankService, notes: None
) -> None:
    with opened(vault, service) as store:
        found = store.search(QUERY, explain=True)
    why = dict(found.hits[0].why or {})
    assert (why["reranker"], why["rank_before"]) == (0.9, 3)
    assert "words" in why
    assert (found.explain or {})["reranker"] == {
        "name": f"m at {service.host}",
        "remote": False,
        "candidates": 20,
    }


# -- a reranker that fails


@pytest.mark.parametrize(
    "trouble",
    [
        failing(429, headers={"Retry-After": "60"}),
        failing(500),
        PAGE,
        CUT,
        HANGS_UP,
        *WRONG.values(),
    ],
    ids=["429", "500", "HTML", "cut", "hung up", *WRONG],
)
def test_the_order_of_words_stands_and_the_answer_says_so(
    vault: Path, service: RerankService, notes: None, trouble: Answer
) -> None:
    service.always = trouble
    with opened(vault, service, seconds=1.0) as store:
        found = store.search(QUERY)
        plain = store.search(QUERY, rerank=False)
    assert found.hits == plain.hits
    assert found.degraded.startswith(f"The reranker m at {service.host} does not answer (")
    assert found.degraded.endswith("; the hits are ranked by words and meaning.")
    assert plain.degraded == ""


def test_one_too_slow_is_left_out(vault: Path, service: RerankService, notes: None) -> None:
    answered: list[bool] = []

    def late(answer: object) -> object:
        service.closed.wait(20)
        answered.append(True)
        return answer

    service.always = Answer(change=late)
    with opened(vault, service, seconds=0.2) as store:
        found = store.search(QUERY)
        pack = store.context(QUERY)
    assert (names(found), answered) == (ORDER, [])
    assert "does not answer (no answer within 0.2 s)" in found.degraded
    assert "The reranker" in pack.degraded


def test_a_dead_one_is_asked_a_few_times_and_then_costs_nothing(
    vault: Path, service: RerankService, notes: None
) -> None:
    service.always = WRONG["too few"]
    with opened(vault, service) as store:
        for _ in range(8):
            assert names(store.search(QUERY)) == ORDER
        assert "next attempt in" in store.search(QUERY).degraded
        assert any("does not answer" in warning for warning in store.stats()["warnings"])
    assert len(service.requests) == 3


# -- private notes


@pytest.fixture
def far_away(service: RerankService, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of another machine, to which the service is the only way."""
    for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "http_proxy"):
        monkeypatch.setenv(name, service.url)
    return "http://rerank.example/v2/rerank"


PRIVATE = {
    "property": "---\nprivate: true\n---\nThe harbour crane, worth 0.99, is my secret.",
    "tag": "The harbour crane, worth 0.99, is my secret. #private",
    "tag below": "---\ntags: [private/diary]\n---\nThe harbour crane, worth 0.99, is my secret.",
    "unreadable header": "---\nprivate: [true\n---\nThe harbour crane, worth 0.99, is my secret.",
}


@pytest.mark.parametrize("text", PRIVATE.values(), ids=PRIVATE.keys())
def test_a_private_note_is_never_sent_and_keeps_its_place(
    vault: Path, service: RerankService, notes: None, write: Write, far_away: str, text: str
) -> None:
    write("diary.md", text)
    with opened(vault, service, url=far_away) as store:
        before = names(store.search(QUERY, rerank=False, limit=10))
        found = store.search(QUERY, limit=10)
        store.context(QUERY)
    assert names(found).index("diary") == before.index("diary")
    assert [name for name in names(found) if name != "diary"] == ["c", "e", "b", "d", "a"]
    assert [hit.score for hit in found.hits] == sorted(
        (hit.score for hit in found.hits), reverse=True
    )
    assert len(service.sent()) == 10
    assert b"secret" not in service.received
    assert b"diary" not in service.received


def test_a_folder_that_a_rule_keeps_private_is_never_sent_even_before_the_index_knows_the_rule(
    vault: Path, service: RerankService, notes: None, write: Write, far_away: str
) -> None:
    write("journal/monday.md", "The harbour crane, worth 0.99, is my secret.")
    opened(vault, service).close()
    rule = Settings.model_validate({
        "embed": {"provider": "none", "private": ["journal/"]},
        "rerank": {"provider": "http", "url": far_away, "model": "m", "seconds": 20},
    })  # fmt: skip
    with EnhancedStore(vault, rule) as store:
        assert "journal/monday" in names(store.search(QUERY, limit=10))
        store.sync()
        assert "journal/monday" in names(store.search(QUERY, limit=10))
    assert len(service.sent()) == 10
    assert b"secret" not in service.received


def test_a_neighbour_that_no_reranker_saw_does_not_come_before_notes_it_did(
    vault: Path, service: RerankService, write: Write
) -> None:
    service.score = lambda query, text: (
        5.0 if "n00" in text else -7.0
    )  # shares of 0.99 and of a thousandth
    for k in range(25):
        link = "See [[far]]. " if k == 0 else ""
        write(
            f"n{k:02d}.md",
            f"# n{k:02d}\n\nHarbour crane, harbour crane. {link}{_filler(f'w{k}x', 6 if k else 1)}\n",
        )
    write("far.md", f"# Far\n\nOnce a crane. {_filler('far', 200)}\n")
    with opened(vault, service) as store:
        items = store.context(QUERY, budget_tokens=20_000).items
    assert items[0]["name"] == "n00"
    assert [item["name"] for item in items if item.get("via")] == ["far"]
    assert items[-1]["name"] == "far" and len(items) == 21


def ranked(*scores: float) -> list[Ranked]:
    return [Ranked(note, f"n{note}.md", score) for note, score in enumerate(scores, 1)]


def shown(found: list[Ranked]) -> list[tuple[int, float]]:
    return [(each.note, round(each.score, 3)) for each in found]


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=12).map(
        lambda scores: sorted(scores, reverse=True)
    ),
    st.dictionaries(st.integers(1, 12), st.floats(-20, 20), max_size=12),
)
def test_nothing_is_lost_scores_fall_and_stay_shares_and_only_scored_notes_move(
    scores: list[float], given_scores: dict[int, float]
) -> None:
    before = ranked(*scores)
    known = {note: score for note, score in given_scores.items() if note <= len(before)}
    after = in_order_of(known, before)
    assert sorted(found.note for found in after) == [found.note for found in before]
    assert all(0 <= found.score <= 1 for found in after)
    assert all(one.score >= two.score for one, two in pairwise(after))
    assert all(
        old.note == new.note
        for old, new in zip(before, after, strict=True)
        if old.note not in known
    )
    moved = [known[found.note] for found in after if found.note in known]
    assert moved == sorted(moved, reverse=True)
