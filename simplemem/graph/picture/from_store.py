"""A drawing made of a vault: its graph of entities, and of its notes those that are asked for, with their links."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Literal

from simplemem.errors import SimplememError
from simplemem.graph.picture.drawing import Drawing, drawing_of
from simplemem.graph.values import Graph
from simplemem.index.sync import Progress
from simplemem.memory import Filter, Listed
from simplemem.note.frontmatter import read_header
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
    progress: Progress | None = None,
) -> Drawing:
    """A vault's graph to draw. A filter narrows entities as well: they are notes."""
    facts = {each.path: each for each in _listed(store, narrowed or Filter())}
    graph = _narrowed(graph, facts if narrowed not in (None, Filter()) else None, with_notes=notes != "none")
    drawn = list(facts.values()) if notes == "all" else []
    links = []
    if drawn:
        inspected = store.inspect()
        links = [(path, target) for path in facts for target in inspected.get(path, {}).get("links", ())]
    paths = dict.fromkeys([*(entity.path for entity in graph.entities if entity.path), *(note.path for note in drawn)])
    return drawing_of(
        store.root.name,
        graph,
        notes=sorted(drawn, key=lambda note: note.path),
        links=links,
        texts=_texts(store, paths, progress) if texts else {},
        facts=facts,
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


def _texts(store: EnhancedStore, paths: Collection[str], progress: Progress | None) -> dict[str, str]:
    """What stands in notes below their headers. A note that cannot be read just now is drawn without its text."""
    texts = {}
    for done, path in enumerate(paths, 1):
        try:
            text = store.vault.read(path).data.decode("utf-8", "replace")
        except (SimplememError, OSError):
            continue
        texts[path] = text[read_header(text).body_start :].strip("\r\n").replace("\r\n", "\n")
        if progress is not None and done % 100 == 0:
            progress("texts", done, len(paths))
    return texts
