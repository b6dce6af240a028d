"""The command group `index`: update the index, rebuild it, or move it to another database."""

from __future__ import annotations

import re
import shlex
import time
from collections.abc import Iterator, Mapping
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command, opened, progress_bar, warn, warn_doubted
from simplemem.cli.options import VaultOption, argument, default_group, flag
from simplemem.cli.output import Lines, Part
from simplemem.errors import Invalid
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from pydantic import SecretStr

    from simplemem.models import MovedIndex
    from simplemem.store import EnhancedStore, SyncReport

commands = typer.Typer()
_PASSWORD = re.compile(r"//[^/@]*:[^/@]*@|password=")  # in the address of a database
_SQLITE_NAMES = ("sqlite", "sidecar")
_COUNTS = ("added", "modified", "moved", "removed", "embedded")

_index = default_group(
    commands,
    "Vault",
    "index",
    "Update the index, rebuild it, or move it to another database.\n\n"
    "Other commands update the index by themselves.",
    "$ simplemem index\n"
    "$ simplemem index --rebuild\n"
    "$ simplemem index move postgresql://memory@db/memory",
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
    """Update the index and the vectors, with a progress bar; with `rebuild`, from scratch.

    Raises KeyboardInterrupt if the user stops it, after a message that it can be continued.
    """
    try:
        with progress_bar() as progress:
            return store.sync(progress=progress, embed=True, rebuild=rebuild)
    except KeyboardInterrupt:
        sentences = ["stopped.", store.state().reason, "`simplemem index` continues from there."]
        warn(" ".join(sentence for sentence in sentences if sentence))
        raise


def _sync_answer(
    store: EnhancedStore, report: SyncReport, seconds: float, *, rebuild: bool
) -> Answer:
    """Return the answer about an update of the index, which took `seconds`.

    It failed if a part of the update was not possible, such as the vectors.
    """
    state = store.state()
    facts = report.as_dict()
    warnings = [f"{skipped['path']}: {skipped['why']}" for skipped in facts["skipped"]]
    style = "green"
    if report.trouble:
        style = "yellow"
        is_in_reason = report.trouble in state.reason
        warnings.append(state.reason if is_in_reason else report.trouble)

    if rebuild:
        summary = f"Rebuilt: {format_count(state.notes, 'note')}"
    else:
        summary = _summary_of_update(facts, has_trouble=bool(report.trouble))
    line: list[Part] = [(summary, style), (f" in {seconds:.1f} s", "dim")]
    facts["seconds"] = round(seconds, 3)
    return Answer(facts, [line], warnings=warnings, failed=bool(report.trouble))


def _summary_of_update(facts: Mapping[str, Any], *, has_trouble: bool) -> str:
    """Return how many notes were added, modified and so on, or that there was nothing to do.

    `facts` are those of the report.
    """
    counts = [f"{facts[key]} {key}" for key in _COUNTS if facts[key]]
    if counts:
        return ", ".join(counts)
    return "Not done" if has_trouble else "The index is up to date"


def _watch(store: EnhancedStore) -> Iterator[Answer]:
    """Index each change until the user stops the program: it never returns.

    Yields an answer with the sorted names of the notes each time that notes have changed. Raises
    KeyboardInterrupt when the user stops it.
    """
    changes: SimpleQueue[frozenset[str]] = SimpleQueue()
    store.on_change(changes.put)
    store.start(embed=True)
    warn(f"watching {store.root}; Ctrl-C stops it")
    while True:
        try:
            # Without a timeout, Windows would not deliver a Ctrl-C.
            names = sorted(changes.get(timeout=1.0))
        except Empty:
            continue
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
    """Build the index in another database, and return how the user makes simplemem use it.

    `engine` is what the user typed as DATABASE; `sidecar` is the earlier name of `sqlite`. Raises
    Invalid if the address contains a password, or if it should come from the settings and they name
    none; KeyboardInterrupt, after a message, if the user stops it; and Unavailable if the other
    index cannot be opened.
    """
    if _PASSWORD.search(engine):
        message = "a password on a command line can be read by everybody on this machine"
        hint = (
            "Put the password into ~/.pgpass, or put the address into a file and pass the path of"
            " the file."
        )
        raise Invalid(message, hint=hint)

    source = _source_of_engine(store)
    if engine == "settings" and source == "default":
        hint = "Use `simplemem index move postgresql://USER@HOST/DATABASE`."
        raise Invalid("index.engine is not set", hint=hint)

    try:
        with progress_bar() as progress:
            moved = store.move_index(_engine_setting(store, engine), progress)
    except KeyboardInterrupt:
        warn("stopped. The index in use is unchanged; the same command continues from here.")
        raise
    return _moved_answer(moved, _how_to_use(moved, engine, source))


def _engine_setting(
    store: EnhancedStore, engine: str
) -> str | SecretStr | Mapping[str, str] | None:
    """Return what the user typed as DATABASE as a value of `index.engine`; None is SQLite."""
    if engine in _SQLITE_NAMES:
        return None
    if engine == "settings":
        return store.settings.index.engine
    return engine


def _source_of_engine(store: EnhancedStore) -> str:
    """Return where `index.engine` is set for a vault, or "default"."""
    from simplemem.settings.loading import settings_with_sources

    settings = settings_with_sources(vault=store.root)
    return next(setting.source for setting in settings if setting.name == "index.engine")


def _moved_answer(moved: MovedIndex, next_step: str) -> Answer:
    """Return the answer about an index that was built in another database.

    `next_step` is the sentence that says how to use it. The answer failed, with a warning, if some
    vectors are missing.
    """
    notes = format_count(moved.notes, "note")
    copied = format_count(moved.taken, "note")
    summary = f"Built in {moved.engine}: {notes}, vectors of {copied} copied"
    style = "yellow" if moved.trouble else "green"
    lines: Lines = [
        [(summary, style)],
        [(f"  {moved.place}", "dim")],
        [f"  {next_step}"],
    ]
    facts: dict[str, Any] = {**moved.as_dict(), "use": next_step}
    warnings = [moved.trouble] if moved.trouble else []
    return Answer(facts, lines, warnings=warnings, failed=bool(moved.trouble))


def _how_to_use(moved: MovedIndex, engine: str, source: str) -> str:
    """Return how the user makes simplemem use an index that was built.

    `engine` is what the user typed as DATABASE, `source` is where `index.engine` is set now.
    """
    if moved.in_use:
        return "Your settings already name this index."
    if engine in _SQLITE_NAMES:
        return f"To use it, remove index.engine from {source}"

    quoted = shlex.quote(engine)
    return (
        f"To use it, set SIMPLEMEM_INDEX_ENGINE={quoted}, or run"
        f" `simplemem config set index.engine {quoted}`"
    )
