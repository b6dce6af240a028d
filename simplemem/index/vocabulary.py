"""Which words the notes hold."""

from __future__ import annotations

import json
from collections.abc import Sequence

import apsw


def notes_with(db: apsw.Connection, expressions: Sequence[str], most: int) -> list[int]:
    """For each FTS5 expression made of quoted words, how many notes it finds, counted to `most`. The first note is found
    by a look into the index, however many there are."""
    sql = """SELECT (SELECT count(*) FROM (SELECT 1 FROM note_text WHERE note_text MATCH value LIMIT :most))
             FROM json_each(:expressions)"""
    return [row[0] for row in db.execute(sql, {"expressions": json.dumps(list(expressions)), "most": most})]


def notes_holding(db: apsw.Connection, expression: str) -> list[int]:
    """The notes that an FTS5 expression made of quoted words finds."""
    return [row[0] for row in db.execute("SELECT rowid FROM note_text WHERE note_text MATCH ?", (expression,))]
