"""The figures of the natural material count what their definitions say."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

import pytest
from natural_examples import chat, fact, item, person, question, routed

from bench.natural_agent import agent_speaker
from bench.natural_chats import (
    count_kept,
    count_noticed_changes,
    count_right,
    count_right_decisions,
    measure_chats,
    topics_by_subject,
)
from bench.natural_constraints import measure_constraints
from bench.natural_figures import Count, content_stems, overlap
from bench.natural_material import Material, read_material
from bench.natural_statements import (
    StatementFigures,
    measure_statements,
    memory_of,
    outdated_facts,
)
from bench.tool_caller import own_clock


@pytest.fixture(autouse=True)
def _clock() -> Iterator[None]:
    with own_clock():
        yield


@pytest.fixture(scope="module")
def development() -> Material:
    return read_material("development")


# The material


def test_the_half_for_development_is_complete(development: Material) -> None:
    assert [chat.id for chat in development.chats] == ["01", "03", "05", "07", "09", "11"]
    assert [person.id for person in development.people] == ["p1", "p3", "p4", "p5"]
    assert all(len(person.statements) == 50 for person in development.people)
    assert len(development.constraints) == 60
    assert len(development.questions) == 50


def test_annotations_name_only_what_was_said_before(development: Material) -> None:
    for one in development.people:
        known = {fact.id for fact in one.facts()}
        for statement in one.statements:
            named = [*statement.forgets]
            for gold in statement.facts:
                named += gold.replaces
            assert all(fact_id in known for fact_id in named)
            assert all(fact_id.statement <= statement.number for fact_id in named)


def test_questions_have_evidence_in_the_material(development: Material) -> None:
    turns = {}
    for one in development.chats:
        turns[one.id] = {number for row in one.exchanges for number in row.turn_numbers}
    statements = {one.id: set(range(len(one.statements))) for one in development.people}
    for asked in development.questions:
        numbers = turns[asked.chat] if asked.chat else statements[asked.person]
        assert set(asked.evidence) <= numbers
        assert bool(asked.evidence) == asked.is_answerable


def test_the_last_day_of_a_fact_belongs_to_it() -> None:
    stay = fact(0, "stay", "Rome", until="2026-03-05")
    assert stay.ends_at == datetime.fromisoformat("2026-03-06")
    assert fact(0, "stay", "Rome", until="2026-09").ends_at is None


# Routing


def test_a_topic_stands_for_one_subject_only() -> None:
    swallowed = routed(("a", "x"), ("a", "x"), ("b", "x"), ("b", "x"), ("b", "x"))
    assert topics_by_subject(swallowed) == {"b": "x"}
    assert count_right(swallowed) == Count(3, 5)


def test_a_subject_is_in_one_topic_only() -> None:
    split = routed(("a", "x"), ("a", "x"), ("a", "y"), ("b", "z"))
    assert topics_by_subject(split) == {"a": "x", "b": "z"}
    assert count_right(split) == Count(3, 4)


def test_a_change_is_noticed_if_the_topic_changes_to_any_other() -> None:
    stored = routed(("a", "x"), ("b", "x"), ("a", "y"), ("a", "y"), ("b", "z"))
    assert count_noticed_changes(stored) == Count(2, 3)
    assert count_kept(stored) == Count(1, 1)


def test_decisions_are_right_if_they_continue_begin_or_resume_a_topic() -> None:
    right = routed(("a", "x"), ("a", "x"), ("b", "y"), ("a", "x"))
    assert count_right_decisions(right) == Count(3, 3)
    wrong = routed(("a", "x"), ("a", "y"), ("b", "x"), ("a", "z"))
    assert count_right_decisions(wrong) == Count(0, 3)


def test_an_agent_that_names_topics_routes_a_chat_right() -> None:
    talk = chat(
        ("garden", "The tomatoes have brown spots on their leaves."),
        ("garden", "Only the lower leaves, since the rain on Monday."),
        ("taxes", "I need the form for the advance payment."),
        ("garden", "They are plum tomatoes, if that matters."),
    )
    asked = question("What kind of tomatoes do I grow?", "plum", 6, of_chat=True)
    figures = measure_chats([talk], [asked], names_topics=True)
    assert figures.right == Count(4, 4)
    assert figures.changes == Count(2, 2)
    assert figures.found == figures.found_all == Count(1, 1)
    assert figures.turns_returned.number >= 1


# Statements


def test_a_fact_that_a_later_one_replaces_is_counted_as_superseded() -> None:
    moved = person(
        ("I live in Berlin.", fact(0, "home", "Berlin")),
        ("I moved to Lisbon.", fact(1, "home", "Lisbon", replaces=[(0, 0)])),
    )
    asked = question("Where do I live?", "Lisbon", 1, outdated="Berlin")
    figures = measure_statements([moved], [asked])
    assert figures.outdated == Count(1, 1)
    assert figures.wrong == Count(0, 2)
    assert figures.lost == Count(0, 2)
    assert figures.stale == figures.stale_anywhere == Count(0, 1)
    assert figures.found == Count(1, 1)


def test_superseding_what_nothing_replaces_is_counted_as_wrong() -> None:
    both_hold = person(
        ("I live in Berlin.", fact(0, "home", "Berlin")),
        ("I moved to Lisbon.", fact(1, "second home", "Lisbon")),
    )
    figures = measure_statements([both_hold], [])
    assert figures.outdated == Count(0, 0)
    assert figures.wrong == Count(1, 2)
    assert figures.lost == Count(1, 2)


def test_a_memory_is_doubted_if_it_is_disputed_though_it_holds() -> None:
    def figures_of(*replaces: tuple[int, int]) -> StatementFigures:
        sold = person(
            ("My car is a Volvo.", fact(0, "car", "Volvo")),
            ("I sold the Volvo.", fact(1, "sale", "sold", replaces=replaces)),
        )
        return measure_statements([sold], [])

    assert figures_of().doubted == Count(1, 2)
    assert figures_of((0, 0)).doubted == Count(0, 2)
    assert figures_of((0, 0)).outdated == Count(1, 1)


def test_an_outdated_memory_that_is_returned_first_is_stale() -> None:
    unread = person(
        ("The piano teacher comes at four.", fact(0, "piano lesson", "four")),
        ("Slot's half five from now.", fact(1, "piano lesson", "half five", replaces=[(0, 0)])),
    )
    asked = question("When does the piano teacher come?", "half five", 1, outdated="four")
    figures = measure_statements([unread], [asked])
    assert figures.outdated == Count(0, 1)
    assert figures.never_stored == Count(0, 1)
    assert figures.stale == Count(1, 1)


def test_what_is_not_worth_storing_is_noise_if_it_is_stored() -> None:
    talk = person(
        ("My car is a Volvo.", fact(0, "car", "Volvo")),
        ("Good morning!", None),
        ("Beans again for lunch, be still my heart.", None),
    )
    figures = measure_statements([talk], [])
    assert figures.kept == Count(1, 1)
    assert figures.noise.total == 2
    silent = measure_statements([talk], [], speaker=agent_speaker)
    assert silent.noise == Count(0, 2)


def test_a_fact_has_ended_in_time_if_it_is_current_until_its_last_day() -> None:
    stays = person(
        ("My parking permit is valid until 6 March 2026.", fact(0, "permit", "valid", until="2026-03-06")),
        ("My badge is valid.", fact(1, "badge", "valid", until="2026-03-05")),
        ("My desk is by the window.", fact(2, "desk", "by the window")),
    )  # fmt: skip
    figures = measure_statements([stays], [])
    assert figures.ended == Count(1, 2)
    assert figures.ended_wrongly == Count(0, 1)


def test_the_memory_of_a_fact_is_the_one_with_most_of_its_words() -> None:
    texts = {"1": "I am Kyle.", "2": "My sister Becky lives in Columbus.", "3": "Becky called."}
    assert memory_of(fact(0, "sister", "Becky, Columbus"), texts) == "2"
    assert memory_of(fact(0, "sister", "Becky"), {}) == ""


def test_outdated_facts_are_found_over_several_steps() -> None:
    steps = person(
        ("Five.", fact(0, "time", "five")),
        ("Six.", fact(1, "time", "six", replaces=[(0, 0)])),
        ("Seven.", fact(2, "time", "seven", replaces=[(1, 0)])),
    )
    facts = {gold.id: gold for gold in steps.facts()}
    found = outdated_facts([steps.statements[2]], facts)
    assert [gold.value for gold in found] == ["six", "five"]


# Constraints


def test_constraints_are_recognised_in_the_profile() -> None:
    figures = measure_constraints(
        [
            item(1, "constraint", "I'm allergic to walnuts.", rule="No walnuts."),
            item(2, "constraint", "Walls stay as they are, says the lease.", rule="No drilling."),
            item(3, "neither", "What is a walnut?"),
            item(4, "preference", "I prefer trains.", rule="Trains rather than planes."),
        ]
    )
    assert figures.constraints == Count(1, 2)
    assert figures.neither == Count(0, 1)
    assert figures.preferences == Count(1, 1)


def test_a_withdrawn_constraint_is_looked_for_after_its_withdrawal() -> None:
    figures = measure_constraints(
        [
            item(1, "constraint", "I'm vegan.", rule="Vegan food only."),
            item(2, "neither", "I'm no longer vegan.", rule="Not vegan any more.", withdraws=1),
        ]
    )
    assert figures.constraints == Count(1, 1)
    assert figures.withdrawn == Count(1, 1)
    assert figures.neither == Count(0, 0)


# Words


def test_words_are_compared_without_endings_accents_case_and_stop_words() -> None:
    assert content_stems("La Operación") == content_stems("operaciones")
    assert content_stems("the of y und le") == frozenset()
    assert overlap("Monday 8 June", "on June 8") == pytest.approx(2 / 3)
    assert overlap("", "anything") == 0
