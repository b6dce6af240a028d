"""What of a note may be shown: all of it, and where a filter asks for an author, only the lines that are theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simplemem.index.filters import Narrow
from simplemem.index.index import Index
from simplemem.index.text import Place
from simplemem.memory import Hit
from simplemem.search.own import own_place
from simplemem.store.authors import Authors, local


def passages(index: Index, note: int, narrow: Narrow) -> Sequence[Place]:
    """The passages of a note, as far as they may be shown."""
    own = narrow.theirs.notes.get(note)
    return index.passages(note) if own is None else own.passages


def shown_of(note: int, place: Place | None, narrow: Narrow, text: str, words: Sequence[str]) -> Place | None:
    """What of a place in a note may be shown."""
    own = narrow.theirs.notes.get(note)
    return place if own is None else own_place(place, own.passages, text, words)


def nearest_place(index: Index, note: int, vector: bytes | None, narrow: Narrow) -> Place | None:
    """The place of a note that is nearest to a question's vector, of those that a filter leaves."""
    if vector is None:
        return None
    own = narrow.theirs.notes.get(note)
    if own is None:
        best = index.nearest_place(note, vector)
    else:
        near = index.cosines(vector, own.places)
        best = max(near, key=lambda place: (near[place], -place), default=None)
    return None if best is None else index.places([best]).get(best)


def with_author(authors: Authors, hit: Hit, path: str, place: Place | None, *, git: bool) -> Hit:
    """The hit with who wrote most of what is shown of it, and when."""
    written = authors.of(path, git=git)
    if written is None:
        return hit
    by = written.of(place.start, place.stop) if place is not None else written.of_all()
    return replace(hit, author=by.shown, written=local(by.when))
