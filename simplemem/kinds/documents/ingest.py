"""What is ingested: a text, a file, a page of the web becomes a document, and what it states becomes statements that link
to it. The same again is the same document; other content at the same address takes the place of the old."""

from __future__ import annotations

import hashlib
import secrets
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypedDict, Unpack

from simplemem.errors import Invalid, NotFound, SimplememError
from simplemem.kinds.atoms.atom import Atom, Statement, check_scope
from simplemem.kinds.atoms.keeping import Added, Event, Review, memories_of
from simplemem.kinds.atoms.reading import drawn_from, statements_in
from simplemem.kinds.documents.convert import convert, form_of
from simplemem.kinds.documents.document import (
    DOCUMENT,
    Document,
    file_place_of,
    new_document,
    place_of,
    with_text,
)
from simplemem.kinds.documents.fetch import checked, fetch
from simplemem.kinds.kind import ChangeSet, Keeper, Shelf, clean_text
from simplemem.kinds.talk.block import stamp
from simplemem.memory import By
from simplemem.note.clock import now
from simplemem.note.note import read_note
from simplemem.note.passages import cut_passages
from simplemem.store import now as local_stamp

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

MOST_CHARACTERS: Final = 1_000_000
_MOST_TITLE: Final = 200


class Ingested(TypedDict):
    """A document that was ingested, and what was drawn from it."""

    id: str
    status: str
    title: str
    container_tag: str
    content_type: str
    name: str
    chunks: int
    memories: list[Event]
    extraction: str
    warnings: list[str]
    duplicate: NotRequired[bool]
    source_url: NotRequired[str]
    fetched: NotRequired[str]


class Remembered(TypedDict):
    """What became of a text that was to be remembered."""

    events: list[Event]
    document: str | None
    extraction: str
    reconciliation: str
    needs_review: list[Review]
    warnings: list[str]


