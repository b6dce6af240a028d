"""Entries in a JSON file, which may have comments and a comma after a last value: both are kept.

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
from simplemem.note.text_edits import Edit, apply_edits

# In both patterns, group 1 is a string literal, which stays as it is.
_STRING: Final = r'("(?:[^"\\\r\n]|\\.)*+"?)'
_COMMENT: Final = re.compile(_STRING + r"|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?")
_LAST_COMMA: Final = re.compile(_STRING + r"|,(?=[ \t\r\n]*+[]}])")
_NOT_LINE_END: Final = re.compile(r"[^\r\n]")
_BLANKS: Final = re.compile(r"[ \t\r\n]*+")
_END_OF_LINE: Final = re.compile(r"[ \t]*+(?://[^\r\n]*+)?+(?=[\r\n])")
_INDENTED_KEY: Final = re.compile(r'^([ \t]++)"', re.MULTILINE)


def read(text: str) -> object:
    """Return the data of a JSON text with comments, {} for one without a value.

    Raises ValueError if it is not valid JSON, or if an object has a key twice.
    """
    document = _Document.of(text)
    if document.is_empty:
        return {}
    return json.loads(document.plain, object_pairs_hook=_unique_keys)


def put(text: str, key: str, name: str, entry: Mapping[str, Any]) -> str:
    """Return the text with the entry in place of the one of that name, or before the others.

    `key` is the key of the map of entries, which is added if it is missing or null. The text must
    be valid JSON, with an object or nothing in it.
    """
    document = _Document.of(text)
    if document.is_empty:
        line_end = line_end_of(text)
        lines = end_last_line(text)
        document = _Document.of(f"{lines}{{}}{line_end}")

    root = document.plain.index("{")
    root_members = document.members(root)
    servers = root_members.get(key)
    if servers is None:
        return document.insert_member(root, key, {name: entry})
    servers_start = servers.value_start
    is_null = document.plain[servers_start] != "{"
    if is_null:
        return document.replace_value(servers, {name: entry})

    entries = document.members(servers_start)
    old_entry = entries.get(name)
    if old_entry is None:
        return document.insert_member(servers_start, name, entry)
    return document.replace_value(old_entry, entry)


def remove(text: str, key: str, name: str) -> str:
    """Return the text without the entry of that name and its comma.

    `key` is the key of the map of entries. If the entry is alone on its lines, they are removed,
    too. The text must be valid JSON with such an entry.
    """
    document = _Document.of(text)
    root = document.plain.index("{")
    root_members = document.members(root)
    servers = root_members[key]
    servers_start = servers.value_start
    members = document.members(servers_start)
    return document.remove_member(members, name)


@dataclass(frozen=True, slots=True)
class _Member:
    """Offsets of a member of a JSON object.

    Attributes:
        start: Where its key begins.
        value_start: Where its value begins.
        end: Where its value ends. A comma comes after that.
    """

    start: int
    value_start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Document:
    """A JSON text, and copies of the same length in which offsets are found.

    Attributes:
        text: The text.
        without_comments: The text with blanks for comments.
        plain: Plain JSON: blanks for comments and for commas after a last value.
    """

    text: str
    without_comments: str
    plain: str

    @classmethod
    def of(cls, text: str) -> _Document:
        """Return a document of a text, which need not be valid JSON."""
        without_comments = _COMMENT.sub(_blank_comment, text)
        plain = _LAST_COMMA.sub(_blank_comma, without_comments)
        return cls(text, without_comments, plain)

    @property
    def is_empty(self) -> bool:
        """Whether the text has no value."""
        return not self.plain.strip()

    @property
    def indent_unit(self) -> str:
        """The blanks before the first key that has a line of its own; two without such a key."""
        indented_key = _INDENTED_KEY.search(self.plain)
        if indented_key is None:
            return "  "
        return indented_key[1]

    def members(self, start: int) -> dict[str, _Member]:
        """Return the members of the object whose brace is at the offset `start`, by key."""
        plain = self.plain
        decoder = json.JSONDecoder()
        decode = decoder.raw_decode
        members: dict[str, _Member] = {}
        inside = start + 1
        offset = _skip_blanks(plain, inside)
        while plain[offset] != "}":
            key, key_end = decode(plain, offset)
            colon = _skip_blanks(plain, key_end)
            after_colon = colon + 1
            value_start = _skip_blanks(plain, after_colon)
            _, end = decode(plain, value_start)
            members[key] = _Member(offset, value_start, end)

            offset = _skip_blanks(plain, end)
            if plain[offset] == ",":
                after_comma = offset + 1
                offset = _skip_blanks(plain, after_comma)
        return members

    def insert_member(self, start: int, key: str, value: Mapping[str, Any]) -> str:
        """Return the text with a new first member in the object whose brace is at `start`.

        The member gets lines of its own, unless the object has its members on the line of its
        brace.
        """
        text = self.text
        inside = start + 1
        first = _skip_blanks(self.plain, inside)
        is_only = self.plain[first] == "}"
        is_closed_at_once = text[inside] == "}"
        end_of_line = _END_OF_LINE.match(text, inside)
        if not is_closed_at_once and not end_of_line:
            member = _render_member(key, value)
            if is_only:
                return _insert(text, inside, member)
            return _insert(text, first, f"{member}, ")

        outer_indent = indentation(text, start)
        indent = outer_indent + self.indent_unit
        if not is_only:
            indent = indentation(text, first)
        line_end = line_end_of(text)
        member = _render_member(key, value, self.indent_unit)
        new_lines = ""
        for line in member.split("\n"):
            new_lines += f"{line_end}{indent}{line}"

        if is_closed_at_once:
            new_lines += line_end
            new_lines += outer_indent
        elif not is_only:
            new_lines += ","
        offset = inside
        if end_of_line:
            offset = end_of_line.end()
        return _insert(text, offset, new_lines)

    def replace_value(self, member: _Member, value: Mapping[str, Any]) -> str:
        """Return the text with another value of a member, indented as the member is."""
        text = self.text
        line_end = line_end_of(text)
        indent = indentation(text, member.value_start)
        json_value = _to_json(value, self.indent_unit)
        new_value = json_value.replace("\n", line_end + indent)

        edit = (
            member.value_start,
            member.end,
            new_value,
        )
        return apply_edits(text, [edit])

    def remove_member(self, members: Mapping[str, _Member], key: str) -> str:
        """Return the text without one of the members of an object, and without its comma.

        `members` are those of the object. If the member is alone on its lines, they are removed,
        too. If it is the last one, the comma before it is removed.
        """
        member = members[key]
        end = member.end
        plain = self.without_comments
        next_offset = _skip_blanks(plain, end)
        is_last = plain[next_offset] != ","
        if not is_last:
            end = next_offset + 1

        start = self._start_of_lines(member.start, end)
        if start == member.start and not is_last:
            # The next member is on the same line.
            end = _skip_blanks(self.text, end)

        removal = (start, end, "")
        edits: list[Edit] = [removal]
        if is_last and len(members) > 1:
            edits += self._comma_before(members, start)
        return apply_edits(self.text, edits)

    def _start_of_lines(self, start: int, end: int) -> int:
        """Return the end of the line before a member that is alone on its lines, else `start`.

        The member reaches from `start` to `end`, which is after its comma.
        """
        text = self.text
        line_start, _ = line_span(text, start, start)
        blanks = text[line_start:start]
        is_first_of_line = line_start > 0 and not blanks.strip()
        is_last_of_line = _END_OF_LINE.match(text, end)
        if not is_first_of_line or not is_last_of_line:
            return start

        line_end = _line_end_before(text, line_start)
        return line_start - len(line_end)

    def _comma_before(self, members: Mapping[str, _Member], start: int) -> list[Edit]:
        """Return the edits that remove the comma before a last member, and blanks after it.

        `start` is where the removal of the last member begins. There must be another member.
        """
        previous_end = 0
        for member in members.values():
            if member.start < start:
                previous_end = max(previous_end, member.end)
        plain = self.without_comments
        comma = plain.index(",", previous_end)
        comma_end = comma + 1
        text = self.text[comma_end:start]
        comments = text.rstrip(" \t")
        blanks_start = comma_end + len(comments)
        return [
            (comma, comma_end, ""),
            (blanks_start, start, ""),
        ]


def _blank_comment(match: re.Match[str]) -> str:
    """Return a string literal as it is, and as many blanks for a comment. Line ends stay."""
    literal: str | None = match[1]
    if literal:
        return literal
    return _NOT_LINE_END.sub(" ", match[0])


def _blank_comma(match: re.Match[str]) -> str:
    """Return a string literal as it is, and a blank for a comma."""
    return match[1] or " "


def _unique_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """Return the members of an object. Raises ValueError if a key occurs twice."""
    members = dict(pairs)
    if len(members) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        [(key, _)] = counts.most_common(1)
        raise ValueError(f"{key!r} occurs twice")
    return members


def _insert(text: str, offset: int, new_text: str) -> str:
    """Return the text with another text inserted at an offset."""
    before = text[:offset]
    after = text[offset:]
    return f"{before}{new_text}{after}"


def _render_member(key: str, value: Mapping[str, Any], indent: str | None = None) -> str:
    """Return a member of an object as JSON, on one line without an `indent`."""
    json_key = _to_json(key)
    json_value = _to_json(value, indent)
    return f"{json_key}: {json_value}"


def _to_json(value: object, indent: str | None = None) -> str:
    """Return a value as JSON: on one line, or with an `indent` on a line for each value in it."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _skip_blanks(text: str, offset: int) -> int:
    """Return the offset of the next character that is not a blank; the text's end without one."""
    match = _BLANKS.match(text, offset)
    assert match is not None  # the pattern also matches no blanks
    return match.end()


def _line_end_before(text: str, line_start: int) -> str:
    """Return the line end of the line before the one that begins at `line_start`."""
    if text[line_start - 2 : line_start] == "\r\n":
        return "\r\n"
    return "\n"
