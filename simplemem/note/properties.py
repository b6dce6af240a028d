"""Change the properties in the header of a note. Pure.

An edit replaces the characters of one property and leaves every other byte as it was: YAML that is
parsed and written again would lose comments, quotes and indentation. The result is read again. If
any other property came out different, the edit is refused with Unreadable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from itertools import pairwise
from typing import Any, NamedTuple

from simplemem.errors import Unreadable
from simplemem.note.diff import changed_regions, match_lines
from simplemem.note.header import (
    Header,
    Node,
    Scalar,
    equal_in_yaml,
    find_key,
    read_header,
    skip_blanks,
)
from simplemem.note.text_edits import Edit, apply_edits
from simplemem.note.words import BYTE_ORDER_MARK, LINE_END
from simplemem.note.yaml_writer import (
    clean_value,
    format_block,
    format_entry,
    format_inline,
    format_property,
    format_scalar,
    format_text,
)


def set_property(text: str, key: str, value: object) -> str:
    """Return a note with a property set to a value, or the same text if it has that value.

    An existing property keeps its place, its spelling and its comments; of a list or map, only the
    items that differ change. A new property goes to the end of the header, which is added if there
    is none. Raises Invalid for a key or value that a header cannot contain, and Unreadable if the
    header cannot be changed safely.
    """
    header = _read_editable_header(text)
    properties = dict(header.properties)
    name = find_key(properties, key)

    if name is None:
        new_value = clean_value(value)
        properties[key] = new_value
        changed = _add_property(text, header, key, new_value)
        return _verify_edit(text, header, changed, properties)

    # A note may have a value that this module would never write. Setting it again is no error, so
    # the values are compared before the new one is checked.
    old_value = properties[name]
    if equal_in_yaml(old_value, value):
        return text
    new_value = clean_value(value, old_value)
    if equal_in_yaml(old_value, new_value):
        return text

    properties[name] = new_value
    key_node, value_node = _find_entry(header.root, name)
    edits = _set_entry(text, key_node, value_node, new_value)
    changed = apply_edits(text, edits)
    return _verify_edit(text, header, changed, properties)


def remove_property(text: str, key: str) -> str:
    """Return a note without a property, or the same text if it has no such property.

    The fences stay, even if nothing is left between them. Raises Unreadable if the header cannot be
    changed safely.
    """
    header = _read_editable_header(text)
    name = find_key(header.properties, key)
    if name is None:
        return text

    remaining = dict(header.properties)
    del remaining[name]

    key_node, value_node = _find_entry(header.root, name)
    start = _line_start(text, key_node.start)
    end = _line_end(text, value_node.end).next_line
    changed = text[:start] + text[end:]
    return _verify_edit(text, header, changed, remaining)


def replace_scalar(text: str, scalar: Scalar, value: str) -> str:
    """Return a note with one text in its header replaced, in the same quotes if possible.

    `scalar` comes from `Header.scalars` of the same text. Raises Unreadable if it does not, or if
    the header cannot be changed safely, and Invalid for a text that a header cannot contain.
    """
    header = _read_editable_header(text)
    if scalar not in header.scalars:
        raise Unreadable(
            "the property to change is not in this text",
            hint="Read the note again, then try again.",
        )
    properties = deepcopy(dict(header.properties))
    _replace_at_path(properties, scalar.path, value)

    quote = text[scalar.start : scalar.start + 1]
    source = format_text(value, quote, flow=scalar.flow)
    edit = (scalar.start, scalar.end, source)
    changed = apply_edits(text, [edit])
    return _verify_edit(text, header, changed, properties)


def _replace_at_path(
    properties: dict[str, Any],
    path: Sequence[str],
    value: str,
) -> None:
    """Replace the value at a path within properties, in place. The path must exist."""
    *parents, last = path
    collection: Any = properties
    for step in parents:
        index = _index_of_step(collection, step)
        collection = collection[index]

    index = _index_of_step(collection, last)
    collection[index] = value


def _index_of_step(collection: object, step: str) -> str | int:
    """Return a step of a path as an index of a list, or as a key of a map.

    Paths have all steps as texts: "0" is the first item of a list.
    """
    if isinstance(collection, list):
        return int(step)
    return step


def _read_editable_header(text: str) -> Header:
    """Return the header of a note; raise Unreadable if it must not be rewritten."""
    header = read_header(text)
    if header.problem is None:
        return header

    reason, line, column = header.problem
    raise Unreadable(
        f"the properties cannot be changed: {reason} (line {line}, column {column})",
        hint="Fix the frontmatter between the --- lines in an editor, then try again.",
        line=line,
    )


def _verify_edit(
    text: str,
    header: Header,
    changed: str,
    expected: Mapping[str, object],
) -> str:
    """Return a changed note; raise Unreadable if more than the edited property changed.

    `text` and `header` are those from before the edit, `expected` are all properties after it.
    """
    body = text[header.body_start :]
    if header.style == "none":
        body = body.removeprefix(BYTE_ORDER_MARK)

    changed_header = read_header(changed)
    is_as_expected = (
        changed_header.style == "yaml"
        and changed[changed_header.body_start :] == body
        and equal_in_yaml(dict(changed_header.properties), expected)
    )
    if not is_as_expected:
        raise Unreadable(
            "this property cannot be changed without changing other frontmatter, "
            "so nothing was changed",
            hint="Write it as `name: value` in an editor, then try again.",
        )
    return changed


def _find_entry(node: Node | None, name: str) -> tuple[Node, Node]:
    """Return the nodes of the key and the value of an entry. The map `node` must have it."""
    assert node is not None
    pairs = node.pairs()
    return next((key, value) for key, value in pairs if key.value == name)


class _LineEnd(NamedTuple):
    """The end of a line: where its line break and the next line start, and the break itself."""

    start: int
    next_line: int
    newline: str


def _line_start(text: str, position: int) -> int:
    """Return the offset at which the line of a position starts."""
    line_feed = text.rfind("\n", 0, position)
    carriage_return = text.rfind("\r", 0, position)
    return max(line_feed, carriage_return) + 1


def _line_end(text: str, position: int) -> _LineEnd:
    """Return the end of the line at a position.

    The last line of a text, if nothing ends it, has an LF as its break.
    """
    match = LINE_END.search(text, position)
    if match is None:
        return _LineEnd(len(text), len(text), "\n")
    return _LineEnd(match.start(), match.end(), match[0])


def _indent_at(text: str, position: int) -> int:
    """Return how many characters stand before a position on its line."""
    return position - _line_start(text, position)


def _add_property(text: str, header: Header, key: str, value: object) -> str:
    """Return a text with one more property at the end of its header, or in a new header.

    Does not check whether the header has the property already. Raises Invalid for a key or value
    that a header cannot contain.
    """
    if header.style == "none":
        return _add_header(text, key, value)

    end = header.end  # the start of a line, so that a line end stands before it
    newline = text[end - 1]
    if text[end - 2 : end] == "\r\n":
        newline = "\r\n"

    indent = 0
    if header.root is not None and header.root.children:
        indent = _indent_at(text, header.root.children[0].start)

    lines = format_property(key, value, indent)
    added = "".join([line + newline for line in lines])
    return text[:end] + added + text[end:]


def _add_header(text: str, key: str, value: object) -> str:
    """Return a text with a header of one property, which begins after a byte order mark.

    The text must have no header. The body follows as it was. Raises Invalid for a key or value that
    a header cannot contain.
    """
    body = text.removeprefix(BYTE_ORDER_MARK)
    bom_length = len(text) - len(body)
    bom = text[:bom_length]

    newline = _line_end(text, 0).newline
    property_lines = format_property(key, value)
    return bom + newline.join(["---", *property_lines, "---", body])


def _set_entry(
    text: str,
    key: Node,
    old: Node,
    value: object,
) -> list[Edit]:
    """Return the edits that give an entry of a block map another value.

    `key` and `old` are the nodes of its key and its present value. Quotes stay where the new value
    fits in them, and so do the comments next to the value. Raises Invalid for a value that cannot
    be written there, and Unreadable if a comment would be lost.
    """
    is_same_type = type(value) is type(old.value)
    both_have_items = value and old.children
    if isinstance(value, (list, dict)) and is_same_type and both_have_items:
        return _change_collection(text, key, old, value)

    value_start = skip_blanks(text, key.end, old.start) + 1  # right after the colon
    begins_below_key = LINE_END.search(text, value_start, old.start) is not None
    inline = format_inline(value, old.style)
    if inline is not None and not begins_below_key:
        return [_replace_inline(value_start, old, inline)]

    comment = _find_comment(text, value_start, old)
    if inline is not None:
        source = f" {inline}".rstrip(" ") + comment
    else:
        lines = format_block(value, _indent_at(text, key.start))
        newline = _line_end(text, key.start).newline
        source = newline.join([comment, *lines])

    line_end = _line_end(text, old.end).start
    return [(value_start, line_end, source)]


def _find_comment(text: str, value_start: int, value: Node) -> str:
    """Return the comment behind a value, with the blanks before it; "" if there is none.

    If the value begins on a later line than its key, the comment behind the key is meant.
    `value_start` is the offset behind the colon.
    """
    line_break = LINE_END.search(text, value_start, value.start)
    if line_break is not None:
        comment = text[value_start : line_break.start()]
    else:
        line_end = _line_end(text, value.end).start
        comment = text[value.end : line_end]
    return comment.rstrip(" \t")


def _replace_inline(value_start: int, old: Node, source: str) -> Edit:
    """Return the edit that replaces a value on the line of its key by another on that line.

    `value_start` is the offset behind the colon. An empty `source` removes the value.
    """
    if not source:
        return (value_start, old.end, "")
    if old.start == value_start:
        return (old.start, old.end, " " + source)
    return (old.start, old.end, source)


class _BlockItems(NamedTuple):
    """Where the items of a block list, or the entries of a block map, stand in a text."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    prefix: str  # of the line of a new item: its indentation, and in a list the dash
    newline: str

    def replace(self, start: int, end: int, sources: Iterable[str]) -> list[Edit]:
        """Return the edits that delete the lines of items start:end and insert new items there.

        `sources` are the new items as YAML, without indentation and dash. Comments on the deleted
        lines are deleted too.
        """
        edits: list[Edit] = []
        for index in range(start, end):
            line_start = _line_start(self.text, self.starts[index])
            line_end = _line_end(self.text, self.ends[index])
            edits.append((line_start, line_end.next_line, ""))

        if start == 0:
            position = _line_start(self.text, self.starts[0])
        else:
            end_before = self.ends[start - 1]
            position = _line_end(self.text, end_before).next_line

        lines = [self.prefix + source + self.newline for source in sources]
        edits.append((position, position, "".join(lines)))
        return edits


