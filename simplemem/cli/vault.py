"""Commands about the vault as a whole: init, index, stats, inspect, config."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, agree, command
from simplemem.cli.opening import make_folder, opened, progress_bar, warn, warn_of_doubt
from simplemem.cli.options import SendOption, VaultOption, argument, flag
from simplemem.cli.text import facts_table, in_words, tags_shown
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.cli.text import Part
    from simplemem.store import EnhancedStore, Estimate, SyncReport

commands = typer.Typer()
_PANEL = "Keep"


@command(commands, _PANEL)
def init(
    folder: Annotated[Path | None, argument("FOLDER", "The folder of notes. Without it: this one.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Make a folder a vault, or look at the one it is. No note is changed.

    What simplemem keeps of its own goes to `.simplemem/` in it, which git and Obsidian leave alone.

    $ simplemem init
    $ simplemem init ~/Documents/notes
    $ simplemem init . --json
    """
    if folder is not None and vault is not None:
        raise typer.BadParameter("either FOLDER or --vault, not both")
    root = (folder or vault or Path()).expanduser()
    is_new = make_folder(root)
    with opened(root) as store:
        (store.root / ".simplemem").mkdir(exist_ok=True)
        root, notes = store.root, store.state().notes
    done = "Vault ready" if is_new else "A vault already"
    begin: list[list[Part]] = [["Begin with: ", ("simplemem new 'First note' --edit", "bold")]] if not notes else []
    ready: list[Part] = [(done, "green"), f": {root}, {counted(notes, 'note')}"]
    return Answer({"vault": str(root), "new": is_new, "notes": notes}, [ready, *begin])


# -- index


@command(commands, _PANEL)
def index(
    rebuild: Annotated[bool, flag("--rebuild", "Throw the index away and make it anew.")] = False,
    watch: Annotated[bool, flag("--watch", "Stay, and index every change as it is made. Ctrl-C ends it.")] = False,
    dry_run: Annotated[
        bool, flag("--dry-run", "Say how much the embedder would be given, and give it nothing.")
    ] = False,
    yes: SendOption = False,
    vault: VaultOption = None,
) -> Answer | Iterator[Answer]:
    """Update the index. Other commands do so by themselves.

    Before much is sent to a remote embedder it tells how much that is, and asks. What was made stays when it is
    ended halfway, and the next run goes on from there.

    $ simplemem index
    $ simplemem index --dry-run
    $ simplemem index --rebuild --yes
    $ simplemem index --watch
    """
    if watch and not dry_run:
        return _watching(vault, rebuild=rebuild, yes=yes)
    with opened(vault, sync=False) as store:
        if not dry_run:
            return _updated(store, rebuild=rebuild, yes=yes)
        with progress_bar() as progress:
            store.sync(progress=progress, embed=False)
        estimate = store.estimate(rebuild=rebuild)
    lines: list[list[Part]] = [[(_amount(estimate) if estimate.texts else f"Nothing for {estimate.embedder}", "green")]]
    if estimate.kept:
        lines.append([(f"{counted(estimate.kept, 'text')} more had their vectors made before", "dim")])
    return Answer(asdict(estimate), lines)


def _watching(vault: Path | None, *, rebuild: bool, yes: bool) -> Iterator[Answer]:
    """Name each note as it is indexed, until the person has seen enough."""
    from queue import Empty, SimpleQueue

    with opened(vault, sync=False) as store:
        yield _updated(store, rebuild=rebuild, yes=yes)
        changed: SimpleQueue[frozenset[str]] = SimpleQueue()
        store.on_change(changed.put)
        store.start(embed=True)
        warn(f"watching {store.root}; Ctrl-C ends it")
        while True:
            try:
                # Waiting without end would keep Windows from hearing a Ctrl-C.
                names = sorted(changed.get(timeout=1.0))
            except Empty:
                continue
            yield Answer({"changed": names}, [[("indexed ", "dim"), (name, "cyan")] for name in names])


