"""Telling which memories changed to all who listen: what this store changed or noticed, and what another process did."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from simplemem.note.names import name_of

Listener = Callable[[frozenset[str]], None]


class Telling:
    """Those who listen to one store, and how far they have been told."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self.heard_rev = -1  # the newest change of the index that a follower was told of...
        self._heard_paths: set[str] = set()  # ...and the notes there were then

    def on_change(self, listener: Listener) -> None:
        self._listeners.append(listener)

    def tell(self, names: Iterable[str]) -> None:
        told = frozenset(names)
        for listener in self._listeners if told else ():
            listener(told)

    def tell_of_others(self, rev: int, changed: Iterable[str], there: set[str]) -> None:
        """Tell what another process has indexed: the notes `changed` up to `rev`, and those that are not `there` any more.
        The first time there is nothing to compare with."""
        if self.heard_rev >= 0:
            self.tell({name_of(path) for path in {*changed, *(self._heard_paths - there)}})
        self.heard_rev, self._heard_paths = rev, there
