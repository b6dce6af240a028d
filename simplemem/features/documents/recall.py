"""Answer a question from the facts, documents and graph of one user.

Facts are found by the slot that the question names, by words and meaning, and by walking from name
to name; entities and passages of documents by words and meaning. Nothing is written.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from simplemem.features.answers import Edge, RecallStep
from simplemem.features.documents.document import Document
from simplemem.features.documents.extraction import ask_model
from simplemem.features.documents.graph_walk import walk_from_question
from simplemem.features.documents.hits import (
    Hit,
    Score,
    entity_hit,
    fact_hit,
    passage_hit,
    raise_scores,
    sort_by_rank,
)
from simplemem.features.documents.outdated import with_outdated_marks
from simplemem.features.documents.service import DocumentService, document_service
from simplemem.features.fact import Fact
from simplemem.features.facts.reading import answers, asked_slot, read_statement
from simplemem.features.graph.graph import graph_of
from simplemem.features.graph.values import Entity, Graph
from simplemem.note.names import path_of
from simplemem.note.scopes import check_scope
from simplemem.note.words import count_tokens, well_formed, words_in_order
from simplemem.store import falling_scores

if TYPE_CHECKING:
    from simplemem.store import Answers, EnhancedStore

_MAX_QUESTION: Final = 2_000  # characters
_MAX_HITS_FOR_MODEL: Final = 10
_NEAREST_SCORE: Final = 0.5  # of the best hit, if no hit answers the question
_MEANING_WEIGHT: Final = 0.6  # of a similarity; the rest is words


class RecallRequest(NamedTuple):
    """A question, the user it is about (None: all users), and what may answer it."""

    query: str
    scope: str | None
    mode: str = "hybrid"  # or "memory" for facts and entities, "rag" for documents
    limit: int = 10
    rerank: bool = True
    rewrite: bool = False  # let the chat model rewrite the question for the search
    max_tokens: int | None = None
    memory_types: Collection[str] = ()  # of facts; none stands for all
    include_expired: bool = False
    min_similarity: float | None = None  # if given, hits less similar to the question are dropped


class RecallResult(NamedTuple):
    """The hits for a question, best first, and which steps found them.

    `edges` are the relations that were followed, `left_out` counts the hits beyond the token
    limit, and `degraded` says why the result is less than it could be, or is "".
    """

    hits: list[Hit]
    edges: list[Edge]
    steps: list[RecallStep]
    tokens: int
    left_out: int
    degraded: str


class _StepLog:
    """The steps of a recall, with whether each was used and why."""

    def __init__(self) -> None:
        self.steps = list[RecallStep]()

    def add(self, step: str, used: object, why: str) -> None:
        self.steps.append({"step": step, "used": bool(used), "why": why})


@dataclass(frozen=True)
class _Candidates:
    """What may answer a question, by path, and the graph."""

    facts: dict[str, Fact]
    entities: dict[str, Entity]
    documents: dict[str, Document]
    graph: Graph


@dataclass(frozen=True)
class _Matches:
    """What a search by words and meaning found among notes and among documents."""

    notes: Answers  # facts and entities
    documents: Answers

    @property
    def degraded(self) -> str:
        """Why a search was less than it could be; a reason that both give is given once."""
        reasons = [self.notes.degraded, self.documents.degraded]
        return " ".join(dict.fromkeys(reason for reason in reasons if reason))

    @property
    def notice(self) -> str:
        """The sentence that no hit answers the question, "" if one does."""
        notices = [found.notice for found in (self.notes, self.documents) if found.notes]
        return notices[0] if notices and all(notices) else ""


def recall(store: EnhancedStore, request: RecallRequest) -> RecallResult:
    """Return what answers a question. Raise Invalid if the scope is not a valid one."""
    documents = document_service(store)
    log = _StepLog()
    scope = None if request.scope is None else check_scope(request.scope)
    question = well_formed(request.query[:_MAX_QUESTION]).replace("\0", " ")
    candidates = _load_candidates(store, documents, request, scope)

    direct = _facts_in_named_slot(question, candidates.facts.values(), log)
    query = _expand_query(documents, question, request, log)
    matches = _search(documents, query, candidates, request, log)
    similarities = _similarities(documents, query, candidates, request)
    scores = _score_notes(direct, matches, similarities, candidates)
    edges = _follow_graph(question, scores, candidates, log)
    _log_rerank(request, matches, log)

    hits = _all_hits(documents, candidates, matches, scores)
    if request.min_similarity is not None:
        hits = [hit for hit in hits if hit.path in similarities or hit.fact in direct]
    hits = _without_repetitions(hits, log)
    hits = _with_disputes(documents, hits, candidates)
    hits = with_outdated_marks(documents, hits, scope)

    selected, tokens, left_out = _within_limits(hits, request, log)
    degraded = matches.degraded
    if selected and not direct and not edges and matches.notice:
        degraded = f"{matches.notice} {degraded}".strip()
    return RecallResult(selected, edges, log.steps, tokens, left_out, degraded)


def _load_candidates(
    store: EnhancedStore, documents: DocumentService, request: RecallRequest, scope: str | None
) -> _Candidates:
    """Return what the mode and the types of the request admit."""
    by_path = {document.path: document for document in documents.documents(scope)}
    if request.mode == "rag":
        return _Candidates({}, {}, by_path, Graph())

    facts = {
        fact.path: fact
        for fact in documents.memories.facts(scope, expired=request.include_expired)
        if not request.memory_types or fact.memory_type in request.memory_types
    }
    graph = graph_of(store).read(scope)
    entities = {entity.path: entity for entity in graph.entities if not entity.is_note}
    return _Candidates(facts, entities, by_path, graph)


def _facts_in_named_slot(question: str, facts: Iterable[Fact], log: _StepLog) -> list[Fact]:
    """Return the facts that fill the slot which a question names, best first."""
    relations = tuple(relation.split()[0] for relation in asked_slot(question))
    fits = dict[Fact, float]()
    for fact in facts:
        if fact.slot is None or not fact.slot.relation.startswith(relations):
            continue
        reading = read_statement(fact.statement)
        # If no rule reads the statement, use the slot in the note's properties.
        is_read = reading.slot or fact.decided_by.startswith("rule")
        if not is_read:
            reading = reading._replace(slot=fact.slot)
        fits[fact] = answers(question, reading)

    best_first = sorted(fits, key=lambda fact: -fits[fact])
    fitting = [fact for fact in best_first if fits[fact] > 0]
    why = "a fact answers the question directly"
    if not fitting:
        why = "no fact answers the question directly"
    log.add("slots", fitting, why)
    return fitting


def _expand_query(
    documents: DocumentService, question: str, request: RecallRequest, log: _StepLog
) -> str:
    """Return the question for a search, with the model's rewriting if that was requested."""
    if not request.rewrite:
        log.add("hyde", False, "not requested")
        return f"{question} "
    rewritten, method, why = ask_model(documents, documents.chat, "rewrite", question)
    log.add("hyde", rewritten, why or method)
    return f"{question} {rewritten or ''}"


