"""A fact as the note `atoms/<scope>/<its first words>.md`.

The note has flat frontmatter. Its first paragraph is the statement. A person may add anything
below. What cannot be read in the frontmatter counts as absent. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from simplemem.features.fact import MEMORY_TYPES, STATUSES, Fact, Slot
from simplemem.features.facts.key_notes import CONVERSATION_FACT, read_conversation_fact
from simplemem.features.note_type import NoteType
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.header import Header, read_header
from simplemem.note.names import base_name, legal_name
from simplemem.note.note import Note
from simplemem.note.scopes import folder_of, scope_of
from simplemem.store import Read

_MAX_NAME: Final = 80  # characters
_MIN_WORD_END: Final = 20  # characters of a shortened name that are never cut off
# Properties of a note that are links or times, which are also the names of fields of `Fact`.
_LINKS: Final = ("updates", "extends", "source", "superseded_by", "disputed_by")
_TIMES: Final = ("valid_from", "valid_to", "reinforced", "disputed")

# To a blank line, or to the end.
_PARAGRAPH: Final = re.compile(r"\S(?:.*?\S)??(?=\s*\Z|[ \t]*\r?\n[ \t]*\r?\n)", re.DOTALL)
_DAY: Final = re.compile(r"\d{4}-?\d\d-?\d\d")
_LINK: Final = re.compile(r"\s*!?\[\[([^\[\]|#\n]+)[^\[\]\n]*\]\]\s*")


def fact_name(scope: str, statement: str) -> str:
    """Return the path of a new fact's note, without its ending. Another note may have it.

    It is the first words of the statement, up to 80 characters, in the folder of the scope.
    """
    title = statement[: _MAX_NAME + 1]
    if len(title) > _MAX_NAME:
        # Without a space, -1 cuts off the one character too many.
        last_space = title.rfind(" ", _MIN_WORD_END)
        title = title[:last_space]

    name = legal_name(title.strip().rstrip("."))
    return f"{FACT.folder}/{folder_of(scope)}/{name}"


def render_fact(fact: Fact, quote: str = "") -> str:
    """Return the text of a new fact's note, without properties that have no value.

    The `quote` from which the fact was extracted is added, unless it is the statement itself.
    """
    body = f"{fact.statement}\n"
    if quote and quote != fact.statement:
        quoted_lines = [f"> {line}\n" for line in quote.splitlines()]
        body += "\n" + "".join(quoted_lines)
    return FACT.render(_properties_of(fact), body, fact.created)


def _properties_of(fact: Fact) -> dict[str, Any]:
    """Return the properties of a fact's note in their order.

    Those without a value are absent, None or [], which `NoteType.render` leaves out.
    """
    properties: dict[str, Any] = {
        "id": fact.id,
        "memory_type": fact.memory_type,
        "scope": fact.scope,
    }

    slot = fact.slot or Slot()
    properties["subject"] = slot.subject or None
    properties["relation"] = slot.relation or None
    properties["object"] = slot.object or None

    is_certain = fact.confidence == 1
    properties["confidence"] = 1 if is_certain else round(fact.confidence, 4)
    for key in _TIMES:
        time = getattr(fact, key)
        if time:
            properties[key] = format_moment(time)
    for key in _LINKS:
        link = getattr(fact, key)
        if link:
            properties[key] = _as_link(link)

    properties["derived_from"] = [_as_link(link) for link in fact.derived_from]
    properties["status"] = fact.status
    properties["decided_by"] = fact.decided_by or None
    return properties


def _as_link(link: str) -> str:
    """Return a link with brackets, whether or not it had them."""
    return f"[[{link_target(link)}]]"


def replace_statement(text: str, statement: str) -> str:
    """Return the text of a fact's note with another statement. Every other byte stays.

    A note without a statement gets one at its end.
    """
    body_start = read_header(text).body_start
    start, stop = _statement_span(text, body_start)
    if start == stop:
        return f"{text.rstrip()}\n\n{statement}\n"
    return f"{text[:start]}{statement}{text[stop:]}"


def _statement_span(text: str, body_start: int) -> tuple[int, int]:
    """Return where the statement in a note starts and stops, as offsets in its text.

    The statement is the first paragraph from `body_start` that is no quotation. If there is none,
    both offsets are the end of the text.
    """
    for paragraph in _PARAGRAPH.finditer(text, body_start):
        is_quotation = text[paragraph.start()] == ">"
        if not is_quotation:
            return paragraph.span()

    return len(text), len(text)


def read_fact(read: Read) -> Fact:
    """Return the fact that a note states. Raise nothing: what cannot be read has its default.

    A note without a statement states its own name. A conversation's fact is one of the scope
    `default`; it has a problem, since this feature never changes it.
    """
    note, fields = FACT.parse(read)
    declared_type = note.text_property("type") or ""
    if CONVERSATION_FACT.includes(read.path, declared_type):
        return _as_default_scope_fact(read_conversation_fact(read))

    name = base_name(read.path)
    start, stop = _statement_span(note.text, note.header.body_start)
    statement = " ".join(note.text[start:stop].split())
    for key in _LINKS:
        fields[key] = link_target(_text_of(note, key))
    for key in _TIMES:
        fields[key] = parse_time(_text_of(note, key), is_end=key == "valid_to")
    return Fact(
        id=_text_of(note, "id") or name,
        statement=statement or name,
        scope=scope_of(read.path, _text_of(note, "scope")),
        memory_type=_read_memory_type(note),
        slot=_read_slot(note),
        confidence=_read_confidence(note.header),
        status=_read_status(note),
        derived_from=tuple(_read_parents(note.header)),
        decided_by=_text_of(note, "decided_by"),
        created=_text_of(note, "created"),
        **fields,
    )


def _text_of(note: Note, key: str) -> str:
    """Return the value of a property as text, "" if the note does not have it."""
    return note.text_property(key) or ""


def _as_default_scope_fact(fact: Fact) -> Fact:
    """Return a conversation's fact as this feature shows it, with a problem and a statement.

    Only conversations change its note, so its links to turns of conversations are left out.
    """
    return replace(
        fact,
        statement=fact.statement or f"{fact.key}: {fact.value}",
        problem="conversations keep it",
        disputed_by="",
        block_id="",
        text="",
    )


def _read_memory_type(note: Note) -> str:
    """Return the memory type that a note states, "fact" if it states none that exists."""
    memory_type = _text_of(note, "memory_type")
    return memory_type if memory_type in MEMORY_TYPES else "fact"


def _read_status(note: Note) -> str:
    """Return the status that a note states, "active" if it states none that exists.

    A note that names a fact which supersedes it is superseded, unless it is forgotten.
    """
    status = _text_of(note, "status")
    is_superseded = link_target(_text_of(note, "superseded_by")) != ""
    if is_superseded and status != "forgotten":
        return "superseded"
    return status if status in STATUSES else "active"


def _read_slot(note: Note) -> Slot | None:
    """Return the slot that a note states, None if it has no relation."""
    relation = _text_of(note, "relation")
    if not relation:
        return None
    return Slot(
        subject=_text_of(note, "subject"),
        relation=relation,
        object=_text_of(note, "object"),
    )


def _read_confidence(header: Header) -> float:
    """Return the confidence that a header states, 1 if it states no number from 0 to 1."""
    confidence = header.get("confidence")
    if isinstance(confidence, (int, float)) and 0 <= confidence <= 1:
        return float(confidence)
    return 1.0


def _read_parents(header: Header) -> Iterator[str]:
    """Yield the links to the facts from which a fact was derived, without their brackets."""
    parents = header.get("derived_from") or []
    if not isinstance(parents, list):
        parents = [parents]
    for parent in parents:
        yield link_target(str(parent))


def link_target(text: str) -> str:
    """Return the note that a wikilink names, or the text itself if it is no wikilink.

    A heading and an alias in the link are left out: "[[A#B|C]]" is "A".
    """
    link = _LINK.fullmatch(text)
    return link[1].strip() if link else text


def parse_time(text: str, *, is_end: bool = False) -> datetime | None:
    """Return the time that a text states, None if it states none.

    A date without a time is the beginning of its day; with `is_end`, the end.
    """
    if _DAY.fullmatch(text):
        time_of_day = "23:59:59" if is_end else "00:00:00"
        text = f"{text}T{time_of_day}Z"
    return parse_moment(text)


FACT: Final[NoteType[Fact]] = NoteType(
    "atoms",
    "atom",
    read=read_fact,
    sort_key=lambda fact: fact.path,
    related=(CONVERSATION_FACT,),
)
