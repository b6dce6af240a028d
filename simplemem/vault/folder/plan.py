"""The plan of a change: its steps, and the text of the journal that holds them.

A journal may come with a vault from anywhere, so a plan is read only if it stays among notes,
staged files and the trash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import NamedTuple

from simplemem.note.names import is_path, parent
from simplemem.vault.folder.disk import TEMP
from simplemem.vault.folder.trash import is_trash
from simplemem.vault.values import sha256
from simplemem.vault.versions import Version, read_version


class Step(NamedTuple):
    """The part of a change that concerns one note.

    `temp` is the file with the new text: a staged file, or one in the trash.
    """

    version: Version
    temp: str | None = None

    @property
    def target(self) -> str:
        """The path of the note's file afterwards."""
        version = self.version
        new_path = version.trash if version.after is None else version.new_path
        return new_path or version.path

    @property
    def staged(self) -> str | None:
        """The staged file, None if the new text comes from the trash or there is none."""
        if not self.temp or is_trash(self.temp):
            return None
        return self.temp

    @property
    def operations(self) -> list[FileOperation]:
        """What is done: a new file is put in place; or the note is moved, or rewritten, or both."""
        version = self.version
        temp = self.temp or ""
        if version.before is None:
            return [FileOperation(self, temp, self.target, version.after or "")]

        operations = []
        if self.target != version.path:
            move = FileOperation(self, version.path, self.target, version.before)
            operations.append(move)
        if temp:
            swap = FileOperation(self, temp, self.target, version.before, version.after)
            operations.append(swap)
        return operations


class FileOperation(NamedTuple):
    """A move of the file `source` to `target`, where no file is.

    With `after`, it is a swap: `source`, whose hash is `after`, and `target` change places.
    """

    step: Step
    source: str
    target: str
    before: str  # the hash of the file that is moved, or of the one that is displaced
    after: str | None = None

    @property
    def third_name(self) -> str:
        """The name between two spellings of a name, for a file system that ignores case."""
        version = self.step.version
        seed = f"{version.id} {version.path}"
        digest = hashlib.sha256(seed.encode()).hexdigest()
        name = f".simplemem-0-{digest[:24]}.tmp"
        return "/".join((*parent(version.path), name))


class Plan(NamedTuple):
    """The steps of a change, and the folders that are created for it, outermost first."""

    steps: list[Step]
    new_folders: list[str]


def operations_of(steps: Sequence[Step]) -> list[FileOperation]:
    """Return the operations of all steps, in the order in which they are carried out."""
    operations = list[FileOperation]()
    for step in steps:
        operations += step.operations
    return operations


def format_plan(plan: Plan) -> bytes:
    """Return a plan as a line of JSON, after a line with its hash."""
    items = []
    for step in plan.steps:
        item = step.version._asdict()
        item["temp"] = step.temp
        items.append(item)
    contents = {"folders": plan.new_folders, "steps": items}
    line = json.dumps(contents).encode()
    digest = sha256(line).encode()
    return digest + b"\n" + line + b"\n"


def read_plan(data: bytes) -> Plan | None:
    """Return the plan in the journal, None if it is damaged or was not written by simplemem.

    A journal may come with a vault from anywhere. It must never reach a hidden file, such as a
    hook of git.
    """
    digest, _, rest = data.partition(b"\n")
    line = rest.partition(b"\n")[0]
    if digest != sha256(line).encode():
        return None

    try:
        return _parse_plan(line)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _parse_plan(line: bytes) -> Plan | None:
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
    return Plan(steps, folders)


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
    is_deletion = step.version.after is None
    if is_deletion:
        return is_trash(step.target) and step.temp is None
    return is_path(step.target)


def _has_allowed_source(step: Step) -> bool:
    if step.temp is None:
        return bool(step.version.before)

    folder, _, name = step.temp.rpartition("/")
    is_beside_notes = not folder or is_path(folder)
    if is_beside_notes and TEMP.fullmatch(name):
        return True
    return is_trash(step.temp)
