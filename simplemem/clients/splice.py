"""One entry put into, or taken out of, a configuration file: JSON with comments, TOML or YAML. Every other byte stays.
What comes out is read again and must say what was wanted, else nothing is changed. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import dropwhile
from typing import Any

from simplemem.errors import Unreadable
from simplemem.note.header import Node, RefusedError, read_yaml
from simplemem.note.text_edits import apply_edits

Entry = Mapping[str, Any]
_BOM = "\ufeff"
_COMMENT = re.compile(r'("(?:[^"\\\r\n]|\\.)*+"?)|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?')
_LAST_COMMA = re.compile(r'("(?:[^"\\\r\n]|\\.)*+"?)|,(?=[ \t\r\n]*+[]}])')
_INK = re.compile(r"[^\r\n]")
_SPACE = re.compile(r"[ \t\r\n]*+")
_END_OF_LINE = re.compile(r"[ \t]*+(?://[^\r\n]*+)?+(?=[\r\n])")
_INDENT = re.compile(r'^([ \t]++)"', re.MULTILINE)
_TABLE = re.compile(r"^[ \t]*+\[[^\r\n]*+", re.MULTILINE)


def entries(form: str, text: str, key: str) -> dict[str, Any]:
    """The entries that are there. Unreadable when the file cannot be read, or has something else in their place."""
    servers = _read(form, text.removeprefix(_BOM)).get(key)
    if not isinstance(servers, dict | None):
        raise Unreadable(
            f"{key!r} is not a map of servers", hint="Fix the file in an editor first."
        )
    return servers or {}


def put(form: str, text: str, key: str, name: str, entry: Entry) -> str:
    """The text with this entry, in the place of the one of that name, if there is one."""
    servers, plain = entries(form, text, key), text.removeprefix(_BOM)
    if servers.get(name) == entry:
        return text
    after = {"json": _put_json, "toml": _put_toml, "yaml": _put_yaml}[form](plain, key, name, entry)
    return text[: len(text) - len(plain)] + _checked(
        form, plain, after, key, {**servers, name: entry}
    )


def remove_entry(form: str, text: str, key: str, name: str) -> str:
    """The text without the entry of that name."""
    servers, plain = entries(form, text, key), text.removeprefix(_BOM)
    if name not in servers:
        return text
    del servers[name]
    after = {"json": _remove_json, "toml": _remove_toml, "yaml": _remove_yaml}[form](
        plain, key, name
    )
    return text[: len(text) - len(plain)] + _checked(form, plain, after, key, servers)


def is_put_into(form: str, text: str, key: str, name: str, was: str) -> bool:
    """Whether a text is another one, without such an entry, into which one was put."""
    made = "" if name in entries(form, was, key) else put(form, was, key, name, {"command": ""})
    return bool(made) and remove_entry(form, text, key, name) == remove_entry(form, made, key, name)


def _checked(form: str, before: str, after: str, key: str, servers: Entry) -> str:
    """The new text, if it says what the old one says, with these servers."""
    with suppress(Unreadable):
        data = _read(form, after)
        if {**data, key: data.get(key) or {}} == {**_read(form, before), key: servers}:
            return after
    raise Unreadable(
        "simplemem cannot safely edit a file of this form", hint="Edit the file in an editor."
    )


def _read(form: str, text: str) -> dict[str, Any]:
    try:
        if form == "json":
            data = json.loads(_bare(text)[1] or "{}", object_pairs_hook=_unique)
        else:
            data = tomllib.loads(text) if form == "toml" else getattr(_yaml(text), "value", None)
            data = {} if data is None else data
    except (ValueError, RecursionError, RefusedError) as error:
        said: object = error
        if isinstance(error, RefusedError):
            said = f"{error.message} (line {text.count(chr(10), 0, error.offset) + 1})"
        raise Unreadable(
            f"it is not valid {form.upper()}: {said}", hint="Fix the file in an editor first."
        ) from error
    if not isinstance(data, dict):
        raise Unreadable(
            "it does not contain settings", hint="Check that this is the file of the client."
        )
    return data


def _quoted(value: Any, indent: str | None = None) -> str:
    """A value as JSON, which in one line is YAML as well, and TOML where it is no map."""
    return json.dumps(value, ensure_ascii=False, indent=indent)


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _ended(text: str) -> str:
    """The text with its last line ended."""
    return text + _newline(text) if text and not text.endswith("\n") else text


def _line(text: str, start: int, end: int) -> tuple[int, int]:
    """Where the line begins that has the first place, and the one begins that comes after the second."""
    return text.rfind("\n", 0, start) + 1, text.find("\n", end) + 1 or len(text)


def _skip(text: str, at: int) -> int:
    return _SPACE.match(text, at).end()  # type: ignore[union-attr]


# JSON: places are looked up in a copy of the same length that has blanks for comments and for commas that end a list.


def _bare(text: str) -> tuple[str, str]:
    """The text with blanks for comments, and also for those commas; the latter is empty where nothing is said."""
    bare = _COMMENT.sub(lambda found: found[1] or _INK.sub(" ", found[0]), text)
    return bare, _LAST_COMMA.sub(lambda found: found[1] or " ", bare) if bare.strip() else ""


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    if len(data := dict(pairs)) < len(pairs):
        raise ValueError(f"{Counter(key for key, _ in pairs).most_common(1)[0][0]!r} occurs twice")
    return data


def _members(plain: str, start: int) -> dict[str, tuple[int, int, int]]:
    """The members of the map that begins there: where the key begins, and where the value does and ends."""
    decode, members, at = (
        json.JSONDecoder().raw_decode,
        dict[str, tuple[int, int, int]](),
        _skip(plain, start + 1),
    )
    while plain[at] != "}":
        key, end = decode(plain, at)
        value = _skip(plain, _skip(plain, end) + 1)
        members[key] = (at, value, decode(plain, value)[1])
        at = _skip(plain, members[key][2])
        at = _skip(plain, at + 1) if plain[at] == "," else at
    return members


def _indent(text: str, at: int) -> str:
    line = text[_line(text, at, at)[0] : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _put_json(text: str, key: str, name: str, entry: Entry) -> str:
    end = _newline(text)
    if not _bare(text)[1]:
        text = f"{_ended(text)}{{}}{end}"
    plain = _bare(text)[1]
    unit, start = found[1] if (found := _INDENT.search(plain)) else "  ", plain.index("{")
    value: Entry
    label, value, (_, at, stop) = key, {name: entry}, _members(plain, start).get(key, (0, 0, 0))
    if at and plain[at] == "{":
        start, label, value, (_, at, stop) = (
            at,
            name,
            entry,
            _members(plain, at).get(name, (0, 0, 0)),
        )
    if at:  # of an entry, or of a null where the map of entries belongs
        return text[:at] + _quoted(value, unit).replace("\n", end + _indent(text, at)) + text[stop:]
    first, outer = _skip(plain, start + 1), _indent(text, start)
    is_only, is_bare = plain[first] == "}", text[start + 1] == "}"
    rest = _END_OF_LINE.match(text, start + 1)
    if not is_bare and not rest:
        at = start + 1 if is_only else first
        return f"{text[:at]}{_quoted(label)}: {_quoted(value)}{'' if is_only else ', '}{text[at:]}"
    indent = outer + unit if is_only else _indent(text, first)
    member = f"{end}{indent}{_quoted(label)}: " + _quoted(value, unit).replace("\n", end + indent)
    at = rest.end() if rest else start + 1
    return text[:at] + member + (end + outer if is_bare else "" if is_only else ",") + text[at:]


def _remove_json(text: str, key: str, name: str) -> str:
    bare, plain = _bare(text)
    top = _members(plain, plain.index("{"))[key][1]
    members = _members(plain, top)
    start, _, stop = members[name]
    line, after = _line(text, start, start)[0], _skip(bare, stop)
    if not (is_last := bare[after] != ","):
        stop = after + 1
    own_line = bool(line) and not text[line:start].strip() and bool(_END_OF_LINE.match(text, stop))
    if own_line:
        start = line - (2 if text[line - 2] == "\r" else 1)
    elif not is_last:
        stop = _skip(text, stop)
    if is_last and len(members) > 1:
        comma = bare.index(",", max(end for at, _, end in members.values() if at < start))
        return text[:comma] + text[comma + 1 : start].rstrip(" \t") + text[stop:]
    return text[:start] + text[stop:]


# TOML: an entry is a table, and those below it, wherever they stand. A new one is put at the end.


def _put_toml(text: str, key: str, name: str, entry: Entry) -> str:
    end, tables = _newline(text), _tables(text, key, name)
    lines = [
        f"[{key}.{name}]",
        *(f"{each} = {_quoted(value)}" for each, value in entry.items()),
        "",
    ]
    if not tables:
        return _ended(text) + (end if text else "") + end.join(lines)
    (start, stop), *others = tables
    return apply_edits(text, [(start, stop, end.join(lines)), *((*each, "") for each in others)])


def _remove_toml(text: str, key: str, name: str) -> str:
    end = _newline(text)
    tables = _tables(text, key, name)
    return apply_edits(
        text, [(at - len(end) * text.endswith(2 * end, 0, at), stop, "") for at, stop in tables]
    )


def _tables(text: str, key: str, name: str) -> list[tuple[int, int]]:
    """The tables of an entry, each from its header to the last line that says something."""
    tables, headers = list[tuple[int, int]](), list(_TABLE.finditer(text))
    for start, header in ((each.start(), _toml(each[0])) for each in headers):
        if header and name in (header.get(key) or ()) and _toml(text[:start]) is not None:
            ends = (each.start() for each in headers if each.start() > start)
            stop = next((end for end in ends if _toml(text[start:end]) is not None), len(text))
            lines = reversed(text[start:stop].splitlines(keepends=True))
            said = dropwhile(lambda line: not line.strip() or line.lstrip().startswith("#"), lines)
            tables.append((start, start + sum(map(len, said))))
    return tables


def _toml(text: str) -> dict[str, Any] | None:
    """What a text says, None where a list or a long string goes on after it."""
    with suppress(ValueError):
        return tomllib.loads(text)
    return None


# YAML: an entry is lines of a map. A new one is put before the others.


def _yaml(text: str) -> Node | None:
    return read_yaml(text, 0, len(text))[0]


def _pair(node: Node | None, key: str) -> tuple[Node, Node] | None:
    return (
        next(((name, value) for name, value in node.pairs() if name.value == key), None)
        if node
        else None
    )


def _put_yaml(text: str, key: str, name: str, entry: Entry) -> str:
    end, text = _newline(text), _ended(text)
    at, indent, top = len(text), "  ", f"{key}:{end}"
    if place := _pair(_yaml(text), key):
        label, servers = place
        top, at = "", _line(text, 0, label.end)[1]
        if servers.value:
            indent = _indent(text, servers.children[0].start)
        else:  # it is nothing, or {}
            colon = text.index(":", label.end) + 1
            text, at = (
                text[:colon] + text[max(colon, servers.end) :],
                at - max(0, servers.end - colon),
            )
        if servers.value and (own := _pair(servers, name)):
            at, stop = _line(text, own[0].start, max(own[0].end, own[1].end))
            text = text[:at] + text[stop:]
    lines = [
        f"{indent}{name}:",
        *(f"{indent}  {each}: {_quoted(value)}" for each, value in entry.items()),
        "",
    ]
    return text[:at] + top + end.join(lines) + text[at:]


def _remove_yaml(text: str, key: str, name: str) -> str:
    if (place := _pair(_yaml(text), key)) and (own := _pair(place[1], name)):
        colon = text.index(":", place[0].end) + 1
        alone = (
            " {}" if len(place[1].value) == 1 else ""
        )  # nothing at all is no map for every reader
        return apply_edits(
            text,
            [(colon, colon, alone), (*_line(text, own[0].start, max(own[0].end, own[1].end)), "")],
        )
    return text
