"""What the network costs: `python bench/network.py [--notes 10000] [--seconds 30] [--clients 50] [--listeners 500]`.

A search in CPU milliseconds of the server, over standard streams, MCP over HTTP and REST; searches a second from eight
clients at once; then many clients that read and write for a while beside each other (answers of the server that are
faults, acknowledged writes that are gone, how long a call took); listeners of changes, and when the last of them heard;
and the memory of the server after all that.
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
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import Conversation, serve
from bench.vaults import make_vault

TOKEN = "a-token-of-the-bench-0123"
_BEFORE = 100  # calls, so that what is made ready at first is ready


class Server:
    """A server on a port of its own."""

    def __init__(self, *arguments: str | Path) -> None:
        env = {**os.environ, "SIMPLEMEM_TOKEN": TOKEN}
        command = [sys.executable, "-m", "simplemem", "serve", "--http", "127.0.0.1:0", *arguments]
        self.process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        found = next(
            filter(None, (re.search(r":(\d+)$", line.strip()) for line in self.process.stderr))
        )
        self.port = int(found[1])
        threading.Thread(
            target=lambda: [None for _ in self.process.stderr or ()], daemon=True
        ).start()

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident(self) -> float:
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024  # type: ignore[index]

    def end(self) -> float:
        began = time.monotonic()
        self.process.terminate()
        self.process.wait(20)
        return time.monotonic() - began


class Client:
    """One connection, kept open."""

    def __init__(self, port: int) -> None:
        self._wire, self._session = http.client.HTTPConnection("127.0.0.1", port, timeout=60), ""

    def rest(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        self._wire.request(
            method, f"/api/v1{path}", None if body is None else json.dumps(body).encode(), headers
        )
        answer = self._wire.getresponse()
        return answer.status, json.loads(answer.read() or b"null")

    def post(self, message: dict[str, Any]) -> bytes:
        headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
        headers |= {
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2025-11-25",
        }
        headers |= {"Mcp-Session-Id": self._session} if self._session else {}
        self._wire.request(
            "POST", "/mcp", json.dumps({"jsonrpc": "2.0", **message}).encode(), headers
        )
        answer = self._wire.getresponse()
        self._session = answer.getheader("mcp-session-id") or self._session
        return answer.read()

    def greet(self) -> None:
        about = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"},
        }
        self.post({"id": 0, "method": "initialize", "params": about})
        self.post({"method": "notifications/initialized"})

    def call(self, name: str, **arguments: Any) -> None:
        self.post(
            {"id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}
        )


def costs(vault: Path, questions: Sequence[str]) -> None:
    """What a search costs the server, by each way."""
    server = Server("--vault", vault)
    client = Client(server.port)
    client.greet()
    ways: dict[str, Callable[[str], object]] = {
        "MCP over HTTP": lambda said: client.call("search_memories", query=said),
        "REST": lambda said: client.rest("POST", "/search", {"query": said}),
    }
    for said in questions[:_BEFORE]:
        client.call("search_memories", query=said)
    time.sleep(2)
    for name, ask in ways.items():
        print(f"a search, {name}: {_each(server.cpu, ask, questions):.1f} ms CPU")
    rates = [_rate(server.port, questions) for _ in range(3)]
    print(f"searches a second, eight clients at once: {statistics.median(rates):.0f}")
    server.end()
    with Conversation(serve(vault), quiet=True) as talk:

        def ask(said: str) -> None:
            talk.ask("tools/call", {"name": "search_memories", "arguments": {"query": said}})

        for said in questions[:_BEFORE]:
            ask(said)
        time.sleep(2)
        print(
            f"a search, standard streams: {_each(lambda: talk.figures().cpu, ask, questions):.1f} ms CPU"
        )


def _each(
    cpu: Callable[[], float], ask: Callable[[str], object], questions: Sequence[str]
) -> float:
    times = []
    for _ in range(3):
        before = cpu()
        for said in questions:
            ask(said)
        times.append((cpu() - before) * 1000 / len(questions))
    return statistics.median(times)


def _rate(port: int, questions: Sequence[str]) -> float:
    def work() -> None:
        client = Client(port)
        for said in questions[:50]:
            client.rest("POST", "/search", {"query": said})

    threads = [threading.Thread(target=work) for _ in range(8)]
    began = time.perf_counter()
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    return 8 * 50 / (time.perf_counter() - began)


def load(
    vault: Path, questions: Sequence[str], clients: int, seconds: float, listeners: int
) -> None:
    """Many at once, at a server that has looked through its vault."""
    server = Server("--vault", vault)
    Client(server.port).rest("GET", "/stats")
    time.sleep(3)
    took: list[float] = []
    kept: list[tuple[str, str]] = []
    faults: list[tuple[int, Any]] = []

    def work(number: int) -> None:
        client, chance, ends = (
            Client(server.port),
            random.Random(number),
            time.monotonic() + seconds,
        )
        lines = 0
        client.rest("PUT", f"/memories/load/{number}", {"content": "begun"})
        while time.monotonic() < ends:
            began = time.perf_counter()
            if chance.random() < 0.3:
                lines += 1
                said = f"line {number} {lines}."
                status, data = client.rest("PATCH", f"/memories/load/{number}", {"append": said})
                kept.extend([(f"load/{number}", said)] if status == 200 else [])
            elif chance.random() < 0.5:
                status, data = client.rest("POST", "/search", {"query": chance.choice(questions)})
            else:
                status, data = client.rest("GET", f"/memories/load/{chance.randrange(clients)}")
            took.append(time.perf_counter() - began)
            faults.extend([(status, data)] if status >= 500 else [])
            time.sleep(chance.random())  # as agents do, it thinks

    threads = [threading.Thread(target=work, args=(number,)) for number in range(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    texts = {name: (vault / f"{name}.md").read_text() for name in {name for name, _ in kept}}
    lost = [said for name, said in kept if f"\n{said}\n" not in f"{texts[name]}\n"]
    took.sort()
    print(
        f"{clients} clients for {seconds:.0f} s: {len(took)} calls, {len(faults)} faults, {len(kept)} writes kept,"
        f" {len(lost)} lost; p50 {took[len(took) // 2] * 1000:.0f} ms, p99 {took[len(took) * 99 // 100] * 1000:.0f} ms"
    )
    heard = asyncio.run(_listening(server.port, listeners))
    print(
        f"{listeners} listeners: the first heard of a change after {heard[0]:.0f} ms, the last after {heard[-1]:.0f} ms"
    )
    print(f"memory of the server: {server.resident():.0f} MB; its end took {server.end():.1f} s")


async def _listening(port: int, listeners: int) -> list[float]:
    """When each of so many listeners heard of one change, in milliseconds."""
    head = f"GET /api/v1/changes HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n".encode()
    streams = []
    for _ in range(listeners):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, family=socket.AF_INET)
        writer.write(head)
        streams.append((reader, writer))
    for reader, _ in streams:
        await reader.readuntil(b"\r\n\r\n")
    await asyncio.sleep(1)

    async def hear(reader: asyncio.StreamReader) -> float:
        await reader.readuntil(b"heard-of")
        return time.perf_counter()

    hearing = [asyncio.create_task(hear(reader)) for reader, _ in streams]
    await asyncio.sleep(0.1)
    began = time.perf_counter()
    await asyncio.to_thread(
        lambda: Client(port).rest("PUT", "/memories/heard-of", {"content": "now"})
    )
    times = sorted([(await each - began) * 1000 for each in hearing])
    for _, writer in streams:
        writer.close()
    return times


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    for name, most in (("notes", 10_000), ("clients", 50), ("listeners", 500)):
        parser.add_argument(f"--{name}", type=int, default=most)
    parser.add_argument("--seconds", type=float, default=30)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as room:
        vault = Path(room) / "vault"
        make_vault(vault, asked.notes)
        subprocess.run(
            [sys.executable, "-m", "simplemem", "index", "--vault", vault],
            check=True,
            capture_output=True,
        )
        chance, questions = random.Random(3), list[str]()
        files = sorted(each for each in vault.rglob("*.md") if ".simplemem" not in each.parts)
        for file in chance.choices(files, k=200):
            words = file.read_text().rsplit("---", 1)[-1].split()
            at = chance.randrange(len(words) - 6)
            questions.append(" ".join(words[at : at + 6]))
        costs(vault, questions)
        load(vault, questions, asked.clients, asked.seconds, asked.listeners)


if __name__ == "__main__":
    main()
