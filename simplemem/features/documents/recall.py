"""What a question finds: statements by the slot it names, by words and meaning, and by walking from name to name; entities
of the graph and passages of documents beside them. Only of the scope that is asked. Nothing is written for an answer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from simplemem.features.answers import Edge, Row, Step
from simplemem.features.documents.ingest import Document, Documents, documents_of
from simplemem.features.documents.outdated import Hit, with_outdated_marks
from simplemem.features.facts import life
from simplemem.features.facts.atom import Atom, Slot, as_name
from simplemem.features.facts.reading import answers, asked_slot, read_statement
from simplemem.features.graph.graph import graph_of
from simplemem.features.graph.values import SHARED, Graph
from simplemem.note.dates import format_moment, now
from simplemem.note.names import name_of, path_of
from simplemem.note.scopes import check_scope
from simplemem.note.words import count_tokens, well_formed, words_in_order
from simplemem.store import falling_scores

if TYPE_CHECKING:
    from simplemem.store import Answers, EnhancedStore

_MOST_QUESTION, _MOST_SHOWN = 2_000, 10  # characters; of what was found, to a model that answers
_NEAREST: Final = 0.5  # of a score, where no more was found than what is nearest
_STEPS, _MOST_WAYS, _LONGEST_NAME = (
    (0.5, 0.25),
    20,
    6,
)  # scores of a walk's steps; ways one takes; words of a name
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


class _Score(NamedTuple):
    """What a hit is ordered by, where the best of each kind has 1, and how good it is on its own, which is shown."""

    rank: float
    own: float


class Recalled(NamedTuple):
    """What a question found, best first, and what was done for that or why it was not."""

    hits: list[Hit]
    edges: list[Edge]
    steps: list[Step]
    tokens: int
    left_out: int
    degraded: str


def recall(store: EnhancedStore, asked: Asked) -> Recalled:
    """What answers a question."""
    documents, steps = documents_of(store), list[Step]()
    scope = None if asked.scope is None else check_scope(asked.scope)
    question, bench = (
        well_formed(asked.query[:_MOST_QUESTION]).replace("\0", " "),
        documents.extension,
    )

    def note(step: str, used: object, why: str) -> None:
        steps.append({"step": step, "used": bool(used), "why": why})

    every = documents.memories.atoms(scope, expired=asked.expired) if asked.mode != "rag" else ()
    atoms = {
        each.path: each for each in every if not asked.types or each.memory_type in asked.types
    }
    texts = {each.path: each for each in documents.documents(scope)}
    graph = graph_of(store).read(scope) if asked.mode != "rag" else Graph()
    entities = {each.path: each for each in graph.entities if not each.is_note}
    slots = _filled(question, atoms.values())
    note(
        "slots",
        slots,
        "a fact answers the question directly"
        if slots
        else "no fact answers the question directly",
    )
    said, by, why = (
        documents.asked(documents.chat, "rewrite", question)
        if asked.rewrite
        else ("", "", "not requested")
    )
    note("hyde", said, why or by)
    wider = f"{question} {said or ''}"
    sought = (
        [[*atoms, *entities], [*texts] if asked.mode != "memory" else []]
        if words_in_order(wider)
        else [[], []]
    )
    stated = bench.answers(wider, sought[0], asked.limit, rerank=asked.rerank)
    written = bench.answers(
        wider, sought[1], asked.limit, passages=2 * asked.limit, rerank=asked.rerank
    )
    degraded = " ".join(dict.fromkeys(filter(None, (stated.degraded, written.degraded))))
    note(
        "vectors",
        stated.by_meaning or written.by_meaning,
        degraded or bench.embedder or "there are no vectors",
    )
    share, safe = (_scale(leg) for leg in (stated, written))
    scores = {each.path: _Score(1.0, 1.0) for each in slots}
    _raise_to(
        scores,
        {
            path: _Score(share * score, stated.quality * score)
            for path, score in stated.notes.items()
        },
    )
    alike = dict[str, float]()
    if asked.least is not None:
        likeness = bench.likeness(wider, [*atoms, *texts]).scores(_MEANING, asked.least)
        alike = {path: min(1.0, score) for path, (score, _, _) in likeness.items()}
    _raise_to(
        scores, {path: _Score(score, score) for path, score in alike.items() if path in atoms}
    )
    best = {path for path, score in scores.items() if score.rank > _NEAREST}
    edges, met = _walked(question, best, atoms, graph)
    _raise_to(scores, {path: _Score(score, score) for path, score in met.items()})
    note("graph", edges, "followed related names" if edges else "no related names")
    by = stated.reranker or written.reranker or "words and meaning"
    note("rerank", asked.rerank, by if asked.rerank else "not requested")

    found = [atoms[path] for path in scores if path in atoms]
    hits = _hits_of(documents, found, scores, texts)
    hits += [
        _hit(
            scores[e.path],
            "entity",
            e.name,
            "; ".join([e.name, *e.texts]),
            e.owner or SHARED,
            e.path,
        )
        for e in (entities[path] for path in scores if path in entities)
    ]
    for part in written.passages:
        of, score = (
            texts[path_of(part.name)],
            _Score(safe * part.score, written.quality * part.score),
        )
        hits.append(
            _hit(
                score,
                "chunk",
                f"{of.id}:{part.line}",
                part.text,
                of.scope,
                of.path,
                of,
                part.heading,
                part.line,
            )
        )
    hits.sort(key=lambda hit: -hit.rank)  # at a tie a statement goes before a passage
    hits = [hit for hit in hits if asked.least is None or hit.path in alike or hit.atom in slots]
    once = _once(hits)
    repeated = len(hits) - len(once)
    once = _with_disputes(documents, once, atoms, texts)
    once = with_outdated_marks(documents, once, scope)
    note("dedupe", repeated, f"{repeated} repeated another hit")
    taken, tokens = list[Hit](), 0
    for hit, size in ((hit, count_tokens(hit.result["text"])) for hit in once[: asked.limit]):
        if asked.budget is None or tokens + size <= asked.budget:
            taken.append(hit)
            tokens += size
    taken = _with_falling_scores(taken)
    left_out = len(once[: asked.limit]) - len(taken)
    note(
        "budget",
        asked.budget is not None,
        "no budget given" if asked.budget is None else f"{left_out} left out",
    )
    notices = [leg.notice for leg in (stated, written) if leg.notes]
    if taken and not slots and not edges and notices and all(notices):
        degraded = f"{notices[0]} {degraded}".strip()
    return Recalled(taken, edges, steps, tokens, left_out, degraded)


def _raise_to(scores: dict[str, _Score], others: Mapping[str, _Score]) -> None:
    """Raise scores to others by the same paths, and add those that are missing."""
    for path, other in others.items():
        known = scores.get(path, other)
        scores[path] = _Score(max(known.rank, other.rank), max(known.own, other.own))


def _with_falling_scores(hits: Sequence[Hit]) -> list[Hit]:
    """Return the hits as they are shown: none has a higher score than the one above it."""
    scores = falling_scores(hit.result["score"] for hit in hits)
    shown = list[Hit]()
    for hit, score in zip(hits, scores, strict=True):
        result: Any = hit.result | {"score": round(score, 4)}
        shown.append(hit._replace(result=result))
    return shown


def _hits_of(
    documents: Documents,
    atoms: Sequence[Atom],
    scores: Mapping[str, _Score],
    texts: Mapping[str, Document],
) -> list[Hit]:
    """Return statements as hits, each with the document that it was drawn from."""
    origins = documents.extension.resolve_links([(atom.source, atom.path) for atom in atoms])
    return [
        _hit(
            scores[atom.path],
            "memory",
            atom.id,
            atom.statement,
            atom.scope,
            atom.path,
            texts.get(origin or ""),
            atom=atom,
        )
        for atom, origin in zip(atoms, origins, strict=True)
    ]


def _with_disputes(
    documents: Documents,
    hits: Sequence[Hit],
    atoms: Mapping[str, Atom],
    texts: Mapping[str, Document],
) -> list[Hit]:
    """Return hits with both sides of each dispute, the later statement right before the one it puts in doubt."""
    disputing = documents.memories.disputing(list(atoms.values()))
    disputing = {path: cause for path, cause in disputing.items() if cause in atoms}
    if not disputing:
        return list(hits)

    scores = dict[str, _Score]()
    for hit in hits:
        score = _Score(hit.rank, hit.result["score"])
        sides = [hit.path, disputing.get(hit.path, "")]
        sides += [path for path, cause in disputing.items() if cause == hit.path]
        _raise_to(scores, dict.fromkeys(sides, score))

    there = {hit.path: hit for hit in hits if hit.atom is not None}
    missing = [atoms[path] for path in scores if path in atoms and path not in there]
    added = {hit.path: hit for hit in _hits_of(documents, missing, scores, texts)}
    raised = dict[str, Hit]()
    for path, hit in (there | added).items():
        more: Any = {"score": scores[path].own}
        if path in disputing:
            more["disputed_by"] = atoms[disputing[path]].id
        result: Any = hit.result | more
        raised[path] = hit._replace(result=result, rank=scores[path].rank)

    others = [hit for hit in hits if hit.atom is None]
    in_order = documents.memories.newest_first([atoms[path] for path in raised])
    every = [raised[atom.path] for atom in in_order] + others
    return sorted(every, key=lambda hit: -hit.rank)


def _scale(leg: Answers) -> float:
    """Return what the scores of a leg count: those that answer nothing count what the best of them is worth."""
    return min(_NEAREST, leg.quality) if leg.only_nearest else 1.0


def _filled(question: str, atoms: Iterable[Atom]) -> list[Atom]:
    """The statements that fill the slot which a question names, best first. One that no rule reads is its note's."""
    fits, heads = dict[Atom, float](), tuple(each.split()[0] for each in asked_slot(question))
    for each in atoms:
        if each.slot and each.slot.relation.startswith(heads):
            reading = read_statement(each.statement)
            is_told = reading.slot or each.decided_by.startswith("rule")
            fits[each] = answers(question, reading if is_told else reading._replace(slot=each.slot))
    return [each for each in sorted(fits, key=lambda each: -fits[each]) if fits[each] > 0]


