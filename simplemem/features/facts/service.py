"""The facts of one store: reading, adding, changing and tidying them.

A new fact is compared with those that are current in its scope, while the vault is locked. Its note
and those of the facts that it replaces change in one step of the history. All state is in notes. If
somebody changes them, the next call uses the changed notes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Unpack

from simplemem.errors import Invalid, NotFound, SimplememError, Unreadable
from simplemem.features.answers import ReviewRequest
from simplemem.features.changes import read_change
from simplemem.features.collection import ChangeSet
from simplemem.features.fact import CURRENT_STATUSES, Fact, Slot
from simplemem.features.facts import decay
from simplemem.features.facts.adding import AddResult, FactAdder, Origin
from simplemem.features.facts.collection import UNDISPUTED, FactCollection
from simplemem.features.facts.comparing import compare, facts_for_model
from simplemem.features.facts.doubt import find_doubted_by_text
from simplemem.features.facts.fact import fact_name, replace_statement
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.reading import read_statement
from simplemem.features.facts.reviews import reviews_of_events
from simplemem.features.service import FeatureService
from simplemem.features.text import clean_text
from simplemem.models import AuthorArgs
from simplemem.note.dates import now
from simplemem.note.names import name_of
from simplemem.note.note import read_note
from simplemem.note.scopes import check_scope, private_reason
from simplemem.store import BatchResult

if TYPE_CHECKING:
    from simplemem.features.facts.new_fact import Ruling
    from simplemem.providers.api import ChatModel
    from simplemem.store import EnhancedStore

_MAX_CHARACTERS: Final = 1_000_000  # of a statement
_MAX_QUESTIONS: Final = 5  # a call that stored this many facts asks a model about no other
_UNCHANGING_EVENTS: Final = ("NOOP", "DELETE")
_MODEL_RULE_PREFIX: Final = "llm:"


class FactService(FeatureService):
    """The facts of one store, by scope. Guards the collection of their notes. It is thread-safe.

    Methods that change notes take as `by` who makes the change. They raise Conflict if the notes
    keep changing meanwhile, ReadOnly if the vault may not be changed, and Unavailable if it stays
    locked. Nothing is written then.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Make the service of a store. Callers use `fact_service`, so that a store has only one."""
        super().__init__(store)
        self.collection = FactCollection(store.extension)

    # Reading

    def facts(self, scope: str | None, *, expired: bool = False) -> list[Fact]:
        """Return the current facts of a scope, or of all scopes if it is None.

        With `expired`, those that are not current are returned too. The list is empty for a scope
        without facts. All notes that have been saved so far are read first.
        """
        with self.collection.reading():
            return self.collection.facts(scope, expired=expired)

    def find(self, id_: str, scope: str) -> Fact:
        """Return the fact of a scope with this id, current or not, for a change.

        Raise Invalid if the scope is not valid, NotFound if it has no such fact, Unreadable if the
        fact's note cannot be changed.
        """
        facts = self.facts(check_scope(scope), expired=True)
        fact = next((fact for fact in facts if fact.id == id_), None)
        if fact is None:
            raise no_memory_error(id_)

        if fact.problem:
            raise Unreadable(
                f"{name_of(fact.path)} cannot be changed: {fact.problem}",
                hint="Change it in an editor.",
            )
        return fact

    def knows_all(self, scope: str, texts: Sequence[str]) -> bool:
        """Return whether the current facts of a scope state each of some texts already.

        A text that asks to forget a fact counts as stated. It is true if there are no texts.
        Nothing is written.
        """
        facts = self.facts(scope)
        for text in texts:
            verdict = compare(self.extension, text, facts).verdict
            if verdict.event not in _UNCHANGING_EVENTS:
                return False
        return True

    def puts_facts_in_doubt(self, scope: str, text: str) -> bool:
        """Return whether a text says that a current fact of a scope changed, but not to what."""
        if read_change(text) is None:
            return False
        return bool(find_doubted_by_text(text, self.facts(scope), now()))

    def disputing_paths(self, facts: Iterable[Fact]) -> dict[str, str]:
        """Return, by the path of each disputed fact among `facts`, the path of what disputes it.

        Facts that do not name what disputes them, or name a note that does not exist, are absent.
        """
        return self.collection.disputing_paths(facts)

    def put_disputed_behind(self, facts: Sequence[Fact]) -> list[Fact]:
        """Return facts in their order, but each disputed one behind the later one that disputes it.

        A fact whose disputing fact is not among `facts` keeps its place.
        """
        causes = self.disputing_paths(facts)
        positions = {fact.path: position for position, fact in enumerate(facts)}

        def sort_key(fact: Fact) -> tuple[int, int]:
            """Return the position of the newest fact of a chain of disputes, then the fact's own.

            The chain leads from the fact to what disputes it, to what disputes that, and so on.
            """
            chain = [fact.path]
            cause = causes.get(fact.path)
            while cause in positions and cause not in chain:
                chain.append(cause)
                cause = causes.get(cause)
            return positions[chain[-1]], len(chain)

        return sorted(facts, key=sort_key)

    def facts_of_document(self, document_path: str) -> list[Fact]:
        """Return the facts whose notes link to the document at a path as their source.

        They are of any scope and status. Call it inside `collection.reading`, or in a draft
        function of `collection.change`.
        """
        return self.collection.facts_of_document(document_path)

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
        """Add facts to a scope, and return what became of each.

        `source` is the path of the document from which they were extracted, "" if there is none.
        Facts from `outside`, such as a web page, replace nothing that the user stated. Without a
        model all facts are one step of the history; with a model each is a step. A model that
        cannot be asked adds a warning to the result, and the rules decide. Raise Invalid if the
        scope is not valid; and TooLong if a fact is too long for a note.
        """
        origin = Origin(check_scope(scope), source, outside)
        result = AddResult()
        # A model is asked about one fact after the other, each in view of those before it.
        groups = [[fact] for fact in facts] if self.chat else [facts]
        for group in groups:
            rulings: list[Ruling] = []
            for fact in group:
                if fact.rulings is not None:
                    rulings += fact.rulings
                elif not fact.replaces:
                    rulings += self._ask_model(origin, fact.text, result)
            self._add_group(origin, group, rulings, result, by)

        for event in result.events:
            if event["rule"].startswith(_MODEL_RULE_PREFIX):
                result.reconciliation = event["rule"]
                break
        return result

    def _add_group(
        self,
        origin: Origin,
        group: Sequence[NewFact],
        rulings: Sequence[Ruling],
        result: AddResult,
        by: AuthorArgs,
    ) -> None:
        """Add facts as one step of the history, and enter into `result` what became of them.

        `origin` has the scope and where the facts are from. `rulings` are those of a model about
        the facts. `result` is that of the whole call so far.
        """
        earlier_ids = {event["id"] for event in result.events}

        def draft(change_set: ChangeSet) -> AddResult:
            """Add all facts of the group. Return what became of them."""
            adder = FactAdder(self, self.collection, change_set, origin, earlier_ids)
            for fact in group:
                adder.add(fact, rulings)
            return adder.result

        added, written = self.collection.change(draft, by)
        result.events.extend(added.events)
        result.needs_review.extend(added.needs_review)
        result.warnings.extend(added.warnings)
        result.warnings.extend(written.warnings)

    def reviews_of(self, scope: str, added: AddResult) -> list[ReviewRequest]:
        """Return which current facts of a scope the facts that were just added may replace."""
        return reviews_of_events(added.events, added.needs_review, self.facts(scope))

    # Asking a model

    def model_for(self, scope: str, text: str, source: str = "") -> ChatModel | None:
        """Return the model that may read a text of a scope, None if none may.

        That is so if no model is configured, if the settings make the note of such a fact private,
        or if the document at the path `source` is private.
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

    def facts_for_model(self, scope: str, text: str) -> list[Fact]:
        """Return the current facts of a scope that a model is shown beside a text.

        They are all that are not private; of more than 100, those nearest to the text by its words
        and by the vectors of the configured embedder.
        """
        return facts_for_model(self.extension, text, self.facts(scope))

    def _ask_model(self, origin: Origin, text: str, result: AddResult) -> list[Ruling]:
        """Return what a model says that a new text does to current facts.

        The list is empty if a rule decides, no model may be asked, the call stored five facts
        already, or no similar fact may be sent. The vault is not locked meanwhile. If the model
        cannot be asked, its message is added to the warnings of `result`, and nothing is raised.
        """
        chat = self.model_for(origin.scope, text, origin.document_path)
        if chat is None or len(result.events) >= _MAX_QUESTIONS:
            return []
        comparison = compare(self.extension, text, self.facts(origin.scope))
        if comparison.verdict.event != "ADD":
            return []

        similar_facts = [similar.fact for similar in comparison.similar]
        private_paths = self.extension.private_among([fact.path for fact in similar_facts])
        public_facts = [fact for fact in similar_facts if fact.path not in private_paths]
        if not public_facts:
            return []

        from simplemem.features.facts.language_model import classify

        try:
            return classify(self, chat, text, public_facts)
        except SimplememError as error:
            if error.message not in result.warnings:
                result.warnings.append(error.message)
            return []

    # Changing

    def update(self, id_: str, text: str, scope: str, **by: Unpack[AuthorArgs]) -> BatchResult:
        """Replace the statement of a fact. Its id stays, and it is disputed no longer.

        The slot is read again in the new statement. Return what was written. Raise Invalid if the
        text has no word or the scope is not valid, TooLong for more than a million characters,
        NotFound if the scope has no such fact, and Unreadable if its note cannot be changed.
        """
        clean = clean_text(text, "content", _MAX_CHARACTERS, "Give a shorter one.")
        statement = " ".join(clean.split())
        if not re.search(r"\w", statement):
            raise Invalid("the content contains no word", hint="Give a text that contains a word.")

        fact = self.find(id_, scope)
        slot = read_statement(statement).slot or Slot()

        def draft(change_set: ChangeSet) -> None:
            """Replace the statement and the slot. End a dispute."""
            changed = replace_statement(change_set.text(fact.path), statement)
            change_set.put(fact.path, changed)
            change_set.set(fact.path, **slot._asdict())
            if fact.is_disputed:
                change_set.set(fact.path, **UNDISPUTED)

        _, result = self.collection.change(draft, by)
        return result

    def forget(self, id_: str, scope: str, **by: Unpack[AuthorArgs]) -> BatchResult:
        """Move a fact to the trash. The facts that it disputes become active again.

        Return what was written. Raise Invalid if the scope is not valid, NotFound if it has no such
        fact, and Unreadable if its note cannot be changed.
        """
        path = self.find(id_, scope).path

        def draft(change_set: ChangeSet) -> None:
            change_set.drop(path)
            self.collection.settle_disputes(change_set, path)

        _, result = self.collection.change(draft, by)
        return result

    def forget_facts_of_document(
        self,
        document_path: str,
        is_removed: Callable[[Fact], bool],
        **by: Unpack[AuthorArgs],
    ) -> None:
        """Mark as forgotten the facts that the document at a path no longer states.

        `is_removed` says whether that is so for a fact; it is asked about those that are active or
        disputed. Facts whose notes cannot be changed stay.
        """

        def draft(change_set: ChangeSet) -> None:
            """Mark all facts that were removed."""
            for fact in self.collection.facts_of_document(document_path):
                may_be_forgotten = fact.status in CURRENT_STATUSES and not fact.problem
                if may_be_forgotten and is_removed(fact):
                    change_set.set(fact.path, status="forgotten")

        self.collection.change(draft, by)

    def tidy(
        self,
        older_than: timedelta,
        *,
        dry_run: bool = False,
        **by: Unpack[AuthorArgs],
    ) -> list[Fact]:
        """Move to the trash the facts of all scopes that ended longer ago than `older_than`.

        Return them. They are one step of the history. With `dry_run`, return them without a change.
        Facts whose notes cannot be changed stay and are not returned.
        """

        def draft(change_set: ChangeSet) -> list[Fact]:
            """Drop the old facts, unless this is a dry run. Return them."""
            latest = now() - older_than
            old_facts = [
                fact for fact in self.collection.ended_facts() if _ended_before(fact, latest)
            ]
            if not dry_run:
                for fact in old_facts:
                    change_set.drop(fact.path)
            return old_facts

        facts, _ = self.collection.change(draft, by)
        return facts


def no_memory_error(id_: str) -> NotFound:
    """Return the error for an id that no memory of a scope has. The caller raises it."""
    return NotFound(
        f"no memory with the id {id_[:80]!r}",
        hint="search_memory returns the ids.",
    )


def _ended_before(fact: Fact, latest: datetime) -> bool:
    """Return whether a fact that is not current ended before a time.

    The end of an episode is when it fades.
    """
    end = None
    if fact.memory_type != "episode":
        end = fact.valid_to
    if end is None:
        end = decay.forgotten_at(fact) or fact.valid_from
    return end is not None and end < latest


fact_service: Final = FactService.of  # returns the one service of a store
