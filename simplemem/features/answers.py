"""The shapes of what tools answer about facts, documents and conversations.

Only types, so that a server that lists its tools does not import the features. These classes have
no docstrings, since those would become descriptions in the schemas that clients see.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypeAlias, TypedDict

Maybe: TypeAlias = "str | None"


# Facts


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
    previous: NotRequired[Told]
    disputes: NotRequired[list[Told]]


class Review(TypedDict):
    id: str
    candidates: list[Candidate]


class Remembered(TypedDict):
    events: list[Event]
    document: Maybe
    extraction: str
    reconciliation: str
    needs_review: list[Review]
    warnings: list[str]


# Documents and what recall finds


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
    fetched: NotRequired[str]


class Profile(TypedDict):
    container_tag: str
    static: list[str]
    dynamic: list[str]
    sources: dict[str, list[str]]
    generated_at: str
    cached: bool
    method: str


class Passage(TypedDict):
    content: str
    source: str
    score: float
    heading: str
    line: int


class Written(TypedDict):
    file_path: str
    sha256: str
    created: bool
    notice: NotRequired[str]


class Source(TypedDict):
    id: str
    title: str
    name: str
    heading: str
    line: int
    url: Maybe


# `from` is a keyword, so this one cannot have the form of a class.
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
    valid_from: NotRequired[str]
    valid_to: NotRequired[str]
    is_latest: NotRequired[bool]
    disputed: NotRequired[str]
    disputed_by: NotRequired[str]
    outdated: NotRequired[str]
    disputed_sentences: NotRequired[list[str]]
    outdated_sentences: NotRequired[list[str]]


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
    disputed: Maybe
    disputed_by: Maybe
    created_at: str
    name: str


# Conversations


class FactOut(TypedDict):
    key: str
    value: str
    block_id: str
    confidence: float
    valid_from: NotRequired[str]
    disputed: NotRequired[str]


class Stored(TypedDict):
    block_id: str
    turn_id: str
    routing_scenario: str
    facts_extracted: int
    topic: str
    reason: str
    method: str
    facts: list[FactOut]
    warnings: list[str]


class TurnOut(TypedDict):
    turn_id: str
    timestamp: str
    user_message: str
    ai_response: str


class Topic(TypedDict):
    block_id: str
    topic_label: str
    status: str
    turn_count: int
    created_at: str


class Topics(TypedDict):
    topics: list[Topic]


class Story(TypedDict):
    block_id: str
    topic_label: str
    turns: list[TurnOut]
    summary: str


class Spoken(TypedDict):
    block_id: str
    topic: str
    relevance_score: float
    summary: str
    turns: list[TurnOut]


class Recalled(TypedDict):
    memories: list[Spoken]
    facts: list[FactOut]
    method: str
    degraded: NotRequired[str]
    only_nearest: NotRequired[bool]


class Constraint(TypedDict):
    text: str
    severity: str
    since: str
    disputed: NotRequired[str]


class Person(TypedDict):
    name: str
    preferences: dict[str, str]
    topics_of_interest: list[str]
    last_updated: str
    constraints: list[Constraint]


class Known(TypedDict):
    profile: Person


class Context(TypedDict):
    text: str
    tokens: int
    items: list[dict[str, Any]]
    left_out: int


class Closed(TypedDict):
    closed: list[str]
    continued: list[str]
    facts: list[FactOut]
    method: str
    warnings: NotRequired[list[str]]
