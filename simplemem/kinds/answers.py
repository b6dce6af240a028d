"""The shapes of answers about statements and documents: light, for a server shows them before anything is asked."""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict

Maybe: TypeAlias = "str | None"


class Told(TypedDict):
    id: str
    memory: str


class Candidate(TypedDict):
    id: str
    memory: str
    similarity: float


class Event(TypedDict):
    event: str
    relation: Maybe
    id: str
    memory: str
    rule: str
    previous: NotRequired[Told]  # fmt: skip


class Review(TypedDict):
    id: str
    candidates: list[Candidate]


class Remembered(TypedDict):
    events: list[Event]
    document: Maybe
    extraction: str
    reconciliation: str
    needs_review: list[Review]
    warnings: list[str]  # fmt: skip


class Ingested(TypedDict):
    id: str
    status: str
    title: str
    container_tag: str
    content_type: str
    name: str
    chunks: int
    memories: list[Event]
    extraction: str
    warnings: list[str]
    duplicate: NotRequired[bool]
    source_url: NotRequired[str]
    fetched: NotRequired[str]  # fmt: skip


class Profile(TypedDict):
    container_tag: str
    static: list[str]
    dynamic: list[str]
    sources: dict[str, list[str]]
    generated_at: str
    cached: bool
    method: str  # fmt: skip


class Source(TypedDict):
    id: str
    title: str
    name: str
    heading: str
    line: int
    url: Maybe


Edge = TypedDict("Edge", {"from": str, "relation": str, "to": str, "id": str})


class Step(TypedDict):
    step: str
    used: bool
    why: str


class Result(TypedDict):
    kind: str
    id: str
    text: str
    score: float
    container_tag: str
    source: Source
    memory_type: NotRequired[str]
    confidence: NotRequired[float]
    valid_from: NotRequired[Maybe]
    valid_to: NotRequired[Maybe]
    is_latest: NotRequired[bool]  # fmt: skip


class Row(TypedDict):
    id: str
    memory: str
    memory_type: str
    container_tag: str
    is_latest: bool
    confidence: float
    base_confidence: float
    valid_from: Maybe
    valid_to: Maybe
    forgotten_at: Maybe
    source_doc_id: Maybe
    updates: Maybe
    extends: Maybe
    derived_from: list[str]
    superseded_by: Maybe
    status: str
    created_at: str
    name: str  # fmt: skip
