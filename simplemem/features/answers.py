"""The shapes of answers about statements, documents and conversations: light, for a server shows them before it is asked."""

from __future__ import annotations

from typing import Any, NotRequired, TypeAlias, TypedDict

Maybe: TypeAlias = "str | None"

Told = TypedDict("Told", {"id": str, "memory": str})
Candidate = TypedDict("Candidate", {"id": str, "memory": str, "similarity": float})
Event = TypedDict("Event", {
    "event": str, "relation": Maybe, "id": str, "memory": str, "rule": str, "previous": NotRequired[Told],
    "disputes": NotRequired[list[Told]],
})  # fmt: skip
Review = TypedDict("Review", {"id": str, "candidates": list[Candidate]})
Remembered = TypedDict("Remembered", {
    "events": list[Event], "document": Maybe, "extraction": str, "reconciliation": str, "needs_review": list[Review],
    "warnings": list[str],
})  # fmt: skip
Ingested = TypedDict("Ingested", {
    "id": str, "status": str, "title": str, "container_tag": str, "content_type": str, "name": str, "chunks": int,
    "memories": list[Event], "extraction": str, "warnings": list[str], "duplicate": NotRequired[bool],
    "source_url": NotRequired[str], "fetched": NotRequired[str],
})  # fmt: skip
Profile = TypedDict("Profile", {
    "container_tag": str, "static": list[str], "dynamic": list[str], "sources": dict[str, list[str]],
    "generated_at": str, "cached": bool, "method": str,
})  # fmt: skip
Passage = TypedDict(
    "Passage", {"content": str, "source": str, "score": float, "heading": str, "line": int}
)
Written = TypedDict(
    "Written", {"file_path": str, "sha256": str, "created": bool, "notice": NotRequired[str]}
)
Source = TypedDict(
    "Source", {"id": str, "title": str, "name": str, "heading": str, "line": int, "url": Maybe}
)
Edge = TypedDict("Edge", {"from": str, "relation": str, "to": str, "id": str})
Step = TypedDict("Step", {"step": str, "used": bool, "why": str})
Result = TypedDict("Result", {
    "kind": str, "id": str, "text": str, "score": float, "container_tag": str, "source": Source,
    "memory_type": NotRequired[str], "confidence": NotRequired[float], "valid_from": NotRequired[str],
    "valid_to": NotRequired[str], "is_latest": NotRequired[bool], "disputed": NotRequired[str],
    "disputed_by": NotRequired[str], "outdated": NotRequired[str], "disputed_sentences": NotRequired[list[str]],
    "outdated_sentences": NotRequired[list[str]],
})  # fmt: skip
Row = TypedDict("Row", {
    "id": str, "memory": str, "memory_type": str, "container_tag": str, "is_latest": bool, "confidence": float,
    "base_confidence": float, "valid_from": Maybe, "valid_to": Maybe, "forgotten_at": Maybe, "source_doc_id": Maybe,
    "updates": Maybe, "extends": Maybe, "derived_from": list[str], "superseded_by": Maybe, "status": str,
    "disputed": Maybe, "disputed_by": Maybe, "created_at": str, "name": str,
})  # fmt: skip

FactOut = TypedDict("FactOut", {
    "key": str, "value": str, "block_id": str, "confidence": float, "valid_from": NotRequired[str],
    "disputed": NotRequired[str],
})  # fmt: skip
Stored = TypedDict("Stored", {
    "block_id": str, "turn_id": str, "routing_scenario": str, "facts_extracted": int, "topic": str, "reason": str,
    "method": str, "facts": list[FactOut], "warnings": list[str],
})  # fmt: skip
TurnOut = TypedDict(
    "TurnOut", {"turn_id": str, "timestamp": str, "user_message": str, "ai_response": str}
)
Topic = TypedDict(
    "Topic",
    {"block_id": str, "topic_label": str, "status": str, "turn_count": int, "created_at": str},
)
Topics = TypedDict("Topics", {"topics": list[Topic]})
Story = TypedDict(
    "Story", {"block_id": str, "topic_label": str, "turns": list[TurnOut], "summary": str}
)
Spoken = TypedDict("Spoken", {
    "block_id": str, "topic": str, "relevance_score": float, "summary": str, "turns": list[TurnOut],
})  # fmt: skip
Recalled = TypedDict("Recalled", {
    "memories": list[Spoken], "facts": list[FactOut], "method": str, "degraded": NotRequired[str],
    "only_nearest": NotRequired[bool],
})  # fmt: skip
Constraint = TypedDict(
    "Constraint", {"text": str, "severity": str, "since": str, "disputed": NotRequired[str]}
)
Person = TypedDict("Person", {
    "name": str, "preferences": dict[str, str], "topics_of_interest": list[str], "last_updated": str,
    "constraints": list[Constraint],
})  # fmt: skip
Known = TypedDict("Known", {"profile": Person})
Context = TypedDict(
    "Context", {"text": str, "tokens": int, "items": list[dict[str, Any]], "left_out": int}
)
Closed = TypedDict("Closed", {
    "closed": list[str], "continued": list[str], "facts": list[FactOut], "method": str,
    "warnings": NotRequired[list[str]],
})  # fmt: skip
