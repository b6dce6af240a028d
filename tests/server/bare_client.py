"""A minimal client of a server: it sends any bytes and reads lines.

It knows nothing of MCP except the handshake.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import anyio
from processes import Program

from simplemem.profiles.registry import built_in_profiles, choose_tools
from simplemem.server.calls import assemble
from simplemem.server.executor import StoreExecutor
from simplemem.server.serve import converse
from simplemem.settings.loading import load_settings
from simplemem.store import open_store

PATIENCE = 30.0
_FINISHED = object()
_WITH_TOOL = """
import sys
from pathlib import Path
from simplemem.server.executor import StoreExecutor
from simplemem.server.serve import serve_stdio, take_standard_streams
from simplemem.store import open_store
from simplemem.profiles.registry import built_in_profiles
from simplemem.tools.tool import Reply, tool
{code}
root = Path(sys.argv[1])
tools = (tool("A tool")({name}),)
executor = StoreExecutor(lambda: open_store(root))
profile = built_in_profiles()["default"]
serve_stdio(profile, tools, root, executor, take_standard_streams(), "warning")
"""


class Bare:
    """A running server and the lines that it sent. As a context manager, it ends the process.

    A `fresh` server is started as its user starts it; any other is forked (`processes.py`). `log`
    has what the server printed to standard error, `not_json` the lines that are no JSON, and
    `notifications` those that arrived and were not taken.
    """

    def __init__(
        self,
        vault: Path | None,
        *options: str,
        read: bool = True,
        env: dict[str, str] | None = None,
        command: list[str] | None = None,
        cwd: Path | None = None,
        fresh: bool = False,
    ) -> None:
        self.log = b""
        vault_option = [] if vault is None else ["--vault", str(vault)]
        start = subprocess.Popen if fresh else Program
        self.process = start(
            command or [sys.executable, "-m", "simplemem", "serve", *vault_option, *options],
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **(env or {})},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._log_reader = threading.Thread(target=self._read_log, daemon=True)
        self._log_reader.start()
        self._begin(self.process.stdin.fileno(), self.process.stdout.fileno(), read)

    @classmethod
    def with_tool(cls, vault: Path, code: str) -> Bare:
        """Start a server whose only tool is the last function of some code."""
        name = code.rpartition("def ")[2].partition("(")[0]
        script = _WITH_TOOL.format(code=code, name=name)
        return cls(vault, command=[sys.executable, "-c", script, str(vault)])

    def _begin(self, server_input: int, server_output: int, read: bool) -> None:
        """Use these descriptors, and read the output if `read`."""
        self._input = server_input
        self._output = server_output
        self.not_json: list[bytes] = []
        self.notifications: list[dict[str, Any]] = []
        self._answers: dict[Any, dict[str, Any]] = {}
        self._lines: queue.Queue[Any] = queue.Queue()
        self._last_id = 0
        if read:
            self.read_on()

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._log_reader.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def read_on(self) -> None:
        """Read the output in the background until it ends."""
        threading.Thread(target=self._read, daemon=True).start()

    def read_a_little(self) -> bytes:
        """Wait for the first output and return it, for a client that reads no more than that."""
        return os.read(self._output, 65536)

    def _read(self) -> None:
        unfinished = b""
        while chunk := os.read(self._output, 65536):
            *lines, unfinished = (unfinished + chunk).split(b"\n")
            for line in lines:
                self._lines.put(line)
        self._lines.put(_FINISHED)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        while chunk := os.read(self.process.stderr.fileno(), 65536):
            self.log += chunk

    def send(self, data: bytes) -> None:
        """Send bytes as they are. Blocks while the pipe is full."""
        unsent = memoryview(data)
        while unsent:
            written = os.write(self._input, unsent)
            unsent = unsent[written:]

    def post(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request, and return its id without waiting for the answer."""
        self._last_id += 1
        self._send_message({"id": self._last_id, "method": method, "params": params or {}})
        return self._last_id

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        self._send_message({"method": method, "params": params or {}})

    def _send_message(self, message: dict[str, Any]) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _read_message(self, patience: float = PATIENCE) -> None:
        """Wait for the next line, and store it as an answer, a notification or no JSON.

        Raises queue.Empty if none arrives in time, and EOFError if the output has ended.
        """
        line = self._lines.get(timeout=patience)
        if line is _FINISHED:
            self._lines.put(_FINISHED)
            raise EOFError("the server has closed its output")

        try:
            message = json.loads(line)
        except ValueError:
            self.not_json.append(line)
            return

        if "method" in message:
            self.notifications.append(message)
        else:
            self._answers[message.get("id")] = message

    def answer(self, request_id: Any, patience: float = PATIENCE) -> dict[str, Any]:
        """Wait for the answer to a request, and return it. Raises queue.Empty if none arrives."""
        while request_id not in self._answers:
            self._read_message(patience)
        return self._answers.pop(request_id)

    def answered(self) -> set[Any]:
        """Return the ids of the requests whose answers arrived and were not taken."""
        self.request("ping")
        return set(self._answers)

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request, and return its answer."""
        return self.answer(self.post(method, params))

    def greet(self, protocol: str = "2025-11-25") -> int:
        """Send the request that begins a session, and return its id."""
        params = {
            "protocolVersion": protocol,
            "capabilities": {},
            "clientInfo": {"name": "bare", "version": "7"},
        }
        return self.post("initialize", params)

    def initialize(self) -> dict[str, Any]:
        """Begin a session, and return the result of the request."""
        answer = self.answer(self.greet())
        self.notify("notifications/initialized")
        return answer["result"]

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool, and return its result."""
        return self.request("tools/call", {"name": tool, "arguments": arguments})["result"]

    def next_notification(self, method: str) -> dict[str, Any]:
        """Wait for the next notification of a method, take it and return it."""
        while True:
            for notification in self.notifications:
                if notification["method"] == method:
                    self.notifications.remove(notification)
                    return notification
            self._read_message()

    def end_input(self) -> None:
        """Close the input of the server."""
        assert self.process.stdin is not None
        self.process.stdin.close()

    def resident_kb(self) -> int:
        """Return the resident memory of the server in kB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


class Inside(Bare):
    """The same client of a server in this process. They are connected by two pipes."""

    def __init__(
        self, vault: Path, profile: str = "default", *, no_delete: bool = False, **settings: Any
    ) -> None:
        server_input, client_output = os.pipe()
        client_input, server_output = os.pipe()
        chosen = built_in_profiles()[profile]
        dotted = {name.replace("__", "."): value for name, value in settings.items()}
        values = {"embed.provider": "none", "no_delete": no_delete} | dotted
        loaded = load_settings(values, vault=vault)
        executor = StoreExecutor(
            lambda: open_store(vault, settings=loaded, read_only=loaded.read_only)
        )
        tools = tuple(tool for tool in choose_tools(chosen) if not (no_delete and tool.deletes))

        def run() -> None:
            server = assemble(chosen, tools, executor)
            anyio.run(converse, server, chosen, (server_input, server_output))
            executor.close(writing=1, closing=5)
            os.close(server_input)
            os.close(server_output)

        self._server = threading.Thread(target=run, daemon=True)
        self._server.start()
        self._begin(client_output, client_input, read=True)

    def __exit__(self, *_: object) -> None:
        self.end_input()
        self._server.join(PATIENCE)

    def end_input(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._input)
