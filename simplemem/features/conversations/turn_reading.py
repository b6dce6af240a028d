"""What a language model reads in a turn while it is stored, in one call.

The call asks for the topic, facts, what they replace and when they end, constraints, preferences
and the name of the user. Everything in the answer is checked: ids must be among those of the
question, and evidence must be a literal part of the message. What fails a check is left out, with a
warning; if no fact passes the checks, the facts that the rules read are stored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from simplemem.features.agent_statements import AGENT, read_limit
from simplemem.features.conversations.exchange import MAX_LABEL, EndedFact, Exchange
from simplemem.features.conversations.trait_reading import Trait
from simplemem.features.conversations.turn_question import TurnQuestion, texts_of_traits
from simplemem.features.facts.keyed_facts import make_fact
from simplemem.features.facts.stated import StatedFact, key_of, name_of_fact
from simplemem.features.model_questions import load_questions
from simplemem.note.words import unique_words
from simplemem.providers.api import ChatModel

_CONFIDENCE: Final = 0.7  # of a fact that a model reads
_MAX_FACTS: Final = 50  # of one message
_MAX_TRAIT: Final = 300  # characters of a constraint or a preference
_MAX_NAME: Final = 100  # characters of a subject, or of the name of the user
_NOT_IN_BULLETS: Final = re.compile(r"%%|\[\[|\]\]")
_QUESTION: Final = load_questions(__file__)["turn"]


class TopicAdvice(NamedTuple):
    """The topic that a model chose for a message."""

    topic_id: str  # "" for a new topic
    label: str  # of a new topic; "" if the model gave none that can be used


class TurnReading(NamedTuple):
    """What a model read in a turn, checked."""

    method: str  # the name of the model
    advice: TopicAdvice | None  # None if the rules choose the topic
    label: str  # for a new topic, in words of the message; "" if the model gave none
    facts: Sequence[StatedFact] | None  # None if the facts that the rules read are stored
    ended: Sequence[EndedFact]
    traits: Sequence[Trait]
    warnings: Sequence[str]  # about the parts of the answer that failed a check


def read_turn(chat: ChatModel, question: TurnQuestion, seconds: float) -> TurnReading:
    """Ask a model about a turn, and return the part of its answer that passes the checks.

    Raises Unavailable if there is no answer of the right shape within `seconds`, or if the calls of
    this hour are used up.
    """
    answer = chat.ask(_QUESTION, question.content(), seconds)
    return _AnswerReader(chat.method, question, answer).read()


def follow_reading(exchange: Exchange, reading: TurnReading) -> Exchange:
    """Return an exchange with what a model read in place of what the rules read.

    What the agent states stays, and so do credentials. The exchange is returned unchanged if no
    fact that the model listed can be used.
    """
    if reading.facts is None:
        return exchange

    facts_by_key = {}
    for fact in exchange.facts:
        if fact.decided_by == AGENT or fact.category == "secret":
            facts_by_key[fact.key] = fact
    for fact in reading.facts:
        facts_by_key.setdefault(fact.key, fact)

    traits = dict.fromkeys([*reading.traits, *exchange.agent_traits])
    return exchange._replace(
        facts=list(facts_by_key.values()),
        traits=list(traits),
        ended=reading.ended,
        read_by=reading.method,
    )


def without_late_replacements(
    facts: Sequence[StatedFact], current_ids: Collection[str]
) -> list[StatedFact]:
    """Return facts, without the ids in `replaces` that a model gave and that are not current.

    `current_ids` are the ids of the facts that can be replaced now: one may have been deleted or
    changed while the model was asked. What the agent states stays as it is.
    """
    checked_facts = []
    for fact in facts:
        if fact.decided_by != AGENT:
            replaces = tuple(id_ for id_ in fact.replaces if id_ in current_ids)
            fact = fact._replace(replaces=replaces)
        checked_facts.append(fact)
    return checked_facts


class _AnswerReader:
    """Checks one answer of a model. Guards the warnings about it."""

    def __init__(self, method: str, question: TurnQuestion, answer: Mapping[str, Any]) -> None:
        """Make a reader for the answer of the model `method` to a question."""
        self._method = method
        self._question = question
        self._message = question.turn.message
        self._answer = answer
        self._warnings: list[str] = []

    def read(self) -> TurnReading:
        """Return the part of the answer that passes the checks, with warnings about the rest."""
        label = _label_in_words_of(self._message, self._answer["label"])
        # The facts come first, because their warnings do.
        facts = self._read_facts()
        return TurnReading(
            method=self._method,
            advice=self._read_advice(label),
            label=label,
            facts=facts,
            ended=self._read_ended(),
            traits=self._read_traits(),
            warnings=self._warnings,
        )

    def _read_advice(self, label: str) -> TopicAdvice | None:
        """Return the topic that the model chose, None if it was not asked for one.

        If it chose neither a new topic nor one of the question, returns None and adds a warning.
        """
        if not self._question.chooses_topic:
            return None
        if self._answer["new"] is True:
            return TopicAdvice("", label)

        topic_id = self._answer["block_id"]
        if isinstance(topic_id, str) and topic_id in self._question.topics:
            return TopicAdvice(topic_id, label)

        self._warn("named none of the topics, so the rules chose one")
        return None

    def _read_facts(self) -> list[StatedFact] | None:
        """Return the facts, one per key; None if the answer has no list or no row can be used.

        [] if the list is empty. Adds a warning for rows that cannot be used.
        """
        rows = self._answer["facts"]
        if not isinstance(rows, list):
            self._warn("listed no facts in the requested form, so the rules read them")
            return None

        facts_by_key: dict[str, StatedFact] = {}
        rejected_count = 0
        for row in rows[:_MAX_FACTS]:
            fact = None
            if isinstance(row, dict):
                fact = self._fact_of_row(row, facts_by_key.keys())
            if fact is None:
                rejected_count += 1
            else:
                facts_by_key[fact.key] = fact

        facts = list(facts_by_key.values())
        if rejected_count == 0:
            return facts
        self._warn(
            f"listed {rejected_count} facts that do not quote the message or name what it was "
            "not given; they were not stored"
        )
        return facts or None

    def _fact_of_row(
        self, row: Mapping[str, Any], earlier_keys: Collection[str]
    ) -> StatedFact | None:
        """Return the fact in a row of the answer, None if it fails a check.

        Its evidence must quote the message and contain the value, it must have a key, it may only
        replace a fact of the question, and it must have begun. `earlier_keys` are the keys of the
        rows before it.
        """
        value = _read_line(row, "value")
        evidence = self._evidence_of(row)
        if not value or value.casefold() not in evidence.casefold():
            return None

        subject = _read_line(row, "about")
        name = name_of_fact(subject, _read_line(row, "key"))
        key = key_of(name)
        if not key or len(subject) > _MAX_NAME:
            return None

        replaced_id = _read_line(row, "replaces")
        if replaced_id and replaced_id not in self._question.facts:
            return None

        since = read_limit(_read_line(row, "since"))
        until = read_limit(_read_line(row, "until"), is_end=True)
        if not self._has_begun(since, until):
            return None

        if key in earlier_keys or self._is_key_of_another(key, value, replaced_id):
            # A fact with the key of another one would replace its value. Only `replaces` may do so.
            name = f"{name} {value}"
        fact = make_fact(self._method, name, value, evidence, _CONFIDENCE)
        replaces = (replaced_id,) if replaced_id else ()
        return fact._replace(subject=subject, since=since, until=until, replaces=replaces)

    def _evidence_of(self, row: Mapping[str, Any]) -> str:
        """Return the words of the message that a row quotes, "" if it quotes none."""
        evidence = row.get("evidence")
        if not isinstance(evidence, str):
            return ""
        evidence = evidence.strip()
        return evidence if evidence in self._message else ""

    def _has_begun(self, since: datetime | None, until: datetime | None) -> bool:
        """Return whether a fact with these limits has begun by the turn, and does not end before.

        A fact may begin up to a day after the turn. One without a beginning has begun.
        """
        if since is None:
            return True
        latest_beginning = self._question.turn.at + timedelta(days=1)
        is_in_order = until is None or since <= until
        return since <= latest_beginning and is_in_order

    def _is_key_of_another(self, key: str, value: str, replaced_id: str) -> bool:
        """Return whether the question has a fact with the key and another value.

        The fact that is replaced, which has `replaced_id`, does not count.
        """
        for id_, fact in self._question.facts.items():
            if fact.key == key and fact.value != value and id_ != replaced_id:
                return True
        return False

    def _read_ended(self) -> list[EndedFact]:
        """Return the facts of the question that have ended, each with its end.

        A row without an end ends its fact at the time of the turn. Adds a warning for a row that
        does not quote the message or names another fact.
        """
        ended = []
        for row in _rows_of(self._answer["ended"]):
            id_ = _read_line(row, "id")
            if id_ not in self._question.facts or not self._evidence_of(row):
                self._warn("ended a fact that it was not given, or without words of the message")
                continue

            end = read_limit(_read_line(row, "until"), is_end=True)
            ended.append(EndedFact(id_, end or self._question.turn.at))
        return ended

    def _read_traits(self) -> list[Trait]:
        """Return the name, the constraints and preferences, and those that hold no more."""
        return [
            *self._read_name(),
            *self._read_section("Constraints"),
            *self._read_section("Preferences"),
            *self._read_gone(),
        ]

    def _read_name(self) -> list[Trait]:
        """Return the name of the user as the only trait; [] without one.

        Adds a warning for a name that is not in the message.
        """
        answer = self._answer["user_name"]
        name = answer.strip() if isinstance(answer, str) else ""
        if not 0 < len(name) <= _MAX_NAME:
            return []
        if name not in self._message:
            self._warn("gave a name that is not in the message")
            return []
        return [Trait("name", name)]

    def _read_section(self, section: str) -> list[Trait]:
        """Return the traits that the answer lists for a section of the profile.

        Adds a warning for a row that does not quote the message or does not fit into a bullet.
        """
        field = section.lower()
        traits = []
        for row in _rows_of(self._answer[field]):
            text = _read_line(row, "text")
            if self._evidence_of(row) and _fits_bullet(text):
                traits.append(Trait(section, text))
            else:
                self._warn(f"listed {field} without words of the message")
        return traits

    def _read_gone(self) -> list[Trait]:
        """Return the constraints and preferences of the question that hold no more."""
        gone_texts = self._answer["no_longer"]
        if not isinstance(gone_texts, list):
            return []
        current_texts = texts_of_traits(self._question.profile)
        return [Trait("gone", text) for text in gone_texts if text in current_texts]

    def _warn(self, problem: str) -> None:
        """Add a warning about the model's answer, once."""
        warning = f"{self._method} {problem}"
        if warning not in self._warnings:
            self._warnings.append(warning)


def _rows_of(rows: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list in a model's answer; nothing if it is no list."""
    if not isinstance(rows, list):
        return
    for row in rows:
        if isinstance(row, dict):
            yield row


def _read_line(row: Mapping[str, Any], field: str) -> str:
    """Return a field of a model's answer as text on one line, "" if it has no value."""
    value = row.get(field)
    if value is None or isinstance(value, (dict, list)):
        return ""
    return " ".join(str(value).split())


def _fits_bullet(text: str) -> bool:
    """Return whether a text can be a bullet of the profile: short, without links or comments."""
    return 0 < len(text) <= _MAX_TRAIT and not _NOT_IN_BULLETS.search(text)


def _label_in_words_of(message: str, label: Any) -> str:
    """Return a model's label on one line, "" if it cannot be used.

    It can be used if it is a text of at most `MAX_LABEL` characters that has words, and only words
    of the message.
    """
    if not isinstance(label, str):
        return ""
    label_text = " ".join(label.split())
    if len(label_text) > MAX_LABEL:
        return ""

    words = set(unique_words(label_text.lower()))
    message_words = set(unique_words(message.lower()))
    is_quoted = bool(words) and words <= message_words
    return label_text if is_quoted else ""
