"""Read what a statement says has changed."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from simplemem.features.changes.languages import (
    LANGUAGES,
    SPEAKER,
    Language,
    Topic,
    TopicRule,
    Words,
    groups_of,
)
from simplemem.note.sentences import sentence_spans

_MAX_SEARCHED_CHARACTERS: Final = 12  # of a place: how much of it is searched for in the statement
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")
_CLAUSE_END: Final = re.compile(
    r"""
    [,;:.(–—]
    | [ ] (?: because | so | but | since | porque | pero | así[ ]que | ya[ ]que ) [ ]
    """,
    re.VERBOSE,
)


@dataclass(frozen=True)
class Change:
    """What a statement says has changed. A set is empty if the statement says nothing of it."""

    language: str  # the code of the language in which the statement was read
    things: frozenset[Words]  # the names of things: "alarm code"
    topics: frozenset[Topic]
    provided: frozenset[Words]  # "insurance", if the company that provides it has changed
    ended_values: frozenset[Words]  # values that are no longer true
    left_employers: frozenset[Words]  # what the speaker left: an employer, but possibly a place
    ends_named_value: bool  # a value that the statement names is an old one, not the new one
    words: Words  # all words of the statement
    year: int | None  # the latest year that the statement names


@lru_cache(maxsize=5_000)
def read_change(statement: str) -> Change | None:
    """Return what a statement says has changed; None if it states no change.

    A question, a plan and a change of long ago are no changes. Only the first 300 characters are
    read.
    """
    if statement.rstrip().endswith("?"):
        return None

    for language in LANGUAGES:
        text = language.normalize(statement)
        if not language.patterns.cue.search(text):
            continue
        if language.patterns.long_ago.search(text):
            continue
        change = _ChangeReader(language, statement, text).read()
        if change is not None:
            return change

    return None


def changes_in(text: str) -> list[tuple[str, Change]]:
    """Return each sentence of a text that states a change, with that change.

    They are in the order of the text. The list is empty if no sentence does.
    """
    changes = list[tuple[str, Change]]()
    for start, end in sentence_spans(text):
        sentence = " ".join(text[start:end].split())
        change = read_change(sentence)
        if change is not None:
            changes.append((sentence, change))

    return changes


class _ChangeReader:
    """Guards what the matches of all patterns so far say has changed, for one statement.

    `groups` are the parts of a match, as `groups_of` returns them. Any of them may be absent: `who`
    changed something, `what` was changed, with its determiner `det` ("our") and an attribute `of`
    ("of the office"); the `left` value, the `employer` who was left, and the `place` of a new home.
    """

    def __init__(self, language: Language, statement: str, text: str) -> None:
        """Prepare to read a statement. `text` is the statement as `normalize` returns it."""
        self._language = language
        self._statement = statement
        self._text = text
        self._things = set[Words]()
        self._topics = set[Topic]()
        self._ended_values = set[Words]()
        self._left_employers = set[Words]()
        self._ends_named_value = False

    def read(self) -> Change | None:
        """Return what has changed, None if nothing has."""
        language = self._language
        for rule in language.topics:
            for groups in self._certain_matches(rule.change):
                self._add_topic(rule, groups)
        for pattern in (*language.things, language.patterns.left):
            for groups in self._certain_matches(pattern):
                self._add_match_of_thing(groups)

        if not self._has_found_change():
            return None
        years = [int(year) for year in _YEAR.findall(self._text)]
        return Change(
            language=language.code,
            things=frozenset(self._things),
            topics=frozenset(self._topics),
            provided=frozenset(self._provided_things()),
            ended_values=frozenset(self._ended_values),
            left_employers=frozenset(self._left_employers),
            ends_named_value=self._ends_named_value,
            words=language.words(self._text),
            year=max(years, default=None),
        )

    def _has_found_change(self) -> bool:
        """Return whether a match so far says that something has changed."""
        return bool(self._things or self._topics or self._ended_values or self._left_employers)

    def _certain_matches(self, pattern: re.Pattern[str]) -> Iterator[dict[str, str]]:
        """Yield the groups of each match of a pattern that is in no hedged clause."""
        for match in pattern.finditer(self._text):
            if not self._is_hedged(match):
                yield groups_of(match)

    def _provided_things(self) -> Iterator[Words]:
        """Yield what the changed companies provide: "insurance" for "insurance company"."""
        providers = self._language.providers
        for thing in self._things:
            if thing & providers:
                yield thing - providers

    def _is_hedged(self, match: re.Match[str]) -> bool:
        """Return whether the clause of a match is a plan, a wish, a condition or hearsay."""
        clause_start = 0
        for end in _CLAUSE_END.finditer(self._text, 0, match.start() + 1):
            clause_start = end.end()
        clause_end = len(self._text)
        next_end = _CLAUSE_END.search(self._text, match.end())
        if next_end is not None:
            clause_end = next_end.start()

        clause = self._text[clause_start:clause_end].strip()
        return self._language.patterns.hedged.search(clause) is not None

    def _add_topic(self, rule: TopicRule, groups: Mapping[str, str]) -> None:
        """Add the topic of a matched rule, unless its owner is unclear or its place is no home.

        Also record that the statement names an old value, if the rule or a "no longer" says so.
        """
        owner = self._language.read_owner(groups.get("who", ""))
        place = groups.get("place", "")
        if owner is None or not self._is_habitable(rule, place):
            return

        self._topics.add(Topic(rule.name, owner))
        if rule.ends_named_value or self._language.patterns.over.search(self._text):
            self._ends_named_value = True

    def _is_habitable(self, rule: TopicRule, place: str) -> bool:
        """Return whether a place may be a home, so that a match of a topic's rule is a change.

        Such a place begins with a capital letter in the statement, or is a home of some kind. It is
        true if the match names no place (""), or the rule is about no places.
        """
        if not place or rule.place is None:
            return True

        start = self._statement.lower().find(place[:_MAX_SEARCHED_CHARACTERS])
        is_name = self._statement[start : start + 1].isupper()
        return is_name or rule.place.match(place) is not None

    def _add_match_of_thing(self, groups: Mapping[str, str]) -> None:
        """Add what a match says was changed, given up or left."""
        owner = self._owner_of_thing(groups)
        if owner is None:
            return

        is_of_speaker = owner == SPEAKER
        if "employer" in groups:
            if is_of_speaker:
                self._add_words(self._left_employers, groups["employer"])
            return
        if "left" in groups and is_of_speaker:
            self._add_words(self._ended_values, groups["left"])
        self._add_thing(groups, owner)

    def _owner_of_thing(self, groups: Mapping[str, str]) -> Words | None:
        """Return who changed a thing: SPEAKER, the words that name a person, or None if unclear.

        It is the speaker for "they reset our gate code".
        """
        owner = self._language.read_owner(groups.get("who", ""))
        determiner = groups.get("det", "")
        if owner is None and determiner in self._language.determiners_of_speaker:
            return SPEAKER
        return owner

    def _add_thing(self, groups: Mapping[str, str], changer: Words) -> None:
        """Add the thing that a match names, and the topics that it stands for.

        `changer` owns the thing, unless the match names another owner. Nothing is added if it is
        unclear whose thing it is.
        """
        language = self._language
        determiner = groups.get("det", "")
        possessor, thing = _split_possessor(groups.get("what") or groups["left"])

        owner: Words | None = changer
        if possessor:
            owner = language.read_owner(possessor)
        elif determiner in language.determiners_of_others and changer == SPEAKER:
            owner = None  # "I reset their code": another sentence says whose

        attribute = groups.get("of", "")
        name = language.words(f"{thing} {attribute}") - language.speaker
        if owner is None or not name:
            return
        if determiner not in language.determiners_of_anybody:
            name |= owner
        self._things.add(name)
        for rule in language.topics:
            if _is_thing_of_topic(language, rule, thing):
                self._topics.add(Topic(rule.name, owner))

    def _add_words(self, values: set[Words], text: str) -> None:
        """Add the words of a text to one of the sets, unless it has no words that name anything."""
        words = self._language.words(text)
        if words:
            values.add(words)


def _split_possessor(thing: str) -> tuple[str, str]:
    """Return the possessor in the name of a thing, and the rest of the name.

    They are "ada" and "flat" for "ada's flat". The possessor is "" if the name has none.
    """
    possessor, separator, rest = thing.rpartition("'s ")
    if not separator:
        return "", thing
    return possessor, rest


def _is_thing_of_topic(language: Language, rule: TopicRule, thing: str) -> bool:
    """Return whether a name is one of a topic's things, perhaps with adjectives.

    "bigger flat" is one, but not "flat screen".
    """
    tokens = language.tokens(thing)
    nouns = [token for token in tokens if not language.adjective.fullmatch(token)]
    return language.words(" ".join(nouns)) in rule.things
