"""The protocols of chat services: OpenAI's, Ollama's and Anthropic's. Pure.

Each one says how a question is sent, and where its answer is in the JSON of the response.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

Payload = Mapping[str, Any]
"""The JSON object of a request."""

_ANTHROPIC_VERSION = "2023-06-01"
_MAX_ANSWER_TOKENS = 4096  # Anthropic's protocol needs a limit
_ANSWER_TOOL = "answer"


@dataclass(frozen=True)
class Prompt:
    """A question as a service gets it. `schema` is the JSON schema of the answer."""

    model: str
    instructions: str
    user_message: str
    schema: dict[str, Any]

    @property
    def turns(self) -> list[dict[str, str]]:
        """The message of the user, which has what people wrote, without the instructions."""
        return [{"role": "user", "content": self.user_message}]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The instructions as the message of the system, then the message of the user."""
        return [{"role": "system", "content": self.instructions}, *self.turns]


class Home(NamedTuple):
    """Where a provider's own service is."""

    url: str
    key_variable: str = ""  # the environment variable that has its key by default


class ChatProtocol(Protocol):
    """How one kind of service is asked."""

    home: Home
    key_header: str
    """The header with the key. `Authorization` has "Bearer " before it."""
    headers: Mapping[str, str]
    """The headers that each request has beside the key."""

    def path_below(self, url: str, /) -> str:
        """Return the path of the request below the address of the service."""
        ...

    def requests(self, prompt: Prompt) -> Sequence[Payload]:
        """Return the request for a prompt, then those for a service that refuses the one before."""
        ...

    def read_answer(self, response: Any) -> Any:
        """Return the JSON value of the model's answer in the JSON of a response.

        Raises KeyError, IndexError, TypeError, ValueError or RecursionError if there is none.
        """
        ...


class OpenAiProtocol:
    """OpenAI's protocol, which most local servers have too."""

    home = Home("https://api.openai.com/v1", "OPENAI_API_KEY")
    key_header = "Authorization"
    headers: Mapping[str, str] = {}

    def path_below(self, _: str, /) -> str:
        """Return the path of the request. An address ends with `/v1` if the service needs it."""
        return "/chat/completions"

    def requests(self, prompt: Prompt) -> Sequence[Payload]:
        """Return the request with the schema, and one without it.

        A server that does not support schemas may support JSON without one.
        """
        request = {"model": prompt.model, "messages": prompt.messages, "temperature": 0}
        json_schema = {"name": "answer", "strict": True, "schema": prompt.schema}
        strict_format = {"type": "json_schema", "json_schema": json_schema}
        json_format = {"type": "json_object"}
        return [
            request | {"response_format": strict_format},
            request | {"response_format": json_format},
        ]

    def read_answer(self, response: Any) -> Any:
        """Return the JSON in the text of the first choice. Raises as `ChatProtocol` says."""
        return json.loads(response["choices"][0]["message"]["content"])


class OllamaProtocol:
    """Ollama's own protocol."""

    home = Home("http://localhost:11434")
    key_header = "Authorization"
    headers: Mapping[str, str] = {}

    def path_below(self, _: str, /) -> str:
        """Return the path of the request."""
        return "/api/chat"

    def requests(self, prompt: Prompt) -> Sequence[Payload]:
        """Return the one request, with the schema."""
        request = {
            "model": prompt.model,
            "messages": prompt.messages,
            "format": prompt.schema,
            "stream": False,
            "options": {"temperature": 0},
        }
        return [request]

    def read_answer(self, response: Any) -> Any:
        """Return the JSON in the text of the message. Raises as `ChatProtocol` says."""
        return json.loads(response["message"]["content"])


class AnthropicProtocol:
    """Anthropic's Messages protocol. The answer is the input of a tool that must be used."""

    home = Home("https://api.anthropic.com", "ANTHROPIC_API_KEY")
    key_header = "x-api-key"
    headers: Mapping[str, str] = {"anthropic-version": _ANTHROPIC_VERSION}

    def path_below(self, url: str, /) -> str:
        """Return the path of the request, whether or not the address ends with `/v1`."""
        return "/messages" if url.endswith("/v1") else "/v1/messages"

    def requests(self, prompt: Prompt) -> Sequence[Payload]:
        """Return the request with a tool that must be used, and one with a tool that may be.

        A model that thinks before it answers refuses the first. There is no temperature, because
        newer models refuse it.
        """
        tool = {
            "name": _ANSWER_TOOL,
            "description": "Gives the answer. Use it once.",
            "input_schema": prompt.schema,
        }
        request = {
            "model": prompt.model,
            "max_tokens": _MAX_ANSWER_TOKENS,
            "system": prompt.instructions,
            "messages": prompt.turns,
            "tools": [tool],
        }
        forced = {"type": "tool", "name": _ANSWER_TOOL}
        return [request | {"tool_choice": forced}, request | {"tool_choice": {"type": "auto"}}]

    def read_answer(self, response: Any) -> Any:
        """Return the input of the tool, else the JSON in the text. Raises as `ChatProtocol` says.

        An answer that was cut off at the limit of tokens is none.
        """
        if response["stop_reason"] == "max_tokens":
            raise ValueError("the answer is incomplete")

        texts = []
        for block in response["content"]:
            if block["type"] == "tool_use" and block["name"] == _ANSWER_TOOL:
                return block["input"]
            if block["type"] == "text":
                texts.append(block["text"])
        return json.loads("".join(texts))


PROTOCOLS: Mapping[str, ChatProtocol] = {
    "openai": OpenAiProtocol(),
    "ollama": OllamaProtocol(),
    "anthropic": AnthropicProtocol(),
}
"""The protocols by the names of the setting `llm.provider`."""
