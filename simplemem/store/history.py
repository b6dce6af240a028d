"""What was: the changes of memories, their texts at a moment, what lies between two texts, and who wrote which line.

The log knows what each change of ours found and left. An edit made outside simplemem is seen only by the next change of
ours, or by what is there now: when it was made is not known, and that is said. A moment is a place in the order of the
log, which a clock that was set back does not alter. Git, where the vault is in it, is asked about one memory only; when
it cannot answer, our own history is told alone, and that is logged. Nothing here changes anything.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from simplemem.errors import Ambiguous, Invalid, NotFound, SimplememError
from simplemem.index.changes import author_of
from simplemem.memory import BlamedLine, Difference, HistoryEntry, Memory
from simplemem.note.authors import HUMAN, Origin, State, agent, blame, is_called
from simplemem.note.diff import LONG_DIFF, lines_of, unified_diff
from simplemem.note.names import clean_reference, compare_key, name_of, path_of
from simplemem.search.dates import read_when
from simplemem.store.committing import is_in_git
from simplemem.store.core import Core
from simplemem.vault.disk import sha256
from simplemem.vault.log import COMMAND_LINE, Version
from simplemem.vault.vault import Entry

if TYPE_CHECKING:
    from simplemem.git import Commit

GONE = "the text is no longer kept"
_NOT_OURS = "it was changed outside simplemem since then; what is shown is what it says now"
_BEFORE = re.compile(r"\s*before\s+(?=v?[0-9])", re.IGNORECASE)
_VERSION = re.compile(r"v?[0-9]{1,15}")
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_COARSE_NS = 20_000_000  # the clock of a file system may lag behind ours
_MOST_COMMITS = 1000
_MOST_NAMES = 5
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Which:
    """Which changes are asked for: by whom, with which tool, and since and until which date or version. "": any."""

    by: str = ""
    tool: str = ""
    since: str = ""
    until: str = ""


@dataclass(frozen=True, slots=True)
class Moment:
    """A place in the order of all changes: `number` is the last that had happened. `when` is for comparing with files.

    Given by a version it is right after that one's operation, or with `before` right before it.
    """

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

    `doubt` says in a sentence what is not certain about it, and is empty when the log tells.
    """

    path: str
    sha256: str | None
    data: bytes | None
    doubt: str = ""


# -- the changes of memories


def history(core: Core, name: str | None, limit: int, which: Which, *, diff: bool) -> tuple[HistoryEntry, ...]:
    """Changes of one memory, or of all, newest first; of one, what git knows of it as well."""
    limit = max(limit, 0)
    first = moment_of(core, which.since, start=True) if which.since else None
    last = moment_of(core, which.until) if which.until else None
    after, upto = first.number if first else 0, last.number if last else None
    if name is None:
        found = core.changes.recent(limit, after=after, upto=upto, by=which.by, tool=which.tool)
        return tuple(_entry_of(core, version, diff=diff) for version in found)
    path = path_with_a_past(core, name)

    def passes(who: str, tool: str) -> bool:
        return is_called(who, which.by) and which.tool in ("", tool)

    most = limit if which == Which() else _MOST_COMMITS
    ours = [
        each
        for each in core.changes.of(path, limit if which == Which() else None)
        if after < each.number and (upto is None or each.number <= upto) and passes(each.who, each.tool)
    ]
    commits = [
        each
        for each in _commits_of(core, path, most)
        if (not first or first.when < each.when)
        and (not last or each.when <= last.when)
        and passes(each.actor or each.who, each.tool or "git")
    ]
    return tuple(_merged(core, path, ours[:limit], commits[:limit], diff=diff)[:limit])


