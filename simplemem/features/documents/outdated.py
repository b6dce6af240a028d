"""Mark passages of documents that say what no longer holds.

A passage is outdated if a later fact, or a later document of the same user among the hits, gives
another value for what one of its sentences states. It is disputed if a later fact says that this
has changed, but not to what. The marks are computed for an answer and never written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from simplemem.features.changes import Change, StatedSubject, find_doubtful, read_change, subject_of
from simplemem.features.documents.document import Document
from simplemem.features.documents.hits import Hit
from simplemem.features.documents.service import DocumentService
from simplemem.features.fact import Fact
from simplemem.features.facts.reading import Reading, read_statement
from simplemem.features.facts.reconciling import reconcile
from simplemem.note.dates import format_moment
from simplemem.note.sentences import sentence_spans
from simplemem.note.words import words_in_order


@dataclass(frozen=True)
class _Claim:
    """A sentence, when it was stated, and whether it is from a page of the web."""

    text: str
    at: datetime
    is_from_web: bool = False

    @property
    def reading(self) -> Reading:
        return read_statement(self.text)


class _KnownFacts:
    """The facts of one user, indexed by what passages are compared with."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        self.by_words = defaultdict[tuple[str, ...], list[Fact]](list)
        self.by_relation = defaultdict[str, list[_Claim]](list)
        self.changes = list[tuple[Change, datetime]]()
        for fact in facts:
            self._add(fact)

    def _add(self, fact: Fact) -> None:
        self.by_words[_words(fact.statement)].append(fact)
        if fact.status != "active" or fact.valid_from is None:
            return

        claim = _Claim(fact.statement, fact.valid_from)
        slot = claim.reading.slot
        if slot is not None:
            self.by_relation[slot.relation].append(claim)

        change = read_change(fact.statement)
        if change is not None:
            self.changes.append((change, fact.valid_from))


def with_outdated_marks(
    documents: DocumentService, hits: Sequence[Hit], scope: str | None
) -> list[Hit]:
    """Return the hits; passages that no longer hold are marked `outdated` or `disputed`."""
    by_path = {document.path: document for document in documents.documents(scope)}
    passages = [hit for hit in hits if _is_passage(hit, by_path)]
    if not passages:
        return list(hits)

    users = {by_path[hit.path].scope for hit in passages}
    known_facts = {user: _KnownFacts(documents.facts.facts(user, expired=True)) for user in users}
    claims = list[tuple[Document, _Claim]]()
    for hit in passages:
        document = by_path[hit.path]
        claims += [(document, claim) for claim in _claims_of(hit, document)]

    marked = list[Hit]()
    for hit in hits:
        if _is_passage(hit, by_path):
            document = by_path[hit.path]
            other_claims = _claims_of_others(document, claims)
            marks = _marks(_claims_of(hit, document), known_facts[document.scope], other_claims)
            marked.append(hit.with_fields(marks))
        else:
            marked.append(hit)
    return marked


def _claims_of_others(
    document: Document, claims: Iterable[tuple[Document, _Claim]]
) -> list[_Claim]:
    """Return the claims in other documents of the same user."""
    return [
        claim
        for other, claim in claims
        if other.scope == document.scope and other.path != document.path
    ]


def _is_passage(hit: Hit, documents: Mapping[str, Document]) -> bool:
    return hit.result["kind"] == "chunk" and hit.path in documents


def _claims_of(hit: Hit, document: Document) -> list[_Claim]:
    """Return the sentences of a passage, none if it is unknown when the document was added."""
    at = document.added_at
    if at is None:
        return []
    text = hit.result["text"]
    sentences = (" ".join(text[start:stop].split()) for start, stop in sentence_spans(text))
    is_from_web = bool(document.source_url)
    return [_Claim(sentence, at, is_from_web) for sentence in sentences if sentence]


def _marks(
    sentences: Sequence[_Claim], known_facts: _KnownFacts, other_claims: Sequence[_Claim]
) -> dict[str, Any]:
    """Return since when a passage is outdated or disputed, and by which of its sentences."""
    outdated = dict[str, datetime]()
    disputed = dict[str, datetime]()
    for sentence in sentences:
        replaced_at = [
            *_superseded_at(sentence, known_facts),
            *_replaced_at(sentence, known_facts, other_claims),
        ]
        if replaced_at:
            outdated[sentence.text] = min(replaced_at)
            continue
        disputed_at = list(_disputed_at(sentence, known_facts))
        if disputed_at:
            disputed[sentence.text] = min(disputed_at)

    marks = dict[str, Any]()
    if outdated:
        marks["outdated"] = format_moment(min(outdated.values()))
        marks["outdated_sentences"] = [*outdated]
    if disputed:
        marks["disputed"] = format_moment(min(disputed.values()))
        marks["disputed_sentences"] = [*disputed]
    return marks


def _superseded_at(sentence: _Claim, known_facts: _KnownFacts) -> Iterator[datetime]:
    """Yield when facts in the same words were superseded, unless they have been stated again."""
    same_words = known_facts.by_words.get(_words(sentence.text), [])
    if any(fact.status == "active" for fact in same_words):
        return
    for fact in same_words:
        if fact.status != "superseded" or fact.valid_to is None:
            continue
        if fact.valid_to >= sentence.at:
            yield fact.valid_to


def _replaced_at(
    sentence: _Claim, known_facts: _KnownFacts, other_claims: Sequence[_Claim]
) -> Iterator[datetime]:
    """Yield when later claims gave another value for what a sentence states."""
    reading = sentence.reading
    if reading.slot is None:
        return
    if sentence.is_from_web and not reading.slot.subject:
        return  # whoever says "I" on a page of the web is not the user

    for claim in (*known_facts.by_relation[reading.slot.relation], *other_claims):
        if claim.at <= sentence.at or claim.reading.slot is None:
            continue
        if claim.is_from_web and not sentence.is_from_web:
            continue
        if reconcile(claim.reading, [reading]).relation == "UPDATES":
            yield claim.at


def _disputed_at(sentence: _Claim, known_facts: _KnownFacts) -> Iterator[datetime]:
    """Yield when later facts said that what a sentence states has changed."""
    if sentence.is_from_web or not known_facts.changes:
        return
    subjects = [StatedSubject(subject_of(sentence.text), sentence.at.year)]
    for change, at in known_facts.changes:
        if at > sentence.at and find_doubtful(subjects, change):
            yield at


@lru_cache(maxsize=50_000)
def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text, as two texts are compared."""
    return tuple(words_in_order(text))
