"""A bare client of a server process: it sends what it is told, nonsense too, and reads lines. It knows no MCP
beyond the handshake."""

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
serve_stdio(built_in_profiles()["default"], tools, root, StoreExecutor(lambda: open_store(root)), take_standard_streams(), "warning")
"""


class Bare:
    """One running server. Use it as a context manager; it never leaves a process behind.

    A `fresh` one is started as its user starts it; else it is forked (`processes.py`).
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
        self.said = b""
        named = [] if vault is None else ["--vault", str(vault)]
        start = subprocess.Popen if fresh else Program
        self.process = start(
            command or [sys.executable, "-m", "simplemem", "serve", *named, *options],
            cwd=cwd,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            env={**os.environ, **(env or {})},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._log = threading.Thread(target=self._read_log, daemon=True)
        self._log.start()
        self._begin(self.process.stdin.fileno(), self.process.stdout.fileno(), read)

    @classmethod
    def with_tool(cls, vault: Path, code: str) -> Bare:
        """A server that is the real one, but for its tool: the last function of some code."""
        script = _WITH_TOOL.format(code=code, name=code.rpartition("def ")[2].partition("(")[0])
        return cls(vault, command=[sys.executable, "-c", script, str(vault)])

    def _begin(self, into: int, out: int, read: bool) -> None:
        self._into, self._out = into, out
        self.not_json: list[bytes] = []
        self.notifications: list[dict[str, Any]] = []
        self._answers: dict[Any, dict[str, Any]] = {}
        self._lines: queue.Queue[Any] = queue.Queue()
        self._next = 0
        if read:
            self.read_on()

    def __enter__(self) -> Bare:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self._log.join(PATIENCE)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    def read_on(self) -> None:
        threading.Thread(target=self._read, daemon=True).start()

    def read_a_little(self) -> bytes:
        """What the server says first, for a client that reads no more than that: the server is there."""
        return os.read(self._out, 65536)

    def _read(self) -> None:
        unfinished = b""
        while chunk := os.read(self._out, 65536):
            *lines, unfinished = (unfinished + chunk).split(b"\n")
            for line in lines:
                self._lines.put(line)
        self._lines.put(_FINISHED)

    def _read_log(self) -> None:
        assert self.process.stderr is not None
        while chunk := os.read(self.process.stderr.fileno(), 65536):
            self.said += chunk

    def send(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._into, left) :]

    def post(self, method: str, params: dict[str, Any] | None = None) -> int:
        """Send a request without waiting for its answer."""
        self._next += 1
        self._say({"id": self._next, "method": method, "params": params or {}})
        return self._next

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._say({"method": method, "params": params or {}})

    def _say(self, message: dict[str, Any]) -> None:
        self.send(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def _take(self, patience: float = PATIENCE) -> None:
        """Sort the next line. Raises Empty when none comes, EOFError when none can come any more."""
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

    def answer(self, ident: Any, patience: float = PATIENCE) -> dict[str, Any]:
        """The answer to a request."""
        while ident not in self._answers:
            self._take(patience)
        return self._answers.pop(ident)

    def answered(self) -> set[Any]:
        """The requests that were answered and not asked for yet."""
        self.request("ping")
        return set(self._answers)

    def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        return self.answer(self.post(method, params))

    def greet(self, protocol: str = "2025-11-25") -> int:
        about = {
            "protocolVersion": protocol,
            "capabilities": {},
            "clientInfo": {"name": "bare", "version": "7"},
        }
        return self.post("initialize", about)

    def initialize(self) -> dict[str, Any]:
        answer = self.answer(self.greet())
        self.notify("notifications/initialized")
        return answer["result"]

    def call(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})["result"]

    def hear(self, method: str) -> dict[str, Any]:
        """The next notification of a kind."""
        while not (
            heard := [
                notification
                for notification in self.notifications
                if notification["method"] == method
            ]
        ):
            self._take()
        self.notifications.remove(heard[0])
        return heard[0]

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def resident_kb(self) -> int:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0])


class Inside(Bare):
    """The same client on a server in this process: all of it but the process, over the wire between two pipes."""

    def __init__(
        self, vault: Path, profile: str = "default", *, no_delete: bool = False, **settings: Any
    ) -> None:
        theirs_in, into = os.pipe()
        out, theirs_out = os.pipe()
        face = built_in_profiles()[profile]
        variables = {name.replace("__", "."): value for name, value in settings.items()}
        own = load_settings(
            {"embed.provider": "none", "no_delete": no_delete} | variables, vault=vault
        )
        door = StoreExecutor(lambda: open_store(vault, settings=own, read_only=own.read_only))
        tools = tuple(tool for tool in choose_tools(face) if not (no_delete and tool.deletes))

        def run() -> None:
            anyio.run(converse, assemble(face, tools, door), face, (theirs_in, theirs_out))
            door.close(writing=1, closing=5)
            os.close(theirs_in)
            os.close(theirs_out)

        self._server = threading.Thread(target=run, daemon=True)
        self._server.start()
        self._begin(into, out, read=True)

    def __exit__(self, *_: object) -> None:
        self.end_input()
        self._server.join(PATIENCE)

    def end_input(self) -> None:
        with contextlib.suppress(OSError):
            os.close(self._into)
