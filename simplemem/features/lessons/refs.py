"""How a caller names a lesson: by its id, the name of its note, or the start of its id. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from simplemem.errors import Ambiguous, NotFound
from simplemem.features.lessons.lesson import Lesson

_MIN_ID_PREFIX: Final = 3  # characters


def find_lesson(lessons: Sequence[Lesson], ref: str) -> Lesson:
    """Return the lesson with this id, else with this name, else with an id that begins so.

    Raises NotFound if there is none, Ambiguous if there are several.
    """
    ref = ref.strip()
    matches = _matching_lessons(lessons, ref)
    if not matches:
        raise NotFound(
            f"Knowledge entry not found: {ref[:100]}",
            hint="Give an id, the first letters of an id, or the name of a note in knowledge/.",
        )
    if len(matches) > 1:
        raise Ambiguous(
            f"{ref[:60]} matches {len(matches)} entries",
            candidates=[f"{lesson.id} ({lesson.name})" for lesson in matches],
        )
    return matches[0]


def _matching_lessons(lessons: Sequence[Lesson], ref: str) -> list[Lesson]:
    """Return all lessons with this id, else with this name, else with an id that begins so."""
    by_id = [lesson for lesson in lessons if lesson.id == ref]
    if by_id:
        return by_id

    key = ref.removeprefix("[[").removesuffix("]]")
    key = key.removesuffix(".md").casefold()
    by_name = [lesson for lesson in lessons if _has_name(lesson, key)]
    if by_name or len(key) < _MIN_ID_PREFIX:
        return by_name
    return [lesson for lesson in lessons if lesson.id.casefold().startswith(key)]


def _has_name(lesson: Lesson, key: str) -> bool:
    """Return whether a lower-case key is the name of a lesson, with or without its folder."""
    name = lesson.name.casefold()
    return key in (name, name.rpartition("/")[2])
