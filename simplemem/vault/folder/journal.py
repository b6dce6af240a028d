"""Apply changes of one or many notes as a whole: write a plan, carry it out, log it, and clear it.

A plan that is found under the vault's lock belongs to a change that a crash interrupted. If nothing
of the change was begun, it is dropped. Otherwise each step is completed, unless somebody has
changed its note since. The hashes of the files tell how far the change came (F6). A journal may
come with a vault from anywhere, so a plan is read only if it stays among notes, staged files and
the trash. docs/internals/writing.md#steps-of-a-write has the steps of a write.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Sequence, Set
from contextlib import suppress
from typing import Literal, NamedTuple

from simplemem.errors import SimplememError, TooLong, Unavailable, Unreadable
from simplemem.note.names import Parts, compare_key, is_path, parent
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import OVERWRITE, OWN_FOLDER, DirHandles
from simplemem.vault.folder.disk import TEMP, ConcurrentWrite
from simplemem.vault.folder.history import DISPLACED_FOLDER, LOG, OWN_TRASH, History, is_trash
from simplemem.vault.values import Version, read_version, sha256

# -- plans


class Step(NamedTuple):
    """The part of a change that concerns one note.

    `version` is its line in the log. `temp` is the path of the file with the new text: a staged
    file, or one in the trash; None if the note is deleted or keeps its text.
    """

    version: Version
    temp: str | None = None

    @property
    def target(self) -> str:
        """The path of the note's file afterwards: in the trash for a deleted one."""
        version = self.version
        new_path = version.trash if version.after is None else version.new_path
        return new_path or version.path

    @property
    def staged(self) -> str | None:
        """The path of the staged file with the new text.

        None if the new text comes from the trash or there is none.
        """
        if not self.temp or is_trash(self.temp):
            return None
        return self.temp

    @property
    def operations(self) -> list[FileOperation]:
        """The operations on files that make the change, in order: one or two.

        For a new note, its file is moved to its path. An existing note is moved, or its text is
        swapped, or it is moved first and then its text swapped. To delete is to move to the trash.
        """
        version = self.version
        temp = self.temp or ""
        if version.before is None:
            placement = FileOperation(
                self,
                source=temp,
                target=self.target,
                old_sha256=version.after or "",
            )
            return [placement]

        operations = []
        if self.target != version.path:
            move = FileOperation(
                self,
                source=version.path,
                target=self.target,
                old_sha256=version.before,
            )
            operations.append(move)
        if temp:
            swap = FileOperation(
                self,
                source=temp,
                target=self.target,
                old_sha256=version.before,
                new_sha256=version.after,
            )
            operations.append(swap)
        return operations


class FileOperation(NamedTuple):
    """A move of a file, or a swap of two files.

    Without `new_sha256`, it is a move of the file `source` to `target`, where no file may be. With
    it, it is a swap: the file `source`, which has that hash, and the file `target` change places.
    """

    step: Step
    source: str
    target: str
    old_sha256: str  # of a move, the hash of the file; of a swap, that of `target` before it
    new_sha256: str | None = None

    @property
    def third_name(self) -> str:
        """The path that the file has for a moment if only the letter case of its name changes.

        A file system that ignores case may refuse to move it directly. The path is that of a staged
        file in the folder of the note, and the same at each call.
        """
        version = self.step.version
        seed = f"{version.id} {version.path}"
        digest = hashlib.sha256(seed.encode()).hexdigest()
        name = f".simplemem-0-{digest[:24]}.tmp"
        return "/".join((*parent(version.path), name))


class JournalPlan(NamedTuple):
    """The steps of a change, and the folders that are created for it, outermost first."""

    steps: list[Step]
    new_folders: list[str]


def operations_of(steps: Sequence[Step]) -> list[FileOperation]:
    """Return the operations of all steps, in the order in which they are carried out."""
    operations = list[FileOperation]()
    for step in steps:
        operations += step.operations
    return operations


