"""Changes of one or many notes that happen together: written down first, carried out, logged, and then forgotten. A plan
that is found under the lock was interrupted by a crash: what was begun is brought to its end where nobody has changed
the note since, what was not is dropped (durability.md §3, F6). Hashes tell how far it came."""

from __future__ import annotations

import errno
import hashlib
import json
import os
from collections.abc import Sequence
from contextlib import suppress
from typing import Literal, NamedTuple

from simplemem.errors import SimplememError, TooLong, Unavailable, Unreadable
from simplemem.note.names import compare_key
from simplemem.vault import disk
from simplemem.vault.disk import TEMP, Intruded, sha256
from simplemem.vault.history import DISPLACED, LOG, OWN_TRASH, History, Version, read_version
from simplemem.vault.paths import OVERWRITE, SIDECAR, Beneath, Parts, is_path, parent

PLAN = f"{SIDECAR}/journal/plan"
OBSIDIAN_TRASH = ".trash"
_NOTHING = b"nothing is under way\n"
_MOST_STATES = 5  # that follow one another in an act
_NO_TEXT = (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EACCES, errno.EPERM)

State = Literal[
    "ahead",  # nothing of the act is done: all of it is done now
    "between",  # a change of spelling stopped at its third name: the file goes on to its new one
    "doubled",  # the file has both names, since the disk knows no rename that spares: the old one goes
    "intruded",  # the exchange displaced what somebody saved in that moment: theirs goes back, the act is given up
    "done",  # the act stands, whatever was done to the note since
    "foreign",  # somebody else has changed the note: it is left as it is
]
_NOT_BEGUN = ("ahead", "foreign")


class Step(NamedTuple):
    """One note's part of a change. `temp` is where its new text is staged: a file of ours, or one in the trash."""

    version: Version
    temp: str | None = None

    @property
    def target(self) -> str:
        """Where the note's file is afterwards."""
        return (
            self.version.trash if self.version.after is None else self.version.new_path
        ) or self.version.path

    @property
    def staged(self) -> str | None:
        """The staged file, when it is one of ours."""
        return self.temp if self.temp and not is_trash(self.temp) else None

    @property
    def acts(self) -> list[Act]:
        """What is done for it: a new file takes its place; or the note moves, or gets its new text, or both."""
        version, temp = self.version, self.temp or ""
        if version.before is None:
            return [Act(self, temp, self.target, version.after or "")]
        moves = (
            [Act(self, version.path, self.target, version.before)]
            if self.target != version.path
            else []
        )
        return (
            [*moves, Act(self, temp, self.target, version.before, version.after)] if temp else moves
        )


class Act(NamedTuple):
    """A file goes to where nothing is. With `after`, the staged text of that hash changes places with the one there."""

    step: Step
    source: str
    target: str
    before: str  # the hash of the file that goes, or of the one whose place is taken
    after: str | None = None

    @property
    def via(self) -> str:
        """The third name that a change of spelling goes through, where the disk ignores case."""
        version = self.step.version
        digest = hashlib.sha256(f"{version.id} {version.path}".encode()).hexdigest()[:24]
        return "/".join((*parent(version.path), f".simplemem-0-{digest}.tmp"))


def is_trash(path: str) -> bool:
    """Whether a path lies in one of the two trash folders."""
    return any(
        path.startswith(f"{top}/") and is_path(path[len(top) + 1 :])
        for top in (OWN_TRASH, OBSIDIAN_TRASH)
    )


def _read_plan(data: bytes) -> tuple[list[Step], list[str]] | None:
    """The steps of a plan and the folders that are made for it, or None when it is damaged, or not ours: a journal may
    come with a vault from anywhere, and must not reach a hidden file such as a hook of git."""
    seal, _, line = data.partition(b"\n")
    line = line.partition(b"\n")[0]
    if seal != sha256(line).encode():
        return None
    try:
        plan = json.loads(line)
        folders: list[str] = plan["folders"]
        steps = [
            Step(version, item["temp"])
            for item in plan["steps"]
            if (version := read_version(item)) is not None
        ]
        is_whole = 0 < len(steps) == len(plan["steps"]) and all(
            isinstance(f, str) and is_path(f) for f in folders
        )
        return (steps, folders) if is_whole and all(map(_is_ours, steps)) else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_ours(step: Step) -> bool:
    version, (above, _, name) = step.version, (step.temp or "").rpartition("/")
    is_staged = TEMP.fullmatch(name) is not None and (not above or is_path(above))
    goes_well = (
        is_trash(step.target) and step.temp is None
        if version.after is None
        else is_path(step.target)
    )
    takes_well = is_staged or is_trash(step.temp) if step.temp is not None else bool(version.before)
    is_change = bool(version.before or version.after) and bool(step.acts)
    return is_path(version.path) and is_change and goes_well and takes_well


