"""What is held out of a note is gone from it, and the rest is there."""

from __future__ import annotations

import pytest

from simplemem.errors import Unreadable
from simplemem.evaluate.holding import without
from simplemem.evaluate.pairs import Held
from tests.evaluate.conftest import NOTES

KETTLE = NOTES["Kettle repair.md"]


def left_of_kettle(what: str, text: str, question: str | None = None) -> str:
    return without(KETTLE, [Held("Kettle repair", what, text)], question or text, answers=True)


def test_a_title_goes_with_the_heading_that_repeats_it_and_stays_elsewhere() -> None:
    text = (
        "---\ntitle: Growing tomatoes\ntags: [a]\n---\n# Growing tomatoes\n\nTomatoes like sun and growing is slow.\n"
    )
    left = without(text, [Held("x", "title", "Growing tomatoes")], "Growing tomatoes", answers=True)
    assert left == "---\ntags: [a]\n---\n# \n\nTomatoes like sun and growing is slow.\n"


def test_one_alias_goes_and_the_others_stay() -> None:
    left = left_of_kettle("alias", "Samovar clinic")
    assert "Samovar" not in left and "Teapot ward" in left and "the samovar" in left


def test_an_alias_that_is_a_plain_text_goes() -> None:
    left = without(
        "---\naliases: Samovar clinic\n---\nBody.\n", [Held("x", "alias", "samovar  Clinic")], "", answers=False
    )
    assert "clinic" not in left.lower()


def test_a_description_goes() -> None:
    left = left_of_kettle("description", "Descaling with citric vinegar mornings")
    assert "description" not in left and "aliases" in left


def test_a_heading_goes_and_what_stands_under_it_stays() -> None:
    left = left_of_kettle("heading", "Thermostat replacement steps")
    assert "Thermostat" not in left and "Unplug everything" in left


def test_a_sentence_goes_over_the_end_of_its_line() -> None:
    sentence = "Limestone on the coil makes a rumbling noise before boiling and wastes electricity every day."
    left = left_of_kettle("sentence", sentence)
    assert "rumbling" not in left and "electricity" not in left
    assert "torx driver" in left and "last longer" in left


def test_the_sentence_of_a_link_goes_from_the_note_that_links() -> None:
    held = [Held("garden/Tomatoes", "link", "boiling vessel handbook")]
    left = without(NOTES["garden/Tomatoes.md"], held, "boiling vessel handbook", answers=False)
    assert "handbook" not in left and "comfrey" in left


def test_a_note_that_answers_loses_what_says_nearly_the_same_and_another_does_not() -> None:
    text = "The samovar needs new coils before winter comes.\n\nSomething else.\n"
    question = "Before winter comes, the samovar needs coils that are new."
    assert without(text, [], question, answers=True) == "\n\nSomething else.\n"
    assert without(text, [], question, answers=False) == text


def test_a_description_that_says_nearly_the_same_goes_too() -> None:
    text = "---\ndescription: How coils of samovars freeze\n---\nBody.\n"
    assert "samovars" not in without(text, [], "Samovars with frozen coils freeze", answers=True)


def test_nothing_held_out_changes_nothing() -> None:
    for text in NOTES.values():
        assert without(text, [], "", answers=True) == text


def test_a_header_that_nobody_may_rewrite_is_not() -> None:
    broken = "---\ntitle: [unclosed\n---\nBody.\n"
    with pytest.raises(Unreadable):
        without(broken, [Held("x", "title", "unclosed")], "unclosed", answers=True)
