"""A rerank service on 127.0.0.1 that speaks as Cohere and Jina, text-embeddings-inference and Voyage do, and misbehaves
on request. It reads the question and a text together: its score is the share of the question's words that the text
holds.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from embedding_service import Answer, Asked, EmbeddingService

Score = Callable[[str, str], float]


def words_held(query: str, text: str) -> float:
    asked = set(re.findall(r"\w+", query.lower()))
    return len(asked & set(re.findall(r"\w+", text.lower()))) / len(asked)


class RerankService(EmbeddingService):
    """Running inside `with`. `score` may be replaced by another model."""

    def __init__(self, score: Score = words_held) -> None:
        super().__init__()
        self.score = score

    @property
    def cohere(self) -> str:
        return f"{self.url}/v2/rerank"

    @property
    def tei(self) -> str:
        return f"{self.url}/rerank"

    @property
    def voyage(self) -> str:
        return f"{self.url}/v1"

    def sent(self) -> list[str]:
        """Every passage that was ever sent here."""
        return [
            text
            for asked in self.asked
            for text in asked.json.get("documents", asked.json.get("texts", []))
        ]

    def answer(self, asked: Asked) -> tuple[int, Any]:
        """What a service in good health says: the best first, each with the number of its text."""
        wanted, path = asked.json, urlsplit(asked.path).path  # a proxy is asked for whole addresses
        if path == "/v1/rerank" and "top_n" in wanted:
            return 400, {"detail": "Argument 'top_n' is not supported by our API"}
        if path in ("/v1/rerank", "/v2/rerank"):
            if not isinstance(wanted.get("model"), str):
                return 400, {"message": "invalid request: model is required"}
            rows = self._rows(wanted["query"], wanted["documents"], "relevance_score")
            if path == "/v1/rerank":
                return 200, {
                    "object": "list",
                    "data": rows,
                    "model": wanted["model"],
                    "usage": {"total_tokens": 9},
                }
            return 200, {
                "id": "07734bd2",
                "results": rows,
                "meta": {"api_version": {"version": "2"}},
            }
        if path == "/rerank":
            if "texts" not in wanted:
                return 422, {"error": "missing field `texts`", "error_type": "validation"}
            return 200, self._rows(wanted["query"], wanted["texts"], "score")
        return 404, {"message": f"there is no {asked.path}"}

    def _rows(self, query: str, texts: list[str], name: str) -> list[dict[str, Any]]:
        rows = [{"index": k, name: self.score(query, text)} for k, text in enumerate(texts)]
        return sorted(rows, key=lambda row: (-row[name], row["index"]))


def spoilt(change: Callable[[list[dict[str, Any]]], Any]) -> Answer:
    """A good answer whose rows are changed before they are sent, in whichever protocol."""

    def spoil(answer: Any) -> Any:
        if isinstance(answer, list):
            return change(answer)
        name = "results" if "results" in answer else "data"
        return answer | {name: change(answer[name])}

    return Answer(change=spoil)


def _first(rows: list[dict[str, Any]], **changed: Any) -> list[dict[str, Any]]:
    named = {("relevance_score" if "relevance_score" in rows[0] else "score") if k == "score" else k: v
             for k, v in changed.items()}  # fmt: skip
    return [rows[0] | named, *rows[1:]]


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
"""Answers that came whole and say what cannot be."""
