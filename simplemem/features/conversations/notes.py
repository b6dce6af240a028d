"""The notes of conversations in one store: topics, facts and profiles, in one collection."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from simplemem.errors import NotFound, Unreadable
from simplemem.features.answers import FactOut
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.conversations.profile import PROFILE, Profile, current_profile
from simplemem.features.conversations.topic import TOPIC, Topic, topic_name
from simplemem.features.conversations.topic_lookup import find_topic
from simplemem.features.fact import Fact
from simplemem.features.facts.decay import is_current
from simplemem.features.facts.key_notes import (
    CONVERSATION_FACT,
    FactVersion,
    add_version,
    fact_out,
    new_fact,
    read_conversation_fact,
    stated_at,
)
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.outcome import Outcome
from simplemem.features.facts.reconciling import reconcile
from simplemem.features.facts.stated import StatedFact
from simplemem.features.note_type import NoteType
from simplemem.features.service import FeatureService
from simplemem.note.dates import format_moment, local_now
from simplemem.note.header import read_header
from simplemem.note.names import legal_name, name_of
from simplemem.note.scopes import DEFAULT_SCOPE, is_private_by_rule
from simplemem.store import Read, now

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

T = TypeVar("T")


def _is_default(profile: Profile) -> bool:
    """Return whether a profile is that of the user of conversations, and of no other scope."""
    scope = read_header(profile.text).get("scope") or DEFAULT_SCOPE
    return str(scope) == DEFAULT_SCOPE


def _read_note(read: Read) -> Any:
    """Return the fact, profile or topic that a note is, by its `type:`, else by its folder.

    Any other note is read as a topic. Raises nothing: `problem` says what is wrong with a note.
    """
    declared_type = str(read_header(read.text).get("type") or "")
    for note_type in (CONVERSATION_FACT, PROFILE):
        if note_type.includes(read.path, declared_type):
            return note_type.read(read)
    return TOPIC.read(read)


# Topics, facts and profiles are in one collection, because one exchange may change all three.
_NOTES: Final[NoteType[Any]] = replace(
    TOPIC,
    read=_read_note,
    sort_key=lambda item: item.path,
    related=(CONVERSATION_FACT, PROFILE),
)


class FactSource(NamedTuple):
    """The turn that states a fact."""

    at: datetime
    link: str  # to the turn, without brackets
    topic_id: str


class StoredFact(NamedTuple):
    """A stated fact as a change set has it: where it is, and what it does to known ones."""

    path: str
    outcome: Outcome
    row: FactOut  # the fact as clients get it


class ConversationNotes(FeatureService):
    """Reads the topics, facts and profiles of one store, and stores facts.

    Guards their collection. Methods that take a change set only enter changes into it; its
    collection writes them.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Make the collection of a store's topics, facts and profiles."""
        super().__init__(store)
        self.collection = NoteCollection(store.extension, _NOTES)

    def items(self, item_type: type[T]) -> list[T]:
        """Return all topics, facts or profiles (`item_type`) as the vault has them now."""
        with self.collection.reading():
            return self.loaded(item_type)

    def loaded(self, item_type: type[T]) -> list[T]:
        """Return all topics, facts or profiles that are loaded, without looking for changed notes.

        The caller holds the lock of the collection: inside `collection.reading`, or while it drafts
        a change.
        """
        return [item for item in self.collection.items.values() if isinstance(item, item_type)]

    def topics(self, *, closed: bool = False) -> list[Topic]:
        """Return the topics: active ones first, then those with the last turns.

        Closed topics are included only if `closed` is true.
        """
        topics = self.items(Topic)
        if not closed:
            topics = [topic for topic in topics if topic.status != "closed"]

        def rank(topic: Topic) -> tuple[bool, datetime, str]:
            """Return what topics are ordered by, the highest first."""
            return topic.status == "active", topic.last, topic.id

        return sorted(topics, key=rank, reverse=True)

    def profile(self) -> Profile:
        """Return the current profile of the user, an empty one if there is no note.

        It is without the constraints and preferences that have ended.
        """
        with self.collection.reading():
            profile = self.loaded_profile() or Profile(path="")
        return current_profile(profile, f"{local_now():%Y-%m-%d}")

    def loaded_profile(self) -> Profile | None:
        """Return the profile of the user of conversations, None if there is no note.

        It still has the constraints and preferences that have ended. Profiles of other users, which
        declare a scope, do not count. The caller holds the lock of the collection, as for `loaded`.
        """
        profiles = [profile for profile in self.loaded(Profile) if _is_default(profile)]
        return min(profiles, key=attrgetter("path"), default=None)

    def is_new_topic_private(self, at: datetime) -> bool:
        """Return whether the settings make the note of a new topic private, begun at a time."""
        path = f"{topic_name('topic', at)}.md"
        return is_private_by_rule(path, self.settings.embed.private)

    def find(self, ref: str) -> Topic:
        """Return the topic with this id, label or note name. Raises NotFound or Ambiguous."""
        return find_topic(self.items(Topic), ref)

    def store_fact(
        self, change_set: ChangeSet, stated: StatedFact, known: KnownFacts, source: FactSource
    ) -> StoredFact:
        """Enter a stated fact into a change set, as the reconciler decides. Return what was stored.

        A fact with its key gets another version; without one, there is a new note. `known` are the
        facts that hold at the time of the turn; their `versions` are set here. The facts that the
        outcome supersedes or disputes are left to the caller, who may mark them. Raises Conflict or
        Unreadable if the fact's note cannot be changed, and TooLong if it would exceed the limit of
        a note.
        """
        known.versions = self.facts_after(change_set)
        outcome = reconcile(stated.as_new_fact(), known, source.at)
        for fact, end in outcome.ended:
            change_set.set(fact.path, valid_to=format_moment(end))

        new = outcome.new
        stored = stated._replace(key=new.key, since=new.valid_from)
        version = FactVersion(outcome.at, stated.value, source.link)
        earlier = outcome.target
        if earlier is not None:
            path = earlier.path
            old_text = change_set.text(path)
            text = add_version(old_text, earlier, stored, version, source.topic_id)
        else:
            name = legal_name(stored.key.replace("_", " "))
            stem = f"{CONVERSATION_FACT.folder}/{name}"
            path = self.free_path(change_set, stem, between="-")
            text = new_fact(stored, version, source.topic_id, now())
        change_set.put(path, text)

        row = fact_out(stored, source.topic_id)
        return StoredFact(path, outcome, row)

    def find_fact(self, change_set: ChangeSet, ref: str) -> Fact:
        """Return the fact with this id or key, as a change set leaves it so far.

        If several have the key, it is the one that was stated last. Raises NotFound if there is
        none, and Unreadable if its note cannot be changed.
        """
        facts = self.facts_after(change_set)
        named = [fact for fact in facts if fact.id == ref]
        if not named:
            named = [fact for fact in facts if fact.key == ref]
        if not named:
            raise NotFound(
                f"no fact with the id {ref[:80]!r}",
                hint="Pass an id from needs_review, or the key of a fact from retrieve_memory.",
            )

        fact = max(named, key=stated_at)
        if fact.problem:
            raise Unreadable(
                f"{name_of(fact.path)} cannot be changed: {fact.problem}",
                hint="Change it in an editor.",
            )
        return fact

    def current_facts(self, at: datetime) -> list[Fact]:
        """Return the facts that hold at a time: those neither superseded nor over.

        The caller holds the lock of the collection, as for `loaded`.
        """
        return [fact for fact in self.loaded(Fact) if is_current(fact, at)]

    def known_facts(self, at: datetime) -> KnownFacts:
        """Return the facts that hold at the time of a turn, without those stated later.

        The caller holds the lock of the collection, as for `loaded`.
        """
        return KnownFacts.at_turn(self.current_facts(at), at)

    def facts_after(self, change_set: ChangeSet) -> list[Fact]:
        """Return all facts as a change set leaves them so far, those included that it creates.

        The caller drafts a change, as for `loaded`.
        """
        facts_by_path = {fact.path: fact for fact in self.loaded(Fact)}
        for path, text in change_set.texts().items():
            is_new_fact = path.startswith(f"{CONVERSATION_FACT.folder}/")
            if path in facts_by_path or is_new_fact:
                read = Read(path, text, "", "")
                facts_by_path[path] = read_conversation_fact(read)
        return list(facts_by_path.values())
