"""A service of embeddings on 127.0.0.1 that speaks the protocols of OpenAI, Ollama and Voyage, and misbehaves on
request.

Its model is small and real: a text's vector is the sum of its words' vectors, so texts that share words are near.
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
class Asked:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        return json.loads(self.body)

    @property
    def texts(self) -> list[str]:
        given = self.json.get("input", [])
        return [given] if isinstance(given, str) else given


@dataclass
class Answer:
    """What the service does instead of answering well. `change` spoils a good answer before it is sent."""

    status: int = 200
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    change: Callable[[dict[str, Any]], Any] | None = None
    seconds: float = 0.0  # of waiting before anything is sent
    cut: bool = False  # half of the body, then the end of the connection
    drip: bool = False  # the body never ends
    pause: float = 0.0  # seconds between the pieces of such a body
    hang_up: bool = False  # the connection is closed without a word


def failing(
    status: int, said: str = "It went wrong", headers: dict[str, str] | None = None
) -> Answer:
    return Answer(
        status, json.dumps({"error": {"message": said, "type": "error"}}).encode(), headers or {}
    )


def limited(retry_after: str | None = "0", said: str = "Rate limit reached") -> Answer:
    return failing(429, said, {} if retry_after is None else {"Retry-After": retry_after})


def slow(seconds: float) -> Answer:
    return Answer(seconds=seconds)


def spoilt(change: Callable[[list[Vector]], list[Any]]) -> Answer:
    """A good answer whose vectors are changed before they are sent."""

    def spoil(answer: dict[str, Any]) -> dict[str, Any]:
        rows = change([row["embedding"] for row in answer["data"]])
        return answer | {
            "data": [
                {"object": "embedding", "index": k, "embedding": row} for k, row in enumerate(rows)
            ]
        }

    return Answer(change=spoil)


PAGE = Answer(
    200, b"<!doctype html><html><title>Welcome</title></html>", {"Content-Type": "text/html"}
)
WELL = Answer()
CUT, HANGS_UP = Answer(cut=True), Answer(hang_up=True)
ENDLESS, TRICKLE = Answer(drip=True), Answer(drip=True, pause=0.05)


class EmbeddingService:
    """Running inside `with`. `url` is where it is, `asked` what came; `next` and `always` say how it behaves."""

    def __init__(self, dimension: int = 64) -> None:
        self.dimension = dimension
        self.asked: list[Asked] = []
        self.received = (
            bytearray()
        )  # every byte of every body, and of every request line and header
        self.dripping = 0  # how many endless answers are being given now
        self.always = Answer()
        self.refuses: Callable[[str], bool] = lambda text: (
            False
        )  # texts for which a batch gets a 400
        self.coming: deque[Answer] = deque()
        self.closed = threading.Event()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (_Handler,), {"of": self})
        )
        self._server.daemon_threads, self._server.block_on_close = True, False
        self.host = f"127.0.0.1:{self._server.server_address[1]}"
        self.url = f"http://{self.host}"

    def next(self, *answers: Answer) -> None:
        """How the coming requests are answered, one each; those after them as `always` says."""
        self.coming.extend(answers)

    def texts(self) -> list[str]:
        """All texts that were ever sent."""
        return [text for asked in self.asked for text in asked.texts]

    def __enter__(self) -> EmbeddingService:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closed.set()
        self._server.shutdown()
        self._server.server_close()

    def vector(self, text: str, dimension: int) -> Vector:
        """The sum of the words' vectors, of length one."""
        sums = [0.0] * dimension
        for word in text.lower().split() or [""]:
            spread = hashlib.shake_128(word.encode("utf-8", "replace")).digest(dimension)
            for k, byte in enumerate(spread):
                sums[k] += byte - 127.5
        length = sum(value * value for value in sums) ** 0.5
        return [value / length for value in sums]

    def answer(self, asked: Asked) -> tuple[int, dict[str, Any]]:
        """What a service in good health says."""
        wanted = asked.json
        if any(self.refuses(text) for text in asked.texts):
            return 400, {
                "error": {
                    "message": "an input is too long for this model",
                    "type": "invalid_request_error",
                }
            }
        dimension = wanted.get("dimensions") or wanted.get("output_dimension") or self.dimension
        rows = [self.vector(text, dimension) for text in asked.texts]
        if asked.path.endswith("/api/embed"):
            return 200, {"model": wanted["model"], "embeddings": rows, "total_duration": 14143917}
        if asked.path.endswith("/embeddings"):
            packed = wanted.get("encoding_format") == "base64"
            data = [{"object": "embedding", "index": k, "embedding": _packed(row) if packed else row}
                    for k, row in enumerate(rows)]  # fmt: skip
            usage = {
                "prompt_tokens": 1,
                "total_tokens": sum(len(text.split()) for text in asked.texts),
            }
            return 200, {"object": "list", "data": data, "model": wanted["model"], "usage": usage}
        return 404, {"error": f"there is no {asked.path}"}


class _Handler(BaseHTTPRequestHandler):
    of: EmbeddingService
    protocol_version = "HTTP/1.1"
    wbufsize = 65_536  # an answer leaves as one piece
    disable_nagle_algorithm = True

    def log_message(self, *_: object) -> None:
        """Silence: the tests look at `asked`."""

    def handle_one_request(self) -> None:
        try:
            super().handle_one_request()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def do_POST(self) -> None:
        service, body = self.of, self.rfile.read(int(self.headers.get("Content-Length", 0)))
        asked = Asked(self.path, dict(self.headers), body)
        service.received += self.requestline.encode() + bytes(self.headers) + body
        service.asked.append(asked)
        behaviour = service.coming.popleft() if service.coming else service.always
        service.closed.wait(behaviour.seconds)
        self.close_connection = behaviour.hang_up or behaviour.drip or behaviour.cut
        if not behaviour.hang_up:
            self._answer(asked, behaviour)

    def _answer(self, asked: Asked, behaviour: Answer) -> None:
        status, good = self.of.answer(asked)
        changed = behaviour.change(good) if behaviour.change and status == 200 else good
        body = behaviour.body if behaviour.body is not None else json.dumps(changed).encode()
        self.send_response(behaviour.status if behaviour.status != 200 else status)
        length = {"Connection": "close"} if behaviour.drip else {"Content-Length": str(len(body))}
        for name, value in (
            {"Content-Type": "application/json"} | length | behaviour.headers
        ).items():
            self.send_header(name, value)
        self.end_headers()
        if not behaviour.drip:
            self.wfile.write(body[: len(body) // 2] if behaviour.cut else body)
            self.wfile.flush()
            return
        self.of.dripping += 1
        try:
            while not self.of.closed.wait(behaviour.pause):
                self.wfile.write(b" " * (1 if behaviour.pause else 65_536))
                self.wfile.flush()
        finally:
            self.of.dripping -= 1


def _packed(row: Vector) -> str:
    return base64.b64encode(struct.pack(f"<{len(row)}f", *row)).decode("ascii")
