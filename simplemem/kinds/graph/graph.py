"""The knowledge graph of one store: read, searched and changed. Entities are notes, every change is one step.

What is read is what the vault holds now, whoever wrote it; what is changed is read again under the vault's lock first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, TypeVar, Unpack

from simplemem.errors import Invalid, NotFound
from simplemem.kinds.graph.edit import GraphEdit
from simplemem.kinds.graph.network import Network
from simplemem.kinds.graph.page import GraphPage, place
from simplemem.kinds.graph.values import Entity, Graph, NoSuchEntity, Observation, Relation
from simplemem.kinds.kind import By, change, one_of
from simplemem.note.names import base_name

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

R = TypeVar("R")
_BATCH = 250  # entities or relations that an import writes at once


class KnowledgeGraph:
    """The entities of a vault, their observations and relations. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        self.network = Network(store.bench)

    # -- reading

    def read(self) -> Graph:
        """All of it, in the order in which it came."""
        self.network.bench.catch_up()
        with self.network.lock:
            self.network.refresh()
            return self.network.told()

    def search(self, query: str) -> Graph:
        """The entities with this very text in their name, their type or an observation, whatever the case of its letters;
        and the relations from and to them."""
        return self._found(lambda: self.network.matching(query.lower()))

    def open(self, names: Collection[str]) -> Graph:
        """The entities with these names, and the relations from and to them."""
        wanted = set(names)
        every = self.network.all_named
        return self._found(lambda: sorted((p for name in wanted for p in every(name) if not p.is_stub), key=place))

    def entity(self, name: str) -> Entity | None:
        """The entity of exactly this name."""
        found = self.open([name]).entities
        return found[0] if found else None

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

    def _found(self, find: Callable[[], Sequence[GraphPage]]) -> Graph:
        self.network.bench.catch_up()
        with self.network.lock:
            return self.network.told(self.network.fresh(find))

    # -- writing

    def create_entities(self, entities: Sequence[Entity], **by: Unpack[By]) -> list[Entity]:
        """Make entities; those that are there are left as they are. Returns those that were made."""

        return self._change(lambda edit: self._create(edit, entities), By(tool="create_entities") | by)

    def _create(self, edit: GraphEdit, entities: Iterable[Entity]) -> list[Entity]:
        made: dict[str, Entity] = {}
        for entity in entities:
            there = self.network.surely_named(entity.name)
            if entity.name in made or (there is not None and not there.is_stub):
                continue
            if there is not None:
                edit.become(there.path, entity)
            else:
                edit.make(entity.name, entity.type, entity.observations)
            made[entity.name] = entity
        return list(made.values())

    def create_relations(
        self,
        relations: Sequence[Relation],
        *,
        missing: Literal["stub", "refuse", "skip"] = "stub",
        update: bool = False,
        **by: Unpack[By],
    ) -> list[Relation]:
        """Relate names; a relation that is there is not made again. For a name without an entity a page is made that only
        holds relations ("stub"), or all is refused, or the relation is skipped. With `update` a relation that is there
        gets these attributes, and counts as made."""

        return self._change(
            lambda edit: self._relate(edit, relations, missing, update), By(tool="create_relations") | by
        )

    @staticmethod
    def _relate(
        edit: GraphEdit,
        relations: Iterable[Relation],
        missing: Literal["stub", "refuse", "skip"] = "stub",
        update: bool = False,
    ) -> list[Relation]:
        made: dict[tuple[str, str, str], Relation] = {}
        for relation in relations:
            lacking = [name for name in (relation.source, relation.target) if edit.is_lacking(name)]
            if lacking and missing == "refuse":
                raise NoSuchEntity(lacking[0])
            if relation.key in made or (lacking and missing == "skip"):
                continue
            held = edit.held(relation)
            if held is None:
                edit.relate(relation)
            elif update and dict(held[1].attributes) != dict(relation.attributes):
                edit.set_attributes(held, relation.attributes)
            else:
                continue
            made[relation.key] = relation
        return list(made.values())

    def add_observations(
        self,
        additions: Sequence[tuple[str, Sequence[Observation]]],
        *,
        missing: Literal["refuse", "skip"] = "refuse",
        **by: Unpack[By],
    ) -> list[tuple[str, list[str]]]:
        """Say more of entities; what is said already is not said again. Returns what was added, for each."""

        def draft(edit: GraphEdit) -> list[tuple[str, list[str]]]:
            added: list[tuple[str, list[str]]] = []
            for name, said in additions:
                page = self._page(edit, name)
                if page is None:
                    if missing == "refuse":
                        raise NoSuchEntity(name)
                    continue
                held = {each.text for each in page.observations}
                new = [each for each in said if each.text not in held]
                edit.say(page.path, new)
                added.append((name, [each.text for each in new]))
            return added

        return self._change(draft, By(tool="add_observations") | by)

    def delete_entities(self, names: Sequence[str], **by: Unpack[By]) -> list[str]:
        """Put entities into the trash, and take out every relation from and to these names. Returns the names that were
        no entity's."""

        def draft(edit: GraphEdit) -> list[str]:
            network, wanted = self.network, dict.fromkeys(names)
            every = {name: network.all_named(name) for name in wanted}
            for pages in every.values():
                if pages and not any(page.is_entity for page in pages):
                    raise Invalid(
                        f"{pages[0].name} is a note, not an entity: it is not deleted from the graph",
                        hint=f"delete_memory deletes it; its name is {base_name(pages[0].path)}.",
                    )
            gone = {page.path: page for pages in every.values() for page in pages if page.is_entity}
            sources = {source.path for page in gone.values() for source in network.pointing_at(page)}
            sources |= {source.path for name in wanted for source in network.pointing_at_name(name)}
            for path in sorted(sources - gone.keys()):
                edit.unrelate(path, lambda relation: relation.target in wanted)
            for path, page in gone.items():
                if page.is_stub and not edit.is_bare(path):
                    edit.unrelate(path, lambda _: True)  # a person wrote on it
                else:
                    edit.drop(path)
            edit.drop_idle_stubs(gone)
            return [name for name in names if all(page.is_stub for page in every[name])]

        return self._change(draft, By(tool="delete_entities") | by)

    def delete_observations(
        self,
        deletions: Sequence[tuple[str, Sequence[str]]],
        **by: Unpack[By],
    ) -> tuple[int, list[str]]:
        """Take observations out, all that are equal to these texts. Returns how many, and the names that were no
        entity's."""

        def draft(edit: GraphEdit) -> tuple[int, list[str]]:
            count, absent = 0, []
            for name, texts in deletions:
                page = self._page(edit, name)
                if page is None:
                    absent.append(name)
                else:
                    count += edit.unsay(page.path, set(texts))
            return count, absent

        return self._change(draft, By(tool="delete_observations") | by)

    def delete_relations(self, relations: Sequence[Relation], **by: Unpack[By]) -> int:
        """Take relations out. Returns how many there were."""

        def draft(edit: GraphEdit) -> int:
            wanted = {relation.key for relation in relations}
            sources = dict.fromkeys(relation.source for relation in relations)
            pages = [page for name in sources for page in self.network.all_named(name)]
            count = sum(edit.unrelate(page.path, lambda relation: relation.key in wanted) for page in pages)
            edit.drop_idle_stubs()
            return count

        return self._change(draft, By(tool="delete_relations") | by)

    def update_relation(self, relation: Relation, **by: Unpack[By]) -> Relation:
        """Give a relation other attributes, in place of those it has."""

        def draft(edit: GraphEdit) -> Relation:
            held = edit.held(relation)
            if held is None:
                raise NotFound(
                    f"Relation not found: {relation.source} -> {relation.target} ({relation.type})",
                    hint="create_relations makes it.",
                )
            edit.set_attributes(held, relation.attributes)
            return relation

        return self._change(draft, By(tool="update_relation") | by)

    def take_in(
        self,
        graph: Graph,
        progress: Callable[[int, int], None] | None = None,
        **by: Unpack[By],
    ) -> tuple[int, int]:
        """Take in a whole graph, some hundred notes a step. What is there is left as it is, so that an import which was cut
        short can be made again. Returns how many entities and relations are new."""
        entities = {each.name: each for each in reversed(graph.entities)}
        leaving: dict[str, list[Relation]] = {}
        names = dict.fromkeys(each.name for each in graph.entities)
        for relation in graph.relations:
            leaving.setdefault(relation.source, []).append(relation)
            names |= dict.fromkeys((relation.source, relation.target))
        plan: dict[str, str] = {}  # so that a page can link to one that a later step makes
        made = related = done = 0
        for some in batched(list(names), _BATCH):

            def draft(edit: GraphEdit, some: Sequence[str] = some) -> tuple[int, int]:
                new = self._create(edit, (entities[name] for name in some if name in entities))
                for name in some:
                    if name not in entities and self.network.named(name) is None and edit.end(name) == plan.get(name):
                        edit.make(name, None)
                return len(new), len(self._relate(edit, (each for name in some for each in leaving.get(name, ()))))

            counts = self._change(draft, By(tool="import") | by, plan)
            made, related, done = made + counts[0], related + counts[1], done + len(some)
            if progress is not None:
                progress(done, len(names))
        return made, related

    def _page(self, edit: GraphEdit, name: str) -> GraphPage | None:
        """The page of an entity or a note, as a change has made it so far."""
        there = self.network.named(name)
        return None if there is None or there.is_stub else edit.page(there.path)

    def _change(self, draft: Callable[[GraphEdit], R], by: By, plan: dict[str, str] | None = None) -> R:
        return change([self.network], lambda: GraphEdit(self.network, plan), draft, by)[0]


def graph_of(store: EnhancedStore) -> KnowledgeGraph:
    """The graph of a store: one for all who ask."""
    return one_of(store, KnowledgeGraph)


def batched(items: Sequence[R], size: int) -> Iterator[Sequence[R]]:
    """So many of them at a time."""
    return (items[first : first + size] for first in range(0, len(items), size))
