"""Questions as SQL: which notes pass a filter, and which notes or blocks the words lead to, best first. Of too many rows
the rarest words choose, and all words rank (limits.md C.3); of frequent words all notes, or those with several."""

from __future__ import annotations

import json
import math
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import apsw

from simplemem.index import notes
from simplemem.index.changes import written_by
from simplemem.index.door import AnyOf, Beside, Match, Narrow, NotePage, Position, Question, Row, Term
from simplemem.index.text import APART, PLACE_OF_ROW
from simplemem.note.names import base_name, compare_key, date_in
from simplemem.note.note import joined
from simplemem.note.words import stretches

MOST_SCORED = 6_000  # entries of words; SQLite scores so many in three milliseconds
_CHOOSING = 0.4  # of them, for the words that choose
_CHOSEN = 300  # entries of these words, at least
_WORTH = 4  # times their entries must be fewer than the notes: all are scored nearly as soon, and none is passed over
_FEW = 1_000  # notes: so many are scored without choosing
_MOST_NOTES = 25_000  # that are scored where all words are frequent; 100,000 passages are fewer notes
_IN_PAIRS = 100_000  # notes: up to here the frequent words are dealt into two groups, beyond it into three
_A_SEEK = 200  # entries that are walked in the time in which one word is sought in one note
_SOUGHT = 30  # rows: so few are sought one by one

LEGS = {"note": "note_text", "block": "block_text"}
_ORDER = {"modified": "n.modified DESC", "created": "n.created DESC", "name": "n.path_key", "title": "n.title_key"}

TITLE_WEIGHT, BODY_WEIGHT = 10.0, 1.0  # docs/search.md
_K1, _B, _LEAST_IDF = 1.2, 0.75, 1e-6  # FTS5's
_MOST_TERMS = 20_000  # whose counts are kept

Ids = Sequence[int] | None
_Leg = list[Match]  # the notes that one way finds
"""The notes to look among; None for all."""
IDS = "carray(:ids)"
"""Many ids as a table that a statement can look in; its one column of interest is `value`."""


def bound(ids: Iterable[int]) -> Any:
    """The value of `:ids` beside IDS. An array of nothing cannot be handed over, and no id is negative."""
    values = ids if isinstance(ids, array) and ids.typecode == "q" else array("q", ids)
    return apsw.carray(values or array("q", [-1]))


def quoted(words: Iterable[str]) -> str:
    """Words side by side as one FTS5 string: never syntax, whatever is in them."""
    return '"' + " ".join(words).replace('"', '""').replace("\0", " ") + '"'


def fts_terms(terms: Sequence[Term]) -> list[str]:
    """Terms as FTS5 takes them, once each."""
    return list(dict.fromkeys(quoted(term.words) + "*" * term.beginning for term in terms))


