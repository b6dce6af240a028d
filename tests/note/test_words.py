"""Words are the same for the index and for a question, in every script; names in code are found by their parts."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.words import (
    _SIGNED_NAME,
    _parted,
    content_words,
    count_tokens,
    may_hold_names,
    parts_of_names,
    searchable,
    sequences_in,
    without_stop_words,
    words_of,
)

UNSPACED = st.text(st.sampled_from("京都大学図書館でカナ上海港口한국어서울ไทยนำ"), min_size=2, max_size=12)


@pytest.mark.parametrize("text", ["Plain words, and 3.14.", "Le café de l'été", "Привет, мир", "naïve"])
def test_text_with_spaces_keeps_its_words(text: str) -> None:
    assert words_of(searchable(text)) == words_of(text)


def test_a_run_without_spaces_becomes_its_pairs_and_characters() -> None:
    assert sorted(searchable("東京都").split()) == sorted(["東京", "京都", "東", "京", "都"])


def test_words_beside_such_a_run_stay_whole() -> None:
    assert {"GPT", "技術", "and"} <= set(searchable("GPT技術 and").split())
    assert words_of("GPT技術") == ["gpt", "技術"]


@given(UNSPACED, st.data())
def test_every_part_of_a_run_is_asked_for_in_words_that_the_run_was_written_out_as(
    run: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(run) - 1))
    stop = data.draw(st.integers(start + 1, len(run)))
    written = set(searchable(unicodedata.normalize("NFC", run)).split())
    assert set(words_of(run[start:stop])) <= written


def test_words_come_in_order_and_once_whatever_their_case() -> None:
    assert words_of("The harbour, the CRANE; Harbour-crane") == ["the", "harbour", "crane"]


def test_two_ways_to_write_an_accent_are_one_word() -> None:
    assert words_of("cafe\u0301") == words_of("café") == ["café"]


@pytest.mark.parametrize("text", ["", "  \n", "?!… — «»", "🎈🎉", "\x00"])
def test_what_has_no_letter_or_digit_has_no_word(text: str) -> None:
    assert words_of(text) == []


def test_a_question_keeps_its_stop_words_only_when_it_has_no_others() -> None:
    assert content_words(["what", "is", "the", "crane"]) == ["crane"]
    assert content_words(["what", "is", "it"]) == ["what", "is", "it"]
    assert without_stop_words("What is\nthe Crane of THE harbour") == "Crane harbour"


@given(st.text(max_size=300), st.text(max_size=300))
def test_more_text_is_never_fewer_tokens(text: str, more: str) -> None:
    assert count_tokens(text) >= 0
    assert count_tokens(f"{text} {more}") >= count_tokens(text)


def test_an_estimate_of_tokens_knows_words_characters_and_long_strings() -> None:
    assert count_tokens("") == 0
    assert count_tokens("three plain words") == 4
    assert count_tokens("東京都港区") >= 5
    assert count_tokens("x" * 4000) == 1000


# ------------------------------------------------------------------ names in code


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("getUserName", ["get", "User", "Name"]),
        ("class HTTPServer2:", ["HTTP", "Server", "2"]),
        ("PascalCase, and once more PascalCase", ["Pascal", "Case"]),
        ("written in C++", ["cplusplus", "cpp"]),
        ("not C, but C#.", ["csharp"]),
    ],
)
def test_a_name_has_parts(text: str, parts: list[str]) -> None:
    assert parts_of_names(text).split() == parts


@pytest.mark.parametrize(
    "text",
    ["Plain words.", "SHOUTING", "PDFs and URLs", "an iPhone", "5K run", "aB3xZq9LmPw", "a1B2c3" * 20, "utf8", ""],
)
def test_other_words_have_none(text: str) -> None:
    assert parts_of_names(text) == ""


@given(st.text(st.sampled_from("aAbBcC1 _+#é東"), max_size=30))
def test_the_quick_look_misses_nothing(text: str) -> None:
    if _parted(text) or _SIGNED_NAME.search(text):
        assert may_hold_names(text)


@pytest.mark.parametrize(
    ("question", "sequence"),
    [
        ("where is path/to/file.py read", ("path", "to", "file", "py")),
        ("what does snake_case mean", ("snake", "case")),
        ("released in v1.2.3?", ("v1", "2", "3")),
        ("released in v1.2.3?", ("1", "2", "3")),
        ("released in 1.2.3", ("v1", "2", "3")),
        ("who calls foo.bar() here", ("foo", "bar")),
        ("the meeting of 2026-01-24", ("2026", "01", "24")),
        ("kebab-case", ("kebab", "case")),
        ("what is getUserName for", ("get", "user", "name")),
    ],
)
def test_what_is_written_as_one_is_asked_as_one(question: str, sequence: tuple[str, ...]) -> None:
    assert sequence in sequences_in(question)


@pytest.mark.parametrize(
    "question", ["a well-known and/or plain question", "see https://example.com/a/b for it", "Anna's boat, isn't it?"]
)
def test_prose_is_not(question: str) -> None:
    assert sequences_in(question) == []
