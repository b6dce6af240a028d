"""An embedding service on 127.0.0.1 with the protocols of OpenAI, Ollama and Voyage.

It misbehaves on request. Its model is small and real: the vector of a text is the sum of the
vectors of its words, so texts with common words are similar.
"""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Vector = list[float]


@dataclass
class Request:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body, which is JSON."""
        return json.loads(self.body)

    @property
    def texts(self) -> list[str]:
        """The texts of an embedding request; none in other requests."""
        texts = self.json.get("input", [])
        return [texts] if isinstance(texts, str) else texts


@dataclass
class Answer:
    """How the service answers a request: by default correctly, at once and completely."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    change: Callable[[dict[str, Any]], Any] | None = None  # is applied to a correct answer
    seconds: float = 0.0  # the pause before anything is sent
    cut: bool = False  # half of the body, then the end of the connection
    drip: bool = False  # the body never ends
    pause: float = 0.0  # seconds between the pieces of such a body
    hang_up: bool = False  # the connection is closed without an answer


def failing(
    status: int, message: str = "It went wrong", headers: dict[str, str] | None = None
) -> Answer:
    """Return an error answer with this status and message."""
    error = {"error": {"message": message, "type": "error"}}
    return Answer(status, json.dumps(error).encode(), headers or {})


def limited(retry_after: str | None = "0", message: str = "Rate limit reached") -> Answer:
    """Return the answer 429, with a header `Retry-After` unless that is None."""
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    return failing(429, message, headers)


def slow(seconds: float) -> Answer:
    """Return a correct answer that is sent after some seconds."""
    return Answer(seconds=seconds)


def spoilt(change: Callable[[list[Vector]], list[Any]]) -> Answer:
    """Return a correct answer whose vectors are changed before they are sent."""

    def spoil(answer: dict[str, Any]) -> dict[str, Any]:
        vectors = change([row["embedding"] for row in answer["data"]])
        data = [
            {"object": "embedding", "index": number, "embedding": vector}
            for number, vector in enumerate(vectors)
        ]
        return answer | {"data": data}

    return Answer(change=spoil)


PAGE = Answer(
    200, b"<!doctype html><html><title>Welcome</title></html>", {"Content-Type": "text/html"}
)
WELL = Answer()
CUT = Answer(cut=True)
HANGS_UP = Answer(hang_up=True)
ENDLESS = Answer(drip=True)
TRICKLE = Answer(drip=True, pause=0.05)


class EmbeddingService:
    """The service, which runs inside `with`.

    `url` is its address, and `requests` has all requests so far. `next` and `always` set how it
    answers, and `refuses` chooses the texts whose batch it refuses with 400.
    """

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.requests: list[Request] = []
        self.received = bytearray()  # the bytes of each body, request line and header
        self.dripping = 0  # the number of endless answers that are being sent
        self.always = Answer()
        self.refuses: Callable[[str], bool] = lambda text: False
        self.next_answers: deque[Answer] = deque()
        self.closed = threading.Event()

        handler = type("Handler", (_Handler,), {"service": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}"

    def next(self, *answers: Answer) -> None:
        """Set the answers to the next requests, one each. `always` answers those after them."""
        self.next_answers.extend(answers)

    def texts(self) -> list[str]:
        """Return all texts that were sent to the service."""
        return [text for request in self.requests for text in request.texts]

    def __enter__(self) -> EmbeddingService:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()

    def vector(self, text: str, dimension: int) -> Vector:
        """Return the sum of the vectors of the words, with the length 1."""
        sums = [0.0] * dimension
        for word in text.lower().split() or [""]:
            digest = hashlib.shake_128(word.encode("utf-8", "replace")).digest(dimension)
            for position, byte in enumerate(digest):
                sums[position] += byte - 127.5
        length = sum(value * value for value in sums) ** 0.5
        return [value / length for value in sums]

    def answer(self, request: Request) -> tuple[int, dict[str, Any]]:
        """Return the status and the body of a correct answer to a request."""
        body = request.json
        if any(self.refuses(text) for text in request.texts):
            error = {
                "message": "an input is too long for this model",
                "type": "invalid_request_error",
            }
            return 400, {"error": error}

        dimension = body.get("dimensions") or body.get("output_dimension") or self.dimension
        vectors = [self.vector(text, dimension) for text in request.texts]
        if request.path.endswith("/api/embed"):
            return 200, {"model": body["model"], "embeddings": vectors, "total_duration": 14143917}
        if request.path.endswith("/embeddings"):
            return 200, self._openai_body(request, vectors)
        return 404, {"error": f"there is no {request.path}"}

    def _openai_body(self, request: Request, vectors: list[Vector]) -> dict[str, Any]:
        """Return vectors in the format of OpenAI and Voyage, encoded as the request says."""
        embeddings: list[Any] = [*vectors]
        if request.json.get("encoding_format") == "base64":
            embeddings = [_encode_base64(vector) for vector in vectors]

        data = [
            {"object": "embedding", "index": number, "embedding": embedding}
            for number, embedding in enumerate(embeddings)
        ]
        words = sum(len(text.split()) for text in request.texts)
        usage = {"prompt_tokens": 1, "total_tokens": words}
        return {"object": "list", "data": data, "model": request.json["model"], "usage": usage}


class _Handler(BaseHTTPRequestHandler):
    service: EmbeddingService
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # an answer is sent in one piece
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Print nothing: the tests read `requests`."""

    def handle_one_request(self) -> None:
        """Ignore clients that close the connection too early."""
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_POST(self) -> None:
        service = self.service
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(self.path, dict(self.headers), body)
        service.received += self.requestline.encode() + bytes(self.headers) + body
        service.requests.append(request)

        behaviour = service.next_answers.popleft() if service.next_answers else service.always
        service.closed.wait(behaviour.seconds)
        self.close_connection = behaviour.hang_up or behaviour.drip or behaviour.cut
        if not behaviour.hang_up:
            self._answer(request, behaviour)

    def _answer(self, request: Request, behaviour: Answer) -> None:
        """Send the answer to a request, or the part of it that the behaviour permits."""
        status, content = self.service.answer(request)
        if behaviour.change and status == 200:
            content = behaviour.change(content)
        body = behaviour.body if behaviour.body is not None else json.dumps(content).encode()

        headers = {"Content-Type": "application/json"}
        if behaviour.drip:
            headers["Connection"] = "close"
        else:
            headers["Content-Length"] = str(len(body))
        self.send_response(behaviour.status if behaviour.status != 200 else status)
        for name, value in (headers | behaviour.headers).items():
            self.send_header(name, value)
        self.end_headers()

        if behaviour.drip:
            self._drip(behaviour.pause)
            return
        self.wfile.write(body[: len(body) // 2] if behaviour.cut else body)
        self.wfile.flush()

    def _drip(self, pause: float) -> None:
        """Send spaces until the service is closed."""
        piece = b" " * (1 if pause else 65_536)
        self.service.dripping += 1
        try:
            while not self.service.closed.wait(pause):
                self.wfile.write(piece)
                self.wfile.flush()
        finally:
            self.service.dripping -= 1


def _encode_base64(vector: Vector) -> str:
    return base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
