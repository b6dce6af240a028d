"""A document is the note `documents/<scope>/<title>.md`: what was ingested as Markdown, with where it came from, and its
original beside it. What it states becomes statements that link to it. The same again is the same document; other content
at the same address takes the place of the old."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Unpack

from simplemem.errors import Invalid, SimplememError
from simplemem.kinds.answers import Ingested, Remembered
from simplemem.kinds.atoms.atom import Atom, Statement, check_scope, folder_of, link_in, moment, scope_of
from simplemem.kinds.atoms.keeping import Added, memories_of
from simplemem.kinds.atoms.reading import drawn_from, statements_in, to_forget
from simplemem.kinds.atoms.small_talk import is_small_talk
from simplemem.kinds.changes import changes_in
from simplemem.kinds.documents.convert import File, convert, form_of
from simplemem.kinds.kind import ChangeSet, Keeper, Kind, Shelf, clean_text
from simplemem.memory import By
from simplemem.note.clock import now, stamp
from simplemem.note.header import read_header
from simplemem.note.names import base_name, legal_name, name_of
from simplemem.note.note import read_note
from simplemem.note.passages import cut_passages
from simplemem.note.properties import remove_property, set_property
from simplemem.store import Read
from simplemem.store import now as local_stamp

if TYPE_CHECKING:
    from simplemem.services.chat import Chat
    from simplemem.store import EnhancedStore

_MOST_CHARACTERS, _MOST_TITLE, _MOST_NAME = 1_000_000, 200, 100
_NOTHING_STATED: Final = "Nothing was stored: the text states no fact."
_WORDS: Final = ("id", "title", "content_type", "status", "error", "source_url", "fetched", "content_hash", "original")


@dataclass(frozen=True, eq=False)
class Document:
    """A document as its note has it; a new one with its text, and what else is to be kept of it."""

    path: str
    sha256: str
    id: str
    title: str
    scope: str
    content_type: str = "text"
    status: str = "done"
    error: str = ""
    source_url: str = ""
    fetched: str = ""
    came: datetime | None = None  # when its note was made, or its address was fetched
    content_hash: str = ""
    original: str = ""  # a link
    problem: str = ""
    is_own: bool = True
    text: str = ""
    file: tuple[str, bytes] | None = None  # the ending and the bytes of the original
    more: Mapping[str, Any] = field(default_factory=dict)  # properties

    @classmethod
    def of(cls, read: Read) -> Document:
        """The document that a note is."""
        note, name = read_note(read.text.encode("utf-8", "surrogatepass"), read.sha256), base_name(read.path)
        told: dict[str, Any] = {"id": name, "title": name} | {key: word for key in _WORDS if (word := note.string(key))}
        told["came"] = moment(str(told.get("fetched", ""))) or moment(
            note.string("modified") or note.string("created") or ""
        )
        told |= {"scope": scope_of(note.string("scope"), read.path), "problem": read.problem or note.problem or ""}
        return cls(read.path, read.sha256, is_own=DOCUMENT.holds(read.path, note.string("type")), **told)

    def note(self, before: str) -> str:
        """Its note: a new one, or what was there before with what it says."""
        told = {key: getattr(self, key) or None for key in (*_WORDS, "scope")}
        if not before:
            ours = {*told, "type", "created", "modified"}
            own = {key: value for key, value in self.more.items() if key.casefold() not in ours}
            return DOCUMENT.render({**own, **told}, f"{self.text}\n", local_stamp())
        for key, value in told.items():
            before = remove_property(before, key) if value is None else set_property(before, key, value)
        return f"{before[: read_header(before).body_start]}\n{self.text}\n"


DOCUMENT: Final[Kind[Document]] = Kind("documents", "document", read=Document.of, place=lambda each: each.path)


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

    def ingest_text(
        self, content: str, scope: str, title: str = "", metadata: Mapping[str, Any] | None = None, **by: Unpack[By]
    ) -> Ingested:
        """Keep a text as a document, but for one that only asks to forget something."""
        return self._ingest(_document(content, title, scope, "text", more=metadata or {}), by)

    def ingest_file(self, data: bytes, name: str, scope: str, title: str = "", **by: Unpack[By]) -> Ingested:
        """Keep a file as a document, a PDF or DOCX with its original beside it."""
        return self._convert(File(name, "", "", data), scope, title or name.rpartition(".")[0], by)

    def ingest_url(self, url: str, scope: str, title: str = "", **by: Unpack[By]) -> Ingested:
        """Fetch an address, and keep what it gives as a document."""
        from simplemem.kinds.documents.fetch import checked, fetch

        check_scope(scope)
        address = str(checked(url))
        file = fetch(address, allow_private=self.settings.documents.allow_private)
        return self._convert(file, scope, title, by, source_url=address, fetched=stamp(now()))

    def _convert(self, file: File, scope: str, title: str, by: By, **more: Any) -> Ingested:
        form = form_of(file.data, file.name, file.content_type)
        text, called = convert(file.data, form, file.charset)
        original = (f".{form}", file.data) if form in ("pdf", "docx") else None
        kind = "pdf" if form == "pdf" else "url" if more else "text"
        return self._ingest(_document(text, title or called, scope, kind, file=original, **more), by)

    def _ingest(self, new: Document, by: By) -> Ingested:
        kept, drawn, is_known = self._keep(new, by)
        answer: Ingested = {
            "id": kept.id, "status": kept.status, "title": kept.title, "container_tag": kept.scope,
            "content_type": kept.content_type, "name": name_of(kept.path), "memories": drawn.events,
            "chunks": len(cut_passages(new.text, read_note(new.text.encode()).body)) if kept.path else 0,
            "extraction": self.chat.method if self.chat else "rules", "warnings": drawn.warnings,
        }  # fmt: skip
        if is_known:
            answer["duplicate"] = True
        if new.source_url:
            answer["source_url"], answer["fetched"] = new.source_url, new.fetched
        return answer

    def add_memory(
        self, content: str, scope: str, metadata: Mapping[str, Any] | None = None, **by: Unpack[By]
    ) -> Remembered:
        """Remember a text: a short one as statements, a long one as a document with what it states."""
        new, why, id_ = _document(content, "", scope, "conversation"), "", None
        if (parts := statements_in(new.text)) is None:
            kept, drawn, _ = self._keep(replace(new, more=metadata or {}), by)
            id_, method = kept.id, self.chat.method if self.chat else "rules"
        else:
            parts = [part for part in parts if not is_small_talk(part)]
            chat = self.memories.model_for(new.scope, new.text)
            is_known = bool(parts) and self.memories.knows(new.scope, parts)
            statements, method, why = self._stated(None if is_known else chat, new.text, parts)
            drawn = self.memories.add(scope, statements, **by)
            if not statements:
                drawn.warnings.append(_NOTHING_STATED)
        return {
            "events": drawn.events, "document": id_, "extraction": method or "verbatim", "needs_review": drawn.needs_review,
            "reconciliation": drawn.reconciliation, "warnings": [*filter(None, [why]), *drawn.warnings],
        }  # fmt: skip

    def _keep(self, new: Document, by: By) -> tuple[Document, Added, bool]:
        """Keep a document: as it is kept, what was drawn from it at once, and whether it was there already."""
        if new.content_type == "text" and to_forget(new.text):
            return replace(new, title=""), self.memories.add(new.scope, [Statement(new.text)], **by), False
        with nullcontext() if self.chat else self._turn:
            states = self.chat or drawn_from(new.text) or changes_in(new.text)
            new = replace(new, status="extracting" if states else "done")
            (kept, is_known), carried = self.shelf.change(lambda step: self._put(step, new), by)
            if kept.status == "extracting" and self.chat is None:
                return replace(kept, status="done"), self._draw(kept, by), is_known
        if kept.status == "extracting":
            self._draw_later()
        return kept, Added([], [], "rules", [*carried.warnings]), is_known

    def _put(self, step: ChangeSet, new: Document) -> tuple[Document, bool]:
        """The document as it is kept, in the place of what its address gave before; and whether it was there already."""
        every = [each for each in self.shelf.in_order() if each.scope == new.scope and not each.problem]
        at = (each for each in every if new.source_url and each.source_url == new.source_url)
        there = next(at, None) or next((each for each in every if each.content_hash == new.content_hash), None)
        if there is not None and there.content_hash == new.content_hash:
            return there, True
        place = f"{DOCUMENT.folder}/{folder_of(new.scope)}/{legal_name(new.title[:_MOST_NAME].strip())}"
        path = there.path if there else self.free(step, place, between=" ")
        if new.file is not None:
            stem, (ending, data) = "/files/".join(name_of(path).rsplit("/", 1)), new.file
            if there is None or self.bench.meant([(link_in(there.original), path)]) != [original := f"{stem}{ending}"]:
                original = self.free(step, stem, between=" ", ending=ending)  # that was of another kind, or a person's
            step.put(original, data)
            name = original.rpartition("/")[2]
            new = replace(new, original=f"[[{name if {*self.bench.files_called(name)} <= {original} else original}]]")
        id_, title = (there.id, there.title) if there else (f"doc_{now():%Y%m%d}_{secrets.token_hex(3)}", new.title)
        new = replace(new, path=path, id=id_, title=title, status="extracting" if there else new.status)
        step.put(path, new.note(step.text(path) if there else ""))
        return new, False

    def _draw(self, document: Document, by: By) -> Added:
        """Keep what a document states, and forget what was drawn from it and is there no longer."""
        path = document.path
        text = next((each.text[read_header(each.text).body_start :].strip() for each in self.bench.read([path])), "")
        chat = None if self.bench.private([path]) else self.chat
        changed = [] if document.source_url else [sentence for sentence, _ in changes_in(text)]
        changed = [sentence for sentence in changed if self.memories.doubts(document.scope, sentence)]
        by_rules = list(dict.fromkeys([*drawn_from(text), *changed]))
        statements, method, why = self._stated(chat, text, by_rules)
        with self.shelf.reading():
            stands = self._stands(document)
        if self._ending.is_set() or not stands:
            return Added([], [], "rules", [])
        self.memories.forget_drawn(path, lambda atom: not self._is_in(text, atom), **by)
        drawn = self.memories.add(document.scope, statements, source=path, outside=bool(document.source_url), **by)

        def finish(step: ChangeSet) -> None:
            if self._stands(document):
                note = set_property(step.text(path), "status", "done")
                said = ("extraction", why) if method else ("error", f"by rules, because {why}")
                step.put(path, set_property(note, *said) if why else note)

        self.shelf.change(finish, by)
        return drawn

    def _stands(self, document: Document) -> bool:
        there = self.shelf.items.get(document.path)
        return there is not None and there.content_hash == document.content_hash and not there.problem

    def _is_in(self, text: str, atom: Atom) -> bool:
        """Whether a text says a statement, or the words that it was drawn from."""
        note = next((each.text for each in self.bench.read([atom.path])), "")
        quote = " ".join(line[1:] for line in note.splitlines() if line.startswith(">"))
        said = (" ".join(each.split()).casefold() for each in (atom.statement, quote))
        return any(each and each in " ".join(text.split()).casefold() for each in said)

    def _stated(self, chat: Chat | None, text: str, by_rules: list[str]) -> tuple[list[Statement], str, str]:
        """Return what a text states, by the model or else by rules; which model; and a remark, or why it did not.

        A model that answers with an empty list has found no fact, and then the rules are not asked.
        """
        answer, method, why = self.asked(chat, "extract", text)
        if answer is None:
            return [Statement(each) for each in by_rules], "", why if chat else ""

        statements, remark = answer
        return statements, method, remark

    def asked(self, chat: Chat | None, task: str, *said: Any) -> tuple[Any, str, str]:
        """What the model says to a task, None for nothing of use; who it is; and why that is so."""
        if chat is None:
            return None, "none", "there is no model"
        from simplemem.kinds.atoms import asking

        try:
            answer = getattr(asking, task)(self, chat, *said)
        except SimplememError as error:
            return None, "none", f"the model was no help: {error.message}"
        return (answer, chat.method, "") if answer else (None, "none", "the model said nothing of use")

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


def _document(text: str, title: str, scope: str, content_type: str, **more: Any) -> Document:
    said = clean_text(text, "content", _MOST_CHARACTERS, "Divide it, then try again.").strip()
    if not re.search(r"\w", said):
        raise Invalid("there is no content", hint="Give a text with a word in it.")
    called = " ".join(clean_text(title, "title", _MOST_TITLE, "Give a shorter one.").split())
    called = called or " ".join(said.lstrip("# ").split("\n")[0].split())[:80].rstrip()
    digest = hashlib.sha256(said.encode()).hexdigest()
    return Document("", "", "", called, check_scope(scope), content_type, content_hash=digest, text=said, **more)
