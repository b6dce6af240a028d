"""A language model's service on 127.0.0.1, with OpenAI's protocol for chat completions.

It answers `POST /chat/completions` (below any prefix, such as `/v1`) with `stream` off and a
`response_format` of the type `json_schema`. Whoever starts it supplies the answers.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Json = dict[str, Any]

_POLL_INTERVAL = 0.02  # seconds after which the server notices that it shall stop


class Refusal(Exception):
    """The service answers with an error instead of a completion. `status` is that of HTTP."""

    def __init__(self, status: int, message: str) -> None:
        """Make an error with an HTTP status, such as 400, and a message for the client."""
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Completion:
    """A request for a completion."""

    instructions: str  # the text of the system messages
    content: str  # the text of the last message, which is the user's
    schema: Json  # the JSON schema of the answer

    @classmethod
    def read(cls, body: bytes) -> Completion:
        """Return the request in a body. Raise Refusal if the service does not support it."""
        try:
            request = json.loads(body)
            messages: Sequence[Mapping[str, str]] = request["messages"]
            instructions = [row["content"] for row in messages if row["role"] == "system"]
            content = messages[-1]["content"]
            schema = _schema_of_answer(request)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise Refusal(400, f"bad request: {error}") from None
        return cls("\n".join(instructions), content, schema)


def _schema_of_answer(request: Json) -> Json:
    """Return the JSON schema that a request demands of the answer.

    Raise Refusal if the service does not support the request, KeyError or TypeError if it does not
    have the form of one.
    """
    answer_format = request["response_format"]
    if request.get("stream"):
        raise Refusal(400, "stream is not supported")
    if answer_format["type"] != "json_schema" or not request.get("model"):
        raise Refusal(400, "a model and a response_format of the type json_schema are required")
    schema: Json = answer_format["json_schema"]["schema"]
    return schema


AnswerFunction = Callable[[Completion], object]
"""Returns the answer to a request: a text is sent as it is, any other value as JSON."""


class ChatServer:
    """The service, which runs inside `with`. Guards the requests that it got.

    `completions` has all requests for completions so far, in their order.
    """

    def __init__(self, answer: AnswerFunction) -> None:
        """Make a service that answers with the results of a function, which may raise Refusal."""
        self.answer = answer
        self.completions: list[Completion] = []
        # The HTTP server makes one object of this class per request, and passes it nothing.
        handler = type("Handler", (_Handler,), {"service": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False

    @property
    def url(self) -> str:
        """The address for the setting `llm.url`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def settings(self, route: str = "always", **more: Any) -> Json:
        """Return settings of a store that asks this service, as often as it likes.

        `route` is the setting `llm.route`; `more` are other settings of `llm`.
        """
        llm = {
            "provider": "openai",
            "model": "fake",
            "url": self.url,
            "route": route,
            "max_calls_per_hour": 100_000,
        }
        return {"llm": llm | more}

    def complete(self, body: bytes) -> Json:
        """Return the response to the body of a request.

        Raise Refusal if it is not supported, or if the function that answers refuses it.
        """
        completion = Completion.read(body)
        self.completions.append(completion)
        answer = self.answer(completion)
        content = answer
        if not isinstance(content, str):
            content = json.dumps(answer, ensure_ascii=False)
        return {
            "id": f"chatcmpl-{len(self.completions)}",
            "object": "chat.completion",
            "created": int(time.time()),
            "model": "fake",
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": content},
                    "finish_reason": "stop",
                }
            ],
            "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
        }

    def __enter__(self) -> ChatServer:
        """Begin to answer requests, in a thread."""
        serve = partial(self._server.serve_forever, poll_interval=_POLL_INTERVAL)
        threading.Thread(target=serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop, and close the socket."""
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    """Reads one request and sends its response. A subclass has the `service` that answers."""

    service: ChatServer

    def do_POST(self) -> None:
        """Answer a request for a completion; any other path is not found."""
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        try:
            if not self.path.endswith("/chat/completions"):
                raise Refusal(404, f"no such path: {self.path}")
            self._send(200, self.service.complete(body))
        except Refusal as refusal:
            self._send(refusal.status, {"error": {"message": str(refusal), "type": "error"}})

    def _send(self, status: int, value: Json) -> None:
        """Send a response with a JSON object as its body."""
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Print nothing."""
