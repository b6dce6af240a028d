"""How each client is told of this server: which file, under which key, and the exact lines. Pure: nothing
is written.

The lines have absolute paths, because a client that was started from a dock or a menu seldom has the PATH of
a terminal. docs/connect.md shows the same lines; a test compares them.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from simplemem.errors import Invalid

_NAME = "simplemem"

Lines = Callable[[Sequence[str]], str]


@dataclass(frozen=True, slots=True)
class Client:
    """A client: how people call it, where its lines belong on each system, and what the lines are for a
    command."""

    name: str
    title: str
    lines: Lines
    macos: str
    linux: str
    windows: str
    then: str
    """What a person does next, so that the client reads its settings anew."""

    @property
    def here(self) -> str:
        """Where the lines belong on this system."""
        return {"darwin": self.macos, "win32": self.windows}.get(sys.platform, self.linux)


def _json(key: str, **more: str) -> Lines:
    """An entry of a JSON file below `key`, to be put beside those that are there."""

    def lines(command: Sequence[str]) -> str:
        program, *args = map(_quoted, command)
        fields = [f'"{name}": {_quoted(value)}' for name, value in more.items()]
        fields += [f'"command": {program}', f'"args": [{", ".join(args)}]']
        entry = ",\n".join(f"      {field}" for field in fields)
        return f'{{\n  "{key}": {{\n    "{_NAME}": {{\n{entry}\n    }}\n  }}\n}}'

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


def _at_home(path: str) -> dict[str, str]:
    """A file that lies at the same place below the home folder of every system."""
    return {"macos": f"~/{path}", "linux": f"~/{path}", "windows": "%USERPROFILE%\\" + path.replace("/", "\\")}


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-desktop",
            "Claude Desktop",
            _json("mcpServers"),
            macos="~/Library/Application Support/Claude/claude_desktop_config.json",
            linux="~/.config/Claude/claude_desktop_config.json",
            # The installer of 2026 is an MSIX package, and such an app reads its own copy of %APPDATA%.
            windows="%LOCALAPPDATA%\\Packages\\Claude_*\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json"
            " (where there is no such folder: %APPDATA%\\Claude\\claude_desktop_config.json)",
            then="quit Claude Desktop, not only its window, and start it again",
        ),
        Client(
            "claude-code",
            "Claude Code",
            _command_line,
            macos="a terminal",
            linux="a terminal",
            windows="a terminal",
            then="`claude mcp list` shows whether it answers; /mcp does so in a session",
        ),
        Client(
            "cursor",
            "Cursor",
            _json("mcpServers"),
            **_at_home(".cursor/mcp.json"),
            then="Cursor reads the file when it changes; its settings show the server under MCP",
        ),
        Client(
            "vscode",
            "VS Code",
            _json("servers", type="stdio"),
            macos="~/Library/Application Support/Code/User/mcp.json",
            linux="~/.config/Code/User/mcp.json",
            windows="%APPDATA%\\Code\\User\\mcp.json",
            then="`MCP: List Servers` in the command palette starts it and shows its output",
        ),
        Client(
            "zed",
            "Zed",
            _json("context_servers"),
            macos="~/.config/zed/settings.json",
            linux="~/.config/zed/settings.json",
            windows="%APPDATA%\\Zed\\settings.json",
            then="the settings of the agent panel show a green dot beside it",
        ),
        Client(
            "codex",
            "Codex",
            _toml,
            **_at_home(".codex/config.toml"),
            then="/mcp in a new session lists it",
        ),
        Client(
            "windsurf",
            "Devin Desktop (once Windsurf)",
            # Its schema allows no key that it does not know, `type` among them.
            _json("mcpServers"),
            macos="~/.config/devin/mcp_config.json",
            linux="~/.config/devin/mcp_config.json",
            windows="%APPDATA%\\devin\\mcp_config.json",
            then="open a new agent tab (Cascade and Windsurf before June 2026: ~/.codeium/windsurf/mcp_config.json)",
        ),
    )
}

_ALSO_CALLED = {
    "code": "vscode",
    "vs-code": "vscode",
    "visual-studio-code": "vscode",
    "codex-cli": "codex",
    "devin": "windsurf",
    "devin-desktop": "windsurf",
}


def client_called(name: str) -> Client:
    """The client of that name, however it is written: `Claude Desktop` is `claude-desktop`."""
    plain = "-".join(name.lower().replace("_", " ").replace("-", " ").split())
    found = CLIENTS.get(_ALSO_CALLED.get(plain, plain))
    if found is None:
        near = get_close_matches(plain, CLIENTS, 1)
        raise Invalid(
            f"{name!r} is no client that is known here.",
            hint=(f"Did you mean {near[0]}? " if near else "") + "There are " + ", ".join(CLIENTS) + ".",
        )
    return found


def server_command(vault: Path, more: Sequence[str] = ()) -> list[str]:
    """The command that starts this server, with absolute paths."""
    return [*_program(), "serve", "--vault", str(vault.absolute()), *more]


def _program() -> list[str]:
    beside = Path(sys.executable).with_name("simplemem.exe" if os.name == "nt" else "simplemem")
    found = str(beside) if beside.is_file() else shutil.which("simplemem")
    return [os.path.abspath(found)] if found else [sys.executable, "-m", "simplemem"]
