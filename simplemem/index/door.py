"""The door to the index: what ranking and the store ask of it, in values. No SQL, no engine's syntax, no list of all notes.

`Legs` is what a search asks. Whoever offers it answers from one state of the index at a time; ids of notes and places
mean nothing to who asks, and are good until the next change.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from simplemem.index.vectors import Generation

NoteId = int
PlaceId = int  # of a passage or block of a note

SORTS = ("modified", "created", "name", "title")


class Term(NamedTuple):
    """Words side by side. With `beginning`, of the last one only the beginning is said."""

    words: tuple[str, ...]
    beginning: bool = False


AnyOf = Sequence[Term]
"""What a note holds when it holds one of them."""


@dataclass(frozen=True, slots=True)
class Narrow:
    """A filter whose names and dates are already resolved. Empty fields do not narrow."""

    tags: Mapping[str, str] = field(default_factory=dict)  # key -> value, "" asks only that the tag is there
    require_all: bool = False
    all_tags: Mapping[str, str] = field(default_factory=dict)  # from `tag:` in a question: always all of them
    properties: Mapping[str, str] = field(default_factory=dict)  # of the header: all of them
    type: str = ""
    prefix: str = ""
    since: str = ""
    until: str = ""
    link_to: str = ""  # a vault path
    linked_by: str = ""
    phrases: tuple[str, ...] = ()
    without: tuple[str, ...] = ()
    without_forms: tuple[str, ...] = ()  # further forms of those
    only: tuple[str, ...] = ()  # vault paths
    author: str = ""  # who changed it last: human, agent, or how a name begins
    hidden: bool = False  # whether notes left out of recall take part

    def is_open(self) -> bool:
        """Whether it lets every visible note pass."""
        return replace(self, hidden=False, require_all=False) == Narrow()


class QueryVector(bytes):
    """A question's vector, which knows whose it is: another embedder's vectors are never compared with it."""

    embedder: str

    def __new__(cls, vector: bytes, embedder: str) -> QueryVector:
        made = super().__new__(cls, vector)
        made.embedder = embedder
        return made


@dataclass(frozen=True, slots=True)
class Question:
    """What is looked for. The best notes by their words are looked at more closely: block by block, and for `pairs` of
    words that stand side by side in them."""

    terms: tuple[Term, ...] = ()
    pairs: tuple[Term, ...] = ()
    vector: bytes | None = None
    like: str = ""  # in place of a vector: the path of a note, whose passages' mean it is
    narrow: Narrow = Narrow()
    notes: int = 300  # so many of each at most
    blocks: int = 1500
    nearest: int = 200
    closer: int = 100  # notes that are looked at more closely


class Match(NamedTuple):
    """A note, the place in it (0 for the note itself) and its BM25 score, higher is better."""

    note: NoteId
    place: PlaceId
    score: float


class Nearness(NamedTuple):
    """How near a note is: its best passage and its best block, by cosine. A passage of one block is both."""

    passage: float
    block: float

    @property
    def score(self) -> float:
        return max(0.0, (self.passage + self.block) / 2)


@dataclass(frozen=True, slots=True)
class Answer:
    """The best by every leg, best first, and the paths of all notes that are named. `near` is None where there are no
    vectors of the question's embedder."""

    notes: Sequence[Match]
    blocks: Sequence[Match]
    pairs: Sequence[Match]
    near: Mapping[NoteId, Nearness] | None
    paths: Mapping[NoteId, str]
    passed: int | None = None  # how many notes the filter leaves; None: it leaves all
    vector: bytes | None = None  # that was compared


@dataclass(frozen=True, slots=True)
class Row:
    """A note as it is listed."""

    id: NoteId
    path: str
    title: str
    description: str
    type: str
    created: str
    modified: str
    size: int
    words: int
    sha256: str
    hidden: str | None
    problem: str | None
    private: str | None  # why no text of it may leave this machine
    mtime_ns: int
    ctime_ns: int


@dataclass(frozen=True, slots=True)
class Place:
    """Where a passage or block stands in its note."""

    start: int
    stop: int
    line: int
    headings: tuple[str, ...]


class Beside(NamedTuple):
    """A note that stands beside another: linked with it, or of the day before or after in its folder."""

    note: NoteId
    via: str


@dataclass(frozen=True, slots=True)
class Shown:
    """All that is shown of a note. `best` is the place that was asked for, else the passage nearest to the question's
    vector; `blocks` are those with a word of the question, best first."""

    row: Row
    tags: tuple[str, ...]
    passages: Sequence[Place]
    best: Place | None = None
    blocks: Sequence[Place] = ()
    beside: Sequence[Beside] = ()


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the index is: how many notes it has, its generations of vectors, the one in use first, and how many notes
    wait for a vector, by embedder."""

    notes: int
    generations: Sequence[Generation]
    waiting: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Listing:
    """A page of the notes that pass a filter, with their tags, and how many there are in all."""

    rows: Sequence[Row]
    tags: Mapping[NoteId, tuple[str, ...]]
    total: int


class Legs(Protocol):
    """What a search asks."""

    def vocabulary(self, asked: Sequence[Sequence[AnyOf]], most: int = 1) -> tuple[Sequence[int], Standing]:
        """How many notes hold something of each of some groups of words, counted to `most`; and how far the index is."""
        ...

    def ask(self, question: Question) -> Answer:
        """The notes that the words or the vector of a question lead to."""
        ...

    def shown(
        self,
        notes: Mapping[NoteId, PlaceId],
        question: Question,
        *,
        blocks: bool = False,
        beside: Sequence[NoteId] = (),
        among: Collection[NoteId] = (),
    ) -> Mapping[NoteId, Shown]:
        """What is shown of notes, each with the place in it that was found, 0 where none was. With `blocks` also those that
        have a word of the question. Of the notes that stand `beside` some of them, those `among` others are shown as well.
        Notes that are gone are absent."""
        ...

    def page(self, narrow: Narrow, sort: str, limit: int, after: int) -> Listing:
        """Notes that pass a filter, behind so many others."""
        ...

    def passing(self, narrows: Sequence[Narrow]) -> Sequence[int]:
        """How many notes each filter leaves."""
        ...
