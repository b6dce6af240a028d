"""What is ingested: a text, a file, a page of the web becomes a document, and what it states becomes statements that link
to it. The same again is the same document; other content at the same address takes the place of the old."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias, Unpack

from simplemem.errors import Invalid, SimplememError
from simplemem.kinds.answers import Ingested, Remembered
from simplemem.kinds.atoms.atom import Atom, Statement, check_scope
from simplemem.kinds.atoms.keeping import Added, memories_of
from simplemem.kinds.atoms.reading import drawn_from, statements_in
from simplemem.kinds.documents.convert import convert, form_of
from simplemem.kinds.documents.document import DOCUMENT, Document, note_of, place_of, text_in
from simplemem.kinds.kind import ChangeSet, Keeper, Shelf, clean_text
from simplemem.memory import By
from simplemem.note.clock import now, stamp
from simplemem.note.names import name_of
from simplemem.note.note import read_note
from simplemem.note.passages import cut_passages
from simplemem.note.properties import set_property
from simplemem.store import now as local_stamp

if TYPE_CHECKING:
    from simplemem.services.chat import Chat
    from simplemem.store import EnhancedStore

_MOST_CHARACTERS, _MOST_TITLE = 1_000_000, 200
File: TypeAlias = tuple[str, bytes] | None  # the ending and the bytes of an original


class Documents(Keeper):
    """The documents of one vault. What one states is drawn from it after it was kept: by rules at once, by a model in a
    thread beside the store. Whatever was left undone is gone on with when the store is used again."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.shelf = Shelf[Document](store.bench, DOCUMENT)
        self.memories = memories_of(store)
        self._ending, self._worker = threading.Event(), threading.Thread()
        self._turn, self._next = threading.Lock(), threading.Semaphore()  # one is at work, one more may wait
        self.bench.closing.append(self._end)
        self._draw_later()

    def documents(self, scope: str | None) -> list[Document]:
        """The documents of a scope, or all."""
        with self.shelf.reading():
            return [each for each in self.shelf.in_order() if scope is None or each.scope == scope]

    def keep(self, new: Document, file: File, more: Mapping[str, Any], by: By) -> tuple[Document, Added, bool]:
        """Keep a document: as it is kept, what was drawn from it at once, and whether it was there already."""
        done = self.chat is None and not drawn_from(new.text)
        with nullcontext() if self.chat else self._turn:
            new = replace(new, status="done" if done else "extracting")
            (kept, is_known), carried = self.shelf.change(lambda step: self._keep(step, new, file, more), by)
            if kept.status == "extracting" and self.chat is None:
                return replace(kept, status="done"), self._draw(kept, by), is_known
        if kept.status == "extracting":
            self._draw_later()
        return kept, Added([], [], "rules", [*carried.warnings]), is_known

    def _keep(self, step: ChangeSet, new: Document, file: File, more: Mapping[str, Any]) -> tuple[Document, bool]:
        """The document as it is kept, in the place of what its address gave before; and whether it was there already."""
        every = [each for each in self.shelf.in_order() if each.scope == new.scope and not each.problem]
        same = (each for each in every if each.content_hash == new.content_hash)
        at = (each for each in every if new.source_url and each.source_url == new.source_url)
        there = next(at, None) or next(same, None)
        if there is not None and there.content_hash == new.content_hash:
            return there, True
        path = there.path if there else self.free(step, place_of(new.scope, new.title), between=" ")
        if file is not None:
            folder, _, name = name_of(path).rpartition("/")
            place = f"{folder}/files/{name}{file[0]}"
            was = there and there.original and self.bench.meant([(there.original, path)])[0]
            if was != place:  # of another kind, or a person's own
                place = self.free(step, f"{folder}/files/{name}", between=" ", ending=file[0])
            step.put(place, file[1])
            name = place.rpartition("/")[2]
            new = replace(new, original=name if {*self.bench.files_called(name)} <= {place} else place)
        id_, title = (there.id, there.title) if there else (f"doc_{now():%Y%m%d}_{secrets.token_hex(3)}", new.title)
        new = replace(new, path=path, id=id_, title=title, status="extracting" if there else new.status)
        step.put(path, note_of(new, step.text(path) if there else "", more, local_stamp()))
        return new, False

    def _draw(self, document: Document, by: By) -> Added:
        """Keep what a document states, and forget what was drawn from it and is there no longer."""
        path = document.path
        text = text_in(next((each.text for each in self.bench.read([path])), ""))
        chat = None if self.bench.private([path]) else self.chat
        statements, _, why = _stated(self, chat, text, drawn_from(text))
        same = [document.path, document.content_hash]
        if self._ending.is_set() or same not in [[e.path, e.content_hash] for e in self.documents(document.scope)]:
            return Added([], [], "rules", [])
        self.memories.forget_drawn(path, lambda atom: not self._is_in(text, atom), **by)
        drawn = self.memories.add(document.scope, statements, source=path, outside=bool(document.source_url), **by)

        def finish(step: ChangeSet) -> None:
            there = self.shelf.items.get(path)
            if there is not None and there.content_hash == document.content_hash and not there.problem:
                note = set_property(step.text(path), "status", "done")
                step.put(path, set_property(note, "error", f"by rules, because {why}") if why else note)

        self.shelf.change(finish, by)
        return drawn

    def _is_in(self, text: str, atom: Atom) -> bool:
        """Whether a text says a statement, or the words that it was drawn from."""
        note = next((each.text for each in self.bench.read([atom.path])), "")
        quote = " ".join(line[1:] for line in note.splitlines() if line.startswith(">"))
        said = (" ".join(each.split()).casefold() for each in (atom.statement, quote))
        return any(each and each in " ".join(text.split()).casefold() for each in said)

    def _draw_later(self) -> None:
        if not self.bench.read_only and self._next.acquire(blocking=False):
            self._worker = threading.Thread(target=self._draw_waiting, name="simplemem-documents", daemon=True)
            self._worker.start()

    def _draw_waiting(self) -> None:
        """Draw what the documents state that wait for it, in one process at a time."""
        tried, by = set[str](), By(who=self.chat.method if self.chat else "", tool="ingest")
        with self._turn, suppress(SimplememError):
            self._next.release()
            with self.bench.side("state/documents.jsonl").held(1.0) as has_turn:
                while has_turn and not self._ending.is_set():
                    waiting = (e for e in self.documents(None) if e.status == "extracting" and e.sha256 not in tried)
                    if (document := next(waiting, None)) is None:
                        return
                    tried.add(document.sha256)
                    with suppress(SimplememError):
                        self._draw(document, by)

    def _end(self) -> None:
        self._ending.set()
        if self._worker.ident is not None:
            self._worker.join(2.0)


