"""What a statement says, by rules: its words in a normal form, the slot it fills, its kind. A rule in doubt says nothing."""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import Final, NamedTuple

from simplemem.kinds.atoms.atom import Slot
from simplemem.note.passages import sentence_spans
from simplemem.note.words import STOP_WORDS, stem

_MOST_CHARACTERS, _MOST_STATEMENTS = 400, 5  # of a text whose lines or sentences are statements; more is a document
_OWN: Final = frozenset("i my the user user's a an".split())


class Reading(NamedTuple):
    """A statement as the rules see it."""

    text: str
    words: frozenset[str]  # stems, without the scope itself and articles
    slot: Slot | None = None
    negated: bool = False
    ended: bool = False  # "no longer"


@lru_cache(maxsize=20_000)
def read_statement(text: str) -> Reading:
    """What a statement says."""
    said = re.findall(r"[\w'’]+", text.lower())
    return Reading(text, frozenset(stem(word, "") for word in said if word not in _OWN))


def kind_of(text: str, at: datetime) -> tuple[str, datetime | None, datetime | None]:  # noqa: ARG001
    """The kind of a statement, and since and until when it holds, as far as it says so."""
    return "fact", None, None


def statements_in(text: str) -> list[str] | None:
    """The statements that a short text is, word for word; None where it is a document."""
    lines = [line for line in text.splitlines() if re.search(r"\w", line)]
    parts = [" ".join(line[slice(*span)].split()) for line in lines for span in sentence_spans(line)]
    return parts if len(text) <= _MOST_CHARACTERS and len(parts) <= _MOST_STATEMENTS else None


def drawn_from(text: str) -> list[str]:  # noqa: ARG001
    """The sentences of a long text that a rule recognises as statements, word for word."""
    return []


def asked_slot(question: str) -> frozenset[str]:
    """What a question asks for."""
    return read_statement(question).words - STOP_WORDS


def answers(question: str, reading: Reading) -> float:  # noqa: ARG001
    """How well a statement fills the slot that a question names; 0 where it does not."""
    return 0.0


def to_forget(text: str) -> str | None:
    """What a text asks to forget."""
    found = re.match(r"(?:please )?forget (?:that )?(.+)", text, re.IGNORECASE)
    return found[1] if found else None
