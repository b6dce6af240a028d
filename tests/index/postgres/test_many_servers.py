"""Many servers, one branch, one database, half of them reading from its replica: whoever is killed, no acknowledged write
is lost, no write of a leader that was replaced is kept, and no answer is older than the commit it was asked for. WRITES
and KILLS make it long."""

from __future__ import annotations

import os
import queue
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pygit2
import pytest
from bare_client import Bare
from postgres import Server, differences_from_rebuilt, needs_postgres, running, served

from simplemem.errors import NotFound, Unavailable
from simplemem.index.engine import Damaged
from simplemem.index.postgres.connection import PostgresConnection
from simplemem.index.postgres.database import PostgresEngine
from simplemem.index.updater import IndexUpdater
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

pytestmark = needs_postgres
SERVERS, NOTES = 4, 3
WRITES, KILLS = int(os.environ.get("WRITES", "3")), int(os.environ.get("KILLS", "3"))
COMMIT = "simplemem/commit"


class Slot:
    """One of the servers: the process of it that runs just now."""

    def __init__(self, root: Path, env: dict[str, str]) -> None:
        self.root, self.env, self.lock = root, env, threading.Lock()
        self.process: Bare | None = None

    def call(self, tool: str, commit: str = "", **arguments: Any) -> dict[str, Any] | None:
        """What a tool answers; None where nobody knows, for the server went."""
        with self.lock:
            try:
                if self.process is None:
                    self.process = Bare(self.root, env=self.env)
                    self.process.initialize()
                    self.process.request("tools/list")
                said = {"name": tool, "arguments": arguments} | (
                    {"_meta": {COMMIT: commit}} if commit else {}
                )
                result: dict[str, Any] = self.process.answer(
                    self.process.post("tools/call", said), 60
                )["result"]
                return result
            except (EOFError, BrokenPipeError, OSError):
                self.end()
                return None

    def kill(self) -> None:
        if (running := self.process) is not None:
            running.process.kill()

    def end(self) -> None:
        if self.process is not None:
            self.process.__exit__()
            self.process = None


class Team:
    """Those who write, and what was acknowledged."""

    def __init__(self, slots: list[Slot], truth: Path) -> None:
        self.slots, self.truth, self.failed = slots, truth, queue.SimpleQueue[str]()
        self.kept: list[tuple[str, str]] = []  # note and line
        self.pushed: list[str] = []  # commits of a person
        self.over = threading.Event()

    def write(self, mark: str, chance: random.Random) -> None:
        for k in range(WRITES):
            note, line, commit = f"n{chance.randrange(NOTES)}", f"w{mark}x{k}", ""
            while not commit:
                said = chance.choice(self.slots).call(
                    "update_memory", name=note, append=f"- {line}"
                )
                if said is not None and not said["isError"]:
                    commit = said["_meta"][COMMIT]
                    self.kept.append((note, line))
                elif said is not None and said["structuredContent"]["error"]["code"] not in (
                    "unavailable",
                    "conflict",
                ):
                    return self.failed.put(str(said))
            other = chance.choice(self.slots)
            asked = other.call("search_memories", commit=commit, query=line, mode="text", limit=3)
            if asked is None or asked["isError"]:
                continue
            if note not in [hit["name"] for hit in asked["structuredContent"]["hits"]]:
                self.failed.put(f"{line} of {note} is not found at {commit}: {asked}")
            elif not self.stands_on(asked["_meta"][COMMIT], commit):
                self.failed.put(f"an answer of {asked['_meta'][COMMIT]}, asked for {commit}")
        return None

    def stands_on(self, commit: str, other: str) -> bool:
        return commit == other or pygit2.Repository(str(self.truth)).descendant_of(commit, other)

    def push(self, folder: Path) -> None:
        """A person with git."""
        git = ["git", "-c", "user.name=Ann", "-c", "user.email=a@b", "-c", "core.fsync=none"]
        quiet: Any = {"capture_output": True, "check": False}
        subprocess.run([*git, "clone", "-q", "-b", "main", str(self.truth), str(folder)], **quiet)
        k = 0
        while not self.over.wait(0.2):
            (folder / f"p{k}.md").write_text(f"pushed{k}")
            subprocess.run([*git, "add", "."], cwd=folder, **quiet)
            subprocess.run([*git, "commit", "-qm", f"p{k}"], cwd=folder, **quiet)
            subprocess.run([*git, "pull", "-q", "--rebase"], cwd=folder, **quiet)
            is_pushed = not subprocess.run([*git, "push", "-q"], cwd=folder, **quiet).returncode
            if (
                is_pushed
                and not subprocess.run(
                    [*git, "cat-file", "-e", f"HEAD:p{k}.md"], cwd=folder, **quiet
                ).returncode
            ):
                head = subprocess.run(
                    [*git, "rev-parse", "HEAD"], cwd=folder, text=True, **quiet
                ).stdout.strip()
                self.kept.append((f"p{k}", f"pushed{k}"))
                self.pushed.append(head)
            k += 1

    def kill(self, database: Server, chance: random.Random) -> None:
        for _ in range(KILLS):
            if self.over.wait(chance.uniform(0.2, 1.5)):
                return
            if chance.random() < 0.5:
                chance.choice(self.slots).kill()
            else:
                database.kill()
                database.start()


