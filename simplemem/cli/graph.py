"""The command `export graph`: the knowledge graph as data or as a picture."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from simplemem.cli.command import Answer, command, for_a_program, opened
from simplemem.cli.options import Group, VaultOption, flag, option
from simplemem.errors import Invalid
from simplemem.note.words import format_count

commands = typer.Typer()
_PANEL = "Vault"
_exports = typer.Typer(cls=Group)
commands.add_typer(
    _exports, name="export", help="Export the knowledge graph.", rich_help_panel=_PANEL
)

Form = StrEnum("Form", "jsonl html dot json")
Beside = StrEnum("Beside", "all linked")
_NOTES_HELP = "Notes to draw: those that entities link to, or all. Without entities, all are drawn."


@command(_exports, name="graph")
def export_graph(
    form: Annotated[
        Form, typer.Option("--format", "-f", help="The format: data or a picture.")
    ] = Form.jsonl,
    file: Annotated[
        Path | None, option("--output --out -o", "FILE", "Write to this file instead of printing.")
    ] = None,
    notes: Annotated[Beside | None, typer.Option("--notes", help=_NOTES_HELP)] = None,
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
    from simplemem.features.graph.graph import graph_of
    from simplemem.features.graph.graph_export import PICTURES, build_store_drawing, shorten_drawing
    from simplemem.features.graph.jsonl import format_graph
    from simplemem.store import write_file

    if file is None and for_a_program():
        raise Invalid(
            "--json needs --output FILE", hint="To print the graph as JSON, pass `--format json`."
        )
    if form == "jsonl" and (notes or texts is False or private):
        message = "--notes, --no-texts and --private do not apply to the format jsonl"
        raise Invalid(message, hint="Leave them out, or pass `--format html`, `dot` or `json`.")
    file = file and file.expanduser()
    withheld, warnings = 0, []
    with opened(vault) as store:
        if (
            file
            and file.suffix.lower() == ".md"
            and file.resolve().is_relative_to(store.root.resolve())
        ):
            raise Invalid(
                f"{file} would become a note in the vault",
                hint="Use another extension, such as .html.",
            )
        graph = graph_of(store).read()
        if form == "jsonl":
            text, nodes, edges = format_graph(graph), len(graph.entities), len(graph.relations)
        else:
            beside: Any = notes or ("linked" if graph.entities else "all")
            drawing = build_store_drawing(
                store, graph, notes=beside, texts=texts is not False, private=private
            )
            text, length = (
                (PICTURES[form](drawing), None) if texts else shorten_drawing(drawing, form)
            )
            nodes, edges = len(drawing["nodes"]), len(drawing["links"])
            if length is not None:
                warnings.append(
                    f"texts are cut after {length:,} characters, to stay below 5 MB; --texts includes the complete texts"
                )
            if withheld := sum("private" in node for node in drawing["nodes"]):
                warnings.append(
                    f"{format_count(withheld, 'private note')} drawn without text; --private includes the text"
                )
    size = len(text.encode())
    facts = {
        "file": str(file),
        "format": form,
        "nodes": nodes,
        "edges": edges,
        "bytes": size,
        "private": withheld,
    }
    if file is None:
        return Answer(facts, text=text, warnings=warnings)
    write_file(file, text.encode())
    drawn = f"  {format_count(nodes, 'node')}, {format_count(edges, 'edge')}, {max(1, size // 1000):,} kB"
    return Answer(facts, [[(str(file), "cyan"), drawn]], warnings=warnings)
