"""Rules that propose why two near lessons may contradict each other. Pure.

A rule proposes and never decides: a reader, or the agent, confirms or rejects the pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import product
from typing import Final, NamedTuple

from simplemem.features.lessons.near_pairs import Weights
from simplemem.features.lessons.statements import Clause, Order, Reading

_MIN_DENIED_SHARE: Final = 0.5  # of the weight of what one denies, that the other one affirms
_MIN_NEARNESS_OF_MOVES: Final = 0.3
_MIN_NEARNESS_OF_AMOUNTS: Final = 0.2
_MIN_NEARNESS_OF_EFFECTS: Final = 0.25
_MIN_NEARNESS_OF_CAUSES: Final = 0.25
_VERY_NEAR: Final = 0.45  # so that one shared word is enough
_MIN_SHARED_STEMS: Final = 2
_MAX_NEARNESS_WITHIN_CAUSES: Final = 0.34  # nearer causes are one cause in other words
_MIN_NEARNESS_OF_MEASURED: Final = 0.4  # of the words for what two clauses measure


class Reason(NamedTuple):
    """Why two lessons may contradict each other, and the sentences that show it."""

    rule: str
    text: str  # for a reader
    one_sentence: str
    other_sentence: str


class NearReadings(NamedTuple):
    """Two near lessons, and how near they are."""

    one: Reading
    other: Reading
    nearness: float
    weights: Weights

    def clause_pairs(self) -> Iterator[tuple[Clause, Clause]]:
        """Yield each clause of the first lesson with each of the second that shares a word."""
        for one, other in product(self.one.clauses, self.other.clauses):
            if not one.stems.isdisjoint(other.stems):
                yield one, other


def find_reason(pair: NearReadings) -> Reason | None:
    """Return why two near lessons may contradict each other; None if no rule finds a reason.

    The first rule of `_RULES` that finds one counts. Lessons in two languages, in one without a
    wording, or about two cases of a kind (staging, production) have no reason.
    """
    if pair.one.wording is None or pair.one.wording is not pair.other.wording:
        return None
    if _are_two_cases(pair):
        return None
    for rule in _RULES:
        reason = rule(pair)
        if reason is not None:
            return reason
    return None


def _are_two_cases(pair: NearReadings) -> bool:
    """Return whether each lesson names a case of a kind, and none that the other one names."""
    wording = pair.one.wording
    assert wording is not None
    one_words = _words(pair.one)
    other_words = _words(pair.other)
    for cases in wording.contrasts:
        one_cases = one_words & cases
        other_cases = other_words & cases
        if one_cases and other_cases and one_cases.isdisjoint(other_cases):
            return True
    return False


def _words(reading: Reading) -> set[str]:
    """Return the words of all clauses of a lesson, in small letters."""
    words: set[str] = set()
    for clause in reading.clauses:
        words.update(clause.text.split())
    return words


def _is_denied(pair: NearReadings) -> Reason | None:
    """Propose a pair of which one denies, or says to be over, most of what the other one says."""
    for one, other in pair.clause_pairs():
        if _denies(pair, one, other) and not _denies_too(pair.other, one):
            return _denial(one, one, other)
        if _denies(pair, other, one) and not _denies_too(pair.one, other):
            return _denial(other, one, other)
    return None


def _denial(denying: Clause, one: Clause, other: Clause) -> Reason:
    """Return the reason for a pair of clauses of which `denying` is one."""
    if denying.is_over:
        return Reason("replaced", "one says it is over or replaced", one.sentence, other.sentence)
    return Reason("denied", "one denies what the other says", one.sentence, other.sentence)


def _denies(pair: NearReadings, denying: Clause, affirming: Clause) -> bool:
    """Return whether a clause denies, without a condition, what another one affirms.

    The other one has most of the words, and two that few lessons have; one in a very near pair.
    """
    if not denying.denied or denying.is_conditional or affirming.denied:
        return False
    shared = denying.denied & affirming.stems
    whole_weight = pair.weights.sum_of(denying.denied)
    if pair.weights.sum_of(shared) < _MIN_DENIED_SHARE * whole_weight:
        return False
    min_count = 1 if pair.nearness >= _VERY_NEAR else 2
    return len(pair.weights.distinctive(shared)) >= min_count


def _denies_too(reading: Reading, denying: Clause) -> bool:
    """Return whether a clause of a lesson denies the same as another lesson's clause."""
    return any(len(clause.denied & denying.denied) > 1 for clause in reading.clauses)


def _has_moved(pair: NearReadings) -> Reason | None:
    """Propose a pair of which the newer one says that something changed.

    Lessons of the same time are not proposed, because none of them is the newer one.
    """
    if pair.nearness < _MIN_NEARNESS_OF_MOVES or pair.one.wording is None:
        return None
    if pair.one.lesson.created == pair.other.lesson.created:
        return None

    older, newer = sorted((pair.one, pair.other), key=lambda reading: reading.lesson.created)
    has_moved = pair.one.wording.has_moved
    for clause in newer.clauses:
        shared = pair.weights.distinctive(clause.stems & older.stems)
        if has_moved.search(clause.text) and len(shared) >= _MIN_SHARED_STEMS:
            return _whole_reason(pair, "moved", "the newer one says that something changed")
    return None


