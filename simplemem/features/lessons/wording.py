"""How a language denies, replaces, orders and measures things: the words in `wording/`.

One file per language. A language without a file has no wording, and nothing is read in it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).with_name("wording")


@dataclass(frozen=True)
class Opposites:
    """Two patterns of which one clause matches the first and another clause the second."""

    reason: str  # how they are opposite, as a client is told
    one: re.Pattern[str]
    other: re.Pattern[str]


@dataclass(frozen=True)
class Wording:
    """The words and patterns of one language. The file has the same names."""

    code: str  # of the language, as `language_of` returns it: "" for English
    contractions: Mapping[str, str]
    empty: frozenset[str]  # words that name nothing by themselves
    general: Mapping[str, str]  # a word, and the more general one that it also says: "friday"
    clause_end: re.Pattern[str]
    condition: re.Pattern[str]  # begins a clause that says when something holds
    description: re.Pattern[str]  # begins a clause that says which thing is meant
    denies_clause: re.Pattern[str]
    denies_rest: re.Pattern[str]  # of its clause
    is_over: re.Pattern[str]  # the clause says that something ended or was replaced
    has_moved: re.Pattern[str]  # the clause says that something is another way than before
    no_denial: re.Pattern[str]  # what looks like a denial and is none: "not only"
    exception: re.Pattern[str]  # a denial with one holds under a condition
    earlier_first: re.Pattern[str]  # stands behind what comes earlier, before what comes later
    later_first: re.Pattern[str]
    cause: re.Pattern[str]  # stands between an effect and its cause
    effects: Mapping[str, re.Pattern[str]]  # "none", "cure", "better", "worse", in this order
    opposites: tuple[Opposites, ...]
    contrasts: tuple[frozenset[str], ...]  # groups of words that tell two cases apart
    numbers: Mapping[str, float]
    units: Mapping[str, str]
    bounds: re.Pattern[str]  # ends what stands before a number that is no amount
    naming: frozenset[str]  # a number behind such a word is a name

    def normalize(self, text: str) -> str:
        """Return a text on one line in the form that patterns match."""
        plain = " ".join(text.lower().replace("’", "'").replace("*", "").replace("`", "").split())
        for contraction, full in self.contractions.items():
            plain = plain.replace(contraction, full)
        return plain


@cache
def wording_of(language: str) -> Wording | None:
    """Return the wording of a language, "" for English; None if there is no file for it."""
    file = _FOLDER / f"{language or 'en'}.toml"
    if not file.is_file():
        return None
    return _read_wording(language, tomllib.loads(file.read_text(encoding="utf-8")))


def _read_wording(code: str, data: Mapping[str, Any]) -> Wording:
    """Return the wording in the data of a file."""
    general: dict[str, str] = {}
    for general_word, words in data["general"].items():
        general |= dict.fromkeys(words.split(), general_word)

    opposites: list[Opposites] = []
    for row in data["opposites"]:
        pair = Opposites(row["reason"], re.compile(row["one"]), re.compile(row["other"]))
        opposites.append(pair)

    denial = data["denial"]
    return Wording(
        code=code,
        contractions=data["contractions"],
        empty=frozenset(data["empty"].split()),
        general=general,
        clause_end=re.compile(data["clause_end"]),
        condition=re.compile(data["condition"]),
        description=re.compile(data["description"]),
        denies_clause=re.compile(denial["clause"]),
        denies_rest=re.compile(denial["after"]),
        is_over=re.compile(denial["over"]),
        has_moved=re.compile(denial["moved"]),
        no_denial=re.compile(denial["no_denial"]),
        exception=re.compile(denial["exception"]),
        earlier_first=re.compile(data["order"]["earlier_first"]),
        later_first=re.compile(data["order"]["later_first"]),
        cause=re.compile(data["cause"]["connectors"]),
        effects={name: re.compile(pattern) for name, pattern in data["effects"].items()},
        opposites=tuple(opposites),
        contrasts=tuple(frozenset(words.split()) for words in data["contrasts"].values()),
        numbers=data["numbers"]["words"],
        units=data["numbers"]["units"],
        bounds=re.compile(data["numbers"]["bounds"]),
        naming=frozenset(data["numbers"]["naming"].split()),
    )
