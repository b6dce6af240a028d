"""A drawing made of a vault: its graph of entities, and of its notes those that are asked for, with their links."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Literal

from simplemem.index.reconcile import Progress
from simplemem.kinds.graph.values import Graph
from simplemem.kinds.picture.drawing import Drawing, drawing_of
from simplemem.memory import Filter, Listed
from simplemem.note.header import read_header
from simplemem.store import EnhancedStore

Notes = Literal["all", "linked", "none"]
"""Which notes are drawn beside entities: every one, those that entities link to, or none."""

_PAGE = 1000


def drawing_of_store(
    store: EnhancedStore,
    graph: Graph,
    *,
    notes: Notes = "linked",
    narrowed: Filter | None = None,
    texts: bool = True,
    private: bool = False,
    progress: Progress | None = None,
) -> Drawing:
    """A vault's graph to draw. A filter narrows entities as well: they are notes. What private notes say is left out
    unless `private` is asked for, and what any says without `texts`."""
    facts = {each.path: each for each in _listed(store, narrowed or Filter())}
    graph = _narrowed(graph, facts if narrowed not in (None, Filter()) else None, with_notes=notes != "none")
    drawn = list(facts.values()) if notes == "all" else []
    links = []
    if drawn:
        inspected = store.inspect()
        links = [(path, target) for path in facts for target in inspected.get(path, {}).get("links", ())]
    paths = dict.fromkeys([*(entity.path for entity in graph.entities if entity.path), *(note.path for note in drawn)])
    told, withheld = _texts(store, paths, private, progress) if texts else ({}, set())
    if not texts:
        graph = Graph(tuple(replace(entity, observations=()) for entity in graph.entities), graph.relations)
    return drawing_of(
        store.root.name,
        graph,
        notes=sorted(drawn, key=lambda note: note.path),
        links=links,
        texts=told,
        facts=facts,
        withheld=withheld,
    )


def _listed(store: EnhancedStore, narrowed: Filter) -> Iterator[Listed]:
    cursor = None
    while True:
        page = store.list(filter=narrowed, sort="name", limit=_PAGE, cursor=cursor)
        yield from page.items
        cursor = page.next_cursor
        if cursor is None:
            return


def _narrowed(graph: Graph, paths: Collection[str] | None, *, with_notes: bool) -> Graph:
    """The graph without the entities that are not wanted, and without the relations of those."""
    kept, gone = [], set()
    for entity in graph.entities:
        wanted = (with_notes or not entity.is_note) and (paths is None or entity.path in paths)
        kept.append(entity) if wanted else gone.add(entity.name)
    gone -= {entity.name for entity in kept}
    if not gone:
        return graph
    relations = (each for each in graph.relations if each.source not in gone and each.target not in gone)
    return Graph(tuple(kept), tuple(relations))


def _texts(
    store: EnhancedStore, paths: Collection[str], private: bool, progress: Progress | None
) -> tuple[dict[str, str], set[str]]:
    """What stands in notes below their headers, and the notes whose texts are not told: private ones, and in doubt one
    that cannot be read just now."""
    withheld = set() if private else store.bench.private(paths)
    texts = {}
    for done, read in enumerate(store.bench.read(path for path in paths if path not in withheld), 1):
        texts[read.path] = read.text[read_header(read.text).body_start :].strip("\r\n").replace("\r\n", "\n")
        if progress is not None and done % 100 == 0:
            progress("texts", done, len(paths))
    withheld |= set(paths) - texts.keys()
    return texts, withheld
