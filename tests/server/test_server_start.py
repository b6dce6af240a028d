"""The beginning: which vault, which tools, which settings; and answers while the vault is still being read."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bare_client import Bare

META = {"title": "t", "description": "", "tags": {}}
ORIGINAL = ["create_memory", "read_memory", "update_memory", "delete_memory", "list_memories", "search_memories"]


def serving(*options: str) -> list[str]:
    return [sys.executable, "-m", "simplemem", "serve", *options]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to start in. The tests' own Python path goes with it."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([os.getcwd(), os.environ.get("PYTHONPATH", "")]))
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def test_the_profile_of_the_original_works_as_that_did(here: Path) -> None:
    """Beside its files: a vault called .memories, config.toml, variables."""
    (here / "config.toml").write_text("max_memory_length = 20\n[voyage_ai]\napi_key = 'k'\n")
    long = "this is longer than twenty"
    with Bare(here, command=serving("--profile", "simplemem"), cwd=here) as bare:
        assert "create memories as you learn" in bare.initialize()["instructions"]
        assert [tool["name"] for tool in bare.request("tools/list")["result"]["tools"]][:6] == ORIGINAL
        made = bare.call("create_memory", name="a", metadata=META, content="short enough")
        assert made["content"][0]["text"] == "Memory 'a' was created." and "structuredContent" not in made
        refused = bare.call("create_memory", name="b", metadata=META, content=long)
        assert refused["isError"] is True and refused["content"][0]["text"].startswith("too_long: ")
    assert (here / ".memories" / "a.md").is_file()
    env = {"SIMPLEMEM_MAX_MEMORY_LENGTH": "40", "SIMPLEMEM_PROFILE": "simplemem"}
    with Bare(here, command=serving("--config", "config.toml"), cwd=here, env=env) as bare:
        bare.initialize()
        assert not bare.call("create_memory", name="b", metadata=META, content=long)["isError"]
        assert bare.call("create_memory", name="c", metadata=META, content="forty " * 9)["isError"]
        listed = bare.call("list_memories")["content"][0]["text"]
        assert "## a\n" in listed and "## b\n" in listed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--profile", "nobody"], "simplemem"),
        (["--tools", "original"], "Two toolsets have a tool"),
        (["--profile", "simplemem", "--config", "x.toml"], "x.toml"),
    ],
)
def test_a_wrong_choice_is_told_before_anything_begins(here: Path, options: list[str], said: str) -> None:
    ended = subprocess.run(serving(*options), cwd=here, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert ended.returncode == 1
    assert said in ended.stderr
    assert ended.stdout == ""
    assert os.listdir(here) == []


def test_searches_are_answered_while_the_vault_is_read_for_the_first_time(
    vault: Path, write: Callable[..., Path]
) -> None:
    for k in range(2000):
        write(
            f"n{k}.md", f"---\ntags: [x]\n---\n# Note {k}\n\nThe lantern {k}, see [[n{k + 1}]].\n\n## More\n\nHarbour."
        )
    with Bare(vault) as bare:
        bare.initialize()
        bare.request("tools/list")
        time.sleep(0.3)  # the reading has begun
        answers = [bare.call("search_memories", query="lantern 7 harbour") for _ in range(5)]
    for answer in answers:
        assert answer["isError"] is False, answer["content"]
    assert answers[0]["structuredContent"]["index"]["state"] == "indexing"
    assert "still being built" in answers[0]["content"][0]["text"]


def test_the_log_says_what_happened_and_never_what_a_note_says(vault: Path, write: Callable[..., Path]) -> None:
    """At the loudest level, with failures of every sort. The note cannot be opened: its error would quote its name."""
    write("a.md", "---\ntitle: quokka\n---\nThe wombat is here. [[kangaroo]]")
    write("broken.md", "---\ntitle: [platypus\n---\nText.")
    with Bare(vault, "--log-level", "debug") as bare:
        bare.initialize()
        bare.request("tools/list")
        for _ in range(2):
            bare.call("search_memories", query="echidna")
            bare.call("create_memory", name="b", content="A numbat.", overwrite=True)
            bare.call("update_memory", name="b", content="dingo", if_sha256="0" * 64)
            bare.call("change_tag", name="broken", tags={"bilby": True})
            bare.call("read_memory", name="a")
            bare.send(b'{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":5,"arguments":"potoroo"}}\n')
            bare.request("resources/read", {"uri": "memory://bandicoot"})
        bare.end_input()
        bare.process.wait(10)
    said = bare.said.decode()
    for word in (
        "quokka", "wombat", "kangaroo", "platypus", "echidna", "numbat", "dingo", "bilby", "potoroo", "bandicoot"
    ):  # fmt: skip
        assert word not in said


def test_a_failure_inside_is_told_in_the_log_without_its_message(vault: Path) -> None:
    """A tool of ours that fails in a way nobody thought of, in a server that is otherwise the real one."""
    tool = (
        "import threading\n"
        "def helper():\n"
        "    raise RuntimeError('the diary says')\n"
        "def fails() -> Reply[None]:\n"
        "    thread = threading.Thread(target=helper, name='helper')\n"
        "    thread.start()\n"
        "    thread.join()\n"
        "    helper()\n"
    )
    with Bare.with_tool(vault, tool) as bare:
        bare.initialize()
        answer = bare.call("fails")
        assert answer["structuredContent"]["error"]["code"] == "unavailable"
        assert "RuntimeError" in answer["content"][0]["text"]
        bare.end_input()
        bare.process.wait(10)
    said = bare.said.decode()
    assert "the tool fails failed [RuntimeError at " in said
    assert "the thread helper failed [RuntimeError at " in said
    assert "diary" not in said + json.dumps(answer)
