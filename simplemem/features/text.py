"""Checks of texts that clients send."""

from __future__ import annotations

import re

from simplemem.errors import Invalid, TooLong
from simplemem.note.words import well_formed


def clean_text(text: str, what: str, max_characters: int, hint: str) -> str:
    """Return a client's text with `\\n` as the only line ending.

    `what` names the text in messages of errors. Raises Invalid if the text contains NUL or a lone
    surrogate, which a note cannot contain, and TooLong with this `hint` if it is longer than
    `max_characters`.
    """
    clean = re.sub(r"\r\n?", "\n", text)
    if "\0" in clean or clean != well_formed(clean):
        raise Invalid(
            f"the {what} contains a character that a note cannot contain",
            hint="Leave out NUL and lone surrogates.",
        )
    if len(clean) > max_characters:
        raise TooLong(
            f"the {what} has {len(clean):,} characters; the limit is {max_characters:,}",
            hint=hint,
        )
    return clean
