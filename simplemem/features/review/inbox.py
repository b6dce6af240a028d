"""The values of a review: the inbox, its groups and items, and what became of an action."""

from __future__ import annotations

from typing import Literal

from simplemem.models import Value

LAST_LOOK = "last look"
"""As `since` of a filter: what was changed after the last visit of the person."""

PartKind = Literal["same", "added", "removed"]


class InboxFilter(Value):
    """Which changes an inbox has, for whom, and which part of the list.

    `person` is whose review it is: "kept" is recorded per person. `agent` is an author of the
    history, `folder` a folder of the vault, and `since` a date, a version or `LAST_LOOK`; "" stands
    for all. With `only_unreviewed`, what the person has kept and what is undone is left out; with
    `only_with_warnings`, also what has no warning. `position` is `Inbox.newer` or `Inbox.older` of
    another page; "" stands for the first one. With `whole_sessions`, a page has about `limit` items
    and ends between two sessions, unless a session has more than four times as many.
    """

    person: str
    agent: str = ""
    folder: str = ""
    since: str = ""
    only_unreviewed: bool = True
    only_with_warnings: bool = False
    limit: int = 25
    position: str = ""
    whole_sessions: bool = False


class Comment(Value):
    """What a person wrote about a change. `when` is a time in UTC."""

    who: str
    when: str
    text: str


class NoteChange(Value):
    """What became of one note.

    `name` is the note before, and `new_name` its name after a move, else None. `before` and `after`
    are the hashes of its text; None for no note.
    """

    op: str
    name: str
    new_name: str | None
    before: str | None
    after: str | None

    @property
    def current_name(self) -> str:
        """The name of the note after the change."""
        return self.new_name or self.name


class TextPart(Value):
    """A part of a line, and whether the change added or removed it."""

    kind: PartKind
    text: str


class ChangedLine(Value):
    """A line of a note that a change added, removed or changed, in parts."""

    parts: tuple[TextPart, ...]


class TextReview(Value):
    """What the texts before and after a change show at a glance.

    `lines` are the first changed lines; `has_more` says whether there are others. `warnings` are
    sentences without a full stop. `problem` says why the texts could not be compared; "" if they
    could.
    """

    words_added: int = 0
    words_removed: int = 0
    lines: tuple[ChangedLine, ...] = ()
    has_more: bool = False
    warnings: tuple[str, ...] = ()
    problem: str = ""

    @property
    def first_new_line(self) -> str:
        """The first of `lines` that the new text has, as it is there; "" if there is none."""
        for line in self.lines:
            text = "".join(part.text for part in line.parts if part.kind != "removed")
            if text.strip():
                return text
        return ""


class ReviewStep(Value):
    """One of several operations that an item consists of.

    `can_undo` says whether it can be undone and the others stay.
    """

    version: str
    when: str
    tool: str
    reason: str
    can_undo: bool


class LaterEdit(Value):
    """What became of the note of an item after it, if a person changed the note since.

    `who` is the person who did so last, `when` the time in UTC, and `op` what they did. `name` is
    the note as it is called now. `had_secret` says that the change added what looked like a secret,
    and that the note no longer has it.
    """

    who: str
    when: str
    op: str
    name: str
    had_secret: bool


