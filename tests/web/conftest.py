"""A real server on a socket of this machine, and what asks it."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from processes import Program, run_program

OWNER = "the-owners-token-0123456789"


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        return json.loads(self.body)

    @property
    def problem(self) -> Any:
        """The problem document that every refusal is."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        assert (
            self.data["status"] == self.status
            and {"type", "title", "detail", "code"} <= self.data.keys()
        )
        return self.data


class Served:
    """A `simplemem serve --http` and its address."""

    def __init__(
        self,
        arguments: list[str],
        config: Path,
        env: Mapping[str, str],
        http: Sequence[str] = ("--http", "127.0.0.1:0"),
    ) -> None:
        self.config, self.token = config, OWNER
        self.env = {**os.environ, "XDG_CONFIG_HOME": str(config), "SIMPLEMEM_TOKEN": OWNER, **env}
        command = [sys.executable, "-m", "simplemem", "serve", "--yes", *http, *arguments]
        self.process = Program(command, env=self.env, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.said: list[str] = []
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.search(r" at https?://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                break
        else:
            raise AssertionError(f"it ended with {self.process.wait()}: {''.join(self.said)}")
        self.hearing = threading.Thread(
            target=lambda: self.said.extend(self.process.stderr or ()), daemon=True
        )
        self.hearing.start()

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = OWNER,
        headers: Mapping[str, str] | None = None,
        **named: str,
    ) -> Answer:
        """One request; a body that is no bytes goes as JSON. Headers may be named: If_Match."""
        sent = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None and not isinstance(body, bytes):
            body, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        wire = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        wire.request(
            method,
            path,
            body,
            {
                **sent,
                **(headers or {}),
                **{key.replace("_", "-"): value for key, value in named.items()},
            },
        )
        answer = wire.getresponse()
        found = Answer(
            answer.status, {key.lower(): value for key, value in answer.getheaders()}, answer.read()
        )
        wire.close()
        return found

    def api(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        return self.ask(method, f"/api/v1{path}", body, **more)

    def tool(self, called: str, token: str | None = OWNER, **arguments: Any) -> Answer:
        """Any tool of the face."""
        return self.api("POST", f"/tools/{called}", arguments, token=token)

    def new_token(self, name: str, *options: str) -> str:
        """A token made by the command line."""
        created = run_program("token", "new", name, *options, "--json", env=self.env)
        assert created.returncode == 0, created.stderr
        token: str = json.loads(created.stdout)["token"]
        return token

    def end(self) -> int:
        self.process.terminate()
        return self.process.wait(10)

    def clear(self) -> None:
        """End it at once, and leave nothing open."""
        self.process.kill()
        self.process.wait()
        self.hearing.join(5)
        assert self.process.stderr is not None
        self.process.stderr.close()


class Session:
    """A session of MCP, by hand."""

    def __init__(self, server: Served, path: str = "/mcp", token: str = OWNER) -> None:
        self.server, self.path, self.token, self.id = server, path, token, ""
        client = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": client})
        self.id = answer.headers["mcp-session-id"]
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message: dict[str, Any]) -> Answer:
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        headers |= {"Mcp-Session-Id": self.id} if self.id else {}
        return self.server.ask("POST", self.path, message, token=self.token, headers=headers)

    def ask(self, method: str, params: Mapping[str, Any]) -> str:
        answer = self.post(
            {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        ).body.decode()
        assert '"id":1' in answer, answer
        return answer


@contextmanager
def running(root: Path, *arguments: str) -> Iterator[Served]:
    """A server for the tests of a whole module, on a vault in this folder. It has no fault of its own to tell of."""
    folder = [] if "--vault" in arguments else ["--vault", str(root / "vault")]
    server = Served([*folder, *arguments], root / "config", {"SIMPLEMEM_EMBED_PROVIDER": "none"})
    try:
        yield server
    finally:
        server.end()
        server.clear()
    assert not [line for line in server.said if " error " in line]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Starts servers, and ends them."""
    started: list[Served] = []

    def start(
        *arguments: str, vault: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Served:
        folder = ["--vault", str(vault or tmp_path / "vault")] if "--vault" not in arguments else []
        started.append(Served([*folder, *arguments], tmp_path / "config", env or {}))
        return started[-1]

    yield start
    for server in started:
        server.clear()
