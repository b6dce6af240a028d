"""The group `export`: the graph of a vault for people to look at and for other programs."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

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

if TYPE_CHECKING:
    from simplemem.graph.picture.from_store import Notes as Beside

commands = typer.Typer()
_export = typer.Typer(no_args_is_help=True, help="Write the graph of a vault for people and other programs.")
commands.add_typer(_export, name="export", rich_help_panel="Keep")


class Notes(StrEnum):
    ALL = "all"
    LINKED = "linked"
    NONE = "none"


class Form(StrEnum):
    HTML = "html"
    SVG = "svg"
    DOT = "dot"
    JSON = "json"
    CYTOSCAPE = "cytoscape"


@command(
    _export,
    "Write",
    name="graph",
    examples=[
        "simplemem export graph --format html --output graph.html",
        "simplemem export graph --format html --notes all --output vault.html",
        "simplemem export graph --format svg --notes all --prefix flights/ --output flights.svg",
        "simplemem export graph --format dot | dot -Tpdf > graph.pdf",
        "simplemem export graph --format json --no-texts | jq '.links[].type'",
    ],
)
def export_graph(
    form: Annotated[Form, typer.Option("--format", help="A page to look at, a drawing, or data for a program.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where it is written. Without it: to standard output."),
    ] = None,
    notes: Annotated[
        Notes | None,
        typer.Option(
            "--notes",
            help="Notes beside the entities: those they link to (linked), all with their links, or none. "
            "Without it: linked, and all where the vault has no entity.",
        ),
    ] = None,
    texts: Annotated[bool, typer.Option("--texts/--no-texts", help="With or without the notes' texts in it.")] = True,
    tag: TagOption = None,
    require_all: AllOption = False,
    kind: TypeOption = None,
    prefix: PrefixOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Write entities, relations, notes and links as a picture or as data.

    `html` is one page with everything in it: search, types, texts on a click; it fetches nothing. The texts of the
    notes are in it, so whoever gets the file can read them: `--no-texts` leaves them out.
    """
    from simplemem.cli.find import filter_of
    from simplemem.cli.picture import export_picture

    narrowed = filter_of(tag, require_all, kind, prefix, since, until)
    beside: Beside | None = notes.value if notes is not None else None
    export_picture(form.value, output, beside, narrowed, texts=texts, vault=vault, as_json=as_json)
