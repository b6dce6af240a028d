"""Find the terms of the index that a misspelt word may mean.

Imported only for a query with a word that no note contains. docs/internals/term-index.md describes
the search.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from simplemem.index.engine import LAST, Connection, IntegerList
from simplemem.index.terms.query_terms import Part
from simplemem.index.terms.segment import Array
from simplemem.index.terms.tokens import tokenize
from simplemem.note.stems import MARKS

_MAX_TERMS = 12
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

# One of these is at the end of each stem by the rules of a language other than English. The stem is
# not compared: its word is in the index too, with the stem of `tokenize`.
_MARKS = tuple(MARKS.values())


def find_similar_terms(
    db: Connection,
    parts: Sequence[Part],
    word: str,
    max_edits: int,
) -> list[str]:
    """Return terms that differ from a word by at most `max_edits`: the nearest, then the frequent.

    An edit inserts, removes or replaces a letter, or swaps two neighbours. The first letter must be
    equal, or be swapped with the second. `word` is in lower case and has at least two letters.

    Terms are stems. So both the word and its stem are compared, and a term counts as one edit away
    if it is the stem of a word that is one edit away. At most 12 terms are returned. Terms that
    only deleted notes contain may be among them.
    """
    counts = _count_terms(db, parts, _beginnings(word), len(word) + max_edits)
    edits_of_term = _edits_of_terms(word, counts, max_edits)

    # A typing error often hides the ending: "settngs" and "settings" have the stems "settng" and
    # "set".
    stems_of_edited = tokenize(" ".join(words_one_edit_away(word)))
    for term in counts.keys() & set(stems_of_edited):
        edits_of_term[term] = 1

    def order(term: str) -> tuple[int, int, str]:
        """Return the key that sorts terms: fewest edits, then most notes, then by letters."""
        return edits_of_term[term], -counts[term], term

    return sorted(edits_of_term, key=order)[:_MAX_TERMS]


def _edits_of_terms(word: str, terms: Iterable[str], max_edits: int) -> dict[str, int]:
    """Return the terms that differ from a word or its stem by at most `max_edits`.

    Each has the fewer of both edits.
    """
    compared = [term for term in terms if not term.endswith(_MARKS)]
    edits_of_term: dict[str, int] = {}
    for form in dict.fromkeys((word, *tokenize(word))):
        near = [term for term in compared if abs(len(term) - len(form)) <= max_edits]
        for term, edits in zip(near, edit_distances(form, near), strict=True):
            fewest = min(edits, edits_of_term.get(term, max_edits + 1))
            if fewest <= max_edits:
                edits_of_term[term] = fewest
    return edits_of_term


def find_compounds(
    db: Connection, parts: Sequence[Part], ending: str, min_length: int
) -> list[str]:
    """Return the terms that end with the stem `ending` and have at least `min_length` letters.

    The terms in most notes come first. At most 12 are returned. Terms that only deleted notes
    contain may be among them. All terms are read, but only a few queries of vaults in some
    languages need them.
    """
    counts: Counter[str] = Counter()
    with_rows = _segments_with_rows(parts)
    if with_rows:
        sql = f"""
            SELECT term, notes FROM terms
            WHERE {db.dialect.in_integers("segment_id", "$1")}
              AND length(term) >= $2 AND substr(term, length(term) - $3 + 1) = $4"""
        values = (IntegerList(with_rows), min_length, len(ending), ending)
        rows: Iterable[Any] = db.execute(sql, values)
        for term, count in rows:
            counts[term] += count

    for part in parts:
        for term, count in _packed_terms(part, ""):
            if len(term) >= min_length and term.endswith(ending):
                counts[term] += count

    most_notes_first = sorted(counts, key=lambda term: (-counts[term], term))
    return most_notes_first[:_MAX_TERMS]


def edit_distances(word: str, others: Sequence[str]) -> list[int]:
    """Return by how many edits a word differs from each of other words, in their order.

    An edit inserts, removes or replaces a letter, or swaps two neighbours (optimal string
    alignment). All other words are compared at once, a row of the table at a time.
    """
    if not others:
        return []

    # One row per place, one column per word; a short word has zeros at its end.
    width = max(1, *map(len, others))
    codes = np.array(others, f"U{width}").view(np.uint32)
    letters = codes.reshape(len(others), width).T

    # Each row of the table has the distances of a beginning of `word` to all beginnings of the
    # others: the first index is the length of theirs, the second one the word.
    lengths = np.arange(width + 1, dtype=np.int16)[:, None]
    row = np.repeat(lengths, len(others), axis=1)
    row_before = row
    was_equal = np.zeros(letters.shape, bool)
    for number, letter in enumerate(map(ord, word), 1):
        is_equal = letters == letter
        replaced = row[:-1] + ~is_equal
        removed = row[1:] + 1
        best = np.minimum(replaced, removed)

        is_swapped = is_equal[:-1] & was_equal[1:]
        swapped = np.where(is_swapped, row_before[:-2] + 1, best[1:])
        best[1:] = np.minimum(best[1:], swapped)

        # A letter is inserted after the best way to any shorter beginning.
        first = np.full((1, len(others)), number, np.int16)
        new_row = np.vstack([first, best])
        new_row = np.minimum.accumulate(new_row - lengths, axis=0) + lengths

        row_before = row
        row = new_row
        was_equal = is_equal

    whole_lengths = [len(other) for other in others]
    distances: Array = row[whole_lengths, np.arange(len(others))]
    return [int(distance) for distance in distances]


def _beginnings(word: str) -> tuple[str, ...]:
    """Return how terms similar to a word begin: as it does, or with its first two letters swapped.

    The word has at least two letters.
    """
    first = word[0]
    second = word[1]
    if first == second:
        return (first,)
    return first, second + first


def _count_terms(
    db: Connection,
    parts: Sequence[Part],
    beginnings: Iterable[str],
    max_length: int,
) -> Counter[str]:
    """Return the terms of all segments that begin so, with at most `max_length` letters.

    Each has its number of notes. These are sums over the segments: deleted notes are among them,
    and a note that is in two segments counts twice.
    """
    counts: Counter[str] = Counter()
    with_rows = _segments_with_rows(parts)
    for beginning in beginnings:
        if with_rows:
            for term, count in _select_terms(db, with_rows, beginning, max_length):
                counts[term] += count

        for part in parts:
            for term, count in _packed_terms(part, beginning):
                if len(term) <= max_length:
                    counts[term] += count
    return counts


def _segments_with_rows(parts: Sequence[Part]) -> list[int]:
    """Return the numbers of the segments that are not packed: their terms are rows of a table."""
    return [part.segment.number for part in parts if part.segment.packed is None]


def _select_terms(
    db: Connection, numbers: Sequence[int], beginning: str, max_length: int
) -> Iterable[Any]:
    """Query (term, number of notes) of the terms that begin so and are at most `max_length` long.

    `numbers` are those of segments with rows in the table `terms`. Each segment has its own row.
    """
    sql = f"""
        SELECT term, notes FROM terms
        WHERE {db.dialect.in_integers("segment_id", "$1")}
          AND term >= $2 AND term < $3 AND length(term) <= $4"""
    return db.execute(sql, (IntegerList(numbers), beginning, beginning + LAST, max_length))


def _packed_terms(part: Part, beginning: str) -> Iterator[tuple[str, int]]:
    """Yield the terms of a packed segment that begin so, each with its number of postings.

    An empty beginning yields all. Yields none for a segment that is not packed.
    """
    packed = part.segment.packed
    if packed is None:
        return

    indexes: Iterable[int] = range(len(packed.terms))
    if beginning:
        indexes = packed.indexes_of_prefix(beginning)
    for index in indexes:
        yield packed.terms[index], int(packed.posting_counts[index])


def words_one_edit_away(word: str) -> list[str]:
    """Return all words that differ by one edit from a word, and the word itself.

    Inserted letters are those from a to z. The first letter is equal, or swapped with the second.
    Returns none for a word with a letter that is not ASCII. The word has at least two letters.
    """
    if not word.isascii():
        return []
    edited = [word[1] + word[0] + word[2:]]
    for place in range(1, len(word) + 1):
        before = word[:place]
        after = word[place:]
        edited += [before + letter + after for letter in _LETTERS]
        if after:
            rest = after[1:]
            edited += [before + letter + rest for letter in _LETTERS]
            edited.append(before + rest)
            edited.append(before + rest[:1] + after[0] + rest[1:])
    return list(dict.fromkeys(edited))
