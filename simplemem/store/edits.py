"""Make the text of a note, from new content or from its current text and an edit, and check it.

Everything here is pure: nothing is read or written. An edit leaves every character outside it as it
was.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

from simplemem.errors import Hint, HintSentence, Invalid, TooLong
from simplemem.note.dates import format_local_time, format_moment, local_now
from simplemem.note.header import find_key, read_header
from simplemem.note.note import Note
from simplemem.note.properties import remove_property, set_property
from simplemem.note.tag_changes import change_tags, tags_for_new_note
from simplemem.note.tag_requests import TagRequest, parse_tag_request
from simplemem.note.words import newline_of
from simplemem.note.yaml_writer import render_header
from simplemem.settings.model import Settings

if TYPE_CHECKING:
    from simplemem.note.secrets import Secret


# -- checks of a text

MAX_TEXT = 10 * 1024 * 1024  # characters of a note that simplemem writes
_MAX_SECRETS_NAMED = 5
_MAX_SECRETS_LISTED = 50  # in the details of an error


def check_text(
    settings: Settings,
    name: str,
    old_text: str,
    new_text: str,
    *,
    is_new: bool = True,
) -> list[str]:
    """Return warnings about the secrets that a change adds to the text of a note.

    Without a `name`, the texts are the old and the new name of a note. The result is empty if there
    are none, or if the settings do not look for secrets. Raises TooLong if a text grew beyond the
    limit, and Invalid if the settings refuse secrets. If the text is not new but restored
    (`is_new=False`), it raises neither.
    """
    if is_new and len(new_text) > max(MAX_TEXT, len(old_text)):
        message = f"the text has {len(new_text)} characters; the limit for a note is {MAX_TEXT}"
        raise TooLong(message, hint="Split it into several notes.")
    if settings.write.secrets == "off" or old_text == new_text:
        return []

    # Its patterns take a moment to compile, which only a write should cost.
    from simplemem.note.secrets import added_secrets

    secrets = added_secrets(old_text, new_text)
    if not secrets:
        return []

    named_secrets = secrets[:_MAX_SECRETS_NAMED]
    warnings = [_describe_secret(secret, name) for secret in named_secrets]
    if is_new and settings.write.secrets == "refuse":
        raise _secrets_refused(warnings, secrets)
    warnings.append(
        "Notes and their names are plain text, and the history keeps earlier versions."
        " Keep secrets elsewhere."
    )
    return warnings


def _describe_secret(secret: Secret, name: str) -> str:
    """Return the sentence that says where a secret is, and of which kind."""
    place = f"line {secret.line} of {name}" if name else "the name"
    article = "an" if secret.kind[0] in "AaEeIiOo" else "a"
    return f"{place} seems to contain {article} {secret.kind}, {secret.shown}"


def _secrets_refused(descriptions: Sequence[str], secrets: Sequence[Secret]) -> Invalid:
    """Return the error for a text that would bring secrets into a vault that refuses them."""
    listed_secrets = secrets[:_MAX_SECRETS_LISTED]
    details = [{"kind": secret.kind, "line": secret.line} for secret in listed_secrets]
    return Invalid(
        "; ".join(descriptions) + ": nothing was written",
        hint="Write where the secret is stored instead of the secret, or set write.secrets = warn.",
        secrets=details,
    )


# -- edits

_NEWLINE = re.compile(r"\r\n|\n|\r")


class NoteEdit(NamedTuple):
    """A change to the text of a note.

    `apply` returns the new text. `rebasable`: it can be applied to any other text of the note as
    well, as an append can. `verbatim`: the new text is a whole file that replaces any other, and it
    is written without a new `modified`.
    """

    apply: Callable[[Note], str]
    rebasable: bool = False
    verbatim: bool = False


def encoded(text: str) -> bytes:
    """Return the bytes of a note with this text. Raises Invalid for half a surrogate pair."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = (
            "the text contains a character that UTF-8 cannot encode"
            f" (a lone surrogate at {error.start})"
        )
        raise Invalid(message, hint="Leave it out, or send it as a surrogate pair.") from error


