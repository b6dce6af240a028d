"""A private copy of a vault in a temporary folder, in which notes can be other than they are for the time of a question.

The vault it is made of is only read. Other files are empty here: links to them resolve, and nobody reads them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from simplemem.config import Settings
from simplemem.errors import SimplememError
from simplemem.evaluate.mentions import Source
from simplemem.index.reconcile import Progress
from simplemem.note.copies import conflict_name
from simplemem.note.names import name_of
from simplemem.store import EnhancedStore
from simplemem.store.embedding import cache_path
from simplemem.store.rooms import sweep
from simplemem.vault.obsidian import CONVENTION_FILES, read_conventions
from simplemem.vault.vault import Vault

_PREFIX = "simplemem-eval-"


@dataclass(frozen=True, slots=True)
class Read:
    """A vault as it was read: the notes that take part in recall, the bytes of all notes, the times of all files."""

    root: Path
    sources: tuple[Source, ...]
    notes: Mapping[str, bytes]
    times: Mapping[str, int]


def read_vault(root: Path, settings: Settings, progress: Progress | None = None) -> Read:
    """Every note of a vault. Nothing is written, not even an index."""
    vault = Vault(root, read_only=True)
    conventions = read_conventions(root)
    try:
        entries = vault.scan()
        notes = [entry for entry in entries if entry.path.casefold().endswith(".md")]
        sources, read = [], {}
        paths = {entry.path for entry in notes}
        for done, entry in enumerate(notes, 1):
            if entry.size > settings.max_note_bytes:
                continue
            try:
                data = vault.read(entry.path).data
            except SimplememError:
                continue  # what cannot be read is not in the index either
            read[entry.path] = data
            copy = conflict_name(entry.path)
            if conventions.hidden_reason(entry.path) is None and not (copy and copy.certain and copy.original in paths):
                sources.append(Source(entry.path, name_of(entry.path), data))
            if progress is not None and (done % 50 == 0 or done == len(notes)):
                progress("reading", done, len(notes))
        return Read(root, tuple(sources), read, {entry.path: entry.mtime_ns for entry in entries})
    finally:
        vault.close()


def make_sidecar(root: Path) -> Path:
    """The folder of a vault for what is ours. It is the only thing that is ever made in a vault here."""
    vault = Vault(root)
    try:
        return vault.sidecar()
    finally:
        vault.close()


@dataclass(slots=True)
class Scratch:
    """The copy, and the stores that are open on it. `hold` makes notes other than they are, until the next `hold`."""

    root: Path
    times: Mapping[str, int]
    originals: Mapping[str, bytes]
    stores: list[EnhancedStore] = field(default_factory=list)
    _changed: dict[str, str] = field(default_factory=dict)  # original path: the path it has now
    _turn: int = 0

    def hold(self, changed: Mapping[str, tuple[str, bytes]]) -> None:
        """These notes, by path, have this other path and these other bytes now; all others are as they were. Every store
        is told, and has its vectors in step."""
        touched: set[str] = set()
        for path, now in list(self._changed.items()):
            if path not in changed or changed[path][0] != now:
                (self.root / now).unlink()
                touched.add(now)
            if path not in changed:
                self._write(path, self.originals[path], self.times[path])
                touched.add(path)
                del self._changed[path]
        for path, (now, data) in changed.items():
            if path != now:
                (self.root / path).unlink(missing_ok=True)
            self._turn += 1
            # A time of its own tells the index that it is another text, wherever it lies; the second stays the same.
            self._write(now, data, self.times[path] // 1_000_000_000 * 1_000_000_000 + self._turn * 1_000 % 10**9)
            self._changed[path] = now
            touched |= {path, now}
        for store in self.stores if touched else ():
            store.core.look_at(set(touched))
            store.core.embedding.fill(None, begin=True, ready=store.core.rows.waiting)

    def _write(self, path: str, data: bytes, mtime_ns: int) -> None:
        file = self.root / path
        file.write_bytes(data)
        os.utime(file, ns=(mtime_ns, mtime_ns))


def temporary_folder() -> tempfile.TemporaryDirectory[str]:
    """A folder that is gone again afterwards; a file that Windows still holds on to is no failure. Those of processes that
    were killed go first: they hold notes."""
    sweep(_PREFIX, days=3)
    return tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True)


Agree = Callable[[EnhancedStore], None]
"""Asked before a store has texts sent to another machine; it may raise."""


def _agreed(_: EnhancedStore) -> None:
    return None


@contextmanager
def scratch(
    read: Read, variants: Mapping[str, Settings], progress: Progress | None = None, agree: Agree = _agreed
) -> Iterator[Scratch]:
    """A copy of a vault with a store for each of the settings. All of it is gone afterwards, however that comes."""
    with ExitStack() as opened:
        room = Path(opened.enter_context(temporary_folder()))
        root = room / "vault"
        (root / ".obsidian").mkdir(parents=True)
        for name in CONVENTION_FILES:
            if (read.root / name).is_file():
                shutil.copyfile(read.root / name, root / name)
        for path, mtime_ns in read.times.items():
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(read.notes.get(path, b""))
            os.utime(file, ns=(mtime_ns, mtime_ns))
        copy = Scratch(root, read.times, read.notes)
        for settings in variants.values():
            store = opened.enter_context(EnhancedStore(root, _for_the_copy(settings, root, room, read.root)))
            if store.embeds_remotely:
                store.sync(progress=progress, embed=False)
                agree(store)
            store.sync(progress=progress, embed=True)
            store.core.index.keep_vectors_in_memory()  # as a process that answers all day
            copy.stores.append(store)
        yield copy


def _for_the_copy(settings: Settings, root: Path, room: Path, asked: Path) -> Settings:
    """The settings with the copy for their vault, and an index in the room. Settings that differ only in how is searched
    share one index."""
    made_with = settings.model_dump_json(exclude={"vault", "db", "search", "rerank"})
    index = room / hashlib.sha256(made_with.encode()).hexdigest()[:16] / "index.db"
    index.parent.mkdir(exist_ok=True)
    bought = cache_path(settings.db or asked / ".simplemem" / "index.db")
    if bought.is_file() and not cache_path(index).exists():
        shutil.copyfile(bought, cache_path(index))  # what a service has embedded is not paid for again
    fast = settings.write.model_copy(update={"durability": "fast"})
    return settings.model_copy(update={"vault": root, "db": index, "read_only": False, "write": fast})
