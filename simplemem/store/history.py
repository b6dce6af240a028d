"""The changes of notes, the differences between their texts, and who wrote which line.

The texts of notes at a moment are in `earlier_texts`, the commits of a note in `git_history`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from simplemem.errors import Ambiguous, NotFound
from simplemem.index.changes import HUMAN, UNKNOWN, ChangeTable, Origin, author_of
from simplemem.models import BlamedLine, Difference, HistoryEntry, is_called
from simplemem.note.diff import LONG_DIFF, blame, lines_of, unified_diff
from simplemem.note.names import clean_reference, compare_key, name_of, path_of
from simplemem.note.words import well_formed
from simplemem.store.earlier_texts import TEXT_NOT_KEPT, EarlierTexts, is_version_id
from simplemem.store.git_history import GitHistory
from simplemem.store.vault_index import NameResolver, NoteReader
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Version, sha256

if TYPE_CHECKING:
    from simplemem.gitrepo.history import NoteCommit

_SHORT_ID_LENGTHS = range(10, 40)  # tried in turn; see `_short_id`


class _Selection(NamedTuple):
    """The changes that a caller asks for: of an author, after a number and up to another.

    `by` is the author's name, "" for any. `after` and `upto` are numbers of changes in the log;
    `after` is excluded, `upto` included. `is_narrowed` is False if the caller asks for all changes.
    """

    by: str
    after: int
    upto: int
    is_narrowed: bool

    def has(self, version: Version) -> bool:
        """Return whether a change is one of these."""
        is_in_time = self.after < version.number <= self.upto
        return is_in_time and is_called(version.who, self.by)


class NoteHistory:
    """The recorded changes of notes. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        changes: ChangeTable,
        *,
        reader: NoteReader,
        resolver: NameResolver,
        texts: EarlierTexts,
        commits: GitHistory,
    ) -> None:
        self._vault = vault
        self._access = vault.access
        self._kept_texts = vault.history
        self._changes = changes
        self._reader = reader
        self._resolver = resolver
        self._texts = texts
        self._commits = commits

    def entries(
        self,
        name: str | None = None,
        *,
        limit: int = 20,
        diff: bool = False,
        by: str = "",
        since: str = "",
        until: str = "",
        steps: bool = False,
    ) -> tuple[HistoryEntry, ...]:
        """Return changes of one note, of all, or of the operation of a version, newest first.

        `name` is a note, a version such as "v12", or None for all notes. At most `limit` entries
        are returned, but all changes of a version's operation. `by` (an author), `since` and
        `until` (a date or version) narrow the changes down, but not those of a version. Git commits
        are among the changes of a note, unless these are narrowed down. With `diff`, each entry has
        its difference. With `steps` and without `diff`, the changes of all notes have one entry per
        operation.

        Raises NotFound for an unknown note or version, Ambiguous if several notes have the name,
        and Invalid for what is no date.
        """
        limit = max(limit, 0)
        selection = self._selection_of(by, since, until)
        if name is None:
            changes = self._changes.recent(
                limit, after=selection.after, upto=selection.upto, by=selection.by
            )
            # These are all changes of the latest `limit` operations, so perhaps more than `limit`.
            if steps and not diff:
                return self._entries_of_operations(changes)
            return tuple(self._entry_of(change, diff=diff) for change in changes[:limit])

        operation = self._operation_named(name)
        if operation is not None:
            return tuple(self._entry_of(change, diff=diff) for change in reversed(operation))

        path = self.path_with_a_past(name)
        entries = self._entries_of_note(path, selection, limit, diff=diff)
        return tuple(islice(entries, limit))

    def _selection_of(self, by: str, since: str, until: str) -> _Selection:
        """Return the changes of an author between two moments; "" for any author or moment.

        Raises NotFound for an unknown version and Invalid for what is no date.
        """
        after = 0
        if since:
            after = self._texts.moment_of(since, start=True).number
        if until:
            upto = self._texts.moment_of(until).number
        else:
            upto = self._changes.newest()
        is_narrowed = bool(by or since or until)
        return _Selection(well_formed(by), after, upto, is_narrowed)

    def _entries_of_note(
        self,
        path: str,
        selection: _Selection,
        limit: int,
        *,
        diff: bool,
    ) -> Iterator[HistoryEntry]:
        """Return the selected changes of a note, newest first, and its commits if all are selected.

        With an author, `since` or `until`, there are no commits. A commit that contains nothing but
        changes of the log is left out, because those have entries. Both are read at once, perhaps
        more than `limit`. Each entry is made when the caller asks for it, as its difference takes
        time.
        """
        commits = [] if selection.is_narrowed else self._commits.commits_of(path, limit)
        max_changes = None if selection.is_narrowed or commits else limit
        changes = self._changes.of(path, max_changes, recovered=True)

        groups = {change.group for change in changes}
        commit_ids = _commits_by_group(commits, groups)
        of_changes = (
            self._entry_of(change, diff=diff, commit=commit_ids.get(change.group))
            for change in changes
            if selection.has(change)
        )
        of_commits = (
            self._entry_of_commit(commit, diff=diff)
            for commit in commits
            if not _is_our_own(commit, groups)
        )
        return merge(of_changes, of_commits, key=attrgetter("when"), reverse=True)

    def _entries_of_operations(self, changes: Sequence[Version]) -> tuple[HistoryEntry, ...]:
        """Return one entry per operation, in the order of the changes, which are newest first.

        It is the entry of the operation's main change, with the version of the first change, and
        with the number of changes in `notes`.
        """
        entries = []
        for _, group in groupby(changes, attrgetter("group")):
            operation = list(group)[::-1]
            main_change = main_change_of(operation)
            entry = self._entry_of(main_change, diff=False)
            entry = replace(entry, version=operation[0].id, notes=len(operation))
            entries.append(entry)
        return tuple(entries)

    def _entry_of(self, version: Version, *, diff: bool, commit: str | None = None) -> HistoryEntry:
        """Return the entry of a change, with the commit that contains it, if any.

        Its difference is None without `diff`, or if one of the texts is no longer kept.
        """
        new_name = None
        if version.new_path:
            new_name = name_of(version.new_path)
        difference = None
        if diff:
            old, new = self._texts_of(version)
            difference = _diff_of(old, new)

        return HistoryEntry(
            version=version.id,
            name=name_of(version.path),
            new_name=new_name,
            when=version.when,
            op=version.op,
            who=version.who,
            tool=version.tool,
            reason=version.reason,
            before=version.before,
            sha256=version.after,
            diff=difference,
            commit=commit,
            kind="human" if version.is_by_person else "agent",
            group=version.group,
            session=version.session,
            sources=version.sources,
        )

    def _entry_of_commit(self, commit: NoteCommit, *, diff: bool) -> HistoryEntry:
        """Return the entry of a git commit that changed a note.

        Its difference is None without `diff`, or if one of the texts is not known. In a partial
        view, the subject of the commit is left out.
        """
        name = name_of(commit.path)
        old_name = None if commit.old_path is None else name_of(commit.old_path)
        difference = None
        if diff:
            old = b"" if commit.op == "create" else commit.old_text
            new = b"" if commit.op == "delete" else commit.new_text
            difference = _diff_of(old, new)

        return HistoryEntry(
            version=_short_id(commit.commit),
            name=old_name or name,
            new_name=name if old_name else None,
            group=_short_id(commit.commit),
            when=commit.when,
            op=commit.op,
            who=commit.who,
            tool="git",
            # The subject may name hidden notes that the commit changed as well.
            reason="" if self._access.is_partial else commit.subject,
            before=_hash_of(commit.old_text),
            sha256=_hash_of(commit.new_text),
            diff=difference,
            source="git",
            commit=commit.commit,
        )

    def _texts_of(self, version: Version) -> tuple[bytes | None, bytes | None]:
        """Return the texts before and after a change; b"" for no note, None for a lost text."""
        paths = (version.new_path or version.path, version.path)
        old: bytes | None = b""
        if version.before is not None:
            old = self._texts.text_of(version.before, *paths)
        new: bytes | None = b""
        if version.after is not None:
            new = self._texts.text_of(version.after, *paths)
        return old, new

    def path_with_a_past(self, name: str) -> str:
        """Return the path of a note that exists, or the last path of one that existed.

        If the log knows a note at the path that the name is, and there is no file now, that note is
        meant: it was deleted, or has moved to the path that is returned. Otherwise, the name is
        resolved as for a note that exists, and at last compared with the bare names of deleted
        notes. Raises NotFound if there never was such a note, and Ambiguous if several notes have
        the name or several deleted ones had it.
        """
        path = path_of(well_formed(clean_reference(name)))
        if self._reader.entry(path) is None:
            lineage = self._changes.lineage(path)
            if lineage:
                last = lineage[0]
                return last.new_path or last.path

        try:
            return self._resolver.path_of(name)
        except NotFound:
            deleted = self._deleted_paths(clean_reference(name))
            if len(deleted) > 1:
                raise Ambiguous(
                    f"{name!r} is the name of {len(deleted)} deleted notes",
                    candidates=[name_of(path) for path in deleted],
                    hint="Use one of the candidates.",
                ) from None
            if deleted:
                return deleted[0]

            # Perhaps it was deleted, and only git has it. This is not revealed if some notes are
            # hidden: it may have moved to a hidden place.
            if self._access.is_partial or not self._commits.commits_of(path, 1):
                raise
            return path

    def _deleted_paths(self, bare_name: str) -> list[str]:
        """Return the paths of deleted notes that have this name, whatever their folders."""
        key = compare_key(bare_name)
        paths = []
        for path in self._changes.deleted_paths():
            last_part = name_of(path).rsplit("/", 1)[-1]
            if compare_key(last_part) == key:
                paths.append(path)
        return paths

    def last_change(self, path: str) -> Version:
        """Return the last change at a path in the change log. Raises NotFound if it has none."""
        for version in self._changes.of(path, 1):
            return version
        hint = "The history has only changes made through simplemem."
        raise NotFound(f"no earlier changes of {name_of(path)} are recorded", hint=hint)

    def diff(
        self,
        what: str,
        other: str | None = None,
        *,
        since: str | None = None,
    ) -> tuple[Difference, ...]:
        """Return what a version changed, what lies between two, or what changed in a note.

        With `other`, both are versions, and the result is the difference between the texts that
        they left. Else `what` is a version, with one difference per change of its operation, or a
        note, with one difference from `since` until now. `since` is a version, date or commit;
        without it, the difference begins before the note's last change. With `since`, `what` is
        always a note.

        Raises NotFound for an unknown note or version, or a note without recorded changes;
        Ambiguous if several notes have the name; Invalid if `since` is no date.
        """
        if other is not None:
            one = self._changes.find(what)
            two = self._changes.find(other)
            return (self._diff_of_versions(one, two),)

        operation = self._operation_named(what) if since is None else None
        if operation is not None:
            return tuple(self._diff_of_change(change) for change in operation)
        return (self._diff_of_note(what, since),)

    def _diff_of_versions(self, one: Version, two: Version) -> Difference:
        """Return the difference between the texts that two changes left, also of two notes."""
        old_path = one.new_path or one.path
        new_path = two.new_path or two.path
        _, old = self._texts_of(one)
        _, new = self._texts_of(two)
        return _difference((old_path, new_path), (one.id, two.id), old, new)

    def _diff_of_change(self, change: Version) -> Difference:
        """Return the difference between the texts before and after a change."""
        new_path = change.new_path or change.path
        labels = (f"before {change.id}", change.id)
        old, new = self._texts_of(change)
        return _difference((change.path, new_path), labels, old, new)

    def _diff_of_note(self, name: str, since: str | None) -> Difference:
        """Return the difference of a note's text now from that at a moment.

        Without a moment (`since` is None), it is from the text before the note's last change. A
        deleted note has no text now. Raises what `path_with_a_past`, `last_change` and `note_at`
        raise.
        """
        path = self.path_with_a_past(name)
        current = self._reader.bytes_of(path) or b""
        label = since or ""
        if not label:
            last_change = self.last_change(path)
            label = f"before {last_change.id}"
        then = self._texts.note_at(path, label, start=True)
        if not label.startswith("before ") and not self._commits.means_commit(label):
            label = f"before {label}"

        old = b"" if then.sha256 is None else then.data
        return _difference((then.path, path), (label, "now"), old, current, then.doubt)

    def _operation_named(self, what: str) -> list[Version] | None:
        """Return the changes of the operation that a version names, oldest first.

        None if the text is no version, or if a note has it as its path. Raises NotFound for an
        unknown version.
        """
        if not is_version_id(what):
            return None
        path = path_of(what.strip())
        if self._reader.entry(path) is not None:
            return None

        version = self._changes.find(what)
        return self._changes.step(version.group)

    def blame(self, name: str) -> tuple[BlamedLine, ...]:
        """Return who last changed each line of a note, by the change log of simplemem.

        A change that the log does not have counts as made by hand ("human"). Where no author is
        found, the kind is "unknown". Raises NotFound or Ambiguous for the name.
        """
        path = self._resolver.path_of(name)
        file = self._vault.read(path)
        states = list(self._states_of(path, file.sha256))
        authors = blame(file.data, states, self._kept_texts.content)

        lines: list[BlamedLine] = []
        all_lines = zip(lines_of(file.data), authors, strict=True)
        for number, (line, author) in enumerate(all_lines, start=1):
            origin = author or UNKNOWN
            text = line.rstrip("\r\n")
            lines.append(BlamedLine(number, text, origin.kind, origin.name, origin.when))
        return tuple(lines)

    def _states_of(self, path: str, current: str) -> Iterator[tuple[str | None, Origin]]:
        """Yield the hashes of the texts that a note had, and who wrote them, newest first.

        `current` is the hash of its text now. A hash is None where the note did not exist.
        """
        digest: str | None = current
        for version in self._changes.of(path):
            if version.after != digest:
                # Between two changes of ours that do not meet, somebody changed it from outside.
                yield digest, HUMAN
            if version.before != version.after:  # else it was moved, which writes nothing
                yield version.after, author_of(version)
            digest = version.before
        if digest is not None:
            yield digest, HUMAN


