"""The values that the store takes and returns: a note, a hit, a list, the outcome of a write."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import field
from functools import cache
from typing import Any, Literal, TypedDict, dataclass_transform

from simplemem.errors import Invalid
from simplemem.note.tag_requests import parse_tag_request

# Notices above hits that do not answer the query: if no note contains any of its words, if the hits
# contain little of it, and how the notice begins if they are about its subject.
NO_WORD_FOUND = "No note contains these words; these are the nearest by meaning."
NOTHING_FOUND = "Nothing found; these are the nearest."
LOOSELY_RELATED = "Only loosely related notes found"


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
class Value:
    """The base of the values: a subclass is a frozen dataclass, and `as_dict()` gives its JSON.

    A value is made from positional or named fields, is compared and hashed by them, and refuses
    changes with FrozenInstanceError. A missing, unknown or repeated field raises TypeError.

    The methods are written here once. `dataclass` would compile six of them for each of 35 classes,
    which was a tenth of the time of a short command.
    """

    def __init_subclass__(cls) -> None:
        dataclasses.dataclass(init=False, repr=False, eq=False)(cls)

    def __init__(self, *positional: object, **named: object) -> None:
        fields = _fields_by_name(type(self))  # type: ignore[arg-type]
        values = dict(zip(fields, positional, strict=False))
        is_surplus = len(positional) > len(fields)
        is_unknown = not named.keys() <= fields.keys()
        is_repeated = not values.keys().isdisjoint(named)
        if is_surplus or is_unknown or is_repeated:
            raise TypeError(f"{type(self).__name__} has the fields {', '.join(fields)}")

        values |= named
        for name, item in fields.items():
            if name not in values:
                values[name] = self._default_of(item)
        # `__setattr__` refuses every change.
        self.__dict__.update(values)

    def _default_of(self, item: dataclasses.Field[Any]) -> object:
        """Return the default of a field. Raises TypeError if it has none."""
        if item.default_factory is not dataclasses.MISSING:
            return item.default_factory()
        if item.default is dataclasses.MISSING:
            raise TypeError(f"{type(self).__name__} needs {item.name}")
        return item.default

    def __setattr__(self, name: str, value: object) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")

    def __delattr__(self, name: str) -> None:
        raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")

    def __repr__(self) -> str:
        fields = [
            f"{item.name}={getattr(self, item.name)!r}" for item in _fields_of(self) if item.repr
        ]
        return f"{type(self).__qualname__}({', '.join(fields)})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[object, ...]:
        """Return the values of all fields, in their order, for comparisons and hashes."""
        return tuple(getattr(self, item.name) for item in _fields_of(self))

    def as_dict(self) -> dict[str, Any]:
        """Return the fields by name as JSON values.

        A `Value` in a field becomes a map, a tuple or a set a list, NaN None, and any other object
        that JSON does not have a text.
        """
        return {item.name: _as_json(getattr(self, item.name)) for item in _fields_of(self)}


@cache
def _fields_by_name(cls: type[Value]) -> dict[str, dataclasses.Field[Any]]:
    """Return the fields of a class of values by name, in their order."""
    fields = dataclasses.fields(cls)  # type: ignore[arg-type]  # `Value` makes dataclasses
    return {item.name: item for item in fields}


def _fields_of(value: Value) -> tuple[dataclasses.Field[Any], ...]:
    """Return the fields of a value, in their order."""
    return dataclasses.fields(value)  # type: ignore[arg-type]  # `Value` makes dataclasses


def _as_json(value: object) -> Any:
    """Return a value of a field as a JSON value. `Value.as_dict` describes how."""
    if isinstance(value, Value):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {str(key): _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [_as_json(item) for item in value]
    if not isinstance(value, (str, int, float, bool, type(None))):
        return str(value)
    is_nan = value != value
    return None if is_nan else value


def _without_zero(values: dict[str, Any], *keys: str) -> dict[str, Any]:
    """Return a copy of `values`, without those of the `keys` whose value is 0, empty or None."""
    return {name: value for name, value in values.items() if value or name not in keys}


class AuthorArgs(TypedDict, total=False):
    """Who makes a change, with which tool, and why, for the history. Each may be absent.

    `kind` says whether a person or an agent makes it. Without it, the store decides: it was opened
    for the one or for the other. `session` is an id that all calls of one session of a client
    share. `sources` are the names of notes, and addresses, that were read in it before the change.
    """

    who: str
    tool: str
    reason: str
    kind: Literal["human", "agent"]
    session: str
    sources: Sequence[str]


OWNER = "owner"
"""The name of the person to whom a vault belongs, and of the token that allows everything."""

AUTHOR_SEPARATOR = ": "
"""Stands between the name of a token and that of the client that uses it: "ida: claude-ai 1.2".

