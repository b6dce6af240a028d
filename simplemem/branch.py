"""A vault that is a branch of a git repository. What is there is its newest commit; a write is a commit on top of the one
it was checked against, or it is checked again. No working tree is touched: each server has a folder of its own, for what
only it needs. Of a repository elsewhere that folder has a copy, which the person's own git fetches and pushes."""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pygit2
from pygit2.enums import FileMode, RepositoryOpenFlag, SortMode

from simplemem import git
from simplemem.errors import NotFound, Unavailable
from simplemem.exchange import ADDRESS, Overtaken, run
from simplemem.vault.disk import Entry, sha256
from simplemem.vault.history import History, Log, Version, spell, versions_in
from simplemem.vault.lock import FileLock, SideFile
from simplemem.vault.obsidian import CONVENTION_FILES
from simplemem.vault.paths import Beneath, check_path, is_path
from simplemem.vault.vault import File, Vault
from simplemem.vault.writer import Change, Operation, Wish, Written, no_such, taken

_TRIES = 50
_STEP, _STEP_AWAY = 0.25, 2.0  # seconds between two looks at the branch, here and elsewhere
_SAID = re.compile(r"^Simplemem-(\w+): (.*)$", re.MULTILINE)
_WHICH_BLOB = (1 << 29) - 1  # nanoseconds: half a second tells the texts of one second apart
_NOWHERE = ""  # the commit of a branch without one


class Branch:
    """The branch: its newest commit, the files of a commit, and one commit more. For any thread."""

    def __init__(self, repository: str, name: str, copy: Path) -> None:
        self.url = repository if ADDRESS.fullmatch(repository) else ""
        self.path = copy if self.url else Path(repository).expanduser()
        self.ref, self._local = f"refs/heads/{name}", threading.local()
        if self.url and not copy.exists():
            pygit2.init_repository(str(copy), bare=True)
        if not self.repo.is_bare:
            hint = "A bare one, which nobody works in: git clone --bare, or git init --bare."
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
                found = self._local.repo = pygit2.Repository(str(self.path), RepositoryOpenFlag.NO_SEARCH)
            except pygit2.GitError as error:
                hint = "`git init --bare PATH` makes one."
                raise Unavailable(f"there is no repository at {self.path} ({error})", hint=hint) from error
        return found

    def newest(self) -> str:
        """The newest commit, "" before the first."""
        found = self.repo.references.get(self.ref)
        return str(found.target) if found is not None else _NOWHERE

    def tree(self, commit: str) -> pygit2.Tree | None:
        return self.repo[commit].peel(pygit2.Tree) if commit else None

    def file(self, commit: str, path: str) -> pygit2.Blob | None:
        """The blob of a plain file; None for anything else."""
        found = _at(self.tree(commit), path)
        return found if isinstance(found, pygit2.Blob) and found.filemode in git.PLAIN else None

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
        before = self.newest()
        if self._git("ls-remote", "--heads", "--", self.url, self.ref).strip():
            self._git("fetch", "--quiet", "--no-tags", "--", self.url, f"+{self.ref}:{self.ref}")
        return self.newest() != before

    def put(self, parent: str, files: Mapping[str, bytes | None], message: str) -> str:
        """A commit on top of another with these files, None for those that go. Overtaken where the branch went on."""
        repo = self.repo
        blobs = {
            tuple(path.split("/")): data if data is None else repo.create_blob(data) for path, data in files.items()
        }
        tree = _with(repo, self.tree(parent), blobs) or repo.TreeBuilder().write()
        who = git.signature(repo) or pygit2.Signature("simplemem", "simplemem@localhost")
        commit = repo.create_commit(None, who, who, message, tree, [parent] if parent else [])
        self._go_on(parent, str(commit))
        return str(commit)

    def _go_on(self, parent: str, commit: str) -> None:
        if self.url:
            self._push(commit)
        references = self.repo.references

        def set_target() -> None:
            if parent:
                references[self.ref].set_target(commit, "simplemem")
            else:
                references.create(self.ref, commit)

        try:
            if not self.url and self.newest() != parent:
                raise Overtaken
            if self.newest() != commit:
                git.patiently(set_target, OSError)
        except (pygit2.GitError, KeyError) as error:
            if self.newest() != parent:
                raise Overtaken from error
            raise Unavailable(f"the branch cannot go on: {error}") from error
        except OSError as error:
            hint = "If no other git is at work, remove the file that ends with .lock."
            raise Unavailable(f"the branch cannot go on: {error}", hint=hint) from error

    def _push(self, commit: str) -> None:
        try:
            self._git("push", "--quiet", "--", self.url, f"{commit}:{self.ref}")
        except Unavailable as error:
            self.fetch()  # the answer may have been lost, not the push
            if not self.is_before(commit, self.newest()):
                raise Overtaken from error

    def _git(self, *arguments: str) -> str:
        return run(self.path, self.path, self.url, *arguments)


