"""Put both sides of each dispute among the hits of a recall.

A dispute has two facts: an earlier one, and a later one that says that it changed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from simplemem.features.documents.candidates import Candidates
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
    candidates: Candidates,
) -> list[Hit]:
    """Return the hits, with both sides of each dispute of which one side is a hit.

    Both have the higher score of the two, and the later fact comes right before the disputed one,
    which names it in `disputed_by`. Only facts among the candidates are added. The result is sorted
    by rank; without a dispute, the hits stay in their order.
    """
    facts = candidates.facts
    causes = _disputes_among(service, facts)
    if not causes:
        return list(hits)

    scores = _shared_scores(hits, causes)
    raised_hits: dict[str, Hit] = {}
    for hit in _both_sides(service, hits, candidates, scores):
        score = scores[hit.path]
        raised_hit = hit.with_fields({"score": score.own})
        cause = causes.get(hit.path)
        if cause is not None:
            raised_hit = raised_hit.with_fields({"disputed_by": facts[cause].id})
        raised_hits[hit.path] = raised_hit._replace(rank=score.rank)

    hit_facts = [facts[path] for path in raised_hits]
    ordered_facts = service.facts.put_disputed_behind(hit_facts)
    ordered_hits = [raised_hits[fact.path] for fact in ordered_facts]
    ordered_hits += [hit for hit in hits if hit.fact is None]
    return sort_by_rank(ordered_hits)


def _disputes_among(service: DocumentService, facts: Mapping[str, Fact]) -> dict[str, str]:
    """Return, by the path of each disputed fact, that of the later fact which disputes it.

    Disputes of which `facts` (by path) has only one side are left out.
    """
    causes: dict[str, str] = {}
    disputing_paths = service.facts.disputing_paths(facts.values())
    for path, cause in disputing_paths.items():
        has_both_sides = cause in facts
        if has_both_sides:
            causes[path] = cause
    return causes


def _both_sides(
    service: DocumentService,
    hits: Sequence[Hit],
    candidates: Candidates,
    scores: Mapping[str, Score],
) -> list[Hit]:
    """Return the hits that are facts, and then the other facts that have a score, as hits."""
    hits_of_facts = [hit for hit in hits if hit.fact is not None]
    hit_paths = {hit.path for hit in hits_of_facts}

    added_facts: list[Fact] = []
    for path in scores:
        fact = candidates.facts.get(path)
        if fact is not None and path not in hit_paths:
            added_facts.append(fact)
    added_hits = fact_hits(
        service.extension,
        added_facts,
        scores,
        candidates.documents,
    )
    return [*hits_of_facts, *added_hits]


def _shared_scores(hits: Iterable[Hit], causes: Mapping[str, str]) -> dict[str, Score]:
    """Return the scores of hits, and of the other sides of their disputes, by path.

    The sides of one dispute share the higher score. `causes` has, by the path of each disputed
    fact, the path of the fact that disputes it.
    """
    disputed_paths = defaultdict[str, list[str]](list)
    for path, cause in causes.items():
        disputed_paths[cause].append(path)

    scores: dict[str, Score] = {}
    for hit in hits:
        sides = [hit.path]
        sides += disputed_paths[hit.path]
        if hit.path in causes:
            sides.append(causes[hit.path])

        score = Score(rank=hit.rank, own=hit.result["score"])
        raise_scores(scores, dict.fromkeys(sides, score))
    return scores
