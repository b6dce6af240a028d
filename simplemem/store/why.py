"""A search, explained: where the numbers behind each hit come from, what the filters removed, what was not searched, and
why a named note is not among the hits.

It asks the index again for what a plain search never needs to know, so only a search that is to be explained pays for it.
A note that the ranking never looked at is ranked here without the limits of the legs, so that its place can be told.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from typing import Any

from simplemem.errors import NotFound
from simplemem.index.door import Narrow, NoteId, Row
from simplemem.memory import Hit
from simplemem.note.names import clean_reference, is_copy_reason, name_of
from simplemem.search.rank import PARTS, Part, Ranked, parts_of, rank
from simplemem.store.core import Core
from simplemem.store.recall import Asked, Ranking

_FAR = 200_000  # rows of a leg, for a note that lies behind all that a search looks at
_MOST_FILES = 20  # named among those that were not searched
_VALUES = ("type", "prefix", "since", "until", "link_to", "linked_by", "author")  # of a filter
_LEGS = ("note", "block", "phrase", "passage_meaning", "block_meaning")

LegNumbers = Mapping[str, Mapping[NoteId, Mapping[str, Any]]]
"""By leg, then by note: its place (equal scores share one), its score, and that divided by the leg's best."""


class Explained:
    """One search, explained. `ranked` ranks as the search did."""

    def __init__(self, core: Core, ranking: Ranking, limit: int, ranked: Callable[..., Ranking]) -> None:
        self._core = core
        self._index = core.index
        self._ranking = ranking
        self._limit = limit
        self._ranked = ranked
        self._filters = list(single_filters(ranking.narrow))

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
        alone = [narrow for _, _, narrow in self._filters]
        notes, *counts = self._index.passing([Narrow(), *alone, *one_after_another(alone)])
        left = [notes, *counts[len(alone) :]]
        told = {
            "words": list(query.words),
            "notes_with": notes_with,
            "matched_nowhere": [word for word, count in notes_with.items() if not count],
            "phrases": list(query.phrases),
            "without": list(query.without),
            "mode": ranking.mode,
            "embedder": getattr(ranking.question.vector, "embedder", "none"),
            "weights": {part.name: round(part.weight, 4) for part in ranking.parts},
            "formula": formula(ranking.parts) if query.words else "There are no words to rank by: the newest come first.",
            "legs": {leg: len(placed) for leg, placed in self._legs.items()},
            "ranked": len(ranking.every),
            "filter": _asked_for(ranking.narrow),
            "filters": [
                {
                    "filter": name, "value": value, "removed": left[k] - left[k + 1],
                    "removed_alone": notes - counts[k], "left": left[k + 1],
                }
                for k, (name, value, _) in enumerate(self._filters)
            ],
            "notes": notes,
            "notes_after_filter": left[-1],
            "not_searched": self._not_searched(),
            "degraded": ranking.degraded,
        }  # fmt: skip
        if ranking.reranker:
            told["reranker"] = dict(ranking.reranker)
        return told

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
            "hidden": self._index.hidden_counts(),
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
            if (told := self._no_note(name)) is not None:
                return told
            raise
        row = self._index.row(path)
        if row is None:
            return self._not_indexed(path)
        if row.hidden is not None:
            return _told(path, "hidden", f"It is left out of every search: {row.hidden}.", _way_out(row.hidden))
        return self._of_note(row, hits)

    def _no_note(self, name: str) -> dict[str, Any] | None:
        """What is told of a file that is there and is no note; None when nothing is there."""
        for path in dict.fromkeys((name.strip(), clean_reference(name))):
            if any(part.startswith(".") for part in path.split("/")):
                vault = self._core.vault  # where notes are hidden, the trash has some of them
                if not vault.access.hidden and (vault.is_taken(path) or vault.is_taken(f"{path}.md")):
                    because = "Folders and files that begin with a dot are not part of the vault."
                    return _told(path, "not_a_note", because, "Move it to a folder without a dot.")
            elif self._core.entry(path) is not None:
                because = "Only Markdown notes (.md) are searched."
                return _told(path, "not_a_note", because, "Write what it holds in a note.")
        return None

    def _not_indexed(self, path: str) -> dict[str, Any]:
        """A note that is on the disk and not in the index."""
        reasons, parts = dict(self._core.not_indexed()), path.split("/")
        for place in ("/".join(parts[:count]) for count in range(len(parts), 0, -1)):
            if place in reasons:
                hint = "A larger index.max_note_mb lets it in." if "are not indexed" in reasons[place] else ""
                return _told(path, "not_indexed", f"It is not in the index: {reasons[place].rstrip('.')}.", hint)
        because = f"It is not indexed yet. {self._core.state().reason}".strip()
        return _told(path, "not_indexed", because, "Ask again in a moment.")

    def _of_note(self, row: Row, hits: Sequence[Hit]) -> dict[str, Any]:
        """Where a note that may be found stands."""
        passes = self._index.passing([replace(narrow, only=(row.path,)) for _, _, narrow in self._filters])
        stopped_by = [
            {"filter": label, "value": value}
            for (label, value, _), count in zip(self._filters, passes, strict=True)
            if not count
        ]
        every = self._every(row, unfiltered=bool(stopped_by))
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
            otherwise = f"would be number {place}" if place else "would not be found either"
            because = f"It does not pass the filter {said}; without filters it {otherwise}.{only_words}"
            if place:
                numbers["rank_without_filters"] = numbers.pop("rank")
            hint = "Ask without this filter, or change the note."
            return _told(row.path, "filtered", because, hint, **numbers, filters=stopped_by)
        if not place:
            return _told(row.path, "no_match", self._why_no_match(lacking), **numbers)
        because, hint = self._below(place, every, hits, numbers)
        return _told(row.path, "below", because + only_words, hint, **numbers)

    def _below(
        self, place: int, every: Sequence[Ranked], hits: Sequence[Hit], numbers: dict[str, Any]
    ) -> tuple[str, str]:
        if place <= self._limit and self._core.settings.rerank.provider != "none":
            because = f"By words and meaning it is number {place} of {len(every)}; the reranker put others before it."
            return because, "Without the reranker it is among them."
        because = f"It is number {place} of {len(every)}, and {len(hits)} {'was' if len(hits) == 1 else 'were'} shown."
        last = next((found for found in every if hits and name_of(found.path) == hits[-1].name), None)
        mine = every[place - 1]
        if last is not None and last.parts and last.score >= mine.score - 1e-4:  # a reranker has another order
            numbers["last_hit"] = {"name": hits[-1].name, **_score(last, every)}
            gap = max(0.0, round(last.score, 4) - round(mine.score, 4))
            because += f" It scores {mine.score:.2f}; the last hit, {hits[-1].name}, has {last.score:.2f}"
            because += f": {gap:.2f} more."
        return because, f"A limit of {place} shows it." if self._limit < place <= 200 else ""

    def _why_no_vectors(self, row: Row) -> str:
        """Why its meaning could not be compared with that of the question; nothing when it could."""
        if self._ranking.question.vector is None or self._index.vectors_of(row.id):
            return ""
        if row.private is not None and self._core.embedding.is_remote:
            return "it is private, and not given to an embedder on another machine"
        if refused := dict(self._index.refused()).get(row.path):
            return f"the embedder would not take its text ({refused.rstrip('.')})"
        has_text = self._index.shown({row.id: 0}, self._ranking.question)[row.id].passages
        return "it has no vectors yet" if has_text else "it has no text that could have a meaning"

    def _why_no_match(self, lacking: str) -> str:
        query, mode = self._ranking.asked.query, self._ranking.mode
        if not query.words:
            return "The question has no words to rank by."
        meaning = lacking or "its meaning is nowhere near"
        if self._ranking.question.vector is None:
            meaning = "there was no vector to compare" if self._ranking.degraded else "meaning was not asked for"
        words = "" if mode == "semantic" else "It holds none of the question's words, and "
        return f"{words}{meaning}." if words else f"{meaning[:1].upper()}{meaning[1:]}."

    def _every(self, row: Row, *, unfiltered: bool) -> Sequence[Ranked]:
        """A ranking that holds the note if any can: that of the search, else one without the limits of the legs."""
        ranking = self._ranking
        asked, query = ranking.asked, ranking.asked.query
        narrow = Narrow() if unfiltered else ranking.narrow
        if query.asks_nothing():
            return ()
        if unfiltered:
            ranking = self._ranked(Asked(query, asked.standing, narrow), self._limit, ranking.mode, rerank=False)
        if any(found.note == row.id for found in ranking.every):
            return ranking.every
        if not query.words:
            rows = self._index.page(narrow, "modified", _FAR, 0).rows
            return [Ranked(each.id, each.path, 1.0) for each in rows]
        question = replace(ranking.question, notes=_FAR, blocks=_FAR, nearest=_FAR)
        answer = self._index.ask(question)
        return rank(answer, parts_of(answer, ranking.mode, self._core.settings.search.lexical_weight))


