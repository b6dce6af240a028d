"""Turns a canvas into a drawing: the numbers that its SVG needs.

The template `canvas.html` writes the SVG. The drawing has the coordinates of the canvas, so only
lines, arrowheads and labels are computed here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from simplemem.web.canvas import Box, Canvas, Card, Line, Side

# Pixels.
_MARGIN: Final = 40  # around the cards
_LABEL_HEIGHT: Final = 30  # of a group, above its box
_ARROW_LENGTH: Final = 12
_ARROW_HALF_WIDTH: Final = 6
# How far the handles of a curve are from its ends.
_MIN_HANDLE_DISTANCE: Final = 30
_MAX_HANDLE_DISTANCE: Final = 200
_MAX_LABEL_CHARACTERS: Final = 120  # beside a line

# The x and y of one step away from a card, for each of its sides. SVG counts y downwards.
_DIRECTIONS: Final[dict[Side, tuple[int, int]]] = {
    "top": (0, -1),
    "right": (1, 0),
    "bottom": (0, 1),
    "left": (-1, 0),
}


@dataclass(frozen=True, slots=True)
class Point:
    """A place on the canvas, in pixels."""

    x: int
    y: int

    def moved(self, side: Side, distance: int) -> Point:
        """Return the point that is `distance` to the top, right, bottom or left of this one."""
        step_x, step_y = _DIRECTIONS[side]
        return Point(self.x + step_x * distance, self.y + step_y * distance)

    def __str__(self) -> str:
        """Return the point as the data of an SVG path has it."""
        return f"{self.x} {self.y}"


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line in a drawing.

    Attributes:
        path: The curve, as the data of an SVG path.
        arrowheads: The triangles at its ends, as the data of one SVG path; "" for none.
        label: The text beside it, or "".
        label_place: The middle of the curve.
        colour: In the form of `Card.colour`.
    """

    path: str
    arrowheads: str
    label: str
    label_place: Point
    colour: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """A canvas as it is drawn: groups first, then lines, then all other cards.

    `area` is the part of the canvas that has something on it.
    """

    area: Box
    groups: tuple[Card, ...]
    lines: tuple[DrawnLine, ...]
    cards: tuple[Card, ...]


def draw_canvas(canvas: Canvas) -> Drawing | None:
    """Return the drawing of a canvas, or None if it has no cards."""
    if not canvas.cards:
        return None

    return Drawing(
        area=_area_around([card.box for card in canvas.cards]),
        groups=tuple(card for card in canvas.cards if card.kind == "group"),
        lines=tuple(_draw_line(line) for line in canvas.lines),
        cards=tuple(card for card in canvas.cards if card.kind != "group"),
    )


def _area_around(boxes: Sequence[Box]) -> Box:
    """Return the rectangle around some boxes, with a margin and space for labels of groups."""
    left = min(box.x for box in boxes) - _MARGIN
    top = min(box.y for box in boxes) - _MARGIN - _LABEL_HEIGHT
    right = max(box.right for box in boxes) + _MARGIN
    bottom = max(box.bottom for box in boxes) + _MARGIN
    return Box(left, top, width=right - left, height=bottom - top)


def _draw_line(line: Line) -> DrawnLine:
    """Return the curve of a line. It leaves and meets its cards at right angles."""
    start_side = line.start_side or _side_towards(line.start.box, line.end.box)
    end_side = line.end_side or _side_towards(line.end.box, line.start.box)
    start = _middle_of_side(line.start.box, start_side)
    end = _middle_of_side(line.end.box, end_side)

    handle_distance = _handle_distance(start, end)
    start_handle = start.moved(start_side, handle_distance)
    end_handle = end.moved(end_side, handle_distance)

    arrowheads = ""
    if line.has_start_arrow:
        arrowheads += _arrowhead(start, start_side)
    if line.has_end_arrow:
        arrowheads += _arrowhead(end, end_side)

    return DrawnLine(
        path=f"M{start}C{start_handle} {end_handle} {end}",
        arrowheads=arrowheads,
        label=line.label[:_MAX_LABEL_CHARACTERS],
        label_place=_middle_of_curve(start, start_handle, end_handle, end),
        colour=line.colour,
    )


def _side_towards(box: Box, other: Box) -> Side:
    """Return the side of a box that faces the centre of another box."""
    # Left plus right is twice the centre. Only signs and ratios count, so nothing is halved.
    distance_x = (other.x + other.right) - (box.x + box.right)
    distance_y = (other.y + other.bottom) - (box.y + box.bottom)

    if abs(distance_x) > abs(distance_y):
        return "right" if distance_x > 0 else "left"
    return "bottom" if distance_y > 0 else "top"


def _middle_of_side(box: Box, side: Side) -> Point:
    """Return the point at which a line meets a side of a card."""
    middle_x = box.x + box.width // 2
    middle_y = box.y + box.height // 2
    points: dict[Side, Point] = {
        "top": Point(middle_x, box.y),
        "right": Point(box.right, middle_y),
        "bottom": Point(middle_x, box.bottom),
        "left": Point(box.x, middle_y),
    }
    return points[side]


def _handle_distance(start: Point, end: Point) -> int:
    """Return how far the handles of a curve are from its ends: half its extent, within bounds."""
    extent = max(abs(start.x - end.x), abs(start.y - end.y))
    return min(max(extent // 2, _MIN_HANDLE_DISTANCE), _MAX_HANDLE_DISTANCE)


def _middle_of_curve(start: Point, start_handle: Point, end_handle: Point, end: Point) -> Point:
    """Return the point of a cubic Bézier curve at the parameter 1/2."""
    x = (start.x + 3 * start_handle.x + 3 * end_handle.x + end.x) // 8
    y = (start.y + 3 * start_handle.y + 3 * end_handle.y + end.y) // 8
    return Point(x, y)


def _arrowhead(tip: Point, side: Side) -> str:
    """Return a triangle that points at a side of a card, as the data of an SVG path."""
    base_middle = tip.moved(side, _ARROW_LENGTH)
    is_upright = side in ("top", "bottom")
    base_direction: Side = "right" if is_upright else "bottom"
    base_start = base_middle.moved(base_direction, _ARROW_HALF_WIDTH)
    base_end = base_middle.moved(base_direction, -_ARROW_HALF_WIDTH)
    return f"M{tip}L{base_start} {base_end}Z"
