"""Values of a vault: files, changes of them, versions in the log, and access rules."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

from simplemem.errors import Hint, HintSentence, NotFound, ReadOnly
from simplemem.note.names import name_of
from simplemem.note.scopes import is_private_by_rule

# -- files and changes

Op = Literal["create", "update", "move", "delete", "undo", "restore", "recovered"]
"""What a change does, as the log names it."""


def sha256(data: bytes) -> str:
    """Return the SHA-256 hash by which a text is identified, as 64 hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


class Entry(NamedTuple):
    """A file as a source lists it, without its bytes. `path` has the spelling of the source."""

    path: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int


class File(NamedTuple):
    """A note or attachment as it was read."""

    path: str
    data: bytes
    sha256: str
    entry: Entry


Kind = Literal["human", "agent", ""]
"""Who made a change: a person, or a program such as an agent's client; "" if that is not known."""


class Author(NamedTuple):
    """Who requests a write, with which tool, and why. The history keeps it.

    If `kind` is "", it is that of the vault's log, which is one for the whole process. `session`
    and `sources` are those of a `Version`.
    """

    tool: str
    who: str = ""
    reason: str = ""
    kind: Kind = ""
    session: str = ""
    sources: tuple[str, ...] = ()


class WriteResult(NamedTuple):
    """The result of a write for one note. `path` is that afterwards.

    `sha256` is the hash afterwards, None if the note was deleted; `previous_sha256` that before,
    None for a new note. `version` is the id of the change in the log. `entry` is None if no file is
    there any more. `changed` is False if the note was already what it was to become; nothing was
    written then, and `version` is "" if the log does not say who did it.
    """

    path: str
    sha256: str | None
    previous_sha256: str | None
    version: str
    entry: Entry | None
    changed: bool


@dataclass(frozen=True)
class FileChange:
    """What one file is to become, and what it must be before. Creating this changes no file.

    If `old_sha256` is None, the file must not exist. If `data` is None, it keeps its text, or is
    deleted if `is_deletion`. With `new_path`, it is moved. `template` is the text that a new file
    was begun with, if something was added to that.
    """

    op: Op
    path: str
    old_sha256: str | None = None  # the hash that the file must have
    new_path: str | None = None
    data: bytes | None = None
    is_deletion: bool = False
    trash: str | None = None  # the file in the trash that is restored
    at: float | None = None  # the modification time in seconds, if it is not now
    template: bytes | None = None

    @staticmethod
    def update(path: str, old_sha256: str | None, data: bytes | None) -> FileChange:
        """Return the change to new bytes of the file whose hash must be `old_sha256`.

        If `old_sha256` is None, the file is created. If `data` is None, it is deleted. Only one of
        the two may be None.
        """
        if data is None:
            return FileChange("delete", path, old_sha256=old_sha256, is_deletion=True)
        if old_sha256 is None:
            return FileChange("create", path, data=data)
        return FileChange("update", path, old_sha256=old_sha256, data=data)

    @cached_property
    def new_sha256(self) -> str | None:
        """The hash of the note's bytes afterwards, None if it is deleted."""
        if self.is_deletion:
            return None
        if self.data is None:
            return self.old_sha256
        return sha256(self.data)

    @property
    def target(self) -> str:
        """The path of the note afterwards."""
        return self.path if self.new_path is None else self.new_path


# -- versions in the log

COMMAND_LINE = "command line"
"""The author in the history for a person who uses the commands."""

_REQUIRED = ("id", "group", "path", "when", "op")
_MAY_LACK = ("who", "tool", "reason", "kind", "session")
_TEXT_TYPES = frozenset((str, type(None)))
_OPS = frozenset(get_args(Op))
_ID = re.compile(r"v?[0-9]{1,15}")
_MAX_ID_DIGITS = 15


