"""A service of a language model on 127.0.0.1 with the protocols of OpenAI, Ollama and Anthropic.

A test supplies its answers. It misbehaves on request.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from embedding_service import Answer, EmbeddingService, Request

Model = Callable[[dict[str, Any]], Any]


class ChatService(EmbeddingService):
    """The service, which runs inside `with`.

    `model` gets the JSON of the user's message and returns the answer. A text is sent as it is, and
    any other value as JSON.
    """

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.knows_schemas = True
        self.forces_tools = True  # whether a tool may be forced, in Anthropic's protocol

    def answer(self, request: Request) -> tuple[int, Any]:
        """Return the status and the body of a correct answer to a request."""
        if request.path.endswith("/messages"):
            return self.anthropic_answer(request)
        form = request.json.get("response_format", {}).get("type")
        if form == "json_schema" and not self.knows_schemas:
            return 400, {"error": {"message": "response_format json_schema is not supported"}}

        answer = self.model(json.loads(request.json["messages"][-1]["content"]))
        content = answer if isinstance(answer, str) else json.dumps(answer)
        message = {"role": "assistant", "content": content}
        if request.path.endswith("/api/chat"):
            return 200, {"model": request.json["model"], "message": message, "done": True}
        return 200, {
            "id": "c1",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message}],
        }

    def anthropic_answer(self, request: Request) -> tuple[int, Any]:
        """Return the answer of Anthropic's Messages API, which checks what that one checks."""
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = request.json
        if "x-api-key" not in headers:
            return 401, anthropic_error("authentication_error", "x-api-key header is required")
        if "anthropic-version" not in headers:
            return 400, anthropic_error("invalid_request_error", "anthropic-version is required")
        for name in ("model", "max_tokens", "messages"):
            if name not in asked:
                message = f"{name}: Field required"
                return 400, anthropic_error("invalid_request_error", message)
        if any(message["role"] == "system" for message in asked["messages"]):
            message = 'messages: Unexpected role "system"'
            return 400, anthropic_error("invalid_request_error", message)

        choice = asked.get("tool_choice", {"type": "auto"})
        is_forced = choice["type"] == "tool"
        if is_forced and not self.forces_tools:
            message = "Thinking may not be enabled when tool_choice forces tool use."
            return 400, anthropic_error("invalid_request_error", message)

        answer = self.model(json.loads(asked["messages"][-1]["content"]))
        text = answer if isinstance(answer, str) else json.dumps(answer)
        block: dict[str, Any] = {"type": "text", "text": text}
        if is_forced and not isinstance(answer, str):
            block = {"type": "tool_use", "id": "toolu_1", "name": choice["name"], "input": answer}
        return 200, {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": asked["model"],
            "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 10, "output_tokens": 10},
        }

    def sent_texts(self) -> list[str]:
        """Return all texts that were sent to the service, with the instructions."""
        return [
            message["content"] for request in self.requests for message in request.json["messages"]
        ]


def anthropic_error(kind: str, message: str) -> dict[str, Any]:
    """Return the body of an error of Anthropic's API."""
    error = {"type": kind, "message": message}
    return {"type": "error", "error": error, "request_id": "req_1"}


def overloaded() -> Answer:
    """Return Anthropic's answer to a request while it has too many of them."""
    return Answer(529, json.dumps(anthropic_error("overloaded_error", "Overloaded")).encode())


__all__ = ["Answer", "ChatService", "anthropic_error", "overloaded"]
