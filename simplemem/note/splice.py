"""The edits that change one entry of a header, and values as they are written in it. Pure.

An edit is a span of the text and what takes its place; nothing outside the entry it is meant for is touched. What the edits
add up to is checked by `properties.py`, which reads the result again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

import yaml

from simplemem.errors import Invalid, TooLong, Unreadable
from simplemem.note.diff import changes, matches
from simplemem.note.header import DIGIT_LIMIT, SURROGATE, Header, Node, core_value, same, skip_blanks

_KEY_LIMIT: Final = 500  # libyaml looks 1,024 characters ahead for the colon of a key

Edit = tuple[int, int, str]  # replace text[start:end]


class EntryPlace(NamedTuple):
    """Where one entry of a map stands."""

    begins: int  # its key, or the `?` before it
    key: Node
    value: Node
    colon: int  # behind the colon, or -1 when it has none (`? key` and `{key}` may lack it)
    indent: int
    newline: str


# ------------------------------------------------------------------ places in the text

LOOSE_LINES: Final = re.compile(r"(?:[ \t]*+(?:\r\n|\r|\n)|[ \t]++#[^\r\n]*+(?:\r\n|\r|\n))*+")
BLANK_LINES: Final = re.compile(r"(?:[ \t]*+(?:\r\n|\r|\n))*+")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_KEEPS_LINES: Final = re.compile(r"[|>][1-9]?\+")


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> tuple[int, int]:
    """Where the line ends, and where the next begins."""
    found = _LINE_END.search(text, at)
    return found.span() if found else (len(text), len(text))


def _newline_at(text: str, at: int) -> str:
    end, following = _line_end(text, at)
    return text[end:following] or "\n"


def find_place(text: str, node: Node, name: str) -> EntryPlace:
    """Where the entry of this name stands in a map that has it."""
    return _place_at(text, node, list(node.value).index(name))


def _place_at(text: str, node: Node, number: int) -> EntryPlace:
    key, value = node.children[2 * number], node.children[2 * number + 1]
    if node.style == "{":
        begins = key.start
    elif number == 0:
        begins = node.content
    else:
        begins = skip_blanks(text, node.children[2 * number - 1].end, key.start)
    colon = skip_blanks(text, key.end, value.start)
    colon = colon + 1 if text[colon : colon + 1] == ":" else -1
    return EntryPlace(begins, key, value, colon, begins - _line_start(text, begins), _newline_at(text, begins))


def lines_of(text: str, begins: int, value: Node) -> tuple[int, int]:
    """The lines that are one entry or item and nothing else. The blank lines below `|+` are part of its text."""
    start = _line_start(text, begins)
    if text[start:begins].strip(" "):
        raise Unreadable("A property does not begin a line.", hint="Give it a line of its own in an editor.")
    after = _line_end(text, value.end)[1]
    if value.style in ("|", ">") and _KEEPS_LINES.match(text, value.content):
        after = BLANK_LINES.match(text, after).end()  # type: ignore[union-attr]
    return start, after


# ------------------------------------------------------------------ a value into its place


def add_property(text: str, header: Header, key: str, value: Any) -> str:
    """A text with one more property: at the end of its header, indented as that is, or in a header made for it."""
    if header.style == "none":
        bom = 1 if text.startswith("\ufeff") else 0
        return text[:bom] + _newline_at(text, 0).join(["---", *render_property(key, value), "---", text[bom:]])
    at = header.end
    newline = "\r\n" if text[at - 2 : at] == "\r\n" else text[at - 1]
    indent = _place_at(text, header.root, 0).indent if header.root is not None and header.root.children else 0
    return text[:at] + "".join(line + newline for line in render_property(key, value, indent)) + text[at:]


def change_property(text: str, root: Node, name: str, value: Any) -> str:
    """A text with another value for a property it has."""
    pieces = []
    kept = 0
    for start, end, new in sorted(_set(text, find_place(text, root, name), value)):
        pieces += [text[kept:start], new]
        kept = end
    return "".join([*pieces, text[kept:]])


def _set(text: str, place: EntryPlace, value: Any) -> list[Edit]:
    """Give an entry of a block map another value. Its quotes stay where they fit, and so do the comments beside it."""
    old = place.value
    if value and old.children and type(value) is type(old.value):
        edits = _change_inside(text, place, value)
        if edits is not None:
            return edits
    inline = _inline(value, old.style)
    if old.style == "{" and isinstance(value, dict):
        inline = "{" + ", ".join(_flow_pair(name, entry) for name, entry in value.items()) + "}"
    if place.colon < 0 or place.begins != place.key.start:
        # `? key` on lines of its own: the whole entry is written anew as `key: value`.
        written = place.newline.join(render_property(place.key.value, value, place.indent))
        return [(place.begins, _line_end(text, old.end)[0], written.lstrip(" "))]
    gap = text[place.colon : old.start]
    below = _LINE_END.search(gap)
    line_end = _line_end(text, old.end)[0]
    if inline is not None and below is None:
        return [(place.colon if not inline else old.start, old.end, inline if gap or not inline else " " + inline)]
    # What follows the value, or the colon of a value that begins further down, is a comment, and it stays.
    comment = (gap[: below.start()] if below else text[old.end : line_end]).rstrip(" \t")
    if inline is not None:
        return [(place.colon, line_end, f" {inline}".rstrip(" ") + comment)]
    return [(place.colon, line_end, place.newline.join([comment, *_block_lines(value, place.indent)]))]


def _change_inside(text: str, place: EntryPlace, wanted: list[Any] | dict[str, Any]) -> list[Edit] | None:
    """Only what differs between the list or map there is and the one wanted: items by what they say, entries by their
    names. None when lines cannot say it."""
    node, flow = place.value, place.value.style in ("[", "{")
    edits: list[Edit] = []
    if isinstance(wanted, dict):
        ends, lead = node.children[1::2], ""
        begins = [_place_at(text, node, number).begins for number in range(len(ends))]
        spans = [(key.start, value.end) for key, value in node.pairs()]
        old, new, values = list(node.value), list(wanted), list(wanted.values())
        for number, match in enumerate(matches(old, new)):
            if match >= 0 and not same(node.value[old[number]], values[match]):
                entry, value = _place_at(text, node, number), values[match]
                if not flow:
                    edits += _set(text, entry, value)
                elif entry.value.end > entry.value.start:
                    edits.append(
                        (entry.value.start, entry.value.end, write_scalar(value, entry.value.style, flow=True))
                    )
                else:
                    edits.append((entry.key.end, entry.value.end, ": " + write_scalar(value, flow=True)))
    else:
        ends = node.children
        begins = [node.content, *(skip_blanks(text, one.end, two.start) for one, two in pairwise(ends))]
        spans = [(item.start, item.end) for item in ends]
        old, new, values = list(map(repr, node.value)), list(map(repr, wanted)), wanted
        space = text[begins[0] + 1 : ends[0].start]
        lead = "-" + (space if space and not space.strip(" ") else " ")
    for start, stop, first, last in changes(old, new):
        items: tuple[Node, ...] = ()
        if isinstance(wanted, dict):
            texts = [(_flow_pair if flow else _block_pair)(name, wanted[name]) for name in new[first:last]]
        else:
            items, texts = ends[start:stop], [write_scalar(value, flow=flow) for value in values[first:last]]
        # Where one text takes the place of another, its line stays, and so does the comment on it.
        if all(item.style in ("", "'", '"') and item.end > item.start for item in items):
            for item, value in zip(items, values[first:last], strict=False):
                edits.append((item.start, item.end, write_scalar(value, item.style, flow=flow)))
                start, texts = start + 1, texts[1:]
        if flow:
            edits += [_change_flow(spans, start, stop, texts)] if start < stop or texts else []
            continue
        if any(text[_line_start(text, at) : at].strip(" ") for at in begins):
            return None
        edits += [(*lines_of(text, begins[at], ends[at]), "") for at in range(start, stop)]
        top = _line_start(text, begins[0])
        where = lines_of(text, begins[start - 1], ends[start - 1])[1] if start else top
        mark = text[top : begins[0]] + lead
        edits += [(where, where, "".join(mark + each + place.newline for each in texts))] if texts else []
    return edits


def _change_flow(spans: list[tuple[int, int]], head: int, stop: int, new: list[str]) -> Edit:
    """Put `new` where items head to stop stand, with the commas that go with them."""
    if stop < len(spans):
        return spans[head][0], spans[stop][0], "".join(item + ", " for item in new)
    if head > 0:
        return spans[head - 1][1], spans[stop - 1][1], "".join(", " + item for item in new)
    return spans[0][0], spans[-1][1], ", ".join(new)


# ------------------------------------------------------------------ lines and values as they are written
# What is written reads back equal under YAML 1.2 core, and means the same to readers of YAML 1.1 (PyYAML, Ruby) where
# quotes can buy that: `yes`, `12:30` and `010` get quotes, ISO dates stay bare as Obsidian writes them.


def render_property(key: str, value: Any, indent: int = 0) -> list[str]:
    """The lines of one property; the items of a list stand two further in, as Obsidian writes them."""
    name = " " * indent + _write_key(key) + ":"
    inline = _inline(value)
    return [name, *_block_lines(value, indent)] if inline is None else [f"{name} {inline}".rstrip(" ")]


def _inline(value: Any, style: str = "") -> str | None:
    """A value that fits on the line of its key, None when it is a list or map with something in it."""
    if isinstance(value, (list, dict)):
        return None if value else "[]" if isinstance(value, list) else "{}"
    return "" if value is None else write_scalar(value, style)


def _block_lines(value: Any, indent: int) -> list[str]:
    inside = " " * (indent + 2)
    if isinstance(value, list):
        return [f"{inside}- {write_scalar(item)}" for item in value]
    return [inside + _block_pair(name, entry) for name, entry in value.items()]


def _block_pair(name: str, value: Any) -> str:
    return f"{_write_key(name)}: {write_scalar(value)}"


def _flow_pair(name: str, value: Any) -> str:
    return f"{write_text(name, flow=True)}: {write_scalar(value, flow=True)}"


# What some parser takes for the end of a line or a byte order mark, or refuses: only written as an escape.
_UNWRITABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
_FIRST: Final = frozenset("-?:,[]{}#&*!|>'\"%@`=")
_BETWEEN: Final = re.compile(r":\s|\s#|:$")
_FLOW_INSIDE: Final = re.compile(r"[,\[\]{}]|:\S")
_ISO_DATE: Final = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,6})?)?(?:Z|[-+][0-9]{2}:[0-9]{2})?)?"
)
# What YAML 1.1 takes for something else than text, beside what PyYAML knows of: words in any case and short dates (Ruby).
_OLD_WORDS: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_OLD_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?")
_ESCAPES: Final = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r", "\0": "\\0"}
_TO_ESCAPE: Final = re.compile('[\\\\"]|' + _UNWRITABLE.pattern)


def is_plain_safe(value: str, *, flow: bool = False) -> bool:
    """Whether this text may stand without quotes, and still be this text for every reader."""
    if not value or value != value.strip() or value[0] in _FIRST:
        return False
    if _UNWRITABLE.search(value) or _BETWEEN.search(value) or (flow and _FLOW_INSIDE.search(value)):
        return False
    if not isinstance(core_value(value), str) or value.startswith("...") or value.lower() in _OLD_WORDS:
        return False
    if _ISO_DATE.fullmatch(value):
        try:  # one that is not on the calendar makes PyYAML raise
            return bool(datetime.fromisoformat(value))
        except ValueError:
            return False
    old = yaml.SafeLoader.yaml_implicit_resolvers.get(value[0], ())
    return not (_OLD_DATE.fullmatch(value) or any(pattern.match(value) for _, pattern in old))


def write_text(value: str, style: str = "", *, flow: bool = False) -> str:
    """A text in the quotes of what it replaces ("", "'" or '"'), escaped in double ones where it must be."""
    if half := SURROGATE.search(value):
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
    code = ord(found[0])
    return _ESCAPES.get(found[0]) or (f"\\x{code:02X}" if code < 0x100 else f"\\u{code:04X}")


def _write_key(key: str) -> str:
    """A property's name. Names are one line, and short enough for every parser to see the colon."""
    if len(key) > _KEY_LIMIT:
        raise TooLong(
            f"The property name {key[:40]!r}... is longer than {_KEY_LIMIT} characters.", hint="Use a shorter one."
        )
    if not key or key != key.strip() or _UNWRITABLE.search(key):
        raise Invalid(
            f"{key!r} cannot be the name of a property.",
            hint="Use one line of text without control characters or spaces around it.",
        )
    return write_text(key, flow=":" in key or "," in key)


