"""The documents of a store: ingesting texts, files and pages, changing and deleting.

A new version of a document replaces the old text, which the history keeps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Unpack

from simplemem.errors import Invalid, Unreadable
from simplemem.features.agent_statements import NO_STATEMENTS, AgentStatements
from simplemem.features.answers import IngestResult
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.documents.agent_storing import (
    add_agent_facts,
    add_agent_traits,
    check_replaced_facts,
)
from simplemem.features.documents.convert import convert, form_of
from simplemem.features.documents.document import (
    DOCUMENT,
    Document,
    OriginalFile,
    count_passages,
    new_document,
    title_from_text,
)
from simplemem.features.documents.extraction import FactExtraction
from simplemem.features.documents.storage import (
    DocumentStorage,
    DocumentVersion,
    text_of_document,
)
from simplemem.features.facts.adding import AddResult
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.service import fact_service, no_memory_error
from simplemem.features.facts.statements import statement_to_forget
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


@dataclass(frozen=True)
class StoredDocument:
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
        check_replaced_facts(self.facts, document.scope, stated)
        agent_facts = add_agent_facts(self.facts, document, stated, by)
        answer = self._ingest(document, by, agent_facts)
        add_agent_traits(self.facts, document.scope, stated, answer["name"], by)
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

        `name` is the file's name. Without a title, the document has the one that an HTML or DOCX
        file gives itself, or else the file's name without its ending. The facts are extracted as
        those of a text. Raise Invalid if the format is none that simplemem reads, or the scope is
        not valid; TooLong if the file, its text or the title is too long; Unreadable if the file
        cannot be read or has no text; Unavailable if a library is missing.
        """
        form = form_of(data, name)
        text, own_title = convert(data, form)
        content_type = "pdf" if form == "pdf" else "text"
        is_titled_by_file = not title and bool(own_title) and form in _FORMS_WITH_TITLES
        name_without_ending = name.rpartition(".")[0]
        if is_titled_by_file:
            title = own_title
        elif not title:
            title = name_without_ending or own_title

        document = new_document(
            text, title, scope, content_type, original_file=_original(form, data)
        )
        if is_titled_by_file:
            # Two files may call themselves "Letter".
            document = replace(document, has_distinct_title=False)
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
        content_type = "pdf" if form == "pdf" else "url"

        document = new_document(
            text,
            title or own_title,
            scope,
            content_type,
            original_file=_original(form, file.data),
            source_url=address,
            fetched=format_moment(now()),
        )
        if not title:
            # Two pages may call themselves "Home".
            document = replace(document, has_distinct_title=False)
        return self._ingest(document, by)

    def _ingest(
        self, new: Document, by: AuthorArgs, agent_facts: AddResult | None = None
    ) -> IngestResult:
        """Store a document, and return the answer for the client.

        `agent_facts` is what became of the facts that the agent stated, None if it stated none.
        """
        stored = self.store_document(new, by)
        document = stored.document
        added = join_results(agent_facts or AddResult(), stored.added)
        answer: IngestResult = {
            "id": document.id,
            "status": document.status,
            "title": document.title,
            "container_tag": document.scope,
            "content_type": document.content_type,
            "name": name_of(document.path),
            "memories": added.events,
            "chunks": count_passages(new.text) if document.path else 0,
            "extraction": self.extraction_method,
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

    @property
    def extraction_method(self) -> str:
        """Who extracts facts from documents: the name of the model, or "rules"."""
        if self.chat is None:
            return "rules"
        return self.chat.method

    def find(self, id_: str, scope: str) -> Document | None:
        """Return the document of an id, or of the id of its only passage; None without one.

        For the text of a conversation, the id of any passage stands for it. Only documents of the
        user `scope` count. Raise Invalid for the id of one passage of several of another document
        or if the scope is not valid, and Unreadable if the document's note cannot be changed.
        """
        documents = self.documents(check_scope(scope))
        candidates = [document for document in documents if document.is_named_by(id_)]
        if not candidates:
            return None

        with_this_id = [document for document in candidates if document.id == id_]
        if with_this_id:
            document = with_this_id[0]
        else:
            document = candidates[0]
            self._check_passage_is_document(id_, document)
        if document.problem:
            raise Unreadable(
                f"{name_of(document.path)} cannot be changed: {document.problem}",
                hint="Change it in an editor.",
            )
        return document

    def _check_passage_is_document(self, id_: str, document: Document) -> None:
        """Raise Invalid if the id of a passage does not stand for its document."""
        if document.content_type == "conversation":
            return
        count = count_passages(text_of_document(self.collection, document.path))
        if count > 1:
            raise Invalid(
                f"{id_} is only one of {count} passages of the document {document.title!r}",
                hint=f"Give {document.id} to change or delete the whole document.",
            )

    def replace_text(
        self, document: Document, content: str, id_: str, **by: Unpack[AuthorArgs]
    ) -> BatchResult:
        """Replace the text of a document, and extract its facts at once or later.

        A title that was only the beginning of the old text changes too. Facts that the new text
        does not state are marked as forgotten. `id_` is the id that the client gave, for an error.
        Return what was written. Raise NotFound if the document was deleted meanwhile, and Invalid
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

    def delete(self, document: Document, id_: str, **by: Unpack[AuthorArgs]) -> BatchResult:
        """Move a document, its original file and the facts extracted from it to the trash.

        That is one step. `id_` is the id that the client gave, for an error. Return what was
        written. Raise NotFound if the document was deleted meanwhile.
        """

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
        return result

    def store_document(self, new: Document, by: AuthorArgs) -> StoredDocument:
        """Store a document, and extract its facts by rules or have the model do so later.

        A text that only asks to forget a fact is not stored; the fact is forgotten. If the document
        is a new version, facts that its new text does not state are forgotten at once.
        """
        if new.content_type == "text" and statement_to_forget(new.text):
            added = self.facts.add(new.scope, [NewFact(new.text)], **by)
            return StoredDocument(replace(new, title=""), added, is_duplicate=False)

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
                return StoredDocument(replace(document, status="done"), added, saved.is_duplicate)

        if saved.is_new_version:
            # This happens now. A model extracts the facts of the new text later.
            self._extraction.forget_removed(document.path, new.text, by)
        if document.status == "extracting":
            self._extraction.start()
        return StoredDocument(document, AddResult(warnings=warnings), saved.is_duplicate)


document_service: Final = DocumentService.of  # returns the one service of a store


def _original(form: str, data: bytes) -> OriginalFile | None:
    """Return the file to store beside a note, None if files of this format are not kept."""
    if form not in _FORMS_WITH_ORIGINAL:
        return None
    return OriginalFile(f".{form}", data)


def join_results(first: AddResult, second: AddResult) -> AddResult:
    """Return what became of facts that were added in two steps."""
    return AddResult(
        events=first.events + second.events,
        needs_review=first.needs_review + second.needs_review,
        warnings=first.warnings + second.warnings,
        reconciliation=first.reconciliation if first.events else second.reconciliation,
    )
