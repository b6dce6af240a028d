"""A change of the graph: pages to create and delete, list items to add, change and remove.

Every method of a change looks at the graph as it was before the change. Items that are added to a
page are collected, and put into its text when the change is complete.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from simplemem.errors import Hint, HintSentence, Invalid, NotFound
from simplemem.features.collection import ChangeSet
from simplemem.features.graph.attributes import format_attributes, split_attributes
from simplemem.features.graph.bullets import (
    Bullet,
    RelationLine,
    format_observation,
    format_relation,
)
from simplemem.features.graph.literals import format_text
from simplemem.features.graph.new_pages import NewPages
from simplemem.features.graph.page import GraphPage, read_page
from simplemem.features.graph.page_edits import add_items, remove_bullets, render_page
from simplemem.features.graph.pages import GraphPages
from simplemem.features.graph.resolved import build_graph
from simplemem.features.graph.values import (
    Entity,
    Graph,
    NoSuchEntity,
    Observation,
    Relation,
    RelationKey,
)
from simplemem.note.names import name_of
from simplemem.note.properties import remove_property, set_property
from simplemem.store import Draft, now

AddedTexts = list[tuple[str, list[str]]]
"""The name of each entity that was found, with the texts of its new observations."""


class DeletedObservations(NamedTuple):
    """How many observations were removed, and the names that no entity has."""

    removed_count: int
    not_found: list[str]


class MergeCounts(NamedTuple):
    """How many entities, relations, and observations of existing entities a graph added."""

    entities: int
    relations: int
    observations: int


@dataclass(frozen=True)
class _RelationItem:
    """A relation as a list item of a page, with the path of the page."""

    path: str
    bullet: Bullet
    line: RelationLine


@dataclass(frozen=True)
class _AttributeUpdate:
    """Attributes to set on the list item of a relation."""

    item: _RelationItem
    attributes: Mapping[str, Any]


class GraphEdit(ChangeSet):
    """One change of the graph. Guards the new pages, list items and attributes until `drafts`.

    Nothing is written. A method that names no entity of `owner` looks at those of all users. Each
    may raise Conflict if a page changed since it was read, and Unreadable if it cannot be changed.
    """

    def __init__(self, pages: GraphPages) -> None:
        """Begin a change of these pages, which the caller holds."""
        super().__init__(pages)
        self._pages = pages
        self._new_pages = NewPages(pages)
        # By path and section: list items to add.
        self._items: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._updates: list[_AttributeUpdate] = []
        # By source: the list item of each of its relations.
        self._relation_items: dict[str, dict[RelationKey, _RelationItem]] = {}

    # Texts

    def drafts(self) -> list[Draft]:
        """Return the drafts of all pages that the change makes different. It is called once, last.

        Raises Conflict, Unreadable or TooLong if a page cannot be changed.
        """
        self._apply_updates()
        self._render_new_pages()
        for (path, section), items in self._items.items():
            if not items:
                continue
            text = self.text(path)
            page = read_page(path, text)
            self.put(path, add_items(text, page, section, items))
        return super().drafts()

    def _apply_updates(self) -> None:
        """Rewrite the list items of relations whose attributes are updated."""
        # The last item of a page first: the positions of those before it stay valid.
        updates = sorted(self._updates, key=lambda update: update.item.bullet.start, reverse=True)
        for update in updates:
            path = update.item.path
            text = self.text(path)
            start = update.item.bullet.start
            end = update.item.bullet.end
            old_item = text[start:end].rstrip()

            without_attributes, _ = split_attributes(old_item)
            attributes = _updated_attributes(update)
            new_item = without_attributes + format_attributes(attributes)
            rest = text[start + len(old_item) :]
            self.put(path, text[:start] + new_item + rest)

    def _render_new_pages(self) -> None:
        """Set the texts of new pages, with the relations that were to be added to them."""
        moment = now()
        for new in self._new_pages.by_name.values():
            relation_items = self._items.pop((new.path, "relations"), ())
            text = render_page(
                new.path,
                new.entity,
                new.order,
                moment,
                is_stub=new.is_stub,
                relation_items=relation_items,
            )
            self.put(new.path, text)

    # Entities

    def create_entities(
        self, entities: Iterable[Entity], *, owner: str | None = None
    ) -> list[Entity]:
        """Create entities, and return those that did not exist, in their order.

        Existing ones stay as they are; a stub becomes the page of its entity. With `owner` they
        belong to that user, and entities of other users do not count. Of several with one name,
        the first is created. Raises Conflict or Unreadable if a stub cannot be changed.
        """
        self._new_pages.owner = owner
        created: dict[str, Entity] = {}
        for entity in entities:
            page = self._pages.named(entity.name, owner)
            exists = page is not None and not page.is_stub
            if exists or entity.name in created:
                continue

            created[entity.name] = entity
            if page is None:
                self._new_pages.create(entity)
            else:
                self._fill_stub(page, entity)
        return list(created.values())

    def _fill_stub(self, page: GraphPage, entity: Entity) -> None:
        """Make a stub the page of an entity: with its type, its observations and a new order.

        Raises Conflict or Unreadable if the stub cannot be changed.
        """
        text = remove_property(self.text(page.path), "stub")
        text = set_property(text, "order", self._new_pages.next_order())
        text = set_property(text, "entity_type", format_text(entity.type))
        self.put(page.path, text)
        self._add_observations_to(page.path, entity.observations)

    def delete_entities(self, names: Sequence[str]) -> list[str]:
        """Move entities to the trash with all their relations. Return the names that none has.

        The entities of all users count. The relations of other pages to them are removed. A name
        of a stub is among those that no entity has, but the stub is moved to the trash too.
        Raises Invalid if a name is only that of a note, which is no entity; Conflict or Unreadable
        if a page cannot be changed.
        """
        pages_by_name = {name: self._pages.all_named(name) for name in names}
        deleted: dict[str, str] = {}  # names by path
        for pages in pages_by_name.values():
            _check_has_entity(pages)
            for page in pages:
                if page.is_own:
                    deleted[page.path] = page.name

        sources = self._pages_pointing_at(deleted, pages_by_name)
        for path in deleted:
            self.drop(path)
        for path in sorted(sources.keys() - deleted.keys()):
            self._remove_relations_to(sources[path], pages_by_name)

        return [name for name in names if _are_all_stubs(pages_by_name[name])]

    def _pages_pointing_at(
        self, deleted: Mapping[str, str], names: Iterable[str]
    ) -> dict[str, GraphPage]:
        """Return by path the pages with relations to deleted pages or to names without a note.

        `deleted` has the names of deleted pages by their paths.
        """
        pages: list[GraphPage] = []
        for path, name in deleted.items():
            pages += self._pages.pointing_at(path, name)
        for name in names:
            pages += self._pages.pointing_at("", name)
        return {page.path: page for page in pages}

    # Observations

    def add_observations(
        self,
        additions: Iterable[tuple[str, Sequence[Observation]]],
        *,
        missing: Literal["refuse", "skip"] = "refuse",
        owner: str | None = None,
    ) -> AddedTexts:
        """Add observations to entities or notes by name. Return for each the texts that are new.

        `additions` are pairs of a name and observations; the answer has their order. An observation
        whose text the entity has already is not added again. With `owner`, only entities of that
        user are found. Raises NoSuchEntity for a name that none has, unless `missing` is "skip":
        such a name is then left out.
        """
        added: AddedTexts = []
        texts_by_path: dict[str, set[str]] = {}
        for name, observations in additions:
            page = self._pages.page_of(name, owner)
            if page is None:
                if missing == "skip":
                    continue
                raise NoSuchEntity(name)

            existing_texts = texts_by_path.setdefault(page.path, set(page.texts))
            new = [
                observation
                for observation in observations
                if observation.text not in existing_texts
            ]
            self._add_observations_to(page.path, new)
            texts = [observation.text for observation in new]
            existing_texts.update(texts)
            added.append((name, texts))
        return added

    def _add_observations_to(
        self,
        path: str,
        observations: Iterable[Observation],
    ) -> None:
        """Collect the list items of observations for a page. `drafts` adds them."""
        items = [format_observation(observation) for observation in observations]
        self._items[path, "observations"] += items

    def delete_observations(
        self, deletions: Iterable[tuple[str, Iterable[str]]]
    ) -> DeletedObservations:
        """Remove all observations with these texts from entities or notes by name.

        `deletions` are pairs of a name and texts. Texts that an entity does not have are ignored.
        Raises Conflict or Unreadable if a page cannot be changed.
        """
        texts_by_name = defaultdict[str, set[str]](set)
        for name, texts in deletions:
            texts_by_name[name].update(texts)

        count = 0
        not_found: list[str] = []
        for name, deleted_texts in texts_by_name.items():
            page = self._pages.page_of(name)
            if page is None:
                not_found.append(name)
                continue
            bullets = [
                bullet
                for bullet in page.bullets
                if isinstance(bullet.content, Observation) and bullet.content.text in deleted_texts
            ]
            count += self._remove_bullets(page, bullets)
        return DeletedObservations(count, not_found)

    # Relations

    def create_relations(
        self,
        relations: Iterable[Relation],
        *,
        missing: Literal["stub", "skip"] = "stub",
        update_existing: bool = True,
        owner: str | None = None,
    ) -> list[Relation]:
        """Create relations. Return in order those that are new or that got new attributes.

        An existing relation gets the attributes of the new one if that has any, unless
        `update_existing` is False; the others that it has stay. If `missing` is "stub", a source
        that is no entity gets a stub, and a target that is none an unresolved link. If it is
        "skip", relations with an end that is no entity or note are left out. With `owner`, only
        entities of that user count. Of equal relations, the first is created.
        """
        self._new_pages.owner = owner
        changed: dict[RelationKey, Relation] = {}
        for relation in relations:
            if relation.key in changed:
                continue
            if missing == "skip" and not self._has_both_ends(relation):
                continue

            existing = self._find_item(relation)
            if existing is None:
                changed[relation.key] = relation
                self._add_relation(relation)
            elif update_existing and relation.attributes:
                changed[relation.key] = relation
                self._updates.append(_AttributeUpdate(existing, relation.attributes))
        return list(changed.values())

    def _has_both_ends(self, relation: Relation) -> bool:
        """Return whether both ends of a relation are entities or notes."""
        owner = self._new_pages.owner
        ends = (relation.source, relation.target)
        return all(self._pages.page_of(end, owner) is not None for end in ends)

    def _add_relation(self, relation: Relation) -> None:
        """Collect the list item of a relation for the page of its source. `drafts` adds it."""
        path = self._page_for_relations(relation.source)
        link = self._new_pages.link_to(relation.target, path)
        item = format_relation(relation.type, link, relation.attributes)
        self._items[path, "relations"].append(item)

    def _page_for_relations(self, source: str) -> str:
        """Return the path of the page of a source: an entity, else a stub, which is new if none is.

        A note of another type does not count, because nothing is written to it.
        """
        pages = self._pages.all_named(source, self._new_pages.owner)
        entities = [page for page in pages if page.is_own]
        if entities:
            return min(entities, key=lambda page: page.is_stub).path

        new = self._new_pages.by_name.get(source)
        if new is not None:
            return new.path
        return self._new_pages.create(Entity(source, ""), is_stub=True)

    def update_relation(self, relation: Relation) -> None:
        """Set the attributes that `relation` has; others of the relation in the graph stay.

        Raises NotFound if the graph does not have the relation.
        """
        existing = self._find_item(relation)
        if existing is None:
            raise NotFound(
                f"Relation not found: {relation.source} -> {relation.target} ({relation.type})"
            )
        self._updates.append(_AttributeUpdate(existing, relation.attributes))

    def delete_relations(self, relations: Iterable[Relation]) -> int:
        """Remove relations, and return how many list items that took. Attributes do not matter.

        Relations that the graph does not have are ignored. Raises Conflict or Unreadable if a page
        cannot be changed.
        """
        keys = {relation.key for relation in relations}
        sources = sorted({source for source, _, _ in keys})
        count = 0
        for source in sources:
            for page in self._pages.all_named(source):
                bullets: list[Bullet] = []
                for item, relation in self._relations_on(page):
                    if relation.key in keys:
                        bullets.append(item.bullet)
                count += self._remove_bullets(page, bullets)
        return count

    def _remove_relations_to(self, page: GraphPage, targets: Collection[str]) -> None:
        """Remove the relations of a page to these names."""
        bullets: list[Bullet] = []
        for item, relation in self._relations_on(page):
            if relation.target in targets:
                bullets.append(item.bullet)
        self._remove_bullets(page, bullets)

    def _find_item(self, relation: Relation) -> _RelationItem | None:
        """Return the first list item that states a relation; None if no page has it.

        The items of a source are read on the first call for it.
        """
        source = relation.source
        if source not in self._relation_items:
            items: dict[RelationKey, _RelationItem] = {}
            for page in self._pages.all_named(source, self._new_pages.owner):
                for item, on_page in self._relations_on(page):
                    items.setdefault(on_page.key, item)
            self._relation_items[source] = items
        return self._relation_items[source].get(relation.key)

    def _relations_on(self, page: GraphPage) -> list[tuple[_RelationItem, Relation]]:
        """Return the relations of a page, each with its list item."""
        items = [
            _RelationItem(page.path, bullet, bullet.content)
            for bullet in page.bullets
            if isinstance(bullet.content, RelationLine)
        ]
        graph = build_graph([page], self._pages.resolutions, self._pages.items)
        return list(zip(items, graph.relations, strict=True))

    # Whole graphs

    def merge(self, graph: Graph) -> MergeCounts:
        """Add a whole graph, and return how much of it is new. What exists stays as it is."""
        created = {entity.name for entity in self.create_entities(graph.entities)}
        additions = [
            (entity.name, entity.observations)
            for entity in graph.entities
            if entity.name not in created
        ]
        added = self.add_observations(additions)
        relations = self.create_relations(graph.relations, update_existing=False)

        observation_count = sum(len(texts) for _, texts in added)
        return MergeCounts(len(created), len(relations), observation_count)

    def _remove_bullets(self, page: GraphPage, bullets: Collection[Bullet]) -> int:
        """Remove list items of a page, and return how many there are.

        Raises Conflict or Unreadable if the page cannot be changed.
        """
        if bullets:
            text = self.text(page.path)
            self.put(page.path, remove_bullets(text, bullets))
        return len(bullets)


def _updated_attributes(update: _AttributeUpdate) -> dict[str, Any]:
    """Return all attributes of a relation after an update.

    The first update of a relation with the attribute `at` keeps its old value as `created`.
    """
    old_attributes = update.item.line.attributes
    attributes = {**old_attributes, **update.attributes}
    if "at" in old_attributes and "created" not in old_attributes:
        attributes["created"] = old_attributes["at"]
    return attributes


def _are_all_stubs(pages: Iterable[GraphPage]) -> bool:
    """Return whether a name has no other pages than stubs, or none."""
    return all(page.is_stub for page in pages)


def _check_has_entity(pages: Sequence[GraphPage]) -> None:
    """Raise Invalid if a name has pages, and all of them are notes that are no entities."""
    if not pages or any(page.is_own for page in pages):
        return
    note = pages[0]
    raise Invalid(
        f"{note.name} is a note, not an entity, so it was not deleted",
        hint=Hint(
            HintSentence("delete", "delete_memory deletes it;"),
            f"its name is {name_of(note.path)}.",
        ),
    )
