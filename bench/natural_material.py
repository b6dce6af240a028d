"""The natural material of `tests/data/natural` as values: what was said, and what it meant.

`tests/data/natural/README.md` describes the files and how they were made. A half is read as a
whole. This module reads files and decides nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

ROOT: Final = Path(__file__).parents[1] / "tests" / "data" / "natural"
Half = Literal["development", "held_out"]
HALVES: Final[tuple[Half, ...]] = ("development", "held_out")


class FactId(NamedTuple):
    """A fact of the annotation: the number of its statement, and its place there."""

    statement: int
    place: int


@dataclass(frozen=True)
class GoldFact:
    """A fact that is true once its statement was made, as the annotation has it."""

    id: FactId
    subject: str
    key: str
    value: str
    since: str  # a date, or as much of one as was said; "" if nothing was said
    until: str
    replaces: tuple[FactId, ...]  # the facts that it makes outdated

    @property
    def ends_at(self) -> datetime | None:
        """The end of the last day on which the fact holds, None if no whole date was said."""
        try:
            last_day = date.fromisoformat(self.until)
        except ValueError:
            return None
        return datetime.combine(last_day, datetime.min.time()) + timedelta(days=1)


@dataclass(frozen=True)
class Statement:
    """A message of a person to an assistant, with what it states."""

    number: int
    at: datetime
    text: str
    kinds: frozenset[str]
    facts: tuple[GoldFact, ...]
    forgets: tuple[FactId, ...]
    is_worth_storing: bool

    @property
    def is_noise(self) -> bool:
        """Whether a memory should keep nothing of it. A wish to forget is no noise."""
        return not self.is_worth_storing and "forget" not in self.kinds


@dataclass(frozen=True)
class Person:
    """The statements of one person in the order of their times."""

    id: str
    language: str
    statements: tuple[Statement, ...]

    def facts(self) -> Iterator[GoldFact]:
        """Yield the facts of all statements in their order."""
        for statement in self.statements:
            yield from statement.facts


@dataclass(frozen=True)
class Exchange:
    """A message of the user and the assistant's reply, and the subject of the message."""

    turn_numbers: tuple[int, ...]  # of the message first, then of what the assistant answered
    at: datetime
    message: str
    response: str  # "" if the user wrote again before an answer
    topic: str
    is_change: bool  # the exchange before has another subject
    is_digression: bool


@dataclass(frozen=True)
class Chat:
    """A conversation of a user with an assistant about several subjects."""

    id: str
    language: str
    exchanges: tuple[Exchange, ...]
    labels: dict[str, str]  # of topics, by their ids


@dataclass(frozen=True)
class ConstraintItem:
    """A message that may state what the user must not or does not want."""

    id: str
    language: str
    at: datetime
    text: str
    kind: str  # "constraint", "preference" or "neither"
    rule: str  # in English; "" if there is none
    withdraws: str  # the id of an item that no longer holds, or ""


@dataclass(frozen=True)
class Question:
    """A question about a chat or a person, in other words than theirs."""

    id: str
    chat: str  # the id of the chat it is about, or ""
    person: str  # the id of the person it is about, or ""
    text: str
    answer: str
    evidence: tuple[int, ...]  # numbers of turns or of statements
    outdated: str  # an earlier answer, "" if there was none
    is_answerable: bool


@dataclass(frozen=True)
class Material:
    """All items of one half."""

    chats: tuple[Chat, ...]
    people: tuple[Person, ...]
    constraints: tuple[ConstraintItem, ...]
    questions: tuple[Question, ...]


def read_material(half: Half) -> Material:
    """Return a half of the material. Raises FileNotFoundError if it is not there."""
    return read_folder(ROOT / half)


def read_folder(folder: Path) -> Material:
    """Return the material in a folder. Raises FileNotFoundError if a file is not there."""
    chats = [_read_chat(file) for file in _items_in(folder / "chats")]
    people = [_read_person(file) for file in _items_in(folder / "statements")]
    items = _read(folder / "constraints.json")["items"]
    gold_items = _read(folder / "constraints.gold.json")["items"]
    questions = _read(folder / "questions.json")["questions"]
    return Material(
        chats=tuple(chats),
        people=tuple(people),
        constraints=tuple(_read_constraints(items, gold_items)),
        questions=tuple(_read_question(row) for row in questions),
    )


