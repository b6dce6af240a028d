"""What a change makes of a note's text, and what is to be said of what it adds. Pure: nothing is read or written here.
Of a secret, kind and line are named, no text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from simplemem.config import Settings
from simplemem.errors import Invalid, TooLong
from simplemem.note.header import find_key, read_header
from simplemem.note.note import Note
from simplemem.note.properties import remove_property, render_header, set_property
from simplemem.note.tags import change_tags as with_tags
from simplemem.note.tags import parse_tag_request, tags_for_new_note

MAX_TEXT = 10 * 1024 * 1024  # characters that a note may be given
_MOST_SECRETS = 5  # that are named one by one
_NEWLINE = re.compile(r"\r\n|\n|\r")


def new_text(content: str, metadata: Mapping[str, Any], now: str, *, tags_as_map: bool = False) -> str:
    """The text of a note that we make: header, blank line, content; `tags_as_map` as the original simplemem wrote."""
    given = {str(key): value for key, value in metadata.items() if value is not None}
    ours = ("title", "description", "type", "tags", "created", "modified")
    *said, tags, created, _ = (given.pop(find_key(given, key) or key, None) for key in ours)
    properties: dict[str, Any] = {key: value for key, value in zip(ours, said, strict=False) if value not in (None, "")}
    request = parse_tag_request(tags or None)
    as_map = {key: value for key, value in request.items() if value is not None}
    tags, extra = (as_map, {}) if tags_as_map else tags_for_new_note(request)
    properties |= ({"tags": tags} if tags else {}) | extra | given
    properties["created"] = (created.isoformat() if isinstance(created, date) else created) or now
    properties["modified"] = now
    body = content.lstrip("\r\n")
    return render_header(properties) + (f"\n{body}" if body else "") + ("" if not body or _ends(body) else "\n")


def replace_content(note: Note, content: str) -> str:
    """The note with another body. The blank lines below its header, its line ends and its header stay."""
    start = note.content_start
    body = _in_line_ends_of(note.text, content.lstrip("\r\n") if start > note.header.body_start else content)
    old = note.text[start:]
    if body and not _ends(body) and (_ends(old) or not old):
        body += _newline_of(note.text)
    return note.text[:start] + body


def append_content(note: Note, addition: str) -> str:
    """The note with text added at its end, on a line of its own."""
    text, newline = note.text, _newline_of(note.text)
    added = _in_line_ends_of(text, addition)
    return text + ("" if not text or _ends(text) else newline) + added + ("" if _ends(added) else newline)


def apply_edits(note: Note, edits: Sequence[Mapping[str, str]]) -> str:
    """The note with each edit `{old, new}` made in turn. None is made unless all can be."""
    start, newline = note.content_start, _newline_of(note.text)
    head, body = note.text[:start], note.text[start:]
    for edit in edits:
        given, new = edit.get("old"), edit.get("new")
        if not isinstance(given, str) or not isinstance(new, str):
            raise Invalid("an edit needs `old` and `new`, both text")
        if not given:
            raise Invalid("an edit has no text to replace", hint="Give `old` as it stands in the note, or use append.")
        old, new = given, _in_line_ends_of(note.text, new)
        if old not in body:
            old, new = _NEWLINE.sub(newline, old), _NEWLINE.sub(newline, new)
        count, shown = body.count(old), repr(given if len(given) <= 80 else given[:77] + "...")
        if count == 0:
            wanted = given.strip().split("\n", 1)[0].strip()[:200]
            lines = [line.strip()[:200] for line in body[:200_000].split("\n")[:2000] if line.strip()]
            near = difflib.get_close_matches(wanted, lines, 1, 0.6) if wanted else []
            hint = f"The nearest line is: {near[0]!r}." if near else "Read the note again; give the text exactly."
            raise Invalid(f"the text to replace does not stand in the note: {shown}", hint=hint)
        if count > 1:
            places, at = list[int](), -1
            while len(places) < 10 and (at := body.find(old, at + 1)) >= 0:
                places.append(at)
            where = ", ".join(str(len(_NEWLINE.findall(head + body[:place])) + 1) for place in places)
            hint = "Give more of the text around it, so that it stands once."
            raise Invalid(f"the text to replace stands {count} times, in lines {where}: {shown}", hint=hint)
        body = body.replace(old, new, 1)
    return head + body


def apply_metadata(text: str, metadata: Mapping[str, Any]) -> str:
    """The header with properties merged key by key; null takes one away. A map of tags changes those it names."""
    for key, value in metadata.items():
        folded = str(key).casefold()
        if folded == "modified":
            continue
        if folded == "tags" and value is not None:
            request = parse_tag_request(value)
            if not isinstance(value, list):
                text = with_tags(text, request)
                continue
            value, extra = tags_for_new_note(request)
            for name, wanted in extra.items():
                text = set_property(text, name, wanted)
        properties = read_header(text).properties
        held = find_key(properties, str(key)) or str(key)
        if value is None:
            text = remove_property(text, held)
        elif held not in properties or properties[held] != value:
            text = set_property(text, held, value)
    return text


def stamp_modified(text: str, now: str) -> str:
    """Our mark that we changed the note, where it keeps such a mark, in the notation it has."""
    header = read_header(text)
    key = find_key(header.properties, "modified")
    if key is None or header.problem is not None:
        return text
    held = header.properties[key]
    if isinstance(held, str) and (offset := re.search(r"(Z|[+-]\d\d:?\d\d)$", held.strip())):
        moment = datetime.fromisoformat(now).astimezone()
        in_utc = moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        now = in_utc if offset[1] == "Z" else moment.isoformat(timespec="seconds")
    return set_property(text, key, now) if held != now else text


def now() -> str:
    """The time as our notes have it: local, to the second."""
    return datetime.now().strftime("%Y-%m-%dT%H:%M:%S")  # noqa: DTZ005  (local, as notes are)


def encoded(text: str) -> bytes:
    """A note's text as its file holds it."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        message = f"the text holds a character that UTF-8 cannot carry (a lone surrogate at {error.start})"
        raise Invalid(message, hint="Leave it out, or send it as a proper pair.") from error


