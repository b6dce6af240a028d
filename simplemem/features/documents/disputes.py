"""Put both sides of each dispute among the hits of a recall.

A dispute has two facts: an earlier one, and a later one that says that it changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from simplemem.features.documents.document import Document
from simplemem.features.documents.hits import (
    Hit,
    Score,
    fact_hits,
    raise_scores,
    sort_by_rank,
)
from simplemem.features.documents.service import DocumentService
from simplemem.features.fact import Fact


def with_both_sides(
    service: DocumentService,
    hits: Sequence[Hit],
    facts: Mapping[str, Fact],
    documents: Mapping[str, Document],
) -> list[Hit]:
    """Return the hits, with both sides of each dispute of which one side is a hit.

    Both have the higher score of the two, and the later fact comes right before the disputed one,
    which names it in `disputed_by`. `facts` and `documents` are those that may be hits, by path.
    """
    disputing_paths = service.facts.disputing_paths(facts.values())
    causes = {path: cause for path, cause in disputing_paths.items() if cause in facts}
    if not causes:
        return list(hits)

    scores = _shared_scores(hits, causes)
    hits_of_facts = {hit.path: hit for hit in hits if hit.fact is not None}
    missing_facts = [facts[path] for path in scores if path in facts and path not in hits_of_facts]
    for hit in fact_hits(service.extension, missing_facts, scores, documents):
        hits_of_facts[hit.path] = hit

    raised_hits: dict[str, Hit] = {}
    for path, hit in hits_of_facts.items():
        fields: dict[str, Any] = {"score": scores[path].own}
        if path in causes:
            fields["disputed_by"] = facts[causes[path]].id
        raised_hits[path] = hit.with_fields(fields)._replace(rank=scores[path].rank)

    newest_first = service.facts.newest_first([facts[path] for path in raised_hits])
    ordered_hits = [raised_hits[fact.path] for fact in newest_first]
    ordered_hits += [hit for hit in hits if hit.fact is None]
    return sort_by_rank(ordered_hits)


def _shared_scores(hits: Iterable[Hit], causes: Mapping[str, str]) -> dict[str, Score]:
    """Return the scores of hits, by path; both sides of a dispute have the higher score of the two.

    `causes` has the path of each disputed fact with the path of the fact that disputes it.
    """
    scores: dict[str, Score] = {}
    for hit in hits:
        paths = [hit.path, causes.get(hit.path, "")]
        paths += [path for path, cause in causes.items() if cause == hit.path]
        score = Score(hit.rank, hit.result["score"])
        raise_scores(scores, dict.fromkeys(paths, score))
    return scores
