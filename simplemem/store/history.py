"""What was: the changes of memories, their texts at a moment, what lies between two texts, and who wrote which line.

The log knows what each change of ours found and left. An edit made outside simplemem is seen only by the next change of
ours, or by what is there now: when it was made is not known, and that is said. A moment is a place in the order of the
log, which a clock that was set back does not alter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from heapq import merge
from itertools import islice
from typing import TYPE_CHECKING

from simplemem.errors import Ambiguous, Invalid, NotFound, SimplememError
from simplemem.index.changes import HUMAN, UNKNOWN, Origin, author_of, is_called
from simplemem.memory import BlamedLine, Difference, HistoryEntry, Memory
from simplemem.note.diff import LONG_DIFF, blame, lines_of, unified_diff
from simplemem.note.names import clean_reference, compare_key, name_of, path_of
from simplemem.note.words import well_formed
from simplemem.search.dates import read_when
from simplemem.store.core import Core
from simplemem.store.repository import commits_of, means_commit, text_at_commit, texts_of
from simplemem.vault.disk import sha256
from simplemem.vault.history import Version
from simplemem.vault.vault import Entry

if TYPE_CHECKING:
    from simplemem.git import Commit

GONE = "the text is no longer kept"
_OUTSIDE = "it was changed outside simplemem, nobody knows when; this is what {}"
_BEFORE = re.compile(r"\s*before\s+(?=v?[0-9])", re.IGNORECASE)
_VERSION = re.compile(r"v?[0-9]{1,15}")
_COARSE_NS = 20_000_000  # the clock of a file system may lag behind ours


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in the order of all changes: `number` is the last that had happened. `when` is for comparing with files.
    Given by a version it is right after that one's operation, or with `before` right before it."""

    number: int
    when: str  # UTC
    version: Version | None = None
    before: bool = False

    def is_beside(self, version: Version | None) -> bool:
        """Whether this change is part of the operation that the moment was given by."""
        return version is not None and self.version is not None and version.group == self.version.group


@dataclass(frozen=True, slots=True)
class NoteThen:
    """One path at a moment. `sha256` is None when no note was there; `data` is None then, and when the text is lost.
    `doubt` says in a sentence what is not certain about it, and is empty when the log tells."""

    path: str
    sha256: str | None
    data: bytes | None
    doubt: str = ""


def history(
    core: Core, name: str | None, limit: int, *, by: str, tool: str, since: str, until: str, diff: bool
) -> tuple[HistoryEntry, ...]:
    """Changes of one memory, or of all, newest first. Of one that is not narrowed down, what git knows of it as well; a
    commit of ours whose changes our history has is told as those."""
    limit, by, tool, narrowed = max(limit, 0), well_formed(by), well_formed(tool), bool(by or tool or since or until)
    after = moment_of(core, since, start=True).number if since else 0
    upto = moment_of(core, until).number if until else None
    if name is None:
        found = core.changes.recent(limit, after=after, upto=upto, by=by, tool=tool)
        return tuple(_entry_of(core, version, None, diff=diff) for version in found)
    path = path_with_a_past(core, name)
    ours = [
        each
        for each in core.changes.of(path, None if narrowed else limit)
        if after < each.number and (upto is None or each.number <= upto)
        if is_called(each.who, by) and tool in ("", each.tool)
    ]
    commits = [] if narrowed else commits_of(core, path, limit)
    known = {version.group for version in core.changes.of(path)} if commits else set()
    folded = {group: each.commit for each in commits for group in each.versions if group in known}
    theirs = [each for each in commits if not each.versions or not known.issuperset(each.versions)]
    texts = texts_of(core, theirs)
    entries = [  # each in its own order, merged by their times
        (_entry_of(core, each, folded.get(each.group), diff=diff) for each in ours),
        (_entry_of_git(core, each, texts, diff=diff) for each in theirs),
    ]
    return tuple(islice(merge(*entries, key=lambda each: each.when, reverse=True), limit))


def _entry_of(core: Core, version: Version, commit: str | None, *, diff: bool) -> HistoryEntry:
    names = name_of(version.path), name_of(version.new_path) if version.new_path else None
    shown = _shown(*_sides(core, version)) if diff else None
    _, _, _, _, when, op, who, tool, reason, before, after, _, _ = version
    return HistoryEntry(version.id, *names, when, op, who, tool, reason, before, after, shown, commit=commit)


