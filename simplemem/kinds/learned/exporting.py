"""Knowledge for elsewhere: one Markdown text grouped by type, and a graph that any form of picture can be made of.

Exports that no place is named for lie in `.simplemem/exports/`, where neither a search nor Obsidian takes them for notes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from simplemem.kinds.graph.values import Entity, Graph, Observation, Relation
from simplemem.kinds.learned.access import NEVER, Read
from simplemem.kinds.learned.entries import TYPES, Entry
from simplemem.kinds.learned.keeping import knowledge_of
from simplemem.vault import kernel
from simplemem.vault.paths import SIDECAR, Beneath

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_FOLDER: Final = (SIDECAR, "exports")
_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_BINARY", 0)


def markdown(
    entries: Sequence[Entry], related: Mapping[str, Sequence[tuple[str, Entry]]], read: Mapping[str, Read]
) -> str:
    """All entries as one text, by type, the surest first."""
    kinds = [*TYPES, *sorted({entry.type for entry in entries} - set(TYPES))]
    lines = ["# Knowledge", ""]
    for kind in kinds:
        some = sorted(
            (entry for entry in entries if entry.type == kind),
            key=lambda entry: (entry.is_superseded, -(entry.confidence or 0.0), entry.created, entry.name),
        )
        if some:
            lines += [f"## {kind.capitalize()} ({len(some)})", ""]
        for entry in some:
            lines += [*_one(entry, related.get(entry.path, ()), read.get(entry.id, NEVER)), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def _one(entry: Entry, related: Sequence[tuple[str, Entry]], read: Read) -> Iterable[str]:
    sure = f"confidence {entry.confidence:g}" if entry.confidence is not None else "confidence unknown"
    facts = [sure, *(["verified"] if entry.verified else []), *(["superseded"] if entry.is_superseded else [])]
    facts += [f"#{tag}" for tag in entry.tags]
    facts += [f"read {read.count} time{'' if read.count == 1 else 's'}"] if read.count else []
    yield f"### {entry.headline}"
    yield ""
    yield f"*{' · '.join(facts)}* · [[{entry.name}]] · `{entry.id}`"
    yield ""
    yield entry.content
    if entry.context:
        yield f"\n**Context:** {entry.context}"
    if related:
        yield ""
        yield from (f"- {words} [[{other.name}]]" for words, other in related)


def graph_of_entries(
    entries: Sequence[Entry], related: Mapping[str, Sequence[tuple[str, Entry]]], more: Graph
) -> Graph:
    """The entries with their relations, and the graph of entities beside them."""
    called = {entry.path: entry.name.rsplit("/", 1)[-1] for entry in entries}
    nodes = tuple(
        Entity(
            called[entry.path],
            entry.type,
            (Observation(entry.text), *_facts(entry)),
            entry.path,
            entry.sha256,
            entry.created,
            entry.modified,
        )
        for entry in entries
    )
    relations = tuple(
        Relation(called[entry.path], words, called[other.path])
        for entry in entries
        for words, other in related.get(entry.path, ())
        if other.path in called
    )
    others = tuple(entity for entity in more.entities if entity.path not in called)
    return Graph((*nodes, *others), (*relations, *more.relations))


def _facts(entry: Entry) -> Iterable[Observation]:
    if entry.confidence is not None:
        yield Observation(f"confidence {entry.confidence:g}{', verified' if entry.verified else ''}")
    if entry.is_superseded:
        yield Observation(f"superseded by {entry.superseded_by}")


def write_export(store: EnhancedStore, name: str, text: str) -> Path:
    """Put an export where exports lie, in place of the last of that name; its path."""
    store.core.must_be_writable()
    root = store.vault.sidecar().parent
    fresh = f"{name}.new"
    with Beneath(str(root)) as here:
        here.make(_FOLDER)
        folder = here.folder(_FOLDER)
        with os.fdopen(folder.open(fresh, _FLAGS), "wb") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
        kernel.patiently(
            lambda: os.replace(folder.name(fresh), folder.name(name), src_dir_fd=folder.fd, dst_dir_fd=folder.fd)
        )
    return root.joinpath(*_FOLDER, name)


def export_text(store: EnhancedStore, form: str) -> str:
    """All entries of a store in one of the forms: `md`, or with the graph of entities a picture or data (`d3` is `json`
    in the shape that D3 reads)."""
    knowledge = knowledge_of(store)
    entries = knowledge.entries()
    related = knowledge.leading_to(entries)
    if form == "md":
        return markdown(entries, related, knowledge.access.all())
    from simplemem.kinds.graph.graph import graph_of
    from simplemem.kinds.picture.drawing import drawing_of
    from simplemem.kinds.picture.forms import PICTURES

    graph = graph_of_entries(entries, related, graph_of(store).read())
    texts = {entry.path: entry.text for entry in entries}
    return PICTURES["json" if form == "d3" else form](drawing_of(store.root.name, graph, texts=texts))


def file_name(form: str) -> str:
    """What an export of this form is called."""
    return f"knowledge.{form}" if form in ("md", "html", "dot", "json") else f"knowledge-{form}.json"
