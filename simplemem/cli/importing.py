"""The commands `import SOURCE`: an import is shown, confirmed by the user, and done as one step."""

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
    from simplemem.importers.export import Item, Skipped
    from simplemem.importers.plan import Plan

commands = typer.Typer()
_imports = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
commands.add_typer(
    _imports, name="import", help="Import notes from other programs.", rich_help_panel="Vault"
)
_MAX_SKIPPED = 12  # of the skipped records, and of the warnings, that are listed

Into = Annotated[str | None, option("--into", "FOLDER", "The folder in the vault to import into.")]
DryRun = Annotated[bool, flag("--dry-run", "Show what would be imported, and change nothing.")]


def _import_items(
    source: str,
    file: Path | str,
    items: Iterable[Item | Skipped],
    folder: str,
    vault: Path | None,
    dry_run: bool,
    yes: bool,
) -> Answer:
    """Show what an import would do, have the user confirm it, and do it as one step.

    `source` is the name of the program, and `file` the export for the output. `folder` is in the
    vault; "" for the vault itself. With `dry_run`, or if there is nothing to write, nothing is
    changed. At most 12 of the skipped records and of the warnings are listed.

    Raises Invalid without a terminal and without `yes`, or for an illegal folder, NotFound if there
    is nothing to import or no vault, Unavailable if the export does not exist, Unreadable if it is
    broken, Conflict if a note changes meanwhile, and ReadOnly.
    """
    from simplemem.importers.plan import apply_plan, make_plan

    with opened(vault) as store:
        plan = make_plan(store, source, str(file), folder, items)
        summary = Answer({**plan.as_dict(), "dry_run": dry_run}, _plan_lines(plan))
        if dry_run or not plan.drafts:
            return summary

        _confirm(summary, yes=yes)
        result = apply_plan(store, plan, who=WHO)
        version = result.written[0].version

        warnings = list(dict.fromkeys(result.warnings))
        hidden_count = len(warnings) - _MAX_SKIPPED
        if hidden_count > 0:
            warnings[_MAX_SKIPPED:] = [f"and {hidden_count:,} more of this kind"]

        files = format_count(len(plan.drafts), "file")
        lines: Lines = [[("Imported", "green"), f" {files}"], undo_with(version)]
        return Answer({**summary.facts, "version": version}, lines, warnings=warnings)


def _confirm(summary: Answer, *, yes: bool) -> None:
    """Show what an import would do, and have the user confirm it. From then on, Ctrl-C waits.

    A no ends the command. Raises Invalid without a terminal and without `yes`.
    """
    preview(summary)
    agree(
        "Import this?",
        refused="an import needs confirmation, but there is no terminal",
        hint="Add --yes, or preview with --dry-run.",
        yes=yes,
    )
    finish()


def _plan_lines(plan: Plan) -> Lines:
    """Return lines with what an import would do, and the first 12 records that it would skip."""
    destination = f"{plan.folder}/" if plan.folder else "the vault"
    lines: Lines = [[(plan.file, "cyan"), f"  into {destination}"]]

    counts = {
        "new": plan.new,
        "changed since the last import": plan.changed,
        "already in the vault": plan.unchanged,
    }
    for label, count in counts.items():
        if count or label == "new":
            lines.append([f"{count:>7,}  {label}"])

    if plan.skipped:
        lines.append([(f"{len(plan.skipped):>7,}  skipped:", "yellow")])
    for part in plan.skipped[:_MAX_SKIPPED]:
        lines.append(["         ", (part.origin, "cyan"), (f"  {part.reason}", "dim")])
    hidden_count = len(plan.skipped) - _MAX_SKIPPED
    if hidden_count > 0:
        lines.append([(f"         and {hidden_count:,} more (--json lists all)", "dim")])
    return lines


def _declare(source: Source, run: Callable[..., Answer]) -> None:
    """Declare the function `run` as the command `import NAME` of a source.

    Changes the function: it gets the help that the source describes as docstring, and the type of
    the argument `file`, whose help is in the source too.
    """
    run.__doc__ = f"{source.about}\n\n$ {source.example}"
    if source.file:
        run.__annotations__["file"] = Annotated[Path, argument("FILE", source.file)]
    command(_imports, name=source.name)(run)


