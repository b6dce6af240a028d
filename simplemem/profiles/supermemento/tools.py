"""The tools of the profile supermemento: five for a graph, as Memento has them, and six for users.

The six search the graph, facts and documents together, store documents, and list what is known
about a user. The text of an answer is the JSON of its data. A log beside the notes
(`state/found.jsonl`) records which entities each search found.
"""

from __future__ import annotations

import json
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NotRequired, TypedDict

from pydantic import Field

from simplemem.features.answers import (
    IngestResult,
    MemoryRow,
    PinnedNote,
    RecallResult,
    RecallStep,
    ScopeProfile,
)
from simplemem.features.services import DocumentService, FactService, KnowledgeGraph
from simplemem.note.dates import now
from simplemem.profiles.memento import tools as memento
from simplemem.profiles.server_memory import verbs
from simplemem.tools.arguments import Several, Share, about, aliases, names_user
from simplemem.tools.session import Session
from simplemem.tools.statements import (
    ConstraintsIn,
    FactsIn,
    PreferencesIn,
    UserNameIn,
    statements_of,
)
from simplemem.tools.tool import Caller, Data, Reply, as_json, tool

if TYPE_CHECKING:
    from simplemem.features.documents.recall import RecallRequest
    from simplemem.features.fact import Fact
    from simplemem.store import EnhancedStore, ExtensionAPI

_TAG_NAMES: Final = aliases("container_tag", "user_id", "scope")
Tag = Annotated[str, about("the user it belongs to"), _TAG_NAMES, names_user()]
OptionalTag = Annotated[str | None, about("only this user; default all"), _TAG_NAMES, names_user()]
SearchMode = Annotated[
    Literal["hybrid", "memory", "rag"],
    about("hybrid, memory (facts) or rag (passages)"),
]
MemoryType = Literal["fact", "preference", "episode", "derived"]
MemoryTypes = Annotated[Several[MemoryType], about("only facts of these types")]
Limit = Annotated[int, Field(ge=1, le=1000)]
Query = Annotated[str, about("a question in plain words")]
Text = Annotated[str, about("text or Markdown")]
Url = Annotated[str, about("address of a page, text, PDF or DOCX file")]
Title = Annotated[str, about("title of the document")]
Regenerate = Annotated[bool, about("build it again")]
IncludeExpired = Annotated[bool, about("also what no longer holds")]
Rerank = Annotated[bool, about("rerank the best")]
Rewrite = Annotated[bool, about("let the model rephrase the query first")]
Cursor = Annotated[
    str | None,
    about("next_cursor of the previous page"),
    Field(pattern=r"^\d{1,9}$"),
]
TokenBudget = Annotated[
    int | None,
    Field(ge=1, le=100_000),
    about("at most this many tokens of text"),
]


# The types of answers have no docstrings, since those would become descriptions in the schemas.


class MemoryPage(TypedDict):
    memories: list[MemoryRow]
    total: int
    next_cursor: str | None


class SearchResult(TypedDict):
    pinned: NotRequired[list[PinnedNote]]
    query: str
    search_mode: str
    results: list[RecallResult]
    steps: list[RecallStep]
    tokens: int
    left_out: int
    degraded: NotRequired[str]


class SemanticResult(TypedDict):
    entities: list[Data]
    relations: list[Data]
    total: int
    timeTaken: int
    scores: list[Data]
    diagnostics: NotRequired[Data]
    pinned: NotRequired[list[PinnedNote]]
    memories: NotRequired[list[MemoryRow]]
    chunks: NotRequired[list[RecallResult]]
    steps: NotRequired[list[RecallStep]]


def _record_found_entities(extension: ExtensionAPI, reply: Reply[Any]) -> Data:
    """Return the object that the text of a search's reply has as JSON.

    Log the names of the entities that were found, if there are any. A log that cannot be written is
    no error.
    """
    from simplemem.features.event_log import EventLog

    data: Data = json.loads(reply.text)
    names = [entity["name"] for entity in data["entities"]]
    if names:
        # This log is only written here, so it has no state.
        log = EventLog[None](extension, "state/found.jsonl", lambda: None, lambda *_: None)
        log.add({"at": now().isoformat(timespec="seconds"), "entities": names})
    return data


