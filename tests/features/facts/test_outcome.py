"""What a new fact does to earlier ones: which gets another version, and which is replaced."""

from __future__ import annotations

from datetime import UTC, datetime

from simplemem.features.fact import Fact, Slot
from simplemem.features.facts.comparing import Decision
from simplemem.features.facts.outcome import outcome_of, version_of, without_past_update
from simplemem.features.facts.reconciling import Verdict
from simplemem.features.facts.stated import StatedFact

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
MAY = datetime(2026, 5, 1, tzinfo=UTC)
JULY = datetime(2026, 7, 1, tzinfo=UTC)


def stated(key: str, value: str, category: str = "agent") -> StatedFact:
    return StatedFact(key, value, category, f"{key} is {value}", "agent", 0.9)


def earlier(key: str, value: str, problem: str = "") -> Fact:
    return Fact(
        path=f"facts/{key}.md",
        sha256="",
        id=key,
        statement=f"{key} is {value}",
        scope="default",
        slot=Slot("", key.replace("_", " "), value),
        valid_from=MARCH,
        problem=problem,
    )


def test_a_fact_with_the_same_key_gets_another_version() -> None:
    home = earlier("home", "Rome")

    version = version_of(stated("home", "Milan"), [home, earlier("dog", "Rex")], MAY)

    assert version.earlier is home
    assert version.at == MAY


def test_a_fact_with_another_key_or_an_unchangeable_note_gets_a_new_note() -> None:
    facts = [earlier("dog", "Rex"), earlier("home", "Rome", problem="two headers")]

    assert version_of(stated("home", "Milan"), facts, MAY).earlier is None


def test_a_planned_value_ends_the_current_one_when_it_begins() -> None:
    home = earlier("home", "Rome")

    version = version_of(stated("home", "Milan")._replace(since=JULY), [home], MAY)

    assert version.ending is home
    assert version.earlier is None
    assert version.stated.key == "home_from_2026_07_01"


def test_a_value_that_was_over_before_goes_into_the_history_at_its_end() -> None:
    until_april = datetime(2026, 4, 1, tzinfo=UTC)

    version = version_of(
        stated("home", "Oslo")._replace(until=until_april), [earlier("home", "Rome")], MAY
    )

    assert version.at == until_april


def test_a_credential_named_by_its_noun_is_the_only_one_with_that_noun() -> None:
    wifi = earlier("wifi_password", "Abc123")
    router = earlier("router_password", "Xyz789")
    new = stated("password", "New456", category="secret")

    assert version_of(new, [wifi], MAY).earlier is wifi
    assert version_of(new, [wifi, router], MAY).earlier is None


def test_a_fact_that_must_stay_is_left_for_review() -> None:
    home = earlier("home", "Rome")
    decision = Decision(Verdict("UPDATE", "UPDATES", 0, "rule:slot"), home, [])

    replacing = outcome_of(decision, [], may_replace=lambda fact: True)
    protecting = outcome_of(decision, [], may_replace=lambda fact: False)

    assert (replacing.event, replacing.target) == ("UPDATE", home)
    assert (protecting.event, protecting.target) == ("ADD", None)
    assert protecting.similar[0].fact is home


def test_what_is_over_replaces_nothing() -> None:
    decision = Decision(Verdict("UPDATE", "UPDATES", 0, "rule:slot"), earlier("home", "Rome"), [])

    assert without_past_update(decision).verdict == Verdict("ADD", rule="rule:slot")
    assert without_past_update(decision).target is None
