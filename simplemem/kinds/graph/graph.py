"""The knowledge graph of one store: read, searched and changed. Entities are notes, every change is one step.

What is read is what the vault holds now, whoever wrote it; what is changed is read again under the vault's lock first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar, Unpack

from simplemem.errors import Invalid, NotFound
from simplemem.kinds.graph.edit import GraphEdit
from simplemem.kinds.graph.network import Network
from simplemem.kinds.graph.page import GraphPage, place
from simplemem.kinds.graph.values import Entity, Graph, NoSuchEntity, Observation, Relation
from simplemem.kinds.kind import By, one_of
from simplemem.note.names import name_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

R = TypeVar("R")
Additions = Iterable[tuple[str, Sequence[Observation]]]
Added = list[tuple[str, list[str]]]
_BATCH = 250  # names whose entities and relations an import writes at once


class TakenIn(NamedTuple):
    """How much of a graph was new: entities, relations, and observations of entities that were there."""

    entities: int
    relations: int
    observations: int


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
        return self._change(lambda edit: self._create(edit, entities), by)

    def create_relations(
        self, relations: Sequence[Relation], *, missing: Literal["stub", "skip"] = "stub", **by: Unpack[By]
    ) -> list[Relation]:
        """Relate names; a relation that is there is not made again. What has no entity is related all the same, with a page
        that only holds relations where they must begin there ("stub"), or is skipped."""

        def draft(edit: GraphEdit) -> list[Relation]:
            return self._relate(edit, (each for each in relations if missing == "stub" or self._has_ends(each)))

        return self._change(draft, by)

    def add_observations(self, additions: Additions, *, missing: str = "refuse", **by: Unpack[By]) -> Added:
        """Say more of entities; what is said already is not said again. A name without an entity refuses all of it, or is
        skipped ("skip"). Returns what was added, for each."""
        every = list(additions)
        return self._change(lambda edit: self._say(edit, every, missing), by)

    def delete_entities(self, names: Sequence[str], **by: Unpack[By]) -> list[str]:
        """Put entities into the trash, and take out every relation from and to these names. Returns the names that were
        no entity's."""

        def draft(edit: GraphEdit) -> list[str]:
            every = {name: self.network.all_named(name) for name in names}
            for pages in every.values():
                if pages and not any(page.is_own for page in pages):
                    why = f"{pages[0].name} is a note, not an entity: it is not deleted from the graph"
                    raise Invalid(why, hint=f"delete_memory deletes it; its name is {name_of(pages[0].path)}.")
            gone = {page.path: page.name for pages in every.values() for page in pages if page.is_own}
            ends = [*gone.items(), *(("", name) for name in every)]
            sources = {source.path: source for end in ends for source in self.network.pointing_at(*end)}
            for path in gone:
                edit.drop(path)
            for path in sorted(sources.keys() - gone.keys()):
                edit.unrelate(sources[path], lambda relation: relation.target in every)
            return [name for name in names if all(page.is_stub for page in every[name])]

        return self._change(draft, by)

    def delete_observations(
        self, deletions: Iterable[tuple[str, Iterable[str]]], **by: Unpack[By]
    ) -> tuple[int, list[str]]:
        """Take observations out, all that are equal to these texts. Returns how many, and the names that were no
        entity's."""
        wanted: dict[str, set[str]] = {}
        for name, texts in deletions:
            wanted.setdefault(name, set()).update(texts)

        def draft(edit: GraphEdit) -> tuple[int, list[str]]:
            found = {name: self._entity(name) for name in wanted}
            count = sum(edit.unsay(page, wanted[name]) for name, page in found.items() if page is not None)
            return count, [name for name, page in found.items() if page is None]

        return self._change(draft, by)

    def delete_relations(self, relations: Sequence[Relation], **by: Unpack[By]) -> int:
        """Take relations out. Returns how many there were."""
        wanted = {relation.key for relation in relations}
        sources = {relation.source for relation in relations}

        def draft(edit: GraphEdit) -> int:
            pages = [page for name in sorted(sources) for page in self.network.all_named(name)]
            return sum(edit.unrelate(page, lambda relation: relation.key in wanted) for page in pages)

        return self._change(draft, by)

    def update_relation(self, relation: Relation, **by: Unpack[By]) -> None:
        """Give a relation other attributes, in place of those it has."""

        def draft(edit: GraphEdit) -> None:
            held = edit.held(relation)
            if held is None:
                why = f"Relation not found: {relation.source} -> {relation.target} ({relation.type})"
                raise NotFound(why, hint="create_relations makes it.")
            edit.set_attributes(*held, relation.attributes)

        return self._change(draft, by)

    def take_in(self, graph: Graph, progress: Callable[[int, int], None] | None = None, **by: Unpack[By]) -> TakenIn:
        """Take in a whole graph, some hundred notes a step. What is there learns what is new, so that an import which was
        cut short can be made again."""
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
                new = {each.name for each in self._create(edit, given)}
                more = ((each.name, each.observations) for each in given if each.name not in new)
                learned = self._say(edit, more, "skip")
                related = self._relate(edit, (each for name in some for each in leaving.get(name, ())))
                return len(new), len(related), sum(len(texts) for _, texts in learned)

            counts = [count + more for count, more in zip(counts, self._change(draft, by), strict=True)]
            if progress is not None:
                progress(first + len(some), len(names))
        return TakenIn(*counts)

    def _create(self, edit: GraphEdit, entities: Iterable[Entity]) -> list[Entity]:
        made: dict[str, Entity] = {}
        for entity in entities:
            there = self.network.named(entity.name)
            if entity.name in made or (there is not None and not there.is_stub):
                continue
            if there is not None:
                edit.become(there.path, entity)
            else:
                edit.make(entity)
            made[entity.name] = entity
        return list(made.values())

    def _relate(self, edit: GraphEdit, relations: Iterable[Relation]) -> list[Relation]:
        made: dict[tuple[str, str, str], Relation] = {}
        for relation in relations:
            if relation.key not in made and edit.held(relation) is None:
                edit.relate(relation)
                made[relation.key] = relation
        return list(made.values())

    def _say(self, edit: GraphEdit, additions: Additions, missing: str) -> Added:
        added: Added = []
        held: dict[str, set[str]] = {}
        for name, said in additions:
            if (page := self._entity(name)) is not None:
                known = held.setdefault(page.path, {each.text for each in page.observations})
                new = [each for each in said if each.text not in known]
                known |= {each.text for each in new}
                edit.say(page.path, new)
                added.append((name, [each.text for each in new]))
            elif missing == "refuse":
                raise NoSuchEntity(name)
        return added

    def _entity(self, name: str) -> GraphPage | None:
        page = self.network.named(name)
        return None if page is None or page.is_stub else page

    def _has_ends(self, relation: Relation) -> bool:
        return all(self._entity(name) is not None for name in (relation.source, relation.target))

    def _change(self, draft: Callable[[GraphEdit], R], by: By) -> R:
        return self.network.change(draft, By(tool="graph") | by, GraphEdit)[0]


def graph_of(store: EnhancedStore) -> KnowledgeGraph:
    """The graph of a store: one for all who ask."""
    return one_of(store, KnowledgeGraph)
