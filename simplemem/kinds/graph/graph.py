"""The knowledge graph of one store: read, searched and changed. Entities are notes, every change is one step.

What is read is what the vault holds now, whoever wrote it; what is changed is read again under the vault's lock first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack

from simplemem.kinds.graph.edit import GraphEdit
from simplemem.kinds.graph.network import Network, graph_of_pages
from simplemem.kinds.graph.values import Entity, Graph, Relation
from simplemem.kinds.kind import one_of
from simplemem.memory import By

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

P = ParamSpec("P")
R = TypeVar("R")
_BATCH = 250  # names whose entities and relations an import writes at once


def _step(draft: Callable[Concatenate[GraphEdit, P], R]) -> Callable[..., R]:
    """A change as a method of the graph, which also takes who makes it, with which tool, and why (`By`)."""

    @wraps(draft)
    def change(
        graph: KnowledgeGraph, *args: Any, who: str = "", tool: str = "graph", reason: str = "", **more: Any
    ) -> R:
        by = By(who=who, tool=tool, reason=reason)
        return graph.network.change(lambda edit: draft(edit, *args, **more), by, GraphEdit)[0]

    return change


class KnowledgeGraph:
    """The entities of a vault, their observations and relations. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        self.network = Network(store.bench)

    # -- reading

    def read(self) -> Graph:
        """All of it, in the order in which it came."""
        with self.network.reading():
            return graph_of_pages(self.network.in_order(), self.network.ties, self.network.items)

    def search(self, query: str) -> Graph:
        """The entities with this very text in name, type or an observation, in any case of letters, with their relations."""
        with self.network.reading():
            text = query.lower()
            return self.network.graph(page for page in self.network.items.values() if text in page.searched)

    def open(self, names: Iterable[str]) -> Graph:
        """The entities with these names, with their relations."""
        with self.network.reading():
            return self.network.graph(page for name in set(names) for page in self.network.all_named(name))

    def entity(self, name: str) -> Entity | None:
        """The entity of exactly this name."""
        return next(iter(self.open([name]).entities), None)

    def relation(self, source: str, kind: str, target: str) -> Relation | None:
        """The relation of that type from one name to another."""
        return next((each for each in self.open([source]).relations if each.key == (source, kind, target)), None)

    def changed_by_others(self) -> int:
        """A number that grows when anybody but this process changes the graph, and when nobody here has read it yet."""
        with self.network.lock:
            self.network.changed_by_others += not self.network.is_read
            self.network.refresh()
            return self.network.changed_by_others

    # -- writing

    create_entities = _step(GraphEdit.create)
    create_relations = _step(GraphEdit.relate)
    add_observations = _step(GraphEdit.say)
    delete_entities = _step(GraphEdit.delete)
    delete_observations = _step(GraphEdit.unsay)
    delete_relations = _step(GraphEdit.unrelate)
    update_relation = _step(GraphEdit.update)
    _take_in = _step(GraphEdit.take_in)

    def take_in(
        self, graph: Graph, progress: Callable[[int, int], None] | None = None, **by: Unpack[By]
    ) -> tuple[int, int, int]:
        """Take in a whole graph, some hundred notes a step, so that an import which was cut short can be made again. Returns
        how many entities, relations, and observations of entities that were there are new."""
        entities = {each.name: each for each in reversed(graph.entities)}
        leaving: dict[str, list[Relation]] = {}
        for relation in graph.relations:
            leaving.setdefault(relation.source, []).append(relation)
        names = list(dict.fromkeys([*(each.name for each in graph.entities), *leaving]))
        counts = (0, 0, 0)
        for first in range(0, len(names), _BATCH):
            some = names[first : first + _BATCH]
            related = [each for name in some for each in leaving.get(name, ())]
            new = self._take_in([entities[name] for name in some if name in entities], related, **by)
            counts = (counts[0] + new[0], counts[1] + new[1], counts[2] + new[2])
            if progress is not None:
                progress(first + len(some), len(names))
        return counts


def graph_of(store: EnhancedStore) -> KnowledgeGraph:
    """The graph of a store: one for all who ask."""
    return one_of(store, KnowledgeGraph)
