"""What stood in the vault at a moment, as far as the log of changes tells, and what it cannot tell. Changes nothing.

The log knows what each change of ours found and left. An edit made outside simplemem is seen only by the next change of
ours, or by what is there now: when it was made is not known, and that is said. A moment is a place in the order of the
log, which a clock that was set back does not alter.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.search.dates import read_when
from simplemem.store.core import Core
from simplemem.vault.log import Version
from simplemem.vault.vault import Entry

_BEFORE = re.compile(r"\s*before\s+(?=v?[0-9])", re.IGNORECASE)
_COARSE_NS = 20_000_000  # the clock of a file system may lag behind ours
GONE = "the text is no longer kept"
_NOT_OURS = "it was changed outside simplemem since then; what is shown is what it says now"


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


@dataclass(frozen=True, slots=True)
class VaultThen:
    """The vault at a moment, as what differs from now. `doubts` has the notes that cannot be told for certain, those among
    `differing` too. `known_since` is when the log begins, "" when there is none."""

    moment: Moment
    differing: tuple[NoteThen, ...]
    doubts: tuple[NoteThen, ...]
    known_since: str


@dataclass(frozen=True, slots=True)
class _Known:
    """What the log and the disk know of a path around a moment: the last hash before it, and the first after it.

    `left` and `found` are the changes they come from, None when there was no such change.
    """

    path: str
    left: Version | None = None
    after: str | None = None
    found: Version | None = None
    before: str | None = None


def moment_of(core: Core, wanted: str, *, start: bool = False) -> Moment:
    """The moment a version or a date means: right after that version, or as `before v12` right before it; at the end of a
    day. With `start` it is the beginning of what is meant: before the version, in the morning of the day."""
    log = core.changes
    before = _BEFORE.match(wanted)
    named = wanted[before.end() :] if before else wanted
    digits = named.strip().removeprefix("v")
    if before or (digits.isascii() and digits.isdigit()):
        try:
            version = log.find(named)
        except NotFound:
            if before or named.strip() != digits or len(digits) != 4:  # four digits may be a year
                raise
        else:
            steps = log.step(version.group)  # an operation is done as a whole, or not at all
            start = start or before is not None
            return Moment(steps[0].number - 1 if start else steps[-1].number, version.when, version, before=start)
    now = datetime.now()  # noqa: DTZ005  (people mean their own clock)
    try:
        meant = datetime.fromisoformat(read_when(wanted, now, end=not start))
        when = _utc(min(meant, now).astimezone(UTC))
    except (OverflowError, OSError, ValueError) as error:
        raise Invalid(f"{wanted[:40]!r} is too far away to be a date of a note") from error
    if not start and meant > now - timedelta(
        seconds=1
    ):  # dates are read to the second: nothing of the last is left out
        return Moment(log.newest(), when)
    return Moment(log.last_before(when), when)


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
    after = next((after for at, _, after in left.effects if at == then), None) if left is not None else None
    known = _Known(then, left, after, found, found.before if found is not None else None)
    return _with_text(core, _then(core, known, moment, core.entry(then)))


def vault_then(core: Core, moment: Moment) -> VaultThen:
    """Every note that was another, or was not there, or is not there any more; with its bytes then."""
    known, since = _around(core, moment)
    entries = {entry.path: entry for entry in core.vault.scan()}
    differing, doubts = [], list[NoteThen]()
    for path, around in sorted(known.items()):
        then = _then(core, around, moment, entries.get(path))
        if then.sha256 != _hash_now(core, entries.get(path)):
            then = _with_text(core, then)
            differing.append(then)
        if then.doubt:
            doubts.append(then)
    for path in sorted(entries.keys() - known.keys()):
        if path.lower().endswith(".md") and _touched(entries[path], moment):
            doubts.append(NoteThen(path, _hash_now(core, entries[path]), None, _NOT_OURS))
    return VaultThen(moment, tuple(differing), tuple(doubts), since)


def _around(core: Core, moment: Moment) -> tuple[dict[str, _Known], str]:
    """What the log knows of every path it names, and when it begins."""
    left: dict[str, tuple[Version, str | None]] = {}
    found: dict[str, tuple[Version, str | None]] = {}
    since = ""
    for version in core.changes.recent():
        since = version.when
        for path, before, after in version.effects:
            if version.number > moment.number:
                found[path] = (version, before)
            else:
                left.setdefault(path, (version, after))
    nothing = (None, None)
    return {path: _Known(path, *left.get(path, nothing), *found.get(path, nothing)) for path in {*left, *found}}, since


def _then(core: Core, known: _Known, moment: Moment, entry: Entry | None) -> NoteThen:
    """What stood at a path, by the changes of ours on either side of the moment. Not its text yet."""
    path, left, found = known.path, known.left, known.found
    afterwards = known.before if found is not None else _hash_now(core, entry)
    if moment.before and moment.is_beside(found):
        return NoteThen(path, afterwards, None)
    if left is None and found is not None:
        since = f"it was written outside simplemem, nobody knows when; this is what {found.id} found"
        return NoteThen(path, afterwards, None, since if afterwards is not None else "")
    if left is None:
        unsure = entry is not None and _touched(entry, moment)
        return NoteThen(path, afterwards, None, _NOT_OURS if unsure else "")
    if known.after == afterwards or (not moment.before and moment.is_beside(left)):
        return NoteThen(path, known.after, None)
    if found is None and entry is not None and not _touched(entry, moment):
        return NoteThen(path, afterwards, None)  # changed outside, and before that moment
    until = found.id if found is not None else "now"
    doubt = f"it was changed outside simplemem between {left.id} and {until}; this is what {left.id} left"
    return NoteThen(path, known.after, None, doubt)


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
    known = core.index.known(entry.path)
    if known is not None and not known.may_have_changed(entry.size, entry.mtime_ns, entry.ctime_ns):
        return known.sha256
    try:
        return core.vault.read(entry.path).sha256
    except SimplememError:
        return ""


def _utc(moment: datetime) -> str:
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
