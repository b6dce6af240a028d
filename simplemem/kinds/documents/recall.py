"""What a question finds: statements by the slot it names, by words and meaning, and by walking from name to name; passages
of documents beside them. Only what holds, only of the scope that is asked. Nothing is written for being found."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NotRequired, TypeAlias, TypedDict

from simplemem.errors import SimplememError
from simplemem.kinds.atoms import life
from simplemem.kinds.atoms.atom import Atom, check_scope
from simplemem.kinds.atoms.reading import answers, asked_slot, read_statement
from simplemem.kinds.documents.document import Document
from simplemem.kinds.documents.ingest import documents_of
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.talk.block import stamp
from simplemem.note.clock import now
from simplemem.note.names import path_of
from simplemem.note.words import count_tokens

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore, Likeness, Piece

MODES: Final = ("hybrid", "memory", "rag")
_MOST_QUESTION: Final = 2_000  # characters
_NEAREST: Final = 0.5  # what a leg counts when it found only what is nearest
_STEPS, _MOST_EDGES = 2, 20  # of the graph
_MOST_SHOWN: Final = 10  # statements and passages that a model answers from


Maybe: TypeAlias = "str | None"
# A statement as lists show it.
Row = TypedDict("Row", {
    "id": str, "memory": str, "memory_type": str, "container_tag": str, "is_latest": bool, "confidence": float,
    "base_confidence": float, "valid_from": Maybe, "valid_to": Maybe, "forgotten_at": Maybe, "source_doc_id": Maybe,
    "updates": Maybe, "extends": Maybe, "derived_from": list[str], "superseded_by": Maybe, "status": str,
    "created_at": str, "name": str,
})  # fmt: skip
# A statement, a passage or an entity that answers, and where it comes from.
Source = TypedDict("Source", {"id": str, "title": str, "name": str, "heading": str, "line": int, "url": Maybe})
Result = TypedDict("Result", {
    "kind": str, "id": str, "text": str, "score": float, "container_tag": str, "source": Source,
    "memory_type": NotRequired[str], "confidence": NotRequired[float], "valid_from": NotRequired[Maybe],
    "valid_to": NotRequired[Maybe], "is_latest": NotRequired[bool],
})  # fmt: skip
# A statement as a step from name to name.
Edge = TypedDict("Edge", {"from": str, "relation": str, "to": str, "id": str})
# What was done for an answer, or why it was not.
Step = TypedDict("Step", {"step": str, "used": bool, "why": str})


@dataclass
class Recalled:
    """What a question found, best first."""

    results: list[Result] = field(default_factory=list)
    slots: list[Atom] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    tokens: int = 0
    left_out: int = 0
    degraded: str = ""
    atoms: list[Atom] = field(default_factory=list)  # those among the results
    shown: list[str] = field(default_factory=list)  # the paths of all notes among them


def recall(
    store: EnhancedStore,
    query: str,
    scope: str | None,
    *,
    mode: str = "hybrid",
    limit: int = 10,
    rerank: bool = True,
    rewrite: bool = False,
    budget: int | None = None,
) -> Recalled:
    """What answers a question in a scope, or in all."""
    documents, found = documents_of(store), Recalled()
    scope = check_scope(scope) if scope is not None else None
    question, bench = query[:_MOST_QUESTION].replace("\0", " "), documents.bench
    held = {each.path: each for each in documents.memories.atoms(scope)} if mode != "rag" else {}
    texts = {each.path: each for each in documents.documents(scope)} if mode != "memory" else {}
    found.slots = _in_slots(question, held.values())
    found.steps.append(
        _step("slots", bool(found.slots), "" if found.slots else "the question names none that is filled")
    )
    wider = _rewritten(store, question, found.steps) if rewrite else question
    by_atom = bench.answers(wider, held, limit, rerank=rerank)
    by_text = bench.answers(wider, texts, limit, passages=2 * limit, rerank=rerank)
    found.degraded = " ".join(dict.fromkeys(filter(None, (by_atom.degraded, by_text.degraded))))
    used, why = bool(bench.embedder), by_atom.degraded or by_text.degraded
    found.steps.append(
        _step("vectors", used and not why, bench.embedder if used and not why else why or "there are none")
    )
    share = _NEAREST if by_atom.only_nearest else 1.0
    scores = {path: share * score for path, score in by_atom.notes.items()} | {e.path: 1.0 for e in found.slots}
    found.edges, near = _walked(question, held.values(), scores)
    scores |= {path: score for path, score in near.items() if path not in scores}
    found.steps.append(_step("graph", bool(found.edges), "" if found.edges else "no name leads on"))
    ranked = [(score, 0, _of_atom(held[path]), path) for path, score in scores.items()]
    best = max((piece.score for piece in by_text.passages), default=0.0) or 1.0
    share = _NEAREST if by_text.only_nearest else 1.0
    for piece in by_text.passages:
        row = _of_piece(texts[path_of(piece.name)], piece)
        ranked.append((share * piece.score / best, 1, row, path_of(piece.name)))
    if mode != "rag" and scope in (None, "default"):
        ranked += [(0.9 * _NEAREST, 2, row, path) for path, row in _entities(store, question)]
    by = by_atom.reranker or by_text.reranker
    found.steps.append(
        _step("rerank", rerank, f"by {by}" if rerank and by else "words and meaning" if rerank else "not asked")
    )
    _take(found, sorted(ranked, key=lambda each: (-round(each[0], 6), each[1])), limit, budget, held)
    return found


def _step(step: str, used: bool, why: str) -> Step:
    return {"step": step, "used": used, "why": why}


def _in_slots(question: str, held: Iterable[Atom]) -> list[Atom]:
    """The statements that fill the slot which a question names, those that fit best first."""
    if not (asked := asked_slot(question)):
        return []
    candidates = (each for each in held if each.slot is not None and each.slot.relation in asked)
    fits = [(answers(question, read_statement(each.statement)), each) for each in candidates]
    return [each for fit, each in sorted(fits, key=lambda pair: -pair[0]) if fit > 0]


def _rewritten(store: EnhancedStore, question: str, steps: list[Step]) -> str:
    """The question with the words that an answer might have, where there is a model."""
    documents = documents_of(store)
    if documents.chat is None:
        steps.append(_step("hyde", False, "there is no model"))
        return question
    from simplemem.kinds.atoms.asking import rewrite

    try:
        said = rewrite(documents, documents.chat, question)
    except SimplememError as error:
        steps.append(_step("hyde", False, f"the model was no help: {error.message}"))
        return question
    steps.append(_step("hyde", True, documents.chat.method))
    return f"{question} {said}"


def _walked(question: str, held: Collection[Atom], hits: Collection[str]) -> tuple[list[Edge], dict[str, float]]:
    """Statements met by walking from the names in a question and its hits, with half a score a step."""
    edges = [(each, _names(each)) for each in held if each.slot is not None]
    asked = set(re.findall(r"\w+", question.casefold()))
    names = {name for _, ends in edges for name in ends if set(re.findall(r"\w+", name)) <= asked}
    names |= {name for each, ends in edges if each.path in hits for name in ends}
    found: dict[str, float] = {}
    for step in range(1, _STEPS + 1):
        met = [(each, ends) for each, ends in edges if each.path not in found and names & set(ends)]
        found |= {each.path: 0.5**step for each, _ in met[:_MOST_EDGES]}
        names |= {name for _, ends in met for name in ends}
    walked = [each for each, _ in edges if each.path in found][:_MOST_EDGES]
    return [_edge(each) for each in walked], {each.path: found[each.path] for each in walked}


def _names(atom: Atom) -> list[str]:
    """The names that a statement leads between; the scope itself is none."""
    return [name.casefold() for name in (atom.slot.subject, atom.slot.object) if name] if atom.slot else []


def _edge(atom: Atom) -> Edge:
    subject, relation, value = atom.slot or ("", "", "")
    return {"from": subject or atom.scope, "relation": relation, "to": value, "id": atom.id}


def _entities(store: EnhancedStore, question: str) -> list[tuple[str, Result]]:
    """The entities of the graph that a question names."""
    asked = " ".join(["", *re.findall(r"[^\W_]+", question.casefold()), ""])
    named = [each for each in graph_of(store).read().entities if f" {each.name.casefold()} " in asked]
    told = [(each, "; ".join([each.name, *(said.text for said in each.observations)])) for each in named]
    return [(e.path, _result("entity", e.name, text, e.name, e.name, e.path, "default")) for e, text in told]


def _result(kind: str, id_: str, text: str, of: str, title: str, path: str, scope: str, **more: Any) -> Result:
    source: Source = {"id": of, "title": title, "name": path.removesuffix(".md"), "heading": "", "line": 1, "url": None}
    source |= more  # type: ignore[typeddict-item]
    return {"kind": kind, "id": id_, "text": text, "score": 0.0, "container_tag": scope, "source": source}


def _of_piece(of: Document, piece: Piece, score: float = 0.0) -> Result:
    where = {"heading": piece.heading, "line": piece.line, "url": of.source_url or None}
    row = _result("chunk", f"{of.id}:{piece.line}", piece.text, of.id, of.title, of.path, of.scope, **where)
    return row | {"score": score}


def _of_atom(atom: Atom) -> Result:
    row, at = _result("memory", atom.id, atom.statement, atom.id, atom.statement[:80], atom.path, atom.scope), now()
    row["memory_type"], row["confidence"] = atom.memory_type, round(life.confidence_at(atom, at), 4)
    row["valid_from"], row["valid_to"], row["is_latest"] = (
        told(atom.valid_from),
        told(atom.valid_to),
        atom.status == "active",
    )
    return row


def told(at: datetime | None) -> str | None:
    """A moment as rows have it."""
    return stamp(at) if at is not None else None


def _take(
    found: Recalled,
    ranked: Sequence[tuple[float, int, Result, str]],
    limit: int,
    budget: int | None,
    held: dict[str, Atom],
) -> None:
    """Take the best, each text once, within a number and a budget of tokens."""
    said, duplicates = set[str](), 0
    for score, _, row, path in ranked:
        plain = " ".join(row["text"].casefold().split())
        if plain in said:
            duplicates += 1
            continue
        said.add(plain)
        tokens = count_tokens(row["text"])
        if len(found.results) >= limit or (budget is not None and found.tokens + tokens > budget):
            found.left_out += 1
            continue
        found.tokens += tokens
        found.results.append(row | {"score": round(min(1.0, max(0.0, score)), 4)})
        found.shown.append(path)
        found.atoms += [held[path]] if row["kind"] == "memory" else []
    found.steps.append(
        _step("dedupe", bool(duplicates), f"{duplicates} said the same" if duplicates else "nothing was said twice")
    )
    found.steps.append(
        _step("budget", budget is not None, f"{found.left_out} left out" if budget else "none was given")
    )


def answered(store: EnhancedStore, query: str, found: Recalled) -> tuple[str | None, str, str]:
    """An answer with citations by the model, who gave it, and why there is none."""
    documents = documents_of(store)
    if (chat := documents.chat) is None or not found.results:
        return None, "none", ""
    from simplemem.kinds.atoms.asking import answer

    private = documents.bench.private(found.shown)
    held = {each.id: each.valid_from for each in found.atoms}
    pairs = zip(found.results, found.shown, strict=True)
    shown = [(row["text"], held.get(row["id"])) for row, path in pairs if path not in private][:_MOST_SHOWN]
    try:
        said = answer(documents, chat, query, shown) if shown else ""
    except SimplememError as error:
        return None, "none", error.message
    return (said, chat.method, "") if said else (None, "none", "the model gave no answer that cites what it was shown")


def rows_of(store: EnhancedStore, atoms: Sequence[Atom]) -> list[Row]:
    """Statements as lists show them, with the ids of what they link to."""
    documents, at = documents_of(store), now()
    links = [(link, atom.path) for atom in atoms for link in _links(atom) if link]
    paths = dict(zip(links, documents.bench.meant(links), strict=True)) if links else {}
    there = documents.memories.shelf.items
    files = {each.path: each.id for each in documents.documents(None)} if any(each.source for each in atoms) else {}

    def id_of(link: str, atom: Atom) -> str | None:
        path = paths.get((link, atom.path)) or ""
        return there[path].id if path in there else files.get(path, link or None)

    return [
        {
            "id": e.id, "memory": e.statement, "memory_type": e.memory_type, "container_tag": e.scope,
            "is_latest": e.status == "active", "confidence": round(life.confidence_at(e, at), 4),
            "base_confidence": e.confidence, "valid_from": told(e.valid_from), "valid_to": told(e.valid_to),
            "forgotten_at": told(life.forgotten_at(e)), "source_doc_id": id_of(e.source, e),
            "updates": id_of(e.updates, e), "extends": id_of(e.extends, e),
            "derived_from": [id_of(link, e) or link for link in e.derived_from],
            "superseded_by": id_of(e.superseded_by, e), "status": e.status,
            "created_at": e.created or told(e.valid_from) or "", "name": e.path.removesuffix(".md"),
        }
        for e in atoms
    ]  # fmt: skip


def _links(atom: Atom) -> list[str]:
    return [atom.source, atom.updates, atom.extends, atom.superseded_by, *atom.derived_from]


def like(
    store: EnhancedStore,
    query: str,
    scope: str | None,
    *,
    mode: str,
    limit: int,
    least: float,
    types: Collection[str],
    expired: bool,
    rewrite: bool,
) -> dict[str, Any]:
    """Statements and passages by how like a question they are, on the scale of the graph's search by meaning."""
    documents, steps = documents_of(store), list[Step]()
    scope = check_scope(scope) if scope is not None else None
    question = query[:_MOST_QUESTION].replace("\0", " ")
    question = _rewritten(store, question, steps) if rewrite else question
    every = documents.memories.atoms(scope, expired=expired) if mode != "rag" else []
    held = {each.path: each for each in every if not types or each.memory_type in types}
    texts = {each.path: each for each in documents.documents(scope)} if mode != "memory" and not types else {}
    scores = _alike(documents.bench.likeness(question, [*held, *texts]), least)
    best = sorted(scores, key=lambda path: -scores[path])
    atoms = [path for path in best if path in held][:limit]
    found = documents.bench.answers(question, [path for path in best if path in texts], limit, passages=limit)
    chunks = [_of_piece(texts[path_of(piece.name)], piece, scores[path_of(piece.name)]) for piece in found.passages]
    rows = [
        row | {"score": scores[path]} for row, path in zip(rows_of(store, [held[p] for p in atoms]), atoms, strict=True)
    ]
    return {"memories": rows, "chunks": chunks, "steps": steps}


def _alike(found: Likeness, least: float) -> dict[str, float]:
    """The scores of notes that reach a threshold, by meaning or with their words."""
    scores = {}
    for path in {*found.meaning, *found.words}:
        meaning = (1 + found.meaning.get(path, -1.0)) / 2
        score = found.words.get(path, 0.0) if found.missing else 0.6 * meaning + 0.4 * found.words.get(path, 0.0)
        if max(score, meaning) >= least:
            scores[path] = round(min(1.0, score), 4)
    return scores
