"""Commands about the knowledge graph in a vault: `export graph`, `import graph`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from simplemem.cli.opening import WHO
from simplemem.cli.options import JsonOption, VaultOption, command

commands = typer.Typer()
_PANEL = "Knowledge graph"
_MOST_TOLD = 20
_exports = typer.Typer()
_imports = typer.Typer()
commands.add_typer(_exports, name="export", help="Write what the vault knows in another form.", rich_help_panel=_PANEL)
commands.add_typer(
    _imports, name="import", help="Bring what another program kept into the vault.", rich_help_panel=_PANEL
)


def _formats() -> list[str]:
    from simplemem.graph.formats import FORMATS

    return list(FORMATS)


@command(
    _exports,
    "",
    name="graph",
    examples=[
        "simplemem export graph > memory.jsonl",
        "simplemem export graph --format jsonl --out ~/memory.jsonl",
    ],
)
def export_graph(
    form: Annotated[
        str,
        typer.Option(
            "--format", "-f", metavar="FORMAT", autocompletion=_formats, help="What to make of it; `jsonl` unless said."
        ),
    ] = "jsonl",
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE", help="Write it there instead of printing it."),
    ] = None,
    vault: VaultOption = None,
) -> None:
    """Write the knowledge graph in a form for other programs.

    `jsonl` is the file of the graph memory servers: what was imported from one goes back to it.
    """
    from simplemem.cli.opening import opened
    from simplemem.errors import Invalid
    from simplemem.graph.formats import FORMATS
    from simplemem.graph.graph import graph_of

    if form not in FORMATS:
        raise Invalid(f"There is no format {form!r}.", hint="There are " + ", ".join(FORMATS) + ".")
    with opened(vault) as store:
        text = FORMATS[form](graph_of(store).read())
    if out is None:
        sys.stdout.write(text)
    else:
        out.expanduser().write_text(text, encoding="utf-8", newline="\n")


@command(
    _imports,
    "",
    name="graph",
    examples=[
        "simplemem import graph ~/memory.jsonl",
        "simplemem import graph memory.jsonl --json",
    ],
)
def import_graph(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The file of a graph memory server, JSONL.")],
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the file of a graph memory server into the vault: a note for each entity.

    What is there already is added to, nothing is replaced, and the file stays as it is. Lines that cannot be read are
    told and passed over. After Ctrl-C, begin again: what was done is not done twice.
    """
    from simplemem.cli import output
    from simplemem.cli.opening import opened, progress_bar
    from simplemem.graph.importing import import_file
    from simplemem.tools.render import counted

    with opened(vault) as store, progress_bar() as progress:
        done = import_file(store, file.expanduser(), who=WHO, progress=progress)
    for broken in done.broken[:_MOST_TOLD]:
        output.warn(f"line {broken.line} of {file.name} was passed over: {broken.why}")
    if len(done.broken) > _MOST_TOLD:
        output.warn(f"and {len(done.broken) - _MOST_TOLD} lines more; --json names them all")
    if as_json:
        output.print_json(done.as_dict())
        return
    brought = [counted(done.entities, "entity", "entities"), counted(done.relations, "relation", "relations")]
    if done.observations:
        brought.append(f"{counted(done.observations, 'observation', 'observations')} more of entities that were there")
    known = done.entities_there or done.relations_there
    there = f" ({done.entities_there} and {done.relations_there} were there)" if known else ""
    output.say(("Imported", "green"), f": {', '.join(brought)}{there}")
