"""What entries show together: compared, judged and counted, with the entries behind each finding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import Any

import pytest

from simplemem.kinds.learned.analysis import (
    Contradiction,
    Similarity,
    Theme,
    _by_words,
    _mean,
    contradictions,
    suggested_tags,
    themes,
    verdicts,
)
from simplemem.kinds.learned.counts import Latencies, antipatterns, insights, patterns, solved_errors, stats, validate
from simplemem.kinds.learned.entry import EntryLink, KnowledgeEntry
from simplemem.kinds.learned.knowledge import Reads


def entry(id_: str, content: str = "", kind: str = "insight", **more: Any) -> KnowledgeEntry:
    known: dict[str, Any] = {
        "context": "",
        "confidence": 0.8,
        "verified": False,
        "tags": ("t",),
        "created": "2026-11-01T10:00:00",
        "modified": "2026-11-01T10:00:00",
        "name": f"knowledge/{kind}/{id_}",
        "path": f"knowledge/{kind}/{id_}.md",
        "sha256": "",
    }
    return KnowledgeEntry(id_, kind, content or f"text of {id_}", **known | more)


def tie(words: str, other: KnowledgeEntry) -> EntryLink:
    return EntryLink(words, other.name)


def by_words(entries: Sequence[KnowledgeEntry]) -> Similarity:
    """Likeness where there are no vectors."""
    return Similarity(_by_words(entries))


def grouped(
    entries: Sequence[KnowledgeEntry], reads: dict[str, Reads], threshold: float = 0.75, **asked: Any
) -> list[Theme]:
    return themes(entries, by_words(entries).pairs(threshold), reads, **asked)


# -- what belongs together

POOL = [
    entry("a", "postgres connection pool exhausted under load", tags=("postgres",)),
    entry("b", "postgres connection pool exhausted at night", tags=("postgres",)),
    entry("c", "the postgres connection pool was exhausted again", tags=()),
]
OTHERS = [entry("x", "balloons fly with hydrogen"), entry("y", "tea is best with lemon")]
ALL = [*POOL, *OTHERS]


def test_a_cluster_grows_around_the_entry_that_is_read_most() -> None:
    (found,) = grouped(ALL, {"c": Reads(5, "2026")}, 0.4)
    assert found.members[0].id == "c" and {each.id for each in found.members} == {"a", "b", "c"}
    assert {"postgres", "pool", "connection", "exhausted"} == set(found.words)
    (found,) = grouped(ALL, {}, 0.4)
    assert found.members[0].id != "c" or POOL[2].confidence == 0.8


def test_no_entry_is_in_two_clusters() -> None:
    found = grouped(ALL, {}, 0.1, least=1, most=None)
    ids = [each.id for theme in found for each in theme.members]
    assert sorted(ids) == sorted(each.id for each in ALL)


def test_what_most_are_tagged_with_is_suggested_to_the_rest_in_the_spelling_there_is() -> None:
    found = grouped(ALL, {}, 0.4)
    suggested = {each.tag: each for each in suggested_tags(found, {"Postgres": 7, "pool": 1})}
    known = suggested["Postgres"]
    assert (known.having, known.of, known.is_known, [each.id for each in known.entries]) == (2, 3, True, ["c"])
    assert suggested["pool"].is_known and {each.id for each in suggested["pool"].entries} == {"a", "b", "c"}


def test_how_far_something_is_is_suggested_to_nobody() -> None:
    some = [replace(each, tags=("status/open",) if each.id != "c" else ()) for each in POOL]
    found = grouped(some, {}, 0.3)
    assert len(found) == 1 and "status/open" not in {each.tag for each in suggested_tags(found, {"status/open": 2})}


def test_vectors_are_compared_where_there_are_some() -> None:
    def bytes_of(*numbers: int) -> bytes:
        return bytes(number & 0xFF for number in numbers)

    vectors = [[bytes_of(100, 0), bytes_of(0, 100)], [bytes_of(70, 70)], [], [bytes_of(-50, -50)], [bytes_of(0, 0)]]
    similarity = Similarity(list(map(_mean, vectors)))
    assert [similarity.of(0, k) for k in range(5)] == [1.0, 1.0, 0.0, 0.0, 0.0]
    assert similarity.pairs(0.9) == {(0, 1): 1.0}


def test_without_vectors_words_stand_in() -> None:
    assert {pair for pair in by_words(ALL).pairs(0.4) if 0 in pair} == {(0, 1), (0, 2)}


# -- what cannot all be right

POSTGRES = entry("p", "Use Postgres for the billing store.", "decision")
MYSQL = entry("m", "Use MySQL for the billing store.", "decision")


def found(*entries: KnowledgeEntry, **asked: object) -> list[Contradiction]:
    return contradictions(entries, by_words(entries), **asked)  # type: ignore[arg-type]


def rules(*entries: KnowledgeEntry, **asked: object) -> list[str]:
    return [each.rule for each in found(*entries, **asked)]


def test_each_pair_is_told_by_its_rule_with_the_words_that_disagree() -> None:
    (each,) = found(POSTGRES, MYSQL, entry("x", "Something else altogether."))
    assert (each.rule, each.one.id, each.other.id) == ("slot", "p", "m")
    assert (each.said, each.instead) == (POSTGRES.content, MYSQL.content)
    assert "billing" in each.about and "store" in each.about


def test_duplicates_of_unlike_confidence_are_only_suspected() -> None:
    sure = entry("a", "Under heavy load the connection pool is exhausted", confidence=0.9)
    unsure = entry("b", "the connection pool is exhausted under heavy load", confidence=0.5)
    assert rules(sure, unsure) == ["duplicate?"]
    assert rules(sure, unsure, least_delta=0.5) == []
    assert rules(sure, entry("b", unsure.content, confidence=0.85)) == []
    assert rules(sure, entry("b", unsure.content, confidence=None)) == []
    linked = entry("b", unsure.content, confidence=0.5, ties=(tie("see also", sure),))
    assert rules(sure, linked) == []


def test_the_threshold_says_how_alike_duplicates_are() -> None:
    one = entry("a", "The worker restarts when the queue is full", confidence=0.9)
    other = entry("b", "The worker restarts when a deploy begins", confidence=0.2)
    assert rules(one, other, threshold=0.95) == []
    assert rules(one, other, threshold=0.1) == ["duplicate?"]


def test_only_one_type_may_be_asked_for() -> None:
    pattern = entry("m", MYSQL.content, "pattern")
    assert rules(POSTGRES, pattern) == ["slot"]
    assert rules(POSTGRES, pattern, same_type_only=True) == []


def test_what_is_superseded_or_settled_takes_no_part() -> None:
    assert rules(POSTGRES, entry("m", MYSQL.content, "decision", status="superseded")) == []
    assert rules(POSTGRES, entry("m", MYSQL.content, "decision", superseded_by="x")) == []
    settled = entry("m", MYSQL.content, "decision", ties=(tie("contradicts", POSTGRES),))
    assert rules(POSTGRES, settled) == []
    only_linked = entry("m", MYSQL.content, "decision", ties=(tie("see also", POSTGRES),))
    assert rules(POSTGRES, only_linked) == ["slot"]


def test_a_value_in_the_names_of_two_notes_tells_them_apart() -> None:
    june = entry("a", "The flight lasted 3 hours over the northern sea.", is_own=False, name="flights/Flight 3")
    july = entry("b", "The flight lasted 4 hours over the northern sea.", is_own=False, name="flights/Flight 4")
    assert rules(june, july) == []


def test_what_a_comment_says_is_no_statement() -> None:
    weak = entry("a", "hears the tracker of the balloon %% strength=0.6 %%", is_own=False, name="graph/Van")
    strong = entry("b", "hears the tracker of the balloon %% strength=0.9 %%", is_own=False, name="graph/Aerial")
    assert rules(weak, strong) == []


def test_a_form_that_is_filled_in_again_and_again_is_no_quarrel() -> None:
    filled = [entry(str(k), f"The build of the nightly release took {k + 10} minutes in total.") for k in range(60)]
    assert rules(*filled) == []


# -- who wins


def by_hand(*ids: str):
    return lambda each: each.id in ids


@pytest.mark.parametrize(
    ("one", "other", "hands", "winner", "why"),
    [
        ({"verified": True, "confidence": 1.0}, {}, ("m",), "m", "a person edited it"),
        ({"confidence": 1.0, "modified": "2026-11-09"}, {"verified": True}, (), "m", "it is verified"),
        ({"confidence": 1.0}, {"modified": "2026-11-09T00:00:00"}, (), "m", "it is newer"),
        ({"confidence": 0.5}, {"confidence": 0.7}, (), "m", "it has the higher confidence"),
        ({"confidence": 0.7}, {"confidence": None}, (), "p", "it has the higher confidence"),
    ],
)
def test_who_wins_is_decided_in_this_order(one: dict, other: dict, hands: tuple, winner: str, why: str) -> None:
    pair = entry("p", POSTGRES.content, "decision", **one), entry("m", MYSQL.content, "decision", **other)
    (verdict,) = verdicts(found(*pair), by_hand(*hands))
    assert (verdict.winner.id, verdict.why) == (winner, why)
    assert verdict.loser.id != winner


def test_what_nothing_decides_is_left_and_what_lost_takes_no_part() -> None:
    assert verdicts(found(POSTGRES, MYSQL), by_hand()) == []
    third = entry("s", "Use SQLite for the billing store.", "decision", verified=True)
    decided = verdicts(found(POSTGRES, MYSQL, third), by_hand())
    assert {(each.winner.id, each.loser.id) for each in decided} == {("s", "p"), ("s", "m")}


ONE_THING_TWO_VALUES = [
    ("Use Postgres for the billing store.", "We should use MySQL for the billing store."),
    ("The database of the billing service is Postgres.", "The database of the billing service is MySQL."),
    ("Aurora's owner is Ada Lovelace.", "The owner of Aurora is Grace Hopper."),
    ("The default log level is debug.", "The default log level is warning."),
    ("The cache defaults to memory", "The cache defaults to disk"),
    ("The gateway listens on 8080.", "The gateway listens on 9090."),
    ("Adopt pnpm as package manager", "Adopt yarn as package manager, since it is quick"),
]
DENIED = [
    ("Never use eval in templates.", "Always use eval in templates."),
    ("Don't restart the worker during deploys.", "Restart the worker during deploys."),
    ("Feature flags work without a restart on staging.", "Feature flags work on staging with a restart."),
]
NOT_AT_ODDS = [
    ("Use Postgres for the billing store.", "Use Postgres 16 for the billing store."),
    ("Use Postgres for the billing store.", "Use MySQL for the search index."),
    ("The owner of Aurora is Ada.", "The owner of Borealis is Grace."),
    ("Is the default log level debug?", "Is the default log level warning?"),
    ("The default of x is not 5.", "The default of x is 6."),
    ("Do not use eval in templates.", "Use eval in the build scripts of the docs."),
    ("It is not so.", "It is so."),
    ("```\nuse a for b\n```", "```\nuse c for b\n```"),
]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        *((*pair, ["slot"]) for pair in ONE_THING_TWO_VALUES),
        *((*pair, ["polarity"]) for pair in DENIED),
        *((*pair, []) for pair in NOT_AT_ODDS),
    ],
)
def test_what_disagrees_is_told_and_what_can_both_be_so_is_left_alone(one: str, other: str, expected: list) -> None:
    assert rules(entry("a", one), entry("b", other)) == expected


# -- counts

TODAY = date(2026, 11, 22)


def made(day: str, **more: object) -> KnowledgeEntry:
    return entry(day, created=f"{day}T10:00:00", **more)  # type: ignore[arg-type]


def test_what_recurs_begins_with_the_same_fifty_characters() -> None:
    long = "The worker cannot reach the broker behind the proxy"
    some = [
        entry("a", f"{long} at night", "error"),
        entry("b", f"**{long.upper()}** by day", "error"),
        entry("c", f"{long} at noon", "decision"),
        entry("d", "another error", "error"),
    ]
    found = patterns(some, TODAY)
    assert [(some[0].type, [e.id for e in some]) for some in found.recurring] == [("error", ["a", "b"])]
    assert found.types == {"error": 3, "decision": 1} and found.tags == {"t": 4}


def test_what_was_made_lately_is_counted_by_days_and_compared_with_the_month_before() -> None:
    days = ["2026-11-22", "2026-11-16", "2026-11-15", "2026-10-24", "2026-10-23", "2026-08-25", "2026-08-24", ""]
    found = patterns([made(day) for day in days], TODAY)
    assert found.lately == {7: 2, 30: 4, 90: 6} and found.before == 1 and found.trend == "rising"
    assert patterns([made("2026-10-10"), made("2026-10-11"), made("2026-10-12")], TODAY).trend == "falling"
    assert patterns([made("2026-11-10"), made("2026-10-11")], TODAY).trend == "steady"


def kinds(
    entries: list[KnowledgeEntry], read: dict[str, Reads] | None = None, solved: frozenset[str] = frozenset()
) -> dict[str, str]:
    found = grouped(entries, {}, 0.3, most=None)
    told = insights(entries, found, read or {}, lambda each: each.id in solved)
    return {each.kind: each.priority for each in told}


def test_five_alike_are_a_theme_and_an_error_three_times_is_critical() -> None:
    alike = [entry(str(k), f"the connection pool is exhausted {k}", "error") for k in range(5)]
    read = {str(k): Reads(1, "2026") for k in range(5)}
    found = kinds(alike, read, frozenset("01234"))
    assert found == {"recurring error": "critical", "theme": "high"}
    assert kinds(alike[:2], read, frozenset("01")) == {"group": "low"}


def test_weak_confidence_unread_entries_and_open_errors_are_told() -> None:
    weak = [entry("a", "one thing", confidence=0.5), entry("b", "something else", "error", confidence=0.6)]
    assert kinds(weak) == {"low confidence": "high", "never read": "medium", "unsolved": "medium"}
    assert kinds(weak, {"a": Reads(1), "b": Reads(1)}, frozenset("b")) == {"low confidence": "high"}
    third = [entry("a", "x"), entry("b", "y"), entry("c", "z")]
    assert "never read" in kinds(third, {"a": Reads(1), "b": Reads(1)})  # one of three is more than 30 %


def test_antipatterns_have_their_shares() -> None:
    def told(*some: KnowledgeEntry, solved: str = "") -> set[str]:
        return {each.kind for each in antipatterns(some, lambda each: each.id in solved)}

    same = "The very same words, which go on for more than a hundred characters so that both begin alike: " + "x" * 20
    assert told(entry("a", same + "1"), entry("b", same + "2")) == {"duplicates"}
    assert told(*(entry(str(k), confidence=0.9 if k else 0.4) for k in range(5))) == set()
    assert told(*(entry(str(k), confidence=0.9 if k else 0.4) for k in range(4))) == {"low confidence"}
    assert told(entry("a", tags=()), entry("b"), entry("c"), entry("d")) == set()
    assert told(entry("a", tags=()), entry("b"), entry("c")) == {"untagged"}
    assert told(entry("a", kind="error"), entry("b", kind="error"), solved="a") == set()
    assert told(entry("a", kind="error"), entry("b", kind="error"), entry("c", kind="error"), solved="a") == {
        "errors without solution"
    }


def test_an_error_is_solved_by_a_solution_linked_either_way_or_by_what_fixes_it() -> None:
    error, other, third = (entry(id_, kind="error") for id_ in "efg")
    solution = entry("s", kind="solution", ties=(tie("see also", error),))
    leads = {
        solution.path: [("see also", error)],
        other.path: [("because of", solution)],
        "x": [("fixes", third)],
    }
    insight = entry("x", path="x")
    found = solved_errors([error, other, third, solution, insight], leads)
    assert found == {"e", "f", "g"}
    assert solved_errors([error, insight], {"x": [("mentions", error)]}) == set()


def test_statistics_count_what_there_is() -> None:
    some = [
        entry("a", confidence=0.8, verified=True),
        entry("b", kind="error", confidence=0.79),
        entry("c", confidence=0.5),
        entry("d", confidence=0.49, status="superseded"),
        entry("e", confidence=None),
    ]
    found = stats(some, {"b": Reads(3, "2026-11-01"), "gone": Reads(9, "")})
    assert found["total"] == 5 and found["by_type"] == {"error": 1, "insight": 4}
    assert found["by_confidence"] == {"high": 1, "medium": 2, "low": 1}
    assert (found["verified"], found["superseded"], found["never_read"]) == (1, 1, 4)
    assert found["most_accessed"] == [{"id": "b", "says": "text of b", "count": 3, "last": "2026-11-01"}]


def test_answers_are_measured_also_those_that_fail() -> None:
    latencies = Latencies()
    with latencies.measured("search"):
        pass
    try:
        with latencies.measured("search"):
            raise ValueError
    except ValueError:
        pass
    shown = latencies.shown()
    assert list(shown) == ["search"] and shown["search"]["count"] == 2
    assert 0 <= shown["search"]["median_ms"] <= shown["search"]["max_ms"]


def test_what_is_wrong_with_an_entry_is_told() -> None:
    bad = entry("b", "x", kind="fact", confidence=None, status="superseded")
    found = validate([entry("a"), entry("a", "twin"), bad], {bad.path: ["nobody"]})
    assert [(each.level, each.says.split(" ")[1]) for each in found] == [
        ("error", "id"),
        ("error", "id"),
        ("warning", "type"),
        ("warning", "has"),
        ("warning", "is"),
        ("warning", "leads"),
    ]
