"""A language model asked for JSON: both protocols, its budget, and what is never sent."""

from __future__ import annotations

import pytest
from chat_service import ChatService
from embedding_service import HANGS_UP, PAGE, failing, slow

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