def _score(found: Ranked, every: Sequence[Ranked]) -> dict[str, Any]:
    return {"score": round(found.score, 4), **numbers_of(found, leg_numbers(every))}


def _told(path: str, verdict: str, because: str, hint: str = "", **more: Any) -> dict[str, Any]:
    return {"name": name_of(path), "verdict": verdict, "because": because, "hint": hint, **more}


def _way_out(reason: str) -> str:
    if reason.startswith("excluded in"):
        return "Take it out of the excluded files in Obsidian's settings (Files and links)."
    if is_copy_reason(reason):
        return "`simplemem conflicts` shows how it differs from its note, and merges the two."
    return "Move or rename it to have it found."


def _asked_for(narrow: Narrow) -> dict[str, Any]:
    told = {"tags": {**narrow.tags, **narrow.all_tags}, "properties": dict(narrow.properties)}
    told |= {name: getattr(narrow, name) for name in _VALUES}
    return {key: value for key, value in told.items() if value}


# -- the numbers of a ranking, and the conditions of a filter


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
    """The numbers behind one score: each part divided by the best of its kind, and each leg's own."""
    always = ("words", "phrases", "meaning")
    parts = {part: round(share, 4) for part, share in found.parts.items() if share or part in always}
    own = {leg: placed[found.note] for leg, placed in legs.items() if found.note in placed}
    return {**dict.fromkeys(always, 0.0), **parts, "legs": own}


