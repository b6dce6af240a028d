"""The end: prompt, clean, and never in the middle of a write."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bare_client import PATIENCE, Bare
from waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and flock of POSIX")


@pytest.fixture
def bare(tmp_path: Path) -> Iterator[Bare]:
    """A server that was greeted, on a vault with the note `a`."""
    (tmp_path / "a.md").write_text("one\n")
    with Bare(tmp_path) as server:
        server.initialize()
        server.call("read_memory", name="a")
        yield server


def append(bare: Bare, text: str, **meta: Any) -> int:
    """Send a change of `a`, and wait until it waits for its turn."""
    arguments = {"name": "update_memory", "arguments": {"name": "a", "append": text}}
    ident = bare.post("tools/call", arguments | meta)
    wait_until_waiting(bare)
    return ident


def wait_until_waiting(bare: Bare) -> None:
    """Until the server has read what was sent: it answers a ping sent after it, and a breath for the thread to begin."""
    bare.request("ping")
    time.sleep(0.2)


def test_it_ends_when_its_input_does(bare: Bare) -> None:
    bare.end_input()
    assert bare.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_it_ends_on_a_signal(bare: Bare, number: int) -> None:
    bare.process.send_signal(number)
    assert bare.process.wait(PATIENCE) == 0


def test_what_was_asked_before_the_input_ended_is_still_answered(bare: Bare) -> None:
    call_id = bare.post("tools/call", {"name": "read_memory", "arguments": {"name": "a"}})
    bare.end_input()
    assert bare.answer(call_id)["result"]["structuredContent"]["content"] == "one\n"
    assert bare.process.wait(PATIENCE) == 0


@pytest.mark.parametrize(("how", "requests"), [("a signal", 20), ("its input ends", 400)])
def test_it_ends_though_nobody_reads_its_answers(tmp_path: Path, how: str, requests: int) -> None:
    """Twenty answers fill the pipe; four hundred requests are more than it takes in."""
    (tmp_path / "n.md").write_text("word " * 20_000)
    with Bare(tmp_path, read=False) as bare:
        bare.greet()
        bare.read_a_little()
        for _ in range(requests):
            bare.post("tools/call", {"name": "read_memory", "arguments": {"name": "n"}})
        if how == "a signal":
            bare.process.send_signal(signal.SIGTERM)
        else:
            bare.end_input()
        assert bare.process.wait(PATIENCE) == 0


def test_it_ends_when_its_output_is_closed(tmp_path: Path) -> None:
    with Bare(tmp_path, read=False) as bare:
        assert bare.process.stdout is not None
        bare.process.stdout.close()
        with contextlib.suppress(BrokenPipeError):
            bare.post("ping")
        assert bare.process.wait(PATIENCE) == 0


def test_it_ends_in_the_middle_of_a_long_tool(tmp_path: Path) -> None:
    tool = (
        "import time\ndef long() -> Reply[None]:\n    time.sleep(3600)\n    return Reply('done')\n"
    )
    with Bare.with_tool(tmp_path, tool) as bare:
        bare.initialize()
        bare.post("tools/call", {"name": "long", "arguments": {}})
        wait_until_waiting(bare)
        bare.end_input()
        assert bare.process.wait(PATIENCE) == 0


def test_it_talks_and_ends_while_another_process_holds_the_vault(tmp_path: Path) -> None:
    """The index cannot be made while the lock is held: the tool waits for that, nothing else does."""
    (tmp_path / "a.md").write_text("here")
    with held_lock(tmp_path), Bare(tmp_path) as bare:
        bare.initialize()
        bare.request("tools/list")
        waiting = bare.post("tools/call", {"name": "read_memory", "arguments": {"name": "a"}})
        wait_until_waiting(bare)
        bare.post("resources/subscribe", {"uri": "memory://a"})
        assert "result" in bare.request("ping") and waiting not in bare.answered()
        bare.end_input()
        assert bare.process.wait(PATIENCE) == 0


@pytest.mark.parametrize("lock", ["comes free", "is never free"])
def test_a_write_that_has_begun_is_finished_before_the_end(
    bare: Bare, tmp_path: Path, lock: str
) -> None:
    with held_lock(tmp_path):
        append(bare, "two")
        bare.end_input()
        if lock == "comes free":
            time.sleep(0.5)
            assert bare.process.poll() is None
        else:
            assert bare.process.wait(PATIENCE) == 0
    assert bare.process.wait(PATIENCE) == 0
    assert (tmp_path / "a.md").read_text() == ("one\n\ntwo\n" if lock == "comes free" else "one\n")


def test_a_cancelled_write_that_had_not_its_turn_never_happens(bare: Bare, tmp_path: Path) -> None:
    with held_lock(tmp_path):
        first, second = append(bare, "first"), append(bare, "second")
        bare.notify("notifications/cancelled", {"requestId": second})
        bare.request("ping")
    assert bare.answer(first)["result"]["isError"] is False
    bare.call(
        "update_memory", name="a", append="third"
    )  # it has its turn after the one that was cancelled
    assert (
        second not in bare.answered()
        and (tmp_path / "a.md").read_text() == "one\n\nfirst\n\nthird\n"
    )


def test_cancelling_at_any_moment_leaves_a_note_whole(bare: Bare, tmp_path: Path) -> None:
    body = "line\n" * 500
    for k in range(40):
        change = {"name": "update_memory", "arguments": {"name": "a", "content": f"v{k}\n{body}"}}
        call_id = bare.post("tools/call", change)
        time.sleep(k * 0.0003)
        bare.notify("notifications/cancelled", {"requestId": call_id})
    text = bare.call("read_memory", name="a")["structuredContent"]["content"]
    assert text == "one\n" or (
        text.startswith("v") and text.endswith(body) and text.count("v") == 1
    )
    assert bare.call("update_memory", name="a", content="end")["isError"] is False
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["a.md"]


def test_what_a_killed_server_left_is_gone_when_the_next_has_said_hello(tmp_path: Path) -> None:
    for _ in range(2):
        with Bare(tmp_path) as bare:
            bare.initialize()
            bare.call("create_memory", name="n", content="x", overwrite=True)
            for k in range(20):
                bare.post(
                    "tools/call",
                    {"name": "update_memory", "arguments": {"name": "n", "content": f"text {k}"}},
                )
            bare.process.kill()
            bare.process.wait()
        (tmp_path / f".simplemem-1-{'0' * 24}.tmp").write_text("half a te")
        with Bare(tmp_path) as bare:
            bare.initialize()
            assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["n.md"]


def test_a_server_commits_what_its_client_changed_under_the_clients_name(
    git: Any, vault: Path
) -> None:
    git.commit("Begin")
    with Bare(vault, env={"SIMPLEMEM_GIT_COMMIT": "each"}) as bare:
        bare.initialize()
        bare.call("create_memory", name="tea", content="Oolong.")
        bare.call("update_memory", name="tea", append="Green.")
        assert eventually(lambda: git("rev-list", "--count", "HEAD").strip() == "3")
        versions = bare.call("memory_history", name="tea")["structuredContent"]["versions"]
        bare.end_input()
        assert bare.process.wait(PATIENCE) == 0
    assert [(version["what"], version["name"]) for version in versions] == [
        ("update", "tea"),
        ("create", "tea"),
    ]
    actor = git("log", "-1", "--format=%(trailers:key=Simplemem-Actor,valueonly)").strip()
    assert actor == versions[0]["who"] and "bare" in actor
    assert git("status", "--porcelain") == ""


def test_no_process_is_left_when_the_client_is_killed(tmp_path: Path) -> None:
    """The client is a process of its own here, with the server as its child, and dies without a word."""
    script = (
        "import subprocess, sys, time\n"
        "server = subprocess.Popen([sys.executable, '-m', 'simplemem', 'serve', '--vault', sys.argv[1]],\n"
        "                          stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(server.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    client = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE)
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    time.sleep(1.0)
    client.kill()
    client.wait()
    client.stdout.close()
    assert eventually(lambda: not is_running(pid))


def is_running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


@contextlib.contextmanager
def held_lock(vault: Path):
    """The vault's lock in another process's hands."""
    script = (
        "import sys\nfrom pathlib import Path\nfrom simplemem.vault.folder.vault import FolderVault\n"
        "with FolderVault(Path(sys.argv[1])).lock():\n"
        "    print('held', flush=True)\n    sys.stdin.read()\n"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", script, str(vault)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None and holder.stdin is not None
    holder.stdout.readline()
    try:
        yield
    finally:
        holder.stdin.close()
        holder.wait()
        holder.stdout.close()
