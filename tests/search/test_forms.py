"""What a question is asked as is always something SQLite understands, and at least the words themselves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import apsw
from hypothesis import given
from hypothesis import strategies as st

from simplemem.index.door import AnyOf, Standing, Term
from simplemem.index.legs import fts_terms, vocabulary
from simplemem.note.language import MARKS, stems_of
from simplemem.search.query import Query, read_query, with_forms
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]

TOKENIZER = "porter unicode61 remove_diacritics 2 categories 'L* N* Co Mn Mc'"
GERMAN = "Die Häuser der Stadt wurden verkauft"


class Words:
    """A table of words as the index has it."""

    def __init__(self, *texts: str) -> None:
        self.db = apsw.Connection(":memory:")
        self.db.execute(f'CREATE VIRTUAL TABLE note_text USING fts5 (title, body, tokenize = "{TOKENIZER}")').fetchall()
        self.db.executemany("INSERT INTO note_text (title, body) VALUES ('', ?)", [(text,) for text in texts])
        self.asked = 0

    def vocabulary(self, asked: Sequence[Sequence[AnyOf]], most: int = 1) -> tuple[list[int], Standing]:
        self.asked += len(asked)
        return vocabulary(self.db, asked, most), Standing(0, (), {})

    def found(self, terms: Sequence[Term]) -> list[int]:
        expression = " OR ".join(fts_terms(terms))
        return [row[0] for row in self.db.execute("SELECT rowid FROM note_text WHERE note_text MATCH ?", (expression,))]


def meant(query: Query, words: Words) -> Query:
    return with_forms(query, words)[0]


MIXED = Words("The harbour crane was repaired.", f"{GERMAN}\n{stems_of(GERMAN, 'de')}\n{MARKS['de']}")


@given(st.text(max_size=80))
def test_no_question_becomes_one_that_sqlite_refuses(text: str) -> None:
    query = meant(read_query(text), MIXED)
    for terms in (query.terms(), query.side_by_side()):
        if terms:
            MIXED.found(terms)


@given(st.lists(st.sampled_from("Haus haeuser crane cranse harb* v1.2 getName 行く die verkaufen".split()), max_size=6))
def test_no_word_that_ranks_is_lost_but_small_ones(words: list[str]) -> None:
    before = read_query(" ".join(words))
    after = meant(before, MIXED)
    assert set(before.words) - set(after.words) <= {"die"}
    assert {Term((word,)) for word in after.words} <= set(after.terms())


def test_counting_stops_at_the_most_that_is_asked_for() -> None:
    many = Words(*["crane"] * 7, "boat")
    crane, boat, heron = (Term((word,)) for word in ("crane", "boat", "heron"))
    assert many.vocabulary([[[crane]], [[boat]], [[heron]]], 5)[0] == [5, 1, 0]
    assert many.vocabulary([[[crane, heron]], [[crane], [boat]]])[0] == [1, 0]


def test_a_question_of_known_words_costs_one_look_a_word() -> None:
    words = Words("The harbour crane was repaired.")
    meant(read_query("harbour crane repaired"), words)
    assert words.asked == 4  # and one whether there are notes with stems


def test_neighbours_are_asked_by_their_stems_as_well_and_small_words_of_the_language_are_not_asked() -> None:
    query = meant(read_query("Wurden die Stadt und das Haus verkauft"), MIXED)
    assert query.words == ("stadt", "haus", "verkauft")
    backwards = meant(read_query("Haus Stadt"), MIXED)
    assert MIXED.found(backwards.side_by_side()) == [2]
    assert MIXED.found([Term(("haus", "stadt"))]) == []


def test_a_word_that_is_an_ending_on_a_short_stem_is_no_slip(plain_store: EnhancedStore, write: Write) -> None:
    write("a.md", "Not much of a note.")
    write("b.md", "The kubernetes cluster moved.")
    plain_store.sync()
    assert plain_store.search("nothing").hits == ()
    assert [hit.name for hit in plain_store.search("kuberntes").hits] == ["b"]


def test_a_question_of_many_unknown_words_costs_no_more_than_one_of_a_few() -> None:
    def looks(count: int) -> int:
        words = Words("The harbour crane was repaired.")
        meant(read_query(" ".join(f"zq{chr(97 + k // 8)}vxk{chr(97 + k % 8)}wmzz" for k in range(count)) + "."), words)
        return words.asked

    assert looks(64) < 2 * looks(4)
