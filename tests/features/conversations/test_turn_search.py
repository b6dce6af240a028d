"""What a question finds in conversations: the turns that answer, facts by way of others, and dates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from simplemem.features.conversations.context import build_context
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.fact_chains import follow_facts
from simplemem.features.conversations.fact_search import find_facts
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.service import ConversationService, conversation_service
from simplemem.features.fact import Fact, Slot
from simplemem.note.words import count_tokens
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore


@pytest.fixture(params=["auto", "none"], ids=["with vectors", "words alone"])
def conversations(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[ConversationService]:
    settings = Settings()
    if request.param == "none":
        settings = Settings.model_validate({"embed": {"provider": "none"}})
    with EnhancedStore(tmp_path, settings) as store:
        yield conversation_service(store)


def tell(
    conversations: ConversationService, topic: str, *exchanges: tuple[str, str], hour: int = 9
) -> None:
    for minute, (message, answer) in enumerate(exchanges):
        at = f"2026-11-20T{hour:02}:{minute:02}:00Z"
        exchange = new_exchange(message, response=answer, topic=topic, timestamp=at)
        conversations.record(exchange)


def turns_for(conversations: ConversationService, question: str, limit: int = 5) -> list[str]:
    memories = recall(conversations, question, limit)["memories"]
    return [turn["user_message"] for memory in memories for turn in memory["turns"]]


def garden_talk(count: int) -> list[tuple[str, str]]:
    return [(f"In week {number} the garden beds were weeded.", "Noted.") for number in range(count)]


def test_a_long_topic_gives_as_many_turns_as_answer_and_short_ones_leave_it_the_room(
    conversations: ConversationService,
) -> None:
    about_bees = [
        (f"The bee hive on roof {number} got a new queen.", "Good.") for number in range(9)
    ]
    tell(conversations, "Roof", *garden_talk(10), *about_bees)
    tell(conversations, "Train", ("The train to Bergen leaves at noon.", "Safe trip."), hour=11)

    found = turns_for(conversations, "Which bee hives got a new queen?")

    assert {message for message, _ in about_bees} <= set(found)


def test_turns_of_an_answer_share_a_budget_of_turns_and_tokens(
    conversations: ConversationService,
) -> None:
    tell(conversations, "Garden", *garden_talk(45))
    tell(conversations, "Harbour", *[("The harbour is busy. " * 40, "Yes.")] * 5, hour=11)

    assert len(turns_for(conversations, "When were the garden beds weeded?", limit=5)) <= 20
    assert len(turns_for(conversations, "When were the garden beds weeded?", limit=2)) <= 8
    answer = recall(conversations, "Is the harbour busy?", 2)["memories"]
    texts = [turn["user_message"] for memory in answer for turn in memory["turns"]]
    assert sum(map(count_tokens, texts)) <= 800


def test_a_turn_that_is_longer_than_the_budget_is_returned_if_it_is_the_best_of_its_topic(
    conversations: ConversationService,
) -> None:
    message = "The lighthouse keeper wrote a letter. " + "It went on and on. " * 1_000
    tell(conversations, "Letters", (message, "I see."))

    assert turns_for(conversations, "Who wrote a letter at the lighthouse?", 1) == [message]


def test_a_short_reply_is_found_by_the_question_that_it_answers(
    conversations: ConversationService,
) -> None:
    asked = ("I need a new bicycle lock.", "Which colour should the bicycle lock have?")
    tell(conversations, "Lock", *garden_talk(30), asked, ("Turquoise.", "Done."))

    assert "Turquoise." in turns_for(conversations, "Which colour has the bicycle lock?", 1)


def test_the_turns_of_a_topic_keep_their_order(conversations: ConversationService) -> None:
    tell(conversations, "Garden", *garden_talk(12))

    found = turns_for(conversations, "weeded garden beds")

    assert found == sorted(found, key=lambda message: int(message.split()[2]))


def fact(subject: str, key: str, value: str) -> Fact:
    path = f"facts/{subject} {key}.md"
    return Fact(path, "", path, "", "default", slot=Slot(subject, key, value))


KNOWN = [
    fact("", "sister", "Ruth"),
    fact("Ruth", "home", "Elm Cottage"),
    fact("Ruth", "cat name", "Tom"),
    fact("Elm Cottage", "wifi password", "Heron-42"),
    fact("", "wifi password", "Own-1"),
    fact("", "car insurance", "Northern Mutual"),
    fact("Northern Mutual", "policy", "PN-88"),
    fact("PN-88", "deductible", "300 euros"),
    fact("", "kestrel", "tide table rewrite"),
    fact("Kestrel", "lead", "Bob"),
]


@pytest.mark.parametrize(
    ("question", "values"),
    [
        ("what's the wifi at my sister's?", ["Ruth", "Elm Cottage", "Heron-42"]),
        ("Where is my sister's home?", ["Ruth", "Elm Cottage"]),
        ("What is the name of my sister's cat?", ["Ruth", "Tom"]),
        (
            "What is the deductible of my car insurance?",
            ["Northern Mutual", "PN-88", "300 euros"],
        ),
        ("Who is the lead of the tide table rewrite?", ["tide table rewrite", "Bob"]),
    ],
)
def test_a_fact_is_reached_through_the_facts_that_name_it(question: str, values: list[str]) -> None:
    reached = follow_facts(question, KNOWN, find_facts(question, KNOWN, {}))

    assert [step.fact.value for step in reached] == values
    assert [step.fact.value for step in reached[-1].way] == values[:-1]


@pytest.mark.parametrize(
    "question",
    [
        "What's the name of my sister's dog?",
        "What is my sister's phone number?",
        "my brother's wifi password",
        "Where is my home?",
        "What is the deductible of my house insurance?",
    ],
)
def test_nothing_is_reached_that_nobody_stated(question: str) -> None:
    assert follow_facts(question, KNOWN, find_facts(question, KNOWN, {})) == []


def test_a_fact_of_the_user_is_not_mistaken_for_that_of_somebody_else() -> None:
    question = "What is my wifi password?"
    reached = follow_facts(question, KNOWN, find_facts(question, KNOWN, {}))

    assert [step.fact.value for step in reached] == ["Own-1"]


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[ConversationService]:
    settings = Settings.model_validate({"embed": {"provider": "none"}})
    with EnhancedStore(tmp_path, settings) as store:
        yield conversation_service(store)


def write_fact(conversations: ConversationService, key: str, value: str, **properties: str) -> None:
    fields = {"type": "fact", "key": key, "value": value, **properties}
    conversations.store.create(f"facts/{key}", f"> {key} is {value}\n", fields)


def test_a_fact_has_the_date_since_which_it_holds(plain: ConversationService) -> None:
    since = "2026-03-01T00:00:00Z"
    write_fact(plain, "locker code", "7713", valid_from=since)

    [locker] = recall(plain, "What is the locker code?")["facts"]

    assert (locker["value"], locker["since"]) == ("7713", since)
    text = build_context(plain, "What is the locker code?", 400)["text"]
    assert "- locker code: 7713 (since 2026-03-01)" in text


def test_a_chain_says_how_a_fact_was_reached(plain: ConversationService) -> None:
    write_fact(plain, "sister", "Ruth")
    write_fact(plain, "ruth home", "Elm Cottage")

    rows = recall(plain, "Where is my sister's home?")["facts"]

    assert [row["value"] for row in rows] == ["Ruth", "Elm Cottage"]
    assert rows[1]["reached_by"] == ["sister: Ruth"]


def test_constraints_and_pinned_notes_come_first_whatever_is_asked(
    plain: ConversationService,
) -> None:
    plain.record(new_exchange("I'm allergic to walnuts."))
    plain.store.create("Rules/Deploys", "We never deploy on Fridays.\n", {"pinned": True})
    plain.store.create("atoms/ann/Mine", "Only for Ann.\n", {"pinned": True})

    answer = recall(plain, "What is the weather?")

    assert list(answer)[:2] == ["constraints", "pinned"]
    assert "walnuts" in answer["constraints"][0]["text"]
    assert [(note["name"], note["text"]) for note in answer["pinned"]] == [
        ("Rules/Deploys", "We never deploy on Fridays.")
    ]
    text = build_context(plain, "What is the weather?", 400)["text"]
    assert text.index("walnuts") < text.index("Fridays") < text.index("# Message")


def test_without_constraints_and_pinned_notes_an_answer_has_no_fields_for_them(
    plain: ConversationService,
) -> None:
    assert list(recall(plain, "anything")) == ["memories", "facts", "method"]