class Documents(Keeper):
    """The documents of one vault."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.shelf = Shelf[Document](store.bench, DOCUMENT)
        self.memories = memories_of(store)
        self._ending = threading.Event()
        self._at_work: threading.Thread | None = None
        self.bench.closing.append(self._end)

    def documents(self, scope: str | None) -> list[Document]:
        """The documents of a scope, or all."""
        with self.shelf.reading():
            return [each for each in self.shelf.in_order() if scope is None or each.scope == scope]

    def find(self, id_: str, scope: str) -> Document:
        """The document of this id."""
        if (found := next((each for each in self.documents(scope) if each.id == id_), None)) is None:
            raise NotFound(f"there is no document {id_[:80]!r}")
        return found

    def ingest(
        self,
        new: Document,
        original: tuple[str, bytes] | None = None,
        more: Mapping[str, Any] | None = None,
        **by: Unpack[By],
    ) -> Ingested:
        """Keep a document, and what it states."""
        chat = self.chat
        new = replace(new, scope=check_scope(new.scope), status="extracting" if chat else "done")
        kept, before = self.shelf.change(lambda step: self._keep(step, new, original, more or {}), by)[0]
        if before is not None and before.content_hash != kept.content_hash:
            self.memories.forget_drawn(kept.path, lambda atom: not _says(kept.text, atom), **by)
        drawn, is_new = Added([], [], "rules", []), before is None or before.content_hash != kept.content_hash
        if chat is None and is_new:
            drawn = self._add(kept, [Statement(each) for each in drawn_from(kept.text)], by)
        elif chat is not None and kept.status == "extracting":
            self.extract_later()
        chunks = len(cut_passages(kept.text, read_note(kept.text.encode()).body))
        answer: Ingested = {
            "id": kept.id, "status": kept.status, "title": kept.title, "container_tag": kept.scope,
            "content_type": kept.content_type, "name": kept.path.removesuffix(".md"), "chunks": chunks,
            "memories": drawn.events, "extraction": chat.method if chat else "rules", "warnings": drawn.warnings,
        }  # fmt: skip
        if not is_new:
            answer["duplicate"] = True
        if kept.source_url:
            answer["source_url"], answer["fetched"] = kept.source_url, kept.fetched
        return answer

    def _add(self, kept: Document, statements: list[Statement], by: By) -> Added:
        return self.memories.add(kept.scope, statements, source=kept.path, outside=bool(kept.source_url), **by)

    def _keep(
        self, step: ChangeSet, new: Document, original: tuple[str, bytes] | None, more: Mapping[str, Any]
    ) -> tuple[Document, Document | None]:
        """The document as it is kept, and as it was."""
        every = [each for each in self.shelf.in_order() if each.scope == new.scope and not each.problem]
        there = next((e for e in every if new.source_url and e.source_url == new.source_url), None)
        there = there or next((e for e in every if e.content_hash == new.content_hash and not new.source_url), None)
        if there is not None and there.content_hash == new.content_hash:
            return there, there
        path = there.path if there else self.free(step, place_of(new.scope, new.title), between=" ")
        if original is not None:
            place = self.free(step, file_place_of(path), between=" ", ending=original[0])
            step.put(place, original[1])
            new = replace(new, original=place)
        if there is None:
            new = replace(new, path=path, id=f"doc_{now():%Y%m%d}_{secrets.token_hex(3)}")
            step.put(path, new_document(new, more, local_stamp()))
        else:
            new = replace(new, path=path, id=there.id, title=there.title)
            step.put(path, with_text(step.text(path), new))
        return new, there

    def extract_later(self) -> None:
        """Ask the model about every document that waits for it, in one thread beside the store."""
        if self._at_work is None or not self._at_work.is_alive():
            self._at_work = threading.Thread(target=self._extract, name="simplemem-extract", daemon=True)
            self._at_work.start()

    def _extract(self) -> None:
        from simplemem.kinds.atoms.asking import extract

        tried = set[str]()
        while not self._ending.is_set() and (chat := self.chat) is not None:
            waiting = [each for each in self.documents(None) if each.status == "extracting" and each.path not in tried]
            if not waiting:
                return
            document = waiting[0]
            tried.add(document.path)
            by, why = By(who=chat.method, tool="ingest"), ""
            try:
                if not self.bench.private([document.path]):
                    statements, _ = extract(self, chat, document.text)
                else:
                    statements = [Statement(each) for each in drawn_from(document.text)]
            except SimplememError as error:
                why, statements = error.message, [Statement(each) for each in drawn_from(document.text)]
            if not self._ending.is_set():
                self._add(document, statements, by)
                self._finish(document, why, by)

    def _finish(self, document: Document, why: str, by: By) -> None:
        def draft(step: ChangeSet) -> None:
            there = self.shelf.items.get(document.path)
            if there is not None and there.status == "extracting" and not there.problem:
                step.put(there.path, with_text(step.text(there.path), replace(there, status="done", error=why)))

        self.shelf.change(draft, by)

    def _end(self) -> None:
        self._ending.set()
        if self._at_work is not None:
            self._at_work.join(2.0)


documents_of: Final = Documents.of


def _says(text: str, atom: Atom) -> bool:
    return atom.statement.casefold() in " ".join(text.split()).casefold()


def _document(text: str, title: str, scope: str, content_type: str, **more: Any) -> Document:
    said = clean_text(text, "content", MOST_CHARACTERS, "Divide it, then try again.").strip()
    if not said:
        raise Invalid("there is no content", hint="Give a text with a word in it.")
    called = " ".join(clean_text(title, "title", _MOST_TITLE, "Give a shorter one.").split())
    called = called or " ".join(said.lstrip("# ").split("\n")[0].split())[:80].rstrip()
    digest = hashlib.sha256(said.encode()).hexdigest()
    return Document("", "", "", called, scope, content_type, content_hash=digest, text=said, **more)


def ingest_text(store: EnhancedStore, content: str, scope: str, title: str = "", **by: Unpack[By]) -> Ingested:
    """Keep a text as a document."""
    return documents_of(store).ingest(_document(content, title, scope, "text"), **by)


def ingest_file(
    store: EnhancedStore, data: bytes, name: str, scope: str, title: str = "", **by: Unpack[By]
) -> Ingested:
    """Keep a file as a document, a PDF or DOCX with its original beside it."""
    return _ingest(store, data, form_of(data, name), scope, title or name.rpartition(".")[0], by)


def ingest_url(store: EnhancedStore, url: str, scope: str, title: str = "", **by: Unpack[By]) -> Ingested:
    """Fetch an address, and keep what it gives as a document."""
    check_scope(scope)
    address = checked(url).geturl()
    found = fetch(address, allow_private=store.settings.documents.allow_private)
    form = form_of(found.data, found.url.partition("?")[0].rpartition("/")[2], found.kind)
    return _ingest(
        store, found.data, form, scope, title, by, charset=found.charset, source_url=address, fetched=stamp(now())
    )


def _ingest(
    store: EnhancedStore, data: bytes, form: str, scope: str, title: str, by: By, charset: str = "", **more: str
) -> Ingested:
    check_scope(scope)
    found = convert(data, form, charset)
    kind = "pdf" if form == "pdf" else "url" if more else "text"
    original = (f".{form}", data) if form in ("pdf", "docx") else None
    return documents_of(store).ingest(_document(found.text, title or found.title, scope, kind, **more), original, **by)


def add_memory(
    store: EnhancedStore, content: str, scope: str, metadata: Mapping[str, Any] | None = None, **by: Unpack[By]
) -> Remembered:
    """Remember a text: a short one as statements, a long one as a document with what it states."""
    check_scope(scope)
    new = _document(content, "", scope, "conversation")
    if (parts := statements_in(new.text)) is None:
        made = documents_of(store).ingest(new, None, metadata, **by)
        return {
            "events": made["memories"], "document": made["id"], "extraction": made["extraction"],
            "reconciliation": "rules", "needs_review": [], "warnings": made["warnings"],
        }  # fmt: skip
    memories, extraction, warnings = memories_of(store), "verbatim", list[str]()
    statements = [Statement(each) for each in parts]
    if memories.chat is not None and not memories.knows(scope, parts):
        from simplemem.kinds.atoms.asking import extract

        try:
            found, _ = extract(memories, memories.chat, new.text)
            statements, extraction = found or statements, memories.chat.method if found else extraction
        except SimplememError as error:
            warnings.append(error.message)
    added = memories.add(scope, statements, **by)
    return {
        "events": added.events, "document": None, "extraction": extraction, "reconciliation": added.reconciliation,
        "needs_review": added.needs_review, "warnings": [*warnings, *added.warnings],
    }  # fmt: skip
