"""What was: the changes of memories, their texts at a moment, what lies between two texts, and who wrote which line.
When an edit was made outside simplemem is not known, which is said. A moment is a place in the order of the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import groupby, islice
from operator import attrgetter
from typing import TYPE_CHECKING, NamedTuple

from simplemem.errors import Ambiguous, Invalid, NotFound, SimplememError
from simplemem.index.changes import HUMAN, UNKNOWN, Origin, author_of, is_called
from simplemem.memory import BlamedLine, Difference, HistoryEntry
from simplemem.note.diff import LONG_DIFF, blame, lines_of, unified_diff
from simplemem.note.names import clean_reference, compare_key, name_of, path_of
from simplemem.note.words import well_formed
from simplemem.search.query import read_when
from simplemem.store.committing import is_in_git
from simplemem.store.core import Core
from simplemem.vault.disk import sha256
from simplemem.vault.history import Version
from simplemem.vault.vault import File

if TYPE_CHECKING:
    from simplemem.git import Commit, Opened

GONE = "the text is no longer kept"
_BEFORE = re.compile(r"\s*before\s+(?=v?[0-9])", re.IGNORECASE)
_VERSION = re.compile(r"v?[0-9]{1,15}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_LOG = logging.getLogger(__name__)


class Moment(NamedTuple):
    """A place in the order of all changes: right after the operation of a version, or with `before` right before it.
    `number` is the last change that had happened, `when` (UTC) is compared with files."""

    number: int
    when: str
    version: Version | None = None
    before: bool = False


class NoteThen(NamedTuple):
    """One path at a moment, and what is not certain about it: without `sha256` no note, without `data` no text."""

    path: str
    sha256: str | None
    data: bytes | None
    doubt: str = ""


def history(
    core: Core,
    name: str | None = None,
    *,
    limit: int = 20,
    diff: bool = False,
    by: str = "",
    since: str = "",
    until: str = "",
    steps: bool = False,
) -> tuple[HistoryEntry, ...]:
    """Changes of one memory, of all, or of the step that a version names, newest first; of somebody, since and until a
    date or version; by `steps`, one entry each. Of one memory that is not narrowed down, what only git knows as well."""
    limit, by, narrowed = max(limit, 0), well_formed(by), bool(by or since or until)
    after = moment_of(core, since, start=True).number if since else 0
    upto = moment_of(core, until).number if until else core.changes.newest()
    if name is None:
        found = core.changes.recent(limit, after=after, upto=upto, by=by)
        if not steps or diff:
            return tuple(_entry_of(core, version, None, diff=diff) for version in found[:limit])
        whole = [list(step)[::-1] for _, step in groupby(found, attrgetter("group"))]
        heads = [(_entry_of(core, main_of(step), None, diff=False), step) for step in whole]
        return tuple(replace(main, version=step[0].id, notes=len(step)) for main, step in heads)
    if (step := _step_named(core, name)) is not None:
        return tuple(_entry_of(core, version, None, diff=diff) for version in reversed(step))
    path = path_with_a_past(core, name)
    commits = [] if narrowed else commits_of(core, path, limit)
    ours = core.changes.of(path, None if narrowed or commits else limit, recovered=True)
    known = {version.group for version in ours}
    folded = {group: each.commit for each in commits for group in each.versions if group in known}
    ours = [each for each in ours if after < each.number <= upto and is_called(each.who, by)]
    theirs = [each for each in commits if not each.versions or not known.issuperset(each.versions)]
    entries = [  # each in its own order, merged by their times
        (_entry_of(core, each, folded.get(each.group), diff=diff) for each in ours),
        (_entry_of_git(core, each, diff=diff) for each in theirs),
    ]
    return tuple(islice(merge(*entries, key=lambda each: each.when, reverse=True), limit))


def _entry_of(core: Core, version: Version, commit: str | None, *, diff: bool) -> HistoryEntry:
    new_name = name_of(version.new_path) if version.new_path else None
    shown = _shown(*_sides(core, version)) if diff else None
    return HistoryEntry(
        version.id, name_of(version.path), new_name, *version[4:11], shown, commit=commit
    )


def main_of(step: Sequence[Version]) -> Version:
    """The change that others of its operation follow: a move is followed by the links that are written again."""
    return max(step, key=lambda version: version.new_path is not None)


def _entry_of_git(core: Core, commit: Commit, *, diff: bool) -> HistoryEntry:
    oid, before, after = commit.commit, commit.before, commit.after
    # So much of its id that nobody takes it for a number of our history.
    short = next((oid[:size] for size in range(10, 40) if not oid[:size].isdigit()), oid)
    names = (
        name_of(commit.old_path or commit.path),
        name_of(commit.path) if commit.old_path else None,
    )
    said = (
        "" if core.vault.access.is_partial else commit.subject
    )  # it may speak of hidden notes in the commit
    found, left = (None if data is None else sha256(data) for data in (before, after))
    shown = (
        _shown(b"" if commit.op == "create" else before, b"" if commit.op == "delete" else after)
        if diff
        else None
    )
    at = (commit.when, commit.op, commit.who, "git")
    return HistoryEntry(short, *names, *at, said, found, left, shown, source="git", commit=oid)


def _sides(core: Core, version: Version) -> tuple[bytes | None, bytes | None]:
    """What a version found and what it left; nothing is no bytes, a lost text None."""
    places = (version.new_path or version.path, version.path)
    before, after = (
        b"" if sha is None else text_of(core, sha, *places)
        for sha in (version.before, version.after)
    )
    return before, after


def _shown(
    before: bytes | None, after: bytes | None, titles: tuple[str, str] = ("before", "after")
) -> str | None:
    return (
        None if before is None or after is None else unified_diff(before, after, titles, LONG_DIFF)
    )


def path_with_a_past(core: Core, name: str) -> str:
    """A memory that is there, or one that was: by its path, or by its bare name when only one deleted one had that."""
    path = path_of(well_formed(clean_reference(name)))
    if core.entry(path) is None and (moves := core.changes.lineage(path)):
        return moves[0].new_path or moves[0].path  # it may have moved on
    try:
        return core.path_meant(name)
    except NotFound:
        key = compare_key(clean_reference(name))
        gone = [
            path
            for path in core.changes.gone()
            if compare_key(name_of(path).rsplit("/", 1)[-1]) == key
        ]
        if len(gone) > 1:
            many, hint = (
                f"{name!r} is the name of {len(gone)} deleted notes",
                "Use one of the candidates.",
            )
            raise Ambiguous(many, candidates=list(map(name_of, gone)), hint=hint) from None
        # Deleted, and known to git alone: it may have gone to a hidden place, so where there are such it is not told.
        if not gone and (core.vault.access.is_partial or not commits_of(core, path, 1)):
            raise
        return gone[0] if gone else path


def last_change(core: Core, path: str) -> Version:
    """The last change of a memory."""
    for version in core.changes.of(path, 1):
        return version
    hint = "The history has only changes made through simplemem."
    raise NotFound(f"no earlier changes of {name_of(path)} are recorded", hint=hint)


def moment_of(core: Core, wanted: str, *, start: bool = False) -> Moment:
    """The moment after a version or right `before v12`, or the end of a day; with `start`, before it or its morning."""
    before = _BEFORE.match(wanted)
    named = wanted[before.end() :] if before else wanted
    if before or _VERSION.fullmatch(named.strip()):
        try:
            version = core.changes.find(named)
        except NotFound:
            if before or not re.fullmatch("[0-9]{4}", named.strip()):  # four digits may be a year
                raise
        else:
            steps = core.changes.step(
                version.group
            )  # an operation is done as a whole, or not at all
            start = start or before is not None
            return Moment(
                steps[0].number - 1 if start else steps[-1].number,
                version.when,
                version,
                before=start,
            )
    now = datetime.now()  # noqa: DTZ005  (people mean their own clock)
    try:
        meant = datetime.fromisoformat(read_when(wanted, now, end=not start))
        moment = moment_at(core, min(meant, now))
    except (OverflowError, OSError, ValueError) as error:
        raise Invalid(f"{wanted[:40]!r} is not a date that a note can have") from error
    is_now = not start and meant > now - timedelta(
        seconds=1
    )  # dates are read to the second: nothing is left out
    return moment._replace(number=core.changes.newest()) if is_now else moment


def moment_at(core: Core, when: datetime) -> Moment:
    """The moment a time means."""
    said = when.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return Moment(core.changes.last_before(said), said)


def note_at(core: Core, path: str, at: str, *, start: bool = False, name: str = "") -> NoteThen:
    """One note, called `name`, at a version, date or commit, through its moves; what a version took away, as it was."""
    if means_commit(core, at):
        then, data = text_at_commit(core, path, at)
        return NoteThen(then, sha256(data), data)
    moment, called = (
        moment_of(core, at, start=start),
        path_of(well_formed(clean_reference(name))) if name else "",
    )
    if (version := moment.version) is not None:
        for (
            where,
            before,
            after,
        ) in version.effects:  # of a move, one of its two paths has what the other has not
            sha = before or version.before if moment.before else after or version.after or before
            if where in (called, path) and sha is not None:
                kept = text_of(core, sha, where)
                return NoteThen(where, sha, kept, GONE if kept is None else "")
    changes = core.changes.of(path)
    left = next((version for version in changes if version.number <= moment.number), None)
    found = next((version for version in reversed(changes) if version.number > moment.number), None)
    return _then(core, found.path if found is not None else path, left, found, moment)[0]


def notes_then(core: Core, when: Moment | datetime) -> Iterator[tuple[NoteThen, bool]]:
    """Every note that the log names, as it was at a moment, and whether it is another now."""
    moment = moment_at(core, when) if isinstance(when, datetime) else when
    left, found = dict[str, Version](), dict[str, Version]()
    for version in core.changes.recent():
        for path, _, _ in version.effects:
            if version.number > moment.number:
                found[path] = version
            else:
                left.setdefault(path, version)
    for path in sorted({*left, *found}):
        yield _then(core, path, left.get(path), found.get(path), moment)


def _then(
    core: Core, path: str, left: Version | None, found: Version | None, moment: Moment
) -> tuple[NoteThen, bool]:
    """What stood at a path, by the last change before the moment and the first after it; whether it is another now."""
    now, rested = file_now(core, path), False
    after = (
        next((after for at, _, after in left.effects if at == path), None)
        if left is not None
        else None
    )
    if found is not None:
        afterwards = next((before for at, before, _ in found.effects if at == path), None)
    else:
        afterwards = None if now is None else now.sha256
        with suppress(
            ValueError, OverflowError
        ):  # written before the moment, by the file's own time, which may lag
            until = (datetime.fromisoformat(moment.when).timestamp() - 0.02) * 1_000_000_000
            rested = now is not None and now.entry.mtime_ns <= until
    beside = (
        found if moment.before else left
    )  # a change of the very operation that the moment was given by says it
    is_beside = (
        beside is not None and moment.version is not None and beside.group == moment.version.group
    )
    sha = afterwards if left is None or rested or (is_beside and moment.before) else after
    doubt = (
        ""
        if rested or is_beside or after == afterwards
        else "it was changed outside simplemem at an unknown time"
    )
    differs = sha != (None if now is None else now.sha256)
    data = core.vault.history.content(sha) if sha and differs else now.data if now and sha else None
    if sha is not None and data is None:
        doubt = "; ".join(filter(None, (doubt, GONE)))
    return NoteThen(path, sha, data, doubt), differs


def file_now(core: Core, path: str) -> File | None:
    """What lies at a path; None for nothing, or what may not be seen. What cannot be read has no text and no hash."""
    try:
        return core.file(path)
    except SimplememError:
        return (entry := core.entry(path)) and File(path, b"", "", entry)


def text_of(core: Core, sha256: str, *paths: str) -> bytes | None:
    """The text with this hash: kept in the history, or standing at one of these paths. None when it is not kept."""
    data = core.vault.history.content(sha256)
    for path in paths if data is None else ():
        if (now := file_now(core, path)) is not None and now.sha256 == sha256:
            return now.data
    return data


def is_version_id(text: str) -> bool:
    """Whether a text has the form of a version of ours: `v12`, or `12`."""
    return _VERSION.fullmatch(text.strip()) is not None


def means_commit(core: Core, text: str) -> bool:
    """Whether a version that somebody names is one of git: no version of ours and no date looks like its ids."""
    text = text.strip().lower()
    is_id = _COMMIT.fullmatch(text) is not None and (len(text) >= 40 or not text.isdecimal())
    return is_id and core.settings.git.history and (core.vault.is_branch or is_in_git(core.root))


def _repository(core: Core) -> Opened:
    """The one that the vault lies in, or is a branch of."""
    from simplemem import git

    of_branch: Opened | None = core.vault.repository()
    return git.opened(core.root, core.settings.git.folders) if of_branch is None else of_branch


def text_at_commit(core: Core, path: str, commit: str) -> tuple[str, bytes]:
    """A memory's path and bytes at a commit, under the name it had then."""
    from simplemem import git

    for name in _names(core, path):
        with suppress(NotFound):
            then, data = git.text_at(_repository(core), name, commit)
            if not core.vault.access.hides(then):
                return then, data
    hint = "The history of a note lists its commits."
    raise NotFound(f"no commit {commit[:12]} that contains {name_of(path)}", hint=hint)


