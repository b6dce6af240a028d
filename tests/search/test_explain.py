"""A search explained: every number behind a rank, what the filters did, what was not searched; and where a named note
is in it, or what keeps it out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.models import Filter
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


def why(store: EnhancedStore, question: str, name: str, **more: Any) -> dict[str, Any]:
    told = store.search(question, why=name, **more).why
    assert told is not None
    return dict(told)


@pytest.fixture
def harbour(plain_store: EnhancedStore, write: Write) -> EnhancedStore:
    for k in range(8):
        write(
            f"log/{k}.md",
            f"# Day {k}\n\n" + "The crane. " * (8 - k) + "Rain and wind and waves. " * k,
        )
    write("bees.md", "---\ntitle: The hive\n---\nHoney and wax.")
    plain_store.sync()
    return plain_store


def test_a_hit_is_told_its_place_and_its_numbers(harbour: EnhancedStore) -> None:
    hits = harbour.search("crane", limit=3, explain=True).hits
    told = why(harbour, "crane", hits[1].name, limit=3)
    assert (told["verdict"], told["rank"], told["of"]) == ("hit", 2, 8)
    assert hits[1].why is not None and told["rank_score"] == hits[1].why["rank_score"]
    assert 0 < told["words"] < 1
    assert told["matched"] == ["crane"]


def test_a_note_behind_the_last_hit_is_told_its_number_and_what_it_lacked(
    harbour: EnhancedStore,
) -> None:
    every = [hit.name for hit in harbour.search("crane storm", limit=50).hits]
    told = why(harbour, "crane storm", every[6], limit=2)
    assert (told["verdict"], told["rank"], told["of"], told["limit"]) == ("below", 7, 8, 2)
    assert told["missing"] == ["storm"]
    assert told["hint"] == "Set the limit to 7 or more to include it."
    assert every[6] in [hit.name for hit in harbour.search("crane storm", limit=7).hits]


def test_a_note_without_a_word_of_it_is_no_match(harbour: EnhancedStore) -> None:
    told = why(harbour, "crane", "The hive")
    assert (told["name"], told["verdict"]) == ("bees", "no_match")
    assert "none of the query's words" in told["because"]
    assert told["missing"] == ["crane"]
    assert "rank" not in told


def test_the_filter_that_removes_it_is_named(harbour: EnhancedStore) -> None:
    first = harbour.search("crane").hits[0].name
    told = why(harbour, "crane -rain", first, filter=Filter.of(prefix="bees", type="memory"))
    assert told["verdict"] == "filtered"
    assert told["filters"] == [{"filter": "path", "value": "bees"}]
    told = why(harbour, "crane -rain", "log/5", filter=Filter.of(tags=["none"]))
    assert [each["filter"] for each in told["filters"]] == ["tag", "without"]


def test_what_is_left_out_of_recall_is_told_by_which_rule(
    harbour: EnhancedStore, write: Write
) -> None:
    write(".obsidian/app.json", '{"userIgnoreFilters": ["attic/"]}')
    write(".obsidian/templates.json", '{"folder": "forms"}')
    write("attic/old.md", "An old crane.")
    write("forms/Day.md", "The crane of {{date}}.")
    write("log/0.sync-conflict-20260124-120000-ABCDEF.md", "The crane.")
    write("log/0.md", "The crane again.")
    harbour.sync()
    rules = {
        "attic/old": "attic/",
        "forms/Day": "template",
        "log/0.sync-conflict-20260124-120000-ABCDEF": "conflict",
    }
    for name, rule in rules.items():
        told = why(harbour, "crane", name)
        assert told["verdict"] == "hidden"
        assert rule in told["because"]
        assert told["hint"]


# -- from a vault


@pytest.fixture
def shore(store: EnhancedStore, write: Write) -> EnhancedStore:
    write(
        "log/one.md",
        "---\ntags: [status/done]\ntype: log\n---\nThe harbour crane was repaired; a crane of steel.\n",
    )
    write(
        "log/two.md",
        "---\ntags: [status/open]\ntype: log\n---\nThe crane stood by the harbour all winter.\n",
    )
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
def test_a_score_is_the_weighed_sum_of_its_parts(shore: EnhancedStore, mode: str) -> None:
    found = shore.search("harbour crane", explain=True, limit=10, mode=mode)
    assert found.explain is not None and found.hits
    weights = found.explain["weights"]
    assert sum(weights.values()) == pytest.approx(1.0)
    for hit in found.hits:
        assert hit.why is not None
        assert hit.why["rank_score"] == pytest.approx(
            sum(weights[part] * hit.why[part] for part in weights), abs=2e-3
        )


def test_the_words_that_a_note_holds_and_lacks_are_named_in_every_form(
    shore: EnhancedStore,
) -> None:
    found = shore.search("the harbours, cranes and a quetzal", explain=True, limit=10)
    whys = {hit.name: hit.why for hit in found.hits if hit.why}
    assert whys["log/one"]["matched"] == ["harbours", "cranes"]
    assert whys["log/one"]["missing"] == ["quetzal"]
    assert whys["log/three"]["matched"] == ["cranes"]
    assert found.explain is not None
    assert found.explain["notes_with"] == {"harbours": 2, "cranes": 3, "quetzal": 0}
    assert found.explain["matched_nowhere"] == ["quetzal"]


def test_filters_tell_how_many_notes_each_removed_in_turn_and_alone(shore: EnhancedStore) -> None:
    told = explained(
        shore, "crane -rust tag:status=done", filter=Filter.of(type="log", prefix="log/")
    )
    assert told["filters"] == [
        {"filter": "tag", "value": "status=done", "removed": 3, "left": 2},
        {"filter": "type", "value": "log", "removed": 1, "left": 1},
        {"filter": "path", "value": "log/", "removed": 0, "left": 1},
        {"filter": "without", "value": "rust", "removed": 0, "left": 1},
    ]
    assert (told["notes"], told["notes_after_filter"]) == (5, 1)
    assert explained(shore, "crane")["filters"] == []


def test_what_was_not_searched_is_said(shore: EnhancedStore, write: Write) -> None:
    assert explained(shore, "crane")["not_searched"] == {}
    write(".obsidian/app.json", '{"userIgnoreFilters": ["attic/"]}')
    write("attic/old.md", "An old crane.")
    write("large.md", "crane " * 1_000_000)
    shore.sync()
    write("new.md", "A crane of which nothing is known yet.")
    shore.sync(embed=False)
    left = explained(shore, "crane")["not_searched"]
    assert left["hidden"] == {"excluded in Obsidian's settings (attic/)": 1}
    assert [file["path"] for file in left["files"]] == ["large.md"]
    assert "not indexed" in left["files"][0]["why"]
    assert left["without_vectors"] == 1
    assert "without_vectors" not in explained(shore, "crane", mode="text")["not_searched"]
