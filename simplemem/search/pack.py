"""A context pack: the best passages for a question, cited, within a budget of tokens. Pure and deterministic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from simplemem.note.body import count_lines
from simplemem.note.passages import sentences
from simplemem.note.words import count_tokens
from simplemem.search.voices import Piece, Voice, voices

_MOST_CITED = 6  # places named beside one
_MOST_CHARACTERS = 10  # of the passages that are looked at, to a token of the budget
_LEAST_PIECES = 12  # looked at, however small the budget
_BETWEEN = "\n\n"

_WORD = re.compile(r"\S+")
_MARK = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:\[.\][ \t]+)?")

Count = Callable[[str], int]


@dataclass(frozen=True, slots=True)
class Packed:
    """What went in; how many passages there was no room for; how many were taken up into others; and which they were."""

    text: str
    tokens: int
    items: tuple[dict[str, Any], ...]
    left_out: int
    duplicates: int
    omitted: tuple[dict[str, Any], ...]


def pack(pieces: Iterable[Piece], budget: int, count: Count = count_tokens) -> Packed:
    """Take passages in order while they fit, each saying what no other has said. One that does not fit is left out, and a
    smaller one after it may still go; the best of all is cut after a sentence rather than left out."""
    considered, beyond = _enough(pieces, budget)
    speaking, taken_up = voices(considered)
    duplicates = [
        {"name": piece.name, "line": piece.line, "why": "duplicate", "of": of.cited} for piece, of in taken_up
    ]
    taken: list[tuple[Voice, str]] = []
    no_room = [_omitted(piece, "budget") for piece in beyond]
    used = 0
    for voice in speaking:
        piece = _without_overlap(voice.piece, [each.piece for each, _ in taken])
        if piece is None:
            duplicates.append(_omitted(voice.piece, "duplicate"))
            continue
        voice.piece = piece
        section = _section(voice)
        cost = count(_BETWEEN + section)
        if used + cost > budget and voice is speaking[0] and (short := _shortened(voice, budget, count)) is not None:
            voice, section = short
            cost = count(_BETWEEN + section)
        elif used + cost > budget:
            no_room.append(_omitted(piece, "budget"))
            continue
        used += cost
        taken.append((voice, section))
    while taken and count(_joined(taken)) > budget:  # a tokenizer may count a whole otherwise than its parts
        no_room.append(_omitted(taken.pop()[0].piece, "budget"))
    text = _joined(taken)
    items = tuple(_item(voice, count(section)) for voice, section in taken)
    return Packed(text, count(text), items, len(no_room), len(duplicates), (*no_room, *duplicates))


def _enough(pieces: Iterable[Piece], budget: int) -> tuple[list[Piece], list[Piece]]:
    """The passages that are looked at, several times what could go in, and the others."""
    considered: list[Piece] = []
    beyond: list[Piece] = []
    characters = 0
    for piece in pieces:
        if piece.text.strip():
            is_near = len(considered) < _LEAST_PIECES or characters <= _MOST_CHARACTERS * budget
            (considered if is_near else beyond).append(piece)
            characters += len(piece.text)
    return considered, beyond


def _joined(taken: Sequence[tuple[Voice, str]]) -> str:
    return _BETWEEN.join(section for _, section in taken)


def _omitted(piece: Piece, why: str) -> dict[str, Any]:
    return {"name": piece.name, "line": piece.line, "why": why}


def _item(voice: Voice, tokens: int) -> dict[str, Any]:
    piece = voice.piece
    told = {
        "name": piece.name,
        "title": piece.title,
        "heading": piece.heading,
        "line": piece.line,
        "modified": piece.modified,
        "score": round(piece.score, 4),
        "tokens": tokens,
    }
    more = {
        "via": piece.via,
        "also": voice.also,
        "nearly": voice.nearly,
        "said": [{"label": s.label, "text": s.text, "cited": s.cited, "when": s.when} for s in voice.said],
    }
    return told | {key: value for key, value in more.items() if value}


def _section(voice: Voice) -> str:
    piece = voice.piece
    heading = (
        piece.heading.removeprefix(piece.title).removeprefix(" > ") if _begins_with_title(piece) else piece.heading
    )
    where = f" › {heading}" if heading else ""
    beside = [
        piece.via,
        _cited("also in", voice.also),
        _cited("nearly the same in", voice.nearly),
    ]
    head = " · ".join([f"[{piece.cited}] {piece.when}", *(each for each in beside if each)])
    lines = [f'{said.label}: "{said.text}" [{said.cited}] {said.when}' for said in voice.said]
    lines += [f"({voice.more} more that differ)"] if voice.more else []
    beneath = "\n\n" + "\n".join(lines) if lines else ""
    return f"### {piece.title}{where}\n{head}\n\n{_shown(piece.text)}{beneath}"


def _begins_with_title(piece: Piece) -> bool:
    """Whether the outermost heading is the title again."""
    return piece.heading == piece.title or piece.heading.startswith(f"{piece.title} > ")


def _cited(how: str, places: Sequence[str]) -> str:
    more = f" and {len(places) - _MOST_CITED} more" if len(places) > _MOST_CITED else ""
    return f"{how} {', '.join(f'[{place}]' for place in places[:_MOST_CITED])}{more}" if places else ""


def _shown(text: str) -> str:
    return text.replace("\r\n", "\n").strip()


def _without_overlap(piece: Piece, taken: Sequence[Piece]) -> Piece | None:
    """A passage without what a neighbouring one of its note has said; None when nothing is left. Passages overlap a
    little, so that an answer on a border is whole in one of them."""
    start, stop = piece.start, piece.start + len(piece.text)
    for other in taken:
        if other.name != piece.name:
            continue
        first, last = other.start, other.start + len(other.text)
        if first <= start < last:
            start = min(last, stop)
        elif first < stop <= last:
            stop = max(first, start)
    return _part(piece, start - piece.start, stop - piece.start)


def _part(piece: Piece, start: int, stop: int) -> Piece | None:
    """A stretch of a passage under its own line; None when it is blank."""
    kept = piece.text[start:stop]
    start += len(kept) - len(kept.lstrip())
    kept = kept.strip()
    if not kept:
        return None
    line = piece.line + count_lines(piece.text, 0, start)
    return replace(piece, text=kept, line=line, start=piece.start + start, at=max(0, piece.at - start))


def _shortened(voice: Voice, budget: int, count: Count) -> tuple[Voice, str] | None:
    """As many whole sentences of a passage as fit, from the place that was found; as many words where not one does. When
    all that follows fits, as many as fit of those before it too."""
    piece = voice.piece
    said = sentences(piece.text)
    ends = [stop for start, stop in said if start >= piece.at]
    last = ends[-1] if ends else -1
    ends = [found.end() for found in _WORD.finditer(piece.text, piece.at, ends[0] if ends else len(piece.text))] + ends
    for end in reversed(ends):
        if (short := _cut_to(piece, piece.at, end, budget, count)) is None:
            continue
        earlier = [_line_or(piece.text, start) for start, _ in said if start < piece.at]
        for start in reversed(earlier) if end == last else ():
            if (longer := _cut_to(piece, start, end, budget, count)) is None:
                break
            short = longer
        return short
    return None


def _cut_to(piece: Piece, start: int, stop: int, budget: int, count: Count) -> tuple[Voice, str] | None:
    """A stretch of a passage with its section, if it fits. A sign stands where something was cut off, behind or else
    before it."""
    part = _part(piece, start, stop)
    if part is None:
        return None
    before = "…\n" if piece.text[:start].strip() else ""
    short = Voice(replace(part, text=f"{part.text} …" if piece.text[stop:].strip() else f"{before}{part.text}"))
    section = _section(short)
    return (short, section) if count(section) <= budget else None


def _line_or(text: str, start: int) -> int:
    """Where the line of a sentence begins, if nothing but the mark of a list item stands before it there."""
    line = text.rfind("\n", 0, start) + 1
    return line if _MARK.fullmatch(text, line, start) else start
