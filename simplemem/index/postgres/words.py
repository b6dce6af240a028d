"""Words in PostgreSQL: our tokens and our BM25. A search reads the packed rows of its words, counts over them here, and
looks at the texts of few notes; so a score depends on the vault alone, not on the order in which notes came."""

from __future__ import annotations

import math
import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import chain, groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

import apsw
import numpy as np

from simplemem.index.connection import LAST
from simplemem.index.door import (
    BODY_WEIGHT, FEW_NOTES, K1, LEAST_IDF, TITLE_WEIGHT, B, Ids, Leg, Match, Question, Ranking, Term,
)  # fmt: skip
from simplemem.index.text import SHIFT

if TYPE_CHECKING:
    from simplemem.index.notes import Rows
    from simplemem.index.postgres.database import Connection

POSTING = np.dtype([("note", "<u4"), ("title", "<u2"), ("body", "<u2"), ("words", "<u4")])
_NONE = np.empty(0, "<u4")
PUT = "INSERT INTO note_words (note_id, title, body, blocks) VALUES (?, ?, ?, ?)"
_MOST = 65_535
_MOST_KEPT = 64_000_000  # bytes of postings that are kept of one state
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
    found: list[str] = _local.split(text.encode(), flags, None, include_offsets=False, include_colocated=False)
    return found


def spaced(words: Iterable[str]) -> str:
    """Words as a text in which words side by side are found: each between spaces of its own."""
    return "".join(f" {word} " for word in words)


def phrases(terms: Sequence[Term]) -> list[Phrase]:
    """Terms as the index has them, once each."""
    found = []
    for term in terms:
        words = tokens(" ".join(term.words))
        if words:
            found.append((*words[:-1], words[-1] + "*" * term.beginning))
    return list(dict.fromkeys(found))


def _sought(phrase: Phrase) -> str:
    return spaced(phrase)[: -len("* ") if phrase[-1].endswith("*") else None]


def occurrences(phrase: Phrase, text: str) -> int:
    """How often words stand side by side in a `spaced` text."""
    wanted = _sought(phrase)
    if len(phrase) == 1:
        return text.count(wanted)
    count, at = 0, text.find(wanted)
    while at >= 0:
        count, at = count + 1, text.find(wanted, at + 1)
    return count


def _blocks_of(blocks: str, title: Collection[str]) -> tuple[Counter[str], int, int]:
    """In how many blocks each word of a note stands, a title in all of them; how many these are, and their words."""
    lines = [line.split()[1:] for line in blocks.split("\n")[:-1]]
    return Counter(word for line in lines for word in {*line, *title}), len(lines), sum(map(len, lines))


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
            some = [found[word][:_MOST] if word in found else [] for found in at]
            packed[word].append((note, *map(len, some), size))
            places[word] += chain(*some)
    db.copy("note_words (note_id, title, body, blocks)", rows)
    db.copy("held (note_id, segment, words, blocks, block_words)", held)
    every = ((word, np.array(packed[word], POSTING), np.array(places[word], "<u4")) for word in sorted(packed))
    _put_postings(db, segment, ((word, in_blocks[word], rows, at) for word, rows, at in every))
    sums = tuple(sum(row[k] for row in held) for k in (2, 3, 4))
    _add(db, len(held), *sums)


def _put_postings(db: Connection, segment: int, rows: Iterable[tuple[str, int, Any, Any]]) -> None:
    db.copy(
        "postings (word, segment, notes, blocks, data, places)",
        (
            (word, segment, len(_in_notes(rows)), blocks, rows.tobytes(), _narrow(at).tobytes())
            for word, blocks, rows, at in rows
        ),
    )


def _narrow(places: Any) -> Any:
    """Places in two bytes each, unless one of a very long note needs four."""
    return places.astype("<u2") if places.max(initial=0) <= _MOST else places


def _places(data: bytes, rows: Any) -> Any:
    """The places of all postings, one behind the other."""
    count = int(_times(rows).sum())
    return np.frombuffer(data, "<u2" if len(data) == 2 * count else "<u4")


def _times(rows: Any) -> Any:
    """How many places each posting has."""
    return rows["title"].astype(np.int64) + rows["body"]


def _in_notes(rows: Any) -> Any:
    """Those whose note holds the word as a whole: in its title or body."""
    return rows[(rows["title"] > 0) | (rows["body"] > 0)]


def _add(db: Connection, *by: int) -> None:
    sql = "UPDATE totals SET notes = notes + ?, words = words + ?, blocks = blocks + ?, block_words = block_words + ?"
    db.execute(sql, by)


