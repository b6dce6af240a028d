"""Generations of vectors: those in use, and those of another embedder that are still being made beside them.

A change of embedder never touches the vectors in use. The new ones lie on a shelf of their own until every note has its
own; then the two tables change places in one transaction. Nothing here compares vectors or makes any.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import apsw


@dataclass(frozen=True, slots=True)
class Shelf:
    """The table in which a generation lies, and the column of `notes` that says which notes it has."""

    place: str
    table: str
    flag: str


NOW = Shelf("now", "vectors", "embedded")
NEXT = Shelf("next", "vectors_next", "embedded_next")


@dataclass(frozen=True, slots=True)
class Generation:
    """Whose vectors lie on a shelf. `dimension` is 0 until the first has come; `remote` ones hold no private note."""

    shelf: Shelf
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


def _move_to(db: apsw.Connection, shelf: Shelf, *, remote: bool) -> None:
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


def _clear(db: apsw.Connection, shelf: Shelf) -> None:
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


def private_count(db: apsw.Connection) -> int:
    """Notes that are kept private, and take part in search."""
    return int(db.execute("SELECT count(*) FROM notes WHERE private IS NOT NULL AND hidden IS NULL").get)


def refused(db: apsw.Connection) -> list[tuple[str, str]]:
    """The paths of notes of which the embedder refused some text, and what it said."""
    return list(db.execute("SELECT n.path, r.why FROM refused r JOIN notes n ON n.id = r.note_id ORDER BY n.path"))
