"""A lesson is read again only after a change, and a deleted one is not kept."""

from __future__ import annotations

import pytest

from simplemem.features.lessons.changes import LessonChange
from simplemem.features.lessons.reading_cache import ReadingCache
from simplemem.features.lessons.service import LessonService, lesson_service
from simplemem.store import EnhancedStore


@pytest.fixture
def service(plain_store: EnhancedStore) -> LessonService:
    return lesson_service(plain_store)


def test_readings_of_deleted_lessons_are_dropped(service: LessonService) -> None:
    cache = ReadingCache()
    kept = service.save("decision", "Idle sessions of the console end after 15 minutes.").lesson
    gone = service.save("insight", "The label printer is in the back office now.").lesson
    cache.read(service.lessons(), service.collection.items)
    assert len(cache) == 2

    service.delete(gone.id)
    [reading] = cache.read(service.lessons(), service.collection.items)
    assert reading.lesson.id == kept.id and len(cache) == 1


def test_readings_of_lessons_that_are_not_asked_for_are_kept(service: LessonService) -> None:
    cache = ReadingCache()
    first = service.save("decision", "Idle sessions of the console end after 15 minutes.").lesson
    service.save("insight", "The label printer is in the back office now.")
    cache.read(service.lessons(), service.collection.items)
    cache.read([service.find(first.id)], service.collection.items)
    assert len(cache) == 2


def test_a_changed_lesson_is_read_again(service: LessonService) -> None:
    cache = ReadingCache()
    lesson = service.save("decision", "Idle sessions of the console end after 15 minutes.").lesson
    [before] = cache.read([lesson], service.collection.items)
    change = LessonChange(content="Idle sessions of the console end after 60 minutes.")
    changed = service.update(lesson.id, change).lesson
    [after] = cache.read([changed], service.collection.items)
    assert "15" in before.clauses[0].text and "60" in after.clauses[0].text
    assert len(cache) == 1
