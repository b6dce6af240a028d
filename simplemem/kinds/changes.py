"""Tell whether a later statement says that something known has changed, though no rule reads what it is now.

`read_change` reads a statement such as "I've changed the alarm code", "We moved" or "I sold the Volvo". `subject_of`
says what an earlier fact is about. `in_doubt` compares the two, and names a fact only where both mean the same thing of
the same person: the same words ("alarm code"), the same topic (home, work, car, partner, diet), or the very value that
was left ("the Volvo"). How people put it stands in `changes.toml`. Pure.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from simplemem.note.passages import sentence_spans
from simplemem.note.words import stem

Words = frozenset[str]
Topic = tuple[str, Words]  # the name of a topic, and whose it is: no words are the speaker

_MAX_LENGTH: Final = 300  # characters of a statement that are read
_MIN_PHONE_DIGITS: Final = 4
_WORK: Final = "work"  # the topic of employers
_TOKEN: Final = re.compile(r"[^\W_]+(?:[.:@'-][^\W_]+)*")
_CLAUSE_END: Final = re.compile(r"[,;:.(–—]| (?:because|so|but|since|porque|pero|así que|ya que) ")
_ACRONYMS: Final = re.compile(r"\b([A-Z]{2,6})s\b")  # "GPs": no stemmer takes their plural off
_YEAR: Final = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass(frozen=True)
class _Naming:
    """How one language reads what an earlier fact is about."""

    names: Words = frozenset()  # "alarm code"
    value: Words = frozenset()
    main_value: Words = frozenset()  # the value without where, when and with whom, of the speaker only
    provided: Words = frozenset()  # "insurance", if the value is the company that provides it


@dataclass(frozen=True)
class Subject:
    """What an earlier fact is about."""

    topics: frozenset[Topic]
    namings: tuple[_Naming, ...]  # one for each language


@dataclass(frozen=True)
class Change:
    """What a statement says has changed."""

    language: int  # its place among the languages
    things: frozenset[Words] = frozenset()
    topics: frozenset[Topic] = frozenset()
    provided: frozenset[Words] = frozenset()  # "insurance", if the company that provides it has changed
    left: frozenset[Words] = frozenset()  # values that no longer hold
    employers: frozenset[Words] = frozenset()  # what somebody left, which may be a place as well
    is_over: bool = False  # a value that the statement names is gone
    words: Words = frozenset()  # all that the statement says
    year: int | None = None


class _Language:
    """The patterns of one language, as `changes.toml` has them."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        self._pieces: Mapping[str, str] = data["pieces"]
        self.stems: str = data["stems"]
        self.contractions: Mapping[str, str] = data["contractions"]
        self.speaker = frozenset(data["self"].split())
        self.nobody = frozenset(data["nobody"].split())
        self.empty = frozenset(data["empty"].split())
        self.others = frozenset(data["others"].split())
        self.known = frozenset(data["known"].split())
        self.anybodys = frozenset(data["anybodys"].split())
        self.synonyms = {word: name for name, words in data["same"].items() for word in words.split()}
        self.phones = self.words(data["numbers"])
        self.number: str = data["number"]
        self.providers = self.words(data["providers"])
        self.patterns = {name: self.compile(source) for name, source in data["patterns"].items()}
        self.things = [self.compile(each["form"]) for each in data["things"]]
        self.topics = [_TopicRule(self, each) for each in data["topics"]]
        self.adjective = self.compile("{adjective}")

    def compile(self, source: str) -> re.Pattern[str]:
        """Return a pattern with all pieces in it; a group that occurs again gets a number behind its name."""
        while (filled := re.sub(r"\{([a-z_]+)\}", lambda name: self._pieces[name[1]], source)) != source:
            source = filled
        seen = Counter[str]()

        def numbered(group: re.Match[str]) -> str:
            seen[group[1]] += 1
            return f"(?P<{group[1]}{seen[group[1]] if seen[group[1]] > 1 else ''}>"

        return re.compile(re.sub(r"\(\?P<([a-z]+)\d*>", numbered, source))

    def plain(self, text: str) -> str:
        """Return a statement as the patterns see it."""
        singular = _ACRONYMS.sub(r"\1", text[:_MAX_LENGTH])
        plain = " ".join(singular.lower().replace("’", "'").split())
        for short, full in self.contractions.items():
            plain = plain.replace(short, full)

        plain = self.patterns["user"].sub(lambda found: "my" if found["possessive"] else "i", plain)
        if self.patterns["bare"].match(plain):
            plain = f"i {plain}"
        return plain.rstrip(".! ")

    def words(self, text: str) -> Words:
        """Return the words that name something, each in one form."""
        return frozenset(self._in_one_form(self.tokens(text)))

    def tokens(self, text: str) -> list[str]:
        """Return the words that name something, in their order."""
        tokens = _TOKEN.findall(re.sub(r"['’]s\b", "", text.lower()).replace("_", " "))
        return [token for token in tokens if token not in self.empty]

    def _in_one_form(self, tokens: Iterable[str]) -> Iterator[str]:
        for token in tokens:
            yield stem(self.synonyms.get(token, token), self.stems)

    def owner(self, who: str) -> Words | None:
        """Return whose something is: no words for the speaker, None where nobody can tell."""
        tokens = _TOKEN.findall(who.lower().removesuffix("'s"))
        if not self.speaker.isdisjoint(tokens[-1:]) or not tokens:
            return frozenset()
        if not self.nobody.isdisjoint(tokens):
            return None
        return self.words(who)


