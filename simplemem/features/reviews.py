"""Find earlier facts that a new one may replace, for the agent or the user to decide. Pure.

Two facts of one person may be about the same thing without a rule that can tell. Nothing is
superseded here: the agent sees the earlier fact and its id, and says so with `replaces`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from simplemem.features.answers import ReviewCandidate, ReviewRequest
from simplemem.features.changes import Subject, subject_of
from simplemem.features.fact import Fact, Slot, normalize_name
from simplemem.note.words import shorten

MAX_CANDIDATES: Final = 3  # of one new fact
_MIN_SHARE: Final = 0.5  # of the words of two names; a candidate has more in common
_MAX_TEXT: Final = 200  # characters of a fact in a sentence for the agent
_HOW_TO_CONFIRM: Final = "If so, pass the new fact in facts, with replaces set to that id."


class _Candidate(NamedTuple):
    """An earlier fact, and how likely it is about the same thing, 0 to 1."""

    fact: Fact
    likeness: float


def candidates_for(new: Fact, earlier_facts: Iterable[Fact]) -> list[ReviewCandidate]:
    """Return up to three earlier facts that a new one may replace, the most likely first.

    They are about the same topic of the same person, have the same slot with another value, or
    share most words of their names. `earlier_facts` are those that hold.
    """
    found: list[_Candidate] = []
    for fact in earlier_facts:
        likeness = _likeness(new, fact)
        if likeness > 0:
            found.append(_Candidate(fact, likeness))

    found.sort(key=attrgetter("likeness"), reverse=True)
    return [candidate_of(fact, likeness) for fact, likeness in found[:MAX_CANDIDATES]]


def find_restated(slot: Slot, facts: Iterable[Fact]) -> Fact | None:
    """Return the fact that has the subject and the value of a slot, None if there is none.

    Its relation is the same too, or is about the same topic: "home" and "lives in".
    """
    topics = subject_of("", f"{slot.subject} {slot.relation}".strip(), slot.object).topics
    for fact in facts:
        if fact.slot is None or _normalized(fact.value) != _normalized(slot.object):
            continue
        if normalize_name(fact.slot.subject) != normalize_name(slot.subject):
            continue
        has_same_relation = fact.slot.relation.casefold() == slot.relation.casefold()
        if has_same_relation or not topics.isdisjoint(_subject(fact).topics):
            return fact
    return None


def candidate_of(fact: Fact, similarity: float) -> ReviewCandidate:
    """Return an earlier fact as a candidate, with since when it holds if that is known."""
    candidate = ReviewCandidate(id=fact.id, memory=text_of(fact), similarity=round(similarity, 4))
    if fact.valid_from is not None:
        candidate["since"] = f"{fact.valid_from:%Y-%m-%d}"
    return candidate


def text_of(fact: Fact) -> str:
    """Return what a fact states: its sentence, or its key and value if that lacks the value."""
    if fact.statement and fact.value.casefold() in fact.statement.casefold():
        return fact.statement
    return f"{fact.key.replace('_', ' ')}: {fact.value}"


def review_request(id_: str, candidates: Sequence[ReviewCandidate]) -> ReviewRequest:
    """Return the request to decide what the fact or turn `id_` replaces, with a sentence for that.

    There is at least one candidate.
    """
    descriptions = []
    for candidate in candidates:
        text = shorten(candidate["memory"], _MAX_TEXT)
        day = candidate.get("since", "")
        if day:
            text = f"{text} ({day})"
        descriptions.append(f"{text} [{candidate['id']}]")
    hint = f"This may replace: {'; '.join(descriptions)}. {_HOW_TO_CONFIRM}"
    return ReviewRequest(id=id_, candidates=list(candidates), hint=hint)


def _likeness(new: Fact, old: Fact) -> float:
    """Return how likely two facts are about the same thing, 0 to 1.

    It is 0 for facts with the same value or about different subjects.
    """
    if _normalized(new.value) and _normalized(new.value) == _normalized(old.value):
        return 0.0
    if not _may_have_one_subject(new, old):
        return 0.0
    new_subject = _subject(new)
    old_subject = _subject(old)
    if not new_subject.topics.isdisjoint(old_subject.topics):
        return 1.0
    return _shared_name(new_subject, old_subject)


def _normalized(text: str) -> str:
    """Return a value in the form in which values are compared."""
    return normalize_name(text) or text.casefold()


def _may_have_one_subject(new: Fact, old: Fact) -> bool:
    """Return whether two facts may be about one person or thing: not if both name different ones.

    A fact without a subject is about the user, or has the subject in its key.
    """
    subjects = {normalize_name(fact.slot.subject) for fact in (new, old) if fact.slot is not None}
    subjects.discard("")
    return len(subjects) <= 1


def _subject(fact: Fact) -> Subject:
    """Return what a fact is about, by its statement, its key and its value."""
    name = ""
    if fact.slot is not None:
        name = f"{fact.slot.subject} {fact.slot.relation}".strip()
    return subject_of(fact.statement, name, fact.value)


def _shared_name(new: Subject, old: Subject) -> float:
    """Return the share of the words of two names that both have; 0 if it is a half or less.

    It is the greatest of all languages.
    """
    best = 0.0
    for language, naming in new.namings.items():
        shared = naming.name & old.namings[language].name
        words = naming.name | old.namings[language].name
        if words:
            best = max(best, len(shared) / len(words))
    return best if best > _MIN_SHARE else 0.0
