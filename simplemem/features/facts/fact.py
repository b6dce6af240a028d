"""An atom is one statement of one scope, the note `atoms/<scope>/<its first words>.md`: a flat header, the statement as
the first paragraph, whatever a person adds below. What cannot be read in a header counts as not said. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any, Final, NamedTuple

from simplemem.features.conversations.facts import CONVERSATION_FACT, read_conversation_fact
from simplemem.features.note_type import NoteType
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.header import read_header
from simplemem.note.names import base_name, legal_name
from simplemem.note.scopes import folder_of, scope_of
from simplemem.note.words import STOP_WORDS, words_in_order
from simplemem.store import Read

MEMORY_TYPES: Final = ("fact", "preference", "episode", "derived")
STATUSES: Final = ("active", "disputed", "superseded", "forgotten")
CURRENT_STATUSES: Final = (
    "active",
    "disputed",
)  # of what is shown: a later statement puts a disputed one in doubt
_MOST_NAME = 80  # characters
_LINKS: Final = ("updates", "extends", "source", "superseded_by", "disputed_by")
_MOMENTS: Final = ("valid_from", "valid_to", "reinforced", "disputed")
# To a blank line, or to the end.
_PARAGRAPH: Final = re.compile(r"\S(?:.*?\S)??(?=\s*\Z|[ \t]*\r?\n[ \t]*\r?\n)", re.DOTALL)
_DAY: Final = re.compile(r"\d{4}-?\d\d-?\d\d")
_LINK: Final = re.compile(r"\s*!?\[\[([^\[\]|#\n]+)[^\[\]\n]*\]\]\s*")


class Slot(NamedTuple):
    """What a statement says the value of. Without a subject it is the scope itself."""

    subject: str = ""
    relation: str = ""
    object: str = ""


class NewFact(NamedTuple):
    """Something to remember. What is empty is worked out by rules."""

    text: str
    memory_type: str = ""
    slot: Slot | None = None
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    quote: str = ""  # the words it was drawn from, when they are others
    confidence: float = 1.0
    decided_by: str = ""


@dataclass(frozen=True, eq=False)
class Fact:
    """A statement as its note has it. Links are the text between the brackets, in a new one also with them."""

    path: str
    sha256: str
    id: str
    statement: str
    scope: str
    memory_type: str = "fact"
    slot: Slot | None = None
    confidence: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    reinforced: datetime | None = None
    status: str = "active"
    superseded_by: str = ""
    disputed: datetime | None = None  # when a later statement said that it changed, but not to what
    disputed_by: str = ""
    updates: str = ""
    extends: str = ""
    derived_from: tuple[str, ...] = ()
    source: str = ""
    decided_by: str = ""  # "" is a person
    created: str = ""
    problem: str = ""  # why it is never written, "" when it may be
    is_own: bool = True

    @property
    def is_disputed(self) -> bool:
        """Whether a later statement puts it in doubt."""
        return self.status == "disputed"

    @cached_property
    def names(self) -> list[str]:
        """The names that it leads between; the scope itself is none."""
        return [*filter(None, map(normalize_name, self.slot[::2]))] if self.slot else []


def normalize_name(text: str) -> str:
    """A text as names are compared; "" where its words only hold a sentence together."""
    words = words_in_order(text)
    return "" if STOP_WORDS.issuperset(words) else " ".join(words)


def fact_name(scope: str, statement: str) -> str:
    """Where a statement's note lies, without its ending: its first words."""
    if len(first := statement[: _MOST_NAME + 1]) > _MOST_NAME:
        first = first[: first.rfind(" ", 20)]  # or without its last character
    return f"{FACT.folder}/{folder_of(scope)}/{legal_name(first.strip().rstrip('.'))}"


