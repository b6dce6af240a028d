"""Runs a command in a running server of the vault, instead of opening the vault in this process.

The server runs the same command on its open store and sends back what the command printed, so the output is the same
byte for byte. In case of doubt, the command opens the vault itself: without a server, with an old one, for another
vault, with other settings, or if another user could have created the socket.

Only the standard library is imported, and as little of it as possible: most of the time of such a command is the start
of Python itself.
"""

from __future__ import annotations

import os
import socket
import sys
import time

from simplemem.server import local_protocol
from simplemem.server.local_protocol import (
    MAX_ANSWER_BYTES,
    MAX_REQUEST_BYTES,
    PROTOCOL,
    ProtocolError,
)
from simplemem.settings import location

TYPE_CHECKING = False  # as in `typing`, whose import would take a fifth of the time of a command
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

READING_COMMANDS = frozenset({"search", "list", "ls", "show", "cat", "backlinks", "context"})
"""The commands that a server runs for others. None of them changes a note."""

TERMINAL_OVERRIDES = (
    "FORCE_COLOR",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
    "JUPYTER_COLUMNS",
    "JUPYTER_LINES",
)
"""Variables that make Rich treat a stream as a terminal, or as none, whatever it is."""

_HELLO_SECONDS = 0.5  # a server that sends nothing for so long is stopped or overloaded
_ANSWER_SECONDS = 15.0
_PRINTING_VARIABLES = (
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "TERM",
    "COLORTERM",
)  # change how an answer is printed
_SETTINGS_VARIABLES = (
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "TZ",
)  # change the settings, or the clock
_KINDS = frozenset({"out", "out-bytes", "err", "err-bytes", "page"})


def run_on_server(arguments: Sequence[str]) -> int | None:
    """Run a command on the server of its vault and print the answer. Return its exit code.

    Return None, and print nothing, if the command has to run in this process.
    """
    if not arguments or arguments[0] not in READING_COMMANDS or "--help" in arguments:
        return None
    if any(name in os.environ for name in TERMINAL_OVERRIDES):
        return None

    terminal = _describe_terminal()
    if terminal is None:
        return None

    vault_option = find_vault_option(arguments)
    if vault_option == "":  # the command itself reports the error
        return None

    answer = ask_server(vault_option, {"command": list(arguments), "terminal": terminal})
    if answer is None:
        return None

    try:
        code = int(answer["code"])
        printed = [(str(kind), str(text)) for kind, text in answer["printed"]]
    except (KeyError, TypeError, ValueError):
        return None
    if any(kind not in _KINDS for kind, _ in printed):
        return None

    for kind, text in printed:
        _print(kind, text)
    return code


def ask_server(vault_option: str | None, request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer of the vault's server to a request. Return None if there is no server, or it declines."""
    if not local_protocol.is_supported():
        return None

    try:
        root = _find_root(vault_option, os.environ)
        if root is None:
            return None

        path = local_protocol.socket_path(root)
        if path is None or not local_protocol.is_private_socket(path):
            return None

        folder = os.stat(root)
        request = {
            **request,
            "vault": [folder.st_dev, folder.st_ino],
            "vault_option": vault_option,
            "directory": os.getcwd(),
            "environment": _select_environment(os.environ),
        }
        return _exchange(path, request)
    except (OSError, ProtocolError):
        return None


def _exchange(path: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """Send a request and return the answer, or None if the server is not the right one or declines."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        deadline = time.monotonic() + _HELLO_SECONDS
        connection.settimeout(_HELLO_SECONDS)
        connection.connect(path)
        if not local_protocol.is_same_user(connection):
            return None

        hello = local_protocol.receive(connection, MAX_REQUEST_BYTES, deadline)
        if (
            hello.get("protocol") != PROTOCOL
            or hello.get("version") != local_protocol.code_version()
        ):
            return None

        deadline = time.monotonic() + _ANSWER_SECONDS
        local_protocol.send(connection, request, MAX_REQUEST_BYTES, deadline)
        answer = local_protocol.receive(connection, MAX_ANSWER_BYTES, deadline)

    if "declined" in answer:
        return None
    return answer


def find_vault_option(arguments: Sequence[str]) -> str | None:
    """Return the value of `--vault`, or None.

    This is a guess, because the options of the command are not loaded. The server compares it with what they say.
    """
    value = None
    for position, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--vault" and position + 1 < len(arguments):
            value = arguments[position + 1]
        elif argument.startswith("--vault="):
            value = argument.partition("=")[2]
    return value


def _find_root(vault_option: str | None, env: Mapping[str, str]) -> str | None:
    """Return the folder of the vault as `config.find_vault` does. Return None where that raises an error.

    Raises OSError if the current folder was deleted.
    """
    here = os.getcwd()

    named = vault_option or env.get(f"{location.ENV_PREFIX}VAULT")
    if not named:
        try:
            named = _read_vault_setting(location.user_config_file(env))
        except (OSError, ValueError, RecursionError):
            return None
    if named:
        return location.named_vault(named, here)

    enclosing = location.enclosing_vault(here)
    home = os.path.expanduser("~")
    if enclosing is None and location.may_use_home_vault(here, home):
        return location.home_vault(home)
    return enclosing


def _read_vault_setting(config_file: str) -> str | None:
    """Return the vault that the user's own settings name, or None. Raises ValueError if the file is not valid."""
    if not os.path.exists(config_file):
        return None

    import tomllib

    with open(config_file, "rb") as file:
        vault = tomllib.load(file).get("vault")
    if vault is not None and not isinstance(vault, str):
        raise ValueError("vault is not a string")
    return vault


def _select_environment(env: Mapping[str, str]) -> dict[str, str]:
    """Return the variables from which the server determines the settings of this command."""
    return {
        name: value
        for name, value in env.items()
        if name.startswith(location.ENV_PREFIX) or name in _SETTINGS_VARIABLES
    }


def _describe_terminal() -> dict[str, Any] | None:
    """Return what a server must know of the streams of this process. None if only this process can print to them."""
    streams = {"out": sys.stdout, "err": sys.stderr, "in": sys.stdin}
    try:
        are_terminals = {name: stream.isatty() for name, stream in streams.items()}
    except (AttributeError, ValueError):  # a stream is missing or closed
        return None

    if are_terminals["out"] or are_terminals["err"]:
        is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown", "")
        encodings = {(stream.encoding or "").lower() for stream in (sys.stdout, sys.stderr)}
        if is_dumb or encodings != {"utf-8"}:
            return None

    environment = {name: os.environ[name] for name in _PRINTING_VARIABLES if name in os.environ}
    return {**are_terminals, "size": _measure_terminal(), "environment": environment}


def _measure_terminal() -> list[int] | None:
    """Return the columns and lines of the first standard stream that is a terminal, or None."""
    for descriptor in range(3):
        try:
            return list(os.get_terminal_size(descriptor))
        except OSError:
            continue
    return None


def _print(kind: str, text: str) -> None:
    """Print a piece of an answer to the stream to which the command printed it."""
    if kind == "page":
        from simplemem.cli.pager import show_in_pager

        show_in_pager(text)
        return

    name, _, is_bytes = kind.partition("-")
    stream = sys.stderr if name == "err" else sys.stdout
    if is_bytes:
        stream.flush()
        stream.buffer.write(text.encode("utf-8", "surrogateescape"))
        stream.buffer.flush()
    else:
        stream.write(text)
    if name == "err":
        stream.flush()
