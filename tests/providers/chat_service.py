"""A service of a language model on 127.0.0.1 with the protocols of OpenAI and Ollama.

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

    def answer(self, request: Request) -> tuple[int, Any]:
        """Return the status and the body of a correct answer to a request."""
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

    def sent_texts(self) -> list[str]:
        """Return all texts that were sent to the service, with the instructions."""
        return [
            message["content"] for request in self.requests for message in request.json["messages"]
        ]


__all__ = ["Answer", "ChatService"]
