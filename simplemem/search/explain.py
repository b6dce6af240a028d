"""The numbers behind a ranking, told: where each note stands in every leg, what made its score, what each filter means
alone. Pure: it takes what `rank` returned and asks nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simplemem.index.filters import Narrow
from simplemem.search.rank import FURTHER, PARTS, Ranked

LEGS = {
    "note": "whole note",
    "block": "best block",
    "phrase": "neighbours",
    "passage_meaning": "passage",
    "block_meaning": "block",
}
"""The legs in words. `neighbours` are words of the question side by side; the last two are by meaning."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A note in one leg: its place (equal scores share one), its score, and that divided by the leg's best."""

    rank: int
    raw: float
    normalised: float

    def as_dict(self) -> dict[str, Any]:
        return {"rank": self.rank, "raw": round(self.raw, 4), "normalised": round(self.normalised, 4)}


Standings = Mapping[str, Mapping[int, Standing]]
"""By leg, then by note."""


def standings(every: Sequence[Ranked]) -> Standings:
    """Where every note of a ranking stands in every leg that knew it."""
    scores: dict[str, dict[int, float]] = {}
    for found in every:
        for leg, score in raw_scores(found).items():
            scores.setdefault(leg, {})[found.note] = score
    return {leg: _standing(scores[leg]) for leg in sorted(scores, key=_order)}


def raw_scores(found: Ranked) -> dict[str, float]:
    """What each leg gave a note."""
    raw = {leg: match.score for leg, match in found.matches.items()}
    if found.nearness is not None:
        raw |= {"passage_meaning": found.nearness.passage, "block_meaning": found.nearness.block}
    return raw


def _order(leg: str) -> int:
    return [*LEGS, leg].index(leg)


def _standing(scores: Mapping[int, float]) -> dict[int, Standing]:
    best = max(scores.values()) or 1.0
    placed: dict[int, Standing] = {}
    place, last = 0, None
    for count, (note, raw) in enumerate(sorted(scores.items(), key=lambda pair: -pair[1]), 1):
        if raw != last:
            place, last = count, raw
        placed[note] = Standing(place, raw, max(0.0, raw / best))
    return placed


def why(found: Ranked, legs: Standings) -> dict[str, Any]:
    """The numbers behind one score: each part divided by the best of its kind, and each leg's own."""
    return {
        "words": round(found.words, 4),
        "phrases": round(found.phrases, 4),
        "meaning": round(found.meaning, 4),
        **{part: round(value, 4) for part in FURTHER if (value := getattr(found, part))},
        "legs": {leg: placed[found.note].as_dict() for leg, placed in legs.items() if found.note in placed},
    }


def formula(weights: Mapping[str, float]) -> str:
    """How the parts become a score, in words."""
    shown = {part: weight for part, weight in weights.items() if weight}
    added = " + ".join(f"{round(weight, 4):g} × {part}" for part, weight in shown.items())
    meant = "; ".join(f"{part}: {PARTS[part]}" for part in shown)
    return f"score = {added}, each divided by the best of its kind. {meant[:1].upper()}{meant[1:]}."


def holding(words: Sequence[str], notes_with: Mapping[str, set[int]], note: int) -> tuple[list[str], list[str]]:
    """The words of the question that a note holds, and those that it lacks."""
    held = [word for word in words if note in notes_with[word]]
    return held, [word for word in words if word not in held]


def single_filters(narrow: Narrow) -> Iterator[tuple[str, str, Narrow]]:
    """Every condition of a filter: what it is called, what it asks for, and the filter with it alone."""
    bare = Narrow()
    if narrow.tags:
        asked = [f"{key}={value}" if value else key for key, value in narrow.tags.items()]
        said = (" and " if narrow.require_all else " or ").join(asked)
        yield "tag", said, replace(bare, tags=narrow.tags, require_all=narrow.require_all)
    for key, value in narrow.all_tags.items():
        yield "tag", f"{key}={value}" if value else key, replace(bare, all_tags={key: value})
    if narrow.type:
        yield "type", narrow.type, replace(bare, type=narrow.type)
    if narrow.prefix:
        yield "path", narrow.prefix, replace(bare, prefix=narrow.prefix)
    if narrow.since:
        yield "since", narrow.since, replace(bare, since=narrow.since)
    if narrow.until:
        yield "until", narrow.until, replace(bare, until=narrow.until)
    if narrow.link_to:
        yield "link_to", narrow.link_to, replace(bare, link_to=narrow.link_to)
    if narrow.linked_by:
        yield "linked_by", narrow.linked_by, replace(bare, linked_by=narrow.linked_by)
    if narrow.author:
        yield "author", narrow.author, replace(bare, author=narrow.author)
    for phrase in narrow.phrases:
        yield "phrase", phrase, replace(bare, phrases=(phrase,))
    if narrow.without_forms:  # which of them are of which word is not told apart
        yield (
            "without",
            " or ".join(narrow.without),
            replace(bare, without=narrow.without, without_forms=narrow.without_forms),
        )
        return
    for word in narrow.without:
        yield "without", word, replace(bare, without=(word,))
