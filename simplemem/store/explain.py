"""A search, explained: where the numbers behind each hit come from, what the filters removed, what was not searched, and
why a named note is not among the hits.

It asks the index again for what a plain search never needs to know, so only a search that is to be explained pays for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from simplemem.errors import NotFound
from simplemem.index.door import Narrow, NoteId, Row
from simplemem.memory import Hit
from simplemem.note.names import clean_reference, is_copy_reason, name_of
from simplemem.search.rank import SIGNALS, Ranked
from simplemem.store.core import Core
from simplemem.store.recall import Ranking

_MOST_FILES = 20  # named among those that were not searched
_LEGS = ("note", "block", "phrase", "passage_meaning", "block_meaning")
_CONDITIONS = {  # of a filter, by what they are called
    "tags": "tag", "all_tags": "tag", "properties": "property", "type": "type", "prefix": "path", "since": "since",
    "until": "until", "link_to": "link_to", "linked_by": "linked_by", "author": "author", "phrases": "phrase",
    "without": "without",
}  # fmt: skip

LegNumbers = Mapping[str, Mapping[NoteId, Mapping[str, Any]]]
"""By leg, then by note: its place (equal scores share one), its score, and that divided by the leg's best."""


class Explained:
    """One search, explained."""

    def __init__(self, core: Core, ranking: Ranking, limit: int) -> None:
        self._core = core
        self._index = core.index
        self._ranking = ranking
        self._limit = limit
        self._conditions = list(conditions(ranking.question.narrow))

    # -- the search

    def hits(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with the numbers behind each."""
        found = {name_of(each.path): (place, each) for place, each in enumerate(self._ranking.best, 1)}
        told = []
        for hit in hits:
            place, ranked = found[hit.name]
            numbers = {**numbers_of(ranked, self._legs), **self._words_of(ranked.note)}
            told.append(replace(hit, why={"rank": place, **numbers, **self._ranking.reranked.get(ranked.note, {})}))
        return told

    def search(self) -> dict[str, Any]:
        """What is told of the search as a whole."""
        ranking, query = self._ranking, self._ranking.asked.query
        notes_with = {word: count for word, (count, _) in self._holding.items()}
        narrow, filters = Narrow(), []
        notes = left = self._passing(narrow)
        for label, value, changes in self._conditions:
            before, narrow = left, replace(narrow, **changes)
            left = self._passing(narrow)
            filters.append({"filter": label, "value": value, "removed": before - left, "left": left})
        told = {
            "words": list(query.words),
            "notes_with": notes_with,
            "matched_nowhere": [word for word, count in notes_with.items() if not count],
            "phrases": list(query.phrases),
            "without": list(query.without),
            "mode": ranking.mode,
            "embedder": getattr(ranking.question.vector, "embedder", "none"),
            "weights": {signal.name: round(signal.weight, 4) for signal in ranking.signals},
            "formula": _formula(ranking),
            "legs": {leg: len(placed) for leg, placed in self._legs.items()},
            "ranked": len(ranking.every),
            "filters": filters,
            "notes": notes,
            "notes_after_filter": left,
            "not_searched": self._not_searched(),
            "degraded": ranking.degraded,
        }
        return told | ({"reranker": dict(ranking.reranker)} if ranking.reranker else {})

    def _passing(self, narrow: Narrow) -> int:
        return self._index.page(narrow, "modified", 0).total

    @cached_property
    def _legs(self) -> LegNumbers:
        return leg_numbers(self._ranking.every)

    @cached_property
    def _holding(self) -> dict[str, tuple[int, set[NoteId]]]:
        """How many notes hold each word of the question, in any of the forms it was asked in, and which of the best do."""
        return self._which_hold([found.note for found in self._ranking.best])

    def _which_hold(self, some: Sequence[NoteId]) -> dict[str, tuple[int, set[NoteId]]]:
        query = self._ranking.asked.query
        holding = self._index.holding([query.forms_of(word) for word in query.words], some)
        return dict(zip(query.words, holding, strict=True))

    def _words_of(self, note: NoteId) -> dict[str, list[str]]:
        """Which words of the question a note holds, and which it lacks."""
        known = self._holding if any(found.note == note for found in self._ranking.best) else self._which_hold([note])
        held = [word for word, (_, notes) in known.items() if note in notes]
        return {"matched": held, "missing": [word for word in known if word not in held]}

    def _not_searched(self) -> dict[str, Any]:
        """What no search finds, and what this one found by words only. Empty when there is nothing."""
        files = self._core.not_indexed()
        state = self._core.state(self._ranking.asked.standing)
        told = {
            "hidden": self._index.counts()["hidden"],
            "files": [{"path": path, "why": reason} for path, reason in files[:_MOST_FILES]],
            "more_files": max(0, len(files) - _MOST_FILES),
            "without_vectors": state.pending if self._ranking.question.vector is not None else 0,
            "indexing": state.state == "indexing",
        }
        return {key: value for key, value in told.items() if value}

    # -- a note by its name

    def note(self, name: str, hits: Sequence[Hit]) -> dict[str, Any]:
        """What became of the note called `name`. Raises NotFound, with near names, when there is none."""
        try:
            path = self._core.path_meant(name)
        except NotFound:
            clean = clean_reference(name)
            if self._core.entry(clean) is None:
                raise
            return _told(
                clean, "not_a_note", "Only Markdown notes (.md) are searched.", "Write what it holds in a note."
            )
        row = next(iter(self._index.page(Narrow(only=(path,), hidden=True), "modified", 1, 0).rows), None)
        if row is None:
            reason = next((why for file, why in self._core.not_indexed() if f"{path}/".startswith(f"{file}/")), "")
            hint = "A larger index.max_note_mb lets it in." if "are not indexed" in reason else ""
            if reason:
                return _told(path, "not_indexed", f"It is not in the index: {reason.rstrip('.')}.", hint)
            because = f"It is not indexed yet. {self._core.state().reason}".strip()
            return _told(path, "not_indexed", because, "Ask again in a moment.")
        if row.hidden is not None:
            hint = "Move or rename it to have it found."
            if row.hidden.startswith("excluded in"):
                hint = "Take it out of the excluded files in Obsidian's settings (Files and links)."
            elif is_copy_reason(row.hidden):
                hint = "`simplemem conflicts` shows how it differs from its note, and merges the two."
            return _told(path, "hidden", f"It is left out of every search: {row.hidden}.", hint)
        return self._of_note(row, hits)

    def _of_note(self, row: Row, hits: Sequence[Hit]) -> dict[str, Any]:
        """Where a note that may be found stands."""
        only = Narrow(only=(row.path,))
        stopped_by = [
            {"filter": label, "value": value}
            for label, value, changes in self._conditions
            if not self._passing(replace(only, **changes))
        ]
        query, every = self._ranking.asked.query, self._ranking.every
        place = next((k for k, found in enumerate(every, 1) if found.note == row.id), 0)
        numbers: dict[str, Any] = {"limit": self._limit}
        if place:
            numbers |= {"rank": place, "of": len(every), **_score(every[place - 1], every)}
        numbers |= self._words_of(row.id)
        lacking = self._why_no_vectors(row)
        only_words = f" {lacking[:1].upper()}{lacking[1:]}, so only its words count." if lacking else ""
        if at := next((k for k, hit in enumerate(hits, 1) if hit.name == name_of(row.path)), 0):
            numbers["rank"] = at
            return _told(row.path, "hit", f"It is hit {at} of {len(hits)}.{only_words}", **numbers)
        if stopped_by:
            said = " and ".join(f"{each['filter']} {each['value']}" for each in stopped_by)
            because = f"It does not pass the filter {said}.{only_words}"
            hint = "Ask without this filter, or change the note."
            return _told(row.path, "filtered", because, hint, **numbers, filters=stopped_by)
        if not place and (numbers["matched"] or not (query.words or query.asks_nothing())):
            return _told(row.path, "below", f"{len(every)} notes or more come before it.{only_words}", **numbers)
        if not place:
            because = "" if self._ranking.mode == "semantic" else "it holds none of the question's words"
            if self._ranking.question.vector is not None:
                because += f"{', and ' if because else ''}{lacking or 'its meaning is nowhere near'}"
            return _told(row.path, "no_match", f"{because[:1].upper()}{because[1:]}.", **numbers)
        because = f"It is number {place} of {len(every)}, and {len(hits)} {'was' if len(hits) == 1 else 'were'} shown."
        if place <= self._limit and self._ranking.reranker:
            because = f"By words and meaning it is number {place} of {len(every)}; the reranker put others before it."
        last = next((found for found in every if hits and name_of(found.path) == hits[-1].name), None)
        if last is not None:
            numbers["last_hit"] = {"name": hits[-1].name, **_score(last, every)}
        hint = f"A limit of {place} shows it." if self._limit < place <= 200 else ""
        return _told(row.path, "below", because + only_words, hint, **numbers)

    def _why_no_vectors(self, row: Row) -> str:
        """Why its meaning could not be compared with that of the question; nothing when it could."""
        if self._ranking.question.vector is None or self._index.vectors_of(row.id):
            return ""
        if row.private is not None and self._core.embedding.is_remote:
            return "it is private, and not given to an embedder on another machine"
        if refused := dict(self._index.embedded("", False).refused).get(row.path):
            return f"the embedder would not take its text ({refused.rstrip('.')})"
        return "it has no vectors yet" if row.words else "it has no text that could have a meaning"


def _told(path: str, verdict: str, because: str, hint: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name_of(path), "verdict": verdict, "because": because, "hint": hint, **more}


def _score(found: Ranked, every: Sequence[Ranked]) -> dict[str, Any]:
    return {"score": round(found.score, 4), **numbers_of(found, leg_numbers(every))}


def leg_numbers(every: Sequence[Ranked]) -> LegNumbers:
    """Where every note of a ranking stands in every leg that knew it."""
    scores: dict[str, dict[NoteId, float]] = {leg: {} for leg in _LEGS}
    for found in every:
        for leg, match in found.matches.items():
            scores[leg][found.note] = match.score
        if found.nearness is not None:
            scores["passage_meaning"][found.note] = found.nearness.passage
            scores["block_meaning"][found.note] = found.nearness.block
    return {leg: _placed(of_notes) for leg, of_notes in scores.items() if of_notes}


def _placed(scores: Mapping[NoteId, float]) -> dict[NoteId, Mapping[str, Any]]:
    best = max(scores.values()) or 1.0
    placed: dict[NoteId, Mapping[str, Any]] = {}
    place, last = 0, None
    for count, (note, raw) in enumerate(sorted(scores.items(), key=lambda pair: -pair[1]), 1):
        if raw != last:
            place, last = count, raw
        placed[note] = {"rank": place, "raw": round(raw, 4), "normalised": round(max(0.0, raw / best), 4)}
    return placed


def numbers_of(found: Ranked, legs: LegNumbers) -> dict[str, Any]:
    """The numbers behind one score: each signal divided by the best of its kind, and each leg's own."""
    always = ("words", "phrases", "meaning")
    shares = {name: round(share, 4) for name, share in found.shares.items() if share or name in always}
    own = {leg: placed[found.note] for leg, placed in legs.items() if found.note in placed}
    return {**dict.fromkeys(always, 0.0), **shares, "legs": own}


def _formula(ranking: Ranking) -> str:
    """How the signals become a score, in words."""
    if not ranking.asked.query.words:
        return "There are no words to rank by: the newest come first."
    counting = [signal for signal in ranking.signals if signal.weight]
    added = " + ".join(f"{round(signal.weight, 4):g} × {signal.name}" for signal in counting)
    meant = "; ".join(f"{signal.name}: {SIGNALS[signal.name]}" for signal in counting)
    return f"score = {added}, each divided by the best of its kind. {meant[:1].upper()}{meant[1:]}."


def conditions(narrow: Narrow) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every condition of a filter: what it is called, what it asks for, and the fields that ask it."""
    for field, label in _CONDITIONS.items():
        asked = getattr(narrow, field)
        if not asked:
            continue
        changes = {field: asked}
        said = asked
        if isinstance(asked, Mapping):
            pairs = (f"{key}={value}" if value else key for key, value in asked.items())
            said = (" or " if field == "tags" and not narrow.require_all else " and ").join(pairs)
        elif not isinstance(asked, str):
            said = (" or " if field == "without" else " and ").join(asked)
        if field == "tags":
            changes["require_all"] = narrow.require_all
        elif field == "without":
            changes["without_forms"] = narrow.without_forms
        yield label, said, changes
