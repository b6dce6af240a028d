"""The official TypeScript client (Node 18) and the official conformance suite (Node 22) against servers of their own.

The suite knows no token, so a small proxy adds it. Run are the scenarios of both revisions that need no server made for
the suite, that is, no tools, prompts or resources of its own.
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
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import PIPE, STDOUT

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from bench.network import TOKEN, Server
from simplemem.profiles.registry import built_in_profiles
from tests.hostile.tool_calls import HARMLESS, put_back

_SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"  # the first that knows 2026-07-28
_BOTH = [
    "tools-list",
    "resources-list",
    "prompts-list",
    "completion-complete",
    "server-sse-multiple-streams",
]
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


async def _check(suite: Sequence[str], rounds: Mapping[str, Sequence[str]], room: Path) -> int:
    """How many scenarios failed."""
    failed = 0
    with socket.create_server(("127.0.0.1", 0)) as door:
        seen = door.getsockname()[1]
        names = [
            part
            for host in ("localhost", "127.0.0.1")
            for part in ("--allow-host", f"{host}:{seen}")
        ]
        server = Server("--vault", room / "vault", *names)

        async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            """One request a connection, with the token added to its head."""
            with suppress(asyncio.IncompleteReadError):
                first, *rest = (await reader.readuntil(b"\r\n\r\n")).split(b"\r\n")
                kept = [each for each in rest if not each.lower().startswith(b"connection:")]
                there, back = await asyncio.open_connection("127.0.0.1", server.port)
                added = [b"Authorization: Bearer " + TOKEN.encode(), b"Connection: close"]
                back.write(b"\r\n".join([first, *added, *kept]))
                await asyncio.gather(_relay(reader, back), _relay(there, writer))

        proxy = await asyncio.start_server(pass_on, sock=door)
        for revision, scenario in (
            (revision, each) for revision, names in rounds.items() for each in names
        ):
            about = [
                "--url",
                f"http://localhost:{seen}/mcp",
                "--scenario",
                scenario,
                "--spec-version",
                revision,
            ]
            asked = await asyncio.create_subprocess_exec(
                *suite, "server", *about, stdout=PIPE, stderr=STDOUT
            )
            said, _ = await asked.communicate()
            counted = re.search(rb"Passed: (\d+)/\d+, (\d+) failed", said)
            without = said.count(
                b"Error: Not testable"
            )  # for want of a tool that the suite would have
            if is_failure := counted is None or int(counted[2]) > without:
                print(said.decode())
            else:
                print(
                    f"{revision} {scenario}: {int(counted[1])} passed, {without} not testable",
                    flush=True,
                )
            failed += is_failure
        proxy.close()
        server.end()
    return failed


def _call_all(room: Path) -> int:
    """How many faces have a tool that the TypeScript client cannot call."""
    install = ["npm", "install", "--silent", "--prefix", str(room), "@modelcontextprotocol/sdk@1"]
    if subprocess.run(install, check=False, capture_output=True).returncode:
        print("not run: npm cannot get the TypeScript client")
        return 0
    shutil.copy(Path(__file__).with_name("client.mjs"), room)
    failed = 0
    for face in built_in_profiles():
        (vault := room / face).mkdir()
        put_back(vault)
        server = Server("--vault", vault, "--profile", face)
        address = f"http://127.0.0.1:{server.port}/mcp"
        command = ["node", str(room / "client.mjs"), address, TOKEN, json.dumps(HARMLESS)]
        print(f"TypeScript client, {face}: ", end="", flush=True)
        failed += subprocess.run(command, check=False).returncode != 0
        server.end()
    return failed


def _node() -> int:
    """The version of Node there is, 0 without it."""
    if shutil.which("npx") is None:
        return 0
    said = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout
    return int(said.strip().lstrip("v").split(".")[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", nargs="+", help="how the suite is started, instead of by npx")
    asked = parser.parse_args()
    failed = 0
    os.environ["SIMPLEMEM_EMBED_PROVIDER"] = "none"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as room:
        if _node() >= 18:
            failed += _call_all(Path(room))
        if asked.suite or _node() >= 22:
            failed += asyncio.run(
                _check(asked.suite or ["npx", "--yes", _SUITE], _SCENARIOS, Path(room))
            )
        else:
            print("not run: the conformance suite needs Node 22 and npx")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
