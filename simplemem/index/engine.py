"""What an engine raises. An engine keeps the rows of one vault's index: SQLite, or PostgreSQL."""

from __future__ import annotations


class Damaged(Exception):
    """The index cannot be used. It is discarded, and built again from the notes."""


class Replaced(Exception):
    """Another index took the place of this one while something was based on the old one. Begin again."""
