"""The arguments with which an agent says what it understood of a text, beside the text itself.

Tools that store what users say have them. All of them are optional.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from simplemem.features.agent_statements import (
    AgentFact,
    AgentStatements,
    check_statements,
    read_limit,
)
from simplemem.tools.arguments import Arguments, Several, about

_MAX_ITEMS: Final = 50


def _check_date(text: str) -> str:
    """Return a text that is a date, or empty. Raises ValueError for any other, which is reported.

    It is a year, a month, a day or a time in ISO 8601.
    """
    if text.strip() and read_limit(text) is None:
        raise ValueError("must be a date such as 2026-03-01, 2026-03 or 2026-03-01T09:00:00Z")
    return text


_Date = Annotated[str, AfterValidator(_check_date)]


class FactIn(Arguments):
    """Something the user stated, as you read it."""

    key: str
    value: str
    subject: Annotated[str, about("if not the user")] = ""
    since: _Date = ""
    until: _Date = ""
    replaces: Annotated[Several[str], about("ids of facts it makes outdated")] = Field(
        default_factory=list
    )

    def as_agent_fact(self) -> AgentFact:
        """Return the fact with its dates as times."""
        return AgentFact(
            key=self.key,
            value=self.value,
            subject=self.subject,
            since=read_limit(self.since),
            until=read_limit(self.until, is_end=True),
            replaces=self.replaces,
        )


FactsIn = Annotated[Several[FactIn], Field(max_length=_MAX_ITEMS), about("facts the user stated")]
ConstraintsIn = Annotated[
    Several[str],
    Field(max_length=_MAX_ITEMS),
    about("what always applies: 'strictly vegetarian'"),
]
PreferencesIn = Annotated[
    Several[str], Field(max_length=_MAX_ITEMS), about("such as 'tea to coffee'")
]
UserNameIn = Annotated[str, about("if the user stated it")]


def statements_of(
    facts: Iterable[FactIn],
    constraints: Iterable[str],
    preferences: Iterable[str],
    user_name: str,
) -> AgentStatements:
    """Return the arguments of a call as what the agent states.

    Raise Invalid or TooLong if one of them cannot be stored.
    """
    agent_facts = [fact.as_agent_fact() for fact in facts]
    return check_statements(agent_facts, constraints, preferences, user_name)
