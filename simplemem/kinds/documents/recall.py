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
from simplemem.kinds.atoms.atom import Atom, check_scope
from simplemem.kinds.atoms.reading import answers, asked_slot, read_statement
from simplemem.kinds.documents.document import Document
from simplemem.kinds.documents.ingest import Documents, documents_of
from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.values import Graph
from simplemem.kinds.talk.block import stamp
from simplemem.note.clock import now
from simplemem.note.names import path_of
from simplemem.note.words import STOP_WORDS, count_tokens, well_formed, words_in_order

if TYPE_CHECKING:
    from simplemem.store import Bench, EnhancedStore

_MOST_QUESTION: Final = 2_000  # characters
_NEAREST: Final = 0.5  # of a score, where no more was found than what is nearest
_STEPS, _MOST_MET = (0.5, 0.25), 20  # of a walk: what each step leaves of a score, how many ways one takes
_LONGEST_NAME: Final = 6  # words
_SHARED: Final = "default"  # whose entities are, and what conversations keep
_MEANING: Final = 0.6  # of how like a question a note is; the rest is words
_MOST_SHOWN: Final = 10  # statements and passages that a model answers from


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
    least: float = 0.0  # of how like the question it is


class Hit(NamedTuple):
    """Something that answers, the note it stands in, and the statement it is."""

    result: Result
    path: str
    atom: Atom | None = None


class _Way(NamedTuple):
    """A step from name to name: a statement of a slot, or a relation of the graph."""

    source: str  # "" is the scope
    relation: str
    target: str
    id: str
    path: str = ""  # of a statement
    scope: str = ""

    def names(self) -> list[str]:
        return [name for name in (_plain(self.source), _plain(self.target)) if name]

    def edge(self) -> Edge:
        return {"from": self.source or self.scope, "relation": self.relation, "to": self.target, "id": self.id}


class Recalled(NamedTuple):
    """What a question found, best first, and what was done for that or why it was not."""

    hits: Sequence[Hit]
    slots: Sequence[Atom]
    edges: list[Edge]
    steps: list[Step]
    tokens: int
    left_out: int
    degraded: str


