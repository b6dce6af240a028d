"""Which earlier facts a new one may replace, for the agent or the user to decide. Pure.

Two facts of one person may be about the same thing without a rule that can tell. Nothing is
superseded here: the agent sees the earlier fact and its id, and says so with `replaces`.
Conversations and statements both ask here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final, NamedTuple

from simplemem.features.answers import FactEvent, ReviewCandidate, ReviewRequest
from simplemem.features.changes import Subject, subject_of
from simplemem.features.fact import Fact, Slot, normalize_name
from simplemem.features.facts.comparing import SimilarFact
from simplemem.note.words import shorten

_MAX_CANDIDATES: Final = 3  # of one new fact
_MAX_COMPARED: Final = 200  # current facts that are all compared with a new one
_MIN_SIMILARITY: Final = 0.7  # cosine from which a fact that no rule decided about is a candidate
_MIN_SHARE: Final = 0.5  # of the words of two names; a candidate has more in common
_MAX_TEXT: Final = 200  # characters of a fact in a sentence for the agent
_HOW_TO_CONFIRM: Final = "If so, pass the new fact in facts, with replaces set to that id."
_STORING_EVENTS: Final = ("ADD", "UPDATE")


class _Candidate(NamedTuple):
    """An earlier fact, and how likely it is about the same thing, 0 to 1."""

    fact: Fact
    likeness: float


def review_by_name(new: Fact, earlier_facts: Iterable[Fact]) -> ReviewRequest | None:
    """Return the request to decide which earlier facts a new one replaces, None without candidates.

    The candidates are those of `candidates_for`.
    """
    candidates = candidates_for(new, earlier_facts)
    return review_request(new.id, candidates) if candidates else None


def review_of_doubt(id_: str, doubtful: Iterable[Fact]) -> ReviewRequest | None:
    """Return the request to decide which of some facts the turn `id_` replaces.

    The turn puts all of them in doubt. Return None if there are none.
    """
    candidates = [_candidate_of(fact, 1.0) for fact in doubtful]
    return review_request(id_, candidates) if candidates else None


def review_by_meaning(new: Fact, similar: Iterable[SimilarFact]) -> ReviewRequest | None:
    """Return the request to decide which current facts with a like meaning a new one replaces.

    They are up to three whose cosine is 0.7 or more, in the order of `similar`. Return None if
    there are none.
    """
    candidates = [
        ReviewCandidate(
            id=fact.id,
            memory=fact.statement,
            similarity=round((1 + similarity) / 2, 4),
        )
        for fact, similarity in similar
        if similarity >= _MIN_SIMILARITY
    ]
    if not candidates:
        return None
    return ReviewRequest(id=new.id, candidates=candidates[:_MAX_CANDIDATES])


def reviews_of_events(
    events: Sequence[FactEvent],
    by_meaning: Iterable[ReviewRequest],
    current_facts: Iterable[Fact],
) -> list[ReviewRequest]:
    """Return the requests to decide what the facts that one call stored replace.

    `events` say what the call stored. The candidates of a new fact are the current facts that it
    puts in doubt, those about the same thing, and those that `by_meaning` has for it: up to three,
    each once. A fact without a candidate has no request.
    """
    facts = {fact.id: fact for fact in current_facts}
    new_ids = {event["id"] for event in events}
    earlier_facts = [fact for fact in facts.values() if fact.id not in new_ids]
    similar = {request["id"]: request["candidates"] for request in by_meaning}

    requests: list[ReviewRequest] = []
    for event in events:
        new = facts.get(event["id"])
        if new is None or event["event"] not in _STORING_EVENTS:
            continue
        candidates = [_candidate_of(fact, 1.0) for fact in _disputed_by(event, facts)]
        candidates += candidates_for(new, _facts_to_compare(new, earlier_facts))
        candidates += _with_times(similar.get(new.id, []), facts)
        candidates = _without_repeats(candidates, {new.id, *_replaced_ids(event)})
        if candidates:
            requests.append(review_request(new.id, candidates[:_MAX_CANDIDATES]))
    return requests


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
    return [_candidate_of(fact, likeness) for fact, likeness in found[:_MAX_CANDIDATES]]


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


def _candidate_of(fact: Fact, similarity: float) -> ReviewCandidate:
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
    return _share_of_name(new_subject, old_subject)


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


def _share_of_name(new: Subject, old: Subject) -> float:
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


def _disputed_by(event: FactEvent, facts: Mapping[str, Fact]) -> list[Fact]:
    """Return the current facts that the new fact of an event puts in doubt."""
    ids = [reference["id"] for reference in event.get("disputes", [])]
    return [facts[id_] for id_ in ids if id_ in facts]


def _replaced_ids(event: FactEvent) -> list[str]:
    """Return the ids of the facts that the new fact of an event has replaced already."""
    ids = [reference["id"] for reference in event.get("also_replaced", [])]
    if "previous" in event:
        ids.append(event["previous"]["id"])
    return ids


def _facts_to_compare(new: Fact, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts with which a new one is compared: all if they are up to 200.

    Otherwise they are those with the same relation.
    """
    if len(facts) <= _MAX_COMPARED:
        return facts
    return [fact for fact in facts if fact.key and fact.key == new.key][:_MAX_COMPARED]


def _with_times(
    candidates: Iterable[ReviewCandidate], facts: Mapping[str, Fact]
) -> list[ReviewCandidate]:
    """Return candidates with since when they hold, without those that do not hold any more."""
    return [
        _candidate_of(facts[candidate["id"]], candidate["similarity"])
        for candidate in candidates
        if candidate["id"] in facts
    ]


def _without_repeats(
    candidates: Iterable[ReviewCandidate], excluded_ids: Iterable[str]
) -> list[ReviewCandidate]:
    """Return candidates, each once, without those with one of some ids."""
    ids = set(excluded_ids)
    different = []
    for candidate in candidates:
        if candidate["id"] not in ids:
            ids.add(candidate["id"])
            different.append(candidate)
    return different
