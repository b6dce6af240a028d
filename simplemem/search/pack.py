"""A context pack: the best passages for a question, cited, within a budget of tokens. Pure and deterministic."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from simplemem.note.words import count_tokens


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage that could go into a pack."""

    name: str
    title: str
    heading: str
    line: int
    modified: str
    text: str
    score: float


@dataclass(frozen=True, slots=True)
class Packed:
    """What went in, and how many pieces there was no room for."""

    text: str
    tokens: int
    items: tuple[dict[str, Any], ...]
    left_out: int


def pack(pieces: Iterable[Piece], budget: int) -> Packed:
    """Take pieces in order while they fit. One that does not fit is left out, and a smaller one after it may still go."""
    sections: list[str] = []
    items: list[dict[str, Any]] = []
    seen: set[str] = set()
    left_out = 0
    for piece in pieces:
        key = " ".join(piece.text.casefold().split())
        if not key or key in seen:
            continue
        seen.add(key)
        section = _section(piece)
        if count_tokens("\n\n".join([*sections, section])) > budget:
            left_out += 1
            continue
        sections.append(section)
        items.append({
            "name": piece.name,
            "title": piece.title,
            "heading": piece.heading,
            "line": piece.line,
            "modified": piece.modified,
            "score": round(piece.score, 4),
            "tokens": count_tokens(section),
        })  # fmt: skip
    text = "\n\n".join(sections)
    return Packed(text, count_tokens(text), tuple(items), left_out)


def _section(piece: Piece) -> str:
    where = f" › {piece.heading}" if piece.heading else ""
    return f"### {piece.title}{where}\n[{piece.name}:{piece.line}] {piece.modified[:10]}\n\n{piece.text.strip()}"