def _updated(store: EnhancedStore, *, rebuild: bool, yes: bool) -> Answer:
    began = time.monotonic()
    before: SyncReport | None = None
    if not yes and store.embeds_remotely:
        with progress_bar() as progress:
            before = store.sync(progress=progress, embed=False)
        ask_for_much(store.estimate(rebuild=rebuild), store.settings.embed.max_tokens_unasked)
    try:
        with progress_bar() as progress:
            report = store.sync(progress=progress, embed=True, rebuild=rebuild)
    except KeyboardInterrupt:
        warn(f"stopped. {store.state().reason} `simplemem index` goes on from there.".replace("  ", " "))
        raise
    report = report if before is None else report.after(before)
    warn_of_doubt(report)
    facts = report.as_dict() | {"seconds": round(time.monotonic() - began, 3)}
    now, failed = store.state(), bool(report.trouble)
    counts = [f"{facts[key]} {key}" for key in ("added", "modified", "moved", "removed", "embedded") if facts[key]]
    done = f"Made anew: {counted(now.notes, 'note')}" if rebuild else ", ".join(counts)
    done = done or ("Not done" if failed else "Nothing to do")
    warnings = [f"{skipped['path']}: {skipped['why']}" for skipped in facts["skipped"]]
    warnings += [now.reason if report.trouble in now.reason else report.trouble] if failed else []
    line: list[Part] = [(done, "yellow" if failed else "green"), (f"  in {facts['seconds']:.1f} s", "dim")]
    return Answer(facts, [line], warnings=warnings, failed=failed)


def ask_for_much(estimate: Estimate, unasked: int) -> None:
    """Have a person agree before much is sent away; where nobody can be asked, say how to agree."""
    if estimate.tokens > unasked:
        amount = _amount(estimate)
        hint = "Run it with --yes, or raise the setting embed.max_tokens_unasked."
        agree(f"Send {amount}?", refused=f"this would send {amount}", hint=hint)


def _amount(estimate: Estimate) -> str:
    where = "over the network" if estimate.remote else "on this machine"
    texts = f"{counted(estimate.texts, 'text')} of {counted(estimate.notes, 'note')}"
    return f"{texts}, about {estimate.tokens:,} tokens, for {estimate.embedder} {where}"


# -- stats, inspect and config


@command(commands, _PANEL)
def stats(vault: VaultOption = None) -> Answer:
    """Show what is in the vault and its index, and whatever lessens search.

    $ simplemem stats
    $ simplemem stats --json | jq .notes
    """
    with opened(vault) as store:
        facts = store.stats()
    rest = {key: value for key, value in facts.items() if key != "warnings"}
    return Answer(facts, table=facts_table(rest), warnings=list(map(str, facts.get("warnings", ()))))


@command(commands, _PANEL)
def inspect(vault: VaultOption = None) -> Answer:
    """Show what was read in each note: links, tags, aliases, and broken links.

    $ simplemem inspect
    $ simplemem inspect --json | jq '."README.md".links'
    """
    with opened(vault) as store:
        notes = store.inspect()
    rows: list[list[Part]] = [
        [
            (path, "cyan"),
            f"{len(facts['links'])} out",
            f"{len(facts['backlinks'])} in",
            (tags_shown(tag.lstrip("#") for tag in facts["tags"]), "green"),
            (f"unresolved: {', '.join(facts['unresolved'])}" if facts["unresolved"] else "", "yellow"),
        ]
        for path, facts in notes.items()
    ]
    return Answer(notes, table=rows)


@command(commands, _PANEL)
def config(
    example: Annotated[bool, flag("--example", "Print a settings file with everything in it.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Show the settings in force, and where each came from.

    A flag beats the environment, the environment beats the vault's `.simplemem/config.toml`, that beats your
    own `~/.config/simplemem/config.toml`, that beats the default.

    The vault is `--vault`, else `$SIMPLEMEM_VAULT`, else the setting, else the nearest folder upward with a
    `.simplemem/` in it, else `./.memories`, else `~/simplemem`.

    $ simplemem config
    $ simplemem config --example > ~/.config/simplemem/config.toml
    $ SIMPLEMEM_SEARCH_LIMIT=10 simplemem config --json
    """
    from simplemem.config import example_config, find_vault, settings_with_sources

    if example:
        return Answer({"example": example_config()}, text=example_config())
    root = find_vault(vault)
    settings = {
        key: (_shown(value), source) for key, value, source in settings_with_sources({"vault": vault}, vault=root)
    }
    source = settings["vault"][1]
    settings["vault"] = (str(root), _way_found(root) if source == "default" else source)
    rows: list[list[Part]] = [
        [key, (in_words(value), "" if source == "default" else "bold"), (source, "dim")]
        for key, (value, source) in settings.items()
    ]
    return Answer({key: {"value": value, "source": source} for key, (value, source) in settings.items()}, table=rows)


def _shown(value: Any) -> Any:
    """A setting as JSON has it: paths are texts, and a secret stays covered."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@\s]+@", "**********@", value)  # who asks and by which password, in an address
    return value if value is None or isinstance(value, (str, int, float, dict)) else str(value)


def _way_found(root: Path) -> str:
    """How a vault was found that nothing names."""
    here = Path.cwd()
    if (root / ".simplemem").is_dir() and root in (here, *here.parents):
        return "the nearest vault upward"
    return "./.memories" if root == here / ".memories" else "default"
