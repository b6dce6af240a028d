"""doctor as a process: it asks in a terminal, and whoever ends it halfway finds all of it done or nothing."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from simplemem.config import Settings
from simplemem.store import EnhancedStore

pytestmark = pytest.mark.usefixtures("words_only")

PROGRAM = [sys.executable, "-m", "simplemem"]
PLAIN = Settings.model_validate({"embed": {"provider": "none"}})
MANY = 80
BEFORE, AFTER = b"See [[team/Ada]].\n", b"See [[people/Ada]].\n"


@pytest.fixture
def many(vault: Path) -> Path:
    """A vault with many notes to mend."""
    (vault / "people/Ada.md").write_text("Ada flies balloons.\n")
    for number in range(MANY):
        (vault / f"n{number:03}.md").write_bytes(BEFORE)
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
    return vault


def mended(vault: Path) -> int:
    """How many notes are as mending leaves them; the others are as they were."""
    texts = [(vault / f"n{number:03}.md").read_bytes() for number in range(MANY)]
    assert set(texts) <= {BEFORE, AFTER}
    return texts.count(AFTER)


def answered(answer: bytes, *args: str) -> tuple[bytes, int]:
    """What a command prints in a terminal in which its question is answered, and its exit code."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.update({"TERM": "xterm-256color", "COLUMNS": "100"})
        os.execv(PROGRAM[0], [*PROGRAM, *args])
    shown, asked = b"", False
    while True:
        try:
            data = os.read(terminal, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not data:
            break
        shown += data
        if not asked and b"[y/N]" in shown:
            asked = True
            os.write(terminal, answer + b"\n")
    os.close(terminal)
    return shown, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_in_a_terminal_it_shows_the_diff_and_asks(vault: Path) -> None:
    (vault / "people/Ada.md").write_text("Ada flies balloons.\n")
    (vault / "a.md").write_bytes(BEFORE)
    shown, code = answered(b"n", "doctor", "--fix", "--vault", str(vault))
    assert code == 1 and b"[[people/Ada]]" in shown and b"Change 1 file in one step? [y/N]" in shown
    assert (vault / "a.md").read_bytes() == BEFORE
    shown, code = answered(b"y", "doctor", "--fix", "--vault", str(vault))
    assert code == 0 and b"undo with" in shown
    assert (vault / "a.md").read_bytes() == AFTER


def a_plan_lies_there(vault: Path) -> bool:
    return (vault / ".simplemem/journal/plan").exists()


def the_first_is_mended(vault: Path) -> bool:
    return (vault / "n000.md").read_bytes() == AFTER


def the_last_is_mended(vault: Path) -> bool:
    return (vault / f"n{MANY - 1:03}.md").read_bytes() == AFTER


@pytest.mark.parametrize(
    ("ending", "moment"),
    [
        (signal.SIGKILL, a_plan_lies_there),
        (signal.SIGKILL, the_first_is_mended),
        (signal.SIGKILL, the_last_is_mended),
        (signal.SIGINT, a_plan_lies_there),
    ],
)
def test_ended_halfway_all_is_mended_or_nothing(
    many: Path, ending: signal.Signals, moment: Callable[[Path], bool]
) -> None:
    command = [*PROGRAM, "doctor", "--fix", "--yes", "--only", "links", "--vault", str(many)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as mending:
        deadline = time.monotonic() + 60
        while not moment(many) and mending.poll() is None and time.monotonic() < deadline:
            time.sleep(0.0005)
        mending.send_signal(ending)
        assert mending.stderr is not None and b"Traceback" not in mending.stderr.read()
    with EnhancedStore(many, PLAIN) as store:
        store.sync()
        assert mended(many) in (0, MANY)
        assert [finding for finding in store.doctor() if finding.level == "error"] == []
        if ending == signal.SIGINT:  # which waits until what was begun is done
            assert mended(many) == MANY
        if mended(many):
            store.undo("v000001")
            assert mended(many) == 0
        assert store.vault.strays() == []
    left = [path.name for path in many.rglob("*") if path.is_file() and ".simplemem" not in path.parts]
    assert all(name.endswith(".md") for name in left)


def test_ended_while_it_compares_it_leaves_no_second_index(many: Path) -> None:
    beside = many / ".simplemem"
    for number in range(200):
        (many / f"long{number:03}.md").write_text("Words to index. " * 200)

    def compares() -> bool:
        return any(log.stat().st_size > 200_000 for log in beside.glob("index.db.new-*-wal"))

    with subprocess.Popen([*PROGRAM, "doctor", "--vault", str(many)], stderr=subprocess.PIPE) as looking:
        deadline = time.monotonic() + 60
        while not compares() and looking.poll() is None and time.monotonic() < deadline:
            time.sleep(0.0005)
        looking.send_signal(signal.SIGINT)
        assert looking.stderr is not None and b"Traceback" not in looking.stderr.read()
    assert list(beside.glob("index.db.new-*")) == []
    ran = subprocess.run([*PROGRAM, "doctor", "--json", "--vault", str(many)], capture_output=True, timeout=60)
    assert {finding["check"] for finding in json.loads(ran.stdout)["findings"]} == {"links"}