def _has_final_newline(text: str) -> bool:
    """Return whether a text ends with a line end."""
    return text.endswith(("\n", "\r"))


def _with_line_ends_of(text: str, addition: str) -> str:
    """Return an addition to a text with the line ends of that text, if those are not `\\n`."""
    newline = newline_of(text)
    return addition if newline == "\n" else _NEWLINE.sub(newline, addition)


# -- new notes

_LEADING_PROPERTIES = ("title", "description", "type")


def new_note_text(
    content: str,
    metadata: Mapping[str, Any],
    now: str,
    *,
    tags_as_map: bool = False,
) -> str:
    """Return the text of a new note: frontmatter, a blank line, and the content.

    Properties that are None, and an empty title, description or type, are left out. `modified` is
    `now`, whatever `metadata` says; `created` is `now` if `metadata` has none. Line ends before the
    content are left out, and one is added after it if it has none; without content, there is only
    the frontmatter. With `tags_as_map`, the tags are written in the notation of the original
    simplemem. Raises Invalid for tags or properties that cannot be written.
    """
    header = render_header(_properties_of_new_note(metadata, now, tags_as_map=tags_as_map))
    body = content.lstrip("\r\n")
    if not body:
        return header
    if not _has_final_newline(body):
        body += "\n"
    return f"{header}\n{body}"


def _properties_of_new_note(
    metadata: Mapping[str, Any], now: str, *, tags_as_map: bool
) -> dict[str, Any]:
    """Return the properties of a new note in the order in which they are written.

    Title, description, type and tags come first, `created` and `modified` last. `modified` is
    always `now`; `created` is `now` if `metadata` has none. Properties that are None are left out,
    and so are an empty title, description or type. With `tags_as_map`, `tags` is written as a map
    of tags to values, without the tags whose value is None. Otherwise it is a list, and tags with
    values become properties of their own. Raises Invalid for tags that cannot be read.
    """
    user_properties = {str(key): value for key, value in metadata.items() if value is not None}

    properties = {}
    for key in _LEADING_PROPERTIES:
        value = _pop_property(user_properties, key)
        if value not in (None, ""):
            properties[key] = value

    tags = _pop_property(user_properties, "tags")
    tag_request = parse_tag_request(tags or None)
    properties |= _tag_properties(tag_request, as_map=tags_as_map)

    created = _pop_property(user_properties, "created")
    if isinstance(created, date):
        created = created.isoformat()
    _pop_property(user_properties, "modified")
    properties |= user_properties
    properties["created"] = created or now
    properties["modified"] = now
    return properties


def _tag_properties(request: TagRequest, *, as_map: bool) -> dict[str, Any]:
    """Return the property `tags` of a new note, and other properties with the values of tags.

    With `as_map`, all are in `tags`, as a map. Without tags, there is no such property.
    """
    if as_map:
        tag_map = {tag: value for tag, value in request.items() if value is not None}
        return {"tags": tag_map} if tag_map else {}

    tags, tag_properties = tags_for_new_note(request)
    if not tags:
        return tag_properties
    return {"tags": tags, **tag_properties}


def _pop_property(properties: dict[str, Any], key: str) -> Any:
    """Remove a property, whatever the case of its name, and return its value; None if absent."""
    return properties.pop(find_key(properties, key) or key, None)


# -- the body

_MAX_LINES_NAMED = 10  # in which a text that should be unique occurs
_MAX_QUOTED = 80  # characters of a text in an error
_MAX_BODY_COMPARED = 200_000  # characters that are searched for a similar line
_MAX_LINES_COMPARED = 2000
_MAX_LINE_COMPARED = 200  # characters
_MIN_LINE_SIMILARITY = 0.6