@pytest.mark.slow
def test_nothing_acknowledged_is_lost_whoever_is_killed(tmp_path: Path) -> None:
    truth, chance = tmp_path / "truth.git", random.Random(7)
    pygit2.init_repository(str(truth), bare=True)
    with (
        served(durable=True) as database,
        served(replica_of=database.url) as standby,
        ExitStack() as held,
    ):
        env = {
            "SIMPLEMEM_BRANCH_REPOSITORY": str(truth),
            "SIMPLEMEM_INDEX_ENGINE": database.url,
            "SIMPLEMEM_EMBED_PROVIDER": "none",
        }
        from_replica = env | {"SIMPLEMEM_INDEX_REPLICA": standby.url}
        slots = [
            Slot(tmp_path / f"server{k}", from_replica if k % 2 else env) for k in range(SERVERS)
        ]
        for slot in slots:
            held.callback(slot.end)
        for k in range(NOTES):
            assert not (slots[0].call("create_memory", name=f"n{k}", content="Begin.") or {})[
                "isError"
            ]
        team = Team(slots, truth)
        writers = [
            threading.Thread(target=team.write, args=(f"{k}", random.Random(k)))
            for k in range(2 * SERVERS)
        ]
        others = [
            threading.Thread(target=team.push, args=(tmp_path / "clone",)),
            threading.Thread(target=team.kill, args=(database, chance)),
        ]
        for thread in (*writers, *others):
            thread.start()
        for thread in writers:
            thread.join()
        team.over.set()
        for thread in others:
            thread.join()
        with suppress(queue.Empty):
            pytest.fail(team.failed.get_nowait())
        repo = pygit2.Repository(str(truth))
        newest = str(repo.references["refs/heads/main"].target)
        assert [commit for commit in team.pushed if not team.stands_on(newest, commit)] == []
        tree = repo.references["refs/heads/main"].peel(pygit2.Tree)
        lost = [
            (note, line) for note, line in team.kept if line.encode() not in tree[f"{note}.md"].data
        ]
        assert lost == []
        given = {
            "branch": {"repository": str(truth)},
            "index": {"engine": database.url},
            "embed": {"provider": "none"},
        }
        with EnhancedStore(tmp_path / "late", Settings.model_validate(given)) as late:
            late.sync()
            assert late.commit() == late.commit(written=True) == newest
            assert differences_from_rebuilt(late) == []


def test_a_password_that_is_changed_makes_no_other_index(tmp_path: Path) -> None:
    def schema(secret: str) -> str:
        branch = {"repository": f"https://ann:{secret}@127.0.0.1:1/x.git"}
        given = {"branch": branch, "index": {"engine": f"postgresql://ann@/db?host={tmp_path}"}}
        with EnhancedStore(tmp_path / secret, Settings.model_validate(given)) as store:
            assert secret not in store._parts.index.database.place
            return str(store._parts.index.database.schema)  # type: ignore[attr-defined]

    assert schema("one") == schema("two")


def test_one_leads_until_it_says_nothing_and_is_then_refused(tmp_path: Path) -> None:
    with running() as url:
        one, other = (PostgresEngine(url, "lead", tmp_path / "index.db") for _ in range(2))
        first, second = one.leadership(), other.leadership()
        assert first.acquire_or_keep() and not second.acquire_or_keep() and first.acquire_or_keep()
        with one.exclusively() as db:  # eight seconds without a word
            db.execute(
                "UPDATE meta SET value = split_part(value, ' ', 1) || ' 0' WHERE key = 'leader'"
            )
        assert second.acquire_or_keep()
        with pytest.raises(Unavailable, match="another server is the leader"):
            one.set_meta("kept", "no")
        assert other.meta("kept") is None
        fresh = other.build_replacement()  # a rebuild gives no number twice
        other.swap_in(fresh)
        other.set_meta("kept", "by the leader")
        assert second.acquire_or_keep()
        assert int(str(other.meta("leader")).split()[0]) == 2
        with pytest.raises(Unavailable, match="another server is the leader"):
            one.set_meta("kept", "no")
        second.release()
        third = PostgresEngine(url, "lead", tmp_path / "index.db")
        assert third.leadership().acquire_or_keep()
        for each in (one, other, fresh, third):
            each.close()


