"""The statements of one store. A new one is decided among what holds in its scope, under the vault's lock, and is one step
with whatever it replaces. All state is in notes; whoever changes them, the next call goes by it."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.errors import Invalid, NotFound, SimplememError, Unreadable
from simplemem.kinds.answers import Candidate, Event, Review
from simplemem.kinds.atoms import life
from simplemem.kinds.atoms.atom import (
    ATOM,
    Atom,
    Slot,
    Statement,
    check_scope,
    new_atom,
    place_of,
    plain,
    with_statement,
)
from simplemem.kinds.atoms.reading import kind_of, read_statement
from simplemem.kinds.atoms.reconciling import Verdict, reconcile
from simplemem.kinds.kind import ChangeSet, Keeper, Shelf, clean_text
from simplemem.kinds.talk.block import stamp
from simplemem.memory import By
from simplemem.note.clock import now
from simplemem.note.note import private_reason, read_note
from simplemem.note.properties import remove_property, set_property
from simplemem.store import Bench, Carried
from simplemem.store import now as local_stamp

if TYPE_CHECKING:
    from simplemem.services.chat import Chat

_MOST_CHARACTERS: Final = 1_000_000
_FEW: Final = 200  # statements of a scope that are all compared
_NEAREST: Final = 20  # by words and meaning, beside those of the same slot
_NEAR: Final = 0.7  # of cosine: what is nearer and undecided is named
_MOST_ASKED: Final = 5  # statements of one call that a model is asked about
_DERIVED: Final = 0.8  # of its least sure parent's confidence


class Added(NamedTuple):
    """What became of some statements, who decided, and what is to be said of it."""

    events: list[Event]
    needs_review: list[Review]
    reconciliation: str
    warnings: list[str]


class _Advice(NamedTuple):
    """What a model says of a new statement and one that is there."""

    method: str
    relation: str
    target: Atom
    derived: str


_RELATIONS: Final = {"UPDATE": "UPDATES", "EXTEND": "EXTENDS", "DERIVE": "DERIVES"}


class _Atoms(Shelf[Atom]):
    """The statements of a vault by scope: those that time may end, and the others."""

    def __init__(self, bench: Bench) -> None:
        super().__init__(bench, ATOM)
        self.scopes: dict[str, tuple[dict[str, Atom], dict[str, Atom]]] = {}

    def place(self, item: Atom) -> None:
        self.forget(item.path)
        super().place(item)
        self.scopes.setdefault(item.scope, ({}, {}))[life.lasts(item)][item.path] = item

    def forget(self, path: str) -> None:
        if (old := self.items.get(path)) is not None:
            self.scopes[old.scope][life.lasts(old)].pop(path)
        super().forget(path)


class Memories(Keeper):
    """What is known in one vault, by scope."""

    def __init__(self, store: Any) -> None:
        super().__init__(store)
        self.shelf = _Atoms(store.bench)

    def atoms(self, scope: str | None, *, expired: bool = False) -> list[Atom]:
        """What holds now in a scope, or in all; with `expired` what no longer does too."""
        with self.shelf.reading():
            return self.held(scope, expired=expired)

    def held(self, scope: str | None, *, expired: bool = False) -> list[Atom]:
        """The same, for whoever holds the shelf."""
        scopes, at = self.shelf.scopes, now()
        some = scopes.values() if scope is None else [scopes[scope]] if scope in scopes else []
        ends = [each for ending, _ in some for each in ending.values() if expired or self.holds(each, at)]
        return [*ends, *(each for _, lasting in some for each in lasting.values())]

    def holds(self, atom: Atom, at: datetime) -> bool:
        """Whether a statement holds; a derived one does not outlive what it was derived from."""
        if not atom.derived_from:
            return life.holds(atom, at)
        parents = (self.shelf.items.get(path or "") for path in self.linked(atom, atom.derived_from))
        return life.holds(atom, at) and all(each is None or each.status == "active" for each in parents)

    def linked(self, atom: Atom, links: Sequence[str]) -> list[str | None]:
        """The paths that links of an atom lead to."""
        return self.bench.meant([(link, atom.path) for link in links]) if any(links) else []

    def find(self, id_: str, scope: str) -> Atom:
        """The statement of this id. NotFound says nothing of another scope's."""
        scope = check_scope(scope)
        found = next((each for each in self.atoms(scope, expired=True) if each.id == id_), None)
        if found is None:
            raise NotFound(f"there is no memory {id_[:80]!r}", hint="search_memory names the ids there are.")
        return found

    def near(self, text: str, held: Collection[Atom]) -> list[tuple[Atom, float]]:
        """The statements nearest to a text by words and meaning, and how near each is in meaning."""
        by_path = {each.path: each for each in held}
        alike = self.bench.likeness(text, by_path, _NEAREST)
        nearest = sorted(alike.meaning, key=alike.meaning.__getitem__, reverse=True)[:_NEAREST]
        worded = sorted(alike.words, key=alike.words.__getitem__, reverse=True)[:_NEAREST]
        return [(by_path[path], alike.meaning.get(path, 0.0)) for path in dict.fromkeys([*nearest, *worded])]

    def add(
        self,
        scope: str,
        statements: Sequence[Statement],
        *,
        source: str = "",
        outside: bool = False,
        **by: Unpack[By],
    ) -> Added:
        """Keep statements as one step. `source` is the path of what they were drawn from; what came from outside
        replaces nothing that was said here."""
        added = Added([], [], "rules", [])
        # A model is asked about one statement after the other, each in view of those before it; else all are one step.
        for some in [[each] for each in statements] if self.chat else [statements]:
            self._add(check_scope(scope), some, added, source, outside, by)
        deciders = (each["rule"] for each in added.events if each["rule"].startswith("llm:"))
        return added._replace(reconciliation=next(deciders, "rules"))

    def _add(self, scope: str, some: Sequence[Statement], added: Added, source: str, outside: bool, by: By) -> None:
        chat = self.model_for(scope, some[0].text, source) if some else None
        advice = self._advice(chat, scope, some[0], added) if chat else []

        def draft(step: ChangeSet) -> _Adding:
            adding = _Adding(self, step, scope, source, outside)
            for statement in some:
                adding.take(statement, advice)
            return adding

        adding, carried = self.shelf.change(draft, by)
        added.events.extend(adding.events)
        added.needs_review.extend(adding.reviews)
        added.warnings.extend(carried.warnings)

    def model_for(self, scope: str, text: str, source: str = "") -> Chat | None:
        """The model that may be told a text: none what will be private, or was drawn from what is."""
        rules, path = self.settings.embed.private, f"{place_of(scope, text)}.md"
        is_private = private_reason(path, read_note(text.encode()), rules) or self.bench.private(
            [source] * bool(source)
        )
        return None if is_private else self.chat

    def _advice(self, chat: Chat, scope: str, statement: Statement, added: Added) -> list[_Advice]:
        """What a model says of a statement that no rule decides; never asked while the vault is held."""
        from simplemem.kinds.atoms.asking import classify

        verdict, _, near = self.decide(statement.text, self.atoms(scope))
        private = self.bench.private([atom.path for atom, _ in near])
        shown = [atom for atom, _ in near if atom.path not in private]
        if verdict.event != "ADD" or not shown or len(added.events) >= _MOST_ASKED:
            return []
        try:
            rulings = classify(self, chat, statement.text, [atom.statement for atom in shown])
        except SimplememError as error:
            added.warnings.extend({error.message} - {*added.warnings})
            return []
        return [_Advice(chat.method, _RELATIONS[r.relation], shown[r.place], r.derived) for r in rulings]

    def decide(self, text: str, held: Collection[Atom]) -> tuple[Verdict, Atom | None, list[tuple[Atom, float]]]:
        """What the rules say of a statement among those that hold, of which one, and which are near."""
        reading, near, same = read_statement(text), self.near(text, held), plain(text)
        relation = reading.slot.relation if reading.slot else None
        # What has just been written may not be indexed yet, and few are all looked at.
        is_few = len(held) <= _FEW
        others = [
            e for e in held if is_few or e.plain == same or (e.slot and e.slot.relation == relation) or not e.sha256
        ]
        known = list({each.path: each for each in (*others, *(atom for atom, _ in near))}.values())
        verdict = reconcile(reading, [read_statement(each.statement) for each in known])
        return verdict, known[verdict.place] if verdict.place is not None else None, near

    def update(self, id_: str, text: str, scope: str, **by: Unpack[By]) -> Carried:
        """Give a statement other words; its id stays, and the history has the old ones."""
        text = " ".join(clean_text(text, "content", _MOST_CHARACTERS, "Give a shorter one.").split())
        if not re.search(r"\w", text):
            raise Invalid("there is no content", hint="Give a text with a word in it.")
        found, slot = self.find(id_, scope), read_statement(text).slot

        def draft(step: ChangeSet) -> None:
            changed = with_statement(_editable(step, found), text)
            for key, value in zip(("subject", "relation", "object"), slot or ("", "", ""), strict=True):
                changed = set_property(changed, key, value) if value else remove_property(changed, key)
            step.put(found.path, changed)

        return self.shelf.change(draft, by)[1]

    def forget(self, id_: str, scope: str, **by: Unpack[By]) -> Carried:
        """Put a statement into the trash."""
        found = self.find(id_, scope)

        def draft(step: ChangeSet) -> None:
            _editable(step, found)
            step.drop(found.path)

        return self.shelf.change(draft, by)[1]

    def knows(self, scope: str, texts: Sequence[str]) -> bool:
        """Whether all of these are said already."""
        held = self.atoms(scope)
        return all(self.decide(text, held)[0].event in ("NOOP", "DELETE") for text in texts)

    def forget_drawn(self, source: str, is_gone: Callable[[Atom], bool], **by: Unpack[By]) -> None:
        """Mark as forgotten what was drawn from a document, where that says it no longer."""

        def draft(step: ChangeSet) -> None:
            for each in self.drawn_from(source):
                if each.status == "active" and not each.problem and is_gone(each):
                    step.put(each.path, set_property(step.text(each.path), "status", "forgotten"))

        self.shelf.change(draft, by)

    def drawn_from(self, source: str) -> list[Atom]:
        """The statements that link to a document, for whoever holds the shelf."""
        told = [each for each in self.shelf.items.values() if each.source]
        return [
            e
            for e, path in zip(told, self.bench.meant([(e.source, e.path) for e in told]), strict=True)
            if path == source
        ]

    def tidy(self, older_than: timedelta, *, dry_run: bool = False, **by: Unpack[By]) -> list[Atom]:
        """Put what has not held for so long into the trash, as one step; what that is, or would be."""
        before = now() - older_than

        def ended(atom: Atom) -> datetime | None:
            past = atom.valid_to if atom.memory_type != "episode" or atom.status != "active" else None
            return past or life.forgotten_at(atom) or (atom.valid_from if atom.status != "active" else None)

        def draft(step: ChangeSet) -> list[Atom]:
            every = [each for each in self.held(None, expired=True) if not each.problem and not self.holds(each, now())]
            old = [each for each in every if (at := ended(each)) is not None and at < before]
            for each in old if not dry_run else ():
                step.drop(each.path)
            return old

        return self.shelf.change(draft, by)[0]


