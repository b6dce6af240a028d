"""An index damaged in every way we know, again and again, under stores that go on using it.

    python bench/corruptions.py [--rounds 150] [--stores 2] [--seed 1]

Every round damages a good index, asks several stores, starts another that looks it over as a server does once a day,
and asks all again. Before that an answer is right, an error of ours, or lacks what the damage hides; after it, every
answer must be right. SQLite has no checksums: a byte changed within a value is no damage to it. Then `doctor` must
tell, and a rebuild must mend it. An index that is only busy must be left alone. Exits with 1 when an answer stayed
wrong or a good index was thrown away.
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
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import apsw

from simplemem.errors import SimplememError
from simplemem.index.comparison import dump
from simplemem.index.sqlite import engine as index_file
from simplemem.settings.loading import load_settings
from simplemem.store import EnhancedStore

SETTINGS = load_settings({"embed.provider": "none", "write.durability": "fast"})
NOTES = 12
PAGE = 4096
Damage = Callable[[Path, random.Random], object]


def beside(path: Path, end: str) -> Path:
    """The log (-wal) or the shared memory (-shm) of an index."""
    return Path(f"{path}{end}")


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def bytes_flipped(path: Path, chance: random.Random) -> None:
    for _ in range(chance.choice([5, 50, 200])):
        overwrite(path, chance.randrange(size(path)), chance.randbytes(8))


def two_pages_swapped(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    one, other = (PAGE * k for k in chance.sample(range(1, len(data) // PAGE), 2))
    overwrite(path, one, data[other : other + PAGE])
    overwrite(path, other, data[one : one + PAGE])


def a_log_of_another_index(path: Path, _: random.Random) -> None:
    other = path.with_name("other.db")
    connection = apsw.Connection(str(other))
    connection.execute(
        "PRAGMA journal_mode = WAL; CREATE TABLE notes (path); INSERT INTO notes VALUES ('theirs')"
    ).fetchall()
    shutil.copyfile(beside(other, "-wal"), beside(path, "-wal"))
    connection.close()
    other.unlink()


def an_older_copy_put_back(path: Path, _: random.Random) -> None:
    shutil.copyfile(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


def one_of_another_shape(path: Path, _: random.Random) -> None:
    """Of our version by its marks, and with other tables: made by a program that was being worked on."""
    other = path.with_name("other.db")
    connection = apsw.Connection(str(other))
    marks = f"application_id = {index_file.APPLICATION_ID}; PRAGMA user_version = {index_file.SCHEMA_VERSION}"
    connection.execute(f"PRAGMA {marks}; CREATE TABLE notes (path)").fetchall()
    connection.close()
    remove(path)
    os.replace(other, path)


def an_empty_index(path: Path, _: random.Random) -> None:
    remove(path)
    index_file.create_file(path)


def only_busy(path: Path, _: random.Random) -> None:
    """No damage at all: another process writes to it for a while."""
    connection = apsw.Connection(str(path))
    connection.execute(
        "BEGIN IMMEDIATE; INSERT OR REPLACE INTO meta VALUES ('busy', 'yes')"
    ).fetchall()
    time.sleep(0.3)
    connection.execute("ROLLBACK").fetchall()
    connection.close()


def remove(path: Path) -> None:
    for end in ("", "-wal", "-shm"):
        beside(path, end).unlink(missing_ok=True)


KINDS: dict[str, Damage] = {
    "deleted": lambda path, _: path.unlink(),
    "deleted with its log": lambda path, _: remove(path),
    "its folder deleted": lambda path, _: shutil.rmtree(path.parent),
    "emptied": lambda path, _: os.truncate(path, 0),
    "cut at a page": lambda path, chance: os.truncate(
        path, PAGE * chance.randrange(1, size(path) // PAGE)
    ),
    "cut anywhere": lambda path, chance: os.truncate(path, chance.randrange(1, size(path))),
    "a byte changed": lambda path, chance: overwrite(
        path, chance.randrange(size(path)), chance.randbytes(1)
    ),
    "bytes flipped": bytes_flipped,
    "a page of zeros": lambda path, chance: overwrite(
        path, PAGE * chance.randrange(size(path) // PAGE), bytes(PAGE)
    ),
    "two pages swapped": two_pages_swapped,
    "garbage": lambda path, chance: overwrite(path, 0, chance.randbytes(size(path))),
    "no database any more": lambda path, _: overwrite(path, 0, b"Not a database\0\0"),
    "another program's mark": lambda path, chance: overwrite(path, 68, chance.randbytes(4)),
    "another shape": one_of_another_shape,
    "an empty index": an_empty_index,
    "the log overwritten": lambda path, chance: beside(path, "-wal").write_bytes(
        chance.randbytes(20_000)
    ),
    "the log cut": lambda path, _: (
        (log := beside(path, "-wal")).exists() and os.truncate(log, size(log) // 2)
    ),
    "the log gone": lambda path, _: beside(path, "-wal").unlink(missing_ok=True),
    "the shared memory gone": lambda path, _: beside(path, "-shm").unlink(missing_ok=True),
    "the shared memory overwritten": lambda path, chance: beside(path, "-shm").write_bytes(
        chance.randbytes(32_768)
    ),
    "a log of another index": a_log_of_another_index,
    "an older copy put back": an_older_copy_put_back,
    "not writable": lambda path, _: path.chmod(0o444),
    "only busy": only_busy,
    "nothing": lambda *_: None,
}
MUST_STAY = {"only busy", "nothing", "not writable"}

ASKED: dict[str, Callable[[EnhancedStore], Any]] = {
    "search": lambda s: {hit.name for hit in s.search("plum", mode="text", limit=50).hits},
    "search for one": lambda s: {hit.name for hit in s.search("word7", mode="text").hits},
    "list": lambda s: [item.name for item in s.list(sort="name").items],
    "backlinks": lambda s: {link.name for link in s.backlinks("n2", kinds=("link",))},
    "resolve": lambda s: s.resolve("alias 3"),
    "tags": lambda s: s.tags(),
    "names": lambda s: s.names("n"),
    "inspect": lambda s: s.inspect(),
}


def make_vault(root: Path) -> list[tuple[Any, ...]]:
    """A vault with a good index, part of it in the log; all its rows."""
    for k in range(NOTES):
        text = f"---\naliases: [alias {k}]\ntags: [t{k % 3}]\n---\nplum word{k} [[n{(k + 1) % NOTES}]]\n"
        (root / f"n{k}.md").write_text(text + "other words of it\n" * 40)
    with EnhancedStore(root, SETTINGS) as store:
        store.sync()
        store._parts.index.database.checkpoint_log()
        store.update("n6", append="what stands in the log")
        return rows_of(store)


def rows_of(store: EnhancedStore) -> list[tuple[Any, ...]]:
    store._parts.changes.newest()  # it is when it is asked that the table of changes follows the log
    with store._parts.index.database.reading() as db:
        return list(dump(db, vectors=False))


def from_another_process(damage: Damage, path: Path, chance: random.Random) -> int:
    """Do it as another program: closing a file here would drop the locks that SQLite holds on it."""
    pid = os.fork()
    if pid == 0:
        code = 3
        try:
            damage(path, chance)
            code = 0
        finally:
            if code:
                traceback.print_exc()
            os._exit(code)
    return pid


def one_round(root: Path, kind: str, chance: random.Random, count: int = 2) -> list[str]:
    """Damage the index of a vault and ask; what did harm. The vault is made here."""
    good = make_vault(root)
    harm: list[str] = []
    stores = [EnhancedStore(root, SETTINGS) for _ in range(count)]
    try:
        right = {name: ask(stores[0]) for name, ask in ASKED.items()}
        path = stores[0]._parts.index.path
        if chance.random() < 0.5:
            stores[0]._parts.index.database.checkpoint_log()
        for store in stores:
            store.search("plum", mode="text")
        identity = path.stat().st_ino
        child = from_another_process(KINDS[kind], path, chance)
        if kind == "only busy":
            time.sleep(0.05)
        else:
            assert os.waitpid(child, 0)[1] == 0, f"{kind} could not be done"
        for name in chance.sample(sorted(ASKED), 4):
            said = asked(chance.choice(stores), name, right)
            harm += [said] if said not in ("right", "lacking", "an error of ours") else []
        # What starts next has nothing in its cache that would hide the damage, as the others may.
        looker = EnhancedStore(root, SETTINGS)
        stores.append(looker)
        looker._parts.index.check()
        if kind == "only busy":
            os.waitpid(child, 0)
        looker.sync()
        harm += [
            f"after it: {name}"
            for store in stores
            for name in ASKED
            if answer_of(store, name, right) != "right"
        ]
        if kind != "its folder deleted" and rows_of(looker) != good:  # the log of changes was in it
            told = any(finding.level == "error" for finding in looker.doctor())
            looker.sync(rebuild=True)
            harm += [] if told and rows_of(looker) == good else ["rows differ"]
        if kind in MUST_STAY and path.stat().st_ino != identity:
            harm.append("thrown away though good")
    finally:
        for store in stores:
            store.close()
    return harm


def asked(store: EnhancedStore, name: str, right: dict[str, Any]) -> str:
    """Ask as a server's next request does: in a thread with a connection of its own."""
    said = ["NO ANSWER"]
    thread = threading.Thread(target=lambda: said.append(answer_of(store, name, right)))
    thread.start()
    thread.join(60)
    return said[-1]


