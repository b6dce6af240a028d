"""Commands about the vault as a whole: init, index, stats, inspect."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.opening import warn_of_doubt
from simplemem.cli.options import JsonOption, VaultOption, command
from simplemem.errors import Invalid

if TYPE_CHECKING:
    from simplemem.index.reconcile import SyncReport
    from simplemem.index.vectors import Estimate
    from simplemem.memory import IndexState
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "Keep"


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem init",
        "simplemem init ~/Documents/notes",
        "simplemem init . --json",
    ],
)
def init(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="FOLDER", help="The folder of notes. Without it: this one."),
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a folder a vault, or look at the one it is. No note is changed.

    What simplemem keeps of its own goes to `.simplemem/` in it, which git and Obsidian leave alone.
    """
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    if folder is not None and vault is not None:
        raise typer.BadParameter("either FOLDER or --vault, not both")
    root = (folder or vault or Path()).expanduser()
    if root.exists() and not root.is_dir():
        raise Invalid(f"{root} is a file.", hint="A vault is a folder.")
    root.mkdir(parents=True, exist_ok=True)
    known = (root / ".simplemem").exists()
    with opened(root) as store:
        (store.root / ".simplemem").mkdir(exist_ok=True)
        state = store.state()
        if as_json:
            output.print_json({"vault": str(store.root), "new": not known, "notes": state.notes})
            return
        count = f"{state.notes} note{'' if state.notes == 1 else 's'}"
        output.say(("A vault already" if known else "A vault now", "green"), f": {store.root}, {count}")
        if not state.notes:
            output.say("Begin with: ", ("simplemem new 'First note' --edit", "bold"))


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem index",
        "simplemem index --dry-run",
        "simplemem index --rebuild --yes",
        "simplemem index --watch",
    ],
)
def index(
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Throw the index away and make it anew.")] = False,
    watch: Annotated[
        bool, typer.Option("--watch", help="Stay, and index every change as it is made. Ctrl-C ends it.")
    ] = False,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say how many texts and tokens the embedder would be given, and make none."),
    ] = False,
    yes: Annotated[
        bool, typer.Option("--yes", "-y", help="Send as much as there is to a remote embedder without asking.")
    ] = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Bring the index in step with the notes. Other commands do so by themselves.

    Before much is sent to a remote embedder it tells how much that is, and asks. What was made stays when it is
    ended halfway, and the next run goes on from there.
    """
    from simplemem.cli import output
    from simplemem.cli.opening import opened, progress_bar

    with opened(vault, sync=False) as store:
        began = time.monotonic()
        before: SyncReport | None = None
        if dry_run or (not yes and store.embeds_remotely):
            with progress_bar() as progress:
                before = store.sync(progress=progress, embed=False)
            wanted = store.estimate(rebuild=rebuild)
            if dry_run:
                _print_estimate(wanted, as_json)
                return
            ask_for_much(wanted, store.settings.embed.max_tokens_unasked)
        try:
            with progress_bar() as progress:
                report = store.sync(progress=progress, embed=True, rebuild=rebuild)
        except KeyboardInterrupt:
            output.warn(f"stopped. {store.state().reason} `simplemem index` goes on from there.".replace("  ", " "))
            raise
        report = report if before is None else report.after(before)
        seconds = time.monotonic() - began
        if as_json:
            output.print_json(report.as_dict() | {"seconds": round(seconds, 3)}, compact=watch)
        else:
            _print_report(report, store.state(), rebuild, seconds)
        if watch:
            _watch(store, as_json)
    if report.trouble:
        raise typer.Exit(1)


def _print_estimate(wanted: Estimate, as_json: bool) -> None:
    from dataclasses import asdict

    from simplemem.cli import output

    if as_json:
        output.print_json(asdict(wanted))
        return
    output.say((_amount(wanted) if wanted.texts else f"Nothing for {wanted.embedder}", "green"))
    if wanted.kept:
        output.say((f"{_count(wanted.kept, 'text')} more had their vectors made before", "dim"))


def _amount(wanted: Estimate) -> str:
    where = "over the network" if wanted.remote else "on this machine"
    texts, notes = _count(wanted.texts, "text"), _count(wanted.notes, "note")
    return f"{texts} of {notes}, about {wanted.tokens:,} tokens, for {wanted.embedder} {where}"


def ask_for_much(wanted: Estimate, unasked: int) -> None:
    """Have a person agree before much is sent away; where nobody can be asked, say how to agree."""
    if wanted.tokens <= unasked:
        return
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise Invalid(
            f"this would send {_amount(wanted)}",
            hint="Run it with --yes, or raise the setting embed.max_tokens_unasked.",
        )
    typer.confirm(f"Send {_amount(wanted)}?", abort=True, err=True)


def _print_report(report: SyncReport, now: IndexState, rebuilt: bool, seconds: float) -> None:
    from simplemem.cli import output

    facts = report.as_dict()
    counted = [f"{facts[key]} {key}" for key in ("added", "modified", "moved", "removed", "embedded") if facts[key]]
    done = f"Made anew: {_count(now.notes, 'note')}" if rebuilt else ", ".join(counted)
    done = done or ("Not done" if report.trouble else "Nothing to do")
    output.say((done, "yellow" if report.trouble else "green"), (f"  in {seconds:.1f} s", "dim"))
    for skipped in facts["skipped"]:
        output.warn(f"{skipped['path']}: {skipped['why']}")
    if report.trouble:
        output.warn(now.reason if report.trouble in now.reason else report.trouble)
    warn_of_doubt(report)


def _watch(store: EnhancedStore, as_json: bool) -> None:
    """Name each note as it is indexed, until the person has seen enough."""
    from queue import Empty, SimpleQueue

    from simplemem.cli import output

    changed: SimpleQueue[frozenset[str]] = SimpleQueue()
    store.on_change(changed.put)
    store.start(embed=True)
    if not as_json:
        output.warn(f"watching {store.root}; Ctrl-C ends it")
    while True:
        try:
            # Waiting without end would keep Windows from hearing a Ctrl-C.
            names = sorted(changed.get(timeout=1.0))
        except Empty:
            continue
        if as_json:
            output.print_json({"changed": names}, compact=True)
            continue
        for name in names:
            output.say(("indexed ", "dim"), (name, "cyan"))


@command(commands, _PANEL, examples=["simplemem stats", "simplemem stats --json | jq .notes"])
def stats(vault: VaultOption = None, as_json: JsonOption = False) -> None:
    """Show what is in the vault and its index, and whatever lessens search."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    with opened(vault) as store:
        facts = store.stats()
    if as_json:
        output.print_json(facts)
    else:
        warnings = facts.pop("warnings", [])
        output.print_mapping(facts)
        for warning in warnings:
            output.warn(str(warning))


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem inspect",
        "simplemem inspect --json | jq '.\"README.md\".links'",
    ],
)
def inspect(vault: VaultOption = None, as_json: JsonOption = False) -> None:
    """Show what was read in each note: links, tags, aliases, and links that lead nowhere."""
    from simplemem.cli import output
    from simplemem.cli.opening import opened

    with opened(vault) as store:
        facts = store.inspect()
    if as_json:
        output.print_json(facts)
        return
    output.print_table(_facts_row(path, found) for path, found in facts.items())


def _facts_row(path: str, found: dict[str, Any]) -> list[Any]:
    from simplemem.cli import output

    unresolved = found["unresolved"]
    return [
        output.styled((path, "cyan")),
        output.styled(f"{len(found['links'])} out"),
        output.styled(f"{len(found['backlinks'])} in"),
        output.styled((output.tags_shown(tag.lstrip("#") for tag in found["tags"]), "green")),
        output.styled((f"unresolved: {', '.join(unresolved)}" if unresolved else "", "yellow")),
    ]