def format_plan(plan: JournalPlan) -> bytes:
    """Return a plan as it is written: a line of JSON, after a line with the hash of that line."""
    items = []
    for step in plan.steps:
        item = step.version._asdict()
        item["temp"] = step.temp
        items.append(item)
    contents = {"folders": plan.new_folders, "steps": items}
    line = json.dumps(contents).encode()
    digest = sha256(line).encode()
    return digest + b"\n" + line + b"\n"


def read_plan(data: bytes) -> JournalPlan | None:
    """Return the plan in the journal, None if it is damaged or was not written by simplemem.

    What follows the two lines of the plan is ignored: it is left of longer plans before. A journal
    may come with a vault from anywhere, so None is also returned if the plan could reach a hidden
    file, such as a hook of git. Never raises.
    """
    digest, _, rest = data.partition(b"\n")
    line = rest.partition(b"\n")[0]
    if digest != sha256(line).encode():
        return None

    try:
        return _parse_plan(line)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _parse_plan(line: bytes) -> JournalPlan | None:
    """Return the plan in a line of JSON, None if it may not be carried out.

    Raises ValueError, KeyError, TypeError, AttributeError or RecursionError for a malformed one.
    """
    plan = json.loads(line)
    folders: list[str] = plan["folders"]
    items = plan["steps"]

    steps = []
    for item in items:
        version = read_version(item)
        if version is not None:
            steps.append(Step(version, item["temp"]))

    is_complete = 0 < len(steps) == len(items)
    if not is_complete:
        return None
    if not all(isinstance(folder, str) and is_path(folder) for folder in folders):
        return None
    if not all(map(_is_allowed, steps)):
        return None
    return JournalPlan(steps, folders)


def _is_allowed(step: Step) -> bool:
    """Return whether a step stays among notes, staged files and the trash."""
    version = step.version
    is_change = bool(version.before or version.after) and bool(step.operations)
    return (
        is_path(version.path)
        and is_change
        and _has_allowed_target(step)
        and _has_allowed_source(step)
    )


def _has_allowed_target(step: Step) -> bool:
    """Return whether a step leads to a note or, if it deletes one, to the trash."""
    is_deletion = step.version.after is None
    if is_deletion:
        return is_trash(step.target) and step.temp is None
    return is_path(step.target)


def _has_allowed_source(step: Step) -> bool:
    """Return whether the new text of a step, if it has one, is in a staged file or the trash."""
    if step.temp is None:
        return bool(step.version.before)

    folder, _, name = step.temp.rpartition("/")
    is_beside_notes = not folder or is_path(folder)
    if is_beside_notes and TEMP.fullmatch(name):
        return True
    return is_trash(step.temp)


# -- how far an operation came

_UNREADABLE = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EACCES, errno.EPERM)

OperationState = Literal[
    "pending",  # nothing of the operation is done
    "at third name",  # a change of spelling stopped halfway: the file goes on to its new name
    "two names",  # on a disk without a safe rename, the file got its new name but kept the old one
    "intruded",  # the exchange displaced a save of another program, which has to go back
    "done",  # the operation was carried out, whatever happened to the note since
    "foreign",  # another program has changed the note, so it is left as it is
]
_NOT_BEGUN = ("pending", "foreign")


def _state_of(root: DirHandles, operation: FileOperation) -> OperationState:
    """Return how far an operation came, by the hashes of its files. Changes nothing."""
    if operation.new_sha256 is None:
        return _state_of_move(root, operation)
    return _state_of_swap(root, operation)


def _state_of_swap(root: DirHandles, swap: FileOperation) -> OperationState:
    """Return how far a swap came.

    The old file must not be at its backup name any more: see `Journal._place_backup`.
    """
    source_digest = _hash_at(root, swap.source)  # before the swap the new text, then the old one
    target_digest = _hash_at(root, swap.target)

    if target_digest == swap.new_sha256:
        is_expected = source_digest in (swap.old_sha256, swap.new_sha256, None)
        return "done" if is_expected else "intruded"
    if target_digest == swap.old_sha256:
        is_still_staged = source_digest == swap.new_sha256
        return "pending" if is_still_staged else "foreign"
    if source_digest == swap.old_sha256:
        return "done"  # another program has changed the note after the swap
    return "foreign"


