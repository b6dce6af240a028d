"""A chat model behind a service, asked for JSON of a given shape.

The service has OpenAI's protocol, Ollama's or Anthropic's (`chat_protocols`).
"""

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
from simplemem.providers.addresses import parse_address
from simplemem.providers.api import ChatQuestion, RequestRefused
from simplemem.providers.chat_protocols import PROTOCOLS, Payload, Prompt
from simplemem.providers.client import ServiceClient
from simplemem.providers.keys import Key, KeySource

_SECONDS_PER_HOUR = 3600
_JSON_TYPES = {"text": "string", "number": "number", "yes": "boolean"}


class ServiceChatModel:
    """A chat model behind a service, for any thread, with the methods of `ChatModel`.

    Guards the times of the calls of the last hour: their number is limited, to limit the cost.
    """

    def __init__(
        self,
        provider: str,
        model: str,
        url: str = "",
        key: KeySource = None,
        timeout: float = 30,
        per_hour: int = 120,
    ) -> None:
        """Create a chat model, without connecting. Raises Invalid for a bad address.

        An empty `url` means the provider's own. `timeout` is in seconds; `per_hour` is the greatest
        number of calls in any hour; with 0, every call is refused.
        """
        protocol = PROTOCOLS[provider]
        address = parse_address(url or protocol.home.url, "llm.url")
        self._protocol = protocol
        self._path = protocol.path_below(address.url)
        self.name = f"{model} at {address.host}"
        self.method = f"llm:{model}"
        self._model = model
        self._timeout = timeout

        is_home = not url.strip()
        key_variable = protocol.home.key_variable if is_home else ""
        service_key = Key(key, setting="llm.api_key", default_variable=key_variable)
        self._client = ServiceClient(
            self.name,
            address,
            service_key,
            timeout=timeout,
            section="llm",
            key_header=protocol.key_header,
            headers=protocol.headers,
        )
        self._per_hour = per_hour
        self._call_times: deque[float] = deque(maxlen=max(1, per_hour))
        self._lock = threading.Lock()

    def ask(
        self,
        question: ChatQuestion,
        content: Mapping[str, object],
        seconds: float = 0,
    ) -> dict[str, Any]:
        """Return the answer to a question about `content`: an object with the keys of the shape.

        `content` is sent as one JSON object, without secrets, and never as instructions. The types
        of the values in the answer are not checked. Raises RequestRefused if the calls of this hour
        are used up. Raises Unavailable if there is no answer with the right keys within `seconds`,
        or within the time limit of the settings if `seconds` is 0.
        """
        shape = question["shape"]
        prompt = Prompt(
            model=self._model,
            instructions=" ".join(question["instructions"].split()),
            user_message=json.dumps(redact(content), ensure_ascii=False),
            schema=_schema_of(shape),
        )
        deadline = time.monotonic() + (seconds or self._timeout)

        request, *simpler_requests = self._protocol.requests(prompt)
        for simpler_request in simpler_requests:
            try:
                return self._parse(self._call(request, deadline), shape)
            except RequestRefused:
                request = simpler_request
        return self._parse(self._call(request, deadline), shape)

    def _parse(self, response: Any, shape: Mapping[str, object]) -> dict[str, Any]:
        """Return the answer in a response of the service.

        Raises Unavailable if it is not JSON, or does not have just the keys of `shape`.
        """
        try:
            value = self._protocol.read_answer(response)
        except (KeyError, IndexError, TypeError, ValueError, RecursionError):
            raise Unavailable(f"{self.name} did not answer in JSON") from None
        if not isinstance(value, dict) or value.keys() != shape.keys():
            raise Unavailable(
                f"{self.name} returned an answer that does not have the requested shape"
            )
        return value

    def _call(self, request: Payload, deadline: float) -> Any:
        """Send a request, again after a transient failure, and return the JSON of the response.

        Each attempt counts as a call of this hour. Raises RequestRefused or Unavailable.
        """

        def attempt(seconds: float) -> Any:
            self._count_call()
            return self._client.attempt(self._path, request, seconds)

        return self._client.retry_policy.call(attempt, deadline)

    def _count_call(self) -> None:
        """Count a call. Raises RequestRefused instead if the calls of this hour are used up.

        `RetryPolicy` does not count RequestRefused as a failure, so the service is not left alone.
        """
        with self._lock:
            now = time.monotonic()
            are_used_up = self._per_hour == 0
            if not are_used_up and len(self._call_times) == self._per_hour:
                oldest = self._call_times[0]
                are_used_up = now - oldest <= _SECONDS_PER_HOUR
            if are_used_up:
                raise RequestRefused(
                    f"{self.name} has reached the limit of {self._per_hour} calls per hour",
                    hint="Wait, or raise llm.max_calls_per_hour.",
                )
            self._call_times.append(now)


def redact(value: object) -> Any:
    """Return a copy of a JSON value whose texts have "[redacted]" in place of likely secrets.

    Keys of objects stay as they are.
    """
    if isinstance(value, str):
        secrets = find_secrets(value)
        edits = [(secret.start, secret.end, "[redacted]") for secret in secrets]
        return apply_edits(value, edits)
    if isinstance(value, Mapping):
        return {key: redact(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redact(item) for item in value]
    return value


def _schema_of(shape: Any) -> dict[str, Any]:
    """Return the JSON schema of a shape (`ChatQuestion`), in which all names are required."""
    if isinstance(shape, Mapping):
        return {
            "type": "object",
            "properties": {name: _schema_of(item) for name, item in shape.items()},
            "required": list(shape),
            "additionalProperties": False,
        }
    if isinstance(shape, list):
        if len(shape) > 1:
            return {"type": "string", "enum": shape}
        return {"type": "array", "items": _schema_of(shape[0])}

    json_type = _JSON_TYPES[shape.rstrip("?")]
    if shape.endswith("?"):
        return {"type": [json_type, "null"]}
    return {"type": json_type}
