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
_MIN_COSINE: Final = 0.7  # from which a fact that no rule decided about is a candidate
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
    if not candidates:
        return None
    return review_request(new.id, candidates)


def review_of_doubt(id_: str, doubtful: Iterable[Fact]) -> ReviewRequest | None:
    """Return the request to decide which of some facts the turn `id_` replaces, None without facts.

    The turn puts all of them in doubt.
    """
    candidates = [_candidate_of(fact, 1.0) for fact in doubtful]
    if not candidates:
        return None
    return review_request(id_, candidates)


def review_by_meaning(new: Fact, similar: Iterable[SimilarFact]) -> ReviewRequest | None:
    """Return the request to decide which current facts with a like meaning a new one replaces.

    They are the first three of `similar` whose cosine is 0.7 or more; the request has (1 + cosine)
    / 2 for each, and no hint. Return None if there are none.
    """
    candidates = []
    for fact, cosine in similar:
        if cosine >= _MIN_COSINE:
            similarity = round((1 + cosine) / 2, 4)
            candidate = ReviewCandidate(id=fact.id, memory=fact.statement, similarity=similarity)
            candidates.append(candidate)

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
    facts_by_id = {fact.id: fact for fact in current_facts}
    new_ids = {event["id"] for event in events}
    earlier_facts = [fact for fact in facts_by_id.values() if fact.id not in new_ids]
    similar_by_id = {request["id"]: request["candidates"] for request in by_meaning}

    requests: list[ReviewRequest] = []
    for event in events:
        new = facts_by_id.get(event["id"])
        if new is None or event["event"] not in _STORING_EVENTS:
            continue

        disputed = _disputed_by(event, facts_by_id)
        candidates = [_candidate_of(fact, 1.0) for fact in disputed]
        candidates += candidates_for(new, _facts_to_compare(new, earlier_facts))
        candidates += _with_times(similar_by_id.get(new.id, []), facts_by_id)
        candidates = _without_repeats(candidates, {new.id, *_replaced_ids(event)})
        if candidates:
            request = review_request(new.id, candidates[:_MAX_CANDIDATES])
            requests.append(request)
    return requests


def candidates_for(new: Fact, earlier_facts: Iterable[Fact]) -> list[ReviewCandidate]:
    """Return up to three earlier facts that a new one may replace, the most likely first.

    They are about the same topic of the same person, have the same slot with another value, or
    share most words of their names. `earlier_facts` are those that hold.
    """
    candidates: list[_Candidate] = []
    for fact in earlier_facts:
        likeness = _likeness(new, fact)
        if likeness > 0:
            candidates.append(_Candidate(fact, likeness))

    candidates.sort(key=attrgetter("likeness"), reverse=True)
    best = candidates[:_MAX_CANDIDATES]
    return [_candidate_of(fact, likeness) for fact, likeness in best]


def find_restated(slot: Slot, facts: Iterable[Fact]) -> Fact | None:
    """Return the fact that has the subject and the value of a slot, None if there is none.

    Its relation is the same too, or is about the same topic: "home" and "lives in".
    """
    topics = subject_of("", _name_of(slot), slot.object).topics
    for fact in facts:
        if fact.slot is None:
            continue
        has_same_value = _normalized(fact.value) == _normalized(slot.object)
        has_same_subject = normalize_name(fact.slot.subject) == normalize_name(slot.subject)
        if not has_same_value or not has_same_subject:
            continue

        has_same_relation = fact.slot.relation.casefold() == slot.relation.casefold()
        if has_same_relation or not topics.isdisjoint(_subject_of(fact).topics):
            return fact
    return None


def _candidate_of(fact: Fact, similarity: float) -> ReviewCandidate:
    """Return an earlier fact as a candidate, with since when it holds if that is known."""
    rounded = round(similarity, 4)
    candidate = ReviewCandidate(id=fact.id, memory=text_of(fact), similarity=rounded)
    if fact.valid_from is not None:
        candidate["since"] = f"{fact.valid_from:%Y-%m-%d}"
    return candidate


def text_of(fact: Fact) -> str:
    """Return what a fact states: its sentence, or its key and value if that lacks the value."""
    has_value = fact.value.casefold() in fact.statement.casefold()
    if fact.statement and has_value:
        return fact.statement
    key = fact.key.replace("_", " ")
    return f"{key}: {fact.value}"


