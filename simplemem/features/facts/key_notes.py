"""A fact of conversations: the note `facts/<key>.md`.

The note has the value of the fact, the sentence in which it was stated last, and its history, one
line per version with a link to the turn. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.features.answers import FactOut
from simplemem.features.changes import StatedSubject, subject_of
from simplemem.features.fact import EPOCH, Fact, Slot
from simplemem.features.facts.stated import StatedFact, key_of
from simplemem.features.graph.literals import format_text, parse_text
from simplemem.features.note_type import NoteType
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.header import Header, read_header
from simplemem.note.names import base_name
from simplemem.note.note import Note
from simplemem.note.passages import add_line, section_span
from simplemem.note.properties import remove_property, set_property
from simplemem.note.words import shorten
from simplemem.store import Read

_QUOTE: Final = re.compile(r"^> ?([^\r\n]*)", re.MULTILINE)
_VERSION: Final = re.compile(r"^- (.*?) · (\S+) · \[\[([^\[\]\n]*)\]\]", re.MULTILINE)
_HISTORY: Final = "History"  # the heading of the section
_MAX_QUOTE: Final = 300  # characters
_DEFAULT_CONFIDENCE: Final = 0.8  # of a note that states none


class FactVersion(NamedTuple):
    """A line of a fact's history: when a value was stated, and a link to the turn."""

    at: datetime
    value: str
    link: str  # without brackets

    def __str__(self) -> str:
        """Return the line of the history, without a line break."""
        return f"- {format_text(self.value)} · {format_moment(self.at)} · [[{self.link}]]"

    @property
    def rank(self) -> tuple[datetime, str]:
        """What versions are ordered by. Two with the same rank are the same version."""
        return self.at, self.value


class _HistoryLine(NamedTuple):
    """A version, and the offset of its line in the note."""

    start: int
    version: FactVersion


def stated_at(fact: Fact) -> datetime:
    """Return when a fact was stated last, 1970 if its note does not say."""
    return fact.stated or fact.valid_from or EPOCH


def stated_subject(fact: Fact) -> StatedSubject:
    """Return what a fact is about, for a comparison with what later turns say has changed."""
    subject = subject_of(fact.statement, fact.key.replace("_", " "), fact.value)
    return StatedSubject(subject, stated_at(fact).year)


def fact_out(fact: Fact | StatedFact, block_id: str) -> FactOut:
    """Return a fact in the form that clients get. `block_id` is the id of its topic."""
    return FactOut(
        key=fact.key,
        value=fact.value,
        block_id=block_id,
        confidence=fact.confidence,
    )


def read_conversation_fact(read: Read) -> Fact:
    """Return the fact that a note states, the user's changes of the note included.

    What the frontmatter does not say is taken from the history, and the key from the note's name.
    Never raises: `problem` says why a note cannot be changed.
    """
    note, fields = CONVERSATION_FACT.parse(read)
    name = base_name(read.path)
    latest = _latest_version(note.text)
    name_of_key = note.text_property("key") or note.text_property("title") or name
    key = key_of(name_of_key)
    value = parse_text(note.text_property("value") or latest.value)
    disputed = _moment_property(note, "disputed")
    superseded_by = (note.text_property("superseded_by") or "").strip("[] ")
    return Fact(
        id=name,
        statement=_read_quote(note),
        scope="default",
        slot=Slot(note.text_property("subject") or "", key.replace("_", " "), value),
        confidence=_read_confidence(note.header),
        valid_from=_moment_property(note, "valid_from") or latest.at,
        valid_to=_moment_property(note, "valid_to"),
        stated=_moment_property(note, "stated"),
        status=_status_of(superseded_by, disputed),
        superseded_by=superseded_by,
        disputed=disputed,
        disputed_by=_block_of_link(note.text_property("disputed_by") or ""),
        block_id=note.text_property("block_id") or "",
        text=note.text,
        **fields,
    )


def _status_of(superseded_by: str, disputed: datetime | None) -> str:
    """Return the status of a fact by what its note says of later facts."""
    if superseded_by:
        return "superseded"
    return "active" if disputed is None else "disputed"


def _latest_version(text: str) -> FactVersion:
    """Return the last line of a fact's history, an empty version if there is none."""
    versions = fact_versions(text)
    return versions[-1] if versions else FactVersion(EPOCH, "", "")


def _read_quote(note: Note) -> str:
    """Return the first quoted line of a fact's note, "" if there is none."""
    quote = _QUOTE.search(note.text, note.header.body_start)
    return quote[1].strip() if quote else ""


def _moment_property(note: Note, name: str) -> datetime | None:
    """Return the time in a property, None if it has none that can be read."""
    return parse_moment(note.text_property(name) or "")


