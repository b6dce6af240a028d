"""A plain MCP client of one server over standard streams, for measurements and tests of faults."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.measure import process_cpu_seconds, process_memory


class Gone(Exception):
    """The server has ended in the middle of the conversation."""


@dataclass(frozen=True)
class Figures:
    """What a server process uses at one moment."""

    resident: float  # MB
    private: float  # MB, without mapped files
    files: int  # open descriptors
    threads: int
    cpu: float  # seconds since its start


def serve(vault: Path, *options: str) -> list[str]:
    """Return the command that serves a vault with this Python."""
    return [sys.executable, "-m", "simplemem", "serve", "--vault", str(vault), *options]


class Conversation:
    """A client of one server process. As a context manager it leaves no process behind."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        quiet: bool = False,
        name: str = "bench",
    ) -> None:
        """Start the server and initialize the session.

        `env` is added to this process's environment. `quiet` drops what the server logs.

        Raises:
            Gone: The server ended before it answered.
        """
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            bufsize=0,
            env={**os.environ, **(env or {})},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._input = self.process.stdin
        self._output = self.process.stdout.fileno()
        self._buffer = b""
        self._last_id = 0

        parameters = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": name, "version": "1"},
        }
        self.ask("initialize", parameters)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a request, or a protocol error as `{"error": …}`.

        Notifications that arrive first are dropped.

        Raises:
            Gone: The server ended before it answered.
        """
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})

        answer = json.loads(self._read_line())
        while answer.get("id") != self._last_id:
            answer = json.loads(self._read_line())
        if "error" in answer:
            return {"error": answer["error"]}
        return dict(answer["result"])

    def use(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """Call a tool and return its whole result."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool and return the code of its failure, or an empty text."""
        return failure_in(self.use(tool, **arguments))

    def end(self, seconds: float = 10) -> int:
        """Close the server's input and return its exit code.

        Raises:
            subprocess.TimeoutExpired: It did not end within `seconds`.
        """
        self._input.close()
        code = self.process.wait(seconds)
        self.kill()
        return code

    def kill(self) -> None:
        """Kill the server at once, if it runs, and close its streams."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def figures(self) -> Figures:
        """Return what the server uses now. Linux only."""
        process = self.process.pid
        memory = process_memory(process)
        return Figures(
            resident=memory["VmRSS"],
            private=memory["RssAnon"],
            files=len(os.listdir(f"/proc/{process}/fd")),
            threads=len(os.listdir(f"/proc/{process}/task")),
            cpu=process_cpu_seconds(process),
        )

    def _send(self, message: dict[str, Any]) -> None:
        unsent = memoryview(json.dumps(message).encode() + b"\n")
        try:
            while unsent:
                count = self._input.write(unsent) or 0
                unsent = unsent[count:]
        except (OSError, ValueError) as error:
            raise Gone from error

    def _read_line(self) -> bytes:
        while b"\n" not in self._buffer:
            try:
                chunk = os.read(self._output, 1 << 16)
            except OSError as error:
                raise Gone from error
            if not chunk:
                raise Gone
            self._buffer += chunk
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line


def failure_in(result: dict[str, Any]) -> str:
    """Return the code of a failure in a tool's result, else its text, "" if it did not fail."""
    if "error" in result:
        return "protocol error"
    if not result.get("isError"):
        return ""
    code = result.get("structuredContent", {}).get("error", {}).get("code")
    if code:
        return str(code)
    text = "".join(part.get("text", "") for part in result.get("content", []))
    return text[:200] or "failed"
