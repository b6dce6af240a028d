"""Change one property of a note by splicing its text (obsidian.md §3.2): every other byte stays. Pure.

Nothing is ever re-serialised. Each verb takes the text of a whole note and returns the new one, which has
been read again: where any other property came out different, the edit is refused with Unreadable. A note
whose header is broken, JSON or one pair of braces is never rewritten. Reading lives in `header.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simplemem.errors import Invalid, Unreadable
from simplemem.note.header import Reading, Scalar, find_fences, find_key, read_entries, read_header, read_with_places
from simplemem.note.splice import (
    LOOSE_LINES,
    STEP,
    add_entry,
    add_property,
    apply,
    change_flow,
    find_place,
    lines_of_entry,
    list_step,
    pair_spans,
    render_lines,
    set_flow_value,
    set_value,
)
from simplemem.note.yaml_values import Node, clean_value, same, write_text

# ------------------------------------------------------------------ the verbs


def set_property(text: str, key: str, value: Any) -> str:
    """Give a property this value: in its place when the note has it, else at the end of the header."""
    reading = _read_to_edit(text)
    properties = dict(reading.header.properties)
    spelled = find_key(properties, key)
    if spelled is not None and same(properties[spelled], value):
        return text  # whatever it is: also what we would not write
    wanted = clean_value(value, properties.get(spelled or key))
    if spelled is None:
        return _checked(text, reading, add_property(text, reading, key, wanted), {**properties, key: wanted})
    if same(properties[spelled], wanted):
        return text
    assert reading.root is not None
    place = find_place(text, reading.root, spelled)
    edits = set_value(text, place, wanted, list_step(text, reading.root, place))
    return _checked(text, reading, apply(text, edits), {**properties, spelled: wanted})


def remove_property(text: str, key: str) -> str:
    """The note without this property. The fences stay, even when nothing is left between them."""
    reading = _read_to_edit(text)
    properties = dict(reading.header.properties)
    spelled = find_key(properties, key)
    if spelled is None:
        return text
    del properties[spelled]
    assert reading.root is not None
    start, end = lines_of_entry(text, find_place(text, reading.root, spelled))
    try:
        return _checked(text, reading, text[:start] + text[end:], properties)
    except Unreadable:
        # Blank lines or an indented comment below it would now belong to a block of text above it.
        loose = LOOSE_LINES.match(text, end)
        assert loose is not None
        return _checked(text, reading, text[:start] + text[loose.end() :], properties)


def set_entry(text: str, key: str, entry: str, value: Any) -> str:
    """Give one entry of a map this value (`tags: {status: done}`), in the notation the map has."""
    if isinstance(value, (Mapping, list, tuple)):
        raise Invalid(f"An entry of {key} cannot hold a list or a map.", hint="Use one plain value.")
    wanted = clean_value(value)
    reading = _read_to_edit(text)
    properties = dict(reading.header.properties)
    spelled = find_key(properties, key)
    if spelled is None or properties[spelled] is None:
        return set_property(text, key, {entry: wanted})
    entries = _map_in(properties, spelled)
    assert reading.root is not None
    node = find_place(text, reading.root, spelled).value
    present = find_key(entries, entry)
    if present is not None and same(entries[present], wanted):
        return text
    if present is None:
        edits = add_entry(text, find_place(text, reading.root, spelled), entry, wanted)
    elif node.style == "{":
        edits = [set_flow_value(find_place(text, node, present), wanted)]
    else:
        edits = set_value(text, find_place(text, node, present), wanted, STEP)
    properties[spelled] = {**entries, present or entry: wanted}
    return _checked(text, reading, apply(text, edits), properties)


def remove_entry(text: str, key: str, entry: str) -> str:
    """The note without one entry of a map; the last one leaves `{}`."""
    reading = _read_to_edit(text)
    properties = dict(reading.header.properties)
    spelled = find_key(properties, key)
    if spelled is None or properties[spelled] is None:
        return text
    entries = dict(_map_in(properties, spelled))
    present = find_key(entries, entry)
    if present is None:
        return text
    number = list(entries).index(present)
    del entries[present]
    if not entries:
        return set_property(text, key, {})
    assert reading.root is not None
    node = find_place(text, reading.root, spelled).value
    if node.style == "{":
        edit = change_flow(pair_spans(node), number, number + 1, [])
    else:
        edit = (*lines_of_entry(text, find_place(text, node, present)), "")
    return _checked(text, reading, apply(text, [edit]), {**properties, spelled: entries})


def remove_item(text: str, key: str, item: Any) -> str:
    """The note without this item of a list; the last one leaves `[]`, and so does a single value."""
    current = _read_to_edit(text).header.get(key)
    if isinstance(current, list):
        kept = [there for there in current if not same(there, item)]
        return text if len(kept) == len(current) else set_property(text, key, kept)
    return set_property(text, key, []) if current is not None and same(current, item) else text


def replace_scalar(text: str, scalar: Scalar, value: str) -> str:
    """The note with another text in this place, in the quotes that stand there wherever they can hold it."""
    reading = _read_to_edit(text)
    found = None if reading.root is None else _node_at(reading.root, scalar.path, flow=False)
    wanted = (scalar.start, scalar.end, scalar.value)
    if found is None or (found[0].content, found[0].end, found[0].value) != wanted:
        raise Invalid(
            f"The property {'.'.join(scalar.path)} is not where it was.",
            hint="Read the note again, then change it.",
        )
    node, flow = found
    changed = text[: node.content] + write_text(value, node.style, flow=flow) + text[node.end :]
    return _checked(text, reading, changed, _with_value(dict(reading.header.properties), scalar.path, value))


def render_header(properties: Mapping[str, Any], newline: str = "\n") -> str:
    """The header of a new note, as Obsidian writes it: block lists indented by two spaces, dates bare."""
    cleaned = {key: clean_value(value) for key, value in properties.items()}
    header = newline.join(["---", *render_lines(cleaned), "---", ""])
    if not same(dict(read_header(header).properties), cleaned):
        raise Invalid(
            "These properties cannot be written as a header that reads back the same.",
            hint="Use simpler ones.",
        )
    return header


def without_repeated(text: str) -> str:
    """The note with each such key where it stands first. Unreadable where two of them differ, or more is wrong."""
    fences = find_fences(text)
    entries = read_entries(text, fences) if fences is not None else None
    if fences is None or entries is None:
        raise Unreadable("The header is broken in another way.", hint="Mend it in an editor.")
    kept: dict[str, Any] = {}
    pieces, at = [], 0
    for entry in entries:
        if entry.key not in kept:
            kept[entry.key] = entry.value
        elif same(kept[entry.key], entry.value):
            pieces.append(text[at : entry.start])
            at = entry.end
        else:
            raise Unreadable(f"{entry.key!r} is there twice, with two values.", hint="Keep one of them.")
    changed = "".join([*pieces, text[at:]])
    now = read_with_places(changed)
    if now.header.problem is not None or not same(dict(now.header.properties), kept):
        raise Unreadable("The header is broken in another way as well.", hint="Mend it in an editor.")
    if changed[now.header.body_start :] != text[fences.body :]:
        raise Unreadable("The header does not end where it seems to.", hint="Mend it in an editor.")
    return changed


# ------------------------------------------------------------------ before and after


def _read_to_edit(text: str) -> Reading:
    reading = read_with_places(text)
    problem = reading.header.problem
    if problem is not None:
        raise Unreadable(
            f"The properties cannot be changed: {problem.message} (line {problem.line}, column {problem.column}).",
            hint="Mend the lines between the --- fences in an editor, then try again.",
            line=problem.line,
        )
    return reading


def _checked(before: str, was: Reading, after: str, expected: dict[str, Any]) -> str:
    """The belt to the braces: what was spliced is read again before anybody may write it."""
    now = read_with_places(after)
    body_is_whole = after[now.header.body_start :] == before[was.header.body_start :].removeprefix(
        "\ufeff" if was.fences is None else ""
    )
    if now.header.style != "yaml" or not body_is_whole or not same(dict(now.header.properties), expected):
        raise Unreadable(
            "This property cannot be changed without changing something else, so the header was left alone.",
            hint="Write it in a plainer way in an editor (name: value), then try again.",
        )
    return after


def _map_in(properties: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = properties[key]
    if not isinstance(value, Mapping):
        raise Invalid(f"{key} is not a map, it has no entries.", hint="Add or remove an item, or set it whole.")
    return value


def _node_at(node: Node, path: Sequence[str], *, flow: bool) -> tuple[Node, bool] | None:
    """The value at a path, and whether it stands inside brackets or braces."""
    if not path:
        return node, flow
    inside = flow or node.style in ("[", "{")
    if isinstance(node.value, dict) and path[0] in node.value:
        number = list(node.value).index(path[0])
        return _node_at(node.children[2 * number + 1], path[1:], flow=inside)
    if node.style in ("-", "[") and path[0].isdecimal() and int(path[0]) < len(node.children):
        return _node_at(node.children[int(path[0])], path[1:], flow=inside)
    return None


def _with_value(value: Any, path: Sequence[str], new: str) -> Any:
    if not path:
        return new
    if isinstance(value, dict):
        return {key: _with_value(inner, path[1:], new) if key == path[0] else inner for key, inner in value.items()}
    return [_with_value(inner, path[1:], new) if str(at) == path[0] else inner for at, inner in enumerate(value)]
