"""What the words of a new statement say about current ones, by rules.

The rules compare words, slots, polarity and numbers. What no rule decides is added, so two
statements that exclude each other may both be current. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from simplemem.features.facts.reading import Reading, is_number_of_name

_NUMBER: Final = re.compile(r"(?!(?:19|20)\d\d$)\d+(?:[.,:]\d+)*%?")  # not a year


class Verdict(NamedTuple):
    """What becomes of a statement, and by which rule.

    `event` is "ADD", "UPDATE", "NOOP" (it is stated already) or "DELETE". `relation` says what an
    update does: "UPDATES" replaces, "EXTENDS" adds; it is None for other events. `target_index` is
    that of the current statement which is the same, replaced or extended; None if there is none.
    """

    event: str
    relation: str | None = None
    target_index: int | None = None
    rule: str = "rule:new"


_IS_STATED: Final = ("NOOP", None)
_REPLACES: Final = ("UPDATE", "UPDATES")
_EXTENDS: Final = ("UPDATE", "EXTENDS")

_RULES: Final = {
    "same": _IS_STATED,
    "slot": _REPLACES,
    "ended": _REPLACES,
    "polarity": _REPLACES,
    "number": _REPLACES,
    "more": _EXTENDS,
    "less": _IS_STATED,
}
"""The event and the relation that each rule leads to.

The first rule in this order that applies to any current statement decides.
"""


def apply_rules(new: Reading, current: Sequence[Reading]) -> Verdict:
    """Return the verdict on a new statement: ADD if no rule applies to any current one.

    The event is never DELETE. If the deciding rule applies to several statements, the first of them
    is the target.
    """
    rules = [_rule_for(new, old) for old in current]
    for rule, (event, relation) in _RULES.items():
        if rule in rules:
            return Verdict(
                event,
                relation,
                target_index=rules.index(rule),
                rule=f"rule:{rule}",
            )
    return Verdict("ADD")


def _rule_for(new: Reading, old: Reading) -> str | None:
    """Return the name of the rule that applies to a new statement and a current one.

    Return None if no rule applies. The functions below whose names begin with `_rule` do the same
    for some cases.
    """
    if _has_same_words(new, old) and new.is_affirmed == old.is_affirmed:
        return "same"
    if not _are_comparable(new, old):
        return None
    if _has_same_slot(new, old):
        return _rule_for_same_slot(new, old)
    if new.is_affirmed != old.is_affirmed:
        return _rule_for_other_sign(new, old)

    has_both_or_no_slot = (new.slot is None) == (old.slot is None)
    if has_both_or_no_slot and _has_other_number(new, old):
        return "number"
    return _rule_by_words(new, old)


def _are_comparable(new: Reading, old: Reading) -> bool:
    """Return whether both statements state something that can be replaced.

    A plan, what others say and an episode cannot.
    """
    if new.is_hedged or old.is_hedged or not new.words:
        return False
    return not new.is_episode and not old.is_episode


def _has_same_words(new: Reading, old: Reading) -> bool:
    """Return whether two statements say the same, except for their polarity."""
    if new.words:
        return new.words == old.words
    return new.text.casefold() == old.text.casefold()


def _has_same_slot(new: Reading, old: Reading) -> bool:
    """Return whether two statements fill the same slot, whatever the value, with the same limit.

    A statement without a slot has no slot in common with any other.
    """
    new_slot = new.slot
    old_slot = old.slot
    if new_slot is None or old_slot is None:
        return False
    if new.limit != old.limit:
        return False
    if new_slot.subject.casefold() != old_slot.subject.casefold():
        return False
    return new_slot.relation.casefold() == old_slot.relation.casefold()


def _rule_for_same_slot(new: Reading, old: Reading) -> str | None:
    """Return the rule for two statements about the same slot, by its values and the polarity."""
    if new.value == old.value and new.is_affirmed == old.is_affirmed:
        return _rule_by_words(new, old) or "same"
    if new.value == old.value:
        return "ended" if new.has_ended else "polarity"

    if not new.is_affirmed or not old.is_affirmed:
        return None
    if new.value > old.value:
        return "more"
    if new.value < old.value:
        return "less"
    if new.is_one_of_several:
        return None
    return "slot"


def _rule_for_other_sign(new: Reading, old: Reading) -> str | None:
    """Return the rule for two statements of which only one is affirmative."""
    if new.has_ended and _is_within(new.words, old.words):
        return "ended"
    if new.words == old.words:
        return "polarity"
    return None


def _rule_by_words(new: Reading, old: Reading) -> str | None:
    """Return "more" or "less" if one statement has all words of the other, else None.

    "more": `new` has all words of `old` in their order, and others. "less": the reverse, or both
    have the same words. Returns None too if one of them has a limit.
    """
    if new.is_limited or old.is_limited:
        return None
    is_longer = len(new.words) > len(old.words)
    if is_longer and _is_within(old.words, new.words):
        return "more"
    if _is_within(new.words, old.words):
        return "less"
    return None


def _is_within(part: Sequence[str], whole: Sequence[str]) -> bool:
    """Return whether the words of `part` are among those of `whole`, in their order.

    Both must begin with the same word, and `part` must have two words or more.
    """
    if len(part) < 2:
        return False
    if part[:1] != whole[:1]:
        return False
    remaining = iter(whole)  # each search goes on where the previous one ended
    return all(word in remaining for word in part)


def _has_other_number(new: Reading, old: Reading) -> bool:
    """Return whether two statements differ only in one number, which measures something.

    A year and a number that is part of a name measure nothing.
    """
    if len(new.words) != len(old.words):
        return False
    word_pairs = zip(new.words, old.words, strict=True)
    differing_pairs = [pair for pair in word_pairs if pair[0] != pair[1]]
    if len(differing_pairs) != 1:
        return False

    new_number, old_number = differing_pairs[0]
    if not _NUMBER.fullmatch(new_number) or not _NUMBER.fullmatch(old_number):
        return False
    return not is_number_of_name(new.text, new_number)