def replace_content(note: Note, content: str) -> str:
    """Return the text of a note with another body.

    Its frontmatter, the blank lines below that, and its kind of line ends stay. A final line end is
    added if the old body had one or was empty.
    """
    start = note.content_start
    old_body = note.text[start:]
    if start > note.header.body_start:  # the blank lines below the frontmatter
        content = content.lstrip("\r\n")

    body = _with_line_ends_of(note.text, content)
    may_add_newline = not old_body or _has_final_newline(old_body)
    if body and may_add_newline and not _has_final_newline(body):
        body += newline_of(note.text)
    return note.text[:start] + body


def apply_edits(note: Note, edits: Sequence[Mapping[str, str]]) -> str:
    """Return the text of a note with each edit `{old, new}` made in turn.

    Raises Invalid if one of them is malformed, or if its `old` is not exactly once in the body that
    the edits before it left.
    """
    body = note.text[note.content_start :]
    for edit in edits:
        body = _apply_edit(note, body, edit)
    return note.text[: note.content_start] + body


def _apply_edit(note: Note, body: str, edit: Mapping[str, str]) -> str:
    """Return the body with `old` of an edit replaced by its `new`.

    Line ends of `old` may differ from those of the body; those of `new` become the note's. Raises
    Invalid unless both are texts, and `old` occurs exactly once in the body.
    """
    is_mapping = isinstance(edit, Mapping)
    old = edit.get("old") if is_mapping else None
    new = edit.get("new") if is_mapping else None
    if not isinstance(old, str) or not isinstance(new, str):
        raise Invalid(
            "an edit needs `old` and `new`, both strings",
            hint='Give {"old": "text", "new": "text"}.',
        )
    if not old:
        raise Invalid(
            "an edit has no text to replace",
            hint="Give `old` exactly as in the note, or use append.",
        )

    requested = old
    new = _with_line_ends_of(note.text, new)
    if old not in body:  # perhaps only its line ends differ from those of the note
        newline = newline_of(note.text)
        old = _NEWLINE.sub(newline, old)
        new = _NEWLINE.sub(newline, new)

    count = body.count(old)
    if count == 0:
        is_in_header = old in note.text
        raise _not_in_body(requested, body, is_in_header=is_in_header)
    if count > 1:
        head = note.text[: note.content_start]
        raise _not_unique(requested, count, _lines_with(old, head, body))
    return body.replace(old, new, 1)


def _not_in_body(requested: str, body: str, *, is_in_header: bool) -> Invalid:
    """Return the error for a text that is to be replaced and does not occur in the body.

    Its hint names a similar line, or metadata if the text is in the frontmatter (`is_in_header`).
    """
    quoted = _quote(requested)
    if is_in_header:
        use_metadata = HintSentence(
            "set_property",
            'Give metadata={"key": "value"} for a property; null removes it.',
            argument="metadata",
        )
        return Invalid(
            f"the text to replace is in the frontmatter: {quoted}",
            hint=Hint("Edits apply to the text below it.", use_metadata),
        )

    hint = "Read the note again, and give the text exactly."
    similar_line = _find_similar_line(requested, body)
    if similar_line is not None:
        hint = f"The nearest line is: {similar_line!r}."
    return Invalid(f"the text to replace is not in the note: {quoted}", hint=hint)


def _find_similar_line(requested: str, body: str) -> str | None:
    """Return the line of a body that is most like the first line of a text; None if none is."""
    first_line, _, _ = requested.strip().partition("\n")
    first_line = _shorten_line(first_line)
    if not first_line:
        return None

    body_lines = body[:_MAX_BODY_COMPARED].split("\n")
    lines = list(map(_shorten_line, body_lines[:_MAX_LINES_COMPARED]))
    lines = list(filter(None, lines))
    matches = difflib.get_close_matches(first_line, lines, 1, _MIN_LINE_SIMILARITY)
    return matches[0] if matches else None


def _shorten_line(line: str) -> str:
    """Return a line without the white space around it, cut to `_MAX_LINE_COMPARED` characters."""
    return line.strip()[:_MAX_LINE_COMPARED]


