"""The values of the index API: the queries of `store` and `search`, and the results that `Sidecar` returns.

No SQL and no engine's syntax is part of them. Callers treat the ids of notes and places as opaque;
they are valid until the next change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from simplemem.note.names import is_copy_reason

NoteId = int
PlaceId = int  # of a passage or block of a note

SORTS = ("modified", "created", "name", "title")
SIZE_OF_MOVED = -1  # of no file: the note is read again, whatever its file's size and times are
RACY_NS = (
    2_000_000_000  # a file changed so shortly before it was read may change again unseen (F31)
)


class Stat(NamedTuple):
    """What the disk said about a file when it was read: what tells whether it may be another."""

    size: int
    mtime_ns: int
    ctime_ns: int


class Row(NamedTuple):
    """What the index knows of a note without reading it."""

    id: NoteId
    path: str
    sha256: str
    size: int
    mtime_ns: int
    ctime_ns: int
    checked_ns: int
    title: str
    description: str
    type: str
    created: str
    modified: str
    words: int
    hidden: str | None  # why it is left out of recall
    problem: str | None  # why it must not be rewritten
    private: str | None  # why no text of it may leave this machine
    rev: int  # the change that made it what it is

    @property
    def is_copy(self) -> bool:
        """Whether it is left out of recall as a conflict copy."""
        return is_copy_reason(self.hidden)

    @property
    def stat(self) -> Stat:
        """What the disk said when it was last read."""
        return Stat(self.size, self.mtime_ns, self.ctime_ns)

    @property
    def is_at_new_path(self) -> bool:
        """Whether it was given the path that its file was moved to, and the rest is still that of its old path."""
        return self.size == SIZE_OF_MOVED

    def may_have_changed(self, size: int, mtime_ns: int, ctime_ns: int) -> bool:
        """Whether the file must be read again: another size or time, or a time too near to the last reading."""
        return (
            self.stat != (size, mtime_ns, ctime_ns)
            or max(mtime_ns, ctime_ns) > self.checked_ns - RACY_NS
        )


class Mark(NamedTuple):
    """A state of the index, to ask what changed since."""

    generation: int
    rev: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The notes put since a mark, and how many notes there are in all. `whole` says that these are all there are."""

    mark: Mark
    notes: Sequence[Row]
    count: int
    whole: bool


class StoredLink(NamedTuple):
    """A link as the index keeps it, with what it means now."""

    source_id: NoteId
    source: str
    form: str
    target: str
    subpath: str
    display: str
    line: int
    path: str | None
    ambiguous: tuple[str, ...]


class Outline(NamedTuple):
    """What is shown of a note that is read: its tags with their sources, and the links in it."""

    row: Row
    tags: Sequence[tuple[str, Any]]
    aliases: tuple[str, ...]
    links: Sequence[StoredLink]


class Term(NamedTuple):
    """Words side by side. With `beginning`, of the last one only the beginning is said.

    `stem_of` are the words of the question that these are stems of. Of the forms of a word only the best counts in a
    note, and no stem counts more than the word (docs/search.md).
    """

    words: tuple[str, ...]
    beginning: bool = False
    stem_of: tuple[str, ...] = ()


AnyOf = Sequence[Term]  # what a note holds when it holds one of them


@dataclass(frozen=True, slots=True)
class IndexFilter:
    """A filter whose names and dates are already resolved. Empty fields do not narrow."""

    tags: Mapping[str, str] = field(
        default_factory=dict
    )  # key -> value, "" asks only that the tag is there
    require_all: bool = False
    all_tags: Mapping[str, str] = field(
        default_factory=dict
    )  # from `tag:` in a question: always all of them
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
    archive: tuple[str, ...] = ()  # folders: only what lies outside of them
    archived: bool = False  # or inside
    hidden: bool = False  # whether notes left out of recall take part


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """What is looked for; in the best notes by their words also blocks, and `pairs` of words side by side."""

    terms: tuple[Term, ...] = ()
    pairs: tuple[Term, ...] = ()
    vector: bytes | None = None
    like: str = ""  # in place of a vector: the path of a note, whose passages' mean it is
    title: str = ""  # what a note is called that comes first, letter for letter
    names: tuple[str, ...] = ()  # and by its words (words.words_key)
    inner_names: Mapping[str, float] = field(
        default_factory=dict
    )  # a part of the question, and its share of it
    narrow: IndexFilter = IndexFilter()
    notes: int = 300  # so many of each at most
    blocks: int = 1500
    max_nearest: int = 200
    rescore_depth: int = 100  # notes that are looked at more closely