def answer_of(store: EnhancedStore, name: str, right: dict[str, Any]) -> str:
    try:
        return "right" if ASKED[name](store) == right[name] else "lacking"
    except SimplememError:
        return "an error of ours"
    except Exception as error:  # noqa: BLE001  (to be told of)
        return f"AN ERROR: {error!r}"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--rounds", type=int, default=150)
    parser.add_argument("--stores", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", help="one kind of damage")
    given = parser.parse_args()
    kinds = [kind for kind in KINDS if given.only in (None, kind)]
    bad = 0
    with tempfile.TemporaryDirectory(prefix="simplemem-corruptions-") as folder:
        for k in range(given.rounds):
            kind, work = kinds[k % len(kinds)], Path(folder) / f"{k}"
            work.mkdir()
            harm = one_round(work, kind, random.Random(f"{given.seed} {k}"), given.stores)
            shutil.rmtree(work)
            if harm:
                print(f"round {k}, seed {given.seed}, {kind}: {harm}", flush=True)
            bad += bool(harm)
    print(f"{given.rounds} damages of {len(kinds)} kinds with seed {given.seed}")
    print(f"{bad} did harm" if bad else "no answer stayed wrong, and no good index was thrown away")
    return 1 if bad else 0


if __name__ == "__main__":
    index_file.BUSY_MS = 2_000  # what waits for ever is to be seen soon
    logging.disable(logging.WARNING)  # each damage is told of in the log, as it should be
    sys.exit(main())
