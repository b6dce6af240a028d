"""What a question finds: statements by the slot it names, by words and meaning, and by walking from name to name; entities
of the graph and passages of documents beside them. Only of the scope that is asked. Nothing is written for an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.kinds.answers import Edge, Result, Row, Step
from simplemem.kinds.atoms import life
from simplemem.kinds.atoms.atom import Atom, Slot, check_scope
from simplemem.kinds.atoms.keeping import Memories
from simplemem.kinds.atoms.reading import answers, asked_slot, read_statement
from simplemem.kinds.documents.ingest import Document, Documents, documents_of
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.values import Graph
from simplemem.note.clock import now, stamp
from simplemem.note.names import path_of
from simplemem.note.words import STOP_WORDS, count_tokens, well_formed, words_in_order

if TYPE_CHECKING:
    from simplemem.store import Bench, EnhancedStore

_MOST_QUESTION, _MOST_SHOWN = 2_000, 10  # characters; of what was found, to a model that answers
_NEAREST: Final = 0.5  # of a score, where no more was found than what is nearest
_STEPS, _MOST_WAYS, _LONGEST_NAME = (0.5, 0.25), 20, 6  # scores of a walk's steps; ways one takes; words of a name
_SHARED: Final = "default"  # whose entities are, and what conversations keep
_MEANING: Final = 0.6  # of how like a question a note is; the rest is words


class Asked(NamedTuple):
    """A question, of whom it is asked (None: of everybody), and what may answer."""

    query: str
    scope: str | None
    mode: str = "hybrid"  # memory, rag
    limit: int = 10
    rerank: bool = True
    rewrite: bool = False
    budget: int | None = None  # tokens
    types: Collection[str] = ()  # of statements
    expired: bool = False
    least: float | None = None  # of how like the question it is; then all are compared


class Hit(NamedTuple):
    """Something that answers, the note it stands in, and the statement it is."""

    result: Result
    path: str
    atom: Atom | None = None


class Recalled(NamedTuple):
    """What a question found, best first, and what was done for that or why it was not."""

    hits: list[Hit]
    edges: list[Edge]
    steps: list[Step]
    tokens: int
    left_out: int
    degraded: str


class _Slots(NamedTuple):
    """All statements with a slot, by the first word of its relation, and by the names that it leads between."""

    of: Sequence[Atom]
    filling: Mapping[str, Sequence[Atom]]
    leading: Mapping[str, Sequence[Atom]]


def recall(store: EnhancedStore, asked: Asked) -> Recalled:
    """What answers a question."""
    documents, steps = documents_of(store), list[Step]()
    scope = None if asked.scope is None else check_scope(asked.scope)
    question, bench = well_formed(asked.query[:_MOST_QUESTION]).replace("\0", " "), documents.bench

    def note(step: str, used: object, why: str) -> None:
        steps.append({"step": step, "used": bool(used), "why": why})

    every = documents.memories.atoms(scope, expired=asked.expired) if asked.mode != "rag" else ()
    atoms = {each.path: each for each in every if not asked.types or each.memory_type in asked.types}
    texts = {each.path: each for each in documents.documents(scope)}
    graph = graph_of(store).read() if asked.mode != "rag" and scope in (None, _SHARED) else Graph()
    entities = {each.path: each for each in graph.entities if not each.is_note}
    slots = _filled(question, index := _slots_of(documents.memories), atoms)
    note("slots", slots, "a statement fills it" if slots else "the question names none that is filled")
    said, by, why = _by_model(documents, "rewrite", question) if asked.rewrite else ("", "", "not asked for")
    note("hyde", said, why or by)
    wider = f"{question} {said}"
    sought = [[*atoms, *entities], [*texts] if asked.mode != "memory" else []] if words_in_order(wider) else [[], []]
    stated = bench.answers(wider, sought[0], asked.limit, rerank=asked.rerank)
    written = bench.answers(wider, sought[1], asked.limit, passages=2 * asked.limit, rerank=asked.rerank)
    degraded = " ".join(dict.fromkeys(filter(None, (stated.degraded, written.degraded))))
    note("vectors", stated.by_meaning or written.by_meaning, degraded or bench.embedder or "there are none")
    share, safe = (_NEAREST if leg.only_nearest else 1.0 for leg in (stated, written))
    scores = {each.path: 1.0 for each in slots}
    scores |= {path: max(share * score, scores.get(path, 0.0)) for path, score in stated.notes.items()}
    alike = {} if asked.least is None else _alike(bench, wider, [*atoms, *texts], asked.least)
    scores |= {path: max(share, scores.get(path, 0.0)) for path, share in alike.items() if path in atoms}
    edges, met = _walked(question, {path for path in scores if scores[path] > _NEAREST}, index, atoms, graph)
    scores |= {path: max(score, scores.get(path, 0.0)) for path, score in met.items()}
    note("graph", edges, "from name to name" if edges else "no name leads on")
    by = stated.reranker or written.reranker or "words and meaning"
    note("rerank", asked.rerank, by if asked.rerank else "not asked for")

    found = [atoms[path] for path in scores if path in atoms]
    origins = bench.meant([(each.source, each.path) for each in found])
    hits = [_of_atom(scores[e.path], e, texts.get(of or "")) for e, of in zip(found, origins, strict=True)]
    for e in (entities[path] for path in scores if path in entities):
        text = "; ".join([e.name, *e.texts])
        hits.append(_hit(scores[e.path], "entity", e.name, text, _SHARED, e.name, e.path))
    for piece in written.passages:
        of = texts[path_of(piece.name)]
        where: Any = {"title": of.title, "heading": piece.heading, "line": piece.line, "url": of.source_url or None}
        id_ = f"{of.id}:{piece.line}"
        hits.append(_hit(safe * piece.score, "chunk", id_, piece.text, of.scope, of.id, of.path, **where))
    hits.sort(key=lambda hit: -hit.result["score"])  # at a tie a statement goes before a passage
    hits = [hit for hit in hits if asked.least is None or hit.path in alike or hit.atom in slots]
    once = _once(hits)
    note("dedupe", len(once) < len(hits), f"{len(hits) - len(once)} said what another says")
    taken, tokens = list[Hit](), 0
    for hit, size in ((hit, count_tokens(hit.result["text"])) for hit in once[: asked.limit]):
        if asked.budget is None or tokens + size <= asked.budget:
            taken.append(hit)
            tokens += size
    left_out = len(once[: asked.limit]) - len(taken)
    note("budget", asked.budget is not None, "none was given" if asked.budget is None else f"{left_out} left out")
    return Recalled(taken, edges, steps, tokens, left_out, degraded)


def _slots_of(memories: Memories) -> _Slots:
    """The statements by their slots, worked out once until one changes."""
    with memories.shelf.lock:
        every, known = memories.shelf.in_order(), memories.bench.made.get("slots")
    if known is None or known.of is not every:
        filling, leading = defaultdict[str, list[Atom]](list), defaultdict[str, list[Atom]](list)
        for each in every:
            for name in _names(each):
                leading[name].append(each)
            for head in each.slot.relation.partition("/")[0].split()[:1] if each.slot else ():
                filling[head].append(each)
        known = memories.bench.made["slots"] = _Slots(every, filling, leading)
    return known


def _filled(question: str, index: _Slots, atoms: Mapping[str, Atom]) -> list[Atom]:
    """The statements that fill the slot which a question names, best first. One that no rule reads is its note's."""
    fits = dict[Atom, float]()
    for head in {each.split()[0] for each in asked_slot(question)}:
        for each in (each for each in index.filling.get(head, ()) if each.path in atoms):
            reading = read_statement(each.statement)
            is_told = reading.slot or each.decided_by.startswith("rule")
            fits[each] = answers(question, reading if is_told else reading._replace(slot=each.slot))
    return [each for each in sorted(fits, key=lambda each: -fits[each]) if fits[each] > 0]


