"""A real server on a port of this machine, and its clients for HTTP and MCP."""

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
    """The answer to a request. The names of the headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def data(self) -> Any:
        """The body, which is JSON."""
        return json.loads(self.body)

    @property
    def problem(self) -> Any:
        """The body of a refusal. Fails the test if it is not a complete problem document."""
        assert self.headers["content-type"] == "application/problem+json", self.body
        assert self.data["status"] == self.status
        assert {"type", "title", "detail", "code"} <= self.data.keys()
        return self.data


class Served:
    """A process of `simplemem serve --http`, its port, and the lines that it logged."""

    def __init__(
        self,
        arguments: list[str],
        config: Path,
        env: Mapping[str, str],
        http: Sequence[str] = ("--http", "127.0.0.1:0"),
    ) -> None:
        self.config = config
        self.token = OWNER
        self.env = {**os.environ, "XDG_CONFIG_HOME": str(config), "SIMPLEMEM_TOKEN": OWNER, **env}
        command = [sys.executable, "-m", "simplemem", "serve", "--yes", *http, *arguments]
        self.process = Program(command, env=self.env, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.log: list[str] = []
        self.port = self._wait_for_port()
        self.log_reader = threading.Thread(
            target=lambda: self.log.extend(self.process.stderr or ()), daemon=True
        )
        self.log_reader.start()

    def _wait_for_port(self) -> int:
        """Read the log up to the line that names the address, and return the port.

        Fails the test if the process ends before.
        """
        for line in self.process.stderr or ():
            self.log.append(line)
            address = re.search(r" at https?://127\.0\.0\.1:(\d+)", line)
            if address is not None:
                return int(address[1])
        raise AssertionError(f"it ended with {self.process.wait()}: {''.join(self.log)}")

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str | None = OWNER,
        headers: Mapping[str, str] | None = None,
        **header_arguments: str,
    ) -> Answer:
        """Send a request and return its answer.

        A body that is not bytes is sent as JSON. Headers may also be arguments, such as If_Match.
        """
        all_headers = {"Authorization": f"Bearer {token}"} if token else {}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            all_headers["Content-Type"] = "application/json"
        all_headers |= headers or {}
        all_headers |= {name.replace("_", "-"): value for name, value in header_arguments.items()}

        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        connection.request(method, path, body, all_headers)
        response = connection.getresponse()
        answer_headers = {name.lower(): value for name, value in response.getheaders()}
        answer = Answer(response.status, answer_headers, response.read())
        connection.close()
        return answer

    def api(self, method: str, path: str, body: Any = None, **options: Any) -> Answer:
        """Send a request to the REST API. `options` are those of `ask`."""
        return self.ask(method, f"/api/v1{path}", body, **options)

    def tool(self, name: str, /, token: str | None = OWNER, **arguments: Any) -> Answer:
        """Call a tool of the profile over the REST API."""
        return self.api("POST", f"/tools/{name}", arguments, token=token)

    def new_token(self, name: str, *options: str) -> str:
        """Create a token with the command line, and return it."""
        created = run_program("token", "new", name, *options, "--json", env=self.env)
        assert created.returncode == 0, created.stderr
        token: str = json.loads(created.stdout)["token"]
        return token

    def end(self) -> int:
        """Ask the server to exit, and return its exit code."""
        self.process.terminate()
        return self.process.wait(10)

    def clear(self) -> None:
        """Kill the server, and close its streams."""
        self.process.kill()
        self.process.wait()
        self.log_reader.join(5)
        assert self.process.stderr is not None
        self.process.stderr.close()


class Session:
    """A session of MCP over HTTP, one request at a time."""

    def __init__(
        self,
        server: Served,
        path: str = "/mcp",
        token: str = OWNER,
        capabilities: Mapping[str, Any] | None = None,
    ) -> None:
        self.server = server
        self.path = path
        self.token = token
        self.id = ""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": capabilities or {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        answer = self.post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params})
        self.id = answer.headers["mcp-session-id"]
        self.post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def post(self, message: dict[str, Any]) -> Answer:
        """Send a message of the session, and return the answer."""
        headers = {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        if self.id:
            headers["Mcp-Session-Id"] = self.id
        return self.server.ask("POST", self.path, message, token=self.token, headers=headers)

    def ask(self, method: str, params: Mapping[str, Any]) -> str:
        """Send a request, and return the body of its answer, which names the request."""
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        body = self.post(message).body.decode()
        assert '"id":1' in body, body
        return body

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its result."""
        body = self.ask("tools/call", {"name": tool, "arguments": arguments})
        data = body.partition("data: {")[2] if body.startswith(("event:", "id:")) else body[1:]
        result: dict[str, Any] = json.loads("{" + data.partition("\n")[0])["result"]
        return result


@contextmanager
def running(root: Path, *arguments: str) -> Iterator[Served]:
    """Yield a server for the tests of a whole module, on a vault in this folder.

    Fails if the server has logged an error at the end.
    """
    folder = [] if "--vault" in arguments else ["--vault", str(root / "vault")]
    server = Served([*folder, *arguments], root / "config", {"SIMPLEMEM_EMBED_PROVIDER": "none"})
    try:
        yield server
    finally:
        server.end()
        server.clear()
    assert not [line for line in server.log if " error " in line]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., Served]]:
    """Return a function that starts a server. The servers are killed after the test."""
    servers: list[Served] = []

    def start(
        *arguments: str, vault: Path | None = None, env: Mapping[str, str] | None = None
    ) -> Served:
        folder = ["--vault", str(vault or tmp_path / "vault")] if "--vault" not in arguments else []
        server = Served([*folder, *arguments], tmp_path / "config", env or {})
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.clear()
