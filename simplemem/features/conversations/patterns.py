"""The words, patterns and weights by which messages are read.

`english.toml` has those of English, and the weights, which no language changes. `markers/` has one
file for each other language whose changes of subject are read.

The functions read which topic a message returns to, and what a text is about. Pure: they use
neither vectors nor notes.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from simplemem.features.pattern_pieces import compile_pattern
from simplemem.note.words import (
    STOP_WORDS,
    STOP_WORDS_BY_LANGUAGE,
    language_of,
    without_accents,
)

_MAX_LABEL: Final = 50  # characters
_MAX_LABEL_SOURCE: Final = 1000  # characters of a message in which a label is looked for
_MAX_KEYWORDS: Final = 5
_MAX_RETURN: Final = 90  # characters of a message in which a return is announced
_DEFAULT_LABEL: Final = "Conversation"

_MARKER_NAMES: Final = (
    "shift",
    "aside",
    "greeting",
    "opening",
    "follow",
    "news",
    "back",
    "again",
    "outcome",
)
_LEAD_INS: Final = ("shift", "greeting", "named")
_WORD: Final = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_CLAUSE_END: Final = re.compile(r"[.!?:;()\n→]|, | [-–—=] ")
_QUOTE: Final = re.compile(r'["“”«»„]')


def _load_english() -> dict[str, Any]:
    """Return the contents of `english.toml`."""
    path = Path(__file__).with_name("english.toml")
    return tomllib.loads(path.read_text(encoding="utf-8"))


def _load_other_languages() -> dict[str, dict[str, Any]]:
    """Return the contents of the files in `markers/`, by the codes of their languages."""
    languages = {}
    for path in sorted(Path(__file__).with_name("markers").glob("*.toml")):
        languages[path.stem] = tomllib.loads(path.read_text(encoding="utf-8"))
    return languages


def _split_words(lists: dict[str, str]) -> dict[str, frozenset[str]]:
    """Return the words of each list, by the name of the list."""
    words = {}
    for name, text in lists.items():
        words[name] = frozenset(text.split())
    return words


def _invert_synonyms(lists: dict[str, str]) -> dict[str, str]:
    """Return for each synonym the word that replaces it when words are compared."""
    replacements = {}
    for word, synonyms in lists.items():
        for synonym in synonyms.split():
            replacements[synonym] = word
    return replacements


def _read_patterns(english: dict[str, Any]) -> dict[str, re.Pattern[str]]:
    """Return the patterns of `english.toml` by their names."""
    patterns = {}
    for name, source in english["patterns"].items():
        patterns[name] = compile_pattern(source, english["pieces"])
    return patterns


def _read_markers(
    patterns: dict[str, re.Pattern[str]], languages: dict[str, dict[str, Any]]
) -> dict[str, tuple[re.Pattern[str], ...]]:
    """Return the patterns of each marker, that of English (in `patterns`) first."""
    markers = {}
    for name in _MARKER_NAMES:
        of_languages = [patterns[name]]
        for language in languages.values():
            source = language["patterns"][name]
            of_languages.append(compile_pattern(source, language.get("pieces", {})))
        markers[name] = tuple(of_languages)
    return markers


def _read_empty_words(languages: dict[str, dict[str, Any]]) -> dict[str, frozenset[str]]:
    """Return for each language the words that say nothing, without accents, beside English ones."""
    empty_words = {}
    for language, stop_words in STOP_WORDS_BY_LANGUAGE.items():
        words = set(stop_words)
        if language in languages:
            chat_words = languages[language]["words"]["chat"].split()
            words.update(map(without_accents, chat_words))
        empty_words[language] = frozenset(words)
    return empty_words


def _read_vague_words(languages: dict[str, dict[str, Any]]) -> dict[str, frozenset[str]]:
    """Return for each language the words that stand for something that is said elsewhere."""
    vague_words = {}
    for language, contents in languages.items():
        vague_words[language] = frozenset(contents["words"]["vague"].split())
    return vague_words


_ENGLISH: Final = _load_english()

NUMBERS: Final = _ENGLISH["numbers"]
"""The weights and limits by which a message is given to a topic."""

WORDS: Final = _split_words(_ENGLISH["words"])
SYNONYMS: Final = _invert_synonyms(_ENGLISH["synonyms"])
PATTERNS: Final = _read_patterns(_ENGLISH)

_OTHER_LANGUAGES: Final = _load_other_languages()
MARKERS: Final = _read_markers(PATTERNS, _OTHER_LANGUAGES)
"""The patterns of what a message may begin with, or of an outcome: one for each language."""

_VAGUE_WORDS: Final = _read_vague_words(_OTHER_LANGUAGES)
_OTHER_EMPTY_WORDS: Final = _read_empty_words(_OTHER_LANGUAGES)
_EMPTY_WORDS: Final = STOP_WORDS | WORDS["chat"]
_NO_LABEL_WORDS: Final = WORDS["task"] | WORDS["filler"]


@lru_cache(maxsize=1024)
def content_words(text: str) -> tuple[str, ...]:
    """Return the words that say what a text is about, in small letters and in their order.

    Stop words and the words that chats are full of are left out: those of English, and those of the
    text's language. A repeated word is repeated.
    """
    matches = _WORD.findall(text.lower())
    language = language_of(text) or _guess_language(matches)
    empty_words = _OTHER_EMPTY_WORDS.get(language, frozenset())

    words = []
    for match in matches:
        word = match.replace("’", "'")
        if _is_content_word(word) and without_accents(word) not in empty_words:
            words.append(word)
    return tuple(words)


def _guess_language(words: Sequence[str]) -> str:
    """Return the language of a text too short for `language_of`, "" for English or an unclear one.

    It is one of those with markers: the one with most stop words, if English has fewer of them.
    """
    plain_words = set(map(without_accents, words))
    best_language = ""
    best_count = len(plain_words & STOP_WORDS)
    for language in _OTHER_LANGUAGES:
        count = len(plain_words & STOP_WORDS_BY_LANGUAGE[language])
        if count > best_count:
            best_language = language
            best_count = count
    return best_language


def _is_content_word(word: str) -> bool:
    """Return whether a word in small letters says what a text is about. "it's" does not."""
    if len(word) < 2 or word in _EMPTY_WORDS:
        return False
    base, _, _ = word.partition("'")
    return base not in _EMPTY_WORDS


def read_return(message: str) -> tuple[str, ...] | None:
    """Return the content words of what a message returns to, as in "Back to the rain gauge: …".

    Returns () if it names nothing ("Back to that."), and None unless the message begins with such
    words; "OK, so" and the like may precede them, a greeting may not. Reads only 90 characters.
    """
    head = message[:_MAX_RETURN]
    for pattern in (*MARKERS["back"], *MARKERS["again"]):
        announcement = pattern.match(head)
        if announcement is not None:
            return content_words(announcement[1])
    return None


def states_outcome(sentence: str) -> bool:
    """Return whether a sentence says what was decided, done or found out, in any language."""
    return any(pattern.search(sentence) for pattern in MARKERS["outcome"])


def has_marker(name: str, text: str) -> bool:
    """Return whether a text begins with a marker of any language. Raises KeyError for the name."""
    return any(pattern.match(text) for pattern in MARKERS[name])


def _skip_lead_ins(message: str) -> str:
    """Return a message without what leads to it: a change of subject, a greeting, a user's name.

    Returns "" if the message has nothing else.
    """
    end = _lead_in_end(message)
    while end:
        message = message[end:]
        end = _lead_in_end(message)
    return message


def _lead_in_end(message: str) -> int:
    """Return the offset at which the first lead-in ends, 0 if the message begins with none."""
    for name in _LEAD_INS:
        lead_in = PATTERNS[name].match(message)
        if lead_in:
            return lead_in.end()
    return 0


def label_of(message: str) -> str:
    """Return a label of at most 50 characters for a new topic, in words of its first message.

    The label comes from the first clause with two words that say something, without "help me plan"
    and the like; one without "it" and the like is preferred. A message without such a clause gives
    its first words, an empty one "Conversation", so that the label is never empty.
    """
    label = clear_label_of(message)
    if label:
        return label

    text = _skip_lead_ins(message[:_MAX_LABEL_SOURCE])
    for clause in [*_CLAUSE_END.split(text), text]:
        label = _label_in(clause)
        if label:
            return label

    source = text if text.strip() else message
    first_words = " ".join(source.split())
    return first_words[:_MAX_LABEL].strip() or _DEFAULT_LABEL


def clear_label_of(message: str) -> str:
    """Return the label in the first clause that can be understood on its own, "" if none can."""
    labels = clear_labels_of(message)
    return labels[0] if labels else ""


def clear_labels_of(message: str) -> list[str]:
    """Return the labels in the clauses of a message that can be understood on their own, in order.

    Such a clause has no word that stands for something said elsewhere, as in "Sent it to her".
    """
    text = _skip_lead_ins(message[:_MAX_LABEL_SOURCE])
    vague_words = WORDS["vague"] | _VAGUE_WORDS.get(language_of(text), frozenset())
    labels = []
    for clause in _CLAUSE_END.split(text):
        label = _label_in(clause)
        if label and vague_words.isdisjoint(_WORD.findall(clause.lower())):
            labels.append(label)
    return labels


def _label_in(clause: str) -> str:
    """Return the label in a clause, from the first to the last word that says something.

    It has at most 50 characters, begins with a capital letter, and has no quotation marks. Returns
    "" if fewer than two words say something.
    """
    words = [word for word in _WORD.finditer(clause) if _is_label_word(word[0])]
    if len(words) < 2:
        return ""

    start = words[0].start()
    end = start + _MAX_LABEL  # in the middle of a word, if that alone is too long
    fitting_ends = [word.end() for word in words if word.end() <= end]
    if fitting_ends:
        end = fitting_ends[-1]
    label = _QUOTE.sub("", clause[start:end])
    return label[:1].upper() + label[1:]


def _is_label_word(word: str) -> bool:
    """Return whether a label may begin or end with a word."""
    return bool(content_words(word)) and word.lower() not in _NO_LABEL_WORDS


def keywords_of(messages: Sequence[str]) -> list[str]:
    """Return the content words that most messages have, at most five, the most frequent first.

    Of equally frequent words, those that occur first come first. The greeting or the like that
    leads to a message counts only if the message has nothing else.
    """
    counts = Counter[str]()
    for message in messages:
        text = _skip_lead_ins(message)
        if not text:
            text = message
        distinct_words = list(dict.fromkeys(content_words(text)))
        counts.update(distinct_words)

    keywords = []
    for word, _ in counts.most_common(_MAX_KEYWORDS):
        keywords.append(word)
    return keywords
