"""Sentences are found where a person sees them, and two that say nearly the same are known for it."""

from __future__ import annotations

from itertools import pairwise

import pytest

from simplemem.evaluate.sentences import key_of, overlaps, plain, sentences, stems_of
from simplemem.note.note import read_note


def said(text: str) -> list[str]:
    return [" ".join(text[start:end].split()) for _, start, end in sentences(read_note(text.encode()))]


def test_a_sentence_goes_on_over_the_end_of_a_line() -> None:
    assert said("One sentence that is\nwrapped. Another one.\n") == ["One sentence that is wrapped.", "Another one."]


def test_items_quotes_and_headings_are_read_without_their_marks() -> None:
    text = "## A heading\n\n- [x] Done. And more.\n\n> Quoted words\n"
    assert said(text) == ["A heading", "Done.", "And more.", "Quoted words"]


def test_tables_and_code_go_by_lines() -> None:
    assert said("| a. b |\n|---|\n| c |\n\n```\nx. y\nz\n```\n") == [
        "| a. b |",
        "|---|",
        "| c |",
        "```",
        "x. y",
        "z",
        "```",
    ]


def test_sentences_of_scripts_without_spaces_end_where_theirs_do() -> None:
    assert said("気球が飛んだ。海に落ちた。\n") == ["気球が飛んだ。", "海に落ちた。"]


def test_a_line_separator_ends_no_sentence() -> None:
    assert len(said("One\u2028line of it.\n")) == 1


def test_every_sentence_lies_in_the_text_in_order_and_none_twice() -> None:
    text = "---\na: b\n---\n# T\n\nA. B! C?\n\n1. x\n   y. z\n\n> q. r\n> s\n"
    spans = [(start, end) for _, start, end in sentences(read_note(text.encode()))]
    assert all(start < end for start, end in spans)
    assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize(
    ("written", "spoken"),
    [
        ("See [[notes/Kettle|the kettle]] and [tea](tea.md).", "See the kettle and tea."),
        ("A **bold** `word` and ![[picture.png]] _this_", "A bold word and this"),
        ("snake_case stays", "snake_case stays"),
    ],
)
def test_a_sentence_is_asked_as_it_is_spoken(written: str, spoken: str) -> None:
    assert plain(written) == spoken


def test_the_same_question_is_known_whatever_its_marks_and_case() -> None:
    assert key_of("**Kettle** repair!") == key_of("[[x|kettle]]  Repair")


@pytest.mark.parametrize(
    ("sentence", "question", "gives_away"),
    [
        ("Descale the kettle with vinegar", "Vinegar descales kettles", True),  # six in ten of its words
        ("Kettles", "Kettle repair", False),  # one word of two
        ("Kettles", "The kettle", True),  # the same words
        ("The launch of a balloon on the day of the fair was late", "Launch day runbook", False),
        (
            "Descaling with citric acid in the mornings, long before anybody else wakes up and wants breakfast quickly",
            "Descaling citric acid mornings daily",
            True,  # six in ten of a question that is a sentence itself
        ),
        (
            "To open your settings folder",
            "Learn how to open the settings folder on desktops, phones and tablets",
            False,
        ),
        ("The kettle needs a repair before the fair", "Kettle repair", False),  # it has both words, and says more
        ("Repairing kettles", "Kettle repair", True),
        ("Something else", "Kettle repair", False),
        ("", "Kettle repair", False),
    ],
)
def test_a_sentence_gives_a_question_away_when_they_share_six_words_in_ten(
    sentence: str, question: str, gives_away: bool
) -> None:
    assert overlaps(stems_of(sentence), stems_of(question)) is gives_away
