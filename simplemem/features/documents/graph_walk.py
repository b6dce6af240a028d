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
    """The edges that a walk followed, in order, and the scores of the notes met, by path."""

    edges: list[Edge]
    scores: dict[str, float]


def walk_from_question(
    question: str,
    best_paths: Collection[str],
    facts: Mapping[str, Fact],
    graph: Graph,
) -> GraphWalk:
    """Walk two steps from the names in a question and in its best hits. Pure.

    `best_paths` are the paths of the best hits. The walk follows the `facts`, which are by path,
    and the relations of the graph, up to 20 per step. A note that it meets on the first step has
    the score 0.5, one of the second step 0.25. It meets nothing if no name is found.
    """
    entity_paths = {
        normalize_name(entity.name): entity.path for entity in graph.entities if not entity.is_note
    }
    connections = [*facts.values(), *_relations_as_facts(graph)]
    names = _names_in(question) | _names_of_hits(best_paths, facts, entity_paths)

    followed: dict[Fact, None] = {}
    scores: dict[str, float] = {}
    for score in _STEP_SCORES:
        step = _next_step(connections, names, followed)
        entity_names = sorted(names & entity_paths.keys())
        paths = [entity_paths[name] for name in entity_names]
        paths += [fact.path for fact in step if fact.path]
        # Notes of the last step come first; the higher score of an earlier step stays.
        scores = dict.fromkeys(paths, score) | scores

        followed.update(dict.fromkeys(step))
        names = _names_of_facts(step)

    return GraphWalk(_edges(followed), scores)


def _next_step(
    connections: Iterable[Fact],
    names: set[str],
    followed: Collection[Fact],
) -> list[Fact]:
    """Return the connections of some names that have not been followed, the first 20."""
    step: list[Fact] = []
    for fact in connections:
        if len(step) == _MAX_EDGES:
            break
        if fact not in followed and not names.isdisjoint(fact.names):
            step.append(fact)
    return step


def _names_of_facts(facts: Iterable[Fact]) -> set[str]:
    """Return the normalized names that facts connect."""
    names = set[str]()
    for fact in facts:
        names.update(fact.names)
    return names


def _relations_as_facts(graph: Graph) -> list[Fact]:
    """Return each relation of the graph as a fact without a note, whose id is its source."""
    facts: list[Fact] = []
    for relation in graph.relations:
        fact = Fact(
            path="",
            sha256="",
            id=relation.source,
            statement="",
            scope=SHARED,
            slot=Slot(*relation.key),
        )
        facts.append(fact)
    return facts


def _names_in(question: str) -> set[str]:
    """Return all runs of one to six words in a question, any of which may be a name."""
    words = normalize_name(question).split()
    names = set[str]()
    for start in range(len(words)):
        for length in range(1, _MAX_NAME_WORDS + 1):
            names.add(" ".join(words[start : start + length]))
    return names


def _names_of_hits(
    best_paths: Collection[str],
    facts: Mapping[str, Fact],
    entity_paths: Mapping[str, str],
) -> set[str]:
    """Return the normalized names of the facts and entities among the best hits."""
    names = {name for name, path in entity_paths.items() if path in best_paths}
    best_facts = [facts[path] for path in best_paths if path in facts]
    return names | _names_of_facts(best_facts)


def _edges(facts: Iterable[Fact]) -> list[Edge]:
    """Return the slots of facts as edges for an answer; facts without a slot are left out.

    An edge without a subject begins at the user.
    """
    edges: list[Edge] = []
    for fact in facts:
        if fact.slot is None:
            continue
        edge: Edge = {
            "from": fact.slot.subject or fact.scope,
            "relation": fact.slot.relation,
            "to": fact.slot.object,
            "id": fact.id,
        }
        edges.append(edge)
    return edges
