"""Which lessons are offered as a contradiction, with the reason, and which are not."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields
from typing import Any

import pytest
from linear import HOSTILE, grows_too_fast
from test_lesson_analysis import NOT_AT_ODDS, TWO_FACTS, lesson

from bench.lessons import offered_by_rules, offered_with_model, read_material, serve_model
from simplemem.features.lessons.analysis import Analysis, analysis_of
from simplemem.features.lessons.causes import trace_causes
from simplemem.features.lessons.description import LessonRelation
from simplemem.features.lessons.lesson import Lesson
from simplemem.features.lessons.service import lesson_service
from simplemem.features.lessons.wording import wording_of
from simplemem.store import EnhancedStore

Offers = Callable[..., list[dict[str, Any]]]

OFFERED = [
    (
        "Don't cache the price list in the browser of the shop.",
        "The price list of the shop is cached in the browser for an hour.",
        "one denies what the other says",
    ),
    (
        "Customer invoices are printed by the label printer in the back office.",
        "We got rid of the label printer; invoices are sent to customers by mail.",
        "one says it is over or replaced",
    ),
    (
        "Stop the scheduler before you restore the warehouse backup.",
        "The warehouse backup goes first: restore it before you stop the scheduler.",
        "they put the same steps in opposite orders",
    ),
    (
        "Audit logging of the admin console is on by default.",
        "Audit logging of the admin console is off by default, turn it on yourself.",
        "one says on, the other off",
    ),
    (
        "Idle sessions of the admin console end after 15 minutes.",
        "Idle sessions of the admin console end after 60 minutes, people complained.",
        "different numbers for the same thing",
    ),
    (
        "Batching the telemetry uploads cut the battery use of the tracker in half.",
        "Batching telemetry uploads made no difference to the battery use of the tracker.",
        "they say different things about its effect",
    ),
    (
        "The tracker reboots at night because the watchdog is too strict.",
        "The tracker reboots at night because of a short circuit in the charger.",
        "they name different causes",
    ),
    (
        "Frontend tests of the dashboard run in Jest.",
        "Frontend tests of the dashboard moved to Vitest in spring.",
        "the newer one says that something changed",
    ),
]

NOT_OFFERED = [
    # Two cases of a kind.
    (
        "Idle sessions of the admin console end after 15 minutes in staging.",
        "Idle sessions of the admin console end after 60 minutes in production.",
    ),
    # The denial holds under a condition.
    (
        "Never restore the warehouse backup unless the scheduler is stopped.",
        "Restore the warehouse backup with the scheduler script of the operators.",
    ),
    # A date is no amount.
    (
        "The audit of the admin console is on 3 May and takes the afternoon.",
        "The audit of the admin console is on 9 June and takes the afternoon.",
    ),
    # Both deny the same.
    (
        "Don't cache the price list in the browser of the shop.",
        "Never cache the price list of the shop in a browser or a proxy.",
    ),
    # A question says nothing.
    (
        "Should we cache the price list of the shop in the browser?",
        "Don't cache the price list in the browser of the shop.",
    ),
    # A cure is no contradiction of the trouble.
    (
        "A pool of sessions per worker crashed the telemetry database of the tracker.",
        "A proxy before the telemetry database of the tracker fixed the crashes of the worker.",
    ),
    # Two numbers of one unit that measure different things.
    (
        "Login tokens of the admin console expire after ten minutes.",
        "The clock of the login server was five minutes behind and the admin console failed.",
    ),
    # In a language without a wording, nothing is read.
    (
        "Die Preisliste wird im Browser der Kunden nie zwischengespeichert, das ist verboten.",
        "Die Preisliste wird im Browser der Kunden immer zwischengespeichert, das ist Pflicht.",
    ),
]


@pytest.fixture
def offers(plain_store: EnhancedStore) -> Offers:
    """Return a function: what is offered among some texts, written one day after the other."""

    def offer(*texts: str, **more: Any) -> list[dict[str, Any]]:
        lessons = [
            lesson(str(number), text, created=f"2026-11-{number + 1:02}T10:00:00", **more)
            for number, text in enumerate(texts)
        ]
        return Analysis(plain_store, lessons).offers([])

    return offer


@pytest.mark.parametrize(("one", "other", "reason"), OFFERED)
def test_a_near_pair_is_offered_with_the_reason(
    offers: Offers, one: str, other: str, reason: str
) -> None:
    (offer,) = offers(one, other)
    assert offer["reason"] == reason
    assert (offer["one"]["id"], offer["other"]["id"]) == ("0", "1")  # the older one first


@pytest.mark.parametrize(("one", "other"), [*NOT_OFFERED, *NOT_AT_ODDS, *TWO_FACTS])
def test_a_pair_that_can_both_hold_is_not_offered(offers: Offers, one: str, other: str) -> None:
    assert offers(one, other) == []


def test_a_solution_is_no_contradiction_of_the_error_before_it(offers: Offers) -> None:
    error = "The label printer of the back office crashes on long addresses."
    solution = "A shorter template fixed the label printer of the back office on long addresses."
    assert offers(error, solution, kind="solution") == []
    assert offers(solution, error, kind="solution") != []


def test_a_trouble_on_a_later_day_contradicts_its_cure(offers: Offers) -> None:
    cure = "A proxy before the telemetry database of the tracker fixed the crashes of the worker."
    trouble = "The proxy before the telemetry database of the tracker crashes every worker."
    assert offers(cure, trouble) != []


def test_a_pair_with_a_relation_is_not_offered(store: EnhancedStore) -> None:
    service = lesson_service(store)
    one, other = (service.save("decision", text).lesson for text in OFFERED[0][:2])
    assert len(analysis_of(store).offers([])) == 1
    service.link(one.id, other.id, "see_also")
    assert analysis_of(store).offers([]) == []


def test_most_contradictions_of_a_team_are_offered_and_few_others() -> None:
    material = read_material("development")
    by_rules = offered_by_rules(material).pairs
    right = by_rules & material.contradictory
    assert len(right) >= 0.6 * len(material.contradictory)
    assert len(by_rules - right) <= 0.15 * len(by_rules)

    with serve_model(material) as url:
        by_model = offered_with_model(material, url).pairs
    right = by_model & material.contradictory
    assert len(right) >= 0.9 * len(material.contradictory)
    assert len(by_model - right) <= 0.1 * len(by_model)


def test_no_pattern_takes_more_than_linear_time() -> None:
    wording = wording_of("")
    assert wording is not None
    patterns = [getattr(wording, field.name) for field in fields(wording)]
    patterns += wording.effects.values()
    for opposites in wording.opposites:
        patterns += [opposites.one, opposites.other]
    for pattern in patterns:
        if not isinstance(pattern, re.Pattern):
            continue
        for piece in [*HOSTILE, "moved a ", "not ", "first, ", "is "]:
            slow = grows_too_fast(lambda text, p=pattern: list(p.finditer(text)), piece, 4_000)
            assert not slow, (pattern.pattern, slow)


# -- groups


def test_groups_at_the_default_setting_are_lessons_about_one_thing(store: EnhancedStore) -> None:
    service = lesson_service(store)
    subjects: dict[str, str] = {}
    texts = {
        "printer": [
            "The label printer jams on thick paper.",
            "Clean the rollers of the label printer when paper jams.",
        ],
        "tax": [
            "Tax rates of invoices come from the country of the customer.",
            "An invoice without a country of the customer gets no tax rate.",
        ],
        "tracker": [
            "The battery of the tracker is empty after two days.",
            "Batched uploads save the battery of the tracker.",
        ],
        "hiring": ["New colleagues get a laptop on their first day."],
        "garden": ["Tomatoes need water in the morning."],
    }
    for subject, contents in texts.items():
        for content in contents:
            subjects[service.save("insight", content).lesson.id] = subject
    store.sync()
    themes = analysis_of(store).themes()
    assert len(themes) >= 2
    for theme in themes:
        assert len({subjects[member.id] for member in theme.members}) == 1


# -- chains


def chain_of(
    start: str, relations: dict[str, list[tuple[str, str]]], max_steps: int = 10
) -> list[tuple[str, str, str | None]]:
    """Return the id, the role and what it is of, of each step of a chain."""
    ids = sorted({*relations, *(target for pairs in relations.values() for _, target in pairs)})
    lessons: dict[str, Lesson] = {id_: lesson(id_) for id_ in ids}
    by_path = {
        lessons[id_].path: [LessonRelation(kind, lessons[target]) for kind, target in pairs]
        for id_, pairs in relations.items()
    }
    steps = trace_causes(lessons[start], list(lessons.values()), by_path, max_steps)
    return [(step.lesson.id, step.role, step.of and step.of.id) for step in steps]


def test_a_chain_begins_with_the_first_cause_and_names_what_fixed_each() -> None:
    relations = {
        "crash": [("caused_by", "leak")],
        "leak": [("caused by", "cache"), ("fixed_by", "patch")],
        "crash2": [],
        "crash_report": [("caused_by", "crash")],
        "restart": [("fixes", "crash")],
    }
    assert chain_of("crash", relations) == [
        ("cache", "cause", "leak"),
        ("leak", "cause", "crash"),
        ("patch", "fix", "leak"),
        ("crash", "entry", None),
        ("restart", "fix", "crash"),
        ("crash_report", "effect", "crash"),
    ]


def test_a_chain_of_a_fix_is_that_of_what_it_fixes() -> None:
    relations = {"patch": [("fixes", "leak")], "cache": [("causes", "leak")]}
    assert chain_of("patch", relations) == [
        ("cache", "cause", "leak"),
        ("leak", "entry", None),
        ("patch", "fix", "leak"),
    ]


def test_a_chain_ends_in_a_circle_and_after_the_steps_that_are_asked_for() -> None:
    circle = {"a": [("causes", "b")], "b": [("causes", "c")], "c": [("causes", "a")]}
    assert sorted(id_ for id_, _, _ in chain_of("a", circle)) == ["a", "b", "c"]
    line = {str(number): [("causes", str(number + 1))] for number in range(5)}
    assert [id_ for id_, _, _ in chain_of("2", line, max_steps=1)] == ["1", "2", "3"]
