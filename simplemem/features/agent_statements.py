"""What an agent says beside a text: facts, constraints and preferences of the user, and the name.

An agent that understood a message passes what it understood, so that nothing has to be guessed.
Everything here is checked and not stored yet. Pure.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.errors import Invalid
from simplemem.features.text import clean_text
from simplemem.note.dates import parse_moment

AGENT: Final = "agent"
"""Who decided what a fact is, as its note says: the agent that called a tool."""

_MAX_NAME: Final = 200  # characters of a subject, an id or the name of the user
_MAX_FACT: Final = 100_000  # characters of a key or a value, as of a message
_MAX_REPLACED: Final = 50  # facts that one fact replaces
_MAX_TRAIT: Final = 500  # characters of a constraint or a preference
_HINT_TOO_LONG: Final = "Nothing was stored. Give a shorter one."
_YEAR_AND_MONTH: Final = re.compile(r"(\d{4})(?:-(\d\d))?")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_DECEMBER: Final = 12
# What agents write as the subject of a fact about the user.
_USER: Final = frozenset({"user", "the user", "me", "i", "myself", "self", "speaker"})
_WORD: Final = re.compile(r"\w")


class AgentFact(NamedTuple):
    """A fact as the agent states it."""

    key: str
    value: str
    subject: str = ""  # whom or what it is about; "" for the user
    since: datetime | None = None
    until: datetime | None = None
    replaces: str | Sequence[str] = ()  # the ids of the earlier facts that it makes outdated

    @property
    def replaced_ids(self) -> tuple[str, ...]:
        """The ids of the earlier facts that it makes outdated, each once and in their order."""
        ids = [self.replaces] if isinstance(self.replaces, str) else self.replaces
        return tuple(dict.fromkeys(id_ for id_ in ids if id_))

    @property
    def relation(self) -> str:
        """The key in words: "alarm code" for `alarm_code`."""
        return self.key.replace("_", " ")


@dataclass(frozen=True)
class AgentStatements:
    """Everything that an agent says beside one text. Nothing, if all of it is empty."""

    facts: Sequence[AgentFact] = ()
    constraints: Sequence[str] = ()
    preferences: Sequence[str] = ()
    user_name: str = ""

    @property
    def has_traits(self) -> bool:
        """Whether it says something for the profile of the user."""
        return bool(self.constraints or self.preferences or self.user_name)


NO_STATEMENTS: Final = AgentStatements()


def read_limit(text: str, *, is_end: bool = False) -> datetime | None:
    """Return the moment that a year, a month, a day or a time in ISO 8601 stands for, else None.

    A year, a month or a day gives its first second, with `is_end` its last one. It is in UTC, so
    that notes and answers have the day that was given.
    """
    text = text.strip()
    month = _YEAR_AND_MONTH.fullmatch(text)
    if month is not None:
        text = _day_of_month(int(month[1]), month[2], is_end=is_end)
    if _DAY.fullmatch(text):
        text += "T23:59:59Z" if is_end else "T00:00:00Z"
    return parse_moment(text)


def _day_of_month(year: int, month: str | None, *, is_end: bool) -> str:
    """Return the first or the last day of a month, of a year if `month` is None, as an ISO day.

    A month that does not exist is returned with its first day, which no calendar has.
    """
    if month is None:
        return f"{year:04}-12-31" if is_end else f"{year:04}-01-01"
    is_month = 1 <= int(month) <= _DECEMBER and year > 0
    last_day = calendar.monthrange(year, int(month))[1] if is_month else 1
    day = last_day if is_end else 1
    return f"{year:04}-{month}-{day:02}"


def check_statements(
    facts: Iterable[AgentFact] = (),
    constraints: Iterable[str] = (),
    preferences: Iterable[str] = (),
    user_name: str = "",
) -> AgentStatements:
    """Return what an agent says, each text on one line.

    Raise Invalid for a text without a word, for one that a note cannot contain, and for a fact that
    ends before it begins; and TooLong.
    """
    name = _on_one_line(user_name, "user_name", _MAX_NAME)
    return AgentStatements(
        facts=[_check_fact(fact, name) for fact in facts],
        constraints=[_check_words(text, "constraint", _MAX_TRAIT) for text in constraints],
        preferences=[_check_words(text, "preference", _MAX_TRAIT) for text in preferences],
        user_name=name,
    )


def _check_fact(fact: AgentFact, user_name: str) -> AgentFact:
    """Return a fact with each text on one line, and no subject if that is the user.

    Raise Invalid or TooLong.
    """
    _check_times(fact)
    value = _on_one_line(fact.value, "value of a fact", _MAX_FACT)
    key = _on_one_line(fact.key, "key of a fact", _MAX_FACT)
    if not _WORD.search(key) or not value:
        raise Invalid(
            "a fact needs a key and a value, both with words",
            hint='Give, for example, {"key": "harbour phone", "value": "0431 778"}.',
        )
    subject = _on_one_line(fact.subject, "subject of a fact", _MAX_NAME)
    if subject.casefold() in {*_USER, user_name.casefold()}:
        subject = ""
    return fact._replace(key=key, value=value, subject=subject, replaces=_check_ids(fact))


def _check_ids(fact: AgentFact) -> list[str]:
    """Return the ids of the facts that a fact replaces, each on one line.

    Raise Invalid or TooLong.
    """
    ids = fact.replaced_ids
    if len(ids) > _MAX_REPLACED:
        raise Invalid(
            f"the fact {fact.key[:80]!r} replaces {len(ids)} facts; the limit is {_MAX_REPLACED}",
            hint="Nothing was stored. Give the others with another fact.",
        )
    return [_on_one_line(id_, "id of a replaced fact", _MAX_NAME) for id_ in ids]


def _check_times(fact: AgentFact) -> None:
    """Raise Invalid if a fact ends before it begins."""
    since = fact.since
    if since is not None and fact.until is not None and fact.until < since:
        raise Invalid(
            f"the fact {fact.key[:80]!r} ends before it begins",
            hint="Give an until that is not before since.",
        )


def _check_words(text: str, what: str, max_characters: int) -> str:
    """Return a text on one line. Raise Invalid if it has no word or cannot be stored, or TooLong.

    `what` names the text in messages.
    """
    line = _on_one_line(text, what, max_characters)
    if not _WORD.search(line):
        raise Invalid(f"a {what} has no word", hint="Leave it out, or give its words.")
    return line


def _on_one_line(text: str, what: str, max_characters: int) -> str:
    """Return a text with one space for each run of white space, and none at its ends.

    `what` names the text in messages. Raise Invalid if a note cannot contain it, or TooLong.
    """
    return " ".join(clean_text(text, what, max_characters, _HINT_TOO_LONG).split())