def _search(
    documents: DocumentService,
    query: str,
    candidates: _Candidates,
    request: RecallRequest,
    log: _StepLog,
) -> _Matches:
    """Search facts and entities, and documents, by words and meaning."""
    note_paths: list[str] = []
    document_paths: list[str] = []
    if words_in_order(query):
        note_paths = [*candidates.facts, *candidates.entities]
        if request.mode != "memory":
            document_paths = [*candidates.documents]

    extension = documents.extension
    matches = _Matches(
        extension.answers(query, note_paths, request.limit, rerank=request.rerank),
        extension.answers(
            query,
            document_paths,
            request.limit,
            passages=2 * request.limit,
            rerank=request.rerank,
        ),
    )
    by_meaning = matches.notes.by_meaning or matches.documents.by_meaning
    log.add("vectors", by_meaning, matches.degraded or extension.embedder or "there are no vectors")
    return matches


def _similarities(
    documents: DocumentService, query: str, candidates: _Candidates, request: RecallRequest
) -> dict[str, float]:
    """Return the notes that are as similar to the query as requested; none without a request."""
    if request.min_similarity is None:
        return {}
    paths = [*candidates.facts, *candidates.documents]
    likeness = documents.extension.likeness(query, paths)
    scored = likeness.scores(_MEANING_WEIGHT, request.min_similarity)
    return {path: min(1.0, score) for path, (score, _, _) in scored.items()}


