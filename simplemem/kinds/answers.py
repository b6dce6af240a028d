"""The shapes of answers about statements and documents: light, for a server shows them before anything is asked."""

from __future__ import annotations

from typing import NotRequired, TypeAlias, TypedDict

Maybe: TypeAlias = "str | None"

Told = TypedDict("Told", {"id": str, "memory": str})
Candidate = TypedDict("Candidate", {"id": str, "memory": str, "similarity": float})
Event = TypedDict("Event", {
    "event": str, "relation": Maybe, "id": str, "memory": str, "rule": str, "previous": NotRequired[Told],
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
Source = TypedDict("Source", {"id": str, "title": str, "name": str, "heading": str, "line": int, "url": Maybe})
Edge = TypedDict("Edge", {"from": str, "relation": str, "to": str, "id": str})
Step = TypedDict("Step", {"step": str, "used": bool, "why": str})
Result = TypedDict("Result", {
    "kind": str, "id": str, "text": str, "score": float, "container_tag": str, "source": Source,
    "memory_type": NotRequired[str], "confidence": NotRequired[float], "valid_from": NotRequired[str],
    "valid_to": NotRequired[str], "is_latest": NotRequired[bool],
})  # fmt: skip
Row = TypedDict("Row", {
    "id": str, "memory": str, "memory_type": str, "container_tag": str, "is_latest": bool, "confidence": float,
    "base_confidence": float, "valid_from": Maybe, "valid_to": Maybe, "forgotten_at": Maybe, "source_doc_id": Maybe,
    "updates": Maybe, "extends": Maybe, "derived_from": list[str], "superseded_by": Maybe, "status": str,
    "created_at": str, "name": str,
})  # fmt: skip
