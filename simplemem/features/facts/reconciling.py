"""What a new statement does to those that are known, by rules.

The rules compare words, slots, polarity and numbers. What no rule decides is added, so two statements that exclude
each other may both be current. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from simplemem.features.facts.reading import Reading, is_number_of_name

_NUMBER: Final = re.compile(r"(?!(?:19|20)\d\d$)\d+(?:[.,:]\d+)*%?")  # not a year


class Verdict(NamedTuple):
    """What becomes of a statement, the index of the known one that it is about, and the rule."""

    event: str
    relation: str | None = None
    place: int | None = None
    rule: str = "rule:new"


_KNOWN: Final = ("NOOP", None)
_REPLACES: Final = ("UPDATE", "UPDATES")
_EXTENDS: Final = ("UPDATE", "EXTENDS")

_RULES: Final = {
    "same": _KNOWN,
    "slot": _REPLACES,
    "ended": _REPLACES,
    "polarity": _REPLACES,
    "number": _REPLACES,
    "more": _EXTENDS,
    "less": _KNOWN,
}
"""What each rule says. The first one in this order that applies to a known statement decides."""


def reconcile(new: Reading, known: Sequence[Reading]) -> Verdict:
    """Return what a new statement does among current ones."""
    rules = [_rule_for(new, old) for old in known]
    for rule, (event, relation) in _RULES.items():
        if rule in rules:
            return Verdict(event, relation, rules.index(rule), f"rule:{rule}")
    return Verdict("ADD")


def _rule_for(new: Reading, old: Reading) -> str | None:
    """Return the rule that applies to a new statement and a current one, None if there is none."""
    if _has_same_words(new, old) and new.sign == old.sign:
        return "same"
    is_vague = new.hedged or old.hedged or not new.words
    if is_vague or new.episode or old.episode:
        return None
    if _has_same_slot(new, old):
        return _rule_for_same_slot(new, old)
    if new.sign != old.sign:
        return _rule_for_other_sign(new, old)

    is_comparable = (new.slot is None) == (old.slot is None)
    if is_comparable and _has_other_number(new, old):
        return "number"
    return _rule_by_words(new, old)


def _has_same_words(new: Reading, old: Reading) -> bool:
    if new.words:
        return new.words == old.words
    return new.text.casefold() == old.text.casefold()


def _has_same_slot(new: Reading, old: Reading) -> bool:
    """Return whether two statements fill the same slot under the same condition."""
    if new.slot is None or old.slot is None or new.limit != old.limit:
        return False
    is_same_subject = new.slot.subject.casefold() == old.slot.subject.casefold()
    return is_same_subject and new.slot.relation.casefold() == old.slot.relation.casefold()


def _rule_for_same_slot(new: Reading, old: Reading) -> str | None:
    if new.value == old.value:
        if new.sign == old.sign:
            return _rule_by_words(new, old) or "same"
        return "ended" if new.ended else "polarity"

    if not (new.sign and old.sign):
        return None
    if new.value > old.value:
        return "more"
    if new.value < old.value:
        return "less"
    return None if new.one_of_several else "slot"


def _rule_for_other_sign(new: Reading, old: Reading) -> str | None:
    """Return the rule for two statements of which only one is affirmative."""
    if new.ended and _is_within(new.words, old.words):
        return "ended"
    return "polarity" if new.words == old.words else None


def _rule_by_words(new: Reading, old: Reading) -> str | None:
    """Return the rule for a statement that has more words than another, or fewer of them."""
    if new.limited or old.limited:
        return None
    if len(new.words) > len(old.words) and _is_within(old.words, new.words):
        return "more"
    return "less" if _is_within(new.words, old.words) else None


def _is_within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Return whether words are among others in their order, and both begin alike."""
    if len(part) < 2 or part[:1] != whole[:1]:
        return False
    rest = iter(whole)
    return all(word in rest for word in part)


def _has_other_number(new: Reading, old: Reading) -> bool:
    """Return whether two statements differ only in one number, which measures something."""
    if len(new.words) != len(old.words):
        return False
    differing = [words for words in zip(new.words, old.words, strict=True) if words[0] != words[1]]
    if len(differing) != 1:
        return False
    new_number, old_number = differing[0]
    if not (_NUMBER.fullmatch(new_number) and _NUMBER.fullmatch(old_number)):
        return False
    return not is_number_of_name(new.text, new_number)
