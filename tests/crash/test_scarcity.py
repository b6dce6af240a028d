"""A disk that is full or cannot be written, no more descriptors, little memory: said plainly, nothing half done, and
everything goes on when it passes. The index is not thrown away for what is not its fault."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import mounts
import pytest
from crash_harness import in_child

from simplemem.errors import ReadOnly, SimplememError
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

if sys.platform == "win32":
    pytest.skip("forks, and sets limits", allow_module_level=True)

import resource

PLAIN = Settings.model_validate({"embed": {"provider": "none"}})
MOUNTS = pytest.mark.skipif(
    not mounts.may_mount(), reason="needs Linux and root, for a mount of its own"
)


def plums(store: EnhancedStore) -> set[str]:
    return {hit.name for hit in store.search("plum", mode="text", limit=100).hits}


def files(vault: Path) -> dict[str, bytes]:
    """Every file outside our own folder."""
    found = (path for path in vault.rglob("*") if path.is_file() and ".simplemem" not in path.parts)
    return {path.relative_to(vault).as_posix(): path.read_bytes() for path in found}


def identity(store: EnhancedStore) -> int:
    return store._parts.index.path.stat().st_ino


def in_a_thread(ask: Callable[[], Any]) -> Any:
    """As the next request of a server: with a connection to the index that is yet to be opened."""
    answers: list[Any] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            answers.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return answers[0]


def test_a_file_that_may_not_grow_is_refused_and_the_notes_there_are_served(vault: Path) -> None:
    """The same without root: no file may be larger than this, the index among them."""

    def act() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        with EnhancedStore(vault, PLAIN) as store:
            store.sync()
            store.create("first", "plum of the first hour")
            before, room = identity(store), resource.getrlimit(resource.RLIMIT_FSIZE)
            size = max(path.stat().st_size for path in (vault / ".simplemem").glob("index.db*"))
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50_000, room[1]))
            answered: set[str] = {"first"}
            told: list[str] = []
            for k in range(25):
                try:
                    told += store.create(
                        f"n{k}", f"plum {k}\n" + f"word{k} other{k}\n\n" * 100
                    ).warnings
                    answered.add(f"n{k}")
                except SimplememError as error:
                    told.append(error.message)
            assert any("not yet searchable" in each for each in told), (
                "the index was too large in the end"
            )
            assert (
                store.state().state == "partial"
                and "Check that the disk is not full" in store.state().reason
            )
            assert set(files(vault)) == {f"{name}.md" for name in answered}
            assert store.read("first").content.strip() == "plum of the first hour"
            resource.setrlimit(resource.RLIMIT_FSIZE, room)
            store.sync()
            assert plums(store) == answered and store.state().state == "ready"
            assert identity(store) == before, "a full disk is no reason to throw the index away"

    in_child(act)


def test_without_descriptors_it_says_so_and_goes_on_when_there_are_some(vault: Path) -> None:
    def act() -> list[str]:
        with EnhancedStore(vault, PLAIN) as store:
            for k in range(5):
                store.create(f"n{k}", f"plum {k} [[n{(k + 1) % 5}]]")
            store.sync()
            before = identity(store)
            resource.setrlimit(
                resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1])
            )
            asked: list[Callable[[], Any]] = [
                lambda: plums(store),
                lambda: store.read("n1"),
                lambda: store.list(),
                lambda: store.create("more", "plum"),
                lambda: store.update("n1", append="line"),
                lambda: store.move("n2", "elsewhere/n2"),
                lambda: store.delete("n3"),
                lambda: store.sync(),
                lambda: store.history(),
            ]
            unexpected = []
            for spare in (*range(10), 20, 40, *reversed(range(10)), 20, 40):
                held = []
                with contextlib.suppress(OSError):
                    while True:
                        held.append(os.open("/dev/null", os.O_RDONLY))
                for fd in held[:spare]:
                    os.close(fd)
                for ask in asked:
                    said = in_a_thread(ask)
                    if isinstance(said, BaseException) and not isinstance(said, SimplememError):
                        unexpected.append(f"{spare} spare: {said!r}")
                for fd in held[spare:]:
                    os.close(fd)
            store.sync()
            assert (
                plums(store)
                == {path.removesuffix(".md") for path in files(vault)}
                >= {"n0", "n1", "more"}
            )
            assert store.read("n1").content.count("line") >= 1
            assert identity(store) == before, "no descriptors are no reason to throw the index away"
            assert [finding for finding in store.doctor() if finding.level == "error"] == []
            return unexpected

    assert in_child(act) == []


@MOUNTS
def test_a_disk_mounted_for_reading_only_is_searched_and_never_written(vault: Path) -> None:
    for k in range(3):
        (vault / f"n{k}.md").write_text(f"plum {k} [[n0]]\n")
    before = files(vault)

    def act() -> None:
        with EnhancedStore(vault, PLAIN) as store:
            store.sync()
            assert plums(store) == {"n0", "n1", "n2"}
            for write in (
                lambda: store.create("m", "x"),
                lambda: store.update("n0", append="x"),
                lambda: store.move("n0", "m"),
                lambda: store.delete("n0"),
                lambda: store.change_tags("n0", {"a": True}),
                lambda: store.undo("n0"),
            ):
                with pytest.raises(ReadOnly):
                    write()
        assert files(vault) == before and not (vault / ".simplemem").exists()

    mounts.read_only(vault, act)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the size of a process is told by /proc")
def test_a_large_vault_is_indexed_in_little_memory(vault: Path) -> None:
    """8 MB of notes, one of them of 4 MB, in 100 MB more than a process with the index's library needs."""
    for k in range(200):
        (vault / f"n{k}.md").write_text(f"plum {k}\n\n" + f"word{k} other{k} of the text.\n" * 700)
    (vault / "large.md").write_text("plum\n\n" + "A line of a very long note.\n" * 150_000)

    def act() -> int:
        import_module("numpy")
        with EnhancedStore(vault, PLAIN) as store:
            with open("/proc/self/status") as status:
                size = next(int(line.split()[1]) for line in status if line.startswith("VmSize"))
            most = (size + 100_000) * 1024
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            store.sync()
            assert len(store.list(limit=1000).items) == 201
            return len(plums(store))

    assert in_child(act) == 100, "as many as were asked for, and no more"
