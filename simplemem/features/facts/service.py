"""The statements of one store. A new one is decided among what holds in its scope, under the vault's lock, and is one step
with whatever it replaces. All state is in notes; whoever changes them, the next call goes by it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.errors import Invalid, NotFound, SimplememError, Unreadable
from simplemem.features.answers import Candidate, Event, Review, Told
from simplemem.features.changes import StatedSubject, find_doubtful, read_change, subject_of
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.fact import CURRENT_STATUSES, Fact, Slot
from simplemem.features.facts import decay
from simplemem.features.facts.fact import FACT, NewFact, fact_name, link_target, render_fact, replace_statement
from simplemem.features.facts.reading import kind_of, read_statement, to_forget
from simplemem.features.facts.reconciling import Verdict, reconcile
from simplemem.features.service import FeatureService
from simplemem.features.text import clean_text
from simplemem.models import AuthorArgs
from simplemem.note.dates import format_moment, now
from simplemem.note.note import read_note
from simplemem.note.scopes import check_scope, private_reason
from simplemem.store import BatchResult, ExtensionAPI
from simplemem.store import now as local_stamp

if TYPE_CHECKING:
    from simplemem.features.facts.language_model import Ruling
    from simplemem.providers.api import ChatModel

_MOST_CHARACTERS: Final = 1_000_000
_FEW: Final = 200  # statements of a scope that are all compared
_NEAREST: Final = 20  # by words and meaning, beside those of the same slot
_NEAR: Final = 0.7  # of cosine: what is nearer and undecided is named
_MOST_ASKED: Final = 5  # statements of one call that a model is asked about
_DERIVED: Final = 0.8  # of its least sure parent's confidence
_AGAIN: Final = 0.15  # surer for being said again
_UNDISPUTED: Final = {"status": "active", "disputed": None, "disputed_by": None}


class AddResult(NamedTuple):
    """What became of some statements, who decided, and what is to be said of it."""

    events: list[Event]
    needs_review: list[Review]
    reconciliation: str
    warnings: list[str]


class _Atoms(NoteCollection[Fact]):
    """The statements of a vault by scope: those that time may end, and the others."""

    def __init__(self, extension: ExtensionAPI) -> None:
        super().__init__(extension, FACT)
        self.scopes: dict[str, tuple[dict[str, Fact], dict[str, Fact]]] = {}

    def add(self, item: Fact) -> None:
        self.remove(item.path)
        super().add(item)
        self.scopes.setdefault(item.scope, ({}, {}))[decay.is_permanent(item)][item.path] = item

    def remove(self, path: str) -> None:
        if (old := self.items.get(path)) is not None:
            self.scopes[old.scope][decay.is_permanent(old)].pop(path)
        super().remove(path)


class FactService(FeatureService):
    """What is known in one vault, by scope."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.collection = _Atoms(store.extension)

    def facts(self, scope: str | None, *, expired: bool = False) -> list[Fact]:
        """What holds now in a scope, or in all; with `expired` what no longer does too."""
        with self.collection.reading():
            return self.held(scope, expired=expired)

    def held(self, scope: str | None, *, expired: bool = False) -> list[Fact]:
        """The same, for whoever holds the collection."""
        scopes, at = self.collection.scopes, now()
        some = [*scopes.values()] if scope is None else [scopes.get(scope, ({}, {}))]
        ends = [
            each
            for ending, _ in some
            for each in ending.values()
            if expired or self.holds(each, at)
        ]
        return [*ends, *(each for _, lasting in some for each in lasting.values())]

    def holds(self, atom: Fact, at: datetime) -> bool:
        """Whether a statement holds; a derived one does not outlive what it was derived from."""
        paths = (
            self.extension.resolve_links([(link, atom.path) for link in atom.derived_from])
            if atom.derived_from
            else ()
        )
        parents = (self.collection.items.get(path or "") for path in paths)
        return decay.is_current(atom, at) and all(
            each is None or each.status in CURRENT_STATUSES for each in parents
        )

    def find(self, id_: str, scope: str) -> Fact:
        """The statement of this id, to be changed. NotFound says nothing of another scope's."""
        found = next(
            (each for each in self.facts(check_scope(scope), expired=True) if each.id == id_), None
        )
        if found is None:
            raise self.no_memory(id_)
        if found.problem:
            raise Unreadable(
                f"{found.path[:-3]} cannot be changed: {found.problem}",
                hint="Change it in an editor.",
            )
        return found

    @staticmethod
    def no_memory(id_: str) -> NotFound:
        """The error for an id that no memory of the scope has."""
        return NotFound(
            f"no memory with the id {id_[:80]!r}", hint="search_memory returns the ids."
        )

    def add(
        self,
        scope: str,
        statements: Sequence[NewFact],
        *,
        source: str = "",
        outside: bool = False,
        **by: Unpack[AuthorArgs],
    ) -> AddResult:
        """Keep statements, drawn from the note `source`, as one step. Those from outside replace nothing said here."""
        added, scope = AddResult([], [], "rules", []), check_scope(scope)
        # A model is asked about one statement after the other, each in view of those before it; else all are one step.
        for some in [[each] for each in statements] if self.chat else [statements]:
            advice = [
                ruling for each in some for ruling in self._advice(scope, each.text, source, added)
            ]

            def draft(
                step: ChangeSet, some: Sequence[NewFact] = some, advice: list[Ruling] = advice
            ) -> AddResult:
                told = {event["id"] for event in added.events}
                adding = _Adding(self, step, scope, source, outside, told)
                for statement in some:
                    adding.take(statement, advice)
                return adding.added

            new, carried = self.collection.change(draft, by)
            added.events.extend(new.events)
            added.needs_review.extend(new.needs_review)
            added.warnings.extend([*new.warnings, *carried.warnings])
        deciders = (each["rule"] for each in added.events if each["rule"].startswith("llm:"))
        return added._replace(reconciliation=next(deciders, "rules"))

    def model_for(self, scope: str, text: str, source: str = "") -> ChatModel | None:
        """The model that may be told a text: none what will be private, or was drawn from what is."""
        rules, path = self.settings.embed.private, f"{fact_name(scope, text)}.md"
        if self.chat is None or private_reason(path, read_note(text.encode()), rules):
            return None
        return None if source and self.extension.private_among([source]) else self.chat

    def _advice(self, scope: str, text: str, source: str, added: AddResult) -> list[Ruling]:
        """What a model says of a statement that no rule decides; never asked while the vault is held."""
        if (chat := self.model_for(scope, text, source)) is None or len(
            added.events
        ) >= _MOST_ASKED:
            return []
        from simplemem.features.facts.language_model import classify

        verdict, _, near = self.decide(text, self.facts(scope))
        private = self.extension.private_among([atom.path for atom, _ in near])
        shown = [atom for atom, _ in near if atom.path not in private]
        try:
            return classify(self, chat, text, shown) if verdict.event == "ADD" and shown else []
        except SimplememError as error:
            added.warnings.extend({error.message} - {*added.warnings})
            return []

    def decide(
        self, text: str, held: Collection[Fact]
    ) -> tuple[Verdict, Fact | None, list[tuple[Fact, float]]]:
        """What the rules say of a statement among those that hold, of which one, and which are how near in meaning."""
        wanted, by_path = to_forget(text), {each.path: each for each in held}
        alike = self.extension.likeness(text, by_path, _NEAREST)
        best = (
            sorted(each, key=each.__getitem__, reverse=True)[:_NEAREST]
            for each in (alike.meaning, alike.words)
        )
        near = [
            (by_path[path], alike.meaning.get(path, 0.0)) for path in dict.fromkeys(chain(*best))
        ]
        reading, is_few = read_statement(wanted or text), len(held) <= _FEW

        def is_candidate(atom: Fact) -> bool:  # what this step has just written is not indexed yet
            is_slot = reading.slot and atom.slot and atom.slot.relation == reading.slot.relation
            return is_few or not atom.sha256 or bool(is_slot)

        known = [
            *{
                e.path: e for e in (*filter(is_candidate, held), *(atom for atom, _ in near))
            }.values()
        ]
        verdict = reconcile(reading, [read_statement(each.statement) for each in known])
        target = known[verdict.place] if verdict.place is not None else None
        if wanted:
            target = target if verdict.event == "NOOP" else None
            verdict = Verdict("DELETE", rule="rule:forget")
        return verdict, target, near

    def update(self, id_: str, text: str, scope: str, **by: Unpack[AuthorArgs]) -> BatchResult:
        """Give a statement other words; its id stays, and the history has the old ones."""
        text = " ".join(
            clean_text(text, "content", _MOST_CHARACTERS, "Give a shorter one.").split()
        )
        if not re.search(r"\w", text):
            raise Invalid("the content contains no word", hint="Give a text that contains a word.")
        atom, slot = self.find(id_, scope), read_statement(text).slot or Slot()

        def draft(step: ChangeSet) -> None:
            step.put(atom.path, replace_statement(step.text(atom.path), text))
            step.set(atom.path, **slot._asdict())
            if atom.is_disputed:
                step.set(atom.path, **_UNDISPUTED)

        return self.collection.change(draft, by)[1]

    def forget(self, id_: str, scope: str, **by: Unpack[AuthorArgs]) -> BatchResult:
        """Put a statement into the trash."""
        path = self.find(id_, scope).path

        def draft(step: ChangeSet) -> None:
            step.drop(path)
            self.settle_disputes(step, path)

        return self.collection.change(draft, by)[1]

    def doubts(self, scope: str, text: str) -> bool:
        """Return whether a text says that something which is held has changed."""
        return read_change(text) is not None and bool(_put_in_doubt(text, self.facts(scope)))

    def disputing(self, atoms: Sequence[Fact]) -> dict[str, str]:
        """Return the paths of those of `atoms` that are disputed, each with the path of what disputes it."""
        disputed = [atom for atom in atoms if atom.is_disputed and atom.disputed_by]
        paths = self.extension.resolve_links([(atom.disputed_by, atom.path) for atom in disputed])
        return {atom.path: path for atom, path in zip(disputed, paths, strict=True) if path}

    def newest_first(self, atoms: Sequence[Fact]) -> list[Fact]:
        """Return statements in their order, but each disputed one behind what disputes it."""
        disputing = self.disputing(atoms)
        places = {atom.path: place for place, atom in enumerate(atoms)}

        def place_of_first(atom: Fact) -> tuple[int, int]:
            way = [atom.path]
            while (cause := disputing.get(way[-1])) in places and cause not in way:
                way.append(cause)
            return places[way[-1]], len(way)

        return sorted(atoms, key=place_of_first)

    def settle_disputes(self, step: ChangeSet, path: str) -> None:
        """Mark as active again what the statement at `path` alone has put in doubt."""
        disputed = [
            each for each in self.collection.items.values() if each.disputed_by and not each.problem
        ]
        causes = self.extension.resolve_links([(each.disputed_by, each.path) for each in disputed])
        for atom, cause in zip(disputed, causes, strict=True):
            if cause == path and atom.is_disputed:
                step.set(atom.path, **_UNDISPUTED)

    def knows(self, scope: str, texts: Sequence[str]) -> bool:
        """Whether all of these are said already."""
        held = self.facts(scope)
        return all(self.decide(text, held)[0].event in ("NOOP", "DELETE") for text in texts)

    def drawn_from(self, source: str) -> list[Fact]:
        """The statements whose note links to the document `source` (a path) as what they were drawn from.

        The caller holds the collection.
        """
        sourced = [atom for atom in self.collection.items.values() if atom.source]
        paths = self.extension.resolve_links([(atom.source, atom.path) for atom in sourced])
        return [atom for atom, path in zip(sourced, paths, strict=True) if path == source]

    def forget_drawn(
        self, source: str, is_gone: Callable[[Fact], bool], **by: Unpack[AuthorArgs]
    ) -> None:
        """Mark as forgotten what was drawn from a document, where that says it no longer."""

        def draft(step: ChangeSet) -> None:
            for atom in self.drawn_from(source):
                if atom.status in CURRENT_STATUSES and not atom.problem and is_gone(atom):
                    step.set(atom.path, status="forgotten")

        self.collection.change(draft, by)

    def tidy(
        self, older_than: timedelta, *, dry_run: bool = False, **by: Unpack[AuthorArgs]
    ) -> list[Fact]:
        """Put what has not held for so long into the trash, as one step; what that is, or would be."""

        def draft(step: ChangeSet) -> list[Fact]:
            over = (
                e
                for e in self.held(None, expired=True)
                if not e.problem and not self.holds(e, now())
            )
            ends = [
                (e, (e.memory_type != "episode" and e.valid_to) or decay.forgotten_at(e))
                for e in over
            ]
            old = [
                each
                for each, at in ends
                if (last := at or each.valid_from) and last < now() - older_than
            ]
            for each in old if not dry_run else ():
                step.drop(each.path)
            return old

        return self.collection.change(draft, by)[0]


