"""Remember texts of an agent, and change or delete what was remembered.

A memory is a fact or a document: a short text is remembered as facts, a long one as a document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.features.agent_statements import NO_STATEMENTS, AgentStatements
from simplemem.features.answers import RememberResult
from simplemem.features.documents.agent_facts import traits_as_facts, with_agent_facts
from simplemem.features.documents.agent_storing import (
    add_agent_facts,
    add_agent_traits,
    check_replaced_facts,
)
from simplemem.features.documents.document import Document, new_document
from simplemem.features.documents.extraction import extract_statements
from simplemem.features.documents.service import document_service, join_results
from simplemem.features.fact import Fact
from simplemem.features.facts.adding import AddResult
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.service import fact_service
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note.names import name_of
from simplemem.store import BatchResult

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_NO_FACTS: Final = "Nothing was stored: the text states no fact."
_WORD_FOR_WORD: Final = "verbatim"  # how the facts of a short text were found without a model


class MemoryChange(NamedTuple):
    """A memory that was changed or deleted."""

    memory: Fact | Document  # after its change, or before its deletion
    step: BatchResult  # what was written


class MemoryService(FeatureService):
    """The memories of one store: its facts and documents. Guards no state of its own.

    Methods that change notes take as `by` who makes the change. They raise Conflict if the notes
    keep changing meanwhile, ReadOnly if the vault may not be changed, and Unavailable if it stays
    locked.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Make the service of a store. Callers use `memory_service`, so that it has only one."""
        super().__init__(store)
        self._facts = fact_service(store)
        self._documents = document_service(store)

    # Adding

    def add(
        self,
        content: str,
        scope: str,
        metadata: Mapping[str, Any] | None = None,
        stated: AgentStatements = NO_STATEMENTS,
        **by: Unpack[AuthorArgs],
    ) -> RememberResult:
        """Remember a short text as facts, a long one as a document with the facts in it.

        A text is long if it has more than 400 characters or 5 sentences. Small talk is not stored.
        A text that asks to forget a fact makes the fact forgotten. `metadata` are properties for
        the note of a document, and are ignored for facts. What the agent has `stated` is stored
        too; no model then reads a short text. Raise Invalid if the text has no word or the scope is
        not valid, TooLong, and NotFound or Unreadable for a fact that shall be replaced, as
        `FactService.find` does.
        """
        new = new_document(content, "", scope, "conversation")
        check_replaced_facts(self._facts, new.scope, stated)
        sentences = read_text(new.text).statements
        if sentences is None:
            new = replace(new, properties=metadata or {})
            return self._add_long_text(new, stated, by)
        return self._add_short_text(new, sentences, stated, by)

    def _add_short_text(
        self, new: Document, sentences: Sequence[str], stated: AgentStatements, by: AuthorArgs
    ) -> RememberResult:
        """Store what a text states as facts. Return the answer.

        `sentences` are those of the text that state something, as rules read them.
        """
        chat = self._facts.model_for(new.scope, new.text)
        if stated.facts or (sentences and self._facts.knows_all(new.scope, sentences)):
            chat = None
        existing = self._facts.facts_for_model(new.scope, new.text) if chat else []
        extracted = extract_statements(self, chat, new.text, sentences, existing)

        current = self._facts.facts(new.scope) if stated.facts else []
        new_facts = with_agent_facts(extracted.statements, stated, current)
        if not new_facts:
            new_facts = traits_as_facts(stated)
        added = self._facts.add(new.scope, new_facts, **by)
        if not new_facts:
            added.warnings.append(_NO_FACTS)
        added.needs_review = self._facts.reviews_of(new.scope, added)

        note_name = self._note_of_first(added, new.scope)
        add_agent_traits(self._facts, new.scope, stated, note_name, by)
        return _remembered(added, None, extracted.method or _WORD_FOR_WORD, extracted.remark)

    def _add_long_text(
        self, new: Document, stated: AgentStatements, by: AuthorArgs
    ) -> RememberResult:
        """Store a text as a document, and what the agent has stated. Return the answer."""
        agent_facts = add_agent_facts(self._facts, new, stated, by)
        stored = self._documents.store_document(new, by)
        added = join_results(agent_facts, stored.added)
        added.needs_review = self._facts.reviews_of(new.scope, added)

        note_name = name_of(stored.document.path)
        add_agent_traits(self._facts, new.scope, stated, note_name, by)
        return _remembered(added, stored.document.id, self._documents.extraction_method, "")

    def _note_of_first(self, added: AddResult, scope: str) -> str:
        """Return the name of the note of the first fact that was added or known, "" without one."""
        paths = {fact.id: fact.path for fact in self._facts.facts(scope)}
        for event in added.events:
            if event["id"] in paths:
                return name_of(paths[event["id"]])
        return ""

    # Changing

    def find(self, id_: str, scope: str) -> Fact | Document:
        """Return the fact or the document of this id, for a change.

        The id of a passage (`doc_…:13`, as a search names it) stands for its document. Raise
        NotFound if the scope has no such memory, in the same words whether or not another scope has
        it; Invalid if the scope is not valid, or if the id is that of one passage of several and
        the document is no text of a conversation; Unreadable if the note cannot be changed.
        """
        document = self._documents.find(id_, scope)
        if document is not None:
            return document
        return self._facts.find(id_, scope)

    def update(self, id_: str, content: str, scope: str, **by: Unpack[AuthorArgs]) -> MemoryChange:
        """Replace the text of a fact or of a document. Its id stays.

        The history keeps the old text. Facts that were extracted from a document and are not in its
        new text are marked as forgotten. Raise NotFound, Invalid or Unreadable for the id as `find`
        does, and Invalid or TooLong for the text.
        """
        memory = self.find(id_, scope)
        if isinstance(memory, Fact):
            step = self._facts.update(id_, content, scope, **by)
        else:
            step = self._documents.replace_text(memory, content, id_, **by)
        return MemoryChange(self.find(memory.id, scope), step)

    def delete(self, id_: str, scope: str, **by: Unpack[AuthorArgs]) -> MemoryChange:
        """Move a fact, or a document with all that came from it, to the trash as one step.

        Raise NotFound, Invalid or Unreadable for the id as `find` does.
        """
        memory = self.find(id_, scope)
        if isinstance(memory, Fact):
            step = self._facts.forget(id_, scope, **by)
        else:
            step = self._documents.delete(memory, id_, **by)
        return MemoryChange(memory, step)


memory_service: Final = MemoryService.of  # returns the one service of a store


def _remembered(
    added: AddResult,
    document_id: str | None,
    method: str,
    remark: str,
) -> RememberResult:
    """Return the answer of `MemoryService.add`: what became of the facts, and who extracted them.

    `document_id` is that of the document, None if the text was stored as facts. `method` is the
    name of the model, "rules" or "verbatim". `remark` becomes a warning, "" none.
    """
    warnings = [remark] if remark else []
    return {
        "events": added.events,
        "document": document_id,
        "extraction": method,
        "needs_review": added.needs_review,
        "reconciliation": added.reconciliation,
        "warnings": warnings + added.warnings,
    }
