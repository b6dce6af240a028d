"""What a change is about to do, as steps; how far a step has come; and the bytes that say so on the disk.

A plan is found again after a crash, so it must be whole and it must be ours: a vault may come from anywhere, and its
journal with it. Every step can be told done or not done by hashes alone: `STATES` lists what may be found. How plans are
carried out is told in `journal.py`; nothing is changed here.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from simplemem.errors import TooLong, Unreadable
from simplemem.note.names import compare_key
from simplemem.vault import disk
from simplemem.vault.disk import TEMP, sha256
from simplemem.vault.log import Version, read_version
from simplemem.vault.paths import SIDECAR, Beneath, is_path, parent

OWN_TRASH = f"{SIDECAR}/trash"
OBSIDIAN_TRASH = ".trash"

State = Literal["ahead", "between", "doubled", "carried", "intruded", "done", "foreign"]
STATES: Final[dict[State, str]] = {
    "ahead": "Nothing of the step is done: all of it is done now.",
    "between": "A change of spelling stopped at its third name: the file goes on to its new one.",
    "doubled": "The file has both names, since the disk knows no rename that spares: the old one goes.",
    "carried": "The note has moved, with its old text: its new text takes the place.",
    "intruded": "The exchange displaced what somebody saved in that moment: theirs goes back, and the step is given up.",
    "done": "The step stands, whatever was done to the note since.",
    "foreign": "Somebody else has changed the note: it is left as it is.",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One note's part of a change. `temp` is where its new text is staged: a file of ours, or one in the trash."""

    version: Version
    temp: str | None = None

    @property
    def kind(self) -> Literal["put", "swap", "move", "trash"]:
        """What happens to the note, whatever the change is called."""
        if self.version.before is None:
            return "put"
        if self.version.after is None:
            return "trash"
        return "swap" if self.version.new_path is None else "move"

    @property
    def target(self) -> str:
        """Where the note's file is afterwards."""
        return (self.version.trash if self.kind == "trash" else self.version.new_path) or self.version.path

    @property
    def staged(self) -> str | None:
        """The staged file, when it is one of ours."""
        return self.temp if self.temp and TEMP.fullmatch(self.temp.rpartition("/")[2]) else None

    @property
    def via(self) -> str:
        """The third name that a change of spelling goes through, where the disk ignores case."""
        digest = hashlib.sha256(f"{self.version.id} {self.version.path}".encode()).hexdigest()[:24]
        return "/".join((*parent(self.version.path), f".simplemem-0-{digest}.tmp"))

    def __str__(self) -> str:
        version = self.version
        return f"{version.op} of {version.path!r}" + (f" to {version.new_path!r}" if version.new_path else "")


def spell_plan(steps: Sequence[Step], folders: Sequence[str]) -> bytes:
    """The plan as a line under its seal. `folders` are those that will be made for it."""
    actions = [step.version.as_dict() | {"temp": step.temp} for step in steps]
    line = json.dumps({"folders": list(folders), "steps": actions}).encode()
    return sha256(line).encode() + b"\n" + line + b"\n"


def is_trash(path: str) -> bool:
    """Whether a path lies in one of the two trash folders."""
    for trash in (OWN_TRASH, OBSIDIAN_TRASH):
        if path.startswith(trash + "/"):
            return is_path(path.removeprefix(trash + "/"))
    return False


def read_plan(data: bytes) -> tuple[list[Step], list[str]] | None:
    """A plan, or None when it is damaged or asks for what no plan of ours asks for.

    Only notes are named here, only our own staged files and the trash are taken from, so that no plan can reach a hidden
    file such as a hook of git.
    """
    seal, _, line = data.partition(b"\n")
    line = line.partition(b"\n")[0]
    if seal != sha256(line).encode():
        return None
    try:
        plan = json.loads(line)
        folders, steps = plan["folders"], []
        for item in plan["steps"]:
            version, temp = read_version(item), item["temp"]
            if version is None or not is_path(version.path) or not (version.before or version.after):
                return None
            steps.append(Step(version, temp))
            staged = temp is None or (isinstance(temp, str) and (is_trash(temp) or _is_staged(temp)))
            if not staged or not (is_trash if steps[-1].kind == "trash" else is_path)(steps[-1].target):
                return None
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not steps or not all(isinstance(folder, str) and is_path(folder) for folder in folders):
        return None
    return steps, folders


def _is_staged(path: str) -> bool:
    above, _, name = path.rpartition("/")
    return TEMP.fullmatch(name) is not None and (not above or is_path(above))


def state_of(here: Beneath, step: Step) -> State:
    """How far a step has come, told by what lies where."""
    before, after = step.version.before, step.version.after
    if step.kind in ("move", "trash"):
        if hash_at(here, step.via) is not None:
            return "between"
        old, new = listed(here, step.version.path), listed(here, step.target)
        if new is None:
            return "ahead" if old == before else "foreign"
        if is_twice(here, step.version.path, step.target):
            return "doubled"
        if old == before and step.kind == "move":
            return "foreign"
        if not step.temp:
            return "done" if new == before else "foreign"
    there = hash_at(here, step.target)
    temp = hash_at(here, step.temp) if step.temp else None
    if step.kind == "put":
        if there is None:
            return "ahead" if temp == after else "foreign"
        is_ours = temp is None or disk.same_file(here, step.temp or "", step.target)
        return "done" if there == after and is_ours else "foreign"
    if there == after:
        return "done" if temp in (before, after, None) else "intruded"
    if there == before:
        return "foreign" if temp != after else "ahead" if step.kind == "swap" else "carried"
    return "done" if temp == before else "foreign"


def is_respelling(here: Beneath, step: Step) -> bool:
    path, target = step.version.path, step.target
    is_same = compare_key(path) == compare_key(target) and disk.same_file(here, path, target)
    return is_same and listed(here, target) is None


def is_twice(here: Beneath, one: str, other: str) -> bool:
    """Whether one file has both names."""
    both = listed(here, one) is not None and listed(here, other) is not None
    return both and disk.same_file(here, one, other)


def listed(here: Beneath, path: str) -> str | None:
    """The hash of a file under exactly this spelling: a disk that ignores case opens it under others too."""
    try:
        folder, name = here.spot(path)
    except FileNotFoundError:
        return None
    return hash_at(here, path) if name in folder.names() else None


def hash_at(here: Beneath, path: str) -> str | None:
    """The hash of what lies at a path, None when nothing does. What is no readable file matches no hash: a link or a
    folder that somebody put there must not stop every later write.
    """
    try:
        return disk.hash_of(here, path)
    except (Unreadable, TooLong):
        return ""
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENXIO, errno.EISDIR, errno.EACCES, errno.EPERM):
            raise
        return ""
