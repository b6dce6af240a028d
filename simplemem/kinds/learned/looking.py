"""What is looked at together: the entries, or ordinary notes in the same way, with all that an analysis asks of them.

`notes` chooses ordinary notes instead of the entries: a folder (`projects/`), a type (`type:decision`), or `*` for all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING, Final

from simplemem.errors import TooLong
from simplemem.kinds.learned import clusters, contradictions, insights
from simplemem.kinds.learned.access import Read
from simplemem.kinds.learned.clusters import Cluster, Suggestion
from simplemem.kinds.learned.contradictions import Contradiction, Verdict
from simplemem.kinds.learned.entries import Entry, entry_of_note, is_entry_note, read_entry
from simplemem.kinds.learned.insights import Finding, Patterns
from simplemem.kinds.learned.keeping import knowledge_of
from simplemem.kinds.learned.likeness import Likeness, likeness_of
from simplemem.memory import Filter

if TYPE_CHECKING:
    from simplemem.memory import Listed
    from simplemem.store import EnhancedStore

MOST: Final = 20_000  # entries that are compared with each other
_PAGE: Final = 1000
_TYPE: Final = "type:"


@dataclass(frozen=True)
class Look:
    """Some entries, and what can be said of them. Everything is found when it is asked for, and once."""

    store: EnhancedStore
    entries: tuple[Entry, ...]
    what: str  # "entries", or which notes

    @cached_property
    def read(self) -> Mapping[str, Read]:
        """How often each was read, by its id."""
        return knowledge_of(self.store).access.all()

    @cached_property
    def likeness(self) -> Likeness:
        """How alike each is to each."""
        if len(self.entries) > MOST:
            raise TooLong(
                f"{len(self.entries):,} entries are too many to be compared; at most {MOST:,} are",
                hint="Choose a folder or a type.",
            )
        step = self.store.core

        def vectors() -> list[list[bytes]]:
            with step.index.snapshot():
                rows = (step.index.row(entry.path) for entry in self.entries)
                return [step.index.vectors_of(row.id) if row is not None else [] for row in rows]

        return likeness_of(self.entries, step.healing(vectors), knowledge_of(self.store).embedder())

    @cached_property
    def method(self) -> str:
        """By what they were compared, in a line."""
        unknown = self.likeness.unknown
        waiting = f"; {unknown} of {len(self.entries)} have no vectors yet" if unknown else ""
        return f"{self.likeness.method}{waiting}"

    @cached_property
    def solved(self) -> set[str]:
        """The ids of the errors that have a solution."""
        leading = knowledge_of(self.store).leading_to(self.entries, self.entries)
        return insights.solved_errors(self.entries, lambda entry: leading[entry.path])

    def is_solved(self, entry: Entry) -> bool:
        return entry.id in self.solved

    def contradictions(
        self, threshold: float = 0.85, least_delta: float = 0.1, *, same_type_only: bool = False
    ) -> list[Contradiction]:
        """What cannot all be right."""
        return contradictions.contradictions(
            self.entries, self.likeness, threshold=threshold, least_delta=least_delta, same_type_only=same_type_only
        )

    def verdicts(self, found: Sequence[Contradiction]) -> list[Verdict]:
        """Who would win each contradiction."""
        is_by_hand = _remembering(knowledge_of(self.store).is_by_hand)
        return contradictions.verdicts(found, is_by_hand)

    def clusters(self, threshold: float = 0.75, least: int = 2, most: int | None = 10) -> list[Cluster]:
        """What belongs together."""
        standing = [k for k, entry in enumerate(self.entries) if not entry.is_superseded]
        return clusters.clusters(
            [self.entries[k] for k in standing],
            self.likeness if len(standing) == len(self.entries) else self.likeness.of(standing),
            self.read,
            threshold=threshold,
            least=least,
            most=most,
        )

    def suggestions(self, threshold: float = 0.75) -> list[Suggestion]:
        """Tags that what belongs together lacks."""
        return clusters.suggest_tags(self.clusters(threshold, 3, None), self.store.tags())

    def patterns(self, today: date | None = None) -> Patterns:
        """What recurs."""
        return insights.patterns(self.entries, today or date.today())  # noqa: DTZ011  (local, as notes are)

    def insights(self, threshold: float = 0.75, least: int = 2) -> list[Finding]:
        """What they show together."""
        return insights.insights(self.entries, self.clusters(threshold, least, None), self.read, self.is_solved)

    def antipatterns(self) -> list[Finding]:
        """Habits that make them worth less."""
        return insights.antipatterns(self.entries, self.is_solved)


def look(store: EnhancedStore, notes: str = "") -> Look:
    """The entries of a store, or the ordinary notes that are asked for."""
    wanted = notes.strip()
    if not wanted:
        return Look(store, tuple(knowledge_of(store).entries()), "entries")
    kind = wanted.removeprefix(_TYPE).strip() if wanted.casefold().startswith(_TYPE) else ""
    folder = "" if kind or wanted in ("*", "/", "all") else wanted.rstrip("/*") + "/"
    listed: dict[str, Listed] = {}
    cursor: str | None = None
    while True:
        page = store.list(filter=Filter(type=kind, prefix=folder), sort="name", limit=_PAGE, cursor=cursor)
        listed |= {each.path: each for each in page.items}
        cursor = page.next_cursor
        if cursor is None:
            break
    entries = []
    for read in store.bench.read(sorted(listed)):
        each = listed[read.path]
        if is_entry_note(read.path, "" if each.type == "memory" else each.type):
            entries.append(read_entry(read.path, read.text, read.sha256))
        else:
            entries.append(entry_of_note(read.path, read.text, read.sha256, each.created or "", each.modified))
    named = f"notes of type {kind}" if kind else f"notes in {folder}" if folder else "notes of the vault"
    return Look(store, tuple(entries), named)


def _remembering(ask: Callable[[Entry], bool]) -> Callable[[Entry], bool]:
    known: dict[str, bool] = {}

    def answer(entry: Entry) -> bool:
        if entry.path not in known:
            known[entry.path] = ask(entry)
        return known[entry.path]

    return answer
