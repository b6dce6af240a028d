"""A note shows the language it is written in, and its words have stems in that language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.note.words import (
    LANGUAGES,
    MARKS,
    holding_together,
    is_small_word,
    language_of,
    stem,
    stems_of,
    words_of,
)

LETTERS = st.text(st.sampled_from("aeiounrstlmdhgäöüßéèçñí "), max_size=60)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Die Häuser der Siedlung wurden im Winter nicht geheizt.", "de"),
        ("Treffen mit Anna: Vertrag für den Garten", "de"),
        ("Las decisiones del equipo fueron rápidas.", "es"),
        ("Les décisions de l’équipe ont été prises hier.", "fr"),
        ("Il gatto della nonna dorme sulla tavola, non sono sicuro che sia felice.", "it"),
        ("De kat zit op de tafel van het huis en wij zijn blij.", "nl"),
        ("O gato não está na mesa da avó, mas ela também não.", "pt"),
        ("", ""),
        ("The war of the worlds will die in the hat of a man.", ""),
        ("Müller and Göteborg went to Zürich for the first time", ""),
        ("A trip from Los Angeles to the La Brea pits", ""),
        ("Van der Waals forces", ""),
        ("| a | b |\n| 1 | 2 |", ""),
        ("東京タワーに行く", ""),
    ],
)
def test_small_words_tell_the_language(text: str, language: str) -> None:
    assert language_of(text) == language


@pytest.mark.parametrize(
    ("told", "language"),
    [("de", "de"), ("de-AT", "de"), ("pt_BR", "pt"), ("Français", "fr"), ("Deutsch", "de"), ("en", ""), ("xx", "")],
)
def test_what_a_note_says_of_itself_is_believed(told: str, language: str) -> None:
    assert language_of("Las decisiones del equipo fueron de la ciudad.", told) == language


def test_a_quotation_in_another_language_does_not_make_a_note_one_of_it() -> None:
    english = "We talked about the harbour and what it would cost to have the crane repaired by the end of the year. "
    assert language_of(english * 4 + "They said: die Häuser der Siedlung.") == ""


@pytest.mark.parametrize(
    ("language", "forms"),
    [
        ("de", ["häuser", "haus", "hauser", "haeuser"]),
        ("de", ["entscheidung", "entscheidungen"]),
        ("de", ["grösse", "groesse"]),
        ("es", ["decisión", "decisiones"]),
        ("es", ["canciones", "canción"]),
        ("fr", ["cheval", "chevaux"]),
        ("fr", ["rapide", "rapidement"]),
        ("it", ["decisione", "decisioni"]),
        ("pt", ["amigo", "amigos", "amiga"]),
    ],
)
def test_forms_of_a_word_have_one_stem(language: str, forms: list[str]) -> None:
    assert len({stem(form, language) for form in forms}) == 1


def test_a_stem_is_no_word_and_no_stem_of_another_language() -> None:
    stems = {stem("national", language) for language in LANGUAGES}
    assert len(stems) == len(LANGUAGES)
    assert all(one[-1] == MARKS[language] for language in LANGUAGES for one in stems if one.endswith(MARKS[language]))
    assert "national" not in stems


def test_words_that_hold_a_sentence_together_have_no_stem_in_the_text() -> None:
    assert stems_of("Wir haben die Häuser der Stadt für 3 Euro", "de").split() == [
        stem(word, "de") for word in ("häuser", "stadt", "euro")
    ]


@given(LETTERS, st.sampled_from(LANGUAGES))
def test_a_question_has_the_stems_that_the_index_took_in(text: str, language: str) -> None:
    asked = {stem(word, language) for word in words_of(text) if not is_small_word(word, language)}
    assert asked == set(stems_of(text, language).split())


def test_small_words_of_a_question_are_those_of_its_own_language() -> None:
    german = ["wie", "wurden", "die", "häuser", "geheizt"]
    assert holding_together(german, ["de", "es"]) == {"wie", "wurden", "die"}
    assert holding_together(german, ["es"]) == frozenset()
    assert holding_together(["who", "will", "die", "in", "the", "war"], ["de"]) == frozenset()
    assert holding_together(["la", "decisión"], ["es", "fr"]) == {"la"}
