"""What a change makes of a note's text. Pure: from one text to the next, every byte outside the change as it was.

Our own writes stamp `modified` where a note has that property; a note without it does not get one. What a write would add
that looks like a password or key is said with the answer, or refused, as `write.secrets` says; only what is added is judged,
and nothing here shows, logs or keeps what it found.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Self

from simplemem.config import Settings
from simplemem.errors import Invalid, TooLong
from simplemem.note.header import find_key, read_header
from simplemem.note.note import Note
from simplemem.note.properties import remove_property, render_header, set_property
from simplemem.note.tags import change_tags, parse_tag_request, tags_for_new_note

if TYPE_CHECKING:
    from simplemem.note.secrets import Secret

_MOST_SAID = 5  # secrets that are named one by one
MAX_TEXT = 10 * 1024 * 1024  # characters that a call may write
_OURS = ("created", "modified")
_NEWLINE = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Edit:
    """Replace `old`, which must stand exactly once in the body, by `new`."""

    old: str
    new: str

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """An edit as a caller gives it."""
        old, new = given.get("old"), given.get("new")
        if not isinstance(old, str) or not isinstance(new, str):
            raise Invalid("an edit needs `old` and `new`, both text")
        return cls(old, new)


@dataclass(frozen=True, slots=True)
class Making:
    """What a change makes of a note's text. `again` says that it can be made of any text as well: an append, or an edit
    whose place is still there. A `whole` one is the text itself, which gets no stamp."""

    make: Callable[[Note], str]
    again: bool = False
    whole: bool = False


def new_text(name: str, content: str, metadata: Mapping[str, Any], now: str, *, tags_as_map: bool = False) -> str:
    """The text of a note that is made by us: a header as Obsidian writes it, a blank line, the content. With
    `tags_as_map` its tags are the map that the original simplemem wrote."""
    properties: dict[str, Any] = {}
    given = {str(key): value for key, value in metadata.items() if value is not None}
    request = given.pop(find_key(given, "tags") or "tags", None)
    created = given.pop(find_key(given, "created") or "created", None)
    given.pop(find_key(given, "modified") or "modified", None)
    for key in ("title", "description", "type"):
        held = find_key(given, key)
        if held is not None and given[held] != "":
            properties[key] = given[held]
        given.pop(held or key, None)
    extra: dict[str, Any] = {}
    if tags_as_map and request not in (None, "", [], {}):
        properties["tags"] = {key: value for key, value in parse_tag_request(request).items() if value is not None}
    elif request not in (None, "", [], {}):
        tags, extra = tags_for_new_note(parse_tag_request(request))
        if tags:
            properties["tags"] = tags
    properties |= extra | given
    properties["created"] = (created.isoformat() if isinstance(created, date) else created) or now
    properties["modified"] = now
    _refuse_huge(content)
    header = render_header(properties)
    if read_header(header).properties != properties:
        raise Invalid(f"the metadata of {name} cannot be written as YAML that reads back the same")
    body = content.lstrip("\r\n")
    if not body:
        return header
    return f"{header}\n{body}" + ("" if body.endswith(("\n", "\r")) else "\n")


def replace_content(note: Note, content: str) -> str:
    """The note with another body. The blank lines below its header, its line ends and its header stay."""
    _refuse_huge(content)
    start = note.content_start
    body = _in_line_ends_of(note.text, content.lstrip("\r\n") if start > note.header.body_start else content)
    old = note.text[start:]
    if body and not body.endswith(("\n", "\r")) and (old.endswith(("\n", "\r")) or not old):
        body += newline_of(note.text)
    return note.text[:start] + body


def append_content(note: Note, addition: str) -> str:
    """The note with text added at its end, on a line of its own."""
    _refuse_huge(addition)
    text = note.text
    gap = "" if not text or text.endswith(("\n", "\r")) else newline_of(text)
    added = _in_line_ends_of(text, addition)
    return text + gap + added + ("" if added.endswith(("\n", "\r")) else newline_of(text))


def apply_edits(note: Note, edits: Sequence[Edit]) -> str:
    """The note with each edit made in turn. None is made unless all can be."""
    start = note.content_start
    head, body = note.text[:start], note.text[start:]
    for edit in edits:
        if not edit.old:
            raise Invalid("an edit has no text to replace", hint="Give `old` as it stands in the note, or use append.")
        old, new = edit.old, _in_line_ends_of(note.text, edit.new)
        if old not in body:
            old, new = _with_line_ends(old, newline_of(note.text)), _with_line_ends(new, newline_of(note.text))
        count = body.count(old)
        if count == 0:
            raise Invalid(
                f"the text to replace does not stand in the note: {_short(edit.old)!r}",
                hint=_nearest_line(body, edit.old)
                or "Read the note again; give the text exactly, without line numbers.",
            )
        if count > 1:
            lines = [str(_line_at(note.text, start + at)) for at in _places(body, old)]
            raise Invalid(
                f"the text to replace stands {count} times, in lines {', '.join(lines)}: {_short(edit.old)!r}",
                hint="Give more of the text around it, so that it stands once.",
            )
        body = body.replace(old, new, 1)
    _refuse_huge(body)
    return head + body


def apply_metadata(text: str, metadata: Mapping[str, Any]) -> str:
    """The header with properties merged key by key; null takes one away. A map of tags changes only the tags it names."""
    for key, value in metadata.items():
        if str(key).casefold() in _OURS and str(key).casefold() != "created":
            continue
        if str(key).casefold() == "tags" and value is not None and not isinstance(value, list):
            text = change_tags(text, parse_tag_request(value))
            continue
        header = read_header(text)
        held = find_key(header.properties, str(key)) or str(key)
        if str(key).casefold() == "tags" and isinstance(value, list):
            value, extra = tags_for_new_note(parse_tag_request(value))
            for name, wanted in extra.items():
                text = set_property(text, name, wanted)
        if value is None:
            text = remove_property(text, held)
        elif held not in header.properties or header.properties[held] != value:
            text = set_property(text, held, value)
    return text


def stamp_modified(text: str, now: str) -> str:
    """Our mark that we changed the note, where it keeps such a mark."""
    header = read_header(text)
    key = find_key(header.properties, "modified")
    if key is None or not header.editable:
        return text
    held = header.properties[key]
    if isinstance(held, str) and (offset := re.search(r"(Z|[+-]\d\d:?\d\d)$", held.strip())):
        now = _with_offset(now, offset[1])
    return set_property(text, key, now) if held != now else text


def _with_offset(now: str, sample: str) -> str:
    """The time in the notation the note has."""
    from datetime import UTC, datetime

    moment = datetime.fromisoformat(now).astimezone()
    if sample == "Z":
        return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return moment.isoformat(timespec="seconds")


def newline_of(text: str) -> str:
    """The line end a note uses: its first one."""
    found = _NEWLINE.search(text)
    return found.group() if found else "\n"


def _in_line_ends_of(text: str, addition: str) -> str:
    newline = newline_of(text)
    return addition if newline == "\n" else _with_line_ends(addition, newline)


def _with_line_ends(text: str, newline: str) -> str:
    return _NEWLINE.sub(newline, text)


def _refuse_huge(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise TooLong(
            f"the text has {len(text)} characters; a note may have {MAX_TEXT}",
            hint="Split it into several notes.",
        )


def _places(body: str, old: str) -> list[int]:
    found: list[int] = []
    at = body.find(old)
    while at >= 0 and len(found) < 10:
        found.append(at)
        at = body.find(old, at + 1)
    return found


def _line_at(text: str, offset: int) -> int:
    return len(_NEWLINE.findall(text, 0, offset)) + 1


def _short(text: str) -> str:
    return text if len(text) <= 80 else text[:77] + "..."


def _nearest_line(body: str, old: str) -> str:
    """The line of the note most like the one that was asked for."""
    wanted = old.strip().split("\n", 1)[0].strip()[:200]
    lines = [line.strip()[:200] for line in body[:200_000].split("\n")[:2000] if line.strip()]
    near = difflib.get_close_matches(wanted, lines, 1, 0.6) if wanted else []
    return f"The nearest line is: {near[0]!r}." if near else ""


def encoded(text: str) -> bytes:
    """A note's text as its file holds it."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise Invalid(
            f"the text holds a character that UTF-8 cannot carry (a lone surrogate at {error.start})",
            hint="Leave it out, or send it as a proper pair.",
        ) from error


