"""The profile of Remembrances: four tools for what a user told, and two for a folder of documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NotRequired, TypedDict, cast

from pydantic import Field

from simplemem.errors import Conflict
from simplemem.features.answers import Edge, Passage, RecallResult, RememberResult, SavedDocument
from simplemem.note.names import name_of
from simplemem.tools import render
from simplemem.tools.arguments import Object, about, also
from simplemem.tools.session import Session, replaced_and_undo
from simplemem.tools.tool import Caller, Reply, tool

if TYPE_CHECKING:
    from simplemem.features.documents.hits import Hit
    from simplemem.features.documents.knowledge_base import KnowledgeBase
    from simplemem.features.documents.service import DocumentService
    from simplemem.store import EnhancedStore

_LINE: Final = 4_000  # characters of a passage in a text
_ASKED_FOR: Final = 0.5  # of a score: a slot below it is near, and no fact that was asked for
User = Annotated[
    str, about("the user it belongs to"), also("user_id", "user", "container_tag", "scope")
]
Query = Annotated[str, about("a question in plain words")]
Limit = Annotated[int, Field(ge=1, le=1000)]
Words = Annotated[str, about("the new text")]
MemoryId = Annotated[
    str, about("id from add_memory or search_memory; a passage's id means its whole text")
]
More = Annotated[Object, about("frontmatter for the note of a long text")]
Known = TypedDict("Known", {
    "id": str, "key": str, "value": str, "memory": str, "confidence": float, "valid_from": str | None,
    "disputed": NotRequired[str],
})  # fmt: skip
Said = TypedDict("Said", {
    "id": str, "kind": str, "memory": str, "score": float, "source": str, "disputed": NotRequired[str],
    "outdated": NotRequired[str],
})  # fmt: skip
Found = TypedDict("Found", {
    "query": str, "answer": str | None, "synthesis": str, "facts": list[Known], "memories": list[Said],
    "graph": list[Edge], "degraded": str,
})  # fmt: skip
Updated = TypedDict("Updated", {"id": str, "sha256": str, "notice": NotRequired[str]})
Deleted = TypedDict("Deleted", {"id": str, "version": str})
Passages = TypedDict("Passages", {"results": list[Passage], "notice": NotRequired[str]})


@tool("Add a memory", writes=True)
def add_memory(
    documents: DocumentService,
    caller: Caller,
    content: Annotated[str, about("what to remember, word for word")],
    user_id: User,
    metadata: More = {},  # noqa: B006
) -> Reply[RememberResult]:
    """Remember what the user said: a few facts, or a long text. Facts that no longer hold are replaced and kept as
    history."""
    made = documents.add_memory(content, user_id, metadata, **caller)
    lines = list[str]()
    for e in made["events"]:
        lines.append(
            f"- {e['event']} {e['relation'] or ''}: {render.line(e['memory'])} ({e['id']})"
        )
        lines += [
            f"  Disputed now: {render.line(old['memory'])} ({old['id']})"
            for old in e.get("disputes", [])
        ]
    near = [
        render.line(each["memory"])
        for review in made["needs_review"]
        for each in review["candidates"]
    ]
    lines += [f"Similar: {'; '.join(near)}"] if near else []
    if made["document"]:
        lines.append(f"- stored in full as {made['document']}")
    is_known = all(each["event"] == "NOOP" for each in made["events"])
    head = (
        "Memory added successfully."
        if made["document"] or not is_known
        else "Known already."
        if lines
        else ""
    )
    return Reply(render.answer(head, "\n".join(lines), *made["warnings"]), made)


def _facts_of(hits: Sequence[Hit]) -> list[Known]:
    """Return the statements that fill the slot which was asked for, each disputed one behind what disputes it."""
    by_id = {hit.result["id"]: hit for hit in hits}
    facts = list[Known]()
    for hit in hits:
        if hit.fact is None or hit.fact.slot is None or hit.rank <= _ASKED_FOR:
            continue
        slot = hit.fact.slot
        key = " ".join(filter(None, slot[:2]))
        later = by_id.get(hit.result.get("disputed_by", ""))
        if later is not None and later.fact is not None and later.fact.slot is None:
            facts.append(_fact_of(later.result, key, later.result["text"]))
        facts.append(_fact_of(hit.result, key, slot.object))
    return facts


def _fact_of(result: RecallResult, key: str, value: str) -> Known:
    fact: Any = {"id": result["id"], "key": key, "value": value, "memory": result["text"]}
    fact |= {"confidence": result.get("confidence"), "valid_from": result.get("valid_from")}
    return cast("Known", fact | _marks_of(result))


def _memory_of(result: RecallResult) -> Said:
    memory: Any = {"id": result["id"], "kind": result["kind"], "memory": result["text"]}
    memory |= {"score": result["score"], "source": result["source"]["name"]}
    return cast("Said", memory | _marks_of(result))


def _marks_of(result: RecallResult) -> dict[str, Any]:
    """Return since when a statement is in doubt, or a passage outdated."""
    marks = {"disputed": result.get("disputed"), "outdated": result.get("outdated")}
    return {name: since for name, since in marks.items() if since}


def _mark(row: Mapping[str, Any]) -> str:
    """Return the words that tell of the marks of a row, behind it on its line."""
    marks = [f"{name} since {row[name][:10]}" for name in ("disputed", "outdated") if name in row]
    return f" [{', '.join(marks)}]" if marks else ""


@tool("Search the memories of a user")
def search_memory(
    store: EnhancedStore, documents: DocumentService, query: Query, user_id: User, limit: Limit = 10
) -> Reply[Found]:
    """Find what is known about a user: facts, passages of documents, and relations between names."""
    from simplemem.features.documents.recall import RecallRequest, recall, write_answer

    found = recall(store, RecallRequest(query, user_id, limit=limit))
    said, synthesis, why = write_answer(documents, query, found)
    facts = _facts_of(found.hits)
    memories = [_memory_of(hit.result) for hit in found.hits]
    sections = {
        "Facts": (f"{e['key']}: {e['value']} ({e['memory']}){_mark(e)}" for e in facts),
        "Memories": (f"{e['memory']} ({e['id']}){_mark(e)}" for e in memories),
        "Graph": (f"{e['from']} -{e['relation']}-> {e['to']}" for e in found.edges),
    }
    listed = {
        title: [f"- {render.line(each, _LINE)}" for each in lines]
        for title, lines in sections.items()
    }
    shown = "\n\n".join(
        "\n".join([f"# {title}", *(lines or ["- none"])]) for title, lines in listed.items()
    )
    data: Found = {
        "query": query, "answer": said, "synthesis": synthesis, "facts": facts, "memories": memories,
        "graph": found.edges, "degraded": " ".join(filter(None, (found.degraded, why))),
    }  # fmt: skip
    return Reply(render.answer(said or "", shown, data["degraded"]), data)


@tool("Change a memory", writes=True, destructive=True)
def update_memory(
    store: EnhancedStore,
    documents: DocumentService,
    caller: Caller,
    memory_id: MemoryId,
    content: Words,
    user_id: User,
) -> Reply[Updated]:
    """Replace the text of a memory. Its id stays, and the history keeps the old text."""
    memory, step = documents.update_memory(memory_id, content, user_id, **caller)
    text = "Memory updated successfully."
    if memory.id != memory_id:
        text += (
            f" The new text replaces the whole text of {memory.id}; its history keeps the old one."
        )
    data: Updated = {"id": memory.id, "sha256": memory.sha256}
    written = step.written[0] if step.written else None
    if written is not None and written.changed and written.previous_sha256 is not None:
        name = name_of(memory.path)
        data["notice"] = replaced_and_undo(store, name, written.previous_sha256, written.version)
    return Reply(text, data)


@tool("Delete a memory", writes=True, destructive=True, deletes=True)
def delete_memory(
    documents: DocumentService, caller: Caller, memory_id: MemoryId, user_id: User
) -> Reply[Deleted]:
    """Delete a memory; it moves to the trash."""
    memory, step = documents.delete_memory(memory_id, user_id, **caller)
    return Reply(
        "Memory deleted successfully.", {"id": memory.id, "version": step.written[0].version}
    )


@tool("Search the knowledge base")
def query_knowledge_base(base: KnowledgeBase, query: Query, limit: Limit = 5) -> Reply[Passages]:
    """Find passages in the documents of the knowledge base."""
    rows, notice = base.query(query, limit)
    shown = "\n\n".join(f"{each['source']}:{each['line']}\n{each['content']}" for each in rows)
    data: Passages = {"results": rows}
    if notice:
        data["notice"] = notice
    return Reply(render.answer(notice if rows else "Nothing found.", shown), data)


@tool("Write to the knowledge base", writes=True, destructive=True)
def update_knowledge_base(
    base: KnowledgeBase,
    caller: Caller,
    session: Session,
    file_path: Annotated[str, about("path inside the knowledge base, ending in .md")],
    content: Annotated[str, about("the whole document")],
) -> Reply[SavedDocument]:
    """Create or replace a document of the knowledge base."""
    place = base.unique_path(file_path)
    known = session.known_hash(place)
    try:
        change = base.update(file_path, content, known, **caller)
    except Conflict as error:
        session.record_hash(
            place, error.details["current_sha256"]
        )  # it is known now that there is another text
        raise
    session.record_hash(place, change.sha256)

    data: SavedDocument = {
        "file_path": file_path,
        "sha256": change.sha256,
        "created": change.is_new,
    }
    if known is None and change.replaced is not None:
        where = " in the folder of the knowledge base" if base.has_own_store else ""
        data["notice"] = replaced_and_undo(
            base.note_store, base.note_name(file_path), change.replaced, change.version, where
        )
    return Reply(render.answer("Document updated.", "", data.get("notice", "")), data)


TOOLS: Final = (add_memory, search_memory, update_memory, delete_memory)
KNOWLEDGE_BASE: Final = (query_knowledge_base, update_knowledge_base)
