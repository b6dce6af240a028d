"""A language model beside the rules: asked only in doubt, and trusted only with what it quotes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_service import ChatService
from embedding_service import HANGS_UP, Answer, failing, slow

from simplemem.features.answers import RecordedTurn
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.router import Decision, TopicRouter
from simplemem.features.conversations.service import (
    ConversationService,
    conversation_service,
)
from simplemem.features.conversations.topic import Topic
from simplemem.features.fact import Fact
from simplemem.features.facts.key_notes import fact_versions
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

SECRET = "My API key for the tide table service is TT-4471-QX."


@contextmanager
def open_conversations(
    root: Path, service: ChatService, **llm: Any
) -> Iterator[ConversationService]:
    chosen = {
        "provider": "openai",
        "model": "m",
        "url": service.url,
        "route": True,
        "route_seconds": 5,
        **llm,
    }
    settings = {"llm": chosen, "embed": {"private": ["Diary/"]}}
    with EnhancedStore(root, Settings.model_validate(settings)) as store:
        yield conversation_service(store)


def turn_answer(**answer: Any) -> dict[str, Any]:
    """What a model answers about a turn: nothing beside `answer`."""
    lists = ("facts", "ended", "constraints", "preferences", "no_longer")
    nothing = {"block_id": None, "new": False, "label": "", "user_name": None}
    return nothing | {name: [] for name in lists} | answer


def routing_questions(service: ChatService) -> list[dict[str, Any]]:
    """Return the questions in which the model was asked for a topic."""
    return [question for question in questions_to(service) if question.get("choose_topic")]


def questions_to(service: ChatService) -> list[dict[str, Any]]:
    return [json.loads(request.json["messages"][-1]["content"]) for request in service.requests]


def record(
    conversations: ConversationService, message: str, minute: int = 0, **more: Any
) -> RecordedTurn:
    return conversations.record(
        new_exchange(message, timestamp=f"2026-01-20T09:{minute:02}:00Z", **more)
    )


@pytest.fixture
def uncertain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rules always decide for the current topic, and never be certain."""

    def decide(
        self: TopicRouter, message: str, at: Any, topics: Any, current: Any, **_: Any
    ) -> Decision:
        open_topics = tuple(topic for topic in topics if topic.status != "closed")
        return Decision(current, "by numbers", open_topics)

    monkeypatch.setattr(TopicRouter, "decide", decide)


@pytest.mark.usefixtures("uncertain")
def test_a_model_decides_if_the_rules_are_not_certain(tmp_path: Path) -> None:
    def model(question: dict[str, Any]) -> Any:
        if not question["choose_topic"]:
            return turn_answer()
        jam = next(topic["block_id"] for topic in question["topics"] if topic["topic"] == "Jam")
        return turn_answer(
            block_id=jam if "quince" in question["message"] else None,
            new="boat" in question["message"],
        )

    with ChatService(model) as service, open_conversations(tmp_path, service) as conversations:
        jam = record(conversations, "Plum jam?", topic="Jam")
        clock = record(conversations, "The dial is brass.", 1, topic="Clock")
        back = record(conversations, "And quince?", 2)
        assert (back["block_id"], back["method"], back["routing_scenario"]) == (
            jam["block_id"],
            "llm:m",
            "topic_resumption",
        )
        assert record(conversations, "We bought a boat.", 3)["routing_scenario"] == "topic_shift"
        assert clock["block_id"] != jam["block_id"] and len(routing_questions(service)) == 2


@pytest.mark.usefixtures("uncertain")
@pytest.mark.parametrize(
    "bad",
    [
        lambda _: "I would say it is about jam.",
        lambda _: turn_answer(block_id="block_19990101_000000"),
        lambda _: turn_answer(block_id=["a"]),
        lambda _: turn_answer(),
        HANGS_UP,
        failing(500),
        slow(30),
    ],
)
def test_whatever_a_model_gets_wrong_the_rules_answer_stands(
    tmp_path: Path, bad: Callable[..., Any] | Answer
) -> None:
    with (
        ChatService(bad if callable(bad) else lambda _: {}) as service,
        open_conversations(tmp_path, service, route_seconds=2) as conversations,
    ):
        if isinstance(bad, Answer):
            service.always = bad
        record(conversations, "Plum jam?", topic="Jam")
        clock = record(conversations, "The dial is brass.", 1, topic="Clock")
        stored = record(conversations, "And the hands?", 2)
        assert (stored["block_id"], stored["method"]) == (
            clock["block_id"],
            "rules",
        ) and service.requests