def _not_unique(requested: str, count: int, lines: Sequence[int]) -> Invalid:
    """Return the error for a text that is to be replaced and occurs more than once."""
    places = ", ".join(str(line) for line in lines)
    message = f"the text to replace occurs {count} times, in lines {places}: {_quote(requested)}"
    return Invalid(message, hint="Give more of the surrounding text.")


def _lines_with(text: str, head: str, body: str) -> list[int]:
    """Return the lines of a note in which a text occurs in the body: the first few of them.

    The note is `head` and `body`. Occurrences may overlap.
    """
    lines = list[int]()
    position = body.find(text)
    while position >= 0 and len(lines) < _MAX_LINES_NAMED:
        newlines_before = _NEWLINE.findall(head + body[:position])
        lines.append(len(newlines_before) + 1)
        position = body.find(text, position + 1)
    return lines


def _quote(text: str) -> str:
    """Return a text in quotation marks, as an error shows it: its first 80 characters."""
    if len(text) > _MAX_QUOTED:
        text = text[: _MAX_QUOTED - 3] + "..."
    return repr(text)


# -- the frontmatter

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATE_CHARACTERS = len("2026-01-24")
_UTC_OFFSET = re.compile(r"(?P<offset>Z|[+-]\d\d:?\d\d)$")


def apply_metadata(text: str, metadata: Mapping[str, Any]) -> str:
    """Return the text of a note with these properties; None removes one, all others stay.

    A list of tags replaces the tags; a map of tags changes those that it names. `modified` is
    ignored. Raises Invalid for a property that cannot be written, and Unreadable if the frontmatter
    cannot be changed.
    """
    for name, value in metadata.items():
        key = str(name)
        folded_key = key.casefold()
        if folded_key == "modified":
            continue
        if folded_key == "tags" and value is not None:
            text = _apply_tags(text, key, value)
        else:
            text = _apply_property(text, key, value)
    return text


def _apply_tags(text: str, key: str, tags: object) -> str:
    """Return the text of a note with other tags: a list replaces them, a map changes some.

    `key` is the caller's spelling of `tags`. Raises as `apply_metadata` does.
    """
    request = parse_tag_request(tags)
    if not isinstance(tags, list):
        return change_tags(text, request)

    tag_list, tag_properties = tags_for_new_note(request)
    for name, value in tag_properties.items():
        text = set_property(text, name, value)
    return _apply_property(text, key, tag_list)


def _apply_property(text: str, key: str, value: object) -> str:
    """Return the text of a note with a property, or without it if the value is None.

    The property keeps the spelling that the note has. Raises as `apply_metadata` does.
    """
    properties = read_header(text).properties
    own_key = find_key(properties, key) or key
    if value is None:
        return remove_property(text, own_key)
    if own_key in properties and properties[own_key] == value:
        return text
    return set_property(text, own_key, value)


def stamp_modified(text: str, now: str) -> str:
    """Return the text of a note with a new `modified`, in the notation that it has.

    A note without this property, or whose frontmatter cannot be read, stays as it is.
    """
    header = read_header(text)
    key = find_key(header.properties, "modified")
    if key is None or header.problem is not None:
        return text

    old = header.properties[key]
    stamp = _in_notation_of(old, now)
    if old == stamp:
        return text
    return set_property(text, key, stamp)


def _in_notation_of(old: object, now: str) -> str:
    """Return the local time `now` in the notation of an old value.

    It is a date if the old value is one, has an offset or is in UTC if the old one was so, and is
    `now` itself otherwise. A property with a date has the type "Date" in Obsidian, which does not
    accept a time.
    """
    match = None
    if isinstance(old, str):
        if _DATE.fullmatch(old.strip()):
            return now[:_DATE_CHARACTERS]
        match = _UTC_OFFSET.search(old.strip())
    if match is None:
        return now

    moment = datetime.fromisoformat(now).astimezone()
    if match["offset"] == "Z":
        return format_moment(moment)
    return moment.isoformat(timespec="seconds")


def now() -> str:
    """Return the current local time to the second, as the properties of notes have it."""
    return format_local_time(local_now())