def _items_in(folder: Path) -> list[Path]:
    """Return the files of a folder that have an annotation beside them, in order."""
    files = sorted(folder.glob("*.json"))
    return [file for file in files if not file.name.endswith(".gold.json")]


def _read(file: Path) -> Any:
    return json.loads(file.read_text(encoding="utf-8"))


def _read_gold(file: Path) -> Any:
    return _read(file.with_name(f"{file.stem}.gold.json"))


def _read_chat(file: Path) -> Chat:
    """Return a chat whose turns are joined to exchanges.

    A message is a user's turn. The assistant's turns up to the user's next one answer it, joined by
    blank lines. What the assistant says before the user's first turn is left out.
    """
    chat = _read(file)
    gold = _read_gold(file)
    gold_turns = {turn["n"]: turn for turn in gold["turns"]}

    exchanges: list[Exchange] = []
    numbers = list(range(len(chat["turns"])))
    for number in numbers:
        if chat["turns"][number]["role"] != "user":
            continue
        turn = gold_turns[number]
        answers = _answers_to(chat["turns"], number)
        topic = turn["topic"]
        exchanges.append(
            Exchange(
                turn_numbers=(number, *answers),
                at=datetime.fromisoformat(chat["turns"][number]["time"]),
                message=chat["turns"][number]["text"],
                response="\n\n".join(chat["turns"][answer]["text"] for answer in answers),
                topic=topic,
                is_change=bool(exchanges) and exchanges[-1].topic != topic,
                is_digression=turn["digression"],
            )
        )
    labels = {topic["id"]: topic["label"] for topic in gold["topics"]}
    return Chat(chat["id"], chat["language"], tuple(exchanges), labels)


def _answers_to(turns: Sequence[Any], number: int) -> list[int]:
    """Return the numbers of the assistant's turns between a turn and the user's next one."""
    answers = []
    for later in range(number + 1, len(turns)):
        if turns[later]["role"] == "user":
            break
        answers.append(later)
    return answers


def _read_person(file: Path) -> Person:
    person = _read(file)
    gold_statements = _read_gold(file)["statements"]
    statements = []
    for row, gold in zip(person["statements"], gold_statements, strict=True):
        number = gold["n"]
        facts = []
        for place, fact in enumerate(gold["facts"]):
            facts.append(_read_fact(FactId(number, place), fact))
        statements.append(
            Statement(
                number=number,
                at=datetime.fromisoformat(row["date"]),
                text=row["text"],
                kinds=frozenset(gold["kinds"]),
                facts=tuple(facts),
                forgets=_read_ids(gold.get("forgets")),
                is_worth_storing=gold["store"],
            )
        )
    return Person(person["person"], person["language"], tuple(statements))


def _read_fact(fact_id: FactId, row: Any) -> GoldFact:
    return GoldFact(
        id=fact_id,
        subject=row["subject"],
        key=row["key"],
        value=str(row["value"]),
        since=str(row["since"] or ""),
        until=str(row["until"] or ""),
        replaces=_read_ids(row["replaces"]),
    )


def _read_ids(value: Any) -> tuple[FactId, ...]:
    """Return the facts that an annotation names: none, one pair of numbers, or a list of pairs."""
    if not value:
        return ()
    pairs = value if isinstance(value[0], list) else [value]
    return tuple(FactId(*pair) for pair in pairs)


def _read_constraints(items: Sequence[Any], gold_items: Sequence[Any]) -> Iterator[ConstraintItem]:
    gold_by_id = {gold["id"]: gold for gold in gold_items}
    for item in items:
        gold = gold_by_id[item["id"]]
        yield ConstraintItem(
            id=item["id"],
            language=item["language"],
            at=datetime.fromisoformat(item["date"]),
            text=item["text"],
            kind=gold["kind"],
            rule=gold["rule"] or "",
            withdraws=gold["withdraws"] or "",
        )


def _read_question(row: Any) -> Question:
    about = row["of"]
    chat = about.removeprefix("chat ") if about.startswith("chat ") else ""
    return Question(
        id=row["id"],
        chat=chat,
        person="" if chat else about,
        text=row["question"],
        answer=str(row["answer"]),
        evidence=tuple(row["evidence"]),
        outdated=str(row["outdated"] or ""),
        is_answerable=row["answerable"],
    )
