"""A branch of a bare repository: its newest commit, the files of a commit, and one commit more, which the branch goes on to
only from the commit it stands on. One that is elsewhere has a copy here, which the person's own git fetches and pushes."""

from __future__ import annotations

import hashlib
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from itertools import repeat
from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import FileMode, RepositoryOpenFlag

from simplemem import git
from simplemem.errors import Unavailable
from simplemem.exchange import ADDRESS, Overtaken, run
from simplemem.vault.paths import MOST_PARTS
from simplemem.vault.writer import taken

_ENTRY = {size: re.compile(rb"(\d+) ([^\0]+)\0(.{%d})" % size, re.DOTALL) for size in (20, 32)}
"""An entry of a tree, by the length of an id: its mode, name and id."""
_OURS = b"\nSimplemem-Version: "  # in the message of a commit
_LONG = 10.0  # seconds that no git takes from making a lock to writing into it
_NOWHERE = ""  # the commit of a branch without one
_LOCKED = "If no other git process is running, remove the file that ends with .lock."
_MOST_ENTRIES = 2_000_000  # files and folders of a branch: one that has more, by folders within themselves, has no end


class Branch:
    """One branch, for any thread."""

    def __init__(self, repository: str, name: str, copy: Path) -> None:
        self.url, self._shown = (
            repository if ADDRESS.fullmatch(repository) else "",
            shown(repository),
        )
        copy = copy.with_name(
            f"{copy.name}-{hashlib.sha256(self._shown.encode()).hexdigest()[:8]}.git"
        )
        self.path = copy if self.url else Path(repository).expanduser()
        self.ref, self._local = f"refs/heads/{name}", threading.local()
        if self.url and not copy.exists():
            pygit2.init_repository(str(copy), bare=True)
        if not self.repo.is_bare:
            hint = "Use a bare repository: create one with `git clone --bare` or `git init --bare`."
            raise Unavailable(f"{self.path} is a repository with a working tree", hint=hint)
        pygit2.settings.enable_fsync_gitdir(True)
        if self.url:
            with suppress(Unavailable):  # what is here is served
                self.fetch()

    @property
    def repo(self) -> pygit2.Repository:
        """The repository as this thread has it open."""
        if (found := getattr(self._local, "repo", None)) is None:
            try:
                found = self._local.repo = pygit2.Repository(
                    str(self.path), RepositoryOpenFlag.NO_SEARCH
                )
            except pygit2.GitError as error:
                hint = "`git init --bare PATH` creates one."
                raise Unavailable(f"no repository at {self.path} ({error})", hint=hint) from error
        return found

    def newest(self) -> str:
        """The newest commit, "" before the first."""
        found, newest = self._head()
        if (
            found is None and not (self.path / "HEAD").exists()
        ):  # else all notes would seem to be deleted
            raise Unavailable(
                f"the repository {self._shown} is not reachable",
                hint="Check that its disk is connected. simplemem tries again.",
            )
        return newest

    def _head(self) -> tuple[pygit2.Reference | None, str]:
        """The branch as it stands, and its newest commit."""
        found = self.repo.references.get(self.ref)
        return found, str(found.target) if found is not None else _NOWHERE

    def _put_on(self, found: pygit2.Reference | None, commit: str) -> None:
        """Put the branch on a commit, if it still stands as it was `found`."""
        if found is None:
            self.repo.references.create(self.ref, commit)
        else:
            found.set_target(commit, "simplemem")

    def tree(self, commit: str) -> pygit2.Tree | None:
        return self.repo[commit].peel(pygit2.Tree) if commit else None

    def file(self, commit: str, path: str) -> pygit2.Blob | None:
        """The blob of a plain file; None for anything else."""
        found = at(self.tree(commit), path)
        return found if isinstance(found, pygit2.Blob) and found.filemode in git.PLAIN else None

    @lru_cache(maxsize=8)  # noqa: B019  (a branch lives as long as the process)
    def between(self, since: str, until: str) -> frozenset[str]:
        """The files that differ between two commits."""
        one, other = (
            None if tree is None else tree.id for tree in (self.tree(since), self.tree(until))
        )
        return frozenset(_differing(self.repo, one, other, bounded()))

    def holds(self, commit: str) -> bool:
        """Whether a commit is here."""
        with suppress(ValueError, KeyError):
            return isinstance(self.repo.get(commit), pygit2.Commit)
        return False

    def is_before(self, commit: str, other: str) -> bool:
        """Whether a commit is the other, or one that the other stands on."""
        if commit in (other, _NOWHERE):
            return True
        return self.holds(commit) and self.holds(other) and self.repo.descendant_of(other, commit)

    def fetch(self) -> bool:
        """Bring what a repository elsewhere has. Whether the branch went on."""
        if not self.url:
            return False
        before, theirs = self.newest(), self._newest_there()
        if theirs not in ("", before):  # without a limit, each commit of another server is a pack
            self._git(
                "-c",
                "fetch.unpackLimit=100",
                "fetch",
                "--quiet",
                "--no-tags",
                "--",
                self.url,
                self.ref,
            )
            found, newest = self._head()
            # What does not stand on ours is older than a push of ours, unless it is still the newest: then ours is gone.
            if self.holds(theirs) and (
                self.is_before(newest, theirs) or self._newest_there() == theirs
            ):
                try:
                    with suppress(
                        pygit2.GitError, pygit2.AlreadyExistsError
                    ):  # somebody was faster
                        git.patiently(partial(self._put_on, found, theirs), OSError)
                except OSError as error:
                    raise Unavailable(
                        f"the branch cannot be updated: {error}", hint=_LOCKED
                    ) from error
        return self.newest() != before

    def _newest_there(self) -> str:
        return self._git("ls-remote", "--heads", "--", self.url, self.ref).partition("\t")[0]

    def put(self, parent: str, files: Mapping[str, bytes | None], message: str) -> str:
        """A commit on top of another with these files, None for those that go. Overtaken where the branch went on."""
        repo = self.repo
        blobs = {
            tuple(path.split("/")): data if data is None else repo.create_blob(data)
            for path, data in files.items()
        }
        tree = _with(repo, self.tree(parent), blobs) or repo.TreeBuilder().write()
        who = git.signature(repo) or pygit2.Signature("simplemem", "simplemem@localhost")
        commit = repo.create_commit(None, who, who, message, tree, [parent] if parent else [])
        self._go_on(parent, str(commit))
        return str(commit)

    def _go_on(self, parent: str, commit: str) -> None:
        if self.url:
            self._push(parent, commit)

        def set_target() -> (
            None
        ):  # only from what is looked at here: another git may be at work between two tries
            found, newest = self._head()
            if newest != parent and not self.url:
                raise Overtaken
            if found is None or not self.is_before(commit, newest):  # else it was fetched already
                self._put_on(found, commit)

        try:
            try:
                git.patiently(set_target, OSError)
            except OSError:
                if not self._is_left_behind():
                    raise
                git.patiently(set_target, OSError)
        except (pygit2.GitError, pygit2.AlreadyExistsError, OSError) as error:
            if self.url:
                return  # what was pushed has not failed; it will be fetched
            if self.newest() != parent:
                raise Overtaken from error
            raise Unavailable(f"the branch cannot be updated: {error}", hint=_LOCKED) from error

    def _is_left_behind(self) -> bool:
        """Whether git's lock of the branch was left by a server that was killed; then it is gone. Those that live make
        one only while they hold our own lock, as we do now."""
        lock = self.path / f"{self.ref}.lock"
        with suppress(OSError, ValueError):
            named, age = lock.read_text("ascii").strip(), time.time() - lock.stat().st_mtime
            commit = self.repo.get(named) if named else None
            if (
                _OURS in commit.raw_message
                if isinstance(commit, pygit2.Commit)
                else not named and age > _LONG
            ):
                lock.unlink()
                return True
        return False

    def _push(self, parent: str, commit: str) -> None:
        try:
            self._git("push", "--quiet", "--", self.url, f"{commit}:{self.ref}")
        except Unavailable as error:
            try:
                self.fetch()  # the answer may have been lost, not the push
            except Unavailable:
                hint = "Read the note again before you repeat the change, so that nothing is appended twice."
                raise Unavailable(
                    f"{error}; the change may still have reached the branch", hint=hint
                ) from error
            if not self.is_before(commit, newest := self.newest()):
                if newest == parent and "lock" not in str(error):
                    raise  # nobody was faster: it is refused
                raise Overtaken from error

    def _git(self, *arguments: str) -> str:
        return run(self.path, self.path, self._shown, *arguments)


