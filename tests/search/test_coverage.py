"""A question is answered in one place: the note whose passage covers most of its words comes first."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.index.door import Answer, Match
from simplemem.search.rank import Part, beside, coverage, is_question, rank
from simplemem.services.wordllama import WordLlama
from simplemem.store import EnhancedStore

Write = Callable[[str, str | bytes], Path]


@pytest.fixture(scope="module")
def vectors() -> WordLlama:
    return WordLlama()


@pytest.mark.parametrize(
    "text",
    [
        "When did Ada paint the boat?",
        "when did Ada paint the boat",
        "the boat, painted when?",
        "How to embed a file",
        "\u00bfCu\u00e1ndo pint\u00f3 Ada el barco",
        "Wann hat Ada das Boot gestrichen",
        "Pourquoi le bateau est-il rouge",
        "\u8239\u306f\u4f55\u8272\u3067\u3059\u304b\uff1f",
        "  Where is it?  ",
    ],
)
def test_what_asks_is_a_question(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text", ["", "?!", "boat paint", "Ada painted the boat.", "when", "wholesale prices", "Whatsapp export"]
)
def test_what_only_names_something_is_none(text: str) -> None:
    assert not is_question(text)


def test_a_passage_with_all_the_words_covers_the_question_and_a_near_word_nearly(vectors: WordLlama) -> None:
    asked = ["boat", "painted"]
    whole, near, half, none = coverage(
        asked,
        [["Ada painted the boat."], ["Ada painted the ship."], ["Ada painted."], ["Quarterly taxes, filed."]],
        vectors,
    )
    assert whole == pytest.approx(1.0, abs=0.01)
    assert whole > near > half > none


def test_only_words_of_one_passage_count_together(vectors: WordLlama) -> None:
    together, apart = coverage(
        ["boat", "painted"], [["The boat was painted."], ["The boat.", "It was painted."]], vectors
    )
    assert together > apart


def test_a_note_without_words_covers_nothing(vectors: WordLlama) -> None:
    assert coverage(["boat"], [[], ["!!! ---"], ["the and of"]], vectors) == [0.0, 0.0, 0.0]
    assert coverage([], [["boat"]], vectors) == [0.0]


def test_words_of_scripts_without_spaces_are_compared_too(vectors: WordLlama) -> None:
    from simplemem.note.words import words_of

    asked = words_of("\u6771\u4eac\u30bf\u30ef\u30fc")
    with_it, without = coverage(
        asked, [["\u6771\u4eac\u30bf\u30ef\u30fc\u306f\u9ad8\u3044\u3002"], ["\u5927\u962a\u57ce"]], vectors
    )
    assert with_it > without


def ranked(*parts: Part) -> list[tuple[int, float]]:
    answer = Answer([Match(note, 0, 1.0) for note in (1, 2, 3, 4)], (), (), None, {k: f"n{k}.md" for k in range(5)})
    return [(found.note, round(found.score, 4)) for found in rank(answer, parts)]


def test_what_was_not_compared_stays_behind_in_its_order() -> None:
    words = Part("words", 1.0, {1: 1.0, 2: 0.9, 3: 0.8, 4: 0.7})
    assert ranked(words) == [(1, 1.0), (2, 0.9), (3, 0.8), (4, 0.7)]
    again = ranked(*beside([words], "covered", 0.5, {1: 0.2, 2: 0.4}))
    assert again == [(2, round(1.4 / 1.5, 4)), (1, round(1.25 / 1.5, 4)), (3, 0.5333), (4, 0.4667)]


def test_a_part_that_nobody_has_leaves_the_scores_alone() -> None:
    words = [Part("words", 1.0, {1: 1.0})]
    assert beside(words, "covered", 0.4, {}) == beside(words, "covered", 0.4, {1: 0.0}) == words


def test_a_question_finds_the_note_that_answers_it_before_one_that_is_only_about_it(
    store: EnhancedStore, write: Write
) -> None:
    write(
        "about.md",
        "# Boat\n\nThe boat, the boat. A boat is a boat.\n\n" + "Harbour fees.\n\n" * 40 + "Ada painted a wall.\n",
    )
    write("answer.md", "# Tuesday\n\nAda painted the hull of the boat in May.\n")
    write("other.md", "# Weather\n\nIt rained in May, and Ada slept.\n")
    store.sync()
    found = store.search("When did Ada paint the boat?", explain=True)
    assert found.hits[0].name == "answer"
    assert found.hits[0].why is not None
    assert found.hits[0].why["covered"] == 1.0
    statement = store.search("Ada, boat, paint", explain=True)
    assert all(hit.why is not None and "covered" not in hit.why for hit in statement.hits)


def test_the_answer_is_met_deep_in_a_long_note_too(store: EnhancedStore, write: Write) -> None:
    filler = "\n\n".join(f"## Part {k}\n\n" + "Harbour fees and tides, ships and cranes. " * 25 for k in range(150))
    write("long.md", f"{filler}\n\n## The boat\n\nAda painted the hull of the boat in May.\n")
    write("other.md", "It rained in May, and Ada slept in a boat.\n")
    store.sync()
    (first, *_) = store.search("When did Ada paint the hull of the boat?", explain=True).hits
    assert first.name == "long"
    assert first.why is not None
    assert first.why["covered"] == 1.0
