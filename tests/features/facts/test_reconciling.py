"""What becomes of a new fact: which gets another version, and which is replaced."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from simplemem.features.changes import read_change
from simplemem.features.fact import Fact, Slot
from simplemem.features.facts.comparing import Comparison
from simplemem.features.facts.known_facts import KnownFacts
from simplemem.features.facts.new_fact import NewFact
from simplemem.features.facts.outcome import Outcome
from simplemem.features.facts.reconciling import reconcile, reconcile_turn
from simplemem.features.facts.stated import StatedFact
from simplemem.features.facts.statement_rules import Verdict

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
MAY = datetime(2026, 5, 1, tzinfo=UTC)
JULY = datetime(2026, 7, 1, tzinfo=UTC)
REPLACES_HOME = Verdict("UPDATE", "UPDATES", 0, "rule:slot")


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


def told(new: StatedFact, facts: list[Fact]) -> Outcome:
    known = KnownFacts.at_turn(facts, MAY)
    known.versions = facts
    return reconcile(new.as_new_fact(), known, MAY)


def test_a_fact_with_the_same_key_gets_another_version() -> None:
    home = earlier("home", "Rome")

    outcome = told(stated("home", "Milan"), [home, earlier("dog", "Rex")])

    assert outcome.target is home
    assert outcome.at == MAY


def test_a_fact_with_another_key_or_an_unchangeable_note_gets_a_new_note() -> None:
    facts = [earlier("dog", "Rex"), earlier("home", "Rome", problem="two headers")]

    assert told(stated("home", "Milan"), facts).target is None


def test_of_two_facts_of_one_turn_with_one_key_both_replace_what_they_name() -> None:
    wifi = earlier("wifi_password", "Abc123")
    job = earlier("job", "teacher")
    home = earlier("home", "Rome")
    known = KnownFacts.at_turn([wifi, job, home], MAY)
    first = stated("password", "Zeta9", category="secret")._replace(replaces=("job",))
    second = stated("wifi_password", "Alpha1", category="secret")._replace(replaces=("home", "job"))

    known.versions = [wifi, job, home]
    outcome = reconcile(first.as_new_fact(), known, MAY)
    known.remove_replaced(job)
    known.versions = [replace(wifi, slot=Slot("", "wifi password", "Zeta9"), valid_from=MAY)]
    next_outcome = reconcile(second.as_new_fact(), known, MAY)

    assert (outcome.new.key, outcome.superseded) == ("wifi_password", [(job, MAY)])
    assert not next_outcome.is_in_force
    assert next_outcome.superseded == [(home, MAY)]
    assert not next_outcome.unknown_ids


def test_an_id_that_no_fact_has_is_unknown_also_if_a_turn_repeats_others() -> None:
    home = earlier("home", "Rome")
    known = KnownFacts.at_turn([home], MAY)
    known.remove_replaced(home)
    new = stated("days", "sailing")._replace(replaces=("home", "job"))

    assert reconcile(new.as_new_fact(), known, MAY).unknown_ids == ["job"]


def test_a_planned_value_ends_the_current_one_when_it_begins() -> None:
    home = earlier("home", "Rome")

    outcome = told(stated("home", "Milan")._replace(since=JULY), [home])

    assert outcome.ended == [(home, JULY)]
    assert outcome.target is None
    assert outcome.new.key == "home_from_2026_07_01"


def test_a_value_that_was_over_before_goes_into_the_history_at_its_end() -> None:
    until_april = datetime(2026, 4, 1, tzinfo=UTC)

    outcome = told(stated("home", "Oslo")._replace(until=until_april), [earlier("home", "Rome")])

    assert outcome.at == until_april


def test_a_value_that_only_goes_into_the_history_replaces_nothing() -> None:
    dog = earlier("dog", "Rex")
    home = earlier("home", "Rome")
    home_of_july = replace(home, valid_from=JULY)
    new = stated("home", "Oslo")._replace(replaces=("dog",))

    assert told(new, [home, dog]).superseded == [(dog, MAY)]
    assert not told(new, [home_of_july, dog]).superseded


def test_a_credential_named_by_its_noun_is_the_only_one_with_that_noun() -> None:
    wifi = earlier("wifi_password", "Abc123")
    router = earlier("router_password", "Xyz789")
    new = stated("password", "New456", category="secret")

    assert told(new, [wifi]).target is wifi
    assert told(new, [wifi, router]).target is None


def test_a_fact_that_the_turn_states_itself_is_neither_ended_nor_disputed() -> None:
    home = earlier("home", "Rome")
    known = KnownFacts.at_turn([home], MAY)
    change = read_change("I moved.")
    assert change is not None

    disputing = reconcile_turn([change], {}, known, MAY)
    ending = reconcile_turn([], {"home": MARCH}, known, MAY)
    known.mark_stated([home.path])
    stating = reconcile_turn([change], {"home": MARCH}, known, MAY)

    assert disputing.disputed == [(home, MAY)]
    assert ending.ended == [(home, MARCH)]
    assert stating == ([], [])


def test_a_fact_that_must_stay_is_left_for_review() -> None:
    home = earlier("home", "Rome")
    new = NewFact("I live in Milan")
    comparison = Comparison(REPLACES_HOME, home)

    replacing = reconcile(new, KnownFacts([home]), MAY, comparison)
    protecting = reconcile(new, KnownFacts([home], is_outside=True), MAY, comparison)

    assert (replacing.event, replacing.target) == ("UPDATE", home)
    assert (protecting.event, protecting.target) == ("ADD", None)
    assert protecting.candidates[0].fact is home


def test_what_is_over_replaces_nothing() -> None:
    home = earlier("home", "Rome")
    new = NewFact("I lived in Milan", valid_to=MARCH)

    outcome = reconcile(new, KnownFacts([home]), MAY, Comparison(REPLACES_HOME, home))

    assert (outcome.event, outcome.relation, outcome.rule) == ("ADD", None, "rule:slot")
    assert outcome.target is None


def restated(new: NewFact, bike: Fact, car: Fact) -> Outcome:
    """Return the outcome of a statement that says again what `bike` states, and replaces `car`."""
    comparison = Comparison(Verdict("NOOP", None, 0, "rule:same"), bike)
    return reconcile(new, KnownFacts([bike, car]), MAY, comparison)


def test_a_restated_fact_that_is_over_ends_what_it_replaces_when_the_agent_says() -> None:
    car = replace(earlier("car", "car"), valid_from=datetime(2025, 1, 1, tzinfo=UTC))
    bike = replace(earlier("bike", "bike"), valid_from=MAY)
    april = datetime(2026, 4, 1, tzinfo=UTC)
    new = NewFact(bike.statement, valid_to=april, decided_by="agent", replaces=("car",))

    with_since = restated(new._replace(valid_from=MARCH), bike, car)
    without_since = restated(new, bike, car)

    assert with_since.superseded == [(car, MARCH)]
    assert without_since.superseded == [(car, april)]
    assert with_since.ended == without_since.ended == [(bike, april)]
    assert (with_since.event, with_since.target, with_since.restated) == ("UPDATE", car, bike)


def test_a_restated_fact_of_which_no_time_is_said_ends_what_it_replaces_when_it_began() -> None:
    car = replace(earlier("car", "car"), valid_from=datetime(2025, 1, 1, tzinfo=UTC))
    bike = earlier("bike", "bike")

    outcome = restated(NewFact(bike.statement, decided_by="agent", replaces=("car",)), bike, car)

    assert outcome.superseded == [(car, MARCH)]
    assert not outcome.ended
    assert not outcome.takes_times
