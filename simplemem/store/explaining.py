"""A search, explained: where the numbers behind each hit come from, what the filters removed and what was not searched.

It asks the index again for what a plain search never needs to know, so only a search that is to be explained pays for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from simplemem.index.filters import Narrow, quoted
from simplemem.index.vectors import QueryVector
from simplemem.search import coverage, priors
from simplemem.search.explain import Standings, formula, holding, single_filters, standings, why
from simplemem.search.query import Query
from simplemem.search.rank import FURTHER, Mode, Ranked, weights
from simplemem.store.core import Core

_WEIGHTS = {"covered": coverage.WEIGHT, "dated": priors.DATED}
_MOST_FILES = 20  # named among those that were not searched


@dataclass(frozen=True, slots=True)
class Asked:
    """A search as it was carried out. `every` is its whole ranking, before it was cut to the limit."""

    query: Query
    narrow: Narrow
    mode: Mode
    limit: int
    vector: QueryVector | None
    every: Sequence[Ranked]
    degraded: str

    @property
    def used(self) -> Mode:
        """The mode it came to: without a vector there are only words."""
        return self.mode if self.vector is not None else "text"


class Explaining:
    """One search, explained."""

    def __init__(self, core: Core, asked: Asked) -> None:
        self._core = core
        self._index = core.index
        self.asked = asked

    @cached_property
    def weights(self) -> dict[str, float]:
        """What each part of a score counted."""
        every = self.asked.every
        return weights(
            self.asked.used,
            self._core.settings.search.lexical_weight,
            meaning=any(found.nearness is not None for found in every),
            phrases=any("phrase" in found.matches for found in every),
            further={part: _WEIGHTS[part] for part in FURTHER if any(getattr(found, part) for found in every)},
        )

    @cached_property
    def _legs(self) -> Standings:
        return standings(self.asked.every)

    @cached_property
    def _notes_with(self) -> dict[str, set[int]]:
        """The visible notes that hold each word of the question, in any of the forms it was asked in."""
        query = self.asked.query
        asked = {word: " OR ".join([quoted(word), *query.forms.get(word, ())]) for word in query.words}
        return {word: set(self._index.notes_holding(expression)) for word, expression in asked.items()}

    def words_of(self, note: int) -> dict[str, list[str]]:
        """Which words of the question a note holds, and which it lacks."""
        held, lacking = holding(self.asked.query.words, self._notes_with, note)
        return {"matched": held, "missing": lacking}

    def hits(self, found: Iterable[Ranked]) -> dict[int, dict[str, Any]]:
        """What is told with each hit, by note."""
        return {
            ranked.note: {"rank": place, **why(ranked, self._legs), **self.words_of(ranked.note)}
            for place, ranked in enumerate(found, 1)
        }

    def search(self) -> dict[str, Any]:
        """What is told of the search as a whole."""
        asked = self.asked
        query = asked.query
        visible = set(self._index.ids(Narrow()))
        removed, left = self._filters(visible)
        ranks = bool(query.words)
        return {
            "words": list(query.words),
            "notes_with": {word: len(notes) for word, notes in self._notes_with.items()},
            "matched_nowhere": [word for word, notes in self._notes_with.items() if not notes],
            "phrases": list(query.phrases),
            "without": list(query.without),
            "mode": asked.used,
            "embedder": self._embedder(),
            "weights": {part: round(weight, 4) for part, weight in self.weights.items()} if ranks else {},
            "formula": formula(self.weights) if ranks else "There are no words to rank by: the newest come first.",
            "legs": {leg: len(placed) for leg, placed in self._legs.items()},
            "ranked": len(asked.every),
            "filter": _asked_for(asked.narrow),
            "filters": removed,
            "notes": len(visible),
            "notes_after_filter": left,
            "not_searched": self._not_searched(),
            "degraded": asked.degraded,
        }

    def _filters(self, visible: set[int]) -> tuple[list[dict[str, Any]], int]:
        """How many notes each condition removes, one after the other and alone; and how many all of them leave."""
        told, left = [], visible
        for name, value, alone in single_filters(self.asked.narrow):
            passing = set(self._index.ids(alone))
            after = left & passing
            told.append({
                "filter": name, "value": value, "removed": len(left) - len(after),
                "removed_alone": len(visible) - len(passing), "left": len(after),
            })  # fmt: skip
            left = after
        return told, len(left)

    def _embedder(self) -> str:
        if self.asked.vector is None:
            return "none"
        return self.asked.vector.embedder

    def _not_searched(self) -> dict[str, Any]:
        """What no search finds, and what this one found by words only. Empty when there is nothing."""
        files = self._core.not_indexed()
        told = {
            "hidden": self._index.hidden_counts(),
            "files": [{"path": path, "why": reason} for path, reason in files[:_MOST_FILES]],
            "more_files": max(0, len(files) - _MOST_FILES),
            "without_vectors": self._core.embedding.pending() if self.asked.vector is not None else 0,
            "indexing": self._core.state().state == "indexing",
        }
        return {key: value for key, value in told.items() if value}


def _asked_for(narrow: Narrow) -> dict[str, Any]:
    told = {
        "tags": dict(narrow.tags) | dict(narrow.all_tags), "type": narrow.type, "prefix": narrow.prefix,
        "since": narrow.since, "until": narrow.until, "link_to": narrow.link_to, "linked_by": narrow.linked_by,
        "author": narrow.author,
    }  # fmt: skip
    return {key: value for key, value in told.items() if value}
