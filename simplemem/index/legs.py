"""Words in the sidecar: FTS5 tables, and to which notes or blocks they lead, best first. Of too many rows the rarest
words choose, and all words rank (limits.md C.3); of frequent words all notes, or those with several."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import apsw

from simplemem.index import door
from simplemem.index.door import BODY_WEIGHT, K1, TITLE_WEIGHT, AnyOf, B, Ids, Leg, Match, Term
from simplemem.index.text import SHIFT

if TYPE_CHECKING:
    from simplemem.index.database import Connection, Database

MOST_SCORED = 6_000  # entries of words; SQLite scores so many in three milliseconds
_CHOOSING = 0.4  # of them, for the words that choose
_CHOSEN = 300  # entries of these words, at least
_WORTH = 4  # times their entries must be fewer than the notes: all are scored nearly as soon, and none is passed over
_FEW = 1_000  # notes: so many are scored without choosing
_MOST_NOTES = (
    25_000  # that are scored where all words are frequent; 100,000 passages are fewer notes
)
_IN_PAIRS = (
    100_000  # notes: up to here the frequent words are dealt into two groups, beyond it into three
)
_A_SEEK = 200  # entries that are walked in the time in which one word is sought in one note
_SOUGHT = 30  # rows: so few are sought one by one
_ALL = -1  # SQLite's limit for all rows

LEGS = {"note": "note_text", "block": "block_text"}
_MOST_TERMS = 20_000  # whose counts are kept

# In `block_text` ids lie further apart. FTS5 looks deleted rows up by their lowest bits: where these were the same for
# all notes, a search took three times as long once twenty notes had changed.
FURTHER = 317
APART = (1 << SHIFT) + FURTHER
PLACE_OF_ROW = f"(block_text.rowid - block_text.rowid / {APART} * {FURTHER})"
_WHILE_MUCH_COMES = (("automerge", 0), ("crisismerge", 64), ("hashsize", 16 << 20))
_OTHERWISE = (("automerge", 4), ("crisismerge", 16), ("hashsize", 1 << 20))  # FTS5's own
_PAGES_AT_ONCE = 1000


def quoted(words: Iterable[str]) -> str:
    """Words side by side as one FTS5 string: never syntax, whatever is in them."""
    return '"' + " ".join(words).replace('"', '""').replace("\0", " ") + '"'


def fts_terms(terms: Sequence[Term]) -> list[str]:
    """Terms as FTS5 takes them, once each."""
    return list(dict.fromkeys(quoted(term.words) + "*" * term.beginning for term in terms))


def expect_much(database: Database) -> None:
    """Before very many notes: segments of the word tables are not merged again and again while they come."""
    for table in LEGS.values():
        database.connection().executemany(
            f"INSERT INTO {table} ({table}, rank) VALUES (?, ?)", _WHILE_MUCH_COMES
        )


def fold(database: Database, generation: int | None = None) -> None:
    """Merge the segments of the word tables that still expect much, also of who died: a few pages a transaction."""
    with database.reading() as db:
        asked = (
            (table, f"SELECT v FROM {table}_config WHERE k = 'automerge'")
            for table in LEGS.values()
        )
        unmerged = [table for table, sql in asked if db.execute(sql).get == 0]
    for table in unmerged:
        is_merged = False
        while not is_merged:
            with database.writing(generation) as db:
                before, setting = (
                    db.total_changes(),
                    f"INSERT INTO {table} ({table}, rank) VALUES (?, ?)",
                )
                db.execute(setting, ("merge", -_PAGES_AT_ONCE)).fetchall()
                is_merged = db.total_changes() - before < 2
                db.executemany(setting, _OTHERWISE if is_merged else ())


def _count_and_rows(
    db: Connection, table: str, expression: str, ids: Sequence[int]
) -> tuple[int, set[int]]:
    sql = f"""SELECT count(*), json_group_array(rowid) FILTER (WHERE (rowid >> 0) IN (SELECT value FROM carray(:ids)))
              FROM {table} WHERE {table} MATCH :expression"""
    count, rows = next(db.execute(sql, {"expression": expression, "ids": db.many(ids)}))
    return int(count), set(json.loads(rows))


def _best(
    db: Connection,
    name: str,
    match: str,
    limit: int,
    ids: Ids,
    counts: str | None = None,
    *,
    sought: bool = False,
) -> Leg:
    """The best rows that match. With a limit `ORDER BY bm25()` keeps only these, `rank` sorts all (limits.md C.2)."""
    table = source = LEGS[name]
    note, place = ("rowid", "0") if name == "note" else (f"({table}.rowid / {APART})", PLACE_OF_ROW)
    score = (
        f"-bm25({table}, {TITLE_WEIGHT}, {BODY_WEIGHT})"
        if counts is None
        else f"scored({table}, :counts)"
    )
    narrowed = ""
    if sought:
        source = f"carray(:ids) AS asked CROSS JOIN {table}"
        row = f"{table}.rowid"
        narrowed = f"AND {row} >= asked.value * {APART} AND {row} < (asked.value + 1) * {APART}"
    elif ids is not None:  # by the bare rowid, SQLite asks FTS5 for each of the ids by itself
        row = "(rowid >> 0)" if name == "note" and len(ids) > _SOUGHT else note
        narrowed = f"AND {row} IN (SELECT value FROM carray(:ids))"
    sql = f"""SELECT {note}, {place}, {score} AS score FROM {source}
              WHERE {table} MATCH :expression {narrowed} ORDER BY score DESC LIMIT :limit"""
    values = {
        "expression": match,
        "limit": limit,
        "counts": counts,
        "ids": None if ids is None else db.many(ids),
    }
    return list(door.as_values(door.Match, db.execute(sql, values)))


# BM25 as FTS5 counts it, for chosen rows only: its own bm25() counts the rows of every word anew for every question, and
# that is nearly all of the time in a large vault. Here counts are kept for as long as no note changes.
def scored(row: apsw.FTS5ExtensionApi, *given: apsw.SQLiteValue) -> float:
    """`scored(table, counts)`: the score of a row, given how many rows hold each term of the MATCH."""
    told: tuple[list[float], float] | None = row.aux_data
    if told is None:  # the first row of a question
        rows, counts = row.row_count, json.loads(str(given[0]))
        idfs = [door.idf(rows, count) for count in counts]
        told = idfs, K1 * B * rows / max(1, row.column_total_size(-1))
        row.aux_data = told
    idfs, by_size = told
    flat = K1 * (1 - B) + by_size * row.column_size(-1)
    score = 0.0
    for phrase, idf in enumerate(idfs):
        in_title, in_body = row.phrase_locations(phrase)[:2]
        if in_title or in_body:
            found = TITLE_WEIGHT * len(in_title) + BODY_WEIGHT * len(in_body)
            score += idf * found * (K1 + 1) / (found + flat)
    return score


class Counts:
    """How many rows of a table hold a term, which is written as FTS5 takes it, and the best rows: of so many `notes`."""

    def __init__(self, notes: int, most_scored: int = MOST_SCORED) -> None:
        self.notes, self._most_scored = notes, most_scored
        self._of: dict[tuple[str, str], int] = {}
        self._rows: dict[str, int] = {}

    def blocks(self, db: Any) -> int:
        """How many blocks there are."""
        return self.rows(db, "block")

    def rows(self, db: Any, name: str) -> int:
        """How many rows a leg has."""
        if name not in self._rows:
            self._rows[name] = int(db.execute(f"SELECT count(*) FROM {LEGS[name]}_docsize").get)
        return self._rows[name]

    def of(self, db: Connection, table: str, term: str) -> int:
        if (table, term) not in self._of:
            count = int(
                db.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (term,)).get
            )
            if len(self._of) >= _MOST_TERMS:
                self._of.clear()
            self._of[table, term] = count
        return self._of[table, term]

    def count(self, db: Any, name: str, term: Term) -> int:
        """How many rows of a leg hold a term."""
        return self.of(db, LEGS[name], *fts_terms([term]))

    def leg(self, db: Any, name: str, asked: Sequence[Term], limit: int, ids: Ids) -> Leg:
        """The best rows that hold any of some terms, among `ids`. Where notes are few, every row is scored."""
        if ids is not None and not ids:
            return []
        if any(term.stem_of for term in asked):
            return self._by_word(db, name, asked, limit, ids)
        return self._any_of(db, name, asked, limit, ids)

    def _by_word(self, db: Any, name: str, asked: Sequence[Term], limit: int, ids: Ids) -> Leg:
        """The best rows where words are asked by their stems as well. FTS5 would count all forms of a word, and a stem
        that few notes hold for more than the word, so each form is scored by itself."""
        entries = sum(self.count(db, name, term) for term in asked)
        if name == "note" and entries > self._most_scored:
            ids = self._candidates(db, asked, limit, ids)
        scores: defaultdict[tuple[int, int], float] = defaultdict(float)
        for forms in door.by_word(asked):
            for row, score in self._best_form(db, name, forms, ids).items():
                scores[row] += score
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))[:limit]
        return [Match(note, place, score) for (note, place), score in best]

    def _candidates(self, db: Any, asked: Sequence[Term], limit: int, ids: Ids) -> Sequence[int]:
        """The notes among which the best of very many are: the best by the words, and the best by their stems."""
        words = [term for term in asked if not term.stem_of]
        stems = [term for term in asked if term.stem_of]
        found = [
            match
            for terms in (words, stems)
            if terms
            for match in self._any_of(db, "note", terms, limit, ids)
        ]
        return sorted({match.note for match in found})

    def _best_form(
        self, db: Any, name: str, forms: Sequence[Term], ids: Ids
    ) -> dict[tuple[int, int], float]:
        """For each row the score of that form of one word that scores best in it."""
        rows = self.rows(db, name)
        holding_word = self.count(db, name, forms[0])
        scores: dict[tuple[int, int], float] = {}
        for form in forms:
            holding = self.count(db, name, form)
            share = door.idf(rows, max(holding, holding_word)) / door.idf(rows, holding)
            for note, place, score in self._of_one(db, name, form, ids):
                scores[note, place] = max(share * score, scores.get((note, place), 0.0))
        return scores

    def _of_one(self, db: Any, name: str, term: Term, ids: Ids) -> Leg:
        """Every row that holds a term, with its score."""
        match = fts_terms([term])[0]
        count = self.of(db, LEGS[name], match)
        if ids is not None and len(ids) * _A_SEEK < count:
            return _best(
                db, name, match, _ALL, sorted(ids), json.dumps([count]), sought=name == "block"
            )
        return _best(db, name, match, _ALL, ids)

    def _any_of(self, db: Any, name: str, asked: Sequence[Term], limit: int, ids: Ids) -> Leg:
        """The best rows by the sum of what every term scores."""
        table, terms = LEGS[name], fts_terms(asked)
        any_of = " OR ".join(terms)
        if self.notes <= self._most_scored // 3:
            return _best(db, name, any_of, limit, ids)
        few = ids is not None and len(ids) <= _FEW and name == "note"
        if few and all(len(term.words) > 1 for term in asked):
            # To find words side by side is most of the work: done once, for the count and for the notes that hold them.
            each = [_count_and_rows(db, table, term, ids or ()) for term in terms]
            holders = sorted(set().union(*(rows for _, rows in each)))
            return (
                _best(db, name, any_of, limit, holders, json.dumps([count for count, _ in each]))
                if holders
                else []
            )
        found = {term: self.of(db, table, term) for term in terms}
        entries = sum(found.values())
        if entries <= self._most_scored:
            return _best(db, name, any_of, limit, ids)
        if few:  # to count the words anew takes longer than to score a few notes
            return _best(db, name, any_of, limit, ids, json.dumps(list(found.values())))
        if name == "note":
            return self._chosen(db, found, limit, ids)
        if ids is not None and len(ids) * len(terms) * _A_SEEK < entries:
            # Of frequent words in a very large vault a walk passes a thousand others for each that is asked for.
            return _best(
                db, name, any_of, limit, sorted(ids), json.dumps(list(found.values())), sought=True
            )
        return _best(db, name, any_of, limit, ids)

    def _chosen(self, db: Connection, found: dict[str, int], limit: int, ids: Ids) -> Leg:
        """The best of very many notes: those that hold a rare word; where none is rare, a word of each of some groups."""
        by_rarity = sorted(found, key=found.__getitem__)
        rare: list[str] = []
        entries = 0
        for term in by_rarity:
            if (
                entries + found[term] > int(self._most_scored * _CHOOSING)
                and entries >= _CHOSEN
                and len(rare) >= 2
            ):
                break
            entries += found[term]
            rare.append(term)
        others = by_rarity[len(rare) :]
        if others and _WORTH * entries < min(sum(found.values()), self.notes, _MOST_NOTES):
            # A note with one of the others too is in the second list with a part of its score, if at all.
            any_rare, any_other = " OR ".join(rare), " OR ".join(others)
            with_others = _best(db, "note", f"({any_rare}) AND ({any_other})", limit, ids)
            best = {
                match.note: match for match in _best(db, "note", any_rare, limit, ids) + with_others
            }
            return sorted(best.values(), key=lambda match: -match.score)[:limit]
        if self.notes > _MOST_NOTES:
            groups = 2 if self.notes <= _IN_PAIRS else 3
            dealt = [by_rarity[k::groups] for k in range(min(groups, len(by_rarity)))]
            holders = _best(
                db, "note", " AND ".join(f"({' OR '.join(group)})" for group in dealt), limit, ids
            )
            if len(holders) >= min(limit, _CHOSEN):
                return holders
        return _best(db, "note", " OR ".join(found), limit, ids)

    rank = door.rank

    def vocabulary(self, db: Any, asked: Sequence[AnyOf]) -> list[int]:
        """How many notes hold one of the words, for each of some groups of them."""
        return [self.of(db, "note_text", " OR ".join(fts_terms(group))) for group in asked]

    def holding(
        self, db: Any, groups: Sequence[AnyOf], some: Sequence[int]
    ) -> list[tuple[int, set[int]]]:
        """For each group of words how many notes hold one of them, and which of `some` do."""
        return [
            _count_and_rows(db, "note_text", " OR ".join(fts_terms(group)), some)
            for group in groups
        ]


def dumped(db: Connection) -> Iterator[tuple[Any, ...]]:
    """What the index holds of words: of each sums that tell its places, in order."""
    for leg, apart in (
        ("note_text", 1),
        ("block_text", APART),
    ):  # how far the rows of two notes lie apart
        try:
            db.execute(
                f"CREATE VIRTUAL TABLE temp.places USING fts5vocab(main, {leg}, instance)"
            ).fetchall()
            db.execute(
                "CREATE TEMP TABLE numbers (id INTEGER PRIMARY KEY, number INTEGER)"
            ).fetchall()
            db.execute(
                "INSERT INTO numbers SELECT id, row_number() OVER (ORDER BY path) FROM notes"
            ).fetchall()
            is_counted = (
                db.execute("SELECT 1 FROM numbers WHERE id <> number LIMIT 1").fetchone() is None
            )
            m = "doc" if is_counted else f"(coalesce(number, -1) * {apart:d} + doc % {apart:d})"
            of_note = "" if is_counted else f"LEFT JOIN temp.numbers ON id = doc / {apart:d}"
            sql = f"""SELECT '', term, count(*), sum({m} % 1000000007), sum({m} % 65537 * ("offset" * "offset" % 65521)),
                             sum({m} % 65521 * ((2 * "offset" + col) % 65521))
                      FROM temp.places {of_note} GROUP BY term"""
            yield from ((leg, *row) for row in db.execute(sql))
        finally:
            db.execute("DROP TABLE IF EXISTS temp.places").fetchall()
            db.execute("DROP TABLE IF EXISTS temp.numbers").fetchall()


def hold_same_words(ours: Connection, theirs: Any) -> bool:
    """Whether the tables of words are equal to the byte: so they are of an index made in one go, and nothing counted."""
    queries = ["SELECT id, path FROM notes ORDER BY 1"]
    for leg in LEGS.values():
        queries += [f"SELECT * FROM {leg}_{part} ORDER BY 1, 2" for part in ("docsize", "idx")]
        # The row that lists the segments (10) begins with how often a setting of the table was changed.
        queries.append(
            f"SELECT id, iif(id = 10, substr(block, 5), block) FROM {leg}_data ORDER BY 1"
        )
    return all(
        row == other
        for sql in queries
        for row, other in zip_longest(ours.execute(sql), theirs.execute(sql))
    )
