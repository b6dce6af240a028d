"""The values of the index API: queries, filters, and the results of `IndexService`.

They contain no SQL. To callers, the ids of notes and places are opaque numbers, which are valid
until the next change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from simplemem.note.names import is_copy_reason
from simplemem.note.note import Note

NoteId = int
PlaceId = int  # of a passage or block of a note

SORTS = ("modified", "created", "name", "title")

# The size in the row of a note that was moved and not read again yet. No file has this size, so the
# next comparison finds a difference, and reads the note.
SIZE_OF_MOVED = -1

# A file that was changed so shortly before it was read may change again without a new time
# (docs/internals/writing.md#faults, F31).
RACY_NS = 2_000_000_000


class Stat(NamedTuple):
    """The size and times of a file when it was read, in bytes and nanoseconds since 1970.

    They tell whether the file may have changed since.
    """

    size: int
    mtime_ns: int
    ctime_ns: int


class Chunk(NamedTuple):
    """A passage or a block of a note: its kind, where it is in the file's text, and its text.

    `start` and `stop` are offsets in characters, `line` begins at 1. `kind` is "passage" for a
    passage; for a block, it is the kind of block, such as "heading". It is "header" for frontmatter
    that cannot be parsed. `headings` are those above the chunk, the outermost first.
    """

    start: int
    stop: int
    line: int
    kind: str
    headings: tuple[str, ...]
    text: str


class NoteMetadata(NamedTuple):
    """The properties of a note that the index has columns for; "" for one that the note lacks.

    `created` and `modified` are local times in a form that sorts as text.
    """

    title: str
    description: str
    type: str
    created: str
    modified: str


class ParsedNote(NamedTuple):
    """A note file that was read and parsed, ready to be stored in an index.

    `stat` is of the file when it was read. Passages and blocks are in the order of the text.
    """

    path: str
    note: Note
    stat: Stat
    metadata: NoteMetadata
    passages: tuple[Chunk, ...]
    blocks: tuple[Chunk, ...]
    language: str  # of its stems; "" for English, and if it is not clear


class NoteRow(NamedTuple):
    """The row of a note in the index: what is known of it without reading its file."""

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
    hidden: str | None  # why it is hidden from search
    problem: str | None  # why it must not be rewritten
    private: str | None  # why no text of it may leave this machine
    rev: int  # the number of the last change of this row

    @property
    def is_copy(self) -> bool:
        """Whether the note is hidden from search because it is a conflict copy of another note."""
        return is_copy_reason(self.hidden)

    @property
    def stat(self) -> Stat:
        """Size and times of the file when it was last read."""
        return Stat(self.size, self.mtime_ns, self.ctime_ns)

    @property
    def is_at_new_path(self) -> bool:
        """Whether the file was moved: the row has its new path, but was not read there yet."""
        return self.size == SIZE_OF_MOVED

    def may_have_changed(self, size: int, mtime_ns: int, ctime_ns: int) -> bool:
        """Return whether the file must be read again, by its size and times on disk now.

        True if one of them differs from the row, or if a time is less than 2 s before the last
        reading: the file may then have changed again without a new time. Does not look at the file.
        """
        if self.stat != (size, mtime_ns, ctime_ns):
            return True
        newest_ns = max(mtime_ns, ctime_ns)
        return newest_ns > self.checked_ns - RACY_NS


class NameRow(NamedTuple):
    """A name of a note: its title, with the alias "", or one of its aliases."""

    path: str
    title: str
    alias: str


class Mark(NamedTuple):
    """A state of the index; `IndexService.since` returns what changed after it.

    `generation` is that of the engine; it grows when another index replaces this one. `rev` is the
    number of the newest change of a note.
    """

    generation: int
    rev: int


@dataclass(frozen=True, slots=True)
class Changes:
    """The rows of the notes that were written since a mark. Removed notes are not among them."""

    mark: Mark  # the state that these changes lead to
    notes: Sequence[NoteRow]
    count: int  # of all notes in the index; -1 if the index has not changed
    whole: bool  # whether `notes` are all notes of the index


class LinkedNote(NamedTuple):
    """A note as one of the nodes of a `LinkGraph`."""

    path: str
    title: str
    type: str
    kind: str  # the value of the property that the reader of the graph named; "" without one
    modified: str
    tags: tuple[str, ...]


class LinkGraph(NamedTuple):
    """All visible notes in the order of their paths, and the links between them.

    A link is a pair of positions in `notes`: of the note that contains it, and of its target. Each
    pair is there once, however many links the note has, and none leads from a note to itself.
    """

    mark: Mark  # the state of the index that was read
    notes: Sequence[LinkedNote]
    links: Sequence[tuple[int, int]]


class StoredLink(NamedTuple):
    """A link as it is written in a note, with the file that it means now.

    `form` is the kind of link, `target`, `subpath` and `display` are its parts as written, and
    `line` begins at 1.
    """

    source_id: NoteId
    source: str
    form: str
    target: str
    subpath: str
    display: str
    line: int
    path: str | None  # of the file that it means, None for an unresolved link
    ambiguous: tuple[str, ...]  # the paths of all candidates, if there are several


class Outline(NamedTuple):
    """A note's row, tags, aliases and links, as they are shown when the note is read.

    A tag is a pair: its text, and where it is from, such as the frontmatter or the body.
    """

    row: NoteRow
    tags: Sequence[tuple[str, Any]]
    aliases: tuple[str, ...]
    links: Sequence[StoredLink]


class Term(NamedTuple):
    """Words side by side, as a query looks for them. If `beginning`, the last word is a prefix.

    `stem_of` are the words of the query whose stems `words` are. If a note has several forms of a
    word, only the best one counts, and no stem counts more than the word (docs/search.md). `weight`
    is below 1 for a word that was searched for in place of a misspelt one; its other forms have the
    weight of the word.
    """

    words: tuple[str, ...]
    beginning: bool = False
    stem_of: tuple[str, ...] = ()
    weight: float = 1.0


class SimilarTerm(NamedTuple):
    """A term of the index that a misspelt word may mean.

    `notes` is how many notes contain it, of those that pass a filter, and `paths` are a few of
    them. A term is a stem: only the text of a note has the whole word.
    """

    term: str
    notes: int
    paths: Sequence[str]


AnyOf = Sequence[Term]
"""Alternatives: a note matches if it has one of these terms."""


@dataclass(frozen=True, slots=True)
class IndexFilter:
    """A filter whose names and dates are already resolved. An empty field is no condition.

    A note passes if it meets all conditions. Hidden notes pass only if `hidden` is set.
    """

    # Values of tags by key. The value "" matches a tag of the key with any value.
    tags: Mapping[str, str] = field(default_factory=dict)
    require_all: bool = False  # whether a note must have all `tags`, and not only one of them
    # Tags from `tag:` in a query, as in `tags`. A note must have all of them.
    all_tags: Mapping[str, str] = field(default_factory=dict)
    # Values of the frontmatter by name. A note must have all of them.
    properties: Mapping[str, str] = field(default_factory=dict)
    type: str = ""
    prefix: str = ""  # of the path, usually a folder with "/" at its end
    since: str = ""  # the note was last modified at this time or later
    until: str = ""  # the note was last modified before this time
    link_to: str = ""  # the note has a link to this path
    linked_by: str = ""  # the note at this path has a link to the note
    phrases: tuple[str, ...] = ()  # the text of the note has all of them
    without: tuple[str, ...] = ()  # the text of the note has none of them
    without_forms: tuple[str, ...] = ()  # nor any of these, which are other forms of them
    only: tuple[str, ...] = ()  # the paths of the notes that may pass
    author: str = ""  # who wrote the text: human, agent, or the beginning of an agent's name
    archive: tuple[str, ...] = ()  # folders; only notes outside of them pass
    archived: bool = False  # only notes inside of these folders pass instead
    hidden: bool = False  # whether notes that are hidden from search pass too


@dataclass(frozen=True, slots=True)
class IndexQuery:
    """A query of the index by words, by a vector and by names."""

    terms: tuple[Term, ...] = ()
    pairs: tuple[Term, ...] = ()  # words side by side, which are searched in the best notes only
    vector: bytes | None = None
    like: str = ""  # the path of a note; the mean of its passages' vectors replaces `vector`
    title: str = ""  # finds notes that have this name letter for letter
    names: tuple[str, ...] = ()  # find notes by the words of their names (`words_key`)
    # Names that are only a part of the query, each with its share of the query. They find no note.
    inner_names: Mapping[str, float] = field(default_factory=dict)
    narrow: IndexFilter = IndexFilter()
    notes: int = 300  # the number of notes by words, at most
    blocks: int = 1500  # the number of blocks by words, at most
    max_nearest: int = 200  # the number of notes by the vector
    rescore_depth: int = 100  # the number of best notes whose blocks and pairs are searched
    counts_excluded: bool = False  # whether to count the notes that are excluded from search


NoteScores = Mapping[NoteId, float]
"""The BM25 score of each note that matches (higher is better), best first."""


class Match(NamedTuple):
    """A block that matches, with its BM25 score (higher is better)."""

    note: NoteId
    place: PlaceId
    score: float


class Similarities(NamedTuple):
    """The cosine similarities of notes to a vector, from -1 to 1.

    The three mappings have the same notes. A passage that consists of one block counts as both.
    """

    passages: Mapping[NoteId, float]  # of each note's best passage
    blocks: Mapping[NoteId, float]  # of each note's best block
    scores: Mapping[NoteId, float]  # the mean of the two, at least 0


# The number of best blocks of a note for which the notes with the same text are counted.
BLOCKS_COUNTED = 5


class BlockMatches(NamedTuple):
    """Blocks that match by their words, best first, as arrays."""

    note_ids: NDArray[np.int64]
    place_ids: NDArray[np.int64]
    scores: NDArray[np.float64]
    text_counts: NDArray[np.int64]  # how many notes have this text; 1 if not of a note's best


class Matches(NamedTuple):
    """The answer to an `IndexQuery`. Notes and blocks by words are sorted, best first."""

    notes: NoteScores
    blocks: BlockMatches | None
    pairs: NoteScores
    similarities: Similarities | None  # None if no vector can be compared
    paths: Mapping[NoteId, str]  # of all notes that were found, and perhaps of others
    passed: int | None = None  # the number of notes that pass the filter; None if all do

    # Notes with a name that is the whole query; a lower number is a more exact match.
    title_matches: Mapping[NoteId, int] = {}
    # Notes with a name that is a part of the query, each with its share of the query.
    named: Mapping[NoteId, float] = {}
    note_count: int = 0  # in the index
    excluded: int = 0  # notes that would pass the filter, but are excluded from search


class TextSpan(NamedTuple):
    """The span of a passage or block in its note: offsets in characters, and the first line.

    `line` begins at 1; `headings` are those above it, the outermost first.
    """

    start: int
    stop: int
    line: int
    headings: tuple[str, ...]


class Neighbour(NamedTuple):
    """A note that is linked with another, or of the day before or after in its folder."""

    note: NoteId
    via: str  # why it is a neighbour


class NoteDetails(NamedTuple):
    """What results and excerpts need of a note.

    `passages` are all of the note's passages in order. `neighbours` and `repeated` are empty unless
    they were asked for.
    """

    row: NoteRow
    tags: tuple[str, ...]
    passages: Sequence[TextSpan]
    best: TextSpan | None = None  # the matched place, else the passage nearest to the vector
    blocks: Sequence[TextSpan] = ()  # that matched
    neighbours: Sequence[Neighbour] = ()
    repeated: Sequence[tuple[int, int]] = ()  # spans of the blocks that many notes have


class NotePage(NamedTuple):
    """A page of the notes that pass a filter."""

    rows: Sequence[NoteRow]
    tags: Mapping[NoteId, tuple[str, ...]]
    total: int  # the number of notes on all pages


class VectorSpace(NamedTuple):
    """The embedder whose vectors the index has. A remote one never gets private notes."""

    embedder: str = ""
    dimension: int = 0  # 0 before the first vector
    remote: bool = False


class IndexProgress(NamedTuple):
    """The state of the index: its notes, and how many of them wait for vectors."""

    notes: int
    space: VectorSpace = VectorSpace()
    waiting: int = 0  # notes without their vectors
    commit: str = ""  # the commit that the rows are of, if the vault is a branch


class Embedded(NamedTuple):
    """How many notes have vectors of an embedder. Hidden notes do not count."""

    waiting: int  # notes that still lack their vectors
    notes: int  # notes that should have vectors
    private: int  # private notes, which get none from a service
    refused: Sequence[tuple[str, str]]  # paths, and why the embedder refused a text


Progress = Callable[[str, int, int], None]
"""Called with the name of a step, the number of notes done so far, and the number of all notes."""


@dataclass(slots=True)
class SyncReport:
    """The result of a pass: the paths of changed notes, and the files that were not indexed.

    `moved` has pairs of the old and the new path, `skipped` pairs of a path and the reason.
    """

    added: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    doubted: int = 0  # notes that vanished all at once; they stay in the index
    embedded: int = 0
    trouble: str = ""  # why vectors could not be computed
    seconds: float = 0.0

    def changed(self) -> set[str]:
        """Return the paths of all notes whose rows changed, also removed ones.

        A moved note has both of its paths.
        """
        paths = {*self.added, *self.modified, *self.removed}
        for old_path, new_path in self.moved:
            paths.update((old_path, new_path))
        return paths

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values: numbers of notes, and skipped files with reasons."""
        return {
            "added": len(self.added),
            "modified": len(self.modified),
            "moved": len(self.moved),
            "removed": len(self.removed),
            "embedded": self.embedded,
            "skipped": [{"path": path, "why": reason} for path, reason in self.skipped],
            "doubted": self.doubted,
            "trouble": self.trouble,
            "seconds": round(self.seconds, 3),
        }


Ids = Sequence[NoteId] | None
"""The notes to search in; None for all."""
