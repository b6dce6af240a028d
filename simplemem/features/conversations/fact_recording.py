"""Record the facts that one exchange states: store them, and mark what they replace or dispute."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from simplemem.features.answers import FactOut, FactReference, ReviewRequest
from simplemem.features.collection import ChangeSet
from simplemem.features.conversations.exchange import Exchange
from simplemem.features.conversations.notes import ConversationNotes
from simplemem.features.fact import Fact
from simplemem.features.facts.decay import is_current
from simplemem.features.facts.key_notes import stated_at, stated_subject
from simplemem.features.facts.outdating import (
    disputed_properties,
    facts_put_in_doubt,
    superseded_properties,
)
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.reviews import review_by_name, review_of_doubt, text_of
from simplemem.features.facts.stated import StatedFact
from simplemem.note.dates import format_moment
from simplemem.note.names import name_of


@dataclass
class RecordedFacts:
    """What became of the facts of one exchange, and of the earlier ones that it is about."""

    facts: list[FactOut] = field(default_factory=list)
    replaced: list[FactReference] = field(default_factory=list)
    needs_review: list[ReviewRequest] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


class FactRecorder:
    """Enters the facts of one exchange into a change set. Guards the facts that held before it."""

    def __init__(self, notes: ConversationNotes, change_set: ChangeSet, exchange: Exchange) -> None:
        """Take the facts that hold at the time of the turn. Nothing is changed yet.

        The caller drafts a change of the collection of `notes`.
        """
        self._notes = notes
        self._change_set = change_set
        self._exchange = exchange
        self._turn = exchange.turn
        self._earlier = {
            fact.path: fact
            for fact in notes.current_facts(self._turn.at)
            if stated_at(fact) <= self._turn.at
        }
        self._result = RecordedFacts()

    def record(self, topic_path: str, topic_id: str) -> RecordedFacts:
        """Store the facts, and mark those that they replace or put in doubt.

        `topic_path` and `topic_id` are those of the topic's note, which has the turn already.
        Raises NotFound for the id of a replaced fact that no fact has, Conflict or Unreadable if a
        note cannot be changed, and TooLong.
        """
        # All are looked up before any is stored: an id names a fact that was there before.
        replaced_paths = [self._paths_of_replaced(stated) for stated in self._exchange.facts]
        replaced_by_key = {}
        for stated, paths in zip(self._exchange.facts, replaced_paths, strict=True):
            row = self._notes.store_fact(self._change_set, stated, self._turn, topic_path, topic_id)
            self._result.facts.append(row)
            replaced_by_key[row["key"]] = paths

        new_facts = self._new_facts()
        for fact in new_facts:
            for old_path in replaced_by_key[fact.key]:
                self._supersede(old_path, fact)

        self._end_facts()
        link = self._notes.link_text(topic_path, self._turn.mark)
        doubtful = self._dispute(link)
        self._request_reviews(new_facts, doubtful)
        return self._result

    def _paths_of_replaced(self, stated: StatedFact) -> list[str]:
        """Return the paths of the facts that a new one replaces, each once.

        Raises NotFound if no fact has one of the ids, and Unreadable if a note cannot be changed.
        """
        paths = [self._notes.find_fact(self._change_set, id_).path for id_ in stated.replaces]
        return list(dict.fromkeys(paths))

    def _new_facts(self) -> list[Fact]:
        """Return the facts of the exchange as their notes have them now, in their order.

        A fact that is not the current value of its key is left out.
        """
        values = {stated["key"]: stated["value"] for stated in self._result.facts}
        facts_by_key = {}
        for fact in self._notes.facts_after(self._change_set):
            if fact.key in values and fact.value == values[fact.key]:
                facts_by_key[fact.key] = fact
        return [facts_by_key[key] for key in values if key in facts_by_key]

    def _supersede(self, path: str, new: Fact) -> None:
        """Mark the fact at a path as superseded by a new one, and enter it into the result.

        A fact with the key of the new one is its earlier version, so its note stays as it is. One
        that does not hold any more stays too, with a warning.
        """
        old = self._earlier.pop(path, None)
        if old is None:
            name = name_of(path)
            reason = "did not hold at the time of this message"
            self._result.warnings.append(f"{name} {reason}, so it was not replaced")
            return
        if path != new.path:
            link = self._notes.link_text(new.path)
            properties = superseded_properties(old, link, new.valid_from, self._turn.at)
            self._change_set.set(path, **properties)
        self._result.replaced.append(FactReference(id=old.id, memory=text_of(old)))

    def _end_facts(self) -> None:
        """End the earlier facts that the exchange says hold no more. Others stay as they are."""
        ends = {ended.id: ended.at for ended in self._exchange.ended}
        for path, fact in list(self._earlier.items()):
            is_ended = fact.id in ends and not fact.problem
            if is_ended and fact.key not in {row["key"] for row in self._result.facts}:
                self._change_set.set(path, valid_to=format_moment(ends[fact.id]))
                del self._earlier[path]

    def _dispute(self, link: str) -> list[Fact]:
        """Mark the earlier facts that the turn says have changed, unless it states the new value.

        Return them. `link` is a link to the turn, in brackets. Facts whose notes cannot be changed
        are left out. Raises Conflict, Unreadable or TooLong.
        """
        changes = read_text(self._turn.message).changes
        if not changes:
            return []

        turn_keys = {fact["key"] for fact in self._result.facts}
        earlier_facts = self._disputable(turn_keys)
        doubtful = facts_put_in_doubt(changes.values(), earlier_facts, stated_subject)
        for fact in doubtful:
            self._change_set.set(fact.path, **disputed_properties(fact, link, self._turn.at))
        return doubtful

    def _disputable(self, turn_keys: Collection[str]) -> list[Fact]:
        """Return the facts that were stated before the turn, hold, and have none of these keys."""
        facts = []
        for fact in self._notes.facts_after(self._change_set):
            is_earlier = fact.key not in turn_keys and stated_at(fact) < self._turn.at
            if is_earlier and not fact.problem and is_current(fact, self._turn.at):
                facts.append(fact)
        return facts

    def _request_reviews(self, new_facts: Sequence[Fact], doubtful: Sequence[Fact]) -> None:
        """Enter into the result which earlier facts the agent may say are replaced.

        Those that the turn itself puts in doubt are named under the id of the turn, unless they are
        candidates of a new fact.
        """
        new_paths = {fact.path for fact in new_facts}
        others = [fact for fact in self._earlier.values() if fact.path not in new_paths]
        named = set[str]()
        for fact in new_facts:
            before = self._earlier.get(fact.path)
            is_restated = before is not None and before.value == fact.value
            review = None if is_restated else review_by_name(fact, others)
            if review is not None:
                named.update(candidate["id"] for candidate in review["candidates"])
                self._result.needs_review.append(review)

        review = review_of_doubt(self._turn.id, [old for old in doubtful if old.id not in named])
        if review is not None:
            self._result.needs_review.append(review)