def _make_command(source: Source) -> Callable[..., Answer]:
    """Return the function of a source's command, which imports what the source reads.

    Without `--into`, it imports into the folder that the source names.
    """

    def run(
        file: Path,
        into: Into = None,
        dry_run: DryRun = False,
        yes: YesOption = False,
        vault: VaultOption = None,
    ) -> Answer:
        """Import what the source reads. `_declare` sets the help of the command."""
        folder = source.folder if into is None else into
        path = file.expanduser()
        return _import_items(source.name, path, source.read(path), folder, vault, dry_run, yes)

    return run


def _import_sessions(
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
    """Import the sessions of coding agents. `sources.toml` has the help of the command.

    Raises Invalid for an unknown agent and for a date that cannot be read.
    """
    from simplemem.importers.sessions import AGENTS, read
    from simplemem.note.dates import parse_moment

    if agent and agent not in AGENTS:
        raise Invalid(f"no agent called {agent!r}", hint=f"The agents are {', '.join(AGENTS)}.")
    active_since = parse_moment(since)
    if since and active_since is None:
        raise Invalid(f"{since!r} is not a date", hint="Use a date such as 2026-01-24.")

    agents = [agent] if agent else list(AGENTS)
    project_folder = None
    if project is not None:
        project_folder = project.expanduser().absolute()
    items = read(agents, active_since, project_folder)
    title = agent or "sessions of coding agents"
    return _import_items("sessions", title, items, into or "", vault, dry_run, yes)


def _import_graph(
    file: Path, dry_run: DryRun = False, yes: YesOption = False, vault: VaultOption = None
) -> Answer:
    """Import the file of a graph memory server. `sources.toml` has the help of the command.

    Broken lines are skipped, with warnings. Raises Invalid without a terminal and without --yes if
    there is something to import, NotFound without a vault, Unavailable if the file cannot be read,
    and Conflict or ReadOnly if the graph cannot be written.
    """
    from simplemem.features.graph.jsonl import import_file

    path = file.expanduser()
    with opened(vault) as store:
        # It returns None only for a file that is imported once and was imported before.
        result = cast("Imported", import_file(store, path, dry_run=True))
        if not dry_run and (result.entities or result.relations or result.observations):
            _confirm(Answer({}, [[f"New: {_graph_summary(result)}"]]), yes=yes)
            result = cast("Imported", import_file(store, path, who=WHO))

        label = "Imported" if result.since else "New"
        lines: Lines = [[(label, "green"), f": {_graph_summary(result)}"]]
        if result.since:
            lines.append(undo_with(result.since))
        warnings = [f"line {broken.line} was skipped: {broken.why}" for broken in result.broken]
        return Answer({**result.as_dict(), "dry_run": dry_run}, lines, warnings=warnings)


def _graph_summary(result: Imported) -> str:
    """Return a phrase with what an import of a graph adds, and what the vault already has.

    An example is `2 entities, 1 relation; already there: 5 entities, 0 relations`.
    """
    entities = format_count(result.entities, "entity", "entities")
    summary = f"{entities}, {format_count(result.relations, 'relation')}"
    if result.observations:
        observations = format_count(result.observations, "observation")
        summary += f", {observations} added to existing entities"
    if result.entities_there:
        entities = format_count(result.entities_there, "entity", "entities")
        relations = format_count(result.relations_there, "relation")
        summary += f"; already there: {entities}, {relations}"
    return summary


_OWN_COMMANDS: dict[str, Callable[..., Answer]] = {
    "sessions": _import_sessions,
    "graph": _import_graph,
}
"""The commands of sources that no reader of files can read, by the name of the source."""

for _source in (*SOURCES.values(), *plugin_sources().values()):
    _declare(_source, _OWN_COMMANDS.get(_source.name) or _make_command(_source))
