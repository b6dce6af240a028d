"""Run a command in a running server of the vault, instead of opening the vault in this process.

The server runs the same command on its open store and sends back what the command printed, so the
output is the same byte for byte. In case of doubt, the command opens the vault itself: without a
server, with an old one, for another vault, with other settings, or if another user could have
created the socket. `served.py` is the other end.

Only the standard library is imported, and as little of it as possible: most of the time of such a
command is the start of Python itself.
"""

from __future__ import annotations

import os
import socket
import time

from simplemem.cli.terminal import (
    PIECE_KINDS,
    TERMINAL_OVERRIDES,
    describe_terminal,
    print_piece,
)
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

_HELLO_SECONDS = 0.5  # a server that sends nothing for so long is stopped or overloaded
_ANSWER_SECONDS = 15.0
# These variables change the settings or the clock.
_SETTINGS_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "TZ")


def run_on_server(arguments: Sequence[str]) -> int | None:
    """Run a command on the server of its vault and print the answer. Return its exit code.

    `arguments` are the words of the command line after `simplemem`. Return None, and print nothing,
    if the command has to run in this process: it is not one of READING_COMMANDS, no server answers
    it, or only this process can print to its terminal. Never raises because of a server.
    """
    if not _may_run_on_server(arguments):
        return None

    terminal = describe_terminal()
    if terminal is None:
        return None

    request = {"command": list(arguments), "terminal": terminal}
    answer = ask_server(find_vault_option(arguments), request)
    if answer is None:
        return None

    output = _parse_output(answer)
    if output is None:
        return None

    exit_code, pieces = output
    for kind, text in pieces:
        print_piece(kind, text)
    return exit_code


def _may_run_on_server(arguments: Sequence[str]) -> bool:
    """Return whether a server may be asked to run a command.

    False for a command that may change notes, for `--help`, for an empty `--vault`, and if a
    variable of TERMINAL_OVERRIDES is set.
    """
    if not arguments or arguments[0] not in READING_COMMANDS or "--help" in arguments:
        return False
    if find_vault_option(arguments) == "":  # the command itself reports the error
        return False
    return not any(name in os.environ for name in TERMINAL_OVERRIDES)


def _parse_output(answer: Mapping[str, Any]) -> tuple[int, list[tuple[str, str]]] | None:
    """Return the exit code of a command, and what it printed: pieces of a kind and a text.

    Return None if the answer has another form, as that of a newer server could have.
    """
    try:
        exit_code = int(answer["code"])
        pieces = [(str(kind), str(text)) for kind, text in answer["printed"]]
    except (KeyError, TypeError, ValueError):
        return None
    if any(kind not in PIECE_KINDS for kind, _ in pieces):
        return None
    return exit_code, pieces


def ask_server(vault_option: str | None, request: dict[str, Any]) -> dict[str, Any] | None:
    """Return the answer of the vault's server to a request.

    `vault_option` is the value of `--vault`, or None. `request` says what to do; the vault, the
    current folder and the environment are added here. Return None if there is no server, if it
    fails, or if it declines because this process would answer otherwise.
    """
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
        complete_request = {
            **request,
            "vault": [folder.st_dev, folder.st_ino],
            "vault_option": vault_option,
            "directory": os.getcwd(),
            "environment": _select_environment(os.environ),
        }
        return _exchange(path, complete_request)
    except (OSError, ProtocolError):
        return None


def _exchange(path: str, request: dict[str, Any]) -> dict[str, Any] | None:
    """Send a request to a socket and return the answer.

    Return None if the server is another user's, has another version, or declines. Raises OSError or
    ProtocolError if it does not answer in time, or not by the protocol.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        deadline = time.monotonic() + _HELLO_SECONDS
        connection.settimeout(_HELLO_SECONDS)
        connection.connect(path)
        if not local_protocol.is_same_user(connection):
            return None

        hello = local_protocol.receive(connection, MAX_REQUEST_BYTES, deadline)
        if hello.get("protocol") != PROTOCOL:
            return None
        if hello.get("version") != local_protocol.code_version():
            return None

        deadline = time.monotonic() + _ANSWER_SECONDS
        local_protocol.send(connection, request, MAX_REQUEST_BYTES, deadline)
        answer = local_protocol.receive(connection, MAX_ANSWER_BYTES, deadline)

    if "declined" in answer:
        return None
    return answer


def find_vault_option(arguments: Sequence[str]) -> str | None:
    """Return the value of `--vault` on a command line, or None.

    The last of several counts, and none after `--`. This is a guess, because the options of the
    command are not loaded. The server compares it with what they say.
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
    """Return the folder of the vault as `settings.find_vault` does, or None if that would fail.

    None also stands for settings that cannot be read. Raises OSError if the current folder was
    deleted.
    """
    folder = os.getcwd()
    name = vault_option or env.get(f"{location.ENV_PREFIX}VAULT")
    if not name:
        try:
            name = _read_vault_setting(location.user_config_file(env))
        except (OSError, ValueError, RecursionError):
            return None
    if name:
        return location.named_vault(name, folder)

    enclosing = location.enclosing_vault(folder)
    home = os.path.expanduser("~")
    if enclosing is None and location.may_use_home_vault(folder, home):
        return location.home_vault(home)
    return enclosing


def _read_vault_setting(config_file: str) -> str | None:
    """Return the vault that the user's own settings name, or None.

    Raises OSError if the file cannot be read, ValueError if it is not valid, and RecursionError if
    it is nested too deeply.
    """
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
