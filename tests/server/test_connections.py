"""The default install opens no connection and starts no process, whatever it is asked and whatever a note mentions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from bare_client import Bare
from watched import COMMANDS, COMMANDS_SCRIPT, seen, watcher

_LINKING = (
    "---\ncover: https://example.com/cover.png\n---\nSee https://example.com/ and ![x](https://example.com/x.png),\n"
    "[[https://example.com/page]], <img src='https://example.com/y.png'> and <https://example.com/z>.\n"
)


def run_commands(vault: Path, env: dict[str, str], *before: str, commands: tuple[str, ...] = COMMANDS) -> str:
    """Run the commands one after another in a real process; what it said in the end."""
    done = subprocess.run(
        [*before, sys.executable, "-c", COMMANDS_SCRIPT],
        input="\n".join(commands),
        env={**os.environ, "SIMPLEMEM_VAULT": str(vault), **env},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    return done.stdout + done.stderr


def serve(vault: Path, env: dict[str, str], command: list[str] | None = None) -> None:
    """A session in which every tool is used, and the background has its turn."""
    with Bare(vault, env=env, command=command) as bare:
        bare.initialize()
        bare.request("tools/list")
        bare.call("create_memory", name="notes/kite", content=_LINKING)
        bare.call("search_memories", query="what flies over https://example.com ?", explain=True)
        bare.call("read_memory", name="notes/kite")
        bare.call("list_memories")
        bare.call("get_backlinks", name="notes/kite")
        bare.call("build_context", query="https://example.com/")
        bare.call("update_memory", name="notes/kite", append="https://example.com/more")
        bare.call("change_tag", name="notes/kite", tags={"todo": True})
        bare.call("move_memory", name="notes/kite", new_name="notes/bird")
        bare.call("memory_history", diff=True)
        bare.call("delete_memory", name="notes/bird")
        bare.call("undo_change", name="notes/bird")
        bare.request("resources/list")
        bare.request("resources/read", {"uri": "memory://notes/bird"})
        bare.request("prompts/get", {"name": "recall", "arguments": {"topic": "https://example.com"}})
        bare.end_input()
        bare.process.wait(30)


def test_the_watch_sees_what_is_tried(tmp_path: Path) -> None:
    """Else the silence below would prove nothing."""
    script = (
        "import socket, subprocess, sys\n"
        "s = socket.socket()\n"
        "s.settimeout(1)\n"
        "s.connect_ex(('127.0.0.1', 9)) if sys.argv[1:] else None\n"
        "socket.getaddrinfo('localhost', 80)\n"
        "subprocess.run([sys.executable, '-c', ''])\n"
    )
    subprocess.run([sys.executable, "-c", script, "x"], env={**os.environ, **watcher(tmp_path / "w")}, check=True)
    assert {line.split(" ")[0] for line in seen(tmp_path / "w")} >= {
        "socket.connect",
        "socket.getaddrinfo",
        "subprocess.Popen",
    }


def test_no_command_connects_anywhere_or_starts_a_process(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "links.md").write_text(_LINKING)
    said = run_commands(tmp_path / "vault", watcher(tmp_path / "w"))
    assert "failed" not in said
    assert "people/Ada" in said
    assert seen(tmp_path / "w") == []


def test_no_server_connects_anywhere_or_starts_a_process(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    serve(tmp_path / "vault", watcher(tmp_path / "w"))
    assert (tmp_path / "vault" / "notes" / "bird.md").exists()
    assert seen(tmp_path / "w") == []


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not on this machine")
def test_the_kernel_is_asked_for_no_connection_either(tmp_path: Path) -> None:
    """What is not written in Python is seen by the kernel alone."""
    (tmp_path / "vault").mkdir()
    trace = ["strace", "-f", "--seccomp-bpf", "-qq", "-o", str(tmp_path / "trace"), "-e", "trace=network"]
    probe = subprocess.run([*trace, "true"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("strace may not trace here")
    commands = ("new|tea|--content|Oolong.", "index", "search|oolong", "context|oolong?")
    run_commands(tmp_path / "vault", {}, *trace, commands=commands)
    first = (tmp_path / "trace").read_text()
    serve(
        tmp_path / "vault",
        {},
        [*trace, sys.executable, "-m", "simplemem", "serve", "--vault", str(tmp_path / "vault")],
    )
    said = first + (tmp_path / "trace").read_text()
    assert "socketpair(AF_UNIX" in said
    assert [line for line in said.split("\n") if "AF_INET" in line or " connect(" in line or "bind(" in line] == []
