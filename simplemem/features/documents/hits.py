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
    """How good a hit is.

    `rank` orders hits; the best fact and the best passage have 1. `own` is how good the hit is in
    itself, which answers show.
    """

    rank: float
    own: float


class Hit(NamedTuple):
    """Something that answers a question: how it is shown, the path of its note, and its fact."""

    result: RecallResult
    path: str
    fact: Fact | None = None
    rank: float = 0.0

    def with_fields(self, fields: Mapping[str, Any]) -> Self:
        """Return a copy of the hit whose result has these fields, added or replaced."""
        result = {**self.result, **fields}
        return self._replace(result=cast("RecallResult", result))


def raise_scores(
    scores: dict[str, Score],
    new_scores: Mapping[str, Score],
) -> None:
    """Raise `scores` to the new scores of the same paths, and add the paths that are missing.

    A score that is higher already stays. The two numbers of a score are raised separately.
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
    """Return a fact as a hit; its source is the document of the fact, if it has one."""
    result = _result("memory", fact.id, fact.statement, score, fact.scope)
    result |= _fact_fields(fact)
    result["source"] = _source(fact.id, fact.statement, fact.path, document)
    return _hit(result, fact.path, score, fact)


def _fact_fields(fact: Fact) -> dict[str, Any]:
    """Return the fields of a result that only facts have."""
    current_time = now()
    fields: dict[str, Any] = {
        "memory_type": fact.memory_type,
        "confidence": round(decay.displayed_confidence(fact, current_time), 4),
        "is_latest": fact.status == "active",
    }
    if fact.valid_from:
        fields["valid_from"] = format_moment(fact.valid_from)
    if fact.valid_to:
        fields["valid_to"] = format_moment(fact.valid_to)
    if fact.is_disputed:
        fields["disputed"] = format_moment(fact.disputed or current_time)
    return fields


def entity_hit(entity: Entity, score: Score) -> Hit:
    """Return an entity of the graph as a hit; its text is its name and its observations."""
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
    """Return the fields of a result that all kinds of hits have, except their source."""
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
    """Return where a hit comes from: a document, or else its own note."""
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
    """Return the hits, best first; hits of one rank stay in their order."""
    return sorted(hits, key=lambda hit: -hit.rank)
