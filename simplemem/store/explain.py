"""A search, explained: the numbers behind each hit, what was filtered or not searched, why a note is no hit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

from simplemem.index.door import Narrow, NoteId, Row
from simplemem.models import Hit
from simplemem.note.conflict_copies import is_copy_reason
from simplemem.note.names import compare_key, name_of
from simplemem.search.rank import Ranked
from simplemem.store.core import Core
from simplemem.store.recall import Ranking

_PAST_SESSIONS = "outside of"  # the label of the filter that leaves past sessions out
_CONDITIONS = {  # of a filter, by what they are called
    "tags": "tag", "all_tags": "tag", "properties": "property", "type": "type", "prefix": "path", "since": "since",
    "until": "until", "link_to": "link_to", "linked_by": "linked_by", "author": "author", "phrases": "phrase",
    "without": "without", "archive": _PAST_SESSIONS,
}  # fmt: skip
_BESIDE = {
    "tags": "require_all",
    "without": "without_forms",
    "archive": "archived",
}  # that say how these are meant


def unmet(core: Core, narrow: Narrow) -> str:
    """Which conditions of a filter no note meets, with what is near or else there; "" where some note passes it."""
    is_left_out = not narrow.archived and bool(core.index.with_notes(narrow.archive))
    past = "Past sessions were not searched; `archive:` includes them." if is_left_out else ""
    asked = replace(
        narrow,
        phrases=(),
        without=(),
        without_forms=(),
        archive=narrow.archive if narrow.archived else (),
    )
    if (
        core.is_in_doubt
        or core.is_behind
        or asked.is_open()
        or _passing(core, replace(asked, archive=narrow.archive))
    ):
        return past
    conditions, said = list(_conditions(asked)), [past] if past else []
    for key, value in {**narrow.tags, **narrow.all_tags}.items():
        if not _passing(core, Narrow(tags={key: value})):
            tag = f"{key}/{value}" if value else key
            said.append(f"No note has #{tag}{_near(tag, core.index.tag_counts(), '#')}.")
    for label, value, changes in conditions:
        if label != "tag" and not _passing(core, Narrow(**changes)):
            notes = core.index.known() if label in ("type", "path") else {}
            there = {
                row.type if label == "type" else f"{row.path.rpartition('/')[0]}/"
                for row in notes.values()
            }
            said.append(
                f"No note matches {label}={value}{_near(value, sorted(there - {'', '/'}))}."
            )
    return (
        " ".join(said)
        or f"No note matches all of {', '.join(f'{label}={value}' for label, value, _ in conditions)}."
    )


def _passing(core: Core, narrow: Narrow) -> int:
    return core.index.page(narrow, "modified", 0).total


def _near(wanted: str, names: Iterable[str], mark: str = "") -> str:
    """Which names are near to one, or begin as it does; else the first that there are."""
    keys, key = {compare_key(name): name for name in names}, compare_key(wanted)
    begins = key.partition("/")[0]
    near = (
        get_close_matches(key, keys, 3, 0.6)
        or [each for each in keys if each.startswith(begins)][:3]
    )
    shown = ", ".join(f"{mark}{keys[each][:40]}" for each in near or list(keys)[:3])
    return f"; {'similar' if near else 'existing'}: {shown}" if shown else ""


class Explained:
    """One search, explained."""

    def __init__(self, core: Core, ranking: Ranking, limit: int) -> None:
        self._core, self._ranking, self._limit = core, ranking, limit
        self._query = ranking.query
        narrow = ranking.question.narrow
        held = narrow.archive if narrow.archived else core.index.with_notes(narrow.archive)
        self._conditions = list(_conditions(replace(narrow, archive=held)))
        self._holding = self._which_hold([found.note for found in ranking.best])

    def hits(self, hits: Sequence[Hit]) -> list[Hit]:
        """The hits with the numbers behind each."""
        why = {}
        for place, found in enumerate(self._ranking.best, 1):
            words, reranked = (
                _words_of(self._holding, found.note),
                self._ranking.reranked.get(found.note, {}),
            )
            why[name_of(found.path)] = {"rank": place, **self._numbers(found), **words, **reranked}
        return [replace(hit, why=why[hit.name]) for hit in hits]

    def search(self) -> dict[str, Any]:
        """What is told of the search as a whole."""
        ranking, query, index = self._ranking, self._query, self._core.index
        notes_with = {word: count for word, (count, _) in self._holding.items()}
        narrow, filters = Narrow(), []
        notes = left = _passing(self._core, narrow)
        for label, value, changes in self._conditions:
            before, narrow = left, replace(narrow, **changes)
            left = _passing(self._core, narrow)
            filters.append(
                {"filter": label, "value": value, "removed": before - left, "left": left}
            )
        added = " + ".join(
            f"{round(each.weight, 4):g} × {each.name}" for each in ranking.signals if each.weight
        )
        formula = f"rank_score = {added}, each signal divided by its best value."
        state = self._core.state(ranking.standing)
        not_searched = {
            "hidden": index.counts()["hidden"],
            "files": [
                {"path": path, "why": reason} for path, reason in self._core.not_indexed()[:20]
            ],  # named
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
            "formula": formula
            if query.words
            else "The query contains no words to rank by: the newest notes come first.",
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
        row = next(
            iter(self._core.index.page(Narrow(only=(path,), hidden=True), "modified", 1).rows), None
        )
        numbers: dict[str, Any] = {}
        if row is None:
            reason = next(
                (
                    why
                    for file, why in self._core.not_indexed()
                    if f"{path}/".startswith(f"{file}/")
                ),
                "",
            )
            verdict, hint = "not_indexed", "" if reason else "Try again in a moment."
            because = (
                f"It is not in the index: {reason.rstrip('.')}."
                if reason
                else "It is not indexed yet."
            )
        elif row.hidden is not None:
            verdict, because = "hidden", f"It is hidden from search: {row.hidden}."
            hint = "To include it in search, move or rename it, or change the Obsidian setting that excludes it."
            if is_copy_reason(row.hidden):
                hint = "`simplemem conflicts merge` merges it into its note; --dry-run shows the differences."
        else:
            place = next(
                (k for k, found in enumerate(self._ranking.every, 1) if found.note == row.id), 0
            )
            at = next((k for k, hit in enumerate(hits, 1) if hit.name == name_of(path)), 0)
            numbers = {"limit": self._limit}
            if place:
                every = self._ranking.every
                numbers |= {
                    "rank": at or place,
                    "of": len(every),
                    **self._numbers(every[place - 1]),
                }
            numbers |= _words_of(self._which_hold([row.id]), row.id)
            verdict, because, hint = self._verdict(row, place, numbers)
            if at:
                verdict, because, hint = "hit", f"It is hit {at} of {len(hits)}.", ""
        return {
            "name": name_of(path),
            "verdict": verdict,
            "because": because,
            "hint": hint,
            **numbers,
        }

    def _verdict(self, row: Row, place: int, numbers: dict[str, Any]) -> tuple[str, str, str]:
        """What became of a note that is no hit, why, and what would show it."""
        only, every = Narrow(only=(row.path,)), self._ranking.every
        stopped_by = [
            each for each in self._conditions if not _passing(self._core, replace(only, **each[2]))
        ]
        if stopped_by and not place:
            numbers["filters"] = [
                {"filter": label, "value": value} for label, value, _ in stopped_by
            ]
            filters = " and ".join(
                f"{label} {value}" for label, value, _ in stopped_by if label != _PAST_SESSIONS
            )
            if not filters:
                hint = "Put `archive:` before the query to search past sessions too."
                return "filtered", "It is a past session, which this search leaves out.", hint
            hint = "Search without this filter, or change the note."
            return "filtered", f"It does not match the filter {filters}.", hint
        if place and place <= self._limit:
            return (
                "below",
                f"It is number {place} by words and meaning; the reranker ranked other notes higher.",
                "",
            )
        if place:
            hint = f"Set the limit to {place} or more to include it." if place <= 200 else ""
            return "below", f"It is number {place} of {len(every)} ranked notes.", hint
        if numbers["matched"] or not (self._query.words or self._query.asks_nothing()):
            return "below", f"{len(every)} or more notes rank above it.", ""
        why = [] if self._ranking.mode == "semantic" else ["it contains none of the query's words"]
        if self._ranking.question.vector is not None:
            why.append(
                "its meaning is not similar"
                if self._core.index.vectors_of(row.id)
                else "it has no vectors"
            )
        return "no_match", f"{', and '.join(why).capitalize()}.", ""

    def _which_hold(self, some: Sequence[NoteId]) -> dict[str, tuple[int, set[NoteId]]]:
        """How many notes hold each word of the question, in any form it was asked in, and which of `some` do."""
        holding = self._core.index.holding(
            [self._query.forms_of(word) for word in self._query.words], some
        )
        return dict(zip(self._query.words, holding, strict=True))

    def _numbers(self, found: Ranked) -> dict[str, Any]:
        """One score and the numbers behind it: what the note has of each signal, divided by the best of its kind."""
        shares = {
            signal.name: signal.values.get(found.note, 0.0) / signal.best
            for signal in self._ranking.signals
        }
        always = {"rank_score": round(found.score, 4), "words": 0.0, "phrases": 0.0, "meaning": 0.0}
        return always | {name: round(share, 4) for name, share in shares.items() if share}


def _words_of(holding: Mapping[str, tuple[int, set[NoteId]]], note: NoteId) -> dict[str, list[str]]:
    """Which words of the question a note holds, and which it lacks."""
    held = [word for word, (_, notes) in holding.items() if note in notes]
    return {"matched": held, "missing": [word for word in holding if word not in held]}


def _conditions(narrow: Narrow) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Every condition of a filter: what it is called, what it asks for, and the fields that ask it."""
    for field, label in _CONDITIONS.items():
        if not (asked := getattr(narrow, field)):
            continue
        also = _BESIDE.get(field, field)
        changes = {field: asked, also: getattr(narrow, also)}
        is_any = field in ("without", "archive") or (field == "tags" and not narrow.require_all)
        if isinstance(asked, Mapping):
            asked = [f"{key}={value}" if value else key for key, value in asked.items()]
        label = field if narrow.archived and field == "archive" else label
        yield (
            label,
            asked if isinstance(asked, str) else (" or " if is_any else " and ").join(asked),
            changes,
        )
