"""What entries show when they are counted: totals, what recurs, where the knowledge is thin, what is wrong with it.

Every finding names the entries it was counted from, and no sentence here says more than a count does. Pure, but for the
clock that measures answers.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from typing import TYPE_CHECKING, Any, Final, Literal

from simplemem.kinds.learned.entry import MOST_CHARACTERS, TYPES, KnowledgeEntry, plain

if TYPE_CHECKING:
    from simplemem.kinds.learned.knowledge import Reads

Priority = Literal["critical", "high", "medium", "low"]
_ORDER: Final = ("critical", "high", "medium", "low")
_KEPT: Final = 1000  # of the last answers of each kind
_SOLVING: Final = ("fix", "solve", "resolve", "address", "mitigat", "handle", "work around", "workaround")


def stats(entries: Sequence[KnowledgeEntry], reads: Mapping[str, Reads]) -> dict[str, Any]:
    """The numbers about some entries; confidence is high from 0.8 on, medium from 0.5 on."""
    sure = [entry.confidence for entry in entries if entry.confidence is not None]
    often = sorted((e for e in entries if e.id in reads), key=lambda entry: (-reads[entry.id].count, entry.name))
    return {
        "total": len(entries),
        "by_type": dict(sorted(Counter(entry.type for entry in entries).items())),
        "by_confidence": {
            "high": sum(each >= 0.8 for each in sure),
            "medium": sum(0.5 <= each < 0.8 for each in sure),
            "low": sum(each < 0.5 for each in sure),
        },
        "verified": sum(entry.verified for entry in entries),
        "superseded": sum(entry.is_superseded for entry in entries),
        "never_read": sum(entry.id not in reads for entry in entries),
        "most_accessed": [
            {"id": entry.id, "says": entry.headline, "count": reads[entry.id].count, "last": reads[entry.id].last}
            for entry in often[:5]
        ],
    }


class Latencies:
    """How long the answers of this process took, by kind. The last thousand of each are looked at."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._counts: Counter[str] = Counter()
        self._recent: dict[str, deque[float]] = defaultdict(lambda: deque(maxlen=_KEPT))

    @contextmanager
    def measured(self, kind: str) -> Iterator[None]:
        """Measure what is done inside, also when it fails."""
        began = time.perf_counter()
        try:
            yield
        finally:
            with self._guard:
                self._counts[kind] += 1
                self._recent[kind].append(1000 * (time.perf_counter() - began))

    def shown(self) -> dict[str, dict[str, float]]:
        """For each kind: how many, and in milliseconds the middle one, the one that one in twenty exceeds, the longest."""
        with self._guard:
            counts, recent = dict(self._counts), {kind: sorted(times) for kind, times in self._recent.items()}
        return {
            kind: {
                "count": counts[kind],
                "median_ms": round(times[len(times) // 2], 2),
                "p95_ms": round(times[min(len(times) - 1, len(times) * 95 // 100)], 2),
                "max_ms": round(times[-1], 2),
            }
            for kind, times in sorted(recent.items())
        }


# -- what recurs


@dataclass(frozen=True, slots=True)
class Patterns:
    """What recurs, how much there is of what, and whether there is more of late."""

    recurring: tuple[tuple[KnowledgeEntry, ...], ...]  # entries of one type that begin alike
    types: Mapping[str, int]
    tags: Mapping[str, int]
    lately: Mapping[int, int]  # days -> how many entries were made in them
    before: int  # in the 30 days before the last 30
    trend: Literal["rising", "falling", "steady"]
    confidence: Mapping[str, float]  # by type


def patterns(entries: Sequence[KnowledgeEntry], today: date) -> Patterns:
    """What recurs among all entries, superseded ones as well."""
    ages = [_age(entry, today) for entry in entries]
    lately = {days: sum(age < days for age in ages) for days in (7, 30, 90)}
    now, before = lately[30], sum(30 <= age < 60 for age in ages)
    sure: dict[str, list[float]] = defaultdict(list)
    for entry in entries:
        if entry.confidence is not None:
            sure[entry.type].append(entry.confidence)
    return Patterns(
        recurring=tuple(sorted(_alike(entries, 50), key=lambda some: (-len(some), some[0].type, some[0].headline))),
        types=_counted(entry.type for entry in entries),
        tags=_counted(tag for entry in entries for tag in entry.tags),
        lately=lately,
        before=before,
        trend="rising"
        if now > max(before * 1.25, before + 1)
        else "falling"
        if now < min(before * 0.75, before - 1)
        else "steady",
        confidence={kind: round(sum(each) / len(each), 3) for kind, each in sorted(sure.items())},
    )


def _alike(entries: Sequence[KnowledgeEntry], characters: int) -> list[tuple[KnowledgeEntry, ...]]:
    """Entries of one type whose first characters are the same, without regard to case and blanks."""
    groups: dict[tuple[str, str], list[KnowledgeEntry]] = defaultdict(list)
    for entry in entries:
        groups[entry.type, " ".join(plain(entry.content).casefold().split())[:characters]].append(entry)
    return [tuple(some) for (_, said), some in groups.items() if said and len(some) > 1]


def _age(entry: KnowledgeEntry, today: date) -> float:
    try:
        return (today - date.fromisoformat(entry.created[:10])).days
    except ValueError:
        return float("inf")


def _counted(things: Iterable[str]) -> dict[str, int]:
    return dict(sorted(Counter(things).items(), key=lambda pair: (-pair[1], pair[0])))


# -- findings


@dataclass(frozen=True, slots=True)
class EntryFinding:
    """Something that the entries show: what kind of finding, in words and numbers, and the entries it is from."""

    kind: str
    priority: Priority
    says: str
    entries: tuple[KnowledgeEntry, ...] = ()
    words: tuple[str, ...] = ()
    numbers: Mapping[str, float] = field(default_factory=dict)


def insights(
    entries: Sequence[KnowledgeEntry],
    themes: Sequence[tuple[Sequence[KnowledgeEntry], tuple[str, ...]]],
    reads: Mapping[str, Reads],
    is_solved: Callable[[KnowledgeEntry], bool],
) -> list[EntryFinding]:
    """What the current entries show, the most pressing first. `themes` are entries that belong together, and their
    words."""
    standing = [entry for entry in entries if not entry.is_superseded]
    found = []
    for members, words in themes:
        kind, priority = ("theme", "high") if len(members) >= 5 else ("group", "low")
        said = f"{len(members)} entries are about one thing" + (f": {', '.join(words)}" if words else "")
        found.append(EntryFinding(kind, priority, said, tuple(members), words))  # type: ignore[arg-type]
    groups = [some for some in _alike(standing, 50) if some[0].type == "error"]
    groups += [tuple(entry for entry in members if entry.type == "error") for members, _ in themes]
    seen: list[set[str]] = []
    for group in sorted(groups, key=len, reverse=True):
        ids = {entry.id for entry in group}
        if len(group) >= 3 and not any(ids <= other for other in seen):
            seen.append(ids)
            solved = sum(map(is_solved, group))
            said = f"one error is recorded {len(group)} times, {solved} of them with a solution: {group[0].headline}"
            found.append(EntryFinding("recurring error", "critical", said, group, numbers={"solved": solved}))
    sure = sorted((e.confidence, e.name, e) for e in standing if e.confidence is not None)
    if sure and (average := sum(each[0] for each in sure) / len(sure)) < 0.6:
        said, weak = f"the average confidence is {average:.2f}, below 0.6", tuple(each[2] for each in sure[:10])
        found.append(EntryFinding("low confidence", "high", said, weak, numbers={"average": round(average, 3)}))
    known = [entry for entry in standing if entry.is_own]  # nobody counts how often a person reads a note
    never = [entry for entry in known if entry.id not in reads]
    if len(never) > 0.3 * len(known):
        share = len(never) / len(known)
        said = f"{len(never)} of {len(known)} entries ({share:.0%}) were never found by a search"
        numbers = {"share": round(share, 3)}
        found.append(EntryFinding("never read", "medium", said, tuple(never[:10]), numbers=numbers))
    if unsolved := [entry for entry in standing if entry.type == "error" and not is_solved(entry)]:
        said = f"{len(unsolved)} {'error has' if len(unsolved) == 1 else 'errors have'} no solution linked"
        found.append(EntryFinding("unsolved", "medium", said, tuple(unsolved[:20])))
    return sorted(found, key=lambda each: _ORDER.index(each.priority))


def antipatterns(entries: Sequence[KnowledgeEntry], is_solved: Callable[[KnowledgeEntry], bool]) -> list[EntryFinding]:
    """Habits that make what is kept worth less, counted among the current entries."""
    standing = [entry for entry in entries if not entry.is_superseded]
    errors = [entry for entry in standing if entry.type == "error"]
    unsolved = [entry for entry in errors if not is_solved(entry)]
    sure = [entry for entry in standing if entry.confidence is not None]
    found = [
        EntryFinding("duplicates", "high", f"{len(group)} entries begin with the same words", group)
        for group in _alike(standing, 100)
    ]
    habits: list[tuple[str, Priority, list[KnowledgeEntry], list[KnowledgeEntry], float, str]] = [
        ("low confidence", "medium", [e for e in sure if (e.confidence or 0) < 0.5], sure, 0.2, "entries {} are below 0.5"),
        ("untagged", "low", [e for e in standing if not e.tags], standing, 0.3, "entries {} have no tag"),
        ("errors without solution", "high", unsolved, errors, 0.5, "errors {} have no solution"),
    ]  # fmt: skip
    for kind, priority, some, of, most, what in habits:
        if len(some) > most * len(of):
            share = len(some) / len(of)
            said = f"{len(some)} of {len(of)} {what.format(f'({share:.0%})')}"
            found.append(EntryFinding(kind, priority, said, tuple(some[:20]), numbers={"share": round(share, 3)}))
    return sorted(found, key=lambda each: _ORDER.index(each.priority))


def solved_errors(
    entries: Sequence[KnowledgeEntry], related: Mapping[str, Sequence[tuple[str, KnowledgeEntry]]]
) -> set[str]:
    """The ids of the errors that a solution is linked with, either way. A relation that says it fixes counts whatever it
    comes from."""
    solved: set[str] = set()
    for entry in entries:
        for relationship, target in related.get(entry.path, ()):
            fixes = entry.type == "solution" or relationship.casefold().startswith(_SOLVING)
            if target.type == "error" and target.id != entry.id and fixes:
                solved.add(target.id)
            if entry.type == "error" and target.type == "solution":
                solved.add(entry.id)
    return solved


# -- what is wrong


@dataclass(frozen=True, slots=True)
class EntryProblem:
    """Something to mend in an entry; a note is only a remark."""

    level: Literal["error", "warning", "note"]
    entry: KnowledgeEntry
    says: str


def validate(entries: Sequence[KnowledgeEntry], leading_nowhere: Mapping[str, Sequence[str]]) -> list[EntryProblem]:
    """Everything that is wrong with some entries, which somebody wrote or merged by hand; `leading_nowhere` are the targets
    of relations, by an entry's path, that are no note."""
    ids = Counter(entry.id for entry in entries)
    found: list[EntryProblem] = []
    for entry in entries:
        if entry.problem:
            found.append(EntryProblem("error", entry, entry.problem))
            continue
        if ids[entry.id] > 1:
            found.append(EntryProblem("error", entry, f"its id {entry.id} is that of {ids[entry.id] - 1} more"))
        if entry.id == entry.name:
            found.append(EntryProblem("note", entry, "it has no id; its name stands for it"))
        if len(entry.content) > MOST_CHARACTERS:
            found.append(EntryProblem("note", entry, f"it has more than {MOST_CHARACTERS:,} characters"))
        for is_wrong, says in (
            (entry.type not in TYPES, f"its type {entry.type} is none of {', '.join(TYPES)}"),
            (not entry.content, "it says nothing"),
            (entry.confidence is None, "it has no confidence from 0 to 1"),
            (entry.is_superseded and not entry.superseded_by, "it is superseded, and does not say by what"),
            *((True, f"it leads to {target}, which is no note") for target in leading_nowhere.get(entry.path, ())),
        ):
            if is_wrong:
                found.append(EntryProblem("warning", entry, says))
    return found