No author without a token contains it, so a client cannot pass for a token by the name that it
states.
"""


def is_called(who: str, name: str) -> bool:
    """Return whether an author has a name, with or without the version that a client states.

    `who` is an author of the history, and `name` what a user calls them. Letter case does not
    matter, nor do repeated blanks in `name`. The name of a token matches every client that uses it.
    The name "" matches every author.
    """
    author = who.casefold()
    token_name, _, _ = author.partition(AUTHOR_SEPARATOR)
    wanted_name = " ".join(name.split()).casefold()
    if wanted_name in ("", author, token_name):
        return True
    client_name, _, client_version = author.rpartition(" ")
    has_version = any(map(str.isdigit, client_version))
    return has_version and client_name == wanted_name


class IndexState(Value):
    """How complete the index is.

    `state` is "ready" if nothing is missing that the answer needs, "indexing" while the whole vault
    is compared with the index, else "partial". `notes` counts the notes in the index, and `pending`
    those that are not fully searchable. Of these, `missing_notes` are not indexed yet or have
    changed since, and `missing_vectors` cannot be found by meaning. `reason` is a sentence for the
    user, "" if there is nothing to say.
    """

    state: Literal["ready", "indexing", "partial"]
    notes: int
    pending: int
    reason: str = ""
    # The commit that is indexed if the vault is a branch of git, else "".
    commit: str = field(default="", repr=False)
    missing_notes: int = field(default=0, repr=False)
    missing_vectors: int = field(default=0, repr=False)

    @property
    def is_ready(self) -> bool:
        """Whether all notes are indexed, so that what is not found does not exist."""
        return self.state == "ready"

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, without an empty commit and missing counts of 0."""
        optional = ("commit", "missing_notes", "missing_vectors")
        values = super().as_dict()
        return {key: value for key, value in values.items() if value or key not in optional}


# The types of the fields of `Filter` that are no text. `Filter.of` reads `tags` by itself.
_FILTER_TYPES: Mapping[str, type] = {"require_all": bool, "properties": Mapping}


class Filter(Value):
    """Which notes a search or list is restricted to; a note must meet all the given fields.

    Names and dates are as a user writes them; the store resolves them. `Filter.of` describes the
    fields and takes lenient arguments.
    """

    tags: Mapping[str, str] = field(default_factory=dict)  # "" stands for any value of the tag
    require_all: bool = False
    type: str = ""
    prefix: str = ""
    since: str = ""
    until: str = ""
    link_to: str = ""
    linked_by: str = ""
    # Such as {"status": "done"}. A note must have all of them.
    properties: Mapping[str, str] = field(default_factory=dict)
    # Who changed the note last: human, agent, unknown, or the beginning of a client's name. "any"
    # allows all notes, and the hits say who changed them.
    author: str = ""

    @classmethod
    def of(cls, *, tags: Any = None, **fields: Any) -> Filter:
        """Return a filter from lenient arguments.

        `tags` are a map, a list, a text such as "todo, status=done", or JSON. A note needs one of
        them, or all with `require_all=True`. The tag value "" allows any value.

        `type` is the type of a note, `prefix` the beginning of its name. `since` and `until` are
        dates such as "2026-01-24", "2026-01" or "last week". `link_to` and `linked_by` name a note.
        `properties` is a map such as {"status": "done"}; a note must have all of them. `author` is
        who changed the note last: "human", "agent", "unknown", the beginning of a client's name,
        or "any", with which the hits say who changed them. None stands for an absent argument.

        Raises Invalid for tags that cannot be required, and for a value of another type. Raises
        TypeError for an unknown argument.
        """
        required: dict[str, str] = {}
        for key, value in parse_tag_request(tags).items():
            if value is None or value is False:
                raise Invalid(
                    f"a tag filter cannot require {key} = {value}",
                    hint='To require the tag with any value, use "".',
                )
            required[key] = "" if value is True else str(value)

        present = {key: value for key, value in fields.items() if value is not None}
        for key, value in present.items():
            expected = _FILTER_TYPES.get(key, str)
            if not isinstance(value, expected):
                raise Invalid(
                    f"{key} of a filter must be {expected.__name__}, not {type(value).__name__}",
                    hint="help(Filter.of) describes the arguments.",
                )
        return cls(tags=required, **present)


