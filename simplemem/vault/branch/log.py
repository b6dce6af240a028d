"""The history of a branch: its log, and the earlier texts of its notes.

The log has the format that every vault has. Its lines are derived from the commits that simplemem
made, in the order of the commits, so that each server of a branch has the same log, byte for byte.
The texts are read from the repository.
"""

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

from simplemem.errors import NotFound, SimplememError, Unavailable
from simplemem.gitrepo.repository import one_line
from simplemem.note.dates import format_log_time
from simplemem.note.names import parent
from simplemem.obsidian.settings import SETTINGS_FILES
from simplemem.vault.branch.repository import Branch
from simplemem.vault.folder import disk
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.history import SHA256_DIGITS, History, Log
from simplemem.vault.folder.lock import SideFile
from simplemem.vault.values import Kind, Version, format_version, sha256, versions_in

_TRAILER = re.compile(r"^Simplemem-(?P<key>\w+): (?P<value>.*)$", re.MULTILINE)
_LOCK_SECONDS = 10.0
_MAX_TIMESTAMP = 1 << 33  # seconds; notes are dated in nanoseconds, which have to fit into 64 bits
_MAX_SKIPPED_NUMBERS = 1_000_000
_MAX_SUBJECT = 110


class BranchLog(Log):
    """The log of a branch. Guards how far it was read, and when each file was changed.

    Two files are kept, which all processes of a server share: the log, and `dates.jsonl`. A line of
    the latter has the dates of some files, and states up to which commit, and up to which byte, the
    log is complete.
    """

    def __init__(self, root: str, branch: Branch, *, kind: Kind = "agent") -> None:
        """Begin with nothing read. `kind` says who makes the changes of this process."""
        super().__init__(root, kind=kind)
        self.branch = branch
        self.dates: dict[str, int] = {}  # by path, the time of the last change, in seconds
        self._dates_file = SideFile(root, "history/dates.jsonl")
        self._log_file = SideFile(root, "history/log.jsonl")
        self._last_commit = ""
        self._log_size = 0
        self._guard = threading.RLock()

    def follow(self) -> str:
        """Add the changes of new commits here to the log; return the newest commit.

        Fetches nothing. Raises Unavailable if another process holds the lock of the log for too
        long, or if the branch cannot be read.
        """
        with self._guard:
            newest = self.branch.newest()
            if newest != self._last_commit:
                with self._dates_file.locked(_LOCK_SECONDS) as is_held:
                    if not is_held:
                        raise Unavailable(
                            "another process is reading the branch's history",
                            hint="Try again in a moment.",
                        )
                    self._follow_locked(newest)
            return newest

    def _follow_locked(self, newest: str) -> None:
        """Bring both files up to the commit `newest`. The lock of `dates.jsonl` must be held.

        Files that do not fit the branch are built again from all commits.
        """
        self._read_dates()
        with super()._opened() as (_, size):
            is_cut = size < self._log_size

        if is_cut or not self.branch.is_before(self._last_commit, newest):
            # The log was removed, or the branch was given another history.
            self._forget()
            self._dates_file.replace(b"")
        # A crash may have left lines that `dates.jsonl` does not cover, and a log that is built
        # again has to be empty.
        if size != self._log_size:
            lines = Log(self.root).whole_lines()
            self._log_file.replace(lines[: self._log_size])
        if newest != self._last_commit:
            self._add_commits(newest)

    def refresh(self) -> bool:
        """Fetch the branch if it is on another computer; return whether it has new commits.

        Raises Unavailable if the network fails. The log is brought up to date when it is read.
        """
        return self.branch.fetch()

    @contextmanager
    def _opened(self, root: DirHandles | None = None) -> Iterator[tuple[int, int]]:
        """Yield the descriptor of the log and its size, after following the branch."""
        self.follow()
        with super()._opened(root) as opened:
            yield opened

    def _read_dates(self) -> None:
        """Read what this or another process has added to `dates.jsonl`."""
        lines, is_new_file = self._dates_file.follow()
        if is_new_file:
            self._forget()
        for line in lines.splitlines():
            with suppress(ValueError):  # a crash cut the line
                state = json.loads(line)
                self._last_commit = state["commit"]
                self._log_size = state["log"]
                self.dates |= state["dates"]

    def _forget(self) -> None:
        """Forget what was read of both files, so that they are read from the beginning."""
        self._last_commit = ""
        self._log_size = 0
        self.dates.clear()

    def _add_commits(self, newest: str) -> None:
        """Add the changes of all commits after the last one that was read to both files.

        The lock of `dates.jsonl` must be held.
        """
        order = SortMode.TOPOLOGICAL | SortMode.REVERSE
        walk = self.branch.repo.walk(newest, order)
        if self._last_commit:
            walk.hide(self._last_commit)

        last_number = Log(self.root).next_number() - 1
        dates: dict[str, int] = {}
        lines: list[bytes] = []
        for commit in walk:
            timestamp = _timestamp_of(commit)
            for path in _changed_paths(self.branch, commit):
                # The time of a file never goes back, whatever the clocks of the committers.
                old_timestamp = self.dates.get(path, 0)
                last_timestamp = dates.get(path, old_timestamp)
                dates[path] = max(timestamp, last_timestamp)
            for version in _versions_of(commit, last_number):
                lines.append(_log_line(self.branch, commit, version))
                last_number = version.number

        added = b"".join(lines)
        if added:
            self._log_file.append(added)
        self._copy_obsidian_settings(self._last_commit, newest)
        log_size = self._log_size + len(added)
        state = {"commit": newest, "log": log_size, "dates": dates}
        self._dates_file.append(_json_line(state))
        self._read_dates()

    def _copy_obsidian_settings(self, since: str, commit: str) -> None:
        """Write Obsidian's settings that changed since a commit into the folder of this server.

        There, `read_obsidian_settings` finds them as in a clone of the branch. A file that `commit`
        no longer has is removed. A file that cannot be written stays as it is.
        """
        for name in SETTINGS_FILES:
            old_file = self.branch.file(since, name)
            new_file = self.branch.file(commit, name)
            # If a link is in the way, it stays there, and the file is not copied.
            with suppress(OSError, SimplememError), DirHandles(self.root) as root:
                if new_file is None:
                    if old_file is not None:
                        disk.remove(root, name)
                elif old_file is None or old_file.id != new_file.id:
                    root.make(parent(name))
                    disk.write_own_file(root, name, new_file.data, sync=False)


