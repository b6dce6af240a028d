"""All that is shown of some notes, read at once: their rows, tags and passages, where the question was found in them, and
what stands beside them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import apsw

from simplemem.index import legs, links, nearest, notes
from simplemem.index.door import Beside, Place, Question, Row, Shown
from simplemem.index.facts import SHIFT
from simplemem.index.legs import IDS, Counts, bound
from simplemem.note.names import base_name, date_in

_MOST_BLOCKS = 5_000


def shown(
    db: apsw.Connection,
    wanted: Mapping[int, int],
    question: Question,
    vector: bytes | None,
    counts: Counts,
    *,
    blocks: bool,
    beside: Sequence[int],
    among: Collection[int],
) -> dict[int, Shown]:
    """What is shown of notes, each with the place in it that was found, and of those `among` others that stand `beside`
    some. `vector` is the question's when it can be compared with those there are."""
    rows = notes.rows_of(db, wanted)
    neighbours = {note: tuple(_beside(db, rows[note])) for note in beside if note in rows}
    reached = {each.note for some in neighbours.values() for each in some if each.note in among}
    rows |= notes.rows_of(db, reached - rows.keys())
    tags, passages = tags_of(db, list(rows)), passages_of(db, list(rows))
    blocks_of: dict[int, list[int]] = {note: [] for note in rows}
    if blocks and question.terms and rows:
        matches = legs.leg(db, "block", question.terms, _MOST_BLOCKS, list(rows), counts)
        for match in sorted(matches, key=lambda match: (-round(match.score, 6), match.place)):
            blocks_of[match.note].append(match.place)
    found = {note: place for note, place in wanted.items() if place}
    if vector is not None and (others := [note for note in rows if note not in found and not blocks_of[note]]):
        found |= nearest.nearest_places(db, vector, others)
    places = places_of(db, {*found.values(), *(place for some in blocks_of.values() for place in some)})
    return {
        note: Shown(
            row,
            tags.get(note, ()),
            passages.get(note, ()),
            places.get(found.get(note, 0)),
            _there(places, blocks_of[note]),
            neighbours.get(note, ()),
        )
        for note, row in rows.items()
    }


def _there(places: Mapping[int, Place], some: Sequence[int]) -> tuple[Place, ...]:
    return tuple(places[place] for place in some if place in places)


def _beside(db: apsw.Connection, row: Row) -> Iterator[Beside]:
    """The notes that a note is linked with, and the dated ones of the days around it."""
    ways = [(link.path, "linked from") for link in links.links_from(db, row.path) if link.path != row.path]
    ways += [(link.source, "links to") for link in links.links_to(db, row.path)]
    ways += _of_the_days_around(db, row.path)
    known = notes.known_at(db, [path for path, _ in ways if path is not None])
    for path, via in ways:
        if path in known:
            yield Beside(known[path].id, via)


def _of_the_days_around(db: apsw.Connection, path: str) -> list[tuple[str, str]]:
    """The dated notes before and after a dated one, in its folder."""
    if not date_in(base_name(path)):
        return []
    dated = sorted((date_in(base_name(each)), each) for each in notes.paths_in(db, path.rpartition("/")[0]))
    days = [each for day, each in dated if day]
    at = days.index(path) if path in days else len(days)
    return [(days[k], via) for k, via in ((at - 1, "the one before"), (at + 1, "the one after")) if 0 <= k < len(days)]


def places_of(db: apsw.Connection, ids: Iterable[int]) -> dict[int, Place]:
    """Where passages and blocks stand, by their ids."""
    wanted = json.dumps(list(ids))
    found: dict[int, Place] = {}
    for table in ("passages", "blocks"):
        sql = f"SELECT id, start, stop, line, headings FROM {table} WHERE id IN (SELECT value FROM json_each(?))"
        for id_, start, stop, line, headings in db.execute(sql, (wanted,)):
            found[id_] = Place(start, stop, line, tuple(json.loads(headings)))
    return found


def passages_of(db: apsw.Connection, notes: Iterable[int]) -> dict[int, list[Place]]:
    """All passages of some notes, each in order."""
    sql = f"""SELECT n.value, p.start, p.stop, p.line, p.headings FROM {IDS} n
              CROSS JOIN passages p WHERE p.id >= (n.value << {SHIFT}) AND p.id < ((n.value + 1) << {SHIFT})"""
    found: dict[int, list[Place]] = {}
    headings_of: dict[str, tuple[str, ...]] = {}  # passages of a section share theirs
    for note, start, stop, line, headings in db.execute(sql, {"ids": bound(notes)}):
        if headings not in headings_of:
            headings_of[headings] = tuple(json.loads(headings))
        found.setdefault(note, []).append(Place(start, stop, line, headings_of[headings]))
    return found


def tags_of(db: apsw.Connection, some: Sequence[int]) -> dict[int, tuple[str, ...]]:
    """The tags of some notes as they are shown; nothing of those without."""
    sql = f"SELECT t.note_id, t.tag FROM {IDS} n JOIN tags t ON t.note_id = n.value ORDER BY t.note_id, t.seq"
    found: dict[int, tuple[str, ...]] = {}
    for note, tag in db.execute(sql, {"ids": bound(some)}):
        found[note] = (*found.get(note, ()), tag)
    return found
