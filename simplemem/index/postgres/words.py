"""Words in PostgreSQL: our tokens and our BM25. A search reads the packed rows of its words, counts over them here, and
looks at the texts of few notes; so a score depends on the vault alone, not on the order in which notes came."""

from __future__ import annotations

import math
import threading
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

import apsw
import numpy as np

from simplemem.index.connection import LAST
from simplemem.index.door import BODY_WEIGHT, K1, LEAST_IDF, TITLE_WEIGHT, B, Ids, Leg, Match, Ranking, Term
from simplemem.index.text import SHIFT

if TYPE_CHECKING:
    from simplemem.index.notes import Rows
    from simplemem.index.postgres.database import Connection

POSTING = np.dtype([("note", "<u4"), ("title", "<u2"), ("body", "<u2"), ("blocks", "<u2"), ("words", "<u4")])
_NONE = np.empty(0, "<u4")
PUT = "INSERT INTO note_words (note_id, title, body, blocks) VALUES (?, ?, ?, ?)"
_MOST = 65_535
_MOST_KEPT = 300  # words that are kept of one state
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


def occurrences(phrase: Phrase, text: str) -> int:
    """How often words stand side by side in a `spaced` text."""
    wanted = spaced(phrase)
    if phrase[-1].endswith("*"):
        wanted = wanted[: -len("* ")]
    if len(phrase) == 1:
        return text.count(wanted)
    count, at = 0, text.find(wanted)
    while at >= 0:
        count, at = count + 1, text.find(wanted, at + 1)
    return count


def write(db: Connection, rows: Sequence[tuple[int, str, str, str]]) -> None:
    """Keep the words of some notes, and a segment of what they hold."""
    segment = int(db.execute("SELECT nextval('segments')").get)
    packed: dict[str, list[tuple[int, ...]]] = {}
    held = []
    for note, title, body, blocks in rows:
        in_title, in_body, lines = Counter(title.split()), Counter(body.split()), blocks.split("\n")[:-1]
        in_blocks = Counter(word for line in lines for word in {*line.split()[1:], *in_title})
        size = in_title.total() + in_body.total()
        of_blocks = sum(len(line.split()) - 1 for line in lines) + len(lines) * in_title.total()
        held.append((note, segment, size, len(lines), of_blocks))
        for word in in_title.keys() | in_body.keys() | in_blocks.keys():
            counts = (min(_MOST, each[word]) for each in (in_title, in_body, in_blocks))
            packed.setdefault(word, []).append((note, *counts, size))
    db.copy("note_words (note_id, title, body, blocks)", rows)
    db.copy("held (note_id, segment, words, blocks, block_words)", held)
    data = ((word, segment, np.array(packed[word], POSTING).tobytes()) for word in sorted(packed))
    db.copy("postings (word, segment, data)", data)
    sums = tuple(sum(row[k] for row in held) for k in (2, 3, 4))
    _add(db, len(held), *sums)


def _add(db: Connection, *by: int) -> None:
    sql = "UPDATE totals SET notes = notes + ?, words = words + ?, blocks = blocks + ?, block_words = block_words + ?"
    db.execute(sql, by)


def remove(db: Connection, note: int) -> None:
    """Forget a note's words. What its segment says of it counts no more."""
    db.execute("DELETE FROM note_words WHERE note_id = ?", (note,))
    sql = "DELETE FROM held WHERE note_id = ? RETURNING segment, words, blocks, block_words"
    for segment, *counts in db.execute(sql, (note,)).fetchall():
        db.execute("INSERT INTO gone (segment, note_id) VALUES (?, ?)", (segment, note))
        _add(db, -1, *(-count for count in counts))


def to_merge(db: Connection) -> list[int]:
    """Segments of which too many are of a like size, the smallest first; nothing where all is well."""
    sql = "SELECT segment, count(*) FROM held GROUP BY segment ORDER BY 2, 1"
    by_size: dict[int, list[int]] = {}
    for segment, notes in db.execute(sql).fetchall():
        by_size.setdefault(int(math.log(notes, _MERGED)), []).append(segment)
    return next((some for some in by_size.values() if len(some) >= _MERGED), [])


def merge(db: Connection, some: Sequence[int]) -> None:
    """Make one segment of some, without what is gone."""
    segment = int(db.execute("SELECT nextval('segments')").get)
    chosen = "segment IN (SELECT value FROM carray(:ids))"
    values = {"ids": list(some)}
    gone = _gone(db.execute(f"SELECT segment, note_id FROM gone WHERE {chosen}", values).fetchall())
    packed: dict[str, list[bytes]] = {}
    for word, of, data in db.execute(f"SELECT word, segment, data FROM postings WHERE {chosen} ORDER BY 2", values):
        rows = _alive(np.frombuffer(data, POSTING), gone.get(of))
        packed.setdefault(word, []).append(rows.tobytes())
    for table in ("postings", "gone"):
        db.execute(f"DELETE FROM {table} WHERE {chosen}", values)
    db.copy("postings (word, segment, data)", ((word, segment, b"".join(rows)) for word, rows in packed.items()))
    db.execute(f"UPDATE held SET segment = :segment WHERE {chosen}", {"segment": segment, **values})


