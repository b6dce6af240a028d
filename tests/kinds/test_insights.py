"""What entries show together: counted, with the entries behind each finding."""

from __future__ import annotations

from datetime import date

from making import by_words, entry, tie

from simplemem.kinds.learned.access import Read
from simplemem.kinds.learned.clusters import clusters
from simplemem.kinds.learned.entries import Entry
from simplemem.kinds.learned.insights import antipatterns, insights, patterns, solved_errors
from simplemem.kinds.learned.statistics import Latencies, stats

TODAY = date(2026, 11, 22)


def made(day: str, **more: object) -> Entry:
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
    assert [(each.type, [e.id for e in each.entries]) for each in found.recurring] == [("error", ["a", "b"])]
    assert found.types == {"error": 3, "decision": 1} and found.tags == {"t": 4}


def test_what_was_made_lately_is_counted_by_days_and_compared_with_the_month_before() -> None:
    days = ["2026-11-22", "2026-11-16", "2026-11-15", "2026-10-24", "2026-10-23", "2026-08-25", "2026-08-24", ""]
    found = patterns([made(day) for day in days], TODAY)
    assert found.lately == {7: 2, 30: 4, 90: 6} and found.before == 1 and found.trend == "rising"
    assert patterns([made("2026-10-10"), made("2026-10-11"), made("2026-10-12")], TODAY).trend == "falling"
    assert patterns([made("2026-11-10"), made("2026-10-11")], TODAY).trend == "steady"


def test_confidence_is_averaged_by_type() -> None:
    some = [entry("a", confidence=0.5), entry("b", confidence=1.0), entry("c", kind="error", confidence=None)]
    assert patterns(some, TODAY).confidence == {"insight": 0.75}


def kinds(
    entries: list[Entry], read: dict[str, Read] | None = None, solved: frozenset[str] = frozenset()
) -> dict[str, str]:
    found = clusters(entries, by_words(entries), {}, threshold=0.3, most=None)
    told = insights(entries, found, read or {}, lambda each: each.id in solved)
    return {each.kind: each.priority for each in told}


def test_five_alike_are_a_theme_and_an_error_three_times_is_critical() -> None:
    alike = [entry(str(k), f"the connection pool is exhausted {k}", "error") for k in range(5)]
    read = {str(k): Read(1, "2026") for k in range(5)}
    found = kinds(alike, read, frozenset("01234"))
    assert found == {"recurring error": "critical", "theme": "high"}
    assert kinds(alike[:2], read, frozenset("01")) == {"group": "low"}


def test_weak_confidence_unread_entries_and_open_errors_are_told() -> None:
    weak = [entry("a", "one thing", confidence=0.5), entry("b", "something else", "error", confidence=0.6)]
    assert kinds(weak) == {"low confidence": "high", "never read": "medium", "unsolved": "medium"}
    assert kinds(weak, {"a": Read(1), "b": Read(1)}, frozenset("b")) == {"low confidence": "high"}
    third = [entry("a", "x"), entry("b", "y"), entry("c", "z")]
    assert "never read" in kinds(third, {"a": Read(1), "b": Read(1)})  # one of three is more than 30 %


def test_what_is_superseded_is_nobodys_weakness() -> None:
    assert kinds([entry("a", "x", confidence=0.1, status="superseded"), entry("b", "y")], {"b": Read(1)}) == {}


def test_antipatterns_have_their_shares() -> None:
    def told(*some: Entry, solved: str = "") -> set[str]:
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
    found = solved_errors([error, other, third, solution, insight], lambda each: leads.get(each.path, []))
    assert found == {"e", "f", "g"}
    assert solved_errors([error, insight], lambda each: [("mentions", error)] if each is insight else []) == set()


def test_statistics_count_what_there_is() -> None:
    some = [
        entry("a", confidence=0.8, verified=True),
        entry("b", kind="error", confidence=0.79),
        entry("c", confidence=0.5),
        entry("d", confidence=0.49, status="superseded"),
        entry("e", confidence=None),
    ]
    found = stats(some, {"b": Read(3, "2026-11-01"), "gone": Read(9, "")})
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