def _change_collection(
    text: str,
    key: Node,
    old: Node,
    value: list[object] | dict[str, object],
) -> list[Edit]:
    """Return the edits that change what differs between a list or map and its new value.

    Both are lists, or both are maps, and neither is empty. Raises Invalid for a value that cannot
    be written there, and Unreadable if a comment in brackets would be lost.
    """
    if old.style in ("[", "{"):
        return [_change_flow(text, old, value)]

    newline = _line_end(text, key.start).newline
    if isinstance(value, list):
        return _change_block_list(text, old, value, newline)
    return _change_block_map(text, old, value, newline)


def _change_block_list(
    text: str,
    node: Node,
    values: list[object],
    newline: str,
) -> list[Edit]:
    """Return the edits that change what differs between a block list and its new items.

    Items that stay keep their lines. Raises Invalid for an item that is no scalar.
    """
    items = node.children
    block = _find_list_items(text, node, newline)
    old_keys = [repr(value) for value in node.value]
    new_keys = [repr(value) for value in values]

    edits: list[Edit] = []
    for old_start, old_end, new_start, new_end in changed_regions(old_keys, new_keys):
        replaced_items = items[old_start:old_end]
        new_values = values[new_start:new_end]
        inline_edits: list[Edit] = []
        if all(map(_is_text_on_line, replaced_items)):
            inline_edits = _replace_items_on_lines(replaced_items, new_values)

        replaced_count = len(inline_edits)
        sources = [format_scalar(value) for value in new_values[replaced_count:]]
        edits += inline_edits
        edits += block.replace(old_start + replaced_count, old_end, sources)
    return edits


