"""What the network costs.

    python bench/network.py [--notes 10000] [--seconds 30] [--clients 50] [--listeners 500]

Prints

- the CPU milliseconds of the server for a search over standard streams, MCP over HTTP, and REST
- searches per second from eight clients at once
- for many clients that read and write at the same time: faults of the server, acknowledged writes
  that are lost, and how long calls took
- for many listeners of changes: when the first and the last one were notified of a change
- the memory of the server after all that
"""

from __future__ import annotations

import argparse
import asyncio
import http.client
import json
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, serve
from bench.measure import percentile, process_cpu_seconds, process_memory
from bench.vaults import draw_phrases, make_vault, notes_of

TOKEN: Final = "a-token-of-the-bench-0123"
_UNCOUNTED_CALLS: Final = 100  # they pay for what is loaded once
_ROUNDS: Final = 3
_SEARCHING_CLIENTS: Final = 8
_SEARCHES_A_CLIENT: Final = 50


def main() -> None:
    """Make and index a vault, and measure one server after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--notes", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--listeners", type=int, default=500)
    parser.add_argument("--seconds", type=float, default=30)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        vault = Path(folder) / "vault"
        make_vault(vault, options.notes)
        index = [sys.executable, "-m", "simplemem", "index", "--vault", str(vault)]
        subprocess.run(index, check=True, capture_output=True)

        questions = draw_phrases(notes_of(vault), 200, random.Random(3))
        measure_http_searches(vault, questions)
        measure_stdio_searches(vault, questions)
        measure_load(vault, questions, options)


class Server:
    """A server of a vault over HTTP, on a free port. Guards its process."""

    def __init__(self, vault: Path, *options: str) -> None:
        """Start the server with options and wait until it says on which port it listens.

        Raises:
            SystemExit: The server ended before that.
        """
        command = [sys.executable, "-m", "simplemem", "serve", "--http", "127.0.0.1:0"]
        env = {**os.environ, "SIMPLEMEM_TOKEN": TOKEN}
        self.process = subprocess.Popen(
            [*command, "--vault", str(vault), *options],
            env=env,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.port = self._read_port()
        # Somebody has to read the log, or the server would wait when the pipe is full.
        threading.Thread(target=self._drop_log, daemon=True).start()

    def _read_port(self) -> int:
        for line in self.process.stderr or ():
            match = re.search(r":(\d+)$", line.strip())
            if match:
                return int(match[1])
        raise SystemExit("the server did not start")

    def _drop_log(self) -> None:
        for _ in self.process.stderr or ():
            pass

    def cpu(self) -> float:
        """Return the CPU seconds since its start."""
        return process_cpu_seconds(self.process.pid)

    def resident(self) -> float:
        """Return the MB of memory that it uses."""
        return process_memory(self.process.pid)["VmRSS"]

    def end(self) -> float:
        """Ask it to end, and return how many seconds that took."""
        start = time.monotonic()
        self.process.terminate()
        self.process.wait(20)
        return time.monotonic() - start


class Client:
    """One open connection to a server, and its MCP session."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        self._session = ""

    def rest(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Send a request to the REST API, and return the status and the JSON of the answer."""
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        self._connection.request(method, f"/api/v1{path}", data, headers)
        answer = self._connection.getresponse()
        return answer.status, json.loads(answer.read() or b"null")

    def search(self, query: str) -> tuple[int, Any]:
        """Search with the REST API."""
        return self.rest("POST", "/search", {"query": query})

    def initialize(self) -> None:
        """Begin an MCP session."""
        parameters = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self._post({"id": 0, "method": "initialize", "params": parameters})
        self._post({"method": "notifications/initialized"})

    def call(self, name: str, **arguments: Any) -> None:
        """Call a tool over MCP and drop the result."""
        parameters = {"name": name, "arguments": arguments}
        self._post({"id": 1, "method": "tools/call", "params": parameters})

    def _post(self, message: dict[str, Any]) -> None:
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self._connection.request("POST", "/mcp", body, headers)
        answer = self._connection.getresponse()
        self._session = answer.getheader("mcp-session-id") or self._session
        answer.read()


# Searches


def measure_http_searches(vault: Path, questions: Sequence[str]) -> None:
    """Print the cost of a search over MCP and REST, and how many a second are answered."""
    server = Server(vault)
    client = Client(server.port)
    client.initialize()

    def search_by_mcp(question: str) -> None:
        client.call("search_memories", query=question)

    _warm_up(search_by_mcp, questions)
    milliseconds = search_cost(server.cpu, search_by_mcp, questions)
    print(f"a search, MCP over HTTP: {milliseconds:.1f} ms CPU")
    milliseconds = search_cost(server.cpu, client.search, questions)
    print(f"a search, REST: {milliseconds:.1f} ms CPU")

    rates = [searches_per_second(server.port, questions) for _ in range(_ROUNDS)]
    print(f"searches a second, eight clients at once: {statistics.median(rates):.0f}")
    server.end()


def measure_stdio_searches(vault: Path, questions: Sequence[str]) -> None:
    """Print the cost of a search over standard streams."""
    with Conversation(serve(vault), quiet=True) as server:

        def search(question: str) -> None:
            server.use("search_memories", query=question)

        _warm_up(search, questions)
        milliseconds = search_cost(lambda: server.figures().cpu, search, questions)
        print(f"a search, standard streams: {milliseconds:.1f} ms CPU")


def _warm_up(search: Callable[[str], object], questions: Sequence[str]) -> None:
    for question in questions[:_UNCOUNTED_CALLS]:
        search(question)
    time.sleep(2)


def search_cost(
    cpu: Callable[[], float], search: Callable[[str], object], questions: Sequence[str]
) -> float:
    """Return the mean CPU milliseconds of a search: the median of three rounds."""
    costs = []
    for _ in range(_ROUNDS):
        start = cpu()
        for question in questions:
            search(question)
        costs.append(1000 * (cpu() - start) / len(questions))
    return statistics.median(costs)


def searches_per_second(port: int, questions: Sequence[str]) -> float:
    """Let eight clients search at once, and return how many searches a second were answered."""

    def work() -> None:
        client = Client(port)
        for question in questions[:_SEARCHES_A_CLIENT]:
            client.search(question)

    start = time.perf_counter()
    run_threads([work] * _SEARCHING_CLIENTS)
    seconds = time.perf_counter() - start
    return _SEARCHING_CLIENTS * _SEARCHES_A_CLIENT / seconds


def run_threads(tasks: Sequence[Callable[[], None]]) -> None:
    """Run each task in a thread, and wait until all have ended."""
    threads = [threading.Thread(target=task) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


# Many clients at once


@dataclass
class Load:
    """What many clients do and see. Guards the lists to which their threads append."""

    port: int
    questions: Sequence[str]
    clients: int
    seconds: float
    call_seconds: list[float] = field(default_factory=list)
    writes: list[tuple[str, str]] = field(default_factory=list)  # note and appended line
    faults: list[tuple[int, Any]] = field(default_factory=list)

    def run_client(self, number: int) -> None:
        """Read, search and append to a note of its own, until the time is over."""
        client = Client(self.port)
        rng = random.Random(number)
        end = time.monotonic() + self.seconds
        note = f"load/{number}"
        client.rest("PUT", f"/memories/{note}", {"content": "begun"})

        lines = 0
        while time.monotonic() < end:
            start = time.perf_counter()
            if rng.random() < 0.3:
                lines += 1
                line = f"line {number} {lines}."
                status, data = client.rest("PATCH", f"/memories/{note}", {"append": line})
                if status == 200:
                    self.writes.append((note, line))
            elif rng.random() < 0.5:
                status, data = client.search(rng.choice(self.questions))
            else:
                status, data = client.rest("GET", f"/memories/load/{rng.randrange(self.clients)}")
            self.call_seconds.append(time.perf_counter() - start)
            if status >= 500:
                self.faults.append((status, data))
            time.sleep(rng.random())  # an agent thinks between two calls

    def lost_writes(self, vault: Path) -> list[str]:
        """Return the acknowledged lines that are not in their notes."""
        lost = []
        for note, line in self.writes:
            text = (vault / f"{note}.md").read_text()
            if f"\n{line}\n" not in f"{text}\n":
                lost.append(line)
        return lost


def measure_load(vault: Path, questions: Sequence[str], options: argparse.Namespace) -> None:
    """Print what many clients and many listeners meet, and the memory of the server after them."""
    server = Server(vault)
    Client(server.port).rest("GET", "/stats")
    time.sleep(3)  # the start's scan

    load = Load(server.port, questions, options.clients, options.seconds)
    run_threads([partial(load.run_client, number) for number in range(options.clients)])
    median = 1000 * percentile(load.call_seconds, 0.5)
    high = 1000 * percentile(load.call_seconds, 0.99)
    print(
        f"{options.clients} clients for {options.seconds:.0f} s: {len(load.call_seconds)} calls, "
        f"{len(load.faults)} faults, {len(load.writes)} writes kept, "
        f"{len(load.lost_writes(vault))} lost; p50 {median:.0f} ms, p99 {high:.0f} ms"
    )

    times = asyncio.run(notification_times(server.port, options.listeners))
    print(
        f"{options.listeners} listeners: the first heard of a change after {times[0]:.0f} ms, "
        f"the last after {times[-1]:.0f} ms"
    )
    print(f"memory of the server: {server.resident():.0f} MB; its end took {server.end():.1f} s")


async def notification_times(port: int, listeners: int) -> list[float]:
    """Return after how many milliseconds each listener was notified of one change, in order."""
    streams = [await _listen(port) for _ in range(listeners)]
    for reader, _ in streams:
        await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(1)

    tasks = [asyncio.create_task(_time_of_notice(reader)) for reader, _ in streams]
    await asyncio.sleep(0.1)
    start = time.perf_counter()
    await asyncio.to_thread(Client(port).rest, "PUT", "/memories/heard-of", {"content": "now"})
    times = [1000 * (await task - start) for task in tasks]
    for _, writer in streams:
        writer.close()
    return sorted(times)


async def _listen(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open a stream of changes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, family=socket.AF_INET)
    lines = [
        "GET /api/v1/changes HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        f"Authorization: Bearer {TOKEN}",
        "\r\n",
    ]
    writer.write("\r\n".join(lines).encode())
    return reader, writer


async def _time_of_notice(reader: asyncio.StreamReader) -> float:
    await reader.readuntil(b"heard-of")
    return time.perf_counter()


if __name__ == "__main__":
    main()