def _state_of(here: Beneath, act: Act) -> State:
    if act.after is not None:
        displaced, there = _hash_at(here, act.source), _hash_at(here, act.target)
        if there == act.after:
            return "done" if displaced in (act.before, act.after, None) else "intruded"
        if there == act.before:
            return "ahead" if displaced == act.after else "foreign"
        return "done" if displaced == act.before else "foreign"
    if _hash_at(here, act.via) is not None:
        return "between"
    old, new = _listed(here, act.source), _listed(here, act.target)
    if new is None or old == act.before:
        is_twice = new is not None and _is_twice(here, act.source, act.target)
        return (
            "doubled" if is_twice else "ahead" if new is None and old == act.before else "foreign"
        )
    return "done" if new == act.before or act != act.step.acts[-1] else "foreign"


def _is_twice(here: Beneath, one: str, other: str) -> bool:
    """Whether one file has both names."""
    is_there = _listed(here, one) is not None and _listed(here, other) is not None
    return is_there and os.path.samestat(here.stat(one), here.stat(other))


def _carry_on(here: Beneath, source: str, target: str) -> None:
    """Bring a carry to its end that may have stopped halfway."""
    if _is_twice(here, source, target):
        disk.remove(here, source)
    else:
        disk.carry(here, source, target)


def _listed(here: Beneath, path: str) -> str | None:
    """The hash of a file under exactly this spelling: a disk that ignores case opens it under others too."""
    with suppress(FileNotFoundError):
        folder, name = here.spot(path)
        return _hash_at(here, path) if name in folder.names() else None
    return None


def _hash_at(here: Beneath, path: str) -> str | None:
    """The hash of what lies at a path, None when nothing does, "" for what cannot be read: no write stops at that."""
    try:
        return disk.hash_of(here, path)
    except (Unreadable, TooLong, OSError) as error:
        if isinstance(error, OSError) and error.errno not in _NO_TEXT:
            raise
        return ""


