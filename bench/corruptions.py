"""An index damaged in every way we know, again and again, under stores that go on using it.

    python bench/corruptions.py [--rounds 150] [--stores 2] [--seed 1]

Every round damages a good index, asks several stores, starts another that looks it over as a server does once a day, and
asks all again. Before that an answer is right, an error of ours, or lacks what the damage hides (counted); after it, every
answer must be right. SQLite has no checksums: a byte changed within a value is no damage to it. Then `doctor` must tell, and
a rebuild must mend it. An index that is only busy must be left alone. Prints what was counted for each kind; exits with 1
when an answer stayed wrong or a good index was thrown away.
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
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import apsw

from simplemem.config import load_settings
from simplemem.errors import SimplememError
from simplemem.index import file as index_file
from simplemem.index.audit import dump
from simplemem.store import EnhancedStore

SETTINGS = load_settings({"embed.provider": "none", "write.durability": "fast"})
NOTES = 12
PAGE = 4096
Damage = Callable[[Path, random.Random], None]


def log_of(path: Path) -> Path:
    return Path(f"{path}-wal")


def memory_of(path: Path) -> Path:
    return Path(f"{path}-shm")


def overwrite(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def deleted(path: Path, _: random.Random) -> None:
    path.unlink()


def deleted_with_its_log(path: Path, _: random.Random) -> None:
    for file in (path, log_of(path), memory_of(path)):
        file.unlink(missing_ok=True)


def emptied(path: Path, _: random.Random) -> None:
    os.truncate(path, 0)


def cut_at_a_page(path: Path, chance: random.Random) -> None:
    os.truncate(path, PAGE * chance.randrange(1, path.stat().st_size // PAGE))


def cut_anywhere(path: Path, chance: random.Random) -> None:
    os.truncate(path, chance.randrange(1, path.stat().st_size))


def a_byte_changed(path: Path, chance: random.Random) -> None:
    overwrite(path, chance.randrange(path.stat().st_size), chance.randbytes(1))


def bytes_flipped(path: Path, chance: random.Random) -> None:
    for _ in range(chance.choice([5, 50, 200])):
        overwrite(path, chance.randrange(path.stat().st_size), chance.randbytes(8))


def a_page_of_zeros(path: Path, chance: random.Random) -> None:
    overwrite(path, PAGE * chance.randrange(path.stat().st_size // PAGE), bytes(PAGE))


def two_pages_swapped(path: Path, chance: random.Random) -> None:
    data = path.read_bytes()
    one, other = (PAGE * k for k in chance.sample(range(1, len(data) // PAGE), 2))
    overwrite(path, one, data[other : other + PAGE])
    overwrite(path, other, data[one : one + PAGE])


def garbage(path: Path, chance: random.Random) -> None:
    overwrite(path, 0, chance.randbytes(path.stat().st_size))


def no_database_any_more(path: Path, _: random.Random) -> None:
    overwrite(path, 0, b"Not a database\0\0")


def another_programs_mark(path: Path, chance: random.Random) -> None:
    overwrite(path, 68, chance.randbytes(4))


def the_log_overwritten(path: Path, chance: random.Random) -> None:
    log_of(path).write_bytes(chance.randbytes(20_000))


def the_log_cut(path: Path, chance: random.Random) -> None:
    log = log_of(path)
    if log.exists():
        os.truncate(log, chance.randrange(log.stat().st_size + 1))


def the_log_gone(path: Path, _: random.Random) -> None:
    log_of(path).unlink(missing_ok=True)


def the_shared_memory_gone(path: Path, _: random.Random) -> None:
    memory_of(path).unlink(missing_ok=True)


def the_shared_memory_overwritten(path: Path, chance: random.Random) -> None:
    if memory_of(path).exists():
        overwrite(memory_of(path), 0, chance.randbytes(2000))


def a_log_of_another_index(path: Path, _: random.Random) -> None:
    other = path.with_name("other.db")
    connection = apsw.Connection(str(other))
    connection.execute(
        "PRAGMA journal_mode = WAL; CREATE TABLE notes (path); INSERT INTO notes VALUES ('theirs')"
    ).fetchall()
    shutil.copyfile(log_of(other), log_of(path))
    connection.close()
    other.unlink()


def an_older_copy_put_back(path: Path, _: random.Random) -> None:
    shutil.copyfile(path, path.with_name("copy"))
    os.replace(path.with_name("copy"), path)


def not_writable(path: Path, _: random.Random) -> None:
    path.chmod(0o444)


def only_busy(path: Path, _: random.Random) -> None:
    """No damage at all: another process writes to it for a while."""
    connection = apsw.Connection(str(path))
    connection.execute("BEGIN IMMEDIATE; INSERT OR REPLACE INTO meta VALUES ('busy', 'yes')").fetchall()
    time.sleep(0.3)
    connection.execute("ROLLBACK").fetchall()
    connection.close()


def nothing(path: Path, _: random.Random) -> None:
    """No damage at all."""


KINDS: tuple[Damage, ...] = (
    deleted, deleted_with_its_log, emptied, cut_at_a_page, cut_anywhere, a_byte_changed, bytes_flipped, a_page_of_zeros,
    two_pages_swapped, garbage, no_database_any_more, another_programs_mark, the_log_overwritten, the_log_cut,
    the_log_gone, the_shared_memory_gone, the_shared_memory_overwritten, a_log_of_another_index, an_older_copy_put_back,
    not_writable, only_busy, nothing,
)  # fmt: skip
MUST_STAY = {only_busy, nothing, not_writable}

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
        store._core.index.database.checkpoint(force=True)
        store.update("n6", append="what stands in the log")
        return rows_of(store)


def rows_of(store: EnhancedStore) -> list[tuple[Any, ...]]:
    with store._core.index.database.reading() as db:
        return list(dump(db, vectors=False))


def from_another_process(damage: Damage, path: Path, chance: random.Random) -> int:
    """Do it as another program: closing a file here would drop the locks that SQLite holds on it (§1.3)."""
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


def one_round(
    root: Path, good: list[tuple[Any, ...]], right: dict[str, Any], damage: Damage, chance: random.Random, count: int
) -> Counter[str]:
    """Damage one index, and ask."""
    seen: Counter[str] = Counter()
    stores = [EnhancedStore(root, SETTINGS) for _ in range(count)]
    try:
        path = stores[0]._core.index.path
        if chance.random() < 0.5:
            stores[0]._core.index.database.checkpoint(force=True)
        for store in stores:
            store.search("plum", mode="text")
        identity = path.stat().st_ino
        child = from_another_process(damage, path, chance)
        if damage is only_busy:
            time.sleep(0.05)
        else:
            assert os.waitpid(child, 0)[1] == 0, f"{damage.__name__} could not be done"
        for name in chance.sample(sorted(ASKED), 4):
            seen += asked(chance.choice(stores), name, right)
        # What starts next has nothing in its cache that would hide the damage, as the others may.
        looker = EnhancedStore(root, SETTINGS)
        stores.append(looker)
        looker._core.index.check()
        if damage is only_busy:
            os.waitpid(child, 0)
        looker.sync()
        for store in stores:
            for name in ASKED:
                seen[f"after it: {name}"] += answer_of(store, name, right) != "right"
        if rows_of(looker) != good:
            seen["in a value, as the doctor says"] += 1
            told = any(finding.level == "error" for finding in looker.doctor())
            looker.sync(rebuild=True)
            seen["rows differ"] += not told or rows_of(looker) != good
        anew = not path.exists() or path.stat().st_ino != identity
        seen["made anew"] += anew
        seen["thrown away though good"] += anew and damage in MUST_STAY
    finally:
        for store in stores:
            store.close()
    return +seen


def asked(store: EnhancedStore, name: str, right: dict[str, Any]) -> Counter[str]:
    """Ask as a server's next request does: in a thread with a connection of its own."""
    said: list[str] = []
    thread = threading.Thread(target=lambda: said.append(answer_of(store, name, right)))
    thread.start()
    thread.join(60)
    return Counter(said or ["NO ANSWER"])


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
    kinds = [kind for kind in KINDS if given.only in (None, kind.__name__)]
    total: Counter[str] = Counter()
    began = time.process_time()
    with tempfile.TemporaryDirectory(prefix="simplemem-corruptions-") as folder:
        first = Path(folder) / "first"
        first.mkdir()
        good = make_vault(first)
        with EnhancedStore(first, SETTINGS) as store:
            right = {name: ask(store) for name, ask in ASKED.items()}
        by_kind: dict[str, Counter[str]] = {kind.__name__: Counter() for kind in kinds}
        for k in range(given.rounds):
            kind = kinds[k % len(kinds)]
            work = Path(folder) / f"{k}"
            shutil.copytree(first, work)
            seen = one_round(work, good, right, kind, random.Random(f"{given.seed} {k}"), given.stores)
            shutil.rmtree(work)
            harm = [what for what in seen if what.startswith(("after", "rows", "AN", "NO", "thrown"))]
            if harm:
                print(f"round {k}, seed {given.seed}, {kind.__name__}: {harm}", flush=True)
            total["rounds with harm"] += bool(harm)
            total += seen
            by_kind[kind.__name__] += Counter(rounds=1) + seen
    for name, seen in by_kind.items():
        print(f"{name}: {', '.join(f'{n} {what}' for what, n in seen.items())}")
    print(
        f"{given.rounds} damages with seed {given.seed}, {time.process_time() - began:.1f} s CPU: {total['made anew']} made "
        f"anew, {total['right']} right answers, {total['lacking']} lacking, {total['an error of ours']} refused meanwhile"
    )
    bad = total["rounds with harm"]
    print(f"{bad} did harm" if bad else "no answer stayed wrong, and no good index was thrown away")
    return 1 if bad else 0


if __name__ == "__main__":
    index_file.BUSY_MS = 2_000  # what waits for ever is to be seen soon
    logging.disable(logging.WARNING)  # each damage is told of in the log, as it should be
    sys.exit(main())
