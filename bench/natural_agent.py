"""An agent that understood everything, and says it: the arguments that it passes beside a text.

What it understood is what the annotation says. It passes an argument only if the tool has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from bench.natural_material import ConstraintItem, FactId, GoldFact, Person, Statement
from bench.tool_caller import ToolCaller

_DATE: Final = re.compile(r"\d{4}(-\d\d){0,2}")  # other dates are in words, which no tool takes
_THE_USER: Final = "user"


def agent_speaker(
    call: ToolCaller, person: Person, statement: Statement, known: Mapping[FactId, str]
) -> dict[str, Any] | None:
    """Return the arguments of `add_memory` for a statement, or None if it should not be stored.

    `known` has the ids of the memories of earlier facts. A wish to forget is passed as a text.
    """
    if statement.is_noise:
        return None
    arguments: dict[str, Any] = {"content": statement.text, "user_id": person.id}
    today = f"{statement.at:%Y-%m-%d}"
    facts = [_fact_argument(fact, known, today) for fact in statement.facts]
    if facts and "facts" in call.arguments_of("add_memory"):
        arguments["facts"] = facts
    return arguments


def _fact_argument(fact: GoldFact, known: Mapping[FactId, str], today: str) -> dict[str, Any]:
    """Return a fact as an agent passes it, without what is empty.

    An appointment is known from now on, so that a beginning after today is left out.
    """
    since = _date(fact.since)
    argument: dict[str, Any] = {
        "key": fact.key,
        "value": fact.value,
        "subject": "" if fact.subject == _THE_USER else fact.subject,
        "since": since if since <= today else "",
        "until": _date(fact.until),
        "replaces": [known[fact_id] for fact_id in fact.replaces if fact_id in known],
    }
    return {name: value for name, value in argument.items() if value}


def _date(text: str) -> str:
    return text if _DATE.fullmatch(text) else ""


def agent_constraint(call: ToolCaller, item: ConstraintItem) -> dict[str, Any]:
    """Return the arguments of `store_conversation` for an item, with the rule that it states."""
    arguments: dict[str, Any] = {"message": item.text}
    names = {"constraint": "constraints", "preference": "preferences"}
    name = names.get(item.kind, "")
    if name in call.arguments_of("store_conversation"):
        arguments[name] = [item.rule]
    return arguments
