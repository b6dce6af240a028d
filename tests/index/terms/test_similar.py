"""Similar terms are found by the number of edits, in packed segments and in those with rows."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from index.terms.vault_of_words import open_index, put_notes, term_index

from simplemem.index.terms.merging import merge_segments
from simplemem.index.terms.similar import edit_distances, words_one_edit_away

LETTERS = st.text("abcä", max_size=7)


def edits_by_definition(word: str, other: str) -> int:
    """Return the distance of optimal string alignment, by its recursive definition."""

    @cache
    def distance(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        ways = [distance(i - 1, j) + 1, distance(i, j - 1) + 1]
        ways.append(distance(i - 1, j - 1) + (word[i - 1] != other[j - 1]))
        if i > 1 and j > 1 and word[i - 2 : i] == other[j - 1] + other[j - 2]:
            ways.append(distance(i - 2, j - 2) + 1)
        return min(ways)

    return distance(len(word), len(other))


@given(LETTERS, st.lists(LETTERS, max_size=5))
def test_edits_are_counted_as_defined(word: str, others: list[str]) -> None:
    expected = [edits_by_definition(word, other) for other in others]
    assert edit_distances(word, others) == expected


@given(st.text("abcz", min_size=2, max_size=6))
def test_words_one_edit_away_differ_by_at_most_one_edit(word: str) -> None:
    assert max(edit_distances(word, words_one_edit_away(word))) <= 1


@pytest.mark.parametrize("has_rows", [False, True])
def test_the_most_similar_term_comes_first_with_the_notes_that_hold_it(
    tmp_path: Path, has_rows: bool
) -> None:
    database = open_index(tmp_path)
    texts = {
        "a": "obsidian settings",
        "b": "obsidian and obsidiana",
        "c": "quite different",
        "d": "basidian",
    }
    with database.writing() as db:
        ids = put_notes(db, texts)
    if has_rows:
        merge_segments(database, max_packed=0)

    with database.reading() as db:
        index = term_index(db)
        assert index.notes_with_similar_terms(db, "obsidain", 2, None) == [
            ("obsidian", [ids["a"], ids["b"]]),
            ("obsidiana", [ids["b"]]),
        ]
        assert index.notes_with_similar_terms(db, "obsidain", 2, [ids["b"], ids["c"]]) == [
            ("obsidian", [ids["b"]]),
            ("obsidiana", [ids["b"]]),
        ]
        assert index.notes_with_similar_terms(db, "settngs", 1, None) == [("set", [ids["a"]])]
        assert index.notes_with_similar_terms(db, "zzzz", 1, None) == []
