"""Replace misspelt words of a query by words of the notes.

Imported only for a query with a word that no note contains. docs/internals/ranking.md gives the
rules and their figures.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

from simplemem.index.api import IndexFilter, SimilarTerm
from simplemem.index.service import IndexService
from simplemem.index.terms.similar import edit_distances, words_one_edit_away
from simplemem.index.terms.tokens import tokenize
from simplemem.note.names import base_name
from simplemem.note.words import STOP_WORDS, is_unspaced, split_words, unique_words, without_accents
from simplemem.providers.word_vectors import is_one_piece
from simplemem.search.needs import NoteReader
from simplemem.search.query import Query, with_forms

# A shorter word has too many neighbours. From `_LONG_LENGTH` on, two letters may be wrong.
_MIN_LENGTH = 4
_LONG_LENGTH = 8

_MAX_CORRECTED_WORDS = 4

# In an index with more notes, a word that a single note contains, and not in its name, may be
# misspelt itself.
_MAX_NOTES_WITH_RARE_WORDS = 1_000

# How much of a note is searched for the word that a stem stands for.
_MAX_SEARCHED_CHARACTERS = 200_000


class _Word(NamedTuple):
    """A word of the notes that a misspelt word may mean, with what it is chosen by."""

    edits: int
    notes: int
    word: str

    def order(self) -> tuple[int, int, str]:
        """Return the key that sorts the best word first: fewest edits, then most notes."""
        return self.edits, -self.notes, self.word


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
        corrections: dict[str, str] = {}
        for word in _words_to_correct(query):
            meant = self._word_meant_by(word)
            if meant:
                corrections[word] = meant
        if not corrections:
            return query

        replaced = _with_replaced_words(plain_query, corrections)
        corrected, _ = with_forms(replaced, self._index.vocabulary)
        return corrected

    def _word_meant_by(self, word: str) -> str:
        """Return the word of the notes that a misspelt word means; "" if there is none."""
        plain = without_accents(word)
        max_edits = _max_edits(plain)
        candidates = []
        for similar in self._index.similar_terms(plain, max_edits, self._filter):
            candidate = self._whole_word(similar, plain, max_edits)
            if candidate is not None:
                candidates.append(candidate)
        if not candidates:
            return ""
        return min(candidates, key=_Word.order).word

    def _whole_word(self, similar: SimilarTerm, typed: str, max_edits: int) -> _Word | None:
        """Return the word of a note that a stem stands for, if it is near enough to the typed one.

        Reads the example notes until one has such a word. Of several, the nearest is returned. A
        frequent word with this stem that is one edit away is assumed to be in another note.
        """
        is_rare = similar.notes == 1 and self._index.progress().notes > _MAX_NOTES_WITH_RARE_WORDS
        for path in similar.paths:
            text = base_name(path)
            if not is_rare:
                note_text = self._notes.text_of(path) or ""
                text = f"{text}\n{note_text[:_MAX_SEARCHED_CHARACTERS]}"

            near_words = _near_words(text, typed, max_edits)
            of_term = [near for near in near_words if tokenize(near.word) == [similar.term]]
            if of_term:
                nearest = min(of_term, key=_Word.order)
                return nearest._replace(notes=similar.notes)

        frequent_word = _frequent_words_near(typed).get(similar.term)
        if frequent_word is None:
            return None
        return _Word(1, similar.notes, frequent_word)


def _words_to_correct(query: Query) -> list[str]:
    """Return the words of a query that may be misspelt, at most four.

    No note contains them. They consist of letters, and are no frequent words of any language.
    Words of quoted phrases, of expressions such as `path/to.py` and of codes in capitals, and words
    with a `*` are not among them.
    """
    literal_words = set(query.beginnings)
    for phrase in query.phrases:
        literal_words.update(unique_words(phrase))
    for sequence in query.sequences:
        literal_words.update(sequence)
    if not query.text.isupper():
        literal_words.update(map(str.lower, filter(str.isupper, query.text.split())))

    words = [word for word in query.absent if word not in literal_words]
    misspelt = [word for word in words if _may_be_misspelt(word)]
    return misspelt[:_MAX_CORRECTED_WORDS]


def _may_be_misspelt(word: str) -> bool:
    """Return whether a word is long enough, has only letters, and is no frequent word."""
    is_word = len(word) >= _MIN_LENGTH and without_accents(word).isalpha()
    return is_word and not is_unspaced(word) and not is_one_piece(word)


def _max_edits(word: str) -> int:
    """Return by how many edits a word may differ from the word that was meant."""
    return 2 if len(word) >= _LONG_LENGTH else 1


@lru_cache(maxsize=100)
def _frequent_words_near(typed: str) -> dict[str, str]:
    """Return the frequent words that are one edit away from a typed word, by their stems."""
    words = filter(is_one_piece, words_one_edit_away(typed))
    return {" ".join(tokenize(word)): word for word in words}


def _near_words(text: str, typed: str, max_edits: int) -> Iterator[_Word]:
    """Yield the words of a text that differ from the typed word by at most `max_edits`."""
    words = [
        word
        for word in sorted(set(split_words(text)))
        if word[0] in typed[:2] and abs(len(word) - len(typed)) <= max_edits
    ]
    words = [word for word in words if word not in STOP_WORDS]
    plain_words = [without_accents(word) for word in words]
    for word, edits in zip(words, edit_distances(typed, plain_words), strict=True):
        if edits <= max_edits:
            yield _Word(edits, 1, word)


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
