"""Facts as rows, as lists of memories show them."""

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
    """Return facts as rows, in their order, with the ids of what they link to.

    A field of a link that is empty, or leads to a note of another user or to no fact or document,
    is None.
    """
    linked_ids = _linked_ids(document_service(store), facts)
    current_time = now()
    return [_row(fact, linked_ids, current_time) for fact in facts]


def _linked_ids(
    documents: DocumentService,
    facts: Sequence[Fact],
) -> Mapping[tuple[Fact, str], str | None]:
    """Return, by each fact and link, the id of the fact or document that the link leads to.

    The id is None if the fact's user has no such fact or document.
    """
    facts_and_links = [(fact, link) for fact in facts for link in _links_of(fact)]
    links = [(link, fact.path) for fact, link in facts_and_links]
    paths = documents.extension.resolve_links(links)

    ids: dict[tuple[str, str], str] = {}
    for fact in documents.facts.facts(None, expired=True):
        ids[fact.scope, fact.path] = fact.id
    for document in documents.documents(None):
        ids[document.scope, document.path] = document.id

    linked_ids: dict[tuple[Fact, str], str | None] = {}
    for (fact, link), path in zip(facts_and_links, paths, strict=True):
        linked_ids[fact, link] = ids.get((fact.scope, path or ""))
    return linked_ids


def _links_of(fact: Fact) -> list[str]:
    """Return the links of a fact without empty ones, which would mean the fact's own note."""
    links = [
        fact.source,
        fact.updates,
        fact.extends,
        fact.superseded_by,
        fact.disputed_by,
        *fact.derived_from,
    ]
    return [link for link in links if link]


def _row(
    fact: Fact,
    linked_ids: Mapping[tuple[Fact, str], str | None],
    current_time: datetime,
) -> MemoryRow:
    """Return a fact as a row. `linked_ids` is what `_linked_ids` returns."""

    def id_of(link: str) -> str | None:
        return linked_ids.get((fact, link))

    parent_ids = [id_of(link) for link in fact.derived_from]
    valid_from = _format(fact.valid_from)
    status = decay.status_at(fact, current_time)
    row: MemoryRow = {
        "id": fact.id,
        "memory": fact.statement,
        "memory_type": fact.memory_type,
        "container_tag": fact.scope,
        "is_latest": status == "active",
        "confidence": round(decay.displayed_confidence(fact, current_time), 4),
        "base_confidence": fact.confidence,
        "valid_from": valid_from,
        "valid_to": _format(fact.valid_to),
        "forgotten_at": _format(decay.forgotten_at(fact)),
        "source_doc_id": id_of(fact.source),
        "updates": id_of(fact.updates),
        "extends": id_of(fact.extends),
        "derived_from": [parent_id for parent_id in parent_ids if parent_id],
        "superseded_by": id_of(fact.superseded_by),
        "status": status,
        "disputed": None,
        "disputed_by": None,
        "created_at": fact.created or valid_from or "",
        "name": name_of(fact.path),
    }
    if fact.is_disputed:
        row["disputed"] = _format(fact.disputed)
        row["disputed_by"] = id_of(fact.disputed_by)
    return row


def _format(moment: datetime | None) -> str | None:
    """Return a time as answers show it, None for None."""
    if moment is None:
        return None
    return format_moment(moment)
