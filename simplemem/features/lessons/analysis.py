"""What entries show when they are counted and compared: contradictions, themes, habits.

Each finding names its entries and says no more than a count does. No model is asked: entries are compared by the
vectors of the index.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.features.lessons.contradictions import (
    Contradiction,
    Data,
    Disagreement,
    Pair,
    find_disagreements,
    find_duplicates,
    judge,
)
from simplemem.features.lessons.entry import KnowledgeEntry, plain_text, read_entry
from simplemem.features.lessons.knowledge import NEVER, knowledge_of
from simplemem.models import Filter
from simplemem.note.words import content_words, words_in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simplemem.store import EnhancedStore

_BLOCK: Final = 256  # entries that are compared with all others at once
_PRIORITIES: Final = ("critical", "high", "medium", "low")
_MAX_THEME_WORDS: Final = 4
_MAX_READ_MOST: Final = 5
_MAX_TAGS: Final = 50
_MAX_HABIT_ENTRIES: Final = 20


class _Habit(NamedTuple):
    """Entries that have a weakness, out of which, and the share from which on it is a finding."""

    kind: str
    priority: str
    entries: list[KnowledgeEntry]
    among: Sequence[KnowledgeEntry]
    max_share: float


class Analysis:
    """Some entries of a store, and findings about them, computed on request.

    Guards what is read once for all findings: vectors, read counts, and which entries a person wrote.
    `what` names the entries in an answer; `standing` are those that are not superseded.
    """

    def __init__(
        self, store: EnhancedStore, entries: Sequence[KnowledgeEntry], what: str = "entries"
    ) -> None:
        self.store = store
        self.entries = entries
        self.what = what
        self.standing = [entry for entry in entries if not entry.is_superseded]
        self.knowledge = knowledge_of(store)
        self.reads = self.knowledge.reads()
        self._by_hand: dict[str, bool] = {}
        embedder = store.extension.embedder
        self.method = f"embedding ({embedder})" if embedder else "nothing (there are no vectors)"

    # Similarity

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        """One row per standing entry. Zeros, which are near to nothing, stand for a missing vector."""
        import numpy as np

        vectors = self.store.extension.vectors_of([entry.path for entry in self.standing])
        width = max(map(len, vectors.values()), default=1)
        rows = [vectors.get(entry.path) or [0.0] * width for entry in self.standing]
        return np.array(rows, np.float32).reshape(-1, width)

    def near(self, min_similarity: float) -> list[Pair]:
        """Return all pairs of standing entries with at least this similarity, by position."""
        import numpy as np

        threshold = max(1e-9, min_similarity - 1e-6)
        vectors = self._vectors
        pairs: list[Pair] = []
        for start in range(0, len(vectors), _BLOCK):
            block = vectors[start : start + _BLOCK]
            is_near = block @ vectors[start:].T >= threshold

            # Within the block, each pair occurs twice, and each entry is near to itself.
            within_block = is_near[:, : len(block)]
            within_block &= np.triu(np.ones_like(within_block), 1)
            positions = np.argwhere(is_near) + start
            pairs += [(one, other) for one, other in positions.tolist()]
        return pairs

    def _similarity(self, ends: Pair) -> float:
        """Return the similarity of two standing entries, at least 0."""
        one, other = ends
        similarity = float(self._vectors[one] @ self._vectors[other])
        return max(0.0, round(similarity, 4))

    # Contradictions

    def contradictions(
        self, threshold: float = 0.85, least_delta: float = 0.1, *, same_type_only: bool = False
    ) -> list[Contradiction]:
        """Return each pair of standing entries that disagree, once.

        Linked entries are left out: somebody has looked at them. An entry that lost to another one
        decides nothing more.
        """
        disagreements = list(find_disagreements(self.standing))
        disagreements.sort(key=lambda disagreement: disagreement.rule == "polarity")
        disagreements += find_duplicates(self.standing, self.near(threshold), least_delta)

        seen = self._linked_pairs()
        losers: set[str] = set()
        contradictions: list[Contradiction] = []
        for disagreement in disagreements:
            one, other = (self.standing[end] for end in disagreement.ends)
            paths = frozenset((one.path, other.path))
            if paths in seen or (same_type_only and one.type != other.type):
                continue

            seen.add(paths)
            verdict = None
            if not losers & paths:
                verdict = judge(one, other, self._is_by_hand)
            data = self._contradiction_data(disagreement)
            if verdict is not None:
                winner, loser, reason = verdict
                losers.add(loser.path)
                data["winner"] = winner.id
                data["why"] = reason
            contradictions.append(Contradiction(data, verdict))
        return contradictions

    def _linked_pairs(self) -> set[frozenset[str]]:
        """Return the paths of each two standing entries of which one has a relation to the other."""
        related = self.knowledge.relations_of(self.standing)
        return {
            frozenset((path, target.path))
            for path, relations in related.items()
            for _, target in relations
        }

    def _contradiction_data(self, disagreement: Disagreement) -> Data:
        """Return a disagreement as data, without a verdict."""
        one, other = (self.standing[end] for end in disagreement.ends)
        one_data = brief(one) | {"said": disagreement.one_says, "confidence": one.confidence}
        other_data = brief(other) | {
            "said": disagreement.other_says,
            "confidence": other.confidence,
        }
        return {
            "rule": disagreement.rule,
            "one": one_data,
            "other": other_data,
            "about": disagreement.about,
            "similarity": self._similarity(disagreement.ends),
        }

    def _is_by_hand(self, entry: KnowledgeEntry) -> bool:
        """Return whether a person wrote the text of an entry. The history is read once per entry."""
        if entry.path not in self._by_hand:
            self._by_hand[entry.path] = self.store.extension.is_by_hand(entry.path, entry.sha256)
        return self._by_hand[entry.path]

    def superseded(self) -> list[Data]:
        """Return the superseded entries, the latest first, with what replaced them, when and why."""
        by_name: dict[str, KnowledgeEntry] = {}
        for entry in self.entries:
            by_name[entry.name.rsplit("/", 1)[-1]] = entry
            by_name[entry.name] = entry

        superseded = [entry for entry in self.entries if entry.is_superseded]
        superseded.sort(key=lambda entry: entry.superseded_at)
        return [_superseded_data(entry, by_name) for entry in reversed(superseded)]

    # Themes

    def themes(
        self, threshold: float = 0.75, least: int = 2
    ) -> list[tuple[list[str], list[KnowledgeEntry]]]:
        """Return groups of similar standing entries, with words that most members have, largest first.

        A group grows around the entry that was read most, else the most confident, else the newest.
        No entry is in two groups. `least` is the smallest number of members.
        """
        neighbours: dict[int, set[int]] = defaultdict(set)
        for one, other in self.near(threshold):
            neighbours[one].add(other)
            neighbours[other].add(one)

        themes: list[tuple[list[str], list[KnowledgeEntry]]] = []
        free = set(range(len(self.standing)))
        for seed in sorted(free, key=self._theme_order, reverse=True):
            close = sorted(free & neighbours[seed])
            if seed not in free or len(close) + 1 < least:
                continue
            free -= {seed, *close}
            members = [self.standing[position] for position in (seed, *close)]
            themes.append((_shared_words(members), members))
        return sorted(themes, key=lambda theme: -len(theme[1]))

    def _theme_order(self, position: int) -> tuple[int, float, str, str]:
        """Return by what a standing entry comes before others as the centre of a theme."""
        entry = self.standing[position]
        count, _ = self.reads.get(entry.id, NEVER)
        return count, entry.confidence or 0.0, entry.created, entry.name

    def clusters(self, threshold: float = 0.75, least: int = 2) -> list[Data]:
        """Return the themes as data."""
        return [
            {"words": words, "size": len(members), "entries": _briefs(members)}
            for words, members in self.themes(threshold, least)
        ]

    def suggested_tags(self, threshold: float = 0.75) -> list[Data]:
        """Return words of themes with three or more members, as tags for the members without them.

        A tag that the vault has is spelled as it is there.
        """
        spellings = {tag.casefold(): tag for tag in self.store.tags()}
        suggestions: list[Data] = []
        for words, members in self.themes(threshold, 3):
            for word in words:
                untagged = [entry for entry in members if not _has_tag(entry, word)]
                if not untagged:
                    continue
                suggestions.append(
                    {
                        "tag": spellings.get(word, word),
                        "known": word in spellings,
                        "having": len(members) - len(untagged),
                        "of": len(members),
                        "entries": _briefs(untagged),
                    }
                )
        return suggestions

    # Counts

    def stats(self) -> Data:
        """Return totals by type and confidence. Confidence is high from 0.8, medium from 0.5."""
        confidences = [entry.confidence for entry in self.entries if entry.confidence is not None]
        high = sum(confidence >= 0.8 for confidence in confidences)
        low = sum(confidence < 0.5 for confidence in confidences)
        types = Counter(entry.type for entry in self.entries)
        return {
            "total": len(self.entries),
            "by_type": dict(sorted(types.items())),
            "by_confidence": {"high": high, "medium": len(confidences) - high - low, "low": low},
            "verified": sum(entry.verified for entry in self.entries),
            "superseded": len(self.entries) - len(self.standing),
            "never_read": sum(entry.id not in self.reads for entry in self.entries),
            "most_accessed": self._read_most(),
        }

    def _read_most(self) -> list[Data]:
        """Return the entries that were read most, with count and time."""
        read = [entry for entry in self.entries if entry.id in self.reads]
        read.sort(key=lambda entry: (-self.reads[entry.id][0], entry.name))
        most_read: list[Data] = []
        for entry in read[:_MAX_READ_MOST]:
            count, last = self.reads[entry.id]
            most_read.append({"id": entry.id, "says": entry.headline, "count": count, "last": last})
        return most_read

    def patterns(self, today: date) -> Data:
        """Return recurring entries, counts by type, tag and age, the trend, and confidence by type."""
        types = Counter(entry.type for entry in self.entries)
        tags = Counter(tag for entry in self.entries for tag in entry.tags)
        in_30_days = self._created_within(30, today)
        before = self._created_within(60, today) - in_30_days
        return {
            "recurring": self._recurring(),
            "types": dict(types.most_common()),
            "tags": dict(tags.most_common(_MAX_TAGS)),
            "lately": {str(days): self._created_within(days, today) for days in (7, 30, 90)},
            "before": before,
            "trend": _trend(before, in_30_days),
            "confidence": self._confidence_by_type(),
        }

    def _created_within(self, days: int, today: date) -> int:
        """Return how many entries were created in the last days."""
        since = (today - timedelta(days)).isoformat()
        return sum(entry.created[:10] > since for entry in self.entries)

    def _recurring(self) -> list[Data]:
        """Return the groups of entries whose first 50 characters are the same, the largest first."""
        groups = _same_beginning(self.entries, 50)
        groups.sort(key=lambda group: (-len(group), group[0].name))
        return [
            {
                "type": group[0].type,
                "says": group[0].headline,
                "count": len(group),
                "entries": _briefs(group),
            }
            for group in groups
        ]

    def _confidence_by_type(self) -> dict[str, float]:
        """Return the mean confidence of each type that has one."""
        by_type: dict[str, list[float]] = defaultdict(list)
        for entry in self.entries:
            if entry.confidence is not None:
                by_type[entry.type].append(entry.confidence)
        return {
            type_: round(sum(confidences) / len(confidences), 3)
            for type_, confidences in sorted(by_type.items())
        }

    # Habits

    def insights(self, threshold: float = 0.75, least: int = 2) -> list[Data]:
        """Return what the standing entries show, the most pressing first."""
        findings = [
            finding
            for finding in self._habit_findings()
            if finding["kind"] not in ("untagged", "duplicates")
        ]
        for words, members in self.themes(threshold, least):
            findings.append(_theme_finding(words, members))
        return _by_priority(findings)

    def antipatterns(self) -> list[Data]:
        """Return the habits that make entries less useful, the most pressing first."""
        return _by_priority(
            finding for finding in self._habit_findings() if finding["kind"] != "never read"
        )

    def _habit_findings(self) -> Iterator[Data]:
        """Yield the weaknesses that too many standing entries have, then groups that begin alike."""
        for habit in self._habits():
            count = len(habit.entries)
            total = len(habit.among)
            if count <= habit.max_share * total:
                continue
            yield _finding(
                habit.kind,
                habit.priority,
                f"{habit.kind}: {count} of {total}",
                habit.entries[:_MAX_HABIT_ENTRIES],
                numbers={"share": round(count / total, 3)},
            )

        for group in _same_beginning(self.standing, 100):
            says = f"{len(group)} entries begin the same way"
            yield _finding("duplicates", "high", says, group)

    def _habits(self) -> Iterator[_Habit]:
        """Yield each weakness with the standing entries that have it, few or many."""
        errors = [entry for entry in self.standing if entry.type == "error"]
        solved = self._paths_linked_to_solutions()
        unsolved = [entry for entry in errors if entry.path not in solved]
        yield _Habit("errors without solution", "high", unsolved, errors, 0.5)

        rated = [entry for entry in self.standing if entry.confidence is not None]
        unsure = [entry for entry in rated if (entry.confidence or 0.0) < 0.5]
        yield _Habit("low confidence", "medium", unsure, rated, 0.2)

        # How often a person reads an ordinary note is not counted.
        own = [entry for entry in self.standing if entry.is_own]
        unread = [entry for entry in own if entry.id not in self.reads]
        yield _Habit("never read", "medium", unread, own, 0.3)

        untagged = [entry for entry in self.standing if not entry.tags]
        yield _Habit("untagged", "low", untagged, self.standing, 0.3)

    def _paths_linked_to_solutions(self) -> set[str]:
        """Return the paths of both ends of each relation from or to a solution."""
        related = self.knowledge.relations_of(self.standing)
        paths: set[str] = set()
        for entry in self.standing:
            for _, target in related[entry.path]:
                if "solution" in (entry.type, target.type):
                    paths |= {entry.path, target.path}
        return paths


def analysis_of(store: EnhancedStore, notes: str = "") -> Analysis:
    """Return an analysis of the entries of a store, or of notes if `notes` selects some.

    `projects/` selects a folder, `type:decision` a type, and `*` all notes of the vault.
    """
    selection = notes.strip()
    if not selection:
        return Analysis(store, knowledge_of(store).entries())

    if selection.casefold().startswith("type:") and selection[5:].strip():
        type_ = selection[5:].strip()
        return _analysis_of_notes(store, Filter(type=type_), f"notes of type {type_}")
    if selection in ("*", "/"):
        return _analysis_of_notes(store, Filter(), "notes of the vault")
    folder = selection.rstrip("/*") + "/"
    return _analysis_of_notes(store, Filter(prefix=folder), f"notes in {folder}")


def _analysis_of_notes(store: EnhancedStore, filter_: Filter, what: str) -> Analysis:
    """Return an analysis of ordinary notes, whose times are those of the index."""
    listed = {note.path: note for note in store.extension.list_all(filter_)}
    entries: list[KnowledgeEntry] = []
    for read in store.extension.read(sorted(listed)):
        note = listed[read.path]
        entry = read_entry(*read[:3])
        entries.append(replace(entry, created=note.created or "", modified=note.modified))
    return Analysis(store, entries, what)


def brief(entry: KnowledgeEntry) -> Data:
    """Return an entry as a finding names it."""
    return {"id": entry.id, "name": entry.name, "type": entry.type, "says": entry.headline}


def _briefs(entries: Iterable[KnowledgeEntry]) -> list[Data]:
    return [brief(entry) for entry in entries]


def _superseded_data(entry: KnowledgeEntry, by_name: dict[str, KnowledgeEntry]) -> Data:
    """Return a superseded entry with the one that replaced it, None if it is not in the analysis."""
    winner = by_name.get(entry.superseded_by)
    return brief(entry) | {
        "confidence": entry.confidence,
        "at": entry.superseded_at,
        "reason": entry.superseded_reason,
        "winner": None if winner is None else brief(winner),
        "by": entry.superseded_by,
    }


def _shared_words(members: Sequence[KnowledgeEntry]) -> list[str]:
    """Return the most common words that at least two entries and at least half of them have."""
    counts: Counter[str] = Counter()
    for entry in members:
        counts.update(set(content_words(words_in_order(plain_text(entry.text)))))

    min_count = max(2, len(members) / 2)
    shared = [word for word, count in counts.items() if count >= min_count and len(word) > 2]
    shared.sort(key=lambda word: (-counts[word], word))
    return shared[:_MAX_THEME_WORDS]


def _has_tag(entry: KnowledgeEntry, tag: str) -> bool:
    return tag in (other.casefold() for other in entry.tags)


def _trend(before: int, now: int) -> str:
    """Return whether a count rises, falls or is steady."""
    if now > before:
        return "rising"
    if now < before:
        return "falling"
    return "steady"


def _theme_finding(words: Sequence[str], members: Sequence[KnowledgeEntry]) -> Data:
    """Return a theme as a finding. Three errors about one topic are the most pressing."""
    kind = "group"
    priority = "low"
    if sum(entry.type == "error" for entry in members) >= 3:
        kind = "recurring error"
        priority = "critical"
    elif len(members) >= 5:
        kind = "theme"
        priority = "high"
    says = f"{len(members)} entries share a topic: {', '.join(words)}".rstrip(": ")
    return _finding(kind, priority, says, members, words=words)


def _finding(
    kind: str,
    priority: str,
    says: str,
    entries: Iterable[KnowledgeEntry],
    words: Sequence[str] = (),
    numbers: Data | None = None,
) -> Data:
    return {
        "kind": kind,
        "priority": priority,
        "says": says,
        "entries": _briefs(entries),
        "words": list(words),
        "numbers": numbers or {},
    }


def _by_priority(findings: Iterable[Data]) -> list[Data]:
    """Return findings in the order of their priority, otherwise as they are."""
    return sorted(findings, key=lambda finding: _PRIORITIES.index(finding["priority"]))


def _same_beginning(
    entries: Iterable[KnowledgeEntry], characters: int
) -> list[list[KnowledgeEntry]]:
    """Return groups of entries of one type with the same first characters, ignoring case and blanks."""
    groups: dict[tuple[str, str], list[KnowledgeEntry]] = defaultdict(list)
    for entry in entries:
        text = " ".join(plain_text(entry.content).casefold().split())
        groups[entry.type, text[:characters]].append(entry)
    return [group for (_, text), group in groups.items() if text and len(group) > 1]
