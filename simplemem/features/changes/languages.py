"""The words and patterns of each language, as `changes.toml` has them."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from simplemem.features.pattern_pieces import fill_braces
from simplemem.note.stems import stem

Words = frozenset[str]
"""Words of a text, each reduced to a stem, and to one of several words that mean the same."""

SPEAKER: Final[Words] = frozenset()
"""The owner of what belongs to the speaker. Any other owner is the words that name a person."""

_MAX_CHARACTERS: Final = 300  # of a statement that are read
_FILE: Final = Path(__file__).with_name("changes.toml")
_TOKEN: Final = re.compile(r"[^\W_]+(?:[.:@'-][^\W_]+)*")
# "GPs": no stemmer takes their plural off.
_ACRONYM_PLURAL: Final = re.compile(r"\b([A-Z]{2,6})s\b")
_POSSESSIVE_ENDING: Final = re.compile(r"['’]s\b")
_GROUP: Final = re.compile(r"\(\?P<(?P<name>[a-z]+)\d*>")


@dataclass(frozen=True)
class Topic:
    """Something of which a person has one, such as a home."""

    name: str
    owner: Words


@dataclass(frozen=True)
class TopicRule:
    """How a language states a topic, and how it states that the topic has changed."""

    name: str
    keys: Words  # words of a fact's key that name the topic: "address", "city"
    things: frozenset[Words]  # things that a change may name instead: "new flat"
    fact: re.Pattern[str]
    change: re.Pattern[str]
    ends_named_value: bool  # a value that the change names is no longer true: "Tom and I broke up"
    place: re.Pattern[str] | None  # places to live in, other than names: "a bigger flat"


@dataclass(frozen=True)
class Patterns:
    """The patterns of one language. They match statements as `Language.normalize` returns them.

    The names are those in `[…patterns]` of `changes.toml`.
    """

    cue: re.Pattern[str]  # a word without which a statement states no change; saves time only
    bare: re.Pattern[str]  # a statement about the speaker without a pronoun: "moved to Rome"
    user: re.Pattern[str]  # the speaker as "the user"
    hedged: re.Pattern[str]  # a plan, a wish, a condition, or what others say
    over: re.Pattern[str]  # "no longer", "any more"
    long_ago: re.Pattern[str]  # a change that was long ago
    left: re.Pattern[str]  # the former value of a change: "switched from A to B"
    before_is: re.Pattern[str]  # a fact of the form "the alarm code is 4711"
    other_value: re.Pattern[str]  # a fact of the form "I drive a Volvo"
    lived_in: re.Pattern[str]  # a fact of the form "I live in Rome"
    at_a_provider: re.Pattern[str]  # a fact of the form "my insurance is with Acme"
    value_end: re.Pattern[str]  # the end of a value that says where, when or with whom


@dataclass(frozen=True)
class Language:
    """How one language states facts and changes."""

    code: str
    stems: str  # the stemmer's name for the language; "" for English
    contractions: Mapping[str, str]
    speaker: Words  # pronouns of the speaker
    unnamed_persons: Words  # pronouns of somebody whom the statement does not name
    empty: Words  # words that name nothing
    determiners_of_others: Words  # "her", "their"
    determiners_of_speaker: Words  # of a thing that the speaker shares, whoever changed it: "our"
    determiners_of_anybody: Words  # those that leave open whose a thing is: "the"
    synonyms: Mapping[str, str]
    phones: Words  # words for a phone; their value, if it is a number, is a phone number
    number: Words  # the word "number"
    providers: Words  # words for a company that provides something: "supplier"
    patterns: Patterns
    things: tuple[re.Pattern[str], ...]  # how a statement names a changed thing
    topics: tuple[TopicRule, ...]
    adjective: re.Pattern[str]  # an adjective that does not make another thing of a noun

    def normalize(self, statement: str) -> str:
        """Return the beginning of a statement in the form that patterns match.

        It is in small letters, with full verbs, and "the user" is "I".
        """
        singular = _ACRONYM_PLURAL.sub(r"\1", statement[:_MAX_CHARACTERS])
        text = " ".join(singular.lower().replace("’", "'").split())
        for contraction, full in self.contractions.items():
            text = text.replace(contraction, full)

        text = self.patterns.user.sub(_speaker_of_user, text)
        if self.patterns.bare.match(text):
            text = f"i {text}"
        return text.rstrip(".! ")

    def words(self, text: str) -> Words:
        """Return the stems of the words of a text that name something; none if no word does.

        A synonym has the stem of the word for which it stands: "cell" that of "phone".
        """
        tokens = self.tokens(text)
        return frozenset(_reduce(tokens, self.synonyms, self.stems))

    def tokens(self, text: str) -> list[str]:
        """Return the words of a text that name something, in small letters and in their order."""
        return _tokens(text, self.empty)

    def read_owner(self, person: str) -> Words | None:
        """Return the owner whom a text names: SPEAKER, or the words that name a person.

        A text without words stands for the speaker. Return None for somebody whom the text does not
        name, such as "he".
        """
        tokens = _TOKEN.findall(person.lower().removesuffix("'s"))
        if not tokens or tokens[-1] in self.speaker:
            return SPEAKER
        if not self.unnamed_persons.isdisjoint(tokens):
            return None
        return self.words(person)


def groups_of(match: re.Match[str]) -> dict[str, str]:
    """Return the texts of the named groups of a match, by name, without the empty ones.

    A pattern in which a group occurs several times has numbers behind its name: `what`, `what2`.
    They all become `what`.
    """
    groups: dict[str, str] = {}
    for numbered_name, text in match.groupdict().items():
        if text:
            name = numbered_name.rstrip("0123456789")
            groups[name] = text
    return groups


def _speaker_of_user(user: re.Match[str]) -> str:
    """Return what the speaker says for a match of `Patterns.user`.

    That is "my" for "the user's", and "i" for "the user".
    """
    return "my" if user["possessive"] else "i"


def _tokens(text: str, empty: Words) -> list[str]:
    """Return the words of a text that are not among `empty`, in small letters and their order."""
    plain = _POSSESSIVE_ENDING.sub("", text.lower()).replace("_", " ")
    return [token for token in _TOKEN.findall(plain) if token not in empty]


def _reduce(
    tokens: Iterable[str],
    synonyms: Mapping[str, str],
    stems: str,
) -> Iterator[str]:
    """Yield the stem of each word, or of the word that stands for all its synonyms.

    `synonyms` has that word by each synonym. `stems` is the stemmer's name for the language.
    """
    for token in tokens:
        word = synonyms.get(token, token)
        yield stem(word, stems)


class _LanguageReader:
    """Reads one language from its table in `changes.toml`. Guards no state that changes."""

    def __init__(self, code: str, table: Mapping[str, Any]) -> None:
        """Prepare to read the language with this code, such as "en". `table` is its whole table."""
        self._code = code
        self._table = table
        self._pieces: Mapping[str, str] = table["pieces"]  # each may contain others
        self._stems: str = table["stems"]
        self._empty = self._word_set("empty")
        self._synonyms: dict[str, str] = {}
        for word, synonyms in table["synonyms"].items():
            for synonym in synonyms.split():
                self._synonyms[synonym] = word

    def read(self) -> Language:
        """Return the language. Raise KeyError, TypeError or re.error for an incomplete table."""
        table = self._table
        return Language(
            code=self._code,
            stems=self._stems,
            contractions=table["contractions"],
            speaker=self._word_set("speaker"),
            unnamed_persons=self._word_set("unnamed_persons"),
            empty=self._empty,
            determiners_of_others=self._word_set("determiners_of_others"),
            determiners_of_speaker=self._word_set("determiners_of_speaker"),
            determiners_of_anybody=self._word_set("determiners_of_anybody"),
            synonyms=self._synonyms,
            phones=self._reduced(table["phones"]),
            number=self._reduced(table["number"]),
            providers=self._reduced(table["providers"]),
            patterns=Patterns(
                **{name: self._compile(source) for name, source in table["patterns"].items()}
            ),
            things=tuple(self._compile(thing["form"]) for thing in table["things"]),
            topics=tuple(self._read_topic(topic) for topic in table["topics"]),
            adjective=self._compile("{adjective}"),
        )

    def _read_topic(self, topic: Mapping[str, Any]) -> TopicRule:
        """Return the rule in an entry of `topics`."""
        place = None
        if "place" in topic:
            place = self._compile(topic["place"])
        return TopicRule(
            name=topic["name"],
            keys=self._reduced(topic["keys"]),
            things=frozenset(self._reduced(thing) for thing in topic["things"].split()),
            fact=self._compile(topic["fact"]),
            change=self._compile(topic["change"]),
            ends_named_value=topic.get("ends_named_value", False),
            place=place,
        )

    def _word_set(self, key: str) -> Words:
        """Return the words of a list in the table, as they are written."""
        return frozenset(self._table[key].split())

    def _reduced(self, text: str) -> Words:
        """Return the words of a text as `Language.words` does."""
        tokens = _tokens(text, self._empty)
        return frozenset(_reduce(tokens, self._synonyms, self._stems))

    def _compile(self, source: str) -> re.Pattern[str]:
        """Return a pattern with all its `{pieces}` filled in."""
        return re.compile(_number_groups(fill_braces(source, self._pieces)))


def _number_groups(source: str) -> str:
    """Return a pattern in which a named group that occurs again has a number behind its name."""
    occurrences = Counter[str]()

    def numbered(group: re.Match[str]) -> str:
        """Return the beginning of a group, with a number if the name occurred before."""
        name = group["name"]
        occurrences[name] += 1
        count = occurrences[name]
        if count == 1:
            return f"(?P<{name}>"
        return f"(?P<{name}{count}>"

    return _GROUP.sub(numbered, source)


def _load_languages() -> tuple[Language, ...]:
    """Return the languages in the file, in their order."""
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    return tuple(_LanguageReader(code, table).read() for code, table in tables.items())


LANGUAGES: Final = _load_languages()