_RULES: Final = replace(memento.MEMENTO_RULES, has_owners=True)
_GRAPH_VERBS: Final = (
    verbs.create_entities,
    verbs.add_observations,
    verbs.create_relations,
    verbs.search_nodes,
    verbs.read_graph,
)
_GRAPH_TOOLS: Final = {
    graph_tool.name: graph_tool for graph_tool in verbs.graph_tools(_RULES, *_GRAPH_VERBS)
}
"""The tools of the graph, by name: those of Memento, which here also take a container tag."""


# It has the signature and the description of the tool that it calls, and also logs what was found.
@wraps(_GRAPH_TOOLS["search_nodes"].run)
def _search_nodes(graph: KnowledgeGraph, **arguments: Any) -> Reply[Any]:
    reply = _GRAPH_TOOLS["search_nodes"].run(graph=graph, **arguments)
    _record_found_entities(graph.extension, reply)
    return reply


@tool("Semantic Search", adapter=memento.semantic_search.adapter)
def semantic_search(
    store: EnhancedStore,
    graph: KnowledgeGraph,
    query: Query,
    container_tag: OptionalTag = None,
    search_mode: SearchMode | None = None,
    rerank: Rerank = False,
    rewrite_query: Rewrite = False,
    limit: Annotated[float, Field(ge=1, le=1000), about("maximum number of results")] = 10,
    min_similarity: Annotated[Share, about("minimum similarity to the query")] = 0.6,
    memory_types: MemoryTypes = [],  # noqa: B006
    include_expired: IncludeExpired = False,
    entity_types: Annotated[Several[str] | None, about("only entities of these types")] = None,
    hybrid_search: Annotated[bool, about("match words as well as meaning")] = True,
    semantic_weight: Annotated[Share, about("weight of meaning against words")] = 0.6,
) -> Reply[SemanticResult]:
    """Find entities by meaning, or by meaning and words. With a container_tag or search_mode,
    also find facts and passages of documents."""
    from simplemem.features.documents.memory_rows import memory_rows
    from simplemem.features.documents.recall import RecallRequest, recall
    from simplemem.note.scopes import check_scope

    owner = None
    if container_tag is not None:
        owner = check_scope(container_tag)
    meaning_query = memento.MeaningQuery(
        query=query,
        limit=int(limit),
        min_similarity=min_similarity,
        entity_types=entity_types,
        semantic_weight=semantic_weight if hybrid_search else 1.0,
        owner=owner,
    )
    entities = memento.search_by_meaning(store, graph, meaning_query)
    answer: Any = _record_found_entities(store.extension, entities)

    request = RecallRequest(
        query,
        container_tag,
        mode=search_mode or "hybrid",
        limit=int(limit),
        rerank=rerank,
        rewrite=rewrite_query,
        memory_types=memory_types,
        include_expired=include_expired,
        min_similarity=min_similarity,
    )
    # Without any argument that Memento lacks, the answer is that of Memento.
    if container_tag is None and search_mode is None and not _has_options(request):
        return Reply(entities.text, answer)

    recalled = recall(store, request)
    facts = [hit.fact for hit in recalled.hits if hit.fact is not None]
    if recalled.pinned:
        answer = {"pinned": recalled.pinned, **answer}
    answer["memories"] = memory_rows(store, facts)
    answer["chunks"] = [hit.result for hit in recalled.hits if hit.result["kind"] == "chunk"]
    answer["steps"] = recalled.steps
    return as_json(answer)


def _has_options(request: RecallRequest) -> bool:
    """Return whether a request sets an option that a search of Memento does not have."""
    if request.rerank or request.rewrite:
        return True
    return bool(request.memory_types) or request.include_expired


