"""Entries in a JSON file that may have comments and a comma after a last value, which are kept.

Our own code edits these files; docs/decisions.md (Client files are edited in place) says why.
Offsets are found in a blanked copy of the text. It has the same length, and blanks in place of
comments and of commas after a last value, so the JSON decoder can read it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from simplemem.clients.lines import end_last_line, indentation, line_end_of, line_span

_STRING: Final = r'("(?:[^"\\\r\n]|\\.)*+"?)'
_COMMENT: Final = re.compile(_STRING + r"|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?")
_LAST_COMMA: Final = re.compile(_STRING + r"|,(?=[ \t\r\n]*+[]}])")
_NOT_LINE_END: Final = re.compile(r"[^\r\n]")
_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_END_OF_LINE: Final = re.compile(r"[ \t]*+(?://[^\r\n]*+)?+(?=[\r\n])")
_INDENTED_KEY: Final = re.compile(r'^([ \t]++)"', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class _Member:
    """Where a member of a JSON object begins, and where its value begins and ends."""

    start: int
    value_start: int
    end: int


def read(text: str) -> object:
    """Return the data of a JSON text, {} for one without a value.

    Raises ValueError if it is not valid JSON, or if an object has a key twice.
    """
    blanked = _blank_last_commas(_blank_comments(text))
    if not blanked.strip():
        return {}
    return json.loads(blanked, object_pairs_hook=_unique_keys)


def put(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with the entry in place of the one of that name, or before the others.

    `key` is the key of the map of entries, which is added if it is missing.
    """
    line_end = line_end_of(text)
    blanked = _blank_last_commas(_blank_comments(text))
    if not blanked.strip():
        text = f"{end_last_line(text)}{{}}{line_end}"
        blanked = _blank_last_commas(_blank_comments(text))

    indented_key = _INDENTED_KEY.search(blanked)
    unit = "  "
    if indented_key is not None:
        unit = indented_key[1]

    root = blanked.index("{")
    servers = _members(blanked, root).get(key)
    if servers is None:
        return _insert_member(text, blanked, root, key, {name: entry}, unit)
    if blanked[servers.value_start] != "{":  # null
        return _replace_value(text, servers, {name: entry}, unit)

    old_entry = _members(blanked, servers.value_start).get(name)
    if old_entry is None:
        return _insert_member(text, blanked, servers.value_start, name, entry, unit)
    return _replace_value(text, old_entry, entry, unit)


def remove(text: str, key: str, name: str) -> str:
    """Return the text without the member of that name and its comma.

    If the member is alone on its lines, they are removed, too. There must be such a member.
    """
    without_comments = _blank_comments(text)
    blanked = _blank_last_commas(without_comments)
    servers = _members(blanked, blanked.index("{"))[key]
    members = _members(blanked, servers.value_start)
    member = members[name]

    next_offset = _skip_blanks(without_comments, member.end)
    is_last = without_comments[next_offset] != ","
    start = member.start
    end = member.end if is_last else next_offset + 1

    line_start, _ = line_span(text, start, start)
    is_first_of_line = line_start > 0 and not text[line_start:start].strip()
    if is_first_of_line and _END_OF_LINE.match(text, end):
        start = line_start - len(_line_end_before(text, line_start))
    elif not is_last:
        end = _skip_blanks(text, end)

    if not is_last or len(members) == 1:
        return text[:start] + text[end:]
    return _without_comma_before(text, without_comments, members, start) + text[end:]


def _without_comma_before(
    text: str, without_comments: str, members: Mapping[str, _Member], start: int
) -> str:
    """Return the text up to `start`, where a last member begins, without the comma before it."""
    previous_ends = [member.end for member in members.values() if member.start < start]
    comma = without_comments.index(",", max(previous_ends))
    between = text[comma + 1 : start]
    return text[:comma] + between.rstrip(" \t")


def _blank_comments(text: str) -> str:
    """Return the text with blanks for comments."""
    return _COMMENT.sub(_blank_comment, text)


def _blank_comment(match: re.Match[str]) -> str:
    """Return a string literal as it is, and blanks for a comment."""
    return match[1] or _NOT_LINE_END.sub(" ", match[0])


def _blank_last_commas(text: str) -> str:
    """Return a text without comments with a blank for each comma after a last value."""
    return _LAST_COMMA.sub(lambda match: match[1] or " ", text)


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises ValueError if a key occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        [(key, _)] = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"{key!r} occurs twice")
    return members


def _members(blanked: str, start: int) -> dict[str, _Member]:
    """Return the members of the object that begins at `start`, by key."""
    decode = json.JSONDecoder().raw_decode
    members: dict[str, _Member] = {}
    offset = _skip_blanks(blanked, start + 1)
    while blanked[offset] != "}":
        key, key_end = decode(blanked, offset)
        colon = _skip_blanks(blanked, key_end)
        value_start = _skip_blanks(blanked, colon + 1)
        _, end = decode(blanked, value_start)
        members[key] = _Member(offset, value_start, end)

        offset = _skip_blanks(blanked, end)
        if blanked[offset] == ",":
            offset = _skip_blanks(blanked, offset + 1)
    return members


def _insert_member(
    text: str, blanked: str, start: int, key: str, value: Mapping[str, Any], unit: str
) -> str:
    """Return the text with a new first member in the object that begins at `start`.

    The member gets lines of its own, unless the object has its members on the line of its brace.
    `unit` is the indentation of a level.
    """
    first = _skip_blanks(blanked, start + 1)
    is_only = blanked[first] == "}"
    is_closed_at_once = text[start + 1] == "}"
    end_of_line = _END_OF_LINE.match(text, start + 1)
    if not is_closed_at_once and not end_of_line:
        member = f"{_to_json(key)}: {_to_json(value)}"
        if is_only:
            return _insert(text, start + 1, member)
        return _insert(text, first, f"{member}, ")

    line_end = line_end_of(text)
    outer_indent = indentation(text, start)
    indent = outer_indent + unit
    if not is_only:
        indent = indentation(text, first)
    lines = f"{_to_json(key)}: {_to_json(value, unit)}".split("\n")
    member = "".join(f"{line_end}{indent}{line}" for line in lines)

    if is_closed_at_once:
        member += line_end + outer_indent
    elif not is_only:
        member += ","
    offset = start + 1
    if end_of_line:
        offset = end_of_line.end()
    return _insert(text, offset, member)


def _insert(text: str, offset: int, new_text: str) -> str:
    """Return the text with another text at an offset."""
    return text[:offset] + new_text + text[offset:]


def _replace_value(text: str, member: _Member, value: Mapping[str, Any], unit: str) -> str:
    """Return the text with another value of a member, whose lines are indented as the member's."""
    indent = indentation(text, member.value_start)
    lines = _to_json(value, unit).replace("\n", line_end_of(text) + indent)
    return text[: member.value_start] + lines + text[member.end :]


def _to_json(value: object, indent: str | None = None) -> str:
    """Return a value as JSON, on one line without an `indent`."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _skip_blanks(text: str, offset: int) -> int:
    """Return the offset of the next character that is not a blank."""
    match = _BLANKS.match(text, offset)
    assert match is not None  # the pattern also matches no blanks
    return match.end()


def _line_end_before(text: str, line_start: int) -> str:
    """Return the line end of the line before."""
    if text[line_start - 2 : line_start] == "\r\n":
        return "\r\n"
    return "\n"