def _walked(
    question: str, best: Collection[str], atoms: Mapping[str, Atom], graph: Graph
) -> tuple[list[Edge], dict[str, float]]:
    """The ways from the names in a question and in its best hits, and the notes met, each step with half a score."""
    called = {as_name(each.name): each.path for each in graph.entities if not each.is_note}
    related = (
        Atom("", "", each.source, "", SHARED, slot=Slot(*each.key)) for each in graph.relations
    )
    ways = [*atoms.values(), *related]
    words, walked, met = as_name(question).split(), dict[Atom, None](), dict[str, float]()
    names = {
        " ".join(words[at:end])
        for at in range(len(words))
        for end in range(at + 1, at + 1 + _LONGEST_NAME)
    }
    names |= {name for path in best if path in atoms for name in atoms[path].names}
    names |= {name for name, path in called.items() if path in best}
    for score in _STEPS:
        fresh = [way for way in ways if not names.isdisjoint(way.names) and way not in walked][
            :_MOST_WAYS
        ]
        paths = [
            *(called[name] for name in names & called.keys()),
            *(way.path for way in fresh if way.path),
        ]
        walked, met = walked | dict.fromkeys(fresh), dict.fromkeys(paths, score) | met
        names = {name for way in fresh for name in way.names}
    ends = [(each.slot, each) for each in walked if each.slot]
    return [
        {"from": s.subject or e.scope, "relation": s.relation, "to": s.object, "id": e.id}
        for s, e in ends
    ], met


