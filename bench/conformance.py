"""The official conformance suite against a server of its own: `python bench/conformance.py` (Node 22 and npx).

The suite knows no token, so a small proxy adds it. Run are the scenarios of both revisions that need no server made for
the suite, that is, no tools, prompts or resources of its own.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, STDOUT

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.conversation import serve

_TOKEN = "a-token-of-the-bench-0123"
_SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"  # the first that knows 2026-07-28
_BOTH = ["tools-list", "resources-list", "prompts-list", "completion-complete", "server-sse-multiple-streams"]
_BOTH += ["dns-rebinding-protection"]
_SCENARIOS = {
    "2025-11-25": ["server-initialize", "server-session-lifecycle", "ping", *_BOTH],
    "2026-07-28": [
        *("server-stateless", "sep-2164-resource-not-found", "caching", "http-header-validation"),
        "input-required-result-unsupported-methods",
        *_BOTH,
    ],
}


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while part := await reader.read(65_536):
            writer.write(part)
            await writer.drain()
    writer.close()


async def _run(suite: list[str], rounds: dict[str, list[str]]) -> int:
    failed = 0
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as room,
        socket.create_server(("127.0.0.1", 0)) as door,
    ):
        seen = door.getsockname()[1]
        names = [part for host in ("localhost", "127.0.0.1") for part in ("--allow-host", f"{host}:{seen}")]
        env = {**os.environ, "SIMPLEMEM_TOKEN": _TOKEN, "SIMPLEMEM_EMBED_PROVIDER": "none"}
        command = [*serve(Path(room) / "vault"), "--http", "127.0.0.1:0", *names]
        server = await asyncio.create_subprocess_exec(*command, env=env, stderr=PIPE)
        assert server.stderr is not None
        while (found := re.search(rb" at http://127\.0\.0\.1:(\d+)", await server.stderr.readline())) is None:
            pass
        port = int(found[1])

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """One request a connection, with the token added to its head."""
            with suppress(asyncio.IncompleteReadError):
                first, *rest = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
                kept = [each for each in rest if not each.lower().startswith(b"connection:")]
                there, back = await asyncio.open_connection("127.0.0.1", port)
                added = [b"Authorization: Bearer " + _TOKEN.encode(), b"Connection: close"]
                back.write(b"\r\n".join([first, *added, *kept]))
                await asyncio.gather(_relay(reader, back), _relay(there, writer))

        saying = asyncio.create_task(server.stderr.read())
        proxy = await asyncio.start_server(pass_on, sock=door)
        for revision, scenarios in rounds.items():
            for scenario in scenarios:
                about = ["--url", f"http://localhost:{seen}/mcp", "--scenario", scenario, "--spec-version", revision]
                asked = await asyncio.create_subprocess_exec(*suite, "server", *about, stdout=PIPE, stderr=STDOUT)
                said, _ = await asked.communicate()
                counted = re.search(rb"Passed: (\d+)/\d+, (\d+) failed", said)
                without = said.count(b"Error: Not testable")  # for want of a tool that the suite would have
                if counted is None or int(counted[2]) > without:
                    failed += 1
                    print(said.decode())
                else:
                    print(f"{revision} {scenario}: {int(counted[1])} passed, {without} not testable", flush=True)
        server.terminate()
        await server.wait()
        await saying
        proxy.close()
    return failed


def _has_node() -> bool:
    if shutil.which("npx") is None:
        return False
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.strip().lstrip("v").split(".")[0]) >= 22


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", nargs="+", help="how the suite is started, instead of by npx")
    parser.add_argument("--scenario", help="this one only")
    asked = parser.parse_args()
    if asked.suite is None and not _has_node():
        print("not run: the conformance suite needs Node 22 and npx")
        return 0
    rounds = {key: [asked.scenario] if asked.scenario else names for key, names in _SCENARIOS.items()}
    return 1 if asyncio.run(_run(asked.suite or ["npx", "--yes", _SUITE], rounds)) else 0


if __name__ == "__main__":
    sys.exit(main())