def _read_confidence(header: Header) -> float:
    """Return the confidence in a note's frontmatter, 0.8 if it is no number above 0, up to 1."""
    confidence = header.get("confidence")
    if isinstance(confidence, (int, float)) and 0 < confidence <= 1:
        return float(confidence)
    return _DEFAULT_CONFIDENCE


def _block_of_link(link: str) -> str:
    """Return the block id of a link to a block, without the caret."""
    return link.strip("[] ").rpartition("#^")[2]


CONVERSATION_FACT: Final[NoteType[Fact]] = NoteType(
    "facts", "fact", read=read_conversation_fact, sort_key=lambda fact: fact.path
)


def fact_versions(text: str) -> list[FactVersion]:
    """Return the history of a fact's note in the order of its lines; [] if there is none."""
    return [line.version for line in _history_lines(text)]


def _history_lines(text: str) -> list[_HistoryLine]:
    """Return the lines of a fact's history whose time can be read, in their order.

    Returns [] if the note has no history.
    """
    span = section_span(text, _HISTORY)
    if span is None:
        return []

    lines = []
    for match in _VERSION.finditer(text, *span):
        value, time, link = match.groups()
        at = parse_moment(time)
        if at is not None:
            version = FactVersion(at, parse_text(value), link)
            lines.append(_HistoryLine(match.start(), version))
    return lines


def new_fact(stated: StatedFact, version: FactVersion, block_id: str, now: str) -> str:
    """Return the text of the note of a new fact. `block_id` is the id of its topic."""
    properties: dict[str, object] = {"title": stated.key.replace("_", " ")}
    properties |= _properties(stated, version, block_id)
    body = f"{_render_quote(stated)}\n\n## {_HISTORY}\n\n{version}\n"
    return CONVERSATION_FACT.render(properties, body, now)


def add_version(
    text: str, fact: Fact, stated: StatedFact, version: FactVersion, block_id: str
) -> str:
    """Return a fact's note with a version inserted into its history in the order of time.

    If the version is the latest one, its value, sentence and topic become those of the fact, and an
    earlier dispute is removed. A version that the history already has changes nothing.
    """
    lines = _history_lines(text)
    if any(line.version.rank == version.rank for line in lines):
        return text

    position = _find_position(text, lines, version)
    text = add_line(text, _HISTORY, str(version), position)
    if version.rank < (stated_at(fact), fact.value):
        return text

    text = _replace_value(text, stated, version, block_id)
    if fact.disputed is not None and version.at >= fact.disputed:
        text = remove_property(text, "disputed")
        text = remove_property(text, "disputed_by")
    return text


def _replace_value(text: str, stated: StatedFact, version: FactVersion, block_id: str) -> str:
    """Return a fact's note with the value, sentence, time and topic of a version.

    The first quoted line is replaced by the sentence; without one, only properties change.
    """
    body_start = read_header(text).body_start
    quote = _render_quote(stated)
    # A function, since the text of a replacement could have escapes.
    body = _QUOTE.sub(lambda _: quote, text[body_start:], count=1)
    text = text[:body_start] + body
    properties = _properties(stated, version, block_id)
    for key, value in {**properties, "superseded_by": None}.items():
        if value is None:
            text = remove_property(text, key)
        else:
            text = set_property(text, key, value)
    return text


def _find_position(text: str, lines: Sequence[_HistoryLine], version: FactVersion) -> int | None:
    """Return the offset in `text` at which a version belongs, None for the end of the section.

    `lines` are those of the history. The line goes before the first one with a higher rank.
    """
    for line in lines:
        if line.version.rank > version.rank:
            return line.start
    if not lines:
        return None

    line_end = text.find("\n", lines[-1].start)
    return None if line_end == -1 else line_end + 1


def _properties(stated: StatedFact, version: FactVersion, block_id: str) -> dict[str, object]:
    """Return the properties of a fact's note that change with its value, in their order.

    `valid_to` and `stated` are None if this value has none. The note of a fact that had a subject,
    or was private, keeps them: they are absent here.
    """
    has_own_since = stated.since is not None
    properties: dict[str, object] = {
        "key": stated.key,
        "value": format_text(stated.value),
        "category": stated.category,
        "confidence": stated.confidence,
        "valid_from": format_moment(stated.since or version.at),
        "valid_to": format_moment(stated.until) if stated.until else None,
        "stated": format_moment(version.at) if has_own_since else None,
        "block_id": block_id,
        "decided_by": stated.decided_by,
    }
    if stated.subject:
        properties["subject"] = stated.subject
    if stated.category == "secret":
        properties["private"] = True
    return properties


def _render_quote(stated: StatedFact) -> str:
    """Return the sentence of a fact as a quoted line, shortened to 300 characters."""
    return f"> {format_text(shorten(stated.sentence, _MAX_QUOTE))}"
