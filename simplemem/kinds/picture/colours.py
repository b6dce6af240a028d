"""Which colour a type has: the most frequent get those that are easiest to tell apart, on white and on black."""

from __future__ import annotations

from typing import Final

from simplemem.kinds.picture.drawing import Drawing

# Mid tones of different lightness as well as hue, so that most people who see few colours can tell the first ones apart.
_PALETTE: Final = (
    "#3b82c4", "#e08a1e", "#3fa35b", "#c94f7c", "#8a63c9", "#b5a12a",
    "#2aa5a0", "#d2543c", "#6f8f3a", "#a36b4f", "#5b6fd6", "#c77fc0",
    "#7a7f2b", "#b0413e", "#4f9bd9", "#9c7fd6",
)  # fmt: skip
OTHER: Final = "#8b95a1"
"""For rarer types than there are colours, and for what is only a name."""


def colours_of(drawing: Drawing) -> dict[str, str]:
    """A colour for every type of node. What has no type is only a name, and grey."""
    named = [kind for kind, _ in drawing.types() if kind]
    colours = {kind: _PALETTE[at] if at < len(_PALETTE) else OTHER for at, kind in enumerate(named)}
    return colours | {"": OTHER}
