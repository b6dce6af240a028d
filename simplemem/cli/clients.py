"""How each client is told of this server: which file, under which key, and the exact lines, with absolute paths: a
client that was started from a menu seldom has the PATH of a terminal. docs/connect.md shows the same lines."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import NamedTuple

from simplemem.errors import Invalid

_NAME = "simplemem"

Lines = Callable[[Sequence[str]], str]


class Client(NamedTuple):
    """A client as people call it: its lines for a command, where they belong on macOS, Linux and Windows, what then."""

    name: str
    title: str
    lines: Lines
    places: tuple[str, str, str]
    then: str

    @property
    def here(self) -> str:
        """Where the lines belong on this system."""
        macos, linux, windows = self.places
        return {"darwin": macos, "win32": windows}.get(sys.platform, linux)


def _json(key: str, **more: str) -> Lines:
    """An entry of a JSON file below `key`, to be put beside those that are there."""

    def lines(command: Sequence[str]) -> str:
        program, *args = map(_quoted, command)
        fields = [f'"{name}": {_quoted(value)}' for name, value in more.items()]
        fields += [f'"command": {program}', f'"args": [{", ".join(args)}]']
        entry = ",\n      ".join(fields)
        return f'{{\n  "{key}": {{\n    "{_NAME}": {{\n      {entry}\n    }}\n  }}\n}}'

    return lines


def _toml(command: Sequence[str]) -> str:
    program, *args = map(_quoted, command)
    return f"[mcp_servers.{_NAME}]\ncommand = {program}\nargs = [{', '.join(args)}]"


def _quoted(text: str) -> str:
    """A JSON string, which is also a TOML basic string once DEL is escaped as well."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _command_line(command: Sequence[str]) -> str:
    """What to type into a terminal. Everything after `--` is left to the server."""
    typed = ["claude", "mcp", "add", "--scope", "user", _NAME, "--", *command]
    return subprocess.list2cmdline(typed) if sys.platform == "win32" else shlex.join(typed)


def _at_home(path: str) -> tuple[str, str, str]:
    """A file that lies at the same place below the home folder of every system."""
    return f"~/{path}", f"~/{path}", "%USERPROFILE%\\" + path.replace("/", "\\")


_CLAUDE = (
    "~/Library/Application Support/Claude/claude_desktop_config.json",
    "~/.config/Claude/claude_desktop_config.json",
    # The installer of 2026 is an MSIX package, and such an app reads its own copy of %APPDATA%.
    "%LOCALAPPDATA%\\Packages\\Claude_*\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json"
    " (where there is no such folder: %APPDATA%\\Claude\\claude_desktop_config.json)",
)
_VSCODE = (
    "~/Library/Application Support/Code/User/mcp.json",
    "~/.config/Code/User/mcp.json",
    "%APPDATA%\\Code\\User\\mcp.json",
)
_ZED = ("~/.config/zed/settings.json", "~/.config/zed/settings.json", "%APPDATA%\\Zed\\settings.json")
_DEVIN = ("~/.config/devin/mcp_config.json", "~/.config/devin/mcp_config.json", "%APPDATA%\\devin\\mcp_config.json")
CLIENTS = {row[0]: Client(*row) for row in (
    ("claude-desktop", "Claude Desktop", _json("mcpServers"), _CLAUDE,
     "quit Claude Desktop, not only its window, and start it again"),
    ("claude-code", "Claude Code", _command_line, ("a terminal", "a terminal", "a terminal"),
     "`claude mcp list` shows whether it answers; /mcp does so in a session"),
    ("cursor", "Cursor", _json("mcpServers"), _at_home(".cursor/mcp.json"),
     "Cursor reads the file when it changes; its settings show the server under MCP"),
    ("vscode", "VS Code", _json("servers", type="stdio"), _VSCODE,
     "`MCP: List Servers` in the command palette starts it and shows its output"),
    ("zed", "Zed", _json("context_servers"), _ZED, "the settings of the agent panel show a green dot beside it"),
    ("codex", "Codex", _toml, _at_home(".codex/config.toml"), "/mcp in a new session lists it"),
    # Its schema allows no key that it does not know, `type` among them.
    ("windsurf", "Devin Desktop (once Windsurf)", _json("mcpServers"), _DEVIN,
     "open a new agent tab (Cascade and Windsurf before June 2026: ~/.codeium/windsurf/mcp_config.json)"),
)}  # fmt: skip


def client_called(name: str) -> Client:
    """The client of that name, however it is written: `Claude Desktop` is `claude-desktop`."""
    plain = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    if plain not in CLIENTS:
        near = get_close_matches(plain, CLIENTS, 1)
        hint = (f"Did you mean {near[0]}? " if near else "") + "There are " + ", ".join(CLIENTS) + "."
        raise Invalid(f"{name!r} is no client that is known here.", hint=hint)
    return CLIENTS[plain]


def server_command(vault: Path, more: Sequence[str] = ()) -> list[str]:
    """The command that starts this server, with absolute paths."""
    beside = Path(sys.executable).with_name("simplemem.exe" if os.name == "nt" else "simplemem")
    found = str(beside) if beside.is_file() else shutil.which("simplemem")
    program = [os.path.abspath(found)] if found else [sys.executable, "-m", "simplemem"]
    return [*program, "serve", "--vault", str(vault.absolute()), *more]
