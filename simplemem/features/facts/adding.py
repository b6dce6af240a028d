"""Add new facts in one step of the history: what each does to the current ones, and its note."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeGuard

from simplemem.features.agent_statements import AGENT
from simplemem.features.answers import FactEvent, FactReference, ReviewRequest
from simplemem.features.collection import ChangeSet
from simplemem.features.fact import Fact
from simplemem.features.facts import decay
from simplemem.features.facts.collection import UNDISPUTED, FactCollection
from simplemem.features.facts.comparing import (
    Decision,
    SimilarFact,
    decide,
    end_of_corrected,
    facts_about,
)
from simplemem.features.facts.fact import NewFact, fact_name, link_target, render_fact
from simplemem.features.facts.memory_type import memory_type_of
from simplemem.features.facts.outcome import facts_disputed_by, outcome_of, without_past_update
from simplemem.features.facts.outdating import (
    disputed_properties,
    disputed_since,
    superseded_properties,
)
from simplemem.features.facts.reading import read_statement
from simplemem.features.facts.reconciling import Verdict
from simplemem.features.facts.reviews import review_by_meaning
from simplemem.features.facts.unstated import topic_to_forget
from simplemem.features.service import FeatureService
from simplemem.note.dates import format_moment, now
from simplemem.store import now as local_time

if TYPE_CHECKING:
    from simplemem.features.facts.fact import Ruling

_DERIVED_SHARE: Final = 0.8  # of the confidence of a derived fact's least certain parent
_FORGET_RULE: Final = "rule:forget"
_REINFORCEMENT: Final = 0.15  # added to the confidence of a preference that is stated again


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


def _is_lasting(fact: Fact) -> bool:
    """Return whether a fact does not end by itself."""
    return fact.memory_type in ("fact", "preference")


class FactAdder:
    """Adds facts in one change set. Guards the current facts as the additions so far leave them.

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
        self._earlier_ids = earlier_ids
        self._facts = {fact.path: fact for fact in collection.facts(origin.scope)}

    def add(self, new: NewFact, rulings: Sequence[Ruling]) -> None:
        """Decide what a new fact does, do it in the change set, and enter it into the result.

        A text that asks to forget something is not stored: the fact that it means is dropped.
        `rulings` are what a model said about the fact before the vault was locked. What the caller
        says that the fact replaces counts more than rules and rulings. Raise Conflict, Unreadable
        or TooLong as the methods of `ChangeSet` do.
        """
        topic = topic_to_forget(new.text)
        if topic:
            self._forget_topic(topic)
            return

        decision = self._decide(new)
        replaced = self._replaced_by(new)
        if replaced:
            self._replace(replaced, new, decision)
            return

        verdict = decision.verdict
        target = decision.target
        if verdict.event == "DELETE":
            self._forget(target, verdict.rule)
        elif verdict.event == "NOOP" and target is not None:
            self._confirm(target, verdict.rule)
            self._dispute(self._facts[target.path], self._facts_in_doubt(new))
            self._take_times(new, self._facts[target.path])
        else:
            self._store(new, decision, rulings)

    def _decide(self, new: NewFact) -> Decision:
        """Return what the rules say about a new fact. One that is over replaces no current fact."""
        decision = decide(self._service.extension, new.text, self._facts.values())
        return without_past_update(decision) if _is_over(new) else decision

    def _take_times(self, new: NewFact, stored: Fact) -> None:
        """Set since when and until when a stored fact holds, as an agent says that restates it.

        A fact that is over by then is no longer current.
        """
        if new.decided_by != AGENT or not (new.valid_from or new.valid_to):
            return
        if not self._may_change(stored):
            return
        changed = replace(
            stored,
            valid_from=new.valid_from or stored.valid_from,
            valid_to=new.valid_to or stored.valid_to,
        )
        for key, time in (("valid_from", changed.valid_from), ("valid_to", changed.valid_to)):
            if time is not None:
                self._change_set.set(stored.path, **{key: format_moment(time)})
        if _is_over(new):
            del self._facts[stored.path]
        else:
            self._facts[stored.path] = changed

    def _replace(self, replaced: Sequence[Fact], new: NewFact, decision: Decision) -> None:
        """Store a fact that the caller says replaces others, at least one, and report that.

        A fact that is stated already gets no second note: it replaces the others itself. What the
        rules say that the new fact makes outdated is replaced too. `decision` is theirs.
        """
        rule = new.decided_by or AGENT
        first = replaced[0]
        others = [fact for fact in replaced[1:] if self._may_change(fact)]
        target = None if decision.target in replaced else decision.target
        is_stated = decision.verdict.event == "NOOP"
        if is_stated and self._may_change(target) and self._may_change(first):
            self._change_set.set(target.path, updates=self._service.link_text(first.path))
            self._take_times(new, target)
            restated = self._facts.get(target.path, target)
            self._supersede(first, restated)
            self._report("UPDATE", "UPDATES", target, rule, first)
            self._supersede_too(others, restated)
            return

        if decision.verdict.relation == "UPDATES" and self._may_change(target):
            others.append(target)
        verdict = Verdict("UPDATE", "UPDATES", rule=rule)
        self._store(new, Decision(verdict, first, decision.similar), rulings=(), others=others)

    def _may_change(self, fact: Fact | None) -> TypeGuard[Fact]:
        """Return whether a fact is current, and the new text may replace it."""
        if fact is None or self._facts.get(fact.path) is not fact:
            return False
        return self._may_replace(fact)

    def _replaced_by(self, new: NewFact) -> list[Fact]:
        """Return the current facts that a new one says it replaces, in their order.

        An id that no current fact of the scope has adds a warning. If there is no other, the rules
        decide.
        """
        facts_by_id = {fact.id: fact for fact in self._facts.values()}
        replaced = []
        for id_ in new.replaces:
            if id_ in facts_by_id:
                replaced.append(facts_by_id[id_])
            else:
                missing = f"nothing was replaced: no current fact has the id {id_[:80]!r}"
                self.result.warnings.append(missing)
        return replaced

    def _forget(self, target: Fact | None, rule: str) -> None:
        """Drop the note of a fact, and report that; or add a warning that says why it stays.

        The facts that it disputes become active again. `target` is None if no fact matches. `rule`
        is the name of the rule that decided, for the report.
        """
        if target is None:
            self._warn_not_forgotten("no fact matches")
        elif target.problem:
            self._warn_not_forgotten(target.problem)
        elif self._is_protected(target):
            self._warn_not_forgotten("a web page cannot withdraw what the user stated")
        else:
            self._change_set.drop(target.path)
            self._collection.settle_disputes(self._change_set, target.path)
            del self._facts[target.path]
            self._report("DELETE", None, target, rule)

    def _forget_topic(self, topic: str) -> None:
        """Drop the notes of all facts that name a topic with all its words, and report that.

        Add a warning if there is none.
        """
        facts = facts_about(topic, list(self._facts.values()))
        if not facts:
            self._warn_not_forgotten(f"no fact is about {topic!r}")
        for fact in facts:
            self._forget(fact, _FORGET_RULE)

    def _warn_not_forgotten(self, reason: str) -> None:
        """Add a warning that a fact stays, with the reason."""
        self.result.warnings.append(f"nothing was forgotten: {reason}")

    def _is_protected(self, fact: Fact) -> bool:
        """Return whether the user stated a fact and the new text is from outside."""
        return self._origin.is_outside and not fact.source

    def _confirm(self, target: Fact, rule: str) -> None:
        """Report that a fact was stated again. `rule` is the name of the rule that found it.

        The fact is disputed no longer, and a preference becomes more certain. A note that cannot be
        changed stays as it is.
        """
        path = target.path
        if target.is_disputed and not target.problem:
            self._change_set.set(path, **UNDISPUTED)
            self._facts[path] = replace(target, status="active", disputed=None, disputed_by="")

        time = now()
        confidence = decay.confidence_at(target, time)
        if target.memory_type == "preference" and not target.problem and confidence < 1:
            renewed = round(min(1.0, confidence + _REINFORCEMENT), 4)
            self._change_set.set(path, confidence=renewed, reinforced=format_moment(time))
        self._report("NOOP", None, target, rule)

    def _store(
        self,
        new: NewFact,
        decision: Decision,
        rulings: Sequence[Ruling],
        others: Sequence[Fact] = (),
    ) -> None:
        """Put the note of a new fact into the change set, and report that.

        The facts that it replaces or disputes are marked as such. What a model derives from it is
        stored too. `decision` has the event ADD or UPDATE; `rulings` count only for ADD. `others`
        are facts that it replaces beside the target of `decision`.
        """
        applicable: list[Ruling] = []
        if decision.verdict.event == "ADD" and not _is_over(new):
            applicable = [ruling for ruling in rulings if self._still_applies(ruling)]
        outcome = outcome_of(decision, applicable, self._may_replace)

        in_doubt = self._facts_in_doubt(new)
        memory_type = new.memory_type or memory_type_of(new.text, now()).name
        if memory_type == "episode" and any(_is_lasting(doubtful) for doubtful in in_doubt):
            # It must last as long as the facts that it disputes.
            new = new._replace(memory_type="fact")
        new = new._replace(valid_to=new.valid_to or end_of_corrected(new.text, in_doubt))

        fact = self._write(new, outcome.rule, outcome.target, outcome.relation or "")
        self._report(outcome.event, outcome.relation, fact, outcome.rule, outcome.target)
        self._supersede_too(others, fact)
        self._dispute(fact, [doubtful for doubtful in in_doubt if doubtful is not outcome.target])
        if outcome.event == "ADD":
            self._suggest_review(fact, outcome.similar)
        self._derive_all(applicable, fact)

    def _still_applies(self, ruling: Ruling) -> bool:
        """Return whether the fact that a model was asked about has not changed meanwhile."""
        return self._facts.get(ruling.target.path) is ruling.target

    def _may_replace(self, fact: Fact) -> bool:
        """Return whether the note of a fact can be changed, and the new text may replace it."""
        return not fact.problem and not self._is_protected(fact)

    def _write(
        self,
        new: NewFact,
        rule: str,
        old: Fact | None = None,
        relation: str = "",
        parents: Sequence[Fact] = (),
    ) -> Fact:
        """Put the note of a new fact into the change set, and return the fact.

        `rule` is the name of the rule or of the model that decided. `old` is the fact that the new
        one extends or replaces: `relation` is then "EXTENDS" or "UPDATES", and a replaced fact is
        marked as superseded. `parents` are the facts from which the new one was derived.
        """
        link_text = self._service.link_text
        name = fact_name(self._origin.scope, new.text)
        path = self._service.free_path(self._change_set, name, between=" ")
        fact = self._complete(new, path, rule)
        if parents:
            fact = replace(fact, derived_from=tuple(link_text(parent.path) for parent in parents))
        if old is not None and relation == "EXTENDS":
            fact = replace(fact, extends=link_text(old.path))
        if old is not None and relation == "UPDATES":
            fact = replace(fact, updates=link_text(old.path))
            self._supersede(old, fact)

        self._change_set.put(path, render_fact(fact, new.quote))
        self._facts[path] = fact
        return fact

    def _complete(self, new: NewFact, path: str, rule: str) -> Fact:
        """Return the fact that a new one becomes, with a new id, for a note at a path.

        Rules read in its text the type, the slot and the end, where `new` leaves them empty; it
        begins now. `rule` is the name of what decided, unless `new` has one.
        """
        time = now()
        type_by_rules = memory_type_of(new.text, time)
        valid_to = type_by_rules.valid_to
        if type_by_rules.name == "episode" and new.memory_type not in ("", "episode"):
            valid_to = None  # the day of an episode does not end what lasts

        return Fact(
            path=path,
            sha256="",
            id=f"atom_{time:%Y%m%d}_{secrets.token_hex(3)}",
            statement=new.text,
            scope=self._origin.scope,
            memory_type=new.memory_type or type_by_rules.name,
            slot=new.slot or read_statement(new.text).slot,
            confidence=new.confidence,
            valid_from=new.valid_from or time,
            valid_to=new.valid_to or valid_to,
            source=self._origin.document_path.removesuffix(".md"),
            decided_by=new.decided_by or rule,
            created=local_time(),
        )

    def _supersede(self, old: Fact, new: Fact) -> None:
        """Mark a fact as superseded by a new one, in the change set; it is no longer current."""
        link = self._service.link_text(new.path)
        superseded = superseded_properties(old, link, new.valid_from, now())
        self._change_set.set(old.path, status="superseded", **superseded)
        del self._facts[old.path]

    def _supersede_too(self, others: Sequence[Fact], new: Fact) -> None:
        """Mark further facts as superseded by a new one, and enter them into the last event."""
        for other in others:
            self._supersede(other, new)
        if others:
            references = [FactReference(id=fact.id, memory=fact.statement) for fact in others]
            self.result.events[-1]["also_replaced"] = references

    def _facts_in_doubt(self, new: NewFact) -> list[Fact]:
        """Return the current facts that a new one disputes and that may be marked; none if over."""
        if _is_over(new):
            return []
        facts = [fact for fact in self._facts.values() if self._may_be_disputed(fact)]
        return facts_disputed_by(new, facts)

    def _may_be_disputed(self, fact: Fact) -> bool:
        """Return whether a fact can be changed, and was not stored by this very call."""
        is_earlier = bool(fact.sha256) and fact.id not in self._earlier_ids
        return is_earlier and not fact.problem and not self._is_protected(fact)

    def _dispute(self, new: Fact, older_facts: Sequence[Fact]) -> None:
        """Mark older facts as disputed by a new one, except itself and those that were replaced.

        The facts are entered into the last event of the result, which must be that of the new fact.
        """
        link = self._service.link_text(new.path)
        time = now()
        disputed_facts: list[FactReference] = []
        for fact in older_facts:
            if fact.path == new.path or self._facts.get(fact.path) is not fact:
                continue

            properties = disputed_properties(fact, link, time)
            self._change_set.set(fact.path, status="disputed", **properties)
            self._facts[fact.path] = replace(
                fact,
                status="disputed",
                disputed=disputed_since(fact, time),
                disputed_by=link_target(link),
            )
            disputed_facts.append(FactReference(id=fact.id, memory=fact.statement))

        if disputed_facts:
            self.result.events[-1]["disputes"] = disputed_facts

    def _suggest_review(self, new: Fact, similar: Sequence[SimilarFact]) -> None:
        """Enter into the result which current facts a new one may replace. The user decides."""
        current = [pair for pair in similar if pair.fact.path in self._facts]
        review = review_by_meaning(new, current)
        if review is not None:
            self.result.needs_review.append(review)

    def _derive_all(self, rulings: Sequence[Ruling], new: Fact) -> None:
        """Put what a model derived from a new fact and an earlier one into the change set.

        Each ruling with the relation DERIVES becomes a fact, which is less certain than both.
        """
        for ruling in rulings:
            if ruling.relation != "DERIVES" or not ruling.derived:
                continue

            parents = (ruling.target, new)
            time = now()
            lowest_confidence = min(decay.confidence_at(parent, time) for parent in parents)
            derived = NewFact(
                ruling.derived,
                memory_type="derived",
                confidence=_DERIVED_SHARE * lowest_confidence,
            )
            fact = self._write(derived, ruling.method, parents=parents)
            self._report("ADD", "DERIVES", fact, ruling.method)

    def _report(
        self,
        event: str,
        relation: str | None,
        fact: Fact,
        rule: str,
        old: Fact | None = None,
    ) -> None:
        """Enter into the result what happened to a fact, as an event with these values.

        `event` is ADD, UPDATE, NOOP or DELETE, and `relation` is UPDATES, EXTENDS, DERIVES or None.
        `rule` is the name of the rule or of the model that decided. `old` is the fact that `fact`
        replaces or extends.
        """
        report = FactEvent(
            event=event,
            relation=relation,
            id=fact.id,
            memory=fact.statement,
            rule=rule,
        )
        if old is not None:
            report["previous"] = FactReference(id=old.id, memory=old.statement)
        self.result.events.append(report)


def _is_over(new: NewFact) -> bool:
    """Return whether a new fact held in the past only."""
    return decay.is_past(new.valid_to, now())
