"""Format numbers and texts for messages, and repair texts that cannot be encoded. Pure."""

from __future__ import annotations


def counted(number: int, thing: str, things: str = "") -> str:
    """Return a number with its noun: `1 note`, `1,200 notes`.

    `things` is the plural, if it is not formed by adding an s: `2 entities`.
    """
    if number == 1:
        return f"1 {thing}"
    plural = things or f"{thing}s"
    return f"{number:,} {plural}"


def shortened(text: str, most: int) -> str:
    """Return a text on one line, cut at a word with `…` if it has more than `most` characters."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    whole_words = line[:most].rsplit(" ", 1)[0]
    return f"{whole_words}…"


def well_formed(text: str) -> str:
    """Return a text that can be encoded: U+FFFD replaces each half of a surrogate pair.

    A careless client may send such halves. Two halves that belong together become a character.
    """
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
