"""Whether a repository is as it must be for a commit of ours: nothing under way, nobody writing, nothing behind a link."""

from __future__ import annotations

import os
import time
from pathlib import Path

from simplemem.errors import Unavailable

_UNDER_WAY = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or a patch",
    "sequencer": "a sequence of commits",
    "BISECT_LOG": "a bisection",
}
_WRITING_A_MESSAGE = 600.0  # seconds for which a message that was begun is taken to be still written
_MOST_MESSAGE = 100_000
_REMARKS = frozenset(bytes([character]) for character in b"#;@!$%^&|:")  # what core.commentChar may choose by itself


class Waiting(Unavailable):
    """The repository is not as it must be for a commit; it will be tried again."""


def check_state(git_dir: Path) -> None:
    for name, what in _UNDER_WAY.items():
        if (git_dir / name).exists():
            raise Waiting(f"{what[0].upper()}{what[1:]} is under way in the repository.")
    if _is_message_being_written(git_dir):
        raise Waiting("The message of a commit seems to be being written.")


def _is_message_being_written(git_dir: Path) -> bool:
    """Whether an editor seems to be open on a commit's message: moving the branch now would make that commit fail.

    The file stays when it is done, so it must be newer than the last commit, and have git's remarks in it still, which a
    message that was given on the command line never has.
    """
    file = git_dir / "COMMIT_EDITMSG"
    try:
        begun, last = file.stat().st_mtime, (git_dir / "logs" / "HEAD").stat().st_mtime
        if last >= begun or not 0 <= time.time() - begun < _WRITING_A_MESSAGE or not file.is_file():
            return False
        with file.open("rb") as opened:
            text = opened.read(_MOST_MESSAGE)
    except OSError:
        return False
    return any(line[:1] in _REMARKS for line in text.split(b"\n") if line)


def check_links(git_dir: Path, common: Path, branch: str) -> None:
    """Nothing is written through a link: a repository that somebody handed on could lead it anywhere."""
    for place in (
        git_dir / "index", git_dir / "logs" / "HEAD", common / branch, common / "logs" / branch, common / "objects"
    ):  # fmt: skip
        if os.path.realpath(place) != str(place):
            raise Waiting(f"{place} is or lies behind a link, and simplemem writes through none.")
    with os.scandir(common / "objects") as listed:
        if any(each.is_symlink() for each in listed):
            raise Waiting(f"A link lies in {common / 'objects'}, and simplemem writes through none.")
