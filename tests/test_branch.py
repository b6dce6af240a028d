"""A branch of a git repository as the vault of several servers: what a folder promises, it promises."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pygit2
import pytest
from bare_client import Bare
from pygit2.enums import ObjectType

from simplemem.errors import AlreadyExists, Conflict, Invalid, NotFound, SimplememError, Unavailable
from simplemem.index.comparison import differences
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore
from simplemem.vault.base import VaultOptions
from simplemem.vault.branch import repository
from simplemem.vault.branch.vault import BranchVault
from simplemem.vault.values import sha256

Opening = Callable[..., EnhancedStore]
_NOT_OURS = {
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "GIT_CONFIG_SYSTEM": "/dev/null",
    "PATH": "/usr/bin:/bin",
}
_WHO = ["-c", "user.name=Ann", "-c", "user.email=ann@example.org", "-c", "commit.gpgsign=false"]


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", *_WHO, *words], cwd=folder, env=_NOT_OURS, capture_output=True, check=True
    )
    return done.stdout.decode("utf-8", "surrogateescape")


@pytest.fixture
def truth(tmp_path: Path) -> Path:
    pygit2.init_repository(str(tmp_path / "truth.git"), bare=True)
    return tmp_path / "truth.git"


@pytest.fixture
def server(tmp_path: Path, truth: Path) -> Iterator[Opening]:
    """A further server of the branch, in a folder of its own."""
    stores: list[EnhancedStore] = []

    def opened(name: str = "", *, repository: str = "", **more: Any) -> EnhancedStore:
        branch = {"repository": repository or str(truth)}
        folder = tmp_path / (name or f"server {len(stores)}")
        given = {"branch": branch, "embed": {"provider": "none"}, **more}
        stores.append(EnhancedStore(folder, Settings.model_validate(given)))
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


@pytest.fixture
def clone(tmp_path: Path, truth: Path) -> Callable[[], Path]:
    """A person's clone, as it is now."""

    def cloned() -> Path:
        folder = tmp_path / f"clone {len([*tmp_path.iterdir()])}"
        git(tmp_path, "clone", "-q", "-b", "main", str(truth), str(folder))
        return folder

    return cloned


def found(store: EnhancedStore, text: str) -> set[str]:
    store.sync()
    return {hit.name for hit in store.search(text, limit=20).hits}


def files(truth: Path, commit: str = "main") -> dict[str, bytes]:
    repo = pygit2.Repository(str(truth))
    diff = repo.revparse_single(commit).peel(pygit2.Tree).diff_to_tree()
    return {
        each.old_file.path: repo[each.old_file.id].peel(pygit2.Blob).data for each in diff.deltas
    }


def undated(text: bytes) -> bytes:
    return b"\n".join(line for line in text.split(b"\n") if not line.startswith(b"modified:"))


def commit(
    truth: Path,
    mode: bytes,
    name: bytes,
    data: bytes | pygit2.Oid,
    when: int = 0,
    message: str = "x",
) -> str:
    """The newest commit as one that no git client would make is to be: of an entry beside those there are."""
    repo = pygit2.Repository(str(truth))
    head = repo.references["refs/heads/main"].peel(pygit2.Commit)
    entry = repo.create_blob(data) if isinstance(data, bytes) else data
    raw = repo.odb.read(head.tree.id)[1] + mode + b" " + name + b"\0" + entry.raw
    tree = repo.odb.write(ObjectType.TREE, raw)
    who = f"A <a@example.org> {when} +0000"
    made = f"tree {tree}\nparent {head.id}\nauthor {who}\ncommitter {who}\n\n{message}\n"
    return str(repo.odb.write(ObjectType.COMMIT, made.encode()))


def push(truth: Path, *odd: Any, **more: Any) -> None:
    pygit2.Repository(str(truth)).references["refs/heads/main"].set_target(
        commit(truth, *odd, **more)
    )


def folder_of(truth: Path, name: bytes, data: bytes, depth: int = 1) -> pygit2.Oid:
    repo = pygit2.Repository(str(truth))
    made = repo.odb.write(ObjectType.TREE, b"100644 " + name + b"\0" + repo.create_blob(data).raw)
    for _ in range(depth - 1):
        made = repo.odb.write(ObjectType.TREE, b"40000 z\0" + made.raw)
    return made


