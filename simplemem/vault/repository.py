"""The git repository a vault lies in, and how git is asked about it: never by the repository's own rules.

A vault is somebody's clone, and its `.git/config` may name commands (durability.md §1.2 h). What can be asked of the
objects alone is asked in a folder of our own that borrows them, so that git does not even read that file. What cannot
(refs, the index, what is ignored) is asked with all that git could run switched off. Nothing here reads or writes a note.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from simplemem.errors import Unavailable

SECONDS = 10.0
"""Longer than this nobody waits for git."""

_KEPT = frozenset(  # who the person is and where their own settings lie; everything else of GIT_* may point elsewhere
    "GIT_AUTHOR_NAME GIT_AUTHOR_EMAIL GIT_COMMITTER_NAME GIT_COMMITTER_EMAIL "
    "GIT_CONFIG_GLOBAL GIT_CONFIG_SYSTEM GIT_CONFIG_NOSYSTEM".split()
)
_QUIET = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ALLOW_PROTOCOL": "none",  # a partial clone would fetch what is missing, by whatever command its remote names
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
}
_SWITCHED_OFF = (
    "core.fsmonitor=false",
    "core.untrackedCache=keep",
    "core.pager=cat",
    "core.editor=false",
    "core.sshCommand=false",
    "core.askPass=",
    "credential.helper=",
    "diff.external=",
    "gpg.program=false",
    "log.showSignature=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
)
_NO_WINDOW = getattr(subprocess, "CREATE_NO_WINDOW", 0) | getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)


@dataclass(frozen=True, slots=True)
class Repository:
    """Where a vault lies in git: the working tree, its git directory, the one it shares, and the vault's place in it."""

    top: str
    git_dir: str
    common: str
    prefix: str  # "" or "notes/deep/"

    def path(self, note: str) -> str:
        """What git calls a note of the vault."""
        return self.prefix + note

    def note(self, path: str) -> str | None:
        """The vault path of what git calls so; None when it lies outside the vault."""
        return path[len(self.prefix) :] if path.startswith(self.prefix) else None


class GitFailed(Unavailable):
    """git said no. The message is its own, on one line."""


def find(root: Path) -> Repository | None:
    """The repository a vault lies in, None for most. No git is started for this.

    A `.git` that leads elsewhere is followed only where the other end names this place as its own, as it does for a
    worktree and a submodule: else a vault could show another repository of this machine as its past.
    """
    real = Path(os.path.realpath(root))
    disk = os.stat(real).st_dev
    for folder in (real, *real.parents):
        if os.stat(folder).st_dev != disk:
            break  # as git does: what lies on another disk is another matter
        here = folder / ".git"
        if not os.path.lexists(here):
            continue
        git_dir = Path(os.path.realpath(_named_in(here) if here.is_file() else here))
        common = _common(git_dir)
        if not _is_git_dir(git_dir, common):
            continue
        if git_dir != here and not _belongs(here, git_dir, common):
            raise Unavailable(
                f"{here} leads to {git_dir}, which does not name {folder} as its working tree.",
                hint=f"If it is yours: git --git-dir={git_dir} config core.worktree {folder}",
            )
        _check_inside(git_dir, common, here)
        prefix = "" if real == folder else real.relative_to(folder).as_posix() + "/"
        return Repository(str(folder), str(git_dir), str(common), prefix)
    return None


def _named_in(file: Path) -> Path:
    """Where a `.git` file says the git directory is."""
    said = _short_text(file)
    if not said.startswith("gitdir:"):
        return file
    return file.parent / said.removeprefix("gitdir:").strip()


def _common(git_dir: Path) -> Path:
    said = _short_text(git_dir / "commondir")
    return Path(os.path.realpath(git_dir / said)) if said else git_dir


def _is_git_dir(git_dir: Path, common: Path) -> bool:
    return (git_dir / "HEAD").is_file() and (common / "objects").is_dir()


def _belongs(here: Path, git_dir: Path, common: Path) -> bool:
    """Whether a git directory elsewhere knows this place: a linked worktree by `gitdir`, a submodule by its setting."""
    if git_dir.parent == common / "worktrees":
        back = _short_text(git_dir / "gitdir")
        return bool(back) and os.path.realpath(git_dir / back) == os.path.realpath(here.parent / ".git")
    if git_dir != common:
        return False
    said = _run([program(), "config", "--file", str(git_dir / "config"), "--get", "core.worktree"], git_dir, {}, 5.0)
    back = os.fsdecode(said.stdout).strip("\r\n")
    return bool(back) and os.path.realpath(git_dir / back) == str(here.parent)


def _check_inside(git_dir: Path, common: Path, here: Path) -> None:
    outside = git_dir == here and common != git_dir
    for folder, name in ((git_dir, "HEAD"), (common, "objects"), (common, "refs"), (common, "packed-refs")):
        outside = outside or Path(os.path.realpath(folder / name)).parent != folder
    if outside:
        raise Unavailable(
            f"A part of {here} is a link that leads out of it.", hint="simplemem reads no repository through a link."
        )


def _short_text(file: Path) -> str:
    """A pointer file of git's, "" when there is none. Whatever lies there, no more than a path is read, and no pipe."""
    if not file.is_file():
        return ""
    try:
        with file.open("rb") as opened:
            return os.fsdecode(opened.read(8192)).strip("\r\n")
    except OSError:
        return ""