memories_of: Final = Memories.of


def _editable(step: ChangeSet, atom: Atom) -> str:
    """The text of a statement's note. Unreadable where it is not ours to change."""
    if atom.problem:
        raise Unreadable(f"{atom.path[:-3]} cannot be changed: {atom.problem}", hint="Change it in an editor.")
    return step.text(atom.path)


class _Adding:
    """Statements as they are taken into one step, each knowing those before it."""

    def __init__(self, memories: Memories, step: ChangeSet, scope: str, source: str, outside: bool) -> None:
        self.memories, self.step, self.scope, self.source, self.outside = memories, step, scope, source, outside
        self.held = {each.path: each for each in memories.held(scope)}
        self.events: list[Event] = []
        self.reviews: list[Review] = []

    def take(self, statement: Statement, advice: Iterable[_Advice]) -> None:
        """Decide on one statement, and do what that takes."""
        memories, step = self.memories, self.step
        verdict, target, near = memories.decide(statement.text, self.held.values())
        event, relation, rule = verdict.event, verdict.relation, verdict.rule
        if event == "NOOP" and target is not None:
            self._say_again(target)
            self._tell(event, None, target, rule)
            return
        if event == "DELETE" and target is not None and not target.problem:
            step.text(target.path)
            step.drop(target.path)
            del self.held[target.path]
            self._tell(event, None, target, rule)
            return
        sound = [
            each
            for each in advice
            if self.held.get(each.target.path) is not None and self.held[each.target.path].sha256 == each.target.sha256
        ]
        told = next((each for each in sound if each.relation != "DERIVES"), None) if event == "ADD" else None
        if told is not None:
            event, relation, rule, target = "UPDATE", told.relation, told.method, told.target
        refused = (
            target is not None and relation == "UPDATES" and (target.problem or (self.outside and not target.source))
        )
        if refused or event == "DELETE":
            event, relation, near = "ADD", None, [*([(target, 1.0)] if target else []), *near]
        new = self._write(statement, relation, target if event == "UPDATE" else None, rule)
        self._tell(event, relation, new, rule, target if event == "UPDATE" else None)
        if event == "ADD":
            self._review(new, near)
        for each in sound if event == "ADD" or told is not None else ():
            if each.relation == "DERIVES" and each.derived:
                self._derive(each, new)

    def _write(self, statement: Statement, relation: str | None, target: Atom | None, rule: str) -> Atom:
        at = now()
        kind, since, until = kind_of(statement.text, at)
        slot = statement.slot or read_statement(statement.text).slot
        place = place_of(self.scope, statement.text)
        path = self.memories.free(self.step, place, between=" ")
        new = Atom(
            path, "", f"atom_{at:%Y%m%d}_{secrets.token_hex(3)}", statement.text, self.scope,
            memory_type=statement.memory_type or kind, slot=slot and Slot(*slot), confidence=statement.confidence,
            valid_from=statement.valid_from or since or at, valid_to=statement.valid_to or until,
            source=self.source.removesuffix(".md"), decided_by=statement.decided_by or rule, created=local_stamp(),
        )  # fmt: skip
        link = target and self.memories.link_text(target.path)[2:-2]
        if target is not None and relation == "UPDATES":
            new = replace(new, updates=link or "")
            text = set_property(self.step.text(target.path), "status", "superseded")
            text = set_property(text, "superseded_by", self.memories.link_text(path))
            self.step.put(target.path, set_property(text, "valid_to", stamp(new.valid_from or at)))
            del self.held[target.path]
        elif target is not None:
            new = replace(new, extends=link or "")
        return self._put(new, statement.quote)

    def _put(self, new: Atom, quote: str = "") -> Atom:
        self.step.put(new.path, new_atom(new, quote))
        self.held[new.path] = new
        return new

    def _derive(self, advice: _Advice, new: Atom) -> None:
        parents, at = (advice.target, new), now()
        sure = _DERIVED * min(life.confidence_at(each, at) for each in parents)
        links = tuple(self.memories.link_text(each.path)[2:-2] for each in parents)
        statement = Statement(advice.derived, "derived", confidence=sure, decided_by=advice.method)
        derived = self._write(statement, None, None, advice.method)
        self._put(replace(derived, derived_from=links))
        self._tell("ADD", "DERIVES", derived, advice.method)

    def _say_again(self, target: Atom) -> None:
        """Saying a preference again is all that refreshes it."""
        sure = round(life.said_again(target, now()), 4)
        if target.memory_type == "preference" and not target.problem and life.confidence_at(target, now()) < 1:
            text = set_property(self.step.text(target.path), "confidence", sure)
            self.step.put(target.path, set_property(text, "reinforced", stamp(now())))

    def _tell(self, event: str, relation: str | None, atom: Atom, rule: str, old: Atom | None = None) -> None:
        told: Event = {"event": event, "relation": relation, "id": atom.id, "memory": atom.statement, "rule": rule}
        self.events.append(told | {"previous": {"id": old.id, "memory": old.statement}} if old else told)

    def _review(self, new: Atom, near: Iterable[tuple[Atom, float]]) -> None:
        candidates: list[Candidate] = [
            {"id": each.id, "memory": each.statement, "similarity": round((1 + share) / 2, 4)}
            for each, share in near
            if share >= _NEAR and each.path in self.held
        ]
        self.reviews += [{"id": new.id, "candidates": candidates[:3]}] if candidates else []
