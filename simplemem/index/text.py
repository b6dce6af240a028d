"""The words of notes as rows, whole and block by block, and where in a note a passage or block stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager

import apsw

from simplemem.index.database import Rows
from simplemem.index.facts import SHIFT, Facts, as_indexed, placed_to_embed, places, titles
from simplemem.index.vectors import NOW, Generation, VectorTable, generations
from simplemem.note.words import MARKS, may_hold_names
from simplemem.services.embed import hash_of

_WHILE_MUCH_COMES = (("automerge", 0), ("crisismerge", 64), ("hashsize", 16 << 20))
_OTHERWISE = (("automerge", 4), ("crisismerge", 16), ("hashsize", 1 << 20))  # FTS5's own
_PAGES_AT_ONCE = 1000


_PUT_NOTE_TEXT = "INSERT INTO note_text (rowid, title, body) VALUES (?, ?, ?)"
_PUT_BLOCK_TEXT = "INSERT INTO block_text (rowid, title, body) VALUES (?, ?, ?)"
_PUT_PASSAGE = "INSERT INTO passages (id, start, stop, line, headings, hash) VALUES (?, ?, ?, ?, ?, ?)"
_PUT_BLOCK = "INSERT INTO blocks (id, start, stop, line, kind, headings, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"


def put(
    db: apsw.Connection,
    note_id: int,
    path: str,
    facts: Facts,
    rows: Rows,
    *,
    new: bool,
    private: bool = False,
) -> list[tuple[int, str]]:
    """Keep a note's text rows in `rows`. Vectors whose text is unchanged stay; returns the places that need one, with
    their text. A generation of a remote embedder keeps nothing of a private note and asks
    for nothing."""
    if rows.generations is None:
        rows.generations = generations(db) or [_TO_COME]
    shelves = rows.generations
    kept: dict[VectorTable, dict[bytes, bytes]] = {}
    if not new:
        kept = {found.shelf: dict(db.execute(*_vectors_of(note_id, found.shelf))) for found in shelves}
        remove(db, note_id)
    title = as_indexed(titles(path, facts), facts.language)
    body = "\n".join([facts.summary, *(unit.text for unit in facts.blocks)]) if facts.summary else None
    whole = body if body is not None else "\n".join([unit.text for unit in facts.blocks])
    names = may_hold_names(whole)
    in_index = as_indexed(whole, facts.language, names=names) + MARKS.get(facts.language, "")
    rows.add(_PUT_NOTE_TEXT, [(note_id, title, in_index)])
    found_at = places(note_id, facts)
    texts = placed_to_embed(found_at, facts)
    hashes = {id_: hash_of(text) for id_, text in texts}
    above = {headings: _as_json(headings) for headings in dict.fromkeys([unit.headings for _, unit in found_at])}
    passages, blocks = found_at[: len(facts.passages)], found_at[len(facts.passages) :]
    rows.add(_PUT_PASSAGE, [(id_, u.start, u.stop, u.line, above[u.headings], hashes[id_]) for id_, u in passages])
    rows.add(
        _PUT_BLOCK, [(id_, u.start, u.stop, u.line, u.kind, above[u.headings], hashes.get(id_)) for id_, u in blocks]
    )
    rows.add(_PUT_BLOCK_TEXT, [(id_, title, as_indexed(u.text, facts.language, names=names)) for id_, u in blocks])
    missing: list[tuple[int, str]] = []
    for found in shelves:  # the one that is being made comes last: its texts are the ones that wait
        here, wanted = kept.get(found.shelf, {}), [] if private and found.remote else texts
        if here:
            _put_kept(rows, found.shelf, here, [(id_, hashes[id_]) for id_, _ in wanted])
        missing = [(id_, text) for id_, text in wanted if hashes[id_] not in here]
        if not missing:
            db.execute(f"UPDATE notes SET {found.shelf.flag} = 1 WHERE id = ?", (note_id,)).fetchall()
    return missing


def _put_kept(rows: Rows, shelf: VectorTable, kept: dict[bytes, bytes], wanted: list[tuple[int, bytes]]) -> None:
    """The vectors that the note had already, at the places where their texts are now."""
    sql = f"INSERT INTO {shelf.table} (id, hash, vector) VALUES (?, ?, ?)"
    rows.add(sql, [(id_, hash_, kept[hash_]) for id_, hash_ in wanted if hash_ in kept])


_TO_COME = Generation(NOW, "", 0, remote=False)  # no embedder has come by yet


def expect_much(db: apsw.Connection) -> None:
    """Before very many notes are put: segments of the word tables are not merged again and again while they come, and
    there are fewer, since the words of a whole batch are gathered before they are sorted."""
    for table in ("note_text", "block_text"):
        db.executemany(f"INSERT INTO {table} ({table}, rank) VALUES (?, ?)", _WHILE_MUCH_COMES)


def unfolded(db: apsw.Connection) -> list[str]:
    """The word tables that still expect much: of this pass, or of a process that died."""
    return [
        table
        for table in ("note_text", "block_text")
        if db.execute(f"SELECT v FROM {table}_config WHERE k = 'automerge'").get == 0
    ]


def fold(tables: Iterable[str], transaction: Callable[[], AbstractContextManager[apsw.Connection]]) -> None:
    """After much was put: merge the segments of these tables, a few pages a transaction."""
    for table in tables:
        merged = True
        while merged:
            with transaction() as db:
                before = db.total_changes()
                db.execute(f"INSERT INTO {table} ({table}, rank) VALUES ('merge', ?)", (-_PAGES_AT_ONCE,)).fetchall()
                merged = db.total_changes() - before >= 2
        with transaction() as db:
            db.executemany(f"INSERT INTO {table} ({table}, rank) VALUES (?, ?)", _OTHERWISE)


def _vectors_of(note_id: int, shelf: VectorTable) -> tuple[str, tuple[int, int]]:
    return f"SELECT hash, vector FROM {shelf.table} WHERE id >= ? AND id < ?", _range(note_id)


def _as_json(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(json.encoder.encode_basestring, texts))}]"


def _range(note_id: int) -> tuple[int, int]:
    return note_id << SHIFT, (note_id + 1) << SHIFT


def remove(db: apsw.Connection, note_id: int) -> None:
    """Forget a note's text and vectors."""
    db.execute("DELETE FROM note_text WHERE rowid = ?", (note_id,)).fetchall()
    blocks = db.execute("SELECT id FROM blocks WHERE id >= ? AND id < ?", _range(note_id)).fetchall()
    db.executemany("DELETE FROM block_text WHERE rowid = ?", blocks)  # as a subquery it cost twice as much
    for table in ("passages", "blocks", "vectors", "vectors_next"):
        db.execute(f"DELETE FROM {table} WHERE id >= ? AND id < ?", _range(note_id)).fetchall()
    db.execute("DELETE FROM refused WHERE note_id = ?", (note_id,)).fetchall()
