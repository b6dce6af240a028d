"""The lexical legs: the notes or blocks that the words of a question lead to, best first.

In a small vault, and for words that few notes hold, SQLite scores every row that has one. Where that would be too many,
the rarest words choose the notes that are scored in full (limits.md C.3): a note that holds only the most frequent words of
a question is never among its best. Where all words are frequent, the best are among the notes that hold several.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apsw

from simplemem.index import among
from simplemem.index.bm25 import BODY_WEIGHT, TITLE_WEIGHT, Counts
from simplemem.index.text import SHIFT

MOST_SCORED = 6_000  # entries of words; SQLite scores so many in three milliseconds
_CHOOSING = 0.4  # of them, for the words that choose
_CHOSEN = 300  # notes that are then scored in full, at least
_FEW = 1_000  # notes: so many are scored without choosing
_FREQUENT = (
    3_000  # entries of the rarest words; where even they have more, notes are chosen by how many words they hold
)
_GROUPS = 3  # of words
_A_SEEK = 200  # entries that are walked in the time in which one word is sought in one note
_SOUGHT = 30  # rows: so few are sought one by one

_TERMS = re.compile(r'"(?:[^"]|"")*"\*?')


@dataclass(frozen=True, slots=True)
class Match:
    """A row of a leg: the note, the place in it (0 for the note itself) and its BM25 score, higher is better."""

    note: int
    place: int
    score: float


LEGS = {"note": "note_text", "block": "block_text"}


def leg(
    db: apsw.Connection,
    name: str,
    expression: str,
    limit: int,
    ids: Sequence[int] | None,
    counts: Counts | None = None,
    most_scored: int | None = None,
) -> list[Match]:
    """The best rows of one leg for an FTS5 expression made of quoted words, among `ids` when given. With `counts`, no
    more than `most_scored` entries of words (MOST_SCORED) are scored before the best notes are chosen."""
    most_scored = MOST_SCORED if most_scored is None else most_scored
    terms = _TERMS.findall(expression)
    if ids is not None and not ids:
        return []
    if counts is None or " OR ".join(terms) != expression or _holds_at_most(db, most_scored // 3):
        return _all_scored(db, name, expression, limit, ids)
    if ids is not None and len(ids) <= _FEW and name == "note" and all(" " in term for term in terms):
        return _phrases_scored(db, terms, limit, ids, counts)
    found = {term: counts.of(db, LEGS[name], term) for term in terms}
    if sum(found.values()) <= most_scored:
        return _all_scored(db, name, expression, limit, ids)
    if ids is None or len(ids) > _FEW:
        chosen = _rarest(found, int(most_scored * _CHOOSING))
        if name != "note" or len(chosen) == len(found):
            return _all_scored(db, name, expression, limit, ids)
        if sum(found[term] for term in chosen) > max(_FREQUENT, most_scored):
            best = _all_scored(db, name, _one_of_each(found), limit, ids)
            if len(best) >= min(limit, _CHOSEN):
                return best
        best = _all_scored(db, name, " OR ".join(chosen), max(limit, _CHOSEN), ids)
        ids = [match.note for match in best]
    return _few_scored(db, name, terms, limit, ids, counts)


def _rarest(found: dict[str, int], most: int) -> list[str]:
    """The rarest terms that together have no more than so many entries; two at least, and enough to choose from."""
    chosen: list[str] = []
    entries = 0
    for term in sorted(found, key=found.__getitem__):
        if entries + found[term] > most and entries >= _CHOSEN and len(chosen) >= 2:
            break
        entries += found[term]
        chosen.append(term)
    return chosen


def _one_of_each(found: dict[str, int]) -> str:
    """An expression for the notes that hold a word of each of three groups, into which the words are dealt by their rarity.
    It scores by all of them, and where all are frequent the best notes hold that many."""
    dealt = sorted(found, key=found.__getitem__)
    groups = [dealt[k::_GROUPS] for k in range(min(_GROUPS, len(dealt)))]
    return " AND ".join(f"({' OR '.join(group)})" for group in groups)


def _holds_at_most(db: apsw.Connection, notes: int) -> bool:
    """Whether the vault is so small that words need not be counted. Its notes are, as far as it takes: the highest id
    would also tell of notes that are gone, and an answer must not depend on them."""
    return int(db.execute("SELECT count(*) FROM (SELECT 1 FROM notes LIMIT ?)", (notes + 1,)).get) <= notes


def _all_scored(db: apsw.Connection, name: str, expression: str, limit: int, ids: Sequence[int] | None) -> list[Match]:
    """`ORDER BY bm25()` with a limit keeps only the best rows; `ORDER BY rank` would sort all of them (limits.md C.2)."""
    score = f"-bm25({LEGS[name]}, {TITLE_WEIGHT}, {BODY_WEIGHT})"
    return _best(db, name, score, {"expression": expression, "limit": limit}, ids)


def _few_scored(
    db: apsw.Connection, name: str, terms: Sequence[str], limit: int, ids: Sequence[int], counts: Counts
) -> list[Match]:
    table = LEGS[name]
    values = {"expression": " OR ".join(terms), "limit": limit, "counts": counts.of_each(db, table, terms)}
    if name == "block" and len(ids) * len(terms) * _A_SEEK < sum(counts.of(db, table, term) for term in terms):
        return _best_blocks(db, values, ids)
    return _best(db, name, f"scored({table}, :counts)", values, ids)


def _phrases_scored(
    db: apsw.Connection, terms: Sequence[str], limit: int, ids: Sequence[int], counts: Counts
) -> list[Match]:
    """To find where words stand side by side is most of the work, so it is done once: for the count, and for the few
    notes that hold them."""
    holding: set[int] = set()
    for term in terms:
        holding.update(counts.of_with_rows(db, LEGS["note"], term, ids))
    return _few_scored(db, "note", terms, limit, sorted(holding), counts) if holding else []


def _best(db: apsw.Connection, name: str, score: str, values: dict[str, Any], ids: Sequence[int] | None) -> list[Match]:
    table = LEGS[name]
    row = "(rowid >> 0)" if name == "note" else f"(rowid >> {SHIFT})"
    if name == "note" and ids is not None and len(ids) <= _SOUGHT:
        row = "rowid"  # as it stands, SQLite asks FTS5 for each of the ids by itself
    narrowed = "" if ids is None else f"AND {row} IN (SELECT value FROM {among.TABLE})"
    sql = f"""SELECT rowid, {score} AS score FROM {table}
              WHERE {table} MATCH :expression {narrowed} ORDER BY score DESC LIMIT :limit"""
    if ids is not None:
        values["ids"] = among.bound(ids)
    if name == "note":
        return [Match(rowid, 0, score) for rowid, score in db.execute(sql, values)]
    return [Match(rowid >> SHIFT, rowid, score) for rowid, score in db.execute(sql, values)]


def _best_blocks(db: apsw.Connection, values: dict[str, Any], ids: Sequence[int]) -> list[Match]:
    """The same for blocks, sought note by note: of frequent words in a very large vault a walk passes a thousand others for
    each that is asked for."""
    sql = f"""SELECT block_text.rowid, scored(block_text, :counts) AS score FROM {among.TABLE} AS asked CROSS JOIN block_text
              WHERE block_text MATCH :expression AND block_text.rowid >= (asked.value << {SHIFT})
                    AND block_text.rowid < ((asked.value + 1) << {SHIFT}) ORDER BY score DESC LIMIT :limit"""
    found = db.execute(sql, values | {"ids": among.bound(sorted(ids))})
    return [Match(rowid >> SHIFT, rowid, score) for rowid, score in found]
