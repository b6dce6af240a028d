"""The tools of the profile remembrances: four for facts of users, two for a folder of documents.

`routes.py` serves the same tools over HTTP.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, TypedDict

from pydantic import Field

from simplemem.errors import Conflict
from simplemem.features.answers import (
    Edge,
    FactEvent,
    Passage,
    PinnedNote,
    RecallResult,
    RememberResult,
    SavedDocument,
)
from simplemem.features.services import DocumentService, KnowledgeBase, MemoryService
from simplemem.note.names import name_of
from simplemem.tools import render
from simplemem.tools.arguments import Object, about, aliases, names_user
from simplemem.tools.session import Session, replaced_and_undo
from simplemem.tools.statements import (
    ConstraintsIn,
    FactsIn,
    PreferencesIn,
    UserNameIn,
    statements_of,
)
from simplemem.tools.tool import Caller, Reply, tool

if TYPE_CHECKING:
    from simplemem.features.documents.hits import Hit
    from simplemem.features.documents.knowledge_base import WrittenFile
    from simplemem.features.fact import Slot
    from simplemem.store import EnhancedStore

_MAX_LINE: Final = 4_000  # characters of a fact or passage in the text of an answer
_MIN_RANK_OF_ANSWER: Final = 0.5  # a fact up to this rank is similar, and answers no question

User = Annotated[
    str,
    about("the user it belongs to"),
    aliases("user_id", "user", "container_tag", "scope"),
    names_user(),
]
Query = Annotated[str, about("a question in plain words")]
Limit = Annotated[int, Field(ge=1, le=1000)]
NewText = Annotated[str, about("the new text")]
MemoryId = Annotated[
    str,
    about("id from add_memory or search_memory; a passage's id means its whole text"),
]
Metadata = Annotated[Object, about("frontmatter for the note of a long text")]


# The types of answers have no docstrings, since those would become descriptions in the schemas.


class FactRow(TypedDict):
    id: str
    key: str
    value: str
    memory: str
    confidence: float
    valid_from: str | None
    valid_to: NotRequired[str]
    disputed: NotRequired[str]


class HitRow(TypedDict):
    id: str
    kind: str
    memory: str
    score: float
    source: str
    disputed: NotRequired[str]
    outdated: NotRequired[str]


class SearchResult(TypedDict):
    pinned: NotRequired[list[PinnedNote]]
    query: str
    answer: str | None
    synthesis: str  # who wrote the answer: the name of the chat model, or "none"
    facts: list[FactRow]
    memories: list[HitRow]
    graph: list[Edge]
    degraded: str


class Updated(TypedDict):
    id: str
    sha256: str
    notice: NotRequired[str]


class Deleted(TypedDict):
    id: str
    version: str


class Passages(TypedDict):
    results: list[Passage]
    notice: NotRequired[str]


@tool("Add a memory", writes=True)
def add_memory(
    memories: MemoryService,
    caller: Caller,
    content: Annotated[str, about("what to remember, word for word")],
    user_id: User,
    metadata: Metadata = {},  # noqa: B006
    facts: FactsIn = [],  # noqa: B006
    constraints: ConstraintsIn = [],  # noqa: B006
    preferences: PreferencesIn = [],  # noqa: B006
    user_name: UserNameIn = "",
) -> Reply[RememberResult]:
    """Remember what the user said: a few facts, or a long text. Facts that no longer hold are
    replaced and kept as history. Pass what you understood in facts; if the answer says "This may
    replace", confirm with replaces."""
    stated = statements_of(facts, constraints, preferences, user_name)
    remembered = memories.add(content, user_id, metadata, stated, **caller)
    document_id = remembered["document"]

    lines = _event_lines(remembered["events"])
    lines += [render.line(review["hint"], _MAX_LINE) for review in remembered["needs_review"]]
    if document_id:
        lines.append(f"- stored in full as {document_id}")

    head = ""
    has_changed = any(event["event"] != "NOOP" for event in remembered["events"])
    if document_id or has_changed:
        head = "Memory added successfully."
    elif lines:
        head = "Known already."
    text = render.answer(head, "\n".join(lines), *remembered["warnings"])
    return Reply(text, remembered)


def _event_lines(events: Iterable[FactEvent]) -> list[str]:
    """Return one line per event, each followed by a line for each fact that it disputes."""
    lines: list[str] = []
    for event in events:
        memory = render.line(event["memory"])
        relation = event["relation"] or ""
        lines.append(f"- {event['event']} {relation}: {memory} ({event['id']})")
        for disputed in event.get("disputes", []):
            memory = render.line(disputed["memory"])
            lines.append(f"  Disputed now: {memory} ({disputed['id']})")
    return lines


