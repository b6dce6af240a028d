"""What a disk may hold after a power cut, worked out from the calls that an operation makes. No root, no device.

A text is safe once its file was synced. A change of names is safe once a folder that it touches was synced, and with it
whatever was changed in the same folders before, and those folders themselves where they are new. The rest may be there
or not: what a cut may leave is all that is safe, alone or with any first part of the rest; and what was written without
a sync is there, or gone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crash_harness import in_child

from simplemem.vault.folder import disk

Names = dict[str, int]  # path -> inode; folders have 0
Texts = dict[int, bytes]


@dataclass(frozen=True)
class Event:
    """One call: a change of names, a text written, or a sync."""

    kind: str
    one: str = ""
    other: str = ""
    inode: int = 0
    text: bytes = b""

    def folders(self) -> set[str]:
        """The folders whose names it changes."""
        return {os.path.dirname(path) for path in (self.one, self.other) if path}


@dataclass(frozen=True)
class Disk:
    """Folders, names and texts, as they would be found."""

    names: Names
    texts: Texts

    def write_out(self, root: Path) -> None:
        """Make it a folder that can be opened."""
        made: dict[int, str] = {}
        for path in sorted(self.names):
            inode = self.names[path]
            if not inode:
                os.mkdir(root / path)
            elif inode in made:
                os.link(root / made[inode], root / path)
            else:
                (root / path).write_bytes(self.texts.get(inode, b""))
                made[inode] = path


def disk_at(root: Path) -> Disk:
    """The disk as it is: all of it safe."""
    names: Names = {}
    texts: Texts = {}
    for path in root.rglob("*"):
        found = os.lstat(path)
        inside = path.relative_to(root).as_posix()
        names[inside] = 0 if stat.S_ISDIR(found.st_mode) else found.st_ino
        if names[inside]:
            texts[found.st_ino] = path.read_bytes()
    return Disk(names, texts)


def record(root: Path, action: Callable[[], Any]) -> list[Event]:
    """The events of an action, carried out in a child on `root`."""
    return list(in_child(lambda: _Recorder(str(root)).events_of(action)))


def cuts(before: Disk, events: list[Event]) -> Iterator[tuple[int, Disk]]:
    """Every disk that a cut may leave, with the number of events there had been."""
    seen: set[Any] = set()
    for at in range(len(events) + 1):
        happened = events[:at]
        changes = [k for k, event in enumerate(happened) if event.one]
        safe = _safe(happened, changes)
        firsts = [set[int](), *({*changes[: k + 1]} for k in range(len(changes)))]
        for lost in (True, False):
            texts = _texts(before, happened, synced_only=lost)
            for first in firsts:
                names = _names(before, [happened[k] for k in sorted(safe | first)])
                key = (
                    frozenset(names.items()),
                    frozenset((i, texts.get(i)) for i in names.values() if i),
                )
                if (
                    at == len(events) or key not in seen
                ):  # after the answer there must be no way to lose it
                    seen.add(key)
                    yield at, Disk(names, texts)


def _safe(happened: list[Event], changes: list[int]) -> set[int]:
    """The changes of names that a sync has made last, with those that they stand on."""
    safe: set[int] = set()
    for at, event in enumerate(happened):
        if event.kind == "sync folder":
            reached = {event.other}
            for k in reversed([k for k in changes if k < at]):
                made_one = happened[k].kind == "mkdir" and happened[k].one in reached
                if made_one or happened[k].folders() & reached:
                    safe.add(k)
                    reached |= happened[k].folders()
    return safe


def _names(before: Disk, changes: list[Event]) -> Names:
    names = dict(before.names)
    for change in changes:
        _apply(names, change)
    return names


def _apply(names: Names, change: Event) -> None:
    one, other = change.one, change.other
    folder = os.path.dirname(other or one)
    if folder and folder not in names:
        return  # its folder was never made: nobody finds it
    if change.kind in ("create", "mkdir"):
        names[one] = change.inode
    elif change.kind in ("unlink", "rmdir"):
        names.pop(one, None)
    elif change.kind == "link" and one in names:
        names[other] = names[one]
    elif change.kind == "rename" and one in names:
        names[other] = names.pop(one)
    elif change.kind == "exchange" and one in names and other in names:
        names[one], names[other] = names[other], names[one]


def _texts(before: Disk, happened: list[Event], *, synced_only: bool) -> Texts:
    texts, written = dict(before.texts), dict[int, bytes]()
    for event in happened:
        if event.kind == "text":
            written[event.inode] = event.text
            if not synced_only:
                texts[event.inode] = event.text
        elif event.kind == "sync file" and event.inode in written:
            texts[event.inode] = written[event.inode]
    return texts


@dataclass
class _Recorder:
    """Stands between an action and the system, in a process of its own."""

    root: str
    events: list[Event] = field(default_factory=list)

    def events_of(self, action: Callable[[], Any]) -> list[Event]:
        for name in (
            "open",
            "write",
            "fsync",
            "replace",
            "rename",
            "link",
            "unlink",
            "mkdir",
            "rmdir",
        ):
            setattr(os, name, self._around(name, getattr(os, name)))
        disk.exchange = self._around_kernel("exchange", disk.exchange)
        disk.rename_new = self._around_kernel("rename", disk.rename_new)
        action()
        return self.events

    def _inside(self, path: str, folder: int | None) -> str:
        base = os.readlink(f"/proc/self/fd/{folder}") if folder is not None else "/"
        return os.path.relpath(os.path.join(base, path), self.root)

    def _around_kernel(self, kind: str, real: Callable[..., None]) -> Callable[..., None]:
        def call(one_folder: int | None, one: str, other_folder: int | None, other: str) -> None:
            event = Event(kind, self._inside(one, one_folder), self._inside(other, other_folder))
            real(one_folder, one, other_folder, other)
            self.events.append(event)

        return call

    def _around(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **options: Any) -> Any:
            if name in ("write", "fsync"):
                done = None if name == "fsync" else real(*args)
                self._note_file(name, args[0])
                return done
            if name == "open":
                there = (
                    os.path.lexists(f"/proc/self/fd/{options['dir_fd']}/{args[0]}")
                    if options.get("dir_fd")
                    else True
                )
                done = real(*args, **options)
                if not there:
                    inode = os.fstat(done).st_ino
                    self.events.append(
                        Event("create", self._inside(args[0], options["dir_fd"]), inode=inode)
                    )
                return done
            if name in ("replace", "rename", "link"):
                kind = "link" if name == "link" else "rename"
                one = self._inside(args[0], options["src_dir_fd"])
                event = Event(kind, one, self._inside(args[1], options["dst_dir_fd"]))
            else:
                event = Event(name, self._inside(args[0], options["dir_fd"]))
            done = real(*args, **options)
            self.events.append(event)
            return done

        return call

    def _note_file(self, name: str, fd: int) -> None:
        found = os.fstat(fd)
        path = os.readlink(f"/proc/self/fd/{fd}")
        if stat.S_ISDIR(found.st_mode):
            inside = os.path.relpath(path, self.root)
            self.events.append(Event("sync folder", other="" if inside == "." else inside))
        elif name == "fsync":
            self.events.append(Event("sync file", inode=found.st_ino))
        else:
            self.events.append(
                Event("text", inode=found.st_ino, text=os.pread(fd, found.st_size, 0))
            )