def commits_of(core: Core, path: str, limit: int) -> list[Commit]:
    """The commits of a memory, newest first; none when git cannot say, and why not stands in `core.git_trouble`."""
    core.git_trouble = ""
    if not core.settings.git.history or not (core.vault.is_branch or is_in_git(core.root)):
        return []
    from simplemem import git

    try:
        for name in _names(
            core, path
        ):  # a move that nobody has committed yet is known to our history alone
            if found := git.history(_repository(core), name, limit):
                hides = core.vault.access.hides
                return [
                    each
                    for each in found
                    if not hides(each.path) and not hides(each.old_path or each.path)
                ]
    except SimplememError as error:
        core.git_trouble = f"git commits are not shown: {error}" + (
            f". {error.hint}" if error.hint else ""
        )
        _LOG.warning("%s", core.git_trouble)
    return []


def _names(core: Core, path: str) -> list[str]:
    """The last five names of a memory that our own history knows, as far as they may be seen; itself first."""
    known = (
        path,
        *(version.path for version in core.changes.of(path, 1000)),
    )  # older names are forgotten
    return [name for name in dict.fromkeys(known) if not core.vault.access.hides(name)][:5]


def nothing_there(name: str, at: str, then: NoteThen) -> NotFound:
    """The error for a note that was not there at a moment, or whose text is lost."""
    message = (
        f"{name} did not exist at {at}"
        if then.sha256 is None
        else f"the text of {name} at {at} is no longer kept"
    )
    return NotFound(
        message, hint="The history lists the versions of a note, even of a deleted one."
    )


