"""The forms of a picture, by their names: each makes a text of a drawing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from simplemem.kinds.picture.data import cytoscape, dot, node_link
from simplemem.kinds.picture.drawing import Drawing
from simplemem.kinds.picture.page import html
from simplemem.kinds.picture.svg import svg

PICTURES: Final[dict[str, Callable[[Drawing], str]]] = {
    "html": html,
    "svg": svg,
    "dot": dot,
    "json": node_link,
    "cytoscape": cytoscape,
}
WITH_TEXTS: Final = frozenset({"html", "json", "cytoscape"})
"""Those that hold what notes say; the others show names."""
