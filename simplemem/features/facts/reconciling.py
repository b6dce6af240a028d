"""What a new statement does to those that are known, by rules: the same words, slots, polarity, one other number, more
words. What no rule decides is added: two statements that both hold are the honest failure. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from simplemem.features.facts.reading import Reading, names_numbers

_NUMBER: Final = re.compile(r"(?!(?:19|20)\d\d$)\d+(?:[.,:]\d+)*%?")  # a year is none


class Verdict(NamedTuple):
    """What becomes of a statement, to which of the known, and by which rule."""

    event: str
    relation: str | None = None
    place: int | None = None
    rule: str = "rule:new"


_SAID, _OTHER = ("NOOP", None), ("UPDATE", "UPDATES")
_RULES: Final = {  # the first that applies to one of the known decides
    "same": _SAID, "slot": _OTHER, "ended": _OTHER, "polarity": _OTHER, "number": _OTHER, "more": ("UPDATE", "EXTENDS"),
    "less": _SAID,
}  # fmt: skip


def reconcile(new: Reading, known: Sequence[Reading]) -> Verdict:
    """What a new statement does among those that hold."""
    rules = [_rule(new, old) for old in known]
    rule = next((each for each in _RULES if each in rules), None)
    return (
        Verdict("ADD")
        if rule is None
        else Verdict(*_RULES[rule], rules.index(rule), f"rule:{rule}")
    )


def _rule(new: Reading, old: Reading) -> str | None:
    """The rule for a new statement and one that holds, None where there is none."""
    is_same = new.words == old.words if new.words else new.text.casefold() == old.text.casefold()
    if is_same and new.sign == old.sign:
        return "same"
    if new.hedged or old.hedged or new.episode or old.episode or not new.words:
        return None
    if _is_one_slot(new, old):
        if new.value == old.value:
            return (
                _by_words(new, old) or "same"
                if new.sign == old.sign
                else "ended"
                if new.ended
                else "polarity"
            )
        if not (new.sign and old.sign):
            return None
        other = None if new.one_of_several else "slot"
        return "more" if new.value > old.value else "less" if new.value < old.value else other
    if new.sign != old.sign:
        is_over = new.ended and _is_within(new.words, old.words)
        return "ended" if is_over else "polarity" if new.words == old.words else None
    has_other_number = (new.slot is None) == (old.slot is None) and _has_other_number(new, old)
    return "number" if has_other_number else _by_words(new, old)


def _is_one_slot(new: Reading, old: Reading) -> bool:
    keys = [tuple(map(str.casefold, each.slot[:2])) for each in (new, old) if each.slot]
    return len(keys) == 2 and keys[0] == keys[1] and new.limit == old.limit


def _by_words(new: Reading, old: Reading) -> str | None:
    """More words, or fewer of them, of one that says the same."""
    if new.limited or old.limited:
        return None
    if len(new.words) > len(old.words) and _is_within(old.words, new.words):
        return "more"
    return "less" if _is_within(new.words, old.words) else None


def _is_within(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether all words stand among others in their order, and both begin alike."""
    rest = iter(many)
    return len(few) > 1 and few[:1] == many[:1] and all(word in rest for word in few)


def _has_other_number(new: Reading, old: Reading) -> bool:
    """Whether two statements differ in one number, which measures something."""
    if len(new.words) != len(old.words):
        return False
    differ = [pair for pair in zip(new.words, old.words, strict=True) if pair[0] != pair[1]]
    is_number = len(differ) == 1 and all(map(_NUMBER.fullmatch, differ[0]))
    return is_number and not names_numbers(new.text, differ[0][0])