class Version(NamedTuple):
    """A change of one note, as the log has it.

    All changes of an operation have one `group`, the id of the first. `new_path` is None unless the
    note was moved. All changes of one session of a client have one `session`, "" if it is not
    known. `sources` are the names of notes, and addresses, that were read in it before.
    """

    id: str
    group: str
    path: str
    new_path: str | None  # the path after a move
    when: str  # in UTC, for people; the order of changes is that of the ids
    op: Op
    who: str
    tool: str
    reason: str
    before: str | None  # the sha256 of the text; None if the note did not exist
    after: str | None  # the sha256 of the text; None if the note was deleted
    trash: str | None = None  # the path of a deleted file in the trash
    kind: Kind = ""
    session: str = ""
    sources: tuple[str, ...] = ()

    @property
    def number(self) -> int:
        """The position in the order of all changes: 42 for "v000042"."""
        return number_of(self.id)

    @property
    def effects(self) -> tuple[tuple[str, str | None, str | None], ...]:
        """The paths that the change names, each with the hashes of its file before and after.

        A hash is None if there is no file. Two paths for a move; none for a recovered text.
        """
        if self.op == "recovered":
            return ()  # the text was never at a path
        if self.new_path is None:
            return ((self.path, self.before, self.after),)
        departure = (self.path, self.before, None)
        arrival = (self.new_path, None, self.after)
        return (departure, arrival)

    @property
    def is_by_person(self) -> bool:
        """Whether a person made the change.

        Old lines of the log have no `kind`. In them, the tools of agents have an underscore in
        their names, and the commands have none.
        """
        if self.kind:
            return self.kind == "human"
        return self.who == COMMAND_LINE and "_" not in self.tool


_TEXT_FIELDS = tuple(name for name in Version._fields if name != "sources")


def format_version(number: int) -> str:
    """Return the id of a version by its number: "v000042" for 42."""
    return f"v{number:06d}"


def number_of(version: str) -> int:
    """Return the number of a version as people write it: 42 for "v42", "42" and "v000042".

    Raises NotFound for anything else. The log is not consulted.
    """
    digits = version.strip().removeprefix("v")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_ID_DIGITS:
        return int(digits)
    raise no_version(version)


def no_version(version: str) -> NotFound:
    """Return the error for a version that does not exist."""
    hint = HintSentence("list_versions_of_note", "The history of a note lists its versions.")
    return NotFound(f"no version {version[:40]!r}", hint=Hint(hint))


def format_line(version: Version) -> bytes:
    """Return a change as a line of the log, with its line end."""
    line = json.dumps(version._asdict(), separators=(",", ":"))
    return line.encode() + b"\n"


def last_before(times: Iterable[tuple[int, str]], when: str) -> int:
    """Return the number of the last change before a moment, 0 if there is none.

    `times` has the number and the time of each change, newest first; `when` and the times are in
    UTC as the log writes them. A clock may have been wrong for a while, so the changes are divided
    where the fewest are on the wrong side by their times.
    """
    last: int | None = None
    score = 0  # of the changes so far: those before the moment, less those after it
    best_score = 0
    for number, change_time in times:
        if last is None:
            last = number
        score += 1 if change_time < when else -1
        if score < best_score:
            best_score = score
            last = number - 1
    return last or 0


def versions_in(lines: Iterable[bytes]) -> Iterator[Version]:
    """Yield the changes in some lines of the log, in their order. Damaged lines are skipped."""
    return filter(None, map(_parse_line, lines))


def read_version(fields: object) -> Version | None:
    """Return the version that an object from JSON describes, None if it describes none.

    Fields that old lines of the log lack become "" or None. Never raises.
    """
    if not isinstance(fields, dict):
        return None

    sources = _read_sources(fields.get("sources"))
    if sources is None:
        return None

    texts: dict[str, Any] = {name: fields.get(name) for name in _TEXT_FIELDS}
    if not _TEXT_TYPES.issuperset(map(type, texts.values())):
        return None  # a field is neither a text nor null
    if None in map(texts.get, _REQUIRED):
        return None
    if texts["op"] not in _OPS:
        return None
    if not _ID.fullmatch(texts["id"]) or not _ID.fullmatch(texts["group"]):
        return None

    for name in _MAY_LACK:
        texts[name] = texts[name] or ""
    return Version(**texts, sources=sources)


def _read_sources(value: object) -> tuple[str, ...] | None:
    """Return the sources that a field of a line contains; None if they are not a list of texts.

    Old lines of the log have no such field, which is read as no sources.
    """
    if value is None:
        return ()
    if not isinstance(value, list):
        return None
    if not all(isinstance(source, str) for source in value):
        return None
    return tuple(value)


