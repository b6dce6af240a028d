"""The values that the store gives and takes: a memory, a hit, a list, the outcome of a write. Plain and frozen."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Literal, TypedDict, dataclass_transform

from simplemem.errors import Invalid
from simplemem.note.tag_requests import parse_tag_request

# The notices above hits that answer nothing: no word of the question is held, or those that are held do not suffice.
NO_WORD_HELD = "No note contains these words; these are the nearest by meaning."
NOTHING_FOUND = "Nothing found; these are the nearest."


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value:
    """What inherits from this is a frozen dataclass, and can be shown to a program as plain JSON.

    Its methods are written here once. `dataclass` would compile six of them for each of 35 classes, which was a tenth
    of what a short command costs.
    """

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *values: Any, **named: Any) -> None:
        fields = _fields_of(self)
        given = dict(zip((each.name for each in fields), values, strict=False))
        unknown = named.keys() - {each.name for each in fields}
        if len(values) > len(fields) or unknown or given.keys() & named.keys():
            raise TypeError(
                f"{type(self).__name__} has the fields {', '.join(each.name for each in fields)}"
            )
        given |= named
        for each in fields:
            object.__setattr__(
                self, each.name, given[each.name] if each.name in given else self._default_of(each)
            )

    def _default_of(self, each: dataclasses.Field[Any]) -> Any:
        if each.default_factory is not dataclasses.MISSING:
            return each.default_factory()
        if each.default is dataclasses.MISSING:
            raise TypeError(f"{type(self).__name__} needs {each.name}")
        return each.default

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        shown = (
            f"{each.name}={getattr(self, each.name)!r}" for each in _fields_of(self) if each.repr
        )
        return f"{type(self).__qualname__}({', '.join(shown)})"

    def __eq__(self, other: object) -> bool:
        return self._values() == other._values() if type(other) is type(self) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, each.name) for each in _fields_of(self))

    def as_dict(self) -> dict[str, Any]:
        return {each.name: _plain(getattr(self, each.name)) for each in _fields_of(self)}


def _fields_of(value: Value) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(value)  # type: ignore[arg-type]  # each class of values is made a dataclass


def _plain(value: Any) -> Any:
    if isinstance(value, Value):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_plain(item) for item in value]
    is_plain = isinstance(value, (str, int, float, bool, type(None)))
    return (value if value == value else None) if is_plain else str(value)  # NaN is no JSON


class By(TypedDict, total=False):
    """Who makes a change, with which tool, and why: it stands in the history."""

    who: str
    tool: str
    reason: str


class IndexState(Value):
    """How far the index can be trusted now.

    `pending` counts the notes that are not wholly searchable. `missing_notes` of them are not read yet, or have changed
    since they were read; `missing_vectors` are not searchable by meaning.
    """

    state: Literal["ready", "indexing", "partial"]
    notes: int
    pending: int
    reason: str = ""
    commit: str = field(default="", repr=False)  # of a branch: what it is of
    missing_notes: int = field(default=0, repr=False)
    missing_vectors: int = field(default=0, repr=False)

    @property
    def is_ready(self) -> bool:
        """Whether what is not found in the index is not in the vault."""
        return self.state == "ready"

    def as_dict(self) -> dict[str, Any]:
        may_be_left_out = ("commit", "missing_notes", "missing_vectors")
        return {
            key: each
            for key, each in super().as_dict().items()
            if each or key not in may_be_left_out
        }


class Filter(Value):
    """Which memories take part. Names and dates are as a person gives them; the store resolves them."""

    tags: Mapping[str, str] = field(default_factory=dict)  # "" asks only that the tag is there
    require_all: bool = False
    type: str = ""
    prefix: str = ""
    since: str = ""
    until: str = ""
    link_to: str = ""
    linked_by: str = ""
    properties: Mapping[str, str] = field(
        default_factory=dict
    )  # such as {"status": "done"}: all of them
    author: str = ""  # who changed it last: human, agent, unknown, or how a name begins; any: only that it is said

    @classmethod
    def of(cls, *, tags: Any = None, **fields: Any) -> Filter:
        """A filter from forgiving arguments: tags as map, list, text or JSON; None for what is not given."""
        wanted = parse_tag_request(tags)
        if refused := [
            f"{key} = {value}" for key, value in wanted.items() if value is None or value is False
        ]:
            raise Invalid(
                f"a tag filter cannot require {refused[0]}",
                hint='To require the tag with any value, use "".',
            )
        values = {key: "" if value is True else str(value) for key, value in wanted.items()}
        return cls(
            tags=values, **{key: value for key, value in fields.items() if value is not None}
        )


class LinkOut(Value):
    """A link as it stands in a memory. `target` is the name of the memory or file it leads to, else its text."""

    target: str
    resolved: bool
    kind: str
    line: int
    display: str = ""
    ambiguous: tuple[str, ...] = ()


class Memory(Value):
    """One memory, read whole. `content` is the body without the header, `text` the whole file."""

    name: str
    path: str
    title: str
    description: str
    type: str
    created: str | None
    modified: str
    tags: tuple[str, ...]
    tag_map: Mapping[str, Any]
    aliases: tuple[str, ...]
    frontmatter: Mapping[str, Any]
    content: str
    text: str
    sha256: str
    links: tuple[LinkOut, ...]
    backlinks: tuple[str, ...]
    tokens: int
    problem: str | None = None
    version: str | None = None
    content_line: int = 1  # the line of the file on which `content` begins

    @property
    def headings(self) -> tuple[tuple[int, str, int], ...]:
        """The level, text and line of each heading of the whole note."""
        from simplemem.note.note import read_note

        return tuple(
            (each.level, each.text, each.line)
            for each in read_note(self.text.encode()).body.headings
        )

    def as_dict(self) -> dict[str, Any]:
        return super().as_dict() | {"headings": _plain(self.headings)}


class Listed(Value):
    """A memory in a list."""

    name: str
    path: str
    title: str
    description: str
    type: str
    tags: tuple[str, ...]
    created: str | None
    modified: str
    size: int
    sha256: str
    problem: str | None


class Page(Value):
    """Part of a list. Pass `next_cursor` to go on; None at the end. `degraded` says what of the filter no note has."""

    items: tuple[Listed, ...]
    next_cursor: str | None
    total: int
    index: IndexState
    degraded: str = ""


class Hit(Value):
    """A memory that answers a question, enough to cite it. `authors` and `written` say who changed it, if asked."""

    name: str
    title: str
    description: str
    type: str
    score: float
    snippet: str
    heading: str
    line: int
    tags: tuple[str, ...]
    created: str | None
    modified: str
    sha256: str
    why: Mapping[str, Any] | None = None
    authors: tuple[str, ...] = ()
    written: str | None = None

    def as_dict(self) -> dict[str, Any]:
        shown = super().as_dict()
        return {key: shown[key] for key in shown if shown[key] or key not in ("authors", "written")}


class Found(Value):
    """The answer to a search. `degraded` says what was missing; `why` accounts for a note asked for by name."""

    query: str
    mode: str
    hits: tuple[Hit, ...]
    index: IndexState
    explain: Mapping[str, Any] | None = None
    degraded: str = ""
    why: Mapping[str, Any] | None = None
    absent: tuple[str, ...] = ()  # words that no note holds
    only_nearest: bool = False  # no hit is good enough to be an answer
    notice: str = ""  # the sentence that says so, to be shown above the hits


class Mention(Value):
    """A link to a memory as it stands in another: its form, and the line with what is written there."""

    form: str
    line: int
    snippet: str


class Backlink(Value):
    """A memory that leads here: by links, the first with its line and `also` the others, or by its meaning."""

    name: str
    title: str
    kind: Literal["link", "semantic"]
    form: str
    snippet: str
    line: int
    score: float
    also: tuple[Mention, ...] = ()


class Pack(Value):
    """A context pack: passages `left_out` for the budget, `duplicates` of what another says; `omitted` are all those."""

    query: str
    text: str
    tokens: int
    items: tuple[Mapping[str, Any], ...]
    left_out: int
    index: IndexState
    degraded: str = ""
    duplicates: int = 0
    omitted: tuple[Mapping[str, Any], ...] = ()
    tokenizer: str = "estimate"  # what counts the tokens; an estimate when none is at hand
    absent: tuple[str, ...] = ()
    only_nearest: bool = False
    notice: str = ""  # says that no passage answers, to be shown above the text


class Saved(Value):
    """A write that is on the disk. `changed` is False when the note already was what was wanted."""

    name: str
    path: str
    sha256: str
    previous_sha256: str | None
    changed: bool
    version: str
    tags: tuple[str, ...]
    tag_map: Mapping[str, Any]
    warnings: tuple[str, ...] = ()


class Moved(Value):
    """A memory under its new name, and the memories whose links were written again."""

    name: str
    path: str
    previous_name: str
    sha256: str
    rewritten: tuple[str, ...]
    version: str
    warnings: tuple[str, ...] = ()


class Deleted(Value):
    """A memory that is in the trash. `version` brings it back."""

    name: str
    version: str
    links_left_unresolved: int


class Synced(Value):
    """What was exchanged with another machine: what was committed here, what came and was merged, what could not be and
    lies beside its note, and what waits since the person has staged it."""

    remote: str
    committed: int
    changed: tuple[str, ...]
    copies: tuple[str, ...]
    waiting: tuple[str, ...]
    pushed: bool
    version: str  # of the step that wrote what came, "" if nothing did


class MovedIndex(Value):
    """An index that was built in an engine: of how many notes, and of how many the vectors were `taken` over or `made`."""

    engine: str
    place: str
    notes: int
    taken: int
    made: int
    in_use: bool  # the settings already name it
    trouble: str  # why vectors are missing that could not be made


class Undone(Value):
    """A change that was taken back, which can itself be undone."""

    name: str
    sha256: str | None
    version: str
    what: str


class UndoneNote(Value):
    """What became of one memory when many changes were undone, or would become of it. `since` is the first of them."""

    name: str
    new_name: str | None  # where a move goes back to
    becomes: str  # changed back, moved back, brought back or deleted
    since: str
    before: str | None
    sha256: str | None


class LeftAsIs(Value):
    """A memory whose changes were not taken back, and why."""

    name: str
    why: str


class UndoneMany(Value):
    """Everything somebody changed since a moment, taken back as one change. `version` is "" for a preview."""

    by: str
    since: str
    version: str
    notes: tuple[UndoneNote, ...]
    left: tuple[LeftAsIs, ...]
    plan: str


class HistoryEntry(Value):
    """A change of one memory, or a step that changed some `notes`: ours, with its commit if there is one, or git's."""

    version: str
    name: str
    new_name: str | None
    when: str
    op: str
    who: str
    tool: str
    reason: str
    before: str | None
    sha256: str | None
    diff: str | None = None
    source: Literal["simplemem", "git"] = "simplemem"
    commit: str | None = None
    notes: int = 1


