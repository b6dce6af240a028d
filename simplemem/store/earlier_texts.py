"""The texts that notes had at a moment: a version, a date or a commit.

A moment is a place in the order of the change log. The log does not know when an edit was made
outside simplemem, so the text at a moment may be uncertain. `EarlierNote.doubt` then says why.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.index.changes import ChangeTable
from simplemem.note.dates import format_log_time, read_when
from simplemem.note.names import clean_reference, path_of
from simplemem.note.words import well_formed
from simplemem.store.git_history import GitHistory
from simplemem.store.vault_index import NoteReader
from simplemem.vault.folder.history import History
from simplemem.vault.values import File, Version, sha256

TEXT_NOT_KEPT = "the text is no longer kept"
_OUTSIDE = "it was changed outside simplemem at an unknown time"
_BEFORE = re.compile(r"\s*before\s+(?=v?[0-9])", re.IGNORECASE)
_VERSION = re.compile(r"v?[0-9]{1,15}")
_YEAR = re.compile("[0-9]{4}")
_MAX_LAG = 0.02  # seconds by which the time of a file may lag behind the clock


class Moment(NamedTuple):
    """A place in the order of all changes.

    `number` is that of the last change before the moment. `when` is its time in UTC, which is
    compared with the times of files. If a version gave the moment, it is `version`, and the moment
    is right after its operation, or right before it if `is_before`.
    """

    number: int
    when: str
    version: Version | None = None
    is_before: bool = False


class EarlierNote(NamedTuple):
    """One path at a moment, and what is uncertain about it; "" if nothing is.

    Without `sha256` there was no note. Without `data` its text is no longer kept.
    """

    path: str
    sha256: str | None
    data: bytes | None
    doubt: str = ""


class _Neighbours(NamedTuple):
    """The last change of a path before a moment, and the first one after it."""

    last: Version | None
    first_after: Version | None

    def nearest_to(self, moment: Moment) -> Version | None:
        """Return the change that a moment directly follows, or precedes if it is `before` a change.

        None if there is no such change.
        """
        return self.first_after if moment.is_before else self.last


class EarlierTexts:
    """The texts that the notes of a vault had at earlier moments. Guards no state of its own."""

    def __init__(
        self,
        changes: ChangeTable,
        kept_texts: History,
        *,
        reader: NoteReader,
        commits: GitHistory,
    ) -> None:
        self._changes = changes
        self._kept_texts = kept_texts
        self._reader = reader
        self._commits = commits

    def moment_of(self, when: str, *, start: bool = False) -> Moment:
        """Return the moment that a version or date means.

        For a version, it is right after its operation; with `start`, or if the text is such as
        "before v12", right before it. For a date, it is the end of the day, or now if that is
        earlier; with `start`, the beginning of the day. Four digits that are no known version are a
        year. Raises NotFound for an unknown version and Invalid for what is no date.
        """
        prefix = _BEFORE.match(when)
        reference = when
        if prefix is not None:
            reference = when[prefix.end() :]
        if prefix is None and not is_version_id(reference):
            return self._moment_of_date(when, start=start)

        try:
            version = self._changes.find(reference)
        except NotFound:
            may_be_year = prefix is None and _YEAR.fullmatch(reference.strip())
            if not may_be_year:
                raise
            return self._moment_of_date(when, start=start)

        is_before = start or prefix is not None
        operation = self._changes.step(version.group)  # no moment is within an operation
        number = operation[-1].number
        if is_before:
            number = operation[0].number - 1
        return Moment(number, version.when, version, is_before=is_before)

    def _moment_of_date(self, date: str, *, start: bool) -> Moment:
        """Return the moment at which a date ends or, with `start`, begins; at the latest now.

        `date` is what `read_when` reads, in local time. Raises Invalid for anything else.
        """
        now = datetime.now()  # noqa: DTZ005  (people mean their own clock)
        try:
            date_and_time = read_when(date, now, end=not start)
            time = datetime.fromisoformat(date_and_time)
            moment = self.moment_at(min(time, now))
        except (OverflowError, OSError, ValueError) as error:
            raise Invalid(f"{date[:40]!r} is not a date that a note can have") from error

        # Dates are read to the second. If the moment is now, it follows all changes, also those of
        # this very second.
        is_now = not start and time > now - timedelta(seconds=1)
        if is_now:
            return moment._replace(number=self._changes.newest())
        return moment

    def moment_at(self, when: datetime) -> Moment:
        """Return the moment of a time: after the last change that was logged until then."""
        text = format_log_time(when)
        return Moment(self._changes.last_before(text), text)

    def note_at(self, path: str, at: str, *, start: bool = False, name: str = "") -> EarlierNote:
        """Return a note as it was at a version, date or commit, followed back through its moves.

        `path` is its current path, `name` the name that the caller used, which may be an earlier
        one. `start` is that of `moment_of`. At a version that deleted the note, it is the note as
        it was before. If the note did not exist then, the result has no hash. Raises what
        `moment_of` and `text_at_commit` raise.
        """
        if self._commits.means_commit(at):
            old_path, data = self._commits.text_at_commit(path, at)
            return EarlierNote(old_path, sha256(data), data)

        moment = self.moment_of(at, start=start)
        paths = [path]
        if name:
            reference = clean_reference(name)
            paths.append(path_of(well_formed(reference)))
        then = self._note_at_version(moment, paths)
        if then is not None:
            return then

        # The changes are the newest first. So `first_after` is set until it is the oldest one after
        # the moment, and `last` is set once, to the newest one before it.
        last = None
        first_after = None
        for version in self._changes.of(path):
            if version.number > moment.number:
                first_after = version
            elif last is None:
                last = version
        if first_after is not None:
            path = first_after.path  # where the note was at the moment
        then, _ = self._note_between(path, _Neighbours(last, first_after), moment)
        return then

    def _note_at_version(self, moment: Moment, paths: list[str]) -> EarlierNote | None:
        """Return a note as the version of a moment left it, or found it if the moment is before.

        `paths` are those that the note may have. Returns None if the moment has no version, or the
        version changed none of the paths.
        """
        version = moment.version
        if version is None:
            return None

        for path, old_sha256, new_sha256 in version.effects:
            # A move has an effect at each of its two paths: at the old one, there is no note
            # afterwards; at the new one, there was none before. The hash of the version stands in.
            if moment.is_before:
                digest = old_sha256 or version.before
            else:
                digest = new_sha256 or version.after or old_sha256
            if path in paths and digest is not None:
                data = self.text_of(digest, path)
                doubt = TEXT_NOT_KEPT if data is None else ""
                return EarlierNote(path, digest, data, doubt)
        return None

    def notes_at(self, when: Moment | datetime) -> Iterator[tuple[EarlierNote, bool]]:
        """Yield every note that the log names as it was at a moment, sorted by path.

        The second value says whether it differs now: its text has changed, or the note was created
        or removed since. A datetime stands for the moment that `moment_at` returns.
        """
        moment = self.moment_at(when) if isinstance(when, datetime) else when
        last = dict[str, Version]()
        first_after = dict[str, Version]()
        for version in self._changes.recent():
            is_after = version.number > moment.number
            for path, _, _ in version.effects:
                if is_after:
                    first_after[path] = version
                else:
                    last.setdefault(path, version)

        for path in sorted({*last, *first_after}):
            neighbours = _Neighbours(last.get(path), first_after.get(path))
            yield self._note_between(path, neighbours, moment)

    def _note_between(
        self,
        path: str,
        neighbours: _Neighbours,
        moment: Moment,
    ) -> tuple[EarlierNote, bool]:
        """Return what was at a path between two of its changes, and whether it differs now.

        The change log has the hash of the text that the last change left, and of the one that the
        next change found. If these differ, somebody changed the file in between, and `doubt` says
        so. Without a next change, the file as it is now takes its place.
        """
        current = self.file_now(path)
        current_sha256 = current.sha256 if current is not None else None
        hash_left = _hash_after(neighbours.last, path)
        hash_found = current_sha256
        is_untouched = False  # whether the file was not written since the moment
        if neighbours.first_after is not None:
            hash_found = _hash_before(neighbours.first_after, path)
        else:
            is_untouched = _is_older(current, moment)

        # If one of the two changes gave the moment, the hash that this change has is certain.
        is_certain = _is_same_operation(neighbours.nearest_to(moment), moment.version)
        digest = hash_left
        if neighbours.last is None or is_untouched or (is_certain and moment.is_before):
            digest = hash_found

        doubts = []
        if not is_untouched and not is_certain and hash_left != hash_found:
            doubts.append(_OUTSIDE)
        differs = digest != current_sha256
        data = self._text_then(digest, current, differs=differs)
        if digest is not None and data is None:
            doubts.append(TEXT_NOT_KEPT)
        return EarlierNote(path, digest, data, "; ".join(doubts)), differs

    def _text_then(
        self,
        digest: str | None,
        current: File | None,
        *,
        differs: bool,
    ) -> bytes | None:
        """Return the text with this hash; None if it is None or "", or if the text is not kept.

        `current` is the file now, and `differs` says whether it has another hash. If not, its text
        is returned.
        """
        if not digest:
            return None
        if differs:
            return self._kept_texts.content(digest)
        return None if current is None else current.data

    def file_now(self, path: str) -> File | None:
        """Return the file at a path; None if there is none that may be seen.

        If it cannot be read, its text and hash are empty.
        """
        try:
            return self._reader.file(path)
        except SimplememError:
            entry = self._reader.entry(path)
        if entry is None:
            return None
        return File(path, b"", "", entry)

    def text_of(self, sha256: str, *paths: str) -> bytes | None:
        """Return the text of this hash from the history, or from one of these paths; else None.

        The paths are only read, as they are now, if the history lacks the text.
        """
        data = self._kept_texts.content(sha256)
        if data is not None:
            return data

        for path in paths:
            current = self.file_now(path)
            if current is not None and current.sha256 == sha256:
                return current.data
        return None


def is_version_id(text: str) -> bool:
    """Return whether a text has the form of a version in the change log: `v12`, or `12`."""
    return _VERSION.fullmatch(text.strip()) is not None


def _hash_after(version: Version | None, path: str) -> str | None:
    """Return the hash of the text that a change left at a path; None if it left no note."""
    if version is None:
        return None
    for other, _, new_sha256 in version.effects:
        if other == path:
            return new_sha256
    return None


def _hash_before(version: Version, path: str) -> str | None:
    """Return the hash of the text that a change found at a path; None if it found no note."""
    for other, old_sha256, _ in version.effects:
        if other == path:
            return old_sha256
    return None


def _is_older(file: File | None, moment: Moment) -> bool:
    """Return whether a file was last written before a moment, by its own time, which may lag.

    False for no file, and for a moment whose time cannot be read.
    """
    if file is None:
        return False
    try:
        time = datetime.fromisoformat(moment.when)
        latest_seconds = time.timestamp() - _MAX_LAG
    except (ValueError, OverflowError):
        return False
    return file.entry.mtime_ns <= latest_seconds * 1_000_000_000


def _is_same_operation(version: Version | None, other: Version | None) -> bool:
    """Return whether two changes belong to one operation; False if one of them is None."""
    if version is None or other is None:
        return False
    return version.group == other.group


def nothing_there(name: str, at: str, then: EarlierNote) -> NotFound:
    """Return the error for a note that did not exist at a moment, or whose text is lost."""
    message = f"the text of {name} at {at} is no longer kept"
    if then.sha256 is None:
        message = f"{name} did not exist at {at}"
    hint = "The history lists the versions of a note, even of a deleted one."
    return NotFound(message, hint=hint)