def recall(store: EnhancedStore, asked: Asked) -> Recalled:
    """What answers a question."""
    documents, steps = documents_of(store), list[Step]()
    scope = None if asked.scope is None else check_scope(asked.scope)
    question, bench = well_formed(asked.query[:_MOST_QUESTION]).replace("\0", " "), documents.bench

    def note(step: str, used: object, why: str) -> None:
        steps.append({"step": step, "used": bool(used), "why": why})

    every = documents.memories.atoms(scope, expired=asked.expired) if asked.mode != "rag" else []
    atoms = {each.path: each for each in every if not asked.types or each.memory_type in asked.types}
    texts = {each.path: each for each in documents.documents(scope)}
    graph = graph_of(store).read() if asked.mode != "rag" and scope in (None, _SHARED) else Graph()
    entities = {each.path: each for each in graph.entities if not each.is_note}
    slots = _filled(question, atoms.values())
    note("slots", slots, "a statement fills it" if slots else "the question names none that is filled")
    wider, is_wider, why = _rewritten(documents, question) if asked.rewrite else (question, False, "not asked for")
    note("hyde", is_wider, why)
    sought = [[*atoms, *entities], list(texts) if asked.mode != "memory" else []]
    sought = sought if words_in_order(wider) else [[], []]
    stated = bench.answers(wider, sought[0], asked.limit, rerank=asked.rerank)
    written = bench.answers(wider, sought[1], asked.limit, passages=2 * asked.limit, rerank=asked.rerank)
    degraded = " ".join(dict.fromkeys(filter(None, (stated.degraded, written.degraded))))
    note("vectors", stated.by_meaning or written.by_meaning, degraded or bench.embedder or "there are none")
    share = [_NEAREST if leg.only_nearest else 1.0 for leg in (stated, written)]
    scores = {each.path: 1.0 for each in slots}
    scores |= {path: max(share[0] * score, scores.get(path, 0.0)) for path, score in stated.notes.items()}
    ways = [_Way(*each.slot, each.id, each.path, each.scope) for each in atoms.values() if each.slot]
    ways += [_Way(*each.key, each.source) for each in graph.relations]
    called = {_plain(each.name): path for path, each in entities.items()}
    walked, met = _walked(question, {path for path, score in scores.items() if score > _NEAREST}, ways, called)
    scores |= {path: max(score, scores.get(path, 0.0)) for path, score in met.items()}
    note("graph", walked, "from name to name" if walked else "no name leads on")
    by = stated.reranker or written.reranker or "words and meaning"
    note("rerank", asked.rerank, by if asked.rerank else "not asked for")

    drawn = [atom for path in scores if (atom := atoms.get(path)) and atom.source]
    origins = dict(zip(drawn, bench.meant([(each.source, each.path) for each in drawn]), strict=True))
    hits = [
        _of_atom(score, atom, texts.get(origins.get(atom) or ""))
        if (atom := atoms.get(path))
        else _hit(score, "entity", (e := entities[path]).name, "; ".join([e.name, *e.texts]), _SHARED, e.name, path)
        for path, score in scores.items()
    ]
    for piece in written.passages:
        of = texts[path_of(piece.name)]
        where: Any = {"title": of.title, "heading": piece.heading, "line": piece.line, "url": of.source_url or None}
        id_ = f"{of.id}:{piece.line}"
        hits.append(_hit(share[1] * piece.score, "chunk", id_, piece.text, of.scope, of.id, of.path, **where))
    hits = _alike(bench, question, hits, slots, asked.least) if asked.least else hits
    once = _once(sorted(hits, key=lambda hit: -hit.result["score"]))  # at a tie a statement goes before a passage
    note("dedupe", len(once) < len(hits), f"{len(hits) - len(once)} said what another says")
    taken, tokens = list[Hit](), 0
    for hit, size in ((hit, count_tokens(hit.result["text"])) for hit in once[: asked.limit]):
        if asked.budget is None or tokens + size <= asked.budget:
            taken.append(hit)
            tokens += size
    left_out = len(once[: asked.limit]) - len(taken)
    note("budget", asked.budget is not None, "none was given" if asked.budget is None else f"{left_out} left out")
    return Recalled(taken, slots, [way.edge() for way in walked], steps, tokens, left_out, degraded)


def _filled(question: str, atoms: Iterable[Atom]) -> list[Atom]:
    """The statements that fill the slot which a question names, best first."""
    if not (asked := asked_slot(question)):
        return []
    told = [each for each in atoms if (each.slot.relation in asked if each.slot else not each.decided_by)]
    fits = {each: answers(question, read_statement(each.statement)) for each in told}
    return [each for each in sorted(told, key=lambda each: -fits[each]) if fits[each] > 0]


def _rewritten(documents: Documents, question: str) -> tuple[str, bool, str]:
    """The question with words that an answer might have, if there is a model; and who found them, or why nobody did."""
    if (chat := documents.chat) is None:
        return question, False, "there is no model"
    from simplemem.kinds.atoms.asking import rewrite

    try:
        return f"{question} {rewrite(documents, chat, question)}", True, chat.method
    except SimplememError as error:
        return question, False, f"the model was no help: {error.message}"


def _walked(
    question: str, best: Collection[str], ways: Sequence[_Way], called: Mapping[str, str]
) -> tuple[list[_Way], dict[str, float]]:
    """The ways from the names in a question and in its best hits, and the paths that are met, each step with half a
    score. `called` are the paths of entities by their names."""
    leading = defaultdict[str, list[_Way]](list)
    for way in ways:
        for name in way.names():
            leading[name].append(way)
    words, walked, met = _plain(question).split(), dict[_Way, None](), dict[str, float]()
    spans = {" ".join(words[at:end]) for at in range(len(words)) for end in range(at + 1, at + 1 + _LONGEST_NAME)}
    names = spans & (leading.keys() | called.keys()) | {name for name, path in called.items() if path in best}
    names |= {name for way in ways if way.path in best for name in way.names()}
    for score in _STEPS:
        fresh = dict.fromkeys(way for name in sorted(names) for way in leading.get(name, ()) if way not in walked)
        fresh = dict.fromkeys([*fresh][:_MOST_MET])
        paths = [*(called[name] for name in names & called.keys()), *(way.path for way in fresh if way.path)]
        walked, met = walked | fresh, dict.fromkeys(paths, score) | met
        names = {name for way in fresh for name in way.names()}
    return [*walked], met


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
    hit.result["valid_from"], hit.result["valid_to"] = told(atom.valid_from), told(atom.valid_to)
    hit.result["is_latest"] = atom.status == "active"
    return hit