class BlamedLine(Value):
    """A line of a memory and who last changed it: a person, or an agent by its name; `when` (UTC) may be unknown, ""."""

    number: int
    text: str
    kind: Literal["human", "agent", "unknown"]
    who: str
    when: str


class Difference(Value):
    """What lies between two texts of one memory, or of two. `doubt` says what cannot be told, and is empty else."""

    name: str
    new_name: str
    before: str  # a version, a date, or what else was asked for
    after: str
    diff: str
    doubt: str = ""


class Restored(Value):
    """A memory that has an earlier text again, `at` a version or date. `changed` is False when it had it already."""

    name: str
    sha256: str
    previous_sha256: str | None
    version: str
    at: str
    changed: bool
    warnings: tuple[str, ...] = ()


class ConflictCopy(Value):
    """A file that a synchroniser or git left beside a note that was changed in two places."""

    name: str
    path: str
    of: str
    original: str
    maker: str


class ConflictMerge(Value):
    """What a merge would make of a note and a copy of it."""

    copy: ConflictCopy
    text: str | None  # None where there is a `problem`
    base: str  # the version both likely began as, "" for none
    clean: bool
    conflicts: int
    diff: str
    note_sha256: str
    copy_sha256: str
    problem: str = ""


class ConflictMerged(Value):
    """A conflict copy that is merged into its note, or dropped. `version` takes both back at once."""

    name: str
    copy: str
    sha256: str
    version: str
    changed: bool
    warnings: tuple[str, ...] = ()


class OwnFile(Value):
    """A file or folder in `.simplemem/`: what it holds, and whether deleting it loses nothing."""

    path: str
    holds: str
    can_be_rebuilt: bool


class Finding(Value):
    """Something the doctor noticed. `candidates` are what a broken link may mean; `fix` is what mending would do."""

    check: str
    level: Literal["error", "warning", "note"]
    path: str
    message: str
    hint: str = ""
    line: int = 0
    candidates: tuple[str, ...] = ()
    fix: str = ""


class Mend(Value):
    """What mending does to one note: its text, which has this hash now, becomes another."""

    path: str
    what: tuple[str, ...]
    diff: str
    sha256: str
    text: str


class Mending(Value):
    """What the doctor found, what of it is `left` once the `changes` are made, and why some cannot be made."""

    findings: tuple[Finding, ...]
    left: tuple[Finding, ...]
    changes: tuple[Mend, ...]
    unmended: tuple[str, ...] = ()


class Mended(Value):
    """What mending did: one change, which undoing `version` takes back. `version` is "" when no note was changed."""

    version: str
    changed: tuple[str, ...]
    warnings: tuple[str, ...] = ()
