"""A drawing as one SVG: every node with its name as a tooltip, names beside those that most leads to, and a legend."""

from __future__ import annotations

import math
from html import escape
from typing import Final

from simplemem.kinds.picture.colours import colours_of
from simplemem.kinds.picture.drawing import MISSING, Drawing
from simplemem.kinds.picture.layout import places_of
from simplemem.kinds.picture.plain import on_one_line

_MARGIN: Final = 60.0
_MOST_NAMES: Final = 250
_LEGEND_LINES: Final = 14
_STYLE: Final = """
  .l { stroke: #8b95a1; stroke-opacity: .45; stroke-width: 1; fill: none }
  .r { stroke: #8b95a1; stroke-opacity: .9; stroke-width: 1.3; fill: none; marker-end: url(#to) }
  .m { fill: none; stroke: #8b95a1; stroke-dasharray: 3 2 }
  text { font: 11px system-ui, sans-serif; fill: #2a3036; paint-order: stroke; stroke: #fff; stroke-width: 3px }
  .e { font-size: 8px; fill: #5b6570; text-anchor: middle }
"""


def svg(drawing: Drawing) -> str:
    """The picture as a file that any browser and most editors of drawings open. It fetches and runs nothing."""
    places, colours, degrees = places_of(drawing), colours_of(drawing), drawing.degrees()
    radii = [radius_of(degree) for degree in degrees]
    left = min((x for x, _ in places), default=0.0) - _MARGIN
    top = min((y for _, y in places), default=0.0) - _MARGIN
    right = max((x for x, _ in places), default=0.0) + _MARGIN * 2.5  # names stand to the right
    bottom = max((y for _, y in places), default=0.0) + _MARGIN
    types = drawing.types()[:_LEGEND_LINES]
    legend = 16.0 * len(types) + 12
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:.1f} {top:.1f} {right - left:.1f} '
        f'{bottom - top + legend:.1f}" role="img">',
        f"<title>{_shown(drawing.title)}</title>",
        f"<style>{_STYLE}</style>",
        '<defs><marker id="to" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#8b95a1"/></marker></defs>',
        f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{bottom - top + legend:.1f}" fill="#fff"/>',
    ]
    few = len(drawing.nodes) <= _MOST_NAMES
    for edge in drawing.edges:
        (x1, y1), (x2, y2) = places[edge.source], places[edge.target]
        length = max(((x2 - x1) ** 2 + (y2 - y1) ** 2) ** 0.5, 0.1)
        cut = (radii[edge.target] + 2) / length if length > radii[edge.target] + 2 else 0.0
        ex, ey = x2 - (x2 - x1) * cut, y2 - (y2 - y1) * cut
        kind = "l" if edge.is_link else "r"
        lines.append(f'<path class="{kind}" d="M{x1:.1f} {y1:.1f} {ex:.1f} {ey:.1f}"/>')
        if few and not edge.is_link:
            lines.append(
                f'<text class="e" x="{(x1 + x2) / 2:.1f}" y="{(y1 + y2) / 2:.1f}">{_shown(edge.type, 30)}</text>'
            )
    for node, (x, y), radius in zip(drawing.nodes, places, radii, strict=True):
        look = 'class="m"' if node.kind == MISSING else f'fill="{colours[node.type]}"'
        said = f"{node.label} ({node.type})" if node.type else node.label
        lines.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}" {look}><title>{_shown(said)}</title></circle>'
        )
    for at in sorted(range(len(degrees)), key=lambda at: (-degrees[at], at))[:_MOST_NAMES]:
        (x, y), label = places[at], _shown(drawing.nodes[at].label, 40)
        lines.append(f'<text x="{x + radii[at] + 3:.1f}" y="{y + 4:.1f}">{label}</text>')
    for row, (kind, count) in enumerate(types):
        y = bottom + 16.0 * row
        lines.append(f'<circle cx="{left + 16:.1f}" cy="{y:.1f}" r="5" fill="{colours[kind]}"/>')
        lines.append(
            f'<text x="{left + 26:.1f}" y="{y + 4:.1f}">{_shown(kind or "not written yet", 40)} · {count}</text>'
        )
    return "\n".join([*lines, "</svg>", ""])


def radius_of(degree: int) -> float:
    """How large a node is drawn: by what leads to it and from it, within bounds."""
    return round(min(4.0 + 1.6 * math.sqrt(degree), 22.0), 1)


def _shown(text: str, most: int = 300) -> str:
    """A text in XML, on one line: what XML cannot hold is shown as what it is, unreadable."""
    line = on_one_line(text)
    return escape(line if len(line) <= most else line[: most - 1] + "…")
