"""Replace misspelt words of a query by words of the notes.

Imported only for a query with a word that no note contains. docs/internals/ranking.md gives the
rules and their figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from simplemem.index.api import IndexFilter, SimilarTerm, Term
from simplemem.index.service import IndexService
from simplemem.index.terms.similar import edit_distances, words_one_edit_away
from simplemem.index.terms.tokens import tokenize
from simplemem.note.names import base_name
from simplemem.note.stems import MARKS
from simplemem.note.words import (
    STOP_WORDS,
    STOP_WORDS_BY_LANGUAGE,
    is_unspaced,
    split_words,
    unique_words,
    without_accents,
)
from simplemem.providers.word_vectors import is_one_piece
from simplemem.search.needs import NoteReader
from simplemem.search.query import Query, with_forms

# A shorter word has too many neighbours. From `_LONG_LENGTH` on, two letters may be wrong.
_MIN_LENGTH = 4
_LONG_LENGTH = 8

_MAX_CORRECTED_WORDS = 4

# Languages that join words into one, and the least letters before the last word.
_COMPOUNDING_LANGUAGES = ("de", "nl")
_MIN_FIRST_PART = 3

# In an index with more notes, a word that a single note contains, and not in its name, may be
# misspelt itself.
_MAX_NOTES_WITH_RARE_WORDS = 1_000

# No word is corrected to one of these: a query in its language would lose it.
_STOP_WORDS = STOP_WORDS.union(*STOP_WORDS_BY_LANGUAGE.values())

# How much of a note is searched for the word that a stem stands for.
_MAX_SEARCHED_CHARACTERS = 50_000
_MAX_READ_NOTES = 30

# An English word with one of these endings is no misspelt word if the rest is a frequent word, also
# with the `e` that some endings replace.
_ENDINGS = ("s", "ed", "ing", "er", "ers", "ness")
_ENDINGS_FOR_E = ("ed", "ing", "er", "ers")


class _Word(NamedTuple):
    """A word that a misspelt word may mean, with what it is chosen by.

    `is_assumed` is whether the notes are only known to contain its stem.
    """

    edits: int
    is_assumed: bool
    notes: int
    word: str

    def order(self) -> tuple[int, bool, int, str]:
        """Return the key that sorts the best word first: fewest edits, then most notes."""
        return self.edits, self.is_assumed, -self.notes, self.word


class SpellingCorrector:
    """Corrects queries by the notes that pass a filter. Guards no state."""

    def __init__(self, index: IndexService, notes: NoteReader, filter: IndexFilter) -> None:
        self._index = index
        self._notes = notes
        self._filter = filter

    def correct(self, query: Query, plain_query: Query) -> Query:
        """Return the query with words of the notes in place of misspelt words of `query.absent`.

        `plain_query` is the query without the forms of its words. The result has the forms of all
        its words; it is `query` itself if nothing is corrected. The same notes and query always
        give the same result.
        """
        query = self._with_compounds(query)
        corrections: dict[str, str] = {}
        for word in _words_to_correct(query):
            meant = self._word_meant_by(word)
            if meant:
                corrections[word] = meant
        if not corrections:
            return query

        replaced = _with_replaced_words(plain_query, corrections)
        corrected, _ = with_forms(replaced, self._index.vocabulary)
        return self._with_compounds(corrected)

    def _with_compounds(self, query: Query) -> Query:
        """Return the query with compounds of the notes as forms of the words that end them.

        `Schutz` finds "Datenschutz" if the vault has notes in a language that joins words. The
        words that have compounds are no longer in `absent`, and `notice` names them.
        """
        words = [word for word in _literal_free(query) if _may_end_compounds(word)]
        if not words or not self._has_compounding_language():
            return query

        forms = dict(query.forms)
        notices = [query.notice] if query.notice else []
        absent = list(query.absent)
        for word in words:
            compounds = self._compounds_of(word)
            if compounds:
                forms[word] = (*forms.get(word, ()), *compounds)
                absent.remove(word)
                notices.append(f"No note contains {word}; searched for words that end with it.")
        return replace(query, forms=forms, notice=" ".join(notices), absent=tuple(absent))

    def _has_compounding_language(self) -> bool:
        """Return whether some notes are in a language that joins words into one."""
        marks = [(Term((MARKS[language],)),) for language in _COMPOUNDING_LANGUAGES]
        counts, _ = self._index.vocabulary(marks)
        return any(counts)

    def _compounds_of(self, word: str) -> list[Term]:
        """Return the terms of the index that end with a word, as forms of it."""
        ending = " ".join(tokenize(word))
        terms = self._index.compounds(ending, len(ending) + _MIN_FIRST_PART)
        # The tokenizer may shorten a term once more; then it would find other notes.
        return [Term((term,), stem_of=(word,)) for term in terms if tokenize(term) == [term]]

    def _word_meant_by(self, word: str) -> str:
        """Return the word of the notes that a misspelt word means; "" if there is none."""
        plain = without_accents(word)
        max_edits = _max_edits(plain)
        reader = _WordReader(self._notes, plain, max_edits)
        has_many_notes = self._index.progress().notes > _MAX_NOTES_WITH_RARE_WORDS
        candidates = []
        for similar in self._index.similar_terms(plain, max_edits, self._filter):
            is_rare = has_many_notes and similar.notes == 1
            candidate = reader.whole_word(similar, only_names=is_rare)
            if candidate is not None:
                candidates.append(candidate)
        if not candidates:
            return ""
        return min(candidates, key=_Word.order).word


class _WordReader:
    """Finds the whole words of stems in the notes, for one misspelt word.

    Guards the words of the notes that were read, and how many more may be.
    """

    def __init__(self, notes: NoteReader, typed: str, max_edits: int) -> None:
        self._notes = notes
        self._typed = typed
        self._max_edits = max_edits
        self._words_by_path: dict[str, list[_Word]] = {}
        self._word_of_stem: dict[str, str] = {}
        # Of the words with one stem, a word of the vocabulary comes last and stays.
        for word in sorted(words_one_edit_away(typed), key=is_one_piece):
            stem = " ".join(tokenize(word))
            is_long_stem = word == stem and len(word) >= _LONG_LENGTH
            if word not in _STOP_WORDS and (is_long_stem or _is_frequent(word)):
                self._word_of_stem[stem] = word

    def whole_word(self, similar: SimilarTerm, *, only_names: bool) -> _Word | None:
        """Return the word that a stem stands for, if it is near enough to the typed word.

        It is the nearest in the first example note that has one with a single edit. A frequent word
        with this stem that is a single edit away is assumed to be in a note that was not read; so
        is a long stem, which mostly is a word itself. With `only_names`, only the names of the
        notes are read.
        """
        words: list[_Word] = []
        for path in similar.paths:
            near_words = self._words_of(path, only_name=only_names)
            words += [near for near in near_words if tokenize(near.word) == [similar.term]]
            if any(word.edits == 1 for word in words):
                break

        edited = self._word_of_stem.get(similar.term)
        if edited is not None and not only_names:
            words.append(_Word(1, True, similar.notes, edited))
        if not words:
            return None
        return min(words, key=_Word.order)._replace(notes=similar.notes)

    def _words_of(self, path: str, *, only_name: bool) -> list[_Word]:
        """Return the words of a note that are near the typed one; after 30 notes, of its name."""
        if only_name or (path not in self._words_by_path and self._has_read_enough()):
            return list(_near_words(base_name(path), self._typed, self._max_edits))
        if path not in self._words_by_path:
            text = self._notes.text_of(path) or ""
            searched = f"{base_name(path)}\n{text[:_MAX_SEARCHED_CHARACTERS]}"
            near_words = _near_words(searched, self._typed, self._max_edits)
            self._words_by_path[path] = list(near_words)
        return self._words_by_path[path]

    def _has_read_enough(self) -> bool:
        """Return whether no further note may be read."""
        return len(self._words_by_path) >= _MAX_READ_NOTES


def _words_to_correct(query: Query) -> list[str]:
    """Return the words of a query that may be misspelt, at most four.

    No note contains them. They consist of letters, and are no frequent words of any language.
    Words of quoted phrases, of expressions such as `path/to.py` and of codes in capitals, and words
    with a `*` are not among them.
    """
    misspelt = [word for word in _literal_free(query) if _may_be_misspelt(word)]
    return misspelt[:_MAX_CORRECTED_WORDS]


def _literal_free(query: Query) -> list[str]:
    """Return the words of `absent` that were not typed as a phrase, an expression or a code."""
    literal_words = set(query.beginnings)
    for phrase in query.phrases:
        literal_words.update(unique_words(phrase))
    for sequence in query.sequences:
        literal_words.update(sequence)
    if not query.text.isupper():
        literal_words.update(map(str.lower, filter(str.isupper, query.text.split())))

    return [word for word in query.absent if word not in literal_words]


def _may_end_compounds(word: str) -> bool:
    """Return whether a word is long enough, and has only letters."""
    return len(word) >= _MIN_LENGTH and word.isalpha() and not is_unspaced(word)


def _may_be_misspelt(word: str) -> bool:
    """Return whether a word is long enough, has only letters, and is no frequent word."""
    is_word = len(word) >= _MIN_LENGTH and without_accents(word).isalpha()
    return is_word and not is_unspaced(word) and not _is_frequent(word)


def _is_frequent(word: str) -> bool:
    """Return whether a word is frequent in any language, or an inflected form of one in English."""
    if is_one_piece(word):
        return True
    for ending in _ENDINGS:
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < _MIN_LENGTH or word.endswith("ss"):
            continue
        if is_one_piece(rest) or (ending in _ENDINGS_FOR_E and is_one_piece(f"{rest}e")):
            return True
    return False


def _max_edits(word: str) -> int:
    """Return by how many edits a word may differ from the word that was meant."""
    return 2 if len(word) >= _LONG_LENGTH else 1


def _near_words(text: str, typed: str, max_edits: int) -> Iterator[_Word]:
    """Yield the words of a text that differ from the typed word by at most `max_edits`."""
    words = [
        word
        for word in sorted(set(split_words(text)))
        if word[0] in typed[:2] and abs(len(word) - len(typed)) <= max_edits
    ]
    words = [word for word in words if without_accents(word) not in _STOP_WORDS]
    plain_words = [without_accents(word) for word in words]
    for word, edits in zip(words, edit_distances(typed, plain_words), strict=True):
        if edits <= max_edits:
            yield _Word(edits, is_assumed=False, notes=1, word=word)


def _with_replaced_words(query: Query, corrections: Mapping[str, str]) -> Query:
    """Return a query, which has no forms of its words yet, with corrected words in their places.

    A word that the query has already is not repeated; it counts as typed.
    """

    def corrected(words: Sequence[str]) -> tuple[str, ...]:
        return tuple(corrections.get(word, word) for word in words)

    text = query.text
    for typed, meant in corrections.items():
        text = re.sub(rf"(?<!\w){re.escape(typed)}(?!\w)", meant, text, flags=re.IGNORECASE)

    pairs = [(first, second) for first, second in map(corrected, query.pairs)]
    return replace(
        query,
        text=text,
        words=tuple(dict.fromkeys(corrected(query.words))),
        all_words=corrected(query.all_words),
        pairs=tuple(dict.fromkeys(pairs)),
        unfinished_word=corrections.get(query.unfinished_word, query.unfinished_word),
        corrections=dict(corrections),
    )
