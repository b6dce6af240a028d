"""The edits that change one entry of a header, and values as they are written in it. Pure.

An edit is a span of the text and what takes its place; nothing outside the entry it is meant for is touched. What the edits
add up to is checked by `properties.py`, which reads the result again.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, NamedTuple

import yaml

from simplemem.errors import Invalid, TooLong, Unreadable
from simplemem.note.header import DIGIT_LIMIT, SURROGATE, Header, Node, core_value, same, skip_blanks

STEP: Final = 2  # Obsidian indents lists by two spaces
KEY_LIMIT: Final = 500  # libyaml looks 1,024 characters ahead for the colon of a key

Edit = tuple[int, int, str]  # replace text[start:end]


class Place(NamedTuple):
    """Where one entry of a map stands."""

    begins: int  # its key, or the `?` before it
    key: Node
    value: Node
    colon: int  # behind the colon, or -1 when it has none (`? key` and `{key}` may lack it)
    indent: int
    newline: str


def apply(text: str, edits: Sequence[Edit]) -> str:
    """A text with these edits made, which must not overlap."""
    pieces = []
    kept = 0
    for start, end, new in sorted(edits):
        pieces += [text[kept:start], new]
        kept = end
    return "".join([*pieces, text[kept:]])


# ------------------------------------------------------------------ places in the text

LOOSE_LINES: Final = re.compile(r"(?:[ \t]*+(?:\r\n|\r|\n)|[ \t]++#[^\r\n]*+(?:\r\n|\r|\n))*+")
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_KEEPS_LINES: Final = re.compile(r"[|>][1-9]?\+")
BLANK_LINES: Final = re.compile(r"(?:[ \t]*+(?:\r\n|\r|\n))*+")


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> tuple[int, int]:
    """Where the line ends, and where the next begins."""
    found = _LINE_END.search(text, at)
    return found.span() if found else (len(text), len(text))


def _newline_at(text: str, at: int) -> str:
    end, following = _line_end(text, at)
    return text[end:following] or "\n"


def find_place(text: str, node: Node, name: str) -> Place:
    """Where the entry of this name stands in a map that has it."""
    return _place_at(text, node, list(node.value).index(name))


def _place_at(text: str, node: Node, number: int) -> Place:
    key, value = node.children[2 * number], node.children[2 * number + 1]
    if node.style == "{":
        begins = key.start
    elif number == 0:
        begins = node.content
    else:
        begins = skip_blanks(text, node.children[2 * number - 1].end, key.start)
    colon = skip_blanks(text, key.end, value.start)
    colon = colon + 1 if text[colon : colon + 1] == ":" else -1
    return Place(begins, key, value, colon, begins - _line_start(text, begins), _newline_at(text, begins))


def lines_of(text: str, begins: int, value: Node) -> tuple[int, int]:
    """The lines that are one entry or item and nothing else. The blank lines below `|+` are part of its text."""
    start = _line_start(text, begins)
    if text[start:begins].strip(" "):
        raise Unreadable("A property does not begin a line.", hint="Give it a line of its own in an editor.")
    after = _line_end(text, value.end)[1]
    if value.style in ("|", ">") and _KEEPS_LINES.match(text, value.content):
        after = BLANK_LINES.match(text, after).end()  # type: ignore[union-attr]
    return start, after


def _list_step(text: str, root: Node, name: str) -> int:
    """How far lists are indented: as this one is, else as the header's first one, else as in Obsidian."""
    lists = [key.value for key, value in root.pairs() if value.style == "-"]
    if not lists:
        return STEP
    model = find_place(text, root, name if name in lists else lists[0])
    dash = model.value.content
    return max(dash - _line_start(text, dash) - model.indent, 0)


# ------------------------------------------------------------------ a value into its place


def add_property(text: str, header: Header, key: str, value: Any) -> str:
    """A text with one more property: at the end of its header, indented as that is, or in a header made for it."""
    if header.style == "none":
        bom = 1 if text.startswith("\ufeff") else 0
        return text[:bom] + _newline_at(text, 0).join(["---", *render_property(key, value), "---", text[bom:]])
    at = header.end
    newline = "\r\n" if text[at - 2 : at] == "\r\n" else text[at - 1]
    indent, step = 0, STEP
    if header.root is not None and header.root.children:
        indent = _place_at(text, header.root, 0).indent
        step = _list_step(text, header.root, "")
    return text[:at] + "".join(line + newline for line in render_property(key, value, indent, step)) + text[at:]


