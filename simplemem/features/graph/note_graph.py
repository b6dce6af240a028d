"""The notes of a vault and the links between them, of which a page draws a part. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Literal

from simplemem.note.names import name_of

Show = Literal["linked", "recent", "all"]
"""The notes of a part without a centre: the most linked ones, the most recent ones, or all."""

MAX_DEPTH: Final = 3
MAX_LOCAL_NOTES: Final = 1500
MAX_OVERVIEW_NOTES: Final = 300
_MAX_SIMILAR_STEPS: Final = 2  # from the centre; each step to similar notes needs searches

Pair = tuple[int, int]
"""The positions of two notes."""


@dataclass(frozen=True, slots=True)
class GraphNote:
    """A note of the graph. `type` is "" for a note of the default type; dates sort as texts."""

    path: str
    title: str
    type: str
    modified: str
    tags: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the note: its path without the suffix."""
        return name_of(self.path)


@dataclass(frozen=True, slots=True)
class NoteFilter:
    """Which notes a part of the graph may contain. An empty field is no condition.

    A note in a subfolder of `folder` passes, and so does one with a tag below `tag`.
    """

    folder: str = ""
    tag: str = ""
    type: str = ""

    def passes(self, note: GraphNote) -> bool:
        """Return whether a note meets all conditions. Letter case does not matter for tags."""
        if self.folder and not note.path.startswith(f"{self.folder.strip('/')}/"):
            return False
        if self.type and note.type != self.type:
            return False
        return not self.tag or _has_tag(note, self.tag)


@dataclass(frozen=True, slots=True)
class GraphPart:
    """A part of the graph that is drawn.

    `links` and `similar` are pairs of positions in `notes`. `distances` has the number of steps
    from the centre to each note; it is empty without a centre, which is the first note otherwise.
    `matching` is the number of notes that would be in the part if its size were not limited.
    """

    notes: Sequence[GraphNote]
    links: Sequence[Pair]
    similar: Sequence[Pair]
    distances: Sequence[int]
    matching: int


class NoteGraph:
    """The graph of all notes in one state of a vault. Immutable.

    `links` are pairs of positions in `notes`. A pair that is there in both directions is one link.
    """

    def __init__(self, notes: Sequence[GraphNote], links: Iterable[Pair]) -> None:
        self.notes = notes
        self._links = sorted({(min(pair), max(pair)) for pair in links})
        self._positions = {note.path: position for position, note in enumerate(notes)}
        self._neighbours: list[list[int]] = [[] for _ in notes]
        for source, target in self._links:
            self._neighbours[source].append(target)
            self._neighbours[target].append(source)

    def position_of(self, path: str) -> int | None:
        """Return the position of the note at a path; None if the graph does not have it."""
        return self._positions.get(path)

    @cached_property
    def folders(self) -> Sequence[str]:
        """All folders that contain notes or other such folders, in alphabetical order."""
        folders: set[str] = set()
        for note in self.notes:
            folder = note.path.rpartition("/")[0]
            while folder and folder not in folders:
                folders.add(folder)
                folder = folder.rpartition("/")[0]
        return sorted(folders)

    @cached_property
    def tags(self) -> Sequence[str]:
        """All tags, the most frequent first."""
        counts = Counter(tag for note in self.notes for tag in note.tags)
        return sorted(counts, key=lambda tag: (-counts[tag], tag))

    @cached_property
    def types(self) -> Sequence[str]:
        """All types of notes except the default one, in alphabetical order."""
        return sorted({note.type for note in self.notes} - {""})

    def overview(self, show: Show, conditions: NoteFilter) -> GraphPart:
        """Return the most linked or the most recent notes that pass a filter, or all of them."""
        matching = self._matching(conditions)
        chosen: Sequence[int] = matching
        if show == "linked":
            chosen = sorted(matching, key=lambda position: -len(self._neighbours[position]))
        elif show == "recent":
            chosen = sorted(
                matching, key=lambda position: self.notes[position].modified, reverse=True
            )

        if show != "all":
            chosen = chosen[:MAX_OVERVIEW_NOTES]
        return self._part(chosen, matching=len(matching))

    def around(
        self,
        centre: int,
        depth: int,
        conditions: NoteFilter,
        *,
        similar_to: Callable[[int], Iterable[int]] | None = None,
    ) -> GraphPart:
        """Return the notes at most `depth` links from a note, nearest first, at most 1,500.

        Notes that do not pass the filter are left out, and so is what only they lead to; the centre
        always stays. With `similar_to`, a step may also lead from a note to one of the notes that
        it returns; it is called for the centre and its neighbours at most.
        """
        passing = {centre, *self._matching(conditions)}
        similar: set[Pair] = set()
        distances = {centre: 0}
        steps = [centre]
        for distance in range(1, depth + 1):
            near = [other for position in steps for other in self._neighbours[position]]
            if similar_to is not None and distance <= _MAX_SIMILAR_STEPS:
                pairs = _pairs_of_similar(steps, similar_to)
                similar.update(pairs)
                near += [other for _, other in pairs]

            passing -= distances.keys()
            steps = [other for other in dict.fromkeys(near) if other in passing]
            distances.update(dict.fromkeys(steps, distance))

        chosen = list(distances)[:MAX_LOCAL_NOTES]
        return self._part(chosen, similar, distances, matching=len(distances))

    def _matching(self, conditions: NoteFilter) -> list[int]:
        """Return the positions of the notes that pass a filter."""
        if conditions == NoteFilter():
            return list(range(len(self.notes)))
        return [position for position, note in enumerate(self.notes) if conditions.passes(note)]

    def _part(
        self,
        chosen: Sequence[int],
        similar: Collection[Pair] = (),
        distances: dict[int, int] | None = None,
        *,
        matching: int,
    ) -> GraphPart:
        """Return the part that has the notes at some positions, in this order.

        `similar` are pairs of positions in the whole graph. A pair with a link is left out.
        """
        places = {position: place for place, position in enumerate(chosen)}
        unlinked = {(min(pair), max(pair)) for pair in similar} - set(self._links)
        distances = distances or {}
        return GraphPart(
            notes=[self.notes[position] for position in chosen],
            links=_pairs_within(self._links, places),
            similar=_pairs_within(sorted(unlinked), places),
            distances=[distances[position] for position in chosen if position in distances],
            matching=matching,
        )


def _pairs_of_similar(
    positions: Iterable[int], similar_to: Callable[[int], Iterable[int]]
) -> list[Pair]:
    """Return each of some notes with each note that is similar to it."""
    return [(position, other) for position in positions for other in similar_to(position)]


def _pairs_within(pairs: Iterable[Pair], places: dict[int, int]) -> list[Pair]:
    """Return the pairs whose notes both have a place, as pairs of places."""
    return [
        (places[source], places[target])
        for source, target in pairs
        if source in places and target in places
    ]


def _has_tag(note: GraphNote, tag: str) -> bool:
    """Return whether a note has a tag or one below it, in any letter case."""
    wanted = tag.lstrip("#").casefold()
    return any(f"{own.casefold()}/".startswith(f"{wanted}/") for own in note.tags)
