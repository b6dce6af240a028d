"""Extract facts from documents: by rules at once, or by the chat model in a thread."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.features.collection import ChangeSet, NoteCollection
from simplemem.features.documents.asking import ask_model
from simplemem.features.documents.document import Document
from simplemem.features.documents.storage import text_of_document
from simplemem.features.fact import Fact
from simplemem.features.facts.adding import AddResult
from simplemem.features.facts.clauses import clauses_of
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.service import FactService
from simplemem.models import AuthorArgs
from simplemem.note.properties import set_property

if TYPE_CHECKING:
    from simplemem.features.service import FeatureService
    from simplemem.providers.api import ChatModel

_LOCK_TIMEOUT: Final = 1.0  # seconds
_CLOSE_TIMEOUT: Final = 2.0  # seconds


class Extracted(NamedTuple):
    """The statements in a text, and how they were found."""

    statements: list[NewFact]
    method: str  # the name of the model, "" for rules
    remark: str  # on how the model read the text, or why it gave no usable answer; or ""


def extract_statements(
    service: FeatureService,
    chat: ChatModel | None,
    text: str,
    by_rules: Sequence[str],
    existing: Sequence[Fact] = (),
) -> Extracted:
    """Return the statements that the chat model finds in a text, or else `by_rules`.

    `existing` are the facts that the model is shown (`FactService.facts_for_model`). `by_rules` are
    the statements that rules found. They count only if there is no model, or it gives no usable
    answer: a model that answers with an empty list has found that there is no fact.
    """

    def extract(model: ChatModel) -> tuple[list[NewFact], str]:
        # Imported here, since it is not needed without a model.
        from simplemem.features.facts import language_model

        return language_model.extract(service, model, text, existing)

    answer, method, reason = ask_model(chat, extract)
    if answer is None:
        remark = reason if chat else ""
        return Extracted(_new_facts(by_rules), "", remark)

    statements, remark = answer
    return Extracted(statements, method, remark)


def _new_facts(sentences: Sequence[str]) -> list[NewFact]:
    """Return the facts that sentences state; a clause of a sentence quotes the whole of it."""
    facts: list[NewFact] = []
    for sentence in sentences:
        facts += [NewFact(clause, quote=sentence) for clause in clauses_of(sentence)]
    return facts


class FactExtraction:
    """Extracts the facts of documents whose status is "extracting", and stores them.

    Guards the thread in which a model extracts, and a lock, so that the store works on one document
    at a time. Documents that still wait when the store closes are extracted when it is opened
    again.
    """

    def __init__(
        self,
        service: FeatureService,
        collection: NoteCollection[Document],
        facts: FactService,
    ) -> None:
        """Prepare to extract from the documents in a collection. `start` starts the thread."""
        self._service = service
        self._extension = service.extension
        self._collection = collection
        self._facts = facts
        self._is_closing = threading.Event()
        self._worker: threading.Thread | None = None
        self._lock = threading.Lock()
        self._waiting_place = threading.Semaphore()  # one worker works, one more may wait

    def lock_for_rules(self) -> AbstractContextManager[Any]:
        """Return a lock to hold in a `with` block while rules extract the facts of a document.

        With a model, entering it does nothing, since the model extracts later, in a thread that
        takes the lock itself.
        """
        if self._service.chat:
            return nullcontext()
        return self._lock

    def extract(self, document: Document, by: AuthorArgs) -> AddResult:
        """Store the facts of a document, forget those that it no longer states, and mark it done.

        `by` says who makes the change. The caller holds the lock of `lock_for_rules`, or is the
        thread. Return what became of the facts. Change nothing, and return an empty result, if the
        document has changed meanwhile or the store closes. Raise ReadOnly, Conflict or Unavailable
        if the vault cannot be changed.
        """
        path = document.path
        text = text_of_document(self._collection, path)
        chat = self._service.chat
        if self._extension.private_among([path]):
            chat = None
        by_rules = self._sentences_by_rules(document, text)
        existing = self._facts.facts_for_model(document.scope, text) if chat else []
        extracted = extract_statements(self._service, chat, text, by_rules, existing)

        with self._collection.reading():
            is_current = self._is_current(document)
        if self._is_closing.is_set() or not is_current:
            return AddResult()

        self.forget_removed(path, text, by)
        added = self._facts.add(
            document.scope,
            extracted.statements,
            source=path,
            outside=bool(document.source_url),
            **by,
        )
        self._mark_done(document, extracted, by)
        return added

    def _sentences_by_rules(self, document: Document, text: str) -> list[str]:
        """Return the sentences that state a fact, and those that put a current fact in doubt.

        A page of the web puts no fact in doubt.
        """
        reading = read_text(text)
        sentences = list(reading.own_statements)
        if not document.source_url:
            sentences += [
                sentence
                for sentence in reading.sentences_of_change
                if self._facts.puts_facts_in_doubt(document.scope, sentence)
            ]
        return list(dict.fromkeys(sentences))

    def _mark_done(self, document: Document, extracted: Extracted, by: AuthorArgs) -> None:
        """Write into a document's note that its facts are extracted, and the remark on that.

        A note that has other content by now stays as it is.
        """
        remark = extracted.remark

        def draft(change_set: ChangeSet) -> None:
            """Set the status and the remark, unless the note has other content by now."""
            if not self._is_current(document):
                return
            text = set_property(change_set.text(document.path), "status", "done")
            if remark and extracted.method:
                text = set_property(text, "extraction", remark)
            elif remark:
                error = f"facts were extracted by rules, because {remark}"
                text = set_property(text, "error", error)
            change_set.put(document.path, text)

        self._collection.change(draft, by)

    def _is_current(self, document: Document) -> bool:
        """Return whether the note still has the content of a document and can be changed.

        The caller holds the lock of the collection.
        """
        current = self._collection.items.get(document.path)
        if current is None or current.problem:
            return False
        return current.content_hash == document.content_hash

    def forget_removed(self, path: str, text: str, by: AuthorArgs) -> None:
        """Mark as forgotten the facts of the document at a path that its new text does not state.

        A text states a fact if it contains its statement, or the words that its note quotes. `by`
        says who makes the change.
        """
        normalized_text = _normalize(text)

        def is_removed(fact: Fact) -> bool:
            """Return whether the new text does not state a fact."""
            for words in (fact.statement, self._quote_of(fact)):
                normalized_words = _normalize(words)
                if normalized_words and normalized_words in normalized_text:
                    return False
            return True

        self._facts.forget_facts_of_document(path, is_removed, **by)

    def _quote_of(self, fact: Fact) -> str:
        """Return the words of the document that a fact's note quotes, "" if it quotes none."""
        read = next(iter(self._extension.read([fact.path])), None)
        if read is None:
            return ""
        quoted_lines = [line[1:] for line in read.text.splitlines() if line.startswith(">")]
        return " ".join(quoted_lines)

    def start(self) -> None:
        """Start a thread that extracts the facts of all waiting documents.

        Do nothing if such a thread waits already, or the store is read-only.
        """
        if self._extension.read_only:
            return
        if not self._waiting_place.acquire(blocking=False):
            return
        worker = threading.Thread(
            target=self._extract_waiting,
            name="simplemem-documents",
            daemon=True,
        )
        worker.start()
        self._worker = worker  # Only now: `close` joins it, and a thread must have started then.

    def _extract_waiting(self) -> None:
        """Extract the facts of all waiting documents; the thread runs this.

        Do nothing if another process does so for this vault. A document that fails is skipped. It
        is tried again when the next thread starts. No error is raised.
        """
        chat = self._service.chat
        by = AuthorArgs(who=chat.method if chat else "", tool="ingest")
        log = self._extension.side_file("state/documents.jsonl")
        tried_hashes = set[str]()
        with self._lock, suppress(SimplememError):
            self._waiting_place.release()
            with log.locked(_LOCK_TIMEOUT) as is_locked:
                while is_locked and not self._is_closing.is_set():
                    document = self._next_waiting(tried_hashes)
                    if document is None:
                        return
                    tried_hashes.add(document.sha256)
                    with suppress(SimplememError):
                        self.extract(document, by)

    def _next_waiting(self, tried_hashes: set[str]) -> Document | None:
        """Return the first document whose facts wait to be extracted, None if there is none.

        Documents whose notes have one of the `tried_hashes` are skipped.
        """
        with self._collection.reading():
            for document in self._collection.in_order():
                if document.status == "extracting" and document.sha256 not in tried_hashes:
                    return document
        return None

    def close(self) -> None:
        """Make the thread end after its current step, and wait up to 2 seconds for that."""
        self._is_closing.set()
        if self._worker is not None:
            self._worker.join(_CLOSE_TIMEOUT)


def _normalize(text: str) -> str:
    """Return a text on one line and in small letters."""
    return " ".join(text.split()).casefold()
