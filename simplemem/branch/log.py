"""The history of a branch: the changes that our commits made, as lines of the log that every vault has, in the order of
the commits. It is the same for every server, byte for byte; texts are the repository's."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

import pygit2
from pygit2.enums import SortMode

from simplemem import git
from simplemem.branch.repository import Branch
from simplemem.errors import NotFound, SimplememError, Unavailable
from simplemem.vault import disk
from simplemem.vault.disk import sha256
from simplemem.vault.history import History, Log, Version, spell, versions_in
from simplemem.vault.lock import SideFile
from simplemem.vault.obsidian import CONVENTION_FILES
from simplemem.vault.paths import Beneath, parent

_SAID = re.compile(r"^Simplemem-(\w+): (.*)$", re.MULTILINE)


class BranchLog(Log):
    """The log of the changes that our commits made, in the order of the commits: the same for every server."""

    def __init__(self, root: str, branch: Branch, **kind: Any) -> None:
        super().__init__(root, **kind)
        self.branch = branch
        self.dates: dict[str, int] = {}  # when a file was changed last, in seconds
        self._seen = SideFile(
            root, "history/dates.jsonl"
        )  # its last line tells up to which commit both files go
        self._lines = SideFile(root, "history/log.jsonl")
        self._followed, self._size, self._guard = "", 0, threading.RLock()

    def follow(self) -> str:
        """Take in what was committed since; the newest commit."""
        with self._guard:
            if (newest := self.branch.newest()) != self._followed:
                with self._seen.held(10.0) as is_held:
                    if not is_held:
                        raise Unavailable(
                            "another process is reading the branch's history",
                            hint="Try again in a moment.",
                        )
                    self._read()
                    with super()._opened() as (_, size):
                        is_cut = size < self._size
                    if is_cut or not self.branch.is_before(self._followed, newest):
                        self._forget()  # somebody took the log away, or gave the branch another history
                        self._seen.replace(b"")
                    if size != self._size:  # what a crash left behind what is told of it
                        self._lines.replace(Log(self.root).whole_lines()[: self._size])
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
            self._forget()
        for line in lines.splitlines():
            with suppress(ValueError):  # cut short by a crash
                known = json.loads(line)
                self._followed, self._size = known["commit"], known["log"]
                self.dates |= known["dates"]

    def _forget(self) -> None:
        self._followed, self._size = "", 0
        self.dates.clear()

    def _take_in(self, newest: str) -> None:
        walk = self.branch.repo.walk(newest, SortMode.TOPOLOGICAL | SortMode.REVERSE)
        if self._followed:
            walk.hide(self._followed)
        last, dates, lines = Log(self.root).next_number() - 1, dict[str, int](), []
        for commit in walk:
            for path in _changed(self.branch, commit):
                dates[path] = max(_date(commit), dates.get(path, self.dates.get(path, 0)))
            for version in _versions(commit, last):
                lines.append(_line(self.branch, commit, version))
                last = version.number
        if lines:
            self._lines.append(b"".join(lines))
        self._take_conventions(self._followed, newest)
        told = {"commit": newest, "log": self._size + sum(map(len, lines)), "dates": dates}
        self._seen.append(json.dumps(told, separators=(",", ":")).encode() + b"\n")
        self._read()

    def _take_conventions(self, since: str, commit: str) -> None:
        """Obsidian's settings lie in the folder as they would in a clone."""
        for name in CONVENTION_FILES:
            was, now = (self.branch.file(each, name) for each in (since, commit))
            with (
                suppress(OSError, SimplememError),
                Beneath(self.root) as here,
            ):  # a link that is in the way stays
                if was is not None and now is None:
                    disk.remove(here, name)
                elif now is not None and (was is None or was.id != now.id):
                    here.make(parent(name))
                    disk.put(here, name, now.data, sync=False)


def _date(commit: pygit2.Commit) -> int:
    """When it was made, as far as nanoseconds can say it."""
    return max(0, min(commit.commit_time, 1 << 33))


def _changed(branch: Branch, commit: pygit2.Commit) -> frozenset[str]:
    """The files that a commit has otherwise than every parent."""
    commits = [str(parent) for parent in commit.parent_ids] or [""]
    return frozenset.intersection(*(branch.between(each, str(commit.id)) for each in commits))


def _versions(commit: pygit2.Commit, last: int) -> list[Version]:
    """The changes that a commit of ours made, without their hashes; none of anybody else's commit."""
    message = commit.raw_message.decode("utf-8", "replace") if len(commit.parent_ids) < 2 else ""
    with suppress(ValueError, KeyError, TypeError, NotFound, RecursionError):
        said = dict(_SAID.findall(message))
        first = int(said["Version"].removeprefix("v"))
        when = datetime.fromtimestamp(_date(commit), UTC).strftime("%Y-%m-%dT%H:%M:%S.000Z")
        who, tool, reason = (said.get(each, "") for each in ("Actor", "Tool", "Reason"))
        more = None, None, None, said["Kind"]
        steps = [
            Version(spell(first + k), spell(first), path, new, when, op, who, tool, reason, *more)
            for k, (op, path, new) in enumerate(json.loads(said["Steps"]))
        ]
        told = versions_in(json.dumps(each._asdict()).encode() for each in steps)
        if (
            0 < first - last < 1_000_000 and list(told) == steps
        ):  # a pretended one does not use the numbers up
            return steps
    return []


def _line(branch: Branch, commit: pygit2.Commit, version: Version) -> bytes:
    """A change as a line of the log, with where its texts are in the repository."""
    was = branch.file(str(commit.parent_ids[0]), version.path) if commit.parent_ids else None
    now = branch.file(str(commit.id), version.new_path or version.path)
    before, after = (None if blob is None else sha256(blob.data) for blob in (was, now))
    told = version._replace(before=before, after=after)._asdict()
    told |= {
        "commit": str(commit.id),
        "blobs": [None if blob is None else str(blob.id) for blob in (was, now)],
    }
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
            wholes = {
                line[side]
                for line in self._lines_with(sha)
                for side in ("before", "after")
                if line[side]
            }
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


def message_of(versions: Sequence[Version]) -> str:
    first, more = versions[0], f" and {len(versions) - 1} more" if len(versions) > 1 else ""
    to = f" to {first.new_path.removesuffix('.md')}" if first.new_path else ""
    said = {
        "Actor": first.who,
        "Tool": first.tool,
        "Reason": first.reason,
        "Version": first.group,
        "Kind": first.kind,
    }
    trailers = {key: git.one_line(text) for key, text in said.items() if text}
    trailers["Steps"] = json.dumps([[each.op, each.path, each.new_path] for each in versions])
    subject = git.one_line(f"simplemem: {first.op} {first.path.removesuffix('.md')}{to}{more}", 110)
    return f"{subject}\n\n" + "".join(
        f"Simplemem-{key}: {text}\n" for key, text in trailers.items()
    )