class _TopicRule:
    """What people have one of, and how they say that it changed."""

    def __init__(self, language: _Language, data: Mapping[str, Any]) -> None:
        self.name: str = data["name"]
        self.keys = language.words(data["keys"])
        self.things = frozenset(language.words(thing) for thing in data["things"].split())
        self.fact = language.compile(data["fact"])
        self.change = language.compile(data["change"])
        self.is_over = bool(data.get("is_over"))
        self.place = language.compile(data["place"]) if "place" in data else None


def _load_languages() -> list[_Language]:
    file = Path(__file__).with_name("changes.toml")
    return [_Language(data) for data in tomllib.loads(file.read_text(encoding="utf-8")).values()]


_LANGUAGES: Final = _load_languages()


def _groups(found: re.Match[str]) -> dict[str, str]:
    """Return the named groups of a match that hold something, without the numbers behind their names."""
    return {name.rstrip("0123456789"): text for name, text in found.groupdict().items() if text}


def is_in_doubt(subject: Subject, change: Change, since_year: int | None = None) -> bool:
    """Return whether an earlier fact, told in `since_year`, may hold no longer after a change."""
    if change.year is not None and since_year is not None and change.year < since_year:
        return False

    naming = subject.namings[change.language]
    if any(left <= naming.main_value or left == naming.value for left in change.left):
        return True
    is_work = any(name == _WORK for name, _ in subject.topics)
    if is_work and any(employer <= naming.main_value for employer in change.employers):
        return True

    is_same_thing = bool(naming.names) and naming.names in change.things
    is_same_thing |= bool(naming.provided) and naming.provided in change.provided
    is_same_topic = not subject.topics.isdisjoint(change.topics)
    return (is_same_thing or is_same_topic) and not _is_still_so(naming, change)


def _is_still_so(naming: _Naming, change: Change) -> bool:
    """Return whether a change names the old value as the new one: "a new car, a Volvo again"."""
    return bool(naming.value) and naming.value <= change.words and not change.is_over


def _names_part_of(subject: Subject, change: Change) -> bool:
    """Return whether a change names a fact with fewer words, as "the alarm code" does that of the office.

    That is enough only where no other fact is meant as well.
    """
    naming = subject.namings[change.language]
    is_part = any(len(thing) > 1 and thing < naming.names for thing in change.things)
    return is_part and not _is_still_so(naming, change)


