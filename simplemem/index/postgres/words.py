"""Words in PostgreSQL: our tokens, packed by word and segment, and how many notes and blocks hold each; so a score depends
on the vault alone, not on the order in which notes came. ranking.py ranks by them."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Sequence
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from simplemem.index.door import Term
from simplemem.index.text import SHIFT

if TYPE_CHECKING:
    from simplemem.index.notes import Rows
    from simplemem.index.postgres.connection import Connection

POSTING = np.dtype([("note", "<u4"), ("title", "<u2"), ("body", "<u2"), ("words", "<u4")])
PUT = "INSERT INTO note_words (note_id, title, body, blocks) VALUES (?, ?, ?, ?)"
MOST = 65_535
_AT_ONCE = 5_000  # rows or words that are merged
_MERGED = 12  # segments of a like size become one
_TOKENIZER = ("unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc")
_local = threading.local()

Phrase = tuple[str, ...]
"""Words side by side as they stand in the index; one that ends in `*` is a beginning."""


def tokens(text: str) -> list[str]:
    """The words of a text as every engine keeps them: made by the tokenizer of the sidecar."""
    if not hasattr(_local, "split"):
        _local.split = apsw.Connection(":memory:").fts5_tokenizer("porter", list(_TOKENIZER))
    flags = apsw.FTS5_TOKENIZE_DOCUMENT
    found: list[str] = _local.split(
        text.encode(), flags, None, include_offsets=False, include_colocated=False
    )
    return found


def spaced(words: Iterable[str]) -> str:
    """Words as a text in which words side by side are found: each between spaces of its own."""
    return "".join(f" {word} " for word in words)


def phrases(terms: Sequence[Term]) -> list[Phrase]:
    """Terms as the index has them. Two that have one stem count twice, as they do in FTS5."""
    found = []
    for term in dict.fromkeys(terms):
        words = tokens(" ".join(term.words))
        if words:
            found.append((*words[:-1], words[-1] + "*" * term.beginning))
    return found


def sought(phrase: Phrase) -> str:
    """What stands in a `spaced` text where these words stand side by side."""
    return spaced(phrase)[: -len("* ") if phrase[-1].endswith("*") else None]


def occurrences(wanted: str, text: str) -> int:
    """How often it stands there, also where one begins within another."""
    if "  " not in wanted:
        return text.count(wanted)
    count, at = 0, text.find(wanted)
    while at >= 0:
        count, at = count + 1, text.find(wanted, at + 1)
    return count


def _blocks_of(blocks: str, title: Collection[str]) -> tuple[Counter[str], int, int]:
    """In how many blocks each word of a note stands, a title in all of them; how many these are, and their words."""
    lines = [line.split()[1:] for line in blocks.split("\n")[:-1]]
    return (
        Counter(word for line in lines for word in {*line, *title}),
        len(lines),
        sum(map(len, lines)),
    )


def write(db: Connection, rows: Sequence[tuple[int, str, str, str]]) -> None:
    """Keep the words of some notes, and a segment of what they hold."""
    segment = _segment(db, len(rows))
    packed: dict[str, list[tuple[int, ...]]] = defaultdict(list)
    places: dict[str, list[int]] = defaultdict(list)
    in_blocks: Counter[str] = Counter()
    held = []
    for note, title, body, blocks in rows:
        columns, at = (
            (title.split(), body.split()),
            (defaultdict[str, list[int]](list), defaultdict[str, list[int]](list)),
        )
        for words, found in zip(columns, at, strict=True):
            for place, word in enumerate(words):
                found[word].append(place)
        size, (of_blocks, count, block_words) = sum(map(len, columns)), _blocks_of(blocks, at[0])
        in_blocks.update(of_blocks)
        held.append((note, segment, size, count, block_words + count * len(columns[0])))
        for word in {**at[0], **at[1], **of_blocks}:
            some = [found[word][:MOST] if word in found else [] for found in at]
            packed[word].append((note, *map(len, some), size))
            places[word] += chain(*some)
    db.copy("note_words (note_id, title, body, blocks)", rows)
    db.copy("held (note_id, segment, words, blocks, block_words)", held)
    every = (
        (word, np.array(packed[word], POSTING), np.array(places[word], "<u4"))
        for word in sorted(packed)
    )
    _put_postings(db, segment, ((word, in_blocks[word], rows, at) for word, rows, at in every))
    sums = tuple(sum(row[k] for row in held) for k in (2, 3, 4))
    _add(db, len(held), *sums)


def _put_postings(db: Connection, segment: int, rows: Iterable[tuple[str, int, Any, Any]]) -> None:
    packed = (
        (word, segment, len(in_notes(postings)), blocks, postings.tobytes(), _narrow(at).tobytes())
        for word, blocks, postings, at in rows
    )
    db.copy("postings (word, segment, notes, blocks, data, places)", packed)


def _narrow(places: Any) -> Any:
    """Places in two bytes each, unless one of a very long note needs four."""
    return places.astype("<u2") if places.max(initial=0) <= MOST else places


def places_of(data: bytes, rows: Any) -> Any:
    """The places of all postings, one behind the other."""
    count = int(times_of(rows).sum())
    return np.frombuffer(data, "<u2" if len(data) == 2 * count else "<u4")


def times_of(rows: Any) -> Any:
    """How many places each posting has."""
    return rows["title"].astype(np.int64) + rows["body"]


def in_notes(rows: Any) -> Any:
    """Those whose note holds the word as a whole: in its title or body."""
    some = (rows["title"] | rows["body"]) > 0
    return (
        rows if some.all() else rows[some]
    )  # mostly all, and a copy takes ten times as long as a look


def _add(db: Connection, *by: int) -> None:
    sql = "UPDATE totals SET notes = notes + ?, words = words + ?, blocks = blocks + ?, block_words = block_words + ?"
    db.execute(sql, by)


def remove(db: Connection, note: int, _places: Sequence[int]) -> None:
    """Forget a note's words. What its segment says of it counts no more."""
    sql = "DELETE FROM held WHERE note_id = ? RETURNING segment, words, blocks, block_words"
    for segment, *counts in db.execute(sql, (note,)).fetchall():
        db.execute("INSERT INTO gone (segment, note_id) VALUES (?, ?)", (segment, note))
        db.execute("UPDATE segments SET notes = notes - 1 WHERE segment = ?", (segment,))
        _add(db, -1, *(-count for count in counts))
        sql = "DELETE FROM note_words WHERE note_id = ? RETURNING title, body, blocks"
        for title, body, blocks in db.execute(sql, (note,)).fetchall():
            there = {*title.split(), *body.split()}
            of_blocks, *_ = _blocks_of(blocks, set(title.split()))
            every = sorted(there | of_blocks.keys())
            sql = """UPDATE postings p SET notes = p.notes - o.notes, blocks = p.blocks - o.blocks
                     FROM unnest(?::text[], ?::int[], ?::int[]) o (word, notes, blocks)
                     WHERE p.word = o.word AND p.segment = ?"""
            lost = [int(word in there) for word in every], [of_blocks[word] for word in every]
            db.execute(sql, (every, *lost, segment))


