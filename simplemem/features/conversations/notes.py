"""The notes of conversations in one store: topics, facts and profiles, in one collection."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from simplemem.features.answers import FactOut
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.conversations.facts import (
    CONVERSATION_FACT,
    FactVersion,
    add_version,
    fact_out,
    new_fact,
    read_conversation_fact,
    stated_at,
)
from simplemem.features.conversations.profile import PROFILE, Profile, current_profile
from simplemem.features.conversations.statements import StatedFact
from simplemem.features.conversations.topic import TOPIC, Topic, Turn
from simplemem.features.conversations.topic_lookup import find_topic
from simplemem.features.fact import Fact
from simplemem.features.note_type import NoteType
from simplemem.features.service import FeatureService
from simplemem.note.dates import local_now
from simplemem.note.header import read_header
from simplemem.note.names import legal_name
from simplemem.store import Read, now

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

T = TypeVar("T")


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
        topics = [topic for topic in self.items(Topic) if closed or topic.status != "closed"]

        def rank(topic: Topic) -> tuple[bool, datetime, str]:
            """Return what topics are ordered by, the highest first."""
            return topic.status == "active", topic.last, topic.id

        return sorted(topics, key=rank, reverse=True)

    def profile(self) -> Profile:
        """Return the current profile of the user, an empty one if there is no note.

        It is without the constraints and preferences that have ended.
        """
        profiles = self.items(Profile)
        if not profiles:
            return Profile(path="")
        today = f"{local_now():%Y-%m-%d}"
        return current_profile(profiles[0], today)

    def find(self, ref: str) -> Topic:
        """Return the topic with this id, label or note name. Raises NotFound or Ambiguous."""
        return find_topic(self.items(Topic), ref)

    def store_fact(
        self, change_set: ChangeSet, stated: StatedFact, turn: Turn, path: str, topic_id: str
    ) -> FactOut:
        """Enter a fact that a turn states into a change set. Return it as clients get it.

        A fact with its key gets another version; without one, there is a new note. The topic of the
        turn has the id `topic_id`, and its note is at `path`. Raises Conflict or Unreadable if the
        fact's note cannot be changed, and TooLong if it would exceed the limit of a note.
        """
        link = self.link_text(path, turn.mark).removeprefix("[[").removesuffix("]]")
        version = FactVersion(turn.at, stated.value, link)
        stored_fact = self._find_stored_fact(change_set, stated)
        if stored_fact is not None:
            stated = stated._replace(key=stored_fact.key)
            text = change_set.text(stored_fact.path)
            text = add_version(text, stored_fact, stated, version, topic_id)
            change_set.put(stored_fact.path, text)
        else:
            name = legal_name(stated.key.replace("_", " "))
            stem = f"{CONVERSATION_FACT.folder}/{name}"
            new_path = self.free_path(change_set, stem, between="-")
            change_set.put(new_path, new_fact(stated, version, topic_id, now()))
        return fact_out(stated, topic_id)

    def _find_stored_fact(self, change_set: ChangeSet, stated: StatedFact) -> Fact | None:
        """Return the fact that a stated one is another version of, None if there is none.

        It has the same key. A credential may also be named by its noun alone, "the password", if
        there is only one credential with that noun.
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
        """Return all facts as a change set leaves them so far, those included that it creates.

        The caller drafts a change, as for `loaded`.
        """
        facts = {fact.path: fact for fact in self.loaded(Fact)}
        for path, text in change_set.texts().items():
            is_new_fact = path.startswith(f"{CONVERSATION_FACT.folder}/")
            if path in facts or is_new_fact:
                facts[path] = read_conversation_fact(Read(path, text, "", ""))
        return list(facts.values())
