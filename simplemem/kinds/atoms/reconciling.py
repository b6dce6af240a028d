"""What a new statement does to those that are known, by rules: the same words, slots, polarity, one other number, more
words. What no rule decides is added: two statements that both hold are the honest failure. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from simplemem.kinds.atoms.reading import Reading, names_numbers

_NUMBER: Final = re.compile(r"\d+(?:[.,:]\d+)*%?")
_YEAR: Final = re.compile(r"(?:19|20)\d\d")


class Verdict(NamedTuple):
    """What becomes of a statement, to which of the known, and by which rule."""

    event: str
    relation: str | None = None
    place: int | None = None
    rule: str = "rule:new"


_ORDER: Final = ("rule:same", "rule:slot", "rule:ended", "rule:polarity", "rule:number", "rule:more", "rule:less")


def reconcile(new: Reading, known: Sequence[Reading]) -> Verdict:
    """What a new statement does among those that hold."""
    found = [verdict for place, old in enumerate(known) if (verdict := _judge(new, old, place)) is not None]
    return min(found, key=lambda verdict: _ORDER.index(verdict.rule), default=Verdict("ADD"))


def _judge(new: Reading, old: Reading, place: int) -> Verdict | None:
    """What a new statement does to one that holds, None for nothing."""

    def update(rule: str) -> Verdict:
        return Verdict("UPDATE", "UPDATES", place, rule)

    is_same = new.words == old.words if new.words else new.text.casefold() == old.text.casefold()
    if is_same and new.sign == old.sign:
        return Verdict("NOOP", None, place, "rule:same")
    if new.hedged or old.hedged or new.episode or old.episode or not new.words:
        return None
    if new.slot and old.slot and _is_one_slot(new, old):
        if new.value == old.value:
            if new.sign != old.sign:
                return update("rule:ended" if new.ended else "rule:polarity")
            return _by_words(new, old, place) or Verdict("NOOP", None, place, "rule:same")
        if new.sign and old.sign:
            if new.value > old.value:
                return Verdict("UPDATE", "EXTENDS", place, "rule:more")
            if new.value < old.value:
                return Verdict("NOOP", None, place, "rule:less")
            return None if new.one_of_several else update("rule:slot")
        return None
    if new.sign != old.sign:
        is_over = new.ended and _is_within(new.words, old.words)
        return update("rule:ended" if is_over else "rule:polarity") if is_over or new.words == old.words else None
    if (new.slot is None) == (old.slot is None) and _has_other_number(new, old):
        return update("rule:number")
    return _by_words(new, old, place)


def _is_one_slot(new: Reading, old: Reading) -> bool:
    keys = [tuple(map(str.casefold, each.slot[:2])) for each in (new, old) if each.slot]
    return len(keys) == 2 and keys[0] == keys[1] and new.limit == old.limit


def _by_words(new: Reading, old: Reading, place: int) -> Verdict | None:
    """More words, or fewer of them, of one that says the same."""
    if new.sign != old.sign or new.limited or old.limited:
        return None
    if len(new.words) > len(old.words) and _is_within(old.words, new.words):
        return Verdict("UPDATE", "EXTENDS", place, "rule:more")
    return Verdict("NOOP", None, place, "rule:less") if _is_within(new.words, old.words) else None


def _is_within(few: Sequence[str], many: Sequence[str]) -> bool:
    """Whether all words stand among others in their order, and both begin alike; numbers are not left out."""
    rest = iter(many)
    return len(few) > 1 and few[:1] == many[:1] and all(word in rest for word in few)


def _has_other_number(new: Reading, old: Reading) -> bool:
    """Whether two statements differ in one number, which measures something."""
    if len(new.words) != len(old.words):
        return False
    differ = [at for at, (one, other) in enumerate(zip(new.words, old.words, strict=True)) if one != other]
    if len(differ) != 1:
        return False
    at = differ[0]
    numbers = new.words[at], old.words[at]
    if not all(map(_NUMBER.fullmatch, numbers)) or any(map(_YEAR.fullmatch, numbers)):
        return False
    return not names_numbers(new.text, new.words[at])
