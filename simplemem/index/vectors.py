"""Vectors of passages and blocks as they come and go, and whose they are. They lie in an ordinary table, so that a filter
skips rows and removal is by range. How they are compared stands in nearest.py.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import apsw

from simplemem.index import notes
from simplemem.index.facts import BLOCK, SHIFT


@dataclass(frozen=True, slots=True)
class VectorTable:
    """The table in which a generation lies, and the column of `notes` that says which notes it has."""

    place: str
    table: str
    flag: str


NOW = VectorTable("now", "vectors", "embedded")
NEXT = VectorTable("next", "vectors_next", "embedded_next")


@dataclass(frozen=True, slots=True)
class Generation:
    """Whose vectors lie on a shelf. `dimension` is 0 until the first has come; `remote` ones hold no private note."""

    shelf: VectorTable
    embedder: str
    dimension: int
    remote: bool


def generations(db: apsw.Connection) -> list[Generation]:
    """Those there are: the one in use first."""
    found = {
        place: (embedder, dimension, bool(remote))
        for place, embedder, dimension, remote in db.execute(
            "SELECT place, embedder, dimension, remote FROM generations"
        )
    }
    return [Generation(shelf, *found[shelf.place]) for shelf in (NOW, NEXT) if shelf.place in found]


def generation_of(db: apsw.Connection, embedder: str) -> Generation | None:
    """The generation of this embedder, in use or being made."""
    return next((found for found in generations(db) if found.embedder == embedder), None)


def in_use(db: apsw.Connection) -> Generation | None:
    """The generation that searches use, however far it is."""
    return next((found for found in generations(db) if found.shelf == NOW), None)


def begin(db: apsw.Connection, embedder: str, *, remote: bool) -> Generation:
    """Give an embedder a shelf, or find the one it has. Beside vectors in use it is the next; another that was being made
    there is given up."""
    found = generation_of(db, embedder)
    if found is not None and found.remote == remote:
        return found
    if found is not None:  # the same model, served from elsewhere
        _move_to(db, found.shelf, remote=remote)
        return Generation(found.shelf, embedder, found.dimension, remote)
    holds_any = db.execute("SELECT EXISTS (SELECT 1 FROM vectors)").get
    shelf = NEXT if holds_any else NOW
    _clear(db, NEXT)
    db.execute("DELETE FROM generations WHERE place IN ('next', ?)", (shelf.place,)).fetchall()
    db.execute("INSERT INTO generations VALUES (?, ?, 0, ?)", (shelf.place, embedder, remote)).fetchall()
    db.execute("DELETE FROM refused").fetchall()
    wants_nothing = "hidden IS NOT NULL OR (:remote AND private IS NOT NULL)"
    db.execute(f"UPDATE notes SET {shelf.flag} = ({wants_nothing})", {"remote": remote}).fetchall()
    return Generation(shelf, embedder, 0, remote)


def _move_to(db: apsw.Connection, shelf: VectorTable, *, remote: bool) -> None:
    """The embedder has moved to another machine, which must have no private note, or back to this one."""
    db.execute("UPDATE generations SET remote = ? WHERE place = ?", (remote, shelf.place)).fetchall()
    if remote:
        sql = f"DELETE FROM {shelf.table} WHERE id >> 20 IN (SELECT id FROM notes WHERE private IS NOT NULL)"
        db.execute(sql).fetchall()
    sql = f"UPDATE notes SET {shelf.flag} = ? WHERE private IS NOT NULL AND hidden IS NULL"
    db.execute(sql, (int(remote),)).fetchall()


def set_dimension(db: apsw.Connection, generation: Generation, dimension: int) -> None:
    """The first vector has come."""
    sql = "UPDATE generations SET dimension = ? WHERE place = ? AND embedder = ?"
    db.execute(sql, (dimension, generation.shelf.place, generation.embedder)).fetchall()


def may_be_complete(db: apsw.Connection, embedder: str, without: Collection[int] = ()) -> bool:
    """Whether this embedder's is a next generation that no note waits for, but for those that nobody can read just now."""
    if not any(found.shelf == NEXT and found.embedder == embedder for found in generations(db)):
        return False
    waiting = db.execute("SELECT id FROM notes WHERE embedded_next = 0 LIMIT ?", (len(without) + 1,))
    return all(note_id in without for (note_id,) in waiting)


