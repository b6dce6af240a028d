"""Vectors of passages and blocks as they come and go: generations, what waits for them, and what they would cost.

They lie in an ordinary table, so that a filter skips rows and removal is by range. How they are compared stands in
nearest.py, how they are made in fill.py.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import apsw

from simplemem.index import notes
from simplemem.index.door import Embedded, Estimate, Generation, MadeBefore
from simplemem.index.notes import NEXT, NOW, VectorTable, generations, shelf_of, waiting
from simplemem.index.text import BLOCK, SHIFT, span

_BYTES_PER_TOKEN = 4  # of English prose; a Chinese character, of three bytes, comes out at less than one token
_TOKENS_OF_A_HEADING = 8  # every text begins with where it stands
_ASKED_AT_ONCE = 1000


def generation_of(db: apsw.Connection, embedder: str) -> Generation | None:
    """The generation of this embedder, in use or being made."""
    return next((found for found in generations(db) if found.embedder == embedder), None)


def begin(db: apsw.Connection, embedder: str, *, remote: bool) -> Generation:
    """Give an embedder a generation, or find the one it has. Beside vectors in use it is the next; another that was being
    made there is given up."""
    found = generation_of(db, embedder)
    if found is not None and found.remote == remote:
        return found
    if found is not None:  # the same model on another machine, which must have no private note, or back on this one
        shelf = shelf_of(found)
        db.execute("UPDATE generations SET remote = ? WHERE embedder = ?", (remote, embedder)).fetchall()
        if remote:
            sql = f"DELETE FROM {shelf.table} WHERE id >> {SHIFT} IN (SELECT id FROM notes WHERE private IS NOT NULL)"
            db.execute(sql).fetchall()
        sql = f"UPDATE notes SET {shelf.flag} = ? WHERE private IS NOT NULL AND hidden IS NULL"
        db.execute(sql, (int(remote),)).fetchall()
        return Generation(found.in_use, embedder, found.dimension, remote)
    shelf = NEXT if db.execute("SELECT EXISTS (SELECT 1 FROM vectors)").get else NOW
    place = "next" if shelf == NEXT else "now"
    db.execute("DELETE FROM vectors_next").fetchall()
    db.execute("DELETE FROM generations WHERE place IN ('next', ?)", (place,)).fetchall()
    db.execute("INSERT INTO generations VALUES (?, ?, 0, ?)", (place, embedder, remote)).fetchall()
    db.execute("DELETE FROM refused").fetchall()
    wants_nothing = "hidden IS NOT NULL OR (:remote AND private IS NOT NULL)"
    db.execute(f"UPDATE notes SET {shelf.flag} = ({wants_nothing})", {"remote": remote}).fetchall()
    return Generation(shelf == NOW, embedder, 0, remote)


def set_dimension(db: apsw.Connection, embedder: str, dimension: int) -> None:
    """The first vector has come."""
    db.execute("UPDATE generations SET dimension = ? WHERE embedder = ?", (dimension, embedder)).fetchall()


def may_be_complete(db: apsw.Connection, embedder: str, without: Collection[int] = ()) -> bool:
    """Whether this embedder's is a next generation that no note waits for, but for those that nobody can read just now."""
    found = generation_of(db, embedder)
    if found is None or found.in_use:
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
    db.execute("DELETE FROM vectors_next").fetchall()
    db.execute("UPDATE notes SET embedded = embedded_next WHERE embedded != embedded_next").fetchall()
    db.execute("DELETE FROM generations WHERE place = 'now'").fetchall()
    db.execute("UPDATE generations SET place = 'now' WHERE place = 'next'").fetchall()
    return True


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
    if db.execute("SELECT sha256 FROM notes WHERE id = ?", (note_id,)).get != sha256:
        return False
    hashes = _hashes(db, note_id)
    db.executemany(
        f"INSERT OR REPLACE INTO {shelf.table} (id, hash, vector) VALUES (?, ?, ?)",
        ((id_, hashes[id_], vector) for id_, vector in vectors.items() if id_ in hashes),
    )
    if refused:
        db.execute("INSERT OR REPLACE INTO refused (note_id, why) VALUES (?, ?)", (note_id, refused)).fetchall()
    db.execute(f"UPDATE notes SET {shelf.flag} = ? WHERE id = ?", (2 if refused else 1, note_id)).fetchall()
    if shelf == NOW:  # whoever holds the vectors in use in memory follows by the number of the change
        db.execute("UPDATE notes SET rev = ? WHERE id = ?", (notes.next_rev(db), note_id)).fetchall()
    return True


