"""Where a sentence ends: an abbreviation and an initial end none."""

from __future__ import annotations

import pytest

from simplemem.note.sentences import sentence_spans


def cut(text: str) -> list[str]:
    return [text[start:stop] for start, stop in sentence_spans(text)]


@pytest.mark.parametrize(
    "sentence",
    [
        "My dentist is Dr. Hall.",
        "Mr. and Mrs. Lee live next to Ms. Okoro.",
        "Mi médica es la Dra. Ruiz, y el Sr. Gil es el vecino.",
        "Ich gehe zu Prof. Weber (Hr. Kern ist krank).",
        "Mme. Blanc et le Dr. Petit arrivent.",
        "A Profa. Souza fala com o Sr. Lima.",
        "Il Dott. Rossi e la Sig. Bianchi sono qui.",
        "He was born in St. Albans.",
        "I like fruit, e.g. apples, i.e. Fruit of trees.",
        "Ich mag Obst, z. B. Äpfel, d. h. Obst vom Baum, und ca. 20 Nüsse.",
        "Compro fruta, p. ej. Manzanas.",
        "Bring salt, oil etc. and a knife.",
        "We start at 9 a.m. on Monday.",
        "It is No. 5 in the list, p. 12 of vol. 2.",
        "The book is by J. Smith and by J. R. R. Tolkien.",
    ],
)
def test_an_abbreviation_and_an_initial_end_no_sentence(sentence: str) -> None:
    assert cut(f"{sentence} Next.") == [sentence, "Next."]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Bring salt, oil etc.", "Then cook."),
        ("The answer is no.", "She left."),
        ("I take vitamin C.", "It helps."),
        ("So do I.", "Smith agrees."),
        ("We met at 9 a.m.", "Nobody was late."),
        ("Nothing helps.", "e.g. has a point."),
        ("I saw the doctor.", "Dr. Hall was away."),
        ("Así es.", "Luego nos vemos."),
        ("We were at no. 5.", "It rained."),
        ("Is it (e.g.)?", "Yes."),
    ],
)
def test_what_only_looks_like_an_abbreviation_ends_a_sentence(first: str, second: str) -> None:
    assert cut(f"{first} {second}") == [first, second]


def test_an_abbreviation_at_the_end_of_a_paragraph_ends_its_sentence() -> None:
    assert cut("I saw the Dr.\n\nHall.") == ["I saw the Dr.", "Hall."]


@pytest.mark.parametrize("part", ["Dr. ", "J. ", "z. ", "no. ", ". ", "Dr.\n"])
def test_many_abbreviations_are_read_in_one_go(part: str) -> None:
    assert cut(part * 20_000 + "x")
