"""What sentences say of what, and which of them cannot both be right. Only forms that leave little doubt are read."""

from __future__ import annotations

import pytest

from simplemem.kinds.learned.slots import deny, differ, statements


def of(text: str):
    found = statements(text)
    assert len(found) == 1, found
    return found[0]


ONE_THING_TWO_VALUES = [
    ("Use Postgres for the billing store.", "We should use MySQL for the billing store."),
    ("The database of the billing service is Postgres.", "The database of the billing service is MySQL."),
    ("Aurora's owner is Ada Lovelace.", "The owner of Aurora is Grace Hopper."),
    ("The default log level is debug.", "The default log level is warning."),
    ("The cache defaults to memory", "The cache defaults to disk"),
    ("The gateway listens on 8080.", "The gateway listens on 9090."),
    ("Adopt pnpm as package manager", "Adopt yarn as package manager, since it is quick"),
]
NOT_AT_ODDS = [
    ("Use Postgres for the billing store.", "Use Postgres 16 for the billing store."),
    ("Use Postgres for the billing store.", "Use MySQL for the search index."),
    ("Aurora uses Postgres.", "Aurora uses Redis."),
    ("The owner of Aurora is Ada.", "The owner of Borealis is Grace."),
    ("Choose the .zip file to import.", "Choose the .one file to import."),
    ("Is the default log level debug?", "Is the default log level warning?"),
    ("Obsidian is an editor.", "Obsidian is free."),
    ("The default of x is not 5.", "The default of x is 6."),
]


@pytest.mark.parametrize(("one", "other"), ONE_THING_TWO_VALUES)
def test_one_thing_with_two_values_is_noticed(one: str, other: str) -> None:
    first, second = of(one).slot, of(other).slot
    assert first is not None and second is not None and first.subject == second.subject
    assert differ(first, second) and differ(second, first)


@pytest.mark.parametrize(("one", "other"), NOT_AT_ODDS)
def test_what_can_both_be_so_is_left_alone(one: str, other: str) -> None:
    slots = [statement.slot for text in (one, other) for statement in statements(text)]
    first, second = [*slots, None, None][:2]
    assert first is None or second is None or not differ(first, second)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Never use eval in templates.", "Always use eval in templates."),
        ("Retries are safe for payment calls.", "Retries are unsafe for payment calls."),
        ("Don't restart the worker during deploys.", "Restart the worker during deploys."),
        ("Feature flags work without a restart on staging.", "Feature flags work on staging with a restart."),
        ("The export endpoint must be enabled in production.", "The export endpoint must be disabled in production."),
    ],
)
def test_a_claim_and_its_denial_are_noticed(one: str, other: str) -> None:
    assert deny(of(one), of(other)) and deny(of(other), of(one))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Never use eval in templates.", "Never use eval inside templates."),
        ("Do not use eval in templates.", "Use eval in the build scripts of the docs."),
        ("It is not so.", "It is so."),
        ("Never disable the export endpoint.", "Always enable the export endpoint."),
    ],
)
def test_no_denial_is_seen_where_there_is_none(one: str, other: str) -> None:
    first, second = statements(one), statements(other)
    assert not first or not second or not deny(first[0], second[0])


def test_code_links_and_html_are_no_statements() -> None:
    text = "```\nuse a for b\n```\n\n<div style='x'></div>\n\nSee [the page](https://example.org/use?x=1)."
    assert [statement.slot for statement in statements(text)] in ([], [None])
