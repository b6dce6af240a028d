"""The clients that `connect` knows: their configuration files and their entries for this server.

`clients.toml` describes each client. Nothing here opens a configuration file.
"""

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
_SYSTEMS = {"darwin": "macos", "win32": "windows"}  # all others count as linux
Template = Mapping[str, Any]
"""An entry with placeholders: `$name`, `$command`, `$args`, `$line` and `$url` for whole values,
and `%` in a text for the variable of a token.
"""


class Client(NamedTuple):
    """A client, as `clients.toml` describes it.

    Attributes:
        name: The name for the command line, such as `claude-desktop`.
        title: The name that the client's maker uses.
        form: The form of the configuration file: json, toml or yaml.
        key: The key of the map of servers in the file.
        local: The template of an entry for a server that the client starts.
        next_step: What the user does after a change of the file.
        documentation: The page that describes the file.
        tested_with: The version that the entry was tested with.
        files: The places of the file, by system; none if simplemem does not know any.
        remote: The template of an entry for a running server; None if the file cannot have one.
        token: What a remote entry also has to contain for a token in an environment variable; None
            if it is not known whether the client reads variables.
    """

    name: str
    title: str
    form: str
    key: str
    local: Template
    next_step: str
    documentation: str
    tested_with: str
    files: Mapping[str, Sequence[str]] = {}
    remote: Template | None = None
    token: Template | None = None

    def places(self, system: str, env: Mapping[str, str]) -> list[str]:
        """Return the paths that the configuration file may have, the likeliest first.

        `system` is linux, macos or windows, and `env` has its environment variables. A path may
        contain `*`. [] if simplemem does not know any for the system.
        """
        home_variable = "USERPROFILE" if system == "windows" else "HOME"
        home = env.get(home_variable) or os.path.expanduser("~")

        places = []
        for pattern in self.files.get(system, ()):
            place = _VARIABLE.sub(lambda match: env.get(match[1]) or match[2], pattern)
            if place.startswith("~"):
                place = home + place[1:]
            if system == "windows":
                place = place.replace("/", "\\")
            places.append(place)
        return places

    def find(self) -> Path | None:
        """Return the path of the configuration file on this machine, whether it exists or not.

        An existing file comes first, then a file in an existing folder, then the likeliest path. It
        is None for a client without known places on this system.
        """
        system = _SYSTEMS.get(sys.platform, "linux")
        files = []
        for place in self.places(system, os.environ):
            name = os.path.basename(place)
            files += [Path(folder, name) for folder in _folders(os.path.dirname(place))]
        if not files:
            return None

        for file in files:
            if os.path.lexists(file):
                return file
        for file in files:
            if file.parent.is_dir():
                return file
        return files[0]

    def entry(self, name: str, command: Sequence[str]) -> dict[str, Any]:
        """Return the entry for a server of that name, which the client starts with a command.

        `command` is the program and its arguments.
        """
        values = {
            "$name": name,
            "$command": command[0],
            "$args": command[1:],
            "$line": command,
        }
        return {key: _fill(template, values) for key, template in self.local.items()}

    @property
    def token_by_hand(self) -> str:
        """How the user adds a token to the entry for a running server."""
        return (
            "Add the header `Authorization: Bearer TOKEN` to the entry, where the client's"
            " documentation says."
        )

    def url_of(self, entry: object) -> str:
        """Return the URL in an entry for a running server.

        "" for any other entry or value, and for a client that cannot have such an entry.
        """
        if not isinstance(entry, dict) or self.remote is None:
            return ""
        for key, template in self.remote.items():
            if template == "$url" and key in entry:
                url = entry[key]
                return url if isinstance(url, str) else ""
        return ""

    def remote_entry(self, name: str, url: str, variable: str) -> dict[str, Any]:
        """Return the entry for a running server at a URL.

        `variable` is the environment variable that contains the token, "" for none. Raises Invalid
        if the file of the client cannot contain such an entry or a variable.
        """
        if self.remote is None:
            raise Invalid(
                f"the configuration file of {self.title} cannot contain the address of a server",
                hint="Leave out --http to let the client start the server, or add a connector in"
                " the settings of the client.",
            )
        template = dict(self.remote)
        if variable:
            if self.token is None:
                raise self._unknown_token()
            template |= self.token

        values = {"$name": name, "$url": url, "%": variable}
        return {key: _fill(value, values) for key, value in template.items()}

    def _unknown_token(self) -> Invalid:
        """Return the error for an environment variable that the client may not read."""
        owner = self.title if self.files else "a client that is not listed"
        return Invalid(
            f"--token-env is not known for {owner}: its file may not read environment variables",
            hint=f"Leave out --token-env. {self.token_by_hand}",
        )


def _folders(pattern: str) -> list[str]:
    """Return the folders that match a pattern, sorted; the path itself if it contains no `*`."""
    if "*" not in pattern:
        return [pattern]
    return sorted(glob.glob(pattern))


def _fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Return a template with values in place of its placeholders, also in lists and maps in it.

    `values` are by placeholder. A placeholder without a value stays.
    """
    if isinstance(template, dict):
        return {key: _fill(part, values) for key, part in template.items()}
    if isinstance(template, list):
        return [_fill(part, values) for part in template]
    if not isinstance(template, str):
        return template
    if template in values:
        return values[template]
    # A text may contain the variable of a token.
    return template.replace("%", values.get("%", "%"))


@cache
def clients() -> dict[str, Client]:
    """Return all clients of `clients.toml`, by name, in the order of the file. It is read once."""
    with (Path(__file__).parent / "clients.toml").open("rb") as file:
        table = tomllib.load(file)
    return {name: Client(name, **row) for name, row in table.items()}


def client_called(name: str) -> Client:
    """Return the client of that name, in whatever form: `Claude Desktop` is `claude-desktop`.

    Raises Invalid, with similar names, if there is none.
    """
    words = name.lower().replace("_", " ").replace("-", " ").split()
    plain_name = "-".join(words)
    if plain_name in clients():
        return clients()[plain_name]

    hint = f"The clients are {', '.join(clients())}."
    similar = " or ".join(_similar_names(plain_name))
    if similar:
        hint = f"Did you mean {similar}? {hint}"
    raise Invalid(f"no client called {name!r}", hint=hint)


def _similar_names(name: str) -> list[str]:
    """Return the names of clients that begin with `name` and a hyphen, else the closest name.

    [] if no name is close.
    """
    longer_names = [longer for longer in clients() if longer.startswith(f"{name}-")]
    return longer_names or get_close_matches(name, clients(), 1)


def server_command(vault: Path, options: Sequence[str] = ()) -> list[str]:
    """Return the command that starts this server on a vault, with absolute paths.

    A client that was started from a menu seldom has a PATH. The command is the program beside this
    Python, else the one on the PATH, else this Python with `-m`. `options` are further options of
    `serve`.
    """
    program_name = "simplemem.exe" if os.name == "nt" else "simplemem"
    installed = Path(sys.executable).with_name(program_name)
    program: str | None = str(installed)
    if not installed.is_file():
        program = shutil.which("simplemem")

    start = [sys.executable, "-m", "simplemem"]
    if program:
        start = [os.path.abspath(program)]
    return [*start, "serve", "--vault", str(vault.absolute()), *options]
