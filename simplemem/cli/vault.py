"""Commands about the vault as a whole: init, index, stats, inspect, config."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Annotated, Any

import typer

from simplemem.cli.command import Answer, command, opened, progress_bar, warn, warn_of_doubt
from simplemem.cli.options import VaultOption, argument, flag
from simplemem.cli.output import Part, facts_table, in_words, tags_shown
from simplemem.errors import Invalid
from simplemem.note.words import counted

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
    if root.exists() and not root.is_dir():
        raise Invalid(f"{root} is a file", hint="A vault is a folder.")
    root.mkdir(parents=True, exist_ok=True)
    is_new = not (root / ".simplemem").exists()
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
    vault: VaultOption = None,
) -> Iterator[Answer]:
    """Update the index. Other commands do so by themselves. What was made stays when it is ended halfway, and the next
    run goes on from there.

    $ simplemem index
    $ simplemem index --rebuild
    $ simplemem index --watch
    """
    began = time.monotonic()
    with opened(vault, sync=False) as store:
        try:
            with progress_bar() as progress:
                report = store.sync(progress=progress, embed=True, rebuild=rebuild)
        except KeyboardInterrupt:
            warn(f"stopped. {store.state().reason} `simplemem index` goes on from there.".replace("  ", " "))
            raise
        warn_of_doubt(report)
        now, seconds, facts = store.state(), time.monotonic() - began, report.as_dict()
        counts = [f"{facts[key]} {key}" for key in ("added", "modified", "moved", "removed", "embedded") if facts[key]]
        done = f"Made anew: {counted(now.notes, 'note')}" if rebuild else ", ".join(counts)
        done = done or ("Not done" if report.trouble else "Nothing to do")
        warnings = [f"{skipped['path']}: {skipped['why']}" for skipped in facts["skipped"]]
        if report.trouble:
            warnings.append(now.reason if report.trouble in now.reason else report.trouble)
        line: list[Part] = [(done, "yellow" if report.trouble else "green"), (f"  in {seconds:.1f} s", "dim")]
        facts["seconds"] = round(seconds, 3)
        yield Answer(facts, [line], warnings=warnings, failed=bool(report.trouble))
        if not watch:
            return
        changed: SimpleQueue[frozenset[str]] = SimpleQueue()
        store.on_change(changed.put)
        store.start(embed=True)
        warn(f"watching {store.root}; Ctrl-C ends it")
        while True:
            with suppress(Empty):  # waiting without end would keep Windows from hearing a Ctrl-C
                names = sorted(changed.get(timeout=1.0))
                yield Answer({"changed": names}, [[("indexed ", "dim"), (name, "cyan")] for name in names])


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
    if source == "default" and (root / ".simplemem").is_dir() and root in (Path.cwd(), *Path.cwd().parents):
        source = "the nearest vault upward"
    elif source == "default" and root == Path.cwd() / ".memories":
        source = "./.memories"
    settings["vault"] = (str(root), source)
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