def _order_differs(pair: NearReadings) -> Reason | None:
    """Propose a pair that puts two steps in opposite orders."""
    for one, other in product(pair.one.orders, pair.other.orders):
        reversed_other = Order(earlier=other.later, later=other.earlier)
        if _share_steps(one, reversed_other) and not _share_steps(one, other):
            return _whole_reason(pair, "order", "they put the same steps in opposite orders")
    return None


def _share_steps(one: Order, other: Order) -> bool:
    """Return whether the earlier steps of two orders share a word, and the later ones too."""
    share_earlier = not one.earlier.isdisjoint(other.earlier)
    share_later = not one.later.isdisjoint(other.later)
    return share_earlier and share_later


def _is_opposite(pair: NearReadings) -> Reason | None:
    """Propose a pair with clauses about one thing that say opposite things of it."""
    for one, other in pair.clause_pairs():
        for reason in sorted(one.sides.keys() & other.sides.keys()):
            if one.sides[reason] == other.sides[reason]:
                continue
            shared = pair.weights.distinctive(one.stems & other.stems)
            if len(shared) >= _MIN_SHARED_STEMS:
                return Reason("opposite", reason, one.sentence, other.sentence)
    return None


def _amount_differs(pair: NearReadings) -> Reason | None:
    """Propose a pair that gives one thing two amounts of the same unit.

    The words before the numbers say what they measure: ten minutes of a token and five of a clock
    can both hold.
    """
    if pair.nearness < _MIN_NEARNESS_OF_AMOUNTS:
        return None
    for one, other in pair.clause_pairs():
        if one.amounts & other.amounts:
            continue  # the others may be the conditions of the common one
        one_numbers = _single_numbers(one)
        other_numbers = _single_numbers(other)
        for unit in sorted(one_numbers.keys() & other_numbers.keys()):
            is_same = one_numbers[unit] == other_numbers[unit]
            if not is_same and _measure_one_thing(pair, one, other):
                text = "different numbers for the same thing"
                return Reason("amount", text, one.sentence, other.sentence)
    return None


def _measure_one_thing(pair: NearReadings, one: Clause, other: Clause) -> bool:
    """Return whether the amounts of two clauses measure one thing."""
    if not pair.weights.distinctive(one.measured & other.measured):
        return False
    nearness = pair.weights.nearness(one.measured, other.measured)
    return nearness >= _MIN_NEARNESS_OF_MEASURED


def _single_numbers(clause: Clause) -> dict[str, float]:
    """Return the numbers of a clause by their unit, without a unit that has two numbers."""
    # The amounts are a set, so two of one unit have two numbers.
    unit_counts = Counter(amount.unit for amount in clause.amounts)

    numbers: dict[str, float] = {}
    for amount in clause.amounts:
        if unit_counts[amount.unit] == 1:
            numbers[amount.unit] = amount.number
    return numbers


def _effect_differs(pair: NearReadings) -> Reason | None:
    """Propose a pair that says of one thing that it helps, and that it does not.

    A cure of the trouble is no contradiction of it.
    """
    if pair.nearness < _MIN_NEARNESS_OF_EFFECTS:
        return None
    one_effects = _kinds_of_effect(pair.one)
    other_effects = _kinds_of_effect(pair.other)
    if not one_effects or not other_effects or one_effects & other_effects:
        return None
    if _is_cure(pair.one, pair.other) or _is_cure(pair.other, pair.one):
        return None
    return _whole_reason(pair, "effect", "they say different things about its effect")


def _kinds_of_effect(reading: Reading) -> set[str]:
    """Return the effects that a lesson names: "none", "better", "worse". A cure is "better"."""
    kinds: set[str] = set()
    for clause in reading.clauses:
        if clause.effect == "cure":
            kinds.add("better")
        elif clause.effect:
            kinds.add(clause.effect)
    return kinds


def _is_cure(curing: Reading, troubled: Reading) -> bool:
    """Return whether a lesson says what cured a trouble, and is not from a day before it.

    A solution that works is a cure. So is what another lesson says to have fixed a trouble.
    """
    if curing.lesson.created[:10] < troubled.lesson.created[:10]:
        return False
    is_solution = curing.lesson.type == "solution"
    for clause in curing.clauses:
        if clause.effect == "cure" or (clause.effect == "better" and is_solution):
            return True
    return False


def _cause_differs(pair: NearReadings) -> Reason | None:
    """Propose a pair that names two causes of one failure."""
    if pair.nearness < _MIN_NEARNESS_OF_CAUSES:
        return None
    for one, other in product(pair.one.causes, pair.other.causes):
        if len(one.effect & other.effect) < _MIN_SHARED_STEMS:
            continue
        nearness = pair.weights.nearness(one.cause, other.cause)
        if nearness <= _MAX_NEARNESS_WITHIN_CAUSES:
            return _whole_reason(pair, "cause", "they name different causes")
    return None


def _whole_reason(pair: NearReadings, rule: str, text: str) -> Reason:
    """Return a reason that the headlines of both lessons show."""
    return Reason(rule, text, pair.one.lesson.headline, pair.other.lesson.headline)


_RULES: Final[tuple[Callable[[NearReadings], Reason | None], ...]] = (
    _order_differs,
    _effect_differs,
    _is_denied,
    _is_opposite,
    _amount_differs,
    _has_moved,
    _cause_differs,
)
