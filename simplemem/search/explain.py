"""The numbers behind a ranking, told: where each note stands in every leg, what made its score, what each filter means
alone. Pure: it takes what `rank` returned and asks nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from simplemem.index.door import Narrow, NoteId
from simplemem.search.rank import PARTS, Part, Ranked

LEGS = {
    "note": "whole note",
    "block": "best block",
    "phrase": "neighbours",
    "passage_meaning": "passage",
    "block_meaning": "block",
}
"""The legs in words. `neighbours` are words of the question side by side; the last two are by meaning."""

LegNumbers = Mapping[str, Mapping[NoteId, Mapping[str, Any]]]
"""By leg, then by note: its place (equal scores share one), its score, and that divided by the leg's best."""


def leg_numbers(every: Sequence[Ranked]) -> LegNumbers:
    """Where every note of a ranking stands in every leg that knew it."""
    scores: dict[str, dict[NoteId, float]] = {leg: {} for leg in LEGS}
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
    bare = Narrow()
    if narrow.tags:
        said = (" and " if narrow.require_all else " or ").join(_pair(*tag) for tag in narrow.tags.items())
        yield "tag", said, replace(bare, tags=narrow.tags, require_all=narrow.require_all)
    for key, value in narrow.all_tags.items():
        yield "tag", _pair(key, value), replace(bare, all_tags={key: value})
    for key, value in narrow.properties.items():
        yield "property", _pair(key, value), replace(bare, properties={key: value})
    for name in ("type", "prefix", "since", "until", "link_to", "linked_by"):
        if value := getattr(narrow, name):
            yield "path" if name == "prefix" else name, value, replace(bare, **{name: value})
    if narrow.author:
        yield "author", narrow.author, replace(bare, author=narrow.author)
    for phrase in narrow.phrases:
        yield "phrase", phrase, replace(bare, phrases=(phrase,))
    if narrow.without_forms:  # which of them are of which word is not told apart
        without = replace(bare, without=narrow.without, without_forms=narrow.without_forms)
        yield "without", " or ".join(narrow.without), without
        return
    for word in narrow.without:
        yield "without", word, replace(bare, without=(word,))


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
