"""Finds notes by a part of their names, for an open vault."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from simplemem.note.names import base_name
from simplemem.note.words import well_formed
from simplemem.store.vault_index import IndexKeeper

if TYPE_CHECKING:
    from simplemem.index.api import Mark, NameRow
    from simplemem.index.service import IndexService
    from simplemem.note.name_matching import NamedNote, NameIndex


class NameFinder:
    """Guards the names of all visible notes, which are read again after a change of the index.

    May be called from any thread. Reads nothing before the first call of `find`.
    """

    def __init__(self, index: IndexService, keeper: IndexKeeper) -> None:
        self._index = index
        self._keeper = keeper
        self._lock = threading.Lock()
        self._names: NameIndex | None = None
        self._mark: Mark | None = None  # the state of the index that `_names` agrees with

    def find(self, typed: str, limit: int) -> list[NamedNote]:
        """Return the notes whose title, file name or alias matches `typed`, at most `limit`.

        The best match is first: see `NameIndex.best_matches`. The index is brought up to date
        before.
        """
        self._keeper.prepare(vectors=False)
        return self._current_names().best_matches(well_formed(typed), limit)

    def _current_names(self) -> NameIndex:
        """Return the names that the index has now. Reads them only if the index has changed."""
        from simplemem.note.name_matching import NameIndex  # not needed at start-up

        with self._lock:
            mark, rows = self._index.names_since(self._mark)
            if rows is not None or self._names is None:
                self._names = NameIndex(_named_notes(rows or ()))
                self._mark = mark
            return self._names


def _named_notes(rows: Sequence[NameRow]) -> Iterator[NamedNote]:
    """Yield a note once per name: its title, its file name if that differs, and each alias.

    A row without an alias stands for the title and the file name.
    """
    from simplemem.note.name_matching import NamedNote

    for path, title, alias in rows:
        names = [alias] if alias else dict.fromkeys((title, base_name(path)))
        for name in names:
            yield NamedNote(path, title, name)
