"""Reads a canvas of Obsidian (JSON Canvas 1.0): its cards, and the lines between them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

_MAX_CARDS: Final = 2_000
_MAX_LINES: Final = 5_000
_MAX_TEXT_CHARACTERS: Final = 2_000  # of a card
_LABEL_CHARACTERS: Final = 60  # of a card's text, where a line names it

ResolveLinks = Callable[[Sequence[tuple[str, str]]], Sequence[str | None]]
"""Returns the paths that links lead to. A link is its target and the path of its file."""


@dataclass(frozen=True, slots=True)
class Card:
    """A card. `path` is the file that it shows, `address` the page of the web; "" for none."""

    id: str
    kind: str
    text: str
    path: str = ""
    address: str = ""

    @property
    def label(self) -> str:
        """A short text that names the card."""
        first_line = self.text.strip().partition("\n")[0]
        return first_line[:_LABEL_CHARACTERS] or "an empty card"


@dataclass(frozen=True, slots=True)
class Line:
    """A line from one card to another, with its label; "" for none."""

    start: Card
    end: Card
    label: str


@dataclass(frozen=True, slots=True)
class Canvas:
    """What is on a canvas, from top to bottom.

    `problem` says why it cannot be read; "" if it can.
    """

    cards: tuple[Card, ...] = ()
    lines: tuple[Line, ...] = ()
    problem: str = ""


def read_canvas(data: bytes, path: str, resolve_links: ResolveLinks) -> Canvas:
    """Return what is on a canvas. Files that cannot be seen have no path. Never raises.

    `path` is that of the canvas. At most 2,000 cards and 5,000 lines are read.
    """
    try:
        content = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError):
        return Canvas(problem="The file is not a canvas: it is not valid JSON.")
    if not isinstance(content, dict):
        return Canvas(problem="The file is not a canvas: it has no list of nodes.")

    nodes = sorted(_objects_in(content.get("nodes"), _MAX_CARDS), key=_place_of)
    files = [(_text_in(node, "file"), path) for node in nodes]
    paths = resolve_links(files)
    cards = {}
    for node, (file, _), file_path in zip(nodes, files, paths, strict=True):
        card = _card_of(node, file, file_path or "")
        cards[card.id] = card
    return Canvas(tuple(cards.values()), tuple(_lines_of(content, cards)))


def _card_of(node: dict[str, Any], file: str, path: str) -> Card:
    """Return the card of a node. `path` is the file that it shows, if that is visible."""
    kind = _text_in(node, "type") or "text"
    address = _text_in(node, "url") if kind == "link" else ""
    text = {
        "file": file + _text_in(node, "subpath"),
        "link": address,
        "group": _text_in(node, "label"),
    }.get(kind, _text_in(node, "text"))
    if not address.startswith(("https://", "http://")):
        address = ""
    return Card(_text_in(node, "id"), kind, text, path if kind == "file" else "", address)


def _lines_of(content: dict[str, Any], cards: dict[str, Card]) -> Iterator[Line]:
    """Yield the lines between cards that exist."""
    for edge in _objects_in(content.get("edges"), _MAX_LINES):
        start = cards.get(_text_in(edge, "fromNode"))
        end = cards.get(_text_in(edge, "toNode"))
        if start is not None and end is not None:
            yield Line(start, end, _text_in(edge, "label"))


def _objects_in(value: object, limit: int) -> list[dict[str, Any]]:
    """Return the objects among the first items of a list; [] if the value is no list."""
    if not isinstance(value, list):
        return []
    return [item for item in value[:limit] if isinstance(item, dict)]


def _text_in(values: dict[str, Any], key: str) -> str:
    """Return a text, cut to 2,000 characters; "" if it is missing or no text."""
    value = values.get(key)
    return value[:_MAX_TEXT_CHARACTERS] if isinstance(value, str) else ""


def _place_of(node: dict[str, Any]) -> tuple[float, float]:
    """Return the key by which nodes are sorted: from top to bottom, and from left to right."""
    return _number_in(node, "y"), _number_in(node, "x")


def _number_in(values: dict[str, Any], key: str) -> float:
    """Return a number; 0 if it is missing or no number."""
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return 0.0
    is_nan = value != value
    return 0.0 if is_nan else float(value)