# -- secrets


def judge(settings: Settings, name: str, before: str, after: str, *, anew: bool = True) -> list[str]:
    """What is to be said of the secrets that a change of a note adds. Invalid when they are refused. What is not `anew`
    comes back from the history, where it lies anyway: that is said, and never refused."""
    secrets = _added(settings, before, after)
    if not secrets:
        return []
    said = [f"line {each.line} of {name} seems to hold {_a(each)} {each.shown}" for each in secrets[:_MOST_SAID]]
    if len(secrets) > _MOST_SAID:
        said.append(f"and {len(secrets) - _MOST_SAID} more are in it")
    if anew and settings.write.secrets == "refuse":
        raise Invalid(
            "; ".join(said) + ": nothing was written",
            hint="Leave it out and say where it is kept; write.secrets = warn would let it pass.",
            secrets=[{"kind": each.kind, "line": each.line} for each in secrets[:50]],
        )
    return [*said, "Notes are plain text, and earlier versions are kept. A secret is better kept elsewhere."]


def judge_name(settings: Settings, name: str, before: str = "") -> list[str]:
    """What is to be said of secrets in the name that a note gets: names are listed, linked and logged. The one that it had
    is not judged."""
    secrets = _added(settings, before, name)
    if not secrets:
        return []
    said = [f"the name seems to hold {_a(each)} {each.shown}" for each in secrets[:_MOST_SAID]]
    if settings.write.secrets == "refuse":
        hint = "Give it another name; write.secrets = warn would let this one pass."
        raise Invalid("; ".join(said) + ": nothing was written", hint=hint)
    return [*said, "Names stand in lists, links and the history. A secret is better kept elsewhere."]


def _added(settings: Settings, before: str, after: str) -> list[Secret]:
    """The secrets that a text adds to the one before it; none where nobody wants to hear of them."""
    if settings.write.secrets == "off" or before == after:
        return []
    from simplemem.note.secrets import added_secrets  # its patterns take a moment that only a write should pay

    return added_secrets(before, after)


def _a(secret: Secret) -> str:
    return f"{'an' if secret.kind[0] in 'AaEeIiOo' else 'a'} {secret.kind},"