def _score_notes(
    direct: Sequence[Fact],
    matches: _Matches,
    similarities: Mapping[str, float],
    candidates: _Candidates,
) -> dict[str, Score]:
    """Return the scores of facts and entities, each the highest that one of the steps gave."""
    scores = {fact.path: Score(1.0, 1.0) for fact in direct}

    found = matches.notes
    factor = _rank_factor(found)
    matched = {
        path: Score(factor * score, found.quality * score) for path, score in found.notes.items()
    }
    raise_scores(scores, matched)

    similar_facts = {
        path: Score(score, score)
        for path, score in similarities.items()
        if path in candidates.facts
    }
    raise_scores(scores, similar_facts)
    return scores


def _rank_factor(found: Answers) -> float:
    """Return the factor for the ranks of a search, which is low if no hit answers the question."""
    return min(_NEAREST_SCORE, found.quality) if found.only_nearest else 1.0


def _follow_graph(
    question: str, scores: dict[str, Score], candidates: _Candidates, log: _StepLog
) -> list[Edge]:
    """Walk from the names in the question and its best hits. Add the notes met to `scores`."""
    best = {path for path, score in scores.items() if score.rank > _NEAREST_SCORE}
    walk = walk_from_question(question, best, candidates.facts, candidates.graph)
    raise_scores(scores, {path: Score(score, score) for path, score in walk.scores.items()})
    why = "followed related names" if walk.edges else "no related names"
    log.add("graph", walk.edges, why)
    return walk.edges


def _log_rerank(request: RecallRequest, matches: _Matches, log: _StepLog) -> None:
    if request.rerank:
        reranker = matches.notes.reranker or matches.documents.reranker
        log.add("rerank", True, reranker or "words and meaning")
    else:
        log.add("rerank", False, "not requested")


def _all_hits(
    documents: DocumentService,
    candidates: _Candidates,
    matches: _Matches,
    scores: Mapping[str, Score],
) -> list[Hit]:
    """Return everything that was found, best first; at equal ranks facts go before passages."""
    facts = [candidates.facts[path] for path in scores if path in candidates.facts]
    hits = _fact_hits(documents, facts, scores, candidates)

    for path, score in scores.items():
        if path in candidates.entities:
            hits.append(entity_hit(candidates.entities[path], score))

    found = matches.documents
    factor = _rank_factor(found)
    for passage in found.passages:
        document = candidates.documents[path_of(passage.name)]
        score = Score(factor * passage.score, found.quality * passage.score)
        hits.append(passage_hit(passage, document, score))
    return sort_by_rank(hits)


def _fact_hits(
    documents: DocumentService,
    facts: Sequence[Fact],
    scores: Mapping[str, Score],
    candidates: _Candidates,
) -> list[Hit]:
    """Return facts as hits, each with the document that it was drawn from."""
    origins = documents.extension.resolve_links([(fact.source, fact.path) for fact in facts])
    return [
        fact_hit(fact, scores[fact.path], candidates.documents.get(origin or ""))
        for fact, origin in zip(facts, origins, strict=True)
    ]


def _without_repetitions(hits: Sequence[Hit], log: _StepLog) -> list[Hit]:
    """Drop a hit if an earlier one has its text, or is the passage that it was drawn from."""
    unique_hits = list[Hit]()
    seen = set[tuple[str, str]]()
    texts_of_source = defaultdict[str, list[str]](list)
    for hit in hits:
        text = f" {' '.join(words_in_order(hit.result['text']))} "
        key = (hit.result["container_tag"], text)
        earlier_texts = texts_of_source[hit.result["source"]["id"]]
        if key in seen or any(text in earlier for earlier in earlier_texts):
            continue
        unique_hits.append(hit)
        seen.add(key)
        earlier_texts.append(text)

    count = len(hits) - len(unique_hits)
    log.add("dedupe", count, f"{count} repeated another hit")
    return unique_hits