def _merged(
    core: Core, path: str, ours: Sequence[Version], commits: Sequence[Commit], *, diff: bool
) -> list[HistoryEntry]:
    """Our changes of a memory and the commits of it, each in its own order, by their times. A commit of ours whose changes
    our history has is told as those."""
    known = {version.group for version in core.changes.of(path, _MOST_COMMITS)} if commits else set()
    folded = {group: each.commit for each in commits for group in each.versions if group in known}
    mine = [replace(_entry_of(core, version, diff=diff), commit=folded.get(version.group)) for version in ours]
    entries = _entries_of_git(
        core, [e for e in commits if not e.versions or not known.issuperset(e.versions)], diff=diff
    )
    found: list[HistoryEntry] = []
    while mine or entries:
        newer = mine if not entries or (mine and mine[0].when > entries[0].when) else entries
        found.append(newer.pop(0))
    return found


def _entry_of(core: Core, version: Version, *, diff: bool) -> HistoryEntry:
    shown = None
    if diff:
        before = bytes_at(core, version, version.before) if version.before else b""
        after = bytes_at(core, version, version.after) if version.after else b""
        if before is not None and after is not None:
            shown = unified_diff(before, after, ("before", "after"), LONG_DIFF)
    return HistoryEntry(
        version=version.id,
        name=name_of(version.path),
        new_name=name_of(version.new_path) if version.new_path else None,
        when=version.when,
        op=version.op,
        who=version.who,
        tool=version.tool,
        reason=version.reason,
        before=version.before,
        sha256=version.after,
        diff=shown,
    )


def path_with_a_past(core: Core, name: str, *, gone_first: bool = False) -> str:
    """A memory that is there, or one that was: by its path, or by its bare name when only one deleted one had that.

    With `gone_first` one that was and is not goes before one that is there and has the name for a title.
    """
    path = path_of(clean_reference(name))
    try:
        if gone_first and core.entry(path) is None and core.changes.of(path, 1):
            return _moved_on(core, path)
        return core.path_meant(name)
    except NotFound:
        if core.changes.of(path, 1):
            return _moved_on(core, path)
        key = compare_key(clean_reference(name))
        gone = [path for path in core.changes.gone() if compare_key(name_of(path).rsplit("/", 1)[-1]) == key]
        if len(gone) > 1:
            raise Ambiguous(
                f"{name!r} is the name of {len(gone)} deleted memories",
                candidates=list(map(name_of, gone)),
                hint="Use one of the candidates.",
            ) from None
        if gone:
            return gone[0]
        # Deleted, and known to git alone: it may have gone to a hidden place, so where there are such it is not told.
        if not core.vault.access.hidden and _commits_of(core, path, 1):
            return path
        raise


def _moved_on(core: Core, path: str) -> str:
    """Where the memory is, or was last, that once had this path and moved on."""
    seen = {path}
    while core.entry(path) is None and (last := core.changes.of(path, 1)):
        following = last[0].new_path or path
        if following in seen:
            break
        path = following
        seen.add(path)
    return path


def last_change(core: Core, path: str) -> Version:
    """The last change of a memory. A text that was found is none."""
    found = next((version for version in core.changes.of(path) if version.op != "recovered"), None)
    if found is None:
        hint = "Only changes made through simplemem are kept."
        raise NotFound(f"nothing is known of earlier changes of {name_of(path)}", hint=hint)
    return found


def version_called(core: Core, wanted: str) -> Version | None:
    """The version of this id, None for anything that is none."""
    try:
        return core.changes.find(wanted)
    except NotFound:
        return None


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
        when = _utc(min(meant, now).astimezone(UTC))
    except (OverflowError, OSError, ValueError) as error:
        raise Invalid(f"{wanted[:40]!r} is too far away to be a date of a note") from error
    # Dates are read to the second: nothing of the last is left out.
    if not start and meant > now - timedelta(seconds=1):
        return Moment(core.changes.newest(), when)
    return Moment(core.changes.last_before(when), when)


def note_then(core: Core, path: str, moment: Moment) -> NoteThen:
    """One note at a moment, followed back through its moves."""
    left = found = None
    for version in core.changes.of(path):
        if version.op == "recovered":
            continue
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
        differs = then.sha256 != _hash_now(core, entries.get(path))
        yield (_with_text(core, then) if differs else then), differs


