"""Write what becomes of new statements: their notes, and what changes in those of known facts.

`reconciling` decides. All facts of one call are added in one step of the history.
"""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from simplemem.features.answers import FactEvent, FactReference, ReviewRequest
from simplemem.features.collection import ChangeSet
from simplemem.features.fact import Fact
from simplemem.features.facts import decay
from simplemem.features.facts.collection import UNDISPUTED, FactCollection
from simplemem.features.facts.comparing import compare
from simplemem.features.facts.fact import fact_name, link_target, render_fact
from simplemem.features.facts.forgetting import forget_topic
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.new_fact import NewFact, Ruling
from simplemem.features.facts.outcome import FactAt, Outcome
from simplemem.features.facts.outdating import disputed_properties, superseded_properties
from simplemem.features.facts.reconciling import reconcile
from simplemem.features.facts.reviews import review_by_meaning
from simplemem.features.facts.stored_statement import as_stored
from simplemem.features.facts.unstated import topic_to_forget
from simplemem.features.service import FeatureService
from simplemem.note.dates import format_moment, now
from simplemem.store import now as local_time

_DERIVED_SHARE: Final = 0.8  # of the confidence of a derived fact's least certain parent


@dataclass
class AddResult:
    """What became of new facts. It grows while facts are added."""

    events: list[FactEvent] = field(default_factory=list)  # one per fact that was added or changed
    needs_review: list[ReviewRequest] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    reconciliation: str = "rules"  # who decided: "rules", or the first model that did


@dataclass(frozen=True)
class Origin:
    """Where new facts are from, and the scope that they are for."""

    scope: str
    document_path: str  # "" if they are from no document
    is_outside: bool  # not the user's words: a web page


