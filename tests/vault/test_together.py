"""Many at once on the same notes: our own processes and threads, and editors that know nothing of us."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from limited_disk import limit_disk

from simplemem.errors import AlreadyExists, Conflict
from simplemem.vault.folder import journal
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.journal import FileOperation
from simplemem.vault.folder.vault import FolderVault
from simplemem.vault.values import Author, FileChange, sha256

CHANGE = Author("test")


def save_by_rename(path: Path, data: bytes) -> None:
    path.with_name(path.name + "~").write_bytes(data)
    os.replace(path.with_name(path.name + "~"), path)


def save_in_place(path: Path, data: bytes) -> None:
    with path.open("r+b") as file:
        file.truncate()
        file.write(data)


APPEND = """
import json, random, sys
from pathlib import Path
from simplemem.errors import AlreadyExists, Conflict
from simplemem.vault.folder import disk
from simplemem.vault.values import Author
from simplemem.vault.folder.vault import FolderVault
root, me, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
if sys.argv[4] == "links":
    def refuse(*_):
        raise OSError(22, "refused")
    disk.exchange = disk.rename_new = refuse
vault, change = FolderVault(root), Author("test", me)
luck, said, won = random.Random(me), [], []
for k in range(count):
    note, line = f"n{luck.randrange(4)}.md", f"{me}.{k}\\n".encode()
    while True:
        there = vault.read(note)
        try:
            vault.replace(note, there.data + line, there.sha256, change)
        except Conflict:
            continue
        said.append((note, line.decode()))
        break
    if k % 10 == 0:
        try:
            vault.create(f"race{k}.md", me.encode(), change)
            won.append(k)
        except AlreadyExists:
            pass
print(json.dumps([said, won]))
"""


@pytest.mark.parametrize("kind", ["exchange", pytest.param("links", marks=pytest.mark.slow)])
def test_eight_processes_append_and_no_acknowledged_line_is_lost(vault: Path, kind: str) -> None:
    count = 50 if kind == "exchange" else 15
    for k in range(4):
        (vault / f"n{k}.md").write_bytes(b"start\n")
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", APPEND, str(vault), f"p{k}", str(count), kind],
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(8)
    ]
    answers = [json.loads(process.communicate()[0]) for process in processes]
    assert all(process.returncode == 0 for process in processes)
    said = [tuple(pair) for answer in answers for pair in answer[0]]
    assert len(said) == 8 * count
    texts = {
        f"n{k}.md": (vault / f"n{k}.md").read_text().splitlines(keepends=True) for k in range(4)
    }
    assert all(texts[note].count(line) == 1 for note, line in said)
    assert sum(map(len, texts.values())) == len(said) + 4
    wins = [k for answer in answers for k in answer[1]]
    assert sorted(wins) == list(range(0, count, 10)), "of each race to create, one won"
    opened = FolderVault(vault)
    assert not list(vault.rglob(".simplemem-*.tmp")) and opened.recover()[0] == 0
    versions = list(opened.history.log.backwards())[:10_000]
    assert len(versions) == len({v.id for v in versions}) == len(said) + len(wins)


@pytest.mark.parametrize("kind", ["exchange", "links"])
@pytest.mark.parametrize("save", [save_by_rename, save_in_place], ids=["by rename", "in place"])
def test_a_save_at_the_very_moment_of_the_swap_is_put_back(
    vault: Path, monkeypatch: pytest.MonkeyPatch, kind: str, save: Callable[[Path, bytes], None]
) -> None:
    """The window between our last look and our rename, made as wide as can be."""
    (vault / "n.md").write_bytes(b"one")
    limit_disk(monkeypatch, kind)
    opened = FolderVault(vault)
    real = journal.Journal._apply

    def apply(self: journal.Journal, here: DirHandles, operation: FileOperation) -> None:
        save(vault / "n.md", b"theirs")
        real(self, here, operation)

    monkeypatch.setattr(journal.Journal, "_apply", apply)
    with pytest.raises(Conflict) as trouble:
        opened.replace("n.md", b"ours", sha256(b"one"), CHANGE)
    assert trouble.value.details["current_sha256"] == sha256(b"theirs")
    assert (vault / "n.md").read_bytes() == b"theirs"
    assert not list(vault.rglob(".simplemem-*.tmp")) and list(opened.history.log.backwards()) == []
    # Who read ours in that moment may save over theirs what came of it: theirs is kept.
    assert opened.history.content(sha256(b"theirs")) == b"theirs"


@pytest.mark.parametrize("kind", ["exchange", "links"])
@pytest.mark.parametrize("change", ["create", "move"])
def test_a_name_that_another_program_takes_at_the_very_moment_stays_theirs(
    vault: Path, monkeypatch: pytest.MonkeyPatch, kind: str, change: str
) -> None:
    (vault / "a.md").write_bytes(b"one")
    limit_disk(monkeypatch, kind)
    opened = FolderVault(vault)
    real = journal.Journal._apply

    def apply(self: journal.Journal, here: DirHandles, operation: FileOperation) -> None:
        save_by_rename(vault / "n.md", b"theirs")
        real(self, here, operation)

    with monkeypatch.context() as patch:
        patch.setattr(journal.Journal, "_apply", apply)
        with pytest.raises(AlreadyExists):
            if change == "create":
                opened.create("n.md", b"ours", CHANGE)
            else:
                opened.carry_out([FileChange("move", "a.md", sha256(b"one"), "n.md")], CHANGE)
    assert (vault / "n.md").read_bytes() == b"theirs"
    assert (vault / "a.md").read_bytes() == b"one"
    assert not list(vault.rglob(".simplemem-*.tmp")) and list(opened.history.log.backwards()) == []


def test_a_save_in_the_middle_of_a_group_leaves_the_whole_group_undone(
    vault: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = FolderVault(vault)
    for name in ("a", "b", "c"):
        opened.create(f"{name}.md", name.encode(), CHANGE)
    real = journal.Journal._apply

    def apply(self: journal.Journal, here: DirHandles, operation: FileOperation) -> None:
        if operation.step.version.path == "c.md":
            save_by_rename(vault / "c.md", b"theirs")
        real(self, here, operation)

    move = FileChange("move", "a.md", sha256(b"a"), "new/d.md", b"moved")
    rewrites = [
        FileChange.update(f"{name}.md", sha256(name.encode()), b"rewritten") for name in ("b", "c")
    ]
    with monkeypatch.context() as patch:
        patch.setattr(journal.Journal, "_apply", apply)
        with pytest.raises(Conflict) as trouble:
            opened.carry_out([move, *rewrites], CHANGE)
    assert trouble.value.details["path"] == "c.md"
    left = {
        p.name: p.read_bytes()
        for p in vault.rglob("*")
        if p.is_file() and ".simplemem" not in p.parts
    }
    assert left == {"a.md": b"a", "b.md": b"b", "c.md": b"theirs"} and not (vault / "new").exists()
    assert len(list(opened.history.log.backwards())) == 3
    assert opened.carry_out([move], CHANGE)[0].changed
