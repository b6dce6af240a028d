"""What a token may do is the same by every way in, lasts as long as it does, and is never more than was said."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from processes import run_program
from waiting import eventually

from simplemem.errors import Unavailable
from simplemem.web.tokens import Grant, Tokens, write_private
from tests.web.conftest import OWNER, Served, Session

CALL = {"jsonrpc": "2.0", "id": 7, "method": "tools/call"}
CLIENT = {"name": "test", "version": "1"}
BOTH = {"Accept": "application/json, text/event-stream"}


def by_session(server: Served, token: str, params: Mapping[str, Any]) -> str:
    """A call over a session, as clients of 2025 make it."""
    return Session(server, "/mcp", token).ask("tools/call", params)


def by_itself(server: Served, token: str, params: Mapping[str, Any]) -> str:
    """A call without a session, as clients of 2026 make it."""
    about = {"protocolVersion": "2026-07-28", "clientCapabilities": {}, "clientInfo": CLIENT}
    meta = {f"io.modelcontextprotocol/{key}": value for key, value in about.items()}
    headers = {
        **BOTH,
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": params["name"],
    }
    message = {**CALL, "params": {**params, "_meta": meta}}
    return server.ask("POST", "/mcp", message, token=token, headers=headers).body.decode()


def by_events(server: Served, token: str, params: Mapping[str, Any]) -> str:
    """A call as clients of 2024 make it: an answer comes among events."""
    with Events(server, "/sse", token) as events:
        [where] = events.until(r"data: (/\S+)")
        about = {"protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": CLIENT}
        begin = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": about}
        for message in (
            begin,
            {"jsonrpc": "2.0", "method": "notifications/initialized"},
            {**CALL, "params": params},
        ):
            assert server.ask("POST", where, message, token=token).status == 202
        assert server.ask("POST", where, begin).status == 404  # of another token
        return events.until(r'(data: \{.*"id":7.*)')[0]


class Events:
    """What a server tells as it happens."""

    def __init__(self, server: Served, path: str, token: str) -> None:
        self.wire, self.received = socket.create_connection(("127.0.0.1", server.port), 30), ""
        head = f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\nAuthorization: Bearer {token}\r\n\r\n"
        self.wire.sendall(head.encode())

    def __enter__(self) -> Events:
        return self

    def __exit__(self, *_: object) -> None:
        self.wire.close()

    def until(self, pattern: str) -> tuple[str, ...]:
        while (found := re.search(pattern, self.received)) is None:
            part = self.wire.recv(65536).decode()
            assert part, self.received
            self.received += part
        return found.groups()


@pytest.fixture
def server(serve: Callable[..., Served]) -> Served:
    return serve("--sse")


@pytest.mark.parametrize("call", [by_session, by_itself, by_events])
def test_who_may_only_read_writes_by_no_way(server: Served, call: Callable[..., str]) -> None:
    reads, writes = server.new_token("reader"), server.new_token("writer", "--write")
    note = {"name": "create_memory", "arguments": {"name": "a", "content": "of the writer"}}
    assert "read_only" in call(server, reads, note)
    assert server.api("GET", "/memories").data["total"] == 0
    assert '"isError":true' not in call(server, writes, note)
    assert "of the writer" in call(
        server, reads, {"name": "read_memory", "arguments": {"name": "a"}}
    )
    [version] = server.api("GET", "/history/a").data["versions"]
    assert version["who"].startswith("writer")


def test_a_stream_ends_with_its_token(server: Served) -> None:
    token = server.new_token("listener")
    with (
        Events(server, "/api/v1/changes", token) as events,
        Events(server, "/api/v1/changes", OWNER) as other_events,
    ):
        server.api("PUT", "/memories/a", {"content": "heard"})
        events.until('"a"')
        other_events.until('"a"')
        run_program("token", "revoke", "listener", env=server.env).check_returncode()
        server.api("PUT", "/memories/b", {"content": "not heard"})
        other_events.until('"b"')
        events.until(r"\r\n0\r\n\r\n\Z")
        assert '"b"' not in events.received
        server.api("PUT", "/memories/c", {"content": "heard by others"})
        other_events.until('"c"')
    assert not [line for line in server.log if " error " in line]


def test_a_token_ends_when_it_said(server: Served) -> None:
    token = server.new_token("brief", "--expires", "1h")
    assert server.api("GET", "/tags", token=token).status == 200
    file = server.config / "simplemem" / "tokens.json"
    [row] = json.loads(file.read_text())
    file.write_text(json.dumps([row | {"expires": 1_000_000_000}]))
    assert server.api("GET", "/tags", token=token).status == 401


@pytest.mark.parametrize(
    "option", [["--user", ""], ["--folder", ""], ["--folder", "/"], ["--user", " ada"]]
)
def test_a_name_that_is_none_makes_no_token_for_everything(
    tmp_path: Any, option: list[str]
) -> None:
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    assert run_program("token", "new", "x", *option, env=env).returncode != 0
    assert not (tmp_path / "simplemem" / "tokens.json").exists()


@pytest.mark.parametrize(
    "folder", ["/projects", "..", "../work", "projects/../secret", "projects\\..\\secret"]
)
def test_a_token_is_limited_only_to_a_folder_in_the_vault(tmp_path: Any, folder: str) -> None:
    env = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path)}
    ended = run_program("token", "new", "x", "--folder", folder, env=env)
    assert ended.returncode == 1 and "is not a folder in the vault" in ended.stderr
    assert not (tmp_path / "simplemem" / "tokens.json").exists()


def test_users_whose_names_look_alike_on_a_disk_are_apart(server: Served) -> None:
    users = [
        "a?b",
        "a-b",
        "a",
        "a/b",
        "a/files",
        "a.md",
        "files",
        "a/b/c",
        "A b",
        "a b 0123456789abcdef",
    ]
    tokens = {
        user: server.new_token(f"of {at}", "--write", "--user", user)
        for at, user in enumerate(users)
    }
    for user, token in tokens.items():
        memory = {"content": f"My motto is {user!r}.", "user_id": user}
        assert server.api("POST", "/memory", memory, token=token).status == 202
        document = {
            "content": f"# A page\n\nOf {user!r}.",
            "container_tag": user,
            "title": "A page",
        }
        assert server.ask("POST", "/ingest/webhook", document, token=token).status == 202
    for user, token in tokens.items():
        names = [item["name"] for item in server.api("GET", "/memories", token=token).data["items"]]
        texts = [
            server.api("GET", f"/memories/{quote(name)}", token=token).data["content"]
            for name in names
        ]
        assert len(texts) >= 2 and not [text for text in texts if repr(user) not in text], (
            user,
            names,
        )


def test_no_grant_sees_more_than_the_settings_show(serve: Callable[..., Served]) -> None:
    server = serve(env={"SIMPLEMEM_ACCESS_ONLY": "shared/,people/ada/*"})
    grants = {
        "shared": 1,
        "shared/deep": 1,
        "people": 1,
        "people/ada": 1,
        "people/ada/deep": 0,
        "secret": 0,
    }
    vault = server.config.parent / "vault"
    for name in ("shared/deep/a", "people/ada/a", "people/ada/deep/a", "people/ben/a", "secret/a"):
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        (vault / f"{name}.md").write_text("A note.\n")

    def sees(token: str) -> int:
        return int(server.api("GET", "/memories", token=token).data["total"])

    for folder, count in grants.items():
        token = server.new_token(folder, "--folder", folder)
        assert eventually(partial(lambda *them: sees(them[0]) == them[1], token, count)), folder
    assert eventually(lambda: sees(OWNER) == 2)


@pytest.mark.parametrize(
    "text", ["[{]", "[1]", '[{"name": "x", "scopes": []}]', '[{"a": 1}]', "[" * 100_000]
)
def test_no_token_of_a_broken_file_is_accepted(tmp_path: Path, text: str) -> None:
    tokens = Tokens(tmp_path, "the owner's own token")
    token = tokens.new(Grant("laptop"))
    assert tokens.grant(token) is not None
    tokens.path.write_text(text)
    for _ in range(2):
        with pytest.raises(Unavailable):
            tokens.grant(token)
    assert tokens.grant("the owner's own token") is not None


def test_no_token_is_accepted_while_their_file_cannot_be_read(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, "the owner's own token")
    token = tokens.new(Grant("laptop"))
    grant = tokens.grant(token)
    assert grant is not None
    text = tokens.path.read_text()

    tokens.path.unlink()
    tokens.path.mkdir()
    for _ in range(2):
        with pytest.raises(Unavailable):
            tokens.grant(token)
        assert not tokens.is_valid(grant)
    assert tokens.grant("the owner's own token") is not None

    tokens.path.rmdir()
    tokens.path.write_text(text)
    assert tokens.grant(token) == grant


def test_a_folder_that_cannot_be_used_is_an_error_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "config"
    file.write_text("")
    with pytest.raises(Unavailable):
        Tokens(file / "simplemem").all()
    with pytest.raises(Unavailable):
        write_private(file / "simplemem" / "token", "secret")
