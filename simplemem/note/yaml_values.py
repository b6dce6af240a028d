"""YAML 1.2 core values of a header: read with their places in the text, and single ones written. Pure."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final, NamedTuple

import yaml

from simplemem.errors import Invalid, TooLong

HEADER_LIMIT: Final = 256 * 1024  # characters; real headers are under 2,000
DEPTH_LIMIT: Final = 16
VALUE_LIMIT: Final = 20_000  # scalars and collections
DIGIT_LIMIT: Final = 3_000  # Python refuses to convert numbers of more than 4,300 digits; longer ones stay text

_LOADER: Final[Any] = getattr(yaml, "CLoader", yaml.Loader)


class RefusedError(Exception):
    """This YAML is not a header we can stand behind: why, and at which character of the whole text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset


class Node(NamedTuple):
    """One value as it stands in the text. Offsets count characters of the whole note."""

    style: str  # "" plain, "'", '"', "|", ">": a scalar; "-" and "[": a list; ":" and "{": a map
    value: Any
    start: int  # of its tag when it has one
    content: int  # of the value itself
    end: int  # a block scalar ends with its last line, without the line break
    children: tuple[Node, ...]  # the items of a list; key, value, key, value ... of a map


class Document(NamedTuple):
    root: Node | None  # None when there are only comments and blanks
    end: int  # where the content ends: a "..." line, or the end of the header


def core_value(text: str) -> Any:
    """What a plain scalar means in YAML 1.2 core (obsidian.md §0.6), where dates, yes and 12:30 are text."""
    if not text:
        return None
    if text[0] not in _CORE_FIRST:
        return text
    if text in _CORE_WORDS:
        return _CORE_WORDS[text]
    if len(text) <= DIGIT_LIMIT:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _BASED.fullmatch(text):
            return int(text[2:], 8 if text[1] == "o" else 16)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text


_CORE_FIRST: Final = frozenset("~nNtTfF+-.0123456789")
_CORE_WORDS: Final[dict[str, Any]] = (
    dict.fromkeys(("~", "null", "Null", "NULL"))
    | dict.fromkeys(("true", "True", "TRUE"), True)
    | dict.fromkeys(("false", "False", "FALSE"), False)
    | {f"{sign}{word}": float(f"{sign}inf") for sign in ("", "+", "-") for word in (".inf", ".Inf", ".INF")}
    | dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan"))
)
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_BASED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")


def read_yaml(text: str, start: int, end: int) -> Document:
    """Read text[start:end] as one YAML document. Raises RefusedError, and nothing else."""
    if end - start > HEADER_LIMIT:
        raise RefusedError(f"it is longer than {HEADER_LIMIT // 1024} kB", start)
    source, stand_ins = _with_stand_ins(text[start:end], start)
    return _Reading(text, start, end, stand_ins).document(source)


def read_json(text: str, start: int, end: int) -> dict[str, Any] | None:
    """The JSON object that text[start:end] is, or None. Obsidian reads such headers (obsidian.md §3.1)."""
    if end - start > HEADER_LIMIT:
        return None
    try:
        found = json.loads(
            text[start:end],
            parse_int=lambda digits: int(digits) if len(digits) <= DIGIT_LIMIT else digits,
            parse_constant=_not_json,
            object_pairs_hook=_without_repeats,
        )
        json.dumps(found, ensure_ascii=False).encode()  # an escaped half of a character could not be stored
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and not _is_deeper(found, DEPTH_LIMIT) else None


def _not_json(word: str) -> Any:
    raise ValueError(word)


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("repeated key")
    return found


