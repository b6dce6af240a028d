"""A rerank service on 127.0.0.1 with several protocols.

They are those of Cohere, Jina, text-embeddings-inference and Voyage. Its score is the share of the words of the query that a text contains. It misbehaves on request.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from embedding_service import Answer, EmbeddingService, Request

Score = Callable[[str, str], float]


def share_of_words(query: str, text: str) -> float:
    """Return the share of the words of a query that a text contains."""
    query_words = set(re.findall(r"\w+", query.lower()))
    text_words = set(re.findall(r"\w+", text.lower()))
    return len(query_words & text_words) / len(query_words)


class RerankService(EmbeddingService):
    """The service, which runs inside `with`. `score` is its model, which a test may replace."""

    def __init__(self, score: Score = share_of_words) -> None:
        super().__init__()
        self.score = score

    @property
    def cohere(self) -> str:
        """The address of the protocol of Cohere and Jina."""
        return f"{self.url}/v2/rerank"

    @property
    def tei(self) -> str:
        """The address of the protocol of text-embeddings-inference."""
        return f"{self.url}/rerank"

    @property
    def voyage(self) -> str:
        """The address of the protocol of Voyage."""
        return f"{self.url}/v1"

    def sent(self) -> list[str]:
        """Return all passages that were sent to the service."""
        return [
            text
            for request in self.requests
            for text in request.json.get("documents", request.json.get("texts", []))
        ]

    def answer(self, request: Request) -> tuple[int, Any]:
        """Return the status and the body of a correct answer: the best text first."""
        body = request.json
        path = urlsplit(request.path).path  # the path of a request to a proxy is a whole address
        if path == "/v1/rerank" and "top_n" in body:
            return 400, {"detail": "Argument 'top_n' is not supported by our API"}
        if path in ("/v1/rerank", "/v2/rerank"):
            if not isinstance(body.get("model"), str):
                return 400, {"message": "invalid request: model is required"}
            rows = self._rows(body["query"], body["documents"], "relevance_score")
            if path == "/v1/rerank":
                return 200, {
                    "object": "list",
                    "data": rows,
                    "model": body["model"],
                    "usage": {"total_tokens": 9},
                }
            return 200, {
                "id": "07734bd2",
                "results": rows,
                "meta": {"api_version": {"version": "2"}},
            }
        if path == "/rerank":
            if "texts" not in body:
                return 422, {"error": "missing field `texts`", "error_type": "validation"}
            return 200, self._rows(body["query"], body["texts"], "score")
        return 404, {"message": f"there is no {request.path}"}

    def _rows(self, query: str, texts: list[str], name: str) -> list[dict[str, Any]]:
        """Return number and score of each text, the best first. `name` is the key of the score."""
        rows = [
            {"index": number, name: self.score(query, text)} for number, text in enumerate(texts)
        ]
        return sorted(rows, key=lambda row: (-row[name], row["index"]))


def spoilt(change: Callable[[list[dict[str, Any]]], Any]) -> Answer:
    """Return a correct answer whose rows are changed before they are sent, in any protocol."""

    def spoil(answer: Any) -> Any:
        if isinstance(answer, list):
            return change(answer)
        name = "results" if "results" in answer else "data"
        return answer | {name: change(answer[name])}

    return Answer(change=spoil)


def _first(rows: list[dict[str, Any]], **changed: Any) -> list[dict[str, Any]]:
    """Return the rows with changed fields in the first one.

    `score` is the score, whatever its key in the protocol of the rows is.
    """
    if "score" in changed and "relevance_score" in rows[0]:
        changed["relevance_score"] = changed.pop("score")
    return [rows[0] | changed, *rows[1:]]


# Complete answers with impossible content.
WRONG: dict[str, Answer] = {
    "too few": spoilt(lambda rows: rows[1:]),
    "none": spoilt(lambda rows: []),
    "out of range": spoilt(lambda rows: _first(rows, index=len(rows))),
    "below range": spoilt(lambda rows: _first(rows, index=-1)),
    "twice": spoilt(lambda rows: [rows[0], *rows]),
    "one for another": spoilt(lambda rows: [rows[0], rows[0], *rows[2:]]),
    "index that is no number": spoilt(lambda rows: _first(rows, index="0")),
    "NaN": spoilt(lambda rows: _first(rows, score=float("nan"))),
    "infinite": spoilt(lambda rows: _first(rows, score=float("inf"))),
    "null": spoilt(lambda rows: _first(rows, score=None)),
    "text": spoilt(lambda rows: _first(rows, score="0.9")),
    "rows that are none": spoilt(lambda rows: ["first", "second"]),
    "another answer": Answer(200, b'{"choices": [{"text": "The second passage is best."}]}'),
    "a number": Answer(200, b"17"),
}
