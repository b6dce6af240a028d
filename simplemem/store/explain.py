"""A search, explained: the numbers behind each hit, what the filters removed, what was not searched, and why a named
note is not among the hits. Only a search that is to be explained pays for what is asked here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from simplemem.index.door import Narrow, NoteId, Row
from simplemem.memory import Hit
from simplemem.note.names import is_copy_reason, name_of
from simplemem.search.rank import SIGNALS, Ranked
from simplemem.store.core import Core
from simplemem.store.recall import Ranking

_MOST_FILES = 20  # named among those that were not searched
_CONDITIONS = {  # of a filter, by what they are called
    "tags": "tag", "all_tags": "tag", "properties": "property", "type": "type", "prefix": "path", "since": "since",
    "until": "until", "link_to": "link_to", "linked_by": "linked_by", "author": "author", "phrases": "phrase",
    "without": "without",
}  # fmt: skip


class Explained:
    """One search, explained."""

    def __init__(self, core: Core, ranking: Ranking, limit: int) -> None:
        self._core = core
        self._ranking = ranking
        self._limit = limit
        self._conditions = list(_conditions(ranking.question.narrow))

    def hits(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with the numbers behind each."""
        found = {name_of(each.path): (place, each) for place, each in enumerate(self._ranking.best, 1)}
        told = []
        for hit in hits:
            place, ranked = found[hit.name]
            reranked = self._ranking.reranked.get(ranked.note, {})
            numbers = {**self._numbers(ranked), **self._words_of(ranked.note), **reranked}
            told.append(replace(hit, why={"rank": place, **numbers}))
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
        counting = [signal for signal in ranking.signals if signal.weight]
        added = " + ".join(f"{round(signal.weight, 4):g} × {signal.name}" for signal in counting)
        meant = "; ".join(f"{signal.name}: {SIGNALS[signal.name]}" for signal in counting)
        formula = f"score = {added}, each divided by the best of its kind. {meant[:1].upper()}{meant[1:]}."
        state = self._core.state(ranking.asked.standing)
        files = [{"path": path, "why": reason} for path, reason in self._core.not_indexed()[:_MOST_FILES]]
        not_searched = {
            "hidden": self._core.index.counts()["hidden"],
            "files": files,
            "without_vectors": state.pending if ranking.question.vector is not None else 0,
            "indexing": state.state == "indexing",
        }
        told = {
            "words": list(query.words),
            "notes_with": notes_with,
            "matched_nowhere": [word for word, count in notes_with.items() if not count],
            "phrases": list(query.phrases),
            "without": list(query.without),
            "mode": ranking.mode,
            "embedder": getattr(ranking.question.vector, "embedder", "none"),
            "weights": {signal.name: round(signal.weight, 4) for signal in ranking.signals},
            "formula": formula if query.words else "There are no words to rank by: the newest come first.",
            "ranked": len(ranking.every),
            "filters": filters,
            "notes": notes,
            "notes_after_filter": left,
            "not_searched": {key: value for key, value in not_searched.items() if value},
            "degraded": ranking.degraded,
        }
        return told | ({"reranker": dict(ranking.reranker)} if ranking.reranker else {})

    def note(self, name: str, hits: Sequence[Hit]) -> dict[str, Any]:
        """What became of the note called `name`. Raises NotFound, with near names, when there is none."""
        path = self._core.path_meant(name)
        row = next(iter(self._core.index.page(Narrow(only=(path,), hidden=True), "modified", 1).rows), None)
        if row is None:
            reason = next((why for file, why in self._core.not_indexed() if f"{path}/".startswith(f"{file}/")), "")
            because = f"It is not in the index: {reason.rstrip('.')}." if reason else "It is not indexed yet."
            return _told(path, ("not_indexed", because, "" if reason else "Ask again in a moment."))
        if row.hidden is not None:
            hint = "Move or rename it to have it found, or change Obsidian's settings where they exclude it."
            if is_copy_reason(row.hidden):
                hint = "`simplemem conflicts` shows how it differs from its note, and merges the two."
            return _told(path, ("hidden", f"It is left out of every search: {row.hidden}.", hint))
        return self._of_visible(row, hits)

    def _of_visible(self, row: Row, hits: Sequence[Hit]) -> dict[str, Any]:
        ranking, query, every = self._ranking, self._ranking.asked.query, self._ranking.every
        only = Narrow(only=(row.path,))
        stopped_by = [
            {"filter": label, "value": value}
            for label, value, changes in self._conditions
            if not self._passing(replace(only, **changes))
        ]
        place = next((k for k, found in enumerate(every, 1) if found.note == row.id), 0)
        at = next((k for k, hit in enumerate(hits, 1) if hit.name == name_of(row.path)), 0)
        numbers: dict[str, Any] = {"limit": self._limit}
        if place:
            found = every[place - 1]
            numbers |= {"rank": at or place, "of": len(every), "score": round(found.score, 4), **self._numbers(found)}
        numbers |= self._words_of(row.id)
        compared = ranking.question.vector is not None
        lacks_meaning = compared and not self._core.index.vectors_of(row.id)
        only_words, hint = " It has no vectors, so only its words count." if lacks_meaning else "", ""
        if at:
            verdict, because = "hit", f"It is hit {at} of {len(hits)}.{only_words}"
        elif stopped_by:
            said = " and ".join(f"{each['filter']} {each['value']}" for each in stopped_by)
            verdict, because = "filtered", f"It does not pass the filter {said}.{only_words}"
            hint, numbers["filters"] = "Ask without this filter, or change the note.", stopped_by
        elif place:
            was = "was" if len(hits) == 1 else "were"
            because = f"It is number {place} of {len(every)}, and {len(hits)} {was} shown."
            if place <= self._limit and ranking.reranker:
                because = f"By words and meaning it is number {place} of {len(every)}; the reranker put others first."
            verdict, because = "below", because + only_words
            hint = f"A limit of {place} shows it." if self._limit < place <= 200 else ""
        elif numbers["matched"] or not (query.words or query.asks_nothing()):
            verdict, because = "below", f"{len(every)} notes or more come before it.{only_words}"
        else:
            why = [] if ranking.mode == "semantic" else ["it holds none of the question's words"]
            why += ["it has no vectors" if lacks_meaning else "its meaning is nowhere near"] if compared else []
            said = ", and ".join(why)
            verdict, because = "no_match", f"{said[:1].upper()}{said[1:]}."
        return _told(row.path, (verdict, because, hint), **numbers)

    # -- what it is made of

    def _passing(self, narrow: Narrow) -> int:
        return self._core.index.page(narrow, "modified", 0).total

    @cached_property
    def _holding(self) -> dict[str, tuple[int, set[NoteId]]]:
        """How many notes hold each word of the question, in any of the forms it was asked in, and which of the best
        do."""
        return self._which_hold([found.note for found in self._ranking.best])

    def _which_hold(self, some: Sequence[NoteId]) -> dict[str, tuple[int, set[NoteId]]]:
        query = self._ranking.asked.query
        holding = self._core.index.holding([query.forms_of(word) for word in query.words], some)
        return dict(zip(query.words, holding, strict=True))

    def _words_of(self, note: NoteId) -> dict[str, list[str]]:
        """Which words of the question a note holds, and which it lacks."""
        known = self._holding if any(found.note == note for found in self._ranking.best) else self._which_hold([note])
        held = [word for word, (_, notes) in known.items() if note in notes]
        return {"matched": held, "missing": [word for word in known if word not in held]}

    def _numbers(self, found: Ranked) -> dict[str, Any]:
        """The numbers behind one score: what the note has of each signal, divided by the best of its kind."""
        shares = {signal.name: signal.values.get(found.note, 0.0) / signal.best for signal in self._ranking.signals}
        always = {"words": 0.0, "phrases": 0.0, "meaning": 0.0}
        return {**always, **{name: round(share, 4) for name, share in shares.items() if share}}


def _told(path: str, verdict: tuple[str, str, str], **more: Any) -> dict[str, Any]:
    return {"name": name_of(path), **dict(zip(("verdict", "because", "hint"), verdict, strict=True)), **more}


def _conditions(narrow: Narrow) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every condition of a filter: what it is called, what it asks for, and the fields that ask it."""
    for field, label in _CONDITIONS.items():
        asked, joint = getattr(narrow, field), " and "
        changes = {field: asked}
        if field == "tags":
            changes["require_all"], joint = narrow.require_all, " and " if narrow.require_all else " or "
        elif field == "without":
            changes["without_forms"], joint = narrow.without_forms, " or "
        if isinstance(asked, Mapping):
            asked = [f"{key}={value}" if value else key for key, value in asked.items()]
        if asked:
            yield label, asked if isinstance(asked, str) else joint.join(asked), changes
