"""A change of the graph while it is made: the pages that come, and the bullets that come, change and go. What is looked
at is the graph as it was before the change; what is added to a page is put at its end all at once."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from simplemem.errors import Invalid, NotFound
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
Key = tuple[str, str, str]


class GraphEdit(ChangeSet):
    """The pages that one change of the graph touches."""

    def __init__(self, graph: KnowledgeGraph) -> None:
        super().__init__(graph)
        self._graph = graph
        self._order = graph.last_order
        self._new: dict[
            str, tuple[str, Entity, int, bool]
        ] = {}  # by name: path, entity, order, whether it is a stub
        self._stems: dict[
            str, str
        ] = {}  # names that a file is made for, or that a new link waits for, by file name
        self._lines: dict[tuple[str, str], list[str]] = defaultdict(
            list
        )  # that are added, by page and section
        self._updates: list[
            tuple[str, Bullet, Mapping[str, Any]]
        ] = []  # attributes that a bullet is given
        self._held: dict[str, dict[Key, tuple[str, Bullet]]] = {}
        self._owner: str | None = None  # the user whose entities are changed; None: everybody's

    def drafts(self) -> list[Draft]:
        moment = now()
        for path, bullet, new in sorted(
            self._updates, key=lambda each: -each[1].start
        ):  # the last in a page first
            text = self.text(path)
            item, held = (
                text[bullet.start : bullet.end].rstrip(),
                cast("Bond", bullet.says).attributes,
            )
            first = {} if "created" in held or "at" not in held else {"created": held["at"]}
            said = pages.split_attributes(item)[0] + pages.spell_attributes(
                {**held, **new, **first}
            )
            self.put(path, text[: bullet.start] + said + text[bullet.start + len(item) :])
        for path, entity, order, is_stub in self._new.values():
            bonds = self._lines.pop((path, "relations"), ())
            self.put(path, pages.new_page(path, entity, order, moment, stub=is_stub, bonds=bonds))
        for (path, section), lines in self._lines.items():
            if lines:
                text = self.text(path)
                self.put(path, pages.with_lines(text, read_page(path, text), section, lines))
        return super().drafts()

    def create(self, entities: Iterable[Entity], *, owner: str | None = None) -> list[Entity]:
        """Make entities; those that are there are left as they are. Returns those that were made.

        With `owner` they belong to that user, and entities of the same name of other users do not count.
        """
        self._owner = owner
        made: dict[str, Entity] = {}
        for entity in entities:
            there = self._graph.named(entity.name, owner)
            if entity.name in made or (there is not None and not there.is_stub):
                continue
            made[entity.name] = entity
            if there is None:
                self._make(entity)
                continue
            self._order += 1
            text = set_property(
                remove_property(self.text(there.path), "stub"), "order", self._order
            )
            self.put(there.path, set_property(text, "entity_type", pages.spell(entity.type)))
            self._lines[there.path, "observations"] += map(
                pages.observation_line, entity.observations
            )
        return list(made.values())

    def say(
        self,
        additions: Iterable[tuple[str, Sequence[Observation]]],
        *,
        missing: str = "refuse",
        owner: str | None = None,
    ) -> Added:
        """Say what is new of entities: what was added, for each. A name of none refuses all, or is skipped ("skip")."""
        added: Added = []
        held: dict[str, set[str]] = {}
        for name, said in additions:
            if (page := self._graph.page_of(name, owner)) is not None:
                known = held.setdefault(page.path, {each.text for each in page.observations})
                new = [each for each in said if each.text not in known]
                known |= {each.text for each in new}
                self._lines[page.path, "observations"] += map(pages.observation_line, new)
                added.append((name, [each.text for each in new]))
            elif missing != "skip":
                raise NoSuchEntity(name)
        return added

    def relate(
        self,
        relations: Iterable[Relation],
        *,
        missing: str = "stub",
        again: bool = True,
        owner: str | None = None,
    ) -> list[Relation]:
        """Make relations: those that are new, and with `again` those that are given other attributes, which are updated.
        A source of no entity gets a page ("stub"), or is skipped ("skip")."""
        self._owner = owner
        made: dict[Key, Relation] = {}
        for relation in relations:
            ends = (relation.source, relation.target)
            is_incomplete = any(self._graph.page_of(end, owner) is None for end in ends)
            if relation.key in made or (missing == "skip" and is_incomplete):
                continue
            if (there := self._bullet_of(relation)) is not None:
                if again and relation.attributes:
                    self._updates.append((*there, relation.attributes))
                    made[relation.key] = relation
                continue
            made[relation.key] = relation
            own = [page for page in self._graph.all_named(relation.source, owner) if page.is_own]
            if own:
                source = min(own, key=lambda page: page.is_stub).path
            elif (new := self._new.get(relation.source)) is not None:
                source = new[0]
            else:
                source = self._make(Entity(relation.source, ""), stub=True)
            link = self._link_to(relation.target, source)
            self._lines[source, "relations"].append(
                pages.bond_line(relation.type, link, relation.attributes)
            )
        return list(made.values())

    def take_in(self, graph: Graph) -> tuple[int, int, int]:
        """Take in a whole graph: how many entities, relations, and observations of others are new."""
        new = {each.name for each in self.create(graph.entities)}
        learned = self.say(
            [(each.name, each.observations) for each in graph.entities if each.name not in new]
        )
        return (
            len(new),
            len(self.relate(graph.relations, again=False)),
            sum(len(texts) for _, texts in learned),
        )

    def update(self, relation: Relation) -> None:
        """Give a relation other attributes; those that are not named stay."""
        if (there := self._bullet_of(relation)) is None:
            raise NotFound(
                f"Relation not found: {relation.source} -> {relation.target} ({relation.type})"
            )
        self._updates.append((*there, relation.attributes))

    def delete(self, names: Sequence[str]) -> list[str]:
        """Put entities into the trash with all their relations: the names that were no entity's."""
        every = {name: self._graph.all_named(name) for name in names}
        for found in every.values():
            if found and not any(page.is_own for page in found):
                why = f"{found[0].name} is a note, not an entity, so it was not deleted"
                raise Invalid(
                    why, hint=f"delete_memory deletes it; its name is {name_of(found[0].path)}."
                )
        gone = {page.path: page.name for found in every.values() for page in found if page.is_own}
        ends = [*gone.items(), *(("", name) for name in every)]
        sources = {source.path: source for end in ends for source in self._graph.pointing_at(*end)}
        for path in gone:
            self.drop(path)
        for path in sorted(sources.keys() - gone.keys()):
            self._cut(
                sources[path],
                [one for one, said in self._relations_on(sources[path]) if said.target in every],
            )
        return [name for name in names if all(page.is_stub for page in every[name])]

    def unsay(self, deletions: Iterable[tuple[str, Iterable[str]]]) -> tuple[int, list[str]]:
        """Take out all observations that equal these texts: how many, and the names that were no entity's."""
        wanted = defaultdict[str, set[str]](set)
        for name, texts in deletions:
            wanted[name].update(texts)
        count, absent = 0, []
        for name, some in wanted.items():
            if (page := self._graph.page_of(name)) is None:
                absent.append(name)
                continue
            gone = [
                each
                for each in page.bullets
                if isinstance(each.says, Observation) and each.says.text in some
            ]
            count += self._cut(page, gone)
        return count, absent

    def unrelate(self, relations: Iterable[Relation]) -> int:
        """Take relations out. Returns how many there were."""
        wanted = {relation.key for relation in relations}
        some = [
            page
            for name in sorted({key[0] for key in wanted})
            for page in self._graph.all_named(name)
        ]
        return sum(
            self._cut(page, [b for b, said in self._relations_on(page) if said.key in wanted])
            for page in some
        )

    def _cut(self, page: GraphPage, gone: list[Bullet]) -> int:
        if gone:
            self.put(page.path, pages.without(self.text(page.path), gone))
        return len(gone)

    def _bullet_of(self, relation: Relation) -> tuple[str, Bullet] | None:
        """The first bullet that says a relation, and its page."""
        source = relation.source
        if source not in self._held:
            named = self._graph.all_named(source, self._owner)
            every = [(page, *each) for page in named for each in self._relations_on(page)]
            self._held[source] = {
                said.key: (page.path, bullet) for page, bullet, said in reversed(every)
            }
        return self._held[source].get(relation.key)

    def _relations_on(self, page: GraphPage) -> list[tuple[Bullet, Relation]]:
        bonds = [each for each in page.bullets if isinstance(each.says, Bond)]
        return list(
            zip(
                bonds,
                graph_of_pages([page], self._graph.ties, self._graph.items).relations,
                strict=True,
            )
        )

    def _make(self, entity: Entity, *, stub: bool = False) -> str:
        """A new page. Returns its path."""

        def is_taken(path: str) -> bool:
            stem = base_name(path)
            called = self.extension.files_called(stem) or self.extension.files_called(f"{stem}.md")
            is_anothers = self._stems.get(compare_key(stem), entity.name) != entity.name
            awaited = self._graph.is_awaited(stem, entity.name)
            return bool(is_anothers or awaited or called or self.extension.exists(path))

        owner = "" if self._owner in (None, SHARED) else self._owner or ""
        path = file_for(entity.name, is_taken, owner)
        self._stems[compare_key(base_name(path))] = entity.name
        self._order += 1
        self._new[entity.name] = (path, replace(entity, owner=owner), self._order, stub)
        return path

    def _link_to(self, name: str, source: str) -> str:
        """A link to the page or note of a name; to what is not there yet a link, or a literal."""
        page, new = self._graph.named(name, self._owner), self._new.get(name)
        if (page is None or page.is_stub) and (new is None or new[3]):
            to = self.extension.resolve_links([(name, source)])[0] if _carries(name) else ""
            if to is None or (page is not None and to == page.path):
                return (
                    f"[[{name}]]"
                    if self._stems.setdefault(compare_key(name), name) == name
                    else literal(name)
                )
            page = self._graph.page_at(to) if to.lower().endswith(".md") else None
            if page is None or page.name != name or not page.is_of(self._owner):
                return literal(name)
        if new is not None and not new[3]:
            target = base_name(new[0])  # no index knows it yet, and nothing else is called so
        else:
            assert page is not None
            shorter = (base_name(page.path), name_of(page.path))
            meant = self.extension.resolve_links([(each, source) for each in shorter])
            target = next(
                (each for each, to in zip(shorter, meant, strict=True) if to == page.path),
                page.path,
            )
        if set(target) & set("[]|#"):  # the name of a person's file, which no link can say
            return literal(name)
        is_shown = (
            name != target
            and len(name) <= 120
            and pages.is_plain(name)
            and not set(name) & set("[]|#^")
        )
        return f"[[{target}|{name}]]" if is_shown else f"[[{target}]]"


def file_for(
    name: str, is_taken: Callable[[str], bool] = lambda _path: False, owner: str = ""
) -> str:
    """The path of the note for a new entity: its own name where every system and link can carry it, else a near one.

    Entities of one name that belong to different users differ in the digest behind it.
    """
    path = f"{FOLDER}/{name}.md"
    if _carries(name) and not is_taken(path):
        return path
    identity = f"{owner}\0{name}" if owner else name
    digest = hashlib.sha256(identity.encode("utf-8", "surrogatepass")).hexdigest()
    readable = legal_name(name.replace("~", "-").encode("utf-8", "replace").decode())
    readable = readable.encode()[:120].decode("utf-8", "ignore").rstrip(" .")
    return next(
        path
        for length in (12, 24, 64)
        if not is_taken(path := f"{FOLDER}/{readable}~{digest[:length]}.md")
    )


def _carries(name: str) -> bool:
    """Whether the name can be the file's, letter for letter; the tilde is kept for the others."""
    return "~" not in name and name.isprintable() and legal_name(name) == name == name_of(name)
