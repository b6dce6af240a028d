"""The official TypeScript client and the official conformance suite against servers of the program.

The client needs Node 18 and calls all tools of each profile. The suite needs Node 22. It cannot
send a token, so a proxy adds it. Only those scenarios of both protocol revisions are run that need
no tools, prompts or resources of their own.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.network import TOKEN, Server
from simplemem.profiles.registry import built_in_profiles
from tests.hostile.tool_calls import HARMLESS, put_back

_SUITE: Final = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
"""The first version that knows 2026-07-28."""

_SCENARIOS_OF_BOTH: Final = (
    "tools-list",
    "resources-list",
    "prompts-list",
    "completion-complete",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
_SCENARIOS: Final = {
    "2025-11-25": (
        "server-initialize",
        "server-session-lifecycle",
        "ping",
        *_SCENARIOS_OF_BOTH,
    ),
    "2026-07-28": (
        "server-stateless",
        "sep-2164-resource-not-found",
        "caching",
        "http-header-validation",
        "input-required-result-unsupported-methods",
        *_SCENARIOS_OF_BOTH,
    ),
}
"""The scenarios of the suite by the revision of the protocol."""

_CLIENT_NODE: Final = 18
_SUITE_NODE: Final = 22
_CHUNK: Final = 65_536  # bytes


def main() -> int:
    """Run what this machine's Node can run. Return the exit code: 1 if something failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--suite", nargs="+", help="how the suite is started, instead of by npx")
    options = parser.parse_args()

    os.environ["SIMPLEMEM_EMBED_PROVIDER"] = "none"
    node = _node_version()
    failures = 0
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if node >= _CLIENT_NODE:
            failures += run_client(Path(folder))
        if options.suite or node >= _SUITE_NODE:
            suite = options.suite or ["npx", "--yes", _SUITE]
            failures += asyncio.run(run_suite(suite, Path(folder)))
        else:
            print("not run: the conformance suite needs Node 22 and npx")
    return 1 if failures else 0


def _node_version() -> int:
    """Return the major version of Node, or 0 without Node or npx."""
    if shutil.which("npx") is None:
        return 0
    command = ["node", "--version"]
    version = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return int(version.strip().lstrip("v").split(".")[0])


# The TypeScript client


def run_client(folder: Path) -> int:
    """Return how many profiles have a tool that the TypeScript client cannot call."""
    command = ["npm", "install", "--silent", "--prefix", str(folder)]
    command.append("@modelcontextprotocol/sdk@1")
    if subprocess.run(command, check=False, capture_output=True).returncode:
        print("not run: npm cannot get the TypeScript client")
        return 0

    shutil.copy(Path(__file__).with_name("client.mjs"), folder)
    failures = 0
    for profile in built_in_profiles():
        vault = folder / profile
        vault.mkdir()
        put_back(vault)
        if not _can_call_tools(profile, vault, folder / "client.mjs"):
            failures += 1
    return failures


def _can_call_tools(profile: str, vault: Path, client: Path) -> bool:
    """Let the client call all tools of a profile. It prints the tools that fail."""
    server = Server(vault, "--profile", profile)
    address = f"http://127.0.0.1:{server.port}/mcp"
    print(f"TypeScript client, {profile}: ", end="", flush=True)
    command = ["node", str(client), address, TOKEN, json.dumps(HARMLESS)]
    result = subprocess.run(command, check=False)
    server.end()
    return result.returncode == 0


# The conformance suite


class Outcome(NamedTuple):
    """What the suite reports of one scenario."""

    passed: int
    failed: int
    not_testable: int  # among the failed: the server lacks a tool that the suite would need

    @property
    def is_failure(self) -> bool:
        """Return whether a check failed that could be tested."""
        return self.failed > self.not_testable


async def run_suite(suite: Sequence[str], folder: Path) -> int:
    """Run all scenarios against one server, print their results, and count those that failed."""
    vault = folder / "vault"
    vault.mkdir()
    failures = 0
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        server = Server(
            vault,
            "--allow-host",
            f"localhost:{port}",
            "--allow-host",
            f"127.0.0.1:{port}",
        )
        proxy = await start_proxy(listener, server.port)
        for revision, scenarios in _SCENARIOS.items():
            for scenario in scenarios:
                command = [*suite, "server", "--url", f"http://localhost:{port}/mcp"]
                command += ["--scenario", scenario, "--spec-version", revision]
                if not await _passes(command, f"{revision} {scenario}"):
                    failures += 1
        proxy.close()
        server.end()
    return failures


async def _passes(command: Sequence[str], title: str) -> bool:
    """Run one scenario. Print its counts, or all that the suite printed if it failed."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    outcome = read_outcome(output.decode())
    if outcome is None or outcome.is_failure:
        print(output.decode())
        return False

    print(
        f"{title}: {outcome.passed} passed, {outcome.not_testable} not testable",
        flush=True,
    )
    return True


def read_outcome(output: str) -> Outcome | None:
    """Return what the suite counted, or None if it ended before it counted."""
    counts = re.search(r"Passed: (\d+)/\d+, (\d+) failed", output)
    if counts is None:
        return None
    return Outcome(
        passed=int(counts[1]),
        failed=int(counts[2]),
        not_testable=output.count("Error: Not testable"),
    )


async def start_proxy(listener: socket.socket, port: int) -> asyncio.Server:
    """Start a proxy of the server at a port. It adds the token to each request.

    It serves one request per connection, because it changes only the first head.
    """

    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            server_reader, server_writer = await asyncio.open_connection("127.0.0.1", port)
            server_writer.write(_add_token(head))
            await asyncio.gather(
                _relay(reader, server_writer),
                _relay(server_reader, writer),
            )

    return await asyncio.start_server(forward, sock=listener)


def _add_token(head: bytes) -> bytes:
    """Return the head of a request with the token, which closes the connection afterwards."""
    request_line, *headers = head.split(b"\r\n")
    other_headers = [header for header in headers if not header.lower().startswith(b"connection:")]
    lines = [
        request_line,
        b"Authorization: Bearer " + TOKEN.encode(),
        b"Connection: close",
        *other_headers,
    ]
    return b"\r\n".join(lines)


async def _relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy all bytes of one stream to another, and close that."""
    with suppress(ConnectionError):
        chunk = await reader.read(_CHUNK)
        while chunk:
            writer.write(chunk)
            await writer.drain()
            chunk = await reader.read(_CHUNK)
    writer.close()


if __name__ == "__main__":
    sys.exit(main())
