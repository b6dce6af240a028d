"""The facts of one store.

A new fact is compared with those that are current in its scope, under the vault's lock. It is one step of the history
with what it replaces. All state is in notes. If somebody changes them, the next call uses the changed notes.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, NamedTuple, Unpack

from simplemem.errors import Invalid, NotFound, SimplememError, Unreadable
from simplemem.features.answers import FactEvent, FactReference, ReviewCandidate, ReviewRequest
from simplemem.features.changes import StatedSubject, find_doubtful, read_change, subject_of
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.fact import CURRENT_STATUSES, Fact, Slot
from simplemem.features.facts import decay
from simplemem.features.facts.fact import (
    FACT,
    NewFact,
    fact_name,
    link_target,
    render_fact,
    replace_statement,
)
from simplemem.features.facts.reading import Reading, kind_of, read_statement, to_forget
from simplemem.features.facts.reconciling import Verdict, reconcile
from simplemem.features.service import FeatureService
from simplemem.features.text import clean_text
from simplemem.models import AuthorArgs
from simplemem.note.dates import format_moment, now
from simplemem.note.note import read_note
from simplemem.note.scopes import check_scope, private_reason
from simplemem.store import BatchResult, ExtensionAPI
from simplemem.store import now as local_time

if TYPE_CHECKING:
    from simplemem.features.facts.language_model import Ruling
    from simplemem.providers.api import ChatModel
    from simplemem.store import EnhancedStore

_MAX_CHARACTERS: Final = 1_000_000
_MAX_COMPARED: Final = 200  # facts of a scope that are all compared with a new one
_MAX_SIMILAR: Final = 20  # by words, and by meaning; compared beside those of the same slot
_MIN_SIMILARITY: Final = 0.7  # cosine from which an undecided fact is a candidate for review
_MAX_CANDIDATES: Final = 3
_MAX_QUESTIONS: Final = 5  # facts of one call that a model is asked about
_DERIVED_SHARE: Final = 0.8  # of the confidence of a derived fact's least certain parent
_REINFORCEMENT: Final = 0.15  # added to the confidence of a preference that is stated again
_UNDISPUTED: Final = {"status": "active", "disputed": None, "disputed_by": None}


class AddResult(NamedTuple):
    """What became of new facts, who decided, and warnings."""

    events: list[FactEvent]
    needs_review: list[ReviewRequest]
    reconciliation: str
    warnings: list[str]


class SimilarFact(NamedTuple):
    """A fact, and the cosine of its meaning with that of a text; 0 if only words are alike."""

    fact: Fact
    similarity: float


class Decision(NamedTuple):
    """What the rules say about a text among facts."""

    verdict: Verdict
    target: Fact | None  # the fact that the verdict is about
    similar: list[SimilarFact]


@dataclass
class _ScopeFacts:
    """The facts of one scope, by path."""

    permanent: dict[str, Fact] = field(default_factory=dict)  # current whatever the time is
    ending: dict[str, Fact] = field(default_factory=dict)

    def group_of(self, fact: Fact) -> dict[str, Fact]:
        return self.permanent if decay.is_permanent(fact) else self.ending


class _FactCollection(NoteCollection[Fact]):
    """The facts of a vault, also grouped by scope."""

    def __init__(self, extension: ExtensionAPI) -> None:
        super().__init__(extension, FACT)
        self.scopes: dict[str, _ScopeFacts] = {}

    def add(self, item: Fact) -> None:
        self.remove(item.path)
        super().add(item)
        scope = self.scopes.setdefault(item.scope, _ScopeFacts())
        scope.group_of(item)[item.path] = item

    def remove(self, path: str) -> None:
        known = self.items.get(path)
        if known is not None:
            self.scopes[known.scope].group_of(known).pop(path)
        super().remove(path)


class FactService(FeatureService):
    """The facts of one store, by scope."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.collection = _FactCollection(store.extension)

    # Reading

    def facts(self, scope: str | None, *, expired: bool = False) -> list[Fact]:
        """Return the current facts of a scope, or of all scopes; with `expired`, the others too."""
        with self.collection.reading():
            return self.held(scope, expired=expired)

    def held(self, scope: str | None, *, expired: bool = False) -> list[Fact]:
        """Return what `facts` does. The caller holds the collection."""
        scopes = self.collection.scopes
        groups = list(scopes.values())
        if scope is not None:
            groups = [scopes.get(scope, _ScopeFacts())]

        time = now()
        facts = [
            fact
            for group in groups
            for fact in group.ending.values()
            if expired or self._is_current(fact, time)
        ]
        for group in groups:
            facts += group.permanent.values()
        return facts

    def _is_current(self, fact: Fact, at: datetime) -> bool:
        """Return whether a fact is current; a derived one is not without its parents."""
        if not decay.is_current(fact, at):
            return False
        if not fact.derived_from:
            return True

        paths = self.extension.resolve_links([(link, fact.path) for link in fact.derived_from])
        parents = (self.collection.items.get(path or "") for path in paths)
        return all(parent is None or parent.status in CURRENT_STATUSES for parent in parents)

    def find(self, id_: str, scope: str) -> Fact:
        """Return the fact with this id, to be changed.

        Raise NotFound if the scope has none, Unreadable if its note cannot be changed.
        """
        facts = self.facts(check_scope(scope), expired=True)
        fact = next((fact for fact in facts if fact.id == id_), None)
        if fact is None:
            raise self.no_memory(id_)
        if fact.problem:
            raise Unreadable(
                f"{fact.path[:-3]} cannot be changed: {fact.problem}",
                hint="Change it in an editor.",
            )
        return fact

    @staticmethod
    def no_memory(id_: str) -> NotFound:
        """Return the error for an id that no memory of a scope has."""
        return NotFound(
            f"no memory with the id {id_[:80]!r}", hint="search_memory returns the ids."
        )

    def knows(self, scope: str, texts: Sequence[str]) -> bool:
        """Return whether none of some texts would change the facts of a scope, except by deletion."""
        facts = self.facts(scope)
        verdicts = (self.decide(text, facts).verdict for text in texts)
        return all(verdict.event in ("NOOP", "DELETE") for verdict in verdicts)

    def doubts(self, scope: str, text: str) -> bool:
        """Return whether a text says that something which a current fact states has changed."""
        return read_change(text) is not None and bool(_changed_facts(text, self.facts(scope)))

    def disputing(self, facts: Sequence[Fact]) -> dict[str, str]:
        """Return the paths of the disputed ones of some facts, each with the path of what disputes it."""
        disputed = [fact for fact in facts if fact.is_disputed and fact.disputed_by]
        paths = self.extension.resolve_links([(fact.disputed_by, fact.path) for fact in disputed])
        return {fact.path: path for fact, path in zip(disputed, paths, strict=True) if path}

    def newest_first(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return facts in their order, but each disputed one behind what disputes it."""
        disputing = self.disputing(facts)
        positions = {fact.path: position for position, fact in enumerate(facts)}

        def sort_key(fact: Fact) -> tuple[int, int]:
            chain = [fact.path]
            cause = disputing.get(fact.path)
            while cause in positions and cause not in chain:
                chain.append(cause)
                cause = disputing.get(cause)
            return positions[chain[-1]], len(chain)

        return sorted(facts, key=sort_key)

    def drawn_from(self, source: str) -> list[Fact]:
        """Return the facts whose notes link to the document at the path `source`.

        The caller holds the collection.
        """
        with_source = [fact for fact in self.collection.items.values() if fact.source]
        paths = self.extension.resolve_links([(fact.source, fact.path) for fact in with_source])
        return [fact for fact, path in zip(with_source, paths, strict=True) if path == source]

    # Adding

    def add(
        self,
        scope: str,
        facts: Sequence[NewFact],
        *,
        source: str = "",
        outside: bool = False,
        **by: Unpack[AuthorArgs],
    ) -> AddResult:
        """Add facts to a scope. `source` is the path of the document from which they were extracted.

        Without a model this is one step. Facts from `outside`, such as a web page, replace nothing that the user
        stated.
        """
        scope = check_scope(scope)
        result = AddResult([], [], "rules", [])
        # A model is asked about one fact after the other, each in view of those before it.
        groups = [[fact] for fact in facts] if self.chat else [facts]
        for group in groups:
            advice = list["Ruling"]()
            for fact in group:
                advice += self._ask_model(scope, fact.text, source, result)
            self._add_group(_Origin(scope, source, outside), group, advice, result, by)

        deciders = (event["rule"] for event in result.events if event["rule"].startswith("llm:"))
        return result._replace(reconciliation=next(deciders, "rules"))

    def _add_group(
        self,
        origin: _Origin,
        group: Sequence[NewFact],
        advice: Sequence[Ruling],
        result: AddResult,
        by: AuthorArgs,
    ) -> None:
        """Add facts as one step, and enter into a result what became of them."""
        earlier_ids = {event["id"] for event in result.events}

        def draft(change_set: ChangeSet) -> AddResult:
            adding = _Adding(self, change_set, origin, earlier_ids)
            for fact in group:
                adding.add(fact, advice)
            return adding.result

        added, written = self.collection.change(draft, by)
        result.events.extend(added.events)
        result.needs_review.extend(added.needs_review)
        result.warnings.extend(added.warnings)
        result.warnings.extend(written.warnings)

    def model_for(self, scope: str, text: str, source: str = "") -> ChatModel | None:
        """Return the model that may read a text.

        None if no model is configured, the fact's note will be private, or its source is.
        """
        chat = self.chat
        if chat is None:
            return None

        path = f"{fact_name(scope, text)}.md"
        if private_reason(path, read_note(text.encode()), self.settings.embed.private):
            return None
        if source and self.extension.private_among([source]):
            return None
        return chat

    def _ask_model(self, scope: str, text: str, source: str, result: AddResult) -> list[Ruling]:
        """Return what a model says about a text that no rule decides.

        The vault is not locked meanwhile. A failure adds a warning to the result.
        """
        chat = self.model_for(scope, text, source)
        if chat is None or len(result.events) >= _MAX_QUESTIONS:
            return []
        decision = self.decide(text, self.facts(scope))
        if decision.verdict.event != "ADD":
            return []

        similar = [fact for fact, _ in decision.similar]
        private = self.extension.private_among([fact.path for fact in similar])
        public = [fact for fact in similar if fact.path not in private]
        if not public:
            return []

        from simplemem.features.facts.language_model import classify

        try:
            return classify(self, chat, text, public)
        except SimplememError as error:
            if error.message not in result.warnings:
                result.warnings.append(error.message)
            return []

    def decide(self, text: str, facts: Collection[Fact]) -> Decision:
        """Return what the rules say about a text among current facts, and which facts are similar."""
        similar = self._similar_facts(text, facts)
        text_to_forget = to_forget(text)
        reading = read_statement(text_to_forget or text)
        compared = _compared_facts(reading, facts, similar)

        verdict = reconcile(reading, [read_statement(fact.statement) for fact in compared])
        target = compared[verdict.place] if verdict.place is not None else None
        if text_to_forget:
            is_known = verdict.event == "NOOP"
            forget = Verdict("DELETE", rule="rule:forget")
            return Decision(forget, target if is_known else None, similar)
        return Decision(verdict, target, similar)

    def _similar_facts(self, text: str, facts: Collection[Fact]) -> list[SimilarFact]:
        """Return the facts that are most like a text by meaning, then those by words."""
        by_path = {fact.path: fact for fact in facts}
        likeness = self.extension.likeness(text, by_path, _MAX_SIMILAR)
        paths = dict[str, None]()
        for scores in (likeness.meaning, likeness.words):
            best_first = sorted(scores, key=scores.__getitem__, reverse=True)
            paths |= dict.fromkeys(best_first[:_MAX_SIMILAR])
        return [SimilarFact(by_path[path], likeness.meaning.get(path, 0.0)) for path in paths]

    # Changing

    def update(self, id_: str, text: str, scope: str, **by: Unpack[AuthorArgs]) -> BatchResult:
        """Replace the statement of a fact. Its id stays, and it is disputed no longer.

        Raise Invalid or TooLong for the text, and what `find` raises.
        """
        clean = clean_text(text, "content", _MAX_CHARACTERS, "Give a shorter one.")
        statement = " ".join(clean.split())
        if not re.search(r"\w", statement):
            raise Invalid("the content contains no word", hint="Give a text that contains a word.")

        fact = self.find(id_, scope)
        slot = read_statement(statement).slot or Slot()

        def draft(change_set: ChangeSet) -> None:
            changed = replace_statement(change_set.text(fact.path), statement)
            change_set.put(fact.path, changed)
            change_set.set(fact.path, **slot._asdict())
            if fact.is_disputed:
                change_set.set(fact.path, **_UNDISPUTED)

        _, result = self.collection.change(draft, by)
        return result

    def forget(self, id_: str, scope: str, **by: Unpack[AuthorArgs]) -> BatchResult:
        """Move a fact to the trash. What it alone disputes is active again. Raise what `find` raises."""
        path = self.find(id_, scope).path

        def draft(change_set: ChangeSet) -> None:
            change_set.drop(path)
            self.settle_disputes(change_set, path)

        _, result = self.collection.change(draft, by)
        return result

    def settle_disputes(self, change_set: ChangeSet, path: str) -> None:
        """Mark as active again the facts that the fact at `path` disputes."""
        marked = [
            fact for fact in self.collection.items.values() if fact.disputed_by and not fact.problem
        ]
        causes = self.extension.resolve_links([(fact.disputed_by, fact.path) for fact in marked])
        for fact, cause in zip(marked, causes, strict=True):
            if cause == path and fact.is_disputed:
                change_set.set(fact.path, **_UNDISPUTED)

    def forget_drawn(
        self, source: str, is_gone: Callable[[Fact], bool], **by: Unpack[AuthorArgs]
    ) -> None:
        """Mark as forgotten the facts of a document that it no longer states."""

        def draft(change_set: ChangeSet) -> None:
            for fact in self.drawn_from(source):
                if fact.status in CURRENT_STATUSES and not fact.problem and is_gone(fact):
                    change_set.set(fact.path, status="forgotten")

        self.collection.change(draft, by)

    def tidy(
        self, older_than: timedelta, *, dry_run: bool = False, **by: Unpack[AuthorArgs]
    ) -> list[Fact]:
        """Move to the trash, as one step, the facts that have not been current for so long.

        Return them. With `dry_run`, nothing is changed.
        """

        def draft(change_set: ChangeSet) -> list[Fact]:
            latest = now() - older_than
            old = [fact for fact in self._ended_facts() if _ended_before(fact, latest)]
            if not dry_run:
                for fact in old:
                    change_set.drop(fact.path)
            return old

        facts, _ = self.collection.change(draft, by)
        return facts

    def _ended_facts(self) -> Iterable[Fact]:
        """Return the facts that are not current and may be changed."""
        time = now()
        return [
            fact
            for fact in self.held(None, expired=True)
            if not fact.problem and not self._is_current(fact, time)
        ]


def _ended_before(fact: Fact, latest: datetime) -> bool:
    """Return whether a fact that is not current ended before a time. The end of an episode is when it fades."""
    end = fact.valid_to if fact.memory_type != "episode" else None
    end = end or decay.forgotten_at(fact) or fact.valid_from
    return end is not None and end < latest


def _compared_facts(
    reading: Reading, facts: Collection[Fact], similar: Sequence[SimilarFact]
) -> list[Fact]:
    """Return the facts with which a new statement is compared: all if they are few.

    Otherwise those of the same relation, the similar ones, and those that this step has just written, which are not
    indexed yet.
    """
    is_few = len(facts) <= _MAX_COMPARED
    compared = dict[str, Fact]()
    for fact in facts:
        is_same_relation = (
            reading.slot and fact.slot and fact.slot.relation == reading.slot.relation
        )
        if is_few or is_same_relation or not fact.sha256:
            compared[fact.path] = fact
    for fact, _ in similar:
        compared[fact.path] = fact
    return list(compared.values())


def _changed_facts(text: str, facts: Sequence[Fact]) -> list[Fact]:
    """Return those of some facts of which a text says that they changed."""
    change = read_change(text)
    if change is None:
        return []
    subjects = [_stated_subject(fact) for fact in facts]
    return [facts[index] for index in find_doubtful(subjects, change)]


def _stated_subject(fact: Fact) -> StatedSubject:
    year = fact.valid_from.year if fact.valid_from else None
    return StatedSubject(subject_of(fact.statement), year)


@dataclass(frozen=True)
class _Origin:
    """Where facts are from, and the scope that they are for."""

    scope: str
    source: str  # the path of a document, or ""
    is_outside: bool


class _Outcome(NamedTuple):
    """What a new fact does to the current ones, as it was decided by rules and a model."""

    event: str
    relation: str | None
    rule: str
    target: Fact | None
    similar: Sequence[SimilarFact]


class _Adding:
    """Adds facts in one change set. Guards the current facts as the additions so far leave them."""

    def __init__(
        self,
        service: FactService,
        change_set: ChangeSet,
        origin: _Origin,
        earlier_ids: Collection[str],
    ) -> None:
        self.result = AddResult([], [], "rules", [])
        self._service = service
        self._change_set = change_set
        self._origin = origin
        self._earlier_ids = earlier_ids  # of facts that earlier steps of the same call stored
        self._facts = {fact.path: fact for fact in service.held(origin.scope)}

    def add(self, new: NewFact, advice: Sequence[Ruling]) -> None:
        """Decide what a new fact does, and do it."""
        decision = self._service.decide(new.text, self._facts.values())
        verdict = decision.verdict
        target = decision.target
        if verdict.event == "DELETE":
            self._forget(target, verdict.rule)
        elif verdict.event == "NOOP" and target is not None:
            self._confirm(target, verdict.rule)
            self._dispute(self._facts[target.path], self._find_changed(new.text))
        else:
            self._store(new, decision, advice)

    def _forget(self, target: Fact | None, rule: str) -> None:
        """Move a fact to the trash, except if the text is from outside and the user stated the fact."""
        if target is None:
            reason = "no fact matches"
        elif target.problem:
            reason = target.problem
        elif self._is_protected(target):
            reason = "a web page cannot withdraw what the user stated"
        else:
            self._change_set.drop(target.path)
            self._service.settle_disputes(self._change_set, target.path)
            del self._facts[target.path]
            self._report("DELETE", None, target, rule)
            return

        self.result.warnings.append(f"nothing was forgotten: {reason}")

    def _is_protected(self, fact: Fact) -> bool:
        """Return whether the user stated a fact and the new text is from outside."""
        return self._origin.is_outside and not fact.source

    def _confirm(self, target: Fact, rule: str) -> None:
        """Take in that a fact was stated again: it is not disputed, and a preference is renewed."""
        path = target.path
        confidence = decay.confidence_at(target, now())
        if target.is_disputed and not target.problem:
            self._change_set.set(path, **_UNDISPUTED)
            self._facts[path] = replace(target, status="active", disputed=None, disputed_by="")
        if target.memory_type == "preference" and not target.problem and confidence < 1:
            renewed = round(min(1.0, confidence + _REINFORCEMENT), 4)
            self._change_set.set(path, confidence=renewed, reinforced=format_moment(now()))
        self._report("NOOP", None, target, rule)

    def _store(self, new: NewFact, decision: Decision, advice: Sequence[Ruling]) -> None:
        """Store a new fact, with what it replaces, disputes and lets a model derive."""
        rulings = list["Ruling"]()
        if decision.verdict.event == "ADD":
            rulings = [ruling for ruling in advice if self._still_applies(ruling)]
        outcome = self._protect(_combine(decision, rulings))

        changed = self._find_changed(new.text)
        memory_type = new.memory_type or kind_of(new.text, now())[0]
        if changed and memory_type == "episode":
            # It must last as long as the facts that it disputes.
            new = new._replace(memory_type="fact")
        fact = self._write(new, outcome.rule, outcome.target, outcome.relation or "")
        self._report(outcome.event, outcome.relation, fact, outcome.rule, outcome.target)
        self._dispute(fact, [other for other in changed if other is not outcome.target])
        if outcome.event == "ADD":
            self._suggest_review(fact, outcome.similar)
        for ruling in rulings:
            if ruling.relation == "DERIVES" and ruling.derived:
                self._derive(ruling, fact)

    def _still_applies(self, ruling: Ruling) -> bool:
        """Return whether the fact that a model was asked about has not changed meanwhile."""
        return self._facts.get(ruling.target.path) is ruling.target

    def _protect(self, outcome: _Outcome) -> _Outcome:
        """Return an outcome that replaces no fact which cannot or must not be replaced."""
        target = outcome.target
        if target is None or outcome.relation != "UPDATES":
            return outcome
        if not target.problem and not self._is_protected(target):
            return outcome
        similar = [SimilarFact(target, 1.0), *outcome.similar]
        return _Outcome("ADD", None, outcome.rule, None, similar)

    def _write(
        self,
        new: NewFact,
        rule: str,
        old: Fact | None = None,
        relation: str = "",
        parents: Sequence[Fact] = (),
    ) -> Fact:
        """Write the note of a new fact, and mark the one that it replaces as superseded."""
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
        """Return a new fact with what the rules read in its text."""
        time = now()
        memory_type, valid_to = kind_of(new.text, time)
        if memory_type == "episode" and new.memory_type not in ("", "episode"):
            valid_to = None  # the day of an episode does not end what lasts
        return Fact(
            path=path,
            sha256="",
            id=f"atom_{time:%Y%m%d}_{secrets.token_hex(3)}",
            statement=new.text,
            scope=self._origin.scope,
            memory_type=new.memory_type or memory_type,
            slot=new.slot or read_statement(new.text).slot,
            confidence=new.confidence,
            valid_from=new.valid_from or time,
            valid_to=new.valid_to or valid_to,
            source=self._origin.source.removesuffix(".md"),
            decided_by=new.decided_by or rule,
            created=local_time(),
        )

    def _supersede(self, old: Fact, new: Fact) -> None:
        ended = format_moment(new.valid_from or now())
        link = self._service.link_text(new.path)
        self._change_set.set(old.path, **_UNDISPUTED | {"status": "superseded"})
        self._change_set.set(old.path, superseded_by=link, valid_to=ended)
        del self._facts[old.path]

    def _find_changed(self, text: str) -> list[Fact]:
        """Return the facts of which a text says that they changed, where no rule reads the new value."""
        facts = [fact for fact in self._facts.values() if self._may_be_disputed(fact)]
        return _changed_facts(text, facts)

    def _may_be_disputed(self, fact: Fact) -> bool:
        """Return whether a fact lasts, can be changed, and was not stored by this very call."""
        is_earlier = bool(fact.sha256) and fact.id not in self._earlier_ids
        is_lasting = fact.memory_type in ("fact", "preference") and not fact.problem
        return is_earlier and is_lasting and not self._is_protected(fact)

    def _dispute(self, new: Fact, older: Sequence[Fact]) -> None:
        """Mark older facts as disputed by a new one, except those that were replaced."""
        link = self._service.link_text(new.path)
        disputes = list[FactReference]()
        for fact in older:
            if fact.path == new.path or self._facts.get(fact.path) is not fact:
                continue
            since = fact.disputed or now()
            self._change_set.set(
                fact.path, status="disputed", disputed=format_moment(since), disputed_by=link
            )
            self._facts[fact.path] = replace(
                fact, status="disputed", disputed=since, disputed_by=link_target(link)
            )
            disputes.append(FactReference(id=fact.id, memory=fact.statement))
        if disputes:
            self.result.events[-1]["disputes"] = disputes

    def _suggest_review(self, new: Fact, similar: Sequence[SimilarFact]) -> None:
        """Name the current facts that are so similar to a new one that it may replace them."""
        candidates = [
            ReviewCandidate(
                id=fact.id, memory=fact.statement, similarity=round((1 + similarity) / 2, 4)
            )
            for fact, similarity in similar
            if similarity >= _MIN_SIMILARITY and fact.path in self._facts
        ]
        if candidates:
            review = ReviewRequest(id=new.id, candidates=candidates[:_MAX_CANDIDATES])
            self.result.needs_review.append(review)

    def _derive(self, ruling: Ruling, new: Fact) -> None:
        """Store what a model derived from a new fact and an earlier one."""
        parents = (ruling.target, new)
        time = now()
        lowest = min(decay.confidence_at(parent, time) for parent in parents)
        derived = NewFact(ruling.derived, "derived", confidence=_DERIVED_SHARE * lowest)
        fact = self._write(derived, ruling.method, parents=parents)
        self._report("ADD", "DERIVES", fact, ruling.method)

    def _report(
        self, event: str, relation: str | None, fact: Fact, rule: str, old: Fact | None = None
    ) -> None:
        """Enter into the result what happened to a fact, and to the one that it replaces or extends."""
        report = FactEvent(
            event=event, relation=relation, id=fact.id, memory=fact.statement, rule=rule
        )
        if old is not None:
            report["previous"] = FactReference(id=old.id, memory=old.statement)
        self.result.events.append(report)


def _combine(decision: Decision, rulings: Sequence[Ruling]) -> _Outcome:
    """Return the outcome that a model says, if it says one, else that of the rules."""
    for ruling in rulings:
        if ruling.relation != "DERIVES":
            return _Outcome(
                "UPDATE", ruling.relation, ruling.method, ruling.target, decision.similar
            )

    verdict = decision.verdict
    return _Outcome(
        verdict.event, verdict.relation, verdict.rule, decision.target, decision.similar
    )


fact_service: Final = FactService.of
