"""Why a named note is not among the hits of a search, or where it is: it does not exist, is no note, is not indexed, is
left out of recall, does not pass a filter, or others come before it.

A note that ranking never looked at is ranked here without the limits of the legs, so that its place can be told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from simplemem.errors import NotFound
from simplemem.index.filters import Narrow
from simplemem.index.legs import Match
from simplemem.index.notes import Row
from simplemem.index.vectors import Nearness
from simplemem.memory import Hit
from simplemem.note.copies import is_copy_reason
from simplemem.note.names import clean_reference, name_of
from simplemem.search.explain import single_filters, standings, why
from simplemem.search.rank import PARTS, Legs, Ranked, rank
from simplemem.store.core import Core
from simplemem.store.explaining import Explaining
from simplemem.store.names import path_meant

_FAR = 200_000  # rows of a leg, for a note that lies behind all that a search looks at
_PARTS = tuple(PARTS)


def why_note(
    core: Core,
    explained: Explaining,
    name: str,
    hits: Sequence[Hit],
    unfiltered: Callable[[], Sequence[Ranked]] = tuple,
) -> dict[str, Any]:
    """What became of the note called `name` in a search. Raises NotFound, with near names, when there is none.
    `unfiltered` ranks again as the search did, without its filters."""
    try:
        path = path_meant(core, name)
    except NotFound:
        if (told := _no_note(core, name)) is not None:
            return told
        raise
    row = core.index.row(path)
    if row is None:
        return _not_indexed(core, path)
    if row.hidden is not None:
        return _told(path, "hidden", f"It is left out of every search: {row.hidden}.", _way_out(row.hidden))
    return _Place(core, explained, row, unfiltered).told(hits)


def _told(path: str, verdict: str, because: str, hint: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name_of(path), "verdict": verdict, "because": because, "hint": hint, **more}


def _no_note(core: Core, name: str) -> dict[str, Any] | None:
    """What is told of a file that is there and is no note; None when nothing is there."""
    meant = clean_reference(name)
    for path in dict.fromkeys((name.strip(), meant)):
        if any(part.startswith(".") for part in path.split("/")):
            if core.vault.access.hidden:
                continue  # the trash, for one, has what was hidden
            if core.vault.is_taken(path) or core.vault.is_taken(f"{path}.md"):
                because = "Folders and files that begin with a dot are not part of the vault."
                return _told(path, "not_a_note", because, "Move it to a folder without a dot.")
        elif core.entry(path) is not None:
            return _told(
                path, "not_a_note", "Only Markdown notes (.md) are searched.", "Write what it holds in a note."
            )
    return None


def _not_indexed(core: Core, path: str) -> dict[str, Any]:
    """A note that is on the disk and not in the index."""
    reasons = dict(core.not_indexed())
    for place in (path, *_folders(path)):
        if place in reasons:
            hint = "A larger index.max_note_mb lets it in." if "are not indexed" in reasons[place] else ""
            return _told(path, "not_indexed", f"It is not in the index: {reasons[place].rstrip('.')}.", hint)
    because = "It is not indexed yet."
    return _told(path, "not_indexed", f"{because} {core.state().reason}".strip(), "Ask again in a moment.")


def _folders(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]


def _way_out(reason: str) -> str:
    if reason.startswith("excluded in"):
        return "Take it out of the excluded files in Obsidian's settings (Files and links)."
    if is_copy_reason(reason):
        return "`simplemem conflicts` shows how it differs from its note, and merges the two."
    return "Move or rename it to have it found."


class _Place:
    """Where a note that may be found stands in a search."""

    def __init__(self, core: Core, explained: Explaining, row: Row, unfiltered: Callable[[], Sequence[Ranked]]) -> None:
        self._core = core
        self._index = core.index
        self._explained = explained
        self._asked = explained.asked
        self._row = row
        self._unfiltered = unfiltered

    def told(self, hits: Sequence[Hit]) -> dict[str, Any]:
        name = name_of(self._row.path)
        place = next((k for k, hit in enumerate(hits, 1) if hit.name == name), 0)
        stopped_by = [
            {"filter": label, "value": value}
            for label, value, alone in single_filters(self._asked.narrow)
            if self._row.id not in self._index.ids(alone)
        ]
        every = self._every(unfiltered=bool(stopped_by))
        numbers = self._numbers(every)
        if place:
            numbers["rank"] = place
            return self._verdict("hit", f"It is hit {place} of {len(hits)}.", "", numbers)
        if stopped_by:
            return self._filtered(stopped_by, numbers)
        if "rank" not in numbers:
            return self._verdict("no_match", self._why_no_match(), "", numbers)
        return self._below(hits, every, numbers)

    def _verdict(self, verdict: str, because: str, hint: str, numbers: dict[str, Any]) -> dict[str, Any]:
        lacking = self._why_no_vectors() if verdict != "no_match" else ""
        if lacking:
            because += f" {lacking[:1].upper()}{lacking[1:]}, so only its words count."
        return _told(self._row.path, verdict, because, hint, **numbers)

    def _filtered(self, stopped_by: list[dict[str, str]], numbers: dict[str, Any]) -> dict[str, Any]:
        said = " and ".join(f"{each['filter']} {each['value']}" for each in stopped_by)
        otherwise = f"would be number {numbers['rank']}" if "rank" in numbers else "would not be found either"
        because = f"It does not pass the filter {said}; without filters it {otherwise}."
        told = self._verdict("filtered", because, "Ask without this filter, or change the note.", numbers)
        if "rank" in told:
            told["rank_without_filters"] = told.pop("rank")
        return told | {"filters": stopped_by}

    def _below(self, hits: Sequence[Hit], every: Sequence[Ranked], numbers: dict[str, Any]) -> dict[str, Any]:
        place, limit = numbers["rank"], self._asked.limit
        because = (
            f"It is number {place} of {numbers['of']}, and {len(hits)} {'was' if len(hits) == 1 else 'were'} shown."
        )
        if place <= limit and self._core.settings.rerank.provider != "none":
            because = (
                f"By words and meaning it is number {place} of {numbers['of']}; the reranker put others before it."
            )
            return self._verdict("below", because, "Without the reranker it is among them.", numbers)
        if hits and self._asked.query.words:
            last = self._index.row(f"{hits[-1].name}.md")
            beside = next((found for found in every if last is not None and found.note == last.id), None)
            if beside is not None and beside.score >= numbers["score"] - 1e-4:  # a reranker has another order
                numbers["last_hit"] = {"name": hits[-1].name, **self._numbers_of(beside, every)}
                gap = max(0.0, numbers["last_hit"]["score"] - numbers["score"])
                because += f" It scores {numbers['score']:.2f}; the last hit, {hits[-1].name}, has {beside.score:.2f}"
                because += f": {gap:.2f} more{self._most_of(gap, numbers, numbers['last_hit'])}."
        hint = f"A limit of {place} shows it." if limit < place <= 200 else ""
        return self._verdict("below", because, hint, numbers)

    def _most_of(self, gap: float, mine: dict[str, Any], theirs: dict[str, Any]) -> str:
        weighed = {
            part: self._explained.weights.get(part, 0.0) * (theirs.get(part, 0.0) - mine.get(part, 0.0))
            for part in _PARTS
        }
        part = max(_PARTS, key=lambda each: weighed[each])
        return f", most of it by {part}" if gap > 0 and weighed[part] > gap / 2 else ""

    def _why_no_vectors(self) -> str:
        """Why its meaning could not be compared with that of the question; nothing when it could."""
        if self._asked.vector is None or self._index.vectors_of(self._row.id):
            return ""
        if self._row.private is not None and self._core.embedding.is_remote:
            return "it is private, and not given to an embedder on another machine"
        if refused := dict(self._index.refused()).get(self._row.path):
            return f"the embedder would not take its text ({refused.rstrip('.')})"
        if not self._index.passages(self._row.id):
            return "it has no text that could have a meaning"
        return "it has no vectors yet"

    def _why_no_match(self) -> str:
        asked = self._asked
        if not asked.query.words:
            return "The question has no words to rank by."
        said = [] if asked.used == "semantic" else ["It holds none of the question's words"]
        if asked.vector is None:
            said.append("meaning was not asked for" if asked.mode == "text" else "there was no vector to compare")
        elif lacking := self._why_no_vectors():
            said.append(lacking)
        else:
            said.append("its meaning is nowhere near")
        sentence = ", and ".join(said)
        return f"{sentence[:1].upper()}{sentence[1:]}."

    # -- numbers

    def _every(self, *, unfiltered: bool) -> Sequence[Ranked]:
        """A ranking that holds the note if any can: that of the search, else one without the limits of the legs."""
        asked = self._asked
        if asked.query.asks_nothing():
            return ()
        as_searched = self._unfiltered() if unfiltered else asked.every
        if any(found.note == self._row.id for found in as_searched):
            return as_searched
        narrow = None if unfiltered or asked.narrow.is_open() else self._index.ids(asked.narrow)
        if not asked.query.words:
            every = self._index.rows(self._index.ids(Narrow() if unfiltered else asked.narrow))
            newest = sorted(every.values(), key=lambda row: row.path)
            newest.sort(key=lambda row: row.modified, reverse=True)
            return [Ranked(row.id, 1.0, 0.0, 0.0, 0.0, {}, None) for row in newest]
        weight = self._core.settings.search.lexical_weight
        return rank(_Far(self._index), asked.query, asked.vector, narrow, asked.used, weight)

    def _numbers(self, every: Sequence[Ranked]) -> dict[str, Any]:
        words = self._explained.words_of(self._row.id)
        found = next((each for each in every if each.note == self._row.id), None)
        if found is None:
            return {"limit": self._asked.limit, **words}
        place = self._place(found, every)
        return {"limit": self._asked.limit, "rank": place, "of": len(every), **self._numbers_of(found, every), **words}

    @staticmethod
    def _numbers_of(found: Ranked, every: Sequence[Ranked]) -> dict[str, Any]:
        return {"score": round(found.score, 4), **why(found, standings(every))}

    def _place(self, found: Ranked, every: Sequence[Ranked]) -> int:
        """Its number: equal scores come in order of names."""
        if not self._asked.query.words:
            return next(k for k, each in enumerate(every, 1) if each.note == found.note)
        score = round(found.score, 6)
        before = sum(round(each.score, 6) > score for each in every)
        equal = self._index.rows(each.note for each in every if round(each.score, 6) == score)
        return before + sum(row.path <= self._row.path for row in equal.values())


class _Far:
    """The index with its legs followed to the end."""

    def __init__(self, legs: Legs) -> None:
        self._index = legs

    def leg(self, name: str, expression: str, limit: int, ids: Sequence[int] | None) -> list[Match]:
        return self._index.leg(name, expression, max(limit, _FAR), ids)

    def nearest(
        self, query: bytes, ids: Sequence[int] | None, limit: int, also: Collection[int]
    ) -> dict[int, Nearness]:
        return self._index.nearest(query, ids, max(limit, _FAR), also)