@lru_cache(maxsize=20_000)
def subject_of(text: str, key: str = "", value: str = "") -> Subject:
    """Return what a fact is about, by its statement, and by its key and value if it has some."""
    topics = set[Topic]()
    namings = list[_Naming]()
    for language in _LANGUAGES:
        plain = language.plain(text)
        topics.update(_topics_of_fact(language, plain))
        topics.update(_topics_of_key(language, key))
        namings.append(_naming(language, plain, key, value))

    return Subject(frozenset(topics), tuple(namings))


def _naming(language: _Language, plain: str, key: str, value: str) -> _Naming:
    """Return how a language reads the names and the value of a fact."""
    names = language.words(key)
    values = language.words(value)
    told = language.patterns["before_is"].match(plain)
    lived = language.patterns["lived_in"].match(plain)
    if told and not key:
        parts = _groups(told)
        names = language.words(" ".join([parts.get("owner", ""), parts.get("of", ""), parts["what"]]))
        values = language.words(parts["value"])
    elif lived and not key:
        values = language.words(language.patterns["value_end"].sub("", _groups(lived)["value"]))

    if names & language.phones and sum(map(str.isdigit, value or plain)) >= _MIN_PHONE_DIGITS:
        names |= language.words(language.number)
    is_provided = names & language.providers or language.patterns["at_a_provider"].match(plain)
    provided = names - language.providers if is_provided else frozenset()
    return _Naming(names, values, _main_value(language, plain), provided)


def _topics_of_fact(language: _Language, plain: str) -> Iterator[Topic]:
    for rule in language.topics:
        found = rule.fact.match(plain)
        owner = language.owner(_groups(found).get("who", "")) if found else None
        if owner is not None:
            yield rule.name, owner


def _topics_of_key(language: _Language, key: str) -> Iterator[Topic]:
    """Yield the topics that a key names: "address" is the speaker's, "sister address" the sister's."""
    words = language.words(key)
    for rule in language.topics:
        if words & rule.keys:
            yield rule.name, words - rule.keys


def _main_value(language: _Language, plain: str) -> Words:
    """Return what the speaker says of themselves or of what is theirs, without where, when and with whom."""
    for name in ("other_value", "before_is"):
        found = language.patterns[name].match(plain)
        parts = _groups(found) if found else {}
        if parts and not language.owner(parts.get("who", "")) and "owner" not in parts:
            return language.words(language.patterns["value_end"].sub("", parts["value"]))

    return frozenset()


@lru_cache(maxsize=5_000)
def read_change(text: str) -> Change | None:
    """Return what a statement says has changed, None where it says no such thing."""
    for place, language in enumerate(_LANGUAGES):
        plain = language.plain(text)
        if not language.patterns["cue"].search(plain):
            continue
        if language.patterns["past"].search(plain) or text.rstrip().endswith("?"):
            continue
        change = _Collected(language, plain, text).collect(place)
        if change is not None:
            return change

    return None


