"""What a repository exchanges with its remote. The person's own `git` fetches and pushes, with their credentials, in a
folder of ours beside it: nothing that the repository's settings or hooks say is run. Merging is not done here."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pygit2
from pygit2.enums import DiffFind, FileMode, FileStatus, RepositoryState

from simplemem import git
from simplemem.errors import Unavailable
from simplemem.vault.paths import is_path

_SECONDS: Final = 300
_DRIVE = (
    "(?![A-Za-z]:)" if os.name == "nt" else ""
)  # C:/memory.git is a path there, and of a host C elsewhere
ADDRESS: Final = re.compile(
    rf"(?:ssh|https|file)://[^\s-]\S*+|(?!-){_DRIVE}[\w.-]++(?:@[\w.-]++)?+:(?!:)[^\s\\]++"
)
_STAGED: Final = (
    FileStatus.INDEX_NEW
    | FileStatus.INDEX_MODIFIED
    | FileStatus.INDEX_DELETED
    | FileStatus.INDEX_RENAMED
    | FileStatus.INDEX_TYPECHANGE
    | FileStatus.CONFLICTED
)
_FROM_OUTSIDE: Final = (
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_SSH_VARIANT",
    "GIT_ASKPASS",
    "GIT_TRACE",
    "GIT_TERMINAL_PROMPT",
)
_OFF: Final = (
    *(
        "core.fsmonitor=false",
        "gc.auto=0",
        "maintenance.auto=false",
        "fetch.recurseSubmodules=false",
    ),
    *(
        "push.recurseSubmodules=no",
        "submodule.recurse=false",
        "push.gpgSign=false",
        "fetch.unpackLimit=1",
    ),
    *("transfer.fsckObjects=true", "fetch.writeCommitGraph=false", "protocol.ext.allow=never"),
)
_THEIRS: Final = "refs/simplemem/theirs"


class File(NamedTuple):
    """A file of a commit: its path in the vault, or in the repository if it is none that simplemem writes."""

    path: str
    data: bytes
    is_ours: bool


class Change(NamedTuple):
    """What became of a file since both sides were one: None where it was not, or is no more."""

    was: File | None
    now: File | None

    @property
    def files(self) -> list[File]:
        return [file for file in self if file is not None]


class Overtaken(Exception):
    """Somebody else pushed meanwhile."""


class Exchange:
    """One repository and its remote, for one attempt."""

    def __init__(self, repo: pygit2.Repository, place: git.Checkout, room: Path) -> None:
        self.repo, self.place, self._room = repo, place, room
        if repo.state() != RepositoryState.NONE:
            what = repo.state().name.lower().replace("_", " ")
            raise Unavailable(
                f"a {what} is in progress in the repository", hint="Finish or abort it first."
            )
        branch = repo.lookup_reference("HEAD").target
        if not isinstance(branch, str) or repo.head_is_unborn:
            raise Unavailable(
                "no branch with a commit is checked out",
                hint="Check out a branch, and commit once.",
            )
        if (place.common / "shallow").exists():
            raise Unavailable(
                "the repository is a shallow clone", hint="`git fetch --unshallow` completes it."
            )
        self.branch = branch
        name = branch.removeprefix("refs/heads/")
        config = pygit2.Config(str(place.common / "config"))
        said = {each.name: each.value for each in config if each.name}
        self.remote = said.get(f"branch.{name}.remote") or "origin"
        self.their_branch = said.get(f"branch.{name}.merge") or branch
        self._tracking = (
            f"refs/remotes/{self.remote}/{self.their_branch.removeprefix('refs/heads/')}"
        )
        self.url = self._address(said.get(f"remote.{self.remote}.url"))
        if git.signature(repo) is None:
            hint = 'Run `git config --global user.name "Your Name"`, and the same for user.email.'
            raise Unavailable("git does not know your name and email address", hint=hint)
        self.ours = repo.head.peel(pygit2.Commit)
        self.theirs: pygit2.Commit | None = None

    def _address(self, url: str | None) -> str:
        if not url:
            raise Unavailable(
                "the repository has no remote", hint="Add one with `git remote add origin URL`."
            )
        path = self.place.top / os.path.expanduser(url)
        if not ADDRESS.fullmatch(url) and not (path.is_dir() and not url.startswith("-")):
            hint = (
                "Set the URL of the remote to the path of a folder, or to an ssh or https address."
            )
            raise Unavailable(
                f"the address of the remote {self.remote} is not supported: {url!r}", hint=hint
            )
        return url if ADDRESS.fullmatch(url) else str(path)

    def fetch(self) -> None:
        """Bring their commits into the repository."""
        (self._room / "refs" / "heads").mkdir(parents=True)
        (self._room / "objects" / "info").mkdir(parents=True)
        (self._room / "HEAD").write_text("ref: refs/heads/ours\n")
        (self._room / "config").write_text("[core]\n\trepositoryformatversion = 0\n\tbare = true\n")
        borrowed = os.fsencode(self.place.common / "objects")
        (self._room / "objects" / "info" / "alternates").write_bytes(borrowed + b"\n")
        (self._room / "refs" / "heads" / "ours").write_text(f"{self.ours.id}\n")
        if not self._git("ls-remote", "--heads", "--", self.url, self.their_branch).strip():
            return
        self._git(
            "fetch", "--quiet", "--no-tags", "--", self.url, f"+{self.their_branch}:{_THEIRS}"
        )
        theirs = (self._room / _THEIRS).read_text().strip()
        self._adopt()
        found = self.repo.get(theirs)
        if not isinstance(found, pygit2.Commit):
            raise Unavailable(
                f"the branch {self.their_branch} of the remote does not point to a commit"
            )
        self.theirs = found
        last = self.repo.references.get(self._tracking)
        if (
            last is not None
            and last.target != found.id
            and not self.repo.descendant_of(found.id, last.target)
        ):
            hint = "If that was intended, switch to the new history with `git pull` or `git reset`."
            raise Unavailable(f"the history of {self.remote} was rewritten", hint=hint)

    def _adopt(self) -> None:
        """Give the repository the packs that were fetched: each whole, and its index last."""
        packs = self.place.common / "objects" / "pack"
        packs.mkdir(exist_ok=True)
        for ending in (".pack", ".idx"):
            for pack in (self._room / "objects" / "pack").glob(f"*{ending}"):
                if not (packs / pack.name).exists():
                    shutil.copyfile(pack, temp := packs / f"tmp_{os.getpid()}{ending}")
                    temp.chmod(0o444)
                    os.replace(temp, packs / pack.name)
        self.repo.odb.add_disk_alternate(
            str(self._room / "objects")
        )  # what is open has not seen them yet

    def push(self, commit: pygit2.Oid) -> None:
        """Push a commit to their branch. Overtaken when somebody else did meanwhile."""
        try:
            self._git(
                "push",
                "--quiet",
                *self._unhooked(),
                "--",
                self.url,
                f"{commit}:{self.their_branch}",
            )
        except Unavailable as error:
            if re.search(
                r"\[(?:remote )?rejected\].*(?:fetch first|non-fast-forward|stale|lock)|fetch first",
                str(error),
            ):
                raise Overtaken from error
            raise
        self.seen(commit)

    def _unhooked(self) -> list[str]:
        """Of a remote on this disk the hooks would run here, as whoever runs this."""
        if ADDRESS.fullmatch(self.url) and not self.url.startswith("file:"):
            return []
        words = (
            _program(self.place.top),
            "-c",
            f"core.hooksPath={self._room / 'none'}",
            "receive-pack",
        )
        return [f"--receive-pack={shlex.join(words)}"]

    def seen(self, commit: pygit2.Oid) -> None:
        """Note how far the remote is, where git does."""
        self.repo.references.create(self._tracking, commit, force=True)

    def _git(self, *arguments: str) -> str:
        return run(self._room, self.place.top, self.remote, *arguments)

    @property
    def base(self) -> pygit2.Commit | None:
        """Where both sides were one."""
        if self.theirs is None:
            return self.ours
        found = self.repo.merge_base(self.ours.id, self.theirs.id)
        return self.repo[found].peel(pygit2.Commit) if found else None

    def changes(self, base: pygit2.Commit, side: pygit2.Commit) -> list[Change]:
        """What a side did, with the files that it moved."""
        diff = base.tree.diff_to_tree(side.tree)
        diff.find_similar(flags=DiffFind.FIND_RENAMES, rename_threshold=60)
        return [
            Change(
                None if delta.status_char() == "A" else self._file(delta.old_file),
                None if delta.status_char() == "D" else self._file(delta.new_file),
            )
            for delta in diff.deltas
        ]

    def _file(self, file: pygit2.DiffFile) -> File:
        blob = self.repo.get(file.id)
        data = blob.data if isinstance(blob, pygit2.Blob) and file.mode in git.PLAIN else b""
        path = file.path.removeprefix(self.place.prefix)
        is_ours = (
            file.path.startswith(self.place.prefix) and file.mode in git.PLAIN and is_path(path)
        )
        return File(path if is_ours else file.path, data, is_ours)

    def held(self, path: str) -> bytes | None:
        """What our last commit has at a path of the vault."""
        tree, there = self.ours.tree, self.place.prefix + path
        found = self.repo.get(tree[there].id) if there in tree else None
        return found.data if isinstance(found, pygit2.Blob) else None

    def conclude(self, files: Mapping[str, bytes | None]) -> pygit2.Oid:
        """Commit what was merged with both sides as parents, or go on to theirs where we have nothing of our own."""
        assert self.theirs is not None
        entries: dict[str, pygit2.IndexEntry | None] = {}
        for path, data in files.items():
            blob, there = (
                None if data is None else self.repo.create_blob(data),
                self.place.prefix + path,
            )
            entries[there] = None if blob is None else pygit2.IndexEntry(there, blob, FileMode.BLOB)
        with git.index_held(self.repo, self.place) as index:
            tree, made = git.with_files(self.repo, index, self.ours.tree, entries), self.theirs.id
            if self.base != self.ours or tree != self.theirs.tree.id:
                person = git.signature(self.repo)
                assert person is not None
                parents = [self.ours.id, self.theirs.id]
                made = self.repo.create_commit(
                    None, person, person, "simplemem: sync\n", tree, parents
                )
            git.go_on(self.repo, self.place, index, self.branch, made)
        return made


def run(git_dir: Path, top: Path, remote: str, *arguments: str) -> str:
    """What the person's git says in a repository of ours. Nothing that lies in `top` is run, nor any hook."""
    nowhere = git_dir / "none"
    env = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("GIT_") or key in _FROM_OUTSIDE
    }
    env |= {"GIT_DIR": str(git_dir), "GIT_ALLOW_PROTOCOL": "file:ssh:https", "LC_ALL": "C"}
    off = [word for each in (f"core.hooksPath={nowhere}", *_OFF) for word in ("-c", each)]
    command = [_program(top), *off, *arguments]
    try:
        done = subprocess.run(
            command,
            cwd=git_dir,
            env=env,
            capture_output=True,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(
            f"git did not answer within {_SECONDS} s", hint="Check the network."
        ) from None
    said = done.stderr.decode("utf-8", "replace")
    if done.returncode:
        words = " ".join(
            line.strip() for line in said.splitlines()[-6:] if not line.startswith("hint:")
        )
        raise Unavailable(
            f"{remote} cannot be reached: {words[:500]}", hint="Check whether `git fetch` works."
        )
    return done.stdout.decode("utf-8", "replace")


def _program(top: Path) -> str:
    """The person's git: never one that lies in the vault."""
    folders = [each for each in os.get_exec_path() if each and Path(each).is_absolute()]
    outside = [
        each
        for each in folders
        if not Path(os.path.realpath(each)).is_relative_to(os.path.realpath(top))
    ]
    found = shutil.which("git", path=os.pathsep.join(outside))
    if found is None:
        raise Unavailable(
            "git is not installed", hint="Install git: `simplemem sync` uses it to fetch and push."
        )
    return found


@contextmanager
def exchange(root: Path, allowed: tuple[str, ...]) -> Iterator[Exchange]:
    """The repository of a vault with its remote. Unavailable says in a sentence why nothing can be exchanged."""
    with (
        git.opened(root, allowed) as (repo, place),
        tempfile.TemporaryDirectory(prefix="simplemem-") as room,
    ):
        yield Exchange(repo, place, Path(room))


class Pending(NamedTuple):
    """A file that is another than in the last commit, as that has it, and whether the person has staged it."""

    path: str
    before: bytes | None
    is_staged: bool


def pending(root: Path, allowed: tuple[str, ...]) -> list[Pending]:
    """The files of a vault that are not committed as they are."""
    with git.opened(root, allowed) as (repo, place):
        git.settle(repo, place)
        last = None if repo.head_is_unborn else repo.head.peel(pygit2.Commit).tree
        found = []
        for path, flags in sorted(repo.status(untracked_files="all").items()):
            if path.startswith(place.prefix) and not flags & FileStatus.IGNORED:
                blob = repo.get(last[path].id) if last is not None and path in last else None
                data = blob.data if isinstance(blob, pygit2.Blob) else None
                found.append(Pending(path[len(place.prefix) :], data, bool(flags & _STAGED)))
    return found


def apart(root: Path, allowed: tuple[str, ...]) -> tuple[str, int, int] | None:
    """The remote, how many commits are here and not there, and the other way round, as of the last exchange."""
    with git.opened(root, allowed) as (repo, _):
        if repo.head_is_unborn or repo.head_is_detached:
            return None
        branch = repo.branches.local[repo.head.shorthand]
        if (there := branch.upstream) is None:
            return None
        ahead, behind = repo.ahead_behind(branch.target, there.target)
        return there.remote_name, ahead, behind
