"""The commands `import SOURCE`: notes of other programs are imported in one step, after a preview."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from simplemem.cli.command import WHO, Answer, agree, command, finish, opened, preview
from simplemem.cli.options import Group, VaultOption, YesOption, argument, flag, option
from simplemem.cli.output import Lines
from simplemem.cli.write import undo_with
from simplemem.errors import Invalid
from simplemem.importers import SOURCES, Source, plugin_sources
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.features.graph.jsonl import Imported
    from simplemem.importers.export import Item, Left
    from simplemem.importers.take import Plan

commands = typer.Typer()
_imports = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
commands.add_typer(
    _imports, name="import", help="Import notes from other programs.", rich_help_panel="Vault"
)
_SHOWN = 12  # of what is left out

Into = Annotated[str | None, option("--into", "FOLDER", "The folder in the vault to import into.")]
DryRun = Annotated[bool, flag("--dry-run", "Show what would be imported, and change nothing.")]


def _bring(
    kind: str,
    file: Path | str,
    found: Iterable[Item | Left],
    folder: str,
    vault: Path | None,
    dry_run: bool,
    yes: bool,
) -> Answer:
    """Show what an import would do, have a person agree, and do it as one step."""
    from simplemem.importers.take import apply_plan, plan

    with opened(vault) as store:
        planned = plan(store, kind, str(file), folder, found)
        shown = Answer({**planned.as_dict(), "dry_run": dry_run}, _lines(planned))
        if dry_run or not planned.drafts:
            return shown
        _ask(shown, yes=yes)
        carried = apply_plan(store, planned, who=WHO)
        version, warnings = carried.written[0].version, list(dict.fromkeys(carried.warnings))
        if (more := len(warnings) - _SHOWN) > 0:
            warnings[_SHOWN:] = [f"and {more:,} more of this kind"]
        lines: Lines = [
            [("Imported", "green"), f" {format_count(len(planned.drafts), 'file')}"],
            undo_with(version),
        ]
        return Answer({**shown.facts, "version": version}, lines, warnings=warnings)


def _ask(shown: Answer, *, yes: bool) -> None:
    """Show a person what an import would do, and have them agree."""
    preview(shown)
    refused, hint = (
        "an import needs confirmation, but there is no terminal",
        "Add --yes, or preview with --dry-run.",
    )
    agree("Import this?", refused=refused, hint=hint, yes=yes)
    finish()


def _lines(planned: Plan) -> Lines:
    """A plan, for people."""
    counts = {
        "new": planned.new,
        "changed since the last import": planned.changed,
        "already in the vault": planned.there,
    }
    lines: Lines = [
        [
            (planned.file, "cyan"),
            f"  into {f'{planned.folder}/' if planned.folder else 'the vault'}",
        ]
    ]
    lines += [[f"{count:>7,}  {what}"] for what, count in counts.items() if count or what == "new"]
    lines += [[(f"{len(planned.left):>7,}  skipped:", "yellow")]] if planned.left else []
    lines += [
        ["         ", (each.where, "cyan"), (f"  {each.why}", "dim")]
        for each in planned.left[:_SHOWN]
    ]
    more = len(planned.left) - _SHOWN
    return lines + (
        [[(f"         and {more:,} more (--json lists all)", "dim")]] if more > 0 else []
    )


def _declare(source: Source, run: Callable[..., Answer]) -> None:
    """Declare the command of a source, with what the table says of it."""
    run.__doc__ = f"{source.about}\n\n$ {source.example}"
    if source.file:
        run.__annotations__["file"] = Annotated[Path, argument("FILE", source.file)]
    command(_imports, name=source.name)(run)


def _reading(source: Source) -> Callable[..., Answer]:
    def run(
        file: Path,
        into: Into = None,
        dry_run: DryRun = False,
        yes: YesOption = False,
        vault: VaultOption = None,
    ) -> Answer:
        folder = source.folder if into is None else into
        return _bring(
            source.name, path := file.expanduser(), source.read(path), folder, vault, dry_run, yes
        )

    return run


def _sessions(
    agent: Annotated[
        str,
        option("--agent", "NAME", "Only sessions of this agent: claude-code, codex or gemini-cli."),
    ] = "",
    since: Annotated[
        str,
        option(
            "--since", "DATE", "Only sessions that have been active since this day: `2026-01-24`."
        ),
    ] = "",
    project: Annotated[
        Path | None, option("--project", "FOLDER", "Only sessions in this folder.")
    ] = None,
    into: Into = "archive/sessions",
    dry_run: DryRun = False,
    yes: YesOption = False,
    vault: VaultOption = None,
) -> Answer:
    from simplemem.importers.sessions import AGENTS, read
    from simplemem.note.dates import parse_moment

    if agent and agent not in AGENTS:
        raise Invalid(f"no agent called {agent!r}", hint=f"The agents are {', '.join(AGENTS)}.")
    if since and parse_moment(since) is None:
        raise Invalid(f"{since!r} is not a date", hint="Use a date such as 2026-01-24.")
    found = read(
        [agent] if agent else AGENTS,
        parse_moment(since),
        project and project.expanduser().absolute(),
    )
    return _bring(
        "sessions", agent or "sessions of coding agents", found, into or "", vault, dry_run, yes
    )


def _graph(
    file: Path, dry_run: DryRun = False, yes: YesOption = False, vault: VaultOption = None
) -> Answer:
    from simplemem.features.graph.jsonl import import_file

    def brought() -> str:
        said = f"{format_count(done.entities, 'entity', 'entities')}, {format_count(done.relations, 'relation')}"
        if done.observations:
            said += f", {format_count(done.observations, 'observation')} added to existing entities"
        if done.entities_there:
            said += f"; already there: {format_count(done.entities_there, 'entity', 'entities')}"
            said += f", {format_count(done.relations_there, 'relation')}"
        return said

    with opened(vault) as store:
        done = cast("Imported", import_file(store, file := file.expanduser(), dry_run=True))
        if not dry_run and (done.entities or done.relations or done.observations):
            _ask(Answer({}, [[f"New: {brought()}"]]), yes=yes)
            done = cast(
                "Imported", import_file(store, file, who=WHO)
            )  # None is of one that is wanted once
        lines: Lines = [[("Imported" if done.since else "New", "green"), f": {brought()}"]]
        lines += [undo_with(done.since)] if done.since else []
        warnings = [f"line {broken.line} was skipped: {broken.why}" for broken in done.broken]
        return Answer({**done.as_dict(), "dry_run": dry_run}, lines, warnings=warnings)


_OWN: dict[str, Callable[..., Answer]] = {"sessions": _sessions, "graph": _graph}
for _source in (*SOURCES.values(), *plugin_sources().values()):
    _declare(_source, _OWN.get(_source.name) or _reading(_source))
