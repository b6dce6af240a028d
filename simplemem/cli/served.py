"""Runs a command of another process in a server, and returns what the command printed.

`local.py` sends the request. It is declined if the command by itself would answer otherwise: if it
names another vault, has other settings or another clock, or is not one of the commands that only
read.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from simplemem.cli.local import READING_COMMANDS
from simplemem.server.local import LocalServer
from simplemem.settings import location
from simplemem.settings.loading import load_settings
from simplemem.settings.model import AccessSettings, Settings

if TYPE_CHECKING:
    from simplemem.cli.output import Terminal
    from simplemem.server.executor import StoreExecutor
    from simplemem.store import EnhancedStore

_MAX_WORDS = 1000  # of a command line
_MAX_SIZE = 10_000  # columns or lines: Rich fills lines up to this width
_DEFAULT_SIZE = (80, 25)  # as Rich has it
# Settings that do not change the answer of a reading command. Those of access are among them,
# because no command obeys them, and a server that obeys some answers no command.
_IRRELEVANT_SETTINGS = {
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
# Variables that must be the same for the server and for the command.
_SAME_VARIABLES = ("HOME", "XDG_CACHE_HOME", "TZ", f"{location.ENV_PREFIX}NOW")
_FOLDER_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME")

Piece = tuple[str, str]
"""A piece of what a command printed: where it was printed (`out`, `err`, ...), and the text."""
Answer = dict[str, Any]
"""What is sent back: `code` and `printed` of a command, or the `names` of a completion."""


class _ServerLock:
    """The file lock of a vault, as `LocalServer` needs it: only its holder answers commands."""

    def __init__(self, store: EnhancedStore) -> None:
        """Take nothing yet: the lock is that of the store's vault."""
        self._lock = store.extension.lock_file(".simplemem/server.lock")

    def try_acquire(self) -> bool:
        """Take the lock, and return whether this server has it now."""
        return self._lock.acquire_or_keep()

    def release(self) -> None:
        """Let another server take the lock."""
        self._lock.release()


def answer_commands(executor: StoreExecutor) -> Callable[[], None]:
    """Let commands of this user ask the store of a server, and return what ends this.

    Opens the store, if it is closed. A server that hides part of the vault answers no command,
    because the command line sees all of it; the returned function then does nothing. Raises
    Invalid, NotFound or Unavailable if the store cannot be opened.
    """
    store = executor.store()
    # A read-only server must not create `.simplemem`, and so has no folder for its socket.
    may_create_socket = not store.read_only or (store.root / ".simplemem").is_dir()
    if not may_create_socket or not _sees_whole_vault(store.settings):
        return lambda: None

    is_ready = partial(store.wait_until_settled, 0.0)
    server = LocalServer(
        str(store.root), _ServerLock(store), partial(_begin_answer, executor, store), is_ready
    )
    server.start()
    return server.close


def _sees_whole_vault(settings: Settings) -> bool:
    """Return whether a server sees all notes of a vault that is a folder with a SQLite index."""
    is_folder = settings.index.engine is None and not settings.branch.repository
    return is_folder and settings.access == AccessSettings()


def _begin_answer(
    executor: StoreExecutor, store: EnhancedStore, request: Mapping[str, Any]
) -> Future[Answer | None] | None:
    """Begin to answer a request in a thread of the server. Returns None to decline it.

    `request` has the `vault`, `environment` and `directory` of the command, and its words
    (`command`) or the kind of a completion (`complete`) with the typed `prefix`. The future's
    result is None, too, if the request is declined.
    """
    if not _has_same_settings(store, request):
        return None

    if "complete" in request:
        return executor.read(
            partial(_complete, store, str(request["complete"]), str(request.get("prefix", "")))
        )

    words = request.get("command")
    if not isinstance(words, list) or not 0 < len(words) <= _MAX_WORDS:
        return None
    return executor.read(partial(_run_command, store, [str(word) for word in words], request))


def _has_same_settings(store: EnhancedStore, request: Mapping[str, Any]) -> bool:
    """Return whether a command has the vault, the settings and the clock of this server."""
    folder = os.stat(store.root)
    if request.get("vault") != [folder.st_dev, folder.st_ino]:
        return False

    env = request.get("environment")
    if not _is_environment(env):
        return False
    if any(env.get(name) != os.environ.get(name) for name in _SAME_VARIABLES):
        return False

    settings = load_settings(vault=store.root, env=env)
    if _has_relative_path(settings, env) and request.get("directory") != os.getcwd():
        return False

    own_values = store.settings.model_dump(exclude=_IRRELEVANT_SETTINGS)
    return settings.model_dump(exclude=_IRRELEVANT_SETTINGS) == own_values


def _is_environment(described: Any) -> TypeGuard[dict[str, str]]:
    """Return whether a value of a request is a mapping of texts."""
    return isinstance(described, dict) and all(isinstance(text, str) for text in described.values())


def _has_relative_path(settings: Settings, env: Mapping[str, str]) -> bool:
    """Return whether a path in the settings means another file in another current folder."""
    paths = [env[name] for name in _FOLDER_VARIABLES if env.get(name)]
    paths += [str(folder) for folder in settings.git.folders]
    if settings.db is not None:
        paths.append(str(settings.db))

    return not all(os.path.isabs(os.path.expanduser(path)) for path in paths)


def _complete(store: EnhancedStore, kind: str, prefix: str) -> Answer | None:
    """Return the names or tags that begin with a prefix, under the key `names`.

    `kind` is a key of COMPLETIONS. Returns None for an unknown kind.
    """
    from simplemem.cli.options import COMPLETIONS

    complete = COMPLETIONS.get(kind)
    if complete is None:
        return None
    return {"names": list(complete(store, prefix))}


