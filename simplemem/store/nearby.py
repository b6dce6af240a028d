"""Notes that stand beside the best hits: linked with them, or of the day before and after in the same folder. They join a
context pack when they hold a word of the question themselves, and weigh little."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from simplemem.index.notes import Row
from simplemem.index.sidecar import Sidecar
from simplemem.note.names import base_name, name_of
from simplemem.search.rank import Ranked
from simplemem.search.reorder import Reranked
from simplemem.search.voices import date_in

_STRONG = 5  # hits whose neighbours are looked at
LENT = 0.1  # of a hit's score, to its neighbour; bench/packs.py


@dataclass(frozen=True, slots=True)
class Reached:
    """A note that was come by through a hit; `via` says which and how."""

    note: int
    score: float
    via: str


def reached(index: Sidecar, hits: Sequence[Ranked], rows: Mapping[int, Row], every: Sequence[Ranked]) -> list[Reached]:
    """The neighbours of the best hits that the ranking knows, and that are no hits themselves."""
    among_hits = {found.note for found in hits}
    known = {found.note: found for found in every if found.matches and found.note not in among_hits}
    is_reranked = any(isinstance(found, Reranked) for found in hits)
    best: dict[int, Reached] = {}
    for hit in hits[:_STRONG]:
        row = rows.get(hit.note)
        if row is None or not known:
            continue
        for path, via in _beside(index, row.path):
            neighbour = index.row(path)
            if neighbour is not None and neighbour.id in known and neighbour.id not in best:
                score = known[neighbour.id].score + LENT * hit.score
                if is_reranked:  # what it scored is of another scale, on which no reranker has seen this one
                    score = min(score, hits[-1].score)
                best[neighbour.id] = Reached(neighbour.id, score, f"{via} {name_of(row.path)}")
    return list(best.values())


def _beside(index: Sidecar, path: str) -> Iterator[tuple[str, str]]:
    for link in index.links_from(path):
        if link.path is not None and link.path != path:
            yield link.path, "linked from"
    for link in index.links_to(path):
        yield link.source, "links to"
    yield from _of_the_days_around(index, path)


def _of_the_days_around(index: Sidecar, path: str) -> Iterator[tuple[str, str]]:
    """The dated notes before and after a dated one, in its folder."""
    if not date_in(base_name(path)):
        return
    dated = sorted((date_in(base_name(each)), each) for each in index.paths_in(path.rpartition("/")[0]))
    days = [each for day, each in dated if day]
    if path in days:
        at = days.index(path)
        if at > 0:
            yield days[at - 1], "the one before"
        if at + 1 < len(days):
            yield days[at + 1], "the one after"
