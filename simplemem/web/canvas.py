"""Reads a canvas of Obsidian (JSON Canvas 1.0): its cards, and the lines between them.

A canvas may come from anybody, so every value is checked and bounded. `canvas_drawing` draws it.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

_MAX_CARDS: Final = 2_000
_MAX_LINES: Final = 5_000
_MAX_TEXT_CHARACTERS: Final = 2_000  # of a card
_LABEL_CHARACTERS: Final = 60  # of a card's text, where a line names it

# Pixels. A drawing of this extent can still be scrolled in all browsers.
_MAX_COORDINATE: Final = 100_000
_MIN_SIZE: Final = 20
_MAX_SIZE: Final = 10_000
_DEFAULT_WIDTH: Final = 250
_DEFAULT_HEIGHT: Final = 60

_NUMBERED_COLOURS: Final = ("1", "2", "3", "4", "5", "6")
_OWN_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")
_WEB_ADDRESS: Final = ("https://", "http://")

Side = Literal["top", "right", "bottom", "left"]
_SIDES: Final = ("top", "right", "bottom", "left")

ResolveLinks = Callable[[Sequence[tuple[str, str]]], Sequence[str | None]]
"""Returns the paths that links lead to. A link is its target and the path of its file."""


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle on the canvas, in pixels. `x` and `y` are its left upper corner."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        """The x of its right side."""
        return self.x + self.width

    @property
    def bottom(self) -> int:
        """The y of its lower side."""
        return self.y + self.height


@dataclass(frozen=True, slots=True)
class Card:
    """A card of a canvas.

    Attributes:
        id: What lines call the card, or "".
        kind: The type in the file. An unknown one is drawn like `text`.
        text: What the card says: a text, the path of a file, an address, the label of a group.
        box: Where the card is.
        colour: A number from 1 to 6, `#` and six hexadecimal digits, or "".
        path: The file that the card shows, or "".
        address: The page of the web that the card shows, or "".
    """

    id: str
    kind: str
    text: str
    box: Box
    colour: str = ""
    path: str = ""
    address: str = ""

    @property
    def label(self) -> str:
        """A short text that names the card."""
        first_line = self.text.strip().partition("\n")[0]
        return first_line[:_LABEL_CHARACTERS] or "an empty card"


@dataclass(frozen=True, slots=True)
class Line:
    """A line from one card to another.

    Attributes:
        start: The card at which it begins.
        end: The card at which it ends.
        label: The text beside it, or "".
        colour: As that of a card.
        start_side: The side of the card at which it begins, or None if the file does not say.
        end_side: The side at which it ends, or None.
        has_start_arrow: Whether an arrow points at the card at which it begins.
        has_end_arrow: Whether an arrow points at the card at which it ends.
    """

    start: Card
    end: Card
    label: str
    colour: str = ""
    start_side: Side | None = None
    end_side: Side | None = None
    has_start_arrow: bool = False
    has_end_arrow: bool = True


@dataclass(frozen=True, slots=True)
class Canvas:
    """What is on a canvas, from top to bottom.

    `problem` says why it cannot be read, and `is_cut` whether it has more cards or lines than are
    read.
    """

    cards: tuple[Card, ...] = ()
    lines: tuple[Line, ...] = ()
    problem: str = ""
    is_cut: bool = False


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

    nodes = _list_in(content, "nodes")
    edges = _list_in(content, "edges")
    cards = _read_cards(nodes[:_MAX_CARDS], path, resolve_links)
    return Canvas(
        cards=tuple(cards),
        lines=tuple(_read_lines(edges[:_MAX_LINES], cards)),
        is_cut=len(nodes) > _MAX_CARDS or len(edges) > _MAX_LINES,
    )


def _read_cards(nodes: Sequence[object], path: str, resolve_links: ResolveLinks) -> list[Card]:
    """Return the cards of the nodes of a canvas, from top to bottom and from left to right."""
    objects = [node for node in nodes if isinstance(node, dict)]
    files = [_text_in(node, "file") for node in objects]
    resolved_paths = resolve_links([(file, path) for file in files])

    cards = []
    for node, resolved_path in zip(objects, resolved_paths, strict=True):
        cards.append(_card_of(node, resolved_path or ""))
    return sorted(cards, key=lambda card: (card.box.y, card.box.x))


def _card_of(node: Mapping[str, Any], path: str) -> Card:
    """Return the card of a node. `path` is the file that it names, if that is visible."""
    kind = _text_in(node, "type") or "text"
    address = ""
    if kind == "file":
        text = _text_in(node, "file") + _text_in(node, "subpath")
    elif kind == "link":
        text = _text_in(node, "url")
        address = text if text.startswith(_WEB_ADDRESS) else ""
    elif kind == "group":
        text = _text_in(node, "label")
    else:
        text = _text_in(node, "text")

    return Card(
        id=_text_in(node, "id"),
        kind=kind,
        text=text,
        box=_box_of(node),
        colour=_colour_in(node),
        path=path if kind == "file" else "",
        address=address,
    )


def _box_of(node: Mapping[str, Any]) -> Box:
    """Return where a node is, within the bounds of a drawing."""
    return Box(
        x=_number_in(node, "x", 0, -_MAX_COORDINATE, _MAX_COORDINATE),
        y=_number_in(node, "y", 0, -_MAX_COORDINATE, _MAX_COORDINATE),
        width=_number_in(node, "width", _DEFAULT_WIDTH, _MIN_SIZE, _MAX_SIZE),
        height=_number_in(node, "height", _DEFAULT_HEIGHT, _MIN_SIZE, _MAX_SIZE),
    )


def _read_lines(edges: Sequence[object], cards: Sequence[Card]) -> Iterator[Line]:
    """Yield the lines between cards that exist."""
    cards_by_id = {card.id: card for card in cards if card.id}
    for edge in edges:
        if not isinstance(edge, dict):
            continue
        start = cards_by_id.get(_text_in(edge, "fromNode"))
        end = cards_by_id.get(_text_in(edge, "toNode"))
        if start is not None and end is not None:
            yield _line_of(edge, start, end)


def _line_of(edge: Mapping[str, Any], start: Card, end: Card) -> Line:
    """Return the line of an edge between two cards."""
    return Line(
        start=start,
        end=end,
        label=_text_in(edge, "label"),
        colour=_colour_in(edge),
        start_side=_side_in(edge, "fromSide"),
        end_side=_side_in(edge, "toSide"),
        has_start_arrow=edge.get("fromEnd") == "arrow",
        has_end_arrow=edge.get("toEnd") != "none",
    )


def _list_in(content: Mapping[str, Any], key: str) -> list[object]:
    """Return a list; [] if it is missing or no list."""
    value = content.get(key)
    return value if isinstance(value, list) else []


def _text_in(values: Mapping[str, Any], key: str) -> str:
    """Return a text, cut to 2,000 characters; "" if it is missing or no text."""
    value = values.get(key)
    return value[:_MAX_TEXT_CHARACTERS] if isinstance(value, str) else ""


def _colour_in(values: Mapping[str, Any]) -> str:
    """Return a colour: a number from 1 to 6, `#` and six digits, or "" for anything else."""
    colour = _text_in(values, "color")
    if colour in _NUMBERED_COLOURS or _OWN_COLOUR.fullmatch(colour):
        return colour
    return ""


def _side_in(values: Mapping[str, Any], key: str) -> Side | None:
    """Return a side of a card, or None if it is missing or unknown."""
    value = _text_in(values, key)
    return cast("Side", value) if value in _SIDES else None


def _number_in(values: Mapping[str, Any], key: str, default: int, least: int, most: int) -> int:
    """Return a number between two bounds; the default if it is missing or no number."""
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return default
    if isinstance(value, float) and math.isnan(value):
        return default
    return round(min(max(value, least), most))  # the bounds first: infinity has no integer