def _replace_items_on_lines(items: Sequence[Node], values: Sequence[object]) -> list[Edit]:
    """Return the edits that give each item the value at the same index, on the item's own line.

    The comment on the line stays. As many edits are returned as the shorter of the two sequences
    has items: further items and further values are left to the caller. Raises Invalid for a value
    that is no scalar.
    """
    edits: list[Edit] = []
    for item, value in zip(items, values, strict=False):
        source = format_scalar(value, item.style)
        edits.append((item.start, item.end, source))
    return edits


def _find_list_items(text: str, node: Node, newline: str) -> _BlockItems:
    """Return where the items of a block list stand; each starts at its dash.

    New items get the indentation of the list, and the same space behind the dash as the first.
    """
    items = node.children
    dashes = [node.start]
    for item, next_item in pairwise(items):
        dashes.append(skip_blanks(text, item.end, next_item.start))

    space = text[node.start + 1 : items[0].start]
    if not space or space.strip(" "):
        space = " "

    line_start = _line_start(text, node.start)
    indent = text[line_start : node.start]
    prefix = f"{indent}-{space}"
    return _BlockItems(
        text=text,
        starts=dashes,
        ends=[item.end for item in items],
        prefix=prefix,
        newline=newline,
    )


def _is_text_on_line(item: Node) -> bool:
    """Return whether an item is a plain or quoted scalar that is not left empty."""
    is_empty = item.start == item.end
    return item.style in ("", "'", '"') and not is_empty


