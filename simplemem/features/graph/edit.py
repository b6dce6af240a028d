"""A change of the graph: pages to create and delete, bullets to add, change and remove.

A change looks at the graph as it was before. What it adds to a page is put at the end at once.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from simplemem.errors import Hint, HintSentence, Invalid, NotFound
from simplemem.features.collection import ChangeSet
from simplemem.features.graph import page as pages
from simplemem.features.graph.page import (
    FOLDER,
    Bond,
    Bullet,
    GraphPage,
    graph_of_pages,
    literal,
    read_page,
)
from simplemem.features.graph.values import (
    SHARED,
    Entity,
    Graph,
    NoSuchEntity,
    Observation,
    Relation,
)
from simplemem.note.names import base_name, compare_key, legal_name, name_of
from simplemem.note.properties import remove_property, set_property
from simplemem.store import Draft, now

if TYPE_CHECKING:
    from simplemem.features.graph.graph import KnowledgeGraph

Added = list[tuple[str, list[str]]]
RelationKey = tuple[str, str, str]

_MAX_NAME_IN_LINK: Final = 120  # characters
_MAX_NAME_IN_PATH: Final = 120  # bytes
_LINK_SYNTAX: Final = frozenset("[]|#")


@dataclass(frozen=True)
class _NewPage:
    """A page that the change creates. A stub only has relations."""

    path: str
    entity: Entity
    order: int
    is_stub: bool


@dataclass(frozen=True)
class _AttributeUpdate:
    """Attributes that a relation's bullet is given."""

    path: str
    bullet: Bullet
    bond: Bond
    attributes: Mapping[str, Any]


