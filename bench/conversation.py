"""A plain client of one server over its standard streams, for the commands that measure and for those that break
things."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any


class Gone(Exception):
    """The server has ended in the middle of the conversation."""


@dataclass(frozen=True)
class Figures:
    """What a server holds at a moment, in MB and seconds. `private` is what is its own: without files that are
    mapped."""

    resident: float
    private: float
    files: int
    threads: int
    cpu: float


def serve(vault: Path, *options: str) -> list[str]:
    """The command that serves a vault with this Python."""
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
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if quiet else None,
            bufsize=0,
            env={**os.environ, **(env or {})},
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self._input, self._output = self.process.stdin, self.process.stdout.fileno()
        self._held = b""
        self._next = 0
        self.told = 0
        about = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": name, "version": "1"},
        }
        self.ask("initialize", about)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; a protocol error as `{"error": …}`."""
        self._next += 1
        self._send({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params})
        while (answer := json.loads(self._line())).get("id") != self._next:
            self.told += 1
        return dict(answer["result"]) if "result" in answer else {"error": answer["error"]}

    def use(self, tool: str, /, **arguments: Any) -> dict[str, Any]:
        """The whole result of a tool."""
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def call(self, tool: str, arguments: dict[str, Any]) -> str:
        """The code of the failure, or nothing."""
        return failure_in(self.use(tool, **arguments))

    def end(self, seconds: float = 10) -> int:
        """Say goodbye: the exit code."""
        self._input.close()
        code = self.process.wait(seconds)
        self.kill()
        return code

    def kill(self) -> None:
        """End it as kill -9 does."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()

    def figures(self) -> Figures:
        at = Path("/proc") / str(self.process.pid)
        status = dict(
            row.split(":", 1) for row in (at / "status").read_text().split("\n") if ":" in row
        )
        fields = (at / "stat").read_text().rsplit(")", 1)[1].split()
        return Figures(
            resident=int(status["VmRSS"].split()[0]) / 1024,
            private=int(status["RssAnon"].split()[0]) / 1024,
            files=len(os.listdir(at / "fd")),
            threads=int(status["Threads"]),
            cpu=(int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"),
        )

    def _send(self, message: dict[str, Any]) -> None:
        left = memoryview(json.dumps(message).encode() + b"\n")
        try:
            while left:
                left = left[self._input.write(left) or 0 :]
        except (OSError, ValueError) as error:
            raise Gone from error

    def _line(self) -> bytes:
        while b"\n" not in self._held:
            try:
                chunk = os.read(self._output, 1 << 16)
            except OSError as error:
                raise Gone from error
            if not chunk:
                raise Gone
            self._held += chunk
        line, self._held = self._held.split(b"\n", 1)
        return line


def failure_in(result: dict[str, Any]) -> str:
    """The code of the failure in a tool's result, or nothing."""
    if "error" in result:
        return "protocol error"
    if not result.get("isError"):
        return ""
    told = result.get("structuredContent", {}).get("error", {}).get("code")
    return str(
        told
        or "".join(part.get("text", "") for part in result.get("content", []))[:200]
        or "failed"
    )