@tool("Search the memories of a user")
def search_memory(
    store: EnhancedStore,
    documents: DocumentService,
    query: Query,
    user_id: User,
    limit: Limit = 10,
) -> Reply[SearchResult]:
    """Find what is known about a user: facts, passages of documents, and relations between
    names."""
    from simplemem.features.documents.answering import write_answer
    from simplemem.features.documents.recall import RecallRequest, recall

    recalled = recall(store, RecallRequest(query, user_id, limit=limit))
    written = write_answer(documents, query, recalled.hits)

    notices = [notice for notice in (recalled.degraded, written.reason) if notice]
    result: SearchResult = {
        "pinned": recalled.pinned,
        "query": query,
        "answer": written.answer,
        "synthesis": written.method,
        "facts": _fact_rows(recalled.hits),
        "memories": [_memory_row(hit.result) for hit in recalled.hits],
        "graph": recalled.edges,
        "degraded": " ".join(notices),
    }
    if not recalled.pinned:
        del result["pinned"]
    head = written.answer or ""
    text = render.answer(head, _render_sections(result), result["degraded"])
    return Reply(text, result)


def _fact_rows(hits: Sequence[Hit]) -> list[FactRow]:
    """Return the facts among the hits whose slot answers the question, in their order.

    Before each disputed one comes the fact that disputes it, if that has no slot of its own.
    """
    facts_by_id = {hit.result["id"]: hit for hit in hits if hit.fact is not None}
    rows: list[FactRow] = []
    for hit in hits:
        slot = _slot_of(hit)
        if slot is None or hit.rank <= _MIN_RANK_OF_ANSWER:
            continue
        key = slot.relation
        if slot.subject:
            key = f"{slot.subject} {slot.relation}"

        disputing_id = hit.result.get("disputed_by", "")
        disputing = facts_by_id.get(disputing_id)
        if disputing is not None and _slot_of(disputing) is None:
            rows.append(_fact_row(disputing.result, key, disputing.result["text"]))
        rows.append(_fact_row(hit.result, key, slot.object))
    return rows


def _slot_of(hit: Hit) -> Slot | None:
    """Return the slot of the fact that a hit is, None if it is no fact or has no slot."""
    if hit.fact is None:
        return None
    return hit.fact.slot


def _fact_row(result: RecallResult, key: str, value: str) -> FactRow:
    """Return the result for a fact as a row of `facts`, with this key and value."""
    row: Any = {
        "id": result["id"],
        "key": key,
        "value": value,
        "memory": result["text"],
        "confidence": result.get("confidence"),
        "valid_from": result.get("valid_from"),
    }
    if result.get("valid_to"):
        row["valid_to"] = result["valid_to"]
    row.update(_marks_of(result))
    fact_row: FactRow = row
    return fact_row


def _memory_row(result: RecallResult) -> HitRow:
    """Return the result for a hit of any kind as a row of `memories`."""
    row: Any = {
        "id": result["id"],
        "kind": result["kind"],
        "memory": result["text"],
        "score": result["score"],
        "source": result["source"]["name"],
    }
    row.update(_marks_of(result))
    memory_row: HitRow = row
    return memory_row


def _marks_of(result: RecallResult) -> dict[str, str]:
    """Return since when a result is `disputed` and `outdated`.

    A key that does not apply is left out.
    """
    marks: dict[str, str] = {}
    if result.get("disputed"):
        marks["disputed"] = result["disputed"]
    if result.get("outdated"):
        marks["outdated"] = result["outdated"]
    return marks


def _render_sections(result: SearchResult) -> str:
    """Return the rows of a search as three Markdown lists: facts, memories and relations.

    Before them comes a list of the user's constraints and pinned notes, if there are any.
    """
    fact_lines: list[str] = []
    for fact in result["facts"]:
        mark = _mark_suffix(fact)
        fact_lines.append(f"{fact['key']}: {fact['value']} ({fact['memory']}){mark}")

    memory_lines: list[str] = []
    for memory in result["memories"]:
        mark = _mark_suffix(memory)
        memory_lines.append(f"{memory['memory']} ({memory['id']}){mark}")

    edge_lines = [f"{edge['from']} -{edge['relation']}-> {edge['to']}" for edge in result["graph"]]

    sections = [
        _render_section("Facts", fact_lines),
        _render_section("Memories", memory_lines),
        _render_section("Graph", edge_lines),
    ]
    pinned = result.get("pinned", [])
    if pinned:
        lines = [f"{row['text']} ({row['name']})" for row in pinned]
        sections.insert(0, _render_section("Constraints and pinned notes", lines))
    return "\n\n".join(sections)


