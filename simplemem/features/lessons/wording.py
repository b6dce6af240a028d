"""How a language denies, replaces, orders and measures things: the words in `wording/`.

One file per language. A language without a file has no wording, and nothing is read in it.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

_FOLDER: Final = Path(__file__).with_name("wording")


@dataclass(frozen=True)
class Opposites:
    """Patterns for two opposite things, of which a clause matches one."""

    reason: str  # the opposition in words, for a reader
    one: re.Pattern[str]
    other: re.Pattern[str]


@dataclass(frozen=True)
class Wording:
    """The words and patterns of one language.

    A pattern matches text in the form of `normalize`. Most fields have the name of a key in the
    file of the language; `_read_wording` lists the keys.
    """

    code: str  # of the language, as `language_of` returns it: "" for English
    contractions: Mapping[str, str]  # the full form of each: "isn't" is "is not"
    empty: frozenset[str]  # words that name nothing by themselves
    general: Mapping[str, str]  # the more general word that a word includes
    clause_end: re.Pattern[str]
    condition: re.Pattern[str]  # begins a clause that says when something holds
    description: re.Pattern[str]  # begins a clause that says which thing is meant
    denies_clause: re.Pattern[str]  # denies the whole clause that contains it
    denies_rest: re.Pattern[str]  # denies what follows it in its clause
    is_over: re.Pattern[str]  # the clause says that something ended or was replaced
    has_moved: re.Pattern[str]  # the clause says that something is not as it was before
    no_denial: re.Pattern[str]  # resembles a denial and is none: "not only"
    exception: re.Pattern[str]  # limits a denial to some conditions: "unless"
    earlier_first: re.Pattern[str]  # stands between an earlier step and a later one
    later_first: re.Pattern[str]  # stands between a later step and an earlier one
    cause: re.Pattern[str]  # stands between an effect and its cause
    effects: Mapping[str, re.Pattern[str]]  # "none", "cure", "better", "worse", in this order
    opposites: tuple[Opposites, ...]
    contrasts: tuple[frozenset[str], ...]  # words for cases of one kind: staging, production
    numbers: Mapping[str, float]  # the value of each numeral
    units: Mapping[str, str]  # the usual form of each unit
    bounds: re.Pattern[str]  # at the end of a text, the number that follows is a limit
    naming: frozenset[str]  # a number that follows such a word is a name

    def normalize(self, text: str) -> str:
        """Return a text on one line in the form that patterns match."""
        unmarked = text.lower().replace("*", "").replace("`", "")
        normalized = " ".join(unmarked.replace("’", "'").split())
        for contraction, full_form in self.contractions.items():
            normalized = normalized.replace(contraction, full_form)
        return normalized


@cache
def wording_of(language: str) -> Wording | None:
    """Return the wording of a language, "" for English; None if there is no file for it."""
    file = _FOLDER / f"{language or 'en'}.toml"
    if not file.is_file():
        return None
    data = tomllib.loads(file.read_text(encoding="utf-8"))
    return _read_wording(language, data)


def _read_wording(code: str, data: Mapping[str, Any]) -> Wording:
    """Return the wording in the data of a file. Raises KeyError if a key is missing."""
    denial = data["denial"]
    order = data["order"]
    numbers = data["numbers"]

    effects: dict[str, re.Pattern[str]] = {}
    for name, pattern in data["effects"].items():
        effects[name] = re.compile(pattern)

    contrasts = [frozenset(words.split()) for words in data["contrasts"].values()]

    return Wording(
        code=code,
        contractions=data["contractions"],
        empty=frozenset(data["empty"].split()),
        general=_read_general(data["general"]),
        clause_end=re.compile(data["clause_end"]),
        condition=re.compile(data["condition"]),
        description=re.compile(data["description"]),
        denies_clause=re.compile(denial["clause"]),
        denies_rest=re.compile(denial["after"]),
        is_over=re.compile(denial["over"]),
        has_moved=re.compile(denial["moved"]),
        no_denial=re.compile(denial["no_denial"]),
        exception=re.compile(denial["exception"]),
        earlier_first=re.compile(order["earlier_first"]),
        later_first=re.compile(order["later_first"]),
        cause=re.compile(data["cause"]["connectors"]),
        effects=effects,
        opposites=_read_opposites(data["opposites"]),
        contrasts=tuple(contrasts),
        numbers=numbers["words"],
        units=numbers["units"],
        bounds=re.compile(numbers["bounds"]),
        naming=frozenset(numbers["naming"].split()),
    )


def _read_general(words_by_general: Mapping[str, str]) -> dict[str, str]:
    """Return the more general word by each word. The argument has words by their general one."""
    general: dict[str, str] = {}
    for general_word, words in words_by_general.items():
        for word in words.split():
            general[word] = general_word
    return general


def _read_opposites(rows: Iterable[Mapping[str, str]]) -> tuple[Opposites, ...]:
    """Return the opposites of a file, in their order."""
    opposites: list[Opposites] = []
    for row in rows:
        one = re.compile(row["one"])
        other = re.compile(row["other"])
        opposites.append(Opposites(row["reason"], one, other))
    return tuple(opposites)
