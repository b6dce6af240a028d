"""The words of notes: three lexical legs (whole note, passage, block) and where in a note a hit stands."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import apsw

from simplemem.index.facts import Facts, Unit, embedded_text, hash_of
from simplemem.note.names import base_name
from simplemem.note.words import segment

SHIFT = 20  # an id of a passage or block is the note's id and a place
BLOCK = 1 << 19  # set in the places of blocks
_TITLE_WEIGHT, _BODY_WEIGHT = 5.0, 1.0  # retrieval.md §2


@dataclass(frozen=True, slots=True)
class Match:
    """A row of a leg: the note, the place in it (0 for the note itself) and its BM25 score, higher is better."""

    note: int
    place: int
    score: float


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage or block stands in its note."""

    start: int
    stop: int
    line: int
    headings: tuple[str, ...]


def places(note_id: int, facts: Facts) -> list[tuple[int, Unit]]:
    """Every passage and block of a note under its id, in the order they are stored."""
    first = note_id << SHIFT
    kept = [(first | k, unit) for k, unit in enumerate(facts.passages[: BLOCK - 1])]
    return kept + [(first | BLOCK | k, unit) for k, unit in enumerate(facts.blocks[: BLOCK - 1])]


def put(db: apsw.Connection, note_id: int, path: str, facts: Facts, *, new: bool) -> list[tuple[int, str]]:
    """Write a note's text rows. Vectors whose text is unchanged stay; returns the places that need one, with their text."""
    kept: dict[bytes, bytes] = {}
    if not new:
        kept = dict(db.execute(*_vectors_of(note_id)))
        remove(db, note_id)
    title = segment(_titles(path, facts))
    body = "\n".join([facts.summary, *(unit.text for unit in facts.blocks)]) if facts.summary else None
    whole = body if body is not None else "\n".join(unit.text for unit in facts.blocks)
    db.execute(
        "INSERT INTO note_text (rowid, title, body) VALUES (?, ?, ?)", (note_id, title, segment(whole))
    ).fetchall()
    texts = [(id_, unit, embedded_text(facts.title, unit)) for id_, unit in places(note_id, facts)]
    rows = [(id_, unit, hash_of(text)) for id_, unit, text in texts]
    passages = [row for row in rows if not row[0] & BLOCK]
    blocks = [row for row in rows if row[0] & BLOCK]
    db.executemany(
        "INSERT INTO passages (id, start, stop, line, headings, hash) VALUES (?, ?, ?, ?, ?, ?)",
        ((id_, u.start, u.stop, u.line, _headings(u), hash_) for id_, u, hash_ in passages),
    )
    db.executemany(
        "INSERT INTO blocks (id, start, stop, line, kind, headings, hash) VALUES (?, ?, ?, ?, ?, ?, ?)",
        ((id_, u.start, u.stop, u.line, u.kind, _headings(u), hash_) for id_, u, hash_ in blocks),
    )
    db.executemany(
        "INSERT INTO passage_text (rowid, title, body) VALUES (?, ?, ?)",
        ((id_, title, segment(u.text)) for id_, u, _ in passages),
    )
    db.executemany(
        "INSERT INTO block_text (rowid, title, body) VALUES (?, ?, ?)",
        ((id_, title, segment(u.text)) for id_, u, _ in blocks),
    )
    db.executemany(
        "INSERT INTO vectors (id, hash, vector) VALUES (?, ?, ?)",
        ((id_, hash_, kept[hash_]) for id_, _, hash_ in rows if hash_ in kept),
    )
    missing = [(id_, text) for (id_, _, text), (_, _, hash_) in zip(texts, rows, strict=True) if hash_ not in kept]
    if not missing:
        db.execute("UPDATE notes SET embedded = 1 WHERE id = ?", (note_id,)).fetchall()
    return missing


def _vectors_of(note_id: int) -> tuple[str, tuple[int, int]]:
    return "SELECT hash, vector FROM vectors WHERE id >= ? AND id < ?", _range(note_id)


def _titles(path: str, facts: Facts) -> str:
    """The title, and the file name where it is another."""
    name = base_name(path)
    return facts.title if facts.title == name else f"{facts.title}\n{name}"


@lru_cache(maxsize=64)
def _headings_as_json(headings: tuple[str, ...]) -> str:
    return json.dumps(headings, ensure_ascii=False)


def _headings(unit: Unit) -> str:
    return _headings_as_json(unit.headings)


def _range(note_id: int) -> tuple[int, int]:
    return note_id << SHIFT, (note_id + 1) << SHIFT


def remove(db: apsw.Connection, note_id: int) -> None:
    """Forget a note's text and vectors."""
    db.execute("DELETE FROM note_text WHERE rowid = ?", (note_id,)).fetchall()
    for table, rows in (("passage_text", "passages"), ("block_text", "blocks")):
        within = f"SELECT id FROM {rows} WHERE id >= ? AND id < ?"  # noqa: S608  (fixed names)
        db.execute(f"DELETE FROM {table} WHERE rowid IN ({within})", _range(note_id)).fetchall()  # noqa: S608
        db.execute(f"DELETE FROM {rows} WHERE id >= ? AND id < ?", _range(note_id)).fetchall()  # noqa: S608
    db.execute("DELETE FROM vectors WHERE id >= ? AND id < ?", _range(note_id)).fetchall()


LEGS = {"note": "note_text", "passage": "passage_text", "block": "block_text"}


def leg(db: apsw.Connection, name: str, expression: str, limit: int, ids: Sequence[int] | None) -> list[Match]:
    """The best rows of one leg for an FTS5 expression made of quoted words, among `ids` when given.

    `ORDER BY bm25()` with a limit keeps only the best rows; `ORDER BY rank` would sort all of them (limits.md C.2).
    """
    table = LEGS[name]
    shift = 0 if name == "note" else SHIFT
    narrowed = "" if ids is None else f"AND (rowid >> {shift}) IN (SELECT value FROM json_each(:ids))"
    sql = f"""SELECT rowid, -bm25({table}, {_TITLE_WEIGHT}, {_BODY_WEIGHT}) AS score FROM {table}
              WHERE {table} MATCH :expression {narrowed} ORDER BY score DESC LIMIT :limit"""  # noqa: S608
    values = {"expression": expression, "limit": limit}
    if ids is not None:
        values["ids"] = json.dumps(list(ids))
    if name == "note":
        return [Match(rowid, 0, score) for rowid, score in db.execute(sql, values)]
    return [Match(rowid >> SHIFT, rowid, score) for rowid, score in db.execute(sql, values)]


def places_of(db: apsw.Connection, ids: Iterable[int]) -> dict[int, Place]:
    """Where passages and blocks stand, by their ids."""
    wanted = json.dumps(list(ids))
    found: dict[int, Place] = {}
    for table in ("passages", "blocks"):
        sql = f"SELECT id, start, stop, line, headings FROM {table} WHERE id IN (SELECT value FROM json_each(?))"  # noqa: S608
        for id_, start, stop, line, headings in db.execute(sql, (wanted,)):
            found[id_] = Place(start, stop, line, tuple(json.loads(headings)))
    return found


def passages_of(db: apsw.Connection, note_id: int) -> list[Place]:
    """All passages of a note in order."""
    sql = "SELECT start, stop, line, headings FROM passages WHERE id >= ? AND id < ? ORDER BY id"
    return [
        Place(start, stop, line, tuple(json.loads(headings)))
        for start, stop, line, headings in db.execute(sql, _range(note_id))
    ]
