"""The contents that a disk may have after a power cut, computed from the calls of an operation.

This needs neither root nor a device. A text is durable once its file was synced. A change of names
is durable once a folder that it changes was synced, and with it all earlier changes in the same
folders, and these folders themselves if they are new. Other changes may be lost: a cut leaves all durable
changes, alone or with the first of the others. A text that was written without a sync is there, or
gone.
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
    """A call: a change of names, a written text, or a sync.

    `path` is the name that it changes, and `new_path` the second name of a rename, an exchange or a
    link. `new_path` is also the folder of a sync.
    """

    kind: str
    path: str = ""
    new_path: str = ""
    inode: int = 0
    text: bytes = b""

    def folders(self) -> set[str]:
        """Return the folders whose names it changes."""
        return {os.path.dirname(path) for path in (self.path, self.new_path) if path}


@dataclass(frozen=True)
class Disk:
    """The names and the texts of a disk."""

    names: Names
    texts: Texts

    def write_out(self, root: Path) -> None:
        """Create the folders and files of the disk in an empty folder."""
        first_paths: dict[int, str] = {}
        for path in sorted(self.names):
            inode = self.names[path]
            if not inode:
                os.mkdir(root / path)
            elif inode in first_paths:
                os.link(root / first_paths[inode], root / path)
            else:
                (root / path).write_bytes(self.texts.get(inode, b""))
                first_paths[inode] = path


def disk_at(root: Path) -> Disk:
    """Return a folder as a disk, all of it durable."""
    names: Names = {}
    texts: Texts = {}
    for path in root.rglob("*"):
        status = os.lstat(path)
        name = path.relative_to(root).as_posix()
        if stat.S_ISDIR(status.st_mode):
            names[name] = 0
        else:
            names[name] = status.st_ino
            texts[status.st_ino] = path.read_bytes()
    return Disk(names, texts)


def record(root: Path, action: Callable[[], Any]) -> list[Event]:
    """Run an action on a folder in a child, and return its events."""
    return list(in_child(lambda: _Recorder(str(root)).events_of(action)))


def cuts(before: Disk, events: list[Event]) -> Iterator[tuple[int, Disk]]:
    """Yield each disk that a cut may leave, with the number of events before the cut.

    A disk that an earlier cut leaves too is left out, except after the last event: from there on
    every disk must have the change.
    """
    yielded: set[Any] = set()
    for count in range(len(events) + 1):
        past_events = events[:count]
        changes = [number for number, event in enumerate(past_events) if event.path]
        durable = _durable_changes(past_events, changes)
        for synced_only in (True, False):
            texts = _texts_after(before, past_events, synced_only=synced_only)
            for kept_changes in range(len(changes) + 1):
                numbers = durable | set(changes[:kept_changes])
                names = _names_after(before, [past_events[number] for number in sorted(numbers)])
                name_texts = {inode: texts.get(inode) for inode in names.values() if inode}
                key = (frozenset(names.items()), frozenset(name_texts.items()))
                if count == len(events) or key not in yielded:
                    yielded.add(key)
                    yield count, Disk(names, texts)


def _durable_changes(events: list[Event], changes: list[int]) -> set[int]:
    """Return the changes of names that a sync has made durable, with those that they depend on."""
    durable: set[int] = set()
    for position, event in enumerate(events):
        if event.kind != "sync folder":
            continue
        folders = {event.new_path}
        earlier_changes = [number for number in changes if number < position]
        for number in reversed(earlier_changes):
            change = events[number]
            creates_folder = change.kind == "mkdir" and change.path in folders
            if creates_folder or change.folders() & folders:
                durable.add(number)
                folders |= change.folders()
    return durable


def _names_after(before: Disk, changes: list[Event]) -> Names:
    """Return the names of a disk after some changes."""
    names = dict(before.names)
    for change in changes:
        _apply(names, change)
    return names


def _apply(names: Names, change: Event) -> None:
    """Change the names as an event does. Ignores a change in a folder that does not exist."""
    path = change.path
    new_path = change.new_path
    folder = os.path.dirname(new_path or path)
    if folder and folder not in names:
        return

    if change.kind in ("create", "mkdir"):
        names[path] = change.inode
    elif change.kind in ("unlink", "rmdir"):
        names.pop(path, None)
    elif change.kind == "link" and path in names:
        names[new_path] = names[path]
    elif change.kind == "rename" and path in names:
        names[new_path] = names.pop(path)
    elif change.kind == "exchange" and path in names and new_path in names:
        names[path], names[new_path] = names[new_path], names[path]


def _texts_after(before: Disk, events: list[Event], *, synced_only: bool) -> Texts:
    """Return the texts of a disk after some events: all of them, or only synced ones."""
    texts = dict(before.texts)
    written: dict[int, bytes] = {}
    for event in events:
        if event.kind == "text":
            written[event.inode] = event.text
            if not synced_only:
                texts[event.inode] = event.text
        elif event.kind == "sync file" and event.inode in written:
            texts[event.inode] = written[event.inode]
    return texts


@dataclass
class _Recorder:
    """Records the system calls of an action. It replaces functions of `os` in its own process."""

    root: str
    events: list[Event] = field(default_factory=list)

    def events_of(self, action: Callable[[], Any]) -> list[Event]:
        """Run an action, and return its events."""
        for name in "open write fsync replace rename link unlink mkdir rmdir".split():
            setattr(os, name, self._recording(name, getattr(os, name)))
        disk.exchange = self._recording_rename("exchange", disk.exchange)
        disk.rename_new = self._recording_rename("rename", disk.rename_new)
        action()
        return self.events

    def _relative(self, path: str, folder: int | None) -> str:
        """Return the path in the vault of a path below the descriptor of a folder."""
        base = os.readlink(f"/proc/self/fd/{folder}") if folder is not None else "/"
        return os.path.relpath(os.path.join(base, path), self.root)

    def _recording_rename(self, kind: str, real: Callable[..., None]) -> Callable[..., None]:
        """Return a rename with flags that records an event of a kind."""

        def call(folder: int | None, path: str, new_folder: int | None, new_path: str) -> None:
            event = Event(kind, self._relative(path, folder), self._relative(new_path, new_folder))
            real(folder, path, new_folder, new_path)
            self.events.append(event)

        return call

    def _recording(self, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function of `os` that records its events, and does not execute syncs."""

        def call(*args: Any, **options: Any) -> Any:
            if name in ("write", "fsync"):
                result = None if name == "fsync" else real(*args)
                self._record_file(name, args[0])
                return result
            if name == "open":
                return self._open(real, *args, **options)

            if name in ("replace", "rename", "link"):
                kind = "link" if name == "link" else "rename"
                path = self._relative(args[0], options["src_dir_fd"])
                event = Event(kind, path, self._relative(args[1], options["dst_dir_fd"]))
            else:
                event = Event(name, self._relative(args[0], options["dir_fd"]))
            result = real(*args, **options)
            self.events.append(event)
            return result

        return call

    def _open(self, real: Callable[..., int], path: str, *args: Any, **options: Any) -> int:
        """Open a file, and record an event if that creates it."""
        folder = options.get("dir_fd")
        exists = not folder or os.path.lexists(f"/proc/self/fd/{folder}/{path}")
        descriptor = real(path, *args, **options)
        if not exists:
            inode = os.fstat(descriptor).st_ino
            self.events.append(Event("create", self._relative(path, folder), inode=inode))
        return descriptor

    def _record_file(self, name: str, descriptor: int) -> None:
        """Record the sync of a file or folder, or the text of a file after a write."""
        status = os.fstat(descriptor)
        if stat.S_ISDIR(status.st_mode):
            path = os.readlink(f"/proc/self/fd/{descriptor}")
            folder = os.path.relpath(path, self.root)
            event = Event("sync folder", new_path="" if folder == "." else folder)
        elif name == "fsync":
            event = Event("sync file", inode=status.st_ino)
        else:
            text = os.pread(descriptor, status.st_size, 0)
            event = Event("text", inode=status.st_ino, text=text)
        self.events.append(event)