def _entry_of_git(core: Core, commit: Commit, texts: Mapping[str, bytes], *, diff: bool) -> HistoryEntry:
    names = name_of(commit.old_path or commit.path), name_of(commit.path) if commit.old_path else None
    who, tool = commit.actor or commit.who, commit.tool or "git"
    said = commit.reason if commit.actor else commit.subject
    said = "" if core.vault.access.hidden else said  # it may speak of hidden notes in the commit
    before, after = (b"" if oid is None else texts.get(oid) for oid in (commit.before, commit.after))
    found = sha256(before) if commit.before and before is not None else None
    left = sha256(after) if commit.after and after is not None else None
    shown = _shown(before, after) if diff else None
    # So much of its id that nobody takes it for a number of our history.
    short = next((commit.commit[:size] for size in range(10, 40) if not commit.commit[:size].isdigit()), commit.commit)
    return HistoryEntry(
        short, *names, commit.when, commit.op, who, tool, said, found, left, shown, source="git", commit=commit.commit
    )


def _sides(core: Core, version: Version) -> tuple[bytes | None, bytes | None]:
    """What a version found and what it left; nothing is no bytes, a lost text None."""
    before = bytes_at(core, version, version.before) if version.before else b""
    return before, bytes_at(core, version, version.after) if version.after else b""


def _shown(before: bytes | None, after: bytes | None) -> str | None:
    if before is None or after is None:
        return None
    return unified_diff(before, after, ("before", "after"), LONG_DIFF)


def path_with_a_past(core: Core, name: str) -> str:
    """A memory that is there, or one that was: by its path, or by its bare name when only one deleted one had that."""
    path = path_of(well_formed(clean_reference(name)))
    if core.entry(path) is None and core.changes.of(path, 1):  # it may have moved on
        last = next((each for each in core.changes.lineage(path) if each.op != "recovered"), None)
        return path if last is None else last.new_path or last.path
    try:
        return core.path_meant(name)
    except NotFound:
        key = compare_key(clean_reference(name))
        gone = [path for path in core.changes.gone() if compare_key(name_of(path).rsplit("/", 1)[-1]) == key]
        if len(gone) > 1:
            names, hint = list(map(name_of, gone)), "Use one of the candidates."
            raise Ambiguous(
                f"{name!r} is the name of {len(gone)} deleted memories", candidates=names, hint=hint
            ) from None
        if gone:
            return gone[0]
        # Deleted, and known to git alone: it may have gone to a hidden place, so where there are such it is not told.
        if not core.vault.access.hidden and commits_of(core, path, 1):
            return path
        raise


def last_change(core: Core, path: str) -> Version:
    """The last change of a memory. A text that was found is none."""
    found = next((version for version in core.changes.of(path) if version.op != "recovered"), None)
    if found is None:
        hint = "Only changes made through simplemem are kept."
        raise NotFound(f"nothing is known of earlier changes of {name_of(path)}", hint=hint)
    return found


# -- a moment


def moment_of(core: Core, wanted: str, *, start: bool = False) -> Moment:
    """The moment a version or a date means: right after that version, or as `before v12` right before it; at the end of a
    day. With `start` it is the beginning of what is meant: before the version, in the morning of the day."""
    before = _BEFORE.match(wanted)
    named = wanted[before.end() :] if before else wanted
    digits = named.strip().removeprefix("v")
    if before or (digits.isascii() and digits.isdigit()):
        try:
            version = core.changes.find(named)
        except NotFound:
            if before or named.strip() != digits or len(digits) != 4:  # four digits may be a year
                raise
        else:
            steps = core.changes.step(version.group)  # an operation is done as a whole, or not at all
            start = start or before is not None
            return Moment(steps[0].number - 1 if start else steps[-1].number, version.when, version, before=start)
    now = datetime.now()  # noqa: DTZ005  (people mean their own clock)
    try:
        meant = datetime.fromisoformat(read_when(wanted, now, end=not start))
        when = _utc(min(meant, now))
    except (OverflowError, OSError, ValueError) as error:
        raise Invalid(f"{wanted[:40]!r} is too far away to be a date of a note") from error
    # Dates are read to the second: nothing of the last is left out.
    if not start and meant > now - timedelta(seconds=1):
        return Moment(core.changes.newest(), when)
    return Moment(core.changes.last_before(when), when)


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def note_at(core: Core, path: str, at: str, *, start: bool = False, name: str = "") -> NoteThen:
    """One note at a version, date or commit, under the name it had then; `name` is what somebody called it."""
    if means_commit(core, at):
        then, data = text_at_commit(core, path, at)
        return NoteThen(then, sha256(data), data)
    called = path_of(well_formed(clean_reference(name))) if name else ""
    return note_then(core, path, moment_of(core, at, start=start), called)


