"""Facts and traits: read only from statements of the user, and stored in notes that the user may change."""

from __future__ import annotations

import gzip
import itertools
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simplemem.features.conversations.fact_search import find_facts
from simplemem.features.conversations.profile import Profile, read_profile
from simplemem.features.conversations.profile_edits import with_traits
from simplemem.features.conversations.trait_reading import read_traits, severity_of
from simplemem.features.fact import Fact
from simplemem.features.facts.key_notes import (
    FactVersion,
    add_version,
    fact_versions,
    new_fact,
    read_conversation_fact,
)
from simplemem.features.facts.reader import read_text
from simplemem.features.facts.stated import StatedFact, key_of
from simplemem.note.note import read_note
from simplemem.store import Read

NOW = "2026-11-20T14:05:10"
LOCOMO = Path(__file__).parents[4] / "shared" / "data" / "locomo_half.json.gz"


def facts_in(message: str) -> dict[str, str]:
    return {fact.key: fact.value for fact in read_text(message).facts}


def traits_in(message: str) -> list[tuple[str, str, bool]]:
    traits = [trait for trait in read_traits(message) if trait.section != "gone"]
    return [(section, text, severity_of(text) == "strict") for section, text in traits]


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("The password for the router is hunter2-Kestrel.", {"router_password": "hunter2-Kestrel"}),
        ("Hi! My wifi password is Abc12345, don't tell.", {"wifi_password": "Abc12345"}),
        ("Our license key for PlotPro: PP-11-22-33", {"plotpro_license_key": "PP-11-22-33"}),
        ("My pin is 4471.", {"pin": "4471"}),
        ("My pin is 4471. No, my pin is 4472.", {"pin": "4472"}),
        ("The key for the tide table has expired. The new one is TT-9.", {"tide_table_key": "TT-9"}),
        ("My dentist is called Dr Lind, and her phone number is 0431 778 220.",
         {"dentist_name": "Dr Lind", "dentist_phone_number": "0431 778 220"}),
        ("The landlord's phone number is +49 (0)431 77-820.", {"landlord_phone_number": "+49 (0)431 77-820"}),
        ("My locker combination is 31-17-05.", {"locker_combination": "31-17-05"}),
        ("My customer number at the water works is 88-1203.", {"water_works_customer_number": "88-1203"}),
        ("We have a boat, her name is Plover.", {"boat_name": "Plover"}),
        ("My daughter's name is Ada de la Cruz.", {"daughter_name": "Ada de la Cruz"}),
        ("My email address is ruth@example.org.", {"email_address": "ruth@example.org"}),
        ("SLO stands for service level objective.", {"slo": "service level objective"}),
        ("Let's go with Fahrenheit for the dashboard.", {"dashboard_decision": "Fahrenheit"}),
        ("Remind me to call the plumber on Monday.", {"task_call_plumber_on_monday": "call the plumber on Monday"}),
    ],
)  # fmt: skip
def test_a_statement_is_a_fact(message: str, facts: dict[str, str]) -> None:
    assert facts_in(message) == facts


@pytest.mark.parametrize(
    ("message", "facts"),
    [
        ("Mi hermana se llama Ruth y su teléfono es 0431 778 220.",
         {"hermana_name": "Ruth", "hermana_teléfono": "0431 778 220"}),
        ("Tenemos un barco que se llama Gaviota.", {"barco_name": "Gaviota"}),
        ("¡Hola! Mi clave de la wifi es Abc12345, no la digas.", {"wifi_clave": "Abc12345"}),
        ("La clave de la oficina ha caducado. La nueva es TT-99.", {"oficina_clave": "TT-99"}),
        ("He cambiado la contraseña del correo a Zorro-88.", {"correo_contraseña": "Zorro-88"}),
        ("El móvil ha pasado a 600 11 22 33.", {"móvil": "600 11 22 33"}),
        ("Mi correo es ruth@example.org.", {"correo": "ruth@example.org"}),
        ("Mi dirección es calle Mayor 12.", {"dirección": "calle Mayor 12"}),
        ("Vamos a usar Postgres para el panel.", {"panel_decision": "Postgres"}),
        ("Recuérdame llamar al fontanero.", {"task_llamar_al_fontanero": "llamar al fontanero"}),
        ("PIB significa producto interior bruto.", {"pib": "producto interior bruto"}),
    ],
)  # fmt: skip
def test_a_statement_in_spanish_is_a_fact(message: str, facts: dict[str, str]) -> None:
    assert facts_in(message) == facts


