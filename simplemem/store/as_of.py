"""Searching the vault as it was: a copy of the index, in which the notes of that moment stand, and a store's eyes on it.

The copy lies in a temporary folder of this process and goes with it. It is kept for a while, so that one question after the
other about the same moment costs one copy. The vault itself is only read. Nothing is sent to a remote embedder for it but
the question: an old text without vectors is found by its words, and no remote reranker sees it.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TypeVar

from simplemem.errors import Unavailable
from simplemem.index.failures import Damaged
from simplemem.index.sync import Progress
from simplemem.memory import AsOf, Found, Hit, Pack
from simplemem.note.names import name_of
from simplemem.store.authors import Authors, local
from simplemem.store.core import Core
from simplemem.store.embedding import Embedding
from simplemem.store.packs import Packs
from simplemem.store.recall import Recall
from simplemem.store.then import VaultThen, moment_of, vault_then
from simplemem.vault.laid_over import LaidOver, Sheet
from simplemem.vault.log import Version

T = TypeVar("T")
_KEPT_SECONDS = 600.0
_PREFIX = "simplemem-as-of-"
_MOST_DOUBTS = 20  # that are named
_TRIES = 3


class CoreThen(Core):
    """A vault as it was with a copy of its index. Only asked, and in step as of its making."""

    def __init__(self, core: Core, sheets: dict[str, Sheet], index: Path) -> None:
        super().__init__(core.root, core.settings.model_copy(update={"db": index}), read_only=True)
        self.is_overtaken = False  # whether a note of now changed that was taken for one of then
        self._laid_over = LaidOver(core.root, sheets, access=core.vault.access)
        self.vault = self._laid_over
        self.rows = self.sync_of(self.index.database)
        self.embedding = Embedding(self.settings, self.vault, self.index, lender=core.embedding)

    def lies_over(self, path: str) -> bool:
        """Whether the text at a path is one of then, and another than now."""
        return self._laid_over.lies_over(path)

    def recheck(self, paths: Iterable[str]) -> bool:
        """What is on the disk now has no say here; but what was taken from it must still be it."""
        self.is_overtaken |= any(not self._laid_over.lies_over(path) and self._differs(path) for path in paths)
        return False


@dataclass(slots=True, weakref_slot=True)
class Then:
    """A moment that can be searched."""

    core: CoreThen
    recall: Recall
    packs: Packs
    told: AsOf
    versions: dict[str, str]  # by path, for notes that differ from now: what `read_memory` takes
    doubts: dict[str, str]
    room: Path
    key: object

    def close(self) -> None:
        self.recall.close()
        self.core.close()
        _remove(self.room)

    def found(self, found: Found) -> Found:
        """The answer to a search, saying of what moment it is, and of each hit how it can be read and what is not sure."""
        hits = tuple(self._hit(hit) for hit in found.hits)
        return replace(found, hits=hits, as_of=self.told, degraded=self._degraded(found.degraded))

    def packed(self, pack: Pack) -> Pack:
        """A context pack, saying of what moment it is."""
        return replace(pack, as_of=self.told, degraded=self._degraded(pack.degraded))

    def _hit(self, hit: Hit) -> Hit:
        path = f"{hit.name}.md"
        return replace(hit, version=self.versions.get(path), doubt=self.doubts.get(path, ""))

    def _degraded(self, said: str) -> str:
        waiting = self.core.embedding.pending() if self.core.embedding.is_remote else 0
        notes = "1 memory" if waiting == 1 else f"{waiting} memories"
        return f"{said} {notes} of then by words only: old texts are not sent anywhere.".strip() if waiting else said


class Past:
    """What a store keeps to search earlier moments: the last one asked for, for ten minutes."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._kept: Then | None = None
        self._timer: threading.Timer | None = None
        self._guard = threading.RLock()

    def close(self) -> None:
        with self._guard:
            if self._timer is not None:
                self._timer.cancel()
            if self._kept is not None:
                self._kept.close()
                self._kept = None

    def ask(
        self, moment: str, question: Callable[[Then], T], *, embed: bool = True, progress: Progress | None = None
    ) -> T:
        """The answer of a moment. A note that changes while it is asked has it asked again."""
        with self._guard:
            for _ in range(_TRIES):
                with self._at(moment, progress, embed=embed) as then:
                    answer = _asked(then, question)
                    if not then.core.is_overtaken:
                        break
            return answer

    @contextmanager
    def _at(self, moment: str, progress: Progress | None, *, embed: bool) -> Iterator[Then]:
        past = vault_then(self._core, moment_of(self._core, moment))
        key = (past.moment.number, tuple((note.path, note.sha256) for note in past.differing))
        if self._kept is None or self._kept.key != key:
            self.close()
            self._kept = _made(self._core, past, key)
        then = self._kept
        then.core.is_overtaken = False
        embed = embed and not then.core.embedding.is_remote

        def in_step(there: Then) -> None:
            there.core.sync(progress, embed=embed, rebuild=False, believe=True, begin=False)

        _asked(then, in_step)
        then.told = _told(past)
        yield then
        self._forget_later()

    def _forget_later(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = threading.Timer(_KEPT_SECONDS, self.close)
        self._timer.daemon = True
        self._timer.start()


def _asked(then: Then, question: Callable[[Then], T]) -> T:
    """An answer from the copy. A copy that is damaged is made anew, and is never taken for the index of the vault."""
    try:
        return then.core.healing(lambda: question(then))
    except Damaged as error:
        hint = "Ask again; another place for it is named by the environment variable TMPDIR."
        raise Unavailable(f"the copy of the index at {then.room} is damaged: {error}", hint=hint) from error


def _made(core: Core, past: VaultThen, key: object) -> Then:
    versions = _versions(core, past)
    sheets = {
        note.path: Sheet(note.data, _time_of(versions.get(note.path), past))
        for note in past.differing
        if note.sha256 != ""  # it cannot be read now, so it was left as it is
    }
    room = _folder()
    try:
        index = room / "index.db"
        core.index.database.copy_to(index)
        there = CoreThen(core, sheets, index)
    except BaseException:
        _remove(room)
        raise
    recall = Recall(there, there.lies_over)
    recall.authors = Authors(there, until=past.moment.number)
    read_as = {path: version.id for path, version in versions.items()}
    doubts = {note.path: note.doubt for note in past.doubts}
    then = Then(there, recall, Packs(there, recall), _told(past), read_as, doubts, room, key)
    weakref.finalize(then, _remove, room)  # a program may end without closing its store
    return then


def _versions(core: Core, past: VaultThen) -> dict[str, Version]:
    """Of the notes that were others, the change that made them so."""
    sought = {note.path: note.sha256 for note in past.differing if note.sha256}
    found: dict[str, Version] = {}
    for version in core.vault.history.log.backwards():
        if len(found) == len(sought):
            break
        for path, _, after in version.effects if version.number <= past.moment.number else ():
            if after is not None and sought.get(path) == after:
                found.setdefault(path, version)
    return found


def _time_of(version: Version | None, past: VaultThen) -> int:
    when = version.when if version is not None else past.moment.when
    try:
        return int(datetime.fromisoformat(when).timestamp()) * 1_000_000_000
    except (ValueError, OverflowError):
        return 0


def _told(past: VaultThen) -> AsOf:
    lost = sum(1 for note in past.differing if note.sha256 and note.data is None)
    doubts = tuple({"name": name_of(note.path), "doubt": note.doubt} for note in past.doubts)
    version = f"v{past.moment.number:06d}" if past.moment.number else None
    since = local(past.known_since) if past.known_since else None
    return AsOf(
        local(past.moment.when) or past.moment.when, version, len(past.differing), lost, len(doubts),
        doubts[:_MOST_DOUBTS], since,
    )  # fmt: skip


def _folder() -> Path:
    """A new folder that only this user can read. Those that a killed process left go."""
    import tempfile

    from simplemem.store.rooms import sweep

    sweep(_PREFIX)
    try:
        return Path(tempfile.mkdtemp(prefix=_PREFIX))
    except OSError as error:
        hint = "The environment variable TMPDIR names another place."
        raise Unavailable(f"no temporary folder can be made: {error.strerror or error}", hint=hint) from error


def _remove(folder: Path) -> None:
    import shutil

    shutil.rmtree(folder, ignore_errors=True)
