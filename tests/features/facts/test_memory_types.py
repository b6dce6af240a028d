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


@pytest.mark.parametrize(
    ("statement", "last_day"),
    [
        # Said on Sunday 22 November 2026.
        ("I'm in Rome until Friday.", "2026-11-27"),
        ("No driving till 20th January, they said.", "2027-01-20"),
        ("I'm on my mother's couch thru Dec 6.", "2026-12-06"),
        ("We're away for two weeks.", "2026-12-06"),
        ("We are at my cousin's until Thanksgiving.", "2026-11-26"),
        ("We stay with Ruth till Easter Monday.", "2027-03-29"),
        ("Until 12/01/2026 I work from home.", "2026-12-01"),
        ("Hasta el 10/02/2027 trabajo desde casa.", "2027-02-10"),
        ("Estoy en Lisboa hasta finales de marzo.", "2027-03-31"),
        ("Nada de lactosa hasta el 30.", "2026-11-30"),
        ("Esta semana y la que viene trabajo de mañanas.", "2026-11-29"),
        ("I work from the Leeds office this week and next.", "2026-11-29"),
        ("Ich bin diese und nächste Woche in Wien.", "2026-11-29"),
        ("Cette semaine et la prochaine je suis à Lyon.", "2026-11-29"),
        ("Ich bin bis zum 20.3. krank.", "2027-03-20"),
        ("Ich habe frei bis einschließlich 1. Dezember.", "2026-12-01"),
        ("Je suis à Lyon jusqu'à vendredi.", "2026-11-27"),
        ("Je suis à Lyon jusqu'au 15 juin.", "2027-06-15"),
        ("Je suis à Lyon jusqu'au 15 juillet.", "2027-07-15"),
        ("Je suis à Lyon jusqu'à fin juillet.", "2027-07-31"),
        # The next 29 February is in 2028.
        ("I'm in Rome until 29 February.", "2028-02-29"),
        ("I'm in Rome until February 29.", "2028-02-29"),
        ("Estoy en Lisboa hasta el 29 de febrero.", "2028-02-29"),
        ("Ich bin bis zum 29.2. krank.", "2028-02-29"),
        # A day that no year has is no day, and not the end of its month.
        ("The visa expires on 30 February.", ""),
        ("I'm in Rome until February 31.", ""),
        ("I'm in Rome until February 31st.", ""),
        ("I'm in Rome until the 31st of February.", ""),
        ("I'm in Rome until February 29, 2027.", ""),
        ("I'm in Rome until Friday the 32nd.", ""),
        ("Estoy en Lisboa hasta el 31 de febrero.", ""),
        ("Je suis à Lyon jusqu'au 31 février.", ""),
        ("The dentist is on February 31st at 10.", ""),
        ("Der Zahnarzt ist am 31. Februar um 10 Uhr.", ""),
        ("I'm in Rome until February 31, no, until March 3.", "2027-03-03"),
        # An appointment is over when its day is.
        ("Hospital rang with a date, Monday 7th December, I have to be there for 7.", "2026-12-07"),
        ("Funeral's Wednesday, 11 at St. Albert's.", "2026-11-25"),
        ("El entierro es mañana a las 12 en Alcantarilla.", "2026-11-23"),
        ("MRT am 19.12. um 7.20.", "2026-12-19"),
        ("She is pregnant, due 30th August.", "2027-08-30"),
        # What was, what happens again and what begins on a day goes on.
        ("I was in Rome until Friday.", ""),
        ("I have worked at Acme for two years.", ""),
        ("I work until Friday every week.", ""),
        ("We deploy on Fridays at 5.", ""),
        ("The new owners take over on 4 May at 9.", ""),
        ("The shop is open until 5.", ""),
        ("The meeting is Monday to Thursday at 9.", ""),
        ("My birthday is 5 March.", ""),
    ],
)
def test_the_last_day_is_counted_from_when_it_was_said(statement: str, last_day: str) -> None:
    valid_to = memory_type_of(statement, NOW).valid_to
    assert (f"{valid_to:%Y-%m-%d}" if valid_to else "") == last_day
