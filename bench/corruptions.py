"""An index is damaged in every way we know, again and again, under stores that go on using it.

    python bench/corruptions.py [--rounds 150] [--stores 2] [--seed 1] [--only KIND]

Every round damages a good index, queries several stores, starts another one that checks the index
as a server does once a day, and queries all stores again. Before that check an answer is right, or
one of our errors, or lacks what the damage hides. After it, every answer must be right. SQLite has
no checksums, so a byte that changes within a value is no damage to it: then `doctor` must report
it, and a rebuild must repair it. An index that is only busy must be left alone.

Exits with 1 if an answer stayed wrong or a good index was thrown away.
"""

from __future__ import annotations

import argparse
import logging
import os
import random
import shutil
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import apsw

from simplemem.errors import SimplememError
from simplemem.index.comparison import dump
from simplemem.index.sqlite import engine as index_file
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore

SETTINGS: Final = load_settings({"embed.provider": "none", "write.durability": "fast"})
NOTES: Final = 12
PAGE: Final = 4096
_QUERIES_BEFORE_CHECK: Final = 4
_LONGEST_ANSWER: Final = 60  # seconds

Damage = Callable[[Path, random.Random], object]
"""Damages the index at a path."""

Rows = list[tuple[Any, ...]]
"""All rows of an index, in a fixed order."""


def main() -> int:
    """Run the rounds. Return the exit code: 1 if one did harm."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--stores", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", metavar="KIND", help="one kind of damage")
    options = parser.parse_args()

    kinds = [kind for kind in KINDS if options.only in (None, kind)]
    harmful_rounds = 0
    with tempfile.TemporaryDirectory(prefix="simplemem-corruptions-") as folder:
        for number in range(options.rounds):
            kind = kinds[number % len(kinds)]
            root = Path(folder) / f"{number}"
            root.mkdir()
            harm = one_round(root, kind, random.Random(f"{options.seed} {number}"), options.stores)
            shutil.rmtree(root)
            if harm:
                print(f"round {number}, seed {options.seed}, {kind}: {harm}", flush=True)
                harmful_rounds += 1

    print(f"{options.rounds} damages of {len(kinds)} kinds with seed {options.seed}")
    if harmful_rounds:
        print(f"{harmful_rounds} did harm")
        return 1
    print("no answer stayed wrong, and no good index was thrown away")
    return 0


# Kinds of damage


def with_suffix(path: Path, suffix: str) -> Path:
    """Return the path of the log (-wal) or the shared memory (-shm) of an index."""
    return Path(f"{path}{suffix}")


def overwrite(path: Path, offset: int, data: bytes) -> None:
    """Write bytes into a file."""
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(data)


def size(path: Path) -> int:
    """Return the size of a file, or 0 if it does not exist."""
    return path.stat().st_size if path.exists() else 0


def remove(path: Path) -> None:
    """Delete an index with its log and shared memory."""
    for suffix in ("", "-wal", "-shm"):
        with_suffix(path, suffix).unlink(missing_ok=True)


def cut_at_page(path: Path, rng: random.Random) -> None:
    """Cut the file at the border of two pages."""
    os.truncate(path, PAGE * rng.randrange(1, size(path) // PAGE))


def change_byte(path: Path, rng: random.Random) -> None:
    """Change one byte anywhere."""
    overwrite(path, rng.randrange(size(path)), rng.randbytes(1))


def change_bytes(path: Path, rng: random.Random) -> None:
    """Change up to 200 times eight bytes anywhere."""
    for _ in range(rng.choice([5, 50, 200])):
        overwrite(path, rng.randrange(size(path)), rng.randbytes(8))


def clear_page(path: Path, rng: random.Random) -> None:
    """Fill a page with zeros."""
    overwrite(path, PAGE * rng.randrange(size(path) // PAGE), bytes(PAGE))


def swap_pages(path: Path, rng: random.Random) -> None:
    """Exchange two pages, but not the first one."""
    data = path.read_bytes()
    first, second = (PAGE * page for page in rng.sample(range(1, len(data) // PAGE), 2))
    overwrite(path, first, data[second : second + PAGE])
    overwrite(path, second, data[first : first + PAGE])


def use_log_of_another_index(path: Path, _: random.Random) -> None:
    """Put the log of another database in place of the index's own."""
    other = path.with_name("other.db")
    connection = apsw.Connection(str(other))
    connection.execute(
        "PRAGMA journal_mode = WAL; CREATE TABLE notes (path); INSERT INTO notes VALUES ('theirs')"
    ).fetchall()
    shutil.copyfile(with_suffix(other, "-wal"), with_suffix(path, "-wal"))
    connection.close()
    other.unlink()


