"""Hits of a recall: facts, entities of the graph, and passages of documents."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self, cast

from simplemem.features.answers import RecallResult
from simplemem.features.documents.document import Document
from simplemem.features.fact import Fact
from simplemem.features.facts import decay
from simplemem.features.graph.values import SHARED, Entity
from simplemem.note.dates import format_moment, now
from simplemem.note.names import name_of

if TYPE_CHECKING:
    from simplemem.store import ExtensionAPI, Piece

_MAX_TITLE: Final = 80  # characters


class Score(NamedTuple):
    """How good a hit is, in two numbers from 0 to 1.

    `rank` orders hits; the best fact and the best passage have 1. `own` is how good the hit is in
    itself, which answers show.
    """

    rank: float
    own: float


class Hit(NamedTuple):
    """Something that answers a question: a fact, an entity of the graph or a passage."""

    result: RecallResult  # as answers show it
    path: str  # of its note
    fact: Fact | None = None  # None for an entity or a passage
    rank: float = 0.0  # as in `Score`

    def with_fields(self, fields: Mapping[str, Any]) -> Self:
        """Return a copy of the hit whose result has these fields, added or replaced."""
        result = {**self.result, **fields}
        return self._replace(result=cast("RecallResult", result))


def raise_scores(
    scores: dict[str, Score],
    new_scores: Mapping[str, Score],
) -> None:
    """Change `scores`, by path, to the new scores of the same paths where these are higher.

    Paths that are missing in `scores` are added. The two numbers of a score are raised separately.
    """
    for path, score in new_scores.items():
        current = scores.get(path, score)
        rank = max(current.rank, score.rank)
        own = max(current.own, score.own)
        scores[path] = Score(rank, own)


def fact_hits(
    extension: ExtensionAPI,
    facts: Sequence[Fact],
    scores: Mapping[str, Score],
    documents: Mapping[str, Document],
) -> list[Hit]:
    """Return facts as hits, in their order.

    The source of a hit is the document of the fact, if `documents` has it, else the fact's own
    note. `scores` must have the path of each fact; `documents` are by path too.
    """
    links = [(fact.source, fact.path) for fact in facts]
    document_paths = extension.resolve_links(links)
    hits: list[Hit] = []
    for fact, document_path in zip(facts, document_paths, strict=True):
        document = documents.get(document_path or "")
        hits.append(_fact_hit(fact, scores[fact.path], document))
    return hits


def _fact_hit(fact: Fact, score: Score, document: Document | None) -> Hit:
    """Return a fact as a hit. Its source is `document`, or its own note without one."""
    result = _result("memory", fact.id, fact.statement, score, fact.scope)
    result |= _fact_fields(fact)
    result["source"] = _source(fact.id, fact.statement, fact.path, document)
    return _hit(result, fact.path, score, fact)


def _fact_fields(fact: Fact) -> dict[str, Any]:
    """Return the fields of a `RecallResult` that only facts have, as they are now."""
    current_time = now()
    fields: dict[str, Any] = {
        "memory_type": fact.memory_type,
        "confidence": round(decay.displayed_confidence(fact, current_time), 4),
        "is_latest": decay.status_at(fact, current_time) == "active",
    }
    if fact.valid_from:
        fields["valid_from"] = format_moment(fact.valid_from)
    if fact.valid_to:
        fields["valid_to"] = format_moment(fact.valid_to)
    if fact.is_disputed:
        fields["disputed"] = format_moment(fact.disputed or current_time)
    return fields


def entity_hit(entity: Entity, score: Score) -> Hit:
    """Return an entity of the graph as a hit. Its text is its name and its observations."""
    text = "; ".join([entity.name, *entity.texts])
    result = _result("entity", entity.name, text, score, entity.owner or SHARED)
    result["source"] = _source(entity.name, text, entity.path)
    return _hit(result, entity.path, score)


def passage_hit(passage: Piece, document: Document, score: Score) -> Hit:
    """Return a passage of a document as a hit. Its id is that of the document, and its line."""
    passage_id = f"{document.id}:{passage.line}"
    result = _result("chunk", passage_id, passage.text, score, document.scope)

    source = _source(passage_id, passage.text, document.path, document)
    source["heading"] = passage.heading
    source["line"] = passage.line
    result["source"] = source
    return _hit(result, document.path, score)


def _result(
    kind: str,
    id_: str,
    text: str,
    score: Score,
    scope: str,
) -> dict[str, Any]:
    """Return the fields of a `RecallResult` that all hits have, except their source.

    `kind` is "memory" for a fact, "entity", or "chunk" for a passage.
    """
    return {
        "kind": kind,
        "id": id_,
        "text": text,
        "score": round(score.own, 4),
        "container_tag": scope,
    }


def _source(
    id_: str,
    text: str,
    path: str,
    document: Document | None = None,
) -> dict[str, Any]:
    """Return the fields of a `ResultSource`: where a hit comes from.

    That is `document`, or without one the note at `path`, with the `id_` and the `text` of the hit.
    """
    source: dict[str, Any] = {
        "id": id_,
        "title": text[:_MAX_TITLE],
        "name": name_of(path),
        "heading": "",
        "line": 1,
        "url": None,
    }
    if document is not None:
        source["id"] = document.id
        source["title"] = document.title
        source["name"] = name_of(document.path)
        source["url"] = document.source_url or None
    return source


def _hit(
    result: dict[str, Any],
    path: str,
    score: Score,
    fact: Fact | None = None,
) -> Hit:
    """Return the hit for a note whose result has all its fields."""
    return Hit(
        result=cast("RecallResult", result),
        path=path,
        fact=fact,
        rank=round(score.rank, 4),
    )


def sort_by_rank(hits: Iterable[Hit]) -> list[Hit]:
    """Return the hits, best first. Hits of the same rank stay in their order."""
    return sorted(hits, key=lambda hit: -hit.rank)
