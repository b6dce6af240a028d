"""What many entries show together: what recurs, where the knowledge is thin, and habits that make it worse. Pure.

Everything is counted, and every finding names the entries it was counted from. No sentence here says more than a count does.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final, Literal

from simplemem.kinds.learned.access import NEVER, Read
from simplemem.kinds.learned.clusters import Cluster
from simplemem.kinds.learned.entries import Entry, plain

Priority = Literal["critical", "high", "medium", "low"]
_ORDER: Final = ("critical", "high", "medium", "low")
_RECURRING_CHARACTERS: Final = 50
_DUPLICATE_CHARACTERS: Final = 100
_LOW: Final = 0.5
_WEAK_AVERAGE: Final = 0.6
_THEME: Final = 5
_OFTEN: Final = 3
_DAYS: Final = (7, 30, 90)
_SOLVING: Final = ("fix", "solve", "resolve", "address", "mitigat", "handle", "work around", "workaround")


@dataclass(frozen=True, slots=True)
class Recurring:
    """Entries of one type that begin alike."""

    type: str
    says: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class Patterns:
    """What recurs, how much there is of what, and whether there is more of late."""

    recurring: tuple[Recurring, ...]
    types: Mapping[str, int]
    tags: Mapping[str, int]
    lately: Mapping[int, int]  # days -> how many entries were made in them
    before: int  # in the 30 days before the last 30
    trend: Literal["rising", "falling", "steady"]
    confidence: Mapping[str, float]  # by type


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that the entries show: what kind of finding, in words and numbers, and the entries it is from."""

    kind: str
    priority: Priority
    says: str
    entries: tuple[Entry, ...] = ()
    words: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)


def patterns(entries: Sequence[Entry], today: date) -> Patterns:
    """What recurs among all entries, superseded ones as well."""
    lately = {days: sum(_age(entry, today) < days for entry in entries) for days in _DAYS}
    before = sum(30 <= _age(entry, today) < 60 for entry in entries)
    sure: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.confidence is not None:
            sure[entry.type].append(entry.confidence)
    return Patterns(
        recurring=tuple(_recurring(entries)),
        types=_counted(entry.type for entry in entries),
        tags=_counted(tag for entry in entries for tag in entry.tags),
        lately=lately,
        before=before,
        trend=_trend(lately[30], before),
        confidence={kind: round(sum(each) / len(each), 3) for kind, each in sorted(sure.items())},
    )


def _recurring(entries: Sequence[Entry]) -> list[Recurring]:
    found = [
        Recurring(kind, group[0].headline, tuple(group))
        for (kind, _), group in _alike(entries, _RECURRING_CHARACTERS).items()
        if len(group) > 1
    ]
    return sorted(found, key=lambda each: (-len(each.entries), each.type, each.says))


def _alike(entries: Sequence[Entry], characters: int) -> dict[tuple[str, str], list[Entry]]:
    """Entries of one type whose first characters are the same, without regard to case and blanks."""
    groups: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in entries:
        key = " ".join(plain(entry.content).casefold().split())[:characters]
        if key:
            groups[entry.type, key].append(entry)
    return groups


def _age(entry: Entry, today: date) -> float:
    try:
        return (today - date.fromisoformat(entry.created[:10])).days
    except ValueError:
        return float("inf")


def _trend(now: int, before: int) -> Literal["rising", "falling", "steady"]:
    if now > before * 1.25 and now - before > 1:
        return "rising"
    return "falling" if now < before * 0.75 and before - now > 1 else "steady"


def _counted(things: object) -> dict[str, int]:
    return dict(sorted(Counter(things).items(), key=lambda pair: (-pair[1], pair[0])))  # type: ignore[call-overload]


# -- insights


def insights(
    entries: Sequence[Entry], found: Sequence[Cluster], read: Mapping[str, Read], is_solved: Callable[[Entry], bool]
) -> list[Finding]:
    """What the current entries show, the most pressing first."""
    standing = [entry for entry in entries if not entry.is_superseded]
    said = [
        *_of_clusters(found),
        *_of_errors(standing, found, is_solved),
        *_of_confidence(standing),
        *_of_reading(standing, read),
        *_of_open_errors(standing, is_solved),
    ]
    return sorted(said, key=lambda each: _ORDER.index(each.priority))


def _of_clusters(found: Sequence[Cluster]) -> list[Finding]:
    told = []
    for cluster in found:
        count = len(cluster.members)
        kind, priority = ("theme", "high") if count >= _THEME else ("group", "low")
        said = f"{count} entries are about one thing" + (f": {', '.join(cluster.words)}" if cluster.words else "")
        told.append(Finding(kind, priority, said, cluster.members, cluster.words))  # type: ignore[arg-type]
    return told


