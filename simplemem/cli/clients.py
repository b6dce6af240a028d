"""How each client is told of this server: which file, under which key, and the exact lines. Pure: nothing
is written."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from simplemem.errors import Invalid

_NAME = "simplemem"


@dataclass(frozen=True, slots=True)
class Client:
    """A client: how people call it, where its settings lie, and what stands in them for a command."""

    name: str
    title: str
    where: str
    lines: Callable[[list[str]], str]


def _json(key: str, **more: str) -> Callable[[list[str]], str]:
    def lines(command: list[str]) -> str:
        entry = {**more, "command": command[0], "args": command[1:]}
        return json.dumps({key: {_NAME: entry}}, indent=2, ensure_ascii=False)

    return lines


def _codex(command: list[str]) -> str:
    # A TOML basic string is a JSON string.
    quoted = [json.dumps(part, ensure_ascii=False) for part in command]
    return f"[mcp_servers.{_NAME}]\ncommand = {quoted[0]}\nargs = [{', '.join(quoted[1:])}]"


def _claude_code(command: list[str]) -> str:
    import shlex

    return shlex.join(["claude", "mcp", "add", "--scope", "user", _NAME, "--", *command])


CLIENTS = {
    client.name: client
    for client in (
        Client(
            "claude-desktop",
            "Claude Desktop",
            "claude_desktop_config.json (Settings > Developer > Edit Config); start it anew",
            _json("mcpServers"),
        ),
        Client("claude-code", "Claude Code", "a terminal", _claude_code),
        Client("cursor", "Cursor", "~/.cursor/mcp.json, or .cursor/mcp.json in a project", _json("mcpServers")),
        Client(
            "vscode",
            "VS Code",
            ".vscode/mcp.json in a project, or MCP: Open User Configuration",
            _json("servers", type="stdio"),
        ),
        Client("zed", "Zed", "settings.json (zed: open settings)", _json("context_servers", source="custom")),
        Client("codex", "Codex", "~/.codex/config.toml", _codex),
        Client("windsurf", "Windsurf", "~/.codeium/windsurf/mcp_config.json", _json("mcpServers")),
    )
}


def client_called(name: str) -> Client:
    """The client of that name, however it is written: `Claude Desktop` is `claude-desktop`."""
    try:
        return CLIENTS[name.strip().lower().replace(" ", "-").replace("_", "-")]
    except KeyError:
        raise Invalid(
            f"{name!r} is no client that is known here.", hint="There are " + ", ".join(CLIENTS) + "."
        ) from None


def server_command(vault: Path, more: Sequence[str] = ()) -> list[str]:
    """The command that starts this server, with absolute paths: a client seldom has the PATH of a
    terminal."""
    return [*_program(), "serve", "--vault", str(vault.absolute()), *more]


def _program() -> list[str]:
    beside = Path(sys.executable).with_name("simplemem.exe" if os.name == "nt" else "simplemem")
    found = str(beside) if beside.is_file() else shutil.which("simplemem")
    return [os.path.abspath(found)] if found else [sys.executable, "-m", "simplemem"]
