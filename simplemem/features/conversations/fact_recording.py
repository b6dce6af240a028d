"""Record the facts that one exchange states: store them, and mark what they replace or dispute.

The reconciler of facts decides (`facts/reconciling.py`); what it decides is written here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from simplemem.features.answers import FactOut, FactReference, ReviewRequest
from simplemem.features.collection import ChangeSet
from simplemem.features.conversations.exchange import Exchange
from simplemem.features.conversations.notes import ConversationNotes, FactSource, StoredFact
from simplemem.features.fact import Fact
from simplemem.features.facts.outcome import TurnOutcome
from simplemem.features.facts.outdating import disputed_properties, superseded_properties
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.reconciling import reconcile_turn
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
        self._earlier = notes.known_facts(self._turn.at)
        self._named: dict[str, Fact] = {}  # the facts that the exchange says it replaces, by id
        self._result = RecordedFacts()

    def record(self, source: FactSource) -> RecordedFacts:
        """Store the facts, and mark those that they replace or put in doubt.

        `source` is the turn, which the change set has in the note of its topic already. Raises
        NotFound for the id of a replaced fact that no fact has, Conflict or Unreadable if a note
        cannot be changed, and TooLong. Called once.
        """
        # All are looked up before any is stored: an id names a fact that was there before.
        stated_facts = [self._with_ids(stated) for stated in self._exchange.facts]
        stored_facts = [self._store(stated, source) for stated in stated_facts]

        # A version that is stored removes an earlier mark from its note, so marks are set after it.
        values = {stored.path: stored.row["value"] for stored in stored_facts}
        for stored in stored_facts:
            self._warn_of_unreplaced(stored)
            self._mark_superseded(stored, values)

        turn_outcome = self._reconcile_turn()
        self._mark_ended(turn_outcome)
        self._mark_disputed(turn_outcome, source)
        self._request_reviews(stored_facts, turn_outcome)
        return self._result

    def _with_ids(self, stated: StatedFact) -> StatedFact:
        """Return a stated fact with the ids of the facts that it replaces, by their ids or keys.

        Raises NotFound if no fact has one of them, and Unreadable if a note cannot be changed.
        """
        ids = []
        for reference in stated.replaces:
            fact = self._notes.find_fact(self._change_set, reference)
            self._named[fact.id] = fact
            ids.append(fact.id)

        distinct_ids = dict.fromkeys(ids)
        return stated._replace(replaces=tuple(distinct_ids))

    def _store(self, stated: StatedFact, source: FactSource) -> StoredFact:
        """Store a fact and enter it into the result. What it supersedes holds no more."""
        stored = self._notes.store_fact(self._change_set, stated, self._earlier, source)
        self._result.facts.append(stored.row)
        for fact, _ in stored.outcome.superseded:
            self._earlier.remove_replaced(fact)
        return stored

    def _warn_of_unreplaced(self, stored: StoredFact) -> None:
        """Enter a warning for each fact that was to be replaced and did not hold any more."""
        for id_ in stored.outcome.unknown_ids:
            name = name_of(self._named[id_].path)
            warning = f"{name} did not hold at the time of this message, so it was not replaced"
            self._result.warnings.append(warning)

    def _mark_superseded(self, stored: StoredFact, values: Mapping[str, str]) -> None:
        """Mark the facts that a stored one supersedes, and enter them into the result.

        `values` are those that the exchange states, by the paths of their notes. A note that gets
        another value stays without a mark: its history has both.
        """
        link = self._notes.link_text(stored.path)
        for fact, end in stored.outcome.superseded:
            has_new_value = values.get(fact.path, fact.value) != fact.value
            if fact.path != stored.path and not has_new_value:
                properties = superseded_properties(link, end)
                self._change_set.set(fact.path, **properties)
            reference = FactReference(id=fact.id, memory=text_of(fact))
            self._result.replaced.append(reference)

    def _reconcile_turn(self) -> TurnOutcome:
        """Return what the message says of the facts that it does not state itself."""
        stated_keys = {row["key"] for row in self._result.facts}
        facts = self._notes.facts_after(self._change_set)
        stated_paths = [fact.path for fact in facts if fact.key in stated_keys]
        self._earlier.mark_stated(stated_paths)

        changes = read_text(self._turn.message).changes.values()
        ends_by_id = {ended.id: ended.at for ended in self._exchange.ended}
        return reconcile_turn(changes, ends_by_id, self._earlier, self._turn.at)

    def _mark_ended(self, outcome: TurnOutcome) -> None:
        """Set the ends of the facts that the turn ends. Raises Conflict, Unreadable or TooLong."""
        for fact, end in outcome.ended:
            self._change_set.set(fact.path, valid_to=format_moment(end))
            self._earlier.remove(fact.path)

    def _mark_disputed(self, outcome: TurnOutcome, source: FactSource) -> None:
        """Mark the facts that the turn, which is `source`, disputes.

        Raises Conflict, Unreadable or TooLong.
        """
        link = f"[[{source.link}]]"
        for fact, since in outcome.disputed:
            properties = disputed_properties(link, since)
            self._change_set.set(fact.path, **properties)

    def _request_reviews(self, stored_facts: Sequence[StoredFact], outcome: TurnOutcome) -> None:
        """Enter into the result which earlier facts the agent may say are replaced.

        Those that the turn itself puts in doubt are named under the id of the turn, unless they are
        candidates of a new fact.
        """
        reviews = self._reviews_of_new(stored_facts)
        candidate_ids = set[str]()
        for review in reviews:
            candidate_ids.update(candidate["id"] for candidate in review["candidates"])

        doubtful = [fact for fact, _ in outcome.disputed if fact.id not in candidate_ids]
        review_of_turn = review_of_doubt(self._turn.id, doubtful)
        if review_of_turn is not None:
            reviews.append(review_of_turn)
        self._result.needs_review += reviews

    def _reviews_of_new(self, stored_facts: Iterable[StoredFact]) -> list[ReviewRequest]:
        """Return which earlier facts each new one may replace by its name, if any.

        A fact that is only stated again replaces none.
        """
        # If one note got several versions, the outcome of the last one counts.
        in_force = {item.path: item.outcome for item in stored_facts if item.outcome.is_in_force}
        other_facts = [fact for fact in self._earlier.facts if fact.path not in in_force]
        facts_by_path = {fact.path: fact for fact in self._notes.facts_after(self._change_set)}

        reviews = []
        for path, outcome in in_force.items():
            is_restated = outcome.event == "NOOP" and self._earlier.get(path) is not None
            if is_restated:
                continue
            review = review_by_name(facts_by_path[path], other_facts)
            if review is not None:
                reviews.append(review)
        return reviews
