"""What a change is about to do, as steps and as the bytes that say so on the disk. Values and their spelling; no effects.

A plan is found again after a crash, so it must be whole and it must be ours: a vault may come from anywhere, and its
journal with it. How plans are carried out is told in `journal.py`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from simplemem.vault.atomic import TEMP, sha256
from simplemem.vault.log import Version, read_version
from simplemem.vault.paths import SIDECAR, is_path

OWN_TRASH = f"{SIDECAR}/trash"
OBSIDIAN_TRASH = ".trash"


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
        """Where the note is afterwards."""
        return self.version.new_path or self.version.path

    @property
    def staged(self) -> str | None:
        """The staged file, when it is one of ours."""
        return self.temp if self.temp and TEMP.fullmatch(self.temp.rpartition("/")[2]) else None


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
            staged = temp is None or (isinstance(temp, str) and (is_trash(temp) or _is_staged(temp)))
            if not staged or (version.new_path is not None and not is_path(version.new_path)):
                return None
            if version.after is None and not (version.trash and is_trash(version.trash)):
                return None
            steps.append(Step(version, temp))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    if not steps or not all(isinstance(folder, str) and is_path(folder) for folder in folders):
        return None
    return steps, folders


def _is_staged(path: str) -> bool:
    above, _, name = path.rpartition("/")
    return TEMP.fullmatch(name) is not None and (not above or is_path(above))