def _is_deeper(value: Any, levels: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return inner is not None and (levels == 0 or any(_is_deeper(item, levels - 1) for item in inner))


# libyaml follows YAML 1.1: NEL, LS and PS end a line for it, and controls are errors. For YAML 1.2 and for
# Obsidian they are ordinary characters. Each is replaced, one for one so that offsets stay, by one that the
# text lacks.
_STRANGE: Final = re.compile("[\x01-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_IMPOSSIBLE: Final = re.compile("[\x00\ud800-\udfff]")
_SURROGATE: Final = re.compile("[\ud800-\udfff]")


def _with_stand_ins(source: str, base: int) -> tuple[str, dict[int, str]]:
    impossible = _IMPOSSIBLE.search(source)
    if impossible:
        raise RefusedError(f"it holds the character U+{ord(impossible[0]):04X}", base + impossible.start())
    strange = set(_STRANGE.findall(source))
    if not strange:
        return source, {}
    lowered = source.lower()
    spare = (c for c in range(0xF0000, 0xFFFFE) if chr(c) not in source and f"{c:08x}" not in lowered)
    stand_ins = {ord(character): next(spare) for character in strange}
    return source.translate(stand_ins), {new: chr(old) for old, new in stand_ins.items()}


class _Reading:
    """One pass over the events of one header."""

    def __init__(self, text: str, base: int, end: int, stand_ins: dict[int, str]) -> None:
        self.text = text
        self.base = base
        self.end = end
        self.stand_ins = stand_ins
        self.values = 0

    def document(self, source: str) -> Document:
        events: Any = yaml.parse(source, Loader=_LOADER)
        try:
            return self._document(events)
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            said = ", ".join(part for part in (error.problem, error.context) if part)
            raise RefusedError(said, self.base + (mark.index if mark else 0)) from None
        except (yaml.YAMLError, UnicodeError) as error:
            raise RefusedError(str(error).split("\n", 1)[0], self.base) from None
        finally:
            events.close()

    def _document(self, events: Iterator[Any]) -> Document:
        root: Node | None = None
        end = self.end
        documents = 0
        for event in events:
            kind = type(event)
            if kind is yaml.DocumentStartEvent:
                documents += 1
                if documents > 1:
                    raise RefusedError("a second YAML document begins", self.base + event.start_mark.index)
            elif kind is yaml.DocumentEndEvent:
                if event.explicit:
                    end = self.base + event.start_mark.index
            elif kind is not yaml.StreamStartEvent and kind is not yaml.StreamEndEvent:
                root = self._node(event, events, DEPTH_LIMIT)
        return Document(root, end)

    def _node(self, event: Any, events: Iterator[Any], levels: int) -> Node:
        start = self.base + event.start_mark.index
        self.values += 1
        if self.values > VALUE_LIMIT:
            raise RefusedError(f"it has more than {VALUE_LIMIT:,} values", start)
        if event.anchor is not None:
            raise RefusedError("anchors (&) and aliases (*) are not read", start)
        kind = type(event)
        if kind is yaml.ScalarEvent:
            return self._scalar(event, start)
        if levels == 0:
            raise RefusedError(f"it is nested more than {DEPTH_LIMIT} deep", start)
        content = start if event.tag is None else self._after_tag(start, self.end)
        if kind is yaml.SequenceStartEvent:
            return self._list(event, events, levels, start, content)
        return self._map(event, events, levels, start, content)

    def _scalar(self, event: Any, start: int) -> Node:
        style = event.style or ""
        value = event.value
        end = self.base + event.end_mark.index
        content = start if event.tag is None else self._after_tag(start, end)
        if self.stand_ins:
            value = value.translate(self.stand_ins)
        if style == "":
            # A foreign tag says nothing to us: the value is read as without it. !!str and ! ask for text.
            if event.tag is None or not (event.tag == "!" or event.tag.endswith(":str")):
                value = core_value(value)
        elif style in "|>":
            # Blank lines below it stay when it changes, unless the text itself ends with spaces.
            blanks = "\r\n" if value.rstrip("\n").endswith((" ", "\t")) else " \t\r\n"
            end = content + len(self.text[content:end].rstrip(blanks))
        elif style == '"' and _SURROGATE.search(value):
            raise RefusedError("it holds half of a character", content)
        return Node(style, value, start, content, end, ())

    def _list(self, event: Any, events: Iterator[Any], levels: int, start: int, content: int) -> Node:
        items: list[Node] = []
        for inner in events:
            if type(inner) is yaml.SequenceEndEvent:
                break
            items.append(self._node(inner, events, levels - 1))
        end = self.base + inner.end_mark.index if event.flow_style else items[-1].end
        style = "[" if event.flow_style else "-"
        return Node(style, [item.value for item in items], start, content, end, tuple(items))

    def _map(self, event: Any, events: Iterator[Any], levels: int, start: int, content: int) -> Node:
        nodes: list[Node] = []
        found: dict[str, Any] = {}
        for inner in events:
            if type(inner) is yaml.MappingEndEvent:
                break
            at = self.base + inner.start_mark.index
            if type(inner) is not yaml.ScalarEvent or inner.anchor is not None:
                raise RefusedError("a key that is not plain text (a {{placeholder}} needs quotes)", at)
            key = inner.value.translate(self.stand_ins) if self.stand_ins else inner.value
            if key in found:
                # obsidian.md §3.1: a repeated key means no properties at all.
                raise RefusedError("a key is there twice", at)  # unnamed: this is said among our own words
            name = self._node(inner, events, levels - 1)._replace(value=key)
            value = self._node(next(events), events, levels - 1)
            if value.start == value.end and not event.flow_style:
                # libyaml puts the empty value of a `? key` where the next thing begins, lines further down.
                at = skip_blanks(self.text, name.end, value.start)
                at = at + 1 if at < value.start and self.text[at] == ":" else name.end
                value = value._replace(start=at, content=at, end=at)
            nodes += [name, value]
            found[key] = value.value
        # `[a: b]` is a map without braces inside a flow list: it ends with its value.
        in_braces = bool(event.flow_style) and self.text[content : content + 1] == "{"
        end = self.base + inner.end_mark.index if in_braces else nodes[-1].end if nodes else content
        return Node("{" if event.flow_style else ":", found, start, content, end, tuple(nodes))

    def _after_tag(self, start: int, end: int) -> int:
        """Where the value begins whose `!tag` begins at `start`; `end` when it is empty."""
        return skip_blanks(self.text, _WORD.match(self.text, start, end).end(), end)  # type: ignore[union-attr]


_WORD: Final = re.compile(r"[^ \t\r\n]*")
_BLANKS: Final = re.compile(r"(?:[ \t\r\n]+|(?<![^ \t\r\n])#[^\r\n]*)*+")


def skip_blanks(text: str, at: int, end: int) -> int:
    """The first place from `at` on, below `end`, that is neither white space nor comment."""
    return _BLANKS.match(text, at, end).end()  # type: ignore[union-attr]


_MOST_CHARACTERS: Final = 8_000
# Nothing that begins or ends something in YAML: no tabs, no hash, a colon only where it is part of a word.
_PLAIN_INSIDE: Final = r"\w ./+(),&!?=;@\[\]{}|%~^$*<>\-"
_PLAIN: Final = rf"\w(?:[{_PLAIN_INSIDE}'\"]|:(?=\S))*+"
_VALUE: Final = rf"(?:(\"[{_PLAIN_INSIDE}':#]*+\"|'[{_PLAIN_INSIDE}\":#]*+') *|({_PLAIN}))"
_ENTRY: Final = re.compile(rf"(\w(?:[\w-]| (?=[\w-])){{0,99}}):(?: *| +{_VALUE})\n")
_ITEM: Final = re.compile(rf"( *)(-) +{_VALUE}\n")


def read_plain_yaml(text: str, start: int, end: int) -> Document | None:
    """text[start:end] as one block map of texts and lists of texts, or None where it may be more than that."""
    if end - start > _MOST_CHARACTERS:
        return None
    nodes: list[Node] = []
    at = start
    while at < end:
        found = _ENTRY.match(text, at, end)
        if found is None:
            return None
        key_end = found.end(1)
        nodes.append(Node("", found[1], at, at, key_end, ()))
        at = found.end()
        if found.lastindex != 1:
            nodes.append(_scalar(found))
        elif (items := _items(text, at, end)) is not None:
            dash, children, at = items
            values = [item.value for item in children]
            nodes.append(Node("-", values, dash, dash, children[-1].end, tuple(children)))
        else:
            nodes.append(Node("", None, key_end + 1, key_end + 1, key_end + 1, ()))
    if not nodes:
        return None
    properties = {key.value: value.value for key, value in zip(nodes[::2], nodes[1::2], strict=True)}
    if 2 * len(properties) != len(nodes):
        return None  # a key is there twice: the full reader says where
    return Document(Node(":", properties, start, start, nodes[-1].end, tuple(nodes)), end)


def _items(text: str, at: int, end: int) -> tuple[int, list[Node], int] | None:
    """The list that begins here: its first dash, its items, and where the next line begins; None when none does."""
    found = _ITEM.match(text, at, end)
    if found is None:
        return None
    dash, indent = found.start(2), found[1]
    items: list[Node] = []
    while found is not None and found[1] == indent:
        items.append(_scalar(found))
        at = found.end()
        found = _ITEM.match(text, at, end)
    return dash, items, at


def _scalar(found: re.Match[str]) -> Node:
    group = found.lastindex or 0
    start, end = found.span(group)
    written = found[group]
    if written[0] in "\"'":
        return Node(written[0], written[1:-1], start, start, end, ())
    plain = written.rstrip(" ")
    return Node("", core_value(plain), start, start, start + len(plain), ())


KEY_LIMIT: Final = 500  # libyaml looks 1,024 characters ahead for the colon of a key

# What some parser takes for the end of a line or a byte order mark, or refuses: only written as an escape.
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_FIRST: Final = frozenset("-?:,[]{}#&*!|>'\"%@`=")
_INSIDE: Final = re.compile(r":\s|\s#|:$")
_FLOW_INSIDE: Final = re.compile(r"[,\[\]{}]|:\S")
_ISO_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
# What YAML 1.1 would take for something else than text; its words in any case, which is more than it says.
_OLD_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null", "~", "<<", "..."))
_OLD_NUMBER: Final = re.compile(
    r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|[0-9][0-9_]*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?|\.[0-9_]+(?:[eE][-+]?[0-9]+)?"
    r"|[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?|\.(?:inf|nan))",
    re.IGNORECASE,
)
_OLD_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")
_LARGEST: Final = 10 ** (DIGIT_LIMIT - 1)
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_TO_ESCAPE: Final = re.compile('[\\\\"]|' + _UNWRITABLE.pattern)


def is_plain_safe(value: str, *, flow: bool = False) -> bool:
    """Whether this text may stand without quotes, and still be this text for every reader."""
    if not value or value != value.strip() or value[0] in _FIRST:
        return False
    if _UNWRITABLE.search(value) or _INSIDE.search(value) or (flow and _FLOW_INSIDE.search(value)):
        return False
    if not isinstance(core_value(value), str) or value.lower() in _OLD_WORDS or _OLD_NUMBER.fullmatch(value):
        return False
    return not value.startswith("...") and (_is_date(value) or not _OLD_DATE.fullmatch(value))


def _is_date(value: str) -> bool:
    """A date or date-time in the form Obsidian writes, and on the calendar: others make PyYAML raise."""
    if not _ISO_DATE.fullmatch(value):
        return False
    try:
        datetime.fromisoformat(value)
    except ValueError:
        return False
    return True


def write_text(value: str, style: str = "", *, flow: bool = False) -> str:
    """A text in the quotes of what it replaces ("", "'" or '"'), escaped in double ones where it must be."""
    half = _SURROGATE.search(value)
    if half:
        raise Invalid(
            f"A text holds half of a character (U+{ord(half[0]):04X}), which no file can hold.",
            hint="Send the text again as valid Unicode.",
        )
    if style == "'" and not _UNWRITABLE.search(value):
        return "'" + value.replace("'", "''") + "'"
    if style != '"' and is_plain_safe(value, flow=flow):
        return value
    return '"' + _TO_ESCAPE.sub(_escape, value) + '"'


def _escape(found: re.Match[str]) -> str:
    character = found[0]
    code = ord(character)
    return _ESCAPES.get(character) or (f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}")


def write_key(key: str) -> str:
    """A property's name. Names are one line, and short enough for every parser to see the colon."""
    if len(key) > KEY_LIMIT:
        raise TooLong(
            f"The property name {key[:40]!r}... is longer than {KEY_LIMIT} characters.",
            hint="Use a shorter one.",
        )
    if not key or key != key.strip() or _UNWRITABLE.search(key):
        raise Invalid(
            f"{key!r} cannot be the name of a property.",
            hint="Use one line of text without control characters or spaces around it.",
        )
    return write_text(key, flow=":" in key or "," in key)


def write_scalar(value: Any, style: str = "", *, flow: bool = False) -> str:
    """One plain value. None is written as `null`; a caller that may leave the place empty does so itself."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if abs(value) >= _LARGEST:
            raise TooLong(f"A number has more than {DIGIT_LIMIT:,} digits.", hint="Write it as text.")
        return str(int(value))
    if isinstance(value, float):
        return _write_float(value)
    if isinstance(value, str):
        return write_text(value, style, flow=flow)
    raise Invalid(
        f"A value of type {type(value).__name__} cannot stand in a property here.",
        hint="Use text, numbers, true, false or null, and lists of these.",
    )


def _write_float(value: float) -> str:
    if math.isnan(value):
        return ".nan"
    if math.isinf(value):
        return ".inf" if value > 0 else "-.inf"
    mantissa, exponent, power = repr(value).partition("e")
    # YAML 1.1 takes 1e+16 for text: it wants the dot.
    return mantissa + (".0" if exponent and "." not in mantissa else "") + exponent + power


def clean_value(value: Any, there: Any = None) -> Any:
    """The value as it will read back: a scalar, a list of them or a flat dict. Invalid for anything else.

    `there` is the list that stands in the note: what is in it may stay, whatever it is.
    """
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise Invalid("The entries of a property must have names that are text.", hint="Quote the names.")
        return {key: _clean_scalar(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        nested = [one for one in there if isinstance(one, (list, dict))] if isinstance(there, list) else []
        return [item if any(same(item, one) for one in nested) else _clean_scalar(item) for item in value]
    return _clean_scalar(value)


def _clean_scalar(value: Any) -> Any:
    if isinstance(value, (list, tuple, Mapping)):
        raise Invalid(
            "A property cannot hold lists or maps inside lists or maps.",
            hint="Keep properties flat: text, numbers, true, false, null, and lists of these.",
        )
    write_scalar(value)
    return str.__str__(value) if isinstance(value, str) else value  # an enum's member reads back as its text


def same(one: Any, other: Any) -> bool:
    """Equal as YAML values: 1, 1.0 and true differ, .nan equals itself, the order of keys counts."""
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, dict):
        return list(one) == list(other) and all(map(same, one.values(), other.values()))
    if isinstance(one, float):
        return repr(one) == repr(other)
    return bool(one == other)