@tool("Ingest a text", writes=True)
def ingest_text(
    documents: DocumentService,
    caller: Caller,
    content: Text,
    container_tag: Tag,
    title: Title = "",
    facts: FactsIn = [],  # noqa: B006
    constraints: ConstraintsIn = [],  # noqa: B006
    preferences: PreferencesIn = [],  # noqa: B006
    user_name: UserNameIn = "",
) -> Reply[IngestResult]:
    """Store a text as a document, and the facts in it as memories. Pass what you understood in
    facts; needs_review lists what they may replace: confirm with replaces."""
    stated = statements_of(facts, constraints, preferences, user_name)
    return as_json(documents.ingest_text(content, container_tag, title, stated=stated, **caller))


@tool("Ingest a page", writes=True)
def ingest_url(
    documents: DocumentService,
    caller: Caller,
    session: Session,
    url: Url,
    container_tag: Tag,
    title: Title = "",
) -> Reply[IngestResult]:
    """Fetch a page or file and store it as a document. Facts from it never replace what the
    user said."""
    result = documents.ingest_url(url, container_tag, title, **caller)
    session.record_sources([result["name"], result.get("source_url", url)])
    return as_json(result)


@tool("Read a profile", writes=True)
def get_user_profile(
    memories: FactService,
    caller: Caller,
    container_tag: Tag,
    regenerate: Regenerate = False,
) -> Reply[ScopeProfile]:
    """Read what is known about a user, in their own words: static for what lasts, dynamic for
    what is recent."""
    from simplemem.features.scope_profile import profile_of

    return as_json(profile_of(memories, container_tag, regenerate, **caller))


@tool("List memories")
def list_memories(
    store: EnhancedStore,
    memories: FactService,
    container_tag: Tag,
    memory_type: MemoryType | None = None,
    limit: Limit = 50,
    include_expired: IncludeExpired = False,
    cursor: Cursor = None,
) -> Reply[MemoryPage]:
    """List the memories of a user, newest first, each with its current confidence."""
    from simplemem.features.documents.memory_rows import memory_rows
    from simplemem.note.scopes import check_scope

    facts = memories.facts(check_scope(container_tag), expired=include_expired)
    if memory_type is not None:
        facts = [fact for fact in facts if fact.memory_type == memory_type]
    facts.sort(key=_age_key, reverse=True)

    start = int(cursor or 0)
    stop = start + limit
    page: MemoryPage = {
        "memories": memory_rows(store, facts[start:stop]),
        "total": len(facts),
        "next_cursor": str(stop) if stop < len(facts) else None,
    }
    return as_json(page)


def _age_key(fact: Fact) -> tuple[float, str]:
    """Return a key that sorts facts from the oldest to the newest, those without a date first."""
    timestamp = 0.0
    if fact.valid_from is not None:
        timestamp = fact.valid_from.timestamp()
    return timestamp, fact.path


@tool("Search everything")
def superrag_search(
    store: EnhancedStore,
    query: Query,
    container_tag: OptionalTag = None,
    search_mode: SearchMode = "hybrid",
    rerank: Rerank = True,
    limit: Limit = 10,
    budget_tokens: TokenBudget = None,
) -> Reply[SearchResult]:
    """Find facts, passages and entities that answer a question, best first, with the
    search steps taken."""
    from simplemem.features.documents.recall import RecallRequest, recall

    recalled = recall(
        store,
        RecallRequest(
            query,
            container_tag,
            mode=search_mode,
            limit=limit,
            rerank=rerank,
            rewrite=True,
            max_tokens=budget_tokens,
        ),
    )
    answer: SearchResult = {
        "pinned": recalled.pinned,
        "query": query,
        "search_mode": search_mode,
        "results": [hit.result for hit in recalled.hits],
        "steps": recalled.steps,
        "tokens": recalled.tokens,
        "left_out": recalled.left_out,
    }
    if not recalled.pinned:
        del answer["pinned"]
    if recalled.degraded:
        answer["degraded"] = recalled.degraded
    return as_json(answer)


TOOLS: Final = (
    _GRAPH_TOOLS["create_entities"],
    _GRAPH_TOOLS["add_observations"],
    _GRAPH_TOOLS["create_relations"],
    replace(_GRAPH_TOOLS["search_nodes"], run=_search_nodes),
    semantic_search,
    _GRAPH_TOOLS["read_graph"],
    ingest_url,
    ingest_text,
    get_user_profile,
    list_memories,
    superrag_search,
)
