"""The clients that are known, where each keeps its servers on each system, and its entry for this one."""

from __future__ import annotations

import glob
import os
import re
import shutil
import sys
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from simplemem.errors import Invalid

_VARIABLE = re.compile(r"\$\{(\w+):-([^}]*)\}")
_SYSTEMS = {"darwin": "macos", "win32": "windows"}
Shape = Mapping[str, Any]


class Client(NamedTuple):
    """A client as `clients.toml` has it."""

    name: str
    title: str
    form: str
    key: str
    local: Shape
    then: str
    source: str
    tried: str
    file: Mapping[str, Sequence[str]] = {}  # by system
    remote: Shape | None = None
    token: Shape | None = None

    def places(self, system: str, env: Mapping[str, str]) -> list[str]:
        """The files that may be its own, the likeliest first."""
        home = env.get("USERPROFILE" if system == "windows" else "HOME") or os.path.expanduser("~")
        some = (
            _VARIABLE.sub(lambda found: env.get(found[1]) or found[2], each)
            for each in self.file.get(system, ())
        )
        every = [home + each[1:] if each.startswith("~") else each for each in some]
        return [each.replace("/", "\\") for each in every] if system == "windows" else every

    def find(self) -> Path | None:
        """Its file on this machine, there or not; None for a client without one."""
        places = self.places(_SYSTEMS.get(sys.platform, "linux"), os.environ)
        files = [
            Path(each, os.path.basename(place))
            for place in places
            for each in _folders(os.path.dirname(place))
        ]
        there = [
            *filter(os.path.lexists, files),
            *(each for each in files if each.parent.is_dir()),
            *files,
        ]
        return there[0] if there else None

    def entry(self, name: str, command: Sequence[str]) -> dict[str, Any]:
        """Its entry for a server that it starts."""
        known = {"$name": name, "$command": command[0], "$args": command[1:], "$line": command}
        return {key: _filled(each, known) for key, each in self.local.items()}

    @property
    def token_by_hand(self) -> str:
        """How its user adds a token to the entry for a server that runs."""
        return "Add the header `Authorization: Bearer TOKEN` to the entry, where the client's documentation says."

    def url_of(self, entry: object) -> str:
        """The URL in its entry for a server that runs; "" for any other entry."""
        keys = [key for key, value in (self.remote or {}).items() if value == "$url"]
        found = [entry[key] for key in keys if isinstance(entry, dict) and key in entry]
        return found[0] if found and isinstance(found[0], str) else ""

    def remote_entry(self, name: str, url: str, variable: str) -> dict[str, Any]:
        """Its entry for a server that runs, with the variable that holds a token ("" for none)."""
        if self.remote is None:
            hint = "Leave out --http to let the client start the server, or add a connector in the settings of the client."
            raise Invalid(
                f"the configuration file of {self.title} cannot contain the address of a server",
                hint=hint,
            )
        if variable and self.token is None:
            owner = self.title if self.file else "a client that is not listed"
            raise Invalid(
                f"--token-env is not known for {owner}: its file may not read environment variables",
                hint=f"Leave out --token-env. {self.token_by_hand}",
            )
        known = {"$name": name, "$url": url, "%": variable}
        shape = {**self.remote, **(self.token or {})} if variable else self.remote
        return {key: _filled(each, known) for key, each in shape.items()}


def _folders(pattern: str) -> list[str]:
    return sorted(glob.glob(pattern)) if "*" in pattern else [pattern]


def _filled(shape: Any, known: Mapping[str, Any]) -> Any:
    """A shape with what is known in its places."""
    if isinstance(shape, dict):
        return {key: _filled(each, known) for key, each in shape.items()}
    if isinstance(shape, list):
        return [_filled(each, known) for each in shape]
    return (
        known.get(shape, shape.replace("%", known.get("%", "%")))
        if isinstance(shape, str)
        else shape
    )


@cache
def clients() -> dict[str, Client]:
    """Every client that is known, by name."""
    with (Path(__file__).parent / "clients.toml").open("rb") as file:
        return {name: Client(name, **row) for name, row in tomllib.load(file).items()}


def client_called(name: str) -> Client:
    """The client of that name, however it is written: `Claude Desktop` is `claude-desktop`."""
    plain = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    if plain not in clients():
        longer = [known for known in clients() if known.startswith(f"{plain}-")]
        near = " or ".join(longer or get_close_matches(plain, clients(), 1))
        hint = (
            (f"Did you mean {near}? " if near else "")
            + "The clients are "
            + ", ".join(clients())
            + "."
        )
        raise Invalid(f"no client called {name!r}", hint=hint)
    return clients()[plain]


def server_command(vault: Path, more: Sequence[str] = ()) -> list[str]:
    """The command that starts this server, with absolute paths: what was started from a menu seldom has a PATH."""
    beside = Path(sys.executable).with_name("simplemem.exe" if os.name == "nt" else "simplemem")
    found = str(beside) if beside.is_file() else shutil.which("simplemem")
    program = [os.path.abspath(found)] if found else [sys.executable, "-m", "simplemem"]
    return [*program, "serve", "--vault", str(vault.absolute()), *more]
