"""What the kernel is asked by a real server, in which order: the text is safe before it takes the note's place, and all of
it is safe before the client has its answer. Where there is no strace, `test_crash_points.py` and `test_power_cut.py` look at
the order through the calls of Python."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")

CALLS = "write,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlinkat"
ASKED: list[tuple[str, dict[str, Any]]] = [
    ("create_memory", {"name": "new/e", "content": "echo"}),
    ("update_memory", {"name": "a", "append": "more"}),
    ("change_tag", {"name": "a", "tags": {"done": True}}),
    ("move_memory", {"name": "a", "new_name": "far/b"}),
    ("undo_change", {"name": "far/b"}),
    ("delete_memory", {"name": "a"}),
]


@dataclass(frozen=True)
class Call:
    """One call: its name, and what it was given, with the paths of descriptors spelled out."""

    name: str
    said: str

    @property
    def is_answer(self) -> bool:
        return self.name == "write" and "<pipe:" in self.said and '{\\"jsonrpc\\"' in self.said

    @property
    def is_rename(self) -> bool:
        return self.name.startswith(("rename", "link"))

    @property
    def is_sync(self) -> bool:
        return self.name in ("fsync", "fdatasync")


def traced(vault: Path, log: Path) -> list[Call]:
    """Everything that concerns the vault or the answers, in order."""
    command = ["strace", "-f", "-qq", "-y", "-s", "60", "-o", str(log), "-e", f"trace={CALLS}"]
    command += [sys.executable, "-m", "simplemem", "serve", "--vault", str(vault)]
    messages = [
        {"id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "order", "version": "1"}}},
        *({"id": k, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
          for k, (tool, arguments) in enumerate(ASKED, 2)),
    ]  # fmt: skip
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    try:
        for message in messages:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
            process.stdin.flush()
            while (line := process.stdout.readline()) and json.loads(line).get("id") != message["id"]:
                pass
            if not line and "ptrace" in process.stderr.read():
                pytest.skip("tracing is not allowed here")
            assert not json.loads(line)["result"].get("isError"), line
        process.stdin.close()
        process.wait(30)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()
    return list(whole_calls(log.read_text(), str(vault)))


def whole_calls(text: str, vault: str) -> Iterator[Call]:
    """A call that was interrupted by another thread counts from where it ended."""
    begun: dict[str, str] = {}
    for line in text.split("\n"):
        found = re.match(r"(\d+) +(.*)", line)
        if found is None:
            continue
        thread, rest = found.groups()
        if rest.endswith("<unfinished ...>"):
            begun[thread] = rest.removesuffix("<unfinished ...>")
            continue
        if resumed := re.match(r"<\.\.\. \w+ resumed>(.*)", rest):
            rest = begun.pop(thread, "") + resumed[1]
        call = re.match(r"(\w+)\((.*)", rest)
        if call is None or "= -1" in rest or "/index" in call[2] or "cache" in call[2]:
            continue
        if vault in call[2] or "<pipe:" in call[2]:
            yield Call(call[1], call[2])


def test_a_server_answers_when_the_text_and_its_place_are_safe(vault: Path, tmp_path: Path) -> None:
    (vault / "a.md").write_text("---\ntags: []\n---\nalpha\n")
    (vault / "c.md").write_text("of [[a]], [[a|b]]\n")
    calls = traced(vault, tmp_path / "strace")
    ends = [k for k, call in enumerate(calls) if call.is_answer]
    assert len(ends) == len(ASKED) + 1, "each request was answered once"
    for (tool, _), begin, end in zip(ASKED, ends, ends[1:], strict=False):
        part = calls[begin + 1 : end]
        renames = [k for k, call in enumerate(part) if call.is_rename and ".md" in call.said]
        syncs = [k for k, call in enumerate(part) if call.is_sync]
        assert renames and syncs, tool
        for at in renames:
            staged = re.search(r"\.simplemem-\d+-[0-9a-f]{24}\.tmp", part[at].said)
            if staged is not None and tool != "delete_memory" and "history" not in part[at].said:
                written = [k for k, call in enumerate(part[:at]) if call.name == "write" and staged[0] in call.said]
                synced = [k for k, call in enumerate(part[:at]) if call.is_sync and staged[0] in call.said]
                assert written and synced and max(written) < min(synced) < at, (tool, part[at])
        # The background may put away something of its own at any moment: what counts is where notes got their places.
        after = [part[k].said for k in syncs if k > renames[-1]]
        assert any(said.rstrip(" =0)").endswith((f"{vault}>", "far>", "new>")) for said in after), (tool, after)
        assert any("log.jsonl>" in said for said in after), (tool, after)