def _at(tree: pygit2.Tree | None, path: str) -> pygit2.Object | None:
    """What a tree has at a path: None for nothing, or below a file."""
    if tree is None or not path:
        return tree
    with suppress(KeyError, ValueError):
        return tree[path]
    return None


def _with(repo: pygit2.Repository, tree: pygit2.Tree | None, blobs: Mapping[tuple[str, ...], Any]) -> pygit2.Oid | None:
    """A tree with these files, None where none is left. Only the folders on the way are written anew."""
    builder = repo.TreeBuilder() if tree is None else repo.TreeBuilder(tree)
    below: dict[str, dict[tuple[str, ...], Any]] = {}
    for (name, *rest), blob in sorted(blobs.items(), key=lambda each: each[1] is not None):  # what goes makes room
        there = _at(tree, name)
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


class BranchLog(Log):
    """The log of the changes that our commits made, in the order of the commits: the same for every server."""

    def __init__(self, root: str, branch: Branch, **kind: Any) -> None:
        super().__init__(root, **kind)
        self.branch = branch
        self.dates: dict[str, int] = {}  # when a file was changed last, in seconds
        self._seen = SideFile(root, "history/dates.jsonl")  # its last line tells up to which commit both files go
        self._lines = SideFile(root, "history/log.jsonl")
        self._followed, self._guard = _NOWHERE, threading.RLock()

    def follow(self) -> str:
        """Take in what was committed since; the newest commit."""
        with self._guard:
            if (newest := self.branch.newest()) != self._followed:
                with self._seen.held(10.0) as is_held:
                    if not is_held:
                        raise Unavailable("another process is reading the branch's history", hint="Try again.")
                    self._read()
                    if not self.branch.is_before(self._followed, newest):  # somebody gave the branch another history
                        self._followed = _NOWHERE
                        self.dates.clear()
                        for each in (self._seen, self._lines):
                            each.replace(b"")
                    if newest != self._followed:
                        self._take_in(newest)
            return newest

    def refresh(self) -> bool:
        """Whether there is more in a repository elsewhere, which is here now."""
        return self.branch.fetch()

    @contextmanager
    def _opened(self, here: Beneath | None = None) -> Iterator[tuple[int, int]]:
        self.follow()
        with super()._opened(here) as found:
            yield found

    def _read(self) -> None:
        """What another process of this folder took in."""
        lines, anew = self._seen.follow()
        if anew:
            self._followed = _NOWHERE
            self.dates.clear()
        for line in lines.splitlines():
            known = json.loads(line)
            self._followed = known["commit"]
            self.dates |= known["dates"]

    def _take_in(self, newest: str) -> None:
        walk = self.branch.repo.walk(newest, SortMode.TOPOLOGICAL | SortMode.REVERSE)
        if self._followed:
            walk.hide(self._followed)
        last, dates, lines = Log(self.root).next_number() - 1, dict[str, int](), []
        for commit in walk:
            for path in _changed(commit):
                dates[path] = max(commit.commit_time, dates.get(path, self.dates.get(path, 0)))
            for version in _versions(commit, last):
                lines.append(_line(self.branch, commit, version))
                last = version.number
        if lines:
            self._lines.append(b"".join(lines))
        line = json.dumps({"commit": newest, "dates": dates}, separators=(",", ":")).encode() + b"\n"
        self._seen.append(line)
        self._read()
        self._take_conventions(newest)

    def _take_conventions(self, commit: str) -> None:
        """Obsidian's settings lie in the folder as they would in a clone."""
        for name in CONVENTION_FILES:
            if (blob := self.branch.file(commit, name)) is not None:
                file = Path(self.root, *name.split("/"))
                if not file.exists() or file.read_bytes() != blob.data:
                    file.parent.mkdir(exist_ok=True)
                    file.write_bytes(blob.data)


