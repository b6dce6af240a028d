"""Parse requests for tags, and warn about what a note could not store as requested. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from simplemem.errors import Hint, HintSentence, Invalid
from simplemem.note.header import Header, read_header
from simplemem.note.note import (
    Note,
    bare_tag,
    hyphenate,
    is_tag,
    is_within,
    nested_tag,
)

RequestedValue = str | bool | int | float | None

# By name: the value of a tag, True for a tag without one, None or False to remove the tag.
TagRequest = dict[str, RequestedValue]

_MAX_LINE_NUMBERS: Final = 10  # that a warning lists for one tag
# `status=done` or `status: done`
_KEY_AND_VALUE: Final = re.compile(r"\s*+(?P<key>[^\s=:]*+)\s*+[=:](?P<value>.*)", re.DOTALL)
# Properties, and not only a rule (`---`) with text below it.
_HEADER_START: Final = re.compile(r"---\s*[\w-]+:\s")


def parse_tag_request(value: object) -> TagRequest:
    """Parse a map, a list, a text like "a, status=b", or JSON of a map or list. None has no tags.

    Returns the values by the names of tags, without `#` and with hyphens for spaces: True for a tag
    without a value, None or False to remove it. A list as a value gives one nested tag for each
    item. Raises Invalid for anything else.
    """
    request: TagRequest = {}

    for key, entry in read_entries(value):
        name = parse_tag_name(key)
        if isinstance(entry, (list, tuple)):
            for part in entry:
                nested_name = parse_tag_name(f"{name}/{part}")
                request[nested_name] = True
        elif entry is None or isinstance(entry, (bool, int, float)):
            # A number stays a number, because a map of tags contains `prio: 2`, not a text.
            request[name] = entry
        elif isinstance(entry, str):
            request[name] = entry.strip() or True
        else:
            raise _invalid_request({key: entry})

    return request


def read_entries(value: object) -> Iterator[tuple[Any, Any]]:
    """Yield the keys and values of a request for tags as the caller wrote them.

    A tag without a value has True. None has no entries. Raises Invalid, while it is iterated, for
    what is no request.
    """
    if isinstance(value, str):
        value = _parse_text(value)

    items: Iterable[object]
    if isinstance(value, Mapping):
        items = [value]
    elif isinstance(value, (list, tuple)):
        items = value
    elif value is None:
        items = ()
    else:
        raise _invalid_request(value)

    for item in items:
        entries = _entries_of_item(item)
        if entries is None:
            raise _invalid_request(value)
        yield from entries.items()


def _parse_text(text: str) -> object:
    """Return the value of a JSON text, or the parts of a text like "a b, status=c".

    A text that begins with a bracket or brace is JSON. Raises Invalid if such a text cannot be
    parsed.
    """
    if not text.lstrip().startswith(("{", "[")):
        return _split(text)

    try:
        return json.loads(text)
    except (ValueError, RecursionError):  # a number with too many digits raises ValueError too
        raise _invalid_request(text) from None


def _split(text: str) -> list[str]:
    """Split a text at commas, and at spaces too where they do not belong to a `key=value`."""
    tags: list[str] = []
    for part in text.split(","):
        if _KEY_AND_VALUE.fullmatch(part):
            tags.append(part)
        else:
            tags.extend(part.split())
    return tags


def _entries_of_item(item: object) -> Mapping[Any, Any] | None:
    """Return an item of a list of tags as a map, None if it is neither a text nor a map."""
    if isinstance(item, Mapping):
        return item
    if not isinstance(item, str):
        return None

    match = _KEY_AND_VALUE.fullmatch(item)
    if match is None:
        return {item: True}
    return {match["key"]: match["value"]}


def parse_tag_name(key: object) -> str:
    """Return the key of a request as the name of a tag: no `#`, hyphens for spaces.

    Raises Invalid for a key that is no text, or if nothing is left of it. Other characters that no
    tag has are not checked.
    """
    if not isinstance(key, str):
        raise _invalid_request(key)

    name = hyphenate(bare_tag(key))
    if not name:
        raise _invalid_request(key)
    return name


def _invalid_request(value: object) -> Invalid:
    """Return the error for a value that is no request for tags, which quotes its beginning."""
    hint = HintSentence(
        "give_tags", 'Give {"todo": true, "status": "done"} or ["todo", "status/done"].'
    )
    return Invalid(f"{str(value)[:80]!r} is not a valid set of tags", hint=Hint(hint))


def respelling_warnings(value: object, written: Mapping[str, Any]) -> list[str]:
    """Return a warning for each tag of a request that a note could not store as requested.

    `value` is the request as the caller wrote it. `written` are the tags that the note has now, in
    the form of `tag_map`. There is a warning for spaces that became hyphens, and for a value False
    that the note stores outside its tags. Raises Invalid if `value` is no request.
    """
    warnings: list[str] = []

    for key, entry in read_entries(value):
        name = parse_tag_name(key)
        original = bare_tag(key)
        if isinstance(entry, str):
            value_in_tag = hyphenate(entry)
            if written.get(name) == value_in_tag:  # the tag contains its value
                name = f"{name}/{value_in_tag}"
                original = f"{original}/{entry.strip()}"

        if entry is False and name not in written:
            warnings.append(
                f"`{key}: false` was stored, which means that the note does not have the tag {name}"
            )
        elif original != name and entry not in (None, False):
            warnings.append(
                f"the tag {original!r} was written as {name}, because a tag has no spaces"
            )

    return warnings


def tags_left_in_text(changed: Note, changes: TagRequest) -> list[str]:
    """Return a warning for each tag in the text that a request removes or replaces.

    `changed` is the note after the request. A tag in the text is part of a sentence that somebody
    wrote, so it does not change together with the tags of the frontmatter. Each warning names the
    tag and its lines.
    """
    body = changed.body
    lines_by_tag: dict[str, list[int]] = {}
    for tag, line in zip(body.tags, body.tag_lines, strict=True):
        is_changed = any(_contradicts(tag, name, value) for name, value in changes.items())
        if is_changed:
            lines = lines_by_tag.setdefault(tag, [])
            lines.append(line)

    return [_tag_stays_warning(tag, lines) for tag, lines in lines_by_tag.items()]


def _contradicts(tag: str, name: str, value: RequestedValue) -> bool:
    """Return whether a request removes a tag of the text, or gives its name another value."""
    if value is True or not is_within(tag, name):
        return False
    if value is None or value is False:
        return True

    tag_with_value = nested_tag(name, str(value)) or name
    return not is_tag(tag, name) and not is_tag(tag, tag_with_value)


def _tag_stays_warning(tag: str, lines: Sequence[int]) -> str:
    """Return the warning for a tag of the text, with the first of the lines that have it."""
    first_lines = lines[:_MAX_LINE_NUMBERS]
    more_count = len(lines) - len(first_lines)
    noun = "line" if len(lines) == 1 else "lines"
    numbers = ", ".join(map(str, first_lines))
    where = f"{noun} {numbers}"
    if more_count:
        where += f" and {more_count} more"

    return (
        f"the tag #{tag} stays, because it is in the text ({where}); "
        "edit the text to remove it there"
    )


def without_header(
    content: str | None,
    metadata: Mapping[str, Any] | None,
) -> tuple[Any, dict[str, Any], list[str]]:
    """Return a content without the YAML block at its start, and the metadata with its values.

    The third result is a list with a warning that names the properties of the block. It is empty if
    there is no such block, and the content is then returned as it is. The values in `metadata` take
    precedence, but tags of both are combined. Raises Invalid if the content begins with a block of
    properties that cannot be read.
    """
    text = (content or "").lstrip()
    header = _read_leading_header(text)
    explicit = dict(metadata or {})
    if not header.properties:
        return content, explicit, []

    names = ", ".join(header.properties)
    warning = f"the YAML block at the start of the content was taken as metadata: {names}"
    body = text[header.body_start :]
    merged = _merge_metadata(header, explicit)
    return body, merged, [warning]


def _read_leading_header(text: str) -> Header:
    """Return the header that a content begins with; one without properties if there is none.

    Raises Invalid if the content begins with properties that cannot be read.
    """
    header = read_header(text)
    if header.style == "broken" and _HEADER_START.match(text):
        reason = header.problem.message if header.problem else ""
        raise Invalid(
            f"the YAML block that the content begins with cannot be read: {reason}",
            hint="Give the properties as metadata.",
        )
    return header


def _merge_metadata(header: Header, explicit: dict[str, Any]) -> dict[str, Any]:
    """Return the explicit metadata with the properties of a header that it does not have.

    Letter case of names is ignored, and None counts as not there. Tags of both are combined.
    """
    values: dict[str, Any] = {}
    for key, value in explicit.items():
        if value is not None:
            values[str(key).casefold()] = value

    additions = {
        key: value for key, value in header.properties.items() if key.casefold() not in values
    }
    merged = explicit | additions

    header_tags = header.get("tags")
    explicit_tags = values.get("tags")
    if header_tags and explicit_tags:
        entries = [*read_entries(header_tags), *read_entries(explicit_tags)]
        merged["tags"] = [{key: value} for key, value in entries]
    return merged
