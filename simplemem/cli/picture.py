"""The graph written in one of its forms, and a note's surroundings drawn in the terminal. They change no note."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from simplemem.cli.find import FIND_PANEL
from simplemem.cli.options import JsonOption, Name, VaultOption, command, limit_option
from simplemem.errors import Invalid, NotFound, SimplememError

if TYPE_CHECKING:
    from rich.text import Text
    from rich.tree import Tree

    from simplemem.index.reconcile import Progress
    from simplemem.kinds.graph.values import Graph
    from simplemem.kinds.picture.around import Branch
    from simplemem.kinds.picture.drawing import Drawing
    from simplemem.kinds.picture.from_store import Notes
    from simplemem.memory import Filter
    from simplemem.store import EnhancedStore

commands = typer.Typer()


# -- to a file


class Asked(NamedTuple):
    """What is to be written: a form, and what goes into it."""

    form: str
    notes: Notes | None
    narrowed: Filter
    texts: bool
    private: bool


def export(asked: Asked, file: Path | None, vault: Path | None, *, as_json: bool) -> None:
    """Write the graph of a vault, in one of the forms, to a file or to standard output."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened, progress_bar
    from simplemem.kinds.graph.graph import graph_of
    from simplemem.kinds.graph.jsonl import written
    from simplemem.kinds.picture.forms import PICTURES, WITH_TEXTS

    forms = ", ".join(["jsonl", *PICTURES])
    if asked.form != "jsonl" and asked.form not in PICTURES:
        raise Invalid(f"There is no format {asked.form!r}.", hint=f"There are {forms}.")
    if file is None and as_json:
        raise Invalid(
            "--json says what was written, so it needs --output FILE", hint="--format json is a graph as JSON."
        )
    if file is None and asked.form == "html" and output.console().is_terminal:
        raise Invalid("a page is of no use in a terminal", hint="--output graph.html writes it to a file.")
    with opened(vault) as store, progress_bar() as progress:
        if file is not None:
            _must_be_no_note(file, store.root)
        graph = graph_of(store).read()
        withheld = 0
        if asked.form == "jsonl":
            _must_be_whole(asked)
            text, counts = written(graph), {"nodes": len(graph.entities), "edges": len(graph.relations)}
        else:
            drawing = _drawn(store, graph, asked, progress)
            withheld = drawing.withheld()
            text, counts = PICTURES[asked.form](drawing), {"nodes": len(drawing.nodes), "edges": len(drawing.edges)}
    data = text.encode()
    if file is None:
        sys.stdout.flush()
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()
    else:
        _write_whole(file, data)
    if as_json:
        said = {"file": str(file), "format": asked.form, **counts, "bytes": len(data), "private": withheld}
        output.print_json(said)
    elif file is not None:
        output.say((str(file), "cyan"), f"  {_said_of(counts)}, {_size(len(data))}")
    if withheld and asked.form in WITH_TEXTS and not as_json:
        notes = "a private note is" if withheld == 1 else f"{withheld} private notes are"
        output.warn(f"{notes} drawn without the text (--private puts it in)")
    if not counts["nodes"] and asked.form in PICTURES:
        output.warn("there is nothing to draw: no entity passes, and no note (--notes all draws every note)")


def _must_be_whole(asked: Asked) -> None:
    """What is read back by another program is the whole graph: nobody should take a part for it."""
    from simplemem.memory import Filter

    if asked.notes is not None or asked.narrowed != Filter() or not asked.texts or asked.private:
        raise Invalid(
            f"{asked.form} is always the whole graph",
            hint="--notes, filters and what goes into a picture are for html, svg, dot, json, cytoscape.",
        )


def _drawn(store: EnhancedStore, graph: Graph, asked: Asked, progress: Progress) -> Drawing:
    from simplemem.kinds.picture.from_store import drawing_of_store

    beside: Notes = asked.notes or ("linked" if graph.entities else "all")
    return drawing_of_store(
        store, graph, notes=beside, narrowed=asked.narrowed, texts=asked.texts, private=asked.private, progress=progress
    )


def _must_be_no_note(file: Path, root: Path) -> None:
    """A picture never lies where a note does: it would be taken for one, or be written over one."""
    if file.suffix.lower() == ".md" and file.resolve().is_relative_to(root.resolve()):
        raise Invalid(f"{file} would be a note of the vault", hint="Give a picture the ending of its format.")


def _write_whole(file: Path, data: bytes) -> None:
    """Put the file in place at once: whoever interrupts this has the old one, or none."""
    import tempfile

    handle, beside = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as into:
            into.write(data)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(beside, 0o666 & ~mask)
        os.replace(beside, file)
    except BaseException:
        os.unlink(beside)
        raise


def _said_of(counts: Mapping[str, int]) -> str:
    from simplemem.faces.render import counted

    return f"{counted(counts['nodes'], 'node', 'nodes')}, {counted(counts['edges'], 'edge', 'edges')}"


def _size(count: int) -> str:
    return f"{count / 1000:.0f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"