def _changed(commit: pygit2.Commit) -> set[str]:
    """The files that a commit has otherwise than every parent."""
    trees = [parent.tree for parent in commit.parents]
    diffs = [tree.diff_to_tree(commit.tree) for tree in trees] or [commit.tree.diff_to_tree()]
    return set.intersection(*map(_named_in, diffs))


def _named_in(diff: pygit2.Diff) -> set[str]:
    return {path for delta in diff.deltas for path in (delta.old_file.path, delta.new_file.path)}


def _versions(commit: pygit2.Commit, last: int) -> list[Version]:
    """The changes that a commit of ours made, without their hashes; none of anybody else's commit."""
    said = dict(_SAID.findall(commit.message)) if len(commit.parent_ids) < 2 else {}
    with suppress(ValueError, KeyError, TypeError, NotFound):
        first = int(said["Version"].removeprefix("v"))
        when = datetime.fromtimestamp(commit.commit_time, UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        who, tool, reason = (said.get(each, "") for each in ("Actor", "Tool", "Reason"))
        steps = [
            Version(
                spell(first + k), spell(first), path, new, when, op, who, tool, reason, None, None, None, said["Kind"]
            )
            for k, (op, path, new) in enumerate(json.loads(said["Steps"]))
        ]
        if first > last and list(versions_in(json.dumps(each._asdict()).encode() for each in steps)) == steps:
            return steps
    return []


def _line(branch: Branch, commit: pygit2.Commit, version: Version) -> bytes:
    """A change as a line of the log, with where its texts are in the repository."""
    was = branch.file(str(commit.parent_ids[0]), version.path) if commit.parent_ids else None
    now = branch.file(str(commit.id), version.new_path or version.path)
    before, after = (None if blob is None else sha256(blob.data) for blob in (was, now))
    told = version._replace(before=before, after=after)._asdict()
    told |= {"commit": str(commit.id), "blobs": [None if blob is None else str(blob.id) for blob in (was, now)]}
    return json.dumps(told, separators=(",", ":")).encode() + b"\n"


class BranchHistory(History):
    """Earlier versions, whose texts are the repository's."""

    log: BranchLog

    def kept(self, sha: str) -> bytes | None:
        for line in self._lines_with(sha) if len(sha) == 64 else ():
            for side, blob in zip(("before", "after"), line["blobs"], strict=True):
                if line[side] == sha and blob is not None:
                    return self.log.branch.repo[blob].peel(pygit2.Blob).data
        return super().kept(sha)  # of a text that nobody wrote: what a conflict showed

    def content(self, sha: str) -> bytes | None:
        if 12 <= len(sha) < 64 and sha.isalnum():
            wholes = {line[side] for line in self._lines_with(sha) for side in ("before", "after") if line[side]}
            found = [whole for whole in wholes if whole.startswith(sha)]
            sha = found[0] if len(found) == 1 else sha
        return super().content(sha)

    def _lines_with(self, sha: str) -> Iterator[dict[str, Any]]:
        lines, mark = self.log.whole_lines(), sha.encode()
        at = lines.rfind(mark)
        while at >= 0:
            start = lines.rfind(b"\n", 0, at) + 1
            yield json.loads(lines[start : lines.find(b"\n", at)])
            at = lines.rfind(mark, 0, start)


class _Draft(Operation):
    """Wishes that become one commit, on top of the newest as it is now."""

    def __init__(self, vault: BranchVault, wishes: Sequence[Wish]) -> None:
        super().__init__(vault, Beneath(str(vault.root)), wishes)
        self._branch, self._parent = vault.branch, vault.log.follow()
        self._entry_of, self._commit = vault.entry_in, _NOWHERE

    def _text(self, path: str) -> bytes | None:
        blob = self._branch.file(self._parent, path)
        return None if blob is None else blob.data

    def _names(self, folder: str) -> list[str]:
        found = _at(self._branch.tree(self._parent), folder.rstrip("/"))
        return [each.name or "" for each in found] if isinstance(found, pygit2.Tree) else []

    def _entry(self, path: str) -> Entry | None:
        return self._entry_of(self._commit or self._parent, path)

    def _check_writable(self, path: str) -> None:
        """A branch protects no file."""

    def _in_trash(self, path: str, number: int) -> None:
        """The repository has the text."""

    def _make(self, versions: Sequence[Version]) -> None:
        files: dict[str, bytes | None] = {}
        for wish in self._wishes:
            files |= {wish.path: None} if wish.gone or wish.new_path else {}
        for wish in self._wishes:
            if not wish.gone:
                files[wish.target] = self._texts[wish.path][0] if wish.data is None else wish.data
        self._commit = self._branch.put(self._parent, files, _message(versions))


def _message(versions: Sequence[Version]) -> str:
    first, more = versions[0], f" and {len(versions) - 1} more" if len(versions) > 1 else ""
    to = f" to {first.new_path.removesuffix('.md')}" if first.new_path else ""
    said = {"Actor": first.who, "Tool": first.tool, "Reason": first.reason, "Version": first.group, "Kind": first.kind}
    trailers = {key: git.one_line(text) for key, text in said.items() if text}
    trailers["Steps"] = json.dumps([[each.op, each.path, each.new_path] for each in versions])
    subject = git.one_line(f"simplemem: {first.op} {first.path.removesuffix('.md')}{to}{more}", 110)
    return f"{subject}\n\n" + "".join(f"Simplemem-{key}: {text}\n" for key, text in trailers.items())


class BranchVault(Vault):
    """A branch as a vault; `root` is the folder of this server."""

    is_branch = True

    def __init__(self, root: Path, repository: str, name: str, **given: Any) -> None:
        super().__init__(root, **given)
        self.branch = Branch(repository, name, self.sidecar() / "branch.git")
        self._lock = FileLock(str(self.branch.path), "simplemem.lock")  # of all servers of this machine
        kept = self.history
        self.log = BranchLog(str(self.root), self.branch, kind=kept.log.kind)
        days, megabytes = kept.keep_days, kept.keep_bytes // 1_000_000
        self.history = BranchHistory(str(self.root), keep_days=days, keep_mb=megabytes, kind=kept.log.kind)
        self.history.log = self.log

    def newest(self) -> str:
        return self.log.follow()

    def repository(self) -> git.Opened:
        """As the functions that read git's history take it."""
        path = self.branch.path
        return nullcontext((self.branch.repo, git.Checkout(path, path, path, "", self.branch.ref)))

    def reach(self, commit: str) -> bool:
        """Whether a commit is in the branch as it is here, or once it was fetched."""
        return self.branch.is_before(commit, self.newest()) or (
            self.branch.fetch() and self.branch.is_before(commit, self.newest())
        )

    def is_before(self, commit: str, other: str) -> bool:
        return self.branch.is_before(commit, other)

    def changed(self, since: str, until: str) -> set[str] | None:
        """The files that differ between two commits; None where the branch did not go on from the first."""
        if not self.reach(since):
            return None
        trees = self.branch.tree(since), self.branch.tree(until)
        if trees[0] is None or trees[1] is None:
            return None
        return set(filter(is_path, _named_in(trees[0].diff_to_tree(trees[1]))))

    def scan(self) -> list[Entry]:
        return self.entries_below("")

    def entries_below(self, folder: str) -> list[Entry]:
        tree, problems = _at(self.branch.tree(self.newest()), folder), dict[str, str]()
        prefix = f"{'/'.join(check_path(folder))}/" if folder else ""
        found = list(self._entries(tree, prefix, problems)) if isinstance(tree, pygit2.Tree) else []
        if not folder:
            self.problems = problems
        return sorted((each for each in found if not self.access.hides(each.path)), key=lambda each: each.path)

    def _entries(self, tree: pygit2.Tree, prefix: str, problems: dict[str, str]) -> Iterator[Entry]:
        for each in tree:
            name = (each.raw_name or b".").decode("utf-8", "surrogateescape")
            path = prefix + name
            if name[0] == ".":
                continue
            if isinstance(each, pygit2.Tree):
                yield from self._entries(each, f"{path}/", problems)
            elif each.filemode in git.PLAIN and is_path(path):
                yield self._entry_of(path, each)
            elif each.filemode in git.PLAIN:
                problems[path.encode("utf-8", "backslashreplace").decode()] = "Its name cannot be spelled in a path."

    def entry(self, path: str) -> Entry | None:
        check_path(path)
        return None if self.access.hides(path) else self.entry_in(self.newest(), path)

    def entry_in(self, commit: str, path: str) -> Entry | None:
        blob = self.branch.file(commit, path)
        return None if blob is None else self._entry_of(path, blob)

    def _entry_of(self, path: str, blob: pygit2.Object) -> Entry:
        """The same for every server, so that what one has indexed is up to date for the others."""
        _, size = self.branch.repo.odb.read_header(blob.id)
        when = self.log.dates.get(path, 0) * 1_000_000_000 + (int(str(blob.id)[:8], 16) & _WHICH_BLOB)
        return Entry(path, size, when, when, 0)

    @contextmanager
    def reading(self) -> Iterator[Callable[[str], File]]:
        commit = self.newest()

        def read(path: str) -> File:
            check_path(path)
            blob = None if self.access.hides(path) else self.branch.file(commit, path)
            if blob is None:
                raise no_such(path)
            return File(path, blob.data, sha256(blob.data), self._entry_of(path, blob))

        yield read

    def _carried_out(self, wishes: Sequence[Wish], change: Change) -> list[Written]:
        for number in range(_TRIES):
            with suppress(Overtaken):
                return _Draft(self, wishes).carry_out(change)
            self.branch.fetch()
            time.sleep(random.uniform(0, 0.01 * min(number, 10)))  # noqa: S311
        raise Unavailable("others commit to the branch without a pause", hint="Try again in a moment.")

    def recover(self) -> tuple[int, list[Entry]]:
        return 0, []

    def finish_interrupted(self) -> None:
        """A commit is whole."""

    def watch(self, **_: Any) -> Following:
        return Following(self)


class Following:
    """What was committed since this was last asked."""

    polling, poll_seconds = False, 0.0

    def __init__(self, vault: BranchVault) -> None:
        self._vault, self._rung = vault, threading.Event()
        self._seen, self._fetched_at = vault.newest(), time.monotonic()

    def ring(self) -> None:
        """End a wait, or the next one."""
        self._rung.set()

    def close(self) -> None:
        """Nothing is open."""

    def paths(self, seconds: float) -> set[str]:
        """The files that were changed by now; else what is within so many seconds."""
        until, step = time.monotonic() + seconds, _STEP_AWAY if self._vault.branch.url else _STEP
        while True:
            if time.monotonic() - self._fetched_at > _STEP_AWAY:
                with suppress(Unavailable):  # it is asked again
                    self._vault.branch.fetch()
                self._fetched_at = time.monotonic()
            if (newest := self._vault.newest()) != self._seen:
                seen, self._seen = self._seen, newest
                return self._vault.changed(seen, newest) or {""}
            left = until - time.monotonic()
            if left <= 0 or self._rung.wait(min(left, step)):
                self._rung.clear()
                return set()