def to_merge(db: Connection) -> list[int]:
    """Segments of which too many are of a like size, the smallest first; nothing where all is well."""
    by_size: dict[int, list[int]] = {}
    for segment, notes in db.execute(
        "SELECT segment, notes FROM segments ORDER BY notes, segment"
    ).fetchall():
        by_size.setdefault(int(math.log(max(1, notes), _MERGED)), []).append(segment)
    return next((some for some in by_size.values() if len(some) >= _MERGED), [])


def merge(db: Connection, some: Sequence[int]) -> None:
    """Make one segment of some, without what is gone."""
    chosen, values = "segment IN (SELECT value FROM carray(:ids))", {"ids": list(some)}
    segment = _segment(
        db, db.execute(f"SELECT sum(notes)::bigint FROM segments WHERE {chosen}", values).get
    )
    gone = by_segment(
        db.execute(f"SELECT segment, note_id FROM gone WHERE {chosen}", values).fetchall()
    )
    sql = f"""DECLARE merged CURSOR FOR SELECT word, segment, blocks, data, places FROM postings
              WHERE {chosen} ORDER BY 1, 2"""
    db.execute(sql, values)
    fetched = iter(lambda: db.execute(f"FETCH {_AT_ONCE} FROM merged").fetchall(), [])
    by_word = groupby(chain.from_iterable(fetched), itemgetter(0))
    while rows := [_merged(word, parts, gone) for word, parts in islice(by_word, _AT_ONCE)]:
        _put_postings(db, segment, (row for row in rows if len(row[2])))
    db.execute("CLOSE merged")
    for table in ("postings", "gone", "segments"):
        db.execute(f"DELETE FROM {table} WHERE {chosen}", values)
    db.execute(f"UPDATE held SET segment = :segment WHERE {chosen}", {"segment": segment, **values})


def _merged(
    word: str, parts: Iterable[Any], gone: dict[int, list[int]]
) -> tuple[str, int, Any, Any]:
    """A word of several segments: in how many blocks it stands, its postings, and their places."""
    count, every, at = 0, [], []
    for _, of, blocks, data, places in parts:
        rows = np.frombuffer(data, POSTING)
        alive = alive_in(rows, gone.get(of))
        count += blocks
        every.append(rows[alive])
        at.append(places_of(places, rows)[np.repeat(alive, times_of(rows))])
    return word, count, np.concatenate(every), np.concatenate(at)


def _segment(db: Connection, notes: int) -> int:
    sql = "INSERT INTO segments (segment, notes) VALUES (nextval('segment_numbers'), ?) RETURNING segment"
    return int(db.execute(sql, (notes,)).get)


def by_segment(rows: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for segment, note in rows:
        found.setdefault(segment, []).append(note)
    return found


def alive_in(rows: Any, gone: Collection[int] | None) -> Any:
    """Which postings still count."""
    return np.ones(len(rows), bool) if gone is None else ~np.isin(rows["note"], list(gone))


def put(rows: Rows, note: int, title: str, body: str, blocks: Sequence[tuple[int, str]]) -> None:
    """Keep the words of a note and its blocks in `rows`."""
    lines = "".join(
        f"{place & (1 << SHIFT) - 1}:{spaced(tokens(words))}\n" for place, words in blocks
    )
    rows.add(PUT, [(note, spaced(tokens(title)), spaced(tokens(body)), lines)])
