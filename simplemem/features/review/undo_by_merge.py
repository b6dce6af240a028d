"""Takes a change out of a note and keeps what was changed in the note since. Pure."""

from __future__ import annotations

import re
from typing import Final

from simplemem.features.review.inbox import NoteTexts
from simplemem.note.header import content_start, read_header
from simplemem.note.merge import merge

_MODIFIED: Final = re.compile(r"^modified:.*$", re.MULTILINE)


def text_without_change(texts: NoteTexts, current: str) -> str | None:
    """Return the current text of a note without what a change did; None if later changes overlap.

    `texts` are those before and after the change. The property that says when the note was modified
    stays as it is.
    """
    before = _with_stamp_of(current, texts.old)
    after = _with_stamp_of(current, texts.new)
    merged = merge(after, current, before)
    return merged.text if merged.is_clean else None


def _with_stamp_of(current: str, text: str) -> str:
    """Return a text with the property `modified` of another one, if both have it."""
    stamp = _MODIFIED.search(_header_of(current))
    header = _header_of(text)
    if stamp is None:
        return text
    new_header = _MODIFIED.sub(lambda _: stamp[0], header, count=1)
    return new_header + text[len(header) :]


def _header_of(text: str) -> str:
    """Return the frontmatter of a note, with the blank lines below it."""
    return text[: content_start(text, read_header(text))]