def _with_disputes(
    documents: DocumentService, hits: Sequence[Hit], candidates: _Candidates
) -> list[Hit]:
    """Return hits with both sides of each dispute, the later fact right before the disputed one."""
    facts = candidates.facts
    disputing = documents.memories.disputing(list(facts.values()))
    disputing = {path: cause for path, cause in disputing.items() if cause in facts}
    if not disputing:
        return list(hits)

    scores = _scores_of_both_sides(hits, disputing)
    raised = _raised_fact_hits(documents, hits, candidates, scores, disputing)
    newest_first = documents.memories.newest_first([facts[path] for path in raised])
    ordered = [raised[fact.path] for fact in newest_first]
    ordered += [hit for hit in hits if hit.fact is None]
    return sort_by_rank(ordered)


def _raised_fact_hits(
    documents: DocumentService,
    hits: Iterable[Hit],
    candidates: _Candidates,
    scores: Mapping[str, Score],
    disputing: Mapping[str, str],
) -> dict[str, Hit]:
    """Return the facts among the hits and the other sides of their disputes, with these scores."""
    facts = candidates.facts
    fact_hits = {hit.path: hit for hit in hits if hit.fact is not None}
    missing = [facts[path] for path in scores if path in facts and path not in fact_hits]
    for hit in _fact_hits(documents, missing, scores, candidates):
        fact_hits[hit.path] = hit

    raised = dict[str, Hit]()
    for path, hit in fact_hits.items():
        fields: dict[str, Any] = {"score": scores[path].own}
        if path in disputing:
            fields["disputed_by"] = facts[disputing[path]].id
        raised[path] = hit.with_fields(fields)._replace(rank=scores[path].rank)
    return raised


def _scores_of_both_sides(hits: Iterable[Hit], disputing: Mapping[str, str]) -> dict[str, Score]:
    """Return scores by which both sides of a dispute rank as high as the higher of them.

    `disputing` has the path of each disputed fact with the path of the fact that disputes it.
    """
    scores = dict[str, Score]()
    for hit in hits:
        score = Score(hit.rank, hit.result["score"])
        sides = [hit.path, disputing.get(hit.path, "")]
        sides += [path for path, cause in disputing.items() if cause == hit.path]
        raise_scores(scores, dict.fromkeys(sides, score))
    return scores


def _within_limits(
    hits: Sequence[Hit], request: RecallRequest, log: _StepLog
) -> tuple[list[Hit], int, int]:
    """Return the best hits within the limits, the number of their tokens, and how many were cut.

    A hit that is too long is skipped; shorter ones behind it may still fit.
    """
    best = hits[: request.limit]
    selected = list[Hit]()
    tokens = 0
    for hit in best:
        size = count_tokens(hit.result["text"])
        if request.max_tokens is None or tokens + size <= request.max_tokens:
            selected.append(hit)
            tokens += size

    left_out = len(best) - len(selected)
    if request.max_tokens is None:
        log.add("budget", False, "no budget given")
    else:
        log.add("budget", True, f"{left_out} left out")
    return _with_falling_scores(selected), tokens, left_out


def _with_falling_scores(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with shown scores of which none is higher than the one above it."""
    scores = falling_scores(hit.result["score"] for hit in hits)
    return [
        hit.with_fields({"score": round(score, 4)}) for hit, score in zip(hits, scores, strict=True)
    ]


def write_answer(
    documents: DocumentService, query: str, found: RecallResult
) -> tuple[str | None, str, str]:
    """Let the chat model answer from the hits, without those that must not leave the machine.

    Return the answer with citations or None, the name of the model or "none", and why there is no
    answer.
    """
    if documents.chat is None or not found.hits:
        return None, "none", ""

    private = documents.extension.private_among(hit.path for hit in found.hits)
    memories = [
        (_text_with_marks(hit), hit.fact and hit.fact.valid_from)
        for hit in found.hits
        if hit.path not in private
    ]
    return ask_model(documents, documents.chat, "answer", query, memories[:_MAX_HITS_FOR_MODEL])


def _text_with_marks(hit: Hit) -> str:
    """Return the text of a hit, with since when it is outdated or disputed."""
    marks = []
    for mark, since in (
        ("outdated", hit.result.get("outdated")),
        ("disputed", hit.result.get("disputed")),
    ):
        if since:
            marks.append(f"{mark} since {since[:10]}")

    text = hit.result["text"]
    if marks:
        text += f" ({', '.join(marks)})"
    return text