class _Collected:
    """What a statement says has changed, as it is collected from its matches."""

    def __init__(self, language: _Language, plain: str, text: str) -> None:
        self.language = language
        self.plain = plain
        self.text = text
        self.things = set[Words]()
        self.topics = set[Topic]()
        self.left = set[Words]()
        self.employers = set[Words]()
        self.is_over = False

    def collect(self, language: int) -> Change | None:
        """Return what has changed, None where nothing has."""
        for rule in self.language.topics:
            for found in rule.change.finditer(self.plain):
                if not self._is_hedged(found):
                    self._take_topic(rule, _groups(found))
        for pattern in (*self.language.things, self.language.patterns["left"]):
            for found in pattern.finditer(self.plain):
                if not self._is_hedged(found):
                    self._take_thing(_groups(found))

        if not (self.things or self.topics or self.left or self.employers):
            return None
        return Change(
            language,
            frozenset(self.things),
            frozenset(self.topics),
            frozenset(thing - self.language.providers for thing in self.things if thing & self.language.providers),
            frozenset(self.left),
            frozenset(self.employers),
            self.is_over,
            self.language.words(self.plain),
            max(map(int, _YEAR.findall(self.plain)), default=None),
        )

    def _is_hedged(self, found: re.Match[str]) -> bool:
        """Return whether the clause of a match is a plan, a wish, a condition or what others say."""
        starts = [end.end() for end in _CLAUSE_END.finditer(self.plain, 0, found.start() + 1)]
        behind = _CLAUSE_END.search(self.plain, found.end())
        end = behind.start() if behind else len(self.plain)
        clause = self.plain[max(starts, default=0) : end].strip()
        return self.language.patterns["hedged"].search(clause) is not None

    def _take_topic(self, rule: _TopicRule, parts: Mapping[str, str]) -> None:
        owner = self.language.owner(parts.get("who", ""))
        if owner is not None and self._is_place(rule, parts.get("place", "")):
            self.topics.add((rule.name, owner))
            is_over = self.language.patterns["over"].search(self.plain) is not None
            self.is_over |= rule.is_over or is_over

    def _is_place(self, rule: _TopicRule, place: str) -> bool:
        """Return whether a place is one to live in: a name, or a home of some kind."""
        if not place or rule.place is None:
            return True
        at = self.text.lower().find(place[:12])
        return self.text[at : at + 1].isupper() or rule.place.match(place) is not None

    def _add_words(self, values: set[Words], text: str) -> None:
        words = self.language.words(text)
        if words:
            values.add(words)

    def _take_thing(self, parts: Mapping[str, str]) -> None:
        language = self.language
        determiner = parts.get("det", "")
        owner = language.owner(parts.get("who", ""))
        if owner is None and determiner in language.known:
            owner = frozenset()  # whoever changed it: "they reset our gate code"
        if owner is None:
            return
        if "employer" in parts:
            if not owner:
                self._add_words(self.employers, parts["employer"])
            return
        if "left" in parts:
            if not owner:
                self._add_words(self.left, parts["left"])
            parts = {"what": parts["left"], **parts}

        whose, what = _without_owner(parts["what"])
        if determiner in language.others and not owner and not whose:
            return  # of somebody who was named elsewhere
        if whose:
            owner = language.owner(whose)
        names = language.words(f"{what} {parts.get('of', '')}") - language.speaker
        if owner is None or not names:
            return

        is_anybodys = determiner in language.anybodys
        self.things.add(names if is_anybodys else names | owner)
        self.topics.update((rule.name, owner) for rule in language.topics if _is_thing(language, rule, what))


def _without_owner(what: str) -> tuple[str, str]:
    """Return whose a thing is, as far as its name says so, and the name without that."""
    whose, separator, name = what.rpartition("'s ")
    return (whose, name) if separator else ("", what)


def _is_thing(language: _Language, rule: _TopicRule, what: str) -> bool:
    """Return whether a name, but for its adjectives, is one of a topic's things: "bigger flat", no "flat screen"."""
    tokens = language.tokens(what)
    telling = [token for token in tokens if not language.adjective.fullmatch(token)]
    return language.words(" ".join(telling)) in rule.things


def changes_in(message: str) -> list[tuple[str, Change]]:
    """Return the sentences of a text that say that something changed, with what."""
    sentences = (" ".join(message[start:stop].split()) for start, stop in sentence_spans(message))
    changes = ((sentence, read_change(sentence)) for sentence in sentences)
    return [(sentence, change) for sentence, change in changes if change is not None]


def in_doubt(change: Change, subjects: Collection[tuple[Subject, int | None]]) -> list[int]:
    """Return the places of the facts that a change puts in doubt, each given with the year it was told in."""
    places = [place for place, (subject, year) in enumerate(subjects) if is_in_doubt(subject, change, year)]
    if places:
        return places
    partly = [place for place, (subject, _) in enumerate(subjects) if _names_part_of(subject, change)]
    return partly if len(partly) == 1 else []
