"""Replace misspelt words of a query by words of the notes.

Imported only for a query with a word that no note contains. docs/internals/ranking.md gives the
rules and their figures.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
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

# A word with fewer letters is not corrected, because too many words are similar to it. In a word of
# `_LONG_LENGTH` letters or more, two letters may be wrong, else one.
_MIN_LENGTH = 4
_LONG_LENGTH = 8

# A longer word is not corrected, because the time for its similar words grows with the square of
# its length. It is mostly a key or an encoded file.
_MAX_LENGTH = 100

_MAX_CORRECTED_WORDS = 4

_WORD = re.compile(r"\w+")

# Languages that join words into one, and the fewest letters before the last word.
_COMPOUNDING_LANGUAGES = ("de", "nl")
_MIN_FIRST_PART = 3

# No word is corrected to one of these: a query in its language would lose it.
_STOP_WORDS = STOP_WORDS.union(*STOP_WORDS_BY_LANGUAGE.values())

# In an index with more notes, a word that only one note contains may be misspelt itself. There it
# replaces no word of a query, unless it is in the name of that note.
_MAX_NOTES_WITH_RARE_WORDS = 1_000

# How many notes are read for the whole words of stems, per misspelt word, and how much of each.
_MAX_READ_NOTES = 30
_MAX_SEARCHED_CHARACTERS = 50_000

# A word with one of these English endings is spelt correctly if the rest is a frequent word. The
# endings of `_ENDINGS_FOR_E` replace an `e` at the end of some words: "baked".
_ENDINGS = ("s", "ed", "ing", "er", "ers", "ness")
_ENDINGS_FOR_E = ("ed", "ing", "er", "ers")


class _Candidate(NamedTuple):
    """A word that a misspelt word may mean, and the values by which one is chosen."""

    edits: int  # between the two words, without their accents
    is_assumed: bool  # whether no note is known to contain the word, but only its stem
    notes: int  # how many notes contain the stem
    word: str  # in lower case, with its accents

    def order(self) -> tuple[int, bool, int, str]:
        """Return the key that sorts the best candidate first.

        It has the fewest edits. Of several, the notes contain it, then most notes have its stem,
        then it is the first in alphabetical order.
        """
        return self.edits, self.is_assumed, -self.notes, self.word


class SpellingCorrector:
    """Corrects queries by the notes that pass a filter. Guards no state."""

    def __init__(self, index: IndexService, notes: NoteReader, filter: IndexFilter) -> None:
        self._index = index
        self._notes = notes
        self._filter = filter

    def correct(self, query: Query, plain_query: Query) -> Query:
        """Return the query with words of the notes in place of misspelt words of `query.absent`.

        `plain_query` is the query without the inflected forms of its words that `with_forms` adds.
        The result has the forms of all its words, and names what was replaced in `corrections`. At
        most 4 words are corrected. Reads up to 30 notes per word that may have a similar one.

        Words that end compounds of the notes get these as forms, and are not corrected. If there
        are none either, the result equals `query`.
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
        words that have compounds are no longer in `absent`, and `notice` names them. Returns
        an equal query if there are no such notes or words.
        """
        words = [word for word in _absent_words(query) if _may_end_compounds(word)]
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
        """Return the terms of the index that end with the stem of a word, as forms of the word."""
        ending = " ".join(tokenize(word))
        terms = self._index.compounds(ending, len(ending) + _MIN_FIRST_PART)
        # The tokenizer may shorten a term once more; then it would find other notes.
        return [Term((term,), stem_of=(word,)) for term in terms if tokenize(term) == [term]]

    def _word_meant_by(self, word: str) -> str:
        """Return the word of the notes that a misspelt word means; "" if there is none."""
        typed = without_accents(word)
        max_edits = _max_edits(typed)
        reader = _WordReader(self._notes, typed, max_edits)
        has_many_notes = self._index.progress().notes > _MAX_NOTES_WITH_RARE_WORDS

        candidates = []
        for similar in self._index.similar_terms(typed, max_edits, self._filter):
            may_be_misspelt = has_many_notes and similar.notes == 1
            candidate = reader.whole_word(similar, only_names=may_be_misspelt)
            if candidate is not None:
                candidates.append(candidate)
        if not candidates:
            return ""
        return min(candidates, key=_Candidate.order).word


class _WordReader:
    """Finds the whole words that stems stand for, for one misspelt word.

    Guards the similar words of the notes that were read, and so how many more may be read.
    """

    def __init__(self, notes: NoteReader, typed: str, max_edits: int) -> None:
        """Take the misspelt word without accents, and by how many edits others may differ."""
        self._notes = notes
        self._typed = typed
        self._max_edits = max_edits
        self._candidates_by_path: dict[str, list[_Candidate]] = {}
        self._assumed_words = _assumed_words(typed)

    def whole_word(self, similar: SimilarTerm, *, only_names: bool) -> _Candidate | None:
        """Return the best word with a stem that is similar to the misspelt word; None if none is.

        Reads the example notes of the stem in order, until one has such a word with a single edit.
        The word that is assumed for the stem (`_assumed_words`) takes part too, since it may be in
        a note that was not read.

        With `only_names`, only the names of the notes count, and no word is assumed.
        """
        candidates: list[_Candidate] = []
        for path in similar.paths:
            in_note = self._candidates_in(path, only_name=only_names)
            candidates += [
                candidate for candidate in in_note if tokenize(candidate.word) == [similar.term]
            ]
            if any(candidate.edits == 1 for candidate in candidates):
                break

        assumed = self._assumed_words.get(similar.term)
        if assumed is not None and not only_names:
            candidates.append(
                _Candidate(edits=1, is_assumed=True, notes=similar.notes, word=assumed)
            )
        if not candidates:
            return None
        best = min(candidates, key=_Candidate.order)
        return best._replace(notes=similar.notes)

    def _candidates_in(self, path: str, *, only_name: bool) -> list[_Candidate]:
        """Return the words of a note that are similar to the misspelt word.

        Reads the note once. With `only_name`, or if 30 other notes were read, only the words of its
        name count. A note that was deleted has only those too.
        """
        known = self._candidates_by_path.get(path)
        may_read = known is not None or len(self._candidates_by_path) < _MAX_READ_NOTES
        if only_name or not may_read:
            return _similar_words(base_name(path), self._typed, self._max_edits)

        if known is None:
            text = self._notes.text_of(path) or ""
            searched = f"{base_name(path)}\n{text[:_MAX_SEARCHED_CHARACTERS]}"
            known = _similar_words(searched, self._typed, self._max_edits)
            self._candidates_by_path[path] = known
        return known


def _assumed_words(typed: str) -> dict[str, str]:
    """Return words that are one edit away from a misspelt word, by their stems.

    They are assumed to be what a note with the stem contains: frequent words, and long words that
    are equal to their stem, as such a stem is mostly a word itself.
    """
    word_of_stem: dict[str, str] = {}
    # Of the words with one stem, a word of the vocabulary comes last and replaces the others.
    for word in sorted(words_one_edit_away(typed), key=is_one_piece):
        stem = " ".join(tokenize(word))
        is_long_stem = word == stem and len(word) >= _LONG_LENGTH
        if word not in _STOP_WORDS and (is_long_stem or _is_frequent(word)):
            word_of_stem[stem] = word
    return word_of_stem


def _words_to_correct(query: Query) -> list[str]:
    """Return the words of a query that may be misspelt, at most four.

    No note contains them. They are not literal (`_absent_words`), consist of letters, and are no
    frequent words of any language.
    """
    misspelt = [word for word in _absent_words(query) if _may_be_misspelt(word)]
    return misspelt[:_MAX_CORRECTED_WORDS]


def _absent_words(query: Query) -> list[str]:
    """Return the words of `query.absent`, without those that were meant literally.

    Literal are words of quoted phrases, of expressions such as `path/to.py`, words with a `*`, and
    words in capitals, if not all of the query is in capitals.
    """
    literal_words = set(query.beginnings)
    for phrase in query.phrases:
        literal_words.update(unique_words(phrase))
    for sequence in query.sequences:
        literal_words.update(sequence)
    if not query.text.isupper():
        for word in query.text.split():
            if word.isupper():
                literal_words.add(word.lower())

    return [word for word in query.absent if word not in literal_words]


def _may_end_compounds(word: str) -> bool:
    """Return whether a word has at least 4 letters, nothing else, and is of a spaced script."""
    return len(word) >= _MIN_LENGTH and word.isalpha() and not is_unspaced(word)


def _may_be_misspelt(word: str) -> bool:
    """Return whether a word has 4 to 100 letters, nothing else, and is no frequent word.

    Words of scripts without spaces are never misspelt.
    """
    is_word = _MIN_LENGTH <= len(word) <= _MAX_LENGTH and without_accents(word).isalpha()
    return is_word and not is_unspaced(word) and not _is_frequent(word)


def _is_frequent(word: str) -> bool:
    """Return whether a word is frequent in any language, or an inflected form of one in English."""
    if is_one_piece(word):
        return True
    for ending in _ENDINGS:
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < _MIN_LENGTH or word.endswith("ss"):
            continue
        if is_one_piece(rest):
            return True
        if ending in _ENDINGS_FOR_E and is_one_piece(f"{rest}e"):
            return True
    return False


def _max_edits(word: str) -> int:
    """Return by how many edits a word may differ from the word that was meant."""
    return 2 if len(word) >= _LONG_LENGTH else 1


def _similar_words(text: str, typed: str, max_edits: int) -> list[_Candidate]:
    """Return the words of a text that differ from the typed word by at most `max_edits`.

    Accents do not count. The first letter must be equal, or be the second one of the typed word.
    Stop words of all languages are left out.
    """
    words: list[str] = []
    plain_words: list[str] = []
    for word in sorted(set(split_words(text))):
        plain = without_accents(word)
        if plain in _STOP_WORDS:
            continue
        if plain[:1] in typed[:2] and abs(len(plain) - len(typed)) <= max_edits:
            words.append(word)
            plain_words.append(plain)

    candidates = []
    for word, edits in zip(words, edit_distances(typed, plain_words), strict=True):
        if edits <= max_edits:
            candidates.append(_Candidate(edits, is_assumed=False, notes=1, word=word))
    return candidates


def _with_replaced_words(query: Query, corrections: Mapping[str, str]) -> Query:
    """Return a query with words of the notes in place of misspelt ones.

    `corrections` has the word of the notes by the misspelt one. The query must have no forms of its
    words yet. A word that it has already is not repeated.
    """

    def corrected(words: Sequence[str]) -> tuple[str, ...]:
        """Return words, the misspelt ones replaced."""
        return tuple(corrections.get(word, word) for word in words)

    def corrected_match(match: re.Match[str]) -> str:
        """Return a word of the text, or what it means if it is misspelt."""
        return corrections.get(match[0].lower(), match[0])

    text = _WORD.sub(corrected_match, query.text)
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
