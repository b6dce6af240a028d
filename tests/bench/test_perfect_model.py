"""The perfect model speaks OpenAI's protocol, and answers each task from the annotations.

A bad model changes nothing: what is stored is what the rules store.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import pytest
from natural_examples import chat, fact, item, person, question

from bench.chat_server import ChatServer, Completion, Refusal
from bench.natural_chats import measure_chats
from bench.natural_constraints import measure_constraints
from bench.natural_material import Material
from bench.natural_statements import measure_statements
from bench.perfect_model import PerfectModel
from bench.tool_caller import own_clock

TALK = chat(
    ("garden", "The tomatoes in my garden have brown spots on their leaves."),
    ("garden", "Only the lower leaves, since the rain on Monday."),
    ("taxes", "I need the tax form for the advance payment of this quarter."),
    ("taxes", "Is the advance payment due on the tenth?"),
    ("garden", "The spots on the tomatoes are spreading to the upper leaves."),
)
MOVED = person(
    ("The choir sings on Tuesdays.", fact(0, "choir", "Tuesdays")),
    ("What rhymes with orange?", None),
    ("They've put it on Thursdays for good.", fact(2, "choir", "Thursdays", replaces=[(0, 0)])),
    ("I'm at my cousin's.", fact(3, "stay", "cousin's", until="2026-03-07")),
)  # fmt: skip
ASKED = question("When do we sing?", "Thursdays", 2, outdated="Tuesdays")
ITEMS = (item(1, "constraint", "I'm allergic to walnuts.", rule="No walnuts."),)
MATERIAL = Material((TALK,), (MOVED,), ITEMS, (ASKED,))


@pytest.fixture(autouse=True)
def _clock() -> Iterator[None]:
    with own_clock():
        yield


def request(schema: dict[str, Any], content: str = "{}", **more: Any) -> dict[str, Any]:
    """Return the body of a request for a completion."""
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    messages = [
        {"role": "system", "content": "Answer."},
        {"role": "user", "content": content},
    ]
    return {"model": "fake", "messages": messages, "response_format": form, **more}


def schema_of(*keys: str) -> dict[str, Any]:
    """Return the schema of an object with these keys."""
    return {"type": "object", "properties": {key: {"type": "string"} for key in keys}}


# The protocol


def test_a_completion_has_the_form_that_clients_of_openai_expect() -> None:
    with ChatServer(lambda _: {"answer": "yes"}) as server:
        body = request(schema_of("answer"))
        response = httpx2.post(f"{server.url}/chat/completions", json=body)
    completion = response.json()
    [choice] = completion["choices"]
    assert completion["object"] == "chat.completion"
    assert choice["finish_reason"] == "stop"
    assert choice["message"] == {"role": "assistant", "content": '{"answer": "yes"}'}
    assert [sent.content for sent in server.completions] == ["{}"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/chat/completions", request(schema_of("a"), stream=True), 400),
        ("/chat/completions", request(schema_of("a")) | {"response_format": {"type": "text"}}, 400),
        ("/chat/completions", request(schema_of("a")) | {"response_format": "json"}, 400),
        ("/chat/completions", {"model": "fake"}, 400),
        ("/completions", request(schema_of("a")), 404),
    ],
)
def test_what_the_service_does_not_support_is_refused(
    path: str, body: dict[str, Any], status: int
) -> None:
    with ChatServer(lambda _: {"a": ""}) as server:
        response = httpx2.post(f"{server.url}{path}", json=body)
    assert response.status_code == status
    assert response.json()["error"]["message"]


def test_a_task_that_the_model_does_not_know_is_refused() -> None:
    with pytest.raises(Refusal, match="no task has the keys"):
        PerfectModel(MATERIAL).answer(Completion("Answer.", "{}", schema_of("weather")))


# The answers


def test_facts_are_remembered_as_the_annotation_has_them() -> None:
    model = PerfectModel(MATERIAL)
    with ChatServer(model.answer) as server:
        figures = measure_statements([MOVED], [ASKED], settings=server.settings(), observer=model)
    assert server.completions
    assert figures.kept.share == 1
    assert figures.noise.number == 0
    assert figures.outdated.share == 1
    assert figures.wrong.number == figures.lost.number == 0
    assert figures.ended.share == 1
    assert figures.stale_anywhere.number == 0


def test_constraints_are_recognised_as_the_annotation_has_them() -> None:
    items = (
        item(1, "constraint", "Walls stay as they are, says the lease.", rule="No drilling."),
        item(2, "neither", "What would a vegan have?"),
        item(3, "preference", "Rails over wings any day.", rule="Trains rather than planes."),
        item(4, "neither", "Lease is up, drill away.", rule="Drilling is fine.", withdraws=1),
    )
    model = PerfectModel(Material((), (), items, ()))
    with ChatServer(model.answer) as server:
        figures = measure_constraints(items, settings=server.settings())
    assert figures.constraints.share == figures.preferences.share == 1
    assert figures.neither.number == 0
    assert figures.withdrawn.share == 1


def test_a_chat_is_routed_as_the_annotation_has_it() -> None:
    model = PerfectModel(MATERIAL)
    with ChatServer(model.answer) as server:
        figures = measure_chats([TALK], [], settings=server.settings(), observer=model)
    assert figures.right.share == figures.changes.share == figures.kept.share == 1


def test_a_message_belongs_to_the_topic_that_has_its_subject() -> None:
    model = PerfectModel(MATERIAL)
    model.open_chat(TALK)
    first = model.route({"topics": [], "message": TALK.exchanges[0].message})
    assert first["new"] is True
    assert set(first["label"].split()) <= set(TALK.exchanges[0].message.split())


# Bad answers


def prose(_: Completion) -> object:
    return "I would say that this is about tomatoes."


def foreign_ids(completion: Completion) -> object:
    """Answer in the right form with ids and quotations that were not in the question."""
    return foreign_value(completion.schema)


def foreign_value(schema: dict[str, Any]) -> object:
    """Return a value that a schema allows; each text is none that was in the question."""
    if "properties" in schema:
        return {key: foreign_value(wanted) for key, wanted in schema["properties"].items()}
    if "items" in schema:
        return [foreign_value(schema["items"])]
    if "enum" in schema:
        return schema["enum"][0]
    if schema["type"] == "boolean":
        return False
    return 1 if schema["type"] == "number" else "block_19990101_000000"


def slowness(_: Completion) -> object:
    time.sleep(2)
    return {}


def server_error(_: Completion) -> object:
    raise Refusal(500, "It went wrong")


BAD_MODELS = (prose, foreign_ids, slowness, server_error)


@pytest.mark.parametrize("bad", BAD_MODELS)
def test_with_a_bad_model_chats_are_routed_by_the_rules(
    bad: Callable[[Completion], object],
) -> None:
    by_rules = measure_chats([TALK], [])
    with ChatServer(bad) as server:
        settings = impatient(server)
        assert measure_chats([TALK], [], settings=settings) == by_rules


@pytest.mark.parametrize("bad", BAD_MODELS)
def test_with_a_bad_model_statements_are_remembered_by_the_rules(
    bad: Callable[[Completion], object],
) -> None:
    by_rules = measure_statements([MOVED], [ASKED])
    with ChatServer(bad) as server:
        settings = impatient(server)
        assert measure_statements([MOVED], [ASKED], settings=settings) == by_rules
        assert server.completions


@pytest.mark.parametrize("bad", BAD_MODELS)
def test_with_a_bad_model_constraints_are_recognised_by_the_rules(
    bad: Callable[[Completion], object],
) -> None:
    by_rules = measure_constraints(ITEMS)
    assert by_rules.constraints.share == 1
    with ChatServer(bad) as server:
        assert measure_constraints(ITEMS, settings=impatient(server)) == by_rules


def impatient(server: ChatServer) -> dict[str, Any]:
    """Return settings of a store that waits for a model for a short time only."""
    return server.settings(timeout_seconds=0.4, route_seconds=0.4)