def _hit(
    score: _Score, kind: str, id_: str, text: str, scope: str, path: str, of: Document | None = None, heading: str = "",
    line: int = 1, atom: Atom | None = None,
) -> Hit:  # fmt: skip
    """Something found, and what it is of: a document, else its own note."""
    source: dict[str, Any] = {
        "id": id_,
        "title": text[:80],
        "name": name_of(path),
        "heading": heading,
        "line": line,
    }
    source |= {"id": of.id, "title": of.title, "name": name_of(of.path)} if of else {}
    source["url"] = (of and of.source_url) or None
    result: Any = {
        "kind": kind,
        "id": id_,
        "text": text,
        "score": round(score.own, 4),
        "container_tag": scope,
    }
    if atom:
        sure, is_latest = round(life.shown_confidence(atom, now()), 4), atom.status == "active"
        result |= {"memory_type": atom.memory_type, "confidence": sure, "is_latest": is_latest}
        result |= {
            key: format_moment(at)
            for key in ("valid_from", "valid_to")
            if (at := getattr(atom, key))
        }
        if atom.is_disputed:
            result["disputed"] = format_moment(atom.disputed or now())
    return Hit(result | {"source": source}, path, atom, round(score.rank, 4))


def _once(hits: Iterable[Hit]) -> list[Hit]:
    """Without what says the same as one before it, or was drawn from a passage before it."""
    kept, said, told_by = list[Hit](), set[tuple[str, str]](), defaultdict[str, list[str]](list)
    for hit in hits:
        text, of = f" {' '.join(words_in_order(hit.result['text']))} ", hit.result["source"]["id"]
        if (key := (hit.result["container_tag"], text)) not in said and not any(
            text in each for each in told_by[of]
        ):
            kept.append(hit)
            said.add(key)
            told_by[of].append(text)
    return kept


