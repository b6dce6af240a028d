"""A change of a note as the history records it, and the lines of the log that hold changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, get_args

from simplemem.errors import NotFound

Op = Literal["create", "update", "move", "delete", "undo", "restore", "recovered"]
Kind = Literal["human", "agent", ""]
"""Who made a change: a person, or a program such as an agent's client; "" if that is not known."""

COMMAND_LINE = "command line"
"""The author in the history for a person who uses the commands."""

_REQUIRED = ("id", "group", "path", "when", "op")
_MAY_LACK = ("who", "tool", "reason", "kind")
_TEXT_TYPES = frozenset((str, type(None)))
_OPS = frozenset(get_args(Op))
_ID = re.compile(r"v?[0-9]{1,15}")
_MAX_ID_DIGITS = 15


class Version(NamedTuple):
    """A change of one note. All changes of an operation have one `group`, the id of the first."""

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

    @property
    def number(self) -> int:
        """The position in the order of all changes."""
        return number_of(self.id)

    @property
    def effects(self) -> tuple[tuple[str, str | None, str | None], ...]:
        """The paths that the change names, with the hashes of the files there before and after."""
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

        Old lines of the log do not say. In them, the tools of agents have an underscore in their
        names, and the commands have none.
        """
        if self.kind:
            return self.kind == "human"
        return self.who == COMMAND_LINE and "_" not in self.tool


def format_version(number: int) -> str:
    """Return the id of a version by its number."""
    return f"v{number:06d}"


def number_of(version: str) -> int:
    """Return the number of a version as people write it: "v42", "42" and "v000042" are the same.

    Raises NotFound for anything else.
    """
    digits = version.strip().removeprefix("v")
    if digits.isascii() and digits.isdigit() and len(digits) <= _MAX_ID_DIGITS:
        return int(digits)
    raise no_version(version)


def no_version(version: str) -> NotFound:
    """Return the error for a version that does not exist."""
    hint = "The history of a note lists its versions."
    return NotFound(f"no version {version[:40]!r}", hint=hint)


def format_line(version: Version) -> bytes:
    """Return a change as a line of the log."""
    line = json.dumps(version._asdict(), separators=(",", ":"))
    return line.encode() + b"\n"


def last_before(times: Iterable[tuple[int, str]], when: str) -> int:
    """Return the number of the last change before a moment in UTC, 0 if there is none.

    `times` has the number and the time of each change, newest first. A clock may have been wrong
    for a while, so the log is cut where the fewest changes are on the wrong side.
    """
    cut: int | None = None
    score = 0  # changes after the moment, less changes before it, of those above the cut
    best_score = 0
    for number, change_time in times:
        if cut is None:
            cut = number
        score += 1 if change_time < when else -1
        if score < best_score:
            best_score = score
            cut = number - 1
    return cut or 0


def versions_in(lines: Iterable[bytes]) -> Iterator[Version]:
    """Yield the changes in some lines of the log, in their order. Damaged lines are skipped."""
    return filter(None, map(_parse_line, lines))


def read_version(fields: object) -> Version | None:
    """Return the version that an object from JSON describes, None if it describes none."""
    if not isinstance(fields, dict):
        return None

    texts: dict[str, Any] = {name: fields.get(name) for name in Version._fields}
    if not _TEXT_TYPES.issuperset(map(type, texts.values())):
        return None
    if None in map(texts.get, _REQUIRED):
        return None
    if texts["op"] not in _OPS:
        return None
    if not _ID.fullmatch(texts["id"]) or not _ID.fullmatch(texts["group"]):
        return None

    for name in _MAY_LACK:
        texts[name] = texts[name] or ""
    return Version(**texts)


def _parse_line(line: bytes) -> Version | None:
    # A line that a crash cut off is no change: the journal has it, or it never happened.
    if not line:
        return None
    try:
        return read_version(json.loads(line))
    except (ValueError, RecursionError):
        return None