def program() -> str:
    """Where git is. Only absolute folders of PATH count: what lies in a vault is never run."""
    folders = [part for part in os.environ.get("PATH", os.defpath).split(os.pathsep) if os.path.isabs(part)]
    for folder in folders:
        found = shutil.which(os.path.join(folder, "git"))
        if found and os.path.isabs(found):
            return found
    raise Unavailable("git is not installed, or not on the PATH.", hint="Install git, or set git.history = false.")


class Git:
    """git, asked about one repository for one purpose, within one time limit. Made by `asking`."""

    def __init__(self, repository: Repository, own: Path, seconds: float) -> None:
        self.repository = repository
        self.own = own
        self._program = program()
        self._deadline = time.monotonic() + seconds
        self._seconds = seconds

    def head(self) -> str | None:
        """The commit that is checked out; None before the first."""
        said = self.inside("rev-parse", "--quiet", "--verify", "HEAD", ok=(0, 1)).decode("ascii", "replace").strip()
        if not said:
            return None
        self.borrow(said)
        return said

    def apart(
        self,
        *args: str,
        stdin: bytes = b"",
        ok: Sequence[int] = (0,),
        env: Mapping[str, str] = {},
        attributes: bool = False,
    ) -> bytes:
        """Ask about commits and texts. The repository's settings are not read; `head` has been called before. Only with
        `attributes` are those of the working tree looked at: they can name no command."""
        common = self.repository.common
        where = {
            "GIT_DIR": str(self.own),
            "GIT_WORK_TREE": str(self.own),  # an empty folder: no attributes are read either
            "GIT_OBJECT_DIRECTORY": os.path.join(common, "objects"),
            "GIT_SHALLOW_FILE": os.path.join(common, "shallow"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ATTR_NOSYSTEM": "1",
        }
        if attributes:
            where["GIT_WORK_TREE"] = self.repository.top
        folder = Path(self.repository.top) if attributes else self.own
        return self._ask(args, where | dict(env), stdin, ok, folder)

    def inside(self, *args: str, stdin: bytes = b"", ok: Sequence[int] = (0,), env: Mapping[str, str] = {}) -> bytes:
        """Ask the repository itself: its refs, its index, what it ignores. Nothing it names is run."""
        where = {"GIT_DIR": self.repository.git_dir, "GIT_WORK_TREE": self.repository.top}
        off = [f"core.hooksPath={self.own / 'hooks'}", *_SWITCHED_OFF]
        options = [part for each in off for part in ("-c", each)]
        return self._ask([*options, *args], where | dict(env), stdin, ok, Path(self.repository.top))

    def as_the_person_would(self, *args: str, ok: Sequence[int] = (0,)) -> bytes:
        """Ask as in a terminal, so that git's own rules apply of whose repository may be worked in."""
        off = [f"core.hooksPath={self.own / 'hooks'}", *_SWITCHED_OFF]
        options = [part for each in off for part in ("-c", each)]
        return self._ask([*options, *args], {}, b"", ok, Path(self.repository.top))

    def borrow(self, commit: str) -> None:
        """Make our own folder a repository whose checked-out commit is this one; only its length matters if it is none."""
        (self.own / "HEAD").write_text(commit + "\n")
        sha256 = "\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = sha256\n"
        (self.own / "config").write_text("[core]\n" + (sha256 if len(commit) == 64 else ""))

    def _ask(
        self, args: Sequence[str], where: Mapping[str, str], stdin: bytes, ok: Sequence[int], folder: Path
    ) -> bytes:
        left = self._deadline - time.monotonic()
        if left <= 0:
            raise _too_slow(self._seconds)
        done = _run([self._program, "--no-pager", *args], folder, where, left, stdin, self._seconds)
        if done.returncode not in ok:
            words = done.stderr.decode("utf-8", "replace").split()
            raise GitFailed(f"git: {' '.join(words)[:400] or f'it ended with {done.returncode}'}")
        return done.stdout


@contextmanager
def asking(repository: Repository, seconds: float = SECONDS) -> Iterator[Git]:
    """git for a block, with a folder of its own that is gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="simplemem-git-", ignore_cleanup_errors=True) as name:
        own = Path(os.path.realpath(name))
        for folder in ("objects", "refs", "info", "hooks"):
            (own / folder).mkdir()
        yield Git(repository, own, seconds)


def _run(
    command: list[str],
    folder: Path,
    where: Mapping[str, str],
    left: float,
    stdin: bytes = b"",
    seconds: float = 5.0,
) -> subprocess.CompletedProcess[bytes]:
    env = {key: value for key, value in os.environ.items() if not key.upper().startswith("GIT_") or key in _KEPT}
    try:
        return subprocess.run(
            command,
            input=stdin,
            capture_output=True,
            cwd=folder,
            env=env | _QUIET | dict(where),
            timeout=left,
            check=False,
            start_new_session=sys.platform != "win32",  # a Ctrl-C is ours to answer
            creationflags=_NO_WINDOW,
        )
    except subprocess.TimeoutExpired as error:
        raise _too_slow(seconds) from error
    except OSError as error:
        raise Unavailable(f"git could not be started: {error.strerror}.") from error


def _too_slow(seconds: float) -> Unavailable:
    return Unavailable(f"git gave no answer within {seconds:g} s.", hint="Try again, or set git.history = false.")