def _ends(text: str) -> bool:
    """Whether a text ends with a line end."""
    return text.endswith(("\n", "\r"))


def _newline_of(text: str) -> str:
    """The line end a note uses: its first one."""
    found = _NEWLINE.search(text)
    return found.group() if found else "\n"


def _in_line_ends_of(text: str, addition: str) -> str:
    newline = _newline_of(text)
    return addition if newline == "\n" else _NEWLINE.sub(newline, addition)


def judge(settings: Settings, name: str, before: str, after: str, *, anew: bool = True) -> list[str]:
    """What is to be said of the secrets that a change adds to a note, or without a `name` to its name. Invalid when
    they are refused, TooLong for a text that grew too long; never for what is not `anew`."""
    if anew and len(after) > max(MAX_TEXT, len(before)):
        message = f"the text has {len(after)} characters; a note may have {MAX_TEXT}"
        raise TooLong(message, hint="Split it into several notes.")
    if settings.write.secrets == "off" or before == after:
        return []
    from simplemem.note.hidden import added_secrets  # its patterns take a moment that only a write should pay

    said = []
    for each in (secrets := added_secrets(before, after))[:_MOST_SECRETS]:
        where = f"line {each.line} of {name}" if name else "the name"
        said.append(f"{where} seems to hold {'an' if each.kind[0] in 'AaEeIiOo' else 'a'} {each.kind}, {each.shown}")
    if secrets and anew and settings.write.secrets == "refuse":
        hint = "Leave it out and say where it is kept; write.secrets = warn would let it pass."
        found = [{"kind": each.kind, "line": each.line} for each in secrets[:50]]
        raise Invalid("; ".join(said) + ": nothing was written", hint=hint, secrets=found)
    kept = "Notes and their names are plain text, and earlier versions are kept. Keep secrets elsewhere."
    return [*said, kept] if said else []
