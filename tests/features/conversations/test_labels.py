"""Labels name what was talked about, and summaries say how it ended, in words that were said."""

from __future__ import annotations

import pytest

from simplemem.features.conversations.labels import label_of_exchanges
from simplemem.features.conversations.outcomes import choose_outcome


@pytest.mark.parametrize(
    ("message", "answer", "label"),
    [
        (
            "god my shoes. how much does a removal van cost",
            "A removal van from Leeds costs 400 to 650 pounds.",
            "Removal van cost",
        ),
        (
            "Sent it to her last week. The invoice for the boat mooring is still unpaid.",
            "Remind her of the invoice.",
            "Invoice for the boat mooring is still unpaid",
        ),
        (
            "cita hoy a las 6. la editorial me ha pedido otra ronda de cambios",
            "La editorial pagó dos rondas de cambios.",
            "Editorial me ha pedido otra ronda de cambios",
        ),
    ],
)
def test_a_label_is_the_clause_that_the_answer_takes_up(
    message: str, answer: str, label: str
) -> None:
    assert label_of_exchanges([(message, answer)]) == label


def test_a_label_that_nobody_could_understand_is_refined_by_later_exchanges() -> None:
    unclear = ("there my friend", "Hello!")
    later = ("the greenhouse pump is loud at night", "A pump on rubber feet is quiet.")
    assert label_of_exchanges([unclear, later]) == "Greenhouse pump is loud at night"


def test_a_label_names_the_subject_rather_than_the_mood_of_the_first_message() -> None:
    first = ("heyy omg can you fix my life", "Of course. What is going on?")
    later = ("ok so the tax return is due friday", "A tax return has four parts.")
    assert label_of_exchanges([first, later]) == "Tax return is due friday"
    more = ("i found the missing receipts", "Then the tax return is nearly done.")
    assert label_of_exchanges([first, later, more]) == "Tax return is due friday"


def test_a_label_has_neither_half_a_parenthesis_nor_quotation_marks() -> None:
    message = 'the roofer (a cousin of Ola) says "new tiles by autumn"'
    assert label_of_exchanges([(message, "New tiles cost more.")]) == "Says new tiles by autumn"


def test_a_label_changes_no_more_once_a_topic_has_grown() -> None:
    exchanges = [("there my friend", "Hello!")] * 4
    later = ("the greenhouse pump is loud at night", "A pump on rubber feet is quiet.")
    assert label_of_exchanges([*exchanges, later]) == label_of_exchanges(exchanges)


@pytest.mark.parametrize(
    ("sentences", "outcome"),
    [
        (
            ["Which pump for the greenhouse?", "We decided on the small one.", "It hums a bit."],
            ["We decided on the small one."],
        ),
        (
            ["Which printer should we take?", "Done.", "The blue printer is on its way."],
            ["Done.", "The blue printer is on its way."],
        ),
        (
            ["¿Cuánto sale?", "Presentado con clave.", "747,20."],
            ["Presentado con clave.", "747,20."],
        ),
        (
            ["The blue flat has a balcony to the south.", "Booked!", "ok bye"],
            ["The blue flat has a balcony to the south.", "Booked!"],
        ),
        (["Wir nehmen die kleine Pumpe."], ["Wir nehmen die kleine Pumpe."]),
        (["The pump hums loudly at night.", "Why?"], ["The pump hums loudly at night."]),
        ([], []),
    ],
)
def test_an_outcome_is_the_last_decision_or_result(
    sentences: list[str], outcome: list[str]
) -> None:
    assert choose_outcome(sentences) == outcome
