"""An exchange as it is told, checked before anything is written: what cannot be kept is refused with a reason."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Final, NamedTuple

from simplemem.errors import Invalid, TooLong
from simplemem.kinds.kind import clean_text
from simplemem.kinds.talk.block import moment_of, stamp
from simplemem.kinds.talk.profile import Trait, traits
from simplemem.kinds.talk.statements import Statement, category_of, key_of, statements
from simplemem.note.clock import now
from simplemem.note.hidden import find_secrets

_MOST_CHARACTERS: Final = 100_000  # of a message, a reply or a context
_MOST_LABEL: Final = 120
_MOST_FACTS: Final = 50  # that an agent hands over with a turn
_AHEAD: Final = timedelta(days=1)
_clean: Final = partial(clean_text, most=_MOST_CHARACTERS, hint="Nothing was stored or cut.")


class Saying(NamedTuple):
    """One exchange as it is told, checked."""

    message: str
    answer: str
    context: str
    topic: str
    session: str
    at: datetime
    facts: Sequence[Statement]
    traits: Sequence[Trait]

    @property
    def has_secret(self) -> bool:
        """Whether a credential is stated in it, or stands there and looks like one."""
        return any(each.secret for each in self.facts) or bool(find_secrets("\n".join(self[:3])))


def said_now(
    message: str,
    context: str = "",
    response: str | None = None,
    topic: str = "",
    facts: Sequence[tuple[str, str]] = (),
    timestamp: str = "",
    session: str = "",
) -> Saying:
    """An exchange, checked: Invalid or TooLong says what is wrong with it. `context` alone is the reply."""
    said = {"message": message, "context": context, "response": response or "", "topic": topic, "session_id": session}
    message, context, answer, *names = (_clean(text, name) for name, text in said.items())
    label, session = (" ".join(name.split()) for name in names)
    if not message.strip():
        raise Invalid("the message is empty")
    if len(label) > _MOST_LABEL or len(session) > _MOST_LABEL:
        raise TooLong(f"a topic or session_id may have {_MOST_LABEL} characters")
    if len(facts) > _MOST_FACTS:
        raise TooLong(f"{len(facts)} facts were handed over; {_MOST_FACTS} are allowed with a turn")
    known = {each.key: each for each in statements(message)}
    for pair in facts:
        key, value = (" ".join(_clean(text, "fact").split()) for text in pair)
        if not (key := key_of(key)) or not value:
            hint = 'For example {"key": "harbour phone", "value": "0431 778"}.'
            raise Invalid("a fact needs a key and a value, both of words", hint=hint)
        known[key] = Statement(key, value, category_of(key, "agent"), message, "agent", 0.9)
    answer, context = (context, "") if response is None else (answer, context)
    return Saying(message, answer, context, label, session, _moment(timestamp), [*known.values()], traits(message))


def _moment(text: str) -> datetime:
    """When something was said, in UTC and whole seconds; a time without an offset is local."""
    found = moment_of(text) if text.strip() else now()
    if found is None:
        raise Invalid(f"{text[:40]!r} is no time", hint="For example 2026-11-20T14:05:10Z.")
    if found > now() + _AHEAD or found.year < 1970:
        raise Invalid(f"{stamp(found)} is {'more than a day ahead' if found.year > 1970 else 'before 1970'}")
    return found.replace(microsecond=0)
