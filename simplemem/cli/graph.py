"""Commands about the knowledge graph in a vault: `export graph`, `import graph`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from simplemem.cli.opening import WHO
from simplemem.cli.options import (
    AllOption,
    JsonOption,
    PrefixOption,
    SinceOption,
    TagOption,
    TypeOption,
    UntilOption,
    VaultOption,
    command,
)

commands = typer.Typer()
_PANEL = "Knowledge graph"
_MOST_TOLD = 20
_exports = typer.Typer()
_imports = typer.Typer()
commands.add_typer(_exports, name="export", help="Write what the vault knows in another form.", rich_help_panel=_PANEL)
commands.add_typer(
    _imports, name="import", help="Bring what another program kept into the vault.", rich_help_panel=_PANEL
)


class Notes(StrEnum):
    ALL = "all"
    LINKED = "linked"
    NONE = "none"


def _formats() -> list[str]:
    from simplemem.kinds.picture.forms import PICTURES

    return ["jsonl", *PICTURES]


@command(
    _exports,
    "",
    name="graph",
    examples=[
        "simplemem export graph > memory.jsonl",
        "simplemem export graph --format html --output graph.html",
        "simplemem export graph --format html --notes all --output vault.html",
        "simplemem export graph --format svg --notes all --type decision --output decisions.svg",
        "simplemem export graph --format dot | dot -Tpdf > graph.pdf",
        "simplemem export graph --format json --no-texts | jq '.links[].type'",
    ],
)
def export_graph(
    form: Annotated[
        str,
        typer.Option(
            "--format",
            "-f",
            metavar="FORMAT",
            autocompletion=_formats,
            help="`jsonl` unless said; `html`, `svg`, `dot`, `json` or `cytoscape`.",
        ),
    ] = "jsonl",
    file: Annotated[
        Path | None,
        typer.Option("--output", "--out", "-o", metavar="FILE", help="Write it there instead of printing it."),
    ] = None,
    notes: Annotated[
        Notes | None,
        typer.Option(
            "--notes",
            help="Notes to draw beside the entities: those they link to (linked), all with their links, or none. "
            "Without it: linked, and all where the vault has no entity.",
        ),
    ] = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="With or without the notes' texts in it.")] = True,
    private: Annotated[bool, typer.Option("--private", help="Put the texts of private notes in it as well.")] = False,
    tag: TagOption = None,
    require_all: AllOption = False,
    kind: TypeOption = None,
    prefix: PrefixOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write the knowledge graph as a picture, or in a form for other programs.

    `jsonl` is the file of the graph memory servers: what was imported from one goes back to it, all of it.

    `html` is one page with everything in it: search, types, texts on a click; it fetches nothing. The texts of the
    notes are in it, so whoever gets the file can read them: `--no-texts` leaves them out. Those of private notes are
    left out unless you say `--private`; `jsonl` has everything.
    """
    from simplemem.cli.find import filter_of
    from simplemem.cli.picture import Asked, export

    narrowed = filter_of(tag, require_all, kind, prefix, since, until)
    asked = Asked(form, None if notes is None else notes.value, narrowed, texts, private)
    export(asked, file.expanduser() if file is not None else None, vault, as_json=as_json)


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
    from simplemem.faces.render import counted
    from simplemem.kinds.graph.jsonl import import_file

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
    if done.since:
        output.say((f'simplemem undo --by "{WHO}" --since {done.since} takes it back, after a look at it', "dim"))
