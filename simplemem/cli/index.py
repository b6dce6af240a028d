"""The command group `index`: update the index, rebuild it, or move it to another database."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command, opened, progress_bar, warn, warn_doubted
from simplemem.cli.options import VaultOption, argument, default_group, flag
from simplemem.cli.output import Lines, Part
from simplemem.errors import Invalid
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.models import MovedIndex
    from simplemem.store import EnhancedStore, SyncReport

commands = typer.Typer()
_PASSWORD = re.compile(r"//[^/@]*:[^/@]*@|password=")  # in the address of a database
_COUNTS = ("added", "modified", "moved", "removed", "embedded")


_index = default_group(
    commands,
    "Vault",
    "index",
    "Update the index, rebuild it, or move it to another database.\n\nOther commands update the index by themselves.",
    "$ simplemem index\n$ simplemem index --rebuild\n$ simplemem index move postgresql://memory@db/memory",
)


@command(_index)
def update(
    rebuild: Annotated[bool, flag("--rebuild", "Delete the index and build it again.")] = False,
    watch: Annotated[
        bool, flag("--watch", "Keep running, and index every change. Ctrl-C stops it.")
    ] = False,
    engine: Annotated[
        str, typer.Option("--engine", hidden=True)
    ] = "",  # the earlier form of `index move`
    vault: VaultOption = None,
) -> Iterator[Answer]:
    """Update the index, and make the vectors that are missing.

    If the command is stopped, the next run continues where it stopped.

    $ simplemem index
    $ simplemem index --rebuild
    $ simplemem index update --watch"""
    if engine and (rebuild or watch):
        raise typer.BadParameter("--engine cannot be combined with --rebuild and --watch")
    start = time.monotonic()
    with opened(vault, sync=False) as store:
        if engine:
            yield _move(store, engine)
            return

        report = _sync(store, rebuild=rebuild)
        warn_doubted(report)
        yield _sync_answer(store, report, time.monotonic() - start, rebuild=rebuild)
        if watch:
            yield from _watch(store)


def _sync(store: EnhancedStore, *, rebuild: bool) -> SyncReport:
    """Update the index and the vectors.

    If the user stops it, say that it can be continued.
    """
    try:
        with progress_bar() as progress:
            return store.sync(progress=progress, embed=True, rebuild=rebuild)
    except KeyboardInterrupt:
        words = ["stopped.", store.state().reason, "`simplemem index` continues from there."]
        warn(" ".join(filter(None, words)))
        raise


def _sync_answer(
    store: EnhancedStore, report: SyncReport, seconds: float, *, rebuild: bool
) -> Answer:
    """Return the answer about an update of the index."""
    state = store.state()
    facts = report.as_dict()
    if rebuild:
        summary = f"Rebuilt: {format_count(state.notes, 'note')}"
    else:
        summary = ", ".join(f"{facts[key]} {key}" for key in _COUNTS if facts[key])
    if not summary:
        summary = "Not done" if report.trouble else "The index is up to date"

    warnings = [f"{skipped['path']}: {skipped['why']}" for skipped in facts["skipped"]]
    if report.trouble:
        warnings.append(state.reason if report.trouble in state.reason else report.trouble)
    style = "yellow" if report.trouble else "green"
    line: list[Part] = [(summary, style), (f" in {seconds:.1f} s", "dim")]
    facts["seconds"] = round(seconds, 3)
    return Answer(facts, [line], warnings=warnings, failed=bool(report.trouble))


def _watch(store: EnhancedStore) -> Iterator[Answer]:
    """Index each change until the user stops the program.

    Yield the names of the changed notes.
    """
    changes: SimpleQueue[frozenset[str]] = SimpleQueue()
    store.on_change(changes.put)
    store.start(embed=True)
    warn(f"watching {store.root}; Ctrl-C stops it")
    while True:
        with suppress(Empty):
            # Without a timeout, Windows would not deliver a Ctrl-C.
            names = sorted(changes.get(timeout=1.0))
            lines: Lines = [[("indexed ", "dim"), (name, "cyan")] for name in names]
            yield Answer({"changed": names}, lines)


@command(_index, name="move")
def move_index(
    address: Annotated[
        str, argument("DATABASE", "An address, a file with an address, `settings` or `sqlite`.")
    ],
    vault: VaultOption = None,
) -> Answer:
    """Build the index in another database. The vectors are copied.

    DATABASE is the address of a PostgreSQL database (without a password), a file that contains an
    address, `settings` for the value of `index.engine`, or `sqlite` for the index in the vault. The
    index in use stays as it is until a setting names the other one.

    $ simplemem index move postgresql://memory@db.example.org/memory
    $ simplemem index move sqlite"""
    with opened(vault, sync=False) as store:
        return _move(store, address)


def _move(store: EnhancedStore, engine: str) -> Answer:
    """Build the index in another database. `sidecar` is the earlier name of `sqlite`.

    Raises Invalid if the address contains a password, or if it should come from the settings and
    they name none.
    """
    from simplemem.settings.loading import settings_with_sources

    if _PASSWORD.search(engine):
        hint = (
            "Put the password into ~/.pgpass, or put the address into a file and pass the path of"
            " the file."
        )
        message = "a password on a command line can be read by everybody on this machine"
        raise Invalid(message, hint=hint)

    sources = {key: source for key, _, source in settings_with_sources(vault=store.root)}
    source = sources["index.engine"]
    if engine == "settings" and source == "default":
        hint = "Use `simplemem index move postgresql://USER@HOST/DATABASE`."
        raise Invalid("index.engine is not set", hint=hint)

    is_sqlite = engine in ("sqlite", "sidecar")
    target = store.settings.index.engine if engine == "settings" else engine
    try:
        with progress_bar() as progress:
            result = store.move_index(None if is_sqlite else target, progress)
    except KeyboardInterrupt:
        warn("stopped. The index in use is unchanged; the same command continues from here.")
        raise

    next_step = _how_to_use(result, engine, source, is_sqlite=is_sqlite)
    notes = format_count(result.notes, "note")
    copied = format_count(result.taken, "note")
    summary = f"Built in {result.engine}: {notes}, vectors of {copied} copied"
    lines: Lines = [
        [(summary, "yellow" if result.trouble else "green")],
        [("  " + result.place, "dim")],
        [f"  {next_step}"],
    ]
    facts: dict[str, Any] = {**result.as_dict(), "use": next_step}
    warnings = [result.trouble] if result.trouble else []
    return Answer(facts, lines, warnings=warnings, failed=bool(result.trouble))


def _how_to_use(result: MovedIndex, engine: str, source: str, *, is_sqlite: bool) -> str:
    """Say how the user makes simplemem use the new index.

    `source` is where `index.engine` is set now.
    """
    if result.in_use:
        return "Your settings already name this index."
    if is_sqlite:
        return f"To use it, remove index.engine from {source}"

    quoted = shlex.quote(engine)
    return (
        f"To use it, set SIMPLEMEM_INDEX_ENGINE={quoted}, or run"
        f" `simplemem config set index.engine {quoted}`"
    )
