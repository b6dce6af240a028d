"""The official MCP inspector's command line lists and calls every tool, in both generations of the protocol.

    python bench/inspector.py [--version 2] [--folder FOLDER]

Needs Node and npm, and the network the first time: the inspector is installed into a folder of its own (a temporary one
unless `--folder` says where to keep it). It checks every answer against the tool's schema, failures too. Prints figures;
exits with 1 when anything was not as it should be.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ERAS = ("legacy", "modern")
META = {"title": "Plan", "description": "The plan", "tags": {"todo": True}}

CALLS: list[tuple[str, dict[str, Any], str]] = [
    (
        "create_memory",
        {"name": "people/Ada", "content": "Ada flies kites.", "metadata": {"tags": {"role": "pilot"}}},
        "",
    ),
    ("create_memory", {"name": "kite", "content": "Built by [[people/Ada]].\n\n## Log\n\nFirst flight."}, ""),
    ("search_memories", {"query": "who flies kites", "tags": {"role": ""}, "explain": True}, ""),
    ("read_memory", {"name": "kite", "section": "Log"}, ""),
    ("update_memory", {"name": "kite", "append": "Second flight.", "metadata": {"wind": 4}}, ""),
    ("change_tag", {"name": "kite", "tags": {"todo": True, "status": "done"}}, ""),
    ("list_memories", {"prefix": "people", "limit": 5}, ""),
    ("get_backlinks", {"name": "people/Ada"}, ""),
    ("build_context", {"query": "flight", "budget_tokens": 300}, ""),
    ("move_memory", {"name": "people/Ada", "new_name": "people/Ada Lovelace"}, ""),
    ("memory_history", {"name": "kite", "diff": True}, ""),
    ("delete_memory", {"name": "people/Ada Lovelace"}, ""),
    ("undo_change", {"name": "people/Ada Lovelace"}, ""),
    ("create_memory", {"name": "kite", "content": "other"}, "already_exists"),
    ("read_memory", {"name": "kit"}, "not_found"),
    ("update_memory", {"name": "kite", "content": "x", "if_sha256": "0" * 64}, "conflict"),
    ("search_memories", {"query": "x", "limit": 0}, "invalid"),
    ("create_memory", {"name": "../out", "content": "x"}, "invalid"),
]
"""A tool, its arguments, and the code of the failure that is to come; in an order in which each can be done."""

ORIGINAL: list[tuple[str, dict[str, Any], str]] = [
    ("create_memory", {"name": "plan", "metadata": META, "content": "The lantern."}, ""),
    ("read_memory", {"name": "plan"}, ""),
    ("update_memory", {"name": "plan", "metadata": META, "content": "The lantern is lit."}, ""),
    ("change_tag", {"name": "plan", "tags": {"todo": None, "status": "done"}}, ""),
    ("search_memories", {"query": "lantern", "tags": {"status": "done"}}, ""),
    ("get_backlinks", {"name": "plan"}, ""),
    ("list_memories", {}, ""),
    ("delete_memory", {"name": "plan"}, ""),
    ("read_memory", {"name": "plan"}, "not_found"),
]


@dataclass
class Inspector:
    """The installed command, and what came of using it."""

    program: Path
    waits: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)

    def ask(self, vault: Path, era: str, options: list[str], *words: str) -> tuple[int, dict[str, Any], str]:
        """One use of the command: its exit code, what it printed, what it complained of."""
        server = [sys.executable, "-m", "simplemem", "serve", "--vault", str(vault), *options]
        command = [str(self.program), "--cli", *server, "--protocol-era", era, *words]
        began = time.perf_counter()
        ended = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)
        self.waits.append(time.perf_counter() - began)
        try:
            return ended.returncode, json.loads(ended.stdout), ended.stderr
        except ValueError:
            return ended.returncode, {}, ended.stderr or ended.stdout

    def expect(self, holds: object, what: str, said: str = "") -> None:
        if not holds:
            self.wrong.append(what)
            print(f"WRONG  {what}: {said.strip()[:300]}")


def listing(inspector: Inspector, vault: Path, era: str, options: list[str]) -> list[str]:
    """The names of the tools, once the list is as portable as the inspector would have it."""
    code, found, said = inspector.ask(vault, era, options, "--method", "tools/list", "--strict")
    tools = found.get("tools", [])
    inspector.expect(code == 0 and tools, f"{era}: the list of tools", said)
    inspector.expect("Warning" not in said and "Error" not in said, f"{era}: the schemas are portable", said)
    size = len(json.dumps(tools, separators=(",", ":")).encode())
    print(f"{era}: {len(tools)} tools, {size} bytes, {said.count('Warning: tool')} complaints about schemas")
    return [tool["name"] for tool in tools]


def calling(
    inspector: Inspector, vault: Path, era: str, options: list[str], calls: list[tuple[str, dict[str, Any], str]]
) -> set[str]:
    """The tools that were called; each answer must be what was expected."""
    for tool, arguments, failure in calls:
        words = ["--method", "tools/call", "--tool-name", tool, "--tool-args-json", json.dumps(arguments)]
        code, found, said = inspector.ask(vault, era, options, *words)
        text = " ".join(part.get("text", "") for part in found.get("content", []))
        told = found.get("structuredContent", {}).get("error", {}).get("code", "")
        as_expected = bool(text) and bool(found.get("isError")) == bool(failure) and told == failure
        inspector.expect(as_expected, f"{era}: {tool} {failure}", said or text)
        inspector.expect(failure or code == 0, f"{era}: {tool} ends with {code}", said)
    return {tool for tool, _, _ in calls}


def around(inspector: Inspector, vault: Path, era: str) -> None:
    """Resources and prompts."""
    for words, holds in (
        (["--method", "resources/list"], lambda found: "memory://kite" in str(found)),
        (["--method", "resources/templates/list"], lambda found: "memory://{+name}" in str(found)),
        (["--method", "resources/read", "--uri", "memory://kite"], lambda found: "Second flight." in str(found)),
        (["--method", "resources/read", "--uri", "memory://changes"], lambda found: "Latest changes" in str(found)),
        (["--method", "prompts/list"], lambda found: len(found.get("prompts", [])) == 3),
        (
            ["--method", "prompts/get", "--prompt-name", "recall", "--prompt-args", "topic=flight"],
            lambda found: "First flight" in str(found),
        ),
    ):
        _, found, said = inspector.ask(vault, era, [], *words)
        inspector.expect(holds(found), f"{era}: {' '.join(words[1:])}", said)


def installed(folder: Path, version: str) -> Path | None:
    """The inspector in a folder, put there by npm if it is not yet."""
    program = folder / "node_modules" / ".bin" / "mcp-inspector"
    if not program.exists():
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            print("Node and npm are not here: the inspector cannot be tried.")
            return None
        package = f"@modelcontextprotocol/inspector@{version}"
        words = ["install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder), package]
        if subprocess.run([npm, *words], stdout=subprocess.DEVNULL, check=False).returncode != 0:
            print("npm could not install the inspector.")
            return None
    about = json.loads((folder / "node_modules/@modelcontextprotocol/inspector/package.json").read_text())
    node = subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()
    print(f"inspector {about['version']}, node {node}")
    return program


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--version", default="2", help="of the inspector (default: %(default)s)")
    parser.add_argument("--folder", type=Path, help="where it is, or is to be installed and kept")
    given = parser.parse_args()
    room = Path(tempfile.mkdtemp(prefix="simplemem-inspector-"))
    try:
        program = installed(given.folder.absolute() if given.folder else room / "npm", given.version)
        if program is None:
            return 0
        inspector = Inspector(program)
        for era in ERAS:
            for name, options, calls in (("default", [], CALLS), ("original", ["--profile", "simplemem"], ORIGINAL)):
                vault = room / f"{name}-{era}"
                vault.mkdir()
                tools = listing(inspector, vault, era, options)
                called = calling(inspector, vault, era, options, calls)
                inspector.expect(called == set(tools), f"{era}: tools not called: {set(tools) ^ called}")
            around(inspector, room / f"default-{era}", era)
        uses = len(inspector.waits)
        print(f"{uses} uses of the command, {len(inspector.wrong)} not as expected")
        print(f"a use takes {statistics.median(inspector.waits):.2f} s wall (the median), most of it the start of both")
        return 1 if inspector.wrong else 0
    finally:
        shutil.rmtree(room, ignore_errors=True)


if __name__ == "__main__":
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    sys.exit(main())
