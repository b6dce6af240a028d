"""The forms that the words of a query are searched in: stems, beginnings and characters.

Which forms are useful depends on the notes, so the index is asked how many notes contain them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from simplemem.index.door import AnyOf, Standing, Term
from simplemem.note.stems import MARKS, stem
from simplemem.note.words import find_stop_words, is_unspaced
from simplemem.search.query import Query

# `Sidecar.vocabulary`. For each group of terms it returns how many notes contain one of them, and
# it returns the index status.
Vocabulary = Callable[[Sequence[AnyOf]], tuple[Sequence[int], Standing]]

# A shorter beginning would match too many words.
_MIN_BEGINNING = 3


def with_forms(query: Query, vocabulary: Vocabulary) -> tuple[Query, Standing]:
    """Return the query with all forms its words are searched in, and the index status.

    The forms are stems in the languages of the vault. If no note contains a word, its beginning or
    its characters may be searched for; `instead` then says so.
    """
    if not (query.words or query.without):
        _, status = vocabulary(())
        return query, status

    # A note in a language other than English contains the mark of the language.
    marks_and_words = [*MARKS.values(), *query.words]
    counts, status = vocabulary([(Term((word,)),) for word in marks_and_words])
    mark_counts = zip(MARKS, counts, strict=False)
    languages = [language for language, count in mark_counts if count]

    counts = counts[len(MARKS) :]
    if languages:
        query, counts = _with_stems(query, counts, languages, vocabulary)
    query = replace(query, note_counts=tuple(counts))

    missing = [word for word, count in zip(query.words, counts, strict=True) if not count]
    if missing or query.beginnings:
        query = _with_substitutes(query, missing, vocabulary)
    return query, status


def _with_stems(
    query: Query, counts: Sequence[int], languages: Collection[str], vocabulary: Vocabulary
) -> tuple[Query, Sequence[int]]:
    """Return the query with the useful stems of its words, and the note count of each word.

    `counts` are the numbers of notes that contain each word as it is spelled. The returned counts
    are the numbers of notes that contain any of its forms.
    """
    counts_as_spelled = dict(zip(query.words, counts, strict=True))
    query = _in_languages(query, languages)
    counts_of_forms, _ = vocabulary([query.forms_of(word) for word in query.words])

    query = _without_idle_stems(query, counts_as_spelled, counts_of_forms)
    query = replace(query, stem_pairs=_stem_pairs(query, languages))
    return query, counts_of_forms


def _in_languages(query: Query, languages: Collection[str]) -> Query:
    """Return the query with the stems of its words, without the stop words of its language."""
    stop_words = find_stop_words(query.words, languages)
    words = tuple(word for word in query.words if word not in stop_words) or query.words
    forms = {word: _stem_terms((word,), languages) for word in words}
    pairs = tuple(pair for pair in query.pairs if not stop_words.issuperset(pair))
    without = [stem for word in query.without for stem in _stems(word.lower(), languages)]
    return replace(query, words=words, pairs=pairs, forms=forms, without_forms=tuple(without))


def _without_idle_stems(
    query: Query, counts_as_spelled: Mapping[str, int], counts_of_forms: Sequence[int]
) -> Query:
    """Return the query without the stems that add no note to those that contain the word itself.

    Such stems would only favour the notes of their language.
    """
    counts = zip(query.words, counts_of_forms, strict=True)
    useful = {word for word, count in counts if count > counts_as_spelled[word]}
    forms = {word: terms for word, terms in query.forms.items() if word in useful}
    return replace(query, forms=forms)


def _stem_pairs(query: Query, languages: Collection[str]) -> tuple[Term, ...]:
    """Return the stems of neighbouring words, if at least one of the two has a useful stem."""
    pairs = [pair for pair in pairwise(query.words) if not query.forms.keys().isdisjoint(pair)]
    return tuple(term for pair in pairs for term in _stem_terms(pair, languages))


def _stem_terms(words: tuple[str, ...], languages: Collection[str]) -> tuple[Term, ...]:
    """Return the stems of neighbouring words, one term per language; none if a word has no stem."""
    stems_of_words = [_stems(word, languages) for word in words]
    stems_by_language = zip(*stems_of_words, strict=False)
    return tuple(Term(stems, stem_of=words) for stems in stems_by_language)


def _stems(word: str, languages: Collection[str]) -> tuple[str, ...]:
    """Return the stem of a word in each language; none for numbers and scripts without spaces."""
    if not word.isalpha() or is_unspaced(word):
        return ()
    return tuple(stem(word, language) for language in languages)


def _with_substitutes(query: Query, missing: Sequence[str], vocabulary: Vocabulary) -> Query:
    """Return the query with what to search for in place of the words that no note contains."""
    forms = dict(query.forms)
    for word in query.beginnings:
        forms[word] = (*forms.get(word, ()), Term((word,), beginning=True))

    characters = _characters_of_missing(query, missing, vocabulary)
    completions = _completions_of_last(query, missing, vocabulary)
    forms |= characters
    forms |= completions

    notices = [query.instead] if query.instead else []
    by_characters = [word for word, terms in characters.items() if terms]
    notices += [
        f'No note contains "{word}"; its characters were searched for.'
        for word in by_characters[:1]
    ]
    notices += [
        f'No note contains "{word}"; words that begin with it were searched for.'
        for word in completions
    ]

    absent = [word for word in missing if forms.get(word, ()) == query.forms.get(word, ())]
    return replace(query, forms=forms, instead=" ".join(notices), absent=tuple(absent))


def _characters_of_missing(
    query: Query, missing: Sequence[str], vocabulary: Vocabulary
) -> dict[str, tuple[Term, ...]]:
    """Return the characters of each word in a script without spaces.

    Returns nothing if a note contains one of these words.
    """
    unspaced = [word for word in query.words if is_unspaced(word)]
    if not set(unspaced) <= set(missing):
        return {}
    return {
        word: _terms_in_notes([Term((character,)) for character in word], vocabulary)
        for word in unspaced
    }


def _completions_of_last(
    query: Query, missing: Sequence[str], vocabulary: Vocabulary
) -> dict[str, tuple[Term, ...]]:
    """Return the last word as a beginning, if notes contain only words that begin with it."""
    word = query.last
    is_candidate = (
        word in missing
        and word not in query.beginnings
        and not is_unspaced(word)
        and len(word) >= _MIN_BEGINNING
    )
    if not is_candidate:
        return {}

    terms = _terms_in_notes([Term((word,), beginning=True)], vocabulary)
    return {word: terms} if terms else {}


def _terms_in_notes(terms: Sequence[Term], vocabulary: Vocabulary) -> tuple[Term, ...]:
    """Return those terms that at least one note contains."""
    counts, _ = vocabulary([(term,) for term in terms])
    return tuple(term for term, count in zip(terms, counts, strict=True) if count)