def remove(db: Connection, note: int) -> None:
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
    for segment, notes in db.execute("SELECT segment, notes FROM segments ORDER BY notes, segment").fetchall():
        by_size.setdefault(int(math.log(max(1, notes), _MERGED)), []).append(segment)
    return next((some for some in by_size.values() if len(some) >= _MERGED), [])


def merge(db: Connection, some: Sequence[int]) -> None:
    """Make one segment of some, without what is gone."""
    chosen, values = "segment IN (SELECT value FROM carray(:ids))", {"ids": list(some)}
    notes = db.execute(f"SELECT sum(notes)::bigint FROM segments WHERE {chosen}", values).get
    segment = _segment(db, notes)
    gone = _gone(db.execute(f"SELECT segment, note_id FROM gone WHERE {chosen}", values).fetchall())
    db.execute(
        f"""DECLARE merged CURSOR FOR SELECT word, segment, blocks, data, places FROM postings
            WHERE {chosen} ORDER BY 1, 2""",
        values,
    )
    by_word = groupby(_fetched(db, "merged"), itemgetter(0))
    while rows := [_merged(word, parts, gone) for word, parts in islice(by_word, _AT_ONCE)]:
        _put_postings(db, segment, (row for row in rows if len(row[2])))
    db.execute("CLOSE merged")
    for table in ("postings", "gone", "segments"):
        db.execute(f"DELETE FROM {table} WHERE {chosen}", values)
    db.execute(f"UPDATE held SET segment = :segment WHERE {chosen}", {"segment": segment, **values})


def _fetched(db: Connection, cursor: str) -> Iterator[Any]:
    while rows := db.execute(f"FETCH {_AT_ONCE} FROM {cursor}").fetchall():
        yield from rows


def _merged(word: str, parts: Iterable[Any], gone: dict[int, list[int]]) -> tuple[str, int, Any, Any]:
    """A word of several segments: in how many blocks it stands, its postings, and their places."""
    count, every, at = 0, [], []
    for _, of, blocks, data, places in parts:
        rows = np.frombuffer(data, POSTING)
        alive = _alive(rows, gone.get(of))
        count += blocks
        every.append(rows[alive])
        at.append(_places(places, rows)[np.repeat(alive, _times(rows))])
    return word, count, np.concatenate(every), np.concatenate(at)


def _segment(db: Connection, notes: int) -> int:
    sql = "INSERT INTO segments (segment, notes) VALUES (nextval('segment_numbers'), ?) RETURNING segment"
    return int(db.execute(sql, (notes,)).get)


