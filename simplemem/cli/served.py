"""Runs a command of this machine in a server that has its vault open, and returns what the command printed.

`local.py` is the other end. A request is declined whenever the command would answer otherwise by itself: it names
another vault, other settings, or another clock, or it is not one of the commands that only read.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplemem import place
from simplemem.config import AccessSettings, Settings, load_settings
from simplemem.server.local import LocalServer

if TYPE_CHECKING:
    from simplemem.server.serve import Door
    from simplemem.store import EnhancedStore

_SECONDS = 14.0  # that an answer may take; then the command has given up
_MAX_WORDS = 1000  # of a command line
# Settings that change nothing of what a reading command answers. Those of access are compared on their own.
_NOT_ASKED = {
    "vault",
    "log_level",
    "read_only",
    "no_delete",
    "max_memory_length",
    "access",
    "http",
    "llm",
    "sync",
    "documents",
}
# In the environment of a server and of a command these have to be the same.
_SAME = ("HOME", "XDG_CACHE_HOME", "TZ", f"{place.ENV_PREFIX}NOW")


def answer_commands(door: Door) -> Callable[[], None]:
    """Let commands of this user ask the store behind a door. Returns what ends that.

    A server that hides part of the vault answers none: the command line is the person's own and sees all of it.
    """
    store = door.store()
    # A server that may not write leaves no file in a vault that has none of ours yet, and so no socket.
    leaves_a_file = not (store.root / ".simplemem").is_dir()
    if not _is_whole(store.settings) or (store.read_only and leaves_a_file):
        return lambda: None
    turn = store.bench.turn(".simplemem/server.lock")
    settled = partial(store.wait_until_settled, 0.0)
    server = LocalServer(str(store.root), turn, partial(_answer, door, store), settled)
    server.start()
    return server.close


def _is_whole(settings: Settings) -> bool:
    """Whether the server sees the whole vault, in a folder, with its index beside it."""
    is_here = settings.index.engine is None and not settings.branch.repository
    return is_here and settings.access == AccessSettings()


def _answer(door: Door, store: EnhancedStore, request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Answer a request in a thread of the door, or decline it with None."""
    if not _is_of_this_server(store, request):
        return None
    if "complete" in request:
        work = partial(_completions, store, str(request["complete"]), str(request.get("prefix", "")))
    else:
        words = request.get("command")
        if not isinstance(words, list) or not 0 < len(words) <= _MAX_WORDS:
            return None
        work = partial(_run, store, [str(word) for word in words], request)
    return door.read(work).result(timeout=_SECONDS)


def _is_of_this_server(store: EnhancedStore, request: Mapping[str, Any]) -> bool:
    """Whether a command means the vault of this server, and has the same settings and the same clock."""
    folder = os.stat(store.root)
    if request.get("vault") != [folder.st_dev, folder.st_ino]:
        return False
    env = request.get("environment")
    if not isinstance(env, dict) or not all(isinstance(text, str) for text in env.values()):
        return False
    if any(env.get(name) != os.environ.get(name) for name in _SAME):
        return False
    theirs = load_settings(vault=store.root, env=env)
    return theirs.model_dump(exclude=_NOT_ASKED) == store.settings.model_dump(exclude=_NOT_ASKED)


def _completions(store: EnhancedStore, kind: str, prefix: str) -> dict[str, Any] | None:
    from simplemem.cli.options import COMPLETIONS

    complete = COMPLETIONS.get(kind)
    return None if complete is None else {"names": list(complete(store, prefix))}


def _run(store: EnhancedStore, words: list[str], request: Mapping[str, Any]) -> dict[str, Any] | None:
    """Run a command as the program would, and collect what it prints."""
    import typer

    from simplemem.cli.app import app
    from simplemem.cli.command import served_by
    from simplemem.cli.local import READING
    from simplemem.cli.output import printing_to

    program: Any = typer.main.get_command(app)
    command = program.get_command(None, words[0])
    if words[0] not in READING or command is None or "--help" in words:
        return None
    usage_error: Any = typer.BadParameter.__base__
    printed: list[tuple[str, str]] = []
    terminal = _described(request.get("terminal"), printed)
    code = 0
    try:
        context = command.make_context(words[0], words[1:])
        if not _names_the_same_vault(context.params.get("vault"), request):
            return None
        folder = Path(str(request.get("directory", "")))
        with context, served_by(store, folder), printing_to(terminal):
            command.invoke(context)
    except typer.Exit as end:
        code = end.exit_code
    except usage_error:
        return None  # the command says itself what is wrong with its options
    return {"code": code, "printed": printed}


def _names_the_same_vault(parsed: Path | None, request: Mapping[str, Any]) -> bool:
    """Whether `--vault` is what the command took it for, before its options were read."""
    expected = request.get("vault_option")
    if parsed is None or expected is None:
        return parsed is None and expected is None
    return str(parsed) == str(Path(expected))


class _Printed(io.TextIOBase):
    """A stream whose text is collected, in the order in which it is printed."""

    encoding = "utf-8"

    def __init__(self, kind: str, *, is_terminal: bool, into: list[tuple[str, str]]) -> None:
        self._kind = kind
        self._is_terminal = is_terminal
        self._into = into
        self.buffer = _PrintedBytes(into)

    def isatty(self) -> bool:
        return self._is_terminal

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self._into.append((self._kind, text))
        return len(text)


class _PrintedBytes:
    """Beneath such a stream: a note's text, which goes out to the byte."""

    def __init__(self, into: list[tuple[str, str]]) -> None:
        self._into = into

    def write(self, data: bytes) -> int:
        self._into.append(("raw", data.decode("utf-8", "surrogatepass")))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""


def _described(described: Any, printed: list[tuple[str, str]]) -> Any:
    """The terminal of a command, as its request describes it, with streams that collect what is printed."""
    from simplemem.cli.output import Terminal

    about = described if isinstance(described, dict) else {}
    environment = about.get("environment")
    environment = environment if isinstance(environment, dict) else {}
    return Terminal(
        _Printed("out", is_terminal=bool(about.get("out")), into=printed),  # type: ignore[arg-type]
        _Printed("err", is_terminal=bool(about.get("err")), into=printed),  # type: ignore[arg-type]
        {str(name): str(text) for name, text in environment.items()},
        bool(about.get("in")),
        lambda text: printed.append(("page", text)),
        _size(about.get("size"), environment),
    )


def _size(measured: Any, environment: Mapping[str, Any]) -> tuple[int, int]:
    """Columns and lines of a terminal, by the rules that Rich goes by in the process itself."""
    columns, lines = measured if isinstance(measured, list) and len(measured) == 2 else (0, 0)
    return _number(environment.get("COLUMNS"), columns) or 80, _number(environment.get("LINES"), lines) or 25


def _number(given: Any, measured: Any) -> int:
    """What the environment gives, else what was measured."""
    if isinstance(given, str) and given.isascii() and given.isdigit():
        return int(given)
    return measured if isinstance(measured, int) else 0