@pytest.mark.parametrize(
    "message",
    ["¿Mi pin es 4471?", "Si mi pin fuera 4471, lo sabrías.", "Imagina que mi pin es 4471.", "Su pin es 4471.",
     "Mi hermana dice que su clave es hunter2.", "Según el manual, la contraseña es admin123.", "«Mi pin es 4471»",
     "La clave es la paciencia.", "El código es 4000 líneas largo.", "El número de invitados es 12."],
)  # fmt: skip
def test_what_is_not_ones_own_in_spanish_states_no_fact(message: str) -> None:
    assert facts_in(message) == {}


@pytest.mark.parametrize(
    "message",
    ["What is my password?", "Is the password hunter2?", "If my password was hunter2, would you tell me?",
     "My sister said her password is hunter2.", 'The manual has: "the password is hunter2".',
     "> my password is hunter2", "```\nmy password is hunter2\n```", "Imagine my pin is 4471.",
     "Let's say my pin is 4471.", "According to the manual, the default password is admin123.",
     "The code is 4000 lines long.", "The key to success is patience.", "The key is in the lock.",
     "The key takeaway is that 4 of 5 agree.", "The code is simple.", "His pin is 4471.",
     "The number of guests is 12.", "Don't remind me to call.", "I wish my name was Ada.", "My name is on the list."],
)  # fmt: skip
def test_a_question_supposition_quotation_or_words_of_others_state_no_fact(message: str) -> None:
    assert facts_in(message) == {} and traits_in(message) == []


@pytest.mark.parametrize(
    ("message", "traits"),
    [("I'm strictly vegetarian, so no fish.", [("Constraints", "strictly vegetarian", True)]),
     ("Please note that I am allergic to peanuts and I love jazz.", [("Constraints", "allergic to peanuts", True)]),
     ("I'm strictly carnivorous, sorry.", [("Constraints", "strictly carnivorous", True)]),
     ("I have a severe allergy to bees.", [("Constraints", "severe allergy to bees", True)]),
     ("I don't drink alcohol.", [("Constraints", "I don't drink alcohol", False)]), ("I can't eat now.", []),
     ("I never eat pork.", [("Constraints", "I never eat pork", False)]),
     ("I prefer trains to planes.", [("Preferences", "I prefer trains to planes", False)]),
     ("Hello, I always use tabs.", [("Preferences", "I always use tabs", False)]),
     ("I speak German and French.", [("Identity", "I speak German and French", False)]),
     ("Call me Ada.", [("name", "Ada", False)]), ("Call me Monday.", []), ("Call me back.", []),
     ("My sister is vegan.", []), ("I'm tired.", []), ("I'm vegan-curious?", []),
     ("She says I'm allergic to work.", []), ("I would prefer tea if there is some.", [])],
)  # fmt: skip
def test_what_users_say_of_themselves(message: str, traits: list[tuple[str, str, bool]]) -> None:
    assert traits_in(message) == traits


@pytest.mark.slow
@pytest.mark.skipif(not LOCOMO.exists(), reason="the conversations are not beside this checkout")
def test_conversations_of_others_state_almost_nothing() -> None:
    """2,760 turns, none of which tells a secret or a name: what is read in them are three statements, all of them true."""
    turns = [
        text
        for doc in json.loads(gzip.decompress(LOCOMO.read_bytes()))["docs"]
        for _, text in doc["turns"]
    ]
    assert len(turns) == 2760
    assert [fact for text in turns for fact in read_text(text).facts] == []
    assert [trait for text in turns for _, trait in read_traits(text)] == [
        "allergic to most reptiles and animals with fur", "lactose intolerant", "lactose intolerant",
    ]  # fmt: skip


PIECES = "my|the|key|is|for|password|:|Ab1|I'm|allergic to|call me|Ada|,|her name is|%|\n".split(
    "|"
)


@given(st.one_of(st.text(), st.lists(st.sampled_from(PIECES)).map(" ".join)))
def test_no_text_makes_the_rules_fail(text: str) -> None:
    for fact in read_text(text).facts:
        assert fact.key and fact.value and fact.value in " ".join(text.split())
    read_traits(text)


def stated_fact(value: str, minute: int) -> tuple[StatedFact, FactVersion]:
    statement = StatedFact(
        "router_password", value, "secret", f"The password is {value}.", "rule:secret", 0.9
    )
    at = datetime(2026, 10, 2, 9, minute, tzinfo=UTC)
    return statement, FactVersion(
        at, value, f"2026-10-02 Router#^turn-20261002-09{minute:02}00-aaaaaa"
    )