class LinkOut(Value):
    """A link in a note. `target` is the name of the note or file that it means.

    If there is no such file, `resolved` is False and `target` is the text of the link. `kind` is
    "wiki", "markdown", "embed" or "property". `line` is its line in the file, `display` the text
    that is shown instead of the target, and `ambiguous` the names of other files that it may mean.
    """

    target: str
    resolved: bool
    kind: str
    line: int
    display: str = ""
    ambiguous: tuple[str, ...] = ()


class Memory(Value):
    """A note, or one section of it. `content` is the text of that, without the frontmatter.

    `text` is the whole file, and `sha256` the hash of its bytes, for `if_sha256`. `tags` are the
    names of all tags, `tag_map` has them with their values, `frontmatter` has all properties.
    `links` are those of the whole note, `backlinks` the names of notes that link to it. `tokens` is
    an estimate of the tokens in `content`. `problem` says why the note must not be rewritten, or
    what is uncertain about an earlier text; None if nothing. For an earlier text, `version` is the
    version or date by which the caller asked for it; None for the current text.
    """

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
        """The level, text and line of each heading of the whole note. Lines count from 1."""
        from simplemem.note.note import read_note

        headings = read_note(self.text.encode()).body.headings
        return tuple((heading.level, heading.text, heading.line) for heading in headings)

    def as_dict(self) -> dict[str, Any]:
        """Return the fields and the headings as JSON values."""
        return super().as_dict() | {"headings": _as_json(self.headings)}


class Listed(Value):
    """A note in a list.

    `size` is that of the file in bytes. `created` is None if the note does not say it. `problem`
    says what is wrong with the file; None if nothing.
    """

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
    """Part of a list. `next_cursor` is the `cursor` of the next part; None at the end.

    `total` counts the notes of the whole list. If that is 0, `degraded` says which conditions of
    the filter no note meets, as far as that is known; else it is "".
    """

    items: tuple[Listed, ...]
    next_cursor: str | None
    total: int
    index: IndexState
    degraded: str = ""


class Hit(Value):
    """A note that a search found, with enough of it to cite it.

    `score` says how good the hit is, from 0 to 1. `snippet` is its best passage, which begins at
    `line` of the file below `heading`. `why` explains the score, if the caller asked for that.
    `authors` and `written` say who changed it last and when, if the caller asked for that or the
    filter has an author; `written` is None if the time is not known.
    """

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
        """Return the fields as JSON values, without `authors` and `written` if not known."""
        optional = ("authors", "written")
        values = super().as_dict()
        return {key: value for key, value in values.items() if value or key not in optional}


class DatedName(Value):
    """A note by its name, with its day: `2026-01-24`."""

    name: str
    day: str

    def as_text(self) -> str:
        """Return the name after the day, unless the name has the day already."""
        return self.name if self.day in self.name else f"{self.day} {self.name}"


