"""Knowledge for elsewhere: one Markdown text grouped by type, and a graph that a picture or data can be made of.

Exports that no place is named for lie in `.simplemem/exports/`, where neither a search nor Obsidian takes them for notes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.kinds.graph.graph import graph_of
from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.kinds.learned.entry import TYPES, KnowledgeEntry
from simplemem.kinds.learned.knowledge import NEVER, Reads, Related, knowledge_of

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore


def markdown(entries: Sequence[KnowledgeEntry], related: Related, reads: Mapping[str, Reads]) -> str:
    """All entries as one text, by type, the surest first."""
    lines = ["# Knowledge", ""]
    for kind in (*TYPES, *sorted({entry.type for entry in entries} - set(TYPES))):
        some = sorted(
            (entry for entry in entries if entry.type == kind),
            key=lambda entry: (entry.is_superseded, -(entry.confidence or 0.0), entry.created, entry.name),
        )
        lines += [f"## {kind.capitalize()} ({len(some)})", ""] if some else []
        for entry in some:
            lines += [*_one(entry, related.get(entry.path, ()), reads.get(entry.id, NEVER)), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _one(entry: KnowledgeEntry, related: Sequence[tuple[str, KnowledgeEntry]], reads: Reads) -> Iterator[str]:
    facts = [f"confidence {entry.confidence:g}" if entry.confidence is not None else "confidence unknown"]
    facts += ["verified"] * entry.verified + ["superseded"] * entry.is_superseded + [f"#{tag}" for tag in entry.tags]
    facts += [f"read {reads.count} time{'' if reads.count == 1 else 's'}"] if reads.count else []
    yield f"### {entry.headline}\n"
    yield f"*{' · '.join(facts)}* · [[{entry.name}]] · `{entry.id}`\n"
    yield entry.content
    if entry.context:
        yield f"\n**Context:** {entry.context}"
    if related:
        yield ""
        yield from (f"- {words} [[{other.name}]]" for words, other in related)


def graph_of_entries(entries: Sequence[KnowledgeEntry], related: Related, more: Graph) -> Graph:
    """The entries with their relations, and the graph of entities beside them."""
    called = {entry.path: entry.name.rsplit("/", 1)[-1] for entry in entries}
    nodes = []
    for entry in entries:
        said = [entry.text]
        if entry.confidence is not None:
            said.append(f"confidence {entry.confidence:g}{', verified' if entry.verified else ''}")
        if entry.is_superseded:
            said.append(f"superseded by {entry.superseded_by}")
        facts = (entry.path, entry.sha256, entry.created, entry.modified)
        nodes.append(Entity(called[entry.path], entry.type, tuple(map(Observation, said)), *facts))
    relations = [
        Relation(called[entry.path], words, called[other.path])
        for entry in entries
        for words, other in related.get(entry.path, ())
        if other.path in called
    ]
    others = (entity for entity in more.entities if entity.path not in called)
    return Graph((*nodes, *others), (*relations, *more.relations))


def export_text(store: EnhancedStore, form: str) -> str:
    """All entries of a store in one of the forms: `md`, or with the graph of entities a picture or data (`d3` and
    `cytoscape` are JSON of nodes and links in the shape that those read)."""
    from simplemem.kinds.picture import PICTURES, cytoscape, drawing_of, node_link

    knowledge = knowledge_of(store)
    entries = knowledge.entries()
    related = knowledge.leading_to(entries)
    if form == "md":
        return markdown(entries, related, knowledge.reads())
    graph = graph_of_entries(entries, related, graph_of(store).read())
    forms = {**PICTURES, "d3": node_link, "cytoscape": cytoscape}
    return forms[form](drawing_of(store.root.name, graph, texts={entry.path: entry.text for entry in entries}))


def write_export(store: EnhancedStore, form: str, text: str) -> Path:
    """Put an export where exports lie, in place of the last of its form; its path."""
    store.bench.must_be_writable()
    name = f"knowledge.{form}" if form in ("md", "html", "dot", "json") else f"knowledge-{form}.json"
    return store.bench.side(f"exports/{name}").replace(text.encode("utf-8", "backslashreplace"))