class Match(NamedTuple):
    """A note, the place in it (0 for the note itself) and its BM25 score, higher is better."""

    note: NoteId
    place: PlaceId
    score: float


class Nearness(NamedTuple):
    """How near a note is, by cosine. A passage of one block is both."""

    passage: float  # its best passage
    block: float  # its best block
    score: float  # the mean of the two, at least 0


BLOCKS_COUNTED = 5  # of each note, the best: whether their text stands in other notes too


class BlockMatches(NamedTuple):
    """Blocks by their words, the best first, as arrays."""

    note_ids: NDArray[np.int64]
    place_ids: NDArray[np.int64]
    scores: NDArray[np.float64]
    text_counts: NDArray[np.int64]  # in how many notes the text stands; counted for the best blocks


class Matches(NamedTuple):
    """The best by every leg, best first, with the paths of all. `vector_hits` is None where no vector is comparable."""

    notes: Sequence[Match]
    blocks: BlockMatches | None
    pairs: Sequence[Match]
    vector_hits: Mapping[NoteId, Nearness] | None
    paths: Mapping[NoteId, str]
    passed: int | None = None  # how many notes the filter leaves; None: it leaves all
    titled: Mapping[
        NoteId, int
    ] = {}  # those that are called as the question is; a lower number is more exact
    named: Mapping[
        NoteId, float
    ] = {}  # those of them that a part of the question names, and its share of it
    note_count: int = 0  # in the index


class Position(NamedTuple):
    """Where a passage or block stands in its note."""

    start: int
    stop: int
    line: int
    headings: tuple[str, ...]


class Neighbour(NamedTuple):
    """A note that stands beside another: linked with it, or of the day before or after in its folder."""

    note: NoteId
    via: str


class NoteDetails(NamedTuple):
    """All that is shown of a note. `best` is the place asked for, else the passage nearest to the question's vector."""

    row: Row
    tags: tuple[str, ...]
    passages: Sequence[Position]
    best: Position | None = None
    blocks: Sequence[Position] = ()
    neighbours: Sequence[Neighbour] = ()
    repeated: Sequence[tuple[int, int]] = ()  # where the blocks begin and end that many notes have


class NotePage(NamedTuple):
    """A page of the notes that pass a filter, with their tags, and how many there are in all."""

    rows: Sequence[Row]
    tags: Mapping[NoteId, tuple[str, ...]]
    total: int


class VectorSpace(NamedTuple):
    """Whose vectors the index holds, of what width (0 until the first). Those of a remote one hold no private note."""

    embedder: str = ""
    dimension: int = 0
    remote: bool = False


class IndexProgress(NamedTuple):
    """How many notes there are, whose vectors they have if any, how many wait for theirs, and which commit they are of."""

    notes: int
    space: VectorSpace = VectorSpace()
    waiting: int = 0
    commit: str = ""


class Embedded(NamedTuple):
    """How many notes wait for an embedder's vectors, are to have them, are private; and what it refused, by path."""

    waiting: int
    notes: int
    private: int
    refused: Sequence[tuple[str, str]]


Progress = Callable[
    [str, int, int], None
]  # told what is being done, how many are done, and of how many


@dataclass(slots=True)
class SyncReport:
    """What a pass found: the paths of the notes it touched, and what it could not read."""

    added: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    doubted: int = 0  # notes that seem to have vanished all at once, and were kept
    embedded: int = 0
    trouble: str = ""  # why vectors are missing that could not be made
    seconds: float = 0.0

    def changed(self) -> set[str]:
        """The paths of all notes whose rows are new."""
        return {
            *self.added,
            *self.modified,
            *self.removed,
            *(path for pair in self.moved for path in pair),
        }

    def as_dict(self) -> dict[str, Any]:
        counts = {
            name: len(getattr(self, name)) for name in ("added", "modified", "moved", "removed")
        }
        skipped = [{"path": path, "why": why} for path, why in self.skipped]
        rest = {"doubted": self.doubted, "trouble": self.trouble, "seconds": round(self.seconds, 3)}
        return {**counts, "embedded": self.embedded, "skipped": skipped, **rest}


Ids = Sequence[NoteId] | None  # the notes to look among; None for all
Leg = list[Match]  # the notes or blocks that one way finds, best first