def render_fact(atom: Fact, quote: str = "") -> str:
    """The text of an atom's note: only keys that hold something."""
    about: dict[str, Any] = {"id": atom.id, "memory_type": atom.memory_type, "scope": atom.scope}
    about |= {key: word or None for key, word in (atom.slot or Slot())._asdict().items()}
    about |= {"confidence": 1 if atom.confidence == 1 else round(atom.confidence, 4)}
    about |= {key: format_moment(at) for key in _MOMENTS if (at := getattr(atom, key))}
    about |= {key: f"[[{link_target(link)}]]" for key in _LINKS if (link := getattr(atom, key))}
    about |= {
        "derived_from": [f"[[{link_target(each)}]]" for each in atom.derived_from],
        "status": atom.status,
    }
    about |= {"decided_by": atom.decided_by or None}
    quoted = (
        "".join(f"> {line}\n" for line in quote.splitlines())
        if quote and quote != atom.statement
        else ""
    )
    return FACT.render(about, atom.statement + "\n" + (quoted and f"\n{quoted}"), atom.created)


def replace_statement(text: str, statement: str) -> str:
    """The note with other words in the place of its statement; all else stays."""
    at, end = _place(text, read_header(text).body_start)
    return (
        f"{text[:at]}{statement}{text[end:]}" if at < end else f"{text.rstrip()}\n\n{statement}\n"
    )


def _place(text: str, start: int) -> tuple[int, int]:
    """Where the statement stands: the first paragraph that is no quotation, without the blanks around it."""
    spans = (
        found.span() for found in _PARAGRAPH.finditer(text, start) if text[found.start()] != ">"
    )
    return next(spans, (len(text), len(text)))


def read_fact(read: Read) -> Fact:
    """The atom that a note is. A fact that conversations keep is one of the scope `default`."""
    note, about = FACT.parse(read)
    name = base_name(read.path)

    def word(key: str) -> str:
        return note.text_property(key) or ""

    if CONVERSATION_FACT.includes(read.path, word("type")):
        fact = read_conversation_fact(read)
        said, slot = (
            fact.sentence or f"{fact.key}: {fact.value}",
            Slot("", fact.key.replace("_", " "), fact.value),
        )
        if fact.disputed is not None:
            about |= {"status": "disputed", "disputed": fact.disputed}
        about |= {
            "problem": "conversations keep it",
            "confidence": fact.confidence,
            "valid_from": fact.valid_from,
        }
        return Fact(id=name, statement=said, scope="default", slot=slot, **about)
    about |= {key: link_target(word(key)) for key in _LINKS} | {
        key: word(key) for key in ("decided_by", "created")
    }
    about |= {key: moment(word(key), ends=key == "valid_to") for key in _MOMENTS}
    kind, at = word("memory_type"), slice(*_place(note.text, note.header.body_start))
    status = (
        "superseded" if about["superseded_by"] and word("status") != "forgotten" else word("status")
    )
    sure, derived = note.header.get("confidence"), note.header.get("derived_from") or []
    return Fact(
        id=word("id") or name,
        statement=" ".join(note.text[at].split()) or name,
        scope=scope_of(read.path, word("scope")),
        memory_type=kind if kind in MEMORY_TYPES else "fact",
        slot=Slot(*map(word, Slot._fields)) if word("relation") else None,
        confidence=float(sure) if isinstance(sure, (int, float)) and 0 <= sure <= 1 else 1.0,
        status=status if status in STATUSES else "active",
        derived_from=tuple(
            link_target(str(each)) for each in (derived if isinstance(derived, list) else [derived])
        ),
        **about,
    )


def link_target(text: str) -> str:
    """The text between the brackets of a link, or the text itself."""
    found = _LINK.fullmatch(text)
    return found[1].strip() if found else text


def moment(text: str, *, ends: bool = False) -> datetime | None:
    """The moment that a text says; a date alone is its day's beginning, or its end."""
    if _DAY.fullmatch(text):
        text += "T23:59:59Z" if ends else "T00:00:00Z"
    return parse_moment(text)


FACT: Final[NoteType[Fact]] = NoteType(
    "atoms", "atom", read=read_fact, sort_key=lambda atom: atom.path, related=(CONVERSATION_FACT,)
)