def _timestamp_of(commit: pygit2.Commit) -> int:
    """Return when a commit was made, in seconds since 1970, at most `_MAX_TIMESTAMP`.

    It is the committer's time, not the author's.
    """
    return max(0, min(commit.commit_time, _MAX_TIMESTAMP))


def _changed_paths(branch: Branch, commit: pygit2.Commit) -> frozenset[str]:
    """Return the paths of the files that differ from those of each parent of a commit."""
    commit_id = str(commit.id)
    parents = [str(parent_id) for parent_id in commit.parent_ids]
    if not parents:
        return branch.changed_files("", commit_id)
    changed = [branch.changed_files(parent_id, commit_id) for parent_id in parents]
    return frozenset.intersection(*changed)


def _versions_of(commit: pygit2.Commit, last_number: int) -> list[Version]:
    """Return the changes that a commit of ours made, without their hashes.

    `last_number` is that of the last change in the log. Returns [] for a merge, for a commit that
    somebody else made, and for one whose trailers do not state valid changes. Returns [] too if
    the numbers do not follow `last_number`, or skip so many that such commits could use up all
    numbers.
    """
    if len(commit.parent_ids) > 1:
        return []
    message = commit.raw_message.decode("utf-8", "replace")
    trailers = dict(_TRAILER.findall(message))
    try:
        versions = _read_trailers(trailers, _timestamp_of(commit))
    except (ValueError, KeyError, TypeError, NotFound, RecursionError):
        return []

    if not versions:
        return []
    skipped = versions[0].number - last_number
    follows_closely = 0 < skipped < _MAX_SKIPPED_NUMBERS
    return versions if follows_closely else []


def _read_trailers(trailers: dict[str, str], timestamp: int) -> list[Version]:
    """Return the changes that the trailers of a commit state.

    Returns [] if the log would not read them back as they are. Raises ValueError, KeyError,
    TypeError, NotFound or RecursionError if a trailer is missing or malformed.
    """
    first = int(trailers["Version"].removeprefix("v"))
    moment = datetime.fromtimestamp(timestamp, UTC)
    when = format_log_time(moment)
    steps = json.loads(trailers["Steps"])
    versions = []
    for number, (op, path, new_path) in enumerate(steps, start=first):
        version = Version(
            id=format_version(number),
            group=format_version(first),
            path=path,
            new_path=new_path,
            when=when,
            op=op,
            who=trailers.get("Actor", ""),
            tool=trailers.get("Tool", ""),
            reason=trailers.get("Reason", ""),
            before=None,
            after=None,
            kind=trailers["Kind"],  # type: ignore[arg-type]  # checked below, as are the others
            session=trailers.get("Session", ""),
            sources=tuple(json.loads(trailers.get("Sources", "[]"))),
        )
        versions.append(version)

    lines = [_json_line(version._asdict()) for version in versions]
    is_valid = list(versions_in(lines)) == versions
    return versions if is_valid else []