def _change_block_map(
    text: str,
    node: Node,
    entries: dict[str, object],
    newline: str,
) -> list[Edit]:
    """Return the edits that change what differs between a block map and its new entries.

    Entries that stay keep their lines. Raises what `_set_entry` raises.
    """
    old_names = list(node.value)
    new_names = list(entries)

    edits: list[Edit] = []
    new_indexes = match_lines(old_names, new_names)  # -1 for an entry that does not stay in place
    for (key, old), new_index in zip(node.pairs(), new_indexes, strict=True):
        if new_index < 0:
            continue  # below, its lines are deleted, and written elsewhere if it only moves
        value = entries[key.value]
        if not equal_in_yaml(old.value, value):
            edits += _set_entry(text, key, old, value)

    block = _find_map_entries(text, node, newline)
    for old_start, old_end, new_start, new_end in changed_regions(old_names, new_names):
        names = new_names[new_start:new_end]
        sources = [format_entry(name, entries[name]) for name in names]
        edits += block.replace(old_start, old_end, sources)
    return edits


def _find_map_entries(text: str, node: Node, newline: str) -> _BlockItems:
    """Return where the entries of a block map stand; each starts at its key."""
    starts: list[int] = []
    ends: list[int] = []
    for key, value in node.pairs():
        starts.append(key.start)
        ends.append(value.end)

    first_start = starts[0]
    line_start = _line_start(text, first_start)
    return _BlockItems(
        text=text,
        starts=starts,
        ends=ends,
        prefix=text[line_start:first_start],
        newline=newline,
    )


def _change_flow(
    text: str,
    node: Node,
    value: list[object] | dict[str, object],
) -> Edit:
    """Return the edit that writes a list in brackets, or a map in braces, on one line.

    An item that does not change keeps its spelling. Raises Invalid for an item that is no scalar,
    and Unreadable if a comment would be lost.
    """
    source = text[node.start : node.end]
    if "#" in source and LINE_END.search(source):
        raise Unreadable(
            "a list in brackets that contains comments cannot be changed",
            hint="Change it in an editor.",
        )

    if isinstance(value, list):
        items = ", ".join(_flow_items(text, node, value))
        return (node.start, node.end, f"[{items}]")

    entries = ", ".join(_flow_entries(text, node, value))
    return (node.start, node.end, f"{{{entries}}}")


def _flow_items(text: str, node: Node, values: list[object]) -> list[str]:
    """Return the sources of the new items of a list in brackets.

    An item that was in the list before keeps its spelling.
    """
    old_sources: dict[str, str] = {}
    for item in node.children:
        key = repr(item.value)
        old_sources[key] = text[item.start : item.end]

    sources: list[str] = []
    for value in values:
        old_source = old_sources.get(repr(value))
        sources.append(old_source or format_scalar(value, flow=True))
    return sources


def _flow_entries(
    text: str,
    node: Node,
    entries: dict[str, object],
) -> list[str]:
    """Return the sources of the new entries of a map in braces.

    An entry that does not change keeps its spelling.
    """
    unchanged: dict[str, str] = {}
    for key, old in node.pairs():
        new_value = entries.get(key.value)
        if equal_in_yaml(old.value, new_value):
            unchanged[key.value] = text[key.start : old.end]

    sources: list[str] = []
    for name, value in entries.items():
        old_source = unchanged.get(name)
        sources.append(old_source or format_entry(name, value, flow=True))
    return sources
