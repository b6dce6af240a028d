"""Remembrances' routes over HTTP: their paths, bodies and codes as it has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from simplemem.errors import NotFound
from simplemem.profiles.remembrances import tools
from simplemem.profiles.route import CompatibilityRoute

if TYPE_CHECKING:
    from simplemem.features.documents.document import Document
    from simplemem.features.fact import Fact
    from simplemem.store import EnhancedStore


def find_memory(store: EnhancedStore, memory_id: str, user: str) -> Fact | Document:
    """Return the fact or document with an id, of this user or, if the user is "", of any.

    If several users have the id, return the memory whose note is oldest in the history. Raise
    NotFound if no memory has the id. Raise Invalid if the user is not valid or the id is that of
    one passage of several, and Unreadable if the note cannot be changed.
    """
    from simplemem.features.documents.memories import memory_service
    from simplemem.features.documents.service import document_service
    from simplemem.features.facts.service import fact_service

    memories_of_store = memory_service(store)
    if user:
        return memories_of_store.find(memory_id, user)

    facts = fact_service(store).facts(None, expired=True)
    memories: list[Fact | Document] = [fact for fact in facts if fact.id == memory_id]
    memories += [
        document
        for document in document_service(store).documents(None)
        if document.is_named_by(memory_id)
    ]
    if not memories:
        raise NotFound(f"there is no memory {memory_id[:80]!r}")

    # An id is frontmatter, which another user may have copied into a later note.
    oldest = min(memories, key=lambda memory: store.extension.first_version(memory.path))
    return memories_of_store.find(memory_id, oldest.scope)


ROUTES: Final[Mapping[str, CompatibilityRoute]] = {
    "POST /api/v1/memory": CompatibilityRoute(
        tool=tools.add_memory,
        status=202,
        status_text="memory received for processing",
    ),
    "POST /api/v1/memory/search": CompatibilityRoute(
        tool=tools.search_memory,
        status=200,
        text_field="results",
    ),
    "PUT /api/v1/memory/{id}": CompatibilityRoute(
        tool=tools.update_memory,
        status=200,
        status_text="memory updated",
        fields=(),
        find_note=find_memory,
        id_argument="memory_id",
        sends_etag=True,
    ),
    "DELETE /api/v1/memory/{id}": CompatibilityRoute(
        tool=tools.delete_memory,
        status=204,
        find_note=find_memory,
        id_argument="memory_id",
    ),
    "POST /api/v1/kb/query": CompatibilityRoute(
        tool=tools.query_knowledge_base,
        status=200,
        needs_knowledge_base=True,
    ),
    "PUT /api/v1/kb/document": CompatibilityRoute(
        tool=tools.update_knowledge_base,
        status=202,
        status_text="document update accepted",
        needs_knowledge_base=True,
    ),
}
