"""What speaks for a note beside its own words: that the best notes link to it, and that it is of the days the question
names. Pure. Neither finds a note; they order those that were found (docs/search.md has the figures)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from simplemem.search.rank import Ranked

NOTES = 40  # so many of the best are ordered
STRONG = 5  # so many of them lend to the notes they link to
LINKED = 0.12  # beside 1 of all else; a plateau from 0.08 to 0.2
DATED = 0.15  # a plateau from 0.05 to 0.2


def lent(ranked: Sequence[Ranked], links: Iterable[tuple[int, int]]) -> list[float]:
    """For each note the scores of the best notes that link to it, added; `links` are pairs of a note and one it links to."""
    strong = {found.note: found.score for found in ranked[:STRONG]}
    given: dict[int, float] = {}
    for source, target in set(links):
        if source in strong and source != target:
            given[target] = given.get(target, 0.0) + strong[source]
    return [given.get(found.note, 0.0) for found in ranked]
