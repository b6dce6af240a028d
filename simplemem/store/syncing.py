"""The same memory on another machine, by git: what was changed here is committed, what was changed there is merged into it,
note by note, and both are pushed. Every merge is one step of the history; what cannot be merged lies beside its note."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from typing import Unpack

from simplemem.errors import Conflict, Invalid, SimplememError, Unavailable
from simplemem.exchange import Change, Exchange, Overtaken, Pending, exchange, pending
from simplemem.git import PLAIN, commit
from simplemem.memory import By, Synced
from simplemem.note.clock import now
from simplemem.note.merge import merge
from simplemem.note.names import name_of
from simplemem.note.note import read_note
from simplemem.note.words import counted
from simplemem.store.core import Core, change_by
from simplemem.store.undo import carry_out
from simplemem.store.write import encoded
from simplemem.vault.disk import sha256
from simplemem.vault.lock import FileLock
from simplemem.vault.obsidian import Move, name_key, rewrite_links
from simplemem.vault.paths import SIDECAR, check_path
from simplemem.vault.vault import Wish

_LOG = logging.getLogger(__name__)
_TRIES = 5
_Files = dict[str, bytes | None]  # what a merge makes of files, None for none


def sync(core: Core, **by: Unpack[By]) -> Synced:
    """Commit, fetch, merge and push. Unavailable says in a sentence why nothing was exchanged."""
    core.must_be_writable()
    committed = 0
    for _ in range(_TRIES):
        core.catch_up()
        found, waiting = _committed(core)
        committed += found
        try:
            return _exchanged(core, by, committed, waiting)
        except (Overtaken, Conflict):
            continue
    raise Unavailable(f"others were faster {_TRIES} times", hint="Try again in a moment.")


def _committed(core: Core) -> tuple[int, tuple[str, ...]]:
    """Commit what is saved and not staged: how many files, and which wait for the person."""
    root, allowed = core.vault.root, core.settings.git.folders
    with core.vault.lock():
        every = [each for each in pending(root, allowed) if _is_ours(core, each)]
        mine = [each for each in every if not each.is_staged]
        texts = {each.path: _text(core, each.path) for each in mine}
        patches = [(each.path, each.path, each.before, texts[each.path]) for each in mine]
        if patches:
            subject = f"simplemem: {counted(len(patches), 'change')} here"
            commit(root, patches, subject, {}, int(now().timestamp()), allowed)
    return len(mine), tuple(each.path for each in every if each.is_staged)


def _is_ours(core: Core, file: Pending) -> bool:
    """Whether a file is one of the vault that simplemem may touch."""
    try:
        check_path(file.path)
    except Invalid:
        return False
    return not core.vault.access.hides(file.path) and (core.entry(file.path) is not None or file.before is not None)


def _text(core: Core, path: str) -> bytes | None:
    return core.vault.read(path).data if core.entry(path) is not None else None


def _exchanged(core: Core, by: By, committed: int, waiting: tuple[str, ...]) -> Synced:
    with exchange(core.vault.root, core.settings.git.folders) as ex:
        ex.fetch()
        if ex.theirs is None or (base := ex.base) == ex.theirs:
            if ex.theirs != ex.ours:
                ex.push(ex.ours.id)
            return Synced(ex.remote, committed, (), (), waiting, ex.theirs != ex.ours, "")
        if base is None:
            raise Unavailable(f"{ex.remote} holds another history, which has nothing in common with this one")
        merging = _Merging(ex)
        files, copies = merging.files()
        _follow(core, ex, files, merging.moves())
        version = ""
        with core.vault.lock():
            if ex.repo.head.target != ex.ours.id:
                raise Overtaken
            wishes = _wishes(core, ex, files, waiting)
            if wishes:
                by = {"reason": f"merge of {str(ex.theirs.id)[:10]} from {ex.remote}", **by}
                written, _ = carry_out(core, wishes, change_by(by, "sync"))
                version = written[0].version
            made = ex.conclude(files)
        if made == ex.theirs.id:
            ex.seen(made)
        else:
            ex.push(made)
        cut = len(ex.place.prefix)
        changed = tuple(sorted(path[cut:] for path in files))
        return Synced(ex.remote, committed, changed, copies, waiting, made != ex.theirs.id, version)


def _follow(core: Core, ex: Exchange, files: _Files, moves: Mapping[str, str]) -> None:
    """Let links follow what moved on one side, in notes that the other side wrote."""
    cut = len(ex.place.prefix)
    for old, new in ((old[cut:], new[cut:]) for old, new in moves.items()):

        def before(key: str, old: str = old, new: str = new) -> Sequence[str]:
            there = {*core.index.files_named(key)} - {new}
            return sorted(there | {old} if name_key(old) == key else there)

        def after(key: str, old: str = old, new: str = new) -> Sequence[str]:
            there = {*core.index.files_named(key)} - {old}
            return sorted(there | {new} if name_key(new) == key else there)

        for path in core.index.sources_that_could_mean([old, new]):
            if (held := ex.held(here := ex.place.prefix + path)) is not None:
                files.setdefault(here, held)
        for path, data in [*files.items()]:
            if data is not None and path.endswith(".md") and not (note := read_note(data)).problem:
                text = rewrite_links(note, path[cut:], Move(old, new), before, after, core.conventions.link_format)
                files[path] = encoded(text) if text != note.text else data
    for path in [path for path, data in files.items() if data is not None and data == ex.held(path)]:
        del files[path]


def _wishes(core: Core, ex: Exchange, files: _Files, waiting: tuple[str, ...]) -> list[Wish]:
    """What is to be written. Conflict where a note was saved meanwhile."""
    wishes = []
    for path, data in files.items():
        inside = path[len(ex.place.prefix) :]
        if inside in waiting:
            hint = "Commit it, or take it out of the index: git restore --staged."
            raise Unavailable(f"{inside} is staged by you, and was changed there too", hint=hint)
        here = _text(core, inside)
        if here == data:
            continue
        if here != ex.held(path):
            raise Conflict(f"{inside} was saved meanwhile", current_sha256=None if here is None else sha256(here))
        if data is None:
            wishes.append(Wish("delete", inside, before=sha256(here or b""), gone=True))
        elif here is None:
            wishes.append(Wish("create", inside, data=data))
        else:
            wishes.append(Wish.update(inside, sha256(here), data))
    return wishes


class Syncing:
    """What a server exchanges now and then, one server of a vault at a time. All notes go, whatever agents may see."""

    def __init__(self, core: Core) -> None:
        self._root, self._settings = core.root, core.settings.for_a_person()
        self._ended = threading.Event()
        self._turn = FileLock(str(core.root), f"{SIDECAR}/sync.lock")
        self._thread = threading.Thread(target=self._run, name="simplemem-sync", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Let an exchange that is under way end, for a moment."""
        self._ended.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        try:
            while not self._ended.wait(60 * self._settings.sync.every):
                if self._turn.held():
                    self._once()
        finally:
            self._turn.give_back()

    def _once(self) -> None:
        try:
            core = Core(self._root, self._settings, read_only=False, person=True)
            try:
                sync(core, who="simplemem", tool="sync")
            finally:
                core.close()
        except (SimplememError, OSError) as error:
            _LOG.warning("not exchanged with the remote: %s", error)
        except Exception:  # noqa: BLE001  (the thread must outlive whatever it meets)
            _LOG.exception("not exchanged with the remote, for an unexpected reason")


