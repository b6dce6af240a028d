"""The shapes of what tools answer about facts, documents and conversations.

Only types, so that a server that lists its tools does not import the features. These classes have
no docstrings, since those would become descriptions in the schemas that clients see.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

# Facts


class FactReference(TypedDict):
    id: str
    memory: str


class ReviewCandidate(TypedDict):
    id: str
    memory: str
    similarity: float


class FactEvent(TypedDict):
    event: str
    relation: str | None
    id: str
    memory: str
    rule: str
    previous: NotRequired[FactReference]
    disputes: NotRequired[list[FactReference]]


class ReviewRequest(TypedDict):
    id: str
    candidates: list[ReviewCandidate]


class RememberResult(TypedDict):
    events: list[FactEvent]
    document: str | None
    extraction: str
    reconciliation: str
    needs_review: list[ReviewRequest]
    warnings: list[str]


# Documents and what recall finds


class IngestResult(TypedDict):
    id: str
    status: str
    title: str
    container_tag: str
    content_type: str
    name: str
    chunks: int
    memories: list[FactEvent]
    extraction: str
    warnings: list[str]
    duplicate: NotRequired[bool]
    source_url: NotRequired[str]
    fetched: NotRequired[str]


class ScopeProfile(TypedDict):
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


class SavedDocument(TypedDict):
    file_path: str
    sha256: str
    created: bool
    notice: NotRequired[str]


class ResultSource(TypedDict):
    id: str
    title: str
    name: str
    heading: str
    line: int
    url: str | None


# `from` is a keyword, so this one cannot have the form of a class.
Edge = TypedDict("Edge", {"from": str, "relation": str, "to": str, "id": str})


class RecallStep(TypedDict):
    step: str
    used: bool
    why: str


class RecallResult(TypedDict):
    kind: str
    id: str
    text: str
    score: float
    container_tag: str
    source: ResultSource
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


class MemoryRow(TypedDict):
    id: str
    memory: str
    memory_type: str
    container_tag: str
    is_latest: bool
    confidence: float
    base_confidence: float
    valid_from: str | None
    valid_to: str | None
    forgotten_at: str | None
    source_doc_id: str | None
    updates: str | None
    extends: str | None
    derived_from: list[str]
    superseded_by: str | None
    status: str
    disputed: str | None
    disputed_by: str | None
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


class RecordedTurn(TypedDict):
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


class TopicRow(TypedDict):
    block_id: str
    topic_label: str
    status: str
    turn_count: int
    created_at: str


class TopicList(TypedDict):
    topics: list[TopicRow]


class TopicHistory(TypedDict):
    block_id: str
    topic_label: str
    turns: list[TurnOut]
    summary: str


class RecalledTopic(TypedDict):
    block_id: str
    topic: str
    relevance_score: float
    summary: str
    turns: list[TurnOut]


class ConversationRecall(TypedDict):
    memories: list[RecalledTopic]
    facts: list[FactOut]
    method: str
    degraded: NotRequired[str]
    only_nearest: NotRequired[bool]


class Constraint(TypedDict):
    text: str
    severity: str
    since: str
    disputed: NotRequired[str]


class UserProfile(TypedDict):
    name: str
    preferences: dict[str, str]
    topics_of_interest: list[str]
    last_updated: str
    constraints: list[Constraint]


class UserProfileAnswer(TypedDict):
    profile: UserProfile


class MessageContext(TypedDict):
    text: str
    tokens: int
    items: list[dict[str, Any]]
    left_out: int


class ArchiveResult(TypedDict):
    closed: list[str]
    continued: list[str]
    facts: list[FactOut]
    method: str
    warnings: NotRequired[list[str]]