@pytest.mark.usefixtures("uncertain")
@pytest.mark.parametrize(
    ("label", "topic"),
    [("Boat  repairs", "Boat repairs"), ("boat", "boat"), ("Yacht", "Bought a boat"), ("", "Bought a boat"),
     ("?!", "Bought a boat"), (["boat"], "Bought a boat"), ("boat " * 40, "Bought a boat")],
)  # fmt: skip
def test_a_label_of_a_model_is_used_if_its_words_are_in_the_message(
    tmp_path: Path, label: Any, topic: str
) -> None:
    with (
        ChatService(lambda _: turn_answer(new=True, label=label)) as service,
        open_conversations(tmp_path, service) as conversations,
    ):
        record(conversations, "Plum jam?", topic="Jam")
        stored = record(conversations, "We bought a boat, and the repairs begin.", 1)
        assert (
            stored["topic"],
            stored["method"],
            conversations.find(stored["block_id"]).label,
        ) == (
            topic,
            "llm:m",
            topic,
        )


@pytest.mark.usefixtures("uncertain")
@pytest.mark.parametrize("change", ["deleted", "closed"])
def test_the_rules_decide_if_the_chosen_topic_is_gone_meanwhile(
    tmp_path: Path, change: str
) -> None:
    def model(question: dict[str, Any]) -> Any:
        if not question["choose_topic"]:
            return turn_answer()
        (note,) = (
            path for path in (tmp_path / "topics").rglob("*.md") if "title: Jam" in path.read_text()
        )
        if change == "deleted":
            note.unlink()
        else:
            note.write_text(note.read_text().replace("status/paused", "status/closed"))
        return turn_answer(block_id=jam["block_id"])

    with ChatService(model) as service, open_conversations(tmp_path, service) as conversations:
        jam = record(conversations, "Plum jam?", topic="Jam")
        clock = record(conversations, "The dial is brass.", 1, topic="Clock")
        stored = record(conversations, "And quince?", 2)
        assert len(routing_questions(service)) == 1
        assert (stored["block_id"], stored["method"], stored["reason"]) == (
            clock["block_id"],
            "rules",
            "by numbers",
        )


@pytest.mark.usefixtures("uncertain")
def test_a_secret_and_a_private_topic_are_never_sent(tmp_path: Path) -> None:
    with (
        ChatService(lambda _: turn_answer()) as service,
        open_conversations(tmp_path, service) as conversations,
    ):
        record(conversations, SECRET, topic="Tide clock")
        record(conversations, "The new API key for the tide table service is TT-9020-RB.", 1)
        assert not service.requests
        record(conversations, "Plum jam?", 2, topic="Jam")
        record(conversations, "And quince?", 3)
        (note,) = (
            conversations.store.root / topic.path
            for topic in conversations.items(Topic)
            if topic.label == "Jam"
        )
        (conversations.store.root / "Diary").mkdir()
        note.rename(
            conversations.store.root / "Diary" / "Jam.md"
        )  # a folder that the settings call private
        record(conversations, "The dial is brass.", 4, topic="Clock")
        record(conversations, "And the hands?", 5)
        assert (
            len(routing_questions(service)) == 2
            and "Clock" in service.sent_texts()[-1]
            and "Jam" not in service.sent_texts()[-1]
        )
        assert "Tide" not in service.received.decode() and "TT-" not in service.received.decode()


@pytest.mark.usefixtures("uncertain")
def test_a_model_is_asked_only_if_configured_and_within_its_budget(tmp_path: Path) -> None:
    answer = turn_answer()
    with (
        ChatService(lambda _: answer) as service,
        open_conversations(tmp_path / "a", service, route=False) as conversations,
    ):
        record(conversations, "Plum jam?")
        record(conversations, "And quince?", 1)
        assert not service.requests
    with (
        ChatService(lambda _: answer) as service,
        open_conversations(tmp_path / "b", service, max_calls_per_hour=2) as conversations,
    ):
        for minute in range(6):
            record(conversations, "And quince?", minute)
        assert len(service.requests) == 2


def test_a_fact_of_a_model_quotes_the_message(tmp_path: Path) -> None:
    def model(question: dict[str, Any]) -> Any:
        turn = next(turn for turn in question["turns"] if "oak" in turn["message"])
        good = {
            "key": "clock case wood",
            "value": "oak",
            "evidence": "The case is oak",
            "turn_id": turn["turn_id"],
        }
        return {"facts": [good, good | {"value": "ash"}, good | {"evidence": "the case is made of oak"}, {"key": 1}, "x",
                          good | {"turn_id": "turn_1"}, good | {"key": "the"}]}  # fmt: skip

    with (
        ChatService(model) as service,
        open_conversations(tmp_path, service, route="off") as conversations,
    ):
        block_id = record(conversations, "The case is oak, I think.", topic="Clock")["block_id"]
        record(conversations, SECRET, 1, topic="Tide clock")
        result = conversations.archive_stale(after_days=1)
        assert [(fact["key"], fact["value"], fact["block_id"]) for fact in result["facts"]] == [
            ("clock_case_wood", "oak", block_id)
        ]
        stored_fact = next(
            fact for fact in conversations.items(Fact) if fact.key == "clock_case_wood"
        )
        assert stored_fact.statement == "The case is oak" and result["method"] == "llm:m"
        assert "TT-4471" not in service.received.decode()
        count = len(service.requests)
        assert (
            conversations.archive_stale(after_days=1)["facts"] == []
            and len(service.requests) == count
        )  # what was read is not read again


