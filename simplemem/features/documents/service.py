"""Ingest texts, files and pages as documents, and change or delete what was remembered.

A memory is a fact or a document. A new version of a document replaces the old text, which the
history keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.errors import Invalid, Unreadable
from simplemem.features.agent_statements import NO_STATEMENTS, AgentStatements
from simplemem.features.answers import IngestResult, RememberResult
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.documents.agent_facts import (
    facts_beside,
    traits_as_facts,
    traits_of,
    with_agent_facts,
)
from simplemem.features.documents.convert import SourceFile, convert, form_of
from simplemem.features.documents.document import (
    DOCUMENT,
    Document,
    OriginalFile,
    count_passages,
    new_document,
    title_from_text,
)
from simplemem.features.documents.extraction import (
    FactExtraction,
    extract_statements,
    text_of_document,
)
from simplemem.features.documents.storage import DocumentStorage, DocumentVersion
from simplemem.features.fact import Fact
from simplemem.features.facts.adding import AddResult
from simplemem.features.facts.fact import NewFact
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.service import fact_service, no_memory_error
from simplemem.features.facts.statements import statement_to_forget
from simplemem.features.scope_profile import add_traits
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note.dates import format_moment, now
from simplemem.note.names import name_of
from simplemem.note.scopes import check_scope
from simplemem.store import BatchResult

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_FORMS_WITH_TITLES: Final = ("html", "docx")  # their own title is preferred to the file name
_FORMS_WITH_ORIGINAL: Final = ("pdf", "docx")  # the file is kept beside the note
_NO_FACTS: Final = "Nothing was stored: the text states no fact."


class MemoryChange(NamedTuple):
    """A memory that was changed or deleted."""

    memory: Fact | Document  # after its change, or before its deletion
    step: BatchResult  # what was written


@dataclass(frozen=True)
class _Stored:
    """A stored document, and what became of the facts that were extracted from it at once."""

    document: Document  # without a path if the text was a request to forget, which is not stored
    added: AddResult  # empty if a model extracts the facts later
    is_duplicate: bool  # whether the vault has the document already


class DocumentService(FeatureService):
    """The documents of one vault, with the facts that are extracted from them.

    Guards the collection of the documents' notes, and the thread in which a model extracts facts.
    It is thread-safe. `facts` is the service of the facts.

    Methods that change notes take as `by` who makes the change. They raise Conflict if the notes
    keep changing meanwhile, ReadOnly if the vault may not be changed, and Unavailable if it stays
    locked.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Make the service of a store, and start to extract the facts of documents that wait.

        Callers use `document_service`, so that a store has only one.
        """
        super().__init__(store)
        self.collection = NoteCollection[Document](store.extension, DOCUMENT)
        self.facts = fact_service(store)
        self._storage = DocumentStorage(self, self.collection)
        self._extraction = FactExtraction(self, self.collection, self.facts)
        self.extension.on_close(self._extraction.close)
        self._extraction.start()

    def documents(self, scope: str | None) -> list[Document]:
        """Return the documents of a user, or of all users if `scope` is None, in order of paths.

        The list is empty for a user without documents. All notes that have been saved so far are
        read first.
        """
        with self.collection.reading():
            documents = self.collection.in_order()
            if scope is None:
                return list(documents)
            return [document for document in documents if document.scope == scope]

    def ingest_text(
        self,
        content: str,
        scope: str,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        stated: AgentStatements = NO_STATEMENTS,
        **by: Unpack[AuthorArgs],
    ) -> IngestResult:
        """Store a text as a document, and extract its facts: by rules at once, by a model later.

        A text that only asks to forget a fact is not stored; the fact is forgotten. Without a
        title, the document has the beginning of the text. `metadata` are properties for the note.
        What the agent has `stated` is stored first. Raise Invalid if the text has no word or the
        scope is not valid, TooLong if the text or the title is too long, and NotFound or Unreadable
        for a fact that shall be replaced, as `FactService.find` does.
        """
        document = new_document(content, title, scope, "text", properties=metadata or {})
        self._check_replaced(document.scope, stated)
        added = self._add_agent_facts(document, stated, by)
        answer = self._ingest(document, by, added)
        self._add_traits(document.scope, stated, answer["name"], by)
        return answer

    def ingest_file(
        self,
        data: bytes,
        name: str,
        scope: str,
        title: str = "",
        **by: Unpack[AuthorArgs],
    ) -> IngestResult:
        """Store a file as a document, a PDF or DOCX with its original beside it.

        `name` is the file's name. Without a title, the document has the one that the file gives
        itself, or the file's name. The facts are extracted as those of a text. Raise Invalid if the
        format is none that simplemem reads, or the scope is not valid; TooLong if the file, its
        text or the title is too long; Unreadable if the file cannot be read or has no text;
        Unavailable if a library is missing.
        """
        file = SourceFile(name, "", "", data)
        form = form_of(data, name)
        text, own_title = convert(data, form)

        has_own_title = bool(own_title) and form in _FORMS_WITH_TITLES
        file_title = name.rpartition(".")[0] or own_title
        if has_own_title:
            file_title = own_title

        document = new_document(
            text,
            title or file_title,
            scope,
            "pdf" if form == "pdf" else "text",
            original_file=_original(form, file),
        )
        if has_own_title and not title:
            # Two files may call themselves "Letter".
            document = replace(document, has_title=False)
        return self._ingest(document, by)

    def ingest_url(
        self,
        url: str,
        scope: str,
        title: str = "",
        **by: Unpack[AuthorArgs],
    ) -> IngestResult:
        """Fetch a page or a file of the web and store it as a document.

        If the vault has the document already, nothing changes, and the result says so; if its
        contents are new, it becomes a new version. The facts are extracted as those of a text: by
        rules at once, by a model later. Without a title, the document has the one that the page
        gives itself, or the beginning of its text. Raises Invalid if the scope or the address is
        not valid or the address is not allowed, NotFound or Unavailable if it cannot be fetched,
        and what `ingest_file` raises for the contents.
        """
        from simplemem.features.documents.fetch import checked, fetch

        check_scope(scope)
        address = str(checked(url))
        file = fetch(address, allow_private=self.settings.documents.allow_private)
        form = form_of(file.data, file.name, file.content_type)
        text, own_title = convert(file.data, form, file.charset)

        document = new_document(
            text,
            title or own_title,
            scope,
            "pdf" if form == "pdf" else "url",
            original_file=_original(form, file),
            source_url=address,
            fetched=format_moment(now()),
        )
        if not title:
            # Two pages may call themselves "Home".
            document = replace(document, has_title=False)
        return self._ingest(document, by)

    def _ingest(
        self, new: Document, by: AuthorArgs, stated: AddResult | None = None
    ) -> IngestResult:
        """Store a document, and return the answer for the client.

        `stated` is what became of the facts that the agent stated, None if it stated none.
        """
        stored = self._store_document(new, by)
        document = stored.document
        added = _joined(stated or AddResult(), stored.added)
        answer: IngestResult = {
            "id": document.id,
            "status": document.status,
            "title": document.title,
            "container_tag": document.scope,
            "content_type": document.content_type,
            "name": name_of(document.path),
            "memories": added.events,
            "chunks": count_passages(new.text) if document.path else 0,
            "extraction": self._extraction_method(),
            "warnings": added.warnings,
        }
        needs_review = self.facts.reviews_of(document.scope, added)
        if needs_review:
            answer["needs_review"] = needs_review
        if stored.is_duplicate:
            answer["duplicate"] = True
        if new.source_url:
            answer["source_url"] = new.source_url
            answer["fetched"] = new.fetched
        return answer

    def _extraction_method(self) -> str:
        """Return who extracts facts from documents: the name of the model, or "rules"."""
        if self.chat is None:
            return "rules"
        return self.chat.method

    def add_memory(
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
        self._check_replaced(new.scope, stated)
        sentences = read_text(new.text).statements
        if sentences is None:
            return self._add_long_text(replace(new, properties=metadata or {}), stated, by)

        chat = self.facts.model_for(new.scope, new.text)
        if stated.facts or (sentences and self.facts.knows_all(new.scope, sentences)):
            chat = None
        existing = self.facts.facts_for_model(new.scope, new.text) if chat else []
        extracted = extract_statements(self, chat, new.text, sentences, existing)

        current = self.facts.facts(new.scope) if stated.facts else []
        statements = with_agent_facts(extracted.statements, stated, current)
        if not statements:
            statements = traits_as_facts(stated)
        added = self.facts.add(scope, statements, **by)
        if not statements:
            added.warnings.append(_NO_FACTS)
        added.needs_review = self.facts.reviews_of(new.scope, added)
        self._add_traits(new.scope, stated, self._note_of_first(added, new.scope), by)
        return _remembered(added, None, extracted.method or "verbatim", extracted.remark)

    def _add_long_text(
        self, new: Document, stated: AgentStatements, by: AuthorArgs
    ) -> RememberResult:
        """Store a text as a document, and what the agent has stated. Return the answer."""
        agent_facts = self._add_agent_facts(new, stated, by)
        stored = self._store_document(new, by)
        added = _joined(agent_facts, stored.added)
        added.needs_review = self.facts.reviews_of(new.scope, added)
        self._add_traits(new.scope, stated, name_of(stored.document.path), by)
        return _remembered(added, stored.document.id, self._extraction_method(), "")

    def _check_replaced(self, scope: str, stated: AgentStatements) -> None:
        """Raise NotFound or Unreadable, as `FactService.find` does, for a fact to be replaced.

        Nothing is stored then.
        """
        for fact in stated.facts:
            for id_ in fact.replaced_ids:
                self.facts.find(id_, scope)

    def _add_agent_facts(
        self, document: Document, stated: AgentStatements, by: AuthorArgs
    ) -> AddResult:
        """Store the facts that the agent states beside a document. Return what became of them.

        They are stored before the document, so that the same sentences, which rules or a model
        extract from it later, are known already.
        """
        if not stated.facts and not stated.user_name:
            return AddResult()
        current = self.facts.facts(document.scope)
        facts = facts_beside(document.text, stated, current)
        return self.facts.add(document.scope, facts, **by)

    def _add_traits(self, scope: str, stated: AgentStatements, name: str, by: AuthorArgs) -> None:
        """Write what the agent states about the user into the profile of a scope.

        `name` is that of the note with the text that states it. Nothing is written without one.
        """
        if stated.has_traits and name:
            link = self.link_text(f"{name}.md").removeprefix("[[").removesuffix("]]")
            add_traits(self.facts, scope, traits_of(stated), link, **by)

    def _note_of_first(self, added: AddResult, scope: str) -> str:
        """Return the name of the note of the first fact that was added or known, "" without one."""
        paths = {fact.id: fact.path for fact in self.facts.facts(scope)}
        for event in added.events:
            if event["id"] in paths:
                return name_of(paths[event["id"]])
        return ""

    def find_memory(self, id_: str, scope: str) -> Fact | Document:
        """Return the fact or the document of this id, for a change.

        The id of a passage (`doc_…:13`, as a search names it) stands for its document. Raise
        NotFound if the scope has no such memory, in the same words whether or not another scope has
        it; Invalid if the id is that of one passage of several and the document is no text of a
        conversation; Unreadable if the note cannot be changed.
        """
        document = self._find_document(id_, check_scope(scope))
        if document is None:
            return self.facts.find(id_, scope)
        if document.problem:
            raise Unreadable(
                f"{name_of(document.path)} cannot be changed: {document.problem}",
                hint="Change it in an editor.",
            )
        return document

    def _find_document(self, id_: str, scope: str) -> Document | None:
        """Return the document of an id, or of the id of its only passage; None without one.

        For the text of a conversation, the id of any passage stands for it. Only documents of the
        user `scope` count. Raises Invalid for the id of one passage of several of another document.
        """
        matches = [document for document in self.documents(scope) if document.is_named_by(id_)]
        for document in matches:
            if document.id == id_:
                return document
        if not matches:
            return None

        document = matches[0]
        if document.content_type == "conversation":
            return document
        count = count_passages(text_of_document(self.collection, document.path))
        if count > 1:
            raise Invalid(
                f"{id_} is only one of {count} passages of the document {document.title!r}",
                hint=f"Give {document.id} to change or delete the whole document.",
            )
        return document

    def update_memory(
        self, id_: str, content: str, scope: str, **by: Unpack[AuthorArgs]
    ) -> MemoryChange:
        """Replace the text of a fact or of a document. Its id stays.

        The history keeps the old text. Facts that were extracted from a document and are not in its
        new text are marked as forgotten. Raise NotFound, Invalid or Unreadable for the id as
        `find_memory` does, and Invalid or TooLong for the text.
        """
        memory = self.find_memory(id_, scope)
        if isinstance(memory, Fact):
            result = self.facts.update(id_, content, scope, **by)
            return MemoryChange(self.facts.find(id_, scope), result)

        result = self._replace_text(memory, content, id_, by)
        return MemoryChange(self.find_memory(memory.id, scope), result)

    def _replace_text(
        self, document: Document, content: str, id_: str, by: AuthorArgs
    ) -> BatchResult:
        """Replace the text of a document, and extract its facts at once or later.

        A title that was only the beginning of the old text changes too. `id_` is the id that the
        client gave, for an error. Raise NotFound if the document was deleted meanwhile, and Invalid
        or TooLong for the text.
        """
        new = new_document(content, "", document.scope, document.content_type)
        old_text = text_of_document(self.collection, document.path)
        title = document.title
        if title == title_from_text(old_text):
            title = new.title

        def draft(change_set: ChangeSet) -> Document:
            """Put the new text into the note. Return the changed document."""
            current = self.collection.items.get(document.path)
            if current is None:
                raise no_memory_error(id_)
            current_text = change_set.text(document.path)
            changed = replace(
                current,
                title=title,
                text=new.text,
                content_hash=new.content_hash,
                status="extracting",
                error="",
            )
            change_set.put(document.path, changed.render(current_text))
            return changed

        with self._extraction.lock_for_rules():
            changed, result = self.collection.change(draft, by)
            if self.chat is None:
                self._extraction.extract(changed, by)
        if self.chat is not None:
            self._extraction.start()
        return result

    def delete_memory(self, id_: str, scope: str, **by: Unpack[AuthorArgs]) -> MemoryChange:
        """Move a fact, or a document with all that came from it, to the trash as one step.

        Its original file and the facts that were extracted from it are moved with a document. Raise
        NotFound, Invalid or Unreadable for the id as `find_memory` does.
        """
        memory = self.find_memory(id_, scope)
        if isinstance(memory, Fact):
            result = self.facts.forget(id_, scope, **by)
            return MemoryChange(memory, result)
        document = memory

        def draft(change_set: ChangeSet) -> None:
            """Drop the note, the original file and the facts."""
            if document.path not in self.collection.items:
                raise no_memory_error(id_)
            change_set.drop(document.path)
            original = self._storage.path_of_original(document)
            if original:
                change_set.drop_file(original)
            for fact in self.facts.facts_of_document(document.path):
                change_set.drop_file(fact.path)

        # The facts are read while the vault is locked: take their lock first, as all others do.
        with self.facts.collection.reading():
            _, result = self.collection.change(draft, by)
        return MemoryChange(document, result)

    def _store_document(self, new: Document, by: AuthorArgs) -> _Stored:
        """Store a document, and extract its facts by rules or have the model do so later.

        A text that only asks to forget a fact is not stored; the fact is forgotten. If the document
        is a new version, facts that its new text does not state are forgotten at once.
        """
        if new.content_type == "text" and statement_to_forget(new.text):
            added = self.facts.add(new.scope, [NewFact(new.text)], **by)
            return _Stored(replace(new, title=""), added, is_duplicate=False)

        reading = read_text(new.text)
        may_state_facts = self.chat or reading.own_statements or reading.sentences_of_change
        new = replace(new, status="extracting" if may_state_facts else "done")

        def draft(change_set: ChangeSet) -> DocumentVersion:
            return self._storage.save(change_set, new)

        with self._extraction.lock_for_rules():
            saved, result = self.collection.change(draft, by)
            warnings = [*result.warnings, *saved.warnings]
            document = saved.document
            if document.status == "extracting" and self.chat is None:
                added = self._extraction.extract(document, by)
                added.warnings[:0] = warnings
                return _Stored(replace(document, status="done"), added, saved.is_duplicate)

        if saved.is_new_version:
            # This happens now. A model extracts the facts of the new text later.
            self._extraction.forget_removed(document.path, new.text, by)
        if document.status == "extracting":
            self._extraction.start()
        return _Stored(document, AddResult(warnings=warnings), saved.is_duplicate)


document_service: Final = DocumentService.of  # returns the one service of a store


def _original(form: str, file: SourceFile) -> OriginalFile | None:
    """Return the original to store beside a note, None if files of this format need none."""
    if form not in _FORMS_WITH_ORIGINAL:
        return None
    return OriginalFile(f".{form}", file.data)


def _joined(first: AddResult, second: AddResult) -> AddResult:
    """Return what became of facts that were added in two steps."""
    return AddResult(
        events=first.events + second.events,
        needs_review=first.needs_review + second.needs_review,
        warnings=first.warnings + second.warnings,
        reconciliation=first.reconciliation if first.events else second.reconciliation,
    )


def _remembered(
    added: AddResult,
    document_id: str | None,
    method: str,
    remark: str,
) -> RememberResult:
    """Return the answer of `add_memory`: what became of the facts, and how they were extracted.

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
