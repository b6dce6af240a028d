"""`simplemem serve --print-config`: lines that each client can read, and that start a server."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simplemem.cli.clients import CLIENTS, Client, client_called
from simplemem.cli.serve import serve_main

CONNECT = Path(__file__).resolve().parent.parent.parent / "docs" / "connect.md"
KEYS = {
    "claude-desktop": "mcpServers",
    "cursor": "mcpServers",
    "vscode": "servers",
    "zed": "context_servers",
    "windsurf": "mcpServers",
}
EVERY = pytest.mark.parametrize("client", CLIENTS.values(), ids=lambda client: client.name)


def command_in(client: Client, lines: str) -> list[str]:
    """The command that a client would run, read from the lines as that client reads them."""
    if client.name == "claude-code":
        words = shlex.split(lines)
        assert words[:7] == ["claude", "mcp", "add", "--scope", "user", "simplemem", "--"]
        return words[7:]
    if client.name == "codex":
        servers = tomllib.loads(lines)["mcp_servers"]
    else:
        servers = json.loads(lines)[KEYS[client.name]]
    entry: dict[str, Any] = servers["simplemem"]
    # Some of the clients refuse a file with a key that they do not know.
    assert entry.keys() - {"command", "args"} == ({"type"} if client.name == "vscode" else set())
    return [entry["command"], *entry["args"]]


Printed = Callable[..., list[str]]


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """The command in what `simplemem serve --print-config` prints for a client, with more options."""

    def print_config(client: str, *options: str) -> list[str]:
        assert serve_main([*options, "--print-config", client]) == 0
        return command_in(client_called(client), capsys.readouterr().out)

    return print_config


@EVERY
def test_the_lines_name_a_program_that_is_there_and_the_whole_path_of_the_vault(
    client: Client, printed: Printed, vault: Path
) -> None:
    program, *arguments = printed(client.name, "--vault", str(vault))
    assert os.path.isabs(program) and os.access(program, os.X_OK)
    assert arguments == ["serve", "--vault", str(vault)]


def test_the_other_options_are_kept(printed: Printed, vault: Path) -> None:
    (Path.cwd() / "own.toml").write_text("max_memory_length = 900\n")
    more = printed(
        "codex",
        *("--vault", str(vault), "--read-only", "--profile", "simplemem", "--tools", "original"),
        *("--config", "own.toml", "--db", "index.db", "--log-level", "debug"),
    )[4:]
    assert more == [
        *("--profile", "simplemem", "--tools=original", "--read-only", "--config", str(Path.cwd() / "own.toml")),
        *("--db", str(Path.cwd() / "index.db"), "--log-level", "debug"),
    ]


def test_what_the_environment_chooses_is_written_out_as_a_client_will_not_have_it(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIMPLEMEM_PROFILE", "simplemem")
    monkeypatch.setenv("SIMPLEMEM_TOOLS", "-original,core")
    chosen = ["--profile", "simplemem", "--tools=-original,core"]
    assert printed("cursor")[1:] == ["serve", "--vault", str(Path.cwd() / ".memories"), *chosen]
    assert printed("zed", "--vault", "~/a/../notes")[3] == str(Path.cwd() / "notes")


@pytest.mark.parametrize(
    "options",
    [["--profile", "nobody"], ["--tools", "nothing"], ["--tools=core,original"], ["--config", "nowhere.toml"]],
    ids=["profile", "toolset", "two tools of one name", "settings file"],
)
def test_a_mistake_is_told_here_and_not_in_the_log_of_a_client(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert serve_main([*options, "--print-config", "cursor"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("simplemem: ")


ODD = ["/opt/two words/simplemem", "serve", "--vault", "C:\\Users\\Ida\t\"'$HOME'\"\\気球 \x7f\x01 é", ""]


@EVERY
def test_any_path_comes_through_to_the_letter(client: Client) -> None:
    assert command_in(client, client.lines(ODD)) == ODD


def test_only_the_lines_are_printed_and_what_to_do_with_them_is_said_beside(
    vault: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for system, file in (
        ("darwin", "~/Library/Application Support/Claude/claude_desktop_config.json"),
        ("linux", "~/.config/Claude/claude_desktop_config.json"),
        ("win32", "%LOCALAPPDATA%\\Packages\\Claude_"),
    ):
        monkeypatch.setattr(sys, "platform", system)
        assert serve_main(["--vault", str(vault), "--print-config", "claude-desktop"]) == 0
        said = capsys.readouterr()
        assert list(json.loads(said.out)) == ["mcpServers"]
        assert f"For Claude Desktop, in {file}" in said.err and "start it again" in said.err


@EVERY
def test_the_page_shows_the_same_lines_and_places(client: Client) -> None:
    page = CONNECT.read_text(encoding="utf-8")
    ida = ["/home/ida/simplemem/.venv/bin/simplemem", "serve", "--vault", "/home/ida/notes"]
    kind = {"claude-code": "sh", "codex": "toml"}.get(client.name, "json")
    assert f"```{kind}\n{client.lines(ida)}\n```\n" in page
    for place in client.places:
        for file in re.findall(r"[~%][^()]*?\.(?:json|toml)", place):
            assert f"`{file}`" in page