def test_a_server_does_not_lead_if_its_lead_could_not_be_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running() as url:
        one, other = (PostgresEngine(url, "lead", tmp_path / "index.db") for _ in range(2))
        first, second = one.leadership(), other.leadership()
        exclusively = one.exclusively

        @contextmanager
        def cut_before_the_commit() -> Iterator[PostgresConnection]:
            with exclusively() as db:
                yield db
                raise Unavailable("the connection was cut")

        with monkeypatch.context() as patch:
            patch.setattr(one, "exclusively", cut_before_the_commit)
            assert not first.acquire_or_keep()
        assert second.acquire_or_keep()
        assert not first.acquire_or_keep()
        for engine in (one, other):
            engine.close()


def test_of_two_servers_that_find_damage_the_second_keeps_what_the_first_built(
    tmp_path: Path,
) -> None:
    with running() as url:
        one, other = (PostgresEngine(url, "twice", tmp_path / "index.db") for _ in range(2))
        one.set_meta("old", "yes")
        assert other.meta("old") == "yes"
        one.discard()
        one.set_meta("new", "yes")
        before = other.generation
        other.discard()
        assert other.meta("new") == "yes" and other.meta("old") is None
        assert other.generation > before
        other.discard()  # now it knows these tables
        assert one.meta("new") is None
        for each in (one, other):
            each.close()


def test_tables_whose_identity_cannot_be_read_are_damaged_and_made_anew(tmp_path: Path) -> None:
    with running() as url, closing(PostgresEngine(url, "empty", tmp_path / "index.db")) as engine:
        engine.set_meta("old", "yes")
        engine.rows("DELETE FROM meta WHERE key = 'made'")  # so seen by a snapshot from before them
        with pytest.raises(Damaged), engine.reading():
            pass
        with pytest.raises(Damaged):
            engine.answer(lambda db: db.seen)
        engine.discard()
        assert engine.meta("old") is None


def test_one_leads_after_the_tables_were_made_anew_or_a_clock_was_put_back(tmp_path: Path) -> None:
    with running() as url:
        one, other = (PostgresEngine(url, "lead", tmp_path / "index.db") for _ in range(2))
        first, second = one.leadership(), other.leadership()
        assert first.acquire_or_keep()
        other.discard()
        assert (
            second.acquire_or_keep()
        )  # with another number: what the first one writes is refused as before
        with pytest.raises(Unavailable, match="another server is the leader"):
            one.set_meta("kept", "no")
        second.release()
        with one.exclusively() as db:  # of a time that will not come for a while
            db.execute(
                "UPDATE meta SET value = split_part(value, ' ', 1) || ' 99999999999' WHERE key = 'leader'"
            )
        assert one.leadership().acquire_or_keep()
        one.rows("SET idle_in_transaction_session_timeout = '100ms'")
        with (
            pytest.raises(Unavailable, match="idle"),
            one.writing() as db,
        ):  # as one that was stopped
            time.sleep(0.5)
            db.execute("SELECT 1").fetchall()
        for each in (one, other):
            each.close()


@contextmanager
def three_servers(tmp_path: Path) -> Iterator[list[EnhancedStore]]:
    """Of one branch that is elsewhere: two that share an index, and one with its own."""
    truth = tmp_path / "truth.git"
    pygit2.init_repository(str(truth), bare=True)
    with running() as url, ExitStack() as held:
        given: dict[str, Any] = {
            "branch": {"repository": f"file://{truth}"},
            "embed": {"provider": "none"},
        }
        shared = given | {"index": {"engine": url}}
        places = [("one", shared), ("other", shared), ("apart", given)]
        stores = [
            EnhancedStore(tmp_path / name, Settings.model_validate(said)) for name, said in places
        ]
        for store in stores:
            held.callback(store.close)
        yield stores


def test_one_leads_and_the_others_have_what_it_has_fetched(tmp_path: Path) -> None:
    with three_servers(tmp_path) as (one, other, apart):
        one.create("p", "plum")
        for store in (one, other):
            store.start(embed=False)
            assert store.wait_until_settled()
        apart.create("late", "zebra")
        ends, text = time.monotonic() + 60, ""
        while not text and time.monotonic() < ends:  # no search leads it there
            with suppress(NotFound):
                text = other.read("late").text
            time.sleep(0.1)
        assert "zebra" in text


def test_one_leads_nobody_back_to_a_text_of_before_the_commit_that_the_index_is_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with three_servers(tmp_path) as (one, other, apart):
        one.create("p", "plum")
        for store in (other, apart):
            store._parts.vault.history.log.refresh()
            store.sync()
        for store, word in (
            (other, "apple"),
            (one, "zebra"),
        ):  # the other server has not fetched what the one has
            apart.update("p", append=word)
            store._parts.vault.history.log.refresh()
        reached, behind = IndexUpdater._set_revision, [other]

        def slowly(sync: IndexUpdater, *commits: Any) -> bool:
            if behind:
                behind.pop().sync()  # between the rows of the one and its word that they are there
            return reached(sync, *commits)

        monkeypatch.setattr(IndexUpdater, "_set_revision", slowly)
        one.sync()
        one.reach(one.commit(written=True))
        assert [hit.name for hit in one.search("zebra").hits] == ["p"]