def notes_at(core: Core, when: datetime) -> Iterator[tuple[str, str | None, str | None]]:
    """Every note that was another at a moment than it is now: its path, its text and that one's hash. Both are None where
    it was not there, and the text alone where it is no longer kept."""
    said = _utc(when.astimezone(UTC))
    for then, differs in notes_then(core, Moment(core.changes.last_before(said), said)):
        if differs:
            yield then.path, None if then.data is None else then.data.decode("utf-8", "replace"), then.sha256


def _then(
    core: Core, path: str, left: Version | None, found: Version | None, moment: Moment, entry: Entry | None
) -> NoteThen:
    """What stood at a path, by the last change of ours before the moment and the first after it. Not its text yet."""
    after = next((after for at, _, after in left.effects if at == path), None) if left is not None else None
    afterwards = (
        next((before for at, before, _ in found.effects if at == path), None)
        if found is not None
        else _hash_now(core, entry)
    )
    if moment.before and moment.is_beside(found):
        return NoteThen(path, afterwards, None)
    if left is None and found is not None:
        since = f"it was written outside simplemem, nobody knows when; this is what {found.id} found"
        return NoteThen(path, afterwards, None, since if afterwards is not None else "")
    if left is None:
        unsure = entry is not None and _touched(entry, moment)
        return NoteThen(path, afterwards, None, _NOT_OURS if unsure else "")
    if after == afterwards or (not moment.before and moment.is_beside(left)):
        return NoteThen(path, after, None)
    if found is None and entry is not None and not _touched(entry, moment):
        return NoteThen(path, afterwards, None)  # changed outside, and before that moment
    until = found.id if found is not None else "now"
    doubt = f"it was changed outside simplemem between {left.id} and {until}; this is what {left.id} left"
    return NoteThen(path, after, None, doubt)


def _with_text(core: Core, then: NoteThen) -> NoteThen:
    """A note of then with its bytes, or with the doubt that they are not kept."""
    if then.sha256 is None:
        return then
    data = text_of(core, then.sha256, then.path)
    doubt = then.doubt if data is not None else f"{then.doubt}; {GONE}".removeprefix("; ")
    return NoteThen(then.path, then.sha256, data, doubt)


def text_of(core: Core, sha256: str, *paths: str) -> bytes | None:
    """The text with this hash: kept in the history, or standing at one of these paths. None when it is not kept."""
    data = core.vault.history.content(sha256)
    for path in paths if data is None else ():
        if core.entry(path) is not None and (file := core.vault.read(path)).sha256 == sha256:
            return file.data
    return data


def bytes_at(core: Core, version: Version, sha256: str) -> bytes | None:
    """The text with this hash that a version speaks of: kept in the history, or still in the vault."""
    return text_of(core, sha256, *filter(None, (version.new_path, version.path)))


def _touched(entry: Entry, moment: Moment) -> bool:
    """Whether a file was written after a moment, by its own time."""
    try:
        return entry.mtime_ns > datetime.fromisoformat(moment.when).timestamp() * 1_000_000_000 - _COARSE_NS
    except (ValueError, OverflowError):
        return True


def _hash_now(core: Core, entry: Entry | None) -> str | None:
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


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


# -- reading, comparing, blaming


def read_at(core: Core, name: str, section: str | None, at: str) -> Memory:
    """A memory as it was at a version, date or commit, under the name it had then."""
    from simplemem.store.read import memory_of

    path = path_with_a_past(core, name)
    then = note_at_commit(core, path, at) or note_then(core, path, moment_of(core, at))
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
    version = version_called(core, what)
    if version is None and _VERSION.fullmatch(what.strip()) and core.entry(path_of(what.strip())) is None:
        core.changes.find(what)  # says that there is none
    if other is not None:
        later = version_called(core, other)
        if version is None or later is None:
            raise Invalid("a difference is asked for between two versions", hint="history lists the versions.")
        names = (name_of(version.new_path or version.path), name_of(later.new_path or later.path))
        return (_difference(names, (version.id, later.id), _left_by(core, version), _left_by(core, later)),)
    if version is not None and since is None:
        return tuple(_done_by(core, each) for each in core.changes.step(version.group))
    return (_since(core, path_with_a_past(core, what), since),)