class _Merging:
    """What becomes of every file that was changed there."""

    def __init__(self, ex: Exchange) -> None:
        assert ex.theirs is not None and ex.base is not None
        self._ex, self._theirs, self._base = ex, ex.theirs, ex.base
        self._files: _Files = {}
        self._copies: list[str] = []

    def files(self) -> tuple[_Files, tuple[str, ...]]:
        """What our files become, and the conflict copies among them."""
        mine = {path: each for each in self._ex.changes(self._base, self._ex.ours) if (path := _where(each))}
        for each in self._ex.changes(self._base, self._theirs):
            self._check(each)
            self._take(each, mine.get(_where(each)))
        cut = len(self._ex.place.prefix)
        return self._files, tuple(name_of(path[cut:]) for path in self._copies)

    def moves(self) -> dict[str, str]:
        """The notes that either side moved, ours before theirs."""
        every = [*self._ex.changes(self._base, self._theirs), *self._ex.changes(self._base, self._ex.ours)]
        return {a.path: b.path for a, b in every if a and b and a.path != b.path and self._files.get(a.path) is None}

    def _check(self, change: Change) -> None:
        """Unavailable when they changed what simplemem does not write."""
        for file in (change.was, change.now):
            if file is None:
                continue
            prefix = self._ex.place.prefix
            try:
                if not file.path.startswith(prefix) or file.mode not in PLAIN:
                    raise Invalid("")
                check_path(file.path[len(prefix) :])
            except Invalid:
                hint = "`git pull` brings such changes; simplemem exchanges notes and the files beside them."
                message = f"{self._ex.remote} changed {file.path!r}, which is none; nothing was changed here"
                raise Unavailable(message, hint=hint) from None

    def _take(self, theirs: Change, mine: Change | None) -> None:
        was, new = theirs.was, theirs.now
        if was is None or (mine is not None and mine.now is None):  # new there, or deleted here and changed there
            if new is not None:
                self._both(None, self._ex.held(new.path), new.data, new.path)
        elif new is None:
            if mine is None:  # what was changed here stays
                self._files[was.path] = None
        elif mine is None or mine.now is None:
            if new.path != was.path:
                self._files[was.path] = None
                self._both(None, self._ex.held(new.path), new.data, new.path)
            else:
                self._files[was.path] = new.data
        else:
            place = mine.now.path if mine.now.path != was.path else new.path
            if place != mine.now.path:
                self._files[mine.now.path] = None
            self._both(was.data, mine.now.data, new.data, place)

    def _both(self, base: bytes | None, ours: bytes | None, theirs: bytes, path: str) -> None:
        """Two texts of one file: merged, else the other beside ours."""
        if ours is None or ours == theirs:
            self._files[path] = theirs
            return
        try:
            texts = [None if each is None else each.decode("utf-8") for each in (base, ours, theirs)]
            merged = merge(texts[0], texts[1] or "", texts[2] or "", both=True) if path.endswith(".md") else None
        except UnicodeDecodeError:
            merged = None
        if merged is not None and merged.clean:
            self._files[path] = merged.text.encode("utf-8", "surrogatepass")
            return
        self._files[path] = ours
        stem, dot, ending = path.rpartition(".")
        copy = f"{stem}.REMOTE.{int(str(self._theirs.id)[:7], 16)}{dot}{ending}"
        self._files[copy] = theirs
        self._copies.append(copy)


def _where(change: Change) -> str:
    """Where a file was when both sides were one, or is new."""
    file = change.was or change.now
    return file.path if file is not None else ""
