"""Reads a canvas of Obsidian (JSON Canvas 1.0): its cards, and the lines between them.

The file calls them nodes and edges. It may come from anybody, so every value is checked and
bounded. `canvas_drawing` draws the canvas.
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
_MAX_TEXT_CHARACTERS: Final = 2_000  # of each text in the file
_MAX_LABEL_CHARACTERS: Final = 60  # of a card's text, where the list of lines names the card

# Pixels. A drawing of this extent can still be scrolled in all browsers.
_MAX_COORDINATE: Final = 100_000
_MIN_SIZE: Final = 20
_MAX_SIZE: Final = 10_000
_DEFAULT_WIDTH: Final = 250
_DEFAULT_HEIGHT: Final = 60

_NUMBERED_COLOURS: Final = ("1", "2", "3", "4", "5", "6")
_HEXADECIMAL_COLOUR: Final = re.compile(r"#[0-9a-fA-F]{6}")
_WEB_SCHEMES: Final = ("https://", "http://")

Side = Literal["top", "right", "bottom", "left"]
_SIDES: Final = ("top", "right", "bottom", "left")

ResolveLinks = Callable[[Sequence[tuple[str, str]]], Sequence[str | None]]
"""Returns the path that each link leads to, or None if there is no such file or it is hidden.

Each link is a pair: its target, and the path of the file that contains the link.
"""


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
        id: The name by which lines refer to the card, or "".
        kind: `text`, `file`, `link`, `group`, or an unknown type, which is drawn like `text`.
        text: The text, the path of the file, the address, or the label of the group.
        box: Where the card is.
        colour: A number from 1 to 6, `#` and six hexadecimal digits, or "".
        path: The path of the file that a card of the kind `file` shows; "" if it is not visible.
        address: The address that a card of the kind `link` leads to; "" if it is not of the web.
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
        """A short text that names the card: the beginning of its first line."""
        first_line = self.text.strip().partition("\n")[0]
        return first_line[:_MAX_LABEL_CHARACTERS] or "an empty card"


@dataclass(frozen=True, slots=True)
class Line:
    """A line from one card to another.

    Attributes:
        start: The card at which it begins.
        end: The card at which it ends.
        label: The text beside it, or "".
        colour: In the form of `Card.colour`.
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
    """What is on a canvas.

    Attributes:
        cards: The cards, from top to bottom and from left to right.
        lines: The lines between these cards, in the order of the file.
        problem: Why the file cannot be read, or "".
        is_cut: Whether the file has more cards or lines than are read.
    """

    cards: tuple[Card, ...] = ()
    lines: tuple[Line, ...] = ()
    problem: str = ""
    is_cut: bool = False


def read_canvas(data: bytes, path: str, resolve_links: ResolveLinks) -> Canvas:
    """Return what is on a canvas. `data` is the content of its file, and `path` its path.

    For any data that is not a canvas, the result has a `problem`. At most 2,000 cards and 5,000
    lines are read.
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
    valid_nodes = [node for node in nodes if isinstance(node, dict)]
    links = [(_text_in(node, "file"), path) for node in valid_nodes]
    file_paths = resolve_links(links)

    cards = []
    for node, file_path in zip(valid_nodes, file_paths, strict=True):
        cards.append(_card_of(node, file_path or ""))
    return sorted(cards, key=lambda card: (card.box.y, card.box.x))


def _card_of(node: Mapping[str, Any], file_path: str) -> Card:
    """Return the card of a node. `file_path` is that of the file it names; "" if not visible."""
    kind = _text_in(node, "type") or "text"
    text = _card_text(node, kind)

    path = ""
    if kind == "file":
        path = file_path

    address = ""
    if kind == "link" and text.startswith(_WEB_SCHEMES):
        address = text

    return Card(
        id=_text_in(node, "id"),
        kind=kind,
        text=text,
        box=_box_of(node),
        colour=_colour_in(node),
        path=path,
        address=address,
    )


def _card_text(node: Mapping[str, Any], kind: str) -> str:
    """Return the text of a card. Each kind of node has it in a field of its own."""
    if kind == "file":
        return _text_in(node, "file") + _text_in(node, "subpath")
    if kind == "link":
        return _text_in(node, "url")
    if kind == "group":
        return _text_in(node, "label")
    return _text_in(node, "text")


def _box_of(node: Mapping[str, Any]) -> Box:
    """Return where a node is, within the bounds of a drawing."""
    return Box(
        x=_number_in(node, "x", 0, -_MAX_COORDINATE, _MAX_COORDINATE),
        y=_number_in(node, "y", 0, -_MAX_COORDINATE, _MAX_COORDINATE),
        width=_number_in(node, "width", _DEFAULT_WIDTH, _MIN_SIZE, _MAX_SIZE),
        height=_number_in(node, "height", _DEFAULT_HEIGHT, _MIN_SIZE, _MAX_SIZE),
    )


def _read_lines(edges: Sequence[object], cards: Sequence[Card]) -> Iterator[Line]:
    """Yield the lines of the edges of a canvas whose two cards exist."""
    cards_by_id = {card.id: card for card in cards if card.id}
    for edge in edges:
        if not isinstance(edge, dict):
            continue

        start = cards_by_id.get(_text_in(edge, "fromNode"))
        end = cards_by_id.get(_text_in(edge, "toNode"))

        if start is not None and end is not None:
            yield _line_of(edge, start, end)


def _line_of(edge: Mapping[str, Any], start: Card, end: Card) -> Line:
    """Return the line of an edge. Unless the edge says otherwise, only its end has an arrow."""
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
    if colour in _NUMBERED_COLOURS or _HEXADECIMAL_COLOUR.fullmatch(colour):
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
    # Only a float may be tested: a large integer raises OverflowError.
    if isinstance(value, float) and math.isnan(value):
        return default

    # The bounds come before the rounding, because infinity cannot be rounded.
    bounded = min(max(value, least), most)
    return round(bounded)
