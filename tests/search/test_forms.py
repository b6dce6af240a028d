"""The words of a query are searched in the forms that a vault has."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from index.terms.vault_of_words import term_index

from simplemem.index.api import AnyOf, IndexProgress, Term
from simplemem.index.sqlite.engine import open_engine
from simplemem.index.terms.tokens import NoteTokens, SegmentBuilder, TextTokens, tokenize
from simplemem.index.terms.writer import add_notes
from simplemem.note.stems import MARKS, stems_of
from simplemem.search.query import Query, read_query, with_forms

GERMAN = "Die Häuser der Stadt wurden verkauft"


class Words:
    """The words of some notes as the index has them. Notes are numbered from 1."""

    def __init__(self, *texts: str) -> None:
        self._database = open_engine(Path(tempfile.mkdtemp()) / "index.db", nullcontext)
        builder = SegmentBuilder()
        for number, text in enumerate(texts, 1):
            words = TextTokens(tokenize(text))
            builder.add(NoteTokens(number, TextTokens(()), words, ()))
        with self._database.writing() as db:
            add_notes(db, builder)

    def vocabulary(self, asked: Sequence[AnyOf]) -> tuple[list[int], IndexProgress]:
        with self._database.reading() as db:
            return term_index(db).count_notes(db, asked), IndexProgress(0, (), {})

    def found(self, terms: Sequence[Term]) -> list[int]:
        with self._database.reading() as db:
            return sorted(term_index(db).best_notes(db, terms, 100, None))


def meant(query: Query, words: Words) -> Query:
    return with_forms(query, words.vocabulary)[0]


MIXED = Words(
    "The harbour crane was repaired.", f"{GERMAN}\n{stems_of(GERMAN, 'de')}\n{MARKS['de']}"
)


@given(st.text(max_size=80))
def test_no_question_becomes_one_that_the_index_refuses(text: str) -> None:
    query = meant(read_query(text), MIXED)
    for terms in (query.terms(), query.neighbour_terms()):
        if terms:
            MIXED.found(terms)


@given(
    st.lists(
        st.sampled_from("Haus haeuser crane cranse harb* v1.2 getName 行く die verkaufen".split()),
        max_size=6,
    )
)
def test_no_word_that_ranks_is_lost_but_small_ones(words: list[str]) -> None:
    before = read_query(" ".join(words))
    after = meant(before, MIXED)
    assert set(before.words) - set(after.words) <= {"die"}
    assert {Term((word,)) for word in after.words} <= set(after.terms())


def test_neighbours_are_asked_by_their_stems_as_well_and_small_words_of_the_language_are_not_asked() -> (
    None
):
    query = meant(read_query("Wurden die Stadt und das Haus verkauft"), MIXED)
    assert query.words == ("stadt", "haus", "verkauft")
    backwards = meant(read_query("Haus Stadt"), MIXED)
    assert MIXED.found(backwards.neighbour_terms()) == [2]
    assert MIXED.found([Term(("haus", "stadt"))]) == []