def _hashes(db: apsw.Connection, note_id: int) -> dict[int, bytes]:
    """The places of a note that have a vector or are to have one, with the hash of what it is made of."""
    sql = """SELECT id, hash FROM passages WHERE id >= ?1 AND id < ?2
             UNION ALL SELECT id, hash FROM blocks WHERE id >= ?1 AND id < ?2 AND hash IS NOT NULL"""
    return dict(db.execute(sql, span(note_id)))


def places_without_vectors(db: apsw.Connection, note_id: int, shelf: VectorTable = NOW) -> dict[int, bytes]:
    """The places of a note that wait for a vector, with the hash of what it is to be made of."""
    there = {row[0] for row in db.execute(f"SELECT id FROM {shelf.table} WHERE id >= ? AND id < ?", span(note_id))}
    return {id_: hash_ for id_, hash_ in _hashes(db, note_id).items() if id_ not in there}


def missing(db: apsw.Connection, limit: int, shelf: VectorTable = NOW) -> list[tuple[int, str]]:
    """Notes whose vectors are still to be made, as (id, path)."""
    return list(db.execute(f"SELECT id, path FROM notes WHERE {shelf.flag} = 0 ORDER BY id LIMIT ?", (limit,)))


def settle(db: apsw.Connection, note_id: int) -> None:
    """A note of which no generation wants anything."""
    db.execute("UPDATE notes SET embedded = 1, embedded_next = 1 WHERE id = ?", (note_id,)).fetchall()


def vectors_of(db: apsw.Connection, note_id: int) -> list[bytes]:
    """The vectors of a note's passages."""
    sql, first = "SELECT vector FROM vectors WHERE id >= ? AND id < ? ORDER BY id", note_id << SHIFT
    return [row[0] for row in db.execute(sql, (first, first | BLOCK))]


# -- how far they are, and what they would cost


def embedded(db: apsw.Connection, embedder: str, remote: bool) -> Embedded:
    """How far an embedder is, which may not have a generation yet."""
    sql = "SELECT count(*), coalesce(sum(private IS NOT NULL), 0) FROM notes WHERE hidden IS NULL"
    visible, private = next(db.execute(sql))
    wanted = visible - private if remote else visible
    found = generation_of(db, embedder)
    sql = "SELECT n.path, r.why FROM refused r JOIN notes n ON n.id = r.note_id ORDER BY n.path"
    refused: list[tuple[str, str]] = list(db.execute(sql))
    return Embedded(wanted if found is None else waiting(db, found), wanted, private, refused)


def estimate(db: apsw.Connection, embedder: str, remote: bool, *, anew: bool, known: MadeBefore | None) -> Estimate:
    """What waits for this embedder. `anew` counts as if no note had its vectors yet; `known` says of which texts there
    are vectors elsewhere."""
    found = None if anew else generation_of(db, embedder)
    waits = "n.hidden IS NULL AND NOT (:remote AND n.private IS NOT NULL)"
    if found is not None:
        shelf = shelf_of(found)
        there = f"SELECT 1 FROM {shelf.table} v WHERE v.id = p.id"
        waits = f"n.{shelf.flag} = 0 AND {waits} AND NOT EXISTS ({there})"
    of_one_kind = f"""SELECT p.hash, n.id, p.stop - p.start, n.size * 1.0 / max(p.stop, 1)
                      FROM notes n CROSS JOIN {{}} p ON p.id >= (n.id << {SHIFT}) AND p.id < ((n.id + 1) << {SHIFT})
                      WHERE p.hash IS NOT NULL AND {waits}"""
    sql = " UNION ALL ".join(of_one_kind.format(table) for table in ("passages", "blocks"))
    characters: dict[bytes, tuple[int, int]] = {}
    width: dict[int, float] = {}  # bytes a character, by note: its last text ends where its file does
    for hash_, note, size, bytes_per_character in db.execute(sql, {"remote": remote}):
        characters[hash_] = (note, size)
        width[note] = min(width.get(note, 4.0), bytes_per_character)
    hashes = list(characters)
    if known is not None:
        for first in range(0, len(hashes), _ASKED_AT_ONCE):
            for hash_ in known(hashes[first : first + _ASKED_AT_ONCE]):
                characters.pop(hash_, None)
    tokens = sum(size * width[note] / _BYTES_PER_TOKEN + _TOKENS_OF_A_HEADING for note, size in characters.values())
    notes = len({note for note, _ in characters.values()})
    return Estimate(embedder, remote, notes, len(characters), round(tokens), len(hashes) - len(characters))
