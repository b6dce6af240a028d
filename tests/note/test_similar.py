"""A mistyped name finds the names that it may have meant."""

from __future__ import annotations

import pytest

from simplemem.note.similar import similar_names

NAMES = [
    "Flight log",
    "flights/Flight 1 Petrel",
    "flights/Flight 2 Dipper",
    "flights/Flight 3 Kittiwake",
    "science/Pressure sensor calibration",
    "templates/Flight",
]


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("Flihgt 2", "flights/Flight 2 Dipper"),
        ("Dippr", "flights/Flight 2 Dipper"),
        ("flight 3 kitiwake", "flights/Flight 3 Kittiwake"),
        ("flights/Flight 2 Diper", "flights/Flight 2 Dipper"),
        ("Pressure sensor calibraton", "science/Pressure sensor calibration"),
        ("presure senser", "science/Pressure sensor calibration"),
        ("calibration pressure", "science/Pressure sensor calibration"),
        ("Flight lgo", "Flight log"),
    ],
)
def test_the_name_that_was_meant_comes_first(typed: str, best: str) -> None:
    assert similar_names(typed, NAMES)[0] == best


def test_a_name_unlike_all_others_has_no_suggestion() -> None:
    assert similar_names("quarterly taxes", NAMES) == []
    assert similar_names("", NAMES) == []
    assert similar_names("Nope", ["templates/Daily note", "Meeting notes"]) == []


def test_at_most_so_many_names_are_suggested() -> None:
    many = [f"notes/Plan {number}" for number in range(100)]
    assert len(similar_names("Plann", many, limit=5)) == 5


def test_in_a_large_vault_whole_names_are_still_compared() -> None:
    many = [f"notes/{number} of the archive" for number in range(20_001)]
    assert similar_names("Pressure sensor calibraton", [*many, *NAMES]) == [
        "science/Pressure sensor calibration"
    ]