def _log_line(branch: Branch, commit: pygit2.Commit, version: Version) -> bytes:
    """Return a change of a commit as a line of the log.

    The hashes of its texts are filled in. Beside the fields of every log, the line has the ids of
    the commit and of the blobs of both texts.
    """
    commit_id = str(commit.id)
    new_path = version.new_path or version.path
    new_blob = branch.file(commit_id, new_path)
    old_blob = None
    if commit.parent_ids:
        parent_id = str(commit.parent_ids[0])
        old_blob = branch.file(parent_id, version.path)

    old_hash, old_id = _identify(old_blob)
    new_hash, new_id = _identify(new_blob)
    complete_version = version._replace(before=old_hash, after=new_hash)
    fields = complete_version._asdict()
    fields["commit"] = commit_id
    fields["blobs"] = [old_id, new_id]
    return _json_line(fields)


def _identify(blob: pygit2.Blob | None) -> tuple[str, str] | tuple[None, None]:
    """Return the hash of a text and the id of its blob; None and None without a blob."""
    if blob is None:
        return None, None
    return sha256(blob.data), str(blob.id)


def _json_line(fields: dict[str, Any]) -> bytes:
    """Return some fields as one line of JSON, with its line end."""
    text = json.dumps(fields, separators=(",", ":"))
    return text.encode() + b"\n"


class BranchHistory(History):
    """The earlier versions of a branch, whose texts are in the repository."""

    log: BranchLog
    can_be_rebuilt = True  # the log and the texts are in the repository

    def __init__(self, root: str, log: BranchLog, *, keep_days: int, keep_mb: int) -> None:
        """Begin as `History` does, with the log of a branch."""
        super().__init__(root, log, keep_days=keep_days, keep_mb=keep_mb)

    def read_text(self, sha: str) -> bytes | None:
        """Return the text with a hash of 64 digits, None if it is not kept.

        It is read from the repository, or from the folder of the server, which has texts that
        nobody committed, such as those of a conflict. The text may be that of a hidden note. To
        show a text, use `content`, which checks that.
        """
        if len(sha) == SHA256_DIGITS:
            blob_id = self._find_blob(sha)
            if blob_id is not None:
                repo = self.log.branch.repo
                return repo[blob_id].peel(pygit2.Blob).data
        return super().read_text(sha)

    def _find_blob(self, sha: str) -> str | None:
        """Return the id of a blob with this hash that the log names, None if it names none."""
        for line in self._lines_with(sha):
            old_id, new_id = line["blobs"]
            if line["before"] == sha and old_id is not None:
                return str(old_id)
            if line["after"] == sha and new_id is not None:
                return str(new_id)
        return None

    def _complete_hash(self, prefix: str) -> str:
        """Return the only hash in the log that begins with a prefix.

        If the log has none, looks for that of a text in the folder of the server. Returns the
        prefix if there is more than one.
        """
        matches = set[str]()
        for line in self._lines_with(prefix):
            for sha in (line["before"], line["after"]):
                if sha is not None and sha.startswith(prefix):
                    matches.add(sha)

        if not matches:
            return super()._complete_hash(prefix)
        if len(matches) > 1:
            return prefix
        return matches.pop()

    def _lines_with(self, text: str) -> Iterator[dict[str, Any]]:
        """Yield the lines of the log that contain a text, newest first, as their fields."""
        lines = self.log.whole_lines()
        mark = text.encode()
        position = lines.rfind(mark)
        while position >= 0:
            start = lines.rfind(b"\n", 0, position) + 1
            end = lines.find(b"\n", position)
            yield json.loads(lines[start:end])
            position = lines.rfind(mark, 0, start)


def message_of(versions: Sequence[Version]) -> str:
    """Return the message of a commit, from whose trailers `BranchLog` reads its changes.

    `versions` are the changes, those of one operation, in order.
    """
    first = versions[0]
    trailers = {
        "Actor": first.who,
        "Tool": first.tool,
        "Reason": first.reason,
        "Version": first.group,
        "Kind": first.kind,
        "Session": first.session,
    }
    steps = [[version.op, version.path, version.new_path] for version in versions]

    lines = [_subject_of(versions), ""]
    for key, value in trailers.items():
        if value:
            lines.append(f"Simplemem-{key}: {one_line(value)}")
    if first.sources:
        lines.append(f"Simplemem-Sources: {json.dumps(first.sources)}")
    lines.append(f"Simplemem-Steps: {json.dumps(steps)}")
    return "".join(f"{line}\n" for line in lines)


def _subject_of(versions: Sequence[Version]) -> str:
    """Return the first line of the message, such as "simplemem: move a to b and 2 more".

    It describes the first of `versions`, of which there is at least one, and counts the others.
    """
    first = versions[0]
    name = first.path.removesuffix(".md")
    subject = f"simplemem: {first.op} {name}"
    if first.new_path:
        new_name = first.new_path.removesuffix(".md")
        subject += f" to {new_name}"
    more_versions = len(versions) - 1
    if more_versions:
        subject += f" and {more_versions} more"
    return one_line(subject, _MAX_SUBJECT)
