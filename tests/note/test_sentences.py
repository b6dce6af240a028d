"""What can be told of two texts by their words alone: that they say the same, or one thing differently."""

from __future__ import annotations

import pytest

from simplemem.note.sentences import contradicts, sentences


def told(text: str) -> list[str]:
    return [sentence.text for sentence in sentences(text)]


def differ(one: str, other: str, about_one: str = "", about_other: str = "") -> bool:
    return contradicts(sentences(one)[0], sentences(other)[0], about_one, about_other)


def test_sentences_items_and_rows_stand_for_themselves_and_headings_for_none() -> None:
    text = (
        "# Wind\n\nIt blew. It rained\nall day! And?\n\n- [x] one\n- two\n  more of it\n1. three\n"
    )
    text += "\n| a | b |\n| c | d |\n\n> said"
    assert told(text) == ["It blew.", "It rained\nall day!", "And?", "one", "two\n  more of it", "three", "a | b |",
                          "c | d |", "> said"]  # fmt: skip
    assert told("31.2 km at v1.2. Then (so he said.) \"No.\" 港は深い。橋は高い。") == [
        "31.2 km at v1.2.", "Then (so he said.)", '"No."', "港は深い。", "橋は高い。",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The burst altitude of Dipper is 31.2 km.", "The burst altitude of Dipper is 28.9 km."),
        ("The harbour crane works on Monday.", "The harbour crane works on Tuesday."),
        ("The tracker is waterproof to ten metres.", "The tracker isn't waterproof to ten metres."),
        ("Der Kran am Hafen ist sicher.", "Der Kran am Hafen ist nicht sicher."),
    ],
)
def test_one_number_date_or_negation_is_a_disagreement(one: str, other: str) -> None:
    assert differ(one, other) and differ(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The burst altitude of Dipper is 31.2 km.", "The burst altitude of Dipper is 31.2 km!"),
        (
            "The membership fee is 1,000 euro yearly.",
            "The membership fee is 1000 euro yearly.",
        ),  # the same number
        (
            "Flight 1 climbed for 90 minutes before it burst.",
            "Flight 2 climbed for 80 minutes before it burst.",
        ),
        (
            "The crane was sold in spring.",
            "The crane was bought in spring.",
        ),  # another word: a reader must tell
        ("The tracker is waterproof to 10 metres.", "The tracker is not waterproof to 20 metres."),
    ],
)
def test_what_cannot_be_told_by_words_alone_is_no_disagreement(one: str, other: str) -> None:
    assert not differ(one, other)


def test_a_number_that_a_note_is_called_by_tells_two_subjects_apart() -> None:
    one, other = "The crane number 3 was repaired.", "The crane number 4 was repaired."
    assert differ(one, other)
    assert not differ(one, other, "harbour/Crane 3", "harbour/Crane 4")


def test_a_number_of_very_many_digits_is_compared() -> None:
    digits = "7" * 5_000
    one, other = f"The crane number {digits} was repaired.", "The crane number 4 was repaired."
    assert differ(one, other)
    assert not differ(one, other, f"harbour/Crane {digits}", "harbour/Crane 4")