def formula(parts: Sequence[Part]) -> str:
    """How the parts become a score, in words."""
    counting = [part for part in parts if part.weight]
    added = " + ".join(f"{round(part.weight, 4):g} × {part.name}" for part in counting)
    meant = "; ".join(f"{part.name}: {PARTS[part.name]}" for part in counting)
    return f"score = {added}, each divided by the best of its kind. {meant[:1].upper()}{meant[1:]}."


def single_filters(narrow: Narrow) -> Iterator[tuple[str, str, Narrow]]:
    """Every condition of a filter: what it is called, what it asks for, and the filter with it alone."""
    if narrow.tags:
        said = (" and " if narrow.require_all else " or ").join(_pair(*tag) for tag in narrow.tags.items())
        yield "tag", said, Narrow(tags=narrow.tags, require_all=narrow.require_all)
    for key, value in narrow.all_tags.items():
        yield "tag", _pair(key, value), Narrow(all_tags={key: value})
    for key, value in narrow.properties.items():
        yield "property", _pair(key, value), Narrow(properties={key: value})
    for name in _VALUES:
        if value := getattr(narrow, name):
            yield "path" if name == "prefix" else name, value, replace(Narrow(), **{name: value})
    for phrase in narrow.phrases:
        yield "phrase", phrase, Narrow(phrases=(phrase,))
    if narrow.without_forms:  # which of them are of which word is not told apart
        without = Narrow(without=narrow.without, without_forms=narrow.without_forms)
        yield "without", " or ".join(narrow.without), without
    else:
        yield from (("without", word, Narrow(without=(word,))) for word in narrow.without)


def _pair(key: str, value: str) -> str:
    return f"{key}={value}" if value else key


def one_after_another(narrows: Sequence[Narrow]) -> list[Narrow]:
    """Filters so that each has those before it as well."""
    joined: list[Narrow] = []
    for narrow in narrows:
        before = joined[-1] if joined else Narrow()
        both = {each.name: _both(getattr(before, each.name), getattr(narrow, each.name)) for each in fields(Narrow)}
        joined.append(Narrow(**both))
    return joined


def _both(one: Any, other: Any) -> Any:
    if isinstance(one, Mapping):
        return {**one, **other}
    return one + other if isinstance(one, tuple) else one or other