def _render_section(title: str, lines: Sequence[str]) -> str:
    """Return lines as a Markdown list below a heading, with "- none" if there are no lines.

    A line of more than 4,000 characters is shortened.
    """
    items = [f"- {render.line(line, _MAX_LINE)}" for line in lines]
    return "\n".join([f"# {title}", *(items or ["- none"])])


def _mark_suffix(row: Mapping[str, Any]) -> str:
    """Return what the line of a row ends with: " [disputed since 2026-01-24]", or "".

    `row` is a row of facts or of memories.
    """
    marks: list[str] = []
    for mark in ("disputed", "outdated"):
        if mark in row:
            day = row[mark][:10]
            marks.append(f"{mark} since {day}")
    if not marks:
        return ""
    return f" [{', '.join(marks)}]"


@tool(
    "Change a memory",
    writes=True,
    destructive=True,
    phrases={
        "update": "Use {call} to change it;",
        "update_instead": "Read the note, and change it with {call}.",
    },
)
def update_memory(
    store: EnhancedStore,
    memories: MemoryService,
    caller: Caller,
    memory_id: MemoryId,
    content: NewText,
    user_id: User,
) -> Reply[Updated]:
    """Replace the text of a memory. Its id stays, and the history keeps the old text."""
    memory, step = memories.update(memory_id, content, user_id, **caller)

    text = "Memory updated successfully."
    if memory.id != memory_id:
        text += (
            f" The new text replaces the whole text of {memory.id}; its history keeps the old one."
        )

    updated: Updated = {"id": memory.id, "sha256": memory.sha256}
    written = step.written[0] if step.written else None
    if written is not None and written.changed and written.previous_sha256 is not None:
        updated["notice"] = replaced_and_undo(
            store,
            name_of(memory.path),
            written.previous_sha256,
            written.version,
        )
    return Reply(text, updated)


@tool(
    "Delete a memory",
    writes=True,
    destructive=True,
    deletes=True,
    phrases={"delete": "{call} deletes it;"},
)
def delete_memory(
    memories: MemoryService, caller: Caller, memory_id: MemoryId, user_id: User
) -> Reply[Deleted]:
    """Delete a memory; it moves to the trash."""
    memory, step = memories.delete(memory_id, user_id, **caller)
    deleted: Deleted = {
        "id": memory.id,
        "version": step.written[0].version,
    }
    return Reply("Memory deleted successfully.", deleted)


@tool("Search the knowledge base")
def query_knowledge_base(base: KnowledgeBase, query: Query, limit: Limit = 5) -> Reply[Passages]:
    """Find passages in the documents of the knowledge base."""
    passages, notice = base.query(query, limit)
    blocks = [
        f"{passage['source']}:{passage['line']}\n{passage['content']}" for passage in passages
    ]

    answer: Passages = {"results": passages}
    if notice:
        answer["notice"] = notice
    head = notice if passages else "Nothing found."
    return Reply(render.answer(head, "\n\n".join(blocks)), answer)


@tool("Write to the knowledge base", writes=True, destructive=True)
def update_knowledge_base(
    base: KnowledgeBase,
    caller: Caller,
    session: Session,
    file_path: Annotated[str, about("path inside the knowledge base, ending in .md")],
    content: Annotated[str, about("the whole document")],
) -> Reply[SavedDocument]:
    """Create or replace a document of the knowledge base."""
    session_key = base.unique_path(file_path)
    read_hash = session.known_hash(session_key)
    try:
        written = base.update(file_path, content, read_hash, **caller)
    except Conflict as error:
        # The client now knows that there is another text, so its next call may replace that.
        session.record_hash(session_key, error.details["current_sha256"])
        raise
    session.record_hash(session_key, written.sha256)

    answer: SavedDocument = {
        "file_path": file_path,
        "sha256": written.sha256,
        "created": written.is_new,
    }
    notice = ""
    if read_hash is None and written.replaced is not None:
        notice = _notice_of_replaced(base, file_path, written, written.replaced)
        answer["notice"] = notice
    return Reply(render.answer("Document updated.", "", notice), answer)


def _notice_of_replaced(
    base: KnowledgeBase,
    file_path: str,
    written: WrittenFile,
    replaced: str,
) -> str:
    """Return a sentence that a write replaced a text that the client had not read.

    It also says how to undo the write. `file_path` is the path in the knowledge base, and
    `replaced` is the hash of the text that the file had before.
    """
    where = " in the folder of the knowledge base" if base.has_own_store else ""
    return replaced_and_undo(
        base.note_store,
        base.note_name(file_path),
        replaced,
        written.version,
        where,
    )


TOOLS: Final = (add_memory, search_memory, update_memory, delete_memory)
KNOWLEDGE_BASE: Final = (query_knowledge_base, update_knowledge_base)