def review_request(id_: str, candidates: Sequence[ReviewCandidate]) -> ReviewRequest:
    """Return the request to decide what the fact or turn `id_` replaces, with a sentence for that.

    There is at least one candidate.
    """
    descriptions = []
    for candidate in candidates:
        description = shorten(candidate["memory"], _MAX_TEXT)
        if "since" in candidate:
            description += f" ({candidate['since']})"
        description += f" [{candidate['id']}]"
        descriptions.append(description)

    listed = "; ".join(descriptions)
    hint = f"This may replace: {listed}. {_HOW_TO_CONFIRM}"
    return ReviewRequest(id=id_, candidates=list(candidates), hint=hint)


def _likeness(new: Fact, old: Fact) -> float:
    """Return how likely two facts are about the same thing, 0 to 1.

    It is 0 for facts with the same value or about different subjects.
    """
    new_value = _normalized(new.value)
    has_same_value = bool(new_value) and new_value == _normalized(old.value)
    if has_same_value or not _may_have_one_subject(new, old):
        return 0.0

    new_subject = _subject_of(new)
    old_subject = _subject_of(old)
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
    if new.slot is None or old.slot is None:
        return True
    new_subject = normalize_name(new.slot.subject)
    old_subject = normalize_name(old.slot.subject)
    if not new_subject or not old_subject:
        return True
    return new_subject == old_subject


def _subject_of(fact: Fact) -> Subject:
    """Return what a fact is about, by its statement, its slot and its value."""
    name = ""
    if fact.slot is not None:
        name = _name_of(fact.slot)
    return subject_of(fact.statement, name, fact.value)


def _name_of(slot: Slot) -> str:
    """Return the subject and the relation of a slot as one name, such as "Ruth lives in"."""
    return f"{slot.subject} {slot.relation}".strip()


def _share_of_name(new: Subject, old: Subject) -> float:
    """Return the share of the words of two names that both have; 0 if it is a half or less.

    It is the greatest of all languages.
    """
    best_share = 0.0
    for language, naming in new.namings.items():
        new_words = naming.name
        old_words = old.namings[language].name
        all_words = new_words | old_words
        if all_words:
            share = len(new_words & old_words) / len(all_words)
            best_share = max(best_share, share)

    if best_share <= _MIN_SHARE:
        return 0.0
    return best_share


def _disputed_by(event: FactEvent, facts_by_id: Mapping[str, Fact]) -> list[Fact]:
    """Return the current facts that the new fact of an event puts in doubt."""
    disputed = []
    for reference in event.get("disputes", []):
        fact = facts_by_id.get(reference["id"])
        if fact is not None:
            disputed.append(fact)
    return disputed


def _replaced_ids(event: FactEvent) -> list[str]:
    """Return the ids of the facts that the new fact of an event has replaced already."""
    ids = [reference["id"] for reference in event.get("also_replaced", [])]
    if "previous" in event:
        ids.append(event["previous"]["id"])
    return ids


def _facts_to_compare(new: Fact, facts: Sequence[Fact]) -> Sequence[Fact]:
    """Return the facts with which a new one is compared: all if they are up to 200.

    Otherwise they are the first 200 with the same key.
    """
    if len(facts) <= _MAX_COMPARED:
        return facts
    with_same_key = [fact for fact in facts if fact.key and fact.key == new.key]
    return with_same_key[:_MAX_COMPARED]


def _with_times(
    candidates: Iterable[ReviewCandidate], facts_by_id: Mapping[str, Fact]
) -> list[ReviewCandidate]:
    """Return candidates with since when they hold, without those that do not hold any more."""
    dated_candidates = []
    for candidate in candidates:
        fact = facts_by_id.get(candidate["id"])
        if fact is not None:
            dated_candidate = _candidate_of(fact, candidate["similarity"])
            dated_candidates.append(dated_candidate)
    return dated_candidates


def _without_repeats(
    candidates: Iterable[ReviewCandidate], excluded_ids: Iterable[str]
) -> list[ReviewCandidate]:
    """Return candidates, each once, without those with one of some ids."""
    skipped_ids = set(excluded_ids)
    distinct_candidates = []
    for candidate in candidates:
        id_ = candidate["id"]
        if id_ not in skipped_ids:
            skipped_ids.add(id_)
            distinct_candidates.append(candidate)
    return distinct_candidates