class ReviewItem(Value):
    """One thing to review: an operation, or several changes that a session made to one note.

    `version` is the id of the first operation, and the permanent name of the item. `versions` are
    the ids of all its operations, oldest first; pass them to keep, undo or redo what was shown.
    `notes` are what became of each note, from the first operation to the last. `sources` are
    those of a `HistoryEntry`. `can_redo` is false if it was undone together with everything by its
    author. `is_new` says that the change was made after the last visit of the person. `steps` are
    the operations, oldest first, if there are several.

    If a person changed the note since, `later_edit` says so, and `text` has only what is left of
    the change in the note.
    """

    version: str
    versions: tuple[str, ...]
    op: str
    notes: tuple[NoteChange, ...]
    when: str
    who: str
    tool: str
    reason: str
    sources: tuple[str, ...]
    text: TextReview
    is_kept: bool
    is_undone: bool
    can_redo: bool
    is_new: bool
    comments: tuple[Comment, ...]
    steps: tuple[ReviewStep, ...] = ()
    later_edit: LaterEdit | None = None

    @property
    def name(self) -> str:
        """The name of the first note, after the change."""
        return self.notes[0].current_name

    @property
    def is_open(self) -> bool:
        """Whether the person still has to decide: the change is in effect, and not kept."""
        return not self.is_kept and not self.is_undone


class InboxGroup(Value):
    """What one agent changed in one session. `items` are those of the page, newest first.

    `started` and `ended` are the times of the first and the last change, in UTC. `versions` are the
    operations of the session that pass the filter and are still to be reviewed, also those on other
    pages.
    """

    who: str
    session: str
    started: str
    ended: str
    items: tuple[ReviewItem, ...]
    versions: tuple[str, ...]


class Inbox(Value):
    """A page of the changes by agents, grouped by agent and session, newest first.

    `left` counts the items that pass the filter and that the person still has to review, `total`
    all that pass it, and `new` those that are left and were made after the last visit of the
    person. `reviewed` counts what the person has kept or undone since that visit, `warnings` those
    of the latest 300 items left that have a warning. `newer` and `older` are the positions of the
    pages before and after, None if there is none. `agents` and `folders` are those of all changes,
    for a filter. `last_look` is when that visit ended; "" if this is the first one. `is_complete`
    is false if the log has older operations, which are not listed.
    """

    groups: tuple[InboxGroup, ...]
    left: int
    new: int
    total: int
    reviewed: int
    warnings: int
    newer: str | None
    older: str | None
    agents: tuple[str, ...]
    folders: tuple[str, ...]
    last_look: str
    is_complete: bool


class OpenChange(Value):
    """A change of a note that a person still has to review. `when` is a time in UTC."""

    version: str
    who: str
    when: str


class OpenNeighbours(Value):
    """Where an item stands among those of an inbox that the person still has to review.

    `position` counts from 1; it is 0 if the item itself is not among them. `total` counts all of
    them. `previous` and `next` are the versions of the items before and after; "" if there is none.
    """

    position: int
    total: int
    previous: str
    next: str


class SimilarNote(Value):
    """A note that resembles the one that was changed.

    `is_duplicate` says that the two have nearly the same words; `shared` is the share of words that
    both have, from 0 to 1. `passage` is the line of the note that fits the change best, as it is
    displayed; "" if none has words of it.
    """

    name: str
    title: str
    shared: float
    is_duplicate: bool
    passage: str = ""


class Contradiction(Value):
    """A statement of a change that may contradict another statement.

    `name` is the note that has the other one, `said` the words of the change, `other` those of that
    note, and `why` says in what they differ.
    """

    name: str
    said: str
    other: str
    why: str


class NoteTexts(Value):
    """A note of an item, with its texts before and after the change; "" for no note.

    `problem` says why a text is missing; "" if both are known.
    """

    note: NoteChange
    old: str
    new: str
    problem: str


class ItemDetails(Value):
    """What is looked up only for one item that a person opens.

    `texts` are the notes of the item with their texts before and after, and `same_note` the latest
    other changes of the first note that the person still has to review.
    """

    item: ReviewItem
    texts: tuple[NoteTexts, ...]
    similar: tuple[SimilarNote, ...]
    contradictions: tuple[Contradiction, ...]
    same_note: tuple[OpenChange, ...]


class ActionResult(Value):
    """What became of an action on one version.

    `what` says what was done. If nothing was done, `error` says why, and `hint` what to do.
    """

    version: str
    is_done: bool
    what: str = ""
    error: str = ""
    hint: str = ""
