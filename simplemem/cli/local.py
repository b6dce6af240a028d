"""A command that asks a running server of the vault, in place of opening the vault itself.

The server runs the same command on its open store and sends back what it printed, so the answer is the same to the
byte. Whatever is not certain here, the command does itself: no server, an old one, another vault, other settings, a
socket that somebody else could have made. Nothing but the standard library is imported, and no more of it than need be:
Python itself is most of what such a command costs.
"""

from __future__ import annotations

import os
import socket
import sys

from simplemem import __version__, place
from simplemem.server import local_wire
from simplemem.server.local_wire import MAX_ANSWER_BYTES, MAX_REQUEST_BYTES, PROTOCOL, WireError

TYPE_CHECKING = False  # as in `typing`, which is not imported here: it would be a fifth of what this costs
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

READING = frozenset({"search", "list", "ls", "show", "cat", "backlinks", "context"})
"""The commands that a server answers. None of them changes a note."""

FORCING = ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "JUPYTER_COLUMNS", "JUPYTER_LINES")
"""What says of a stream that it is a terminal, or none, whatever it looks like."""

_HELLO_SECONDS = 0.5  # a server that does not speak within them is stopped or overloaded
_ANSWER_SECONDS = 15.0
# What in the environment decides how an answer is printed, and what the settings and the clock are.
_PRINTING = ("COLUMNS", "LINES", "NO_COLOR", "TERM", "COLORTERM")
_PLACES = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TZ")


def answered(arguments: Sequence[str]) -> int | None:
    """The exit code of a command that a server has answered, once its answer is printed; None where none has."""
    if not arguments or arguments[0] not in READING or "--help" in arguments:
        return None
    if any(name in os.environ for name in FORCING):
        return None
    terminal = _terminal()
    if terminal is None:
        return None
    request = {"command": list(arguments), "terminal": terminal}
    answer = asked(_vault_option(arguments), request)
    if answer is None:
        return None
    try:
        code, printed = int(answer["code"]), [(str(kind), str(text)) for kind, text in answer["printed"]]
    except (KeyError, TypeError, ValueError):
        return None
    for kind, text in printed:
        _print(kind, text)
    return code


def asked(vault_option: str | None, request: dict[str, Any]) -> dict[str, Any] | None:
    """What the server of a vault answers to a request; None where there is none, or it declines."""
    if not local_wire.is_supported():
        return None
    root = _root(vault_option, os.environ)
    path = local_wire.socket_path(root) if root is not None else None
    if root is None or path is None or not local_wire.is_ours(path):
        return None
    try:
        folder = os.stat(root)
        request = {
            **request,
            "vault": [folder.st_dev, folder.st_ino],
            "vault_option": vault_option,
            "directory": os.getcwd(),
            "environment": _environment(os.environ),
        }
        return _exchange(path, request)
    except (OSError, WireError):
        return None


def _exchange(path: str, request: dict[str, Any]) -> dict[str, Any] | None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_HELLO_SECONDS)
        connection.connect(path)
        if not local_wire.is_same_user(connection):
            return None
        hello = local_wire.receive(connection, MAX_REQUEST_BYTES)
        if hello.get("protocol") != PROTOCOL or hello.get("version") != __version__:
            return None
        connection.settimeout(_ANSWER_SECONDS)
        local_wire.send(connection, request, MAX_REQUEST_BYTES)
        answer = local_wire.receive(connection, MAX_ANSWER_BYTES)
        return None if "declined" in answer else answer


def _vault_option(arguments: Sequence[str]) -> str | None:
    """What `--vault` names, as far as can be told without the command's options. The server compares it."""
    named = None
    for position, argument in enumerate(arguments):
        if argument == "--":
            break
        if argument == "--vault" and position + 1 < len(arguments):
            named = arguments[position + 1]
        elif argument.startswith("--vault="):
            named = argument.partition("=")[2]
    return named


def _root(vault_option: str | None, env: Mapping[str, str]) -> str | None:
    """Return the folder of the vault as `config.find_vault` does; None where that raises an error."""
    here = os.getcwd()
    named = vault_option or env.get(f"{place.ENV_PREFIX}VAULT")
    if not named:
        try:
            named = _vault_of_user(place.user_config_file(env))
        except (OSError, ValueError, RecursionError):
            return None
    if named:
        return place.named_vault(named, here)
    enclosing = place.enclosing_vault(here)
    home = os.path.expanduser("~")
    if enclosing is None and place.may_use_home_vault(here, home):
        return place.home_vault(home)
    return enclosing


def _vault_of_user(config_file: str) -> str | None:
    """The vault that the user's own settings name. Raises ValueError for a file that is not as it should be."""
    if not os.path.exists(config_file):
        return None
    import tomllib

    with open(config_file, "rb") as file:
        named = tomllib.load(file).get("vault")
    if named is not None and not isinstance(named, str):
        raise ValueError("vault is no text")
    return named


def _environment(env: Mapping[str, str]) -> dict[str, str]:
    """What the server needs to know the settings of this command."""
    return {name: text for name, text in env.items() if name.startswith(place.ENV_PREFIX) or name in _PLACES}


def _terminal() -> dict[str, Any] | None:
    """What is known of the streams of this process; None where only this process can print to them."""
    streams = {"out": sys.stdout, "err": sys.stderr, "in": sys.stdin}
    if any(stream is None for stream in streams.values()):
        return None
    are_terminals = {name: stream.isatty() for name, stream in streams.items()}
    if are_terminals["out"] or are_terminals["err"]:
        is_dumb = os.environ.get("TERM", "").lower() in ("dumb", "unknown", "")
        encodings = {(stream.encoding or "").lower() for stream in (sys.stdout, sys.stderr)}
        if is_dumb or encodings != {"utf-8"}:
            return None
    size = None
    for number in range(3):
        try:
            size = list(os.get_terminal_size(number))
            break
        except OSError:
            continue
    environment = {name: os.environ[name] for name in _PRINTING if name in os.environ}
    return {**are_terminals, "size": size, "environment": environment}


def _print(kind: str, text: str) -> None:
    """Print a piece of an answer as the server would have: `raw` goes out to the byte."""
    if kind == "err":
        sys.stderr.write(text)
        sys.stderr.flush()
    elif kind == "raw":
        sys.stdout.flush()
        sys.stdout.buffer.write(text.encode("utf-8", "surrogatepass"))
        sys.stdout.buffer.flush()
    elif kind == "page":
        from simplemem.cli.output import page_here

        page_here(text)
    else:
        sys.stdout.write(text)