class GraphEdit(ChangeSet):
    """The pages that one change of the graph touches."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__(graph)
        self._graph = graph
        self._order = graph.last_order
        self._owner: str | None = None  # the user whose entities are changed; None: all users'
        self._new: dict[str, _NewPage] = {}  # by name
        # By the key of a file name: the name that a new file, or a new unresolved link, is for.
        self._reserved: dict[str, str] = {}
        # By path and section: bullets to add.
        self._lines: dict[tuple[str, str], list[str]] = defaultdict(list)
        self._updates: list[_AttributeUpdate] = []
        # By source: the path and bullet of each of its relations.
        self._relation_bullets: dict[str, dict[RelationKey, tuple[str, Bullet]]] = {}

    def drafts(self) -> list[Draft]:
        """Return the drafts of all pages that the change makes different."""
        self._apply_updates()
        self._render_new_pages()
        for (path, section), lines in self._lines.items():
            if lines:
                text = self.text(path)
                self.put(path, pages.with_lines(text, read_page(path, text), section, lines))
        return super().drafts()

    def _apply_updates(self) -> None:
        # The last bullet of a page first: the positions of those before it stay valid.
        for update in sorted(self._updates, key=lambda update: -update.bullet.start):
            text = self.text(update.path)
            start = update.bullet.start
            item = text[start : update.bullet.end].rstrip()

            current = update.bond.attributes
            attributes = {**current, **update.attributes}
            if "at" in current and "created" not in current:
                attributes["created"] = current["at"]
            without_attributes, _ = pages.split_attributes(item)
            changed = without_attributes + pages.spell_attributes(attributes)
            self.put(update.path, text[:start] + changed + text[start + len(item) :])

    def _render_new_pages(self) -> None:
        moment = now()
        for new in self._new.values():
            bonds = self._lines.pop((new.path, "relations"), ())
            text = pages.new_page(
                new.path, new.entity, new.order, moment, stub=new.is_stub, bonds=bonds
            )
            self.put(new.path, text)

    def create_entities(
        self, entities: Iterable[Entity], *, owner: str | None = None
    ) -> list[Entity]:
        """Create entities, and return those that did not exist. Existing ones stay as they are.

        With `owner` they belong to that user, and entities of other users do not count.
        """
        self._owner = owner
        created: dict[str, Entity] = {}
        for entity in entities:
            page = self._graph.named(entity.name, owner)
            if entity.name in created or (page is not None and not page.is_stub):
                continue
            created[entity.name] = entity
            if page is None:
                self._create_page(entity)
            else:
                self._fill_stub(page, entity)
        return list(created.values())

    def _fill_stub(self, page: GraphPage, entity: Entity) -> None:
        """Make a stub the page of an entity."""
        self._order += 1
        text = remove_property(self.text(page.path), "stub")
        text = set_property(text, "order", self._order)
        text = set_property(text, "entity_type", pages.spell(entity.type))
        self.put(page.path, text)
        self._add_bullets(page.path, entity.observations)

    def _add_bullets(self, path: str, observations: Iterable[Observation]) -> None:
        self._lines[path, "observations"] += map(pages.observation_line, observations)

    def add_observations(
        self,
        additions: Iterable[tuple[str, Sequence[Observation]]],
        *,
        missing: str = "refuse",
        owner: str | None = None,
    ) -> Added:
        """Add the observations that are new, and return their texts for each entity.

        Raise NoSuchEntity for a name of no entity, or leave it out if `missing` is "skip".
        """
        added: Added = []
        texts_by_path: dict[str, set[str]] = {}
        for name, observations in additions:
            page = self._graph.page_of(name, owner)
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
            texts = [observation.text for observation in new]
            existing_texts.update(texts)
            self._add_bullets(page.path, new)
            added.append((name, texts))
        return added

    def create_relations(
        self,
        relations: Iterable[Relation],
        *,
        missing: str = "stub",
        again: bool = True,
        owner: str | None = None,
    ) -> list[Relation]:
        """Create relations, and return those that are new or, with `again`, given new attributes.

        A source that is no entity gets a stub. If `missing` is "skip", relations with an end that
        is no entity are left out.
        """
        self._owner = owner
        changed: dict[RelationKey, Relation] = {}
        for relation in relations:
            if relation.key in changed or (missing == "skip" and not self._has_both_ends(relation)):
                continue

            existing = self._find_bullet(relation)
            if existing is None:
                changed[relation.key] = relation
                self._add_relation(relation)
            elif again and relation.attributes:
                changed[relation.key] = relation
                self._add_update(existing, relation)
        return list(changed.values())

    def _has_both_ends(self, relation: Relation) -> bool:
        ends = (relation.source, relation.target)
        return all(self._graph.page_of(end, self._owner) is not None for end in ends)

    def _add_relation(self, relation: Relation) -> None:
        path = self._page_for_relations(relation.source)
        link = self._link_to(relation.target, path)
        line = pages.bond_line(relation.type, link, relation.attributes)
        self._lines[path, "relations"].append(line)

    def _page_for_relations(self, source: str) -> str:
        """Return the path of the page of a source; create a stub if there is none."""
        named = self._graph.all_named(source, self._owner)
        own = [page for page in named if page.is_own]
        if own:
            return min(own, key=lambda page: page.is_stub).path
        if source in self._new:
            return self._new[source].path
        return self._create_page(Entity(source, ""), is_stub=True)

    def _add_update(self, existing: tuple[str, Bullet], relation: Relation) -> None:
        path, bullet = existing
        assert isinstance(bullet.says, Bond)
        self._updates.append(_AttributeUpdate(path, bullet, bullet.says, relation.attributes))

    def merge(self, graph: Graph) -> tuple[int, int, int]:
        """Add a whole graph.

        Return how many entities, relations, and observations of existing entities are new.
        """
        created = {entity.name for entity in self.create_entities(graph.entities)}
        additions = [
            (entity.name, entity.observations)
            for entity in graph.entities
            if entity.name not in created
        ]
        added = self.add_observations(additions)
        relations = self.create_relations(graph.relations, again=False)
        return len(created), len(relations), sum(len(texts) for _, texts in added)

    def update_relation(self, relation: Relation) -> None:
        """Set attributes of a relation; those that are not given stay. Raise NotFound."""
        existing = self._find_bullet(relation)
        if existing is None:
            raise NotFound(
                f"Relation not found: {relation.source} -> {relation.target} ({relation.type})"
            )
        self._add_update(existing, relation)

    def delete_entities(self, names: Sequence[str]) -> list[str]:
        """Move entities to the trash with all their relations, and return the names of none.

        Raise Invalid if a name is only that of a note, which is no entity.
        """
        named = {name: self._graph.all_named(name) for name in names}
        for found in named.values():
            _check_has_entity(found)

        deleted = {
            page.path: page.name for found in named.values() for page in found if page.is_own
        }
        sources = self._pages_pointing_at(deleted, named)
        for path in deleted:
            self.drop(path)
        for path in sorted(sources.keys() - deleted.keys()):
            self._remove_relations_to(sources[path], named)
        return [name for name in names if all(page.is_stub for page in named[name])]

    def _pages_pointing_at(
        self, deleted: Mapping[str, str], names: Iterable[str]
    ) -> dict[str, GraphPage]:
        """Return the pages with relations to deleted pages, given by path and name, or to names."""
        ends = [*deleted.items(), *(("", name) for name in names)]
        sources: dict[str, GraphPage] = {}
        for path, name in ends:
            for page in self._graph.pointing_at(path, name):
                sources[page.path] = page
        return sources

    def _remove_relations_to(self, page: GraphPage, targets: Collection[str]) -> None:
        bullets = [
            bullet for bullet, relation in self._relations_on(page) if relation.target in targets
        ]
        self._remove_bullets(page, bullets)

    def delete_observations(
        self, deletions: Iterable[tuple[str, Iterable[str]]]
    ) -> tuple[int, list[str]]:
        """Remove all observations with these texts. Return their number and the names of none."""
        texts_by_name = defaultdict[str, set[str]](set)
        for name, texts in deletions:
            texts_by_name[name].update(texts)

        count = 0
        absent: list[str] = []
        for name, wanted_texts in texts_by_name.items():
            page = self._graph.page_of(name)
            if page is None:
                absent.append(name)
                continue
            bullets = [
                bullet
                for bullet in page.bullets
                if isinstance(bullet.says, Observation) and bullet.says.text in wanted_texts
            ]
            count += self._remove_bullets(page, bullets)
        return count, absent

    def delete_relations(self, relations: Iterable[Relation]) -> int:
        """Remove relations, and return how many there were."""
        keys = {relation.key for relation in relations}
        sources = sorted({source for source, _, _ in keys})
        count = 0
        for source in sources:
            for page in self._graph.all_named(source):
                bullets = [
                    bullet for bullet, relation in self._relations_on(page) if relation.key in keys
                ]
                count += self._remove_bullets(page, bullets)
        return count

    def _remove_bullets(self, page: GraphPage, bullets: Collection[Bullet]) -> int:
        if bullets:
            self.put(page.path, pages.without(self.text(page.path), bullets))
        return len(bullets)

    def _find_bullet(self, relation: Relation) -> tuple[str, Bullet] | None:
        """Return the path and the first bullet that have a relation."""
        source = relation.source
        if source not in self._relation_bullets:
            bullets: dict[RelationKey, tuple[str, Bullet]] = {}
            for page in self._graph.all_named(source, self._owner):
                for bullet, on_page in self._relations_on(page):
                    bullets.setdefault(on_page.key, (page.path, bullet))
            self._relation_bullets[source] = bullets
        return self._relation_bullets[source].get(relation.key)

    def _relations_on(self, page: GraphPage) -> list[tuple[Bullet, Relation]]:
        """Return the relations of a page, each with its bullet."""
        bullets = [bullet for bullet in page.bullets if isinstance(bullet.says, Bond)]
        relations = graph_of_pages([page], self._graph.ties, self._graph.items).relations
        return list(zip(bullets, relations, strict=True))

    def _create_page(self, entity: Entity, *, is_stub: bool = False) -> str:
        """Create a page, and return its path."""

        def is_taken(path: str) -> bool:
            stem = base_name(path)
            if self._reserved.get(compare_key(stem), entity.name) != entity.name:
                return True
            if self._graph.is_awaited(stem, entity.name):
                return True
            if self.extension.files_called(stem) or self.extension.files_called(f"{stem}.md"):
                return True
            return self.extension.exists(path)

        owner = ""
        if self._owner not in (None, SHARED):
            owner = self._owner or ""
        path = path_for_entity(entity.name, is_taken, owner)
        self._reserved[compare_key(base_name(path))] = entity.name
        self._order += 1
        entity = replace(entity, owner=owner)
        self._new[entity.name] = _NewPage(path, entity, self._order, is_stub)
        return path

    def _link_to(self, name: str, source: str) -> str:
        """Return a link from the page `source` to the page or note of a name.

        For a name that has none yet, return an unresolved link, or a literal if a link cannot
        carry the name or would resolve to another note.
        """
        new = self._new.get(name)
        if new is not None and not new.is_stub:
            # The index does not know the file yet, and no other has its name.
            return _link(base_name(new.path), name)

        page = self._graph.named(name, self._owner)
        if page is None or page.is_stub:
            target: str | None = ""
            if _fits_in_path(name):
                [target] = self.extension.resolve_links([(name, source)])
            is_unresolved = target is None or (page is not None and target == page.path)
            if target is None or is_unresolved:
                return self._unresolved_link(name)
            page = self._graph.page_at(target) if target.lower().endswith(".md") else None
            if page is None or page.name != name or not page.is_of(self._owner):
                return literal(name)
        return _link(self._shortest_target(page.path, source), name)

    def _unresolved_link(self, name: str) -> str:
        """Return a link that the file of a new entity will resolve."""
        reserved_for = self._reserved.setdefault(compare_key(name), name)
        return f"[[{name}]]" if reserved_for == name else literal(name)

    def _shortest_target(self, path: str, source: str) -> str:
        """Return the shortest target that resolves to a path in a link from `source`."""
        candidates = (base_name(path), name_of(path))
        resolved = self.extension.resolve_links([(target, source) for target in candidates])
        for target, resolved_path in zip(candidates, resolved, strict=True):
            if resolved_path == path:
                return target
        return path


def _check_has_entity(found: Sequence[GraphPage]) -> None:
    """Raise Invalid if pages of one name are notes only."""
    if not found or any(page.is_own for page in found):
        return
    note = found[0]
    raise Invalid(
        f"{note.name} is a note, not an entity, so it was not deleted",
        hint=Hint(
            HintSentence("delete", "delete_memory deletes it;"),
            f"its name is {name_of(note.path)}.",
        ),
    )


def _link(target: str, name: str) -> str:
    """Return a link that shows a name, or a literal if no link can have the target."""
    if _LINK_SYNTAX & set(target):
        return literal(name)
    can_show = (
        len(name) <= _MAX_NAME_IN_LINK and pages.is_plain(name) and not set(name) & set("[]|#^")
    )
    if name != target and can_show:
        return f"[[{target}|{name}]]"
    return f"[[{target}]]"


def path_for_entity(
    name: str, is_taken: Callable[[str], bool] = lambda _path: False, owner: str = ""
) -> str:
    """Return the path of the note for a new entity.

    The file has the entity's name if every system and every link can carry it and no other file has
    it, or else a similar name with a digest, which differs between users.
    """
    path = f"{FOLDER}/{name}.md"
    if _fits_in_path(name) and not is_taken(path):
        return path

    identity = f"{owner}\0{name}" if owner else name
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    readable = legal_name(name.replace("~", "-").encode("utf-8", "replace").decode())
    readable = readable.encode()[:_MAX_NAME_IN_PATH].decode("utf-8", "ignore").rstrip(" .")
    candidates = (f"{FOLDER}/{readable}~{digest[:length]}.md" for length in (12, 24, 64))
    return next(path for path in candidates if not is_taken(path))


def _fits_in_path(name: str) -> bool:
    """Return whether a file can have exactly this name. Names with a tilde are left for digests."""
    if "~" in name or not name.isprintable():
        return False
    return legal_name(name) == name == name_of(name)
