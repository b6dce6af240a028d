"""Telling which memories changed to all who listen: what this store changed or noticed, and what another process did."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from simplemem.index.putting import is_note
from simplemem.note.names import name_of, path_of

Listener = Callable[[frozenset[str]], None]
ChangesOf = Callable[[set[str]], Mapping[str, int]]
"""Which change of the index made each of some notes, by their paths, what it is; none for those that are not there."""

_NOTHING: Final = -1  # was told of a note


class Telling:
    """Those who listen to one store, and how far they have been told."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._told: dict[str, int | None] = {}  # the change of each note that was told last; None: that it went
        self.heard_rev = -1  # the newest change of the index that a follower was told of...
        self._heard_paths: set[str] = set()  # ...and the notes there were then

    def on_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def tell(self, names: Iterable[str], changes: ChangesOf) -> None:
        told = frozenset(names)
        if not told or not self._listeners:
            return
        at = changes({path_of(name) for name in told})
        self._told.update((name, at.get(path_of(name))) for name in told)
        for listener in self._listeners:
            listener(told)

    def news(self, paths: Iterable[str], changes: ChangesOf) -> set[str]:
        """The names of those notes that another process has put or removed, of which nobody here was told yet. Who leads
        hears of the file, and finds it indexed: by itself, or by another."""
        if not self._listeners:
            return set()
        notes = {path for path in paths if is_note(path)}
        at = changes(notes)
        return {name_of(path) for path in notes if self._told.get(name_of(path), _NOTHING) != at.get(path)}

    def tell_of_others(self, rev: int, changed: Iterable[str], there: set[str], changes: ChangesOf) -> None:
        """Tell what another process has indexed: the notes `changed` up to `rev`, and those that are not `there` any more.
        The first time there is nothing to compare with."""
        if self.heard_rev >= 0:
            self.tell({name_of(path) for path in {*changed, *(self._heard_paths - there)}}, changes)
        self.heard_rev, self._heard_paths = rev, there
