"""What an agent says beside a text: dates, limits, and the earlier facts that it may mean."""

from __future__ import annotations

import pytest

from simplemem.errors import Invalid, TooLong
from simplemem.features.agent_statements import AgentFact, check_statements, read_limit
from simplemem.features.fact import Fact, Slot
from simplemem.features.facts.reviews import candidates_for, find_restated, review_request
from simplemem.note.dates import format_moment, parse_moment


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("2024", "2024-01-01T00:00:00Z", "2024-12-31T23:59:59Z"),
        ("2024-02", "2024-02-01T00:00:00Z", "2024-02-29T23:59:59Z"),
        ("2026-03-01", "2026-03-01T00:00:00Z", "2026-03-01T23:59:59Z"),
        (" 2026-03-01T09:30:00+02:00", "2026-03-01T07:30:00Z", "2026-03-01T07:30:00Z"),
    ],
)
def test_a_year_a_month_and_a_day_are_whole(text: str, first: str, last: str) -> None:
    start = read_limit(text)
    end = read_limit(text, is_end=True)
    assert start and format_moment(start) == first
    assert end and format_moment(end) == last


@pytest.mark.parametrize(
    "text",
    ["", "soon", "2026-00", "2026-13", "2025-02-29", "0000", "0000-01", "1.3.2026", "9" * 99],
)
def test_what_is_no_date_is_none(text: str) -> None:
    assert read_limit(text) is None and read_limit(text, is_end=True) is None


def test_texts_are_put_on_one_line() -> None:
    stated = check_statements(
        [AgentFact(" home\n town ", "Rome\r\nItaly", " Ruth ")], ["never\nFridays"], (), " Ana "
    )
    assert stated.facts[0][:3] == ("home town", "Rome Italy", "Ruth")
    assert (stated.constraints, stated.user_name) == (["never Fridays"], "Ana")


@pytest.mark.parametrize("wrong", [{"preferences": ["te\0a"]}, {"user_name": "\ud800"}])
def test_what_a_note_cannot_contain_is_refused(wrong: dict[str, str]) -> None:
    with pytest.raises(Invalid, match="character that a note cannot contain"):
        check_statements(**wrong)  # type: ignore[arg-type]


def test_what_is_too_long_is_refused() -> None:
    with pytest.raises(TooLong):
        check_statements(user_name="x" * 201)


def fact(id_: str, statement: str, relation: str = "", value: str = "", subject: str = "") -> Fact:
    """Return a fact that has held since 1 March 2026, with a slot if it has a relation."""
    slot = Slot(subject, relation, value) if relation else None
    since = parse_moment("2026-03-01T12:00:00Z")
    return Fact(f"{id_}.md", "", id_, statement, "ann", slot=slot, valid_from=since)


def test_a_new_fact_may_replace_those_about_the_same_topic_or_key() -> None:
    earlier = [
        fact("home", "I live in Hamburg.", "lives in", "Hamburg"),
        fact("code", "alarm code: 4711", "alarm code", "4711"),
        fact("ruth", "Ruth lives in Bath.", "lives in", "Bath", "Ruth"),
        fact("tea", "I like tea."),
    ]
    address = fact("new", "address: Leipzig", "address", "Leipzig")
    [candidate] = candidates_for(address, earlier)
    assert (candidate["id"], candidate["since"]) == ("home", "2026-03-01")

    office_code = fact("new", "office alarm code: 9", "office alarm code", "9")
    assert [found["id"] for found in candidates_for(office_code, earlier)] == ["code"]
    assert not candidates_for(fact("new", "I like coffee."), earlier)


def test_the_same_value_replaces_nothing() -> None:
    earlier = [fact("home", "I live in Leipzig.", "lives in", "Leipzig")]
    assert not candidates_for(fact("new", "home: leipzig", "home", "leipzig"), earlier)
    restated = find_restated(Slot("", "home", "Leipzig"), earlier)
    assert restated is not None and restated.id == "home"
    assert find_restated(Slot("Ruth", "home", "Leipzig"), earlier) is None
    assert find_restated(Slot("", "employer", "Leipzig"), earlier) is None


def test_a_review_says_in_one_line_what_may_be_replaced_and_how_to_confirm() -> None:
    [candidate] = candidates_for(
        fact("new", "home: Leipzig", "home", "Leipzig"),
        [fact("old", "I live\n in Hamburg.", "lives in", "Hamburg")],
    )
    hint = review_request("new", [candidate])["hint"]
    assert hint.startswith("This may replace: I live in Hamburg. (2026-03-01) [old].")
    assert "replaces" in hint and "\n" not in hint
