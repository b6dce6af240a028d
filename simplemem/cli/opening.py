"""How a command opens the store: the vault found, its index updated, a progress bar when that takes over a second.
While a note is being written a Ctrl-C waits (`finishing`), anywhere else it ends the run."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Progress

    from simplemem.store import EnhancedStore

WHO = "command line"
"""How the history names whoever used these commands."""
_PATIENCE = 1.0
"""Seconds before a progress bar is worth showing."""


@contextmanager
def opened(vault: Path | None, *, embed: bool = False, sync: bool = True) -> Iterator[EnhancedStore]:
    """The store of a vault with its index updated; `embed` updates the vectors too."""
    from simplemem import open_store
    from simplemem.config import find_vault, load_settings

    root = find_vault(vault)
    with open_store(root, settings=load_settings(vault=root).for_a_person(), person=True) as store:
        if sync:
            with progress_bar() as progress:
                report = store.sync(progress=progress, embed=embed, begin=False)
            warn_of_doubt(report)
        yield store


def warn_of_doubt(report: Any) -> None:
    """Say so when many notes are gone at once: an unmounted disk looks the same as a tidy mind."""
    if report.doubted:
        warn(
            f"{report.doubted} notes seem to have vanished all at once and were kept in the index; "
            "`simplemem index --rebuild` believes it"
        )


def warn(message: str) -> None:
    """Say on stderr what a person should know beside the answer."""
    from simplemem.cli.output import Screen

    Screen(stderr=True).warn(message)


@contextmanager
def progress_bar() -> Iterator[Callable[[str, int, int], None]]:
    """A bar on stderr, drawn once the work has taken a second, gone however it ends. In a pipe it draws nothing."""
    began = time.monotonic()
    bar: Progress | None = None

    def tell(stage: str, done: int, total: int) -> None:
        nonlocal bar
        if bar is None:
            if time.monotonic() - began < _PATIENCE or not total:
                return
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            from simplemem.cli.output import Screen

            screen = Screen(stderr=True)
            columns = (TextColumn("{task.description:>8}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
            bar = Progress(*columns, console=screen.console, transient=True, disable=not screen.is_terminal)
            bar.start()
        task = next((each.id for each in bar.tasks if each.description == stage), None)
        bar.update(bar.add_task(stage) if task is None else task, completed=done, total=total)

    try:
        yield tell
    finally:
        if bar is not None:
            bar.stop()


@contextmanager
def finishing() -> Iterator[None]:
    """Hold a Ctrl-C back until a write is done. A second one does not wait; even then nothing is torn."""
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or before is not signal.default_int_handler:
        yield
        return
    held: list[int] = []

    def hold(number: int, frame: FrameType | None) -> None:
        if held:
            signal.default_int_handler(number, frame)
        held.append(number)

    signal.signal(signal.SIGINT, hold)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if held:
        raise KeyboardInterrupt