def fact(text: str) -> Fact:
    return read_conversation_fact(Read("facts/router password.md", text, "", ""))


def note_of(statements: list[tuple[str, int]]) -> str:
    text = new_fact(*stated_fact(*statements[0]), "block_1", NOW)
    for value, minute in statements[1:]:
        text = add_version(text, fact(text), *stated_fact(value, minute), f"block_{minute}")
    return text


VALUES = ["a1", "0431", "%%", "two words", "- x", "[[y]]", "true", "{", "'", "a · b"]


@given(st.lists(st.tuples(st.sampled_from(VALUES), st.integers(0, 5)), min_size=1, max_size=4))
def test_in_any_order_of_recording_the_value_stated_last_is_current(
    statements: list[tuple[str, int]],
) -> None:
    value, minute = max(statements, key=lambda statement: (statement[1], statement[0]))
    for order in itertools.permutations(statements):
        result = fact(text := note_of(list(order)))
        assert (result.value, result.valid_from.minute) == (value, minute)
        history = fact_versions(text)
        times = [version.at for version in history]
        assert times == sorted(times) and {
            (version.value, version.at.minute) for version in history
        } == set(statements)


def test_a_fact_is_a_note_that_the_user_may_change() -> None:
    text = note_of([("WX-1", 1)])
    edited = (
        text.replace("# ", "# ").replace("value: WX-1", "value: MINE-2 # by me")
        + "\nMy own remark.\n"
    )
    assert fact(edited).value == "MINE-2"
    after = add_version(edited, fact(edited), *stated_fact("WX-3", 3), "block_3")
    assert fact(after).value == "WX-3" and "# by me" in after and after.endswith("My own remark.\n")
    assert "> The password is WX-3." in after and [
        version.value for version in fact_versions(after)
    ] == [
        "WX-1",
        "WX-3",
    ]
    assert read_note(after.encode()).header.get("private") is True


@pytest.mark.parametrize(
    ("question", "values"),
    [("what is the router's passphrase?", ["R1"]), ("credential of my router", ["R1"]),
     ("telephone of the dentist", ["0431"]), ("what's my phone number?", []), ("dentist", ["0431"]),
     ("password for the bank", []), ("what is my passport number?", []), ("bicycle lock code", ["77"]), ("", []),
     ("the", [])],
)  # fmt: skip
def test_a_fact_is_found_if_the_question_asks_for_it(question: str, values: list[str]) -> None:
    facts = [
        fact(
            new_fact(
                StatedFact(key, value, "", "", "agent", 0.9),
                FactVersion(datetime.now(UTC), value, "x#^y"),
                "",
                NOW,
            )
        )
        for key, value in (
            ("router_password", "R1"),
            ("dentist_phone_number", "0431"),
            ("bicycle_lock_code", "77"),
        )
    ]
    assert [fact.value for fact in find_facts(question, facts, {})] == values


MESSAGES = [
    "My API key for the tide table service is TT-4471-QX.", "My dentist's phone number is 0431 778 220.",
    "Our wifi password is Heron-42.", "My bicycle lock code is 7713.", "My insurance policy number is PN-88812.",
    "My library card number is LC-3391-07.", "My passport number is C01X00T47.", "Our boat is called Plover.",
    "My sister's address is 12 Quay Street.", "My work email is ruth@brandt.example.", "My alarm code is 9081.",
    "My husband's phone number is 0170 333 44.", "My doctor's phone number is 0431 900 10.",
    "My bank's phone number is 0431 100 20.", "The staging database password is Stg-8812.",
    "My holiday flat's address is 4 Rua Nova 7.",
]  # fmt: skip
# Questions for what nobody stated, in words of the statements: of another kind, of somebody or something else, of one thing more exactly.
NOT_STATED = [
    "password for the bank", "bank account number", "bank's wifi password", "the bank's address", "name of my doctor",
    "phone number of my eye doctor", "doctor's emergency phone number", "dentist's email", "name of my husband",
    "my second dentist's phone number", "my husband's email", "my husband's passport number", "my wife's phone number",
    "my husband's library card number", "name of my sister", "sister's phone number", "my brother's address",
    "office wifi password", "neighbour's wifi password", "guest wifi password", "wifi address", "passport pin",
    "boat registration number", "boat lock code", "boat insurance policy number", "my cat's insurance policy number",
    "insurance phone number", "car alarm code", "alarm company phone", "production database password",
    "holiday flat's door code", "holiday flat's wifi password", "motorcycle lock code", "tide table service email",
    "private email", "I visited my dentist. What is the phone number of the vet?", "How loud is the alarm?",
    "We are flying to Lisbon; do we need a passport?",
]  # fmt: skip
OTHER_WORDS = {
    "Which credential did I give you for the tide table?": "TT-4471-QX", "wi-fi passphrase": "Heron-42",
    "wireless password": "Heron-42", "combination of my bike lock": "7713", "What's the PIN for my alarm?": "9081",
    "I'm at the marina. What was our boat's name?": "Plover", "name of the vessel": "Plover", "my work mail": "ruth@",
    "where does my sister live?": "12 Quay", "husband's mobile": "0170", "phone of the physician": "0431 900 10",
    "password of the staging db": "Stg-8812", "address of the vacation apartment": "4 Rua",
    "what's my passport number?": "C01X00T47", "What is the number of my doctor again?": "0431 900 10",
}  # fmt: skip