def test_a_topic_is_private_once_a_model_reads_a_credential_in_it(tmp_path: Path) -> None:
    def model(question: dict[str, Any]) -> Any:
        fact = {
            "key": "door code",
            "value": "seven crows",
            "evidence": "Say seven crows at the door",
        }
        return {"facts": [fact | {"turn_id": turn["turn_id"]} for turn in question["turns"]]}

    with (
        ChatService(model) as service,
        open_conversations(tmp_path, service, route="off") as conversations,
    ):
        record(conversations, "Say seven crows at the door.", topic="Club")
        conversations.archive_stale("Club")
        assert (
            len(
                conversations.extension.private_among(
                    [
                        conversations.find("Club").path,
                        *(fact.path for fact in conversations.items(Fact)),
                    ]
                )
            )
            == 2
        )


def test_a_topic_that_is_named_is_read_and_no_other(tmp_path: Path) -> None:
    with (
        ChatService(lambda _: {"facts": []}) as service,
        open_conversations(tmp_path, service, route="off") as conversations,
    ):
        record(conversations, "The case is oak.", topic="Clock")
        jam = record(conversations, "Plum jam?", 1, topic="Jam")
        note = conversations.store.root / conversations.find("Clock").path
        note.write_text(note.read_text().replace("status/paused", "status/closed"))
        conversations.store.sync()
        conversations.archive_stale(jam["block_id"])
        assert (
            len(service.requests) == 1
            and "Plum" in service.sent_texts()[-1]
            and "oak" not in service.sent_texts()[-1]
        )


def test_a_long_topic_is_read_to_its_end(tmp_path: Path) -> None:
    with (
        ChatService(lambda _: {"facts": []}) as service,
        open_conversations(tmp_path, service, route="off", max_calls_per_hour=2) as conversations,
    ):
        for minute in range(5):
            record(conversations, f"{minute} " + "word " * 2_500, minute, topic="Clock")
        record(conversations, "Plum jam?", 9, topic="Jam")
        assert conversations.archive_stale(after_days=1)["warnings"]
        (topic,) = (topic for topic in conversations.items(Topic) if topic.label == "Clock")
        assert (
            topic.status == "closed"
            and topic.facts_read == topic.turns[1].mark
            and len(service.requests) == 2
        )


def test_archiving_closes_topics_although_the_model_fails(tmp_path: Path) -> None:
    with (
        ChatService(lambda _: "prose") as service,
        open_conversations(tmp_path, service, route="off") as conversations,
    ):
        record(conversations, "The case is oak.", topic="Clock")
        record(conversations, "Plum jam?", 1, topic="Jam")
        result = conversations.archive_stale(after_days=1)
        assert (
            [conversations.find(topic_id).label for topic_id in result["closed"]] == ["Clock"]
            and result["warnings"]
            and not result["facts"]
        )


def colours_in(question: dict[str, Any]) -> Any:
    """Answer with every colour that a turn states, as a model that reads turn by turn."""
    rows = []
    for turn in question["turns"]:
        for colour in ("red", "blue", "green"):
            evidence = f"My favourite colour is {colour}"
            if evidence in turn["message"]:
                row = {
                    "key": "favourite colour",
                    "value": colour,
                    "evidence": evidence,
                    "turn_id": turn["turn_id"],
                }
                rows.append(row)
    return {"facts": rows}


def test_archiving_stores_a_fact_stated_twice_in_one_note(tmp_path: Path) -> None:
    with (
        ChatService(colours_in) as service,
        open_conversations(tmp_path, service, route="off") as conversations,
    ):
        record(conversations, "My favourite colour is red.", topic="Paint")
        record(conversations, "My favourite colour is blue.", 1, topic="Paint")
        record(conversations, "Plum jam?", 2, topic="Jam")

        result = conversations.archive_stale(after_days=1)

        [fact] = conversations.items(Fact)
        assert [stored["value"] for stored in result["facts"]] == ["red", "blue"]
        assert (fact.key, fact.value, fact.statement) == (
            "favourite_colour",
            "blue",
            "My favourite colour is blue",
        )
        assert [version.value for version in fact_versions(fact.text)] == ["red", "blue"]
        assert [path.name for path in (tmp_path / "facts").iterdir()] == ["favourite colour.md"]


def test_archiving_keeps_the_value_stated_last_whichever_topic_is_read_first(
    tmp_path: Path,
) -> None:
    with (
        ChatService(colours_in) as service,
        open_conversations(tmp_path, service, route="off") as conversations,
    ):
        record(conversations, "Plum jam?", 30, topic="Jam")
        record(conversations, "My favourite colour is green.", 20, topic="Paint")
        record(conversations, "My favourite colour is red.", 10, topic="Walls")
        record(conversations, "My favourite colour is blue.", 15, topic="Doors")

        conversations.archive_stale(after_days=1)

        [fact] = conversations.items(Fact)
        assert fact.value == "green"
        assert [version.value for version in fact_versions(fact.text)] == ["red", "blue", "green"]
