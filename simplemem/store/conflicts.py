"""Conflict copies: which there are, and what becomes of one when it is merged into its note."""

from __future__ import annotations

from simplemem.index.index import Index
from simplemem.memory import ConflictCopy
from simplemem.note.names import name_of


def conflict_copies(index: Index) -> tuple[ConflictCopy, ...]:
    """Every conflict copy whose note is there, by path. What only might be one by its name, and whose text is another, is
    a note and not among them."""
    found = []
    for copy in index.conflict_copies():
        is_note = copy.path.casefold().endswith(".md")
        if copy.hidden is None and is_note and not copy.name.certain:
            continue
        found.append(
            ConflictCopy(
                name=name_of(copy.path),
                path=copy.path,
                of=name_of(copy.original),
                original=copy.original,
                maker=copy.name.maker,
                by=copy.name.by,
                when=copy.name.when,
            )
        )
    return tuple(found)
