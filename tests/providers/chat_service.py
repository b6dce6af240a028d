"""A language model's service on 127.0.0.1 that speaks as OpenAI and Ollama do, and misbehaves on request. What it says
is what a test gave it to say."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from embedding_service import Answer, Asked, EmbeddingService

Model = Callable[[dict[str, Any]], Any]


class ChatService(EmbeddingService):
    """Running inside `with`. `model` answers what the user's message holds; a text is said as it is, not as JSON."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.model = model
        self.knows_schemas = True

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """What a service in good health says."""
        form = asked.json.get("response_format", {}).get("type")
        if form == "json_schema" and not self.knows_schemas:
            return 400, {"error": {"message": "response_format json_schema is not supported"}}
        found = self.model(json.loads(asked.json["messages"][-1]["content"]))
        content = found if isinstance(found, str) else json.dumps(found)
        message = {"role": "assistant", "content": content}
        if asked.path.endswith("/api/chat"):
            return 200, {"model": asked.json["model"], "message": message, "done": True}
        return 200, {
            "id": "c1",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message}],
        }

    def said(self) -> list[str]:
        """Every text that was ever sent here, instructions too."""
        return [each["content"] for asked in self.asked for each in asked.json["messages"]]


__all__ = ["Answer", "ChatService"]
