"""All entries of a store as one text: a Markdown file, or a picture or data with the graph of entities."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simplemem.features.graph.graph import graph_of
from simplemem.features.graph.values import Entity, Graph, Observation, Relation
from simplemem.features.lessons import TYPES
from simplemem.features.lessons.entry import KnowledgeEntry
from simplemem.features.lessons.knowledge import Related, knowledge_of
from simplemem.store import EnhancedStore


def export_text(store: EnhancedStore, form: str) -> str:
    """Return all entries of a store in a form.

    `md` groups them by type, the most confident first. The other forms (`html`, `json`, `dot`,
    `d3`, `cytoscape`) also contain the graph of entities.
    """
    knowledge = knowledge_of(store)
    entries = knowledge.entries()
    related = knowledge.relations_of(entries)
    if form == "md":
        return _export_markdown(entries, related)
    return _export_graph(store, entries, related, form)


def _export_graph(
    store: EnhancedStore, entries: Sequence[KnowledgeEntry], related: Related, form: str
) -> str:
    """Return a picture or data of the entries, the entities, and the relations of both."""
    from simplemem.features.graph.graph_export import PICTURES, build_drawing, cytoscape, node_link

    entity_graph = graph_of(store).read()
    names = {entry.path: entry.name.rsplit("/", 1)[-1] for entry in entries}
    nodes = [
        Entity(names[entry.path], entry.type, (Observation(entry.text),), entry.path)
        for entry in entries
    ]
    nodes += [entity for entity in entity_graph.entities if entity.path not in names]
    relations = [
        Relation(names[path], words, names[target.path])
        for path, targets in related.items()
        for words, target in targets
    ]

    texts = {entry.path: {"text": entry.text} for entry in entries}
    graph = Graph(tuple(nodes), (*relations, *entity_graph.relations))
    drawing = build_drawing(store.root.name, graph, details=texts)
    writers = {**PICTURES, "d3": node_link, "cytoscape": cytoscape}
    return writers[form](drawing)


def _export_markdown(entries: Sequence[KnowledgeEntry], related: Related) -> str:
    """Return the entries under a heading for each type."""
    lines = ["# Knowledge\n"]
    for type_ in _types_in_order(entries):
        of_type = [entry for entry in entries if entry.type == type_]
        if not of_type:
            continue
        lines.append(f"## {type_.capitalize()} ({len(of_type)})\n")
        for entry in sorted(of_type, key=_export_order):
            lines += _entry_lines(entry, related)
    return "\n".join(lines)


def _types_in_order(entries: Iterable[KnowledgeEntry]) -> Iterable[str]:
    """Return the known types, then all other types that occur."""
    return dict.fromkeys((*TYPES, *(entry.type for entry in entries)))


def _export_order(entry: KnowledgeEntry) -> tuple[bool, float]:
    """Sort superseded entries last, and the most confident first."""
    return entry.is_superseded, -(entry.confidence or 0.0)


def _entry_lines(entry: KnowledgeEntry, related: Related) -> list[str]:
    """Return the lines of an entry: heading, facts, content, context and relations."""
    confidence = "unknown" if entry.confidence is None else f"{entry.confidence:g}"
    facts = [f"confidence {confidence}"]
    if entry.verified:
        facts.append("verified")
    if entry.is_superseded:
        facts.append("superseded")
    facts += [f"#{tag}" for tag in entry.tags]

    lines = [f"### {entry.headline}\n"]
    lines.append(f"*{' · '.join(facts)}* · [[{entry.name}]] · `{entry.id}`\n")
    lines.append(f"{entry.content}\n")
    if entry.context:
        lines.append(f"**Context:** {entry.context}\n")
    relations = [f"- {words} [[{target.name}]]\n" for words, target in related[entry.path]]
    if relations:
        lines.append("".join(relations))
    return lines