def _by_model(documents: Documents, task: str, *said: Any) -> tuple[str, str, str]:
    """What the model says to that, who it is, and why it says nothing."""
    if (chat := documents.chat) is None:
        return "", "none", "there is no model"
    from simplemem.kinds.atoms import asking

    try:
        answer: str = getattr(asking, task)(documents, chat, *said)
    except SimplememError as error:
        return "", "none", f"the model was no help: {error.message}"
    return (answer, chat.method, "") if answer else ("", "none", "the model said nothing of use")


def _walked(
    question: str, best: Collection[str], index: _Slots, atoms: Mapping[str, Atom], graph: Graph
) -> tuple[list[Edge], dict[str, float]]:
    """The ways from the names in a question and in its best hits, and the notes met, each step with half a score."""
    called = {_plain(each.name): each.path for each in graph.entities if not each.is_note}
    related = defaultdict[str, list[Atom]](list)  # relations, as statements without a note
    for way in (Atom("", "", each.source, "", _SHARED, slot=Slot(*each.key)) for each in graph.relations):
        for name in _names(way):
            related[name].append(way)
    words, walked, met = _plain(question).split(), dict[Atom, None](), dict[str, float]()
    spans = {" ".join(words[at:end]) for at in range(len(words)) for end in range(at + 1, at + 1 + _LONGEST_NAME)}
    names = {name for name in spans if name in index.leading or name in related or name in called}
    names |= {name for path in best if path in atoms for name in _names(atoms[path])}
    names |= {name for name, path in called.items() if path in best}
    for score in _STEPS:
        every = (way for name in sorted(names) for way in (*index.leading.get(name, ()), *related.get(name, ())))
        fresh = dict.fromkeys(way for way in every if way not in walked and (not way.path or way.path in atoms))
        ways = [*fresh][:_MOST_WAYS]
        paths = [*(called[name] for name in names & called.keys()), *(way.path for way in ways if way.path)]
        walked, met = walked | dict.fromkeys(ways), dict.fromkeys(paths, score) | met
        names = {name for way in ways for name in _names(way)}
    ends = [(each.slot, each) for each in walked if each.slot]
    return [{"from": s.subject or e.scope, "relation": s.relation, "to": s.object, "id": e.id} for s, e in ends], met


