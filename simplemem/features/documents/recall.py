"""Answer a question from the facts, documents and graph of one user, or of all users.

Facts are found in three ways: by the slot that the question asks for, by words and meaning, and by
walking from name to name. Entities of the graph and passages of documents are found by words and
meaning. A recall writes nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.features.answers import Edge, PinnedNote, RecallStep
from simplemem.features.documents.asking import ask_model
from simplemem.features.documents.candidates import Candidates, load_candidates
from simplemem.features.documents.disputes import with_both_sides
from simplemem.features.documents.graph_walk import walk_from_question
from simplemem.features.documents.hits import (
    Hit,
    Score,
    entity_hit,
    fact_hits,
    passage_hit,
    raise_scores,
    sort_by_rank,
)
from simplemem.features.documents.outdated import with_outdated_marks
from simplemem.features.documents.service import DocumentService, document_service
from simplemem.features.fact import Fact
from simplemem.features.facts.reading import read_statement
from simplemem.features.facts.slot_questions import fit_to_question, relations_asked_for
from simplemem.features.pinned import pinned_notes
from simplemem.note.names import path_of
from simplemem.note.scopes import check_scope
from simplemem.note.words import count_tokens, well_formed, words_in_order
from simplemem.store import falling_scores

if TYPE_CHECKING:
    from simplemem.providers.api import ChatModel
    from simplemem.store import Answers, EnhancedStore

_MAX_QUESTION: Final = 2_000  # characters
_NEAREST_SCORE: Final = 0.5  # of the best hit, if no hit answers the question
_MEANING_WEIGHT: Final = 0.6  # of a similarity; the rest is words


class RecallRequest(NamedTuple):
    """A question, and what may answer it."""

    query: str
    scope: str | None  # the user whose notes are searched; None for all users
    mode: str = "hybrid"  # or "memory" for facts and entities, "rag" for documents
    limit: int = 10  # hits
    rerank: bool = True  # let the reranker of the settings order the hits
    rewrite: bool = False  # let the chat model rewrite the question for the search
    max_tokens: int | None = None  # of the texts of all hits; None for no limit
    memory_types: Collection[str] = ()  # of facts; an empty collection stands for all types
    include_expired: bool = False  # also find facts that are not current
    min_similarity: float | None = None  # from 0 to 1; if set, less similar hits are dropped


class RecallAnswer(NamedTuple):
    """The hits for a question, best first, and how they were found."""

    hits: list[Hit]
    edges: list[Edge]  # the relations that were followed
    steps: list[RecallStep]
    tokens: int  # of the texts of all hits
    left_out: int  # the number of hits that did not fit into the token limit
    pinned: list[PinnedNote]  # relevant to every question of the user: constraints come first
    degraded: str  # why the result is less than it could be, and that no hit answers; or ""


class _StepLog:
    """Guards the list of the steps of a recall: whether each was used, and why."""

    def __init__(self) -> None:
        """Begin without a step."""
        self.steps: list[RecallStep] = []

    def add(self, step: str, *, is_used: bool, reason: str) -> None:
        """Append a step. `reason` says why it was used or not, or what it did."""
        self.steps.append({"step": step, "used": is_used, "why": reason})


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
        notices = [answers.notice for answers in (self.notes, self.documents) if answers.notes]
        if not notices or not all(notices):
            return ""
        return notices[0]


def recall(store: EnhancedStore, request: RecallRequest) -> RecallAnswer:
    """Return what answers a question, best first. Nothing is written.

    Only the first 2,000 characters of the question count. There are no hits for a scope without
    notes. Raise Invalid if the scope is not valid.
    """
    documents = document_service(store)
    log = _StepLog()
    scope = None if request.scope is None else check_scope(request.scope)
    question = well_formed(request.query[:_MAX_QUESTION]).replace("\0", " ")
    candidates = load_candidates(
        store,
        scope,
        mode=request.mode,
        memory_types=request.memory_types,
        include_expired=request.include_expired,
    )

    # Find.
    direct_facts = _facts_in_asked_slot(question, candidates.facts.values(), log)
    query = _expand_query(documents, question, request, log)
    matches = _search(documents, query, candidates, request, log)
    similarities = _similarities(documents, query, candidates, request)
    scores = _score_notes(direct_facts, matches, similarities, candidates)
    edges = _follow_graph(question, scores, candidates, log)
    _log_rerank(request, matches, log)

    # Order, and drop what repeats.
    hits = _all_hits(documents, candidates, matches, scores)
    if request.min_similarity is not None:
        hits = [hit for hit in hits if hit.path in similarities or hit.fact in direct_facts]
    hits = _without_repetitions(hits, log)
    hits = with_both_sides(documents, hits, candidates)
    hits = with_outdated_marks(documents, hits, scope)
    selection = _select_within_limits(hits, request, log)

    degraded = matches.degraded
    is_answered = bool(direct_facts or edges)
    if selection.hits and matches.notice and not is_answered:
        degraded = f"{matches.notice} {degraded}".strip()
    return RecallAnswer(
        hits=selection.hits,
        edges=edges,
        steps=log.steps,
        tokens=selection.tokens,
        left_out=selection.left_out,
        pinned=pinned_notes(store, scope),
        degraded=degraded,
    )


def _facts_in_asked_slot(question: str, facts: Iterable[Fact], log: _StepLog) -> list[Fact]:
    """Return the facts that fill the slot which a question asks for, best first, and log that.

    The list is empty if the question asks for no slot.
    """
    relations = tuple(relations_asked_for(question))
    fits: dict[Fact, float] = {}
    for fact in facts:
        if fact.slot is None or not fact.slot.relation.startswith(relations):
            continue
        reading = read_statement(fact.statement)
        is_by_rule = fact.decided_by.startswith("rule")
        if reading.slot is None and not is_by_rule:
            # No rule reads the statement. Use the slot in the note's properties.
            reading = reading._replace(slot=fact.slot)
        fits[fact] = fit_to_question(question, reading)

    best_first = sorted(fits, key=lambda fact: -fits[fact])
    fitting_facts = [fact for fact in best_first if fits[fact] > 0]
    reason = "no fact answers the question directly"
    if fitting_facts:
        reason = "a fact answers the question directly"
    log.add("slots", is_used=bool(fitting_facts), reason=reason)
    return fitting_facts


def _expand_query(
    documents: DocumentService,
    question: str,
    request: RecallRequest,
    log: _StepLog,
) -> str:
    """Return the question for a search, with the model's rewriting if that was requested.

    What was done is logged. A model that cannot be asked only leaves the question as it is.
    """
    if not request.rewrite:
        log.add("hyde", is_used=False, reason="not requested")
        return f"{question} "

    def rewrite(model: ChatModel) -> str:
        # Imported here, since it is not needed without a model.
        from simplemem.features.facts import language_model

        return language_model.rewrite(documents, model, question)

    rewritten, method, problem = ask_model(documents.chat, rewrite)
    log.add("hyde", is_used=bool(rewritten), reason=problem or method)
    return f"{question} {rewritten or ''}"


def _search(
    documents: DocumentService,
    query: str,
    candidates: Candidates,
    request: RecallRequest,
    log: _StepLog,
) -> _Matches:
    """Search facts and entities, and documents, by words and meaning.

    Logs one step, "vectors": whether a search was by meaning, and with which embedder or why not.
    Documents are not searched in the mode "memory". Nothing matches a query without words.
    """
    note_paths: list[str] = []
    document_paths: list[str] = []
    if words_in_order(query):
        note_paths = [*candidates.facts, *candidates.entities]
        if request.mode != "memory":
            document_paths = [*candidates.documents]

    extension = documents.extension
    matches = _Matches(
        notes=extension.answers(
            query,
            note_paths,
            request.limit,
            rerank=request.rerank,
        ),
        documents=extension.answers(
            query,
            document_paths,
            request.limit,
            passages=2 * request.limit,
            rerank=request.rerank,
        ),
    )

    is_by_meaning = matches.notes.by_meaning or matches.documents.by_meaning
    reason = matches.degraded or extension.embedder or "there are no vectors"
    log.add("vectors", is_used=is_by_meaning, reason=reason)
    return matches


def _similarities(
    documents: DocumentService,
    query: str,
    candidates: Candidates,
    request: RecallRequest,
) -> dict[str, float]:
    """Return the similarities to the query, by path, of facts and documents.

    Those below the minimum of the request are left out. It is empty if the request has no minimum.
    """
    if request.min_similarity is None:
        return {}

    paths = [*candidates.facts, *candidates.documents]
    likeness = documents.extension.likeness(query, paths)
    similarities: dict[str, float] = {}
    scored = likeness.scores(_MEANING_WEIGHT, request.min_similarity)
    for path, (score, _, _) in scored.items():
        similarities[path] = min(1.0, score)
    return similarities


def _score_notes(
    direct_facts: Sequence[Fact],
    matches: _Matches,
    similarities: Mapping[str, float],
    candidates: Candidates,
) -> dict[str, Score]:
    """Return the scores of facts and entities by path, each the highest that one step gave.

    A fact that answers the question directly has the score 1.
    """
    scores = {fact.path: Score(1.0, 1.0) for fact in direct_facts}

    answers = matches.notes
    factor = _rank_factor(answers)
    matched_scores: dict[str, Score] = {}
    for path, score in answers.notes.items():
        matched_scores[path] = Score(factor * score, answers.quality * score)
    raise_scores(scores, matched_scores)

    similarity_scores: dict[str, Score] = {}
    for path, similarity in similarities.items():
        if path in candidates.facts:
            similarity_scores[path] = Score(similarity, similarity)
    raise_scores(scores, similarity_scores)
    return scores


def _rank_factor(answers: Answers) -> float:
    """Return the factor for the ranks of a search: 1, or 0.5 or less if no hit answers."""
    if not answers.only_nearest:
        return 1.0
    return min(_NEAREST_SCORE, answers.quality)


def _follow_graph(
    question: str,
    scores: dict[str, Score],
    candidates: Candidates,
    log: _StepLog,
) -> list[Edge]:
    """Walk from the names in the question and its best hits; return the edges that it follows.

    Notes that the walk meets are added to `scores`, or their scores there are raised. What was done
    is logged.
    """
    best_paths = {path for path, score in scores.items() if score.rank > _NEAREST_SCORE}
    walk = walk_from_question(question, best_paths, candidates.facts, candidates.graph)
    walk_scores = {path: Score(score, score) for path, score in walk.scores.items()}
    raise_scores(scores, walk_scores)

    reason = "followed related names" if walk.edges else "no related names"
    log.add("graph", is_used=bool(walk.edges), reason=reason)
    return walk.edges


def _log_rerank(request: RecallRequest, matches: _Matches, log: _StepLog) -> None:
    """Log whether the search reranked its hits, and with what. The search itself did that."""
    if not request.rerank:
        log.add("rerank", is_used=False, reason="not requested")
        return
    reranker = matches.notes.reranker or matches.documents.reranker
    log.add("rerank", is_used=True, reason=reranker or "words and meaning")


def _all_hits(
    documents: DocumentService,
    candidates: Candidates,
    matches: _Matches,
    scores: Mapping[str, Score],
) -> list[Hit]:
    """Return everything that was found, best first.

    At equal ranks facts come first, then entities, then passages. `scores` has those of facts and
    entities.
    """
    facts = [candidates.facts[path] for path in scores if path in candidates.facts]
    hits = fact_hits(documents.extension, facts, scores, candidates.documents)

    for path, score in scores.items():
        if path in candidates.entities:
            hits.append(entity_hit(candidates.entities[path], score))

    answers = matches.documents
    factor = _rank_factor(answers)
    for passage in answers.passages:
        document = candidates.documents[path_of(passage.name)]
        score = Score(factor * passage.score, answers.quality * passage.score)
        hits.append(passage_hit(passage, document, score))
    return sort_by_rank(hits)


def _without_repetitions(hits: Sequence[Hit], log: _StepLog) -> list[Hit]:
    """Return the hits without those that repeat an earlier one, and log how many these are.

    A hit repeats another of the same user with the same words, and one from the same source whose
    text contains its own.
    """
    unique_hits: list[Hit] = []
    texts_of_users = set[tuple[str, str]]()
    texts_of_sources = defaultdict[str, list[str]](list)
    for hit in hits:
        words = " ".join(words_in_order(hit.result["text"]))
        text = f" {words} "  # so that it is only contained in a text with the same whole words
        user_and_text = (hit.result["container_tag"], text)
        earlier_texts = texts_of_sources[hit.result["source"]["id"]]
        if user_and_text in texts_of_users or any(text in earlier for earlier in earlier_texts):
            continue
        unique_hits.append(hit)
        texts_of_users.add(user_and_text)
        earlier_texts.append(text)

    count = len(hits) - len(unique_hits)
    log.add("dedupe", is_used=count > 0, reason=f"{count} repeated another hit")
    return unique_hits


class _Selection(NamedTuple):
    """The hits of an answer, the number of their tokens, and how many hits did not fit."""

    hits: list[Hit]
    tokens: int
    left_out: int


def _select_within_limits(
    hits: Sequence[Hit],
    request: RecallRequest,
    log: _StepLog,
) -> _Selection:
    """Return the best hits within the limits of the request on their number and their tokens.

    A hit that is too long is skipped; shorter ones behind it may still fit. What was done is
    logged.
    """
    best_hits = hits[: request.limit]
    selected: list[Hit] = []
    tokens = 0
    for hit in best_hits:
        size = count_tokens(hit.result["text"])
        if request.max_tokens is None or tokens + size <= request.max_tokens:
            selected.append(hit)
            tokens += size

    left_out = len(best_hits) - len(selected)
    if request.max_tokens is None:
        log.add("budget", is_used=False, reason="no budget given")
    else:
        log.add("budget", is_used=True, reason=f"{left_out} left out")
    return _Selection(_with_falling_scores(selected), tokens, left_out)


def _with_falling_scores(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits with scores that never rise from one hit to the next.

    A score in a result that is higher than the one before is lowered to it.
    """
    scores = falling_scores(hit.result["score"] for hit in hits)
    falling_hits: list[Hit] = []
    for hit, score in zip(hits, scores, strict=True):
        falling_hits.append(hit.with_fields({"score": round(score, 4)}))
    return falling_hits