def _state_of_move(root: DirHandles, move: FileOperation) -> OperationState:
    """Return how far a move came, on any file system, also one that ignores case."""
    if _hash_at(root, move.third_name) is not None:
        return "at third name"

    source_digest = _listed_hash_at(root, move.source)
    target_digest = _listed_hash_at(root, move.target)
    if source_digest == move.old_sha256:
        if target_digest is None:
            return "pending"
        if _is_same_file(root, move.source, move.target):
            return "two names"
        return "foreign"
    if target_digest is None:
        return "foreign"

    # A swap that follows the move may have given the target its new text already.
    is_last = move == move.step.operations[-1]
    if target_digest == move.old_sha256 or not is_last:
        return "done"
    return "foreign"


def _is_begun(root: DirHandles, operation: FileOperation) -> bool:
    """Return whether an operation has changed a file. Changes nothing itself."""
    return _state_of(root, operation) not in _NOT_BEGUN


def _is_same_file(root: DirHandles, path: str, other: str) -> bool:
    """Return whether two paths, in exactly these spellings, are names of one file."""
    for name in (path, other):
        if _listed_hash_at(root, name) is None:
            return False
    return os.path.samestat(root.stat(path), root.stat(other))


def _listed_hash_at(root: DirHandles, path: str) -> str | None:
    """Return the hash of the file with exactly this spelling, None if it is not there.

    A file system that ignores case opens a file under other spellings too.
    """
    with suppress(FileNotFoundError):
        folder, name = root.locate(path)
        if name in folder.names():
            return _hash_at(root, path)
    return None


def _hash_at(root: DirHandles, path: str) -> str | None:
    """Return the hash of the file at a path.

    None if there is none, "" for a link, a folder, or a file that is too long or may not be read.
    Raises OSError if the disk fails.
    """
    try:
        return disk.hash_of(root, path)
    except (Unreadable, TooLong):
        return ""
    except OSError as error:
        if error.errno in _UNREADABLE:
            return ""
        raise


# -- the journal

PLAN = f"{OWN_FOLDER}/journal/plan"
"""The file that holds the plan of the change that is being written."""

_NO_PLAN = b"nothing is under way\n"
_MAX_TRANSITIONS = 5  # from state to state, until an operation is done


