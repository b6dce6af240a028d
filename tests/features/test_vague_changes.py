"""What a statement may outdate that names neither the thing nor the value: it is put in doubt."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from simplemem.features.changes import read_change
from simplemem.features.changes.mentions import Mention, find_about, find_possibly_outdated
from simplemem.features.changes.vague import read_vague_change

SAID = datetime(2026, 2, 10, 9, tzinfo=UTC)
NEXT_DAY = SAID + timedelta(days=1)
TABLE = Path(__file__).parents[1] / "data" / "change_cases.txt"
LINES = TABLE.read_text(encoding="utf-8").splitlines()
HOLDING = [line.split(" | ")[1:] for line in LINES if line.startswith("HOLDS")]


def in_doubt(statement: str, *facts: str, ends: datetime | None = None) -> list[str]:
    change = read_vague_change(statement)
    if change is None:
        return []
    mentions = [Mention(fact, SAID - timedelta(hours=age), ends) for age, fact in enumerate(facts)]
    return [facts[index] for index in find_possibly_outdated(mentions, change, NEXT_DAY)]


@pytest.mark.parametrize(
    ("fact", "statement"),
    [
        ("The clinic is on 5 February at 10.40.", "No sorry, it's the 6th, not the 5th."),
        ("The funeral is on Wednesday at 11.", "Scratch that, Thursday."),
        ("Die Praxis ist um 7.20.", "Quatsch, 7.50 nicht 7.20."),
        ("Empieza con 1850 limpios.", "No no, espera, que 1850 es bruto."),
        ("The doctor put me on amlodipine.", "I'm off amlodipine as of today."),
        ("I've been three days without gum.", "Yeah, I caved on the gum."),
        ("Los jueves juego al pádel.", "De momento no me busques más pádel."),
        ("Chemo ist alle zwei Wochen.", "Keine Chemo mehr."),
        ("Mein Bruder Bernd liegt in der Klinik.", "Bernd ist heute Nacht gestorben."),
        ("La abuela está ingresada en el Morales.", "Se murió la abuela anoche."),
        ("The blood pressure is 148 over 94.", "131/84 this morning."),
        ("The flat costs 178.000.", "174,000 and signed."),
        ("Krankgeschrieben bis zum 6. März.", "Ich bin nicht mehr krank."),
        ("The rent is 985.", "Well, I'm in the new place."),
        ("Me han dado los análisis y la TSH en 7,8.", "La TSH en 3,1."),
    ],
)
def test_a_statement_that_tells_little_puts_in_doubt_what_it_shares_words_with(
    fact: str, statement: str
) -> None:
    assert in_doubt(statement, fact, "I have 2 cats in Rome.") == [fact]


def test_a_moved_appointment_is_the_one_that_lies_ahead() -> None:
    later = SAID + timedelta(days=9)
    assert in_doubt("They pushed it a week.", "Hip surgery on 19 February.", ends=later)
    assert not in_doubt("They pushed it a week.", "Hip surgery on 19 February.")


def test_a_correction_is_about_a_recent_message() -> None:
    correction = read_vague_change("Sorry, I meant 186.")
    assert correction is not None
    old = Mention("The van has 168 horses.", SAID, None)
    assert find_possibly_outdated([old], correction, NEXT_DAY) == [0]
    assert find_possibly_outdated([old], correction, SAID + timedelta(days=30)) == []


@pytest.mark.parametrize(
    "statement",
    [
        "If they cancel the operation I'm doing it myself.",
        "Dale says the operation is cancelled.",
        "Maybe the operation is off now.",
        "Is the operation cancelled?",
        "Dicen que la operación está cancelada.",
        "Wenn die Operation abgesagt wird, fahre ich heim.",
    ],
)
def test_a_condition_hearsay_and_a_question_put_nothing_in_doubt(statement: str) -> None:
    assert in_doubt(statement, "The operation is on Monday.") == []


@pytest.mark.parametrize(("fact", "statement"), HOLDING)
def test_what_the_table_of_changes_says_holds_is_not_in_doubt(fact: str, statement: str) -> None:
    statement = statement.removesuffix(" wrong")
    assert read_change(statement) is not None or in_doubt(statement, fact) == []


def test_sentences_of_one_message_that_go_on_with_each_other_are_in_doubt_together() -> None:
    change = read_vague_change("Sold the Astra to a lad.")
    assert change is not None
    message = [
        Mention("Graham's car failed its test.", SAID, None),
        Mention("We won't pay that, it's an Astra.", SAID, None),
        Mention("I have 2 cats in Rome.", SAID - timedelta(days=1), None),
    ]
    assert find_possibly_outdated(message, change, NEXT_DAY) == [0, 1]


def test_a_topic_is_in_the_message_that_has_all_its_words() -> None:
    message = [
        Mention("Callum hates his course.", SAID, None),
        Mention("He wants to come home.", SAID, None),
        Mention("Callum plays chess.", SAID - timedelta(days=1), None),
    ]
    assert find_about(message, "callum and the course") == [0, 1]
    assert find_about(message, "callum and the choir") == []


@pytest.mark.parametrize(
    ("fact", "statement"),
    [
        ("The pottery class runs from 9 to 12.", "It is from 10 to 12 and not from 9."),
        ("El turno es de 6 a 14.", "Anoté mal el turno, es de 7 a 14 y no de 6."),
        ("Der Kurs geht von 17 bis 19 Uhr.", "Der Kurs geht von 18 bis 19 Uhr, nicht von 17."),
        ("Le cours va de 9 à 11.", "C'est de 10 à 11 et pas de 9."),
    ],
)
def test_a_number_that_is_said_to_be_wrong_puts_an_old_fact_in_doubt(
    fact: str, statement: str
) -> None:
    change = read_vague_change(statement)
    assert change is not None
    mentions = [Mention(fact, SAID, None), Mention("The bus number 3 stops here.", NEXT_DAY, None)]
    assert find_possibly_outdated(mentions, change, SAID + timedelta(days=40)) == [0]


def test_a_wrong_number_that_nobody_stated_puts_nothing_in_doubt() -> None:
    assert in_doubt("It is from 10 to 12 and not from 9.", "The class has 12 people.") == []


def test_a_fact_with_several_other_numbers_is_one_fact() -> None:
    fact = "Weight 84 kg, pulse 71, sugar 112."
    assert in_doubt("Weight 81 kg, pulse 62, sugar 98.", fact, "I have 2 cats in Rome.") == [fact]


@pytest.mark.parametrize(
    ("fact", "statement"),
    [
        ("The TSH is 3.1", "The TSH is 2.2"),
        ("The TSH is 3.1.", "The TSH is 2.2."),
        ("La TSH en 3,1.", "La TSH en 3,4."),
        ("The pulse is 71, the sugar is 112.", "The sugar is 98."),
    ],
)
def test_another_number_of_what_was_measured_puts_the_earlier_one_in_doubt(
    fact: str, statement: str
) -> None:
    assert in_doubt(statement, fact, "I have 2 cats in Rome.") == [fact]


@pytest.mark.parametrize(
    ("fact", "statement"),
    [
        ("The TSH is 3.1.", "The TSH is 3.1."),
        ("The TSH is 3.1.", "The LDL is 2.2."),
        ("Die Praxis ist am 4. Mai zu.", "Die Praxis ist am 6. Juni zu."),
        ("The table is 4, room 5.", "The table is 4."),
    ],
)
def test_the_same_number_and_that_of_another_thing_put_nothing_in_doubt(
    fact: str, statement: str
) -> None:
    assert in_doubt(statement, fact) == []


@pytest.mark.parametrize("fact", ["Entro el 4 de mayo.", "Entro el 18 de mayo."])
def test_of_two_numbers_behind_one_word_either_may_be_the_new_one(fact: str) -> None:
    assert in_doubt("No entro el 4 de mayo, entro el 18 de mayo.", fact) == [fact]
