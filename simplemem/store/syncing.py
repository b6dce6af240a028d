"""The same memory on another machine, by git: what was changed here is committed, what was changed there is merged into it,
note by note, and both are pushed. Every merge is one step of the history; what cannot be merged lies beside its note."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping
from contextlib import closing, suppress
from typing import Unpack

from pygit2 import Commit

from simplemem.errors import Conflict, SimplememError, Unavailable
from simplemem.gitrepo.committing import Patch, commit_patches
from simplemem.gitrepo.exchange import Exchange, TreeChange, open_exchange
from simplemem.gitrepo.status import list_uncommitted
from simplemem.gitrepo.user_git import PushRejected
from simplemem.models import By, Synced
from simplemem.note.dates import now
from simplemem.note.formatting import counted
from simplemem.note.merge import merge
from simplemem.note.names import name_of
from simplemem.note.note import read_note
from simplemem.note.paths import is_path
from simplemem.obsidian.link_edits import Moves, rewrite_links
from simplemem.store.core import Core, change_by
from simplemem.store.edits import encoded
from simplemem.store.factory import make_parts
from simplemem.vault.folder.dir_handles import OWN_FOLDER
from simplemem.vault.folder.lock import FileLock
from simplemem.vault.values import FileChange, sha256

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
        with suppress(PushRejected, Conflict):
            return _exchanged(core, by, committed, waiting)
    raise Unavailable(
        f"other writers pushed first {_TRIES} times in a row", hint="Try again in a moment."
    )


def _committed(core: Core) -> tuple[int, tuple[str, ...]]:
    """Commit what is saved and not staged: how many files, and which wait for the person."""
    root, allowed, hides = core.vault.root, core.settings.git.folders, core.vault.access.hides
    with core.vault.lock():
        seen = [
            each
            for each in list_uncommitted(root, allowed)
            if is_path(each.path) and not hides(each.path)
        ]
        every = [
            each for each in seen if each.before is not None or core.entry(each.path) is not None
        ]
        mine = [each for each in every if not each.is_staged]
        patches = [
            Patch(each.path, each.path, each.before, core.bytes_of(each.path)) for each in mine
        ]
        if patches:
            subject = f"simplemem: {counted(len(patches), 'change')} here"
            commit_patches(root, patches, subject, {}, int(now().timestamp()), allowed)
    return len(mine), tuple(each.path for each in every if each.is_staged)


def _exchanged(core: Core, by: By, committed: int, waiting: tuple[str, ...]) -> Synced:
    with open_exchange(core.vault.root, core.settings.git.folders) as ex:
        ex.fetch()
        if ex.theirs is None or (base := ex.base) == ex.theirs:
            if ex.theirs != ex.ours:
                ex.push(ex.ours.id)
            return Synced(ex.remote, committed, (), (), waiting, ex.theirs != ex.ours, "")
        if base is None:
            raise Unavailable(
                f"the history of {ex.remote} has no commit in common with the local history"
            )
        merging = _Merging(ex, base, ex.theirs)
        files, copies, version = merging.files, tuple(map(name_of, merging.copies)), ""
        _follow(core, ex, files, merging.moves)
        with core.vault.lock():
            if ex.repo.head.target != ex.ours.id:
                raise PushRejected
            wishes = _wishes(core, ex, files, waiting)
            if wishes:
                by = {"reason": f"merge of {str(ex.theirs.id)[:10]} from {ex.remote}", **by}
                written, _ = core.parts.writer.carry_out(wishes, change_by(by, "sync"))
                version = written[0].version
            made = ex.commit_merge(files)
        if made == ex.theirs.id:
            ex.record_remote_commit(made)
        else:
            ex.push(made)
        return Synced(
            ex.remote,
            committed,
            tuple(sorted(files)),
            copies,
            waiting,
            made != ex.theirs.id,
            version,
        )


def _follow(core: Core, ex: Exchange, files: _Files, moves: Mapping[str, str]) -> None:
    """Let links follow what moved on one side, in notes that the other side wrote."""
    for old, new in moves.items():
        move = Moves({old: new})
        before, after = (
            core.parts.links.named_after(Moves({new: old})),
            core.parts.links.named_after(move),
        )
        for path in core.index.sources_that_could_mean([old, new]):
            if (held := ex.text_in_last_commit(path)) is not None:
                files.setdefault(path, held)
        for path, data in [*files.items()]:
            if data is not None and path.endswith(".md") and not (note := read_note(data)).problem:
                text = rewrite_links(note, path, move, before, after, core.conventions.link_format)
                files[path] = encoded(text) if text != note.text else data
    for path in [
        path
        for path, data in files.items()
        if data is not None and data == ex.text_in_last_commit(path)
    ]:
        del files[path]


def _wishes(core: Core, ex: Exchange, files: _Files, waiting: tuple[str, ...]) -> list[FileChange]:
    """What is to be written. Conflict where a note was saved meanwhile."""
    wishes = []
    for path, data in files.items():
        if path in waiting:
            hint = "Commit it, or unstage it with `git restore --staged`."
            raise Unavailable(f"{path} is staged here, and the remote changed it too", hint=hint)
        here = core.bytes_of(path)
        if here == data:
            continue
        found = None if here is None else sha256(here)
        if here != ex.text_in_last_commit(path):
            raise Conflict(f"{path} was saved during the merge", current_sha256=found)
        wishes.append(FileChange.update(path, found, data))
    return wishes


class Syncing:
    """What a server exchanges now and then, one server of a vault at a time. All notes go, whatever agents may see."""

    def __init__(self, core: Core) -> None:
        self._root, self._settings = core.root, core.settings.for_a_person()
        self._ended = threading.Event()
        self._turn = FileLock(str(core.root), f"{OWN_FOLDER}/sync.lock")
        self._thread = threading.Thread(target=self._run, name="simplemem-sync", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """Let an exchange that is under way end, for a moment."""
        self._ended.set()
        self._thread.join(5.0)

    def _run(self) -> None:
        try:
            while not self._ended.wait(60 * self._settings.sync.every):
                if not self._turn.take_or_keep():
                    continue
                try:
                    with closing(
                        Core(make_parts(self._root, self._settings, read_only=False, person=True))
                    ) as core:
                        sync(core, who="simplemem", tool="sync")
                except (SimplememError, OSError) as error:
                    _LOG.warning("changes were not exchanged with the remote: %s", error)
                except Exception:  # noqa: BLE001  (the thread must outlive whatever it meets)
                    _LOG.exception(
                        "changes were not exchanged with the remote because of an unexpected error"
                    )
        finally:
            self._turn.release()


class _Merging:
    """What becomes of every file that was changed there, which `copies` lie beside their notes, and what either side
    moved, ours before theirs."""

    def __init__(self, ex: Exchange, base: Commit, theirs: Commit) -> None:
        self._ex, self._theirs = ex, theirs
        self.files: _Files = {}
        self.copies: list[str] = []
        there, here = ex.changes_since(base, theirs), ex.changes_since(base, ex.ours)
        mine = {
            each.files[0].path: each for each in here if all(file.is_ours for file in each.files)
        }
        for each in there:
            for file in each.files:
                if not file.is_ours:
                    hint = "Nothing was changed here. Get such changes with `git pull`."
                    message = (
                        f"{ex.remote} changed {file.path!r}, which is not a note or an attachment"
                    )
                    raise Unavailable(message, hint=hint)
            self._take(each, mine.get(each.files[0].path))
        moved = ((was.path, now.path) for was, now in [*there, *mine.values()] if was and now)
        self.moves = {old: new for old, new in moved if old != new and self.files.get(old) is None}

    def _take(self, theirs: TreeChange, mine: TreeChange | None) -> None:
        was, new = theirs
        now = mine.after if mine is not None else was
        if (
            was is not None and mine is None and (new is None or new.path != was.path)
        ):  # what was changed here stays
            self.files[was.path] = None
        if new is None:
            return
        if (
            was is None or now is None or (mine is None and new.path != was.path)
        ):  # new there, or as good as new
            self._both(None, self._ex.text_in_last_commit(new.path), new.data, new.path)
        else:
            place = now.path if now.path != was.path else new.path
            if place != now.path:
                self.files[now.path] = None
            self._both(was.data, now.data, new.data, place)

    def _both(self, base: bytes | None, ours: bytes | None, theirs: bytes, path: str) -> None:
        """Two texts of one file: merged, else the other beside ours."""
        if ours in (None, base, theirs):
            self.files[path] = theirs
            return
        with suppress(UnicodeDecodeError):
            texts = [
                None if each is None else each.decode("utf-8") for each in (base, ours, theirs)
            ]
            if (
                path.endswith(".md")
                and (merged := merge(texts[0], texts[1] or "", texts[2] or "", both=True)).clean
            ):
                self.files[path] = merged.text.encode("utf-8", "surrogatepass")
                return
        self.files[path] = ours
        stem, dot, ending = path.rpartition(".")
        copy = f"{stem}.REMOTE.{int(str(self._theirs.id)[:7], 16)}{dot}{ending}"
        self.files[copy] = theirs
        self.copies.append(copy)