def shown(repository: str) -> str:
    """An address without who asks, and their password."""
    return re.sub("//[^/]*@", "//", repository)


def at(tree: pygit2.Tree | None, path: str) -> pygit2.Object | None:
    """What a tree has at a path: None for nothing, or below a file."""
    if tree is None or not path:
        return tree
    with suppress(KeyError, ValueError):
        return tree[path]
    return None


def bounded() -> Iterator[None]:
    """A turn for each entry that a branch may have, then Unavailable."""
    yield from repeat(None, _MOST_ENTRIES)
    hint = "Check its commits: a folder that contains itself can cause this."
    raise Unavailable(f"the branch has more than {_MOST_ENTRIES:,} files and folders", hint=hint)


def _differing(
    repo: pygit2.Repository,
    one: pygit2.Oid | None,
    other: pygit2.Oid | None,
    turns: Iterator[None],
    above: str = "",
) -> Iterator[str]:
    """The files that differ between two trees. libgit2 looks at every file of both; here, equal folders are passed over."""
    entries = [
        set() if tree is None else {*_ENTRY[len(tree.raw)].findall(repo.odb.read(tree)[1])}
        for tree in (one, other)
    ]
    folders: dict[bytes, list[pygit2.Oid | None]] = {}
    for side, some in enumerate((entries[0] - entries[1], entries[1] - entries[0])):
        for mode, name, identity in some:
            next(turns)
            if int(mode, 8) == FileMode.TREE:
                folders.setdefault(name, [None, None])[side] = pygit2.Oid(raw=identity)
            else:
                yield above + name.decode("utf-8", "surrogateescape")
    for name, (left, right) in folders.items() if above.count("/") < MOST_PARTS else ():
        yield from _differing(
            repo, left, right, turns, f"{above}{name.decode('utf-8', 'surrogateescape')}/"
        )


def _with(
    repo: pygit2.Repository, tree: pygit2.Tree | None, blobs: Mapping[tuple[str, ...], Any]
) -> pygit2.Oid | None:
    """A tree with these files, None where none is left. Only the folders on the way are written anew."""
    builder = repo.TreeBuilder() if tree is None else repo.TreeBuilder(tree)
    below: dict[str, dict[tuple[str, ...], Any]] = {}
    for (name, *rest), blob in sorted(
        blobs.items(), key=lambda each: each[1] is not None
    ):  # what goes makes room
        there = at(tree, name)
        if rest:
            below.setdefault(name, {})[tuple(rest)] = blob
        elif blob is None and there is not None:
            builder.remove(name)
        elif blob is not None:
            if isinstance(there, pygit2.Tree):
                raise taken(name)
            builder.insert(name, blob, FileMode.BLOB if there is None else there.filemode)
    for name, some in below.items():
        folder = builder.get(name)
        if folder is not None and not isinstance(folder, pygit2.Tree):
            raise taken(name)
        made = _with(repo, folder, some)
        if made is not None:
            builder.insert(name, made, FileMode.TREE)
        elif folder is not None:
            builder.remove(name)
    return builder.write() if len(builder) else None