def write_scalar(value: Any, style: str = "", *, flow: bool = False) -> str:
    """One plain value. None is written as `null`; a caller that may leave the place empty does so itself."""
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, int):
        if abs(value) >= 10 ** (DIGIT_LIMIT - 1):
            raise TooLong(f"A number has more than {DIGIT_LIMIT:,} digits.", hint="Write it as text.")
        return str(int(value))
    if isinstance(value, float):
        if not math.isfinite(value):
            return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
        mantissa, exponent, power = repr(value).partition("e")
        # YAML 1.1 takes 1e+16 for text: it wants the dot.
        return mantissa + (".0" if exponent and "." not in mantissa else "") + exponent + power
    if isinstance(value, str):
        return write_text(value, style, flow=flow)
    raise Invalid(
        f"A value of type {type(value).__name__} cannot stand in a property here.",
        hint="Use text, numbers, true, false or null, and lists of these.",
    )


def clean_value(value: Any, there: Any = None) -> Any:
    """The value as it will read back: a scalar, a list of them or a flat map. Invalid for anything else.

    `there` is what stands in the note: an item or entry of it may stay, whatever it is.
    """
    kept = there.values() if isinstance(there, dict) else there if isinstance(there, list) else ()
    nested = [one for one in kept if isinstance(one, (list, dict))]

    def clean(inner: Any) -> Any:
        return inner if any(same(inner, one) for one in nested) else _clean_scalar(inner)

    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise Invalid("The entries of a property must have names that are text.", hint="Quote the names.")
        return {key: clean(entry) for key, entry in value.items()}
    return [clean(item) for item in value] if isinstance(value, (list, tuple)) else _clean_scalar(value)


def _clean_scalar(value: Any) -> Any:
    if isinstance(value, (list, tuple, Mapping)):
        raise Invalid(
            "A property cannot hold lists or maps inside lists or maps.",
            hint="Keep properties flat: text, numbers, true, false, null, and lists of these.",
        )
    write_scalar(value)
    return str.__str__(value) if isinstance(value, str) else value  # an enum's member reads back as its text
