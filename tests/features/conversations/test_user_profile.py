"""The profile of the user: constraints in people's own words, and what holds, is planned and happened."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from chat_service import ChatService
from embedding_service import failing

from simplemem.features.answers import UserProfile
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.profile import current_profile, read_profile
from simplemem.features.conversations.profile_edits import with_traits
from simplemem.features.conversations.service import (
    ConversationService,
    conversation_service,
)
from simplemem.features.conversations.trait_reading import Trait, read_traits
from simplemem.features.conversations.user_profile import describe_user
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore, Read

AT = datetime(2026, 11, 28, 12, tzinfo=UTC)
LINK = "2026-11-20 Menus#^turn-20261120-120000-aaaaaa"


@pytest.fixture
def conversations(tmp_path: Path) -> Iterator[ConversationService]:
    with EnhancedStore(tmp_path, Settings()) as store:
        yield conversation_service(store)


def told(conversations: ConversationService, *messages: tuple[str, str]) -> UserProfile:
    for day, message in messages:
        conversations.record(new_exchange(message, timestamp=f"{day}T09:00:00Z"))
    return describe_user(conversations, AT)


@pytest.mark.parametrize(
    ("message", "section"),
    [
        ("I am a strict vegetarian", "Constraints"),
        ("always answer in German", "Constraints"),
        ("we never deploy on Fridays", "Constraints"),
        ("no meetings before 10", "Constraints"),
        ("a walnut anywhere near my bowl and I'm in an ambulance", "Constraints"),
        ("my landlord doesn't allow pets, so keep that in mind", "Constraints"),
        ("we can't go over 900 for the bikes", "Constraints"),
        ("can you stop calling me sir", "Constraints"),
        ("customer data never leaves the EU", "Constraints"),
        ("keep your replies short", "Preferences"),
        ("metric please, I can't think in inches", "Preferences"),
        ("I'd sooner walk than take the bus", "Preferences"),
        ("soy alérgica a los frutos secos, ojo con el postre", "Constraints"),
        ("no me pongas reuniones los viernes por la tarde", "Constraints"),
        ("prefiero el tren al avión", "Preferences"),
        ("Bitte antworte immer auf Deutsch", "Constraints"),
        ("mein Arzt hat mir Alkohol verboten", "Constraints"),
        ("on ne dépasse pas 50 euros par personne", "Constraints"),
        ("We don't merge on Fridays.", "Constraints"),
        ("She is not to know about the party.", "Constraints"),
        ("Nothing leaves the office without a signature.", "Constraints"),
        ("The dog gets dry food only.", "Constraints"),
        ("The form must be in by Monday or we lose the place.", "Constraints"),
        ("Send all invoices through Marta.", "Constraints"),
        ("Our baby is not allowed honey", "Constraints"),
        ("Bullet points please, my eyes are tired.", "Preferences"),
        ("Less salt than last time.", "Preferences"),
        ("a mi hijo nada de gluten", "Constraints"),
        ("con el casero solo por escrito", "Constraints"),
        ("sin guantes no entra nadie al taller", "Constraints"),
        ("schreib mir bitte nix mit Zucker auf", "Constraints"),
        ("Mein Hund verträgt kein Getreide", "Constraints"),
        ("Niemand geht ohne Helm auf das Gerüst", "Constraints"),
        ("le bus, non", "Constraints"),
        ("Ma fille ne doit pas manger d'arachides", "Constraints"),
        ("personne ne sort sans badge", "Constraints"),
        ("je préfère le train à l'avion", "Preferences"),
    ],
)
def test_a_rule_is_read_as_people_say_it(message: str, section: str) -> None:
    assert [trait.section for trait in read_traits(message)] == [section]


@pytest.mark.parametrize(
    "message",
    [
        "always look both ways, haha",
        "Should I tell them they can't post after 8?",
        "if I were vegan, what would I eat instead of ghee",
        "my neighbour is not allowed to water after 8",
        "my dad used to say never trust a banker",
        "she only drinks oat milk",
        "we never got round to painting the kitchen",
        "they banned smoking in pubs in 2007",
        "write me a short email to the landlord",
        "book a table for two at eight",
        "leave it out for now",
        "nothing ever works in this house",
        '"Never talk to a customer" was on a poster at my old job',
        "¿puedo comer esto si soy celíaco?",
        "mi jefe no para de hablar",
        "mein Kollege isst nie mittags",
        "mon frère ne mange pas de viande",
        "I don't remember going there before Christmas",
        "Nothing beats a walk before breakfast",
        "He is not to blame",
        "more coffee please",
        "no sé nada de fútbol",
    ],
)
def test_questions_moods_mockery_and_single_orders_are_no_rules(message: str) -> None:
    assert read_traits(message) == []


@pytest.mark.parametrize(
    ("rule", "withdrawal"),
    [
        ("We don't merge on Fridays.", "That thing about merging on Fridays is fine now."),
        ("Always write German.", "You can write German again."),
        ("Nada de vino en las recetas, por favor.", "Lo del vino ya está."),
        ("Bitte keine Anrufe vor zehn.", "Das mit den Anrufen ist erledigt."),
        ("Jamais de photos des enfants.", "La règle des photos, c'est fini."),
    ],
)
def test_a_rule_that_is_withdrawn_is_not_in_the_profile(rule: str, withdrawal: str) -> None:
    text = "---\ntype: profile\n---\n"
    for day, message in ((20, rule), (21, withdrawal)):
        at = datetime(2026, 11, day, 12, tzinfo=UTC)
        text = with_traits(text, read_traits(message), at, LINK)
        rules = read_profile(Read("profiles/default.md", text, "", "")).constraints
        assert len(rules) == (1 if message == rule else 0)


def test_a_rule_with_an_end_is_not_in_the_profile_after_it() -> None:
    text = with_traits(
        "---\ntype: profile\n---\n",
        read_traits("no dairy until 5 December please. I avoid pork."),
        datetime(2026, 11, 20, 12, tzinfo=UTC),
        LINK,
    )
    profile = read_profile(Read("profiles/default.md", text, "", ""))
    assert "until=2026-12-05" in text
    on_the_day = current_profile(profile, "2026-12-05").constraints
    after = current_profile(profile, "2026-12-06").constraints
    assert [row["text"] for row in on_the_day] == [
        "no dairy until 5 December please",
        "I avoid pork",
    ]
    assert [row["text"] for row in after] == ["I avoid pork"]


@pytest.mark.parametrize(
    ("rule", "until"),
    [
        ("No calls before ten, this week only", "2026-11-22"),
        ("just for today, answer in German", "2026-11-20"),
        ("Nur diese Woche keine Anrufe vor zehn", "2026-11-22"),
        ("nur heute bitte auf Englisch", "2026-11-20"),
        ("solo por hoy, responde en inglés", "2026-11-20"),
        ("always answer in German", ""),
        ("keine Anrufe vor zehn", ""),
    ],
)
def test_a_rule_ends_when_its_words_say_so_whoever_read_it(rule: str, until: str) -> None:
    of_agent = Trait("Constraints", rule)
    text = with_traits(
        "---\ntype: profile\n---\n", [of_agent], datetime(2026, 11, 20, 12, tzinfo=UTC), LINK
    )
    [constraint] = read_profile(Read("profiles/default.md", text, "", "")).constraints
    assert constraint.get("until", "") == until


def test_an_allergy_of_somebody_close_says_whose_it_is(conversations: ConversationService) -> None:
    profile = told(conversations, ("2026-11-20", "my daughter is allergic to peanuts"))
    [constraint] = profile["constraints"]
    assert constraint["about"] == "daughter" and constraint["severity"] == "strict"
    assert constraint["text"] == "my daughter is allergic to peanuts"


def test_another_limit_puts_the_earlier_one_in_doubt(conversations: ConversationService) -> None:
    profile = told(
        conversations,
        ("2026-11-01", "the budget for the laptop is 1500"),
        ("2026-11-20", "good news, for the laptop we can go up to 1,900 now"),
        ("2026-11-21", "max 40 per person for dinner"),
    )
    disputed = {row["text"]: row.get("disputed") for row in profile["constraints"]}
    assert disputed == {
        "the budget for the laptop is 1500": "2026-11-20",
        "good news, for the laptop we can go up to 1,900 now": None,
        "max 40 per person for dinner": None,
    }


@pytest.mark.parametrize(
    ("bullet", "marked"),
    [
        (
            "- the budget for the laptop is 1500 %%",
            "- the budget for the laptop is 1500 %% %%disputed=2026-11-20%%",
        ),
        (
            "- the budget %% for the laptop is 1500 %%since=2026-11-01%%",
            "- the budget %% for the laptop is 1500 %%disputed=2026-11-20 since=2026-11-01%%",
        ),
        (
            "- the budget for the laptop is 1500 [[Money]]",
            "- the budget for the laptop is 1500 %%disputed=2026-11-20%% [[Money]]",
        ),
    ],
)
def test_a_bullet_of_the_user_is_put_in_doubt_whatever_percent_signs_and_links_it_has(
    bullet: str, marked: str
) -> None:
    text = f"---\ntype: profile\n---\n\n## Constraints\n\n{bullet}\n"
    [before] = read_profile(Read("profiles/default.md", text, "", "")).constraints

    limit = Trait("Constraints", "for the laptop we can go up to 1,900 now")
    changed = with_traits(text, [limit], datetime(2026, 11, 20, 12, tzinfo=UTC), LINK)

    assert f"\n{marked}\n" in changed
    constraints = read_profile(Read("profiles/default.md", changed, "", "")).constraints
    [disputed] = [row for row in constraints if "disputed" in row]
    assert disputed["text"] == before["text"] and disputed["disputed"] == "2026-11-20"


def test_preferences_that_end_with_the_same_word_are_both_kept(
    conversations: ConversationService,
) -> None:
    profile = told(
        conversations,
        ("2026-11-01", "window seats suit me better on the train"),
        ("2026-11-02", "I'd sooner sleep than read on the train"),
    )
    assert len(profile["preferences"]) == 2


def test_a_rule_that_is_called_off_is_forgotten(conversations: ConversationService) -> None:
    profile = told(
        conversations,
        ("2026-11-01", "no meetings before 10"),
        ("2026-11-20", "forget the meetings rule"),
    )
    assert profile["constraints"] == []


def test_the_profile_is_who_the_user_is_now(conversations: ConversationService) -> None:
    profile = told(
        conversations,
        ("2026-10-01", "My name is Ana. I live in Hamburg. My wifi password is Abc12345x."),
        ("2026-11-01", "I moved to Leipzig. What is the best pizza there?"),
        ("2026-11-10", "I work at Fiat. I'm going to fly to Rome in May."),
        ("2026-11-20", "I got a new job. I saw a film and it was rubbish."),
        (
            "2026-11-25",
            "My sister lives in Ghent. My colleague's name is Omar. I'm going to be late.",
        ),
        ("2026-11-26", "Yesterday I ran 10 km."),
    )
    assert profile["name"] == "Ana" and profile["method"] == "rules"
    assert [row["text"] for row in profile["facts"]] == ["I moved to Leipzig.", "I work at Fiat."]
    assert [row.get("disputed") for row in profile["facts"]] == [None, "2026-11-20"]
    assert [row["text"] for row in profile["plans"]] == ["I'm going to fly to Rome in May."]
    assert "Yesterday I ran 10 km." in [row["text"] for row in profile["recent"]]
    text = profile["text"]
    assert "Name: Ana" in text and "I work at Fiat. (2026-11-10, disputed since 2026-11-20)" in text
    for unwanted in (
        "Hamburg",
        "Abc12345x",
        "pizza",
        "rubbish",
        "password",
        "Ghent",
        "Omar",
        "late",
    ):
        assert unwanted not in text


def test_a_note_from_before_is_read_as_it_was(conversations: ConversationService) -> None:
    note = conversations.store.root / "profiles/default.md"
    note.parent.mkdir()
    note.write_text(
        "---\ntype: profile\nname: Ada\n---\n\n## Constraints\n\n- strictly vegetarian "
        f"%%severity=strict since=2026-10-21%% [[{LINK}]]\n\n## Preferences\n\n- I prefer tea\n"
    )
    conversations.store.sync()
    profile = describe_user(conversations, AT)
    assert profile["name"] == "Ada" and profile["preferences"] == {"tea": "I prefer tea"}
    assert profile["constraints"] == [
        {"text": "strictly vegetarian", "severity": "strict", "since": "2026-10-21"}
    ]


def test_a_model_writes_the_text_if_it_is_asked_to(tmp_path: Path) -> None:
    with ChatService(lambda _: {"text": "Ana lives in Leipzig."}) as service:
        llm = {"provider": "openai", "model": "m", "url": service.url}
        with EnhancedStore(tmp_path, Settings.model_validate({"llm": llm})) as store:
            conversations = conversation_service(store)
            told(conversations, ("2026-11-01", "My name is Ana. I live in Leipzig."))
            written = describe_user(conversations, AT, by_model=True)
            assert (written["text"], written["method"]) == ("Ana lives in Leipzig.", "llm:m")
            assert describe_user(conversations, AT)["method"] == "rules"
            service.always = failing(500)
            by_rules = describe_user(conversations, AT, by_model=True)
            assert by_rules["method"] == "rules" and "Name: Ana" in by_rules["text"]
