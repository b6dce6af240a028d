"""A language model asked for JSON: the three protocols, its budget, and what is never sent."""

from __future__ import annotations

import json
from typing import Any

import pytest
from chat_service import ChatService, anthropic_error, overloaded
from embedding_service import HANGS_UP, PAGE, Answer, failing, limited, slow
from pydantic import SecretStr

from simplemem.errors import Invalid, Unavailable
from simplemem.providers.chat import ServiceChatModel, redact

QUESTION = {"instructions": "Answer.", "shape": {"answer": "text"}}


def ask(chat: ServiceChatModel, said: object = "hello", seconds: float = 5.0) -> object:
    return chat.ask(QUESTION, {"said": said}, seconds)


@pytest.mark.parametrize(("provider", "path"), [("openai", "/v1"), ("ollama", "")])
def test_both_protocols_ask_for_the_shape(provider: str, path: str) -> None:
    with ChatService(lambda said: {"answer": said["said"].upper()}) as service:
        assert ask(ServiceChatModel(provider, "m", url=service.url + path)) == {"answer": "HELLO"}
        sent = service.requests[0].json
    wanted = (
        sent["format"] if provider == "ollama" else sent["response_format"]["json_schema"]["schema"]
    )
    assert wanted["required"] == ["answer"] and wanted["additionalProperties"] is False
    assert sent["model"] == "m" and [each["role"] for each in sent["messages"]] == [
        "system",
        "user",
    ]


def test_a_server_without_schemas_is_asked_for_json() -> None:
    with ChatService(lambda _: {"answer": "yes"}) as service:
        service.knows_schemas = False
        assert ask(ServiceChatModel("openai", "m", url=service.url)) == {"answer": "yes"}
        assert [each.json["response_format"]["type"] for each in service.requests] == [
            "json_schema",
            "json_object",
        ]


@pytest.mark.parametrize(
    "said", ["I think so.", "[1]", '{"other": 1}', '{"answer": "a", "more": 1}', "[" * 100_000]
)
def test_an_answer_of_another_shape_is_none(said: str) -> None:
    with ChatService(lambda _: said) as service, pytest.raises(Unavailable, match="answer"):
        ask(ServiceChatModel("openai", "m", url=service.url))


@pytest.mark.parametrize("bad", [HANGS_UP, PAGE, failing(500), failing(401), slow(30)])
def test_a_service_that_does_not_answer_is_unavailable_in_time(bad: object) -> None:
    with ChatService(lambda _: {"answer": "yes"}) as service:
        service.always = bad  # type: ignore[assignment]
        with pytest.raises(Unavailable):
            ask(ServiceChatModel("openai", "m", url=service.url), seconds=0.5)


def test_an_hour_has_so_many_calls_whatever_came_of_them() -> None:
    with ChatService(lambda _: "prose") as service:
        chat = ServiceChatModel("openai", "m", url=service.url, per_hour=3)
        for _ in range(6):
            with pytest.raises(Unavailable) as refused:
                ask(chat)
        assert len(service.requests) == 3 and "3 calls" in refused.value.message


def test_no_secret_is_sent() -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    with ChatService(lambda _: {"answer": "yes"}) as service:
        ask(
            ServiceChatModel("openai", "m", url=service.url),
            [f"my token is {secret}.", {"deep": secret}],
        )
        assert secret not in service.received.decode() and "[redacted]" in service.sent_texts()[-1]
    assert redact({"a": ["nothing", 1, None]}) == {"a": ["nothing", 1, None]}


def test_an_address_that_holds_a_key_is_refused() -> None:
    with pytest.raises(Invalid, match=r"llm\.url"):
        ServiceChatModel("openai", "m", url="http://me:key@127.0.0.1/v1")


def claude(service: ChatService, url: str = "", **more: Any) -> ServiceChatModel:
    """A model of a service with Anthropic's protocol."""
    address = url or service.url
    return ServiceChatModel("anthropic", "m", url=address, key=SecretStr(KEY), **more)


KEY = "sk-ant-api03-aBcDeFgH"


@pytest.mark.parametrize("path", ["", "/v1"])
def test_anthropics_protocol_answers_with_the_input_of_a_tool(path: str) -> None:
    with ChatService(lambda said: {"answer": said["said"].upper()}) as service:
        assert ask(claude(service, service.url + path)) == {"answer": "HELLO"}
        [request] = service.requests
    headers = {name.lower(): value for name, value in request.headers.items()}
    assert request.path == "/v1/messages"
    assert (headers["x-api-key"], headers["anthropic-version"]) == (KEY, "2023-06-01")
    assert "authorization" not in headers

    sent = request.json
    [tool] = sent["tools"]
    assert sent["system"] == "Answer." and sent["max_tokens"] > 0
    assert [message["role"] for message in sent["messages"]] == ["user"]
    assert tool["input_schema"]["required"] == ["answer"]
    assert sent["tool_choice"] == {"type": "tool", "name": tool["name"]}


def test_a_model_that_cannot_be_forced_to_use_a_tool_answers_in_text() -> None:
    with ChatService(lambda _: {"answer": "yes"}) as service:
        service.forces_tools = False
        assert ask(claude(service)) == {"answer": "yes"}
        choices = [request.json["tool_choice"]["type"] for request in service.requests]
        assert choices == ["tool", "auto"]


@pytest.mark.parametrize("passing", [overloaded(), limited("0"), failing(500), HANGS_UP])
def test_an_overloaded_service_is_asked_again(passing: Answer) -> None:
    with ChatService(lambda _: {"answer": "yes"}) as service:
        service.next(passing)
        assert ask(claude(service)) == {"answer": "yes"}
        assert len(service.requests) == 2


def test_a_service_that_asks_for_patience_is_left_alone() -> None:
    with ChatService(lambda _: {"answer": "yes"}) as service:
        service.always = limited("40")
        chat = claude(service)
        for _ in range(2):
            with pytest.raises(Unavailable):
                ask(chat)
        assert len(service.requests) == 1


def test_the_reason_of_an_error_is_quoted_without_the_key() -> None:
    refusal = anthropic_error("not_found_error", f"model: m is unknown, key {KEY}")
    with ChatService(lambda _: {}) as service:
        service.always = Answer(404, json.dumps(refusal).encode())
        with pytest.raises(Unavailable, match="model: m is unknown") as refused:
            ask(claude(service))
        assert KEY not in refused.value.message


def test_prose_and_an_answer_that_was_cut_off_are_none() -> None:
    cut_off = {
        "stop_reason": "max_tokens",
        "content": [{"type": "text", "text": '{"answer": "a"}'}],
    }
    with ChatService(lambda _: "I think so.") as service:
        with pytest.raises(Unavailable, match="did not answer in JSON"):
            ask(claude(service))
        service.always = Answer(200, json.dumps(cut_off).encode())
        with pytest.raises(Unavailable, match="did not answer in JSON"):
            ask(claude(service))


def test_without_a_setting_the_key_of_a_provider_is_in_its_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "two words")
    with pytest.raises(Unavailable, match="ANTHROPIC_API_KEY"):
        ask(ServiceChatModel("anthropic", "m"))
