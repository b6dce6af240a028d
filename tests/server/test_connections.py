"""The default install opens no connection and starts no process, whatever it is asked and whatever a note mentions."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from bare_client import Bare
from watched import run_commands, watched_paths, watcher

COMMANDS = [
    "init", "new|people/Ada|--content|Ada flies balloons.",
    "new|tea|--content|Oolong from [[people/Ada]], see https://example.com/a.png ![x](https://example.com/b.png)",
    "index", "index|--rebuild", "search|who flies balloons?|--explain", "search|balloons|--mode|semantic|--json", "list",
    "show|tea", "backlinks|people/Ada", "context|what do we know of balloons?", "tag|tea|todo", "move|tea|drinks/tea",
    "history", "undo|drinks/tea", "rm|tea", "stats|--json", "doctor|--json", "inspect|--json", "config|--json", "eval|init",
]  # fmt: skip
_LINKING = (
    "---\ncover: https://example.com/cover.png\n---\nSee https://example.com/ and ![x](https://example.com/x.png),\n"
    "[[https://example.com/page]], <img src='https://example.com/y.png'> and <https://example.com/z>.\n"
)


def serve(vault: Path, env: dict[str, str], command: list[str] | None = None) -> None:
    """A session in which every tool is used, and the background has its turn."""
    with Bare(vault, env=env, command=command) as bare:
        bare.initialize()
        bare.request("tools/list")
        kite, bird = {"name": "notes/kite"}, {"name": "notes/bird"}
        for tool, arguments in (
            ("create_memory", kite | {"content": _LINKING}), ("read_memory", kite), ("list_memories", {}),
            ("search_memories", {"query": "what flies over https://example.com ?", "explain": True}),
            ("get_backlinks", kite), ("build_context", {"query": "https://example.com/"}),
            ("update_memory", kite | {"append": "https://example.com/more"}), ("change_tag", kite | {"tags": "todo"}),
            ("move_memory", kite | {"new_name": "notes/bird"}), ("memory_history", {"diff": True}),
            ("delete_memory", bird), ("undo_change", bird),
        ):  # fmt: skip
            assert not bare.call(tool, **arguments)["isError"]
        bare.request("resources/list")
        bare.request("resources/read", {"uri": "memory://notes/bird"})
        bare.request(
            "prompts/get", {"name": "recall", "arguments": {"topic": "https://example.com"}}
        )
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
    subprocess.run(
        [sys.executable, "-c", script, "x"],
        env={**os.environ, **watcher(tmp_path / "w")},
        check=True,
    )
    assert {line.split(" ")[0] for line in watched_paths(tmp_path / "w")} >= {
        "socket.connect",
        "socket.getaddrinfo",
        "subprocess.Popen",
    }


def test_no_command_connects_anywhere_or_starts_a_process(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "links.md").write_text(_LINKING)
    said = run_commands(
        COMMANDS,
        {**os.environ, "SIMPLEMEM_VAULT": str(tmp_path / "vault"), **watcher(tmp_path / "w")},
    )
    assert "failed" not in said and "people/Ada" in said
    assert watched_paths(tmp_path / "w") == []


def test_no_server_connects_anywhere_or_starts_a_process(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    serve(tmp_path / "vault", watcher(tmp_path / "w"))
    assert (tmp_path / "vault" / "notes" / "bird.md").exists() and watched_paths(
        tmp_path / "w"
    ) == []