def _commits_by_group(commits: Sequence[NoteCommit], groups: set[str]) -> dict[str, str]:
    """Return the commit that contains each of these operations, by the operation's group.

    Operations that no commit contains are absent.
    """
    commit_ids = {}
    for commit in commits:
        # A commit names an operation by the version of its first change, which is its group.
        for group in commit.versions:
            if group in groups:
                commit_ids[group] = commit.commit
    return commit_ids


def _is_our_own(commit: NoteCommit, groups: set[str]) -> bool:
    """Return whether simplemem made a commit, and only for operations in `groups`."""
    return bool(commit.versions) and groups.issuperset(commit.versions)


def main_change_of(step: Sequence[Version]) -> Version:
    """Return the change of an operation that describes it best: a move, else the first change.

    The links that a move rewrites are changes of the same operation.
    """
    for change in step:
        if change.new_path is not None:
            return change
    return step[0]


def _short_id(commit_id: str) -> str:
    """Return the first 10 or more digits of a commit id, so many that one is a letter.

    A short id of digits only could be taken for a version. If all are digits, the whole id is
    returned.
    """
    for length in _SHORT_ID_LENGTHS:
        if not commit_id[:length].isdigit():
            return commit_id[:length]
    return commit_id


def _hash_of(data: bytes | None) -> str | None:
    """Return the hash of a text; None for no text."""
    return None if data is None else sha256(data)


