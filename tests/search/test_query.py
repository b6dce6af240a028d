"""A query is words, unless it is unmistakably more: fields, phrases and exclusions."""

from __future__ import annotations

import pytest

from simplemem.search.query import read_query


def test_words_that_only_hold_a_sentence_together_are_left_out() -> None:
    assert read_query("What did we decide about the harbour crane?").words == (
        "decide",
        "harbour",
        "crane",
    )


def test_quotes_fields_and_a_minus_are_syntax_when_they_stand_alone() -> None:
    query = read_query(
        'crane "north pier" tag:status=done tag:#todo type:decision path:projects/ -rust'
    )
    assert query.words == ("crane", "north", "pier")
    assert query.phrases == ("north pier",)
    assert query.excluded == ("rust",)
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
    assert not (query.phrases or query.excluded or query.tags or query.type or query.prefix)
    assert query.words


def test_a_long_word_behind_a_minus_is_read_once_whatever_stands_behind_it() -> None:
    """Two ways to read each of its letters would be more ways than anybody waits for."""
    assert read_query("crane -" + "\u00e9" * 60 + "!").words == ("crane", "\u00e9" * 60)
    assert read_query("crane -\u00e9t\u00e9").excluded == ("\u00e9t\u00e9",)


def test_a_question_that_is_not_read_whole_says_so() -> None:
    assert read_query("crane " * 300).notice == ""
    assert (
        read_query("crane " * 400).notice
        == "Only the first 2,000 characters of the query were read."
    )
    many = read_query(" ".join(f"crane{number}" for number in range(65)))
    assert (
        len(many.words) == 64
        and many.notice == "Only the first 64 words of the query were searched for."
    )
