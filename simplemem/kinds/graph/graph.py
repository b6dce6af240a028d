"""The knowledge graph of one store: read, searched and changed. Entities are notes, every change is one step.

What is read is what the vault holds now, whoever wrote it; what is changed is read again under the vault's lock first.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from simplemem.errors import Invalid, NotFound
from simplemem.kinds.graph.draft import Drafting
from simplemem.kinds.graph.known import Known, entity_of, place
from simplemem.kinds.graph.page import Page, made_entity, observation_line
from simplemem.kinds.graph.relating import Relating
from simplemem.kinds.graph.steps import Steps
from simplemem.kinds.graph.taking_in import TakingIn
from simplemem.kinds.graph.values import Entity, Graph, NoSuchEntity, Observation, Relation
from simplemem.note.names import base_name
from simplemem.store.bench import now
from simplemem.store.one_each import OneEach

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_AGAIN = 5
_STEP = 250  # notes that an import writes at once


class KnowledgeGraph:
    """The entities of a vault, their observations and relations. May be used from several threads."""

    def __init__(self, store: EnhancedStore) -> None:
        self._bench = store.bench
        self._known = Known(self._bench)
        self._lock = threading.RLock()
        self._steps = Steps(self._bench, self._known, self._lock)

    # -- reading

    def read(self) -> Graph:
        """All of it, in the order in which it came."""
        self._bench.catch_up()
        with self._lock:
            self._known.refresh()
            return self._told([page for page in self._known.in_order() if not page.is_stub], everything=True)

    def search(self, query: str) -> Graph:
        """The entities with this very text in their name, their type or an observation, whatever the case of its letters;
        and the relations from and to them."""
        return self._fresh(lambda: self._known.matching(query.lower()))

    def open(self, names: Collection[str]) -> Graph:
        """The entities with these names, and the relations from and to them."""
        wanted = set(names)
        return self._fresh(
            lambda: sorted(
                (page for name in wanted for page in self._known.all_named(name) if not page.is_stub),
                key=place,
            )
        )

    def entity(self, name: str) -> Entity | None:
        """The entity of exactly this name."""
        found = self.open([name]).entities
        return found[0] if found else None

    def relation(self, source: str, kind: str, target: str) -> Relation | None:
        """The relation of that type from one name to another."""
        return next((each for each in self.open([source]).relations if each.key == (source, kind, target)), None)

    def pages(self) -> list[Page]:
        """The notes that the graph is made of, as it has read them."""
        with self._lock:
            self._known.refresh()
            return list(self._known.in_order())

    def changed_by_others(self) -> int:
        """A number that grows when anybody but this process changes the graph. Asked of a graph that nobody has read yet,
        it grows too: what the caller knows of it is not known."""
        with self._lock:
            unread = not self._known.begun
            self._known.refresh()
            self._known.outside += unread
            return self._known.outside

    def _fresh(self, find: Callable[[], list[Page]]) -> Graph:
        """What is found, once the files of all that is found are known to be what was read."""
        self._bench.catch_up()
        with self._lock:
            for _ in range(_AGAIN):
                self._known.refresh()
                pages = find()
                differing = self._known.differing(pages)
                if not differing:
                    break
                self._bench.look_at(differing)
                self._known.look_again(differing)
            return self._told(pages)

    def _told(self, pages: list[Page], *, everything: bool = False) -> Graph:
        """Pages as entities, with the relations that have at least one end among them."""
        known, names = self._known, {page.name for page in pages}
        sources: Iterable[Page]
        if everything or len(pages) > 500:
            sources = known.in_order()
        else:
            near = {page.path: page for page in pages}
            for page in pages:
                near |= {source.path: source for source in known.pointing_at(page)}
            sources = sorted(near.values(), key=place)
        relations = [
            relation
            for source in sources
            for relation in known.relations_of(source)
            if everything or relation.source in names or relation.target in names
        ]
        return Graph(tuple(map(entity_of, pages)), tuple(relations))

    # -- writing

    def create_entities(
        self, entities: Sequence[Entity], *, who: str = "", tool: str = "create_entities", reason: str = ""
    ) -> list[Entity]:
        """Make entities; those that are there are left as they are. Returns those that were made."""

        def draft(drafting: Drafting) -> list[Entity]:
            made: dict[str, Entity] = {}
            order, moment = self._known.next_order(), now()
            for entity in entities:
                there = self._known.surely_named(entity.name)
                if entity.name in made or (there is not None and not there.is_stub):
                    continue
                if there is not None:
                    self._fill_stub(drafting, there.path, entity, order)
                else:
                    drafting.make(entity.name, entity.type, order, moment, observations=entity.observations)
                made[entity.name] = entity
                order += 1
            return list(made.values())

        return self._steps.take(draft, who, tool, reason)

    @staticmethod
    def _fill_stub(drafting: Drafting, path: str, entity: Entity, order: int) -> None:
        drafting.set(path, made_entity(drafting.text(path), entity.type, order))
        drafting.add(path, "observations", list(map(observation_line, entity.observations)))

    def create_relations(
        self,
        relations: Sequence[Relation],
        *,
        missing: Literal["stub", "refuse", "skip"] = "stub",
        update: bool = False,
        who: str = "",
        tool: str = "create_relations",
        reason: str = "",
    ) -> list[Relation]:
        """Relate names; a relation that is there is not made again. For a name without an entity a page is made that only
        holds relations ("stub"), or all is refused, or the relation is skipped. With `update` a relation that is there
        gets these attributes, and counts as made."""

        def draft(drafting: Drafting) -> list[Relation]:
            relating = self._relating(drafting)
            made: dict[tuple[str, str, str], Relation] = {}
            new: dict[str, str] = {}
            order, moment = self._known.next_order(), now()
            for relation in relations:
                names = (relation.source, relation.target)
                ends = [relating.end(name) or new.get(name) for name in names]
                lacking = [name for name in names if relating.is_lacking(name)]
                if lacking and missing == "refuse":
                    raise NoSuchEntity(lacking[0])
                if relation.key in made or (lacking and missing == "skip"):
                    continue
                if ends[0] is not None and (held := relating.held(ends[0], relation.key)) is not None:
                    if update and dict(held[1].attributes) != dict(relation.attributes):
                        relating.change(ends[0], held[0], relation)
                        made[relation.key] = relation
                    continue
                for number, name in enumerate(names):
                    if ends[number] is None:
                        ends[number] = new.get(name) or relating.note_called(name)
                    if ends[number] is None:
                        ends[number] = new[name] = drafting.make(name, None, order, moment)
                        order += 1
                source = ends[0]
                assert source is not None
                relating.add(source, relation, ends[1])
                made[relation.key] = relation
            relating.settle()
            return list(made.values())

        return self._steps.take(draft, who, tool, reason)

    def add_observations(
        self,
        additions: Sequence[tuple[str, Sequence[Observation]]],
        *,
        missing: Literal["refuse", "skip"] = "refuse",
        who: str = "",
        tool: str = "add_observations",
        reason: str = "",
    ) -> list[tuple[str, list[str]]]:
        """Say more of entities; what is said already is not said again. Returns what was added, for each."""

        def draft(drafting: Drafting) -> list[tuple[str, list[str]]]:
            added: list[tuple[str, list[str]]] = []
            for name, said in additions:
                there = self._known.named(name)
                if there is None or there.is_stub:
                    if missing == "refuse":
                        raise NoSuchEntity(name)
                    continue
                page = drafting.page(there.path)
                if page is None:
                    raise NoSuchEntity(name)
                held = {each.text for each in page.observations}
                new = [each for each in said if each.text not in held]
                drafting.add(page.path, "observations", list(map(observation_line, new)))
                added.append((name, [each.text for each in new]))
            return added

        return self._steps.take(draft, who, tool, reason)

    def delete_entities(
        self, names: Sequence[str], *, who: str = "", tool: str = "delete_entities", reason: str = ""
    ) -> list[str]:
        """Put entities into the trash, and take out every relation from and to these names. Returns the names that were
        no entity's."""

        def draft(drafting: Drafting) -> list[str]:
            known, relating, wanted = self._known, self._relating(drafting), dict.fromkeys(names)
            absent = [name for name in names if not any(not page.is_stub for page in known.all_named(name))]
            gone = {page.path: page for name in wanted for page in known.all_named(name)}
            for page in [page for page in gone.values() if not page.is_entity]:
                del gone[page.path]
                if page.name in absent or not any(each.is_entity for each in known.all_named(page.name)):
                    raise Invalid(
                        f"{page.name} is a note, not an entity: it is not deleted from the graph",
                        hint=f"delete_memory deletes it; its name is {base_name(page.path)}.",
                    )
            sources = {source.path for page in gone.values() for source in known.pointing_at(page)}
            sources |= {source.path for name in wanted for source in known.pointing_at_name(name)}
            for path in sorted(sources - gone.keys()):
                relating.take_out(path, lambda relation: relation.target in wanted)
            for path, page in gone.items():
                if page.is_stub and not relating.is_bare(path):
                    relating.take_out(path, lambda _: True)
                    continue  # a person wrote on it
                drafting.drop(path)
            relating.drop_idle_stubs(gone)
            return absent

        return self._steps.take(draft, who, tool, reason)

    def delete_observations(
        self,
        deletions: Sequence[tuple[str, Sequence[str]]],
        *,
        who: str = "",
        tool: str = "delete_observations",
        reason: str = "",
    ) -> tuple[int, list[str]]:
        """Take observations out, all that are equal to these texts. Returns how many, and the names that were no
        entity's."""

        def draft(drafting: Drafting) -> tuple[int, list[str]]:
            count, absent = 0, []
            for name, texts in deletions:
                there = self._known.named(name)
                page = None if there is None or there.is_stub else drafting.page(there.path)
                if page is None:
                    absent.append(name)
                    continue
                wanted = set(texts)
                gone = [
                    bullet
                    for bullet in page.bullets
                    if isinstance(bullet.says, Observation) and bullet.says.text in wanted and bullet.end > bullet.start
                ]
                drafting.take_out(page.path, gone)
                count += len(gone)
            return count, absent

        return self._steps.take(draft, who, tool, reason)

    def delete_relations(
        self, relations: Sequence[Relation], *, who: str = "", tool: str = "delete_relations", reason: str = ""
    ) -> int:
        """Take relations out. Returns how many there were."""

        def draft(drafting: Drafting) -> int:
            relating, wanted, count = self._relating(drafting), {relation.key for relation in relations}, 0
            for name in dict.fromkeys(relation.source for relation in relations):
                for page in self._known.all_named(name):
                    count += relating.take_out(page.path, lambda relation: relation.key in wanted)
            relating.drop_idle_stubs(())
            return count

        return self._steps.take(draft, who, tool, reason)

    def update_relation(
        self, relation: Relation, *, who: str = "", tool: str = "update_relation", reason: str = ""
    ) -> Relation:
        """Give a relation other attributes, in place of those it has."""

        def draft(drafting: Drafting) -> Relation:
            relating = self._relating(drafting)
            path = relating.end(relation.source)
            held = None if path is None else relating.held(path, relation.key)
            if path is None or held is None:
                raise NotFound(
                    f"Relation not found: {relation.source} -> {relation.target} ({relation.type})",
                    hint="create_relations makes it.",
                )
            relating.change(path, held[0], relation)
            relating.settle()
            return relation

        return self._steps.take(draft, who, tool, reason)

    def take_in(
        self,
        graph: Graph,
        progress: Callable[[int, int], None] | None = None,
        *,
        who: str = "",
        tool: str = "import",
        reason: str = "",
    ) -> tuple[int, int]:
        """Take in a whole graph, some hundred notes a step. What is there is left as it is, so that an import which was
        cut short can be made again. Returns how many entities and relations are new."""
        self._bench.catch_up()
        with self._lock:
            self._known.refresh()
            before = len(self._told(self._known.in_order(), everything=True).relations)
            drafting = Drafting(self._bench)
            taking = TakingIn(graph, self._relating(drafting), drafting)
        taking.relate()
        names, later = list(taking.paths), taking.later
        done = 0
        for first in range(0, len(names), _STEP):
            some = names[first : first + _STEP]
            with self._lock, self._bench.alone():
                self._known.refresh()
                order, moment = self._known.next_order(), now()
                for number, name in enumerate(some, order):
                    taking.make(name, number, moment)
                self._steps.write(drafting.drafts(), who, tool, reason)
                drafting.written()
            done += len(some)
            if progress is not None:
                progress(done, len(names) + len(later))
        if taking.stubs:
            self.create_entities(taking.stubs, who=who, tool=tool, reason=reason)
        for first in range(0, len(later), _STEP):
            some_relations = later[first : first + _STEP]
            self.create_relations(some_relations, who=who, tool=tool, reason=reason)
            done += len(some_relations)
            if progress is not None:
                progress(done, len(names) + len(later))
        with self._lock:
            self._known.refresh()
            return len(taking.new), len(self._told(self._known.in_order(), everything=True).relations) - before

    def _relating(self, drafting: Drafting) -> Relating:
        return Relating(self._known, self._bench, drafting)


_GRAPHS = OneEach(KnowledgeGraph)


def graph_of(store: EnhancedStore) -> KnowledgeGraph:
    """The graph of a store: one for all who ask."""
    return _GRAPHS.of(store)