def switch_if_complete(db: apsw.Connection, embedder: str, without: Collection[int] = ()) -> bool:
    """Put the next generation in use when no note waits for it, and drop the one before it. Only who makes it does: the
    settings of another process ask for the one that is in use."""
    if not may_be_complete(db, embedder, without):
        return False
    db.execute("ALTER TABLE vectors RENAME TO vectors_before").fetchall()
    db.execute("ALTER TABLE vectors_next RENAME TO vectors").fetchall()
    db.execute("ALTER TABLE vectors_before RENAME TO vectors_next").fetchall()
    _clear(db, NEXT)
    db.execute("UPDATE notes SET embedded = embedded_next WHERE embedded != embedded_next").fetchall()
    db.execute("DELETE FROM generations WHERE place = 'now'").fetchall()
    db.execute("UPDATE generations SET place = 'now' WHERE place = 'next'").fetchall()
    return True


def _clear(db: apsw.Connection, shelf: VectorTable) -> None:
    db.execute(f"DELETE FROM {shelf.table}").fetchall()


# -- counting


def progress(db: apsw.Connection, embedder: str, *, remote: bool) -> tuple[int, int]:
    """How many notes wait for a vector of this embedder, which may not have a generation yet, and how many are to have
    one."""
    wanted = "SELECT count(*) FROM notes WHERE hidden IS NULL AND NOT (:remote AND private IS NOT NULL)"
    total = int(db.execute(wanted, {"remote": remote}).get)
    found = generation_of(db, embedder)
    if found is None:
        return total, total
    return int(db.execute(f"SELECT count(*) FROM notes WHERE {found.shelf.flag} = 0").get), total


def waiting(db: apsw.Connection, found: Generation) -> int:
    """How many notes wait for a vector of a generation."""
    return int(db.execute(f"SELECT count(*) FROM notes WHERE {found.shelf.flag} = 0").get)


def private_count(db: apsw.Connection) -> int:
    """Notes that are kept private, and take part in search."""
    return int(db.execute("SELECT count(*) FROM notes WHERE private IS NOT NULL AND hidden IS NULL").get)


def refused(db: apsw.Connection) -> list[tuple[str, str]]:
    """The paths of notes of which the embedder refused some text, and what it said."""
    return list(db.execute("SELECT n.path, r.why FROM refused r JOIN notes n ON n.id = r.note_id ORDER BY n.path"))


# -- a note's vectors


def put(
    db: apsw.Connection,
    note_id: int,
    sha256: str,
    vectors: Mapping[int, bytes],
    shelf: VectorTable = NOW,
    refused: str = "",
) -> bool:
    """Store a note's vectors, unless the note has changed since its text was read. Says whether they were stored.
    `refused` is what the embedder said of texts it would not take; the note asks for no more then."""
    row = db.execute("SELECT sha256 FROM notes WHERE id = ?", (note_id,)).fetchone()
    if row is None or row[0] != sha256:
        return False
    first, after = note_id << SHIFT, (note_id + 1) << SHIFT
    hashes = dict(
        db.execute(
            """SELECT id, hash FROM passages WHERE id >= :first AND id < :after
               UNION ALL SELECT id, hash FROM blocks WHERE id >= :first AND id < :after""",
            {"first": first, "after": after},
        )
    )
    db.executemany(
        f"INSERT OR REPLACE INTO {shelf.table} (id, hash, vector) VALUES (?, ?, ?)",
        ((id_, hashes[id_], vector) for id_, vector in vectors.items() if id_ in hashes),
    )
    if refused:
        db.execute("INSERT OR REPLACE INTO refused (note_id, why) VALUES (?, ?)", (note_id, refused)).fetchall()
    done = 2 if refused else 1
    db.execute(f"UPDATE notes SET {shelf.flag} = ? WHERE id = ?", (done, note_id)).fetchall()
    if shelf == NOW:  # whoever holds the vectors in use in memory follows by the number of the change
        db.execute("UPDATE notes SET rev = ? WHERE id = ?", (notes.next_rev(db), note_id)).fetchall()
    return True


def missing(db: apsw.Connection, limit: int, shelf: VectorTable = NOW) -> list[tuple[int, str]]:
    """Notes whose vectors are still to be made, as (id, path)."""
    return list(db.execute(f"SELECT id, path FROM notes WHERE {shelf.flag} = 0 ORDER BY id LIMIT ?", (limit,)))


