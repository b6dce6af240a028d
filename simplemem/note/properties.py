"""Change one property of a note by splicing its text (obsidian.md §3.2): every other byte stays. Pure.

Nothing that exists is re-serialised. Each verb takes the text of a whole note and returns the new one, which has been read
again: where any other property came out different, the edit is refused with Unreadable. A note whose header is broken,
JSON or one pair of braces is never rewritten. Only the header of a new note is written whole.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from simplemem.errors import Invalid, Unreadable
from simplemem.note import splice
from simplemem.note.header import Header, Scalar, find_key, read_header, read_yaml, same
from simplemem.note.splice import BLANK_LINES, LOOSE_LINES

if TYPE_CHECKING:
    from frontmatter.default_handlers import BaseHandler


def set_property(text: str, key: str, value: Any) -> str:
    """Give a property this value: in its place when the note has it, else at the end of the header. In a list or a map
    only the items that differ are touched."""
    header = _read_to_edit(text)
    properties = dict(header.properties)
    spelled = find_key(properties, key)
    if spelled is None:
        wanted = splice.clean_value(value)
        return _checked(text, header, splice.add_property(text, header, key, wanted), {**properties, key: wanted})
    if same(properties[spelled], value):
        return text  # whatever it is: also what we would not write
    wanted = splice.clean_value(value, properties[spelled])
    if same(properties[spelled], wanted):
        return text
    assert header.root is not None
    after = splice.change_property(text, header.root, spelled, wanted)
    return _checked(text, header, after, {**properties, spelled: wanted})


def remove_property(text: str, key: str) -> str:
    """The note without this property. The fences stay, even when nothing is left between them."""
    header = _read_to_edit(text)
    properties = dict(header.properties)
    spelled = find_key(properties, key)
    if spelled is None:
        return text
    del properties[spelled]
    assert header.root is not None
    place = splice.find_place(text, header.root, spelled)
    start, end = splice.lines_of(text, place.begins, place.value)
    # Blank lines or an indented comment below it may now belong to a block of text above it: then they go with it.
    for lines_below in (BLANK_LINES.match, LOOSE_LINES.match):
        try:
            return _checked(text, header, text[:start] + text[end:], properties)
        except Unreadable:
            end = lines_below(text, end).end()  # type: ignore[union-attr]  # it matches everything
    return _checked(text, header, text[:start] + text[end:], properties)


def remove_item(text: str, key: str, item: Any) -> str:
    """The note without this item of a list; the last one leaves `[]`, and so does a single value."""
    current = _read_to_edit(text).get(key)
    if isinstance(current, list):
        kept = [there for there in current if not same(there, item)]
        return text if len(kept) == len(current) else set_property(text, key, kept)
    return set_property(text, key, []) if current is not None and same(current, item) else text


def replace_scalar(text: str, scalar: Scalar, value: str) -> str:
    """The note with another text in this place, in the quotes that stand there wherever they can hold it."""
    header = _read_to_edit(text)
    if scalar not in header.scalars:
        raise Invalid(
            f"The property {'.'.join(scalar.path)} is not where it was.", hint="Read the note again, then change it."
        )
    written = splice.write_text(value, text[scalar.start : scalar.start + 1], flow=scalar.flow)
    after = text[: scalar.start] + written + text[scalar.end :]
    now = read_header(after)
    wanted = {there.path: there.value for there in header.scalars} | {scalar.path: value}
    is_same = list(now.properties) == list(header.properties) and after[now.body_start :] == text[header.body_start :]
    if not is_same or {there.path: there.value for there in now.scalars} != wanted:
        raise _unsafe()
    return after


def _read_to_edit(text: str) -> Header:
    header = read_header(text)
    problem = header.problem
    if problem is not None:
        raise Unreadable(
            f"The properties cannot be changed: {problem.message} (line {problem.line}, column {problem.column}).",
            hint="Mend the lines between the --- fences in an editor, then try again.",
            line=problem.line,
        )
    return header


def _checked(before: str, was: Header, after: str, expected: dict[str, Any]) -> str:
    """The belt to the braces: what was spliced is read again before anybody may write it."""
    now = read_header(after)
    body = before[was.body_start :].removeprefix("\ufeff" if was.style == "none" else "")
    if now.style != "yaml" or after[now.body_start :] != body or not same(dict(now.properties), expected):
        raise _unsafe()
    return after


def _unsafe() -> Unreadable:
    return Unreadable(
        "This property cannot be changed without changing something else, so the header was left alone.",
        hint="Write it in a plainer way in an editor (name: value), then try again.",
    )


# ------------------------------------------------------------------ new notes


def render_header(properties: Mapping[str, Any], newline: str = "\n") -> str:
    """The header of a new note, as Obsidian writes it: block lists indented by two spaces, dates bare."""
    import frontmatter  # imported where a note is made: reading needs none of it

    post = frontmatter.Post("")
    post.metadata = {key: splice.clean_value(value) for key, value in properties.items()}
    lines = frontmatter.dumps(post, handler()).split("\n") if post.metadata else ["---", "---"]
    written = newline.join([*lines, ""])
    if not same(dict(read_header(written).properties), post.metadata):
        raise Invalid(
            "These properties cannot be written as a header that reads back the same.", hint="Use simpler ones."
        )
    return written


@cache
def handler() -> BaseHandler:
    """What makes `python-frontmatter` read and write YAML 1.2 as we do."""
    from frontmatter.default_handlers import BaseHandler

    class CoreYaml(BaseHandler):
        FM_BOUNDARY = re.compile(r"^---[ \t]*$", re.MULTILINE)
        START_DELIMITER = END_DELIMITER = "---"

        def load(self, fm: str) -> dict[str, Any]:
            root, _ = read_yaml(fm, 0, len(fm))
            return dict(root.value) if root is not None and isinstance(root.value, dict) else {}

        def export(self, metadata: dict[str, object], **_: object) -> str:
            return "\n".join(line for key, value in metadata.items() for line in splice.render_property(key, value))

    return CoreYaml()
