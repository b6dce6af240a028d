"""The services of features, as types of the parameters of tools.

A tool with a parameter of one of these types gets the service of its store. The module of a service
is imported in a call of such a tool, not to list the tools: these names are the classes for a type
checker only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Annotated, Any

if TYPE_CHECKING:
    from simplemem.features.conversations.service import ConversationService
    from simplemem.features.documents.knowledge_base import KnowledgeBase
    from simplemem.features.documents.memories import MemoryService
    from simplemem.features.documents.service import DocumentService
    from simplemem.features.facts.service import FactService
    from simplemem.features.graph.service import KnowledgeGraph
    from simplemem.features.lessons.service import LessonService
    from simplemem.features.review.service import ReviewService
    from simplemem.store import EnhancedStore

__all__ = (
    "ConversationService",
    "DocumentService",
    "FactService",
    "KnowledgeBase",
    "KnowledgeGraph",
    "LessonService",
    "MemoryService",
    "ReviewService",
    "ServiceOf",
)


@dataclass(frozen=True, slots=True)
class ServiceOf:
    """Annotates a parameter that gets a service: `factory` is "module:function" of its store."""

    factory: str

    def of(self, store: EnhancedStore) -> object:
        """Return the service of a store. Imports its module."""
        return resolve_name(self.factory)(store)


if not TYPE_CHECKING:

    def _service(factory: str) -> Any:
        """Return the type of a parameter that gets the service of a feature."""
        return Annotated[Any, ServiceOf(f"simplemem.features.{factory}")]

    ConversationService = _service("conversations.service:conversation_service")
    DocumentService = _service("documents.service:document_service")
    FactService = _service("facts.service:fact_service")
    KnowledgeBase = _service("documents.knowledge_base:knowledge_base_of")
    KnowledgeGraph = _service("graph.service:graph_of")
    LessonService = _service("lessons.service:lesson_service")
    MemoryService = _service("documents.memories:memory_service")
    ReviewService = _service("review.service:review_of")