class Journal:
    """Carries out steps. The vault's lock must be held while any of the methods runs."""

    def __init__(self, history: History, *, durable: bool) -> None:
        """Begin without reading the journal. With `durable`, changes are synced to the disk."""
        self._history = history
        self._durable = durable

    def perform(self, root: DirHandles, steps: Sequence[Step]) -> None:
        """Carry out all steps or none, log them, and set the displaced files aside.

        Raises ConcurrentWrite if another program changed a note, FileExistsError with the path if
        the target of a move is in use, and OSError if the disk fails. After these, the notes are as
        they were, and nothing is logged; if the rollback fails too, the error has a note, and the
        next `resume` finishes it. Raises Unavailable if the change was written, but the disk did
        not confirm it.
        """
        done_count: int | None = None  # of the operations carried out; None before the plan exists
        new_folders = list[str]()
        try:
            new_folders = self._missing_folders(root, steps)
            # This may fail on a full disk, so it comes before any change.
            root.make(DISPLACED_FOLDER)
            self._write_plan(root, JournalPlan(list(steps), new_folders))

            done_count = 0
            for operation in operations_of(steps):
                self._apply(root, operation)
                done_count += 1
                if len(steps) > 1:  # each of thousands of notes may be in another folder
                    root.close_all()
            self._history.log.append(root, [step.version for step in steps])
        except BaseException as error:
            self._roll_back_after(error, root, steps, done_count, new_folders)
            raise

        self._conclude(root, steps)

    def resume(self, root: DirHandles) -> bool:
        """Complete or drop the change that a crash interrupted; return whether there was one.

        A completed change is logged. A plan that is damaged is dropped, and does not count. Called
        before each write, and when a server starts.
        """
        data = b""
        with suppress(FileNotFoundError):
            data, _ = disk.read_file(root, PLAN)
        if not data or data.startswith(_NO_PLAN):
            return False

        # A plan that cannot be read was cut off while it was written. The first operation comes
        # after that, so there is nothing to complete.
        plan = read_plan(data)
        if plan is not None:
            self._resume_plan(root, plan)
        self._overwrite_plan(root, _NO_PLAN)
        return plan is not None

    # Carry out a change

    def _missing_folders(self, root: DirHandles, steps: Sequence[Step]) -> list[str]:
        """Return the folders that have to be created for the targets, outermost first.

        A folder that several targets need is in the list several times.
        """
        folders = list[str]()
        for step in steps:
            is_deletion = step.version.after is None
            if not is_deletion:
                folders += root.missing(parent(step.target))
        return folders

    def _write_plan(self, root: DirHandles, plan: JournalPlan) -> None:
        """Write the plan, and sync it if a power cut could leave its change halfway.

        A power cut never leaves a single rename halfway. A change of several notes needs the plan
        on the disk first. So does a move: a disk without a safe rename takes two calls for it.
        """
        root.make(parent(PLAN))
        steps = plan.steps
        can_be_halved = len(steps) > 1 or steps[0].version.new_path is not None
        text = format_plan(plan)
        self._overwrite_plan(root, text, sync=can_be_halved)

        is_folder_new = parent(PLAN) in root.made
        if self._durable and (can_be_halved or is_folder_new):
            folders = {parent(PLAN)}
            # After a power cut, the plan is of no use without the names of its staged files.
            for step in steps:
                if step.staged:
                    folders.add(parent(step.staged))
            self._sync_folders(root, folders)

    def _overwrite_plan(self, root: DirHandles, text: bytes, *, sync: bool = False) -> None:
        """Write `text` over the beginning of the journal, which never becomes shorter.

        To create or to empty a file costs more than the rest of a write. What follows the text is
        left of older plans. With `sync`, the text is on the disk afterwards, if the vault is
        durable.
        """
        with root.opened(PLAN, OVERWRITE) as fd:
            disk.write_all(fd, text)
            if sync and self._durable:
                disk.sync_file(fd)

    def _apply(self, root: DirHandles, operation: FileOperation) -> None:
        """Carry out one operation that was not begun.

        Raises ConcurrentWrite if another program changed the note first, and FileExistsError if the
        target of a move is in use.
        """
        if operation.new_sha256 is None:
            self._move(root, operation)
        else:
            self._swap(root, operation, operation.new_sha256)

    def _swap(self, root: DirHandles, swap: FileOperation, after: str) -> None:
        """Swap the staged text, whose hash is `after`, with the note.

        Raises ConcurrentWrite if another program changed the note first. Its text is then in place,
        and kept in the history too.
        """
        try:
            disk.swap(
                root,
                swap.source,
                swap.target,
                expected=swap.old_sha256,
                replacement=after,
            )
        except ConcurrentWrite as conflict:
            # The other program's text is back in its place. But a program that has read our text
            # in the meantime may save over it, so it is kept.
            if conflict.data is not None and conflict.digest is not None:
                with suppress(OSError, SimplememError):
                    self._history.keep(root, conflict.data, conflict.digest)
            raise

    def _move(self, root: DirHandles, move: FileOperation) -> None:
        """Move a file, and check that it has the expected text; create missing folders.

        Raises ConcurrentWrite, with the file back at its place, if it has another text or is gone,
        and FileExistsError, whose `filename` is the target, if the target exists.
        """
        root.make(parent(move.target))
        path = move.step.version.path
        try:
            self._rename(root, move)
        except FileNotFoundError as error:
            raise ConcurrentWrite(path, None) from error
        except FileExistsError as error:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), move.target) from error

        digest = _hash_at(root, move.target)
        if digest != move.old_sha256:
            # If an editor has created the file again, both files stay and no text is lost.
            with suppress(FileExistsError):
                disk.move_file(root, move.target, move.source)
            raise ConcurrentWrite(path, digest)

    def _rename(self, root: DirHandles, move: FileOperation) -> None:
        """Move a file, by the third name if only the spelling of its name changes.

        Raises FileNotFoundError if there is no source, and FileExistsError if the target exists.
        """
        try:
            disk.move_file(root, move.source, move.target)
        except FileExistsError:
            if not self._is_new_spelling(root, move):
                raise
            disk.move_file(root, move.source, move.third_name)
            disk.move_file(root, move.third_name, move.target)

    def _is_new_spelling(self, root: DirHandles, move: FileOperation) -> bool:
        """Return whether the target exists only because the file system ignores case or accents."""
        if compare_key(move.source) != compare_key(move.target):
            return False
        return _listed_hash_at(root, move.target) is None

    # Conclude a change

    def _conclude(self, root: DirHandles, steps: Sequence[Step]) -> None:
        """Set the displaced files of a logged change aside, sync all of it, and clear the plan.

        Raises Unavailable if the disk does not confirm the change, which stays.
        """
        is_tidy = self._tidy_up(root, steps)
        try:
            self._sync(root, steps)
        except OSError as error:
            first = steps[0].version
            raise Unavailable(
                f"the {first.op} of {first.path!r} was written, "
                f"but the disk did not confirm it: {error.strerror}",
                hint="Check the disk, which may be failing, and read the note.",
            ) from error

        if is_tidy:
            with suppress(OSError):
                self._overwrite_plan(root, _NO_PLAN)

    def _tidy_up(self, root: DirHandles, steps: Sequence[Step]) -> bool:
        """Set displaced files aside, and remove folders of the trash that became empty.

        Returns False if the disk prevents it. That is no error: the change itself is complete, and
        the next process that finds the plan does the rest.
        """
        history = self._history
        try:
            for step in steps:
                version = step.version
                if step.staged and version.before is not None:
                    history.set_aside(root, step.staged, version.id, version.before)
                elif step.temp and step.temp.startswith(f"{OWN_TRASH}/"):
                    # The file was restored. `.simplemem/trash` itself stays.
                    root.prune(parent(step.temp), keep=2)
        except OSError:
            return False
        return True

    def _sync(self, root: DirHandles, steps: Sequence[Step]) -> None:
        """Sync the folders of a change, and then the log, in a durable vault. Raises OSError.

        Call it after all renames: the first sync makes the file system write its own journal, which
        contains all of them, so the other syncs find little to do.
        """
        if not self._durable:
            return

        folders = {DISPLACED_FOLDER}
        for step in steps:
            for path in (step.version.path, step.target, step.temp):
                if path:
                    folders.add(parent(path))
        self._sync_folders(root, folders)

        with root.opened(LOG, disk.SYNC) as fd:
            disk.sync_file(fd, last=True)

    def _sync_folders(self, root: DirHandles, folders: set[Parts]) -> None:
        """Sync some folders, those that `root` has created, and the folders that these are in."""
        all_folders = set(folders)
        for new_folder in root.made:
            all_folders.add(new_folder)
            all_folders.add(new_folder[:-1])

        for folder in sorted(all_folders):
            # A folder of the trash may have become empty, and was removed.
            with suppress(FileNotFoundError):
                fd = root.folder(folder).fd
                if fd is not None:  # Windows has no handle, and writes names to the disk at once
                    disk.sync_file(fd)

    # Roll back a change

    def _roll_back_after(
        self,
        error: BaseException,
        root: DirHandles,
        steps: Sequence[Step],
        done_count: int | None,
        new_folders: Sequence[str],
    ) -> None:
        """Roll back a change that failed with an error, and clear its plan.

        If the disk prevents this too, the error gets a note, and the plan stays for the next start.
        """
        try:
            self._roll_back(root, steps, done_count, new_folders)
            self._overwrite_plan(root, _NO_PLAN)
        except (OSError, SimplememError) as failure:
            error.add_note(f"The rollback failed too ({failure}); the next start finishes it.")

    def _roll_back(
        self,
        root: DirHandles,
        steps: Sequence[Step],
        done_count: int | None,
        new_folders: Sequence[str],
    ) -> None:
        """Undo the first `done_count` operations, and the next one if it was begun.

        `done_count` is None if not even the plan was written. Staged files are removed, and folders
        of `new_folders` that become empty. May raise OSError or an error of simplemem.
        """
        begun = list[FileOperation]()
        tried_steps = set[Step]()
        if done_count is not None:
            operations = operations_of(steps)
            begun = operations[:done_count]
            for operation in operations[done_count : done_count + 1]:
                # On a disk that lacks calls, an operation takes several, and may have stopped
                # between them.
                self._place_backup(root, operation.step)
                if _is_begun(root, operation):
                    begun.append(operation)
            tried_steps = {operation.step for operation in operations[: done_count + 1]}

        for operation in reversed(begun):
            self._undo(root, operation)
        for step in steps:
            self._remove_staged(root, step, was_tried=step in tried_steps)

        for folder in reversed(new_folders):
            parts = folder.split("/")
            root.prune(tuple(parts), keep=len(parts) - 1)

    def _undo(self, root: DirHandles, operation: FileOperation) -> None:
        """Take back an operation that was carried out.

        If another program has saved over our text since, its text stays: a new note then stays at
        its path, and a moved one takes that text back with it. The text before is kept anyway.
        """
        with suppress(ConcurrentWrite):
            digest = _hash_at(root, operation.target)
            is_unchanged = digest == (operation.new_sha256 or operation.old_sha256)
            if operation.new_sha256 is None:
                is_new_note = operation.step.version.before is None
                if is_unchanged or not is_new_note:
                    self._move_back(root, operation)
            elif is_unchanged:
                disk.swap(
                    root,
                    operation.source,
                    operation.target,
                    expected=operation.new_sha256,
                    replacement=operation.old_sha256,
                )

    def _move_back(self, root: DirHandles, move: FileOperation) -> None:
        """Take back a move, also one that stopped at the third name."""
        is_at_third_name = bool(_hash_at(root, move.third_name))
        if is_at_third_name:
            _complete_move(root, move.third_name, move.source)
        else:
            _complete_move(root, move.target, move.source)

    def _remove_staged(self, root: DirHandles, step: Step, *, was_tried: bool) -> None:
        """Remove the staged file of a step, and the backup that a disk without exchange needs.

        With `was_tried`, an operation of the step was tried. So the file may have been at the path
        of the note, and is never just removed: it may contain what another program saved, or be
        open in an editor. It is set aside in the history instead.
        """
        if step.staged is None:
            return

        with suppress(FileNotFoundError):
            if was_tried:
                self._rescue(root, step.staged, step)
            else:
                disk.remove(root, step.staged)
        with suppress(FileNotFoundError):
            self._rescue(root, disk.backup_name(step.staged), step)

    def _rescue(self, root: DirHandles, file: str, step: Step) -> None:
        """Set a file that was a note's aside; a text that is kept nowhere becomes a version."""
        note = step.version.path
        reason = "saved by another program while simplemem was writing the note"
        self._history.rescue(root, file, note, reason)

    # Complete a change after a crash

    def _resume_plan(self, root: DirHandles, plan: JournalPlan) -> None:
        """Complete the change of a plan that was found, or roll it back if nothing was begun.

        If the log has later changes, the change had ended, and nothing is done.
        """
        own_versions = {step.version for step in plan.steps}
        logged = self._logged_since(own_versions)
        has_later_changes = not logged <= own_versions
        if has_later_changes:
            # A power cut lost only that the plan was cleared.
            return

        for step in plan.steps:
            self._place_backup(root, step)
        if not logged and self._is_untouched(root, plan.steps):
            self._roll_back(root, plan.steps, done_count=0, new_folders=plan.new_folders)
        else:
            logged_ids = {version.id for version in logged}
            self._finish(root, plan.steps, logged_ids)

    def _logged_since(self, versions: Set[Version]) -> set[Version]:
        """Return the changes in the log from the first of some versions on, these included.

        Recovered texts are left out.
        """
        first_number = min(version.number for version in versions)
        logged = self._history.log.since(first_number)
        return {version for version in logged if version.op != "recovered"}

    def _is_untouched(self, root: DirHandles, steps: Sequence[Step]) -> bool:
        """Return whether no step has begun."""
        for step in steps:
            first_operation = step.operations[0]
            if _is_begun(root, first_operation):
                return False
        return True

    def _finish(self, root: DirHandles, steps: Sequence[Step], logged_ids: set[str]) -> None:
        """Complete the steps, log those that are not in the log, and sync all of it.

        `logged_ids` are the ids of the changes in the log. Their steps are completed too: a power
        cut may keep the line and lose the renames before it. A step whose note has changed since is
        not logged.
        """
        new_versions = []
        for step in steps:
            # This stops at the first operation that cannot be completed.
            is_complete = all(self._complete(root, operation) for operation in step.operations)
            if is_complete and step.version.id not in logged_ids:
                new_versions.append(step.version)
            root.close_all()

        if new_versions:
            self._history.log.append(root, new_versions)
        for step in steps:
            self._remove_staged(root, step, was_tried=True)
        self._sync(root, steps)

    def _complete(self, root: DirHandles, operation: FileOperation) -> bool:
        """Complete an interrupted operation; return False if the note has changed since.

        A note that has changed is left as it is.
        """
        with suppress(ConcurrentWrite, FileNotFoundError, FileExistsError):
            for _ in range(_MAX_TRANSITIONS):
                state = _state_of(root, operation)
                if state == "done":
                    return True
                if state == "foreign":
                    return False
                self._advance(root, operation, state)
        return False

    def _advance(self, root: DirHandles, operation: FileOperation, state: OperationState) -> None:
        """Bring an operation from a state that is neither done nor foreign to the next one.

        Raises ConcurrentWrite, FileNotFoundError or FileExistsError if the files changed meanwhile.
        """
        source = operation.source
        target = operation.target
        if state == "pending":
            self._apply(root, operation)
        elif state == "intruded":
            # The save of the other program, which the swap displaced, goes back to the note's path.
            displaced_digest = _hash_at(root, source) or ""
            disk.swap(
                root,
                source,
                target,
                expected=operation.new_sha256 or "",
                replacement=displaced_digest,
            )
        elif state == "two names":
            disk.remove(root, source)
        elif _is_same_file(root, source, operation.third_name):
            # At the third name, on a disk without a safe rename: the file kept its old name.
            disk.remove(root, operation.third_name)
        else:
            _complete_move(root, operation.third_name, target)

    def _place_backup(self, root: DirHandles, step: Step) -> None:
        """Move the old file of an interrupted swap from its backup name.

        On a disk without exchange, the file has that name between two renames. It goes to the path
        of the staged file, as after an exchange; or back to the note's path if there is no file; or
        it is set aside. Does nothing if no file has the backup name.
        """
        if step.staged is None:
            return
        backup = disk.backup_name(step.staged)
        digest = _hash_at(root, backup)
        if digest is None:
            return

        if _hash_at(root, step.staged) is None:
            disk.rename_over(root, backup, step.staged)
        elif digest == step.version.before and _hash_at(root, step.target) is None:
            # ReplaceFileW of Windows stopped between its two renames.
            disk.move_file(root, backup, step.target)
        else:
            # If it is only a second name of the note, this removes it.
            reason = "left by an interrupted write"
            self._history.rescue(root, backup, step.version.path, reason)


def _complete_move(root: DirHandles, source: str, target: str) -> None:
    """Move a file, or finish a move that stopped while the file had both names."""
    if _is_same_file(root, source, target):
        disk.remove(root, source)
    else:
        disk.move_file(root, source, target)
