"""Taking over what another graph memory server kept in its file: into the vault, once, and that file is left as it is.

What is there already is added to, never replaced, so an import that was interrupted is simply done again. Which files were
taken over stands in `.simplemem/imports.jsonl`: what is deleted from the graph later must not come back with the next start.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, TypedDict, TypeVar

from simplemem.errors import Unavailable
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.jsonl import Broken, read
from simplemem.store import EnhancedStore
from simplemem.vault import kernel
from simplemem.vault.lock import make_sidecar
from simplemem.vault.paths import SIDECAR, Beneath
from simplemem.vault.trouble import telling

Progress = Callable[[str, int, int], None]
T = TypeVar("T")

_RECORD: Final = "imports.jsonl"
_BATCH: Final = 500
_PATIENCE: Final = 120.0
_LOOK: Final = 0.1


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import brought, in however many steps it was written: how many entities and relations were made, how many
    observations were added to entities that were there, how many of the file's entities and relations were there already,
    and its broken lines."""

    file: str
    entities: int
    relations: int
    observations: int
    entities_there: int
    relations_there: int
    since: str  # the first version of it, from which on all of it can be taken back; "" when nothing was written
    broken: tuple[Broken, ...]

    def as_dict(self) -> dict[str, Any]:
        shown = {name: getattr(self, name) for name in self.__slots__ if name != "broken"}
        return {**shown, "broken": [{"line": each.line, "why": each.why} for each in self.broken]}


class _Asker(TypedDict):
    who: str
    tool: str
    reason: str


def import_file(
    store: EnhancedStore,
    file: Path,
    *,
    who: str = "",
    progress: Progress | None = None,
) -> Imported:
    """Bring a file's graph into the vault, whether or not that was done before."""
    with _recorded(store) as record:
        imported, digest = _import(store, file, who, progress or _silent)
        _note(record, imported, digest)
    return imported


def import_once(store: EnhancedStore, file: Path, *, who: str = "") -> Imported | None:
    """Bring a file's graph into the vault unless that was done already; None then. Other servers that start meanwhile
    wait for it."""
    with _recorded(store) as record:
        if str(_absolute(file)) in _known(record):
            return None
        imported, digest = _import(store, file, who, _silent)
        _note(record, imported, digest)
    return imported


def _silent(_stage: str, _done: int, _total: int) -> None:
    """Nobody watches."""


def _absolute(file: Path) -> Path:
    return Path(os.path.abspath(file))


def _import(store: EnhancedStore, file: Path, who: str, progress: Progress) -> tuple[Imported, str]:
    try:
        data = file.read_bytes()
    except OSError as error:
        raise Unavailable(f"{file} cannot be read: {error.strerror}") from error
    found = read(data)
    graph, asker = graph_of(store), _Asker(who=who, tool="import", reason=f"import of {file.name}")
    there = {each.name for each in graph.read().entities}
    last = _last_version(store)
    entities, relations = graph.take_in(found.graph, partial(progress, "import"), **asker)
    added = 0
    for more in _batches([each for each in found.graph.entities if each.name in there and each.observations]):
        said = [(each.name, each.observations) for each in more]
        added += sum(len(texts) for _, texts in graph.add_observations(said, missing="skip", **asker))
    imported = Imported(
        file=str(_absolute(file)),
        entities=entities,
        relations=relations,
        observations=added,
        entities_there=len(found.graph.entities) - entities,
        relations_there=len(found.graph.relations) - relations,
        since=f"v{last + 1}" if _last_version(store) > last else "",
        broken=found.broken,
    )
    return imported, hashlib.sha256(data).hexdigest()


def _last_version(store: EnhancedStore) -> int:
    return store.bench.last_version()


def _batches(items: Sequence[T]) -> Iterator[Sequence[T]]:
    for begin in range(0, len(items), _BATCH):
        yield items[begin : begin + _BATCH]


# --- the record


@contextmanager
def _recorded(store: EnhancedStore) -> Iterator[int]:
    """The record of imports, held: whoever else wants to import waits."""
    store.core.must_be_writable()
    with Beneath(str(store.root)) as here:
        with telling("open", f"{SIDECAR}/{_RECORD}", writing=True):
            make_sidecar(here)
            fd = here.folder((SIDECAR,)).open(_RECORD, os.O_RDWR | os.O_CREAT | os.O_APPEND)
        try:
            _hold(fd)
            yield fd
        finally:
            os.close(fd)  # which lets go of it


def _hold(fd: int) -> None:
    deadline = time.monotonic() + _PATIENCE
    while not kernel.try_lock(fd):
        if time.monotonic() > deadline:
            raise Unavailable("Another process has been importing for long.", hint="Try again when it is done.")
        time.sleep(_LOOK)


def _known(record: int) -> set[str]:
    """The files that were taken over. A line that a crash left half written counts for nothing."""
    os.lseek(record, 0, os.SEEK_SET)
    known = set()
    for line in _all_of(record).split(b"\n"):
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if isinstance(said, dict):
            known.add(str(said.get("file")))
    return known


def _all_of(fd: int) -> bytes:
    parts = []
    while part := os.read(fd, 65536):
        parts.append(part)
    return b"".join(parts)


def _note(record: int, imported: Imported, digest: str) -> None:
    when = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    counts = {name: count for name, count in imported.as_dict().items() if isinstance(count, int)}
    line = json.dumps({"when": when, "file": imported.file, "sha256": digest, **counts})
    os.write(record, f"\n{line}\n".encode())
    os.fsync(record)