def _names(atom: Atom) -> list[str]:
    """The names that a statement leads between; the scope itself is none."""
    return [name for name in (_plain(atom.slot.subject), _plain(atom.slot.object)) if name] if atom.slot else []


@lru_cache(maxsize=50_000)
def _plain(text: str) -> str:
    """A text as names are compared; "" where its words only hold a sentence together."""
    words = words_in_order(text)
    return "" if STOP_WORDS.issuperset(words) else " ".join(words)


def _hit(
    score: float, kind: str, id_: str, text: str, scope: str, of: str, path: str, atom: Atom | None = None, **more: Any
) -> Hit:
    """Something found, and what it is of: a document, else its own note."""
    source = {"id": of, "title": text[:80], "name": path.removesuffix(".md"), "heading": "", "line": 1, "url": None}
    result: Any = {"kind": kind, "id": id_, "text": text, "score": round(score, 4), "container_tag": scope}
    return Hit(result | {"source": source | more}, path, atom)


def _of_atom(score: float, atom: Atom, of: Document | None) -> Hit:
    where = {"title": of.title, "name": of.path.removesuffix(".md"), "url": of.source_url or None} if of else {}
    hit = _hit(score, "memory", atom.id, atom.statement, atom.scope, of.id if of else atom.id, atom.path, atom, **where)
    hit.result["memory_type"], hit.result["confidence"] = atom.memory_type, round(life.confidence_at(atom, now()), 4)
    hit.result["is_latest"] = atom.status == "active"
    if atom.valid_from:
        hit.result["valid_from"] = stamp(atom.valid_from)
    if atom.valid_to:
        hit.result["valid_to"] = stamp(atom.valid_to)
    return hit


def told(at: datetime | None) -> str | None:
    """A moment as answers have it."""
    return stamp(at) if at is not None else None


def _alike(bench: Bench, question: str, paths: Collection[str], least: float) -> dict[str, float]:
    """The notes that are so like a question, as the graph's search by meaning reckons; by words without vectors."""
    found, shares = bench.likeness(question, paths), dict[str, float]()
    for path in found.words if found.missing else found.meaning:
        meaning, words = (1 + found.meaning.get(path, -1.0)) / 2, found.words.get(path, 0.0)
        share = words if found.missing else _MEANING * meaning + (1 - _MEANING) * words
        if found.missing or max(share, meaning) >= least:
            shares[path] = min(1.0, share)
    return shares


def _once(hits: Iterable[Hit]) -> list[Hit]:
    """Without what says the same as one before it, or was drawn from a passage before it."""
    kept, said, told_by = list[Hit](), set[tuple[str, str]](), defaultdict[str, list[str]](list)
    for hit in hits:
        text, of = f" {' '.join(words_in_order(hit.result['text']))} ", hit.result["source"]["id"]
        if (key := (hit.result["container_tag"], text)) not in said and not any(text in each for each in told_by[of]):
            kept.append(hit)
            said.add(key)
            told_by[of].append(text)
    return kept


def answered(documents: Documents, query: str, found: Recalled) -> tuple[str, str, str]:
    """An answer with citations by the model, who gave it, and why there is none."""
    if documents.chat is None or not found.hits:
        return "", "none", ""
    private = documents.bench.private(hit.path for hit in found.hits)
    shown = [(hit.result["text"], hit.atom and hit.atom.valid_from) for hit in found.hits if hit.path not in private]
    return _by_model(documents, "answer", query, shown[:_MOST_SHOWN])


def rows_of(store: EnhancedStore, atoms: Sequence[Atom]) -> list[Row]:
    """Statements as lists show them, with the ids of what they link to."""
    documents, moment = documents_of(store), now()
    every: list[Atom | Document] = [*documents.memories.atoms(None, expired=True), *documents.documents(None)]
    there = {(each.scope, each.path): each.id for each in every}
    links = [(e, at) for e in atoms for at in (e.source, e.updates, e.extends, e.superseded_by, *e.derived_from) if at]
    paths = documents.bench.meant([(link, e.path) for e, link in links])
    ids = {key: there.get((key[0].scope, path or "")) for key, path in zip(links, paths, strict=True)}
    return [
        {
            "id": e.id, "memory": e.statement, "memory_type": e.memory_type, "container_tag": e.scope,
            "is_latest": e.status == "active", "confidence": round(life.confidence_at(e, moment), 4),
            "base_confidence": e.confidence, "valid_from": told(e.valid_from), "valid_to": told(e.valid_to),
            "forgotten_at": told(life.forgotten_at(e)), "source_doc_id": ids.get((e, e.source)),
            "updates": ids.get((e, e.updates)), "extends": ids.get((e, e.extends)),
            "derived_from": [id_ for link in e.derived_from if (id_ := ids[e, link])],
            "superseded_by": ids.get((e, e.superseded_by)), "status": e.status,
            "created_at": e.created or told(e.valid_from) or "", "name": e.path.removesuffix(".md"),
        }
        for e in atoms
    ]  # fmt: skip