def answered(documents: Documents, query: str, found: Recalled) -> tuple[str | None, str, str]:
    """An answer with citations by the model, who gave it, and why there is none."""
    if documents.chat is None or not found.hits:
        return None, "none", ""
    private = documents.extension.private_among(hit.path for hit in found.hits)
    shown = [
        (_marked(hit), hit.atom and hit.atom.valid_from)
        for hit in found.hits
        if hit.path not in private
    ]
    return documents.asked(documents.chat, "answer", query, shown[:_MOST_SHOWN])


def _marked(hit: Hit) -> str:
    """Return the text of a hit with a mark where it is in doubt or outdated."""
    since = {"outdated": hit.result.get("outdated"), "disputed": hit.result.get("disputed")}
    marks = [f"{mark} since {day[:10]}" for mark, day in since.items() if day]
    return f"{hit.result['text']} ({', '.join(marks)})" if marks else hit.result["text"]


def rows_of(store: EnhancedStore, atoms: Sequence[Atom]) -> list[Row]:
    """Statements as lists show them, with the ids of what they link to."""
    documents, moment = documents_of(store), now()
    every: list[Atom | Document] = [
        *documents.memories.atoms(None, expired=True),
        *documents.documents(None),
    ]
    ids = {(each.scope, each.path): each.id for each in every}
    # A link without a name would mean the note that it stands in, so those are not resolved.
    links = [
        (atom, link)
        for atom in atoms
        for link in (
            atom.source,
            atom.updates,
            atom.extends,
            atom.superseded_by,
            atom.disputed_by,
            *atom.derived_from,
        )
        if link
    ]
    paths = documents.extension.resolve_links([(link, atom.path) for atom, link in links])
    linked = {
        key: ids.get((key[0].scope, path or "")) for key, path in zip(links, paths, strict=True)
    }

    def told(at: datetime | None) -> str | None:
        return format_moment(at) if at else None

    return [
        {
            "id": e.id, "memory": e.statement, "memory_type": e.memory_type, "container_tag": e.scope,
            "is_latest": e.status == "active", "confidence": round(life.shown_confidence(e, moment), 4),
            "base_confidence": e.confidence, "valid_from": told(e.valid_from), "valid_to": told(e.valid_to),
            "forgotten_at": told(life.forgotten_at(e)), "source_doc_id": linked.get((e, e.source)),
            "updates": linked.get((e, e.updates)), "extends": linked.get((e, e.extends)),
            "derived_from": [id_ for link in e.derived_from if (id_ := linked.get((e, link)))],
            "superseded_by": linked.get((e, e.superseded_by)), "status": e.status,
            "disputed": told(e.disputed) if e.is_disputed else None,
            "disputed_by": linked.get((e, e.disputed_by)) if e.is_disputed else None,
            "created_at": e.created or told(e.valid_from) or "", "name": name_of(e.path),
        }
        for e in atoms
    ]  # fmt: skip
