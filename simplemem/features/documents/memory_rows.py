"""Facts as lists of memories show them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from simplemem.features.answers import MemoryRow
from simplemem.features.documents.service import DocumentService, document_service
from simplemem.features.fact import Fact
from simplemem.features.facts import decay
from simplemem.note.dates import format_moment, now
from simplemem.note.names import name_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


def memory_rows(store: EnhancedStore, facts: Sequence[Fact]) -> list[MemoryRow]:
    """Return facts as rows, with the ids of the facts and documents that they link to."""
    linked_ids = _linked_ids(document_service(store), facts)
    moment = now()
    return [_row(fact, linked_ids, moment) for fact in facts]


def _linked_ids(
    documents: DocumentService, facts: Sequence[Fact]
) -> Mapping[tuple[Fact, str], str | None]:
    """Return the id for each link of each fact, None if the fact's user has no such note."""
    links = [(fact, link) for fact in facts for link in _links_of(fact)]
    paths = documents.extension.resolve_links([(link, fact.path) for fact, link in links])

    ids = dict[tuple[str, str], str]()
    for fact in documents.facts.facts(None, expired=True):
        ids[fact.scope, fact.path] = fact.id
    for document in documents.documents(None):
        ids[document.scope, document.path] = document.id

    return {
        (fact, link): ids.get((fact.scope, path or ""))
        for (fact, link), path in zip(links, paths, strict=True)
    }


def _links_of(fact: Fact) -> list[str]:
    """Return the links of a fact without empty ones, which would mean the fact's own note."""
    links = [fact.source, fact.updates, fact.extends, fact.superseded_by, fact.disputed_by]
    links += fact.derived_from
    return [link for link in links if link]


def _row(
    fact: Fact, linked_ids: Mapping[tuple[Fact, str], str | None], moment: datetime
) -> MemoryRow:
    def id_of(link: str) -> str | None:
        return linked_ids.get((fact, link))

    derived_from = [id_of(link) for link in fact.derived_from]
    valid_from = _formatted(fact.valid_from)
    row: MemoryRow = {
        "id": fact.id,
        "memory": fact.statement,
        "memory_type": fact.memory_type,
        "container_tag": fact.scope,
        "is_latest": fact.status == "active",
        "confidence": round(decay.displayed_confidence(fact, moment), 4),
        "base_confidence": fact.confidence,
        "valid_from": valid_from,
        "valid_to": _formatted(fact.valid_to),
        "forgotten_at": _formatted(decay.forgotten_at(fact)),
        "source_doc_id": id_of(fact.source),
        "updates": id_of(fact.updates),
        "extends": id_of(fact.extends),
        "derived_from": [id_ for id_ in derived_from if id_],
        "superseded_by": id_of(fact.superseded_by),
        "status": fact.status,
        "disputed": None,
        "disputed_by": None,
        "created_at": fact.created or valid_from or "",
        "name": name_of(fact.path),
    }
    if fact.is_disputed:
        row["disputed"] = _formatted(fact.disputed)
        row["disputed_by"] = id_of(fact.disputed_by)
    return row


def _formatted(moment: datetime | None) -> str | None:
    return format_moment(moment) if moment else None