def told(at: datetime | None) -> str | None:
    """A moment as answers have it."""
    return stamp(at) if at is not None else None


def _alike(bench: Bench, question: str, hits: list[Hit], slots: Collection[Atom], least: float) -> list[Hit]:
    """Those so like the question, as the graph's search by meaning reckons; without vectors those with a word of it."""
    found = bench.likeness(question, {hit.path for hit in hits})

    def is_like(path: str) -> bool:
        meaning, words = (1 + found.meaning.get(path, -1.0)) / 2, found.words.get(path, 0.0)
        both = words and 1.0 if found.missing else _MEANING * meaning + (1 - _MEANING) * words
        return max(meaning, both) >= least

    return [hit for hit in hits if hit.atom in slots or is_like(hit.path)]


def _once(hits: Iterable[Hit]) -> list[Hit]:
    """Without what says the same as one before it, or was drawn from a passage before it."""
    kept: dict[tuple[str, str], Hit] = {}
    for hit in hits:
        said, of = f" {' '.join(words_in_order(hit.result['text']))} ", hit.result["source"]["id"]
        if not any(said in text and of == kept[key].result["source"]["id"] for key in kept for text in key[1:]):
            kept.setdefault((hit.result["container_tag"], said), hit)
    return list(kept.values())


def answered(documents: Documents, query: str, found: Recalled) -> tuple[str | None, str, str]:
    """An answer with citations by the model, who gave it, and why there is none."""
    if (chat := documents.chat) is None or not found.hits:
        return None, "none", ""
    from simplemem.kinds.atoms.asking import answer

    private = documents.bench.private(hit.path for hit in found.hits)
    told_of = [hit for hit in found.hits if hit.path not in private][:_MOST_SHOWN]
    shown = [(hit.result["text"], hit.atom.valid_from if hit.atom else None) for hit in told_of]
    try:
        said = answer(documents, chat, query, shown) if shown else ""
    except SimplememError as error:
        return None, "none", error.message
    return (said, chat.method, "") if said else (None, "none", "the model gave no answer that cites what it was shown")


def rows_of(store: EnhancedStore, atoms: Sequence[Atom]) -> list[Row]:
    """Statements as lists show them, with the ids of what they link to."""
    documents, at = documents_of(store), now()
    every: list[Atom | Document] = [*documents.memories.atoms(None, expired=True), *documents.documents(None)]
    there = {(each.scope, each.path): each.id for each in every}
    links = [
        (e, link) for e in atoms for link in (e.source, e.updates, e.extends, e.superseded_by, *e.derived_from) if link
    ]
    paths = documents.bench.meant([(link, e.path) for e, link in links])
    ids = {key: there.get((key[0].scope, path or "")) for key, path in zip(links, paths, strict=True)}
    return [
        {
            "id": e.id, "memory": e.statement, "memory_type": e.memory_type, "container_tag": e.scope,
            "is_latest": e.status == "active", "confidence": round(life.confidence_at(e, at), 4),
            "base_confidence": e.confidence, "valid_from": told(e.valid_from), "valid_to": told(e.valid_to),
            "forgotten_at": told(life.forgotten_at(e)), "source_doc_id": ids.get((e, e.source)),
            "updates": ids.get((e, e.updates)), "extends": ids.get((e, e.extends)),
            "derived_from": [id_ for link in e.derived_from if (id_ := ids[e, link])],
            "superseded_by": ids.get((e, e.superseded_by)), "status": e.status,
            "created_at": e.created or told(e.valid_from) or "", "name": e.path.removesuffix(".md"),
        }
        for e in atoms
    ]  # fmt: skip
