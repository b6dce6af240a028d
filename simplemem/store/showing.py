"""What of a note may be shown: all of it, and where a filter asks for an author, only the lines that are theirs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from simplemem.index.filters import Narrow
from simplemem.index.sidecar import Sidecar
from simplemem.index.text import Place
from simplemem.memory import Hit
from simplemem.search.own import own_place
from simplemem.store.authors import Authors, local


def passages(index: Sidecar, note: int, narrow: Narrow) -> Sequence[Place]:
    """The passages of a note, as far as they may be shown."""
    own = narrow.theirs.notes.get(note)
    return index.passages(note) if own is None else own.passages


def shown_of(note: int, place: Place | None, narrow: Narrow, text: str, words: Sequence[str]) -> Place | None:
    """What of a place in a note may be shown."""
    own = narrow.theirs.notes.get(note)
    return place if own is None else own_place(place, own.passages, text, words)


def nearest_place(index: Sidecar, note: int, vector: bytes | None, narrow: Narrow) -> Place | None:
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


def with_authors(authors: Authors, hit: Hit, path: str, span: tuple[int, int] | None, *, git: bool) -> Hit:
    """The hit with who wrote what is shown of it, who wrote most first, and when the last of it was written."""
    written = authors.of(path, git=git)
    if written is None:
        return hit
    by = written.all_of(*(span or (0, len(written.text))))
    names = tuple(dict.fromkeys(origin.shown for origin in by))
    return replace(hit, authors=names, written=local(max((origin.when for origin in by), default="")))


def span_shown(around: Place, place: Place | None, limit: int) -> tuple[int, int]:
    """Where what is shown of a passage begins and ends, as `snippet` takes it."""
    if around.stop - around.start <= limit or place is None:
        return around.start, min(around.stop, around.start + limit)
    return place.start, min(around.stop, place.start + limit)
