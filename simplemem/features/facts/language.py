"""The languages whose statements the rules read: word lists and patterns.

Each language is a file in `words/`. A statement is read by the language whose words and forms it
has. Pure, but for reading the files when the module is imported.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from simplemem.features.pattern_pieces import fill_braces
from simplemem.note.small_letters import in_small_letters
from simplemem.note.stems import stem

MAX_READ: Final = 300  # characters of a statement

_WORDS_FOLDER: Final = Path(__file__).parent / "words"
_LIKING: Final = "♥"  # stands for all words of liking and disliking
_ANY_VALUE: Final = "(?P<value>.+)"
_MATCHES_NOTHING: Final = "(?!)"
_WORD_LISTS_OF_LANGUAGE: Final = ("empty", "own", "no", "likes", "telling")
"""The lists whose words tell one language from another."""

_LETTERS: Final = re.compile(r"[^\W\d_]+")
_WORD: Final = re.compile(
    r"""
    (?<![\w.+-])[\w.+-]+@[\w.-]+\w   # an e-mail address
    | \d+(?:[.,:]\d+)*               # a number or a time
    | [^\W\d_]+(?:-[^\W_]+)*         # a word, perhaps with hyphens
    | \d\w*
    | [^\w\s.,;:!?'"()]              # a sign such as "€"
    """,
    re.VERBOSE,
)
_CONTRACTIONS: Final = {
    "n't": " not",
    "'m": " am",
    "'re": " are",
    "'ve": " have",
    "'ll": " will",
    "can not": "cannot",
}


@dataclass(frozen=True)
class SlotForm:
    """A way in which a language states the value of a slot, and asks for it."""

    relation: str  # may contain groups of the match in braces: "favourite {noun}"
    statement: re.Pattern[str]  # of a whole statement; its group `rest` begins with the value
    value: re.Pattern[str]  # of that rest; its group `value` is the value
    limits: str  # the name of the pattern of limits such as "on Sundays"; "" for none
    question: re.Pattern[str]


class Language:
    """The word lists and patterns of one language, which never change.

    `patterns` has the compiled patterns by name, and `sources` their texts. In a text, a name in
    braces stands for another pattern, or for any word of a word list. Word lists are known by their
    names in the file, such as "hedges".
    """

    def __init__(
        self,
        code: str,
        defaults: Mapping[str, str] | None = None,
    ) -> None:
        """Read the file of the language with a code, such as "en".

        `defaults` are the sources of patterns that the file may leave out. Raise KeyError or
        re.error if the file is not complete.
        """
        file = _WORDS_FOLDER / f"{code}.toml"
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        word_lists: Mapping[str, str] = table["words"]

        self._stems: str = table["stems"]  # the stemmer's name for the language; "" for English
        self._words: dict[str, frozenset[str]] = {}  # the word lists by name
        for name, words in word_lists.items():
            self._words[name] = frozenset(words.split())
        self._dropped = self._words_in("empty", "no")
        self._liking = self._words_in("likes", "hates")
        self._own_words = self._words_in(*_WORD_LISTS_OF_LANGUAGE)
        month_names = word_lists["months"].split()
        self._months = [name[:3] for name in month_names]

        self.sources: dict[str, str] = dict(defaults or {})
        for name, alternatives in self._words.items():
            self.sources[name] = "|".join(alternatives)
        self.sources["months"] = "|".join(self._months)
        self.sources.update(table["patterns"])

        self.patterns: dict[str, re.Pattern[str]] = {}
        for name, source in self.sources.items():
            self.patterns[name] = self._compile(source)
        self.forms = [self._read_form(slot) for slot in table["slots"]]

    def _words_in(self, *list_names: str) -> frozenset[str]:
        """Return the words of all these word lists. Raise KeyError if one does not exist."""
        words = frozenset[str]()
        for name in list_names:
            words |= self._words[name]
        return words

    def _read_form(self, slot: Mapping[str, Any]) -> SlotForm:
        """Return the form in an entry of `[[slots]]`.

        An entry has a `relation`, and either the whole `form` of a statement or only its verb,
        `is`. It may have the form of the value (`what`), the name of a pattern of `limits`, and the
        form of a question (`asks`).
        """
        statement = slot.get("form")
        if not statement:
            # Up to four words for the subject, the verb, and the value.
            statement = rf"(?P<who>(?:[\w'-]+ ){{0,4}}?){slot['is']} (?P<rest>.+)"
        value = slot.get("what", _ANY_VALUE)
        question = slot.get("asks", _MATCHES_NOTHING)
        return SlotForm(
            relation=slot["relation"],
            statement=self._compile(statement),
            value=self._compile(value),
            limits=slot.get("limits", "when"),
            question=self._compile(question),
        )

    def _compile(self, source: str) -> re.Pattern[str]:
        """Compile the text of a pattern, with all other patterns that it names in braces.

        Raise KeyError if one of them does not exist.
        """
        return re.compile(fill_braces(source, self.sources))

    def has(self, list_name: str, words: Iterable[str]) -> bool:
        """Return whether a word list contains at least one of some words.

        Raise KeyError if there is no such list.
        """
        return not self._words[list_name].isdisjoint(words)

    def without(self, words: Iterable[str], *list_names: str) -> list[str]:
        """Return the words that are in none of the word lists, in their order.

        Raise KeyError if there is no such list.
        """
        excluded = self._words_in(*list_names)
        return [word for word in words if word not in excluded]

    def matches(self, pattern_name: str, text: str) -> bool:
        """Return whether a pattern matches anywhere in a text.

        Raise KeyError if there is no such pattern.
        """
        return self.patterns[pattern_name].search(text) is not None

    def month_number(self, name: str) -> int:
        """Return the number of a month by the first three letters of its name, from 1.

        Raise ValueError if no month of the language begins so.
        """
        return self._months.index(name) + 1

    def stems_of(self, text: str) -> tuple[str, ...]:
        """Return the stems of the words by which statements are compared, in their order.

        `text` is in small letters. Words for the user, articles and negations are left out. All
        words of liking and disliking have the same stem.
        """
        stems: list[str] = []
        for word in words_of(text):
            if word in self._dropped:
                continue
            if word in self._liking:
                stems.append(_LIKING)
            elif word.isalpha():
                stems.append(stem(word, self._stems))
            else:
                stems.append(word)
        return tuple(stems)

    def fit(self, plain: str) -> int:
        """Return how well a text fits this language, as a number that is 0 or more.

        It is the number of different words that are typical of the language, plus 2 if the text
        begins like one of its forms. `plain` is the text as `plain_text` returns it.
        """
        words = _LETTERS.findall(plain)
        fit = len(self._own_words.intersection(words))
        has_form = any(form.statement.match(plain) for form in self.forms)
        if has_form:
            fit += 2
        return fit


_ENGLISH: Final = Language("en")
LANGUAGES: Final = (_ENGLISH, Language("es", _ENGLISH.sources))


@lru_cache(maxsize=1_000)
def language_of(plain: str) -> Language:
    """Return the language that fits a text best, the first of LANGUAGES if several do.

    `plain` is the text as `plain_text` returns it.
    """

    def fit(language: Language) -> int:
        return language.fit(plain)

    return max(LANGUAGES, key=fit)


def plain_text(text: str) -> str:
    """Return the first 300 characters of a text in the form that patterns match.

    It is in small letters, on one line, with full verbs ("i am" for "I'm") and without the full
    stops and exclamation marks at its end.
    """
    plain = in_small_letters(text[:MAX_READ])
    for contraction, full in _CONTRACTIONS.items():
        plain = plain.replace(contraction, full)
    return plain.rstrip(".! ")


def words_of(text: str) -> list[str]:
    """Return the words, numbers, e-mail addresses and signs of a text, in their order.

    `text` is in small letters. The list is empty for a text of blanks and punctuation marks.
    """
    return _WORD.findall(text)
