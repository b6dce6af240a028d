"""The shapes of what tools answer about facts, documents and conversations.

Only types, so that a server that lists its tools does not import the features. The classes have
comments instead of docstrings, since those would become descriptions in the schemas that clients
see.
"""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

# Facts


# A fact that an answer names.
class FactReference(TypedDict):
    id: str
    memory: str


# A fact that a new one may contradict, for a person or an agent to decide.
class ReviewCandidate(TypedDict):
    id: str
    memory: str
    similarity: float
    since: NotRequired[str]


# What adding a statement did to a fact.
class FactEvent(TypedDict):
    event: str
    relation: str | None
    id: str
    memory: str
    rule: str
    previous: NotRequired[FactReference]
    also_replaced: NotRequired[list[FactReference]]
    disputes: NotRequired[list[FactReference]]


# A new fact, or a turn, with the facts that it may replace; `hint` says so in words.
class ReviewRequest(TypedDict):
    id: str
    candidates: list[ReviewCandidate]
    hint: NotRequired[str]


# What a call stored that remembers statements.
class RememberResult(TypedDict):
    events: list[FactEvent]
    document: str | None
    extraction: str
    reconciliation: str
    needs_review: list[ReviewRequest]
    warnings: list[str]


# Documents and what recall finds


# What a call stored that ingests a document.
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
    needs_review: NotRequired[list[ReviewRequest]]
    duplicate: NotRequired[bool]
    source_url: NotRequired[str]
    fetched: NotRequired[str]


# A summary of the facts of one user.
class ScopeProfile(TypedDict):
    container_tag: str
    static: list[str]
    dynamic: list[str]
    sources: dict[str, list[str]]
    generated_at: str
    cached: bool
    method: str


# A part of a document that answers a question.
class Passage(TypedDict):
    content: str
    source: str
    score: float
    heading: str
    line: int


# A document that was written.
class SavedDocument(TypedDict):
    file_path: str
    sha256: str
    created: bool
    notice: NotRequired[str]


# Where a result of a recall comes from.
class ResultSource(TypedDict):
    id: str
    title: str
    name: str
    heading: str
    line: int
    url: str | None


# A relation of two facts. `from` is a keyword, so this one cannot have the form of a class.
Edge = TypedDict("Edge", {"from": str, "relation": str, "to": str, "id": str})


# One step of a recall, and why it was used or not.
class RecallStep(TypedDict):
    step: str
    used: bool
    why: str


# A fact or a passage that a recall found.
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


# A fact with everything that its note states.
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


# Something that is relevant to every question: the constraints of a user, or a pinned note.
class PinnedNote(TypedDict):
    name: str
    kind: str
    text: str


# Conversations


# A fact of a conversation; `disputed` is when a later turn put it in doubt. `reached_by` are the
# facts through which a question led to it, each as "key: value".
class FactOut(TypedDict):
    key: str
    value: str
    block_id: str
    confidence: float
    valid_from: NotRequired[str]
    disputed: NotRequired[str]
    since: NotRequired[str]
    until: NotRequired[str]
    reached_by: NotRequired[list[str]]


# What recording an exchange stored, and how its topic was chosen.
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
    replaced: NotRequired[list[FactReference]]
    needs_review: NotRequired[list[ReviewRequest]]


# A turn of a topic.
class TurnOut(TypedDict):
    turn_id: str
    timestamp: str
    user_message: str
    ai_response: str


# A topic in a list.
class TopicRow(TypedDict):
    block_id: str
    topic_label: str
    status: str
    turn_count: int
    created_at: str


# A page of the open topics. If there are more, `next_cursor` gets them, and `more` counts them.
class TopicList(TypedDict):
    topics: list[TopicRow]
    more: NotRequired[int]
    next_cursor: NotRequired[str]


# A topic with all its turns.
class TopicHistory(TypedDict):
    block_id: str
    topic_label: str
    turns: list[TurnOut]
    summary: str


# A topic that a question found, with the turns that answer it.
class RecalledTopic(TypedDict):
    block_id: str
    topic: str
    relevance_score: float
    summary: str
    turns: list[TurnOut]


# What a question found in conversations. Constraints and pinned notes are there whatever it asks.
class ConversationRecall(TypedDict):
    constraints: NotRequired[list[Constraint]]
    pinned: NotRequired[list[PinnedNote]]
    memories: list[RecalledTopic]
    facts: list[FactOut]
    method: str
    degraded: NotRequired[str]
    only_nearest: NotRequired[bool]


# Something that the user must or must not do, with when it was stated.
class Constraint(TypedDict):
    text: str
    severity: str
    since: str
    until: NotRequired[str]
    about: NotRequired[str]
    disputed: NotRequired[str]


# Something that holds, is planned or happened, in the user's words, with its days.
class ProfileStatement(TypedDict):
    text: str
    since: str
    until: NotRequired[str]
    disputed: NotRequired[str]


# What the user said about themselves, in parts and as text for a prompt.
class UserProfile(TypedDict):
    name: str
    preferences: dict[str, str]
    topics_of_interest: list[str]
    last_updated: str
    constraints: list[Constraint]
    identity: list[str]
    facts: list[ProfileStatement]
    plans: list[ProfileStatement]
    recent: list[ProfileStatement]
    text: str
    method: str


# The answer that contains the profile of the user.
class UserProfileAnswer(TypedDict):
    profile: UserProfile


# What to know before answering a message.
class MessageContext(TypedDict):
    text: str
    tokens: int
    items: list[dict[str, Any]]
    left_out: int


# What archiving topics closed, and the facts that a model read in them.
class ArchiveResult(TypedDict):
    closed: list[str]
    continued: list[str]
    facts: list[FactOut]
    method: str
    warnings: NotRequired[list[str]]
