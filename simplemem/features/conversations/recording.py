"""Record one exchange: its turn, its facts, and what it says about the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from simplemem.features.answers import RecordedTurn
from simplemem.features.changes import Change
from simplemem.features.collection import ChangeSet
from simplemem.features.conversations.exchange import Exchange
from simplemem.features.conversations.fact_recording import FactRecorder
from simplemem.features.conversations.labels import label_of_exchanges
from simplemem.features.conversations.message_labels import keywords_of
from simplemem.features.conversations.notes import ConversationNotes, FactSource
from simplemem.features.conversations.profile import PROFILE
from simplemem.features.conversations.profile_edits import with_disputes, with_traits
from simplemem.features.conversations.router import Decision
from simplemem.features.conversations.topic import Topic, insert_turn, render_new_topic, topic_name
from simplemem.features.conversations.topic_lookup import reachable_topics
from simplemem.features.conversations.topic_summary import pause_or_close, refined_label
from simplemem.features.facts.reader import read_text
from simplemem.note.tag_changes import change_tags
from simplemem.store import now

_NEW_PROFILE: Final = f"{PROFILE.folder}/default"  # the name of the note


class _TopicNote(NamedTuple):
    """The topic that the turn goes to, with the turn in its text."""

    path: str
    id: str
    text: str


class ExchangeRecorder:
    """Enters one exchange into a change set.

    Guards the exchange, the topics as they were before it, and whether it is back-dated.
    """

    def __init__(
        self,
        notes: ConversationNotes,
        change_set: ChangeSet,
        exchange: Exchange,
        topics: Sequence[Topic],
    ) -> None:
        """Make a recorder, which changes nothing before `record` is called.

        `topics` are all topics of the vault, as the change set finds them.
        """
        self._notes = notes
        self._change_set = change_set
        self._exchange = exchange
        self._turn = exchange.turn
        self._topics = topics
        self._reachable = reachable_topics(topics, exchange.session)
        active_topics = [topic for topic in self._reachable if topic.status == "active"]
        self._is_back_dated = any(self._turn.at < topic.last for topic in active_topics)

    def record(self, decision: Decision, current: Topic | None) -> RecordedTurn:
        """Enter the exchange into the change set, and return what was recorded where.

        `current` is the session's current topic, None if it has none. Other topics of the session
        are paused, unless the turn is dated earlier than the last turn of an active one (is
        back-dated). Raises NotFound if a fact replaces one that does not exist, Conflict if the
        user has just saved one of the notes, Unreadable if one cannot be changed, and TooLong if
        one would exceed the limit of a note.
        """
        topic = decision.topic
        label = self._choose_label(decision)
        # The facts that hold before the turn are read before anything changes.
        fact_recorder = FactRecorder(self._notes, self._change_set, self._exchange)

        note = self._write_turn(topic, label)
        self._set_properties(note.path)
        if topic is not None and label != topic.label:
            self._change_set.set(note.path, title=label)
        self._pause_other_topics(note.path)

        link = self._notes.link_target(note.path, self._turn.mark)
        source = FactSource(at=self._turn.at, link=link, topic_id=note.id)
        recorded_facts = fact_recorder.record(source)
        profile_warnings = self._update_profile(link)
        recorded = RecordedTurn(
            block_id=note.id,
            turn_id=self._turn.id,
            routing_scenario=self._name_scenario(topic, current),
            facts_extracted=len(recorded_facts.facts),
            topic=label,
            reason=decision.reason,
            method=decision.method,
            facts=recorded_facts.facts,
            warnings=recorded_facts.warnings + profile_warnings,
        )
        if recorded_facts.replaced:
            recorded["replaced"] = recorded_facts.replaced
        if recorded_facts.needs_review:
            recorded["needs_review"] = recorded_facts.needs_review
        return recorded

    def _choose_label(self, decision: Decision) -> str:
        """Return the label of the turn's topic, which is never empty.

        A new topic gets that of the model, else that of the agent, else one made of the exchange.
        One that was made of the first exchanges may change while the topic is young.
        """
        topic = decision.topic
        turn = self._turn
        label_of_agent = self._exchange.topic
        if topic is None:
            label = decision.label or label_of_agent
            return label or label_of_exchanges([(turn.message, turn.answer)])

        is_settled = topic.is_full or bool(label_of_agent) or turn.at < topic.last
        if is_settled:
            return topic.label
        return refined_label(topic, turn)

    def _name_scenario(self, topic: Topic | None, current: Topic | None) -> str:
        """Return the name that HMLR, whose tools clients know, gives to what happened to the topic.

        `topic` is the turn's topic, None for a new one; `current` is the session's so far.
        """
        if not self._topics:
            return "new_topic_first"
        if topic is None:
            return "topic_shift"
        if topic is current:
            return "topic_continuation"
        return "topic_resumption"

    def _write_turn(self, topic: Topic | None, label: str) -> _TopicNote:
        """Enter the turn into the note of a topic, and return the topic's note as it is then.

        That is the note of `topic`; of a topic that continues it, if it is full; or of a new topic
        called `label`, if `topic` is None or nothing with room continues it. The topic becomes
        active, unless the turn is back-dated. Raises Conflict, Unreadable or TooLong.
        """
        target = topic
        if topic is not None and topic.is_full:
            target = self._find_successor(topic)

        if target is None:
            note = self._render_new_topic(topic, label)
        else:
            self._change_set.text(target.path)  # raises Conflict or Unreadable
            text_with_turn = insert_turn(target, self._turn)
            note = _TopicNote(target.path, target.id, text_with_turn)

        if not self._is_back_dated:
            active_text = change_tags(note.text, {"status": "active"})
            note = note._replace(text=active_text)
        self._change_set.put(note.path, note.text)
        return note

    def _find_successor(self, topic: Topic) -> Topic | None:
        """Return the latest topic that continues a full one and has room, None if there is none."""
        successors = []
        for candidate in self._reachable:
            has_same_label = candidate.label == topic.label
            is_later = candidate.created >= topic.created
            if has_same_label and is_later and not candidate.is_full:
                successors.append(candidate)
        return max(successors, key=attrgetter("created", "id"), default=None)

    def _render_new_topic(self, full: Topic | None, label: str) -> _TopicNote:
        """Return a new topic with the turn, which continues the topic `full` if that is not None.

        Enters nothing into the change set.
        """
        turn = self._turn
        topic_id = f"block_{turn.at:%Y%m%d_%H%M%S}"
        if any(topic.id == topic_id for topic in self._topics):
            topic_id += f"_{turn.id[-6:]}"

        name = topic_name(label, turn.at)
        path = self._notes.free_path(self._change_set, name, between="-")
        text = render_new_topic(
            label,
            turn,
            keywords=keywords_of([turn.message]),
            session=self._exchange.session,
            topic_id=topic_id,
            continues=self._notes.link_text(full.path) if full else "",
        )
        return _TopicNote(path, topic_id, text)

    def _set_properties(self, path: str) -> None:
        """Set the session of the turn's topic, and make it private if the exchange has a secret.

        Also sets that an agent named it, and what a model has read. `path` is that of the topic's
        note. A back-dated turn leaves the session as it is.
        """
        if not self._is_back_dated:
            self._change_set.set(path, session=self._exchange.session)
        if self._exchange.topic:
            self._change_set.set(path, named_by="agent")
        if self._exchange.has_secret:
            self._change_set.set(path, private=True)
        if self._exchange.read_by and self._is_read_so_far(path):
            self._change_set.set(path, facts_read=self._turn.mark)

    def _is_read_so_far(self, path: str) -> bool:
        """Return whether a model has read all turns of a topic before the one that is recorded now.

        `path` is that of the topic's note. Returns True for a new topic, and False if the turn is
        not the last one of its topic.
        """
        for topic in self._topics:
            if topic.path == path and topic.turns:
                last_mark = max(turn.mark for turn in topic.turns)
                return last_mark <= topic.facts_read and self._turn.mark > last_mark
        return True

    def _pause_other_topics(self, path: str) -> None:
        """Pause the active topics of the session except the one at `path`; close full ones instead.

        A back-dated turn pauses nothing. Raises Conflict, Unreadable or TooLong.
        """
        if self._is_back_dated:
            return
        for topic in self._reachable:
            if topic.status == "active" and topic.path != path:
                text = self._change_set.text(topic.path)
                self._change_set.put(topic.path, pause_or_close(text, topic))

    def _update_profile(self, link: str) -> list[str]:
        """Enter what the turn says about the user into the profile; return warnings.

        If there is no profile and the turn has traits, a note is made. A profile that cannot be
        changed is left as it is, with a warning; otherwise the list is empty. `link` is the target
        of a link to the turn, without brackets. Raises Conflict, Unreadable or TooLong.
        """
        profile = self._notes.loaded_profile()
        traits = self._exchange.traits
        changes: Mapping[str, Change] = {}
        if profile is not None:
            changes = read_text(self._turn.message).changes
        if not traits and not changes:
            return []
        if profile is not None and profile.problem:
            return [f"nothing was stored in {profile.name}: {profile.problem}"]

        if profile is not None:
            path = profile.path
            text = self._change_set.text(path)
        else:
            path = self._notes.free_path(self._change_set, _NEW_PROFILE, between="-")
            text = PROFILE.render({"title": "Profile"}, "", now())

        at = self._turn.at
        text = with_disputes(text, changes, at, link, has_traits=bool(traits))
        text = with_traits(text, traits, at, link)
        self._change_set.put(path, text)
        return []
