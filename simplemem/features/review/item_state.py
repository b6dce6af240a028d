"""What an item shows of its note as it is now: later edits by people, and steps to undo alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.features.review.change_texts import ChangeTexts
from simplemem.features.review.folding import Item, Operation
from simplemem.features.review.inbox import (
    LaterEdit,
    NoteChange,
    NoteTexts,
    ReviewItem,
    ReviewStep,
    TextReview,
)
from simplemem.features.review.later_edits import LatestEdit, find_latest_edit
from simplemem.features.review.listing import Listing
from simplemem.features.review.remaining import remaining_text
from simplemem.features.review.text_review import has_lost_secret, review_texts
from simplemem.features.review.undo_by_merge import text_without_change
from simplemem.note.names import name_of, path_of

if TYPE_CHECKING:
    from simplemem.store import ExtensionAPI

_MAX_STEPS: Final = 20  # of an item that are tried whether they can be undone alone


class Glance(NamedTuple):
    """What the texts of an item show, and what a person did to its note since."""

    text: TextReview
    later_edit: LaterEdit | None


class ItemState:
    """Compares items with their notes as they are now. It guards no state of its own."""

    def __init__(self, extension: ExtensionAPI, texts: ChangeTexts) -> None:
        """Use the texts of changes, and the current notes of a store."""
        self._extension = extension
        self._texts = texts

    def glance_at(self, item: Item, listing: Listing) -> Glance:
        """Return what the texts of an item show.

        If a person changed the note since, that is only what is left of the change.
        """
        edit = self._latest_edit_of(item, listing)
        if edit is None:
            return Glance(self._texts.review_all(item.notes), None)

        texts = self._texts.read(item.notes[0])
        current = self._current_text(edit.path)
        later_edit = LaterEdit(
            who=edit.version.who,
            when=edit.version.when,
            op=edit.version.op,
            name=name_of(edit.path),
            had_secret=has_lost_secret(texts.old, texts.new, current),
        )
        if texts.problem:
            return Glance(TextReview(problem=texts.problem), later_edit)
        remaining = remaining_text(texts.old, texts.new, current)
        return Glance(review_texts(texts.old, remaining, current), later_edit)

    def texts_of(self, item: ReviewItem) -> tuple[NoteTexts, ...]:
        """Return the notes of an item with their texts before and after it.

        If a person changed the note since, the text after has only what is left of the change.
        """
        all_texts = tuple(self._texts.read(note) for note in item.notes)
        if item.later_edit is None:
            return all_texts
        [texts] = all_texts
        current = self._current_text(path_of(item.later_edit.name))
        remaining = remaining_text(texts.old, texts.new, current)
        return (NoteTexts(texts.note, texts.old, remaining, texts.problem),)

    def _latest_edit_of(self, item: Item, listing: Listing) -> LatestEdit | None:
        """Return the last change by a person of the note of an item, since the item.

        Returns None if there is none, if the note is again as the item left it, and for items of
        several notes.
        """
        note = item.notes[0]
        if len(item.notes) > 1 or note.after is None or item.is_undone:
            return None
        edit = find_latest_edit(listing.edits, path_of(note.current_name), item.last.number)
        if edit is None:
            return None

        current = self._extension.bytes_of(edit.path)
        if current is None:
            return edit if edit.version.op == "delete" else None
        is_same = hashlib.sha256(current).hexdigest() == note.after
        return None if is_same else edit

    def _current_text(self, path: str) -> str:
        """Return the text of a note as it is now; "" for no note."""
        data = self._extension.bytes_of(path)
        return "" if data is None else data.decode("utf-8", "replace")

    def steps_of(self, item: Item) -> Iterator[ReviewStep]:
        """Yield the operations of an item, if there are several.

        The latest 20 are tried whether they can be undone alone.
        """
        if len(item.operations) == 1:
            return
        first_tried = len(item.operations) - _MAX_STEPS
        for index, operation in enumerate(item.operations):
            is_tried = item.is_open and index >= first_tried
            yield ReviewStep(
                version=operation.version,
                when=operation.when,
                tool=operation.tool,
                reason=operation.reason,
                can_undo=is_tried and self._can_undo_alone(operation),
            )

    def _can_undo_alone(self, operation: Operation) -> bool:
        """Return whether a person can undo an operation so that what came after it stays."""
        note = operation.notes[0]
        current = self._extension.bytes_of(path_of(note.current_name))
        if current is None:
            return False
        if hashlib.sha256(current).hexdigest() == note.after:
            return True
        return self.merge_without(note, current) is not None

    def merge_without(self, note: NoteChange, current: bytes) -> str | None:
        """Return the current text of a note without one change of its text.

        Returns None if later changes overlap with it, if it created, moved or deleted the note, or
        if its texts are lost.
        """
        if note.new_name or note.before is None or note.after is None:
            return None
        texts = self._texts.read(note)
        if texts.problem:
            return None
        return text_without_change(texts, current.decode("utf-8", "surrogateescape"))
