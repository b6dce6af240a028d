"""A language model, asked for JSON of a given shape: OpenAI's protocol or Ollama's. Secrets are taken out of whatever is
sent, an hour has a number of calls, and whatever is not the shape that was asked for is no answer."""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from simplemem.errors import Unavailable
from simplemem.note.secrets import find_secrets
from simplemem.note.text_edits import apply_edits
from simplemem.providers.client import Key, KeySource, Refused, ServiceClient, address_of

_HOMES = {"openai": "https://api.openai.com/v1", "ollama": "http://localhost:11434"}


def redacted(value: Any) -> Any:
    """A value for the wire, without what looks like a secret in any of its texts."""
    if isinstance(value, str):
        return apply_edits(
            value, ((each.start, each.end, "[redacted]") for each in find_secrets(value))
        )
    if isinstance(value, Mapping):
        return {key: redacted(each) for key, each in value.items()}
    return [redacted(each) for each in value] if isinstance(value, (list, tuple)) else value


def _schema(shape: Any) -> dict[str, Any]:
    """The schema of a shape: a text, number or yes, with "?" also null; several words are the only ones that may be;
    [one] is a list of such, {} an object."""
    if isinstance(shape, Mapping):
        properties = {name: _schema(each) for name, each in shape.items()}
        return {
            "type": "object",
            "properties": properties,
            "required": [*shape],
            "additionalProperties": False,
        }
    if isinstance(shape, list):
        return (
            {"type": "string", "enum": shape}
            if len(shape) > 1
            else {"type": "array", "items": _schema(shape[0])}
        )
    kind = {"text": "string", "number": "number", "yes": "boolean"}[shape.rstrip("?")]
    return {"type": [kind, "null"] if shape.endswith("?") else kind}


class Chat:
    """One model. It is asked nothing yet."""

    def __init__(
        self,
        provider: str,
        model: str,
        url: str = "",
        key: KeySource = None,
        timeout: float = 30,
        per_hour: int = 120,
    ) -> None:
        address, self._is_ollama = (
            address_of(url or _HOMES[provider], "llm.url"),
            provider == "ollama",
        )
        self.name, self.method = f"{model} at {address.host}", f"llm:{model}"
        self._model, self._timeout, self._per_hour = model, timeout, per_hour
        ours = Key(
            key,
            setting="llm.api_key",
            otherwise="" if url.strip() or self._is_ollama else "OPENAI_API_KEY",
        )
        self._client = ServiceClient(self.name, address, ours, timeout=timeout, section="llm")
        self._calls: deque[float] = deque(maxlen=max(1, per_hour))
        self._guard = threading.Lock()

    def ask(self, question: Mapping[str, Any], said: Mapping[str, Any], seconds: float = 0) -> Any:
        """The object that answers a question (in which words it is `told`, the `shape` of its answer), with the properties
        of the shape and no other. What anybody said goes as one JSON object, never as instructions. Unavailable in all
        other cases, and after so many seconds."""
        schema, content = _schema(question["shape"]), json.dumps(redacted(said), ensure_ascii=False)
        told = " ".join(question["told"].split())
        messages = [{"role": "system", "content": told}, {"role": "user", "content": content}]
        request: dict[str, Any] = {"model": self._model, "messages": messages}
        ends = time.monotonic() + (seconds or self._timeout)
        if self._is_ollama:
            more = {"format": schema, "stream": False, "options": {"temperature": 0}}
            answer = self._answer("/api/chat", request | more, ends)
        else:
            strict = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            }
            request["temperature"] = 0
            try:
                answer = self._answer(
                    "/chat/completions", request | {"response_format": strict}, ends
                )
            except Refused:  # a server that knows no schemas knows JSON
                answer = self._answer(
                    "/chat/completions",
                    request | {"response_format": {"type": "json_object"}},
                    ends,
                )
        try:
            found = json.loads(
                (answer if self._is_ollama else answer["choices"][0])["message"]["content"]
            )
        except (KeyError, IndexError, TypeError, ValueError, RecursionError):
            raise Unavailable(f"{self.name} did not answer in JSON") from None
        if not isinstance(found, dict) or found.keys() != question["shape"].keys():
            raise Unavailable(
                f"{self.name} returned an answer that does not have the requested shape"
            )
        return found

    def _answer(self, path: str, request: Mapping[str, Any], ends: float) -> Any:
        """What the service answers. Refused when the calls of this hour are spent: nothing is wrong with the service."""

        def attempt(seconds: float) -> Any:
            with self._guard:
                now = time.monotonic()
                if not self._per_hour or (
                    len(self._calls) == self._per_hour and now - self._calls[0] <= 3600
                ):
                    hint = "Wait, or raise llm.max_calls_per_hour."
                    raise Refused(
                        f"{self.name} has reached the limit of {self._per_hour} calls per hour",
                        hint=hint,
                    )
                self._calls.append(now)
            return self._client.attempt(path, request, seconds)

        return self._client.patience.call(attempt, ends)
