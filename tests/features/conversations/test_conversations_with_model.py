"""A language model beside the rules: asked when it may help, and never trusted beyond what it quotes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from chat_service import ChatService
from embedding_service import HANGS_UP, Answer, failing, slow

from simplemem.features.answers import RecordedTurn
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.facts import fact_versions
from simplemem.features.conversations.router import Decision, TopicRouter
from simplemem.features.conversations.service import (
    ConversationService,
    conversation_service,
)
from simplemem.features.conversations.topic import Topic
from simplemem.features.fact import Fact
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

SECRET = "My API key for the tide table service is TT-4471-QX."


@contextmanager
def talking(root: Path, service: ChatService, **llm: Any) -> Iterator[ConversationService]:
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


def tell(talk: ConversationService, message: str, minute: int = 0, **more: Any) -> RecordedTurn:
    return talk.record(new_exchange(message, timestamp=f"2026-01-20T09:{minute:02}:00Z", **more))


@pytest.fixture
def close(monkeypatch: pytest.MonkeyPatch) -> None:
    """All decisions of the rules are to go on, and close."""

    def decide(self: TopicRouter, message: str, at: Any, blocks: Any, current: Any) -> Decision:
        live = tuple(each for each in blocks if each.status != "closed")
        return Decision(current, "by numbers", live, current is not None)

    monkeypatch.setattr(TopicRouter, "decide", decide)


@pytest.mark.usefixtures("close")
def test_a_model_decides_where_the_numbers_are_close(tmp_path: Path) -> None:
    def model(said: dict[str, Any]) -> Any:
        jam = next(each["block_id"] for each in said["topics"] if each["topic"] == "Jam")
        return {
            "block_id": jam if "quince" in said["message"] else None,
            "new": "boat" in said["message"],
            "label": "",
        }

    with ChatService(model) as service, talking(tmp_path, service) as talk:
        jam = tell(talk, "Plum jam?", topic="Jam")
        clock = tell(talk, "The dial is brass.", 1, topic="Clock")
        back = tell(talk, "And quince?", 2)
        assert (back["block_id"], back["method"], back["routing_scenario"]) == (
            jam["block_id"],
            "llm:m",
            "topic_resumption",
        )
        assert tell(talk, "We bought a boat.", 3)["routing_scenario"] == "topic_shift"
        assert clock["block_id"] != jam["block_id"] and len(service.asked) == 2


@pytest.mark.usefixtures("close")
@pytest.mark.parametrize(
    "bad",
    [
        lambda _: "I would say it is about jam.",
        lambda _: {"block_id": "block_19990101_000000", "new": False, "label": ""},
        lambda _: {"block_id": ["a"], "new": False, "label": ""},
        lambda _: {"block_id": None, "new": False, "label": ""},
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
        talking(tmp_path, service, route_seconds=2) as talk,
    ):
        if isinstance(bad, Answer):
            service.always = bad
        tell(talk, "Plum jam?", topic="Jam")
        clock = tell(talk, "The dial is brass.", 1, topic="Clock")
        stored = tell(talk, "And the hands?", 2)
        assert (stored["block_id"], stored["method"]) == (
            clock["block_id"],
            "rules",
        ) and service.asked


@pytest.mark.usefixtures("close")
@pytest.mark.parametrize(
    ("label", "topic"),
    [("Boat  repairs", "Boat repairs"), ("boat", "boat"), ("Yacht", "Bought a boat"), ("", "Bought a boat"),
     ("?!", "Bought a boat"), (["boat"], "Bought a boat"), ("boat " * 40, "Bought a boat")],
)  # fmt: skip
def test_a_models_label_is_taken_when_its_words_were_used(
    tmp_path: Path, label: Any, topic: str
) -> None:
    with (
        ChatService(lambda _: {"block_id": None, "new": True, "label": label}) as service,
        talking(tmp_path, service) as talk,
    ):
        tell(talk, "Plum jam?", topic="Jam")
        stored = tell(talk, "We bought a boat, and the repairs begin.", 1)
        assert (stored["topic"], stored["method"], talk.find(stored["block_id"]).label) == (
            topic,
            "llm:m",
            topic,
        )


@pytest.mark.usefixtures("close")
@pytest.mark.parametrize("how", ["deleted", "closed"])
def test_the_rules_decide_when_the_chosen_block_is_gone_meanwhile(tmp_path: Path, how: str) -> None:
    def model(said: dict[str, Any]) -> Any:
        (note,) = (
            path for path in (tmp_path / "topics").rglob("*.md") if "title: Jam" in path.read_text()
        )
        if how == "deleted":
            note.unlink()
        else:
            note.write_text(note.read_text().replace("status/paused", "status/closed"))
        return {"block_id": jam["block_id"], "new": False, "label": ""}

    with ChatService(model) as service, talking(tmp_path, service) as talk:
        jam = tell(talk, "Plum jam?", topic="Jam")
        clock = tell(talk, "The dial is brass.", 1, topic="Clock")
        stored = tell(talk, "And quince?", 2)
        assert len(service.asked) == 1
        assert (stored["block_id"], stored["method"], stored["reason"]) == (
            clock["block_id"],
            "rules",
            "by numbers",
        )


@pytest.mark.usefixtures("close")
def test_a_secret_and_a_private_block_are_never_sent(tmp_path: Path) -> None:
    with (
        ChatService(lambda _: {"block_id": None, "new": False, "label": ""}) as service,
        talking(tmp_path, service) as talk,
    ):
        tell(talk, SECRET, topic="Tide clock")
        tell(talk, "The new API key for the tide table service is TT-9020-RB.", 1)
        assert not service.asked
        tell(talk, "Plum jam?", 2, topic="Jam")
        tell(talk, "And quince?", 3)
        (note,) = (talk.store.root / each.path for each in talk.items(Topic) if each.label == "Jam")
        (talk.store.root / "Diary").mkdir()
        note.rename(talk.store.root / "Diary" / "Jam.md")  # a folder that the settings call private
        tell(talk, "The dial is brass.", 4, topic="Clock")
        tell(talk, "And the hands?", 5)
        assert (
            len(service.asked) == 2
            and "Clock" in service.said()[-1]
            and "Jam" not in service.said()[-1]
        )
        assert "Tide" not in service.received.decode() and "TT-" not in service.received.decode()


@pytest.mark.usefixtures("close")
def test_a_model_is_asked_only_when_a_person_said_so_and_within_its_budget(tmp_path: Path) -> None:
    answer = {"block_id": None, "new": False, "label": ""}
    with (
        ChatService(lambda _: answer) as service,
        talking(tmp_path / "a", service, route=False) as talk,
    ):
        tell(talk, "Plum jam?")
        tell(talk, "And quince?", 1)
        assert not service.asked
    with (
        ChatService(lambda _: answer) as service,
        talking(tmp_path / "b", service, max_calls_per_hour=2) as talk,
    ):
        for minute in range(6):
            tell(talk, "And quince?", minute)
        assert len(service.asked) == 2


def test_a_models_facts_quote_what_was_said(tmp_path: Path) -> None:
    def model(said: dict[str, Any]) -> Any:
        turn = next(each for each in said["turns"] if "oak" in each["message"])
        good = {
            "key": "clock case wood",
            "value": "oak",
            "evidence": "The case is oak",
            "turn_id": turn["turn_id"],
        }
        return {"facts": [good, good | {"value": "ash"}, good | {"evidence": "the case is made of oak"}, {"key": 1}, "x",
                          good | {"turn_id": "turn_1"}, good | {"key": "the"}]}  # fmt: skip

    with ChatService(model) as service, talking(tmp_path, service) as talk:
        block = tell(talk, "The case is oak, I think.", topic="Clock")["block_id"]
        tell(talk, SECRET, 1, topic="Tide clock")
        done = talk.archive_stale(after_days=1)
        assert [(each["key"], each["value"], each["block_id"]) for each in done["facts"]] == [
            ("clock_case_wood", "oak", block)
        ]
        kept = next(each for each in talk.items(Fact) if each.key == "clock_case_wood")
        assert kept.statement == "The case is oak" and done["method"] == "llm:m"
        assert "TT-4471" not in service.received.decode()
        count = len(service.asked)
        assert (
            talk.archive_stale(after_days=1)["facts"] == [] and len(service.asked) == count
        )  # what was read is not read again


def test_a_block_is_private_once_a_model_reads_a_credential_in_it(tmp_path: Path) -> None:
    def model(said: dict[str, Any]) -> Any:
        told = {
            "key": "door code",
            "value": "seven crows",
            "evidence": "Say seven crows at the door",
        }
        return {"facts": [told | {"turn_id": turn["turn_id"]} for turn in said["turns"]]}

    with ChatService(model) as service, talking(tmp_path, service) as talk:
        tell(talk, "Say seven crows at the door.", topic="Club")
        talk.archive_stale("Club")
        assert (
            len(
                talk.extension.private_among(
                    [talk.find("Club").path, *(each.path for each in talk.items(Fact))]
                )
            )
            == 2
        )


def test_a_topic_that_is_named_is_read_and_no_other(tmp_path: Path) -> None:
    with ChatService(lambda _: {"facts": []}) as service, talking(tmp_path, service) as talk:
        tell(talk, "The case is oak.", topic="Clock")
        jam = tell(talk, "Plum jam?", 1, topic="Jam")
        note = talk.store.root / talk.find("Clock").path
        note.write_text(note.read_text().replace("status/paused", "status/closed"))
        talk.store.sync()
        talk.archive_stale(jam["block_id"])
        assert (
            len(service.asked) == 1
            and "Plum" in service.said()[-1]
            and "oak" not in service.said()[-1]
        )


def test_a_long_block_is_read_to_its_end(tmp_path: Path) -> None:
    with (
        ChatService(lambda _: {"facts": []}) as service,
        talking(tmp_path, service, max_calls_per_hour=2) as talk,
    ):
        for minute in range(5):
            tell(talk, f"{minute} " + "word " * 2_500, minute, topic="Clock")
        tell(talk, "Plum jam?", 9, topic="Jam")
        assert talk.archive_stale(after_days=1)["warnings"]
        (block,) = (each for each in talk.items(Topic) if each.label == "Clock")
        assert (
            block.status == "closed"
            and block.facts_read == block.turns[1].mark
            and len(service.asked) == 2
        )


def test_a_garden_without_an_answer_closes_all_the_same(tmp_path: Path) -> None:
    with ChatService(lambda _: "prose") as service, talking(tmp_path, service) as talk:
        tell(talk, "The case is oak.", topic="Clock")
        tell(talk, "Plum jam?", 1, topic="Jam")
        done = talk.archive_stale(after_days=1)
        assert (
            [talk.find(each).label for each in done["closed"]] == ["Clock"]
            and done["warnings"]
            and not done["facts"]
        )


def colours_in(said: dict[str, Any]) -> Any:
    """Answer with every colour that a turn states, as a model that reads turn by turn."""
    rows = []
    for turn in said["turns"]:
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


def test_a_garden_keeps_what_a_topic_states_twice_in_one_note(tmp_path: Path) -> None:
    with ChatService(colours_in) as service, talking(tmp_path, service) as talk:
        tell(talk, "My favourite colour is red.", topic="Paint")
        tell(talk, "My favourite colour is blue.", 1, topic="Paint")
        tell(talk, "Plum jam?", 2, topic="Jam")

        done = talk.archive_stale(after_days=1)

        [fact] = talk.items(Fact)
        assert [each["value"] for each in done["facts"]] == ["red", "blue"]
        assert (fact.key, fact.value, fact.statement) == (
            "favourite_colour",
            "blue",
            "My favourite colour is blue",
        )
        assert [version.value for version in fact_versions(fact.text)] == ["red", "blue"]
        assert [each.name for each in (tmp_path / "facts").iterdir()] == ["favourite colour.md"]


def test_a_garden_keeps_the_value_said_last_whichever_topic_it_reads_first(tmp_path: Path) -> None:
    with ChatService(colours_in) as service, talking(tmp_path, service) as talk:
        tell(talk, "Plum jam?", 30, topic="Jam")
        tell(talk, "My favourite colour is green.", 20, topic="Paint")
        tell(talk, "My favourite colour is red.", 10, topic="Walls")
        tell(talk, "My favourite colour is blue.", 15, topic="Doors")

        talk.archive_stale(after_days=1)

        [fact] = talk.items(Fact)
        assert fact.value == "green"
        assert [version.value for version in fact_versions(fact.text)] == ["red", "blue", "green"]
