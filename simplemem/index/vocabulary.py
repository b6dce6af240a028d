"""Which words the notes hold."""

from __future__ import annotations

from collections.abc import Sequence

import apsw


def notes_with(db: apsw.Connection, expressions: Sequence[str], most: int) -> list[int]:
    """For each FTS5 expression made of quoted words, how many notes it finds, counted to `most`. The first note is found
    by a look into the index, however many there are."""
    sql = "SELECT count(*) FROM (SELECT 1 FROM note_text WHERE note_text MATCH ? LIMIT ?)"
    return [int(db.execute(sql, (expression, most)).get) for expression in expressions]