def condition(narrow: Narrow) -> tuple[str, dict[str, Any]]:
    """The FROM and WHERE of a filter, for `notes n`, and its values."""
    parts = [] if narrow.hidden else ["n.hidden IS NULL"]
    values: dict[str, Any] = {}
    for name, wanted, require_all in (("t", narrow.tags, narrow.require_all), ("q", narrow.all_tags, True)):
        tags = []
        for k, (key, value) in enumerate(wanted.items()):
            values |= {f"{name}k{k}": compare_key(joined(key)), f"{name}v{k}": compare_key(value)}
            values[f"{name}w{k}"] = compare_key(joined(value))  # as it stands in the name of a tag
            tags.append(f"""n.id IN (SELECT note_id FROM tag_pairs
                                     WHERE key = :{name}k{k} AND value IN (:{name}v{k}, :{name}w{k}))""")
        if tags:
            parts.append("(" + (" AND " if require_all else " OR ").join(tags) + ")")
    for k, (key, value) in enumerate(narrow.properties.items()):
        parts.append(f"""EXISTS (SELECT 1 FROM properties p WHERE p.note_id = n.id AND p.key = :p{k}
                                 AND p.value COLLATE NOCASE IN (:pt{k}, :pv{k}))""")
        values |= {f"p{k}": key, f"pt{k}": json.dumps(value, ensure_ascii=False), f"pv{k}": value}  # a text or a number
    if narrow.archive:
        inside = [f"n.path_key >= :a{k} AND n.path_key < :a{k} || char(1114111)" for k in range(len(narrow.archive))]
        parts.append(f"{'' if narrow.archived else 'NOT '}({' OR '.join(inside)})")
        values |= {f"a{k}": compare_key(folder) for k, folder in enumerate(narrow.archive)}
    linked = "SELECT l.path FROM links l JOIN notes s ON s.id = l.note_id WHERE s.path = :linked_by"
    below = "n.path_key >= :prefix AND n.path_key < :prefix || char(1114111)"
    for name, value, part in (
        ("prefix", compare_key(narrow.prefix), f"({below} OR n.path_key = rtrim(:prefix, '/'))"),
        ("type", compare_key(narrow.type), "n.type_key = :type"),
        ("since", narrow.since, "n.modified >= :since"),
        ("until", narrow.until, "n.modified < :until"),
        ("link_to", narrow.link_to, "n.id IN (SELECT note_id FROM links WHERE path = :link_to)"),
        ("linked_by", narrow.linked_by, f"n.path IN ({linked})"),
    ):
        if value:
            parts.append(part)
            values[name] = value
    if narrow.author:
        by, more = written_by(narrow.author)
        parts.append(by)
        values |= more
    without = (*narrow.without, *narrow.without_forms)
    for name, phrases, part in (("phrase", narrow.phrases, "IN"), ("without", without, "NOT IN")):
        for k, phrase in enumerate(phrases):
            parts.append(f"n.id {part} (SELECT rowid FROM note_text WHERE note_text MATCH :{name}{k})")  # word for word
            values[f"{name}{k}"] = " AND ".join(quoted(stretch) for stretch in stretches(phrase)) or quoted(())
    where = " AND ".join(parts) or "1"
    source = "carray(:only) o CROSS JOIN notes n ON n.path = o.value" if narrow.only else "notes n"
    values |= {"only": apsw.carray(narrow.only)} if narrow.only else {}
    return f"{source} WHERE {where}", values


def passing(db: apsw.Connection, narrow: Narrow) -> array[int]:
    """The notes that pass."""
    source, values = condition(narrow)
    return array("q", [row[0] for row in db.execute(f"SELECT n.id FROM {source} ORDER BY n.id", values)])


def page(db: apsw.Connection, narrow: Narrow, sort: str, limit: int, after: int = 0) -> NotePage:
    """A page of the notes that pass, behind so many others."""
    source, values = condition(narrow)
    total = int(db.execute(f"SELECT count(*) FROM {source}", values).get)
    sql = f"SELECT n.id FROM {source} ORDER BY {_ORDER[sort]}, n.path LIMIT :limit OFFSET :after"
    ids = [row[0] for row in db.execute(sql, {**values, "limit": limit, "after": after})] if limit else []
    rows = notes.rows_of(db, ids)
    return NotePage([rows[note] for note in ids], tags_of(db, ids), total)


def neighbours_of(db: apsw.Connection, row: Row) -> Iterator[Beside]:
    """The notes that a note is linked with, and in its folder the dated ones before and after a dated one."""
    path, folder = row.path, row.path.rpartition("/")[0]
    ways = [(link.path, "linked from") for link in notes.stored_links(db, source=path) if link.path not in (path, None)]
    ways += [(link.source, "links to") for link in notes.stored_links(db, to=path)]
    if date_in(base_name(path)):
        first, after = (f"{folder}/", f"{folder}0") if folder else ("", "\U0010ffff")
        sql = """SELECT path FROM notes WHERE hidden IS NULL AND path >= :first AND path < :after
                 AND instr(substr(path, length(:first) + 1), '/') = 0 ORDER BY path"""
        there = [str(each) for (each,) in db.execute(sql, {"first": first, "after": after})]
        days = [each for day, each in sorted((date_in(base_name(each)), each) for each in there) if day]
        at = days.index(path) if path in days else len(days)
        around = ((at - 1, "the one before"), (at + 1, "the one after"))
        ways += [(days[k], via) for k, via in around if 0 <= k < len(days)]
    known = notes.known_at(db, [each for each, _ in ways if each is not None])
    for each, via in ways:
        if each in known:
            yield Beside(known[each].id, via)


