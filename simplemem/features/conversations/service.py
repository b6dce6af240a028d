"""The conversations of one store: topics, facts, and the profile of the user.

A recorded exchange is one step of the history: its topic, its facts and what it says about the user. All state is in
notes. If somebody changes them, the next call uses the changed notes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, Unpack

from simplemem.errors import Invalid, SimplememError
from simplemem.features.answers import ArchiveResult, FactOut, RecordedTurn
from simplemem.features.changes import find_doubtful
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.conversations.exchange import Exchange
from simplemem.features.conversations.facts import (
    CONVERSATION_FACT,
    FactVersion,
    StatedFact,
    add_version,
    fact_out,
    new_fact,
    read_conversation_fact,
    stated_at,
    stated_changes,
    stated_subject,
)
from simplemem.features.conversations.patterns import keywords_of, label_of
from simplemem.features.conversations.profile import (
    PROFILE,
    Profile,
    with_disputes,
    with_traits,
)
from simplemem.features.conversations.router import (
    Decision,
    TopicRouter,
    current_topic,
    find_topic,
    named_topic,
    reachable_topics,
)
from simplemem.features.conversations.topic import (
    TOPIC,
    Topic,
    Turn,
    insert_turn,
    pause_or_close,
    render_new_topic,
    topic_name,
)
from simplemem.features.fact import Fact
from simplemem.features.note_type import NoteType
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note import dates
from simplemem.note.dates import format_moment
from simplemem.note.header import read_header
from simplemem.note.names import legal_name
from simplemem.note.tag_changes import change_tags
from simplemem.store import Read, now

if TYPE_CHECKING:
    from simplemem.features.conversations.language_model import FactReading, TopicAdvice
    from simplemem.providers.api import ChatModel
    from simplemem.store import EnhancedStore

T = TypeVar("T")


def _read_note(read: Read) -> Any:
    """Return the fact, profile or topic that a note is, by its `type:` or its folder."""
    declared_type = str(read_header(read.text).get("type") or "")
    for note_type in (CONVERSATION_FACT, PROFILE):
        if note_type.includes(read.path, declared_type):
            return note_type.read(read)
    return TOPIC.read(read)


# Topics, facts and profiles are in one collection, because one exchange may change all three.
_NOTES: Final[NoteType[Any]] = replace(
    TOPIC, read=_read_note, sort_key=attrgetter("path"), related=(CONVERSATION_FACT, PROFILE)
)


class ConversationService(FeatureService):
    """The conversations of one store. Holds its topics, facts and profile, and the router of topics."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.collection = NoteCollection(store.extension, _NOTES)
        self._router = TopicRouter()

    def items(self, kind: type[T]) -> list[T]:
        """Return all topics, facts or profiles as the vault has them now."""
        with self.collection.reading():
            return self.held(kind)

    def held(self, kind: type[T]) -> list[T]:
        """Return all topics, facts or profiles. The caller holds the collection."""
        return [item for item in self.collection.items.values() if isinstance(item, kind)]

    def topics(self, *, closed: bool = False) -> list[Topic]:
        """Return the topics, active ones first, then by their last turn. Closed ones only if asked for."""
        topics = [topic for topic in self.items(Topic) if closed or topic.status != "closed"]
        return sorted(
            topics,
            key=lambda topic: (topic.status == "active", topic.last, topic.id),
            reverse=True,
        )

    def profile(self) -> Profile:
        """Return the profile of the user, an empty one if there is no note."""
        profiles = self.items(Profile)
        return profiles[0] if profiles else Profile(path="")

    def find(self, ref: str) -> Topic:
        """Return the topic with this id, label or note name. Raise NotFound or Ambiguous."""
        return find_topic(self.items(Topic), ref)

    def decide(self, exchange: Exchange, topics: Sequence[Topic]) -> tuple[Topic | None, Decision]:
        """Return the session's current topic, and the one that an exchange belongs to."""
        turn = exchange.turn
        current = current_topic(topics, exchange.session, turn.at)
        if exchange.topic:
            topic = named_topic(topics, exchange.topic, exchange.session)
            return current, Decision(topic, "the agent named the topic", method="agent")

        reachable = reachable_topics(topics, exchange.session)
        return current, self._router.decide(turn.message, turn.at, reachable, current)

    def record(self, exchange: Exchange, **by: Unpack[AuthorArgs]) -> RecordedTurn:
        """Store an exchange as one step, which one undo takes back.

        Raise Invalid if it contains a credential and the settings refuse secrets, and what writing raises.
        """
        if exchange.has_secret and self.settings.write.secrets == "refuse":
            raise Invalid(
                "the message contains a credential, and the settings refuse secrets",
                hint="Leave the credential out, or set write.secrets = warn.",
            )

        advice = self._ask_for_topic(exchange)

        def draft(change_set: ChangeSet) -> RecordedTurn:
            return _Recording(self, change_set, exchange, advice).record()

        stored, result = self.collection.change(draft, by)
        stored["warnings"].extend(result.warnings)
        return stored

    def _ask_for_topic(self, exchange: Exchange) -> TopicAdvice | None:
        """Return a model's choice if the router's scores are close, else None.

        No model is asked about what is private. The vault is not locked meanwhile.
        """
        if exchange.topic or exchange.has_secret or not self.settings.llm.route:
            return None
        chat = self.chat
        if chat is None:
            return None

        current, decision = self.decide(exchange, self.items(Topic))
        if not decision.is_close:
            return None

        involved = [*decision.ranked, current] if current else list(decision.ranked)
        private = self.extension.private_among({topic.path for topic in involved})
        if current and current.path in private:
            return None
        choices = {topic.id: topic for topic in decision.ranked if topic.path not in private}
        if not choices:
            return None

        from simplemem.features.conversations.language_model import choose_topic

        with suppress(SimplememError):
            timeout = self.settings.llm.route_seconds
            return choose_topic(chat, choices, exchange.turn.message, timeout)
        return None

    def archive_stale(
        self,
        ref: str = "all",
        after_days: int = 60,
        *,
        dry_run: bool = False,
        **by: Unpack[AuthorArgs],
    ) -> ArchiveResult:
        """Close the topics that have been paused for so long, or the one topic `ref`, as one step.

        If a model is configured, it reads the facts of closed topics that are not private. `continued` has the
        closed topics that another topic continues.
        """
        topics = self.items(Topic) if ref == "all" else [self.find(ref)]
        if ref == "all":
            to_close = _stale_topics(topics, after_days)
        else:
            to_close = [topic for topic in topics if topic.status != "closed"]

        chat = self.chat
        result = ArchiveResult(
            closed=[topic.id for topic in to_close],
            continued=[],
            facts=[],
            method=chat.method if chat else "rules",
            warnings=[],
        )
        if not dry_run:
            readings = list["FactReading"]()
            if chat:
                unread = _unread_topics(topics, to_close)
                result["warnings"] += self._read_facts(chat, unread, readings)
            if to_close or readings:
                self._archive(to_close, readings, result, by)

        result["continued"] = [
            topic.id for topic in to_close if topic.is_full and topic.id in result["closed"]
        ]
        return result

    def _read_facts(
        self, chat: ChatModel, topics: Sequence[Topic], readings: list[FactReading]
    ) -> list[str]:
        """Add to `readings` what a model reads until it fails; return the warnings."""
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
        """Close topics and store the facts that a model read, and enter both into a result."""

        def draft(change_set: ChangeSet) -> None:
            current = {topic.path: topic for topic in self.held(Topic)}
            to_close = [current[topic.path] for topic in topics if topic.path in current]
            for topic in to_close:
                text = pause_or_close(change_set.text(topic.path), topic, "closed")
                change_set.put(topic.path, text)

            facts = list[FactOut]()
            for reading in readings:
                if reading.path in current:
                    facts += self._store_reading(change_set, reading, current[reading.path])
            result["closed"] = [topic.id for topic in to_close]
            result["facts"] = facts

        reason = AuthorArgs(reason="archived topics that were paused for a long time")
        _, written = self.collection.change(draft, reason | by)
        result["warnings"] += written.warnings

    def _store_reading(
        self, change_set: ChangeSet, reading: FactReading, topic: Topic
    ) -> list[FactOut]:
        change_set.set(topic.path, facts_read=reading.last_mark)
        if any(fact.category == "secret" for _, fact in reading.facts):
            change_set.set(topic.path, private=True)
        return [
            self.store_fact(change_set, fact, turn, topic.path, topic.id)
            for turn, fact in reading.facts
        ]

    def store_fact(
        self, change_set: ChangeSet, stated: StatedFact, turn: Turn, path: str, topic_id: str
    ) -> FactOut:
        """Store a fact that a turn of the topic at `path` states, in its note or in a new one."""
        version = FactVersion(turn.at, stated.value, self.link_text(path, turn.mark)[2:-2])
        known = self._find_stored_fact(change_set, stated)
        if known is not None:
            stated = stated._replace(key=known.key)
            text = add_version(change_set.text(known.path), known, stated, version, topic_id)
            change_set.put(known.path, text)
        else:
            title = legal_name(stated.key.replace("_", " "))
            new_path = self.free_path(
                change_set, f"{CONVERSATION_FACT.folder}/{title}", between="-"
            )
            change_set.put(new_path, new_fact(stated, version, topic_id, now()))
        return fact_out(stated, topic_id)

    def _find_stored_fact(self, change_set: ChangeSet, stated: StatedFact) -> Fact | None:
        """Return the latest fact with the key of a stated one.

        A credential that is named by a noun alone is the only one of that noun: "the password".
        """
        facts = [fact for fact in self.facts_after(change_set) if not fact.problem]
        same_key = [fact for fact in facts if fact.key == stated.key]
        if same_key:
            return max(same_key, key=stated_at)
        if stated.category != "secret":
            return None
        same_noun = [fact for fact in facts if fact.key.endswith(f"_{stated.key}")]
        return same_noun[0] if len(same_noun) == 1 else None

    def facts_after(self, change_set: ChangeSet) -> list[Fact]:
        """Return all facts as a change set leaves them so far, those included that it creates."""
        facts = {fact.path: fact for fact in self.held(Fact)}
        for path, text in change_set.texts().items():
            if path in facts or path.startswith(f"{CONVERSATION_FACT.folder}/"):
                facts[path] = read_conversation_fact(Read(path, text, "", ""))
        return list(facts.values())


