"""What the turns of conversations state of the user: what holds, what is planned, what happened.

Turns are read sentence by sentence, in the order of time, so that a later statement replaces an
earlier one, or puts it in doubt. Questions, opinions and sentences with a credential state nothing.
Pure.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Final, NamedTuple

from simplemem.features.changes import (
    Change,
    StatedSubject,
    find_doubtful,
    read_change,
    subject_of,
)
from simplemem.features.conversations.trait_reading import read_traits
from simplemem.features.conversations.trait_rules import trait_languages
from simplemem.features.conversations.turns import Turn
from simplemem.features.facts.decay import is_past
from simplemem.features.facts.language import LANGUAGES, plain_text, words_of
from simplemem.features.facts.memory_type import memory_type_of
from simplemem.features.facts.message_rules import names_credential
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.reading import Reading, read_statement
from simplemem.note.secrets import find_secrets

UNDATED_PLAN: Final = timedelta(days=60)
"""How long after it was made a plan counts that names no day."""

_RECENT: Final = timedelta(days=14)  # how long what happened counts
_FIRST_PERSON: Final = frozenset("i we my our yo ich wir mein je nous mon ma".split())
_MAX_SENTENCE: Final = 200  # characters


@dataclass(frozen=True)
class Statement:
    """A sentence about the user, with when it was said and until when it holds."""

    text: str
    at: datetime
    end: datetime | None = None  # None: it holds until another statement replaces it
    disputed: datetime | None = None  # since when; None if nothing disputes it

    def is_past(self, now: datetime) -> bool:
        """Return whether the statement has ended."""
        return is_past(self.end, now)


class _SentenceReading(NamedTuple):
    """What the rules read in a sentence, whenever it was said."""

    sentence: str
    reading: Reading
    change: Change | None
    is_plan: bool
    is_liking: bool  # whether it says what the user likes or dislikes
    is_own_episode: bool  # whether it says what the user did


class StatementReader:
    """Reads turns in the order of time. Guards what holds for the user by relation, and plans."""

    def __init__(self) -> None:
        """Make a reader that has read nothing."""
        self._by_relation = dict[str, Statement]()
        self._subjects = dict[str, StatedSubject]()  # of the same statements, by the same
        self._plans = list[Statement]()
        self._episodes = list[Statement]()

    def read(self, turn: Turn) -> None:
        """Read a turn. A statement replaces an earlier one of the same relation.

        An earlier one that has changed, but for which no new value is read, becomes disputed.
        """
        for read in _read_message(turn.message):
            if read.change is not None:
                self._dispute(read.change, turn.at)

            statement = _statement_at(read.sentence, turn.at)
            if read.is_plan:
                self._plans.append(statement)
            elif read.reading.slot is not None:
                self._read_slot(read, statement)
            elif read.is_own_episode:
                self._episodes.append(statement)

    def _read_slot(self, read: _SentenceReading, statement: Statement) -> None:
        """Enter the value of a slot, or remove it if the statement says that it is not so."""
        slot = read.reading.slot
        if slot is None or read.reading.is_one_of_several:
            return
        # The profile's note has the user's name, and what the user prefers.
        is_about_user = not slot.subject and slot.relation != "name"
        if not is_about_user or read.is_liking:
            return

        relation = slot.relation
        if read.reading.is_affirmed:
            subject = subject_of(statement.text, relation, slot.object)
            self._by_relation[relation] = statement
            self._subjects[relation] = StatedSubject(subject, statement.at.year)
        else:
            self._by_relation.pop(relation, None)
            self._subjects.pop(relation, None)

    def _dispute(self, change: Change, at: datetime) -> None:
        """Mark what a change puts in doubt. What is disputed already keeps its time."""
        relations = list(self._subjects)
        subjects = list(self._subjects.values())
        for index in find_doubtful(subjects, change):
            relation = relations[index]
            statement = self._by_relation[relation]
            if statement.disputed is None:
                self._by_relation[relation] = replace(statement, disputed=at)

    def current(self, now: datetime) -> list[Statement]:
        """Return what holds at a time, by what was read so far, one statement per relation."""
        statements = self._by_relation.values()
        return [statement for statement in statements if not statement.is_past(now)]

    def plans(self, now: datetime) -> list[Statement]:
        """Return the plans that are ahead, or were made in the last 60 days if they name no day."""
        plans = []
        for plan in self._plans:
            may_be_ahead = plan.end is not None or now - plan.at <= UNDATED_PLAN
            if may_be_ahead and not plan.is_past(now):
                plans.append(plan)
        return plans

    def recent(self, now: datetime) -> list[Statement]:
        """Return what happened to the user and was said in the last 14 days."""
        earliest = now - _RECENT
        return [episode for episode in self._episodes if episode.at >= earliest]


def has_credential(text: str) -> bool:
    """Return whether a text names a credential or contains what looks like one."""
    return names_credential(text) or bool(find_secrets(text))


def _statement_at(sentence: str, at: datetime) -> Statement:
    """Return a sentence as a statement that is made at a time, with its end if it says so."""
    memory_type = memory_type_of(sentence, at)
    # The end of an episode is the day on which something happened.
    end = memory_type.valid_to if memory_type.name == "fact" else None
    return Statement(sentence, at, end)


@lru_cache(maxsize=20_000)
def _read_message(message: str) -> tuple[_SentenceReading, ...]:
    """Return what the rules read in a message, sentence by sentence.

    Long sentences and those with a credential are left out.
    """
    readings = []
    for sentence in read_text(message).stated:
        is_long = len(sentence) > _MAX_SENTENCE
        if is_long or has_credential(sentence):
            continue

        is_liking = _is_liking(sentence)
        reading = _SentenceReading(
            sentence=sentence,
            reading=read_statement(sentence),
            change=read_change(sentence),
            is_plan=_is_plan(sentence),
            is_liking=is_liking,
            is_own_episode=not is_liking and _is_own_episode(sentence),
        )
        readings.append(reading)
    return tuple(readings)


def _is_own_episode(sentence: str) -> bool:
    """Return whether a sentence says what the user did or what happened to the user.

    Opinions, constraints and preferences do not.
    """
    if not read_statement(sentence).is_episode or read_traits(sentence):
        return False

    plain = plain_text(sentence)
    return _is_in_first_person(plain) and not _is_opinion(plain)


def _is_in_first_person(plain: str) -> bool:
    """Return whether a plain text begins like one about its author, or has a word such as "my"."""
    for language in LANGUAGES:
        if language.patterns["first_person"].match(plain):
            return True
    return not _FIRST_PERSON.isdisjoint(words_of(plain))


def _is_opinion(plain: str) -> bool:
    """Return whether a plain text says what its author thinks of something, in any language."""
    patterns = [language.patterns["opinion"] for language in trait_languages()]
    return any(pattern.search(plain) for pattern in patterns)


def _is_liking(sentence: str) -> bool:
    """Return whether a sentence says what the user likes or dislikes, in any language."""
    plain = plain_text(sentence)
    return any(language.matches("liking", plain) for language in LANGUAGES)


def _is_plan(sentence: str) -> bool:
    """Return whether a sentence says what the user is going to do, in any language."""
    plain = sentence.replace("’", "'")
    patterns = [language.patterns["plan"] for language in trait_languages()]
    return any(pattern.search(plain) for pattern in patterns)