def restore_copy(path: Path, _: random.Random) -> None:
    """Replace the index by a copy of itself that lacks what its log has."""
    copy = path.with_name("copy")
    shutil.copyfile(path, copy)
    os.replace(copy, path)


def use_other_tables(path: Path, _: random.Random) -> None:
    """Replace the index by one with our marks and other tables, as unreleased code makes it."""
    other = path.with_name("other.db")
    connection = apsw.Connection(str(other))
    application = f"PRAGMA application_id = {index_file.APPLICATION_ID}"
    version = f"PRAGMA user_version = {index_file.SCHEMA_VERSION}"
    connection.execute(f"{application}; {version}; CREATE TABLE notes (path)").fetchall()
    connection.close()
    remove(path)
    os.replace(other, path)


def use_empty_index(path: Path, _: random.Random) -> None:
    """Replace the index by a new one without notes."""
    remove(path)
    index_file.create_file(path)


def cut_log(path: Path, _: random.Random) -> None:
    """Remove the second half of the log, if there is one."""
    log = with_suffix(path, "-wal")
    if log.exists():
        os.truncate(log, size(log) // 2)


def keep_busy(path: Path, _: random.Random) -> None:
    """Do no damage: write to the index for a while, as another process would."""
    connection = apsw.Connection(str(path))
    connection.execute(
        "BEGIN IMMEDIATE; INSERT OR REPLACE INTO meta VALUES ('busy', 'yes')"
    ).fetchall()
    time.sleep(0.3)
    connection.execute("ROLLBACK").fetchall()
    connection.close()


KINDS: Final[dict[str, Damage]] = {
    "deleted": lambda path, _: path.unlink(),
    "deleted with its log": lambda path, _: remove(path),
    "its folder deleted": lambda path, _: shutil.rmtree(path.parent),
    "emptied": lambda path, _: os.truncate(path, 0),
    "cut at a page": cut_at_page,
    "cut anywhere": lambda path, rng: os.truncate(path, rng.randrange(1, size(path))),
    "a byte changed": change_byte,
    "bytes flipped": change_bytes,
    "a page of zeros": clear_page,
    "two pages swapped": swap_pages,
    "garbage": lambda path, rng: overwrite(path, 0, rng.randbytes(size(path))),
    "no database any more": lambda path, _: overwrite(path, 0, b"Not a database\0\0"),
    "another program's mark": lambda path, rng: overwrite(path, 68, rng.randbytes(4)),
    "another shape": use_other_tables,
    "an empty index": use_empty_index,
    "the log overwritten": lambda path, rng: with_suffix(path, "-wal").write_bytes(
        rng.randbytes(20_000)
    ),
    "the log cut": cut_log,
    "the log gone": lambda path, _: with_suffix(path, "-wal").unlink(missing_ok=True),
    "the shared memory gone": lambda path, _: with_suffix(path, "-shm").unlink(missing_ok=True),
    "the shared memory overwritten": lambda path, rng: with_suffix(path, "-shm").write_bytes(
        rng.randbytes(32_768)
    ),
    "a log of another index": use_log_of_another_index,
    "an older copy put back": restore_copy,
    "not writable": lambda path, _: path.chmod(0o444),
    "only busy": keep_busy,
    "nothing": lambda *_: None,
}
MUST_STAY: Final = {"only busy", "nothing", "not writable"}


# What is asked

QUERIES: Final[dict[str, Callable[[EnhancedStore], Any]]] = {
    "search": lambda store: {hit.name for hit in store.search("plum", mode="text", limit=50).hits},
    "search for one": lambda store: {hit.name for hit in store.search("word7", mode="text").hits},
    "list": lambda store: [item.name for item in store.list(sort="name").items],
    "backlinks": lambda store: {link.name for link in store.backlinks("n2", kinds=("link",))},
    "resolve": lambda store: store.resolve("alias 3"),
    "tags": lambda store: store.tags(),
    "names": lambda store: store.names("n"),
    "inspect": lambda store: store.inspect(),
}

RIGHT: Final = "right"
HARMLESS: Final = {RIGHT, "lacking", "an error of ours"}
"""What a query may give while the damage has not been found."""


def query(store: EnhancedStore, name: str, expected: dict[str, Any]) -> str:
    """Run a query and return RIGHT, another word of HARMLESS, or what went wrong."""
    try:
        answer = QUERIES[name](store)
    except SimplememError:
        return "an error of ours"
    except Exception as error:  # noqa: BLE001  (it is reported)
        return f"AN ERROR: {error!r}"
    return RIGHT if answer == expected[name] else "lacking"


def query_in_thread(store: EnhancedStore, name: str, expected: dict[str, Any]) -> str:
    """Run a query as a server's next request does: in a thread with a connection of its own."""
    answers = ["NO ANSWER"]
    thread = threading.Thread(target=lambda: answers.append(query(store, name, expected)))
    thread.start()
    thread.join(_LONGEST_ANSWER)
    return answers[-1]


# A round


def one_round(root: Path, kind: str, rng: random.Random, count: int = 2) -> list[str]:
    """Make a vault, damage its index under so many stores, and return what did harm."""
    good_rows = make_vault(root)
    stores = [EnhancedStore(root, SETTINGS) for _ in range(count)]
    try:
        return _damage_and_query(root, kind, rng, stores, good_rows)
    finally:
        for store in stores:
            store.close()


def _damage_and_query(
    root: Path, kind: str, rng: random.Random, stores: list[EnhancedStore], good_rows: Rows
) -> list[str]:
    """Carry out the steps of a round. Adds the store that finds the damage to `stores`."""
    first = stores[0]
    expected = {name: run(first) for name, run in QUERIES.items()}
    path = first._parts.index.path
    if rng.random() < 0.5:
        first._parts.index.database.checkpoint_log()
    for store in stores:
        store.search("plum", mode="text")
    identity = path.stat().st_ino

    child = damage_in_child(KINDS[kind], path, rng)
    if kind == "only busy":
        time.sleep(0.05)
    else:
        _, status = os.waitpid(child, 0)
        assert status == 0, f"{kind} could not be done"

    answers = [
        query_in_thread(rng.choice(stores), name, expected)
        for name in rng.sample(sorted(QUERIES), _QUERIES_BEFORE_CHECK)
    ]
    harm = [answer for answer in answers if answer not in HARMLESS]

    # A new store has nothing in its cache that would hide the damage, as the others may.
    checker = EnhancedStore(root, SETTINGS)
    stores.append(checker)
    checker._parts.index.check()
    if kind == "only busy":
        os.waitpid(child, 0)
    checker.sync()

    for store in stores:
        wrong = [name for name in QUERIES if query(store, name, expected) != RIGHT]
        harm += [f"after it: {name}" for name in wrong]
    # The folder has the log of changes too, whose rows are then gone for good.
    if kind != "its folder deleted" and not _rows_are_or_become(checker, good_rows):
        harm.append("rows differ")
    if kind in MUST_STAY and path.stat().st_ino != identity:
        harm.append("thrown away though good")
    return harm


def _rows_are_or_become(store: EnhancedStore, good_rows: Rows) -> bool:
    """Return if the rows are right, or `doctor` reports an error and a rebuild repairs them."""
    if rows_of(store) == good_rows:
        return True
    is_reported = any(finding.level == "error" for finding in store.doctor())
    store.sync(rebuild=True)
    return is_reported and rows_of(store) == good_rows


def make_vault(root: Path) -> Rows:
    """Make a vault with a good index, part of which is in the log. Return all rows."""
    for number in range(NOTES):
        header = f"---\naliases: [alias {number}]\ntags: [t{number % 3}]\n---\n"
        line = f"plum word{number} [[n{(number + 1) % NOTES}]]\n"
        (root / f"n{number}.md").write_text(header + line + "other words of it\n" * 40)
    with EnhancedStore(root, SETTINGS) as store:
        store.sync()
        store._parts.index.database.checkpoint_log()
        store.update("n6", append="what stands in the log")
        return rows_of(store)


def rows_of(store: EnhancedStore) -> Rows:
    """Return the rows of a store's index, the table of changes included."""
    store._parts.changes.newest()  # a query makes the table of changes follow the log
    with store._parts.index.database.reading() as db:
        return list(dump(db, vectors=False))


def damage_in_child(damage: Damage, path: Path, rng: random.Random) -> int:
    """Damage an index in a child process and return its number.

    If this process opened and closed the file, that would release the locks of SQLite in it.
    """
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            damage(path, rng)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    return pid


if __name__ == "__main__":
    index_file.BUSY_MS = 2_000  # so that a deadlock shows soon
    logging.disable(logging.WARNING)  # each damage is logged, as it should be
    sys.exit(main())
