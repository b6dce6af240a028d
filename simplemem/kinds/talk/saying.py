"""An exchange as it is told, checked before anything is written: what cannot be kept is refused with a reason."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from simplemem.errors import Invalid, TooLong
from simplemem.kinds.talk.block import moment_of, stamp
from simplemem.kinds.talk.profile import Trait, traits
from simplemem.kinds.talk.statements import Statement, category_of, key_of, statements
from simplemem.note.words import well_formed

_MOST_CHARACTERS: Final = 100_000  # of a message, a reply or a context
_MOST_LABEL: Final = 120
_MOST_FACTS: Final = 50  # that an agent hands over with a turn
_AHEAD: Final = timedelta(days=1)


@dataclass(frozen=True)
class Saying:
    """One exchange as it is told, checked."""

    message: str
    answer: str
    context: str
    topic: str
    session: str
    at: datetime
    facts: tuple[Statement, ...]
    traits: tuple[Trait, ...]

    @property
    def has_secret(self) -> bool:
        return any(each.secret for each in self.facts)


def said_now(
    message: str,
    *,
    context: str = "",
    response: str | None = None,
    topic: str = "",
    facts: Sequence[tuple[str, str]] = (),
    timestamp: str = "",
    session: str = "",
) -> Saying:
    """An exchange, checked: Invalid or TooLong says what is wrong with it. `context` alone is the reply."""
    said = {"message": message, "context": context, "response": response or "", "topic": topic, "session_id": session}
    clean = {name: _clean(text, name) for name, text in said.items()}
    if not clean["message"].strip():
        raise Invalid("the message is empty")
    if len(facts) > _MOST_FACTS:
        raise TooLong(f"{len(facts)} facts were handed over; {_MOST_FACTS} are allowed with a turn")
    given = []
    for pair in facts:
        key, value = (" ".join(_clean(text, "fact").split()) for text in pair)
        if not (key := key_of(key)) or not value:
            hint = 'For example {"key": "harbour phone", "value": "0431 778"}.'
            raise Invalid("a fact needs a key and a value, both of words", hint=hint)
        given.append(Statement(key, value, category_of(key, "agent"), clean["message"], "agent", 0.9))
    label, name = (" ".join(clean[each].split()) for each in ("topic", "session_id"))
    if len(label) > _MOST_LABEL or len(name) > _MOST_LABEL:
        raise TooLong(f"a topic or session_id may have {_MOST_LABEL} characters")
    answer, more = (clean["context"], "") if response is None else (clean["response"], clean["context"])
    own = [each for each in statements(clean["message"]) if each.key not in {fact.key for fact in given}]
    known = tuple(traits(clean["message"]))
    return Saying(clean["message"], answer, more, label, name, _moment(timestamp), (*given, *own), known)


def _clean(text: str, what: str) -> str:
    clean = re.sub(r"\r\n?", "\n", text)
    if "\0" in clean or clean != well_formed(clean):
        raise Invalid(f"the {what} holds a character that no note can carry", hint="Leave out NUL and half characters.")
    if len(clean) > _MOST_CHARACTERS:
        said = f"the {what} has {len(clean):,} characters; {_MOST_CHARACTERS:,} are allowed"
        raise TooLong(said, hint="Nothing was stored or cut.")
    return clean


def _moment(text: str) -> datetime:
    """When something was said, in UTC and whole seconds; a time without an offset is local."""
    ahead = datetime.now(UTC) + _AHEAD
    if not text.strip():
        return datetime.now(UTC).replace(microsecond=0)
    if (found := moment_of(text)) is None:
        raise Invalid(f"{text[:40]!r} is no time", hint="For example 2026-11-20T14:05:10Z.")
    found = found.replace(microsecond=0)
    if found > ahead or found.year < 1970:
        raise Invalid(f"{stamp(found)} is {'more than a day ahead' if found > ahead else 'before 1970'}")
    return found
