"""What a language model reads in a turn while it is stored, in one call.

The call asks for the topic, facts, what they replace and when they end, constraints, preferences
and the name of the user. Everything in the answer is checked: ids must be among those of the
question, and evidence must be a literal part of the message. What fails a check is left out, with a
warning; if nothing of the facts is left, the rules decide.
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
    label: str  # of a new topic; "" if the model gave none in words of the message


class TurnReading(NamedTuple):
    """What a model read in a turn, checked."""

    method: str  # which model
    advice: TopicAdvice | None  # None if the rules decide
    label: str  # for a new topic; "" if the model gave none that can be used
    facts: Sequence[StatedFact] | None  # None if no row of the answer can be used: rules decide
    ended: Sequence[EndedFact]
    traits: Sequence[Trait]
    warnings: Sequence[str]


def read_turn(chat: ChatModel, question: TurnQuestion, seconds: float) -> TurnReading:
    """Ask a model about a turn, and return the part of its answer that stands the checks.

    Raises Unavailable if there is no answer of the right shape within `seconds`, or if the calls of
    this hour are used up.
    """
    answer = chat.ask(_QUESTION, question.content(), seconds)
    return _AnswerReader(chat.method, question, answer).read()


def follow_reading(exchange: Exchange, reading: TurnReading) -> Exchange:
    """Return an exchange with what a model read in place of what the rules read.

    What the agent says stays, and so do credentials.
    """
    if reading.facts is None:
        return exchange

    facts = {}
    for fact in exchange.facts:
        if fact.decided_by == AGENT or fact.category == "secret":
            facts[fact.key] = fact
    for fact in reading.facts:
        facts.setdefault(fact.key, fact)
    traits = dict.fromkeys([*reading.traits, *exchange.agent_traits])
    return exchange._replace(
        facts=list(facts.values()),
        traits=list(traits),
        ended=reading.ended,
        read_by=reading.method,
    )


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
        """Return the part of the answer that stands the checks, with warnings about the rest."""
        label = _label_in_words_of(self._message, self._answer["label"])
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
        """Return the topic that the model chose; None, with a warning, for another id."""
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
        """Return the facts, one per key; None if there are rows but none can be used."""
        rows = self._answer["facts"]
        if not isinstance(rows, list):
            self._warn("listed no facts in the requested form, so the rules read them")
            return None

        facts: dict[str, StatedFact] = {}
        rejected_count = 0
        for row in rows[:_MAX_FACTS]:
            fact = self._fact_of_row(row, facts) if isinstance(row, dict) else None
            if fact is None:
                rejected_count += 1
            else:
                facts[fact.key] = fact

        if rejected_count == 0:
            return list(facts.values())
        self._warn(
            f"listed {rejected_count} facts that do not quote the message or name what it was "
            "not given; they were not stored"
        )
        return list(facts.values()) or None

    def _fact_of_row(self, row: Mapping[str, Any], earlier: Collection[str]) -> StatedFact | None:
        """Return the fact in a row of the answer. `earlier` are the keys of the rows before it.

        None if its evidence is no quotation of the message that has the value, if it has no key, if
        it replaces a fact that is not in the question, or if its times are not those of something
        that has begun.
        """
        value = _read_line(row, "value")
        evidence = self._evidence_of(row)
        if not value or value.casefold() not in evidence.casefold():
            return None

        replaced_id = _read_line(row, "replaces")
        if replaced_id and replaced_id not in self._question.facts:
            return None
        subject = _read_line(row, "about")
        if len(subject) > _MAX_NAME:
            return None
        since = read_limit(_read_line(row, "since"))
        until = read_limit(_read_line(row, "until"), is_end=True)
        if not self._has_begun(since, until):
            return None

        name = name_of_fact(subject, _read_line(row, "key"))
        key = key_of(name)
        if not key:
            return None
        if key in earlier or self._is_key_of_another(key, value, replaced_id):
            # Another version of a fact replaces its value, which only `replaces` may ask for.
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
        """Return whether a fact with these times has begun by the turn, and ends after it began."""
        if since is None:
            return True
        latest = self._question.turn.at + timedelta(days=1)
        is_in_order = until is None or since <= until
        return since <= latest and is_in_order

    def _is_key_of_another(self, key: str, value: str, replaced_id: str) -> bool:
        """Return whether a fact with the key and another value holds and is not replaced."""
        for id_, fact in self._question.facts.items():
            if fact.key == key and fact.value != value and id_ != replaced_id:
                return True
        return False

    def _read_ended(self) -> list[EndedFact]:
        """Return the facts of the question that hold no more, each with its end.

        Other rows add a warning.
        """
        ended = []
        for row in _rows_of(self._answer["ended"]):
            id_ = _read_line(row, "id")
            end = read_limit(_read_line(row, "until"), is_end=True) or self._question.turn.at
            if id_ in self._question.facts and self._evidence_of(row):
                ended.append(EndedFact(id_, end))
            else:
                self._warn("ended a fact that it was not given, or without words of the message")
        return ended

    def _read_traits(self) -> list[Trait]:
        """Return the name, the constraints and preferences, and what of them holds no more."""
        traits = []
        name = self._answer["user_name"]
        if isinstance(name, str) and 0 < len(name.strip()) <= _MAX_NAME:
            if name.strip() in self._message:
                traits.append(Trait("name", name.strip()))
            else:
                self._warn("gave a name that is not in the message")

        for section in ("Constraints", "Preferences"):
            for row in _rows_of(self._answer[section.lower()]):
                text = _read_line(row, "text")
                if self._evidence_of(row) and _fits_bullet(text):
                    traits.append(Trait(section, text))
                else:
                    self._warn(f"listed {section.lower()} without words of the message")
        return traits + self._read_gone()

    def _read_gone(self) -> list[Trait]:
        """Return the constraints and preferences of the question that hold no more."""
        gone = self._answer["no_longer"]
        if not isinstance(gone, list):
            return []
        current = texts_of_traits(self._question.profile)
        return [Trait("gone", text) for text in gone if text in current]

    def _warn(self, problem: str) -> None:
        """Add a warning about the model's answer, once."""
        warning = f"{self._method} {problem}"
        if warning not in self._warnings:
            self._warnings.append(warning)


def _rows_of(rows: Any) -> Iterator[dict[str, Any]]:
    """Yield the objects of a list in a model's answer; nothing if it is no list."""
    if isinstance(rows, list):
        yield from (row for row in rows if isinstance(row, dict))


def _read_line(row: Mapping[str, Any], field: str) -> str:
    """Return a field of a model's answer as text on one line, "" if it has no value."""
    value = row.get(field)
    if value is None or isinstance(value, (dict, list)):
        return ""
    return " ".join(str(value).split())


def _fits_bullet(text: str) -> bool:
    """Return whether a text can be a bullet of the profile: it is short and has no marks."""
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


def without_late_replacements(
    facts: Sequence[StatedFact], current_ids: Collection[str]
) -> list[StatedFact]:
    """Return facts, without `replaces` where a model named a fact that does not hold any more.

    `current_ids` are the ids of the facts that hold now: one may have been deleted or changed while
    the model was asked.
    """
    kept = []
    for fact in facts:
        if fact.decided_by != AGENT:
            replaces = tuple(id_ for id_ in fact.replaces if id_ in current_ids)
            fact = fact._replace(replaces=replaces)
        kept.append(fact)
    return kept
