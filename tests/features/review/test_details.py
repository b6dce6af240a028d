"""What is looked up for an opened item: duplicates, similar notes and possible contradictions."""

from __future__ import annotations

import pytest

from simplemem.features.review.service import ReviewService, review_of
from simplemem.models import AuthorArgs
from simplemem.store import EnhancedStore

AGENT: AuthorArgs = {"who": "claude", "tool": "create_memory", "kind": "agent", "session": "one"}
PERSON: AuthorArgs = {"who": "ida", "tool": "page", "kind": "human"}
PIPELINE = """The deployment pipeline runs on every push to main. It builds the image, runs the
tests and copies the result to the staging cluster. A person approves the step to production.
The database listens on port 5432 of the staging host.
"""


@pytest.fixture
def review(plain_store: EnhancedStore) -> ReviewService:
    return review_of(plain_store)


def test_a_new_note_that_nearly_equals_another_is_a_possible_duplicate(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    plain_store.create("ops/Deployment pipeline", PIPELINE, **PERSON)
    plain_store.create("Cooking", "Soup needs salt, time and a large pot.", **PERSON)
    saved = plain_store.create("How we deploy", PIPELINE.replace("person", "human"), **AGENT)
    [similar] = review.details(saved.version, "ida").similar
    assert (similar.name, similar.is_duplicate) == ("ops/Deployment pipeline", True)


def test_another_number_in_a_similar_note_is_a_possible_contradiction(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    plain_store.create("ops/Deployment pipeline", PIPELINE, **PERSON)
    text = "Staging notes.\n\nThe database listens on port 6543 of the staging host.\n"
    saved = plain_store.create("Staging", text, **AGENT)
    [contradiction] = review.details(saved.version, "ida").contradictions
    assert contradiction.name == "ops/Deployment pipeline"
    assert contradiction.why == "the other note says 5432 instead of 6543"
    assert "5432" in contradiction.other and "6543" in contradiction.said


def test_a_number_that_a_change_replaced_is_a_possible_contradiction(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    plain_store.create("Budget", "The budget for the trip is 2000 euros.\n", **PERSON)
    edit = [{"old": "2000", "new": "9000"}]
    saved = plain_store.update("Budget", edits=edit, **AGENT)
    [contradiction] = review.details(saved.version, "ida").contradictions
    assert contradiction.why == "the note said 2000 instead of 9000 before"


def test_a_negated_statement_is_a_possible_contradiction(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    plain_store.create("Ida", "Ida is allergic to peanuts and hazelnuts.\n", **PERSON)
    saved = plain_store.update(
        "Ida", edits=[{"old": "is allergic", "new": "is not allergic"}], **AGENT
    )
    [contradiction] = review.details(saved.version, "ida").contradictions
    assert contradiction.why == "the note said the opposite before"


def test_other_changes_of_the_same_note_are_named_until_they_are_decided(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    plain_store.create("Plan", "Alpha\n\nBeta\n\nGamma\n", **PERSON)
    first = plain_store.update("Plan", edits=[{"old": "Alpha", "new": "One"}], **AGENT)
    cursor: AuthorArgs = {**AGENT, "who": "cursor", "session": "two"}
    second = plain_store.update("Plan", edits=[{"old": "Gamma", "new": "Three"}], **cursor)
    plain_store.create("Other", "Text", **AGENT)

    [other] = review.details(first.version, "ida").same_note
    assert (other.version, other.who) == (second.version, "cursor")
    [other] = review.details(second.version, "ida").same_note
    assert (other.version, other.who) == (first.version, "claude")
    claude_later: AuthorArgs = {**AGENT, "session": "three"}
    moved = plain_store.move("Plan", "Project", **claude_later)
    versions = [other.version for other in review.details(first.version, "ida").same_note]
    assert versions == [moved.version, second.version]

    review.keep([first.version, moved.version], "ida")
    assert review.details(second.version, "ida").same_note == ()


def test_a_disputed_fact_that_links_to_the_note_is_named(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    saved = plain_store.create("Rex", "Rex is a dog of the neighbours.", **AGENT)
    plain_store.create("atoms/rex", "[[Rex]] is a cat.", {"status": "disputed"}, **PERSON)
    names = [found.name for found in review.details(saved.version, "ida").contradictions]
    assert names == ["atoms/rex"]


def test_a_deleted_note_has_details_too(plain_store: EnhancedStore, review: ReviewService) -> None:
    plain_store.create("Gone", "A text that is deleted soon.", **PERSON)
    saved = plain_store.delete("Gone", **AGENT)
    details = review.details(saved.version, "ida")
    assert details.item.op == "delete"
    assert "deleted soon" in details.texts[0].old and details.texts[0].new == ""


def test_a_similar_note_comes_with_its_line_that_fits_the_change_best(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    text = "# Deployment\n\nWe deploy on Mondays.\n\nA **deployment** to staging needs the port 5432.\n"
    plain_store.create("Deployment", text, **PERSON)
    saved = plain_store.create("Staging", "The deployment to staging uses the port 5432.", **AGENT)
    [similar] = review.details(saved.version, "ida").similar
    assert similar.passage == "A deployment to staging needs the port 5432."


def test_a_limit_that_a_linked_note_sets_otherwise_is_a_possible_contradiction(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    rule = "We do not launch when the mean wind is above **6 m/s**.\n\nBefore, 8 m/s was the limit."
    plain_store.create("Wind limit", rule, **PERSON)
    saved = plain_store.create("Checklist", "Forecast: wind below 8 m/s ([[Wind limit]])", **AGENT)
    [contradiction] = review.details(saved.version, "ida").contradictions
    assert contradiction.name == "Wind limit"
    assert contradiction.why == "that note says 6 m/s, and not 8 m/s"
    assert contradiction.other == "We do not launch when the mean wind is above 6 m/s."


def test_a_measurement_is_not_compared_with_those_of_linked_notes(
    plain_store: EnhancedStore, review: ReviewService
) -> None:
    plain_store.create("Descent", "The box comes down with a speed of 4.5 m/s.", **PERSON)
    saved = plain_store.create("Ring", "It lowers the speed of [[Descent]] by 1.4 m/s.", **AGENT)
    assert review.details(saved.version, "ida").contradictions == ()