def change_property(text: str, root: Node, name: str, value: Any) -> str:
    """A text with another value for a property it has."""
    return apply(text, _set(text, find_place(text, root, name), value, _list_step(text, root, name)))


def _set(text: str, place: Place, value: Any, step: int) -> list[Edit]:
    """Give an entry of a block map another value. Its quotes stay where they fit, and so do the comments beside it."""
    old = place.value
    if value and old.children and type(value) is type(old.value):
        edits = _change_list(text, place, value) if isinstance(value, list) else _change_map(text, place, value)
        if edits is not None:
            return edits
    inline = _inline(value, old.style)
    if old.style == "{" and isinstance(value, dict):
        inline = "{" + ", ".join(_flow_pair(name, entry) for name, entry in value.items()) + "}"
    if place.colon < 0 or place.begins != place.key.start:
        # `? key` on lines of its own: the whole entry is written anew as `key: value`.
        written = place.newline.join(render_property(place.key.value, value, place.indent, step))
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
    return [(place.colon, line_end, place.newline.join([comment, *_block_lines(value, place.indent, step)]))]


def _change_list(text: str, place: Place, wanted: list[Any]) -> list[Edit] | None:
    """Only what differs between the list there is and the one wanted. None when lines cannot say it."""
    node = place.value
    flow = node.style == "["
    gone = _surplus(node.value, wanted)
    if gone is not None:
        return _take_out(text, node, gone)
    head, tail = _alike(node.value, wanted)
    old, new = node.children[head : len(node.value) - tail], wanted[head : len(wanted) - tail]
    edits: list[Edit] = []
    # Where one text takes the place of another, its line stays, and so does the comment on it.
    if all(item.style in ("", "'", '"') and item.end > item.start for item in old):
        edits = [
            (item.start, item.end, write_scalar(value, item.style, flow=flow))
            for item, value in zip(old, new, strict=False)
        ]
    head += len(edits)
    gone = list(range(head, len(node.value) - tail))
    new = new[len(edits) :]
    if flow:
        spans = [(item.start, item.end) for item in node.children]
        written = [write_scalar(value, flow=True) for value in new]
        return [*edits, _change_flow(spans, head, head + len(gone), written)] if gone or new else edits
    taken = _take_out(text, node, gone)
    if taken is None or not new:
        return None if taken is None else edits + taken
    dashes = _beginnings(text, node)
    space = text[dashes[0] + 1 : node.children[0].start]
    start = _line_start(text, dashes[0])
    mark = text[start : dashes[0]] + "-" + (space if space and not space.strip(" ") else " ")
    where = start if head == 0 else lines_of(text, dashes[head - 1], node.children[head - 1])[1]
    return [*edits, *taken, (where, where, "".join(mark + write_scalar(value) + place.newline for value in new))]


def _change_map(text: str, place: Place, wanted: dict[str, Any]) -> list[Edit] | None:
    """Other values for entries of a map, and either some of them taken out or further ones behind them; None for more."""
    node = place.value
    gone = [number for number, name in enumerate(node.value) if name not in wanted]
    kept = [name for name in node.value if name in wanted]
    new = list(wanted)[len(kept) :]
    if list(wanted)[: len(kept)] != kept or (gone and new):
        return None
    edits: list[Edit] = []
    for number, name in enumerate(node.value):
        if name in wanted and not same(node.value[name], wanted[name]):
            entry = _place_at(text, node, number)
            edits += (
                [_set_in_braces(entry, wanted[name])] if node.style == "{" else _set(text, entry, wanted[name], STEP)
            )
    if not new:
        taken = _take_out(text, node, gone) if gone else []
        return None if taken is None else edits + taken
    if node.style == "{":
        spans = _spans(node)
        return [*edits, _change_flow(spans, len(spans), len(spans), [_flow_pair(name, wanted[name]) for name in new])]
    first = _place_at(text, node, 0)
    where = _line_end(text, node.end)[1]
    lines = (f"{' ' * first.indent}{write_key(name)}: {write_scalar(wanted[name])}{first.newline}" for name in new)
    return [*edits, (where, where, "".join(lines))]


def _set_in_braces(place: Place, value: Any) -> Edit:
    old = place.value
    if old.end > old.start:
        return old.start, old.end, write_scalar(value, old.style, flow=True)
    return place.key.end, old.end, ": " + write_scalar(value, flow=True)