def positions(db: apsw.Connection, where: str, ids: Iterable[int]) -> dict[int, Position]:
    """Where the places stand of which this is so, each note's in order."""
    sql = f"SELECT p.id, p.start, p.stop, p.line, p.headings FROM {IDS} n CROSS JOIN places p WHERE {where}"
    parsed = cache(lambda headings: tuple(json.loads(headings)))  # passages of a section share theirs
    rows: Any = db.execute(sql, {"ids": bound(ids)})
    return {place: Position(start, stop, line, parsed(said)) for place, start, stop, line, said in rows}


def tags_of(db: apsw.Connection, some: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The tags of some notes as they are shown; nothing of those without."""
    sql = f"SELECT t.note_id, t.tag FROM {IDS} n JOIN tags t ON t.note_id = n.value ORDER BY t.note_id, t.seq"
    found: dict[int, tuple[str, ...]] = {}
    for note, tag in db.execute(sql, {"ids": bound(some)}):
        found[note] = (*found.get(note, ()), tag)
    return found


def vocabulary(db: apsw.Connection, asked: Sequence[AnyOf], counts: Counts) -> list[int]:
    """How many notes hold one of the words, for each of some groups of them."""
    return [counts.of(db, "note_text", " OR ".join(fts_terms(group))) for group in asked]


def holding(db: apsw.Connection, groups: Sequence[AnyOf], some: Sequence[int]) -> list[tuple[int, set[int]]]:
    """For each group of words how many notes hold one of them, and which of `some` do."""
    return [_count_and_rows(db, "note_text", " OR ".join(fts_terms(group)), some) for group in groups]


def _count_and_rows(db: apsw.Connection, table: str, expression: str, ids: Sequence[int]) -> tuple[int, set[int]]:
    sql = f"""SELECT count(*), json_group_array(rowid) FILTER (WHERE (rowid >> 0) IN (SELECT value FROM {IDS}))
              FROM {table} WHERE {table} MATCH :expression"""
    count, rows = next(db.execute(sql, {"expression": expression, "ids": bound(ids)}))
    return int(count), set(json.loads(rows))


def legs(db: apsw.Connection, question: Question, ids: Ids, counts: Counts) -> tuple[_Leg, _Leg, _Leg]:
    """The best notes by their words, and of the best of these the best blocks and those with words side by side."""
    if not question.terms:
        return [], [], []
    asked = question.terms
    terms = _telling(db, "note", asked, counts)
    notes = leg(db, "note", terms, question.notes, ids, counts)
    if len(notes) < question.notes and len(terms) < len(asked):  # then notes that hold no other word are looked for too
        terms, notes = asked, leg(db, "note", asked, question.notes, ids, counts)
    last = question.closer  # and those that score as the last: the order in which notes were indexed says nothing
    while 0 < last < len(notes) and round(notes[last].score, 9) == round(notes[question.closer - 1].score, 9):
        last += 1
    closer = [match.note for match in notes[:last]]
    others = asked if terms is asked or not closer else _telling(db, "block", asked, counts)
    blocks = leg(db, "block", others, question.blocks, closer, counts)
    common = {word for term in asked if term not in terms for word in term.words}
    pairs = [pair for pair in question.pairs if common.isdisjoint(pair.words)]
    return notes, blocks, leg(db, "note", pairs, question.notes, closer, counts) if pairs else []


def _telling(db: apsw.Connection, name: str, terms: Sequence[Term], counts: Counts) -> Sequence[Term]:
    """The terms without those of half of the notes or a quarter of the blocks: BM25 gives these little."""
    if counts.notes <= MOST_SCORED // 3:
        return terms
    most = counts.notes // 2 if name == "note" else counts.rows(db, LEGS[name]) // 4
    telling = [term for term in terms if counts.of(db, LEGS[name], *fts_terms([term])) <= most]
    return telling if 0 < len(telling) < len(terms) else terms


def leg(
    db: apsw.Connection,
    name: str,
    asked: Sequence[Term],
    limit: int,
    ids: Ids,
    counts: Counts | None = None,
    most_scored: int = MOST_SCORED,
) -> _Leg:
    """The best rows that hold any of some terms, among `ids`. Without `counts` every row is scored, however many."""
    if ids is not None and not ids:
        return []
    table, terms = LEGS[name], fts_terms(asked)
    any_of = " OR ".join(terms)
    if counts is None or counts.notes <= most_scored // 3:
        return _best(db, name, any_of, limit, ids)
    few = ids is not None and len(ids) <= _FEW and name == "note"
    if few and all(len(term.words) > 1 for term in asked):
        # To find words side by side is most of the work: done once, for the count and for the notes that hold them.
        holders = sorted(set().union(*(counts.with_rows(db, table, term, ids or ()) for term in terms)))
        return _best(db, name, any_of, limit, holders, counts.of_each(db, table, terms)) if holders else []
    found = {term: counts.of(db, table, term) for term in terms}
    entries = sum(found.values())
    if entries <= most_scored:
        return _best(db, name, any_of, limit, ids)
    if few:  # to count the words anew takes longer than to score a few notes
        return _best(db, name, any_of, limit, ids, counts.of_each(db, table, terms))
    if name == "note":
        return _chosen(db, found, limit, ids, counts.notes, most_scored)
    if ids is not None and len(ids) * len(terms) * _A_SEEK < entries:
        # Of frequent words in a very large vault a walk passes a thousand others for each that is asked for.
        return _best(db, name, any_of, limit, sorted(ids), counts.of_each(db, table, terms), sought=True)
    return _best(db, name, any_of, limit, ids)


def _chosen(db: apsw.Connection, found: dict[str, int], limit: int, ids: Ids, notes: int, most_scored: int) -> _Leg:
    """The best of very many notes: those that hold a rare word; where none is rare, a word of each of some groups."""
    by_rarity = sorted(found, key=found.__getitem__)
    rare: list[str] = []
    entries = 0
    for term in by_rarity:
        if entries + found[term] > int(most_scored * _CHOOSING) and entries >= _CHOSEN and len(rare) >= 2:
            break
        entries += found[term]
        rare.append(term)
    others = by_rarity[len(rare) :]
    if others and _WORTH * entries < min(sum(found.values()), notes, _MOST_NOTES):
        # A note with one of the others too is in the second list with a part of its score, if at all.
        any_rare, any_other = " OR ".join(rare), " OR ".join(others)
        with_others = _best(db, "note", f"({any_rare}) AND ({any_other})", limit, ids)
        best = {match.note: match for match in _best(db, "note", any_rare, limit, ids) + with_others}
        return sorted(best.values(), key=lambda match: -match.score)[:limit]
    if notes > _MOST_NOTES:
        groups = 2 if notes <= _IN_PAIRS else 3
        dealt = [by_rarity[k::groups] for k in range(min(groups, len(by_rarity)))]
        holders = _best(db, "note", " AND ".join(f"({' OR '.join(group)})" for group in dealt), limit, ids)
        if len(holders) >= min(limit, _CHOSEN):
            return holders
    return _best(db, "note", " OR ".join(found), limit, ids)


def _best(
    db: apsw.Connection, name: str, match: str, limit: int, ids: Ids, counts: str | None = None, *, sought: bool = False
) -> _Leg:
    """The best rows that match. With a limit `ORDER BY bm25()` keeps only these, `rank` sorts all (limits.md C.2)."""
    table = source = LEGS[name]
    note, place = ("rowid", "0") if name == "note" else (f"({table}.rowid / {APART})", PLACE_OF_ROW)
    score = f"-bm25({table}, {TITLE_WEIGHT}, {BODY_WEIGHT})" if counts is None else f"scored({table}, :counts)"
    narrowed = ""
    if sought:
        source = f"{IDS} AS asked CROSS JOIN {table}"
        row = f"{table}.rowid"
        narrowed = f"AND {row} >= asked.value * {APART} AND {row} < (asked.value + 1) * {APART}"
    elif ids is not None:  # by the bare rowid, SQLite asks FTS5 for each of the ids by itself
        row = "(rowid >> 0)" if name == "note" and len(ids) > _SOUGHT else note
        narrowed = f"AND {row} IN (SELECT value FROM {IDS})"
    sql = f"""SELECT {note}, {place}, {score} AS score FROM {source}
              WHERE {table} MATCH :expression {narrowed} ORDER BY score DESC LIMIT :limit"""
    values = {"expression": match, "limit": limit, "counts": counts, "ids": None if ids is None else bound(ids)}
    return list(map(Match._make, db.execute(sql, values)))


# BM25 as FTS5 counts it, for chosen rows only: its own bm25() counts the rows of every word anew for every question, and
# that is nearly all of the time in a large vault. Here counts are kept for as long as no note changes.
def scored(row: apsw.FTS5ExtensionApi, *given: apsw.SQLiteValue) -> float:
    """`scored(table, counts)`: the score of a row, given how many rows hold each term of the MATCH."""
    told: tuple[list[float], float] | None = row.aux_data
    if told is None:  # the first row of a question
        rows, counts = row.row_count, json.loads(str(given[0]))
        idfs = [max(math.log((rows - count + 0.5) / (count + 0.5)), _LEAST_IDF) for count in counts]
        told = idfs, _K1 * _B * rows / max(1, row.column_total_size(-1))
        row.aux_data = told
    idfs, by_size = told
    flat = _K1 * (1 - _B) + by_size * row.column_size(-1)
    score = 0.0
    for phrase, idf in enumerate(idfs):
        in_title, in_body = row.phrase_locations(phrase)[:2]
        if in_title or in_body:
            found = TITLE_WEIGHT * len(in_title) + BODY_WEIGHT * len(in_body)
            score += idf * found * (_K1 + 1) / (found + flat)
    return score


class Counts:
    """How many rows of a table hold a term, which is written as FTS5 takes it; for one state of the index."""

    def __init__(self, notes: int) -> None:
        self.notes = notes  # how many there are
        self._of: dict[tuple[str, str], int] = {}

    def rows(self, db: apsw.Connection, table: str) -> int:
        if (table, "") not in self._of:
            self._of[table, ""] = int(db.execute(f"SELECT count(*) FROM {table}_docsize").get)
        return self._of[table, ""]

    def of(self, db: apsw.Connection, table: str, term: str) -> int:
        if (table, term) not in self._of:
            count = int(db.execute(f"SELECT count(*) FROM {table} WHERE {table} MATCH ?", (term,)).get)
            if len(self._of) >= _MOST_TERMS:
                self._of.clear()
            self._of[table, term] = count
        return self._of[table, term]

    def of_each(self, db: apsw.Connection, table: str, terms: Sequence[str]) -> str:
        """What `scored` is given for a MATCH of these terms."""
        return json.dumps([self.of(db, table, term) for term in terms])

    def with_rows(self, db: apsw.Connection, table: str, term: str, ids: Sequence[int]) -> set[int]:
        """Count the rows that hold a term, and return those among `ids`."""
        self._of[table, term], rows = _count_and_rows(db, table, term, ids)
        return rows