class Found(Value):
    """The answer to a search, with the best hit first.

    `mode` is what the caller asked for: "hybrid", "text" or "semantic". `index` is the state of the
    index that the answer was made of. `degraded` has sentences on what limited the search; "" if
    nothing did. `explain` has the details of the search, if the caller asked for them. `why`
    explains the rank, or the absence, of a note that the caller named. `by_date` has the hits in
    order of their days, if the query asks in what order things happened; the hits themselves are
    the best first.
    """

    query: str
    mode: str
    hits: tuple[Hit, ...]
    index: IndexState
    explain: Mapping[str, Any] | None = None
    degraded: str = ""
    why: Mapping[str, Any] | None = None
    absent: tuple[str, ...] = ()  # words of the query that no note contains
    only_nearest: bool = False  # no hit is good enough to be an answer
    notice: str = ""  # with `only_nearest`: a sentence that says so, for display above the hits
    missing: tuple[str, ...] = ()  # with `only_nearest`: words of the query that no hit contains
    not_searched: int = 0  # with `absent`: notes that are excluded from search
    by_date: tuple[DatedName, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, without `not_searched` and `by_date` if empty."""
        return _without_zero(super().as_dict(), "not_searched", "by_date")


class Mention(Value):
    """A link to a note in another note: its form, its line, and the text of that line."""

    form: str
    line: int
    snippet: str


class Backlink(Value):
    """A note that links to the given one (`kind` "link"), or is similar to it ("semantic").

    `form`, `snippet` and `line` are those of the first link, or of the most similar passage, which
    has the form "". `also` has the other links.
    """

    name: str
    title: str
    kind: Literal["link", "semantic"]
    form: str
    snippet: str
    line: int
    score: float
    also: tuple[Mention, ...] = ()


class Pack(Value):
    """Passages that fit a budget of tokens, as context for a model.

    `text` is for the model, `items` are its passages, and `tokens` is its size. `left_out` counts
    the passages for which the budget was too small, and `duplicates` those that repeat another.
    `omitted` lists both, each with its name, its line, and why. The first `pinned` items are there
    whatever the query is, and say nothing of what was found. `degraded`, `absent` and
    `only_nearest` are as in `Found`.
    """

    query: str
    text: str
    tokens: int
    items: tuple[Mapping[str, Any], ...]
    left_out: int
    index: IndexState
    degraded: str = ""
    duplicates: int = 0
    omitted: tuple[Mapping[str, Any], ...] = ()
    tokenizer: str = "estimate"  # what counted the tokens
    absent: tuple[str, ...] = ()
    only_nearest: bool = False
    notice: str = ""  # says that no passage is an answer, for display above the text
    missing: tuple[str, ...] = ()  # as in `Found`
    not_searched: int = 0  # with `absent`: notes that are excluded from search
    pinned: int = 0
    chronological: bool = False  # the query asks for an order, so the text is in order of date

    @property
    def has_found(self) -> bool:
        """Whether it has passages that were found, and not only pinned ones."""
        return len(self.items) > self.pinned

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values, without the last three if they are 0 or False."""
        return _without_zero(super().as_dict(), "not_searched", "pinned", "chronological")


class Saved(Value):
    """A write that is on the disk. `changed` is False if the note already had this content.

    `sha256` is the hash of the note now, and `previous_sha256` the one before; None for a new note.
    `version` is the id of the change in the history, "" if nothing was written. `tags` and
    `tag_map` are those of the note now. `warnings` are sentences for the user.
    """

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
    """A note under its new name. `rewritten` are the notes whose links were changed.

    Undoing `version` moves it back and restores the links.
    """

    name: str
    path: str
    previous_name: str
    sha256: str
    rewritten: tuple[str, ...]
    version: str
    warnings: tuple[str, ...] = ()


class Deleted(Value):
    """A note that is in the trash. Undoing `version` brings it back.

    `links_left_unresolved` counts the links of other notes that lead nowhere now.
    """

    name: str
    version: str
    links_left_unresolved: int


class Synced(Value):
    """What was exchanged with a remote."""

    remote: str
    committed: int  # files whose changes on this machine were committed
    changed: tuple[str, ...]  # the paths of files that were changed elsewhere, and merged
    copies: tuple[str, ...]  # names of copies beside notes that could not be merged
    waiting: tuple[str, ...]  # paths that are not committed, because the user has staged them
    pushed: bool  # commits were sent to the remote
    version: str  # of the change that wrote the merged notes, "" if there were none


class MovedIndex(Value):
    """An index that was built in another engine."""

    engine: str
    place: str
    notes: int
    taken: int  # notes whose vectors were copied from the old index
    made: int  # notes whose vectors were computed
    in_use: bool  # the settings already name this engine
    trouble: str  # why vectors are missing, "" if none are


class Undone(Value):
    """A change that was undone.

    `version` is the new change that undid it; undoing that restores the first change. `what` is a
    sentence that says what was undone. `sha256` is the hash of the note now; None if it does not
    exist any more.
    """

    name: str
    sha256: str | None
    version: str
    what: str


class UndoneNote(Value):
    """What undoing many changes does to one note."""

    name: str
    new_name: str | None  # after a move is undone
    becomes: str  # "changed back", "moved back", "brought back" or "deleted"
    since: str  # the version of the first of the changes
    before: str | None  # the hash of the note now; None if there is none
    sha256: str | None  # its hash afterwards; None if the note is deleted

    @property
    def is_moved_with_earlier_text(self) -> bool:
        """Whether the note gets both its earlier name and an earlier text back."""
        return self.new_name is not None and self.before != self.sha256


class LeftAsIs(Value):
    """A note whose changes were not undone, and why."""

    name: str
    why: str


class UndoneMany(Value):
    """All changes of an author since a time, undone as one change, or a preview of that.

    `version` is that change; "" in a preview. `notes` are undone, `left` are not. `plan` identifies
    exactly these changes: a caller who passes the plan of a preview is refused if it differs by
    then.
    """

    by: str
    since: str
    version: str
    notes: tuple[UndoneNote, ...]
    left: tuple[LeftAsIs, ...]
    plan: str


class HistoryEntry(Value):
    """A change of one note, or of several `notes` at once, from our history or from git.

    `version` is its id, in git the first digits of the commit. `name` is the note before the
    change, `new_name` its name after a move, else None. `op` is "create", "update", "move",
    "delete", "undo", "restore" or "recovered" (found after a crash). `before` and `sha256` are the
    hashes of the text before and after it; None for no note. `diff` is None if the caller did not
    ask for it, or if one of the texts is lost. `commit` is the git commit that contains the change,
    None if none is known. `source` says which history has it. `kind` says whether a person or an
    agent made the change; "" for a commit of git. `group` is the version of the first change of the
    same operation, in git `version`. `session` is an id that all changes of one session of a client
    share; "" if it is not known. `sources` are up to 10 names of notes, and addresses, that were
    read in the session before the change: those that were read, latest first, then those that a
    search found. Notes that the caller may not see are left out.
    """

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
    kind: Literal["human", "agent", ""] = ""
    group: str = ""
    session: str = ""
    sources: tuple[str, ...] = ()


class BlamedLine(Value):
    """A line of a note, and who changed it last. `when` is a time in UTC; "" if not known."""

    number: int
    text: str
    kind: Literal["human", "agent", "unknown"]
    who: str
    when: str


class Difference(Value):
    """The difference between two texts of one note, or of two notes.

    `name` and `new_name` are the notes of the old and the new text. `diff` is in the unified
    format, "" for equal texts. `doubt` says what is uncertain about it; "" if nothing is.
    """

    name: str
    new_name: str
    before: str  # a version, a date, or another description of the text
    after: str
    diff: str
    doubt: str = ""


class Restored(Value):
    """A note that has an earlier text again: that of the version or date `at`.

    `changed` is False if it already had this text. `previous_sha256` is the hash of the text before
    that; None if the note did not exist. Undoing `version` reverses the change.
    """

    name: str
    sha256: str
    previous_sha256: str | None
    version: str
    at: str
    changed: bool
    warnings: tuple[str, ...] = ()


class ConflictCopy(Value):
    """A file that a sync program or git left beside a note that was changed in two places.

    `name` and `path` are those of the copy, `of` and `original` the name and the path of the note.
    `maker` is the program that made the copy.
    """

    name: str
    path: str
    of: str
    original: str
    maker: str


class ConflictMerge(Value):
    """The result of merging a note and a conflict copy of it; nothing is written yet.

    `clean` says that the changes of the two do not overlap; `conflicts` counts the places where
    they do, which are marked in `text`. `diff` is what the merge changes in the note, or how the
    two differ if there is a `problem`. `note_sha256` and `copy_sha256` are the hashes of the two
    texts. `problem` says why they cannot be merged; "" if they can be.
    """

    copy: ConflictCopy
    text: str | None  # None if there is a `problem`
    base: str  # the version from which both probably come, "" if none is known
    clean: bool
    conflicts: int
    diff: str
    note_sha256: str
    copy_sha256: str
    problem: str = ""


class ConflictMerged(Value):
    """A conflict copy that was merged into its note, or dropped.

    `name` is the note, `copy` the name of the copy, and `sha256` the hash of the note now.
    `changed` is False if the copy added nothing to the note. Undoing `version` restores both files.
    """

    name: str
    copy: str
    sha256: str
    version: str
    changed: bool
    warnings: tuple[str, ...] = ()


class OwnFile(Value):
    """A file or folder in `.simplemem/`, and whether it can be deleted without a loss.

    `holds` says what is in it.
    """

    path: str
    holds: str
    can_be_rebuilt: bool


class Finding(Value):
    """A problem that the doctor found.

    `check` is the check that found it, `path` the note or file. `line` is 0 if the problem is in no
    line. `hint` says what to do, `candidates` are the notes that an unresolved link may mean, and
    `fix` says what fixing would do; each is empty if there is nothing to say.
    """

    check: str
    level: Literal["error", "warning", "note"]
    path: str
    message: str
    hint: str = ""
    line: int = 0
    candidates: tuple[str, ...] = ()
    fix: str = ""


class NoteFix(Value):
    """The fixes of one note: `what` has a sentence for each, `diff` shows all of them."""

    path: str
    what: tuple[str, ...]
    diff: str
    sha256: str  # before
    text: str  # after


class FixPlan(Value):
    """What the doctor found, and the changes that fix it."""

    findings: tuple[Finding, ...]
    left: tuple[Finding, ...]  # those that the changes do not fix
    changes: tuple[NoteFix, ...]
    problems: tuple[str, ...] = ()  # why some fixes are not possible


class FixResult(Value):
    """The notes that were fixed, as one change. `version` is "" if no note was changed."""

    version: str
    changed: tuple[str, ...]
    warnings: tuple[str, ...] = ()
