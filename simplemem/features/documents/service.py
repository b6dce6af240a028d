"""Ingest texts, files and pages as documents, and change or delete what was remembered.

The same content again is the same document. Other content from the same address, or with the same
title and user, is a new version: it replaces the old text, which the history keeps.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.errors import Invalid, Unreadable
from simplemem.features.answers import IngestResult, RememberResult
from simplemem.features.changes import changes_in
from simplemem.features.collection import ChangeSet, NoteCollection
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
from simplemem.features.fact import Fact
from simplemem.features.facts.adding import AddResult
from simplemem.features.facts.fact import NewFact, link_target
from simplemem.features.facts.service import fact_service, no_memory_error
from simplemem.features.facts.small_talk import is_small_talk
from simplemem.features.facts.statements import (
    own_statements_in,
    statement_to_forget,
    statements_in,
)
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note.dates import format_moment, now
from simplemem.note.names import are_similar, compare_key, name_of
from simplemem.note.scopes import check_scope, folder_of
from simplemem.store import BatchResult

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_FORMS_WITH_TITLES: Final = ("html", "docx")  # their own title is preferred to the file name
_FORMS_WITH_ORIGINAL: Final = ("pdf", "docx")  # the file is kept beside the note
_NO_FACTS: Final = "Nothing was stored: the text states no fact."


class MemoryChange(NamedTuple):
    """A memory after a change, or before its deletion, and what was written."""

    memory: Fact | Document
    step: BatchResult


class _Saved(NamedTuple):
    """A document as it was saved, and whether it is a duplicate or a new version of another."""

    document: Document
    is_duplicate: bool
    is_new_version: bool


@dataclass(frozen=True)
class _Kept:
    """A stored document, and the facts that were extracted from it at once."""

    document: Document
    added: AddResult
    is_duplicate: bool


class DocumentService(FeatureService):
    """The documents of one vault, with the facts that are extracted from them."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.collection = NoteCollection[Document](store.extension, DOCUMENT)
        self.facts = fact_service(store)
        self._extraction = FactExtraction(self, self.collection, self.facts)
        self.extension.on_close(self._extraction.close)
        self._extraction.start()

    def documents(self, scope: str | None) -> list[Document]:
        """Return the documents of a user, or of all users."""
        with self.collection.reading():
            return [
                document
                for document in self.collection.in_order()
                if scope is None or document.scope == scope
            ]

    def ingest_text(
        self,
        content: str,
        scope: str,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        **by: Unpack[AuthorArgs],
    ) -> IngestResult:
        """Store a text as a document. A text that only asks to forget something is not saved."""
        document = new_document(content, title, scope, "text", properties=metadata or {})
        return self._ingest(document, by)

    def ingest_file(
        self, data: bytes, name: str, scope: str, title: str = "", **by: Unpack[AuthorArgs]
    ) -> IngestResult:
        """Store a file as a document, a PDF or DOCX with its original beside it.

        Raise Invalid if simplemem cannot read the format, Unreadable if the file has no text.
        """
        file = SourceFile(name, "", "", data)
        form = form_of(data, name)
        text, own_title = convert(data, form)

        names_itself = bool(own_title) and form in _FORMS_WITH_TITLES
        stem = name.rpartition(".")[0]
        file_title = own_title if names_itself else stem or own_title
        content_type = "pdf" if form == "pdf" else "text"
        document = new_document(
            text, title or file_title, scope, content_type, original_file=_original(form, file)
        )
        if names_itself and not title:
            document = replace(document, has_title=False)
        return self._ingest(document, by)

    def ingest_url(
        self, url: str, scope: str, title: str = "", **by: Unpack[AuthorArgs]
    ) -> IngestResult:
        """Fetch a page or a file of the web and store it as a document.

        Raise what `fetch` raises, and what `ingest_file` raises for the contents.
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
        if not title:  # two pages may call themselves "Home"
            document = replace(document, has_title=False)
        return self._ingest(document, by)

    def _ingest(self, new: Document, by: AuthorArgs) -> IngestResult:
        stored = self._keep(new, by)
        document = stored.document
        answer: IngestResult = {
            "id": document.id,
            "status": document.status,
            "title": document.title,
            "container_tag": document.scope,
            "content_type": document.content_type,
            "name": name_of(document.path),
            "memories": stored.added.events,
            "chunks": count_passages(new.text) if document.path else 0,
            "extraction": self._extraction_method(),
            "warnings": stored.added.warnings,
        }
        if stored.is_duplicate:
            answer["duplicate"] = True
        if new.source_url:
            answer["source_url"] = new.source_url
            answer["fetched"] = new.fetched
        return answer

    def _extraction_method(self) -> str:
        return self.chat.method if self.chat else "rules"

    def add_memory(
        self,
        content: str,
        scope: str,
        metadata: Mapping[str, Any] | None = None,
        **by: Unpack[AuthorArgs],
    ) -> RememberResult:
        """Remember a short text as facts, a long one as a document with the facts in it."""
        new = new_document(content, "", scope, "conversation")
        sentences = statements_in(new.text)
        if sentences is None:
            stored = self._keep(replace(new, properties=metadata or {}), by)
            method = self._extraction_method()
            return _remembered(stored.added, stored.document.id, method, "")

        sentences = [sentence for sentence in sentences if not is_small_talk(sentence)]
        chat = self.facts.model_for(new.scope, new.text)
        if sentences and self.facts.knows_all(new.scope, sentences):
            chat = None
        statements, method, why = extract_statements(self, chat, new.text, sentences)
        added = self.facts.add(scope, statements, **by)
        if not statements:
            added.warnings.append(_NO_FACTS)
        return _remembered(added, None, method or "verbatim", why)

    def find_memory(self, id_: str, scope: str) -> Fact | Document:
        """Return the fact or the document of this id, so that it can be changed.

        The id of a passage (`doc_…:13`, as a search names it) stands for its document.
        Raise NotFound if the scope has no such memory, in the same words whether or not
        another scope has it; Invalid if the id names one passage of several of a document
        that is no text of a conversation; Unreadable if the note cannot be changed.
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
        """Return the document that an id, or the id of one of its passages, stands for."""
        named = [document for document in self.documents(scope) if document.is_named_by(id_)]
        for document in named:
            if document.id == id_:
                return document
        if not named:
            return None

        document = named[0]
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

        The history keeps the old text. Facts that were extracted from a document and are not
        in its new text are marked as forgotten.
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
        """Replace the text of a document, and extract its facts or have that done later."""
        old_text = text_of_document(self.collection, document.path)
        new = new_document(content, "", document.scope, document.content_type)
        has_own_title = document.title != title_from_text(old_text)
        title = document.title if has_own_title else new.title

        def draft(change_set: ChangeSet) -> Document:
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

        With a document go its original file and the facts that were extracted from it.
        """
        memory = self.find_memory(id_, scope)
        if isinstance(memory, Fact):
            result = self.facts.forget(id_, scope, **by)
            return MemoryChange(memory, result)
        document = memory

        def draft(change_set: ChangeSet) -> None:
            if document.path not in self.collection.items:
                raise no_memory_error(id_)
            change_set.drop(document.path)
            original = self._original_path(document)
            if original:
                change_set.drop_file(original)
            for fact in self.facts.facts_of_document(document.path):
                change_set.drop_file(fact.path)

        # The facts are read while the vault is locked: take their lock first, as all others do.
        with self.facts.collection.reading():
            _, result = self.collection.change(draft, by)
        return MemoryChange(document, result)

    def _original_path(self, document: Document) -> str:
        """Return the path of the file kept beside a document, "" if it has none of its own."""
        if not document.original:
            return ""
        is_shared = any(
            other.original == document.original
            for other in self.collection.items.values()
            if other.path != document.path and other.scope == document.scope
        )
        if is_shared:
            return ""

        [path] = self.extension.resolve_links([(link_target(document.original), document.path)])
        folder = f"{DOCUMENT.folder}/{folder_of(document.scope)}/files/"
        return path if path and path.startswith(folder) else ""

    def _keep(self, new: Document, by: AuthorArgs) -> _Kept:
        """Store a document, and extract its facts by rules or have the model do so later."""
        if new.content_type == "text" and statement_to_forget(new.text):
            added = self.facts.add(new.scope, [NewFact(new.text)], **by)
            return _Kept(replace(new, title=""), added, is_duplicate=False)

        may_state_facts = self.chat or own_statements_in(new.text) or changes_in(new.text)
        new = replace(new, status="extracting" if may_state_facts else "done")
        with self._extraction.lock_for_rules():
            saved, result = self.collection.change(lambda changes: self._save(changes, new), by)
            warnings = [*result.warnings, *_version_warnings(saved)]
            document = saved.document
            if document.status == "extracting" and self.chat is None:
                added = self._extraction.extract(document, by)
                added.warnings[:0] = warnings
                return _Kept(replace(document, status="done"), added, saved.is_duplicate)

        if saved.is_new_version:  # at once; what the model reads in the new text comes later
            self._extraction.forget_removed(document.path, new.text, by)
        if document.status == "extracting":
            self._extraction.start()
        return _Kept(document, AddResult(warnings=warnings), saved.is_duplicate)

    def _save(self, change_set: ChangeSet, new: Document) -> _Saved:
        """Store a new document, a new version of an earlier one, or nothing for a duplicate."""
        earlier = self._find_earlier(new)
        if earlier is not None and earlier.content_hash == new.content_hash:
            return _Saved(earlier, is_duplicate=True, is_new_version=False)

        if earlier is None:
            path = self.free_path(change_set, new.stem_for_note(), between=" ")
            new = replace(new, path=path, id=_new_id())
        else:
            new = replace(
                new,
                path=earlier.path,
                id=earlier.id,
                title=earlier.title,
                status="extracting",
            )

        if new.original_file is not None:
            link = self._store_original(change_set, new.original_file, new.path, earlier)
            new = replace(new, original=link)
        current_text = change_set.text(earlier.path) if earlier is not None else ""
        change_set.put(new.path, new.render(current_text))
        return _Saved(new, is_duplicate=False, is_new_version=earlier is not None)

    def _store_original(
        self, change_set: ChangeSet, file: OriginalFile, path: str, earlier: Document | None
    ) -> str:
        """Store the original of a document whose note is at `path`. Return a link to the file.

        The original of an earlier version is replaced if it has the same ending and is where
        simplemem would have put it.
        """
        folder, _, name = name_of(path).rpartition("/")
        stem = f"{folder}/files/{name}"
        original = f"{stem}{file.ending}"
        is_replaced = False
        if earlier is not None:
            [current] = self.extension.resolve_links([(link_target(earlier.original), path)])
            is_replaced = current == original
        if not is_replaced:
            original = self.free_path(change_set, stem, between=" ", ending=file.ending)

        change_set.put(original, file.data)
        file_name = original.rpartition("/")[2]
        is_unique = {*self.extension.files_called(file_name)} <= {original}
        return f"[[{file_name}]]" if is_unique else f"[[{original}]]"

    def _find_earlier(self, new: Document) -> Document | None:
        """Return the document that a new one equals, or is a new version of."""
        documents = [
            document
            for document in self.collection.in_order()
            if document.scope == new.scope and not document.problem
        ]
        for document in documents:
            if new.source_url and document.source_url == new.source_url:
                return document
        for document in documents:
            if document.content_hash == new.content_hash:
                return document
        for document in documents:
            if self._is_version_of(new, document):
                return document
        return None

    def _is_version_of(self, new: Document, old: Document) -> bool:
        """Return whether a new document is a version of an ingested one with the same title.

        Texts of conversations have no titles. If the title is only the beginning of the text, the
        texts must be similar too, since two letters to one person begin alike.
        """
        was_ingested = old.content_hash != ""
        is_conversation = "conversation" in (new.content_type, old.content_type)
        if not was_ingested or is_conversation:
            return False
        if compare_key(new.title) != compare_key(old.title):
            return False
        if new.has_title:
            return True
        if new.source_url:
            return False
        return are_similar(new.text, text_of_document(self.collection, old.path))


document_service: Final = DocumentService.of


def _original(form: str, file: SourceFile) -> OriginalFile | None:
    if form not in _FORMS_WITH_ORIGINAL:
        return None
    return OriginalFile(f".{form}", file.data)


def _new_id() -> str:
    return f"doc_{now():%Y%m%d}_{secrets.token_hex(3)}"


def _version_warnings(saved: _Saved) -> list[str]:
    if not saved.is_new_version:
        return []
    name = name_of(saved.document.path)
    return [f"This is a new version of {name}. The history has its earlier text."]


def _remembered(added: AddResult, document_id: str | None, method: str, why: str) -> RememberResult:
    warnings = [why] if why else []
    return {
        "events": added.events,
        "document": document_id,
        "extraction": method,
        "needs_review": added.needs_review,
        "reconciliation": added.reconciliation,
        "warnings": warnings + added.warnings,
    }
