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
from simplemem.features.facts.decay import status_at
from simplemem.features.facts.reading import Reading, read_statement
from simplemem.features.facts.statement_rules import apply_rules
from simplemem.note.dates import format_moment, now
from simplemem.note.sentences import sentence_spans
from simplemem.note.words import words_in_order


@dataclass(frozen=True)
class _Claim:
    """A sentence of a passage, or the statement of a fact."""

    text: str
    at: datetime  # when it was stated
    is_from_web: bool = False  # from a page of the web

    @property
    def reading(self) -> Reading:
        """What the rules read in the sentence."""
        return read_statement(self.text)


@dataclass(frozen=True)
class _Passage:
    """A hit that is a passage, and its document."""

    hit: Hit
    document: Document
    claims: Sequence[_Claim]  # its sentences; none if it is unknown when they were stated


class _FactIndex:
    """Guards the facts of one user, indexed by what passages are compared with."""

    def __init__(self, facts: Iterable[Fact]) -> None:
        """Index facts, whether they are current or not."""
        self.by_words = defaultdict[tuple[str, ...], list[Fact]](list)
        # Of active facts only: claims by the relations of their slots, and the changes that facts
        # state, with when they were stated.
        self.by_relation = defaultdict[str, list[_Claim]](list)
        self.changes: list[tuple[Change, datetime]] = []
        for fact in facts:
            self._add(fact)

    def _add(self, fact: Fact) -> None:
        """Index a fact by its words; if it is active, also by its slot and what it says changed."""
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
    service: DocumentService,
    hits: Sequence[Hit],
    scope: str | None,
) -> list[Hit]:
    """Return the hits in their order, with marks on passages that no longer hold.

    Such a passage has the fields `outdated` or `disputed` of a `RecallResult`, or both. `scope` is
    the user that was asked about, None for all users.
    """
    documents = {document.path: document for document in service.documents(scope)}
    passages = _passages_by_position(hits, documents)
    if not passages:
        return list(hits)

    users = {passage.document.scope for passage in passages.values()}
    facts_of_users: dict[str, _FactIndex] = {}
    for user in users:
        facts_of_users[user] = _FactIndex(service.facts.facts(user, expired=True))

    marked_hits = list(hits)
    for position, passage in passages.items():
        facts = facts_of_users[passage.document.scope]
        other_claims = _claims_of_others(passage, passages.values())
        marks = _marks(passage, facts, other_claims)
        marked_hits[position] = passage.hit.with_fields(marks)
    return marked_hits


def _passages_by_position(
    hits: Sequence[Hit],
    documents: Mapping[str, Document],
) -> dict[int, _Passage]:
    """Return the hits that are passages of documents, by their position.

    `documents` are by path.
    """
    passages: dict[int, _Passage] = {}
    for position, hit in enumerate(hits):
        document = documents.get(hit.path)
        if document is not None and hit.result["kind"] == "chunk":
            claims = _claims_of(hit, document)
            passages[position] = _Passage(hit, document, claims)
    return passages


def _claims_of(hit: Hit, document: Document) -> list[_Claim]:
    """Return the sentences of a passage, none if it is unknown when the document was added."""
    if document.added_at is None:
        return []

    text = hit.result["text"]
    is_from_web = bool(document.source_url)
    claims: list[_Claim] = []
    for start, stop in sentence_spans(text):
        sentence = " ".join(text[start:stop].split())
        if sentence:
            claims.append(_Claim(sentence, document.added_at, is_from_web))
    return claims


def _claims_of_others(passage: _Passage, passages: Iterable[_Passage]) -> list[_Claim]:
    """Return the sentences of passages of other documents of the same user."""
    claims: list[_Claim] = []
    for candidate in passages:
        is_same_user = candidate.document.scope == passage.document.scope
        if is_same_user and candidate.document.path != passage.document.path:
            claims += candidate.claims
    return claims


def _marks(
    passage: _Passage,
    facts: _FactIndex,
    other_claims: Sequence[_Claim],
) -> dict[str, Any]:
    """Return since when a passage is outdated or disputed, and which of its sentences are.

    They are the fields of a `RecallResult`: `outdated` and `outdated_sentences`, `disputed` and
    `disputed_sentences`. A passage that is neither has none of them. `facts` are those of the user,
    `other_claims` the sentences of other documents among the hits.
    """
    outdated: dict[str, datetime] = {}
    disputed: dict[str, datetime] = {}
    for sentence in passage.claims:
        replaced_at = [
            *_over_since(sentence, facts),
            *_replaced_at(sentence, facts, other_claims),
        ]
        if replaced_at:
            outdated[sentence.text] = min(replaced_at)
            continue
        disputed_at = list(_disputed_at(sentence, facts))
        if disputed_at:
            disputed[sentence.text] = min(disputed_at)

    marks: dict[str, Any] = {}
    if outdated:
        marks["outdated"] = format_moment(min(outdated.values()))
        marks["outdated_sentences"] = [*outdated]
    if disputed:
        marks["disputed"] = format_moment(min(disputed.values()))
        marks["disputed_sentences"] = [*disputed]
    return marks


def _over_since(sentence: _Claim, facts: _FactIndex) -> Iterator[datetime]:
    """Yield when facts in the words of a sentence were superseded or ended after it was stated.

    Yield nothing if one of these facts is active.
    """
    time = now()
    same_facts = facts.by_words.get(_words(sentence.text), [])
    statuses = [status_at(fact, time) for fact in same_facts]
    if "active" in statuses:
        return
    for fact, status in zip(same_facts, statuses, strict=True):
        if status not in ("superseded", "ended") or fact.valid_to is None:
            continue
        if fact.valid_to >= sentence.at:
            yield fact.valid_to


def _replaced_at(
    sentence: _Claim,
    facts: _FactIndex,
    other_claims: Sequence[_Claim],
) -> Iterator[datetime]:
    """Yield when later claims gave another value for what a sentence states.

    Claims of the web replace only claims of the web.
    """
    reading = sentence.reading
    if reading.slot is None:
        return
    if sentence.is_from_web and not reading.slot.subject:
        return  # whoever says "I" on a page of the web is not the user

    for claim in (*facts.by_relation[reading.slot.relation], *other_claims):
        if claim.at <= sentence.at or claim.reading.slot is None:
            continue
        if claim.is_from_web and not sentence.is_from_web:
            continue
        verdict = apply_rules(claim.reading, [reading])
        if verdict.relation == "UPDATES":
            yield claim.at


def _disputed_at(sentence: _Claim, facts: _FactIndex) -> Iterator[datetime]:
    """Yield when later facts said that what a sentence states has changed.

    Yield nothing for a sentence of the web.
    """
    if sentence.is_from_web or not facts.changes:
        return
    subjects = [StatedSubject(subject_of(sentence.text), sentence.at.year)]
    for change, at in facts.changes:
        if at > sentence.at and find_doubtful(subjects, change):
            yield at


@lru_cache(maxsize=50_000)
def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text in their order. Texts with the same words count as the same."""
    return tuple(words_in_order(text))
