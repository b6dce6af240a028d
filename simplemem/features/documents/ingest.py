"""A document is the note `documents/<scope>/<title>.md`: what was ingested as Markdown, with where it came from, and its
original beside it. What it states becomes statements that link to it. The same again is the same document. Other content
at the same address, or with the same title and user, is a new version: it takes the place of the old text, which the
history keeps, and what only the old text stated is withdrawn."""

from __future__ import annotations

import hashlib
import re
import secrets
import threading
from collections.abc import Mapping
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from simplemem.errors import Invalid, SimplememError, Unreadable
from simplemem.features.answers import Ingested, Remembered
from simplemem.features.changes import changes_in
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.documents.convert import SourceFile, convert, form_of
from simplemem.features.facts.fact import Fact, NewFact, link_target, moment
from simplemem.features.facts.reading import drawn_from, statements_in, to_forget
from simplemem.features.facts.service import AddResult, fact_service
from simplemem.features.facts.small_talk import is_small_talk
from simplemem.features.note_type import NoteType
from simplemem.features.service import FeatureService
from simplemem.features.text import clean_text
from simplemem.models import AuthorArgs
from simplemem.note.dates import format_moment, now
from simplemem.note.header import read_header
from simplemem.note.names import are_similar, base_name, compare_key, legal_name, name_of
from simplemem.note.note import read_note
from simplemem.note.passages import cut_passages
from simplemem.note.properties import remove_property, set_property
from simplemem.note.scopes import check_scope, folder_of, scope_of
from simplemem.store import BatchResult, Read
from simplemem.store import now as local_stamp

if TYPE_CHECKING:
    from simplemem.providers.api import ChatModel
    from simplemem.store import EnhancedStore

_MOST_CHARACTERS, _MOST_TITLE, _MOST_NAME = 1_000_000, 200, 100
_NAME_THEMSELVES: Final = ("html", "docx")  # forms whose own title goes before the name of the file
_PASSAGE_ID: Final = re.compile(
    r"(?P<document>.+):\d+"
)  # the document's id and the passage's first line
_NOTHING_STATED: Final = "Nothing was stored: the text states no fact."
_WORDS: Final = (
    "id",
    "title",
    "content_type",
    "status",
    "error",
    "source_url",
    "fetched",
    "content_hash",
    "original",
)


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
    is_titled: bool = True  # False where the title is only how the text begins
    file: tuple[str, bytes] | None = None  # the ending and the bytes of the original
    more: Mapping[str, Any] = field(default_factory=dict)  # properties

    @classmethod
    def of(cls, read: Read) -> Document:
        """The document that a note is."""
        note, name = (
            read_note(read.text.encode("utf-8", "surrogatepass"), read.sha256),
            base_name(read.path),
        )
        told: dict[str, Any] = {"id": name, "title": name} | {
            key: word for key in _WORDS if (word := note.text_property(key))
        }
        told["came"] = moment(str(told.get("fetched", ""))) or moment(
            note.text_property("modified") or note.text_property("created") or ""
        )
        told |= {
            "scope": scope_of(read.path, note.text_property("scope")),
            "problem": read.problem or note.problem or "",
        }
        return cls(
            read.path,
            read.sha256,
            is_own=DOCUMENT.includes(read.path, note.text_property("type")),
            **told,
        )

    def is_named_by(self, id_: str) -> bool:
        """Whether an id is the document's own, or that of one of its passages."""
        passage = _PASSAGE_ID.fullmatch(id_)
        return id_ == self.id or (passage is not None and passage["document"] == self.id)

    def note(self, before: str) -> str:
        """Its note: a new one, or what was there before with what it says."""
        told = {key: getattr(self, key) or None for key in (*_WORDS, "scope")}
        ours = {*told, "type", "created", "modified"}
        own = {key: value for key, value in self.more.items() if key.casefold() not in ours}
        if not before:
            return DOCUMENT.render({**own, **told}, f"{self.text}\n", local_stamp())
        for key, value in {**own, **told}.items():
            before = (
                remove_property(before, key) if value is None else set_property(before, key, value)
            )
        return f"{before[: read_header(before).body_start]}\n{self.text}\n"