def diff(
    core: Core, what: str, other: str | None = None, *, since: str | None = None
) -> tuple[Difference, ...]:
    """What a version changed, what lies between two, or what changed in a memory `since` then, else last."""
    if other is not None:
        one, two = core.changes.find(what), core.changes.find(other)
        paths = (one.new_path or one.path, two.new_path or two.path)
        return (_difference(paths, (one.id, two.id), _sides(core, one)[1], _sides(core, two)[1]),)
    if since is None and (steps := _step_named(core, what)) is not None:
        return tuple(
            _difference(
                (step.path, step.new_path or step.path),
                (f"before {step.id}", step.id),
                *_sides(core, step),
            )
            for step in steps
        )
    path = path_with_a_past(core, what)
    now = core.bytes_of(path) or b""
    label = since or f"before {last_change(core, path).id}"
    then = note_at(core, path, label, start=True)
    if not label.startswith("before ") and not means_commit(core, label):
        label = f"before {label}"
    before = b"" if then.sha256 is None else then.data
    return (_difference((then.path, path), (label, "now"), before, now, then.doubt),)


def _step_named(core: Core, what: str) -> list[Version] | None:
    """The changes of the step that a version names; None for what names a memory."""
    if not _VERSION.fullmatch(what.strip()) or core.entry(path_of(what.strip())) is not None:
        return None
    return core.changes.step(core.changes.find(what).group)


