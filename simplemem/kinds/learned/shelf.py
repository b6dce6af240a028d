"""The entries of one store as they are now: read from what changed, found by id, and where their relations lead."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from simplemem.errors import Ambiguous, Invalid, NotFound
from simplemem.kinds.learned.entries import Entry, is_entry_note, read_entry
from simplemem.store.seen import Seen

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_LOOKED_AT_TWICE: Final = 500  # entries whose files are compared with what was read
_LEAST_PREFIX: Final = 3


class Shelf:
    """The entries of a vault. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        self._held = weakref.ref(store)  # whoever holds the store may let it go
        self._bench = store.bench
        self._lock = threading.RLock()
        self._seen = Seen(self._bench, "knowledge_type")
        self._entries: dict[str, Entry] = {}

    @property
    def _store(self) -> EnhancedStore:
        store = self._held()
        assert store is not None
        return store

    def entries(self) -> list[Entry]:
        """Every entry, in the order in which they were made."""
        self._bench.catch_up()
        with self._lock:
            self._refresh()
            if len(self._entries) <= _LOOKED_AT_TWICE and (differing := self._seen.differing(self._entries)):
                self._bench.look_at(differing)
                self._refresh()
                self._take(differing & self._entries.keys())
            return self._in_order()

    def _in_order(self) -> list[Entry]:
        return sorted(self._entries.values(), key=lambda entry: (entry.created, entry.path))

    def find(self, ref: str) -> Entry:
        """The entry of this id, of an id that begins so, or of this name."""
        wanted = ref.strip()
        every = self.entries()
        if not wanted:
            raise Invalid("an id is needed")
        exact = [entry for entry in every if entry.id == wanted] or [
            entry for entry in every if _is_called(entry, wanted)
        ]
        found = exact or [
            entry
            for entry in every
            if len(wanted) >= _LEAST_PREFIX and entry.id.casefold().startswith(wanted.casefold())
        ]
        if len(found) == 1:
            return found[0]
        if found:
            raise Ambiguous(
                f"{wanted[:60]} may be any of {len(found)} entries",
                candidates=[f"{entry.id} ({entry.name})" for entry in found],
            )
        raise NotFound(
            f"Knowledge entry not found: {wanted[:100]}",
            hint="An id, the first letters of one, or the name of a note in knowledge/.",
        )

    def leading_to(
        self, entries: Sequence[Entry], among: Sequence[Entry] | None = None
    ) -> dict[str, list[tuple[str, Entry]]]:
        """For each entry by its path, its relations to others (all there are, or those `among` some): the words, and the
        entry they lead to."""
        at = self._entries if among is None else {entry.path: entry for entry in among}
        ties = [(entry, tie) for entry in entries for tie in entry.ties]
        meant = self._bench.meant([(tie.target, entry.path) for entry, tie in ties])
        found: dict[str, list[tuple[str, Entry]]] = {entry.path: [] for entry in entries}
        for (entry, tie), path in zip(ties, meant, strict=True):
            if path in at:
                found[entry.path].append((tie.relationship, at[path]))
        return found

    def leading_nowhere(self, entries: Sequence[Entry]) -> dict[str, list[str]]:
        """For each entry by its path, what its relations and its header name that is no note."""
        wanted = [(tie.target, entry.path) for entry in entries for tie in entry.ties]
        wanted += [(entry.superseded_by, entry.path) for entry in entries if entry.superseded_by]
        found: dict[str, list[str]] = {}
        for (target, source), path in zip(wanted, self._bench.meant(wanted), strict=True):
            if path is None:
                found.setdefault(source, []).append(target)
        return found

    def embedder(self) -> str:
        """The name of the embedder whose vectors are in use, "" when there are none."""
        found = self._store.core.index.generations()
        return found[0].embedder if found and found[0].dimension else ""

    def is_by_hand(self, entry: Entry) -> bool:
        """Whether a person changed an entry last, or made it: nobody told us, or they used a command."""
        return self._bench.is_by_hand(entry.path, entry.sha256)

    # -- keeping up

    def _refresh(self) -> None:
        noticed = self._seen.noticed()
        if noticed is None:
            return
        concerned = {each.path for each in noticed.notes if is_entry_note(each.path, each.type) and not each.is_copy}
        others = {each.path for each in noticed.notes} - concerned
        if self._entries:
            others |= self._entries.keys() - self._bench.indexed() - concerned
        for path in others:
            self._forget(path)
        known = {each.path: each.sha256 for each in noticed.notes}
        self._take(path for path in concerned if path not in self._entries or self._entries[path].sha256 != known[path])
        self._seen.take_in(noticed)

    def _take(self, paths: Iterable[str]) -> None:
        wanted = sorted(paths)
        seen = set()
        for read in self._bench.read(wanted):
            entry = read_entry(read.path, read.text, read.sha256)
            self._entries[read.path] = entry
            self._seen.keep(read)
            seen.add(read.path)
        for path in set(wanted) - seen:
            self._forget(path)

    def _forget(self, path: str) -> None:
        self._entries.pop(path, None)
        self._seen.forget(path)


def _is_called(entry: Entry, wanted: str) -> bool:
    key = wanted.removeprefix("[[").removesuffix("]]").removesuffix(".md").casefold()
    name = entry.name.casefold()
    return key in (name, name.rsplit("/", 1)[-1])
