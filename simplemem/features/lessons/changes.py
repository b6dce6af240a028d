"""What a caller changes in a lesson, as values that a note can have. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from simplemem.errors import Invalid
from simplemem.features.lessons.lesson import Lesson
from simplemem.features.text import clean_text
from simplemem.note.tag_changes import tags_for_new_note

DEFAULT_CONFIDENCE: Final = 0.7
"""The confidence of a new lesson if the caller gives none."""

_MAX_CHARACTERS: Final = 10_000  # of a content or a context


class LessonChange(NamedTuple):
    """New values for the parts of a lesson. None leaves a part as it is."""

    content: str | None = None
    context: str | None = None
    confidence: float | None = None
    verified: bool | None = None
    tags: tuple[str, ...] | None = None


def says_same(lesson: Lesson, new_lesson: Lesson) -> bool:
    """Return whether a lesson has the type and content of a new one, and no other context."""
    if not lesson.is_own or lesson.type != new_lesson.type:
        return False
    if lesson.content != new_lesson.content:
        return False
    return not new_lesson.context or lesson.context in ("", new_lesson.context)


def twin_to_update(twins: Sequence[Lesson], new_lesson: Lesson) -> Lesson | None:
    """Return the lesson to update: the first with the same context, else the oldest.

    `twins` are sorted by age. Returns None if all are superseded, or there are none.
    """
    current = [lesson for lesson in twins if not lesson.is_superseded]
    for lesson in current:
        if lesson.context == new_lesson.context:
            return lesson
    return current[0] if current else None


def changed_properties(lesson: Lesson, change: LessonChange) -> dict[str, Any]:
    """Return the properties that a change makes different, by key, with values for the note.

    They may be `tags`, `confidence` and `verified`.
    """
    properties: dict[str, Any] = {}
    if change.tags is not None and change.tags != lesson.tags:
        properties["tags"] = list(change.tags)
    if change.confidence is not None and change.confidence != lesson.confidence:
        properties["confidence"] = confidence_value(change.confidence)
    if change.verified is not None and change.verified != lesson.verified:
        properties["verified"] = change.verified
    return properties


def clean_change(change: LessonChange) -> tuple[LessonChange, list[str]]:
    """Return a change with clean texts and legal tags, and a warning per tag that was changed.

    Raises Invalid for an empty content, TooLong for a text over 10,000 characters.
    """
    warnings: list[str] = []
    if change.tags is not None:
        tags, warnings = legal_tags(change.tags)
        change = change._replace(tags=tuple(tags))
    if change.content is not None:
        change = change._replace(content=clean_lesson_text(change.content, "content"))
        if not change.content:
            raise Invalid("the content is empty", hint="delete_knowledge removes an entry.")
    if change.context is not None:
        change = change._replace(context=clean_lesson_text(change.context, "context"))
    return change, warnings


def legal_tags(tags: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return tags as a note can have them, each once, and a warning per changed tag."""
    legal: list[str] = []
    warnings: list[str] = []
    for tag in tags:
        try:
            new_tags, _ = tags_for_new_note([tag])
            legal += new_tags
        except Invalid as error:
            proposed = str(error.details.get("proposed", "tag"))
            legal.append(proposed)
            warnings.append(
                f"the tag {tag!r} was written as {proposed!r}:"
                " a tag has only letters, digits, _, - and /"
            )
    return list(dict.fromkeys(legal)), warnings


def confidence_value(confidence: float | None) -> float:
    """Return a confidence as it is written in a note: 1, not 1.0. None gives the default."""
    if confidence is None:
        return DEFAULT_CONFIDENCE
    if confidence in (0, 1):
        return int(confidence)
    return confidence


def clean_lesson_text(text: str, argument: str) -> str:
    """Return a text without blanks around it. `argument` is its name in messages of errors.

    Raises TooLong if it has more than 10,000 characters, and Invalid if a note cannot contain one
    of them.
    """
    hint = "Nothing was saved. Shorten the text, or create several entries and link them."
    return clean_text(text.strip(), argument, _MAX_CHARACTERS, hint)
