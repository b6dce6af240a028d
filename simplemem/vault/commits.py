"""Changes of ours as commits in the person's repository: what our tools changed, and nothing else.

A commit is put together from objects, in an index of its own: nothing that is staged, no hook, no signature and no file
of the working tree has a part in it. A note that a person edited without committing it gives the commit only our change
of it. What cannot be done now is said as Waiting and tried again; nothing here may fail a write. Nothing is ever pushed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from simplemem.errors import SimplememError
from simplemem.vault.commit_begun import Begun, forget, settle, write_down
from simplemem.vault.commit_message import message, subject
from simplemem.vault.commit_state import Waiting, check_links, check_state
from simplemem.vault.commit_steps import Step, hold_back, joined, without
from simplemem.vault.disk import sha256
from simplemem.vault.log import Version
from simplemem.vault.repository import Git, GitFailed
from simplemem.vault.staging import Busy, Entry, check_lock, hold, in_commit, in_index, put_in_place, set_aside, spell

_TRIES = 5
_PLAIN = "simplemem <simplemem@localhost>"
_PLAIN_FILES = ("100644", "100755")
_MOST_ATTRIBUTES = 1_000_000

Texts = Callable[[Version, str], bytes | None]
"""The text with a hash that a version speaks of, if it is still kept."""


@dataclass(frozen=True, slots=True)
class Done:
    """What became of some changes: the commit, None if there was nothing to commit; what is left to the person, in
    sentences; and which changes wait, by their groups, with the reason."""

    commit: str | None = None
    left: tuple[str, ...] = ()
    held: tuple[str, ...] = ()
    why: str = ""


class _Left(Exception):
    """A change that is not ours to commit, with the reason."""


class Committer:
    """Makes commits in one repository, one after the other. What cannot change in between is asked for once."""

    def __init__(self, texts: Texts) -> None:
        self._texts = texts
        self._facts: _Facts | None = None

    def commit(self, git: Git, versions: Sequence[Version]) -> Done:
        """Make one commit of these changes, in their order. Waiting when none can be made now."""
        for tries_left in range(_TRIES - 1, -1, -1):
            try:
                self._facts = self._facts or _facts(git)
                return _Commit(git, self._facts, self._texts).make(versions)
            except Busy as error:
                if not tries_left:
                    raise Waiting(error.message, hint=error.hint) from error
                time.sleep(0.05)
            except GitFailed as error:
                raise Waiting(error.message) from error
            except OSError as error:
                raise Waiting(f"The repository could not be written: {error.strerror}.") from error
        raise AssertionError("unreachable")


@dataclass(frozen=True, slots=True)
class _Facts:
    """Whose commits they are, and the few settings that say how a text is stored: words and a path, nothing that runs."""

    person: dict[str, str]
    settings: tuple[str, ...]


def _facts(git: Git) -> _Facts:
    git.as_the_person_would("rev-parse", "--git-dir")  # git's own word on whose repository this is
    person: dict[str, str] = {}
    for role in ("AUTHOR", "COMMITTER"):
        said = git.inside("-c", "user.useConfigOnly=true", "var", f"GIT_{role}_IDENT", ok=(0, 1, 128))
        name, _, rest = (said.decode("utf-8", "replace").strip() or _PLAIN).partition(" <")
        person |= {f"GIT_{role}_NAME": name, f"GIT_{role}_EMAIL": rest.partition(">")[0]}
    asked = r"^core\.(autocrlf|eol|sharedrepository|attributesfile)$"
    answer = git.inside("config", "-z", "--get-regexp", asked, ok=(0, 1))
    rows = [row.partition("\n") for row in answer.decode("utf-8", "replace").split("\0") if row]
    return _Facts(person, tuple(part for key, _, value in rows for part in ("-c", f"{key}={value}")))


class _Commit:
    """One try."""

    def __init__(self, git: Git, facts: _Facts, texts: Texts) -> None:
        self._git = git
        self._repository = git.repository
        self._texts = texts
        self._own_index = {"GIT_INDEX_FILE": str(git.own / "index")}
        self._person = facts.person
        self._settings = facts.settings
        self._oids: dict[tuple[str, str], str] = {}
        self._width = 40
        self._head: str | None = None

    def make(self, versions: Sequence[Version]) -> Done:
        head = self._looked_at()
        steps, left = self._steps(versions)
        paths = list(dict.fromkeys(path for step in steps for path in (step.path, step.target)))
        trees, index = in_commit(self._git, head, paths), in_index(self._git, paths)
        staged = {path for path in paths if index.get(path, "nothing") != trees.get(path, "nothing")}
        held, free = hold_back(steps, staged)
        now, more = self._after(free, trees)
        entries = {path: entry for path, entry in now.items() if entry != trees.get(path)}
        why = f"{min(p for s in steps for p in (s.path, s.target) if p in staged)!r} is staged by you." if held else ""
        if not entries:
            return Done(None, (*left, *more), held, why)
        told = [step for step in free if step.touches(entries)]
        made = self._made(head, self._tree(head, entries), told)
        words = f"commit (simplemem): {subject([version for step in told for version in step.versions])}"
        self._put(Begun(made, {path: trees.get(path) for path in entries}, entries), head, index, words)
        return Done(made, (*left, *more), held, why)

    def _looked_at(self) -> str | None:
        """The commit to build on, once the repository turns out to be one where a commit can be made."""
        git, git_dir = self._git, Path(self._repository.git_dir)
        settle(git)
        check_state(git_dir)
        check_lock(git_dir)
        branch = git.inside("symbolic-ref", "--quiet", "HEAD", ok=(0, 1)).decode("utf-8", "replace").strip()
        if not branch:
            raise Waiting("No branch is checked out (HEAD is detached), so a commit would belong to none.")
        check_links(git_dir, Path(self._repository.common), branch)
        self._head = head = git.head()
        if head is None:
            self._width = 64 if git.inside("rev-parse", "--show-object-format").strip() == b"sha256" else 40
            git.borrow("0" * self._width)
        else:
            self._width = len(head)
        attributes = Path(self._repository.common) / "info" / "attributes"
        if attributes.is_file() and attributes.stat().st_size < _MOST_ATTRIBUTES:
            (git.own / "info" / "attributes").write_bytes(attributes.read_bytes())
        return head

    # Which notes, and what of them

    def _steps(self, versions: Sequence[Version]) -> tuple[list[Step], list[str]]:
        """What was done to the notes that git is to have. Changes of a note that follow each other are one step."""
        steps = joined(versions, self._repository)
        names = {path for step in steps for path in (step.path, step.target)}
        unwanted = self._ignored(names)  # the person does not want it in git, and knows
        listed = b"".join(os.fsencode(path) + b"\0" for path in names)
        left: list[str] = []
        rows = self._git.inside("check-attr", "-z", "--stdin", "filter", stdin=listed).split(b"\0")
        for name, value in zip(map(os.fsdecode, rows[0::3]), rows[2::3], strict=False):
            if value not in (b"unspecified", b"unset"):
                unwanted.add(name)  # encrypted, or kept elsewhere: the plain text must not go in
                left.append(f"{name!r} goes through a filter, and simplemem runs none.")
        for name in sorted(set_aside(self._git, list(names))):
            unwanted.add(name)  # a commit of ours would have git look at it again
            left.append(f"{name!r} is one that git was told not to look at (skip-worktree or assume-unchanged).")
        return [part for step in steps for part in without(step, unwanted)], left

    def _ignored(self, paths: Iterable[str]) -> set[str]:
        """Those that git ignores. It takes its arguments for patterns, but for none that begins with a dot."""
        listed = b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths)
        plain = {"GIT_LITERAL_PATHSPECS": "0"}
        answer = self._git.inside("check-ignore", "-z", "--stdin", stdin=listed, ok=(0, 1), env=plain)
        return {os.fsdecode(path[2:]) for path in answer.split(b"\0")[:-1]}

    def _after(self, steps: Sequence[Step], trees: dict[str, Entry]) -> tuple[dict[str, Entry | None], list[str]]:
        """What these changes make of what the last commit has."""
        now: dict[str, Entry | None] = {path: trees.get(path) for step in steps for path in (step.path, step.target)}
        left = []
        for step in steps:
            there = now[step.path]
            try:
                oid = self._applied(step, there)
            except _Left as reason:
                left.append(str(reason))
                continue
            if step.path != step.target:
                now[step.path] = None
            now[step.target] = None if oid is None else Entry(there.mode if there else "100644", oid)
        return now, left

    def _applied(self, step: Step, there: Entry | None) -> str | None:
        """The text a note has once a step is made to what is there."""
        final = step.afters[-1]
        if there is None and step.before is not None:
            if final is None:
                return None
            gone = self._half_committed(step) if step.path != step.target else None
            if gone is not None:
                return gone if final == step.before else self._oid(step.target, final, step.version)
            raise _Left(f"{step.path!r} was written by a person and is not in git yet.")
        if there is not None and there.mode not in _PLAIN_FILES:
            raise _Left(f"{step.path!r} is no plain file in git.")
        now = None if there is None else there.oid
        if now is not None and final == step.before and len(step.afters) == 1:
            return now  # it only moved, with whatever a person has or has not committed of it
        before = self._oid(step.path, step.before, step.version)
        if now == before or now is None or before is None or final is None:
            return self._oid(step.target, final, step.version)
        # What is there already may be ours: a crash kept us from forgetting what was committed.
        if any(now == self._oid(step.path, after, step.version) for after in reversed(step.afters)):
            return self._oid(step.target, final, step.version)
        return self._merged(step.path, now, before, self._oid(step.target, final, step.version) or "")

    def _half_committed(self, step: Step) -> str | None:
        """git's id of a text whose old name a person has taken out of git, as `git commit --all` does with a move of ours
        that is not committed yet. None when they did nothing of the kind."""
        if self._head is None:
            return None
        how = ("--raw", "--no-abbrev", "--no-renames", "--diff-merges=first-parent", "--no-show-signature", "--format=")
        said = self._git.apart("log", "--max-count=1", "-z", *how, self._head, "--", step.path)
        about = said.partition(b"\0")[0].split()
        if len(about) != 5 or about[4] != b"D":
            return None
        oid = about[2].decode("ascii")
        return oid if sha256(self._git.apart("cat-file", "blob", oid)) == step.before else None

    def _oid(self, path: str, sha: str | None, version: Version) -> str | None:
        """git's id of a text that our history keeps, which git has from now on, as its attributes would store it."""
        if sha is None:
            return None
        key = (path, sha)
        if key not in self._oids:
            data = self._texts(version, sha)
            if data is None:
                raise _Left(f"{path!r}: the text of {version.id} is no longer kept.")
            self._oids[key] = self._stored(data, "--path", path)
        return self._oids[key]

    def _stored(self, data: bytes, *how: str) -> str:
        args = (*self._settings, "-c", "core.safecrlf=false", "hash-object", "-w", "--stdin", *how)
        return self._git.apart(*args, stdin=data, attributes=True).decode("ascii").strip()

    def _merged(self, path: str, now: str, before: str, after: str) -> str:
        """Our change of a text, made to another: a person's edits lie between, which are theirs to commit."""
        files = []
        for name, oid in (("now", now), ("before", before), ("after", after)):
            file = self._git.own / name
            file.write_bytes(self._git.apart("cat-file", "blob", oid))
            files.append(str(file))
        try:
            clean = self._git.apart("merge-file", "-p", "--quiet", *files)
        except GitFailed:  # it ends with the number of conflicts
            raise _Left(f"{path!r} has edits of a person's in the lines that were changed.") from None
        return self._stored(clean, "--no-filters")

    # The commit

    def _tree(self, head: str | None, entries: dict[str, Entry | None]) -> str:
        if head is not None:
            self._git.apart("read-tree", head, env=self._own_index)
        rows = spell(entries, self._width)
        self._git.apart("update-index", "--replace", "-z", "--index-info", stdin=rows, env=self._own_index)
        return self._git.apart(*self._settings, "write-tree", env=self._own_index).decode("ascii").strip()

    def _made(self, head: str | None, tree: str, steps: Sequence[Step]) -> str:
        told = sorted((version for step in steps for version in step.versions), key=lambda version: version.number)
        when = {"GIT_AUTHOR_DATE": _date(told[-1].when), "GIT_COMMITTER_DATE": f"@{int(time.time())} +0000"}
        args = (*self._settings, "commit-tree", tree, *(("-p", head) if head else ()), "-F", "-")
        said = message(told).encode("utf-8", "replace")
        return self._git.apart(*args, stdin=said, env=self._person | when).decode("ascii").strip()

    def _put(self, begun: Begun, head: str | None, index: Mapping[str, Entry | None], words: str) -> None:
        """Move the branch to a commit, and have the index follow before any other git sees the one without the other."""
        folder = Path(self._repository.git_dir)
        write_down(folder, begun)
        try:
            hold(self._git, begun.after, index, self._width)
            try:
                self._git.inside("update-ref", "-m", words, "HEAD", begun.commit, head or "0" * self._width)
            except SimplememError as error:
                raise Busy(error.message) from error
        except BaseException:
            settle(self._git)
            raise
        put_in_place(folder)
        forget(folder)


def _date(when: str) -> str:
    try:
        return f"@{int(datetime.fromisoformat(when).timestamp())} +0000"
    except (ValueError, OverflowError):
        return f"@{int(time.time())} +0000"
