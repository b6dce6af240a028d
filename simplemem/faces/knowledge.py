"""The toolset `knowledge`: keep what was learned, find it again, relate it. Names, limits and answers are those of
self-improving-memory (capabilities.md SI-9 to SI-11); every entry is a note."""

# ruff: noqa: N815  (the names of arguments are the contract's)
from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from simplemem.errors import TooLong
from simplemem.faces.arguments import Arguments, Words
from simplemem.faces.knowing import ENTRY, FAILURE, entry_shown, knowledge_in, pretty, timed
from simplemem.faces.schema import FLAG, TEXT, TEXTS, record, several
from simplemem.faces.tool import Call, Reply, Tool

Kind = Literal["decision", "error", "solution", "pattern", "insight"]
Share = Annotated[float, Field(ge=0, le=1)]
LONGEST_QUERY = 500
_LONGEST_RELATIONSHIP = 100


class SaveArguments(Arguments):
    type: Kind
    content: str = Field(description="what was learned, up to 10,000 characters of Markdown", min_length=1)
    context: str = Field(default="", description="where, when, why")
    confidence: Share = Field(description="0 to 1")
    verified: bool = False
    tags: Words = Field(description="may be empty")


def save_knowledge(call: Call, asked: SaveArguments) -> Reply:
    kept = knowledge_in(call).save(
        asked.type,
        asked.content,
        context=asked.context,
        confidence=asked.confidence,
        verified=asked.verified,
        tags=asked.tags,
        who=call.who,
        tool=call.tool,
    )
    said = [f"Knowledge saved with ID: {kept.entry.id}"]
    if kept.twins:
        said.append(f"The very same was known already: {', '.join(entry.id for entry in kept.twins[:5])}")
    data = {"id": kept.entry.id, "name": kept.entry.name, "same_as": [entry.id for entry in kept.twins]}
    return Reply("\n".join([*said, *kept.warnings]), data | {"warnings": list(kept.warnings)})


class SearchArguments(Arguments):
    query: str = Field(description="up to 500 characters; empty lists the newest")
    type: Kind | None = None
    minConfidence: Share = 0.0


def search_knowledge(call: Call, asked: SearchArguments) -> Reply:
    if len(asked.query) > LONGEST_QUERY:
        raise TooLong(f"The query has {len(asked.query)} characters; {LONGEST_QUERY} are allowed.")
    from simplemem.kinds.learned.access import NEVER

    knowledge = knowledge_in(call)
    found = knowledge.search(asked.query, kind=asked.type or "", least_confidence=asked.minConfidence)
    read = knowledge.access.all()
    related = knowledge.leading_to([hit.entry for hit in found.hits])
    results = [
        entry_shown(hit.entry, read.get(hit.entry.id, NEVER), [other for _, other in related[hit.entry.path]])
        | {"score": hit.score, "snippet": hit.snippet, "method": found.method}
        for hit in found.hits
    ]
    return Reply(pretty(results), {"results": results, "method": found.method, "degraded": found.degraded})


class LinkArguments(Arguments):
    sourceId: str
    targetId: str
    relationship: str = Field(
        default="relates_to", max_length=_LONGEST_RELATIONSHIP, description="fixes, causes, supersedes, …"
    )


def link_knowledge(call: Call, asked: LinkArguments) -> Reply:
    one, other, is_new = knowledge_in(call).link(
        asked.sourceId, asked.targetId, asked.relationship, who=call.who, tool=call.tool
    )
    kind = " ".join(asked.relationship.split()) or "relates_to"
    said = f"Knowledge linked: {one.id} {kind} {other.id}" + ("" if is_new else " (it was already)")
    return Reply(said, {"sourceId": one.id, "targetId": other.id, "relationship": kind, "changed": is_new})


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        "save_knowledge",
        "Save knowledge",
        "Keep one thing you learned: a decision, an error, a solution, a pattern or an insight.",
        SaveArguments,
        timed(save_knowledge),
        record((), id=TEXT, name=TEXT, same_as=TEXTS, warnings=TEXTS),
        writes=True,
        idempotent=False,
        failure=FAILURE,
    ),
    Tool(
        "search_knowledge",
        "Search knowledge",
        "Find what was learned, by meaning and words: ten entries at most. Search before you solve something again.",
        SearchArguments,
        timed(search_knowledge),
        record((), results=several(ENTRY), method=TEXT, degraded=TEXT),
        failure=FAILURE,
    ),
    Tool(
        "link_knowledge",
        "Link knowledge",
        "Relate one entry to another, e.g. a solution that fixes an error.",
        LinkArguments,
        timed(link_knowledge),
        record((), sourceId=TEXT, targetId=TEXT, relationship=TEXT, changed=FLAG),
        writes=True,
        failure=FAILURE,
    ),
)
