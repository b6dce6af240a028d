"""A fact as the note `atoms/<scope>/<its first words>.md`, and what a caller asks to keep.

The note has flat frontmatter. Its first paragraph is the statement; a person may add anything below. What cannot be
read in the frontmatter counts as absent. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Final, NamedTuple

from simplemem.features.conversations.facts import CONVERSATION_FACT, read_conversation_fact
from simplemem.features.fact import MEMORY_TYPES, STATUSES, Fact, Slot
from simplemem.features.note_type import NoteType
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.header import Header, read_header
from simplemem.note.names import base_name, legal_name
from simplemem.note.note import Note
from simplemem.note.scopes import folder_of, scope_of
from simplemem.store import Read

_MAX_NAME: Final = 80  # characters
_MIN_WORD_END: Final = 20  # characters of a shortened name that are never cut off
_LINKS: Final = ("updates", "extends", "source", "superseded_by", "disputed_by")
_TIMES: Final = ("valid_from", "valid_to", "reinforced", "disputed")
# To a blank line, or to the end.
_PARAGRAPH: Final = re.compile(r"\S(?:.*?\S)??(?=\s*\Z|[ \t]*\r?\n[ \t]*\r?\n)", re.DOTALL)
_DAY: Final = re.compile(r"\d{4}-?\d\d-?\d\d")
_LINK: Final = re.compile(r"\s*!?\[\[([^\[\]|#\n]+)[^\[\]\n]*\]\]\s*")


class NewFact(NamedTuple):
    """A fact to keep. What is empty is worked out by rules."""

    text: str
    memory_type: str = ""
    slot: Slot | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    quote: str = ""  # the words from which it was extracted, if they differ
    confidence: float = 1.0
    decided_by: str = ""


def fact_name(scope: str, statement: str) -> str:
    """Return the name of a new fact's note: the first words of its statement, in the folder of its scope."""
    title = statement[: _MAX_NAME + 1]
    if len(title) > _MAX_NAME:
        last_space = title.rfind(" ", _MIN_WORD_END)  # -1 cuts off the last character
        title = title[:last_space]
    return f"{FACT.folder}/{folder_of(scope)}/{legal_name(title.strip().rstrip('.'))}"


def render_fact(fact: Fact, quote: str = "") -> str:
    """Return the text of a new fact's note, without properties that have no value."""
    properties: dict[str, Any] = {
        "id": fact.id,
        "memory_type": fact.memory_type,
        "scope": fact.scope,
    }
    slot = fact.slot or Slot()
    for key, word in slot._asdict().items():
        properties[key] = word or None
    properties["confidence"] = 1 if fact.confidence == 1 else round(fact.confidence, 4)
    for key in _TIMES:
        time = getattr(fact, key)
        if time:
            properties[key] = format_moment(time)
    for key in _LINKS:
        link = getattr(fact, key)
        if link:
            properties[key] = f"[[{link_target(link)}]]"
    properties["derived_from"] = [f"[[{link_target(link)}]]" for link in fact.derived_from]
    properties["status"] = fact.status
    properties["decided_by"] = fact.decided_by or None

    body = fact.statement + "\n"
    if quote and quote != fact.statement:
        body += "\n" + "".join(f"> {line}\n" for line in quote.splitlines())
    return FACT.render(properties, body, fact.created)


def replace_statement(text: str, statement: str) -> str:
    """Return a fact's note with another statement. Every other byte stays."""
    start, end = _statement_span(text, read_header(text).body_start)
    if start == end:
        return f"{text.rstrip()}\n\n{statement}\n"
    return f"{text[:start]}{statement}{text[end:]}"


def _statement_span(text: str, body_start: int) -> tuple[int, int]:
    """Return where the first paragraph is that is no quotation; an empty span at the end if there is none."""
    for paragraph in _PARAGRAPH.finditer(text, body_start):
        if text[paragraph.start()] != ">":
            return paragraph.span()

    return len(text), len(text)


def read_fact(read: Read) -> Fact:
    """Return the fact that a note is. A conversation's fact is one of the scope `default`."""
    note, fields = FACT.parse(read)
    if CONVERSATION_FACT.includes(read.path, note.text_property("type") or ""):
        return _as_default_scope_fact(read_conversation_fact(read))

    name = base_name(read.path)
    memory_type = note.text_property("memory_type")
    status = _read_status(note)
    start, end = _statement_span(note.text, note.header.body_start)
    for key in _LINKS:
        fields[key] = link_target(note.text_property(key) or "")
    for key in _TIMES:
        fields[key] = parse_time(note.text_property(key) or "", is_end=key == "valid_to")
    return Fact(
        id=note.text_property("id") or name,
        statement=" ".join(note.text[start:end].split()) or name,
        scope=scope_of(read.path, note.text_property("scope") or ""),
        memory_type=memory_type if memory_type in MEMORY_TYPES else "fact",
        slot=_read_slot(note),
        confidence=_read_confidence(note.header),
        status=status,
        derived_from=tuple(_read_parents(note.header)),
        decided_by=note.text_property("decided_by") or "",
        created=note.text_property("created") or "",
        **fields,
    )


def _as_default_scope_fact(fact: Fact) -> Fact:
    """Return a conversation's fact as this feature shows it. Only conversations change its note."""
    return replace(
        fact,
        statement=fact.statement or f"{fact.key}: {fact.value}",
        problem="conversations keep it",
        disputed_by="",
        block_id="",
        text="",
    )


def _read_status(note: Note) -> str:
    status = note.text_property("status") or ""
    is_superseded = bool(link_target(note.text_property("superseded_by") or ""))
    if is_superseded and status != "forgotten":
        return "superseded"
    return status if status in STATUSES else "active"


def _read_slot(note: Note) -> Slot | None:
    relation = note.text_property("relation")
    if not relation:
        return None
    subject = note.text_property("subject") or ""
    value = note.text_property("object") or ""
    return Slot(subject, relation, value)


def _read_confidence(header: Header) -> float:
    confidence = header.get("confidence")
    if isinstance(confidence, (int, float)) and 0 <= confidence <= 1:
        return float(confidence)
    return 1.0


def _read_parents(header: Header) -> Iterator[str]:
    """Yield the links to the facts from which a fact was derived."""
    parents = header.get("derived_from") or []
    if not isinstance(parents, list):
        parents = [parents]
    for parent in parents:
        yield link_target(str(parent))


def link_target(text: str) -> str:
    """Return the text between the brackets of a link, or the text itself if it is no link."""
    link = _LINK.fullmatch(text)
    return link[1].strip() if link else text


def parse_time(text: str, *, is_end: bool = False) -> datetime | None:
    """Return the time that a text states, None if it states none.

    A date without a time is the beginning of its day; with `is_end`, the end.
    """
    if _DAY.fullmatch(text):
        text += "T23:59:59Z" if is_end else "T00:00:00Z"
    return parse_moment(text)


FACT: Final[NoteType[Fact]] = NoteType(
    "atoms",
    "atom",
    read=read_fact,
    sort_key=lambda fact: fact.path,
    related=(CONVERSATION_FACT,),
)
