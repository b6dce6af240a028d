"""Where the entries of a header stand, and the edits that change one of them. Pure.

An edit is a span of the text and what takes its place; nothing outside the entry it is meant for is
touched. What the edits add up to is checked by `properties.py`, which reads the result again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple

from simplemem.errors import Unreadable
from simplemem.note.header import Reading
from simplemem.note.yaml_values import Node, same, skip_blanks, write_key, write_scalar, write_text

STEP: Final = 2  # Obsidian indents lists by two spaces

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

_LINE_END: Final = re.compile(r"\r\n|\r|\n")
LOOSE_LINES: Final = re.compile(r"(?:[ \t]*+(?:\r\n|\r|\n)|[ \t]++#[^\r\n]*+(?:\r\n|\r|\n))*+")
_KEEPS_LINES: Final = re.compile(r"[|>][1-9]?\+")
_BLANK_LINES: Final = re.compile(r"(?:[ \t]*+(?:\r\n|\r|\n))*+")


def _line_start(text: str, at: int) -> int:
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _line_end(text: str, at: int) -> tuple[int, int]:
    """Where the line ends, and where the next begins."""
    found = _LINE_END.search(text, at)
    return found.span() if found else (len(text), len(text))


def newline_at(text: str, at: int) -> str:
    end, following = _line_end(text, at)
    return text[end:following] or "\n"


def find_place(text: str, node: Node, name: str) -> Place:
    """Where the entry of this name stands in a map that has it."""
    return place_at(text, node, list(node.value).index(name))


def place_at(text: str, node: Node, number: int) -> Place:
    """Where the entry of this number stands in a map."""
    key, value = node.children[2 * number], node.children[2 * number + 1]
    if node.style == "{":
        begins = key.start
    elif number == 0:
        begins = node.content
    else:
        begins = skip_blanks(text, node.children[2 * number - 1].end, key.start)
    colon = skip_blanks(text, key.end, value.start)
    colon = colon + 1 if text[colon : colon + 1] == ":" else -1
    return Place(begins, key, value, colon, begins - _line_start(text, begins), newline_at(text, begins))


def lines_of_entry(text: str, place: Place) -> tuple[int, int]:
    """The lines that are an entry of a block map and nothing else."""
    start = _line_start(text, place.begins)
    if text[start : place.begins].strip(" "):
        raise Unreadable(f"{place.key.value} does not begin a line.", hint="Give it a line of its own in an editor.")
    return start, _end_of_lines(text, place.value)


def _end_of_lines(text: str, value: Node) -> int:
    """Where the next line begins; the blank lines below `|+` are part of its text."""
    after = _line_end(text, value.end)[1]
    if value.style in ("|", ">") and _KEEPS_LINES.match(text, value.content):
        after = _BLANK_LINES.match(text, after).end()  # type: ignore[union-attr]
    return after


def list_step(text: str, root: Node, place: Place) -> int:
    """How far lists are indented: as this one is, else as the header's first one, else as in Obsidian."""
    lists = [place.key.value] if place.value.style == "-" else []
    lists += [
        key.value for key, value in zip(root.children[::2], root.children[1::2], strict=True) if value.style == "-"
    ]
    if not lists:
        return STEP
    model = find_place(text, root, lists[0])
    dash = model.value.content
    return max(dash - _line_start(text, dash) - model.indent, 0)


# ------------------------------------------------------------------ writing a value into its place


def add_property(text: str, reading: Reading, key: str, value: Any) -> str:
    """A text with one more property: at the end of its header, indented as that is, or in a header made for it."""
    if reading.fences is None:
        bom = 1 if text.startswith("\ufeff") else 0
        return text[:bom] + newline_at(text, 0).join(["---", *render_lines({key: value}), "---", text[bom:]])
    root = reading.root
    at = reading.end
    newline = "\r\n" if text[at - 2 : at] == "\r\n" else text[at - 1]
    indent = 0
    step = STEP
    if root is not None and root.children:
        first = place_at(text, root, 0)
        indent = first.indent
        step = list_step(text, root, first)
    return text[:at] + "".join(line + newline for line in render_property(key, value, indent, step)) + text[at:]


def render_lines(properties: Mapping[str, Any]) -> list[str]:
    """The lines of a header that we write ourselves."""
    return [line for key, value in properties.items() for line in render_property(key, value, 0, STEP)]


def render_property(key: str, value: Any, indent: int, step: int) -> list[str]:
    """The lines of one property; the items of a list stand `step` further in."""
    name = " " * indent + write_key(key) + ":"
    inline = _inline(value)
    if inline is not None:
        return [f"{name} {inline}".rstrip(" ")]
    return [name, *_block_lines(value, indent, step)]


def _inline(value: Any, style: str = "") -> str | None:
    """A value that fits on the line of its key, None when it is a list or map with something in it."""
    if isinstance(value, list):
        return None if value else "[]"
    if isinstance(value, dict):
        return None if value else "{}"
    return "" if value is None else write_scalar(value, style)


def _block_lines(value: Any, indent: int, step: int) -> list[str]:
    if isinstance(value, list):
        return [f"{' ' * (indent + step)}- {write_scalar(item)}" for item in value]
    return [f"{' ' * (indent + STEP)}{write_key(name)}: {write_scalar(entry)}" for name, entry in value.items()]


