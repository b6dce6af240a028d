"""What `explain` tells: every number behind a rank, what the filters did, and what was not searched."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.config import Settings
from simplemem.index.door import Match, Narrow, Nearness
from simplemem.memory import Filter
from simplemem.search.explain import formula, leg_numbers, one_after_another, single_filters
from simplemem.search.rank import Behind, Part, Ranked
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def ranked(note: int, block: float, cosine: float | None = None) -> Ranked:
    legs = {"note": {note: Match(note, 0, 2 * block)}, "block": {note: Match(note, 1, block)}}
    near = {} if cosine is None else {note: Nearness(cosine, cosine)}
    return Ranked(note, f"n{note}.md", 1.0, Behind((), legs, near))


def test_equal_scores_share_a_place_in_a_leg_and_the_best_is_one() -> None:
    legs = leg_numbers([ranked(1, 2.0), ranked(2, 4.0, 0.5), ranked(3, 2.0, -0.1), ranked(4, 1.0)])
    assert {note: placed["rank"] for note, placed in legs["block"].items()} == {2: 1, 1: 2, 3: 2, 4: 4}
    assert {note: placed["normalised"] for note, placed in legs["note"].items()} == {2: 1.0, 1: 0.5, 3: 0.5, 4: 0.25}
    assert legs["passage_meaning"][3]["normalised"] == 0.0  # a score below nothing is no share of the best
    assert 1 not in legs["passage_meaning"]
    assert list(legs) == ["note", "block", "passage_meaning", "block_meaning"]


def test_the_formula_names_only_the_parts_that_count() -> None:
    said = formula([Part("words", 0.6, {}), Part("phrases", 0.0, {}), Part("meaning", 0.4, {})])
    assert said.startswith("score = 0.6 × words + 0.4 × meaning, each divided by the best of its kind.")
    assert "phrases" not in said and "BM25" in said and "cosine" in said


def test_a_filter_is_taken_apart_into_every_condition_it_has() -> None:
    whole = Narrow(
        tags={"a": "", "b": "1"}, all_tags={"c": ""}, type="log", prefix="x/", since="2026", until="2027",
        link_to="p.md", linked_by="q.md", phrases=("one two",), without=("three",),
    )  # fmt: skip
    told = {(name, value): alone for name, value, alone in single_filters(whole)}
    assert ("tag", "a or b=1") in told and ("tag", "c") in told
    for key in (("type", "log"), ("path", "x/"), ("since", "2026"), ("until", "2027"), ("link_to", "p.md")):
        assert key in told
    for key in (("linked_by", "q.md"), ("phrase", "one two"), ("without", "three")):
        assert key in told
    assert len(told) == 10
    assert told["type", "log"] == Narrow(type="log")
    assert list(single_filters(Narrow())) == []
    every = one_after_another([alone for _, _, alone in single_filters(whole)])
    assert every[0] == Narrow(tags=whole.tags) and every[-1] == whole


# -- from a vault


@pytest.fixture
def harbour(store: EnhancedStore, write: Write) -> EnhancedStore:
    write("log/one.md", "---\ntags: [status/done]\ntype: log\n---\nThe harbour crane was repaired; a crane of steel.\n")
    write("log/two.md", "---\ntags: [status/open]\ntype: log\n---\nThe crane stood by the harbour all winter.\n")
    write("log/three.md", "---\ntags: [status/done]\n---\nOf the rust on the old crane.\n")
    write("port.md", "Hoisting machinery for ships stood on the quay of the port.\n")
    write("bees.md", "Honey and wax.\n")
    store.sync()
    return store


def explained(store: EnhancedStore, question: str, **more: Any) -> dict[str, Any]:
    told = store.search(question, explain=True, limit=10, **more).explain
    assert told is not None
    return dict(told)


@pytest.mark.parametrize("mode", ["hybrid", "text", "semantic"])
def test_a_score_is_the_weighed_sum_of_its_parts(harbour: EnhancedStore, mode: str) -> None:
    found = harbour.search("harbour crane", explain=True, limit=10, mode=mode)
    assert found.explain is not None and found.hits
    weights = found.explain["weights"]
    assert sum(weights.values()) == pytest.approx(1.0)
    for hit in found.hits:
        assert hit.why is not None
        assert hit.score == pytest.approx(sum(weights[part] * hit.why[part] for part in weights), abs=2e-3)


def test_each_leg_gives_place_score_and_share_of_its_best(harbour: EnhancedStore) -> None:
    found = harbour.search("harbour crane", explain=True, limit=10)
    legs: dict[str, list[tuple[int, float, float]]] = {}
    for place, hit in enumerate(found.hits, 1):
        assert hit.why is not None
        assert hit.why["rank"] == place
        for leg, standing in hit.why["legs"].items():
            legs.setdefault(leg, []).append((standing["rank"], standing["raw"], standing["normalised"]))
    assert set(legs) == {"note", "block", "phrase", "passage_meaning", "block_meaning"}
    for rows in legs.values():
        rows.sort()
        best = rows[0][1]
        assert rows[0][0] == 1 and rows[0][2] == 1.0
        assert [row[1] for row in rows] == sorted((row[1] for row in rows), reverse=True)
        assert all(row[2] == pytest.approx(max(0.0, row[1] / best), abs=1e-3) for row in rows)
    assert found.explain is not None
    assert found.explain["legs"]["note"] == 3


def test_the_words_that_a_note_holds_and_lacks_are_named_in_every_form(harbour: EnhancedStore) -> None:
    found = harbour.search("the harbours, cranes and a quetzal", explain=True, limit=10)
    whys = {hit.name: hit.why for hit in found.hits if hit.why}
    assert whys["log/one"]["matched"] == ["harbours", "cranes"]
    assert whys["log/one"]["missing"] == ["quetzal"]
    assert whys["log/three"]["matched"] == ["cranes"]
    assert found.explain is not None
    assert found.explain["notes_with"] == {"harbours": 2, "cranes": 3, "quetzal": 0}
    assert found.explain["matched_nowhere"] == ["quetzal"]


def test_filters_tell_how_many_notes_each_removed_in_turn_and_alone(harbour: EnhancedStore) -> None:
    told = explained(harbour, "crane -rust tag:status=done", filter=Filter.of(type="log", prefix="log/"))
    assert told["filters"] == [
        {"filter": "tag", "value": "status=done", "removed": 3, "removed_alone": 3, "left": 2},
        {"filter": "type", "value": "log", "removed": 1, "removed_alone": 3, "left": 1},
        {"filter": "path", "value": "log/", "removed": 0, "removed_alone": 2, "left": 1},
        {"filter": "without", "value": "rust", "removed": 0, "removed_alone": 1, "left": 1},
    ]
    assert (told["notes"], told["notes_after_filter"]) == (5, 1)
    assert explained(harbour, "crane")["filters"] == []


def test_what_was_not_searched_is_said(harbour: EnhancedStore, write: Write) -> None:
    assert explained(harbour, "crane")["not_searched"] == {}
    write(".obsidian/app.json", '{"userIgnoreFilters": ["attic/"]}')
    write("attic/old.md", "An old crane.")
    write("large.md", "crane " * 1_000_000)
    harbour.sync()
    write("new.md", "A crane of which nothing is known yet.")
    harbour.sync(embed=False)
    left = explained(harbour, "crane")["not_searched"]
    assert left["hidden"] == {"excluded in Obsidian's settings (attic/)": 1}
    assert [file["path"] for file in left["files"]] == ["large.md"]
    assert "not indexed" in left["files"][0]["why"]
    assert left["without_vectors"] == 1
    assert "without_vectors" not in explained(harbour, "crane", mode="text")["not_searched"]


def test_it_says_what_it_was_searched_with(harbour: EnhancedStore) -> None:
    told = explained(harbour, "crane")
    assert told["mode"] == "hybrid"
    assert told["embedder"].startswith("wordllama")
    assert explained(harbour, "crane", mode="text")["embedder"] == "none"
    with EnhancedStore(harbour.root, Settings.model_validate({"embed": {"provider": "none"}})) as plain:
        told = explained(plain, "crane", mode="semantic")
        assert (told["mode"], told["embedder"]) == ("text", "none")
        assert "words only" in told["degraded"]
        assert told["weights"] == {"words": 1.0, "phrases": 0.0, "meaning": 0.0}


@pytest.mark.parametrize("question", ["", "???", "tag:status=done", "zzz qqq"])
def test_a_question_without_an_answer_is_explained_too(plain_store: EnhancedStore, write: Write, question: str) -> None:
    write("a.md", "The crane.")
    plain_store.sync()
    told = explained(plain_store, question)
    assert told["notes"] == 1
    assert told["formula"]


def test_a_search_that_is_not_to_be_explained_carries_none_of_it(harbour: EnhancedStore) -> None:
    found = harbour.search("crane")
    assert found.explain is None and found.why is None
    assert all(hit.why is None for hit in found.hits)


def test_a_word_counts_as_matched_in_every_form_it_was_asked_in(plain_store: EnhancedStore, write: Write) -> None:
    write("de.md", "---\nlang: de\n---\nDie alten H\u00e4user der Stadt sind nicht mehr bewohnt.\n")
    write("en.md", "The kubernetes cluster moved.\n")
    plain_store.sync()
    for question, name in (("Haus", "de"), ("kuberntes", "en"), ("kuber", "en")):
        found = plain_store.search(question, explain=True)
        (hit,) = found.hits
        assert hit.name == name and hit.why is not None and found.explain is not None
        assert (hit.why["matched"], hit.why["missing"]) == ([question.lower()], [])
        assert found.explain["matched_nowhere"] == []
