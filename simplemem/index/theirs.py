"""What one author wrote, as a filter: whole notes, and of notes that several wrote, the lines that are theirs.

A block in which lines of several authors stand is asked a second time, by their lines alone: these have an index of words of
their own, in memory and with the same tokenizer.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import apsw

from simplemem.index.text import Place, indexed


@dataclass(frozen=True, slots=True)
class Own:
    """Of a note that several wrote, one author's share, as long as its text is this one. `places` are passages and blocks of
    which most is theirs, `whole` the blocks that nobody else wrote in, `shared` those that somebody did; `passages` is
    what may be shown."""

    sha256: str
    places: frozenset[int] = frozenset()
    whole: frozenset[int] = frozenset()
    shared: frozenset[int] = frozenset()
    passages: tuple[Place, ...] = ()


class SharedBlocks:
    """The lines of one author in blocks that others wrote in too. Safe to use from several threads."""

    def __init__(self, like: str, lines: Iterable[tuple[int, str, str]]) -> None:
        """`like` is the statement that made the table of blocks, `lines` are ids of blocks, their text and its language."""
        self._guard = threading.Lock()
        self._db = apsw.Connection(":memory:")
        self._db.execute(like).fetchall()
        with self._db:
            self._db.executemany(
                "INSERT INTO block_text (rowid, title, body) VALUES (?, '', ?)",
                ((block, indexed(text, language)) for block, text, language in lines),
            )

    def holding(self, expression: str) -> set[int]:
        """The blocks in which a line of the author has words of an expression made of quoted ones."""
        with self._guard:
            found = self._db.execute("SELECT rowid FROM block_text WHERE block_text MATCH ?", (expression,))
            return {row[0] for row in found}


@dataclass(frozen=True, slots=True)
class Theirs:
    """One author's part of a vault: the vault paths that pass of those whose changes are known, those that don't (all others
    were written by a person), and the notes of which not all passes, by id."""

    by: tuple[str, ...] = ()
    not_by: tuple[str, ...] = ()
    notes: Mapping[int, Own] = field(default_factory=dict)
    blocks: SharedBlocks | None = None

    def blocks_holding(self, expression: str) -> set[int]:
        return self.blocks.holding(expression) if self.blocks is not None else set()
