"""The lexical legs: the notes or blocks that the words of a question lead to, best first."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

import apsw

from simplemem.index.text import SHIFT

_TITLE_WEIGHT, _BODY_WEIGHT = 10.0, 1.0  # docs/search.md


@dataclass(frozen=True, slots=True)
class Match:
    """A row of a leg: the note, the place in it (0 for the note itself) and its BM25 score, higher is better."""

    note: int
    place: int
    score: float


LEGS = {"note": "note_text", "block": "block_text"}


def leg(db: apsw.Connection, name: str, expression: str, limit: int, ids: Sequence[int] | None) -> list[Match]:
    """The best rows of one leg for an FTS5 expression made of quoted words, among `ids` when given.

    `ORDER BY bm25()` with a limit keeps only the best rows; `ORDER BY rank` would sort all of them (limits.md C.2).
    """
    table = LEGS[name]
    shift = 0 if name == "note" else SHIFT
    narrowed = "" if ids is None else f"AND (rowid >> {shift}) IN (SELECT value FROM json_each(:ids))"
    sql = f"""SELECT rowid, -bm25({table}, {_TITLE_WEIGHT}, {_BODY_WEIGHT}) AS score FROM {table}
              WHERE {table} MATCH :expression {narrowed} ORDER BY score DESC LIMIT :limit"""
    values = {"expression": expression, "limit": limit}
    if ids is not None:
        values["ids"] = json.dumps(list(ids))
    if name == "note":
        return [Match(rowid, 0, score) for rowid, score in db.execute(sql, values)]
    return [Match(rowid >> SHIFT, rowid, score) for rowid, score in db.execute(sql, values)]
