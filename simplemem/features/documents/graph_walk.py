"""Walk from the names in a question along facts and relations to the notes that they lead to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from simplemem.features.answers import Edge
from simplemem.features.fact import Fact, Slot, normalize_name
from simplemem.features.graph.values import SHARED, Graph

_STEP_SCORES: Final = (0.5, 0.25)  # the score of a note that is met on the first and second step
_MAX_EDGES: Final = 20  # per step
_MAX_NAME_WORDS: Final = 6


@dataclass(frozen=True)
class GraphWalk:
    """The edges that a walk followed, and the paths of the notes it met, with their scores."""

    edges: list[Edge]
    scores: dict[str, float]


def walk_from_question(
    question: str, best: Collection[str], facts: Mapping[str, Fact], graph: Graph
) -> GraphWalk:
    """Walk two steps from the names in a question and in its best hits, given by their paths."""
    entity_paths = {
        normalize_name(entity.name): entity.path for entity in graph.entities if not entity.is_note
    }
    candidates = [*facts.values(), *_relations_as_facts(graph)]
    names = _names_in(question) | _names_of_hits(best, facts, entity_paths)

    walked = dict[Fact, None]()
    scores = dict[str, float]()
    for score in _STEP_SCORES:
        steps = [
            fact for fact in candidates if not names.isdisjoint(fact.names) and fact not in walked
        ]
        steps = steps[:_MAX_EDGES]
        paths = [entity_paths[name] for name in names & entity_paths.keys()]
        paths += [fact.path for fact in steps if fact.path]
        # Notes of the last step come first; the higher score of an earlier step stays.
        scores = dict.fromkeys(paths, score) | scores
        walked.update(dict.fromkeys(steps))
        names = {name for fact in steps for name in fact.names}

    return GraphWalk(_edges(walked), scores)


def _relations_as_facts(graph: Graph) -> list[Fact]:
    """Return each relation of the graph as a fact without a note, whose id is its source."""
    return [
        Fact("", "", relation.source, "", SHARED, slot=Slot(*relation.key))
        for relation in graph.relations
    ]


def _names_in(question: str) -> set[str]:
    """Return all runs of words in a question that may be a name."""
    words = normalize_name(question).split()
    return {
        " ".join(words[start:end])
        for start in range(len(words))
        for end in range(start + 1, start + 1 + _MAX_NAME_WORDS)
    }


def _names_of_hits(
    best: Collection[str], facts: Mapping[str, Fact], entity_paths: Mapping[str, str]
) -> set[str]:
    """Return the names of the facts and entities among the best hits."""
    names = {name for name, path in entity_paths.items() if path in best}
    for path in best:
        if path in facts:
            names.update(facts[path].names)
    return names


def _edges(facts: Iterable[Fact]) -> list[Edge]:
    edges = list[Edge]()
    for fact in facts:
        if fact.slot is not None:
            edges.append(
                {
                    "from": fact.slot.subject or fact.scope,
                    "relation": fact.slot.relation,
                    "to": fact.slot.object,
                    "id": fact.id,
                }
            )
    return edges
