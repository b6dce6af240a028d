"""The index file may be shared, deleted, damaged or replaced: what is asked is answered all the same."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TypeVar

import apsw
import pytest
from index.terms.vault_of_words import put_notes

from bench.corruptions import KINDS, one_round
from simplemem.errors import SimplememError, Unavailable
from simplemem.index.sqlite.engine import (
    APPLICATION_ID,
    SCHEMA_VERSION,
    SqliteEngine,
    open_engine,
)
from simplemem.index.terms.merging import merge_segments
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

T = TypeVar("T")
Write = Callable[[str, str | bytes], Path]
PLAIN = Settings.model_validate({"embed": {"provider": "none"}, "write": {"durability": "fast"}})


def in_a_new_thread(ask: Callable[[], T]) -> T:
    """As a server's next request: with a connection of its own."""
    answers: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            answers.append(ask())
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return answers[0]


def plums(store: EnhancedStore) -> set[str]:
    return {hit.name for hit in store.search("plum", mode="text", limit=50).hits}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[SqliteEngine]:
    opened = open_engine(tmp_path / "index.db", nullcontext)
    yield opened
    opened.close()


@contextmanager
def raw(path: Path) -> Iterator[apsw.Connection]:
    connection = apsw.Connection(str(path))
    try:
        yield connection
    finally:
        connection.close()


# -- one file, many hands


def test_a_new_index_carries_its_marks_and_a_write_ahead_log(database: SqliteEngine) -> None:
    settings = ("application_id", "user_version", "journal_mode", "wal_autocheckpoint")
    said = [database.rows(f"PRAGMA {name}")[0][0] for name in settings]
    assert said == [
        APPLICATION_ID,
        SCHEMA_VERSION,
        "wal",
        0,
    ]  # checkpoints are made under the vault's lock alone
    assert database.check() == []


def test_a_snapshot_ends_on_the_file_it_began_on(tmp_path: Path) -> None:
    database = open_engine(tmp_path / "index.db", nullcontext)
    database.set_meta("x", "old")
    with database.reading() as db:
        KINDS["deleted with its log"](database.path, random.Random())
        in_a_new_thread(lambda: database.set_meta("x", "new"))
        assert (
            database.meta("x") == db.execute("SELECT value FROM meta WHERE key = 'x'").get == "old"
        )
    assert database.meta("x") == "new"
    database.close()


def test_a_file_that_vanishes_while_the_size_is_counted_is_left_out(
    database: SqliteEngine,
) -> None:
    size = database.size()
    vanished = database.path.with_name(f"{database.path.name}.new-1")
    vanished.symlink_to(database.path.with_name("gone"))
    assert database.size() == size > 0


def test_every_thread_has_a_connection_and_dead_threads_leave_none(database: SqliteEngine) -> None:
    mine = database.connection()
    assert database.connection() is mine
    for _ in range(20):
        assert in_a_new_thread(database.connection) is not mine
    assert len(database._connections) <= 2


