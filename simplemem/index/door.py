"""The door to the index: all that store and search ask of it, in values. No SQL and no engine's syntax crosses it.

Who offers `Index` answers each call from one state of its notes. Ids of notes and places mean nothing to who asks, and are
good until the next change. The sidecar is the one implementation; notes come in through `sync.Sync`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from simplemem.note.names import is_copy_reason

NoteId = int
PlaceId = int  # of a passage or block of a note

SORTS = ("modified", "created", "name", "title")

# A file changed this shortly before it was read may change again without its time changing (durability.md F31).
RACY_NS = 2_000_000_000


class Stat(NamedTuple):
    """What the disk said about a file when it was read: what tells whether it may be another."""

    size: int
    mtime_ns: int
    ctime_ns: int


class Known(NamedTuple):
    """What the index knows of a note without reading it."""

    id: NoteId
    path: str
    sha256: str
    size: int
    mtime_ns: int
    ctime_ns: int
    checked_ns: int
    type: str
    hidden: str | None
    private: str | None
    rev: int  # the change that made it what it is

    @property
    def is_copy(self) -> bool:
        """Whether it is left out of recall as a conflict copy."""
        return is_copy_reason(self.hidden)

    @property
    def stat(self) -> Stat:
        """What the disk said when it was last read."""
        return Stat(self.size, self.mtime_ns, self.ctime_ns)

    def may_have_changed(self, size: int, mtime_ns: int, ctime_ns: int) -> bool:
        """Whether the file must be read again: another size or time, or a time too near to the last reading."""
        if size != self.size or mtime_ns != self.mtime_ns or ctime_ns != self.ctime_ns:
            return True
        long_ago = self.checked_ns - RACY_NS
        return mtime_ns > long_ago or ctime_ns > long_ago


class Row(NamedTuple):
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


class Mark(NamedTuple):
    """A state of the index, to ask what changed since."""

    generation: int
    rev: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The notes put since a mark, and how many notes there are in all. `whole` says that these are all there are."""

    mark: Mark
    notes: Sequence[Known]
    count: int
    whole: bool


class Called(NamedTuple):
    """The paths of notes by what compares equal to a name."""

    by_path: list[str]
    by_name: list[str]
    by_title: list[str]
    by_alias: list[str]


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
    via: str
    ambiguous: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Outline:
    """What is shown of a note that is read: its tags with their sources, and the links in it."""

    row: Row
    tags: Sequence[tuple[str, Any]]
    aliases: tuple[str, ...]
    links: Sequence[StoredLink]


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
class Matches:
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
class Position:
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
    passages: Sequence[Position]
    best: Position | None = None
    blocks: Sequence[Position] = ()
    beside: Sequence[Beside] = ()


@dataclass(frozen=True, slots=True)
class NotePage:
    """A page of the notes that pass a filter, with their tags, and how many there are in all."""

    rows: Sequence[Row]
    tags: Mapping[NoteId, tuple[str, ...]]
    total: int


@dataclass(frozen=True, slots=True)
class Generation:
    """The vectors of one embedder: in use, or still being made beside those. `dimension` is 0 until the first has come;
    `remote` ones hold no private note."""

    in_use: bool
    embedder: str
    dimension: int
    remote: bool


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the index is: how many notes it has, its generations of vectors, the one in use first, and how many notes
    wait for a vector, by embedder."""

    notes: int
    generations: Sequence[Generation]
    waiting: Mapping[str, int]


class Embedded(NamedTuple):
    """How far an embedder is, which may not have a generation yet: how many notes wait for its vectors, how many are to
    have them, how many are not because they are private, and of which it refused some text, and why."""

    waiting: int
    notes: int
    private: int
    refused: Sequence[tuple[str, str]]


MadeBefore = Callable[[Sequence[bytes]], Collection[bytes]]
"""Of which texts, by their hashes, there are vectors elsewhere."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an embedder has still to be given: texts of so many notes, each once, and about so many tokens. `kept` texts
    need not be, because their vectors were made before. To a `remote` one they are sent over the network."""

    embedder: str
    remote: bool
    notes: int
    texts: int
    tokens: int
    kept: int


class Index(Protocol):
    """What is asked of the index. A search is three calls, however many hits: `vocabulary`, `ask`, `shown`."""

    def vocabulary(self, asked: Sequence[Sequence[AnyOf]], most: int = 1) -> tuple[Sequence[int], Standing]:
        """How many notes hold something of each of some groups of words, counted to `most`; and how far the index is."""

    def ask(self, question: Question) -> Matches:
        """The notes that the words or the vector of a question lead to."""

    def shown(
        self,
        some: Mapping[NoteId, PlaceId],
        question: Question,
        *,
        blocks: bool = False,
        beside: Sequence[NoteId] = (),
        among: Collection[NoteId] = (),
    ) -> Mapping[NoteId, Shown]:
        """What is shown of notes, each with the place in it that was found, 0 where none was. With `blocks` also those that
        have a word of the question. Of the notes that stand `beside` some of them, those `among` others are shown as well.
        Notes that are gone are absent."""

    def holding(self, groups: Sequence[AnyOf], some: Sequence[NoteId]) -> Sequence[tuple[int, set[NoteId]]]:
        """For each group of words how many notes hold one of them, and which of `some` do."""

    def page(self, narrow: Narrow, sort: str, limit: int, after: int = 0) -> NotePage:
        """Notes that pass a filter, behind so many others."""

    def known(self, paths: Iterable[str] | None = None) -> dict[str, Known]:
        """What is known of those of these notes that are there, without reading them; of every note without paths."""

    def outline(self, path: str) -> Outline | None:
        """What is shown of a note that is read; None when there is no such note."""

    def since(self, mark: Mark | None) -> Changes:
        """What was put since a mark, by any process; everything without one."""

    def called(self, key: str) -> Called:
        """Notes by a name, a path, a title or an alias, as names are compared."""

    def near_names(self, prefix: str, limit: int) -> list[str]:
        """Paths of visible notes whose path or name begins so."""

    def files(self) -> set[str]:
        """Every file that a link can mean."""

    def files_named(self, key: str) -> Sequence[str]:
        """The files of a name, as links compare them."""

    def links(self, to: str | None = None) -> list[StoredLink]:
        """The links of other notes that mean this file; without it every link there is."""

    def sources_that_could_mean(self, files: Iterable[str]) -> list[str]:
        """The notes with a link that is looked up by the name of one of these files."""

    def conflict_copies(self) -> list[tuple[str, str]]:
        """Every conflict copy of a note that is there, with that note."""

    def standing(self) -> Standing:
        """How far the index is."""

    def embedded(self, embedder: str, remote: bool) -> Embedded:
        """How far an embedder is."""

    def estimate(self, embedder: str, remote: bool, *, anew: bool = False, known: MadeBefore | None = None) -> Estimate:
        """What waits for an embedder. `anew` counts as if no note had its vectors yet."""

    def vectors_of(self, note_id: NoteId) -> list[bytes]:
        """The vectors of a note's passages."""

    def counts(self) -> dict[str, Any]:
        """Numbers for `stats`."""

    def tag_counts(self) -> dict[str, int]:
        """Every tag of visible notes with how many notes have it, most used first."""

    def inspection(self) -> dict[str, dict[str, Any]]:
        """Everything that was read from every note, by path: what links lead where, tags, aliases."""