def _parse_line(line: bytes) -> Version | None:
    """Return the version that a line of the log describes, None for an empty or damaged one."""
    # A line that a crash cut off is no change: the journal has it, or it never happened.
    if not line:
        return None
    try:
        return read_version(json.loads(line))
    except (ValueError, RecursionError):
        return None


# -- access rules

_SHORT_NAME = re.compile(r"~\d")  # as in `PRIVAT~1`
_FORBIDDEN_HINT = "The [access] settings forbid it. Choose another folder, or ask the user."


class Access(NamedTuple):
    """The [access] settings: which paths are hidden or read-only.

    With `no_delete`, notes may not be deleted. If `only` has paths, all others are hidden.
    """

    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    no_delete: bool = False
    only: tuple[str, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Whether there may be hidden notes: some paths are hidden, or only some are visible."""
        return bool(self.hidden or self.only)

    def hides(self, path: str) -> bool:
        """Return whether nothing of a file may be shown, not even that it exists."""
        if self._is_outside(path):
            return True
        if not self.hidden:
            return False
        if is_private_by_rule(path, self.hidden):
            return True
        # For Windows, `Private` is `PRIVAT~1` too, so a short name may be that of a hidden note.
        return sys.platform == "win32" and bool(_SHORT_NAME.search(path))

    def _is_outside(self, path: str) -> bool:
        """Return whether only some paths are visible, and this file is in none of them."""
        return bool(self.only) and not any(_is_in(path, visible) for visible in self.only)

    def check(self, path: str, *, is_named_by_caller: bool) -> None:
        """Raise ReadOnly if a path is hidden, outside of the visible paths, or read-only.

        The message names a hidden path only if `is_named_by_caller`, else not even that it is one.
        """
        note = f"{name_of(path)!r}" if is_named_by_caller else "a note that this would change"
        if self._is_outside(path):
            hint = "Only notes there can be read here. Choose a name there, or ask the user."
            message = f"{note} is outside {_list_paths(self.only)}, and nothing was changed"
            raise ReadOnly(message, hint=hint)
        if self.hides(path):
            message = f"{note} is hidden here, and nothing was changed"
            raise ReadOnly(message, hint=_FORBIDDEN_HINT)
        if not self.may_change(path):
            message = f"{name_of(path)!r} is read-only here, and nothing was changed"
            raise ReadOnly(message, hint=_FORBIDDEN_HINT)

    def may_change(self, path: str) -> bool:
        """Return whether a path is not read-only. `check` tests too whether it is hidden."""
        return not (self.read_only and is_private_by_rule(path, self.read_only))

    def check_deletable(
        self, path: str, *, instead: str = "Tag it instead, for example as archived, or move it."
    ) -> None:
        """Raise ReadOnly if the settings forbid to delete notes.

        To replace a text that the caller has not read counts as deleting it. `path` only names the
        note in the message; `instead` is the hint. `check` tests whether the path may be changed.
        """
        if self.no_delete:
            message = f"deleting is not allowed here, and {name_of(path)!r} was not changed"
            raise ReadOnly(message, hint=instead)


def _list_paths(paths: Sequence[str]) -> str:
    """Return the first three paths for a message, and how many more there are."""
    text = ", ".join(paths[:3])
    more = len(paths) - 3
    if more > 0:
        text += f" and {more} more"
    return text


def _is_in(path: str, visible: str) -> bool:
    """Return whether a file is in `visible`, one of the visible paths. Case matters.

    `folder/` has all files below it, `folder/*` those directly in it, and `note.md` is one file.
    Any other, such as `name`, is the file of this path, `name.md`, and all files below `name/`.
    """
    path = unicodedata.normalize("NFC", path)
    visible = unicodedata.normalize("NFC", visible)
    if visible.endswith("/*"):
        return path.rpartition("/")[0] == visible[:-2]
    if visible.endswith(".md"):
        return path == visible
    if path in (visible, f"{visible}.md"):
        return True
    folder = visible if visible.endswith("/") else f"{visible}/"
    return path.startswith(folder)