def _put_in_doubt(text: str, older: Sequence[Fact]) -> list[Fact]:
    """Return those of some older statements of which a text says that they changed."""
    change = read_change(text)
    if change is None:
        return []
    subjects = [_stated_subject(atom) for atom in older]
    return [older[index] for index in find_doubtful(subjects, change)]


def _stated_subject(atom: Fact) -> StatedSubject:
    year = atom.valid_from.year if atom.valid_from else None
    return StatedSubject(subject_of(atom.statement), year)


fact_service: Final = FactService.of


class _Adding:
    """Statements as they are taken into one step, each knowing those before it."""

    def __init__(
        self,
        memories: FactService,
        step: ChangeSet,
        scope: str,
        source: str,
        outside: bool,
        told: Collection[str] = (),
    ) -> None:
        self.memories, self.step, self.scope, self.source, self.outside = (
            memories,
            step,
            scope,
            source,
            outside,
        )
        self.told = told  # ids of what the same call has told before
        self.held = {each.path: each for each in memories.held(scope)}
        self.added = AddResult([], [], "rules", [])

    def take(self, statement: NewFact, advice: Sequence[Ruling]) -> None:
        """Decide on one statement, and do what that takes."""
        (event, relation, _, rule), target, near = self.memories.decide(
            statement.text, self.held.values()
        )
        if event == "DELETE":
            self._forget(target, rule)
            return
        if event == "NOOP" and target is not None:
            self._say_again(target, rule)
            self._dispute(self.held[target.path], self._put_in_doubt(statement.text))
            return
        sound = [
            each
            for each in advice
            if event == "ADD" and self.held.get(each.target.path) is each.target
        ]
        told = next((each for each in sound if each.relation != "DERIVES"), None)
        if told is not None:
            event, relation, rule, target = "UPDATE", told.relation, told.method, told.target
        if (
            target is not None
            and relation == "UPDATES"
            and (target.problem or (self.outside and not target.source))
        ):
            event, relation, near, target = "ADD", None, [(target, 1.0), *near], None
        doubtful = self._put_in_doubt(statement.text)
        if doubtful and (statement.memory_type or kind_of(statement.text, now())[0]) == "episode":
            statement = statement._replace(
                memory_type="fact"
            )  # it must last as long as what it puts in doubt
        new = self._write(statement, rule, target, relation or "")
        self._tell(event, relation, new, rule, target)
        self._dispute(new, [atom for atom in doubtful if atom is not target])
        candidates: list[Candidate] = [
            {"id": each.id, "memory": each.statement, "similarity": round((1 + share) / 2, 4)}
            for each, share in near
            if event == "ADD" and share >= _NEAR and each.path in self.held
        ]
        self.added.needs_review.extend(
            [{"id": new.id, "candidates": candidates[:3]}] if candidates else []
        )
        for each in sound:
            if each.relation == "DERIVES" and each.derived:
                parents, at = (each.target, new), now()
                sure = _DERIVED * min(decay.confidence_at(parent, at) for parent in parents)
                derived = self._write(
                    NewFact(each.derived, "derived", confidence=sure),
                    each.method,
                    parents=parents,
                )
                self._tell("ADD", "DERIVES", derived, each.method)

    def _forget(self, target: Fact | None, rule: str) -> None:
        """Put what is to be forgotten into the trash. A page forgets nothing that was said here."""
        if target is not None and not target.problem and (target.source or not self.outside):
            self.step.drop(target.path)
            self.memories.settle_disputes(self.step, target.path)
            del self.held[target.path]
            self._tell("DELETE", None, target, rule)
        else:
            why = (
                "no fact matches"
                if target is None
                else target.problem or "a web page cannot withdraw what the user stated"
            )
            self.added.warnings.append(f"nothing was forgotten: {why}")

    def _write(
        self,
        statement: NewFact,
        rule: str,
        old: Fact | None = None,
        relation: str = "",
        parents: Sequence[Fact] = (),
    ) -> Fact:
        at, link = now(), self.memories.link_text
        kind, until = kind_of(statement.text, at)
        if kind == "episode" and statement.memory_type not in ("", "episode"):
            until = None  # the day it happened on ends nothing that lasts
        path = self.memories.free_path(
            self.step, fact_name(self.scope, statement.text), between=" "
        )
        links: dict[str, Any] = {relation.lower(): link(old.path)} if old else {}
        new = Fact(
            path, "", f"atom_{at:%Y%m%d}_{secrets.token_hex(3)}", statement.text, self.scope,
            memory_type=statement.memory_type or kind, slot=statement.slot or read_statement(statement.text).slot,
            confidence=statement.confidence, valid_from=statement.valid_from or at,
            valid_to=statement.valid_to or until, source=self.source.removesuffix(".md"),
            derived_from=tuple(link(each.path) for each in parents),
            decided_by=statement.decided_by or rule, created=local_stamp(), **links,
        )  # fmt: skip
        if old and relation == "UPDATES":
            ended = format_moment(new.valid_from or at)
            self.step.set(old.path, **_UNDISPUTED | {"status": "superseded"})
            self.step.set(old.path, superseded_by=link(path), valid_to=ended)
            del self.held[old.path]
        self.step.put(path, render_fact(new, statement.quote))
        self.held[path] = new
        return new

    def _put_in_doubt(self, text: str) -> list[Fact]:
        """Return the statements of which a text says that they changed, where no rule reads what they are now."""
        return _put_in_doubt(
            text, [atom for atom in self.held.values() if self._may_be_disputed(atom)]
        )

    def _may_be_disputed(self, atom: Fact) -> bool:
        """Return whether a statement lasts, may be written, and was not told in this very call."""
        is_earlier = bool(atom.sha256) and atom.id not in self.told
        is_lasting = atom.memory_type in ("fact", "preference") and not atom.problem
        return is_earlier and is_lasting and (bool(atom.source) or not self.outside)

    def _dispute(self, new: Fact, older: Sequence[Fact]) -> None:
        """Mark older statements as disputed by a new one, but for what that has replaced."""
        link = self.memories.link_text(new.path)
        disputes = list[Told]()
        for atom in older:
            if atom.path == new.path or self.held.get(atom.path) is not atom:
                continue
            since = atom.disputed or now()
            self.step.set(
                atom.path, status="disputed", disputed=format_moment(since), disputed_by=link
            )
            marks: dict[str, Any] = {"disputed": since, "disputed_by": link_target(link)}
            self.held[atom.path] = replace(atom, status="disputed", **marks)
            disputes.append({"id": atom.id, "memory": atom.statement})
        if disputes:
            self.added.events[-1]["disputes"] = disputes

    def _say_again(self, target: Fact, rule: str) -> None:
        """Saying a preference again is all that refreshes it; what is said again is in doubt no longer."""
        sure = decay.confidence_at(target, now())
        if target.is_disputed and not target.problem:
            self.step.set(target.path, **_UNDISPUTED)
            self.held[target.path] = replace(target, status="active", disputed=None, disputed_by="")
        if target.memory_type == "preference" and not target.problem and sure < 1:
            self.step.set(
                target.path,
                confidence=round(min(1.0, sure + _AGAIN), 4),
                reinforced=format_moment(now()),
            )
        self._tell("NOOP", None, target, rule)

    def _tell(
        self, event: str, relation: str | None, atom: Fact, rule: str, old: Fact | None = None
    ) -> None:
        told: Event = {
            "event": event,
            "relation": relation,
            "id": atom.id,
            "memory": atom.statement,
            "rule": rule,
        }
        self.added.events.append(
            told | {"previous": {"id": old.id, "memory": old.statement}} if old else told
        )