def note_then(core: Core, path: str, moment: Moment, called: str = "") -> NoteThen:
    """One note at a moment, followed back through its moves. The version a moment was given by says it for the paths it
    names, perhaps of an earlier note of that name; of what it took away what it found, as nothing else can be meant."""
    if (version := moment.version) is not None:
        for at, before, after in version.effects:  # of a move, one of its two paths has what the other has not
            sha = before or version.before if moment.before else after or version.after or before
            if at in (called, path) and sha is not None:
                return _with_text(core, NoteThen(at, sha, None))
    left = found = None
    for version in (each for each in core.changes.of(path) if each.op != "recovered"):
        if version.number <= moment.number:
            left = version
            break
        found = version
    then = found.path if found is not None else path
    return _with_text(core, _then(core, then, left, found, moment, core.entry(then)))


def notes_then(core: Core, moment: Moment) -> Iterator[tuple[NoteThen, bool]]:
    """Every note that the log names, as it was at a moment, and whether it is another now."""
    left: dict[str, Version] = {}
    found: dict[str, Version] = {}
    for version in core.changes.recent():
        for path, _, _ in version.effects:
            if version.number > moment.number:
                found[path] = version
            else:
                left.setdefault(path, version)
    entries = {entry.path: entry for entry in core.vault.scan()}
    for path in sorted({*left, *found}):
        then = _then(core, path, left.get(path), found.get(path), moment, entries.get(path))
        differs = then.sha256 != hash_now(core, entries.get(path))
        yield (_with_text(core, then) if differs else then), differs


def notes_at(core: Core, when: datetime) -> Iterator[tuple[str, str | None, str | None]]:
    """Every note that was another at a moment than it is now: its path, its text and that one's hash. Both are None where
    it was not there, and the text alone where it is no longer kept."""
    said = _utc(when)
    for then, differs in notes_then(core, Moment(core.changes.last_before(said), said)):
        if differs:
            yield then.path, None if then.data is None else then.data.decode("utf-8", "replace"), then.sha256


def _then(
    core: Core, path: str, left: Version | None, found: Version | None, moment: Moment, entry: Entry | None
) -> NoteThen:
    """What stood at a path, by the last change of ours before the moment and the first after it. Not its text yet."""
    after = next((after for at, _, after in left.effects if at == path), None) if left is not None else None
    if found is None:
        afterwards = hash_now(core, entry)
    else:
        afterwards = next((before for at, before, _ in found.effects if at == path), None)
    rested = found is None and entry is not None and not _touched(entry, moment)
    if moment.before and moment.is_beside(found):
        return NoteThen(path, afterwards, None)
    if left is None or (rested and after != afterwards):
        doubt = "" if rested or afterwards is None else _OUTSIDE.format(f"{found.id} found" if found else "it says now")
        return NoteThen(path, afterwards, None, doubt)
    certain = after == afterwards or (not moment.before and moment.is_beside(left))
    return NoteThen(path, after, None, "" if certain else _OUTSIDE.format(f"{left.id} left"))


def _touched(entry: Entry, moment: Moment) -> bool:
    """Whether a file was written after a moment, by its own time."""
    try:
        return entry.mtime_ns > datetime.fromisoformat(moment.when).timestamp() * 1_000_000_000 - _COARSE_NS
    except (ValueError, OverflowError):
        return True


def hash_now(core: Core, entry: Entry | None) -> str | None:
    """The hash of what is there; "" for what cannot be read."""
    if entry is None:
        return None
    known = core.index.known([entry.path]).get(entry.path)
    if known is not None and not known.may_have_changed(entry.size, entry.mtime_ns, entry.ctime_ns):
        return known.sha256
    try:
        return core.vault.read(entry.path).sha256
    except SimplememError:
        return ""


def _with_text(core: Core, then: NoteThen) -> NoteThen:
    """A note of then with its bytes, or with the doubt that they are not kept."""
    if then.sha256 is None:
        return then
    data = text_of(core, then.sha256, then.path)
    return replace(
        then, data=data, doubt=then.doubt if data is not None else f"{then.doubt}; {GONE}".removeprefix("; ")
    )