@pytest.fixture(scope="module")
def vault_facts() -> list[Fact]:
    moment = datetime(2026, 11, 20, tzinfo=UTC)
    stated_facts = [stated for message in MESSAGES for stated in read_text(message).facts]
    texts = [
        new_fact(stated, FactVersion(moment, stated.value, "x#^y"), "", NOW)
        for stated in stated_facts
    ]
    assert len(texts) == len(MESSAGES)
    return [
        read_conversation_fact(Read(f"facts/{number}.md", text, "", ""))
        for number, text in enumerate(texts)
    ]


@pytest.mark.parametrize("question", NOT_STATED)
def test_a_question_for_what_nobody_stated_finds_nothing_similar(
    vault_facts: list[Fact], question: str
) -> None:
    assert find_facts(question, vault_facts, {}) == []


@pytest.mark.parametrize(("question", "value"), OTHER_WORDS.items())
def test_a_fact_is_found_by_other_words(vault_facts: list[Fact], question: str, value: str) -> None:
    assert [fact.value.startswith(value) for fact in find_facts(question, vault_facts, {})] == [
        True
    ]


def profile(text: str) -> Profile:
    return read_profile(Read("profiles/default.md", text, "", ""))


def add_traits(text: str, message: str, day: int = 20) -> str:
    at = datetime(2026, 11, day, 12, tzinfo=UTC)
    return with_traits(
        text, read_traits(message), at, "2026-11-20 Menus#^turn-20261120-120000-aaaaaa"
    )


def test_a_profile_grows_and_forgets_and_keeps_what_a_person_wrote() -> None:
    text = add_traits(
        "---\ntype: profile\n---\n",
        "My name is Ruth Brandt. I'm strictly teetotal. I prefer metric units. I speak German.",
    )
    result = profile(text)
    assert result.user_name == "Ruth Brandt" and result.preferences == {
        "units": "I prefer metric units"
    }
    assert result.constraints == (
        {"text": "strictly teetotal", "severity": "strict", "since": "2026-11-20"},
    )
    assert add_traits(text, "I am strictly teetotal.", 21) == text
    assert add_traits(text, "I'm no longer there.", 21) == text
    edited = (
        text.replace("Ruth Brandt", "Ruth B") + "\n## Garden\n\nMy own line.\n- I prefer roses\n"
    )
    after = add_traits(
        edited, "I'm no longer teetotal. I prefer imperial units. I'm allergic to nuts."
    )
    result = profile(after)
    assert (result.user_name, result.preferences) == (
        "Ruth B",
        {"units": "I prefer imperial units"},
    )
    assert [constraint["text"] for constraint in result.constraints] == ["allergic to nuts"]
    assert (
        after.endswith("\n## Garden\n\nMy own line.\n- I prefer roses\n")
        and "[[2026-11-20 Menus#^turn-" in after
    )
    assert (
        add_traits(after, "I prefer metric units. I'm no longer allergic to nuts.", 19) == after
    )  # back-dated
    by_hand = profile("---\ntype: profile\n---\n\n## constraints\n* no gluten, strictly\n- vegan\n")
    assert [(row["text"], row["severity"]) for row in by_hand.constraints] == [
        ("no gluten, strictly", "strict"),
        ("vegan", "firm"),
    ]


def test_a_key_is_snake_case_without_words_every_key_could_have() -> None:
    assert key_of("My account's API key for the Tide-Table service") == "api_key_tide_table"
    assert key_of("the") == "" and len(key_of("word " * 100)) <= 80