DOCUMENT: Final[NoteType[Document]] = NoteType(
    "documents", "document", read=Document.of, sort_key=lambda each: each.path
)


class MemoryChange(NamedTuple):
    """A memory as it is after a change, or was before its deletion, and the step that was written."""

    memory: Fact | Document
    step: BatchResult


class Documents(FeatureService):
    """The documents of one vault. What one states is drawn from it after it was kept: by rules at once, by a model in a
    thread beside the store. Whatever was left undone is gone on with when the store is used again."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        self.collection = NoteCollection[Document](store.extension, DOCUMENT)
        self.memories = fact_service(store)
        self._ending, self._worker = threading.Event(), threading.Thread()
        self._turn, self._next = (
            threading.Lock(),
            threading.Semaphore(),
        )  # one is at work, one more may wait
        self.extension.on_close(self._end)
        self._draw_later()

    def documents(self, scope: str | None) -> list[Document]:
        """The documents of a scope, or all."""
        with self.collection.reading():
            return [
                each for each in self.collection.in_order() if scope is None or each.scope == scope
            ]

    def ingest_text(
        self,
        content: str,
        scope: str,
        title: str = "",
        metadata: Mapping[str, Any] | None = None,
        **by: Unpack[AuthorArgs],
    ) -> Ingested:
        """Keep a text as a document, but for one that only asks to forget something."""
        return self._ingest(_document(content, title, scope, "text", more=metadata or {}), by)

    def ingest_file(
        self, data: bytes, name: str, scope: str, title: str = "", **by: Unpack[AuthorArgs]
    ) -> Ingested:
        """Keep a file as a document, a PDF or DOCX with its original beside it."""
        return self._convert(SourceFile(name, "", "", data), scope, title, by)

    def ingest_url(
        self, url: str, scope: str, title: str = "", **by: Unpack[AuthorArgs]
    ) -> Ingested:
        """Fetch an address, and keep what it gives as a document."""
        from simplemem.features.documents.fetch import checked, fetch

        check_scope(scope)
        address = str(checked(url))
        file = fetch(address, allow_private=self.settings.documents.allow_private)
        return self._convert(
            file, scope, title, by, source_url=address, fetched=format_moment(now())
        )

    def _convert(
        self, file: SourceFile, scope: str, title: str, by: AuthorArgs, **more: Any
    ) -> Ingested:
        form = form_of(file.data, file.name, file.content_type)
        text, own_title = convert(file.data, form, file.charset)
        is_page = "source_url" in more
        stem = "" if is_page else file.name.rpartition(".")[0]
        names_itself = bool(own_title) and (is_page or form in _NAME_THEMSELVES)
        called = own_title if names_itself else stem or own_title

        original = (f".{form}", file.data) if form in ("pdf", "docx") else None
        kind = "pdf" if form == "pdf" else "url" if is_page else "text"
        new = _document(text, title or called, scope, kind, file=original, **more)
        if not title and (is_page or names_itself):  # two pages may call themselves "Home"
            new = replace(new, is_titled=False)
        return self._ingest(new, by)

    def _ingest(self, new: Document, by: AuthorArgs) -> Ingested:
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
        self,
        content: str,
        scope: str,
        metadata: Mapping[str, Any] | None = None,
        **by: Unpack[AuthorArgs],
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

    def find_memory(self, id_: str, scope: str) -> Fact | Document:
        """Return the statement or the document of this id, so that it can be changed.

        The id of a passage (`doc_…:13`, as a search names it) stands for its document.
        Raise NotFound if the scope has no such memory, in the same words whether or not
        another scope has it; Invalid if the id names one passage of several of a document
        that was not told by the user; Unreadable if the note cannot be changed.
        """
        document = self._document_of(id_, check_scope(scope))
        if document is None:
            return self.memories.find(id_, scope)
        if document.problem:
            why = f"{name_of(document.path)} cannot be changed: {document.problem}"
            raise Unreadable(why, hint="Change it in an editor.")
        return document

    def _document_of(self, id_: str, scope: str) -> Document | None:
        """The document that an id, or the id of one of its passages, stands for."""
        named = [each for each in self.documents(scope) if each.is_named_by(id_)]
        document = next((each for each in named if each.id == id_), named[0] if named else None)
        if document is None or document.id == id_ or document.content_type == "conversation":
            return document
        text = self._text_of(document.path)
        count = len(cut_passages(text, read_note(text.encode()).body))
        if count > 1:
            why = f"{id_} is only one of {count} passages of the document {document.title!r}"
            raise Invalid(why, hint=f"Give {document.id} to change or delete the whole document.")
        return document

    def update_memory(
        self, id_: str, content: str, scope: str, **by: Unpack[AuthorArgs]
    ) -> MemoryChange:
        """Replace the text of a statement or of a document. Its id stays.

        The history keeps the old text. Statements that were drawn from a document and are not
        in its new text are marked as forgotten.
        """
        found = self.find_memory(id_, scope)
        if isinstance(found, Fact):
            carried = self.memories.update(id_, content, scope, **by)
            return MemoryChange(self.memories.find(id_, scope), carried)

        old_text = self._text_of(found.path)
        new = _document(content, "", found.scope, found.content_type)
        has_own_title = found.title != _title_in(old_text)

        def draft(step: ChangeSet) -> Document:
            current = self.collection.items.get(found.path)
            if current is None:
                raise self.memories.no_memory(id_)
            before = step.text(found.path)
            changed = replace(
                current,
                title=found.title if has_own_title else new.title,
                text=new.text,
                content_hash=new.content_hash,
                status="extracting",
                error="",
            )
            step.put(found.path, changed.note(before))
            return changed

        with nullcontext() if self.chat else self._turn:
            changed, carried = self.collection.change(draft, by)
            if self.chat is None:
                self._draw(changed, by)
        if self.chat is not None:
            self._draw_later()
        return MemoryChange(self.find_memory(found.id, scope), carried)

    def delete_memory(self, id_: str, scope: str, **by: Unpack[AuthorArgs]) -> MemoryChange:
        """Put a statement, or a document with all that came from it, into the trash as one step.

        With a document go its original file and the statements that were drawn from it.
        """
        found = self.find_memory(id_, scope)
        if isinstance(found, Fact):
            carried = self.memories.forget(id_, scope, **by)
            return MemoryChange(found, carried)

        def draft(step: ChangeSet) -> None:
            if found.path not in self.collection.items:
                raise self.memories.no_memory(id_)
            step.drop(found.path)
            original = self._original_of(found)
            if original:
                step.drop_file(original)
            for atom in self.memories.drawn_from(found.path):
                step.drop_file(atom.path)

        # The statements are read while the vault is locked: take their lock first, as all others do.
        with self.memories.collection.reading():
            _, carried = self.collection.change(draft, by)
        return MemoryChange(found, carried)

    def _original_of(self, document: Document) -> str:
        """The path of the file that was kept beside a document, "" if it has none of its own."""
        if not document.original:
            return ""
        [path] = self.extension.resolve_links([(link_target(document.original), document.path)])
        folder = f"{DOCUMENT.folder}/{folder_of(document.scope)}/files/"
        is_shared = any(
            each.original == document.original
            for each in self.collection.items.values()
            if each.path != document.path and each.scope == document.scope
        )
        return path if path and path.startswith(folder) and not is_shared else ""

    def _text_of(self, path: str) -> str:
        """The body of a document's note, "" if there is none."""
        read = next(self.extension.read([path]), None)
        return "" if read is None else read.text[read_header(read.text).body_start :].strip()

    def _keep(self, new: Document, by: AuthorArgs) -> tuple[Document, AddResult, bool]:
        """Keep a document: as it is kept, what was drawn from it at once, and whether it was there already."""
        if new.content_type == "text" and to_forget(new.text):
            return (
                replace(new, title=""),
                self.memories.add(new.scope, [NewFact(new.text)], **by),
                False,
            )
        with nullcontext() if self.chat else self._turn:
            states = self.chat or drawn_from(new.text) or changes_in(new.text)
            new = replace(new, status="extracting" if states else "done")
            (kept, is_known, is_version), carried = self.collection.change(
                lambda step: self._put(step, new), by
            )
            warnings = [*carried.warnings]
            if is_version:
                name = name_of(kept.path)
                warnings.append(
                    f"This is a new version of {name}. The history has its earlier text."
                )
            if kept.status == "extracting" and self.chat is None:
                drawn = self._draw(kept, by)
                drawn = drawn._replace(warnings=[*warnings, *drawn.warnings])
                return replace(kept, status="done"), drawn, is_known
        if is_version:  # at once: what the model will read in the new text comes later
            self._withdraw(kept.path, new.text, by)
        if kept.status == "extracting":
            self._draw_later()
        return kept, AddResult([], [], "rules", warnings), is_known

    def _withdraw(self, path: str, text: str, by: AuthorArgs) -> None:
        """Forget what was drawn from a document and is not in the text that it has now."""
        self.memories.forget_drawn(path, lambda atom: not self._is_in(text, atom), **by)

    def _earlier(self, new: Document) -> Document | None:
        """The document that a new one is the same as, or a new version of."""
        every = [
            each
            for each in self.collection.in_order()
            if each.scope == new.scope and not each.problem
        ]
        for each in every:
            if new.source_url and each.source_url == new.source_url:
                return each
        for each in every:
            if each.content_hash == new.content_hash:
                return each
        for each in every:
            if self._is_version_of(new, each):
                return each
        return None

    def _is_version_of(self, new: Document, old: Document) -> bool:
        """Whether a document that was ingested before has the title of a new one, which then takes its place.

        Texts of conversations have no titles. A title that is only how the text begins is not enough: two letters to
        one person begin alike, and only a text that is akin to the old one is a version of it.
        """
        was_ingested = old.content_hash != ""
        kinds = {new.content_type, old.content_type}
        if (
            not was_ingested
            or "conversation" in kinds
            or compare_key(new.title) != compare_key(old.title)
        ):
            return False
        if new.is_titled:
            return True
        return not new.source_url and are_similar(new.text, self._text_of(old.path))

    def _put(self, step: ChangeSet, new: Document) -> tuple[Document, bool, bool]:
        """The document as it is kept, whether it was there already, and whether it is a new version of one."""
        there = self._earlier(new)
        if there is not None and there.content_hash == new.content_hash:
            return there, True, False
        place = (
            f"{DOCUMENT.folder}/{folder_of(new.scope)}/{legal_name(new.title[:_MOST_NAME].strip())}"
        )
        path = there.path if there else self.free_path(step, place, between=" ")
        if new.file is not None:
            stem, (ending, data) = "/files/".join(name_of(path).rsplit("/", 1)), new.file
            if there is None or self.extension.resolve_links(
                [(link_target(there.original), path)]
            ) != [original := f"{stem}{ending}"]:
                original = self.free_path(
                    step, stem, between=" ", ending=ending
                )  # that was of another kind, or a person's
            step.put(original, data)
            name = original.rpartition("/")[2]
            new = replace(
                new,
                original=f"[[{name if {*self.extension.files_called(name)} <= {original} else original}]]",
            )
        id_, title = (
            (there.id, there.title)
            if there
            else (f"doc_{now():%Y%m%d}_{secrets.token_hex(3)}", new.title)
        )
        new = replace(
            new, path=path, id=id_, title=title, status="extracting" if there else new.status
        )
        step.put(path, new.note(step.text(path) if there else ""))
        return new, False, there is not None

    def _draw(self, document: Document, by: AuthorArgs) -> AddResult:
        """Keep what a document states, and forget what was drawn from it and is there no longer."""
        path = document.path
        text = self._text_of(path)
        chat = None if self.extension.private_among([path]) else self.chat
        changed = [] if document.source_url else [sentence for sentence, _ in changes_in(text)]
        changed = [
            sentence for sentence in changed if self.memories.doubts(document.scope, sentence)
        ]
        by_rules = list(dict.fromkeys([*drawn_from(text), *changed]))
        statements, method, why = self._stated(chat, text, by_rules)
        with self.collection.reading():
            stands = self._stands(document)
        if self._ending.is_set() or not stands:
            return AddResult([], [], "rules", [])
        self._withdraw(path, text, by)
        drawn = self.memories.add(
            document.scope, statements, source=path, outside=bool(document.source_url), **by
        )

        def finish(step: ChangeSet) -> None:
            if self._stands(document):
                note = set_property(step.text(path), "status", "done")
                said = (
                    ("extraction", why)
                    if method
                    else ("error", f"facts were extracted by rules, because {why}")
                )
                step.put(path, set_property(note, *said) if why else note)

        self.collection.change(finish, by)
        return drawn

    def _stands(self, document: Document) -> bool:
        there = self.collection.items.get(document.path)
        return (
            there is not None and there.content_hash == document.content_hash and not there.problem
        )

    def _is_in(self, text: str, atom: Fact) -> bool:
        """Whether a text says a statement, or the words that it was drawn from."""
        note = next((each.text for each in self.extension.read([atom.path])), "")
        quote = " ".join(line[1:] for line in note.splitlines() if line.startswith(">"))
        said = (" ".join(each.split()).casefold() for each in (atom.statement, quote))
        return any(each and each in " ".join(text.split()).casefold() for each in said)

    def _stated(
        self, chat: ChatModel | None, text: str, by_rules: list[str]
    ) -> tuple[list[NewFact], str, str]:
        """Return what a text states, by the model or else by rules; which model; and a remark, or why it did not.

        A model that answers with an empty list has found no fact, and then the rules are not asked.
        """
        answer, method, why = self.asked(chat, "extract", text)
        if answer is None:
            return [NewFact(each) for each in by_rules], "", why if chat else ""

        statements, remark = answer
        return statements, method, remark

    def asked(self, chat: ChatModel | None, task: str, *said: Any) -> tuple[Any, str, str]:
        """What the model says to a task, None for nothing of use; who it is; and why that is so."""
        if chat is None:
            return None, "none", "no model is configured"
        from simplemem.features.facts import language_model

        try:
            answer = getattr(language_model, task)(self, chat, *said)
        except SimplememError as error:
            return None, "none", f"the model returned no usable answer: {error.message}"
        return (
            (answer, chat.method, "")
            if answer
            else (None, "none", "the model returned nothing usable")
        )

    def _draw_later(self) -> None:
        if not self.extension.read_only and self._next.acquire(blocking=False):
            self._worker = threading.Thread(
                target=self._draw_waiting, name="simplemem-documents", daemon=True
            )
            self._worker.start()

    def _draw_waiting(self) -> None:
        """Draw what the documents state that wait for it, in one process at a time."""
        tried, by = set[str](), AuthorArgs(who=self.chat.method if self.chat else "", tool="ingest")
        with self._turn, suppress(SimplememError):
            self._next.release()
            with self.extension.side_file("state/documents.jsonl").locked(1.0) as has_turn:
                while has_turn and not self._ending.is_set():
                    waiting = (
                        e
                        for e in self.documents(None)
                        if e.status == "extracting" and e.sha256 not in tried
                    )
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
    said = clean_text(text, "content", _MOST_CHARACTERS, "Split it, then try again.").strip()
    if not re.search(r"\w", said):
        raise Invalid("the content contains no word", hint="Give a text that contains a word.")
    called = " ".join(clean_text(title, "title", _MOST_TITLE, "Give a shorter one.").split())
    is_titled = bool(called) or re.match(r"#{1,6}\s", said) is not None
    called = called or _title_in(said)
    more |= {
        "content_hash": hashlib.sha256(said.encode()).hexdigest(),
        "text": said,
        "is_titled": is_titled,
    }
    return Document("", "", "", called, check_scope(scope), content_type, **more)


def _title_in(text: str) -> str:
    """The title of a text that has none of its own: the beginning of its first line."""
    return " ".join(text.lstrip("# ").split("\n")[0].split())[:80].rstrip()
