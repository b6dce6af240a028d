"""A question is words, unless it is unmistakably meant to be more."""

from __future__ import annotations

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.index.legs import fts_terms
from simplemem.search.query import read_query


def test_words_that_only_hold_a_sentence_together_are_left_out() -> None:
    assert read_query("What did we decide about the harbour crane?").words == ("decide", "harbour", "crane")


def test_a_question_of_such_words_alone_keeps_them() -> None:
    assert read_query("who is it").words == ("who", "is", "it")


def test_quotes_fields_and_a_minus_are_syntax_when_they_stand_alone() -> None:
    query = read_query('crane "north pier" tag:status=done tag:#todo type:decision path:projects/ -rust')
    assert query.words == ("crane", "north", "pier")
    assert query.phrases == ("north pier",)
    assert query.without == ("rust",)
    assert query.tags == {"status": "done", "todo": ""}
    assert (query.type, query.prefix) == ("decision", "projects/")


@pytest.mark.parametrize(
    "text",
    [
        "multi-agent",
        "38.101",
        "C++",
        "foo/bar",
        "a AND b NOT c",
        "NEAR(x y)",
        "col:x",
        "20 -5 degrees",
        'odd " quote',
    ],
)
def test_everything_else_is_only_words(text: str) -> None:
    query = read_query(text)
    assert not (query.phrases or query.without or query.tags or query.type or query.prefix)
    assert query.words


def test_two_characters_of_an_unspaced_script_are_a_word() -> None:
    assert read_query("京都の").words == ("京都", "都の")


@given(st.text(max_size=200))
def test_no_text_is_ever_syntax_to_sqlite(text: str) -> None:
    db = apsw.Connection(":memory:")
    db.execute("CREATE VIRTUAL TABLE t USING fts5 (x)").fetchall()
    db.execute("INSERT INTO t VALUES ('some words')").fetchall()
    query = read_query(text)
    if query.words:
        db.execute("SELECT * FROM t WHERE t MATCH ?", (" OR ".join(fts_terms(query.terms())),)).fetchall()


def test_a_long_word_behind_a_minus_is_read_once_whatever_stands_behind_it() -> None:
    """Two ways to read each of its letters would be more ways than anybody waits for."""
    assert read_query("crane -" + "\u00e9" * 60 + "!").words == ("crane", "\u00e9" * 60)
    assert read_query("crane -\u00e9t\u00e9").without == ("\u00e9t\u00e9",)


def test_an_author_and_a_moment_are_asked_for_by_operators_and_are_words_in_quotes() -> None:
    query = read_query('crane author:human path:"log book/"')
    assert (query.author, query.prefix, query.words) == ("human", "log book/", ("crane",))
    quoted = read_query('"author:human"')
    assert quoted.author == "" and "human" in quoted.words
    assert not read_query("author:human").asks_nothing()


def test_a_question_that_is_not_read_whole_says_so() -> None:
    assert read_query("crane " * 300).instead == ""
    assert read_query("crane " * 400).instead == "Only the first 2,000 characters of the question were read."
    many = read_query(" ".join(f"crane{number}" for number in range(65)))
    assert len(many.words) == 64 and many.instead == "Of its words the first 64 were looked for."
