"""All notes of a kind in one vault, read once, and again when the store says that one changed, whoever changed it.

An item is known by its path. What is asked of many items by some key is a `Lookup`, kept up as items come and go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Generic

from simplemem.kinds.kind import Kind, T
from simplemem.store import Bench, Carried, Draft, Mark, Read, Stat, stat_of

_AGAIN: Final = 5
_MANY: Final = 500  # items whose files are compared with what was read


class Lookup:
    """Paths by key."""

    def __init__(self) -> None:
        self._paths: dict[Hashable, set[str]] = {}

    def __getitem__(self, key: Hashable) -> AbstractSet[str]:
        return self._paths.get(key, frozenset())

    def move(self, path: str, old: Iterable[Hashable], new: Iterable[Hashable]) -> None:
        """The keys of a path are others now."""
        for key in old:
            self._paths.get(key, set()).discard(path)
        for key in new:
            self._paths.setdefault(key, set()).add(path)


class Shelf(Generic[T]):
    """The items of a vault. Whoever asks holds `lock`, and refreshes first."""

    def __init__(self, bench: Bench, kind: Kind[T]) -> None:
        self.bench = bench
        self.kind = kind
        self.lock = threading.RLock()
        self.items: dict[str, T] = {}
        self.changed_by_others = 0  # grows when a person or another process changes an item
        self.is_read = False
        self.differs = False  # whether what is being taken in changes anything
        self._lookups: list[tuple[Lookup, Callable[[T], Iterable[Hashable]]]] = []
        self._order: list[str] | None = None
        self._mark: Mark | None = None
        self._stats: dict[str, Stat] = {}
        self._notes: set[str] = set()  # the paths of all notes, of this kind or not
        self._lost: set[str] = set()  # notes that the index still has though their files are gone

    # -- asking

    def lookup(self, keys: Callable[[T], Iterable[Hashable]]) -> Lookup:
        """Paths of items by keys of theirs, from now on."""
        made = Lookup()
        self._lookups.append((made, keys))
        return made

    def in_order(self) -> list[T]:
        """All items, in the order of their kind."""
        if self._order is None:
            self._order = sorted(self.items, key=lambda path: self.kind.place(self.items[path]))
        return [self.items[path] for path in self._order]

    def fresh(self, find: Callable[[], Sequence[T]]) -> Sequence[T]:
        """What is found, once the files of all that is found are known to be what was read of them."""
        for _ in range(_AGAIN):
            self.refresh()
            found = find()
            paths = {item.path for item in found} if len(found) <= _MANY else set[str]()
            now = self.bench.stats(paths)
            differing = {path for path in paths if now.get(path) != self._stats.get(path)}
            if not differing:
                break
            self.bench.look_at(differing)
            self.look_again(differing)
        return found

    # -- keeping up

    def refresh(self) -> None:
        """Read what changed since this was last asked."""
        if self._lost and (back := self.bench.stats(self._lost).keys()):
            self._lost -= back
            self.take(self.bench.read(sorted(back)), came=set(back))
        noticed = self.bench.since(self._mark, self.kind.having)
        if noticed.mark == self._mark:
            return
        changed = {each.path: each for each in noticed.notes}
        came, gone = changed.keys() - self._notes, set[str]()
        if len(self._notes) + len(came) != noticed.count:
            gone = self._notes - (changed.keys() if noticed.whole else self.bench.indexed())
            self._notes -= gone
            gone -= self.bench.stats(gone & self.items.keys()).keys()  # too large to be indexed, and there all the same
            self._lost -= gone
        wanted = set()
        for path, note in changed.items():
            held = self.items.get(path)
            is_wanted = held is not None or path in noticed.having or self.kind.holds(path, note.type)
            if is_wanted and (held is None or held.sha256 != note.sha256):
                wanted.add(path)
        if noticed.whole:
            wanted |= set(self.bench.files_below(self.kind.folder)) - changed.keys()
        copies = {path for path, note in changed.items() if note.is_copy}
        self.take(self.bench.read(sorted(wanted)), gone=gone, came=came, copies=copies)
        self._mark = noticed.mark  # whatever failed before this is noticed again
        self.is_read = True

    def look_again(self, paths: Collection[str]) -> None:
        """Read items whose file is another than the one that was read, whatever the index says of them."""
        read = list(self.bench.read(sorted(paths)))
        missing = set(paths) - {each.path for each in read}
        self._lost |= missing & self._notes  # the index says nothing when such a file comes back as it was
        self.take(read, gone=missing)
        self._notes |= self._lost

    def take_written(self, drafts: Sequence[Draft], carried: Carried) -> None:
        """Know what this process has just written."""
        written = [
            Read(each.path, carried.texts[each.path], each.sha256 or "", stat_of(each.entry), "")
            for each in carried.written
            if each.path in carried.texts and each.entry is not None
        ]
        new = {each.path for each in drafts if each.before is None}
        self.take(written, gone=[each.path for each in drafts if each.text is None], came=new, ours=True)

    def take(
        self,
        read: Iterable[Read],
        *,
        gone: Collection[str] = (),
        came: Collection[str] = (),
        copies: Collection[str] = (),
        ours: bool = False,
    ) -> None:
        """Take in notes as they are now, and that others are gone. `came` and `gone` are of any kind: they may change what
        a link means. One of the `copies` is left out when another item is its twin."""
        self.differs = False
        self._notes |= set(came)
        self._notes -= set(gone)
        changed = set(gone)
        for each in read:
            item = self.kind.read(each)
            self.place(each, item if item.is_own or self.is_needed(each.path) else None)
            changed.add(each.path)
        for path in gone:
            self.forget(path)
        for path in copies:
            if path in self.items and self._has_twin(self.items[path]):
                self.forget(path)
        self.settle(changed, {*gone, *came})
        if self.is_read and not ours and self.differs:
            self.changed_by_others += 1

    def is_needed(self, path: str) -> bool:  # noqa: ARG002
        """Whether a note of another kind is held all the same."""
        return False

    def settle(self, changed: Collection[str], files: Collection[str]) -> None:
        """Items `changed`, and `files` of any kind came or went: work out what follows from that."""

    def place(self, read: Read, item: T | None) -> None:
        """Hold what a note was read into, or nothing of it."""
        if item is None:
            self.forget(read.path)
            return
        path, old, place = read.path, self.items.get(read.path), self.kind.place
        self._stats[path] = read.stat
        self.differs = self.differs or old is None or old.sha256 != item.sha256
        for lookup, keys in self._lookups:
            lookup.move(path, keys(old) if old is not None else (), keys(item))
        if self._order is not None and (old is None or place(old) != place(item)):
            if old is None and (not self._order or place(self.items[self._order[-1]]) < place(item)):
                self._order.append(path)
            else:
                self._order = None
        self.items[path] = item

    def forget(self, path: str) -> None:
        """Hold a note no longer."""
        old = self.items.pop(path, None)
        if old is None:
            return
        self.differs = True
        self._stats.pop(path, None)
        for lookup, keys in self._lookups:
            lookup.move(path, keys(old), ())
        if self._order is not None:
            self._order.remove(path)

    def _has_twin(self, item: T) -> bool:
        told = self.kind.twin(item)
        return told is None or any(
            self.kind.twin(other) == told and other.path != item.path for other in self.items.values()
        )