def _gone(rows: Iterable[tuple[int, int]]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for segment, note in rows:
        found.setdefault(segment, []).append(note)
    return found


def _alive(rows: Any, gone: Collection[int] | None) -> Any:
    return rows if gone is None else rows[~np.isin(rows["note"], list(gone))]


class PackedWords(Ranking):
    """The words of one state of the index. What was read of them is kept as long as it lasts."""

    def __init__(self, notes: int) -> None:
        super().__init__(notes)
        self._of: dict[Phrase, Any] = {}
        self._in_blocks: dict[Phrase, int] = {}
        self._gone: dict[int, list[int]] | None = None
        self._totals: tuple[int, int, int, int] = (0, 0, 0, 0)

    def _read(self, db: Connection, asked: Sequence[Phrase]) -> dict[Phrase, Any]:
        """The postings of words and phrases, read at once."""
        if self._gone is None:
            self._gone = _gone(db.execute("SELECT segment, note_id FROM gone").fetchall())
            self._totals = db.execute("SELECT notes, words, blocks, block_words FROM totals").fetchall()[0]
        if len(self._of) > _MOST_KEPT:
            self._of.clear()
            self._in_blocks.clear()
        unknown = [phrase for phrase in asked if phrase not in self._of]
        for word in dict.fromkeys(word for phrase in unknown for word in phrase):
            if word.endswith("*") and (word,) not in self._of:
                self._of[(word,)] = self._beginning(db, word[:-1])
        words = list(dict.fromkeys(word for phrase in unknown for word in phrase if (word,) not in self._of))
        if words:
            parts: dict[str, list[Any]] = {word: [] for word in words}
            sql = "SELECT word, segment, data FROM postings WHERE word IN (SELECT value FROM carray(?)) ORDER BY 1, 2"
            for word, segment, data in db.execute(sql, (words,)).fetchall():
                parts[word].append(_alive(np.frombuffer(data, POSTING), self._gone.get(segment)))
            self._of |= {(word,): np.concatenate(rows or [np.empty(0, POSTING)]) for word, rows in parts.items()}
        if longer := [phrase for phrase in unknown if phrase not in self._of]:
            self._of |= self._counted(db, {phrase: self._candidates(phrase) for phrase in longer})
        return {phrase: self._of[phrase] for phrase in asked}

    def _beginning(self, db: Connection, start: str) -> Any:
        """The postings of all words that begin so, as those of one word."""
        sql = f"SELECT segment, data FROM postings WHERE word >= ? AND word < ? || '{LAST}'"
        found = db.execute(sql, (start, start)).fetchall()
        rows = [_alive(np.frombuffer(data, POSTING), (self._gone or {}).get(of))["note"] for of, data in found]
        phrase = (f"{start}*",)
        return self._counted(db, {phrase: np.unique(np.concatenate(rows or [_NONE]))})[phrase]

    def _candidates(self, phrase: Phrase) -> Any:
        """The notes that hold all words of a phrase somewhere."""
        return reduce(np.intersect1d, [self._of[(word,)]["note"] for word in dict.fromkeys(phrase)])

    def _counted(self, db: Connection, candidates: dict[Phrase, Any]) -> dict[Phrase, Any]:
        """The postings of phrases, which are looked for in the texts of some notes."""
        every = np.unique(np.concatenate(list(candidates.values()))).tolist()
        wanted = {phrase: set(notes.tolist()) for phrase, notes in candidates.items()}
        found: dict[Phrase, list[tuple[int, ...]]] = {phrase: [] for phrase in candidates}
        sql = """SELECT w.note_id, w.title, w.body, h.words FROM note_words w JOIN held h USING (note_id)
                 WHERE w.note_id IN (SELECT value FROM carray(?)) ORDER BY 1"""
        for note, title, body, size in db.execute(sql, (every,)) if every else ():
            for phrase, notes in wanted.items():
                if note in notes:
                    counts = min(_MOST, occurrences(phrase, title)), min(_MOST, occurrences(phrase, body))
                    found[phrase].append((note, *counts, 0, size))
        return {phrase: np.array(rows, POSTING) for phrase, rows in found.items()}

    def _blocks_with(self, db: Connection, phrase: Phrase) -> int:
        """How many blocks hold a phrase. Of a single word its postings say so."""
        rows = self._of[phrase]
        if len(phrase) == 1 and not phrase[0].endswith("*"):
            return int(rows["blocks"].sum())
        if phrase not in self._in_blocks:
            some = (rows["note"] if len(phrase) == 1 else self._candidates(phrase)).tolist()
            sql = "SELECT title, blocks FROM note_words WHERE note_id IN (SELECT value FROM carray(:ids))"
            self._in_blocks[phrase] = sum(
                1
                for title, blocks in db.execute(sql, {"ids": some})
                for everywhere in [occurrences(phrase, title) > 0]
                for line in blocks.split("\n")[:-1]
                if everywhere or occurrences(phrase, line.partition(":")[2])
            )
        return self._in_blocks[phrase]

    @staticmethod
    def _in_notes(rows: Any) -> Any:
        """Those whose note holds the word as a whole: in its title or body."""
        return rows[(rows["title"] > 0) | (rows["body"] > 0)]

    def count(self, db: Connection, name: str, term: Term) -> int:
        asked = phrases([term])
        found = self._read(db, asked)
        if not asked:
            return 0
        rows = found[asked[0]]
        return len(self._in_notes(rows)) if name == "note" else self._blocks_with(db, asked[0])

    def rows(self, db: Connection, name: str) -> int:
        self._read(db, ())
        return self._totals[0 if name == "note" else 2]

    def vocabulary(self, db: Connection, asked: Sequence[Sequence[Term]]) -> list[int]:
        return [len(notes) for notes in self._holders(db, asked)]

    def holding(
        self, db: Connection, groups: Sequence[Sequence[Term]], some: Sequence[int]
    ) -> list[tuple[int, set[int]]]:
        return [(len(notes), set(notes.tolist()) & set(some)) for notes in self._holders(db, groups)]

    def _holders(self, db: Connection, groups: Sequence[Sequence[Term]]) -> list[Any]:
        asked = [phrases(group) for group in groups]
        found = self._read(db, list(dict.fromkeys(phrase for group in asked for phrase in group)))
        every = ([self._in_notes(found[phrase])["note"] for phrase in group] for group in asked)
        return [np.unique(np.concatenate(notes or [_NONE])) for notes in every]

    def all_of(self, db: Connection, stretches: Sequence[Sequence[str]]) -> list[int]:
        """The notes that hold every one of these, word for word."""
        every = self._holders(db, [[Term(tuple(stretch))] for stretch in stretches])
        return reduce(np.intersect1d, every).tolist() if every else []

    def leg(self, db: Connection, name: str, terms: Sequence[Term], limit: int, ids: Ids) -> Leg:
        if ids is not None and not len(ids):
            return []
        asked = phrases(terms)
        found = self._read(db, asked)
        if name == "note":
            return self._best_notes([self._in_notes(found[phrase]) for phrase in asked], limit, ids)
        return self._best_blocks(db, {phrase: self._blocks_with(db, phrase) for phrase in asked}, limit, ids or ())

    def _best_notes(self, postings: Sequence[Any], limit: int, ids: Ids) -> Leg:
        count, words, *_ = self._totals
        scores, notes = [], []
        for rows in postings:
            idf = _idf(count, len(rows))
            if ids is not None:
                rows = rows[np.isin(rows["note"], ids)]
            held = TITLE_WEIGHT * rows["title"] + BODY_WEIGHT * rows["body"]
            flat = K1 * (1 - B) + K1 * B * rows["words"] * count / max(1, words)
            scores.append(idf * held * (K1 + 1) / (held + flat))
            notes.append(rows["note"])
        if not notes:
            return []
        every, which = np.unique(np.concatenate(notes), return_inverse=True)
        sums = np.bincount(which, np.concatenate(scores), len(every))
        best = np.argsort(-sums, kind="stable")[:limit]
        return [Match(note, 0, score) for note, score in zip(every[best].tolist(), sums[best].tolist(), strict=True)]

    def _best_blocks(self, db: Connection, counts: dict[Phrase, int], limit: int, some: Sequence[int]) -> Leg:
        _, _, count, words = self._totals
        idfs = {phrase: _idf(count, each) for phrase, each in counts.items() if each}
        per_word = K1 * B * count / max(1, words)
        found: Leg = []
        sql = "SELECT note_id, title, blocks FROM note_words WHERE note_id IN (SELECT value FROM carray(?))"
        for note, title, blocks in db.execute(sql, (list(some),)) if idfs else ():
            in_title = {phrase: occurrences(phrase, title) for phrase in idfs}
            size = title.count(" ") // 2
            for line in blocks.split("\n")[:-1]:
                number, _, text = line.partition(":")
                score = 0.0
                flat = 0.0
                for phrase, idf in idfs.items():
                    in_text = occurrences(phrase, text)
                    if held := TITLE_WEIGHT * in_title[phrase] + BODY_WEIGHT * in_text:
                        flat = flat or K1 * (1 - B) + per_word * (size + text.count(" ") // 2)
                        score += idf * held * (K1 + 1) / (held + flat)
                if score:
                    found.append(Match(note, note << SHIFT | int(number), score))
        found.sort(key=lambda match: (-match.score, match.place))
        return found[:limit]


def _idf(rows: int, holding: int) -> float:
    return max(math.log((rows - holding + 0.5) / (holding + 0.5)), LEAST_IDF)


def put(rows: Rows, note: int, title: str, body: str, blocks: Sequence[tuple[int, str]]) -> None:
    """Keep the words of a note and its blocks in `rows`."""
    lines = "".join(f"{place & (1 << SHIFT) - 1}:{spaced(tokens(words))}\n" for place, words in blocks)
    rows.add(PUT, [(note, spaced(tokens(title)), spaced(tokens(body)), lines)])
