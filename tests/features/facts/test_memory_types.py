"""Of what kind a statement is, and until when it holds, told in November."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from simplemem.features.facts.memory_type import memory_type_of, states_end

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("statement", "kind", "until"),
    [
        ("I prefer window seats on flights.", "preference", ""),
        ("Met Ruth for lunch on 3 November 2026.", "episode", "2026-11-03"),
        ("Met Ruth for lunch yesterday.", "episode", "2026-11-22"),
        ("My parking pass is valid until 30 June 2027.", "fact", "2027-06-30"),
        ("My parking pass is valid until 30 June.", "fact", "2027-06-30"),
        ("Me gusta el café.", "preference", ""),
        ("My sister is called Ingrid.", "fact", ""),
        # what lies further back than an episode lasts was told to be kept
        ("I was born on 4 May 1980.", "fact", ""),
        ("My exam is on 12 January.", "fact", ""),
        ("Apollo ships on 4 May.", "fact", ""),
    ],
)
def test_the_kind_of_a_statement(statement: str, kind: str, until: str) -> None:
    found, end = memory_type_of(statement, NOW)
    assert (found, f"{end:%Y-%m-%d}" if end else "") == (kind, until)


@pytest.mark.parametrize(
    "statement",
    [
        "I started at Northlight Labs today.",
        "We moved to Leipzig last week.",
        "My daughter Emma was born yesterday.",
        "I got married on 3 November.",
        "I changed my name to Roe last week.",
        "We adopted a dog named Bruno yesterday.",
        "I bought a house in Lyon last month.",
        "My sister got a job at Bosch last week.",
        "My brother was promoted to team lead today.",
        "I gave up smoking last month.",
        "I got a new phone number today.",
        "I work at Acme since last week.",
        "Hoy empecé en Northlight Labs.",
        "Nos mudamos a Valencia la semana pasada.",
        "Mi hija nació anoche.",
        "Ayer compramos un piso en Gijón.",
        "Dejé de fumar la semana pasada.",
    ],
)
def test_a_state_lasts_even_when_it_is_dated(statement: str) -> None:
    assert memory_type_of(statement, NOW) == ("fact", None)


@pytest.mark.parametrize(
    "statement",
    [
        "I had dinner with Omar yesterday.",
        "The meeting started at 9 yesterday.",
        "I changed the tyres yesterday.",
        "I stopped at the bakery today.",
        "Joined the call yesterday.",
        "Fui al dentista ayer.",
    ],
)
def test_an_event_fades_after_its_day(statement: str) -> None:
    assert memory_type_of(statement, NOW).name == "episode"


@pytest.mark.parametrize(
    "statement",
    [
        "My pass is valid until 30 June",
        "The sale ends today",
        "The conference is from 3 to 5 March",
        "Closed today only",
        "Mi pase vale hasta junio",
        "Die Karte gilt bis Juni",
        "Le bail expire en juin",
    ],
)
def test_an_end_is_told_in_words(statement: str) -> None:
    assert states_end(statement, is_ahead=False)


@pytest.mark.parametrize(
    "statement",
    [
        "I started at Northlight Labs today",
        "I moved from Hamburg to Leipzig last week",
        "I started on 2026-11-22",
        "I got the job through Anna today",
        "I have been at Acme for two years",
        "Me mudé de Hamburgo a Leipzig ayer",
        "Ich habe heute bei Acme angefangen",
    ],
)
def test_a_day_alone_ends_nothing(statement: str) -> None:
    assert not states_end(statement, is_ahead=False)


def test_a_duration_sets_an_end_that_lies_ahead() -> None:
    assert states_end("I am in Rome for two weeks", is_ahead=True)
    assert not states_end("I am in Rome for two weeks", is_ahead=False)
