"""The part of a note that is shown with a hit. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from simplemem.index.text import Place


def passage_around(passages: Sequence[Place], place: Place | None) -> Place | None:
    """The passage a block stands in, or the passage itself."""
    if place is None:
        return passages[0] if passages else None
    for passage in passages:
        if passage.start <= place.start < passage.stop:
            return passage
    return place


_SPACE = re.compile(r"\s+")


def snippet(text: str, passage: Place, place: Place | None, limit: int) -> str:
    """The passage in one line of at most `limit` characters, beginning near the place that was found."""
    if passage.stop - passage.start <= limit:
        return squeezed(text[passage.start : passage.stop])
    before = "… "
    start = passage.start if place is None else max(passage.start, min(place.start, passage.stop - limit + len(before)))
    if start > passage.start and not text[start - 1].isspace() and (space := text.find(" ", start, start + 30)) > 0:
        start = space + 1
    before = before if start > passage.start else ""
    shown = squeezed(text[start : min(passage.stop, start + 2 * limit)])
    if len(shown) + len(before) > limit:
        cut = shown.rfind(" ", limit // 2, limit - len(before) - 1)
        shown = shown[: cut if cut > 0 else limit - len(before) - 1] + "…"
    return before + shown


def squeezed(text: str) -> str:
    """Runs of space and line ends as one space."""
    return _SPACE.sub(" ", text).strip()