def _stale_topics(topics: Sequence[Topic], after_days: int) -> list[Topic]:
    """Return the paused topics without a turn in so many days, except those that cannot be changed."""
    latest = dates.now() - timedelta(days=after_days)
    return [
        topic
        for topic in topics
        if topic.status == "paused" and topic.last <= latest and not topic.problem
    ]


def _unread_topics(topics: Sequence[Topic], to_close: Sequence[Topic]) -> list[Topic]:
    """Return the topics whose facts a model may read: those that are closed, and those to close."""
    return [
        topic
        for topic in topics
        if topic in to_close or (topic.status == "closed" and not topic.problem)
    ]


class _Recording:
    """Records one exchange in a change set. Guards what its steps have decided so far."""

    def __init__(
        self,
        service: ConversationService,
        change_set: ChangeSet,
        exchange: Exchange,
        advice: TopicAdvice | None,
    ) -> None:
        self._service = service
        self._change_set = change_set
        self._exchange = exchange
        self._turn = exchange.turn
        self._advice = advice
        self._topics = service.held(Topic)
        self._reachable = reachable_topics(self._topics, exchange.session)
        # A back-dated turn leaves the active topic active.
        self._is_late = any(
            exchange.turn.at < topic.last for topic in self._reachable if topic.status == "active"
        )

    def record(self) -> RecordedTurn:
        """Write the turn into its topic, and what it states; return what was stored where."""
        current, decision = self._service.decide(self._exchange, self._topics)
        new_label = self._exchange.topic
        advice = self._advice
        # Otherwise the topic that the model chose was closed or deleted meanwhile.
        if advice is not None and decision.is_close and _offers(decision, advice.topic_id):
            decision = _follow_advice(decision, advice)
            new_label = advice.label

        topic = decision.topic
        label = topic.label if topic else new_label or label_of(self._turn.message)
        path, topic_id = self._write_turn(topic, label)
        self._set_properties(path)
        self._pause_other_topics(path)

        facts = [
            self._service.store_fact(self._change_set, fact, self._turn, path, topic_id)
            for fact in self._exchange.facts
        ]
        link = self._service.link_text(path, self._turn.mark)
        self._dispute_facts(link, {fact["key"] for fact in facts})
        warnings = self._update_profile(link[2:-2])
        return RecordedTurn(
            block_id=topic_id,
            turn_id=self._turn.id,
            routing_scenario=self._scenario(topic, current),
            facts_extracted=len(facts),
            topic=label,
            reason=decision.reason,
            method=decision.method,
            facts=facts,
            warnings=warnings,
        )

    def _scenario(self, topic: Topic | None, current: Topic | None) -> str:
        if not self._topics:
            return "new_topic_first"
        if topic is None:
            return "topic_shift"
        return "topic_continuation" if topic is current else "topic_resumption"

    def _write_turn(self, topic: Topic | None, label: str) -> tuple[str, str]:
        """Add the turn to a topic, its successor or a new topic; return path and id of that."""
        target = topic
        if topic is not None and topic.is_full:
            target = self._find_successor(topic)
        if target is None:
            path, topic_id, text = self._render_new_topic(topic, label)
        else:
            # Raises Conflict if a person has just saved it, Unreadable if it cannot be changed.
            self._change_set.text(target.path)
            path = target.path
            topic_id = target.id
            text = insert_turn(target, self._turn)

        if not self._is_late:
            text = change_tags(text, {"status": "active"})
        self._change_set.put(path, text)
        return path, topic_id

    def _find_successor(self, topic: Topic) -> Topic | None:
        """Return the latest topic that continues a full one and has room, None if there is none."""
        successors = [
            other
            for other in self._reachable
            if other.label == topic.label and other.created >= topic.created and not other.is_full
        ]
        return max(successors, key=attrgetter("created", "id"), default=None)

    def _render_new_topic(self, full: Topic | None, label: str) -> tuple[str, str, str]:
        """Return path, id and text of a new topic, which continues `full` if that is given."""
        turn = self._turn
        topic_id = f"block_{turn.at:%Y%m%d_%H%M%S}"
        if any(topic.id == topic_id for topic in self._topics):
            topic_id += f"_{turn.id[-6:]}"

        name = topic_name(label, turn.at)
        path = self._service.free_path(self._change_set, name, between="-")
        keywords = keywords_of([turn.message])
        continues = self._service.link_text(full.path) if full else ""
        session = self._exchange.session
        text = render_new_topic(label, turn, keywords, session, topic_id, continues)
        return path, topic_id, text

    def _set_properties(self, path: str) -> None:
        if not self._is_late:
            self._change_set.set(path, session=self._exchange.session)
        if self._exchange.has_secret:
            self._change_set.set(path, private=True)

    def _pause_other_topics(self, path: str) -> None:
        """Pause the active topics of the session except the one at `path`; close those that are full."""
        if self._is_late:
            return
        for topic in self._reachable:
            if topic.status == "active" and topic.path != path:
                text = pause_or_close(self._change_set.text(topic.path), topic)
                self._change_set.put(topic.path, text)

    def _dispute_facts(self, link: str, current_keys: Collection[str]) -> None:
        """Mark the earlier facts that the turn says have changed, where no rule reads the new value.

        `current_keys` are those of the facts that the turn itself states.
        """
        changes = stated_changes(self._turn.message)
        if not changes:
            return

        earlier = [
            fact
            for fact in self._service.facts_after(self._change_set)
            if not fact.problem and fact.key not in current_keys and stated_at(fact) < self._turn.at
        ]
        subjects = [stated_subject(fact) for fact in earlier]
        for change in changes.values():
            for index in find_doubtful(subjects, change):
                fact = earlier[index]
                since = format_moment(fact.disputed or self._turn.at)
                self._change_set.set(fact.path, disputed=since, disputed_by=link)

    def _update_profile(self, target: str) -> list[str]:
        """Write what the turn says about the user into the profile; return warnings.

        `target` is the link to the turn, without brackets.
        """
        profile = next(iter(self._service.held(Profile)), None)
        found = self._exchange.traits
        changes = stated_changes(self._turn.message) if profile else {}
        if not found and not changes:
            return []
        if profile and profile.problem:
            return [f"nothing was stored in {profile.path[:-3]}: {profile.problem}"]

        if profile:
            path = profile.path
            text = self._change_set.text(path)
        else:
            stem = f"{PROFILE.folder}/default"
            path = self._service.free_path(self._change_set, stem, between="-")
            text = PROFILE.render({"title": "Profile"}, "", now())
        at = self._turn.at
        text = with_disputes(text, changes, at, target, is_read=bool(found))
        self._change_set.put(path, with_traits(text, found, at, target))
        return []


def _offers(decision: Decision, topic_id: str) -> bool:
    """Return whether a decision leaves the choice of a topic, or of a new one, open."""
    return topic_id == "" or any(topic.id == topic_id for topic in decision.ranked)


def _follow_advice(decision: Decision, advice: TopicAdvice) -> Decision:
    """Return a decision for the topic that a model chose."""
    topics = {topic.id: topic for topic in decision.ranked}
    return decision._replace(
        topic=topics.get(advice.topic_id),
        reason="a model decided, because the scores were close",
        method=advice.method,
    )


conversation_service: Final = ConversationService.of
