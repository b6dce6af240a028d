"""One entry put into, or taken out of, a configuration file: JSON with comments, TOML or YAML. Every other byte stays.
What comes out is read again and must say what was wanted, else nothing is changed. Pure."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import yaml

from simplemem.errors import Unreadable

Entry = Mapping[str, Any]
_SPACE = re.compile(r"(?:[ \t\r\n]++|//[^\r\n]*+|/\*(?:[^*]|\*(?!/))*+\*/)*+")
_REST_OF_LINE = re.compile(r"[ \t]*+(?://[^\r\n]*+|/\*(?:[^*\r\n]|\*(?!/))*+\*/)?+")
_STRING = re.compile(r'"(?:[^"\\\r\n]|\\.)*+"')
_SCALAR = re.compile(r"[-+.\w]++")
_INDENT = re.compile(r'^([ \t]++)"', re.MULTILINE)
_BARE = re.compile(r"[\w-]++", re.ASCII)
_FOREIGN = "it is written in a form that is not changed here"


def entries(form: str, text: str, keys: Sequence[str]) -> dict[str, Any]:
    """The entries that are there. Unreadable when the file cannot be read, or has something else in their place."""
    return _servers(_read(form, text), keys)


def put(form: str, text: str, keys: Sequence[str], name: str, entry: Entry) -> str:
    """The text with this entry, in the place of the one of that name, if there is one."""
    data = _read(form, text)
    servers = _servers(data, keys)
    if servers.get(name) == entry:
        return text
    without = _nested(data, keys, {key: each for key, each in servers.items() if key != name})
    after = (
        _put_json(text, [*keys, name], entry) if form == "json" else _put_lines(form, text, keys, name, entry, without)
    )
    return _checked(form, after, _nested(data, keys, {**servers, name: dict(entry)}))


def take(form: str, text: str, keys: Sequence[str], name: str) -> str:
    """The text without the entry of that name."""
    data = _read(form, text)
    servers = _servers(data, keys)
    if name not in servers:
        return text
    without = _nested(data, keys, {key: each for key, each in servers.items() if key != name})
    if form == "json":
        return _checked(form, _take_json(text, keys, name), without)
    lines = text.splitlines(keepends=True)
    start, stop = _span(form, lines, name, without)
    start -= form == "toml" and start > 0 and not lines[start - 1].strip()
    return "".join(lines[:start] + lines[stop:])


def _checked(form: str, text: str, wanted: Any) -> str:
    if _emptied(_read(form, text)) != _emptied(wanted):
        raise Unreadable(_FOREIGN, hint="Change it in an editor.")
    return text


def _emptied(data: Any) -> Any:
    """Without maps that have nothing in them: whether they stand there is a matter of form."""
    if not isinstance(data, dict):
        return data
    return {key: inner for key, each in data.items() if (inner := _emptied(each)) not in ({}, None)}


def _nested(data: dict[str, Any], keys: Sequence[str], servers: Entry) -> dict[str, Any]:
    """The data with these servers."""
    inner = _nested(data.get(keys[0]) or {}, keys[1:], servers) if keys else None
    return dict(servers) if inner is None else {**data, keys[0]: inner}


def _read(form: str, text: str) -> dict[str, Any]:
    plain = text.removeprefix("\ufeff")
    try:
        if form == "json":
            data = _json(text).data if plain.strip() else {}
        else:
            data = tomllib.loads(plain.replace("\r\n", "\n")) if form == "toml" else yaml.safe_load(plain)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise Unreadable(f"it is no {form.upper()} that can be read: {error}", hint="Mend it first.") from error
    if not isinstance(data := {} if data is None else data, dict):
        raise Unreadable("it holds something else than settings", hint="Is it the right file?")
    return data


def _servers(data: Any, keys: Sequence[str]) -> dict[str, Any]:
    for key in keys:
        if not isinstance(data := {} if (inner := data.get(key)) is None else inner, dict):
            raise Unreadable(f"{key!r} is not a map of servers in it", hint="Mend it first.")
    return dict(data)


# JSON, with comments and commas that end a list, as editors allow them.


class _Value(NamedTuple):
    start: int
    stop: int
    data: Any
    members: Mapping[str, tuple[int, _Value]] = {}  # by key, each with where its key begins


def _json(text: str) -> _Value:
    value = _value(text, _skip(text, 1 if text.startswith("\ufeff") else 0))
    if (end := _skip(text, value.stop)) < len(text):
        raise ValueError(_at(text, end))
    return value


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


def _at(text: str, at: int) -> str:
    return f"line {text.count(chr(10), 0, at) + 1} is not understood"


def _value(text: str, at: int) -> _Value:
    opening = text[at : at + 1]
    if opening not in ("{", "[") or not opening:
        if (found := _STRING.match(text, at) or _SCALAR.match(text, at)) is None:
            raise ValueError(_at(text, at))
        return _Value(at, found.end(), json.loads(found[0]))
    start, at, members, items = at, _skip(text, at + 1), dict[str, tuple[int, _Value]](), list[Any]()
    while text[at : at + 1] != {"{": "}", "[": "]"}[opening]:
        key_at, value = at, _value(text, at)
        if opening == "{":
            at = _skip(text, value.stop)
            if not isinstance(key := value.data, str) or text[at : at + 1] != ":" or key in members:
                raise ValueError(_at(text, key_at))
            members[key] = (key_at, value := _value(text, _skip(text, at + 1)))
        items.append(value.data)
        at = _skip(text, value.stop)
        if text[at : at + 1] == ",":
            at = _skip(text, at + 1)
        elif text[at : at + 1] not in ("}", "]"):
            raise ValueError(_at(text, at))
    data = {key: each.data for key, (_, each) in members.items()} if opening == "{" else items
    return _Value(start, at + 1, data, members)


def _put_json(text: str, way: Sequence[str], entry: Entry) -> str:
    line_end = "\r\n" if "\r\n" in text else "\n"
    if not text.strip("\ufeff \t\r\n"):
        text += f"{{}}{line_end}"
    found = _INDENT.search(text)
    unit, place, depth = found[1] if found else "  ", _json(text), 0
    while depth < len(way) and way[depth] in place.members:
        place, depth = place.members[way[depth]][1], depth + 1
    value: Any = entry
    for key in reversed(way[depth + 1 :]):
        value = {key: value}

    def rendered(value: Any, indent: str) -> str:
        return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", line_end + indent)

    if depth == len(way):
        return text[: place.start] + rendered(value, _indent(text, place.start)) + text[place.stop :]
    key, inside = json.dumps(way[depth], ensure_ascii=False), text[place.start + 1 : place.stop - 1]
    outer = _indent(text, place.start)
    if not place.members:
        member = f"{line_end}{outer}{unit}{key}: {rendered(value, outer + unit)}"
        if not inside.strip():
            return f"{text[: place.start + 1]}{member}{line_end}{outer}{text[place.stop - 1 :]}"
        return text[: place.start + 1] + member + text[place.start + 1 :]
    key_at, last = max(place.members.values())
    at = _skip(text, last.stop)
    has_comma = text[at] == ","
    after = at + 1 if has_comma else last.stop
    if "\n" not in inside:
        return f"{text[:after]}{'' if has_comma else ','} {key}: {json.dumps(value, ensure_ascii=False)}{text[after:]}"
    indent = _indent(text, key_at) if _begins_line(text, key_at) else outer + unit
    rest = _REST_OF_LINE.match(text, after)
    end = rest.end() if rest else after
    comma, ending = ("", ",") if has_comma else (",", "")
    member = f"{line_end}{indent}{key}: {rendered(value, indent)}{ending}"
    return text[:after] + comma + text[after:end] + member + text[end:]


def _take_json(text: str, keys: Sequence[str], name: str) -> str:
    place = _json(text)
    for key in keys:
        place = place.members[key][1]
    start, own = place.members[name]
    before = [value.stop for at, value in place.members.values() if at < start]
    end = _skip(text, own.stop)
    stop = end + 1 if text[end] == "," else own.stop
    if _begins_line(text, start):
        start = text.rindex("\n", 0, start)
        start -= text[start - 1] == "\r"
    elif before:
        start = len(text[:start].rstrip(" \t"))
    if before and text[end] != ",":
        comma = text.index(",", _skip(text, before[-1]))
        return text[:comma] + text[comma + 1 : start] + text[stop:]
    if len(place.members) == 1 and not (text[place.start + 1 : start] + text[stop : place.stop - 1]).strip():
        return text[: place.start + 1] + text[place.stop - 1 :]
    return text[:start] + text[stop:]


def _indent(text: str, at: int) -> str:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _begins_line(text: str, at: int) -> bool:
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return "\n" in text[:at] and not line.strip()


# TOML, where an entry is a table at the end, and YAML, where it is the first of a map: whole lines.


def _put_lines(form: str, text: str, keys: Sequence[str], name: str, entry: Entry, without: Any) -> str:
    end, lines = "\r\n" if "\r\n" in text else "\n", text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += end
    place = _span(form, lines, name, without) if name in _servers(_read(form, text), keys) else None
    if form == "toml":
        way = ".".join(map(_toml_key, [*keys, name]))
        block = [f"[{way}]", *(f"{_toml_key(key)} = {_toml(value)}" for key, value in entry.items())]
        block = ["", *block] if lines and place is None else block
        start, stop = place or (len(lines), len(lines))
    else:
        at = next((k for k, line in enumerate(lines) if line.startswith(f"{keys[0]}:")), len(lines))
        lines[at : at + 1] = [f"{keys[0]}:{end}"] if at == len(lines) or "{}" in lines[at] else [lines[at]]
        below = (line for line in lines[at + 1 :] if line.strip() and not line.lstrip().startswith("#"))
        indent = _indent(first := next(below, ""), len(first)) or "  "
        dumped = yaml.safe_dump({name: dict(entry)}, sort_keys=False, allow_unicode=True, width=10_000)
        block = [f"{indent}{line}" for line in dumped.splitlines()]
        start, stop = place or (at + 1, at + 1)
    return "".join([*lines[:start], *(f"{line}{end}" for line in block), *lines[stop:]])


def _span(form: str, lines: Sequence[str], name: str, without: Any) -> tuple[int, int]:
    """The lines of an entry: the first without which the rest says what it said."""
    wanted = _emptied(without)
    for start in (k for k, line in enumerate(lines) if name in line and not line.lstrip().startswith("#")):
        for stop in range(start + 1, len(lines) + 1):
            with suppress(Unreadable):
                if _emptied(_read(form, "".join([*lines[:start], *lines[stop:]]))) == wanted:
                    return start, stop
    raise Unreadable(_FOREIGN, hint="Change it in an editor.")


def _toml_key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _toml(key)


def _toml(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_toml_key(key)} = {_toml(each)}" for key, each in value.items()) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