def _take_out(text: str, node: Node, gone: list[int]) -> list[Edit] | None:
    """Take some items or entries out of a list or map."""
    if node.style in ("[", "{"):
        runs: list[tuple[int, int]] = []
        for number in gone:
            if runs and runs[-1][1] == number:
                runs[-1] = runs[-1][0], number + 1
            else:
                runs.append((number, number + 1))
        return [_change_flow(_spans(node), *run, []) for run in runs]
    begins, ends = _beginnings(text, node), node.children if node.style == "-" else node.children[1::2]
    if any(text[_line_start(text, at) : at].strip(" ") for at in begins):
        return None
    return [(*lines_of(text, begins[at], ends[at]), "") for at in gone]


def _beginnings(text: str, node: Node) -> list[int]:
    """Where each item or entry of a block begins, with its dash."""
    if node.style == ":":
        return [_place_at(text, node, number).begins for number in range(len(node.value))]
    return [node.content, *(skip_blanks(text, one.end, two.start) for one, two in pairwise(node.children))]


def _spans(node: Node) -> list[tuple[int, int]]:
    """Where the items or entries of a list in brackets or a map in braces stand."""
    if node.style == "{":
        return [(key.start, value.end) for key, value in node.pairs()]
    return [(item.start, item.end) for item in node.children]


def _change_flow(spans: list[tuple[int, int]], head: int, stop: int, new: list[str]) -> Edit:
    """Put `new` where items head to stop stand, with the commas that go with them."""
    if stop < len(spans):
        return spans[head][0], spans[stop][0], "".join(item + ", " for item in new)
    if head > 0:
        return spans[head - 1][1], spans[stop - 1][1], "".join(", " + item for item in new)
    return spans[0][0], spans[-1][1], ", ".join(new)


def _surplus(old: list[Any], wanted: list[Any]) -> list[int] | None:
    """Which items have to go so that the others are what is wanted, None when that does not do it."""
    gone = []
    matched = 0
    for at, item in enumerate(old):
        if matched < len(wanted) and same(item, wanted[matched]):
            matched += 1
        else:
            gone.append(at)
    return gone if matched == len(wanted) else None


def _alike(old: list[Any], wanted: list[Any]) -> tuple[int, int]:
    """With how many equal items two lists begin, and with how many of the rest they end."""
    shorter = min(len(old), len(wanted))
    head = next((at for at in range(shorter) if not same(old[at], wanted[at])), shorter)
    shorter -= head
    return head, next((at for at in range(shorter) if not same(old[-1 - at], wanted[-1 - at])), shorter)


# ------------------------------------------------------------------ lines and values as they are written
# What is written reads back equal under YAML 1.2 core, and means the same to readers of YAML 1.1 (PyYAML, Ruby) where
# quotes can buy that: `yes`, `12:30` and `010` get quotes, ISO dates stay bare as Obsidian writes them.


def render_property(key: str, value: Any, indent: int = 0, step: int = STEP) -> list[str]:
    """The lines of one property; the items of a list stand `step` further in."""
    name = " " * indent + write_key(key) + ":"
    inline = _inline(value)
    if inline is not None:
        return [f"{name} {inline}".rstrip(" ")]
    return [name, *_block_lines(value, indent, step)]


def _inline(value: Any, style: str = "") -> str | None:
    """A value that fits on the line of its key, None when it is a list or map with something in it."""
    if isinstance(value, (list, dict)):
        return None if value else "[]" if isinstance(value, list) else "{}"
    return "" if value is None else write_scalar(value, style)


def _block_lines(value: Any, indent: int, step: int) -> list[str]:
    if isinstance(value, list):
        return [f"{' ' * (indent + step)}- {write_scalar(item)}" for item in value]
    return [f"{' ' * (indent + STEP)}{write_key(name)}: {write_scalar(entry)}" for name, entry in value.items()]


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
_LARGEST: Final = 10 ** (DIGIT_LIMIT - 1)
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
    old = yaml.SafeLoader.yaml_implicit_resolvers.get(value[0], ())
    return _is_date(value) or not (_OLD_DATE.fullmatch(value) or any(pattern.match(value) for _, pattern in old))


def _is_date(value: str) -> bool:
    """A date or date-time in the form Obsidian writes, and on the calendar: others make PyYAML raise."""
    try:
        return _ISO_DATE.fullmatch(value) is not None and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


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


def write_key(key: str) -> str:
    """A property's name. Names are one line, and short enough for every parser to see the colon."""
    if len(key) > KEY_LIMIT:
        raise TooLong(
            f"The property name {key[:40]!r}... is longer than {KEY_LIMIT} characters.", hint="Use a shorter one."
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