class FactAdder:
    """Adds statements in one change set. Guards the known facts as the additions so far leave them.

    `result` has what became of the facts that were added so far. Nothing is written: the caller
    writes the change set.
    """

    def __init__(
        self,
        service: FeatureService,
        collection: FactCollection,
        change_set: ChangeSet,
        origin: Origin,
        earlier_ids: Collection[str],
    ) -> None:
        """Take the current facts of the scope of `origin`. The caller holds the collection's lock.

        `change_set` gets all changes. `earlier_ids` are those of facts that earlier steps of the
        same call stored.
        """
        self.result = AddResult()
        self._service = service
        self._collection = collection
        self._change_set = change_set
        self._origin = origin
        facts = collection.facts(origin.scope)
        self._known = KnownFacts(
            facts,
            is_outside=origin.is_outside,
            stated_paths=[fact.path for fact in facts if fact.id in earlier_ids],
        )

    def add(self, new: NewFact, rulings: Sequence[Ruling]) -> None:
        """Enter what becomes of a new fact into the change set and the result.

        A text that asks to forget something is not stored: the facts that it means are dropped.
        `rulings` are what a model said about the fact before the vault was locked. Raise Conflict,
        Unreadable or TooLong as the methods of `ChangeSet` do.
        """
        outcome = self._reconcile(new, rulings)
        for id_ in outcome.unknown_ids:
            missing = f"nothing was replaced: no current fact has the id {id_[:80]!r}"
            self.result.warnings.append(missing)

        if outcome.event == "DELETE":
            self._forget(outcome)
        elif outcome.restated is not None:
            self._restate(outcome, outcome.restated)
        else:
            self._store(outcome)

    def _reconcile(self, new: NewFact, rulings: Sequence[Ruling]) -> Outcome:
        """Return what becomes of a new fact now. The index is asked unless a topic is forgotten."""
        topic = topic_to_forget(new.text)
        if topic:
            return forget_topic(new, topic, self._known, now())
        comparison = compare(self._service.extension, new.text, self._known.facts)
        return reconcile(new, self._known, now(), comparison, rulings)

    def _forget(self, outcome: Outcome) -> None:
        """Drop the notes of forgotten facts, and report that. Warn about those that stay.

        The facts that a forgotten one disputes become active again.
        """
        for reason in outcome.not_forgotten:
            self.result.warnings.append(f"nothing was forgotten: {reason}")
        for fact in outcome.forgotten:
            self._change_set.drop(fact.path)
            self._collection.settle_disputes(self._change_set, fact.path)
            self._known.remove(fact.path)
            self._report(outcome, fact)

    def _restate(self, outcome: Outcome, restated: Fact) -> None:
        """Enter the outcome of a statement that a known fact states already, and report it.

        That fact gets no second note. It is confirmed, or replaces the facts that the caller names.
        """
        link = self._service.link_text(restated.path)
        if outcome.event == "NOOP":
            self._confirm(restated)
        elif outcome.target is not None:
            target_link = self._service.link_text(outcome.target.path)
            self._change_set.set(restated.path, updates=target_link)

        if outcome.takes_times:
            self._set_times(outcome, restated.path)
        self._supersede(outcome.superseded, link)
        self._dispute(outcome.disputed, link)
        self._report(outcome, restated)

    def _confirm(self, restated: Fact) -> None:
        """Enter that a fact was stated again: its dispute ends, and a preference is renewed.

        A note that cannot be changed stays as it is.
        """
        if restated.problem:
            return
        if restated.is_disputed:
            self._change_set.set(restated.path, **UNDISPUTED)
            self._known.put(replace(restated, status="active", disputed=None, disputed_by=""))

        time = now()
        confidence = decay.renewed_confidence(restated, time)
        if confidence is not None:
            reinforced = format_moment(time)
            self._change_set.set(restated.path, confidence=confidence, reinforced=reinforced)

    def _set_times(self, outcome: Outcome, path: str) -> None:
        """Set since when and until when the fact at a path holds. If it is over, it is ended."""
        new = outcome.new
        for key, time in (("valid_from", new.valid_from), ("valid_to", new.valid_to)):
            if time is not None:
                self._change_set.set(path, **{key: format_moment(time)})

        restated = self._known.get(path)
        if restated is not None:
            self._known.put(replace(restated, valid_from=new.valid_from, valid_to=new.valid_to))
        for ended in outcome.ended:
            self._known.remove(ended.fact.path)

    def _store(self, outcome: Outcome) -> None:
        """Put the note of a new fact into the change set, with all that it changes in others.

        What a model derives from it is stored too.
        """
        link_text = self._service.link_text
        fact = self._new_fact(outcome.new, outcome.rule)
        target = outcome.target
        if target is not None and outcome.relation == "EXTENDS":
            fact = replace(fact, extends=link_text(target.path))
        elif target is not None:
            fact = replace(fact, updates=link_text(target.path))

        link = link_text(fact.path)
        self._supersede(outcome.superseded, link)
        self._put(fact, outcome.new.quote)
        self._dispute(outcome.disputed, link)
        self._report(outcome, fact)
        review = review_by_meaning(fact, outcome.candidates)
        if review is not None:
            self.result.needs_review.append(review)
        for ruling in outcome.derived:
            self._derive(ruling, fact)

    def _new_fact(self, new: NewFact, rule: str) -> Fact:
        """Return the fact that a statement becomes, with an id and a path that no other has.

        `rule` is the name of what decided, unless `new` has one.
        """
        name = fact_name(self._origin.scope, new.text)
        return Fact(
            path=self._service.free_path(self._change_set, name, between=" "),
            sha256="",
            id=f"atom_{now():%Y%m%d}_{secrets.token_hex(3)}",
            statement=new.text,
            scope=self._origin.scope,
            memory_type=new.memory_type,
            slot=new.slot,
            confidence=new.confidence,
            valid_from=new.valid_from,
            valid_to=new.valid_to,
            source=self._origin.document_path.removesuffix(".md"),
            decided_by=new.decided_by or rule,
            created=local_time(),
        )

    def _put(self, fact: Fact, quote: str = "") -> None:
        """Put the note of a new fact into the change set, with the words it was extracted from."""
        self._change_set.put(fact.path, render_fact(fact, quote))
        self._known.put_stated(fact)

    def _supersede(self, superseded: Sequence[FactAt], link: str) -> None:
        """Mark facts as superseded by the one to which `link` leads; they hold no more."""
        for fact, end in superseded:
            properties = superseded_properties(link, end)
            self._change_set.set(fact.path, status="superseded", **properties)
            self._known.remove_replaced(fact)

    def _dispute(self, disputed: Sequence[FactAt], link: str) -> None:
        """Mark facts as disputed by the one to which `link` leads."""
        for fact, since in disputed:
            self._change_set.set(fact.path, status="disputed", **disputed_properties(link, since))
            doubtful = replace(
                fact, status="disputed", disputed=since, disputed_by=link_target(link)
            )
            self._known.put(doubtful)

    def _derive(self, ruling: Ruling, new: Fact) -> None:
        """Store and report what a model derives from a new fact and a known one.

        It is less certain than both. Nothing is stored if the model's text is not usable.
        """
        if not ruling.derived:
            return

        time = now()
        parents = (ruling.target, new)
        lowest_confidence = min(decay.confidence_at(parent, time) for parent in parents)
        derived = NewFact(
            ruling.derived,
            memory_type="derived",
            confidence=_DERIVED_SHARE * lowest_confidence,
        )
        links = tuple(self._service.link_text(parent.path) for parent in parents)
        fact = replace(self._new_fact(as_stored(derived, time), ruling.method), derived_from=links)
        self._put(fact)
        self.result.events.append(_event_of("ADD", "DERIVES", fact, ruling.method))

    def _report(self, outcome: Outcome, fact: Fact) -> None:
        """Enter into the result what an outcome does to a fact, and to others because of it."""
        event = _event_of(outcome.event, outcome.relation, fact, outcome.rule)
        target = outcome.target
        if outcome.event == "UPDATE" and target is not None:
            event["previous"] = _reference_to(target)

        further = [old for old, _ in outcome.superseded if old is not target]
        if further:
            event["also_replaced"] = [_reference_to(old) for old in further]
        if outcome.disputed:
            event["disputes"] = [_reference_to(old) for old, _ in outcome.disputed]
        self.result.events.append(event)


def _event_of(event: str, relation: str | None, fact: Fact, rule: str) -> FactEvent:
    """Return the report of what happened to a fact.

    `event` is ADD, UPDATE, NOOP or DELETE, and `relation` is UPDATES, EXTENDS, DERIVES or None.
    `rule` is the name of the rule or of the model that decided.
    """
    return FactEvent(
        event=event,
        relation=relation,
        id=fact.id,
        memory=fact.statement,
        rule=rule,
    )


def _reference_to(fact: Fact) -> FactReference:
    """Return a fact as events name it."""
    return FactReference(id=fact.id, memory=fact.statement)