def is_as_made_anew(store: EnhancedStore) -> bool:
    core = store._parts
    store.sync()
    core.changes.newest()
    fresh = core.index.database.build_replacement()
    core.make_updater(fresh).scan()
    core.changes.__class__(fresh, core.vault, core.index.with_retry).newest()
    try:
        with core.index.database.reading() as ours, fresh.reading() as theirs:
            return list(differences(ours, theirs, vectors=False)) == []
    finally:
        fresh.drop()


# -- what is written


def test_what_one_server_writes_another_reads_and_git_has(server: Opening, truth: Path) -> None:
    one, other = server(), server()
    one.create("fruit/Plum", "Plums are blue.", metadata={"tags": ["fruit"]})
    one.create("Pie", "Made of [[Plum]].")
    assert found(other, "plums") >= {"fruit/Plum"}
    other.update("Plum", append="And sweet.")
    assert one.move("fruit/Plum", "trees/Prune").rewritten == ("Pie",)
    other.sync()
    other.delete("Pie")
    assert set(files(truth)) == {"trees/Prune.md"}
    assert files(truth)["trees/Prune.md"].endswith(b"Plums are blue.\n\nAnd sweet.\n")
    one.sync()
    assert [each.op for each in one.history("Prune") if each.source == "simplemem"] == [
        "move",
        "update",
        "create",
    ]
    one.undo(one.history()[0].version)
    assert set(files(truth)) == {"trees/Prune.md", "Pie.md"}
    assert is_as_made_anew(one) and is_as_made_anew(other)


def test_a_step_of_many_notes_is_one_commit_and_one_undo(server: Opening, truth: Path) -> None:
    store = server()
    for k in range(5):
        store.create(f"n{k}", "To [[Old]].")
    store.create("Old", "plum")
    before, count = files(truth), len(git(truth, "rev-list", "main").split())
    store.move("Old", "New")
    assert len(git(truth, "rev-list", "main").split()) == count + 1
    assert files(truth)["n3.md"].endswith(b"To [[New]].\n")
    store.undo("New")
    assert files(truth) == before


def test_another_server_reads_from_a_commit_whether_a_person_wrote(server: Opening) -> None:
    one, other = server(), server()
    one.create("a", "by an agent", who="claude-ai 1.2", tool="create_memory")
    one.create("b", "by a person", who="owner", tool="page", kind="human")
    other.sync()
    assert {entry.name: entry.kind for entry in other.history()} == {"a": "agent", "b": "human"}


def test_another_server_reads_the_session_and_the_sources_of_a_change_from_a_commit(
    server: Opening,
) -> None:
    one, other = server(), server()
    sources = ["Plum", "Süße\nKirsche", "fruit/" + "long " * 100]
    one.create("a", "by an agent", session="s1", sources=sources)
    one.create("b", "by nobody")
    other.sync()
    without, with_session = other.history()
    assert with_session.session == "s1"
    assert with_session.sources == tuple(sources)
    assert without.session == ""
    assert without.sources == ()


def test_a_stale_write_is_refused_with_a_diff_and_commits_nothing(
    server: Opening, truth: Path
) -> None:
    one, other = server(), server()
    one.create("Plum", "Blue.")
    other.sync()
    seen = other.read("Plum")
    one.update("Plum", append="Sweet.")
    commit = git(truth, "rev-parse", "main")
    with pytest.raises(Conflict) as refused:
        other.update("Plum", content="Red.", if_sha256=seen.sha256)
    assert refused.value.details["current_sha256"] == one.read("Plum").sha256
    assert "+Sweet." in refused.value.details["diff"]
    assert git(truth, "rev-parse", "main") == commit