class Journal:
    """Carries out steps. All methods want the vault's lock held."""

    def __init__(self, history: History, *, durable: bool) -> None:
        self._history, self._durable = history, durable

    def perform(self, here: Beneath, steps: Sequence[Step]) -> None:
        """Carry out all steps or none. Intruded, FileExistsError or OSError: the notes are as they were."""
        acts, done, folders = [act for step in steps for act in step.acts], -1, list[str]()
        try:
            new = [parent(step.target) for step in steps if step.version.after is not None]
            folders = [name for folder in new for name in here.missing(folder)]
            here.make(
                tuple(DISPLACED.split("/"))
            )  # what may lack room is done before anything changes
            self._write(here, steps, folders)
            done = 0
            for act in acts:
                self._do(here, act)
                done += 1
                if len(steps) > 1:  # there may be thousands, each in a folder of its own
                    here.rest()
            self._history.log.append(here, [step.version for step in steps])
        except BaseException as error:
            try:
                self._back_out(here, steps, done, folders)
                self._put_down(here, _NOTHING)
            except (OSError, SimplememError) as trouble:
                error.add_note(f"The rollback failed too ({trouble}); the next start finishes it.")
            raise
        self._conclude(here, steps)

    def resume(self, here: Beneath) -> bool:
        """Finish or drop what a crash interrupted; whether there was something."""
        data = b""
        with suppress(FileNotFoundError):
            data, _ = disk.read_file(here, PLAN)
        if data.startswith(_NOTHING) or not data:
            return False
        if (
            plan := _read_plan(data)
        ) is not None:  # else it was cut short: it is whole before anything is begun
            (steps, folders), own = plan, {step.version for step in plan[0]}
            since = self._history.log.since(min(version.number for version in own))
            logged = {version for version in since if version.op != "recovered"}
            is_last = (
                logged <= own
            )  # else others were made since: it had ended, which a power cut lost
            for step in steps if is_last else ():
                self._gather(here, step)
            if (
                is_last
                and not logged
                and all(_state_of(here, step.acts[0]) in _NOT_BEGUN for step in steps)
            ):
                self._back_out(here, steps, 0, folders)
            elif is_last:
                self._finish(here, steps, {version.id for version in logged})
        self._put_down(here, _NOTHING)
        return plan is not None

    def _write(self, here: Beneath, steps: Sequence[Step], folders: Sequence[str]) -> None:
        here.make(parent(PLAN))
        # One rename is never halved by a power cut. What takes several needs the plan on the disk first, and a move
        # takes two where the disk knows no rename that spares.
        halves = len(steps) > 1 or steps[0].version.new_path is not None
        items = [step.version._asdict() | {"temp": step.temp} for step in steps]
        line = json.dumps({"folders": list(folders), "steps": items}).encode()
        self._put_down(here, sha256(line).encode() + b"\n" + line + b"\n", sync=halves)
        if self._durable and (halves or parent(PLAN) in here.made):
            self._sync_folders(
                here, {parent(PLAN), *(parent(step.staged) for step in steps if step.staged)}
            )

    def _put_down(self, here: Beneath, text: bytes, *, sync: bool = False) -> None:
        # Written over and never made shorter: making or emptying a file costs more than all the rest of a write. What
        # stands behind the plan's own line is of older plans.
        with here.opened(PLAN, OVERWRITE) as fd:
            disk.write_all(fd, text)
            if sync and self._durable:
                disk.sync_file(fd)

    def _do(self, here: Beneath, act: Act) -> None:
        if act.after is not None:
            try:
                return disk.swap(here, act.source, act.target, expected=act.before, ours=act.after)
            except Intruded as event:
                # Theirs is back in its place. But who read ours in that moment may save over it what came of ours.
                with suppress(OSError, SimplememError):
                    self._history.keep(here, event.data or b"", event.found or "")
                raise
        here.make(parent(act.target))
        path = act.step.version.path
        try:
            disk.carry(here, act.source, act.target)
        except FileNotFoundError as error:
            raise Intruded(path, None) from error
        except FileExistsError:
            if (
                compare_key(act.source) != compare_key(act.target)
                or _listed(here, act.target) is not None
            ):
                raise
            # obsidian.md §1.6 (d): where case is ignored, the new spelling "exists", so it goes through a third name.
            disk.carry(here, act.source, act.via)
            disk.carry(here, act.via, act.target)
        found = _hash_at(here, act.target)
        if found != act.before:
            with suppress(
                FileExistsError
            ):  # the editor has made the file anew: both stay, nothing is lost
                disk.carry(here, act.target, act.source)
            raise Intruded(path, found)
        return None

    def _conclude(self, here: Beneath, steps: Sequence[Step]) -> None:
        """Put the displaced files of a logged change away, make all of it durable, forget the plan."""
        is_tidy = False
        with suppress(OSError):  # the change itself is complete; whoever finds the plan tidies up
            for step in steps:
                if step.staged and step.version.before is not None:
                    self._history.set_aside(here, step.staged, step.version.id, step.version.before)
                elif step.temp and step.temp.startswith(f"{OWN_TRASH}/"):
                    here.prune(parent(step.temp), keep=2)
            is_tidy = True
        try:
            self._sync(here, steps)
        except OSError as error:
            first = steps[0].version
            what = f"the {first.op} of {first.path!r} was written, but the disk did not confirm it: {error.strerror}"
            raise Unavailable(
                what, hint="Check the disk, which may be failing, and read the note."
            ) from error
        if is_tidy:
            with suppress(OSError):
                self._put_down(here, _NOTHING)

    def _sync(self, here: Beneath, steps: Sequence[Step]) -> None:
        # All renames come first and then the syncs in a row: the first makes the file system write its own journal,
        # which holds them all, and the rest find little to do.
        if self._durable:
            paths = [
                path
                for step in steps
                for path in (step.version.path, step.target, step.temp)
                if path
            ]
            self._sync_folders(here, {tuple(DISPLACED.split("/")), *map(parent, paths)})
            with here.opened(LOG, disk.SYNC) as fd:
                disk.sync_file(fd, last=True)

    def _sync_folders(self, here: Beneath, folders: set[Parts]) -> None:
        for folder in sorted({*folders, *here.made, *(made[:-1] for made in here.made)}):
            with suppress(FileNotFoundError):  # emptied and removed, such as a folder in the trash
                fd = here.folder(folder).fd  # none on Windows, which writes names through at once
                if fd is not None:
                    disk.sync_file(fd)

    def _back_out(
        self, here: Beneath, steps: Sequence[Step], done: int, folders: Sequence[str]
    ) -> None:
        """Take back the acts that are done (-1: not even the plan was written), and what is begun of the next."""
        acts = [act for step in steps for act in step.acts]
        begun = max(done, 0)
        if 0 <= done < len(acts):
            # Where the disk lacks a call, an act takes several, and this one may have stopped between them.
            self._gather(here, acts[done].step)
            begun += _state_of(here, acts[done]) not in _NOT_BEGUN
        for act in reversed(acts[:begun]):
            with suppress(
                Intruded
            ):  # somebody has saved over ours since: theirs stays, the text before is kept
                stands = _hash_at(here, act.target) == (act.after or act.before)
                if act.after is not None and stands:
                    disk.swap(here, act.source, act.target, expected=act.after, ours=act.before)
                elif act.after is None and (stands or act.step.version.before is not None):
                    _carry_on(here, act.via if _hash_at(here, act.via) else act.target, act.source)
        reached = {act.step for act in acts[: done + 1]}
        for step in steps:
            self._clear(here, step, was_in_place=step in reached)
        for folder in reversed(folders):
            here.prune(tuple(folder.split("/")), keep=folder.count("/"))

    def _clear(self, here: Beneath, step: Step, *, was_in_place: bool) -> None:
        for path in (step.staged, disk.aside(step.staged)) if step.staged else ():
            with suppress(FileNotFoundError):
                if was_in_place or path != step.staged:
                    # It may hold what somebody else saved, or be open in an editor: it is never just unlinked.
                    reason = "saved by another program while simplemem was writing the note"
                    self._history.rescue(here, path, step.version.path, reason)
                else:
                    disk.remove(here, path)

    def _finish(self, here: Beneath, steps: Sequence[Step], logged: set[str]) -> None:
        new = []
        for step in steps:
            # Also what is logged: a power cut may keep the line and lose the renames before it.
            if (
                all(self._complete(here, act) for act in step.acts)
                and step.version.id not in logged
            ):
                new.append(step.version)
            here.rest()
        if new:
            self._history.log.append(here, new)
        for step in steps:
            self._clear(here, step, was_in_place=True)
        self._sync(here, steps)

    def _complete(self, here: Beneath, act: Act) -> bool:
        """Bring an interrupted act to its end. False: the note has changed since, and is left alone."""
        with suppress(Intruded, FileNotFoundError, FileExistsError):
            for _ in range(_MOST_STATES):
                state = _state_of(here, act)
                if state in ("done", "foreign"):
                    return state == "done"
                if state == "ahead":
                    self._do(here, act)
                elif state == "between" and not _is_twice(here, act.source, act.via):
                    _carry_on(here, act.via, act.target)
                elif state == "intruded":
                    theirs = _hash_at(here, act.source) or ""
                    disk.swap(here, act.source, act.target, expected=act.after or "", ours=theirs)
                else:  # two names of one file: still under its old one, or under the old one too
                    disk.remove(here, act.via if state == "between" else act.source)
        return False

    def _gather(self, here: Beneath, step: Step) -> None:
        """Where the disk has no exchange, the old file may still be under its second name: bring it to its first."""
        if step.staged is None:
            return
        aside = disk.aside(step.staged)
        found = _hash_at(here, aside)
        if found is None:
            return
        if _hash_at(here, step.staged) is None:
            disk.rename_over(here, aside, step.staged)
        elif found == step.version.before and _hash_at(here, step.target) is None:
            disk.carry(here, aside, step.target)  # ReplaceFileW stopped between its two renames
        else:
            self._history.rescue(here, aside, step.version.path, "left by an interrupted write")
