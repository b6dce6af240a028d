"""Entries that cannot both be right, or say the same with another confidence, and which of two would win. Pure.

Three rules, each pair labelled with its own (capabilities.md §3.5): *slot*, one subject with two values; *polarity*,
nearly the same words once affirmed and once denied; *duplicate?*, alike but of different confidence. Which of them is true,
only a reader can say.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal

from simplemem.kinds.learned.entries import Entry
from simplemem.kinds.learned.likeness import Likeness
from simplemem.kinds.learned.slots import Statement, deny, differ, statements
from simplemem.search.alike import disagree

Rule = Literal["slot", "polarity", "duplicate?"]
RULES: Final[tuple[Rule, ...]] = ("slot", "polarity", "duplicate?")
_MOST_ALIKE: Final = 40  # sentences of one frame or subject: more are a form that is filled in again and again
_MOST_COMMON: Final = 60  # claims a word may be in and still lead from one to another


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two entries that disagree: by which rule, and the words of each that do. `similarity` is theirs as a whole."""

    rule: Rule
    one: Entry
    other: Entry
    said: str
    instead: str
    similarity: float
    about: str = ""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A contradiction with the entry that would win, and why."""

    contradiction: Contradiction
    winner: Entry
    loser: Entry
    why: str


def contradictions(
    entries: Sequence[Entry],
    likeness: Likeness,
    *,
    threshold: float = 0.85,
    least_delta: float = 0.1,
    same_type_only: bool = False,
) -> list[Contradiction]:
    """Every pair that disagrees, told once by the strongest rule. What is superseded, or says itself that it supersedes or
    contradicts the other, takes no part."""
    found: dict[tuple[int, int], Contradiction] = {}
    standing = [k for k, entry in enumerate(entries) if not entry.is_superseded]

    def is_asked(one: int, other: int) -> bool:
        return not same_type_only or entries[one].type == entries[other].type

    for rule, one, other, a, b, about in _by_sentences(entries, standing):
        pair = (one, other)
        if pair not in found and is_asked(one, other) and not _are_settled(entries[one], entries[other]):
            found[pair] = Contradiction(rule, entries[one], entries[other], a, b, 0.0, about)
    wanted = set(standing)
    for one, other, score in likeness.pairs(threshold):
        first, second = entries[one], entries[other]
        if (one, other) in found or one not in wanted or other not in wanted or not is_asked(one, other):
            continue
        if _differ_in_confidence(first, second, least_delta) and not _are_linked(first, second):
            told = _told(first), _told(second)
            found[one, other] = Contradiction("duplicate?", first, second, *told, score)
    told_all = []
    for (one, other), each in found.items():
        if each.rule != "duplicate?":
            score = round(max(0.0, min(1.0, likeness.to(one)[other])), 4)
            each = Contradiction(each.rule, each.one, each.other, each.said, each.instead, score, each.about)
        told_all.append(each)
    told_all.sort(key=lambda each: (RULES.index(each.rule), -each.similarity, each.one.name, each.other.name))
    return told_all


def _differ_in_confidence(one: Entry, other: Entry, least: float) -> bool:
    if one.confidence is None or other.confidence is None:
        return False
    return abs(one.confidence - other.confidence) >= least - 1e-9


def _told(entry: Entry) -> str:
    return f"{entry.headline} (confidence {entry.confidence:g})"


def _are_linked(one: Entry, other: Entry) -> bool:
    return _links(one, other) or _links(other, one)


def _links(one: Entry, other: Entry) -> bool:
    return any(_means(tie.target, other) for tie in one.ties)


def _are_settled(one: Entry, other: Entry) -> bool:
    """Whether one says of the other that it supersedes or contradicts it."""
    said = [
        tie.relationship.casefold() for a, b in ((one, other), (other, one)) for tie in a.ties if _means(tie.target, b)
    ]
    return any(word.startswith(("supersed", "contradict", "replace")) for word in said)


def _means(target: str, entry: Entry) -> bool:
    wanted = target.removesuffix(".md").casefold()
    name = entry.name.casefold()
    return wanted in (name, name.rsplit("/", 1)[-1], entry.id.casefold())


# -- sentence by sentence


def _by_sentences(entries: Sequence[Entry], standing: Sequence[int]) -> Iterator[tuple[Rule, int, int, str, str, str]]:
    said = [(k, statement) for k in standing for statement in statements(entries[k].text)]
    # What a note is called tells two subjects apart; an entry is called by what it says.
    abouts = {k: "" if entries[k].is_knowledge else entries[k].name for k in standing}
    yield from _of_one_subject(said)
    for (one, a), (other, b) in _of_one_frame(said):
        if disagree(a.sentence, b.sentence, abouts[one], abouts[other]):
            rule: Rule = "polarity" if a.sentence.values == b.sentence.values else "slot"
            yield rule, *_in_order(one, other, a.sentence.text, b.sentence.text), " ".join(a.sentence.frame)
    for (one, a), (other, b) in _of_one_claim(said):
        if deny(a, b):
            yield (
                "polarity",
                *_in_order(one, other, a.sentence.text, b.sentence.text),
                " ".join(sorted(a.claim & b.claim)),
            )


def _of_one_subject(said: Sequence[tuple[int, Statement]]) -> Iterator[tuple[Rule, int, int, str, str, str]]:
    groups: dict[frozenset[str], list[tuple[int, Statement]]] = defaultdict(list)
    for number, statement in said:
        if statement.slot is not None:
            groups[statement.slot.subject].append((number, statement))
    for subject, group in groups.items():
        if len(group) > _MOST_ALIKE:
            continue
        for (one, a), (other, b) in combinations(group, 2):
            if one != other and a.slot is not None and b.slot is not None and differ(a.slot, b.slot):
                about = " ".join(sorted(word.rstrip(":") for word in subject))
                yield "slot", *_in_order(one, other, a.sentence.text, b.sentence.text), about


Pair = tuple[tuple[int, Statement], tuple[int, Statement]]


def _of_one_frame(said: Sequence[tuple[int, Statement]]) -> Iterator[Pair]:
    return _pairs_by(said, lambda statement: statement.sentence.frame)


def _pairs_by(said: Sequence[tuple[int, Statement]], key: Callable[[Statement], Collection[str]]) -> Iterator[Pair]:
    groups: dict[Collection[str], list[tuple[int, Statement]]] = defaultdict(list)
    for number, statement in said:
        groups[key(statement)].append((number, statement))
    for group in groups.values():
        if 1 < len(group) <= _MOST_ALIKE:
            yield from (pair for pair in combinations(group, 2) if pair[0][0] != pair[1][0])


def _of_one_claim(said: Sequence[tuple[int, Statement]]) -> Iterator[Pair]:
    """Statements that affirm and statements that deny, where they share their rarest words."""
    having: dict[str, list[int]] = defaultdict(list)
    for place, (_, statement) in enumerate(said):
        if statement.denied:
            for word in statement.claim:
                having[word].append(place)
    for number, statement in said:
        if statement.denied or not statement.claim:
            continue
        # A pair that overlaps enough shares all but a few words: one of the rarest of them is enough to look under.
        rarest = sorted(statement.claim, key=lambda word: (len(having.get(word, ())), word))
        fair = [word for word in rarest if having.get(word)][: max(2, len(rarest) // 4 + 1)]
        places = {place for word in fair if len(having[word]) <= _MOST_COMMON for place in having[word]}
        yield from ((said[place], (number, statement)) for place in sorted(places) if said[place][0] != number)


def _in_order(one: int, other: int, a: str, b: str) -> tuple[int, int, str, str]:
    return (one, other, a, b) if one < other else (other, one, b, a)


# -- who wins


def verdicts(found: Sequence[Contradiction], is_by_hand: Callable[[Entry], bool]) -> list[Verdict]:
    """For each contradiction who wins, in this order: edited by a person, verified, newer, surer. An entry that lost takes
    no part any more, and what nothing decides between is left out."""
    lost: set[str] = set()
    decided = []
    for each in found:
        if each.one.id in lost or each.other.id in lost:
            continue
        verdict = _verdict(each, is_by_hand)
        if verdict is not None:
            lost.add(verdict.loser.id)
            decided.append(verdict)
    return decided


def _verdict(found: Contradiction, is_by_hand: Callable[[Entry], bool]) -> Verdict | None:
    one, other = found.one, found.other
    confidences = (one.confidence or 0.0, other.confidence or 0.0)
    for why, a, b in (
        ("a person edited it", is_by_hand(one), is_by_hand(other)),
        ("it is verified", one.verified, other.verified),
        ("it is newer", _moment(one), _moment(other)),
        ("it has the higher confidence", *confidences),
    ):
        if a != b:
            winner, loser = (one, other) if a > b else (other, one)  # type: ignore[operator]
            return Verdict(found, winner, loser, why)
    return None


def _moment(entry: Entry) -> str:
    """When it was last said, to the second and comparable as text."""
    return entry.modified[:19].replace(" ", "T")
