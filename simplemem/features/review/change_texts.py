"""The texts of notes before and after a change, and what they show at a glance."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from simplemem.features.review.inbox import NoteChange, NoteTexts, TextReview
from simplemem.features.review.text_review import review_texts
from simplemem.note.names import path_of

if TYPE_CHECKING:
    from simplemem.store import ExtensionAPI

_MAX_REVIEWS: Final = 2000  # that are remembered
_MAX_NOTES: Final = 20  # of one item whose texts are compared for the list
_LOST_TEXT: Final = "the text is no longer kept"


class ChangeTexts:
    """Reads the texts of changes. Remembers the latest reviews of texts. It is thread-safe."""

    def __init__(self, extension: ExtensionAPI) -> None:
        """Read texts from `extension`. No review is remembered yet."""
        self._extension = extension
        self._reviews: OrderedDict[tuple[str | None, str | None], TextReview] = OrderedDict()
        self._guard = threading.Lock()

    def review_all(self, notes: Sequence[NoteChange]) -> TextReview:
        """Return what the texts of some notes show: the lines of the first, the warnings of all.

        Only the first 20 notes are compared. There must be at least one.
        """
        compared = notes[:_MAX_NOTES]
        reviews = [self._review(note) for note in compared]
        if len(reviews) == 1:
            return reviews[0]

        warnings = [
            f"{note.current_name}: {warning}"
            for note, review in zip(compared, reviews, strict=True)
            for warning in review.warnings
        ]
        problems = [review.problem for review in reviews if review.problem]
        return TextReview(
            words_added=sum(review.words_added for review in reviews),
            words_removed=sum(review.words_removed for review in reviews),
            lines=reviews[0].lines,
            has_more=True,
            warnings=tuple(warnings),
            problem=problems[0] if problems else "",
        )

    def _review(self, note: NoteChange) -> TextReview:
        """Return what the texts of a note show. Texts with the same hashes are read once."""
        key = (note.before, note.after)
        with self._guard:
            review = self._reviews.get(key)
        if review is not None:
            return review

        texts = self.read(note)
        if texts.problem:
            # It is not remembered, because the text may be found again.
            return TextReview(problem=texts.problem)

        review = review_texts(texts.old, texts.new)
        with self._guard:
            self._reviews[key] = review
            if len(self._reviews) > _MAX_REVIEWS:
                self._reviews.popitem(last=False)
        return review

    def read(self, note: NoteChange) -> NoteTexts:
        """Return the texts of a note before and after a change; a lost text is "".

        The `problem` of the result says if one is lost.
        """
        paths = (path_of(note.current_name), path_of(note.name))
        old = self._text_of(note.before, paths)
        new = self._text_of(note.after, paths)
        problem = _LOST_TEXT if old is None or new is None else ""
        return NoteTexts(note, old or "", new or "", problem)

    def _text_of(self, sha256: str | None, paths: Sequence[str]) -> str | None:
        """Return the text that has a hash; "" for no note, None if the text is lost."""
        if sha256 is None:
            return ""
        data = self._extension.text_of_version(sha256, *paths)
        return None if data is None else data.decode("utf-8", "replace")
