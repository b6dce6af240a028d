"""Several servers on one vault: one of them looks after it, all of them answer."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bare_client import Bare
from waiting import eventually

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

WORDS = {"SIMPLEMEM_EMBED_PROVIDER": "none"}


@contextlib.contextmanager
def servers(vault: Path, count: int) -> Iterator[list[Bare]]:
    with contextlib.ExitStack() as open_:
        found = [open_.enter_context(Bare(vault, env=WORDS)) for _ in range(count)]
        for bare in found:
            bare.initialize()
            bare.request("tools/list")
        yield found


def listens(bare: Bare) -> bool:
    """Whether this server has an inotify instance: it watches the vault."""
    found = set()
    for link in Path(f"/proc/{bare.process.pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            found.add(os.readlink(link))
    return "anon_inode:inotify" in found


def finds(bare: Bare, word: str) -> bool:
    """Whether a search for the word has a hit: it can have none before the note is in the index."""
    return bool(bare.call("search_memories", query=word, mode="text")["structuredContent"]["hits"])


def test_of_several_servers_exactly_one_watches(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("plum")
    with servers(tmp_path, 3) as all_:
        assert eventually(lambda: sum(map(listens, all_)) == 1)
        assert eventually(lambda: all(finds(bare, "plum") for bare in all_))
        (tmp_path / "b.md").write_text("by hand: quince")
        assert eventually(lambda: all(finds(bare, "quince") for bare in all_))
        all_[-1].call("create_memory", name="c", content="fig")
        assert all(finds(bare, "fig") for bare in all_)  # at once, whoever wrote it
        assert sum(map(listens, all_)) == 1


def test_a_leader_that_is_killed_is_followed_by_exactly_one_until_none_is_left(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.md").write_text("plum")
    with servers(tmp_path, 3) as all_:
        assert eventually(lambda: sum(map(listens, all_)) == 1)
        for number in range(2):
            leader = next(bare for bare in all_ if listens(bare))
            all_.remove(leader)
            leader.process.kill()
            (tmp_path / f"late{number}.md").write_text(
                f"byhand{number}"
            )  # nobody leads at this moment
            assert eventually(lambda n=number: all(finds(bare, f"byhand{n}") for bare in all_))
            assert eventually(lambda: sum(map(listens, all_)) == 1)


def test_a_server_whose_answers_nobody_reads_does_not_spin(tmp_path: Path) -> None:
    """The pipe is full and stays full."""
    (tmp_path / "n.md").write_text("word " * 20_000)
    with Bare(tmp_path, read=False, env=WORDS) as bare:
        bare.greet()
        bare.read_a_little()
        bare.notify("notifications/initialized")
        for _ in range(30):
            bare.post("tools/call", {"name": "read_memory", "arguments": {"name": "n"}})
        assert eventually(lambda: resting(bare))


def resting(bare: Bare) -> bool:
    """Whether it used less than a twentieth of a processor over two seconds."""
    cpu_before = cpu(bare)
    time.sleep(2.0)
    return cpu(bare) - cpu_before < 0.1


def cpu(bare: Bare) -> float:
    fields = Path(f"/proc/{bare.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
