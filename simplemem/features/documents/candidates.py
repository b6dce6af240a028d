"""What may answer a question: the facts, entities and documents of a user, or of all users."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from simplemem.features.documents.document import Document
from simplemem.features.documents.service import document_service
from simplemem.features.fact import Fact
from simplemem.features.graph.service import graph_of
from simplemem.features.graph.values import Entity, Graph

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


@dataclass(frozen=True)
class Candidates:
    """What may answer a question: notes by their paths, and the graph with its relations."""

    documents: dict[str, Document]
    facts: dict[str, Fact] = field(default_factory=dict)
    entities: dict[str, Entity] = field(default_factory=dict)
    graph: Graph = field(default_factory=Graph)


def load_candidates(
    store: EnhancedStore,
    scope: str | None,
    *,
    mode: str,
    memory_types: Collection[str],
    include_expired: bool,
) -> Candidates:
    """Return what a mode admits, of one user or, if `scope` is None, of all.

    The modes are those of `RecallRequest`: without facts, entities and graph for "rag". Documents
    are returned in every mode, because facts name them as their sources. Without `memory_types`,
    facts of all types are admitted; facts that are not current only with `include_expired`.
    """
    service = document_service(store)
    documents = {document.path: document for document in service.documents(scope)}
    if mode == "rag":
        return Candidates(documents)

    facts: dict[str, Fact] = {}
    for fact in service.facts.facts(scope, expired=include_expired):
        if not memory_types or fact.memory_type in memory_types:
            facts[fact.path] = fact

    graph = graph_of(store).read(scope)
    entities = {entity.path: entity for entity in graph.entities if not entity.is_note}
    return Candidates(documents, facts, entities, graph)