def _diff_of(
    old: bytes | None, new: bytes | None, titles: tuple[str, str] = ("before", "after")
) -> str | None:
    """Return the difference between two texts; None if one of them is lost (None).

    `titles` name the two in it. It is "" for equal texts, and for texts that are too large to
    compare.
    """
    if old is None or new is None:
        return None
    return unified_diff(old, new, titles, LONG_DIFF)


def _difference(
    paths: tuple[str, str],
    labels: tuple[str, str],
    old: bytes | None,
    new: bytes | None,
    doubt: str = "",
) -> Difference:
    """Return the difference between two texts, with a doubt if there is one.

    `paths` and `labels` are those of the old and the new text. If a text is lost (None), or the two
    are too large to compare, the difference is "", and its `doubt` says why.
    """
    old_name = name_of(paths[0])
    new_name = name_of(paths[1])
    titles = (f"{old_name} ({labels[0]})", f"{new_name} ({labels[1]})")
    difference = _diff_of(old, new, titles)
    if not difference and old != new and not doubt:
        doubt = TEXT_NOT_KEPT if difference is None else "the texts are too large to compare"
    return Difference(
        name=old_name,
        new_name=new_name,
        before=labels[0],
        after=labels[1],
        diff=difference or "",
        doubt=doubt,
    )
