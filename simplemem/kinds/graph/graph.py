"""The knowledge graph of one store: read, searched and changed. Entities are notes, every change is one step.

What is read is what the vault holds now, whoever wrote it; what is changed is read again under the vault's lock first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar, Unpack

from simplemem.kinds.graph.edit import Added, GraphEdit
from simplemem.kinds.graph.network import Network
from simplemem.kinds.graph.page import place
from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.kinds.kind import By, one_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

R = TypeVar("R")
_BATCH = 250  # names whose entities and relations an import writes at once


class KnowledgeGraph:
    """The entities of a vault, their observations and relations. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        self.network = Network(store.bench)

    # -- reading

    def read(self) -> Graph:
        """All of it, in the order in which it came."""
        with self.network.reading():
            return self.network.graph()

    def search(self, query: str) -> Graph:
        """The entities with this very text in their name, their type or an observation, whatever the case of its letters;
        and the relations from and to them."""
        with self.network.reading():
            return self.network.graph(self.network.matching(query.lower()))

    def open(self, names: Iterable[str]) -> Graph:
        """The entities with these names, and the relations from and to them."""
        with self.network.reading():
            pages = (page for name in set(names) for page in self.network.all_named(name) if not page.is_stub)
            return self.network.graph(sorted(pages, key=place))

    def entity(self, name: str) -> Entity | None:
        """The entity of exactly this name."""
        return next(iter(self.open([name]).entities), None)

    def relation(self, source: str, kind: str, target: str) -> Relation | None:
        """The relation of that type from one name to another."""
        return next((each for each in self.open([source]).relations if each.key == (source, kind, target)), None)

    def changed_by_others(self) -> int:
        """A number that grows when anybody but this process changes the graph. Asked of a graph that nobody has read yet,
        it grows too: what the caller knows of it is not known."""
        with self.network.lock:
            self.network.changed_by_others += not self.network.is_read
            self.network.refresh()
            return self.network.changed_by_others

    # -- writing

    def create_entities(self, entities: Sequence[Entity], **by: Unpack[By]) -> list[Entity]:
        """Make entities; those that are there are left as they are. Returns those that were made."""
        return self._change(lambda edit: edit.create(entities), by)

    def create_relations(
        self, relations: Sequence[Relation], *, missing: Literal["stub", "skip"] = "stub", **by: Unpack[By]
    ) -> list[Relation]:
        """Relate names; a relation that is there is not made again. What has no entity is related all the same, with a page
        that only holds relations where they must begin there ("stub"), or is skipped."""

        def wanted() -> Iterator[Relation]:
            for each in relations:
                if missing == "stub" or (self.network.entity(each.source) and self.network.entity(each.target)):
                    yield each

        return self._change(lambda edit: edit.relate(wanted()), by)

    def add_observations(
        self, additions: Sequence[tuple[str, Sequence[Observation]]], *, missing: str = "refuse", **by: Unpack[By]
    ) -> Added:
        """Say more of entities; what is said already is not said again. A name without an entity refuses all of it, or is
        skipped ("skip"). Returns what was added, for each."""
        return self._change(lambda edit: edit.say(additions, missing), by)

    def delete_entities(self, names: Sequence[str], **by: Unpack[By]) -> list[str]:
        """Put entities into the trash, and take out every relation from and to these names. Returns the names that were
        no entity's."""
        return self._change(lambda edit: edit.delete(names), by)

    def delete_observations(
        self, deletions: Sequence[tuple[str, Sequence[str]]], **by: Unpack[By]
    ) -> tuple[int, list[str]]:
        """Take observations out, all that are equal to these texts. Returns how many, and the names that were no
        entity's."""
        return self._change(lambda edit: edit.unsay(deletions), by)

    def delete_relations(self, relations: Sequence[Relation], **by: Unpack[By]) -> int:
        """Take relations out. Returns how many there were."""
        return self._change(lambda edit: edit.unrelate(relations), by)

    def update_relation(self, relation: Relation, **by: Unpack[By]) -> None:
        """Give a relation other attributes, in place of those it has."""
        self._change(lambda edit: edit.update(relation), by)

    def take_in(
        self, graph: Graph, progress: Callable[[int, int], None] | None = None, **by: Unpack[By]
    ) -> tuple[int, int, int]:
        """Take in a whole graph, some hundred notes a step. What is there learns what is new, so that an import which was
        cut short can be made again. Returns how many entities, relations, and observations of entities that were there are
        new."""
        entities = {each.name: each for each in reversed(graph.entities)}
        leaving: dict[str, list[Relation]] = {}
        for relation in graph.relations:
            leaving.setdefault(relation.source, []).append(relation)
        names = list(dict.fromkeys([*(each.name for each in graph.entities), *leaving]))
        counts = [0, 0, 0]
        for first in range(0, len(names), _BATCH):
            some = names[first : first + _BATCH]

            def draft(edit: GraphEdit, some: Sequence[str] = some) -> tuple[int, int, int]:
                given = [entities[name] for name in some if name in entities]
                new = {each.name for each in edit.create(given)}
                learned = edit.say(((each.name, each.observations) for each in given if each.name not in new), "skip")
                related = edit.relate(each for name in some for each in leaving.get(name, ()))
                return len(new), len(related), sum(len(texts) for _, texts in learned)

            counts = [count + more for count, more in zip(counts, self._change(draft, by), strict=True)]
            if progress is not None:
                progress(first + len(some), len(names))
        return counts[0], counts[1], counts[2]

    def _change(self, draft: Callable[[GraphEdit], R], by: By) -> R:
        return self.network.change(draft, By(tool="graph") | by, GraphEdit)[0]


def graph_of(store: EnhancedStore) -> KnowledgeGraph:
    """The graph of a store: one for all who ask."""
    return one_of(store, KnowledgeGraph)