def _run_command(
    store: EnhancedStore, words: list[str], request: Mapping[str, Any]
) -> Answer | None:
    """Run a command as its own process would, and return `code` and `printed`.

    `words` are its name and what follows it. `code` is the exit code, and `printed` a list of
    pieces. Returns None to decline a command that does not only read, asks for help, or is used
    wrongly.
    """
    import typer

    from simplemem.cli.app import app
    from simplemem.cli.command import served_by
    from simplemem.cli.output import printing_to

    # Checked first: the module of another command is not even imported.
    if words[0] not in READING_COMMANDS or "--help" in words:
        return None

    printed: list[Piece] = []
    terminal = _parse_terminal(request.get("terminal"), printed)
    if terminal is None:
        return None

    program: Any = typer.main.get_command(app)
    command = program.get_command(None, words[0])
    code = 0
    is_parsed = False
    try:
        with served_by(store, Path(str(request.get("directory", "")))), printing_to(terminal):
            context = command.make_context(words[0], words[1:])
            is_parsed = True
            if not _is_same_vault(context.params.get("vault"), request.get("vault_option")):
                return None

            with context:
                command.invoke(context)
    except typer.Exit as end:
        if not is_parsed:  # an option that prints by itself, past the terminal of the command
            return None
        code = end.exit_code
    except (typer.Abort, _find_click_exception()):
        return None  # the command itself reports what is wrong
    return {"code": code, "printed": printed}


def _find_click_exception() -> type[Exception]:
    """Return the base of the errors that Click reports.

    Click is inside Typer, or beside an older Typer.
    """
    import typer

    for kind in typer.BadParameter.__mro__:
        if kind.__name__ == "ClickException" and issubclass(kind, Exception):
            return kind
    return typer.BadParameter


def _is_same_vault(parsed: Path | None, assumed: Any) -> bool:
    """Return whether `--vault` is what the command assumed before its options were parsed."""
    if parsed is None or assumed is None:
        return parsed is None and assumed is None
    return isinstance(assumed, str) and str(parsed) == str(Path(assumed))


class _CollectingStream(io.TextIOBase):
    """A stream that adds text to `printed`, in the order in which a command prints it."""

    encoding = "utf-8"

    def __init__(self, kind: str, *, is_terminal: bool, printed: list[Piece]) -> None:
        """Create a stream of a kind (`out` or `err`) that adds to `printed`."""
        self._kind = kind
        self._is_terminal = is_terminal
        self._printed = printed
        self.buffer = _CollectingBuffer(f"{kind}-bytes", printed)

    def isatty(self) -> bool:
        """Return whether the command prints on a terminal."""
        return self._is_terminal

    def writable(self) -> bool:
        """Return True."""
        return True

    def write(self, text: str) -> int:
        """Add a text, and return its length."""
        self._printed.append((self._kind, text))
        return len(text)


class _CollectingBuffer:
    """The buffer of a `_CollectingStream`: adds bytes, as text from which they can be restored."""

    def __init__(self, kind: str, printed: list[Piece]) -> None:
        """Create a buffer of a kind (`out-bytes` or `err-bytes`) that adds to `printed`."""
        self._kind = kind
        self._printed = printed

    def write(self, data: bytes) -> int:
        """Add bytes, and return their number."""
        self._printed.append((self._kind, data.decode("utf-8", "surrogateescape")))
        return len(data)

    def flush(self) -> None:
        """Do nothing: no text is buffered."""


def _parse_terminal(described: Any, printed: list[Piece]) -> Terminal | None:
    """Return the terminal that a request describes, with streams that collect what is printed.

    Returns None for a size that the server does not want to fill.
    """
    from simplemem.cli.output import Terminal

    fields = described if isinstance(described, dict) else {}
    environment: dict[str, str] = {}
    if isinstance(fields.get("environment"), dict):
        environment = {str(name): str(text) for name, text in fields["environment"].items()}

    size = _parse_size(fields.get("size"), environment)
    if size is None:
        return None

    out = _CollectingStream("out", is_terminal=bool(fields.get("out")), printed=printed)
    err = _CollectingStream("err", is_terminal=bool(fields.get("err")), printed=printed)
    return Terminal(
        out,  # type: ignore[arg-type]
        err,  # type: ignore[arg-type]
        environment,
        has_keyboard=bool(fields.get("in")),
        page=lambda text: printed.append(("page", text)),
        size=size,
    )


def _parse_size(measured: Any, environment: Mapping[str, str]) -> tuple[int, int] | None:
    """Return columns and lines of a terminal, by the rules of Rich in the process itself.

    `measured` is a pair of numbers, or anything else if the size is unknown: then 80 and 25.
    COLUMNS and LINES in `environment` count more. Returns None if a number is negative or above
    10,000.
    """
    columns, lines = 0, 0
    if _is_pair_of_numbers(measured):
        columns, lines = measured
    columns = _override_size(columns, environment.get("COLUMNS", ""))
    lines = _override_size(lines, environment.get("LINES", ""))

    is_accepted = 0 <= columns <= _MAX_SIZE and 0 <= lines <= _MAX_SIZE
    if not is_accepted:
        return None
    return columns or _DEFAULT_SIZE[0], lines or _DEFAULT_SIZE[1]


def _is_pair_of_numbers(value: Any) -> bool:
    """Return whether a value is a list or a tuple of two integers."""
    if not isinstance(value, list | tuple) or len(value) != 2:
        return False
    return all(type(number) is int for number in value)


def _override_size(size: int, variable: str) -> int:
    """Return the number in the text of an environment variable, or else the size itself.

    For a text that is too long for a size, returns a number that is too large for one.
    """
    if len(variable) > len(str(_MAX_SIZE)):
        return _MAX_SIZE + 1
    if variable.isascii() and variable.isdigit():
        return int(variable)
    return size
