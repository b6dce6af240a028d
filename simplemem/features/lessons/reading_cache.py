"""Readings of lessons that were compared: a lesson is read again only after a change."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.statements import Reading, read_statements


class ReadingCache:
    """Guards the last reading of each lesson, by path, with the hash of the note that was read."""

    def __init__(self) -> None:
        """Make an empty cache."""
        self._readings: dict[str, tuple[str, Reading]] = {}

    def __len__(self) -> int:
        """Return how many readings are kept."""
        return len(self._readings)

    def read(self, lessons: Sequence[Lesson], existing: Collection[str]) -> list[Reading]:
        """Return what lessons say, in their order.

        `existing` are the paths of all lessons. Readings of notes that are neither there nor among
        `lessons` are dropped: they were deleted or moved.
        """
        readings = [self._reading_of(lesson) for lesson in lessons]

        read_paths = {lesson.path for lesson in lessons}
        for path in list(self._readings):
            if path not in existing and path not in read_paths:
                self._readings.pop(path, None)
        return readings

    def _reading_of(self, lesson: Lesson) -> Reading:
        """Return what a lesson says. A note without a hash is read each time."""
        sha256, reading = self._readings.get(lesson.path, ("", None))
        if reading is None or not lesson.sha256 or sha256 != lesson.sha256:
            reading = read_statements(lesson)
            self._readings[lesson.path] = (lesson.sha256, reading)
        return replace(reading, lesson=lesson)