documents_of: Final = Documents.of


def _stated(keeper: Keeper, chat: Chat | None, text: str, by_rules: list[str]) -> tuple[list[Statement], str, str]:
    """What a text states, by the model or else by rules; which model; and why none, if one was asked."""
    found, why = list[Statement](), ""
    if chat is not None:
        from simplemem.kinds.atoms.asking import extract

        try:
            found = extract(keeper, chat, text)[0]
        except SimplememError as error:
            why = error.message
    return found or [Statement(each) for each in by_rules], chat.method if chat and found else "", why


def _document(text: str, title: str, scope: str, content_type: str, **more: Any) -> Document:
    said = clean_text(text, "content", _MOST_CHARACTERS, "Divide it, then try again.").strip()
    if not re.search(r"\w", said):
        raise Invalid("there is no content", hint="Give a text with a word in it.")
    called = " ".join(clean_text(title, "title", _MOST_TITLE, "Give a shorter one.").split())
    called = called or " ".join(said.lstrip("# ").split("\n")[0].split())[:80].rstrip()
    digest = hashlib.sha256(said.encode()).hexdigest()
    return Document("", "", "", called, check_scope(scope), content_type, content_hash=digest, text=said, **more)


def _ingested(store: EnhancedStore, new: Document, file: File, by: By) -> Ingested:
    documents = documents_of(store)
    kept, drawn, is_known = documents.keep(new, file, {}, by)
    answer: Ingested = {
        "id": kept.id, "status": kept.status, "title": kept.title, "container_tag": kept.scope,
        "content_type": kept.content_type, "name": name_of(kept.path),
        "chunks": len(cut_passages(new.text, read_note(new.text.encode()).body)), "memories": drawn.events,
        "extraction": documents.chat.method if documents.chat else "rules", "warnings": drawn.warnings,
    }  # fmt: skip
    if is_known:
        answer["duplicate"] = True
    if new.source_url:
        answer["source_url"], answer["fetched"] = new.source_url, new.fetched
    return answer


def ingest_text(store: EnhancedStore, content: str, scope: str, title: str = "", **by: Unpack[By]) -> Ingested:
    """Keep a text as a document."""
    return _ingested(store, _document(content, title, scope, "text"), None, by)


def ingest_file(
    store: EnhancedStore, data: bytes, name: str, scope: str, title: str = "", **by: Unpack[By]
) -> Ingested:
    """Keep a file as a document, a PDF or DOCX with its original beside it."""
    return _converted(store, data, form_of(data, name), scope, title or name.rpartition(".")[0], by)


def ingest_url(store: EnhancedStore, url: str, scope: str, title: str = "", **by: Unpack[By]) -> Ingested:
    """Fetch an address, and keep what it gives as a document."""
    from simplemem.kinds.documents.fetch import checked, fetch

    check_scope(scope)
    address = str(checked(url))
    found = fetch(address, allow_private=store.settings.documents.allow_private)
    form = form_of(found.data, found.name, found.content_type)
    more = {"source_url": address, "fetched": stamp(now())}
    return _converted(store, found.data, form, scope, title, by, found.charset, **more)


def _converted(
    store: EnhancedStore, data: bytes, form: str, scope: str, title: str, by: By, charset: str = "", **more: str
) -> Ingested:
    check_scope(scope)
    text, called = convert(data, form, charset)
    kind = "pdf" if form == "pdf" else "url" if more else "text"
    file = (f".{form}", data) if form in ("pdf", "docx") else None
    return _ingested(store, _document(text, title or called, scope, kind, **more), file, by)


def add_memory(
    store: EnhancedStore, content: str, scope: str, metadata: Mapping[str, Any] | None = None, **by: Unpack[By]
) -> Remembered:
    """Remember a text: a short one as statements, a long one as a document with what it states."""
    new, documents, why = _document(content, "", scope, "conversation"), documents_of(store), ""
    if (parts := statements_in(new.text)) is None:
        more = {key: value for key, value in (metadata or {}).items() if key.casefold() != "type"}
        kept, drawn, _ = documents.keep(new, None, more, by)
        id_, method = kept.id, documents.chat.method if documents.chat else "rules"
    else:
        memories, id_ = documents.memories, None
        chat = memories.model_for(new.scope, new.text)
        chat = None if chat and memories.knows(new.scope, parts) else chat
        statements, method, why = _stated(memories, chat, new.text, parts)
        drawn = memories.add(scope, statements, **by)
    return {
        "events": drawn.events, "document": id_, "extraction": method or "verbatim", "needs_review": drawn.needs_review,
        "reconciliation": drawn.reconciliation, "warnings": [*filter(None, [why]), *drawn.warnings],
    }  # fmt: skip
