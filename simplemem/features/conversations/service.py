"""The conversations of one store: record exchanges, and archive old topics.

A recorded exchange is one step of the history: its topic, its facts and what it says about the
user. All state is in notes. If somebody changes them, the next call uses the changed notes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Unpack

from simplemem.errors import Invalid, SimplememError
from simplemem.features.answers import ArchiveResult, FactOut, RecordedTurn
from simplemem.features.collection import ChangeSet
from simplemem.features.conversations.exchange import Exchange
from simplemem.features.conversations.notes import ConversationNotes, FactSource
from simplemem.features.conversations.recording import ExchangeRecorder
from simplemem.features.conversations.router import Decision, TopicDecision, TopicRouter
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.topic_lookup import (
    current_topic,
    named_topic,
    reachable_topics,
)
from simplemem.features.conversations.topic_summary import pause_or_close
from simplemem.features.fact import Fact
from simplemem.models import AuthorArgs
from simplemem.note import dates

if TYPE_CHECKING:
    from simplemem.features.conversations.language_model import FactReading
    from simplemem.features.conversations.turn_reading import TurnReading
    from simplemem.providers.api import ChatModel
    from simplemem.store import EnhancedStore

_ARCHIVE_REASON: Final = "archived topics that were paused for a long time"


class ConversationService(ConversationNotes):
    """The conversations of one store. Guards the collection of its notes, and its topic router."""

    def __init__(self, store: EnhancedStore) -> None:
        """Make the service of a store, with its notes and a router."""
        super().__init__(store)
        self._router = TopicRouter()

    def decide(self, exchange: Exchange, topics: Sequence[Topic]) -> TopicDecision:
        """Return the session's current topic, and the decision for the topic of an exchange.

        `topics` are all topics of the vault. Asks no model and writes nothing. Raises NotFound if
        the agent names an id that none of them has, and Ambiguous if several have it.
        """
        turn = exchange.turn
        current = current_topic(topics, exchange.session, turn.at)
        if exchange.topic:
            topic = named_topic(topics, exchange.topic, exchange.session)
            decision = Decision(topic, "the agent named the topic", method="agent")
            return TopicDecision(current, decision)

        reachable = reachable_topics(topics, exchange.session)
        decision = self._router.decide(
            turn.message, turn.at, reachable, current, answer=turn.answer
        )
        return TopicDecision(current, decision)

    def record(self, exchange: Exchange, **by: Unpack[AuthorArgs]) -> RecordedTurn:
        """Store an exchange as one step, which one undo takes back. Return what was stored.

        If a model is configured, it is asked what the message states and which topic it belongs to
        (`llm.route`); if it fails, the rules decide, with a warning. `by` says who makes the
        change. Raises Invalid if the exchange contains a credential and the settings refuse
        secrets, NotFound or Ambiguous if the agent names an id that no topic or several topics
        have, Unreadable if a note cannot be changed, TooLong if it would exceed the limit of a
        note, Conflict or AlreadyExists if notes are saved meanwhile, ReadOnly, and Unavailable if
        the vault stays locked.
        """
        self._check_secrets(exchange)
        reading, warnings = self._read_by_model(exchange)

        def draft(change_set: ChangeSet) -> RecordedTurn:
            """Enter the exchange into a change set; the topic is decided by the current notes."""
            topics = self.loaded(Topic)
            current, decision = self.decide(exchange, topics)
            exchange_as_read = exchange
            if reading is not None:
                decision = self._follow_advice(exchange, decision, reading)
                exchange_as_read = self._follow_reading(exchange, reading)

            recorder = ExchangeRecorder(self, change_set, exchange_as_read, topics)
            return recorder.record(decision, current)

        recorded, result = self.collection.change(draft, by)
        recorded["warnings"] += [*warnings, *result.warnings]
        return recorded

    def _check_secrets(self, exchange: Exchange) -> None:
        """Raise Invalid if an exchange contains a credential and the settings refuse secrets."""
        if exchange.has_secret and self.settings.write.secrets == "refuse":
            raise Invalid(
                "the message contains a credential, and the settings refuse secrets",
                hint="Leave the credential out, or set write.secrets = warn.",
            )

    def _read_by_model(self, exchange: Exchange) -> tuple[TurnReading | None, Sequence[str]]:
        """Return what the model reads in an exchange, and warnings; (None, []) without a model."""
        if self.chat is None:
            return None, []

        from simplemem.features.conversations.asking import ask_about

        asked = ask_about(self, exchange, self.decide)
        return asked.reading, asked.warnings

    def _follow_advice(
        self, exchange: Exchange, decision: Decision, reading: TurnReading
    ) -> Decision:
        """Return the decision for the topic that a model chose, if it may choose one.

        The caller drafts a change.
        """
        from simplemem.features.conversations.asking import follow_advice, may_choose_topic

        if exchange.topic:
            return decision
        reachable = reachable_topics(self.loaded(Topic), exchange.session)
        open_topics = {topic.id: topic for topic in reachable if topic.status != "closed"}
        is_open = may_choose_topic(self, decision)
        return follow_advice(decision, reading, open_topics, is_open=is_open)

    def _follow_reading(self, exchange: Exchange, reading: TurnReading) -> Exchange:
        """Return an exchange with what a model read in it. The caller drafts a change.

        Raises Invalid if the model read a credential and the settings refuse secrets.
        """
        from simplemem.features.conversations.turn_reading import (
            follow_reading,
            without_late_replacements,
        )

        followed = follow_reading(exchange, reading)
        replaceable_ids = {fact.id for fact in self.loaded(Fact) if not fact.problem}
        facts = without_late_replacements(followed.facts, replaceable_ids)
        followed = followed._replace(facts=facts)
        self._check_secrets(followed)
        return followed

    def archive_stale(
        self,
        ref: str = "all",
        after_days: int = 60,
        *,
        dry_run: bool = False,
        **by: Unpack[AuthorArgs],
    ) -> ArchiveResult:
        """Close the topics that have been paused for so many days, or the topic `ref`, as one step.

        `ref` is an id, a label or a note name; "all" stands for the paused topics. If a model is
        configured, it reads the facts of closed topics that are not private; if it fails, that is a
        warning. With `dry_run`, nothing is changed, no model is asked, and `closed` has the ids of
        the topics that would be closed. `continued` has the ids of those of them that are full, so
        that another topic continues them. Raises NotFound or Ambiguous for `ref`, Unreadable or
        TooLong if a note cannot be changed, Conflict or AlreadyExists if notes are saved meanwhile,
        ReadOnly, and Unavailable if the vault stays locked.
        """
        if ref == "all":
            topics = self.items(Topic)
            to_close = _stale_topics(topics, after_days)
        else:
            topics = [self.find(ref)]
            to_close = [topic for topic in topics if topic.status != "closed"]

        method = "rules"
        if self.chat is not None:
            method = self.chat.method
        result = ArchiveResult(
            closed=[topic.id for topic in to_close],
            continued=[],
            facts=[],
            method=method,
            warnings=[],
        )
        if not dry_run:
            self._read_and_archive(topics, to_close, result, by)

        for topic in to_close:
            is_closed = topic.id in result["closed"]
            if is_closed and topic.is_full:
                result["continued"].append(topic.id)
        return result

    def _read_and_archive(
        self,
        topics: Sequence[Topic],
        to_close: Sequence[Topic],
        result: ArchiveResult,
        by: AuthorArgs,
    ) -> None:
        """Read the facts of topics if a model is configured, and archive those `to_close`.

        `result` gets what was closed and stored, and the warnings. `topics` are those that a model
        may read if they are closed. Raises Unreadable, Conflict, AlreadyExists, ReadOnly or
        Unavailable if that cannot be written; a model's errors become warnings.
        """
        readings = list["FactReading"]()
        if self.chat is not None:
            readable = _readable_topics(topics, to_close)
            result["warnings"] += self._read_facts(self.chat, readable, readings)
        if to_close or readings:
            self._archive(to_close, readings, result, by)

    def _read_facts(
        self, chat: ChatModel, topics: Sequence[Topic], readings: list[FactReading]
    ) -> list[str]:
        """Add to `readings` the facts that a model reads in topics that are not private.

        Returns warnings: the error of a model that fails, else []. After an error, the rest of the
        topics is left for the next time; what was read before it stays in `readings`.
        """
        from simplemem.features.conversations.language_model import read_facts

        private = self.extension.private_among({topic.path for topic in topics})
        try:
            for topic in topics:
                if topic.path not in private:
                    readings.extend(read_facts(chat, topic))
        except SimplememError as error:
            return [error.message]
        return []

    def _archive(
        self,
        topics: Sequence[Topic],
        readings: Sequence[FactReading],
        result: ArchiveResult,
        by: AuthorArgs,
    ) -> None:
        """Close topics and store the facts that a model read, and enter both into a result.

        Topics that were deleted meanwhile are left out. Raises Unreadable, Conflict, AlreadyExists,
        ReadOnly or Unavailable if that cannot be written; the caller then drops the result.
        """

        def draft(change_set: ChangeSet) -> None:
            """Enter the changes into a change set, and replace what the result says of them."""
            topics_by_path = {topic.path: topic for topic in self.loaded(Topic)}
            closed_ids = []
            for old_topic in topics:
                topic = topics_by_path.get(old_topic.path)
                if topic is not None:
                    text = change_set.text(topic.path)
                    change_set.put(topic.path, pause_or_close(text, topic, "closed"))
                    closed_ids.append(topic.id)

            facts = list[FactOut]()
            for reading in readings:
                topic = topics_by_path.get(reading.path)
                if topic is not None:
                    facts += self._store_reading(change_set, reading, topic)
            result["closed"] = closed_ids
            result["facts"] = facts

        author = AuthorArgs(reason=_ARCHIVE_REASON) | by
        _, written = self.collection.change(draft, author)
        result["warnings"] += written.warnings

    def _store_reading(
        self, change_set: ChangeSet, reading: FactReading, topic: Topic
    ) -> list[FactOut]:
        """Enter the facts that a model read into a change set, and that these turns are read.

        A topic in which a credential was read becomes private. Returns the facts as clients get
        them. Raises Conflict or Unreadable if one of the notes cannot be changed.
        """
        change_set.set(topic.path, facts_read=reading.last_mark)
        if any(read.fact.category == "secret" for read in reading.facts):
            change_set.set(topic.path, private=True)

        facts = []
        for turn, fact in reading.facts:
            link = self.link_target(topic.path, turn.mark)
            source = FactSource(at=turn.at, link=link, topic_id=topic.id)
            earlier_facts = self.known_facts(turn.at)
            stored = self.store_fact(change_set, fact, earlier_facts, source)
            facts.append(stored.row)
        return facts


def _stale_topics(topics: Sequence[Topic], after_days: int) -> list[Topic]:
    """Return the topics that have been paused for `after_days` days and can be changed.

    The days are counted from a topic's last turn. The topics keep their order.
    """
    now = dates.now()
    stale_topics = []
    for topic in topics:
        # Full days are compared, since a moment so many days ago may be before the year 1.
        days_paused = (now - topic.last).days
        is_changeable = topic.status == "paused" and not topic.problem
        if is_changeable and days_paused >= after_days:
            stale_topics.append(topic)
    return stale_topics


def _readable_topics(topics: Sequence[Topic], to_close: Sequence[Topic]) -> list[Topic]:
    """Return the topics whose facts a model may read: those to close, and those that are closed."""
    readable = []
    for topic in topics:
        is_closed = topic.status == "closed" and not topic.problem
        if is_closed or topic in to_close:
            readable.append(topic)
    return readable


conversation_service: Final = ConversationService.of
