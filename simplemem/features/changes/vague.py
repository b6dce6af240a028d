"""Read what a statement says became outdated, where it names neither the thing nor its value.

People correct themselves ("no sorry, it's the 6th"), move an appointment ("they pushed it a week"),
tell that something ended ("the Astra's gone") or that a person died. Such a statement says little
of what it is about. `mentions.py` finds the earlier facts that it may be about. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from simplemem.features.changes.cues import CueKind, Cues, language_of
from simplemem.features.changes.statement_words import (
    amounts_in,
    beginning_of,
    measured_in,
    naming_words_in,
    numbers_in,
    pairs_in,
)


@dataclass(frozen=True)
class VagueChange:
    """What a statement says became outdated, without saying of what exactly.

    The kind "measured" means that only numbers tell it, as in "TSH at 3.1".
    """

    kind: CueKind | Literal["measured"]
    words: frozenset[str] = frozenset()  # the stems of words that may name it
    numbers: frozenset[str] = frozenset()
    measured: frozenset[tuple[str, str]] = frozenset()  # the stem of a word, and its number
    amounts: frozenset[int] = frozenset()  # of a thousand or more
    denied: frozenset[str] = frozenset()  # numbers that are wrong, as in "from 7 and not from 8"


@lru_cache(maxsize=5_000)
def read_vague_change(statement: str) -> VagueChange | None:
    """Return what a statement says became outdated, None if it says no such thing.

    A question, a plan, a condition and hearsay say nothing of the kind. Only the first 400
    characters are read.
    """
    text = beginning_of(statement)
    cues = language_of(text)
    change = _read_by_cue(text, cues)
    if change is None and cues.hedged.search(text) is None:
        change = _read_by_numbers(text, cues)
    return change


def _read_by_cue(text: str, cues: Cues) -> VagueChange | None:
    """Return the change that the first cue in a text tells, None if there is none.

    A cue in a hedged clause tells nothing, unless it is a correction.
    """
    for kind, pattern in cues.kinds.items():
        match = pattern.search(text)
        if match is None:
            continue
        clause = _clause_of(text, match, cues)
        if kind != "correction" and cues.hedged.search(clause):
            continue

        if kind == "home":
            words = cues.home_words
        else:
            words = naming_words_in(clause, cues) or naming_words_in(text, cues)
        return VagueChange(
            kind=kind,
            words=words,
            numbers=numbers_in(text),
            measured=pairs_in(text),
            amounts=amounts_in(text),
            denied=_denied_numbers(text, cues),
        )
    return None


def _read_by_numbers(text: str, cues: Cues) -> VagueChange | None:
    """Return the change that only the numbers of a text tell, None if it has no such numbers.

    Such a number is denied beside the right one, stands behind a word, or is an amount.
    """
    numbers = numbers_in(text)
    denied = _denied_numbers(text, cues)
    if denied and numbers != denied:
        words = naming_words_in(text, cues)
        return VagueChange("measured", words=words, numbers=numbers, denied=denied)

    measured = measured_in(text)
    amounts = amounts_in(text)
    if not measured and not amounts:
        return None
    return VagueChange("measured", measured=measured, amounts=amounts)


def _denied_numbers(text: str, cues: Cues) -> frozenset[str]:
    """Return the numbers that a text says are wrong."""
    return frozenset(cues.denied.findall(text))


def _clause_of(text: str, match: re.Match[str], cues: Cues) -> str:
    """Return the part of a text with a match, between words such as "and"."""
    start = 0
    for joint in cues.joint.finditer(text, 0, match.start()):
        start = joint.end()
    end = len(text)
    next_joint = cues.joint.search(text, match.end())
    if next_joint is not None:
        end = next_joint.start()
    return text[start:end]
