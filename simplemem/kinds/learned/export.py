"""Knowledge for elsewhere: one Markdown text grouped by type, or a graph that a picture or data is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.kinds.learned.entry import TYPES, KnowledgeEntry
from simplemem.kinds.learned.knowledge import Related, knowledge_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


def export_text(store: EnhancedStore, form: str) -> str:
    """All entries of a store in one of the forms: `md`, or with the graph of entities a picture or data (`d3` and
    `cytoscape` are JSON of nodes and links in the shape that those read)."""
    from simplemem.kinds.picture import PICTURES, cytoscape, drawing_of, node_link

    knowledge = knowledge_of(store)
    entries = knowledge.entries()
    related = knowledge.leading_to(entries)
    if form == "md":
        return "\n".join(_markdown(entries, related))
    name = {entry.path: entry.name.rsplit("/", 1)[-1] for entry in entries}
    more = graph_of(store).read()
    nodes = [
        Entity(name[e.path], e.type, (Observation(e.text),), e.path, e.sha256, e.created, e.modified) for e in entries
    ]
    relations = [Relation(name[path], kind, name[to.path]) for path, ties in related.items() for kind, to in ties]
    others = [entity for entity in more.entities if entity.path not in name]
    graph = Graph((*nodes, *others), (*relations, *more.relations))
    forms = {**PICTURES, "d3": node_link, "cytoscape": cytoscape}
    return forms[form](drawing_of(store.root.name, graph, told={entry.path: {"text": entry.text} for entry in entries}))


def _markdown(entries: Sequence[KnowledgeEntry], related: Related) -> Iterator[str]:
    """All entries as lines, by type, the surest first."""
    yield "# Knowledge\n"
    for kind in dict.fromkeys((*TYPES, *(entry.type for entry in entries))):
        some = [entry for entry in entries if entry.type == kind]
        if some:
            yield f"## {kind.capitalize()} ({len(some)})\n"
        for entry in sorted(some, key=lambda entry: (entry.is_superseded, -(entry.confidence or 0.0))):
            sure = "unknown" if entry.confidence is None else f"{entry.confidence:g}"
            facts = [f"confidence {sure}", *["verified"] * entry.verified, *["superseded"] * entry.is_superseded]
            yield f"### {entry.headline}\n"
            yield f"*{' · '.join([*facts, *(f'#{tag}' for tag in entry.tags)])}* · [[{entry.name}]] · `{entry.id}`\n"
            yield f"{entry.content}\n"
            if entry.context:
                yield f"**Context:** {entry.context}\n"
            if ties := related[entry.path]:
                yield "".join(f"- {words} [[{other.name}]]\n" for words, other in ties)
