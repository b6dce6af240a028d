"""The command `export graph`: the knowledge graph as data or as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from simplemem.cli.command import Answer, command, for_a_program, opened
from simplemem.cli.options import Group, VaultOption, flag, option
from simplemem.errors import Invalid
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.features.graph.values import Graph
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "Vault"
_exports = typer.Typer(cls=Group)
commands.add_typer(
    _exports, name="export", help="Export the knowledge graph.", rich_help_panel=_PANEL
)

Form = StrEnum("Form", "jsonl html dot json")
Selection = StrEnum("Selection", "all linked")
_NOTES_HELP = "Notes to draw: those that entities link to, or all. Without entities, all are drawn."


@command(_exports, name="graph")
def export_graph(
    form: Annotated[
        Form, typer.Option("--format", "-f", help="The format: data or a picture.")
    ] = Form.jsonl,
    file: Annotated[
        Path | None, option("--output --out -o", "FILE", "Write to this file instead of printing.")
    ] = None,
    notes: Annotated[Selection | None, typer.Option("--notes", help=_NOTES_HELP)] = None,
    texts: Annotated[
        bool | None, flag("--texts/--no-texts", "Include the complete texts of the notes, or none.")
    ] = None,
    private: Annotated[bool, flag("--private", "Include the texts of private notes.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Export the knowledge graph as a picture, or as data for other programs.

    `jsonl` is the format of graph memory servers. It always contains the whole graph, including
    private notes.

    `html` is one page that needs no network. It contains the texts of the notes, so everybody who
    gets the file can read them; `--no-texts` leaves the texts out. Texts of private notes are
    included only with `--private`. A picture stays below 5 MB by shortening long texts, unless you
    pass `--texts`. Notes without a type are coloured by folder or by tag.

    $ simplemem export graph > memory.jsonl
    $ simplemem export graph --format html --notes all --output vault.html
    $ simplemem export graph --format dot | dot -Tsvg > graph.svg
    $ simplemem export graph --format json --no-texts | jq '.links[].type'"""
    from simplemem.features.graph.service import graph_of
    from simplemem.store import write_file

    leaves_out_texts = texts is False
    has_picture_options = notes is not None or leaves_out_texts or private
    _check_options(file, form, has_picture_options=has_picture_options)
    if file is not None:
        file = file.expanduser()

    with opened(vault) as store:
        if file is not None:
            _refuse_note(file, store.root)
        graph = graph_of(store).read()
        if form == "jsonl":
            export = _as_jsonl(graph)
        else:
            selection = _notes_to_draw(notes, graph)
            export = _as_picture(store, graph, form, selection, texts=texts, private=private)

    size = len(export.text.encode())
    facts = {
        "file": str(file),
        "format": form,
        "nodes": export.nodes,
        "edges": export.edges,
        "bytes": size,
        "private": export.withheld,
    }
    if file is None:
        return Answer(facts, text=export.text, warnings=export.warnings)

    write_file(file, export.text.encode())
    nodes = format_count(export.nodes, "node")
    edges = format_count(export.edges, "edge")
    summary = f"  {nodes}, {edges}, {max(1, size // 1000):,} kB"
    return Answer(facts, [[(str(file), "cyan"), summary]], warnings=export.warnings)


@dataclass(frozen=True)
class _Export:
    """The text of an export, and what it contains."""

    text: str
    nodes: int
    edges: int
    withheld: int = 0  # private notes that are drawn without their text
    warnings: Sequence[str] = ()


def _check_options(file: Path | None, form: Form, *, has_picture_options: bool) -> None:
    """Raise Invalid for `--json` without a file, and for options of a picture with `jsonl`.

    `has_picture_options` is whether `--notes`, `--no-texts` or `--private` was passed.
    """
    if file is None and for_a_program():
        hint = "To print the graph as JSON, pass `--format json`."
        raise Invalid("--json needs --output FILE", hint=hint)
    if form == "jsonl" and has_picture_options:
        message = "--notes, --no-texts and --private do not apply to the format jsonl"
        raise Invalid(message, hint="Leave them out, or pass `--format html`, `dot` or `json`.")


def _refuse_note(file: Path, root: Path) -> None:
    """Raise Invalid if a file would be a note of the vault."""
    is_markdown = file.suffix.lower() == ".md"
    if is_markdown and file.resolve().is_relative_to(root.resolve()):
        hint = "Use another extension, such as .html."
        raise Invalid(f"{file} would become a note in the vault", hint=hint)


def _notes_to_draw(notes: Selection | None, graph: Graph) -> Literal["all", "linked"]:
    """Return which notes to draw: those that the option says.

    Without the option, those that entities link to, or all if there are no entities.
    """
    if notes is None:
        return "linked" if graph.entities else "all"
    return "all" if notes == "all" else "linked"


def _as_jsonl(graph: Graph) -> _Export:
    """Return the whole graph in the format of graph memory servers."""
    from simplemem.features.graph.jsonl import format_graph

    return _Export(format_graph(graph), len(graph.entities), len(graph.relations))


def _as_picture(
    store: EnhancedStore,
    graph: Graph,
    form: Form,
    selection: Literal["all", "linked"],
    *,
    texts: bool | None,
    private: bool,
) -> _Export:
    """Return the graph and notes as a picture, with warnings about texts that it leaves out.

    `texts` says whether to include all texts or none. If it is None, long texts are cut, so that
    the picture stays below 5 MB. Texts of private notes are included only with `private`.
    """
    from simplemem.features.graph.drawing import build_store_drawing
    from simplemem.features.graph.graph_export import PICTURES, shorten_drawing

    drawing = build_store_drawing(
        store, graph, notes=selection, texts=texts is not False, private=private
    )
    warnings = []
    if texts:
        text = PICTURES[form](drawing)
    else:
        text, length = shorten_drawing(drawing, form)
        if length is not None:
            warnings.append(
                f"texts are cut after {length:,} characters, to stay below 5 MB; --texts includes"
                " the complete texts"
            )
    withheld = sum("private" in node for node in drawing["nodes"])
    if withheld:
        notes = format_count(withheld, "private note")
        warnings.append(f"{notes} drawn without text; --private includes the text")
    return _Export(text, len(drawing["nodes"]), len(drawing["links"]), withheld, warnings)