def count_missing(db: apsw.Connection, shelf: VectorTable = NOW) -> int:
    return int(db.execute(f"SELECT count(*) FROM notes WHERE {shelf.flag} = 0").get)


def settle(db: apsw.Connection, note_id: int) -> None:
    """A note of which no generation wants anything."""
    for shelf in (NOW, NEXT):
        db.execute(f"UPDATE notes SET {shelf.flag} = 1 WHERE id = ?", (note_id,)).fetchall()


def places_without_vectors(db: apsw.Connection, note_id: int, shelf: VectorTable = NOW) -> dict[int, bytes]:
    """The places of a note that wait for a vector, with the hash of what it is to be made of."""
    sql = f"""SELECT id, hash FROM (SELECT id, hash FROM passages UNION ALL SELECT id, hash FROM blocks)
              WHERE id >= :first AND id < :after AND hash IS NOT NULL
                AND id NOT IN (SELECT id FROM {shelf.table} WHERE id >= :first AND id < :after)"""
    return dict(db.execute(sql, {"first": note_id << SHIFT, "after": (note_id + 1) << SHIFT}))


def vectors_of(db: apsw.Connection, note_id: int) -> list[bytes]:
    """The vectors of a note's passages."""
    sql = "SELECT vector FROM vectors WHERE id >= ? AND id < ? ORDER BY id"
    first = note_id << SHIFT
    return [row[0] for row in db.execute(sql, (first, first | BLOCK))]


# -- what they would cost

_BYTES_PER_TOKEN = 4  # of English prose; a Chinese character, of three bytes, comes out at less than one token
_TOKENS_OF_A_HEADING = 8  # every text begins with where it stands
_ASKED_AT_ONCE = 1000


MadeBefore = Callable[[Sequence[bytes]], Collection[bytes]]
"""Of which texts, by their hashes, there are vectors elsewhere."""


def nothing_made_before(_: Sequence[bytes]) -> Collection[bytes]:
    return ()


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an embedder has still to be given: texts of so many notes, each once, and about so many tokens. `kept` texts
    need not be, because their vectors were made before. To a `remote` one they are sent over the network."""

    embedder: str
    remote: bool
    notes: int
    texts: int
    tokens: int
    kept: int


def estimate(
    db: apsw.Connection,
    embedder: str,
    *,
    remote: bool,
    anew: bool = False,
    known: MadeBefore = nothing_made_before,
) -> Estimate:
    """What waits for this embedder. `anew` counts as if no note had its vectors yet; `known` says of which texts, by
    their hashes, there are vectors elsewhere."""
    found = None if anew else generation_of(db, embedder)
    waits = "n.hidden IS NULL AND NOT (:remote AND n.private IS NOT NULL)"
    if found is not None:
        there = f"SELECT 1 FROM {found.shelf.table} v WHERE v.id = p.id"
        waits = f"n.{found.shelf.flag} = 0 AND {waits} AND NOT EXISTS ({there})"
    of_one_kind = f"""SELECT p.hash, n.id, p.stop - p.start, n.size * 1.0 / max(p.stop, 1)
                      FROM notes n CROSS JOIN {{}} p ON p.id >= (n.id << 20) AND p.id < ((n.id + 1) << 20)
                      WHERE p.hash IS NOT NULL AND {waits}"""
    sql = " UNION ALL ".join(of_one_kind.format(table) for table in ("passages", "blocks"))
    characters: dict[bytes, tuple[int, int]] = {}
    width: dict[int, float] = {}  # bytes a character, by note: its last text ends where its file does
    for hash_, note, size, bytes_per_character in db.execute(sql, {"remote": remote}):
        characters[hash_] = (note, size)
        width[note] = min(width.get(note, 4.0), bytes_per_character)
    hashes = list(characters)
    for first in range(0, len(hashes), _ASKED_AT_ONCE):
        for hash_ in known(hashes[first : first + _ASKED_AT_ONCE]):
            characters.pop(hash_, None)
    tokens = sum(size * width[note] / _BYTES_PER_TOKEN + _TOKENS_OF_A_HEADING for note, size in characters.values())
    notes = len({note for note, _ in characters.values()})
    return Estimate(embedder, remote, notes, len(characters), round(tokens), len(hashes) - len(characters))
