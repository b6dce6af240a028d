"""The system calls of a real server name only files of the vault and of the program.

The calls are traced. Resources, completion and prompts are requested as well as tools.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bare_client import Bare
from canary import SECRET, Room
from hostile_names import hostile_names

_CALL = re.compile(r"^\d+ +(?P<name>\w+)\((?P<arguments>.*)$")
_PATH = re.compile(r'(?:(?:AT_FDCWD|\d+)<(?P<folder>[^>]*)>, )?"(?P<path>(?:[^"\\]|\\.)*)"')


def can_trace() -> bool:
    return (
        shutil.which("strace") is not None
        and subprocess.run(
            ["strace", "-o", "/dev/null", "true"], capture_output=True, check=False
        ).returncode
        == 0
    )


def requests(name: str) -> list[tuple[str, dict[str, object]]]:
    """Every way in which a client can name something; a tool that reads, one that writes, one that moves."""
    reference = {"type": "ref/resource", "uri": "memory://{+name}"}
    calls: dict[str, dict[str, object]] = {
        "read_memory": {"name": name}, "create_memory": {"name": name, "content": "x"},
        "move_memory": {"name": "n", "new_name": name}, "search_memories": {"query": "harbours", "prefix": name},
    }  # fmt: skip
    return [
        *(
            ("tools/call", {"name": tool, "arguments": arguments})
            for tool, arguments in calls.items()
        ),
        ("resources/read", {"uri": f"memory://{name}"}),
        ("resources/read", {"uri": name}),
        ("resources/subscribe", {"uri": f"memory://{name}"}),
        ("completion/complete", {"ref": reference, "argument": {"name": "name", "value": name}}),
        ("prompts/get", {"name": "recall", "arguments": {"topic": name}}),
    ]


def paths_named(trace: Path) -> set[str]:
    """Every path that a system call named, in full and without `..`."""
    found = set()
    for line in trace.read_text(errors="surrogateescape").split("\n"):
        called = _CALL.match(line)
        if called is None or called["name"] in ("execve", "readlink", "getcwd"):
            continue
        for named in _PATH.finditer(called["arguments"]):
            found.add(os.path.normpath(os.path.join(named["folder"] or "/", named["path"])))
    return found


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux" or not can_trace(), reason="needs strace")
def test_no_system_call_of_a_server_names_what_is_outside(tmp_path: Path) -> None:
    room, trace = Room(tmp_path), tmp_path / "trace"
    home = tmp_path / "home"
    names = [name for name in hostile_names(room.folder) if name.isprintable()][::6]
    command = ["strace", "-f", "-y", "-qq", "-s", "4096", "-e", "trace=%file", "-o", str(trace)]
    command += [sys.executable, "-m", "simplemem", "serve", "--vault", str(room.vault)]
    environment = {
        "HOME": str(home),
        "SIMPLEMEM_EMBED_PROVIDER": "none",
        "SIMPLEMEM_WRITE_DURABILITY": "fast",
    }
    with Bare(room.vault, command=command, env=environment) as bare:
        bare.initialize()
        bare.request("tools/list")
        for method, params in (request for name in names for request in requests(name)):
            said = bare.request(method, params)
            assert SECRET not in repr(said), params
        assert (
            bare.call("read_memory", name="notes/other")["isError"] is False
        )  # it works, for all that
        bare.end_input()
        bare.process.wait(30)
    beside = [
        room.folder / each
        for each in ("canary", "canary.md", "outside", "vault-evil", "vault/.git")
    ]
    named = paths_named(trace)
    assert str(room.vault / "notes/other.md") in named  # the trace shows what is read
    assert not [path for path in named if any(Path(path).is_relative_to(each) for each in beside)]
    assert not [
        path
        for path in named
        if Path(path).name in ("canary", "canary.md") and str(room.vault) not in path
    ]
    assert not named & {
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/dev/stdin",
        "/dev/full",
    }