def _left_by(core: Core, version: Version) -> bytes:
    """What a version left, or that it took something away."""
    if version.after is None and version.op != "recovered":
        return b""
    data = bytes_at(core, version, version.after) if version.after else None
    if data is None:
        raise NotFound(f"the text of version {version.id} is no longer kept")
    return data


def _done_by(core: Core, version: Version) -> Difference:
    before = bytes_at(core, version, version.before) if version.before else b""
    after = bytes_at(core, version, version.after) if version.after else b""
    names = (name_of(version.path), name_of(version.new_path or version.path))
    return _difference(names, (f"before {version.id}", version.id), before, after)


def _since(core: Core, path: str, since: str | None) -> Difference:
    now = core.vault.read(path).data if core.entry(path) is not None else b""
    label = since or f"before {last_change(core, path).id}"
    then = note_at_commit(core, path, label)
    if then is None:
        moment = moment_of(core, label, start=True)
        label = label if label.startswith("before ") else f"before {label}"
        then = note_then(core, path, moment)
    before = b"" if then.sha256 is None else then.data
    return _difference((name_of(then.path), name_of(path)), (label, "now"), before, now, then.doubt)


def _difference(
    names: tuple[str, str], labels: tuple[str, str], before: bytes | None, after: bytes | None, doubt: str = ""
) -> Difference:
    shown = ""
    if before is not None and after is not None:
        titles = (f"{names[0]} ({labels[0]})", f"{names[1]} ({labels[1]})")
        shown = unified_diff(before, after, titles, LONG_DIFF)
        doubt = doubt or ("" if shown or before == after else "the texts are too large to be compared")
    else:
        doubt = doubt or GONE
    return Difference(names[0], names[1], labels[0], labels[1], shown, doubt)


def blame_of(core: Core, name: str) -> tuple[BlamedLine, ...]:
    """Who last changed each line of a memory: from our own history, and from git's before that."""
    path = core.path_meant(name)
    file = core.vault.read(path)
    after: str | None = file.sha256
    states: list[State] = []
    versions = [version for version in core.changes.of(path) if version.op != "recovered"]
    for version in versions:
        if version.after != after:  # between two changes of ours that do not meet, somebody changed it from outside
            states.append(State(after, HUMAN))
        if version.before != version.after:  # else it was moved, which writes nothing
            states.append(State(version.after, author_of(version)))
        after = version.before
    texts: dict[str, bytes] = {}
    if after is not None:
        states.append(State(after, HUMAN))
        for commit, text in committed_texts(core, path, _MOST_COMMITS):
            if not versions or commit.when[:19] <= versions[-1].when[:19]:
                texts[sha256(text)] = text
                states.append(State(sha256(text), _committer(commit)))
        if len(states) > 1 and states[-len(texts)].sha256 == after:
            del states[-len(texts) - 1]
    origins = blame(file.data, states, lambda sha: texts.get(sha) or core.vault.history.content(sha))
    lines = zip(lines_of(file.data), origins, strict=True)
    return tuple(
        BlamedLine(number, line.rstrip("\r\n"), by.kind, by.name, by.when) for number, (line, by) in enumerate(lines, 1)
    )


def _committer(commit: Commit) -> Origin:
    """Who wrote what a commit has: its author, or who asked for it if it is one of ours."""
    if commit.actor and commit.actor != COMMAND_LINE:
        return agent(commit.actor, commit.tool, commit.when)
    return Origin("human", commit.who, commit.when)


# -- what git knows