def test_threads_that_write_at_once_all_get_their_turn(database: SqliteEngine) -> None:
    def add(k: int) -> None:
        for j in range(25):
            database.set_meta(f"{k}.{j}", "x")

    threads = [threading.Thread(target=add, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert database.rows("SELECT count(*) FROM meta WHERE key LIKE '%.%'") == [(100,)]


def test_the_log_is_folded_in_under_the_lock_once_it_has_grown(tmp_path: Path) -> None:
    held: list[str] = []

    @contextmanager
    def lock() -> Iterator[None]:
        held.append("lock")
        yield

    database = open_engine(tmp_path / "index.db", lock)
    held.clear()
    database.set_meta("x", "y" * 100_000)
    database.checkpoint()
    assert held == []  # it is small yet
    database.checkpoint_log()
    assert held == ["lock"] and (tmp_path / "index.db-wal").stat().st_size == 0
    database.close()


def test_folding_the_log_in_waits_for_no_reader_and_is_done_when_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waited here would keep every writer of the vault waiting with it."""
    monkeypatch.setattr("simplemem.index.sqlite.engine.BUSY_MS", 3_600_000)
    database = open_engine(tmp_path / "index.db", nullcontext)
    log = tmp_path / "index.db-wal"
    with raw(tmp_path / "index.db") as reader:
        reader.execute("BEGIN; SELECT * FROM meta").fetchall()
        database.set_meta("x", "y" * 100_000)
        folding = threading.Thread(target=lambda: database.checkpoint_log(), daemon=True)
        folding.start()
        folding.join(60)
        assert not folding.is_alive() and log.stat().st_size > 0
        assert reader.execute("SELECT count(*) FROM meta WHERE key = 'x'").get == 0, (
            "it still reads its own moment"
        )
        database.set_meta("x", "z")
    database.checkpoint_log()
    assert log.stat().st_size == 0 and database.meta("x") == "z"
    assert database.rows("PRAGMA busy_timeout") == [(3_600_000,)]
    database.close()


def test_the_log_stays_small_though_a_program_only_writes(
    plain_store: EnhancedStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplemem.index.sqlite.engine._MAX_LOG_BYTES", 200_000)
    plain_store.create("a", "start")
    log = Path(f"{plain_store._parts.index.path}-wal")
    sizes = []
    for k in range(30):
        plain_store.update("a", content=f"other words {k}\n" * 50)
        sizes.append(log.stat().st_size)
    assert max(sizes) < 600_000 and sizes.count(0) > 1


# -- damage under a running store


@pytest.mark.parametrize("kind", KINDS)
def test_an_index_damaged_under_running_stores_comes_back_by_itself(vault: Path, kind: str) -> None:
    """A damage that hides is never an error of another kind, and a rebuild mends it."""
    assert one_round(vault, kind, random.Random(kind)) == []


WRITTEN: dict[str, Callable[[EnhancedStore], object]] = {
    "create": lambda store: store.create("new", "[[n1]] plum"),
    "append": lambda store: store.update("n3", append="more"),
    "move": lambda store: store.move("n4", "moved"),
    "delete": lambda store: store.delete("n5"),
    "undo": lambda store: store.undo("n6"),
}


@pytest.mark.parametrize(
    "kind", ["deleted with its log", "emptied", "garbage", "another shape", "the log overwritten"]
)
def test_what_is_written_on_a_damaged_index_is_kept_and_found(
    vault: Path, write: Write, kind: str
) -> None:
    chance = random.Random(kind)
    for k in range(12):
        write(f"n{k}.md", f"plum {k} [[n{(k + 1) % 12}]]\n" + "other words " * 100)
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        for name, act in WRITTEN.items():
            with suppress(SimplememError):
                store.update("n6", append="before the damage")
            KINDS[kind](store._parts.index.path, chance)
            with suppress(SimplememError):
                in_a_new_thread(lambda act=act: act(store))  # type: ignore[misc]
            store.sync()
            there = {path.stem for path in vault.glob("*.md") if "plum" in path.read_text()}
            assert in_a_new_thread(lambda: plums(store)) == there, name
    KINDS[kind](vault / ".simplemem" / "index.db", chance)
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        assert plums(store) == there and store._parts.index.database.check() == []


@pytest.mark.parametrize("seed", ["1 784", "1 834"])  # rows with a number in place of a text
def test_a_value_of_another_type_in_a_damaged_page_is_damage(vault: Path, seed: str) -> None:
    assert one_round(vault, "two pages swapped", random.Random(seed)) == []


def test_a_value_of_another_type_has_the_index_checked_and_a_bug_leaves_it_alone(
    plain_store: EnhancedStore,
) -> None:
    plain_store.create("a", "plum")
    index = plain_store._parts.index
    made = index.generation

    def bug() -> object:
        raise TypeError("of ours")

    with pytest.raises(TypeError, match="of ours"):
        index.with_retry(bug)
    assert index.generation == made and plums(plain_store) == {"a"}

    with index.database.writing() as db:
        db.execute("UPDATE segments SET words = 'many', documents = x'00'").fetchall()
    with suppress(SimplememError):
        in_a_new_thread(lambda: plums(plain_store))
    plain_store.sync()
    assert index.generation > made and plums(plain_store) == {"a"}


@pytest.mark.parametrize(
    "spoil",
    [
        "DELETE FROM terms WHERE term = 'plum'",
        "UPDATE terms SET postings = substr(postings, 2) WHERE term = 'plum'",
        "UPDATE terms SET postings = x'FFFFFF7F01' WHERE term = 'plum'",
        "UPDATE terms SET positions = x'' WHERE term = 'plum'",
        "UPDATE segments SET documents = substr(documents, 1, 9)",
        "UPDATE segments SET documents = CAST(x'FF' || substr(documents, 2) AS BLOB)",
    ],
)
def test_a_check_sees_that_words_are_missing_in_a_file_that_is_whole(
    database: SqliteEngine, spoil: str
) -> None:
    with database.writing() as db:
        put_notes(db, {f"n{number}": f"word{number} plum" for number in range(20)})
    merge_segments(database, max_packed=0)
    assert database.check() == []
    with database.writing() as db:
        db.execute(spoil).fetchall()
    assert database.check() != []


def test_a_check_sees_a_packed_segment_that_cannot_be_read(database: SqliteEngine) -> None:
    with database.writing() as db:
        put_notes(db, {"a": "plum pear"})
    assert database.check() == []
    with database.writing() as db:
        db.execute("UPDATE segments SET packed = substr(packed, 1, 20)").fetchall()
    assert database.check() != []


def test_a_check_takes_no_merge_of_another_connection_for_damage(
    database: SqliteEngine, tmp_path: Path
) -> None:
    with database.writing() as db:
        put_notes(db, {"a": "plums they ripen"})
    assert database.check() == []
    with closing(open_engine(tmp_path / "index.db", nullcontext)) as another:
        with another.writing() as db:
            put_notes(db, {"b": "plums they ripen"})
        merge_segments(another, max_packed=0)
    assert database.check() == []


def test_an_index_swapped_in_is_seen_by_every_thread_and_process(vault: Path, write: Write) -> None:
    write("a.md", "plum")
    with EnhancedStore(vault, PLAIN) as one, EnhancedStore(vault, PLAIN) as two:
        one.sync()
        before = path_identity(one)
        assert plums(two) == {"a"}
        one.sync(rebuild=True)
        assert path_identity(one) != before
        write("b.md", "plum")
        two.sync()
        assert plums(one) == plums(two) == in_a_new_thread(lambda: plums(one)) == {"a", "b"}


def test_a_rebuild_that_fails_leaves_the_old_index_and_no_file(vault: Path, write: Write) -> None:
    write("a.md", "plum")

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        before = path_identity(store)
        with pytest.raises(KeyboardInterrupt):
            store.sync(rebuild=True, progress=stop)
        assert list((vault / ".simplemem").glob("*.new-*")) == []
        assert path_identity(store) == before
        assert plums(store) == {"a"}


def path_identity(store: EnhancedStore) -> tuple[int, int]:
    found = store._parts.index.path.stat()
    return found.st_dev, found.st_ino


KILLED = """
import os, sys
from pathlib import Path
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

store = EnhancedStore(Path(sys.argv[1]), Settings.model_validate({"embed": {"provider": "none"}}))
store._parts.index.database.build_replacement()
os.kill(os.getpid(), 9)
"""


def test_what_a_killed_rebuild_left_is_cleared_away(vault: Path, write: Write) -> None:
    write("a.md", "plum")
    subprocess.run([sys.executable, "-c", KILLED, str(vault)], check=False)
    assert list((vault / ".simplemem").glob("index.db.*"))
    with EnhancedStore(vault, PLAIN) as store:
        store.sync(rebuild=True)
        assert plums(store) == {"a"}
    assert list((vault / ".simplemem").glob("index.db.*")) == []


# -- whose file it is


def test_a_newer_index_is_left_alone_and_ours_lies_beside_it(vault: Path, write: Write) -> None:
    write("a.md", "plum")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        path = store._parts.index.path
    with closing(apsw.Connection(str(path))) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}").fetchall()
    before = path.read_bytes()
    for _ in range(2):
        with EnhancedStore(vault, PLAIN) as store:
            store.sync()
            assert plums(store) == {"a"} and store._parts.index.path != path
    assert path.read_bytes() == before


def test_a_running_store_leaves_the_index_of_a_newer_simplemem_alone(
    vault: Path, write: Write
) -> None:
    write("a.md", "plum")
    with EnhancedStore(vault, PLAIN) as store:
        store.sync()
        path = store._parts.index.path
        store._parts.index.database.checkpoint_log()
        newer = path.with_name("newer.db")
        newer.write_bytes(path.read_bytes())
        with closing(apsw.Connection(str(newer))) as db:
            db.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}").fetchall()
        newer.replace(path)
        before = path.read_bytes()
        write("b.md", "plum")
        store.sync()
        assert plums(store) == {"a", "b"}
        assert store._parts.index.path == path.with_name(f"index-v{SCHEMA_VERSION}.db")
        assert store.stats()["index_path"] == str(store._parts.index.path)
    assert path.read_bytes() == before


def test_an_older_index_is_made_anew(vault: Path, write: Write) -> None:
    write("a.md", "plum")
    path = vault / ".simplemem" / "index.db"
    path.parent.mkdir()
    with closing(apsw.Connection(str(path))) as db:
        db.execute(f"PRAGMA application_id = {APPLICATION_ID}").fetchall()
        db.execute("PRAGMA user_version = -1; CREATE TABLE notes (other)").fetchall()
    with EnhancedStore(vault, PLAIN) as store:
        assert store._parts.index.path == path
        store.sync()
        assert plums(store) == {"a"}


@pytest.mark.parametrize("mark", [0, 0x12345678, None])
def test_a_file_of_another_program_is_never_touched(
    vault: Path, tmp_path: Path, mark: int | None
) -> None:
    theirs = tmp_path / "theirs.db"
    theirs.write_text("Chapter one\n" * 400 if mark is None else "")
    if mark is not None:
        with closing(apsw.Connection(str(theirs))) as db:
            db.execute(f"PRAGMA application_id = {mark}").fetchall()
            db.execute(
                "CREATE TABLE precious (x); INSERT INTO precious VALUES ('thesis')"
            ).fetchall()
    before = theirs.read_bytes()
    with pytest.raises(Unavailable, match="another program"):
        EnhancedStore(vault, Settings.model_validate({"db": theirs, "embed": {"provider": "none"}}))
    assert theirs.read_bytes() == before


def test_an_index_that_cannot_be_made_is_said_with_a_way_out(vault: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("no folder")
    with pytest.raises(SimplememError):
        EnhancedStore(vault, Settings.model_validate({"db": tmp_path / "file" / "index.db"}))


def test_whoever_makes_the_index_anew_does_not_hold_up_who_has_the_vault(vault: Path) -> None:
    """A write has the vault's lock and asks the index; a question has the index to make and waits for the vault's lock."""
    lock, waiting = threading.RLock(), threading.Event()
    asked = threading.local()

    @contextmanager
    def vault_lock() -> Iterator[None]:
        if getattr(asked, "is_question", False):
            waiting.set()
        if not lock.acquire(timeout=5):
            raise Unavailable("the vault is locked")
        try:
            yield
        finally:
            lock.release()

    failures: list[BaseException] = []
    database = SqliteEngine(vault / ".simplemem" / "index.db", vault_lock)

    def question() -> None:
        asked.is_question = True
        try:
            database.connection()
        except BaseException as error:
            failures.append(error)

    with vault_lock():
        shutil.rmtree(vault / ".simplemem")
        thread = threading.Thread(target=question)
        thread.start()
        assert waiting.wait(30)
        database.connection()
    thread.join(30)
    assert not failures and database.rows("SELECT count(*) FROM meta")