def _of_errors(entries: Sequence[Entry], found: Sequence[Cluster], is_solved: Callable[[Entry], bool]) -> list[Finding]:
    """Errors that come again: those that begin alike, and those that cluster."""
    groups = [group for (kind, _), group in _alike(entries, _RECURRING_CHARACTERS).items() if kind == "error"]
    groups += [[entry for entry in cluster.members if entry.type == "error"] for cluster in found]
    told, seen = [], set[frozenset[str]]()
    for group in sorted(groups, key=len, reverse=True):
        ids = frozenset(entry.id for entry in group)
        if len(group) < _OFTEN or any(ids <= other for other in seen):
            continue
        seen.add(ids)
        solved = sum(map(is_solved, group))
        said = f"one error is recorded {len(group)} times, {solved} of them with a solution: {group[0].headline}"
        told.append(Finding("recurring error", "critical", said, tuple(group), numbers={"solved": solved}))
    return told


def _of_confidence(entries: Sequence[Entry]) -> list[Finding]:
    sure = [entry for entry in entries if entry.confidence is not None]
    if not sure:
        return []
    average = sum(entry.confidence or 0.0 for entry in sure) / len(sure)
    if average >= _WEAK_AVERAGE:
        return []
    weak = sorted(sure, key=lambda entry: (entry.confidence or 0.0, entry.name))[:10]
    return [
        Finding(
            "low confidence",
            "high",
            f"the average confidence is {average:.2f}, below {_WEAK_AVERAGE}",
            tuple(weak),
            numbers={"average": round(average, 3)},
        )
    ]


def _of_reading(entries: Sequence[Entry], read: Mapping[str, Read]) -> list[Finding]:
    counted = [entry for entry in entries if entry.is_knowledge]  # nobody counts how often a person reads a note
    never = [entry for entry in counted if not read.get(entry.id, NEVER).count]
    if not counted or len(never) <= 0.3 * len(counted):
        return []
    share = len(never) / len(counted)
    said = f"{len(never)} of {len(counted)} entries ({share:.0%}) were never found by a search"
    return [Finding("never read", "medium", said, tuple(never[:10]), numbers={"share": round(share, 3)})]


def _of_open_errors(entries: Sequence[Entry], is_solved: Callable[[Entry], bool]) -> list[Finding]:
    unsolved = [entry for entry in entries if entry.type == "error" and not is_solved(entry)]
    if not unsolved:
        return []
    said = f"{len(unsolved)} {'error has' if len(unsolved) == 1 else 'errors have'} no solution linked"
    return [Finding("unsolved", "medium", said, tuple(unsolved[:20]))]


# -- antipatterns


def antipatterns(entries: Sequence[Entry], is_solved: Callable[[Entry], bool]) -> list[Finding]:
    """Habits that make what is kept worth less, counted among the current entries."""
    standing = [entry for entry in entries if not entry.is_superseded]
    errors = [entry for entry in standing if entry.type == "error"]
    sure = [entry for entry in standing if entry.confidence is not None]
    told = [
        Finding("duplicates", "high", f"{len(group)} entries begin with the same words", tuple(group))
        for group in _alike(standing, _DUPLICATE_CHARACTERS).values()
        if len(group) > 1
    ]
    for kind, priority, some, of, most, what in (
        ("low confidence", "medium", [e for e in sure if (e.confidence or 0) < _LOW], sure, 0.2, "are below 0.5"),
        ("untagged", "low", [e for e in standing if not e.tags], standing, 0.3, "have no tag"),
        ("errors without solution", "high", [e for e in errors if not is_solved(e)], errors, 0.5, "have no solution"),
    ):
        if of and len(some) > most * len(of):
            share = len(some) / len(of)
            said = f"{len(some)} of {len(of)} {'errors' if of is errors else 'entries'} ({share:.0%}) {what}"
            told.append(Finding(kind, priority, said, tuple(some[:20]), numbers={"share": round(share, 3)}))  # type: ignore[arg-type]
    return sorted(told, key=lambda each: _ORDER.index(each.priority))


def solved_errors(entries: Sequence[Entry], meant: Callable[[Entry], Sequence[tuple[str, Entry]]]) -> set[str]:
    """The ids of the errors that a solution is linked with, either way: `meant` gives an entry's relations and where they
    lead. A relation that says it fixes counts whatever it comes from."""
    solved: set[str] = set()
    for entry in entries:
        for relationship, target in meant(entry):
            fixes = relationship.casefold().startswith(_SOLVING)
            if target.type == "error" and target.id != entry.id and (entry.type == "solution" or fixes):
                solved.add(target.id)
            if entry.type == "error" and target.type == "solution":
                solved.add(entry.id)
    return solved
