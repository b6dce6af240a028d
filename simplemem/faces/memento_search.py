"""Memento's semantic_search, as its documentation describes it: by meaning, with words beside it, best first.

A similarity is that of its database, (1 + cosine) / 2, so that a threshold means what it meant. The score is the
similarity and the score of words, each from 0 to 1, weighed by `semantic_weight`; an entity is found when either of the
two reaches the threshold, since an entity may hold the very words and yet be far in meaning. Where there are no vectors
words are searched alone, and the answer says so.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from simplemem.faces import memento_shown as told
from simplemem.faces.contract import Given
from simplemem.faces.pretty import pretty
from simplemem.faces.server_memory import graph_in
from simplemem.faces.tool import Call, Reply
from simplemem.kinds.graph.values import Entity, Graph
from simplemem.store.likeness import likeness

_LIMIT: Final = 10
_LEAST: Final = 0.6
_WEIGHT: Final = 0.6


def semantic_search(call: Call, asked: Given) -> Reply:
    began, given = datetime.now(UTC), asked.given
    graph = graph_in(call).read()
    types = {each.casefold() for each in given.get("entity_types", ())}
    wanted = {each.path: each for each in graph.entities if not types or each.type.casefold() in types}
    hybrid = given.get("hybrid_search", True)
    alike = likeness(call.store.core, given["query"], wanted.keys())
    least, weight = given.get("min_similarity", _LEAST), given.get("semantic_weight", _WEIGHT) if hybrid else 1.0
    found: list[tuple[float, Entity, dict[str, float]]] = []
    for path, entity in wanted.items():
        words = alike.words.get(path, 0.0)
        if alike.missing:
            if words:
                found.append((words, entity, {"score": words, "keyword": words}))
            continue
        if path not in alike.meaning:
            continue
        similarity = (1 + alike.meaning[path]) / 2
        score = weight * similarity + (1 - weight) * words
        if max(similarity, score) >= least:
            parts = {"score": score, "similarity": similarity, **({"keyword": words} if hybrid else {})}
            found.append((score, entity, parts))
    found.sort(key=lambda each: -each[0])
    best = found[: int(given.get("limit", _LIMIT))]
    return Reply(pretty(_told(call, graph, best, began, alike.missing)))


def _told(
    call: Call, graph: Graph, best: list[tuple[float, Entity, dict[str, float]]], began: datetime, missing: str
) -> dict[str, Any]:
    """The hits as a graph, best first, the scores by name under a key of their own."""
    names = {entity.name for _, entity, _ in best}
    relations = tuple(each for each in graph.relations if each.source in names or each.target in names)
    shown = told.graph_told(Graph(tuple(entity for _, entity, _ in best), relations), _kept(call, bool(best)), began)
    shown["scores"] = [
        {"name": entity.name, **{key: round(value, 4) for key, value in parts.items()}} for _, entity, parts in best
    ]
    return shown | ({"diagnostics": {"searched": "words", "why": missing}} if missing else {})


def _kept(call: Call, needed: bool) -> dict[str, told.Kept]:
    return told.kept_of(call.store) if needed else {}
