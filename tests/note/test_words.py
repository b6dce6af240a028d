"""Words are the same for the index and for a question, in every script; names in code have parts, a text has a
language."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.stems import stem, stems_of
from simplemem.note.words import (
    LANGUAGES,
    content_words,
    count_tokens,
    find_stop_words,
    is_english_question,
    language_of,
    parts_of_names,
    searchable,
    sequences_in,
    unique_words,
    without_stop_words,
)

UNSPACED = st.text(
    st.sampled_from("京都大学図書館でカナ上海港口한국어서울ไทยนำ"), min_size=2, max_size=12
)


def test_a_run_without_spaces_becomes_its_pairs_and_characters_and_words_beside_it_stay_whole() -> (
    None
):
    assert sorted(searchable("東京都").split()) == sorted(["東京", "京都", "東", "京", "都"])
    assert {"GPT", "技術", "and"} <= set(searchable("GPT技術 and").split())
    assert unique_words("GPT技術") == ["gpt", "技術"]


@given(UNSPACED, st.data())
def test_every_part_of_a_run_is_asked_for_in_words_that_the_run_was_written_out_as(
    run: str, data: st.DataObject
) -> None:
    start = data.draw(st.integers(0, len(run) - 1))
    stop = data.draw(st.integers(start + 1, len(run)))
    written = set(searchable(unicodedata.normalize("NFC", run)).split())
    assert set(unique_words(run[start:stop])) <= written


def test_words_come_in_order_and_once_whatever_their_case_and_accents() -> None:
    assert unique_words("The harbour, the CRANE; Harbour-crane") == ["the", "harbour", "crane"]
    assert unique_words("cafe\u0301") == unique_words("café") == ["café"]
    for text in ("", "  \n", "?!… — «»", "🎈🎉", "\x00"):
        assert unique_words(text) == []


def test_a_question_keeps_its_stop_words_only_when_it_has_no_others() -> None:
    assert content_words(["what", "is", "the", "crane"]) == ["crane"]
    assert content_words(["what", "is", "it"]) == ["what", "is", "it"]
    assert without_stop_words("What is\nthe Crane of THE harbour") == "Crane harbour"


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
    [
        "Plain words.",
        "SHOUTING",
        "PDFs and URLs",
        "an iPhone",
        "5K run",
        "aB3xZq9LmPw",
        "a1B2c3" * 20,
        "utf8",
        "",
    ],
)
def test_other_words_have_none(text: str) -> None:
    assert parts_of_names(text) == ""


@pytest.mark.parametrize(
    ("question", "sequence"),
    [
        ("where is path/to/file.py read", ("path", "to", "file", "py")), ("what does snake_case mean", ("snake", "case")),
        ("released in v1.2.3?", ("v1", "2", "3")), ("released in v1.2.3?", ("1", "2", "3")),
        ("who calls foo.bar() here", ("foo", "bar")), ("the meeting of 2026-01-24", ("2026", "01", "24")),
        ("what is getUserName for", ("get", "user", "name")),
    ],
)  # fmt: skip
def test_what_is_written_as_one_is_asked_as_one(question: str, sequence: tuple[str, ...]) -> None:
    assert sequence in sequences_in(question)


def test_prose_is_not() -> None:
    for question in (
        "a well-known and/or plain question",
        "see https://example.com/a/b for it",
        "Anna's boat, isn't it?",
    ):
        assert sequences_in(question) == []


# ------------------------------------------------------------------ languages

LETTERS = st.text(st.sampled_from("aeiounrstlmdhgäöüßéèçñí "), max_size=60)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Häuser der Siedlung wurden im Winter nicht geheizt.", "de"),
        ("Las decisiones del equipo fueron rápidas.", "es"),
        ("Les décisions de l’équipe ont été prises hier.", "fr"),
        ("Il gatto della nonna dorme sulla tavola, non sono sicuro che sia felice.", "it"),
        ("De kat zit op de tafel van het huis en wij zijn blij.", "nl"),
        ("O gato não está na mesa da avó, mas ela também não.", "pt"),
        ("", ""),
        ("The war of the worlds will die in the hat of a man.", ""),
        ("Müller and Göteborg went to Zürich for the first time", ""),
        ("A trip from Los Angeles to the La Brea pits", ""),
        ("東京タワーに行く", ""),
    ],
)
def test_small_words_tell_the_language(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("de", ["häuser", "haus", "hauser", "haeuser"]), ("de", ["grösse", "groesse"]), ("es", ["decisión", "decisiones"]),
        ("fr", ["cheval", "chevaux"]), ("it", ["decisione", "decisioni"]), ("pt", ["amigo", "amigos", "amiga"]),
    ],
)  # fmt: skip
def test_forms_of_a_word_have_one_stem(language: str, forms: list[str]) -> None:
    assert len({stem(form, language) for form in forms}) == 1


def test_words_that_hold_a_sentence_together_have_no_stem_in_the_text() -> None:
    assert stems_of("Wir haben die Häuser der Stadt für 3 Euro", "de").split() == [
        stem(word, "de") for word in ("häuser", "stadt", "euro")
    ]


@given(LETTERS, st.sampled_from(LANGUAGES))
def test_a_question_has_the_stems_that_the_index_took_in(text: str, language: str) -> None:
    taken_in = set(stems_of(text, language).split())
    asked = {stem(word, language) for word in unique_words(text)}
    assert taken_in <= asked
    assert asked - taken_in <= {
        stem(word, language) for word in unique_words(text) if not stems_of(word, language)
    }


def test_small_words_of_a_question_are_those_of_its_own_language() -> None:
    german = ["wie", "wurden", "die", "häuser", "geheizt"]
    assert find_stop_words(german, ["de", "es"]) == {"wie", "wurden", "die"}
    assert find_stop_words(german, ["es"]) == frozenset()
    assert find_stop_words(["who", "will", "die", "in", "the", "war"], ["de"]) == frozenset()
    assert find_stop_words(["la", "decisión"], ["es", "fr"]) == {"la"}


FACTS = json.loads(
    (Path(__file__).parents[2] / "bench" / "languages.json").read_text(encoding="utf-8")
)


@pytest.mark.parametrize("language", FACTS[0]["questions"])
def test_a_question_is_english_only_in_english(language: str) -> None:
    questions = [fact["questions"][language] for fact in FACTS]
    assert {is_english_question(question) for question in questions} == {language == "en"}