def _gone(rows: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for segment, note in rows:
        found.setdefault(segment, []).append(note)
    return found


def _alive(rows: Any, gone: Collection[int] | None) -> Any:
    """Which postings still count."""
    return np.ones(len(rows), bool) if gone is None else ~np.isin(rows["note"], list(gone))


class PackedWords(Ranking):
    """The words of one state of the index. What was read of them is kept as long as it lasts."""

    def __init__(self, notes: int) -> None:
        super().__init__(notes)
        self._counts: dict[str, tuple[int, int]] = {}  # how many notes and blocks hold a word
        self._packed: dict[str, dict[tuple[str, int], _Packed]] = {}  # of what is asked for, by word and segment
        self._size = 0  # of these
        self._of: dict[Phrase, Any] = {}
        self._in_blocks: dict[Phrase, int] = {}
        self._gone: dict[int, list[int]] | None = None
        self._totals: tuple[int, int, int, int] = (0, 0, 0, 0)
        self._next: list[Phrase] = []  # what will be asked for

    def _count(self, db: Connection, words: Iterable[str]) -> None:
        """Count words. With the counts come the postings of those that are rare enough to be ranked by."""
        unknown = [word for word in dict.fromkeys(words) if word not in self._counts]
        asked: list[tuple[str, Any]] = []
        if self._gone is None:
            asked.append(("SELECT segment, note_id FROM gone", ()))
            asked.append(("SELECT notes, words, blocks, block_words FROM totals", ()))
        if unknown:
            most = self.notes // 2 if self.notes > FEW_NOTES else self.notes
            sql = """SELECT word, segment, notes, blocks, CASE WHEN sum(notes) OVER (PARTITION BY word) <= ? THEN data END
                     FROM postings WHERE word IN (SELECT value FROM carray(?)) ORDER BY 1, 2"""
            asked.append((sql, (most, unknown)))
        answers = db.together(*asked)
        if self._gone is None:
            self._gone, self._totals = _gone(answers[0]), answers[1][0]
        if unknown:
            self._counts |= dict.fromkeys(unknown, (0, 0))
            for word, segment, notes, blocks, data in answers[-1]:
                before = self._counts[word]
                self._counts[word] = before[0] + notes, before[1] + blocks
                if data is not None:
                    self._keep(word, word, segment, data, None)
            self._packed |= {word: {} for word in unknown if self._counts[word] == (0, 0)}

    def _keep(self, asked: str, word: str, segment: int, data: bytes | None, places: bytes | None) -> None:
        of = self._packed.setdefault(asked, {})
        if data is not None:
            rows = np.frombuffer(data, POSTING)
            of[word, segment] = _Packed(rows, _alive(rows, (self._gone or {}).get(segment)), None)
        if places is not None:
            packed = of[word, segment]
            of[word, segment] = packed._replace(places=_places(places, packed.rows))
        self._size += len(data or b"") + len(places or b"")

    def _lacking(self, asked: Iterable[Phrase]) -> list[tuple[str, Any]]:
        """What is to be asked for: postings, and of phrases the places of their words."""
        wanted: dict[str, bool] = {}
        for phrase in asked:
            if phrase not in self._of:
                wanted |= {word: len(phrase) > 1 or wanted.get(word, False) for word in phrase}
        for word, some in self._packed.items():
            if word in wanted and not (wanted[word] and any(each.places is None for each in some.values())):
                del wanted[word]
        unread, of_phrases = (
            [word for word in wanted if word not in self._packed],
            [word for word in wanted if wanted[word]],
        )
        sql = "SELECT {} AS asked, word, segment, {} AS data, CASE WHEN {} THEN places END FROM postings WHERE {} ORDER BY word"
        words = [word for word in wanted if not word.endswith("*")]
        many = "word IN (SELECT value FROM carray(?))"
        chosen = sql.format("word", f"CASE WHEN {many} THEN data END", many, many)
        found: list[tuple[str, Any]] = [(chosen, (unread, of_phrases, words))] if words else []
        for word in wanted.keys() - words:
            beginning = f"word >= ?3 AND word < ?3 || '{LAST}'"
            found.append((sql.format("?1::text", "data", "?2::int = 1", beginning), (word, wanted[word], word[:-1])))
            self._packed.pop(word, None)
        self._packed |= {word: {} for word in unread}
        return found

    def _take(self, answers: Iterable[Sequence[Any]]) -> None:
        for row in chain(*answers):
            self._keep(*row)

    def _read(self, db: Connection, asked: Sequence[Phrase]) -> dict[Phrase, Any]:
        """The postings of words and phrases, read at once."""
        if self._size > _MOST_KEPT:
            self._packed, self._of, self._size = {}, {}, 0
        if self._gone is None:
            self._count(db, ())
        if lacking := self._lacking(asked):
            self._take(db.together(*lacking))
        return {phrase: self._of[phrase] for phrase in asked if phrase in self._of or self._make(phrase)}

    def _make(self, phrase: Phrase) -> bool:
        """The postings of a phrase, of those of its words."""
        if len(phrase) > 1:
            self._of[phrase] = self._side_by_side(phrase)
        else:
            rows = [
                each.rows if each.alive.all() else each.rows[each.alive] for each in self._packed[phrase[0]].values()
            ]
            every = rows[0] if len(rows) == 1 else np.concatenate([np.empty(0, POSTING), *rows])
            self._of[phrase] = _summed(every) if phrase[0].endswith("*") else every
        return True

    def _side_by_side(self, phrase: Phrase) -> Any:
        candidates = self._candidates(phrase)
        if not len(candidates):
            return np.empty(0, POSTING)
        marks = np.zeros(int(candidates.max()) + 1, bool)
        marks[candidates] = True
        keys = [
            np.concatenate([each.keys(marks) for each in self._packed[word].values()]) - k
            for k, word in enumerate(phrase)
        ]
        found = np.sort(reduce(partial(np.intersect1d, assume_unique=True), sorted(keys, key=len)))
        notes, of = np.unique(found >> 33, return_inverse=True)
        first = self._of[phrase[:1]] if phrase[:1] in self._of or self._make(phrase[:1]) else _NONE
        first = first[np.argsort(first["note"], kind="stable")]
        rows = np.zeros(len(notes), POSTING)
        in_body = (found >> 32 & 1).astype(bool)
        rows["note"], rows["words"] = notes, first["words"][np.searchsorted(first["note"], notes)]
        rows["title"], rows["body"] = (
            np.minimum(_MOST, np.bincount(of[some], minlength=len(notes))) for some in (~in_body, in_body)
        )
        return rows

    def _candidates(self, phrase: Phrase) -> Any:
        """The notes that hold all words of a phrase somewhere."""
        every = [self._of[word,] for word in dict.fromkeys(phrase) if (word,) in self._of or self._make((word,))]
        return reduce(np.intersect1d, (rows["note"] for rows in sorted(every, key=len)))

    def _blocks_with(self, db: Connection, phrase: Phrase) -> int:
        """How many blocks hold a phrase."""
        if len(phrase) == 1 and not phrase[0].endswith("*"):
            self._count(db, phrase)
            return self._counts[phrase[0]][1]
        if phrase not in self._in_blocks:
            self._read(db, [phrase])
            some = self._candidates(phrase).tolist()
            sql = "SELECT title, blocks FROM note_words WHERE note_id IN (SELECT value FROM carray(:ids))"
            self._in_blocks[phrase] = sum(
                1
                for title, blocks in db.execute(sql, {"ids": some})
                for everywhere in [occurrences(phrase, title) > 0]
                for line in blocks.split("\n")[:-1]
                if everywhere or occurrences(phrase, line.partition(":")[2])
            )
        return self._in_blocks[phrase]

    def count(self, db: Connection, name: str, term: Term) -> int:
        asked = phrases([term])
        if not asked:
            return 0
        return self._blocks_with(db, asked[0]) if name == "block" else self.vocabulary(db, [[term]])[0]

    def rows(self, db: Connection, name: str) -> int:
        self._read(db, ())
        return self._totals[0 if name == "note" else 2]

    def vocabulary(self, db: Connection, asked: Sequence[Sequence[Term]]) -> list[int]:
        groups = [phrases(group) for group in asked]
        single = {phrase[0] for group in groups for phrase in group if len(phrase) == 1}
        self._count(db, sorted(word for word in single if not word.endswith("*")))
        longer = [group for group in groups if len(group) > 1 or group and group[0][0] not in self._counts]
        held = dict(zip(map(tuple, longer), map(len, self._holders(db, longer)), strict=True))
        return [
            held[tuple(group)] if group in longer else self._counts[group[0][0]][0] if group else 0 for group in groups
        ]

    def holding(
        self, db: Connection, groups: Sequence[Sequence[Term]], some: Sequence[int]
    ) -> list[tuple[int, set[int]]]:
        return [
            (len(notes), set(notes.tolist()) & set(some)) for notes in self._holders(db, list(map(phrases, groups)))
        ]

    def _holders(self, db: Connection, groups: Sequence[Sequence[Phrase]]) -> list[Any]:
        found = self._read(db, list(dict.fromkeys(phrase for group in groups for phrase in group)))
        every = ([_in_notes(found[phrase])["note"] for phrase in group] for group in groups)
        return [np.unique(np.concatenate(notes or [_NONE])) for notes in every]

    def all_of(self, db: Connection, stretches: Sequence[Sequence[str]]) -> list[int]:
        """The notes that hold every one of these, word for word."""
        every = self._holders(db, [phrases([Term(tuple(stretch))]) for stretch in stretches])
        return reduce(np.intersect1d, every).tolist() if every else []

    def rank(self, db: Connection, question: Question, ids: Ids) -> tuple[Leg, Leg, Leg]:
        self._count(db, [phrase[0] for phrase in phrases(question.terms) if not phrase[0].endswith("*")])
        common = set(phrases(question.terms)).difference(phrases(self._telling(db, "note", question.terms)))
        self._next = [pair for pair in phrases(question.pairs) if common.isdisjoint((word,) for word in pair)]
        return super().rank(db, question, ids)

    def leg(self, db: Connection, name: str, terms: Sequence[Term], limit: int, ids: Ids) -> Leg:
        if ids is not None and not len(ids):
            return []
        asked = phrases(terms)
        if name == "note":
            found = self._read(db, asked)
            return self._best_notes([_in_notes(found[phrase]) for phrase in asked], limit, ids)
        self._count(db, [phrase[0] for phrase in asked if len(phrase) == 1 and not phrase[0].endswith("*")])
        return self._best_blocks(db, {phrase: self._blocks_with(db, phrase) for phrase in asked}, limit, ids or ())

    def _best_notes(self, postings: Sequence[Any], limit: int, ids: Ids) -> Leg:
        count, words, *_ = self._totals
        size = 1 + max((int(rows["note"].max(initial=0)) for rows in postings), default=0)
        sums, chosen = np.zeros(size), None if ids is None else np.zeros(size, bool)
        if chosen is not None:
            few = np.asarray(ids)
            chosen[few[few < size]] = True
        for rows in postings:
            idf = _idf(count, len(rows))
            if chosen is not None:
                rows = rows[chosen[rows["note"]]]
            held = TITLE_WEIGHT * rows["title"] + BODY_WEIGHT * rows["body"]
            flat = K1 * (1 - B) + K1 * B * rows["words"] * count / max(1, words)
            sums[rows["note"]] += idf * held * (K1 + 1) / (held + flat)
        found = np.flatnonzero(sums)
        if limit < len(found):
            found = found[sums[found] >= np.partition(sums[found], -limit)[-limit]]
        best = found[np.argsort(-sums[found], kind="stable")][:limit]
        return [Match(note, 0, score) for note, score in zip(best.tolist(), sums[best].tolist(), strict=True)]

    def _best_blocks(self, db: Connection, counts: dict[Phrase, int], limit: int, some: Sequence[int]) -> Leg:
        _, _, count, words = self._totals
        idfs = {phrase: _idf(count, each) for phrase, each in counts.items() if each}
        per_word = K1 * B * count / max(1, words)
        sql = "SELECT note_id, title, blocks FROM note_words WHERE note_id IN (SELECT value FROM carray(?))"
        notes, *lacking = db.together((sql, (list(some),)), *self._lacking(self._next))
        self._take(lacking)
        found: Leg = []
        for note, title, blocks in notes if idfs else ():
            held: dict[tuple[int, int], dict[Phrase, float]] = {}  # by where a block begins and ends
            for phrase in idfs:
                if times := occurrences(phrase, title):
                    for line in _lines(blocks):
                        held.setdefault(line, {})[phrase] = TITLE_WEIGHT * times
                for line, times in _lines_with(phrase, blocks).items():
                    of = held.setdefault(line, {})
                    of[phrase] = of.get(phrase, 0.0) + BODY_WEIGHT * times
            size = title.count(" ") // 2
            for (start, end), of in held.items():
                flat = K1 * (1 - B) + per_word * (size + blocks.count(" ", start, end) // 2)
                score = 0.0
                for phrase, weight in of.items():
                    score += idfs[phrase] * weight * (K1 + 1) / (weight + flat)
                place = int(blocks[start : blocks.index(":", start)])
                found.append(Match(note, note << SHIFT | place, score))
        found.sort(key=lambda match: (-match.score, match.place))
        return found[:limit]


class _Packed(NamedTuple):
    """Postings of a word in a segment, which of them still count, and their places if they were read."""

    rows: Any
    alive: Any
    places: Any

    def keys(self, marks: Any) -> Any:
        """Where the word stands in marked notes: note, column and place as one number."""
        notes = self.rows["note"]
        chosen = self.alive & marks[np.minimum(notes, len(marks) - 1)] & (notes < len(marks))
        rows, times = self.rows[chosen], _times(self.rows)
        places = self.places[np.repeat(chosen, times)].astype(np.int64)
        times = times[chosen]
        within = np.arange(len(places)) - np.repeat(np.cumsum(times) - times, times)
        in_body = within >= np.repeat(rows["title"], times)
        return np.repeat(rows["note"].astype(np.int64) << 33, times) + (in_body.astype(np.int64) << 32) + places


def _summed(rows: Any) -> Any:
    """The postings of several words as those of one."""
    notes, first, of = np.unique(rows["note"], return_index=True, return_inverse=True)
    every = rows[first]
    for column in ("title", "body"):
        every[column] = np.minimum(_MOST, np.bincount(of, rows[column], len(notes)))
    return every


def _lines(blocks: str) -> Iterator[tuple[int, int]]:
    """Where each line begins and ends."""
    start = 0
    while (end := blocks.find("\n", start)) >= 0:
        yield start, end
        start = end + 1


def _lines_with(phrase: Phrase, blocks: str) -> dict[tuple[int, int], int]:
    """The lines in which words stand side by side, and how often."""
    wanted = _sought(phrase)
    found: dict[tuple[int, int], int] = {}
    at = blocks.find(wanted)
    while at >= 0:
        line = blocks.rfind("\n", 0, at) + 1, blocks.index("\n", at)
        found[line] = found.get(line, 0) + 1
        at = blocks.find(wanted, at + 1)
    return found


def _idf(rows: int, holding: int) -> float:
    return max(math.log((rows - holding + 0.5) / (holding + 0.5)), LEAST_IDF)


def put(rows: Rows, note: int, title: str, body: str, blocks: Sequence[tuple[int, str]]) -> None:
    """Keep the words of a note and its blocks in `rows`."""
    lines = "".join(f"{place & (1 << SHIFT) - 1}:{spaced(tokens(words))}\n" for place, words in blocks)
    rows.add(PUT, [(note, spaced(tokens(title)), spaced(tokens(body)), lines)])