def test_nobody_loses_a_write_when_all_write_at_once(server: Opening, truth: Path) -> None:
    stores = [server() for _ in range(4)]
    stores[0].create("shared", "Begin.")
    for store in stores:
        store.sync()

    def write(store: EnhancedStore, mark: str) -> None:
        for k in range(12):
            store.update("shared", append=f"- {mark}{k}")
            store.create(f"own/{mark}{k}", f"plum {mark}")

    threads = [
        threading.Thread(target=write, args=(store, f"s{k}-")) for k, store in enumerate(stores)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    there = files(truth)
    assert {f"- s{k}-{n}" for k in range(4) for n in range(12)} <= {
        *there["shared.md"].decode().splitlines()
    }
    assert len(there) == 1 + 4 * 12
    for store in stores:
        store.sync()
        assert store.stats()["notes"] == 49
    logs = {
        Path(store.root, ".simplemem/history/log.jsonl").read_bytes()
        for store in stores
        if store.history()
    }
    assert len(logs) == 1  # every server tells the same history
    assert is_as_made_anew(stores[3])


@pytest.mark.parametrize(
    ("there", "wanted"), [("Plum", "plum"), ("Caf\u00e9", "CAFE\u0301"), ("a/Plum", "A/plum")]
)
def test_a_name_that_another_file_system_would_take_for_one_there_is_refused(
    server: Opening, truth: Path, there: str, wanted: str
) -> None:
    store = server()
    store.create(there, "one")
    before = files(truth)
    with pytest.raises((AlreadyExists, Invalid)):
        store.create(wanted, "other")
    assert files(truth) == before


@pytest.mark.skipif(sys.platform != "linux", reason="counts in /proc")
def test_a_write_leaves_no_file_open(server: Opening) -> None:
    store = server()
    store.create("one", "1")
    before = len(os.listdir("/proc/self/fd"))
    for k in range(10):
        store.update("one", append=str(k))
        with pytest.raises(Conflict):
            store.update("one", content="x", if_sha256="0" * 64)
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_note_never_takes_the_place_of_a_folder(server: Opening, truth: Path, clone: Any) -> None:
    server().create("seed", "x")
    mine = clone()
    (mine / "a.md").mkdir()
    (mine / "a.md/b.md").write_text("below")
    git(mine, "add", "."), git(mine, "commit", "-qm", "odd"), git(mine, "push", "-q")
    store = server()
    store.sync()
    with pytest.raises(AlreadyExists):
        store.create("a", "instead")
    assert files(truth)["a.md/b.md"] == b"below"


def test_every_byte_of_a_note_stays_but_for_what_is_changed(
    server: Opening, truth: Path, clone: Any
) -> None:
    server().create("seed", "x")
    mine = clone()
    odd = b"\xef\xbb\xbf---\r\nzeta:   'x'   # why\r\n---\r\nBody  \r\nno line end"
    (mine / "odd.md").write_bytes(odd)
    git(mine, "add", "."), git(mine, "commit", "-qm", "odd"), git(mine, "push", "-q")
    store = server()
    store.sync()
    store.update("odd", append="more")
    assert files(truth)["odd.md"] == odd + b"\r\n\r\nmore\r\n"


@pytest.mark.parametrize("whose", ["ours", "empty and old", "empty", "a person's"])
def test_a_lock_of_gits_that_a_killed_server_left_is_taken_away(
    server: Opening, truth: Path, clone: Any, whose: str
) -> None:
    store = server()
    store.create("one", "plum")
    mine = clone()
    (mine / "theirs.md").write_text("x")
    (
        git(mine, "add", "."),
        git(mine, "commit", "-qm", "theirs"),
        git(mine, "push", "-q", "origin", "main:other"),
    )
    named = {
        "ours": git(truth, "rev-parse", "main"),
        "a person's": git(truth, "rev-parse", "other"),
    }.get(whose, "")
    lock = truth / "refs/heads/main.lock"
    lock.write_text(named)
    if whose == "empty and old":
        os.utime(lock, (1, 1))
    if whose in ("ours", "empty and old"):
        store.create("two", "plum")
        assert not lock.exists() and "two.md" in files(truth)
    else:
        with pytest.raises(Unavailable, match="cannot be updated"):
            store.create("two", "plum")
        assert lock.read_text() == named and "two.md" not in files(truth)


def test_a_push_that_comes_while_a_write_waits_for_it_is_not_lost(
    server: Opening, truth: Path
) -> None:
    store = server()
    store.create("one", "1")
    main, lock = truth / "refs/heads/main", truth / "refs/heads/main.lock"
    lock.write_text(
        commit(truth, b"100644", b"pushed.md", b"by hand") + "\n"
    )  # as git does, before it renames it
    write = threading.Thread(target=store.create, args=("two", "2"))
    write.start()
    time.sleep(0.3)
    os.replace(lock, main)
    write.join()
    assert set(files(truth)) == {"one.md", "pushed.md", "two.md"}


def test_an_undone_move_takes_no_other_notes_place(server: Opening, truth: Path) -> None:
    store = server()
    store.create("z", "mine")
    store.move("z", "b")
    push(truth, b"100644", b"z.md", b"a person's")
    with pytest.raises(AlreadyExists):
        store.undo("b")
    assert files(truth)["z.md"] == b"a person's"


# -- what people do with git


def test_what_a_person_pushes_is_found_and_told_as_theirs(server: Opening, clone: Any) -> None:
    store = server()
    store.create("Plum", "Blue.")
    mine = clone()
    (mine / "Zebra.md").write_text("Stripes.")
    git(mine, "add", "."), git(mine, "commit", "-qm", "Zebras"), git(mine, "push", "-q")
    assert found(store, "stripes") == {"Zebra"}
    entry = store.history("Zebra")[0]
    assert (entry.source, entry.who, entry.op) == ("git", "Ann", "create")
    assert store.read("Zebra", version=entry.commit).text == "Stripes."
    git(mine, "rm", "-q", "Zebra.md"), git(mine, "commit", "-qm", "gone"), git(mine, "push", "-q")
    assert found(store, "stripes") == set()
    assert is_as_made_anew(store)


def test_a_history_that_a_person_merged_is_told_in_the_same_order_everywhere(
    server: Opening, clone: Any
) -> None:
    store = server()
    store.create("one", "1")
    mine = clone()
    (mine / "theirs.md").write_text("mine")
    git(mine, "add", "."), git(mine, "commit", "-qm", "theirs")
    store.create("two", "2")
    git(mine, "pull", "-q", "--no-rebase", "--no-edit"), git(mine, "push", "-q")
    store.sync()
    store.create("three", "3")
    late = server()
    late.sync()
    assert [each.version for each in late.history()] == ["v000003", "v000002", "v000001"]
    assert {
        Path(each.root, ".simplemem/history/log.jsonl").read_bytes() for each in (store, late)
    }.__len__() == 1
    assert found(late, "mine") == {"theirs"}


def test_a_branch_that_was_given_another_history_is_read_anew(server: Opening, clone: Any) -> None:
    store = server()
    store.create("one", "plum")
    mine = clone()
    store.create("two", "plum")
    store.sync()
    (mine / "three.md").write_text("plum")
    git(mine, "add", "."), git(mine, "commit", "-qm", "three"), git(mine, "push", "-q", "-f")
    assert found(store, "plum") == {"one", "three"}
    assert [each.name for each in store.history()] == ["one"]
    assert is_as_made_anew(store)


def test_a_branch_that_was_deleted_is_said_and_nothing_is_forgotten(
    server: Opening, truth: Path
) -> None:
    store = server()
    store.create("one", "plum")
    newest = git(truth, "rev-parse", "main").strip()
    git(truth, "update-ref", "-d", "refs/heads/main")
    with pytest.raises(Unavailable, match="no longer in its repository"):
        store.sync()
    assert store.stats()["notes"] == 1
    git(truth, "update-ref", "refs/heads/main", newest)
    assert found(store, "plum") == {"one"}


def test_links_modules_and_names_that_are_none_are_no_notes(
    server: Opening, truth: Path, clone: Any
) -> None:
    server().create("seed", "plum")
    mine = clone()
    (mine / "link.md").symlink_to("/etc/passwd")
    (mine / ".hidden").mkdir()
    (mine / ".hidden/plum.md").write_text("plum")
    Path(f"{mine}/{chr(0xDCFF)}.md").write_text("plum")
    git(mine, "add", "."), git(mine, "commit", "-qm", "odd"), git(mine, "push", "-q")
    store = server()
    assert found(store, "plum") == {"seed"}
    with pytest.raises(NotFound):
        store.read("link")
    assert any("not valid in a path" in each["why"] for each in store.stats()["skipped"])


def test_obsidians_settings_are_those_of_the_branch(server: Opening, clone: Any) -> None:
    store = server()
    store.create("a/Plum", "x")
    mine = clone()
    (mine / ".obsidian").mkdir()
    (mine / ".obsidian/app.json").write_text('{"userIgnoreFilters": ["a/"]}')
    git(mine, "add", "."), git(mine, "commit", "-qm", "settings"), git(mine, "push", "-q")
    store.create("b/Plum", "plum")
    assert found(store, "x") == set()
    (
        git(mine, "rm", "-q", ".obsidian/app.json"),
        git(mine, "commit", "-qm", "none"),
        git(mine, "pull", "-q", "--rebase"),
    )
    git(mine, "push", "-q")
    assert found(store, "x") == {"a/Plum"}
    assert not (store.root / ".obsidian/app.json").exists()


def test_obsidians_settings_are_not_written_through_a_link(
    server: Opening, truth: Path, tmp_path: Path
) -> None:
    store = server()
    store.create("Plum", "plum")
    (tmp_path / "elsewhere").mkdir()
    (store.root / ".obsidian").symlink_to(tmp_path / "elsewhere")
    push(truth, b"40000", b"zz", folder_of(truth, b"app.json", b"{}"))
    repo = pygit2.Repository(str(truth))
    builder = repo.TreeBuilder(repo.references["refs/heads/main"].peel(pygit2.Tree))
    builder.insert(".obsidian", folder_of(truth, b"app.json", b"{}"), 0o40000)
    who, parent = pygit2.Signature("A", "a@example.org"), repo.references["refs/heads/main"].target
    repo.create_commit("refs/heads/main", who, who, "settings", builder.write(), [parent])
    assert found(store, "plum") == {"Plum"}
    assert [*(tmp_path / "elsewhere").iterdir()] == []


@pytest.mark.parametrize("when", [-5, 9_300_000_000, 1 << 40, 1 << 60])
def test_a_commit_of_an_impossible_date_is_read_like_any_other(
    server: Opening, truth: Path, when: int
) -> None:
    store = server()
    store.create("Plum", "plum")
    said = 'x\n\nSimplemem-Version: v000002\nSimplemem-Kind: human\nSimplemem-Steps: [["create", "z.md", null]]'
    push(truth, b"100644", b"z.md", b"zebra", when, said)
    assert found(store, "zebra") == {"z"}
    assert store.history("z")[0].version == "v000002"
    assert found(server(), "zebra") == {"z"}


def test_folders_too_deep_for_a_path_and_of_an_old_mode_stop_nobody(
    server: Opening, truth: Path
) -> None:
    store = server()
    store.create("Plum", "plum")
    store.sync()
    push(truth, b"40000", b"x", folder_of(truth, b"z.md", b"plum", 1500))
    push(truth, b"040000", b"y", folder_of(truth, b"z.md", b"plum"))
    assert found(store, "plum") == found(server(), "plum") == {"Plum", "y/z"}


def test_folders_within_themselves_are_an_error_and_no_end_of_files(
    server: Opening, truth: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repository, "_MAX_ENTRIES", 5_000)
    store, repo = server(), pygit2.Repository(str(truth))
    store.create("Plum", "plum")
    store.sync()
    newest, made = git(truth, "rev-parse", "main").strip(), folder_of(truth, b"a.md", b"x")
    for _ in range(9):
        made = repo.odb.write(
            ObjectType.TREE, b"".join(b"40000 %d\0" % k + made.raw for k in range(10))
        )
    push(truth, b"40000", b"x", made)
    for each in (store, server()):
        with pytest.raises(Unavailable, match="more than 5,000 files"):
            each.sync()
    git(truth, "update-ref", "refs/heads/main", newest)
    assert found(store, "plum") == {"Plum"}


def test_a_pretended_version_does_not_use_the_numbers_up(server: Opening, truth: Path) -> None:
    store = server()
    store.create("Plum", "plum")
    said = 'x\n\nSimplemem-Version: v999999999999999\nSimplemem-Kind: human\nSimplemem-Steps: [["create", "z.md", null]]'
    push(truth, b"100644", b"z.md", b"zebra", message=said)
    store.create("Pie", "plum")
    assert [each.version for each in store.history()] == ["v000002", "v000001"]


def test_names_in_a_hidden_folder_are_not_told_as_odd(server: Opening, truth: Path) -> None:
    server().create("Plum", "plum")
    push(truth, b"40000", b"secret", folder_of(truth, b"affair\xff.md", b"x"))
    store, other = server(access={"hidden": ["secret/"]}), server()
    assert found(store, "plum") == found(other, "plum") == {"Plum"}
    assert "affair" in str(other.stats()["skipped"])
    assert "affair" not in str(store.stats())


# -- a repository that goes away


def test_a_repository_that_is_away_deletes_no_note_from_the_index(
    server: Opening, truth: Path
) -> None:
    store = server()
    store.create("Plum", "plum")
    store.start(embed=False)
    assert store.wait_until_settled()
    away = truth.rename(truth.with_name("away.git"))
    with pytest.raises(Unavailable, match="away"):
        store.sync()
    time.sleep(1)  # the background looks twice
    assert store.stats()["notes"] == 1
    away.rename(truth)
    push(truth, b"100644", b"z.md", b"zebra")
    ends = time.monotonic() + 30
    while not store.search("zebra").hits and time.monotonic() < ends:
        time.sleep(0.1)
    assert [hit.name for hit in store.search("zebra").hits] == ["z"]


@pytest.mark.parametrize("cut", ["a line too many", "half a line", "nothing left", "half a date"])
def test_a_history_that_a_crash_left_half_written_is_made_whole(
    server: Opening, tmp_path: Path, cut: str
) -> None:
    store = server("here")
    store.create("one", "plum")
    store.create("two", "plum")
    store.close()
    log, dates = (
        tmp_path / "here/.simplemem/history" / name for name in ("log.jsonl", "dates.jsonl")
    )
    lines = log.read_bytes()
    match cut:
        case "a line too many":
            log.write_bytes(
                lines + lines.splitlines(keepends=True)[-1].replace(b"v000002", b"v000003")
            )
        case "half a line":
            log.write_bytes(lines + lines[:70])
        case "nothing left":
            log.unlink()
        case "half a date":
            dates.write_bytes(dates.read_bytes()[:-20])
    again, other = server("here"), server()
    again.create("three", "plum")
    other.sync()
    assert [each.version for each in again.history()] == ["v000003", "v000002", "v000001"]
    assert log.read_bytes() == Path(other.root, ".simplemem/history/log.jsonl").read_bytes()


def test_a_message_that_pretends_to_be_ours_changes_nothing_but_what_is_told(
    server: Opening, truth: Path, clone: Any
) -> None:
    store = server()
    store.create("one", "plum")
    mine = clone()
    steps = '[["create", "../../etc/passwd", null], ["move", "one.md", ".git/hooks/x"]]'
    for number, more in enumerate(("v000002", "v1", "vx", "v000003\nSimplemem-Kind: \xff")):
        said = f"x\n\nSimplemem-Version: {more}\nSimplemem-Kind: human\nSimplemem-Steps: {steps}\n"
        (mine / f"f{number}.md").write_text("by hand")
        (mine / "message").write_bytes(said.encode("latin-1"))
        git(mine, "add", f"f{number}.md"), git(mine, "commit", "-qF", "message")
    git(mine, "push", "-q")
    assert found(store, "hand") == {f"f{k}" for k in range(4)}
    with pytest.raises(SimplememError):
        store.undo("v000002")
    store.create("two", "plum")
    assert set(files(truth)) == {"one.md", "two.md", *(f"f{k}.md" for k in range(4))}
    assert store.history("two")[0].op == "create"


# -- a commit that a client knows


def test_an_answer_is_never_of_before_the_commit_it_was_asked_for(server: Opening) -> None:
    one, other = server(), server()
    other.create("seed", "x")
    one.create("Plum", "Blue.")
    commit = one.commit(written=True)
    other.reach(commit)
    assert [hit.name for hit in other.search("blue").hits] == ["Plum"]
    assert other.commit() == other.search("blue").index.commit == commit
    with pytest.raises(Unavailable, match="not arrived yet"):
        other.reach("0" * 40)


def test_resources_too_are_not_of_before_the_commit_they_were_asked_for(
    server: Opening, truth: Path, tmp_path: Path
) -> None:
    store = server()
    store.create("Plum", "Blue.")
    env = {"SIMPLEMEM_BRANCH_REPOSITORY": str(truth), "SIMPLEMEM_EMBED_PROVIDER": "none"}
    with Bare(tmp_path / "apart", env=env) as apart:
        apart.initialize()
        said = {"uri": "memory://Plum", "_meta": {"simplemem/commit": store.commit()}}
        assert "Blue." in str(apart.request("resources/read", said))
        said["_meta"] = {"simplemem/commit": "0" * 40}
        assert "not arrived yet" in str(
            apart.answer(apart.post("resources/read", said), 60)["error"]
        )


# -- a repository elsewhere


def test_a_repository_elsewhere_is_written_before_the_answer(server: Opening, truth: Path) -> None:
    one, other = (server(repository=f"file://{truth}") for _ in range(2))
    one.create("shared", "Begin.")
    assert "shared.md" in files(truth)

    def write(store: EnhancedStore, mark: str) -> None:
        for k in range(4):
            store.update("shared", append=f"- {mark}{k}")

    other.reach(one.commit(written=True))
    threads = [threading.Thread(target=write, args=each) for each in ((one, "x"), (other, "y"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {f"- {mark}{k}" for mark in "xy" for k in range(4)} <= {
        *files(truth)["shared.md"].decode().splitlines()
    }
    moved = truth.rename(truth.with_name("away.git"))
    with pytest.raises(Unavailable):
        one.create("late", "x")
    moved.rename(truth)
    one.create("late", "y")
    assert files(truth)["late.md"].endswith(b"y\n")


def test_a_push_that_is_refused_is_tried_once_and_told_why(server: Opening, truth: Path) -> None:
    store = server(repository=f"file://{truth}")
    store.create("one", "1")
    hook = truth / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\necho . >> '{truth}/tries'\necho only on Mondays >&2\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(Unavailable, match="only on Mondays"):
        store.create("two", "2")
    assert (truth / "tries").read_text() == ".\n"


@pytest.fixture
def unsound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A git that does first what a script says: `$*` is what it was asked, `git` the sound one."""
    sound = subprocess.run(
        ["/bin/sh", "-c", "command -v git"], capture_output=True, text=True, check=True
    ).stdout.strip()
    program = tmp_path / "unsound/git"
    program.parent.mkdir()
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    def is_to(script: str) -> None:
        program.write_text(f'#!/bin/sh\ngit() {{ {sound} "$@"; }}\n{script}\nexec {sound} "$@"\n')
        program.chmod(0o755)

    is_to("")
    return is_to


def test_a_write_of_which_nobody_knows_whether_it_arrived_is_said_to_be_one(
    server: Opening, truth: Path, unsound: Callable[[str], None]
) -> None:
    store = server(repository=f"file://{truth}")
    store.create("list", "Begin.")
    unsound('case "$*" in *" push "*) git "$@"; exit 1;; *ls-remote*|*fetch*) exit 1;; esac')
    with pytest.raises(Unavailable, match="may still have reached the branch") as failed:
        store.update("list", append="- once")
    assert "Read the note again" in failed.value.hint
    unsound("")
    assert files(truth)["list.md"].count(b"once") == 1
    assert found(store, "once") == {"list"}


def test_an_answer_that_was_lost_repeats_nothing(
    server: Opening, truth: Path, unsound: Callable[[str], None]
) -> None:
    store = server(repository=f"file://{truth}")
    store.create("list", "Begin.")
    unsound('case "$*" in *" push "*) git "$@"; exit 1;; esac')
    store.update("list", append="- once")
    assert files(truth)["list.md"].count(b"once") == 1


def test_what_another_git_has_heard_late_takes_no_write_back(
    server: Opening, truth: Path, tmp_path: Path, unsound: Callable[[str], None]
) -> None:
    store = server(repository=f"file://{truth}")
    store.create("list", "Begin.")
    before, late = git(truth, "rev-parse", "main").strip(), tmp_path / "late"
    store.update("list", append="- more")
    late.write_text(f"{before}\trefs/heads/main\n")
    unsound(
        f'case "$*" in *ls-remote*) if [ -e {late} ]; then cat {late}; rm {late}; exit 0; fi;; esac'
    )
    assert not store._parts.vault._branch.fetch() and not late.exists()  # type: ignore[attr-defined]
    assert found(store, "more") == {"list"}
    git(truth, "update-ref", "refs/heads/main", before)  # and this somebody meant
    store.sync()
    assert store._parts.vault._branch.fetch() or store.commit() == before  # type: ignore[attr-defined]
    assert found(store, "more") == set()


def test_a_branch_that_is_locked_here_is_fetched_once_it_is_not(
    server: Opening, truth: Path
) -> None:
    store, other = (server(repository=f"file://{truth}") for _ in range(2))
    other.create("Plum", "plum")
    branch = store._parts.vault._branch  # type: ignore[attr-defined]
    lock = branch.path / "refs/heads/main.lock"
    lock.touch()
    with pytest.raises(Unavailable, match="cannot be updated") as locked:
        branch.fetch()
    assert ".lock" in locked.value.hint
    lock.unlink()
    assert branch.fetch() and found(store, "plum") == {"Plum"}


def test_a_commit_that_cannot_be_told_makes_no_failure_of_a_write(
    server: Opening, truth: Path
) -> None:
    store = server()
    store.create("Plum", "x")
    truth.rename(truth.with_name("away.git"))
    assert store.commit(written=True) == ""


def test_the_copy_of_one_repository_is_not_pushed_into_another(
    server: Opening, truth: Path, tmp_path: Path
) -> None:
    server("here", repository=f"file://{truth}").create("private", "x")
    other = tmp_path / "other.git"
    pygit2.init_repository(str(other), bare=True)
    server("here", repository=f"file://{other}").create("one", "1")
    assert set(files(other)) == {"one.md"}


def test_a_password_in_the_address_is_told_to_nobody(server: Opening) -> None:
    store = server(repository="https://ann:s3cr%40et@127.0.0.1:1/x.git")
    with pytest.raises(Unavailable, match="cannot be reached") as failed:
        store.create("Plum", "x")
    assert "s3cr" not in f"{failed.value} {store.stats()}"


# -- where it may not be


def test_only_a_bare_repository_that_is_there_is_taken(server: Opening, tmp_path: Path) -> None:
    pygit2.init_repository(str(tmp_path / "worked in"))
    with pytest.raises(Unavailable, match="working tree"):
        server(repository=str(tmp_path / "worked in"))
    with pytest.raises(Unavailable, match="no repository"):
        server(repository=str(tmp_path / "nowhere"))


def test_a_vault_cannot_name_its_own_branch(tmp_path: Path) -> None:
    (tmp_path / ".simplemem").mkdir()
    (tmp_path / ".simplemem/config.toml").write_text('[branch]\nrepository = "/srv/other.git"\n')
    with pytest.raises(Invalid, match="repository, which a vault may not"):
        load_settings(vault=tmp_path)


# -- a folder and a branch


@pytest.mark.parametrize("seed", range(4))
def test_any_changes_leave_in_a_branch_what_they_leave_in_a_folder(
    server: Opening, truth: Path, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(seed)
    folder = EnhancedStore(
        tmp_path / "folder", Settings.model_validate({"embed": {"provider": "none"}})
    )
    servers = [server(), server()]
    names = ["a", "b", "c/a", "c/d", "A b"]
    for k in range(40):
        name, other, word = chance.choice(names), chance.choice(names), f"w{k}"
        servers_one = chance.choice(servers)
        servers_one.sync()
        folder.sync()
        act = chance.choice(["create", "create", "append", "edit", "tag", "move", "delete", "undo"])
        outcomes = []
        for store in (folder, servers_one):
            try:
                match act:
                    case "create":
                        store.create(
                            name,
                            f"{word} [[{other}]]",
                            metadata={"created": "2026-01-01", "modified": None},
                        )
                    case "append":
                        store.update(name, append=word)
                    case "edit":
                        store.update(name, edits=[{"old": "w", "new": f"{word} w"}])
                    case "tag":
                        store.change_tags(name, {word: True, "x": None})
                    case "move":
                        store.move(name, other)
                    case "delete":
                        store.delete(name)
                    case "undo":
                        store.undo(store.history()[0].version)
                outcomes.append("")
            except (SimplememError, IndexError) as error:
                outcomes.append(type(error).__name__)
        assert outcomes[0] == outcomes[1], (k, act, name, other)
    on_disk = {
        path.relative_to(folder.root).as_posix(): path.read_bytes()
        for path in folder.root.rglob("*.md")
    }
    in_git = files(truth)
    kept = {path: undated(text) for path, text in on_disk.items() if not path.startswith(".")}
    assert {path: undated(text) for path, text in in_git.items()} == kept
    assert [(e.op, e.name) for e in servers[0].history(limit=100)] == [
        (e.op, e.name) for e in folder.history(limit=100)
    ]
    assert is_as_made_anew(servers[1])
    folder.close()


def test_a_text_that_no_commit_has_is_found_by_the_beginning_of_its_hash(
    tmp_path: Path, truth: Path
) -> None:
    folder = tmp_path / "server"
    folder.mkdir()
    vault = BranchVault(folder, VaultOptions(), repository=str(truth), name="main")
    vault.store_text(b"as a conflict showed it")
    digest = sha256(b"as a conflict showed it")
    for sha in (digest, digest[:12], digest[:40]):
        assert vault.history.content(sha) == b"as a conflict showed it"
    assert vault.history.content(digest[:11]) is None


def test_a_note_that_a_server_created_is_a_conflict_copy_on_no_server(server: Opening) -> None:
    text = "".join(f"Every week we look at point {number} of the list.\n" for number in range(12))
    one, other = server(), server()
    one.create("Weekly", text)
    one.create("Weekly 4", f"{text}The zebra is new.\n")
    assert found(one, "zebra") == found(other, "zebra") == {"Weekly 4"}
    assert one.conflict_copies() == other.conflict_copies() == ()
    assert is_as_made_anew(other)


def test_a_copy_that_a_person_pushed_is_one_on_every_server(server: Opening, clone: Any) -> None:
    text = "".join(f"Every week we look at point {number} of the list.\n" for number in range(12))
    one = server()
    one.create("Weekly", text)
    folder = clone()
    (folder / "Weekly 4.md").write_text(f"{(folder / 'Weekly.md').read_text()}The zebra is new.\n")
    git(folder, "add", ".")
    git(
        folder,
        "-c",
        "user.name=Ada",
        "-c",
        "user.email=a@example.org",
        "commit",
        "-q",
        "-m",
        "a copy",
    )
    git(folder, "push", "-q")
    assert found(one, "zebra") == set() and [each.name for each in one.conflict_copies()] == [
        "Weekly 4"
    ]
