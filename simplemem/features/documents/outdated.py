"""Mark passages of documents that say what no longer holds.

A passage is outdated where a later statement, or a later document of the same user among the hits, gives another value
for what one of its sentences says. It is disputed where a later statement says that this has changed, but not to what.
The marks are worked out for an answer and never written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from simplemem.features.answers import Result
from simplemem.features.changes import Change, StatedSubject, find_doubtful, read_change, subject_of
from simplemem.features.documents.ingest import Document, Documents
from simplemem.features.facts.atom import Atom
from simplemem.features.facts.reading import Reading, read_statement
from simplemem.features.facts.reconciling import reconcile
from simplemem.note.dates import format_moment
from simplemem.note.sentences import sentence_spans
from simplemem.note.words import words_in_order


class Hit(NamedTuple):
    """Something that answers, the note it stands in, and the statement it is.

    `result` has the score that is shown. `rank` is what hits are ordered by, where the best of each kind has 1.
    """

    result: Result
    path: str
    atom: Atom | None = None
    rank: float = 0.0


@dataclass(frozen=True)
class _Claim:
    """What was said, when, and whether it came from outside."""

    text: str
    at: datetime
    is_outside: bool = False

    @property
    def reading(self) -> Reading:
        return read_statement(self.text)


class _Known:
    """What one user's statements say, by what passages are compared with."""

    def __init__(self, atoms: Iterable[Atom]) -> None:
        self.by_words = defaultdict[tuple[str, ...], list[Atom]](list)
        self.by_relation = defaultdict[str, list[_Claim]](list)
        self.changes = list[tuple[Change, datetime]]()
        for atom in atoms:
            self._add(atom)

    def _add(self, atom: Atom) -> None:
        self.by_words[_words(atom.statement)].append(atom)
        if atom.status != "active" or atom.valid_from is None:
            return
        claim = _Claim(atom.statement, atom.valid_from)
        slot = claim.reading.slot
        if slot is not None:
            self.by_relation[slot.relation].append(claim)
        change = read_change(atom.statement)
        if change is not None:
            self.changes.append((change, atom.valid_from))


def with_outdated_marks(documents: Documents, hits: Sequence[Hit], scope: str | None) -> list[Hit]:
    """Return hits, each passage that no longer holds with `outdated` or `disputed` and since when."""
    of_path = {document.path: document for document in documents.documents(scope)}
    passages = [hit for hit in hits if hit.result["kind"] == "chunk" and hit.path in of_path]
    if not passages:
        return list(hits)

    known = dict[str, _Known]()
    for user in {of_path[hit.path].scope for hit in passages}:
        known[user] = _Known(documents.memories.atoms(user, expired=True))
    claims = [
        (of_path[hit.path], claim)
        for hit in passages
        for claim in _sentences(hit, of_path[hit.path])
    ]

    marked = list[Hit]()
    for hit in hits:
        document = of_path.get(hit.path)
        if hit.result["kind"] == "chunk" and document is not None:
            others = [
                claim
                for of, claim in claims
                if of.scope == document.scope and of.path != document.path
            ]
            marks = _marks_of(_sentences(hit, document), known[document.scope], others)
            result: Any = hit.result | marks
            marked.append(hit._replace(result=result))
        else:
            marked.append(hit)

    return marked


def _sentences(hit: Hit, document: Document) -> list[_Claim]:
    """Return what a passage says, sentence by sentence, none where nobody knows when the document came."""
    at = document.came
    if at is None:
        return []
    text = hit.result["text"]
    sentences = (" ".join(text[start:stop].split()) for start, stop in sentence_spans(text))
    return [_Claim(sentence, at, bool(document.source_url)) for sentence in sentences if sentence]


def _marks_of(
    sentences: Sequence[_Claim], known: _Known, others: Sequence[_Claim]
) -> dict[str, Any]:
    """Return since when a passage is outdated or disputed, and by which of its sentences."""
    replaced = dict[str, datetime]()
    doubted = dict[str, datetime]()
    for sentence in sentences:
        later = [*_superseded_at(sentence, known), *_replaced_at(sentence, known, others)]
        if later:
            replaced[sentence.text] = min(later)
            continue
        changed = [*_disputed_at(sentence, known)]
        if changed:
            doubted[sentence.text] = min(changed)

    marks = dict[str, Any]()
    if replaced:
        marks |= {
            "outdated": format_moment(min(replaced.values())),
            "outdated_sentences": [*replaced],
        }
    if doubted:
        marks |= {
            "disputed": format_moment(min(doubted.values())),
            "disputed_sentences": [*doubted],
        }
    return marks


def _superseded_at(sentence: _Claim, known: _Known) -> Iterator[datetime]:
    """Yield when statements in these very words were superseded, unless they have been stated again."""
    same = known.by_words.get(_words(sentence.text), [])
    if any(atom.status == "active" for atom in same):
        return
    for atom in same:
        if (
            atom.status == "superseded"
            and atom.valid_to is not None
            and atom.valid_to >= sentence.at
        ):
            yield atom.valid_to


def _replaced_at(sentence: _Claim, known: _Known, others: Sequence[_Claim]) -> Iterator[datetime]:
    """Yield when later claims gave another value for what a sentence says."""
    reading = sentence.reading
    if reading.slot is None or (sentence.is_outside and not reading.slot.subject):
        return  # who says "I" on a page of the web is not the user
    for claim in (*known.by_relation[reading.slot.relation], *others):
        may_replace = claim.reading.slot is not None and (
            sentence.is_outside or not claim.is_outside
        )
        if claim.at <= sentence.at or not may_replace:
            continue
        if reconcile(claim.reading, [reading]).relation == "UPDATES":
            yield claim.at


def _disputed_at(sentence: _Claim, known: _Known) -> Iterator[datetime]:
    """Yield when later statements said that what a sentence says has changed."""
    if sentence.is_outside or not known.changes:
        return
    subjects = [StatedSubject(subject_of(sentence.text), sentence.at.year)]
    for change, at in known.changes:
        if at > sentence.at and find_doubtful(subjects, change):
            yield at


@lru_cache(maxsize=50_000)
def _words(text: str) -> tuple[str, ...]:
    """Return the words of a text, as two texts are compared."""
    return tuple(words_in_order(text))
