"""Answers of the tools that change notes: their fields, and the text made of them."""

# No `from __future__ import annotations`: a TypedDict sees `NotRequired` only if it is evaluated.

from collections.abc import Sequence
from typing import Any, Final, Literal, NotRequired, TypeAlias, TypedDict, TypeVar

from simplemem.errors import Hint, HintSentence
from simplemem.models import LeftAsIs, Value
from simplemem.tools import render
from simplemem.tools.short import SHORT_HASH_LENGTH
from simplemem.tools.tool import Data, Reply

MAX_NAMES: Final = 50
_MAX_WARNINGS: Final = 20
_MAX_WARNING_LENGTH: Final = 600

UndoPurpose: TypeAlias = Literal["redo", "restore"]
"""What undoing a change does for the caller who made it."""

T = TypeVar("T")


class Created(TypedDict):
    """A note that was saved. `version` and `hint` tell how to get back a text that it replaced."""

    name: str
    path: str
    sha256: str
    warnings: Sequence[str]
    version: NotRequired[str]
    hint: NotRequired[str]


class Updated(TypedDict):
    """A note whose text or frontmatter was to be changed."""

    name: str
    sha256: str
    previous_sha256: str | None
    changed: bool
    warnings: NotRequired[Sequence[str]]
    version: NotRequired[str]
    hint: NotRequired[str]


class Tagged(TypedDict):
    """A note whose tags were to be changed, with its tags now."""

    name: str
    sha256: str
    tags: Sequence[str]
    tag_map: Data
    changed: bool
    warnings: NotRequired[Sequence[str]]


class Renamed(TypedDict):
    """A note that has another name, and the notes whose links to it were rewritten."""

    name: str
    path: str
    rewritten: Sequence[str]
    sha256: str
    warnings: NotRequired[Sequence[str]]


class Removed(TypedDict):
    """A note that was deleted."""

    name: str
    version: str
    links_left_unresolved: int
    hint: str


class UndoneName(TypedDict):
    """One note of an undo of many changes."""

    name: str
    becomes: str
    new_name: str | None


class UndoAnswer(TypedDict):
    """One change that was undone, or many. `left` lists the notes of many that were not undone."""

    name: str
    sha256: str | None
    version: str
    what: str
    notes: NotRequired[list[UndoneName]]
    left: NotRequired[Sequence[LeftAsIs]]
    hint: NotRequired[str]


def change_reply(
    answer_type: type[T],
    change: Value,
    *lines: str,
    undo_to: UndoPurpose | None = None,
    hint: str = "",
    **fields: object,
) -> Reply[T]:
    """Return a reply to a change, as text and as the fields of `answer_type`.

    The text has `lines`, of which there is at least one, and the hash, the hint and the warnings. A
    field is taken from `fields`, otherwise from the attribute of `change` with its name. It is left
    out if it is None or an empty list, and not required. With `undo_to`, the hint says how to undo
    the change; the text names its version, which the fields have already. At most 20 warnings are
    kept, each cut to 600 characters, and the previous hash is cut to 12 digits.
    """
    names = [name for name in answer_type.__annotations__ if name != "hint"]
    data: Data = {name: fields[name] if name in fields else getattr(change, name) for name in names}
    if data.get("warnings"):
        data["warnings"] = _first_warnings(data["warnings"])
    data = _without_empty(data, required=vars(answer_type)["__required_keys__"])
    if data.get("previous_sha256"):
        data["previous_sha256"] = data["previous_sha256"][:SHORT_HASH_LENGTH]

    hint_in_text = hint
    if undo_to is not None:
        hint = _undo_hint(undo_to, "version")
        hint_in_text = _undo_hint(undo_to, f'version="{data["version"]}"')
    if hint:
        data["hint"] = hint
    head, *more_lines = lines
    rows = [head, _hashes(data), *more_lines, hint_in_text, *data.get("warnings", ())]
    answer: Any = data
    return Reply("\n".join(filter(None, rows)), answer)


def _undo_hint(purpose: UndoPurpose, arguments: str) -> Hint:
    """Return a hint that says how to undo a change. `undo_change` has its words for routes."""
    text = f"Call undo_change({arguments}) to {purpose} it."
    return Hint(HintSentence(purpose, text, {"arguments": arguments}))


def _first_warnings(warnings: Sequence[str]) -> list[str]:
    """Return the first warnings, at most 20, each on one line of at most 600 characters.

    If there are more, a last line counts them.
    """
    shortened = [render.line(text, _MAX_WARNING_LENGTH) for text in warnings[:_MAX_WARNINGS]]
    if len(warnings) > _MAX_WARNINGS:
        shortened.append(f"(and {len(warnings) - _MAX_WARNINGS} more)")
    return shortened


def _without_empty(fields: Data, required: frozenset[str]) -> Data:
    """Return the fields that are required, or neither None nor an empty list."""
    return {
        name: value
        for name, value in fields.items()
        if name in required or not (value is None or value in ((), []))
    }


def _hashes(data: Data) -> str:
    """Return the line with the hash of a note, and that of the text before the change.

    Returns "" if the fields have no hash, as after a deletion.
    """
    if not data.get("sha256"):
        return ""
    parts = [f"sha256 {data['sha256']}"]
    if data.get("previous_sha256"):
        parts.append(f"before {data['previous_sha256']}")
    return ", ".join(parts)
