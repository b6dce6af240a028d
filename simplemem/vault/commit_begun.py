"""A commit of ours takes its place: the branch moves while git's own lock of the index is held, and then the index follows.

No two files change in one step, and whoever dies in between must not leave a person something staged that they did not
stage. So what is about to happen is written down first, in the git directory, where whoever commits next finds it, from
whichever vault of the repository. While the lock is there no git makes a commit of what the index says.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simplemem.vault.repository import Git, GitFailed
from simplemem.vault.staging import (
    LOCK,
    OURS,
    Entry,
    in_commit,
    in_index,
    is_ours,
    put_in_place,
    set_entries,
    write_anew,
)

_FILE = "simplemem.json"
_MOST_BYTES = 64_000_000


@dataclass(frozen=True, slots=True)
class Begun:
    """A commit, and what it makes of the entries of the index: before and after, None where there is none."""

    commit: str
    before: Mapping[str, Entry | None]
    after: Mapping[str, Entry | None]


def is_begun(git_dir: Path) -> bool:
    """Whether somebody is taking a commit to its place, or died over it. Cheap enough for every start."""
    return os.path.lexists(git_dir / _FILE)


def write_down(git_dir: Path, begun: Begun) -> None:
    """Have what is about to happen on the disk."""
    known = {"commit": begun.commit, "before": _plain(begun.before), "after": _plain(begun.after)}
    write_anew(git_dir / _FILE, json.dumps(known).encode())


def forget(git_dir: Path) -> None:
    """It has happened, or never will."""
    (git_dir / _FILE).unlink(missing_ok=True)


def settle(git: Git) -> None:
    """Bring to its end what somebody died over: the index follows if the branch has moved, and stays as it was if not.
    Whoever calls this has the turn."""
    folder = Path(git.repository.git_dir)
    begun = _read(folder / _FILE)
    there = _in_branch(git, begun) if begun is not None else None
    if is_ours(folder):
        if there is None:
            (folder / LOCK).unlink()
        else:
            put_in_place(folder)
    elif begun is not None and there is not None:
        _follow(git, begun, there)
    (folder / OURS).unlink(missing_ok=True)
    forget(folder)


def _in_branch(git: Git, begun: Begun) -> dict[str, Entry] | None:
    """What the checked-out commit has at these paths, if ours is in its past; None if it is not."""
    head = git.head()
    if head is None:
        return None
    try:
        if git.apart("rev-list", "--max-count=1", begun.commit, f"^{head}", "--").strip():
            return None
        return in_commit(git, head, list(begun.after))
    except GitFailed:
        return None  # our commit is not there any more, so no branch has it


def _follow(git: Git, begun: Begun, there: Mapping[str, Entry]) -> None:
    """The person took the lock away, as git tells them to, and now the index looks as if they took our change back. What
    they have staged or committed since stays as it is."""
    index = in_index(git, list(begun.after))
    late = {
        path: entry
        for path, entry in begun.after.items()
        if there.get(path) == entry and index.get(path, "nothing") == (begun.before.get(path) or "nothing")
    }
    if late:
        set_entries(git, late, index, len(begun.commit))


def _plain(entries: Mapping[str, Entry | None]) -> dict[str, list[str] | None]:
    return {path: None if entry is None else [entry.mode, entry.oid] for path, entry in entries.items()}


def _entries(known: Mapping[str, list[str] | None]) -> dict[str, Entry | None]:
    return {path: None if entry is None else Entry(str(entry[0]), str(entry[1])) for path, entry in known.items()}


def _read(file: Path) -> Begun | None:
    """What was written down; None when there is nothing, or nothing that can be read."""
    if file.is_symlink() or not file.is_file():
        return None
    try:
        with file.open("rb") as opened:
            known = json.loads(opened.read(_MOST_BYTES))
        commit = str(known["commit"])
        int(commit, 16)  # git is given it as an argument
        return Begun(commit, _entries(known["before"]), _entries(known["after"]))
    except (OSError, ValueError, AttributeError, TypeError, LookupError, RecursionError):
        return None