def set_value(text: str, place: Place, value: Any, step: int) -> list[Edit]:
    """Give an entry of a block map another value. Its quotes stay where they fit, and so do the comments beside it."""
    old = place.value
    if isinstance(value, list) and value and isinstance(old.value, list) and old.children:
        edits = _change_list(text, place, value)
        if edits is not None:
            return edits
    style = old.style if old.style in ("'", '"') else ""
    inline = _inline(value, style)
    lines = [] if inline is not None else _block_lines(value, place.indent, step)
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
    return [(place.colon, line_end, place.newline.join([comment, *lines]))]


def _change_list(text: str, place: Place, wanted: list[Any]) -> list[Edit] | None:
    """Only what differs between the list there is and the one wanted. None when lines cannot say it."""
    node = place.value
    flow = node.style == "["
    edits: list[Edit] = []
    new: list[Any] = []
    gone = _surplus(node.value, wanted)
    if gone is None:
        head, stop, new = _difference(node.value, wanted)
        # Where one text takes the place of another, its line stays, and so does the comment on it.
        old = node.children[head:stop]
        if all(item.style in ("", "'", '"') and item.end > item.start for item in old):
            edits = [
                (item.start, item.end, write_scalar(value, item.style, flow=flow))
                for item, value in zip(old, new, strict=False)
            ]
        head += len(edits)
        new = new[len(edits) :]
        gone = list(range(head, stop))
    else:
        head = gone[0] if gone else 0
    if not gone and not new:
        return edits
    if flow:
        spans = [(item.start, item.end) for item in node.children]
        written = [write_scalar(value, flow=True) for value in new]
        return edits + [change_flow(spans, *run, written) for run in _runs(gone) or [(head, head)]]
    lines = _change_lines(text, node, gone, head, new, place.newline)
    return None if lines is None else edits + lines


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


def _difference(old: list[Any], wanted: list[Any]) -> tuple[int, int, list[Any]]:
    """Lists often begin alike and end alike: what stands between in the old one, and what is wanted there."""
    shorter = min(len(old), len(wanted))
    head = 0
    while head < shorter and same(old[head], wanted[head]):
        head += 1
    tail = 0
    while tail < shorter - head and same(old[-1 - tail], wanted[-1 - tail]):
        tail += 1
    return head, len(old) - tail, wanted[head : len(wanted) - tail]


def _runs(numbers: list[int]) -> list[tuple[int, int]]:
    runs: list[tuple[int, int]] = []
    for number in numbers:
        if runs and runs[-1][1] == number:
            runs[-1] = runs[-1][0], number + 1
        else:
            runs.append((number, number + 1))
    return runs


def _change_lines(text: str, node: Node, gone: list[int], head: int, new: list[Any], newline: str) -> list[Edit] | None:
    """Take the lines of some items out, and put new ones before item `head`."""
    items = node.children
    dashes = [node.content, *(skip_blanks(text, one.end, two.start) for one, two in pairwise(items))]
    starts = [_line_start(text, dash) for dash in dashes]
    if any(text[dash] != "-" or text[at:dash].strip(" ") for at, dash in zip(starts, dashes, strict=True)):
        return None
    edits = [(starts[at], _end_of_lines(text, items[at]), "") for at in gone]
    if new:
        space = text[dashes[0] + 1 : items[0].start]
        mark = text[starts[0] : dashes[0]] + "-" + (space if space and not space.strip(" ") else " ")
        where = starts[0] if head == 0 else _end_of_lines(text, items[head - 1])
        edits.append((where, where, "".join(mark + write_scalar(value) + newline for value in new)))
    return edits


def change_flow(spans: list[tuple[int, int]], head: int, stop: int, new: list[str]) -> Edit:
    """Put `new` where items head to stop of a list in brackets stand, with the commas that go with them."""
    if stop < len(spans):
        return spans[head][0], spans[stop][0], "".join(item + ", " for item in new)
    if head > 0:
        return spans[head - 1][1], spans[stop - 1][1], "".join(", " + item for item in new)
    return spans[0][0], spans[-1][1], ", ".join(new)


def pair_spans(node: Node) -> list[tuple[int, int]]:
    return [(key.start, value.end) for key, value in zip(node.children[::2], node.children[1::2], strict=True)]


def _flow_pair(name: str, value: Any) -> str:
    return f"{write_text(name, flow=True)}: {write_scalar(value, flow=True)}"


def set_flow_value(place: Place, value: Any) -> Edit:
    """Give an entry of a map in braces another value."""
    old = place.value
    if old.end > old.start:
        return (
            old.start,
            old.end,
            write_scalar(value, old.style if old.style in ("'", '"') else "", flow=True),
        )
    return place.key.end, old.end, ": " + write_scalar(value, flow=True)


def add_entry(text: str, place: Place, name: str, value: Any) -> list[Edit]:
    """Put one more entry at the end of a map, written as that is: in braces, or on lines."""
    node = place.value
    if node.style == "{":
        if not node.children:
            return [(node.content + 1, node.content + 1, _flow_pair(name, value))]
        spans = pair_spans(node)
        return [change_flow(spans, len(spans), len(spans), [_flow_pair(name, value)])]
    first = place_at(text, node, 0)
    where = _line_end(text, node.end)[1]
    line = f"{' ' * first.indent}{write_key(name)}: {write_scalar(value)}{first.newline}"
    return [(where, where, line)]
