"""Bring text into the form that patterns match. Pure."""

from __future__ import annotations


def in_small_letters(text: str) -> str:
    """Return a text in small letters, on one line, with straight apostrophes and single spaces."""
    return " ".join(text.lower().replace("’", "'").split())