def means_commit(core: Core, text: str) -> bool:
    """Whether a version that somebody names is one of git: no version of ours and no date looks like its ids."""
    text = text.strip().lower()
    is_id = _COMMIT.fullmatch(text) is not None and (len(text) >= 40 or not text.isdecimal())
    return is_id and core.settings.git.history and is_in_git(core.root)


def note_at_commit(core: Core, path: str, commit: str) -> NoteThen | None:
    """A memory at a commit, under the name it had then; None when the text given cannot be a commit's id."""
    if not means_commit(core, commit):
        return None
    from simplemem import git

    missing: NotFound | None = None
    for name in _names(core, path):
        try:
            then, data = git.text_at(core.root, name, commit.strip())
        except NotFound as error:
            missing = missing or error
        else:
            if core.vault.access.hides(then):
                break
            return NoteThen(then, sha256(data), data)
    raise missing or NotFound(f"{path!r} was not there at commit {commit[:12]}, under no name it has had.")


def changes_in(core: Core, commit: str) -> tuple[str, ...]:
    """The changes of ours that a commit of ours holds; none for a person's commit."""
    from simplemem import git

    return tuple(each for each in git.changes_in(core.root, commit) if core.changes.step(each))


def committed_texts(core: Core, path: str, limit: int) -> list[tuple[Commit, bytes]]:
    """The commits of a memory with the texts they left, newest first."""
    commits = _commits_of(core, path, limit)
    if not commits:
        return []
    from simplemem import git

    try:
        texts = git.texts(core.root, [commit.after for commit in commits if commit.after is not None])
    except SimplememError:
        return []
    return [(commit, texts[commit.after]) for commit in commits if commit.after in texts]


def _commits_of(core: Core, path: str, limit: int) -> list[Commit]:
    """The commits of a memory, newest first; none when git cannot say, which is logged."""
    if not core.settings.git.history or not is_in_git(core.root):
        return []
    from simplemem import git

    try:
        for name in _names(core, path):  # a move that nobody has committed yet is known to our history alone
            if found := git.history(core.root, name, limit):
                return [each for each in found if core.vault.access.all_seen((each.path, each.old_path))]
    except SimplememError as error:
        _LOG.warning("the history of git is not told: %s", error)
    return []


def _names(core: Core, path: str) -> list[str]:
    """The last names of a memory that our own history knows, as far as they may be seen; itself first."""
    known = (path, *(version.path for version in core.changes.of(path, _MOST_COMMITS)))
    return [name for name in dict.fromkeys(known) if not core.vault.access.hides(name)][:_MOST_NAMES]


def _entries_of_git(core: Core, commits: Sequence[Commit], *, diff: bool) -> list[HistoryEntry]:
    if not commits:
        return []
    from simplemem import git

    try:
        texts = git.texts(core.root, [oid for each in commits for oid in (each.before, each.after) if oid is not None])
    except SimplememError as error:
        _LOG.warning("texts of git are not told: %s", error)
        texts = {}
    found = []
    for each in commits:
        before = b"" if each.before is None else texts.get(each.before)
        after = b"" if each.after is None else texts.get(each.after)
        shown = None
        if diff and before is not None and after is not None:
            shown = unified_diff(before, after, ("before", "after"), LONG_DIFF)
        reason = each.reason if each.actor else each.subject
        found.append(
            HistoryEntry(
                version=_short(each.commit),
                name=name_of(each.old_path or each.path),
                new_name=name_of(each.path) if each.old_path else None,
                when=each.when,
                op=each.op,
                who=each.actor or each.who,
                tool=each.tool or "git",
                reason="" if core.vault.access.hidden else reason,  # it may speak of hidden notes in the commit
                before=sha256(before) if each.before and before is not None else None,
                sha256=sha256(after) if each.after and after is not None else None,
                diff=shown,
                source="git",
                commit=each.commit,
            )
        )
    return found


def _short(commit: str) -> str:
    """The first characters of a commit's id, so many that nobody takes it for a number of our history."""
    return next((commit[:length] for length in range(10, len(commit)) if not commit[:length].isdigit()), commit)
