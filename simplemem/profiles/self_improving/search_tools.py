"""The tool that searches entries and entities together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from simplemem.features.lessons.note_search import with_falling_scores
from simplemem.features.services import KnowledgeGraph, LessonService
from simplemem.profiles.self_improving.adapter import ADAPTER, Limit, Query
from simplemem.profiles.self_improving.graph_tools import find_entities
from simplemem.tools import render
from simplemem.tools.tool import Data, Reply, Tool, tool

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MIN_SCORE_SHARE: Final = 0.35  # of the best score; a lower hit answers another question


class FoundTogether(TypedDict):
    """Entries and entities with their scores, how they were found, and why that was degraded."""

    results: list[Data]
    method: str
    degraded: str


@tool("Search everything", adapter=ADAPTER)
def search_all_knowledge(
    store: EnhancedStore,
    lessons: LessonService,
    graph: KnowledgeGraph,
    query: Query,
    limit: Limit = 10,
) -> Reply[FoundTogether]:
    """Find entries and entities together, best first; `kind` says which each is."""
    entry_hits, method, degraded = lessons.search(query, limit=limit)
    entity_hits = find_entities(store, graph, query, limit)

    rows: list[Data] = []
    entries = lessons.describe([lesson for lesson, _ in entry_hits])
    for fields, (_, hit) in zip(entries, entry_hits, strict=True):
        rows.append({"kind": "entry"} | fields | {"score": hit.score})
    for entity, hit in with_falling_scores(entity_hits.hits):
        rows.append({"kind": "entity"} | entity.as_dict() | {"score": hit.score})

    results = _best_rows(rows, limit)
    lessons.record_reads([row["id"] for row in results if row["kind"] == "entry"])
    data: FoundTogether = {
        "results": results,
        "method": method if entry_hits else entity_hits.method,
        "degraded": _reason(
            degraded if entry_hits else None, entity_hits.degraded if entity_hits.hits else None
        ),
    }
    return Reply(render.pretty(results), data)


def _reason(*reasons: str | None) -> str:
    """Return why a search was degraded; "" if one of its parts was not.

    Each part has its reason, "" if it was not degraded, and None if it found nothing.
    """
    found = [reason for reason in reasons if reason is not None]
    return found[0] if found and all(found) else ""


def _best_rows(rows: list[Data], limit: int) -> list[Data]:
    """Return the rows with the highest scores, best first, without those that are much weaker."""
    rows = sorted(rows, key=lambda row: -float(row["score"]))[:limit]
    if not rows:
        return []
    min_score = _MIN_SCORE_SHARE * float(rows[0]["score"])
    return [row for row in rows if row["score"] >= min_score]


TOGETHER: tuple[Tool, ...] = (search_all_knowledge,)
