"""Vectors of passages and blocks as they come and go: generations, what waits for them, and what they would cost.

They lie in an ordinary table, so that a filter skips rows and removal is by range. How they are compared stands in
nearest.py, how they are made in fill.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

import apsw

from simplemem.index import notes
from simplemem.index.door import Embedded, Estimate, Generation, MadeBefore
from simplemem.index.notes import NEXT, NOW, VectorTable, generations, shelf_of, waiting
from simplemem.index.text import BLOCK, SHIFT, span

_BYTES_PER_TOKEN = 4  # of English prose; a Chinese character, of three bytes, comes out at less than one token
_TOKENS_OF_A_HEADING = 8  # every text begins with where it stands


def generation_of(db: apsw.Connection, embedder: str) -> Generation | None:
    """The generation of this embedder, in use or being made."""
    return next((found for found in generations(db) if found.embedder == embedder), None)


def begin(db: apsw.Connection, embedder: str, *, remote: bool) -> None:
    """Give an embedder a generation, if it has none. Beside vectors in use it is the next; another that was being made
    there is given up."""
    found = generation_of(db, embedder)
    if found is None:
        shelf, place = (NEXT, "next") if db.execute("SELECT EXISTS (SELECT 1 FROM vectors)").get else (NOW, "now")
        db.execute("DELETE FROM vectors_next; DELETE FROM refused").fetchall()
        db.execute("DELETE FROM generations WHERE place IN ('next', ?)", (place,)).fetchall()
        db.execute("INSERT INTO generations VALUES (?, ?, 0, ?)", (place, embedder, remote)).fetchall()
        wants_nothing = "hidden IS NOT NULL OR (:remote AND private IS NOT NULL)"
        db.execute(f"UPDATE notes SET {shelf.flag} = ({wants_nothing})", {"remote": remote}).fetchall()
    elif (
        found.remote != remote
    ):  # the same model on another machine, which must have no private note, or back on this one
        shelf = shelf_of(found)
        db.execute("UPDATE generations SET remote = ? WHERE embedder = ?", (remote, embedder)).fetchall()
        if remote:
            private = "SELECT id FROM notes WHERE private IS NOT NULL"
            db.execute(f"DELETE FROM {shelf.table} WHERE id >> {SHIFT} IN ({private})").fetchall()
        sql = f"UPDATE notes SET {shelf.flag} = ? WHERE private IS NOT NULL AND hidden IS NULL"
        db.execute(sql, (int(remote),)).fetchall()


def switch_if_complete(db: apsw.Connection, embedder: str, without: Set[int]) -> None:
    """Put the next generation in use when no note waits for it, but for those that nobody can read just now, and drop the
    one before it. Only who makes it does: the settings of another process ask for the one that is in use."""
    found = generation_of(db, embedder)
    waiting = db.execute("SELECT id FROM notes WHERE embedded_next = 0 LIMIT ?", (len(without) + 1,)).fetchall()
    if found is None or found.in_use or not without >= {note_id for (note_id,) in waiting}:
        return
    db.execute(
        """ALTER TABLE vectors RENAME TO vectors_before;
           ALTER TABLE vectors_next RENAME TO vectors;
           ALTER TABLE vectors_before RENAME TO vectors_next;
           DELETE FROM vectors_next;
           UPDATE notes SET embedded = embedded_next WHERE embedded != embedded_next;
           DELETE FROM generations WHERE place = 'now';
           UPDATE generations SET place = 'now' WHERE place = 'next'"""
    ).fetchall()


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
    wanted = hashes_of(db, note_id)
    db.executemany(
        f"INSERT OR REPLACE INTO {shelf.table} (id, hash, vector) VALUES (?, ?, ?)",
        ((place, wanted[place], vector) for place, vector in vectors.items() if place in wanted),
    )
    if refused:
        db.execute("INSERT OR REPLACE INTO refused (note_id, why) VALUES (?, ?)", (note_id, refused)).fetchall()
    db.execute(f"UPDATE notes SET {shelf.flag} = ? WHERE id = ?", (2 if refused else 1, note_id)).fetchall()
    if shelf == NOW:  # whoever holds the vectors in use in memory follows by the number of the change
        db.execute("UPDATE notes SET rev = ? WHERE id = ?", (notes.next_rev(db), note_id)).fetchall()
    return True


def hashes_of(db: apsw.Connection, note_id: int, without: VectorTable | None = None) -> dict[int, bytes]:
    """The places of a note that are to have a vector, with the hash of what it is made of; those that wait for one in a
    table, where one is given."""
    waits = "" if without is None else f"AND id NOT IN (SELECT id FROM {without.table} WHERE id >= ?1 AND id < ?2)"
    sql = f"""SELECT id, hash FROM passages WHERE id >= ?1 AND id < ?2 {waits}
              UNION ALL SELECT id, hash FROM blocks WHERE id >= ?1 AND id < ?2 AND hash IS NOT NULL {waits}"""
    return dict(db.execute(sql, span(note_id)))


def missing(db: apsw.Connection, limit: int, shelf: VectorTable = NOW) -> list[tuple[int, str]]:
    """Notes whose vectors are still to be made, as (id, path)."""
    return list(db.execute(f"SELECT id, path FROM notes WHERE {shelf.flag} = 0 ORDER BY id LIMIT ?", (limit,)))


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


def estimate(
    db: apsw.Connection, embedder: str, remote: bool, *, anew: bool = False, known: MadeBefore | None = None
) -> Estimate:
    """What waits for this embedder. `anew` counts as if no note had its vectors yet; `known` says of which texts there
    are vectors elsewhere."""
    found = None if anew else generation_of(db, embedder)
    waits = "n.hidden IS NULL AND NOT (:remote AND n.private IS NOT NULL)"
    if found is not None:
        shelf = shelf_of(found)
        waits += f" AND n.{shelf.flag} = 0 AND NOT EXISTS (SELECT 1 FROM {shelf.table} v WHERE v.id = p.id)"
    places = " UNION ALL ".join(
        f"""SELECT p.hash, n.id AS note, n.size, p.start, p.stop
            FROM notes n CROSS JOIN {table} p ON p.id >= (n.id << {SHIFT}) AND p.id < ((n.id + 1) << {SHIFT})
            WHERE p.hash IS NOT NULL AND {waits}"""
        for table in ("passages", "blocks")
    )  # bytes a character: the last text of a note ends where its file does
    sql = f"""SELECT hash, note, (stop - start) * min(4.0, size * 1.0 / max(1, max(stop) OVER (PARTITION BY note)))
              FROM ({places})"""
    texts = {hash_: (note, size) for hash_, note, size in db.execute(sql, {"remote": remote})}
    made = set(known(list(texts)) if known is not None else ()) & texts.keys()
    waiting = [text for hash_, text in texts.items() if hash_ not in made]
    tokens = sum(size / _BYTES_PER_TOKEN + _TOKENS_OF_A_HEADING for _, size in waiting)
    return Estimate(embedder, remote, len({note for note, _ in waiting}), len(waiting), round(tokens), len(made))
