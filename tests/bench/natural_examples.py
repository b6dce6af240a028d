"""Small chats, people and constraints with annotations, whose right figures are plain to see."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from bench.natural_chats import RoutedExchange
from bench.natural_material import (
    Chat,
    ConstraintItem,
    Exchange,
    FactId,
    GoldFact,
    Person,
    Question,
    Statement,
)

START = datetime.fromisoformat("2026-03-02T09:00")


def chat(*rows: tuple[str, str]) -> Chat:
    """Return a chat of exchanges with these subjects and messages, four minutes apart."""
    exchanges: list[Exchange] = []
    for number, (subject, message) in enumerate(rows):
        exchange = Exchange(
            turn_numbers=(2 * number, 2 * number + 1),
            at=START + timedelta(minutes=4 * number),
            message=message,
            response="All right.",
            topic=subject,
            is_change=bool(exchanges) and exchanges[-1].topic != subject,
            is_digression=False,
        )
        exchanges.append(exchange)
    labels = {subject: f"Matters of {subject}" for subject, _ in rows}
    return Chat("01", "en", tuple(exchanges), labels)


def routed(*rows: tuple[str, str]) -> list[RoutedExchange]:
    """Return exchanges that were stored: the subject of each, and the topic where it was put."""
    stored = chat(*((subject, "…") for subject, _ in rows))
    items = []
    for number, (exchange, (_, block_id)) in enumerate(zip(stored.exchanges, rows, strict=True)):
        items.append(RoutedExchange(exchange, block_id, f"turn_{number}"))
    return items


def fact(
    statement: int,
    key: str,
    value: str,
    *,
    until: str = "",
    replaces: Sequence[tuple[int, int]] = (),
) -> GoldFact:
    """Return the only fact of a statement, about the user."""
    return GoldFact(
        id=FactId(statement, 0),
        subject="user",
        key=key,
        value=value,
        since="",
        until=until,
        replaces=tuple(FactId(*pair) for pair in replaces),
    )


def person(*rows: tuple[str, GoldFact | None]) -> Person:
    """Return a person who made statements, a day apart. One without a fact is not worth storing."""
    statements = []
    for number, (text, gold) in enumerate(rows):
        statement = Statement(
            number=number,
            at=START + timedelta(days=number),
            text=text,
            kinds=frozenset({"fact" if gold else "question"}),
            facts=(gold,) if gold else (),
            forgets=(),
            is_worth_storing=gold is not None,
        )
        statements.append(statement)
    return Person("p1", "en", tuple(statements))


def question(
    text: str,
    answer: str,
    evidence: int,
    *,
    outdated: str = "",
    of_chat: bool = False,
) -> Question:
    """Return a question about the chat or the person, which one turn or statement answers."""
    return Question(
        id="q1",
        chat="01" if of_chat else "",
        person="" if of_chat else "p1",
        text=text,
        answer=answer,
        evidence=(evidence,),
        outdated=outdated,
        is_answerable=True,
    )


def item(
    number: int, kind: str, text: str, *, rule: str = "", withdraws: int = 0
) -> ConstraintItem:
    """Return an item of the constraints; `withdraws` is the number of another one, 0 for none."""
    return ConstraintItem(
        id=f"c{number}",
        language="en",
        at=START + timedelta(days=number),
        text=text,
        kind=kind,
        rule=rule,
        withdraws=f"c{withdraws}" if withdraws else "",
    )