def text_of(core: Core, sha256: str, *paths: str) -> bytes | None:
    """The text with this hash: kept in the history, or standing at one of these paths. None when it is not kept."""
    data = core.vault.history.content(sha256)
    for path in paths if data is None else ():
        if core.entry(path) is not None and (file := core.vault.read(path)).sha256 == sha256:
            return file.data
    return data


def bytes_at(core: Core, version: Version, sha256: str) -> bytes | None:
    """The text with this hash that a version speaks of."""
    return text_of(core, sha256, *filter(None, (version.new_path, version.path)))


# -- reading and comparing


def read_at(core: Core, name: str, section: str | None, at: str) -> Memory:
    """A memory as it was at a version, date or commit, under the name it had then."""
    from simplemem.store.read import memory_of

    path = path_with_a_past(core, name)
    then = note_at(core, path, at, name=name)
    if then.data is None:
        raise nothing_there(name_of(path), at, then)
    memory = memory_of(core, then.path, then.data, section, at)
    said = filter(None, (memory.problem, f"not certain: {then.doubt}" if then.doubt else ""))
    return replace(memory, problem="; ".join(said) or None)


def nothing_there(name: str, at: str, then: NoteThen) -> NotFound:
    """The error for a note that was not there at a moment, or whose text is lost."""
    if then.sha256 is None:
        return NotFound(f"there was no {name} at {at}", hint="history lists its versions, also of what was deleted.")
    hint = "Texts are kept for as many days and megabytes as the settings say."
    return NotFound(f"the text of {name} at {at} is no longer kept", hint=hint)


def diff(core: Core, what: str, other: str | None, since: str | None) -> tuple[Difference, ...]:
    """What a version changed; what lies between two versions; or what changed in a memory since a date or version."""
    if other is not None:
        one, two = core.changes.find(what), core.changes.find(other)
        names = (name_of(one.new_path or one.path), name_of(two.new_path or two.path))
        return (_difference(names, (one.id, two.id), _sides(core, one)[1], _sides(core, two)[1]),)
    try:
        steps = core.changes.step(core.changes.find(what).group) if since is None else []
    except NotFound:
        if _VERSION.fullmatch(what.strip()) and core.entry(path_of(what.strip())) is None:
            raise
        steps = []
    if steps:
        named = [(name_of(each.path), name_of(each.new_path or each.path)) for each in steps]
        sides = [((f"before {each.id}", each.id), *_sides(core, each)) for each in steps]
        return tuple(_difference(names, *of) for names, of in zip(named, sides, strict=True))
    path = path_with_a_past(core, what)
    now = core.vault.read(path).data if core.entry(path) is not None else b""
    label = since or f"before {last_change(core, path).id}"
    then = note_at(core, path, label, start=True)
    if not label.startswith("before ") and not means_commit(core, label):
        label = f"before {label}"
    before = b"" if then.sha256 is None else then.data
    return (_difference((name_of(then.path), name_of(path)), (label, "now"), before, now, then.doubt),)


def _difference(
    names: tuple[str, str], labels: tuple[str, str], before: bytes | None, after: bytes | None, doubt: str = ""
) -> Difference:
    shown = ""
    if before is None or after is None:
        doubt = doubt or GONE
    else:
        titles = (f"{names[0]} ({labels[0]})", f"{names[1]} ({labels[1]})")
        shown = unified_diff(before, after, titles, LONG_DIFF)
        doubt = doubt or ("" if shown or before == after else "the texts are too large to be compared")
    return Difference(*names, *labels, shown, doubt)


# -- blame


def blame_of(core: Core, name: str) -> tuple[BlamedLine, ...]:
    """Who last changed each line of a memory, by our own history. What it did not see was written by hand."""
    path = core.path_meant(name)
    file = core.vault.read(path)
    after: str | None = file.sha256
    states: list[tuple[str | None, Origin]] = []
    for version in core.changes.of(path):
        if version.op == "recovered":
            continue
        if version.after != after:  # between two changes of ours that do not meet, somebody changed it from outside
            states.append((after, HUMAN))
        if version.before != version.after:  # else it was moved, which writes nothing
            states.append((version.after, author_of(version)))
        after = version.before
    if after is not None:
        states.append((after, HUMAN))
    origins = [by or UNKNOWN for by in blame(file.data, states, core.vault.history.content)]
    lines = zip(lines_of(file.data), origins, strict=True)
    return tuple(
        BlamedLine(number, line.rstrip("\r\n"), by.kind, by.name, by.when) for number, (line, by) in enumerate(lines, 1)
    )