# -- in the terminal


@command(
    commands,
    FIND_PANEL,
    examples=[
        "simplemem graph 'Ida Marsh'",
        "simplemem graph Dipper --depth 1",
        "simplemem graph 'Ida Marsh' --json | jq -r '.edges[].type'",
    ],
)
def graph(
    name: Name,
    depth: Annotated[int, typer.Option("--depth", min=1, max=6, metavar="N", help="How many steps away.")] = 2,
    limit: Annotated[int, limit_option("How many lines below each name at most.")] = 25,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Draw what lies around an entity or a note: relations, links and backlinks.

    An arrow to the right leads away from the name above, an arrow to the left leads to it.
    """
    from simplemem.cli import output
    from simplemem.cli.opening import opened
    from simplemem.kinds.graph.graph import graph_of
    from simplemem.kinds.picture.around import around
    from simplemem.kinds.picture.from_store import drawing_of_store

    with opened(vault) as store:
        drawing = drawing_of_store(store, graph_of(store).read(), notes="all", texts=False)
        start = _meant(store, drawing, name)
    if as_json:
        output.print_json(_surroundings(drawing, start, depth))
        return
    from rich.tree import Tree

    tree = around(drawing, start, depth, limit)
    shown = Tree(_shown(drawing, start), guide_style="dim")
    _hang(shown, tree, drawing)
    screen = output.console()
    screen.print(shown, soft_wrap=not screen.is_terminal)
    if not tree.below:
        output.say(("Nothing leads to it, and nothing leads away.", "dim"))


def _meant(store: EnhancedStore, drawing: Drawing, name: str) -> int:
    """The node that a name means: an entity's exact name first, then a note's as everywhere else."""
    for at, node in enumerate(drawing.nodes):
        if node.id == name:
            return at
    try:
        path = f"{store.resolve(name)}.md"
    except SimplememError:
        alike = [at for at, node in enumerate(drawing.nodes) if node.label.casefold() == name.casefold()]
        if len(alike) == 1:
            return alike[0]
        raise
    for at, node in enumerate(drawing.nodes):
        if node.path == path:
            return at
    raise NotFound(f"{path} takes no part in the graph", hint="Templates and excluded notes are left out.")


def _hang(tree: Tree, branch: Branch, drawing: Drawing) -> None:
    from simplemem.cli import output

    for below in branch.below:
        assert below.edge is not None
        kind = output.one_line(below.edge.type)
        style = "dim" if below.edge.is_link else "green"
        arrow = (f"{kind} → ", style) if below.leads_here else (f"← {kind} ", style)
        if below.both_ways:
            arrow = (f"↔ {kind} ", style)
        after = "  (see above)" if below.seen_before else ""
        if below.left_out and not below.below:
            after = f"  … {below.left_out} more"
        line = output.styled(arrow, *_parts(drawing, below.node), *_said(below.edge.attributes), (after, "dim"))
        _hang(tree.add(line), below, drawing)
    if branch.left_out and branch.below:
        tree.add(output.styled((f"… {branch.left_out} more", "dim")))


def _shown(drawing: Drawing, at: int) -> Text:
    from simplemem.cli import output

    return output.styled(*_parts(drawing, at))


def _parts(drawing: Drawing, at: int) -> Sequence[tuple[str, str]]:
    from simplemem.cli import output

    node = drawing.nodes[at]
    kind = f"  {output.one_line(node.type)}" if node.type else "  not written yet"
    return (output.one_line(node.label) or "(no name)", "bold cyan"), (kind, "dim")


def _said(attributes: Any) -> Sequence[tuple[str, str]]:
    from simplemem.cli import output

    if not attributes:
        return ()
    said = ", ".join(f"{key} {output.in_words(value)}" for key, value in attributes.items())
    return ((f"  {output.one_line(said)}", "dim"),)


def _surroundings(drawing: Drawing, start: int, depth: int) -> dict[str, Any]:
    """The part of a drawing around a node, for programs."""
    from simplemem.kinds.picture.around import distances

    found = distances(drawing, start, depth)
    node = drawing.nodes[start]
    return {
        "name": node.id,
        "path": node.path or None,
        "type": node.type,
        "depth": depth,
        "nodes": [
            {
                "id": each.id,
                "label": each.label,
                "type": each.type,
                "kind": each.kind,
                "path": each.path or None,
                "tags": list(each.tags),
                "distance": away,
            }
            for each, away in sorted(
                ((drawing.nodes[at], away) for at, away in found.items()), key=lambda item: item[1]
            )
        ],
        "edges": [
            {
                "source": drawing.nodes[edge.source].id,
                "type": edge.type,
                "target": drawing.nodes[edge.target].id,
                "link": edge.is_link,
                "attributes": dict(edge.attributes),
            }
            for edge in drawing.edges
            if edge.source in found
            and edge.target in found
            # between two that are farthest away nothing was asked
            and min(found[edge.source], found[edge.target]) < depth
        ],
    }