def _difference(
    paths: tuple[str, str],
    labels: tuple[str, str],
    before: bytes | None,
    after: bytes | None,
    doubt: str = "",
) -> Difference:
    names = name_of(paths[0]), name_of(paths[1])
    shown = _shown(before, after, (f"{names[0]} ({labels[0]})", f"{names[1]} ({labels[1]})"))
    if not shown and before != after:
        doubt = doubt or (GONE if shown is None else "the texts are too large to compare")
    return Difference(*names, *labels, shown or "", doubt)


def blame_of(core: Core, name: str) -> tuple[BlamedLine, ...]:
    """Who last changed each line of a memory, by our own history. What it did not see was written by hand."""
    path = core.path_meant(name)
    file = core.vault.read(path)
    after: str | None = file.sha256
    states: list[tuple[str | None, Origin]] = []
    for version in core.changes.of(path):
        if (
            version.after != after
        ):  # between two changes of ours that do not meet, somebody changed it from outside
            states.append((after, HUMAN))
        if version.before != version.after:  # else it was moved, which writes nothing
            states.append((version.after, author_of(version)))
        after = version.before
    if after is not None:
        states.append((after, HUMAN))
    makers = zip(
        lines_of(file.data), blame(file.data, states, core.vault.history.content), strict=True
    )
    named = ((line.rstrip("\r\n"), maker or UNKNOWN) for line, maker in makers)
    return tuple(
        BlamedLine(at, line, by.kind, by.name, by.when) for at, (line, by) in enumerate(named, 1)
    )
