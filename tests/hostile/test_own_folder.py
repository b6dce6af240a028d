"""Nothing is read or written through links in `.simplemem`.

A vault that was cloned, unpacked or shared contains that folder, which anybody may have made.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
from pathlib import Path

import pytest
from crash_harness import in_child

from simplemem.errors import SimplememError
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="links need rights there")

PLAIN = Settings.model_validate({"embed": {"provider": "none"}})
FILES = [
    "index.db", "index.db-wal", "index.db-shm", "index.db-journal", "index.leader", "index.embedding", "lock", ".gitignore",
    "journal", "history", "trash", "servers", "history/log.jsonl",
]  # fmt: skip


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "text").write_text("somebody's text\n" * 100)
    (folder / "empty").write_bytes(b"")
    with contextlib.closing(sqlite3.connect(folder / "database")) as other:
        other.execute("CREATE TABLE theirs (a)")
        other.commit()
    (folder / "folder").mkdir()
    return folder


def everything(folder: Path) -> dict[Path, object]:
    times = {path: (path.stat().st_mtime_ns, path.stat().st_mode) for path in folder.rglob("*")}
    return {path: (*known, path.is_file() and path.read_bytes()) for path, known in times.items()}


def use(vault: Path) -> None:
    """All that writes: opening, indexing, a change, a delete, an undo. Each may be refused."""
    with contextlib.suppress(SimplememError), EnhancedStore(vault, PLAIN) as store:
        for work in (
            store.sync, lambda: store.create("new", "text"), lambda: store.update("n", append="more"),
            lambda: store.delete("new"), lambda: store.undo("new"), store.doctor,
        ):  # fmt: skip
            with contextlib.suppress(SimplememError):
                work()
        store.start()
        store.wait_until_settled(5)


@pytest.mark.parametrize("name", FILES)
def test_nothing_is_written_through_a_link_in_our_own_folder(
    vault: Path, outside: Path, name: str
) -> None:
    (vault / "n.md").write_text("plum")
    before = everything(outside)
    for target in ("text", "empty", "database", "folder", "not-there"):
        place = vault / ".simplemem" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir() and not place.is_symlink():
            place.rename(vault.parent / f"away-{target}")
        place.unlink(missing_ok=True)
        place.symlink_to(outside / target)
        use(vault)
        assert everything(outside) == before, target
        place.unlink(missing_ok=True)


def test_our_folder_itself_is_never_a_link(vault: Path, outside: Path) -> None:
    (vault / "n.md").write_text("plum")
    (vault / ".simplemem").symlink_to(outside)
    before = everything(outside)
    use(vault)
    assert everything(outside) == before


@pytest.mark.parametrize("read_only", [False, True])
def test_the_index_of_another_vault_is_not_taken_for_ours(
    vault: Path, tmp_path: Path, read_only: bool
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "theirs.md").write_text("plum")
    with EnhancedStore(other, PLAIN) as store:
        store.sync()
    (vault / "n.md").write_text("plum")
    (vault / ".simplemem").symlink_to("../other/.simplemem")
    before = everything(other)
    with (
        contextlib.suppress(SimplememError),
        EnhancedStore(vault, PLAIN, read_only=read_only) as store,
    ):
        store.sync()
        assert [hit.name for hit in store.search("plum").hits] == ["n"]
    assert everything(other) == before


@pytest.mark.parametrize("name", [*FILES, "config.toml", "drafts", "imports.jsonl"])
def test_a_pipe_in_our_own_folder_keeps_nobody_waiting(vault: Path, name: str) -> None:
    (vault / "n.md").write_text("plum")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
    place = vault / ".simplemem" / name
    if place.exists():
        place.rename(vault.parent / "away")
    place.parent.mkdir(exist_ok=True)
    os.mkfifo(place)

    def use_within_a_minute() -> None:
        signal.alarm(60)  # ends a process that waits at the pipe
        use(vault)

    in_child(use_within_a_minute)
    assert (vault / "n.md").read_text().startswith("plum")
