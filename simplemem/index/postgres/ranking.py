"""Notes and blocks ranked by their words in PostgreSQL. A search reads the packed rows of its words (words.py), and the
texts of few notes. What was counted and read is kept as long as nobody writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial, reduce
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from simplemem.index import door
from simplemem.index.connection import LAST
from simplemem.index.door import Ids, Leg, Match, Question, Term
from simplemem.index.postgres import words as stored
from simplemem.index.postgres.words import POSTING, Phrase, phrases
from simplemem.index.text import SHIFT

if TYPE_CHECKING:
    from simplemem.index.postgres.connection import Connection

_MOST_KEPT = 64_000_000  # bytes of postings


class PackedWords:
    """The words of one state of the index, of so many `notes`."""

    def __init__(self, notes: int) -> None:
        self.notes = notes
        self._counts: dict[str, tuple[int, int]] = {}  # how many notes and blocks hold a word
        self._packed: dict[
            str, dict[tuple[str, int], _Packed]
        ] = {}  # of what is asked for, by word and segment
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
            most = self.notes // 2 if self.notes > door.FEW_NOTES else self.notes
            sql = """SELECT word, segment, notes, blocks, CASE WHEN sum(notes) OVER (PARTITION BY word) <= ? THEN data END
                     FROM postings WHERE word = ANY(?::text[]) ORDER BY 1, 2"""
            asked.append((sql, (most, unknown)))
        answers = db.together(*asked)
        if self._gone is None:
            self._gone, self._totals = stored.by_segment(answers[0]), answers[1][0]
        if unknown:
            self._counts |= dict.fromkeys(unknown, (0, 0))
            for word, segment, notes, blocks, data in answers[-1]:
                before = self._counts[word]
                self._counts[word] = before[0] + notes, before[1] + blocks
                if data is not None:
                    self._keep(word, word, segment, data, None)
            self._packed |= {word: {} for word in unknown if self._counts[word] == (0, 0)}

    def _keep(
        self, asked: str, word: str, segment: int, data: bytes | None, places: bytes | None
    ) -> None:
        of = self._packed.setdefault(asked, {})
        if data is not None:
            rows = np.frombuffer(data, POSTING)
            of[word, segment] = _Packed(
                rows, stored.alive_in(rows, (self._gone or {}).get(segment)), None
            )
        if places is not None:
            packed = of[word, segment]
            of[word, segment] = packed._replace(places=stored.places_of(places, packed.rows))
        self._size += len(data or b"") + len(places or b"")

    def _lacking(self, asked: Iterable[Phrase]) -> list[tuple[str, Any]]:
        """What is to be asked for: postings, and of phrases the places of their words."""
        wanted: dict[str, bool] = {}
        for phrase in asked:
            if phrase not in self._of:
                wanted |= {word: len(phrase) > 1 or wanted.get(word, False) for word in phrase}
        for word, some in self._packed.items():
            if word in wanted and not (
                wanted[word] and any(each.places is None for each in some.values())
            ):
                del wanted[word]
        unread = [word for word in wanted if word not in self._packed]
        of_phrases = [word for word in wanted if wanted[word]]
        sql = """SELECT {} AS asked, word, segment, {} AS data, CASE WHEN {} THEN places END FROM postings WHERE {}
                 ORDER BY word"""
        words = [word for word in wanted if not word.endswith("*")]
        many = "word = ANY(?::text[])"
        chosen = sql.format("word", f"CASE WHEN {many} THEN data END", many, many)
        found: list[tuple[str, Any]] = [(chosen, (unread, of_phrases, words))] if words else []
        for word in wanted.keys() - words:
            beginning = f"word >= ?3 AND word < ?3 || '{LAST}'"
            found.append(
                (
                    sql.format("?1::text", "data", "?2::int = 1", beginning),
                    (word, wanted[word], word[:-1]),
                )
            )
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
        return {
            phrase: self._of[phrase] for phrase in asked if phrase in self._of or self._make(phrase)
        }

    def _make(self, phrase: Phrase) -> bool:
        """The postings of a phrase, of those of its words."""
        if len(phrase) > 1:
            self._of[phrase] = self._side_by_side(phrase)
        else:
            packed = self._packed[phrase[0]].values()
            rows = [each.rows if each.alive.all() else each.rows[each.alive] for each in packed]
            every = rows[0] if len(rows) == 1 else np.concatenate([np.empty(0, POSTING), *rows])
            self._of[phrase] = _summed(every) if phrase[0].endswith("*") else every
        return True

    def _side_by_side(self, phrase: Phrase) -> Any:
        candidates = self._candidates(phrase)
        if not len(candidates):
            return np.empty(0, POSTING)
        marks = _marked([candidates])
        stands = (
            np.concatenate([each.keys(marks) for each in self._packed[word].values()])
            for word in phrase
        )
        keys = [keys - k for k, keys in enumerate(stands)]  # where the phrase would begin
        found = np.sort(reduce(partial(np.intersect1d, assume_unique=True), sorted(keys, key=len)))
        notes, of = np.unique(found >> 33, return_inverse=True)
        first = self._of[phrase[:1]]
        sizes = np.zeros(1 + int(first["note"].max()), "<u4")
        sizes[first["note"]] = first["words"]
        rows = np.zeros(len(notes), POSTING)
        in_body = (found >> 32 & 1).astype(bool)
        rows["note"], rows["words"] = notes, sizes[notes]
        rows["title"], rows["body"] = (
            np.minimum(stored.MOST, np.bincount(of[some], minlength=len(notes)))
            for some in (~in_body, in_body)
        )
        return rows

    def _candidates(self, phrase: Phrase) -> Any:
        """The notes that hold all words of a phrase somewhere."""
        every = [
            self._of[word,]
            for word in dict.fromkeys(phrase)
            if (word,) in self._of or self._make((word,))
        ]
        return _in_all([rows["note"] for rows in every])

    def _blocks_with(self, db: Connection, phrase: Phrase) -> int:
        """How many blocks hold a phrase."""
        if len(phrase) == 1 and not phrase[0].endswith("*"):
            self._count(db, phrase)
            return self._counts[phrase[0]][1]
        if phrase not in self._in_blocks:
            self._read(db, [phrase])
            some = self._candidates(phrase).tolist()
            sql = "SELECT title, blocks FROM note_words WHERE note_id IN (SELECT value FROM carray(:ids))"
            wanted = stored.sought(phrase)
            self._in_blocks[phrase] = sum(
                blocks.count("\n")
                if wanted in title
                else sum(wanted in line for line in blocks.split("\n")[:-1])
                for title, blocks in db.execute(sql, {"ids": some})
            )
        return self._in_blocks[phrase]

    def count(self, db: Any, name: str, term: Term) -> int:
        asked = phrases([term])
        if not asked:
            return 0
        return (
            self._blocks_with(db, asked[0]) if name == "block" else self.vocabulary(db, [[term]])[0]
        )

    def blocks(self, db: Any) -> int:
        self._read(db, ())
        return self._totals[2]

    def vocabulary(self, db: Any, asked: Sequence[Sequence[Term]]) -> list[int]:
        groups = [phrases(group) for group in asked]
        single = {phrase[0] for group in groups for phrase in group if len(phrase) == 1}
        self._count(db, sorted(word for word in single if not word.endswith("*")))
        counted: dict[tuple[Phrase, ...], int]
        counted = {((word,),): self._counts[word][0] for word in single if word in self._counts}
        others = [group for group in map(tuple, groups) if group not in counted]
        counted |= dict(zip(others, map(len, self._holders(db, others)), strict=True))
        return [counted[tuple(group)] for group in groups]

    def holding(
        self, db: Any, groups: Sequence[Sequence[Term]], some: Sequence[int]
    ) -> list[tuple[int, set[int]]]:
        every = self._holders(db, list(map(phrases, groups)))
        return [(len(notes), set(notes.tolist()) & set(some)) for notes in every]

    def _holders(self, db: Connection, groups: Sequence[Sequence[Phrase]]) -> list[Any]:
        found = self._read(db, list(dict.fromkeys(phrase for group in groups for phrase in group)))
        return [
            np.flatnonzero(_marked([stored.in_notes(found[phrase])["note"] for phrase in group]))
            for group in groups
        ]

    def all_of(self, db: Connection, stretches: Sequence[Sequence[str]]) -> list[int]:
        """The notes that hold every one of these, word for word."""
        every = self._holders(db, [phrases([Term(tuple(stretch))]) for stretch in stretches])
        return _in_all(every).tolist() if every else []

    def rank(self, db: Any, question: Question, ids: Ids) -> tuple[Leg, Leg, Leg]:
        self._count(
            db, [phrase[0] for phrase in phrases(question.terms) if not phrase[0].endswith("*")]
        )
        common = set(phrases(question.terms)).difference(
            phrases(door.telling(self, db, "note", question.terms))
        )
        self._next = [
            pair for pair in phrases(question.pairs) if common.isdisjoint((word,) for word in pair)
        ]
        return door.rank(self, db, question, ids)

    def leg(self, db: Any, name: str, terms: Sequence[Term], limit: int, ids: Ids) -> Leg:
        if ids is not None and not len(ids):
            return []
        by_word = [group for forms in door.by_word(terms) if (group := phrases(forms))]
        asked = [phrase for group in by_word for phrase in group]
        if name == "note":
            found = self._read(db, asked)
            every = [[stored.in_notes(found[phrase]) for phrase in group] for group in by_word]
            return self._best_notes(every, limit, ids)
        self._count(
            db, [phrase[0] for phrase in asked if len(phrase) == 1 and not phrase[0].endswith("*")]
        )
        counts = [
            [(phrase, self._blocks_with(db, phrase)) for phrase in group] for group in by_word
        ]
        return self._best_blocks(db, counts, limit, ids or ())

    def _best_notes(self, by_word: Sequence[Sequence[Any]], limit: int, ids: Ids) -> Leg:
        """The best notes by the postings of words, for each word those of its forms: only the best form counts in a
        note, and none for more than the first, the word itself."""
        count, words, *_ = self._totals
        every = [rows for forms in by_word for rows in forms]
        size = 1 + max((int(rows["note"].max(initial=0)) for rows in every), default=0)
        sums, chosen = np.zeros(size), None if ids is None else np.zeros(size, bool)
        if chosen is not None:
            few = np.asarray(ids)
            chosen[few[few < size]] = True
        for forms in by_word:
            best_form = sums if len(forms) == 1 else np.zeros(size)
            for rows in forms:
                idf = door.idf(count, max(len(rows), len(forms[0])))
                if chosen is not None:
                    rows = rows[chosen[rows["note"]]]
                held = door.TITLE_WEIGHT * rows["title"] + door.BODY_WEIGHT * rows["body"]
                flat = (
                    door.K1 * (1 - door.B)
                    + (door.K1 * door.B * count / max(1, words)) * rows["words"]
                )
                scores = (idf * (door.K1 + 1)) * (held / (held + flat))
                if best_form is sums:
                    sums[rows["note"]] += scores
                else:
                    best_form[rows["note"]] = np.maximum(best_form[rows["note"]], scores)
            if best_form is not sums:
                sums += best_form
        found = np.flatnonzero(sums)
        if limit < len(found):
            found = found[sums[found] >= np.partition(sums[found], -limit)[-limit]]
        best = found[np.argsort(-sums[found], kind="stable")][:limit]
        return [
            Match(note, 0, score)
            for note, score in zip(best.tolist(), sums[best].tolist(), strict=True)
        ]

    def _best_blocks(
        self,
        db: Connection,
        by_word: Sequence[Sequence[tuple[Phrase, int]]],
        limit: int,
        some: Sequence[int],
    ) -> Leg:
        """The best blocks of some notes, by the forms of words and how many blocks hold each: as `_best_notes`."""
        _, _, count, words = self._totals
        wanted = _forms(by_word, count)
        per_word = door.K1 * door.B * count / max(1, words)
        sql = "SELECT note_id, title, blocks FROM note_words WHERE note_id IN (SELECT value FROM carray(?))"
        notes, *lacking = db.together((sql, (list(some),)), *self._lacking(self._next))
        self._take(lacking)
        found: Leg = []
        for note, title, blocks in notes if wanted else ():
            here = [
                (form, door.TITLE_WEIGHT * stored.occurrences(form.text, title))
                for form in wanted
                if form.text in title or form.text in blocks
            ]
            size = title.count(" ") // 2
            for line in blocks.split("\n")[:-1] if here else ():
                held = [
                    (form, weight + door.BODY_WEIGHT * stored.occurrences(form.text, line))
                    for form, weight in here
                    if weight or form.text in line
                ]
                if held:
                    flat = door.K1 * (1 - door.B) + per_word * (size + line.count(" ") // 2)
                    best_form: dict[int, float] = {}
                    for form, weight in held:
                        score = form.most * weight / (weight + flat)
                        best_form[form.word] = max(score, best_form.get(form.word, 0.0))
                    score = sum(best_form.values())
                    found.append(Match(note, note << SHIFT | int(line[: line.index(":")]), score))
        found.sort(key=lambda match: (-match.score, match.place))
        return found[:limit]


class _Form(NamedTuple):
    """A form of a word as it stands in the text of a block, the number of its word, and what it can score at most."""

    text: str
    word: int
    most: float


def _forms(by_word: Sequence[Sequence[tuple[Phrase, int]]], rows: int) -> list[_Form]:
    """The forms of words that any block holds. None scores more than the first, the word itself."""
    found = []
    for word, forms in enumerate(by_word):
        _, holding_word = forms[0]
        for phrase, holding in forms:
            idf = door.idf(rows, max(holding, holding_word))
            if holding:
                found.append(_Form(stored.sought(phrase), word, idf * (door.K1 + 1)))
    return found


class _Packed(NamedTuple):
    """Postings of a word in a segment, which of them still count, and their places if they were read."""

    rows: Any
    alive: Any
    places: Any

    def keys(self, marks: Any) -> Any:
        """Where the word stands in marked notes: note, column and place as one number."""
        notes, times = self.rows["note"], stored.times_of(self.rows)
        chosen = np.flatnonzero(
            self.alive & marks[np.minimum(notes, len(marks) - 1)] & (notes < len(marks))
        )
        first = (np.cumsum(times) - times)[chosen]  # of the places of each
        rows, times = self.rows[chosen], times[chosen]
        within = np.arange(times.sum()) - np.repeat(np.cumsum(times) - times, times)
        places = self.places[np.repeat(first, times) + within].astype(np.int64)
        in_body = within >= np.repeat(rows["title"], times)
        return (
            np.repeat(rows["note"].astype(np.int64) << 33, times)
            + (in_body.astype(np.int64) << 32)
            + places
        )


def _marked(some: Sequence[Any]) -> Any:
    """For each note whether it is in one of some lists. To sort them would take several times as long."""
    marks = np.zeros(1 + max((int(notes.max(initial=0)) for notes in some), default=0), bool)
    for notes in some:
        marks[notes] = True
    return marks


def _in_all(some: Sequence[Any]) -> Any:
    """The notes that are in all of some lists."""
    found, *others = sorted(some, key=len)
    for notes in others:
        found = found[found <= notes.max(initial=0)]
        found = found[_marked([notes])[found]]
    return found


def _summed(rows: Any) -> Any:
    """The postings of several words as those of one."""
    notes, first, of = np.unique(rows["note"], return_index=True, return_inverse=True)
    every = rows[first]
    for column in ("title", "body"):
        every[column] = np.minimum(stored.MOST, np.bincount(of, rows[column], len(notes)))
    return every
