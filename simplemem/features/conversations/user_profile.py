"""The profile of the user: who the user is, what holds, what is planned, what happened lately.

It is made of the profile's note, the notes of facts, and what all turns state of the user
(`turn_statements.py`). Questions, opinions and credentials are in none of its parts. Changes
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Final

from simplemem.errors import SimplememError
from simplemem.features.answers import Constraint, ProfileStatement, UserProfile
from simplemem.features.conversations.service import ConversationService
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turn_statements import (
    UNDATED_PLAN,
    Statement,
    StatementReader,
    has_credential,
)
from simplemem.features.conversations.turns import Turn
from simplemem.features.fact import Fact
from simplemem.features.facts.decay import is_current
from simplemem.features.facts.key_notes import stated_at

_TASK_KEY: Final = "task_"  # how the key of a fact begins of which the user wants to be reminded
_MAX_INTERESTS: Final = 5  # topics that the profile lists
_MAX_TURNS: Final = 5_000  # the last ones, which are read for statements
_MAX_STATEMENTS: Final = 50  # of each part


def describe_user(
    service: ConversationService, at: datetime, *, by_model: bool = False
) -> UserProfile:
    """Return what is known of the user at a time, also as text for a prompt.

    With `by_model`, the configured model writes the text, unless a note that it is made of is
    private; without an answer of the model, the text is that of the rules. `method` says who wrote
    it. Raises SimplememError if the index cannot be brought up to date.
    """
    profile = service.profile()
    all_topics = service.topics(closed=True)
    open_topics = [topic for topic in all_topics if topic.status != "closed"]

    reader = StatementReader()
    for turn in _last_turns(all_topics):
        reader.read(turn)

    facts = _current_facts(service.items(Fact), at)
    tasks = [fact for fact in facts if fact.key.startswith(_TASK_KEY)]
    other_facts = [fact for fact in facts if not fact.key.startswith(_TASK_KEY)]
    holding = reader.current(at) + [_statement_of_fact(fact) for fact in other_facts]
    plans = reader.plans(at) + _recent_tasks(tasks, at)

    answer = UserProfile(
        name=profile.user_name,
        preferences=dict(profile.preferences),
        last_updated=profile.modified,
        topics_of_interest=_most_frequent_labels(open_topics),
        constraints=list(profile.constraints),
        identity=list(profile.identity),
        facts=_rows(holding),
        plans=_rows(plans),
        recent=_rows(reader.recent(at)),
        text="",
        method="rules",
    )
    answer["text"] = _render_profile(answer)
    if by_model:
        source_paths = {topic.path for topic in all_topics} | {fact.path for fact in facts}
        if profile.path:
            source_paths.add(profile.path)
        _write_by_model(service, answer, source_paths)
    return answer


def _write_by_model(
    service: ConversationService, answer: UserProfile, source_paths: set[str]
) -> None:
    """Replace the text of a profile by that of the configured model, and say so in `method`.

    Nothing changes without a model, if one of the notes at `source_paths` is private, or if the
    model has no usable answer. Raises SimplememError if the index cannot be brought up to date.
    """
    chat = service.chat
    if chat is None or not answer["text"]:
        return
    if service.extension.private_among(source_paths):
        return

    from simplemem.features.conversations.language_model import write_profile

    with suppress(SimplememError):
        text = write_profile(chat, answer["text"])
        if text:
            answer["text"] = text
            answer["method"] = chat.method


def _render_profile(profile: UserProfile) -> str:
    """Return a profile as Markdown for a prompt, "" if nothing is known.

    It has a heading for each part that is not empty, and a list item for each statement.
    """
    identity = list(profile["identity"])
    if profile["name"]:
        identity.insert(0, f"Name: {profile['name']}")

    parts = {
        "The user": identity,
        "Constraints to respect": [_constraint_line(row) for row in profile["constraints"]],
        "Preferences": list(profile["preferences"].values()),
        "What holds": [_statement_line(row) for row in profile["facts"]],
        "Planned": [_statement_line(row) for row in profile["plans"]],
        "Lately": [_statement_line(row) for row in profile["recent"]],
    }
    sections = []
    for heading, lines in parts.items():
        if lines:
            items = "\n".join(f"- {line}" for line in lines)
            sections.append(f"## {heading}\n{items}")
    return "\n\n".join(sections)


def _constraint_line(constraint: Constraint) -> str:
    """Return a constraint as a line, with how strict it is, its end, and its dispute."""
    line = f"{constraint['text']} ({constraint['severity']})"
    if "until" in constraint:
        line += f", until {constraint['until']}"
    if "disputed" in constraint:
        line += f", disputed since {constraint['disputed']}"
    return line


def _statement_line(row: ProfileStatement) -> str:
    """Return a statement as a line, with its days in parentheses."""
    days = row["since"]
    if "until" in row:
        days += f", until {row['until']}"
    if "disputed" in row:
        days += f", disputed since {row['disputed']}"
    return f"{row['text']} ({days})"


def _rows(statements: Iterable[Statement]) -> list[ProfileStatement]:
    """Return at most 50 statements as answers have them, the last said first.

    Disputed ones are behind all others.
    """

    def rank(statement: Statement) -> tuple[bool, datetime]:
        """Return what statements are ordered by, the highest first."""
        return statement.disputed is None, statement.at

    ordered = sorted(statements, key=rank, reverse=True)
    return [_row(statement) for statement in ordered[:_MAX_STATEMENTS]]


def _row(statement: Statement) -> ProfileStatement:
    """Return a statement as answers have it, with the days on which it was said and disputed.

    These are in local time.
    """
    row = ProfileStatement(text=statement.text, since=_format_local_day(statement.at))
    if statement.end is not None:
        row["until"] = f"{statement.end:%Y-%m-%d}"
    if statement.disputed is not None:
        row["disputed"] = _format_local_day(statement.disputed)
    return row


def _format_local_day(at: datetime) -> str:
    """Return the local day of a time, such as 2026-11-20."""
    return f"{at.astimezone():%Y-%m-%d}"


def _last_turns(topics: Sequence[Topic]) -> list[Turn]:
    """Return the last 5,000 turns of all topics, in the order of time."""
    turns = list[Turn]()
    for topic in topics:
        turns += topic.turns
    turns.sort(key=lambda turn: (turn.at, turn.id))
    return turns[-_MAX_TURNS:]


def _current_facts(facts: Iterable[Fact], at: datetime) -> list[Fact]:
    """Return the facts of conversations that hold at a time, without credentials.

    The names of other people and of things are left out too.
    """
    current = []
    for fact in facts:
        key = fact.key.replace("_", " ")
        is_secret = has_credential(f"{key} {fact.value}")
        is_name = fact.key.endswith("name")
        if is_current(fact, at) and not is_secret and not is_name:
            current.append(fact)
    return current


def _statement_of_fact(fact: Fact) -> Statement:
    """Return a fact of conversations as a statement such as "dentist phone: 030 1234"."""
    key = fact.key.replace("_", " ")
    return Statement(f"{key}: {fact.value}", stated_at(fact), fact.valid_to, fact.disputed)


def _recent_tasks(tasks: Iterable[Fact], at: datetime) -> list[Statement]:
    """Return the tasks of which the user wanted to be reminded in the last 60 days."""
    earliest = at - UNDATED_PLAN
    recent_tasks = [task for task in tasks if stated_at(task) >= earliest]
    return [Statement(task.value, stated_at(task), task.valid_to) for task in recent_tasks]


def _most_frequent_labels(topics: Iterable[Topic]) -> list[str]:
    """Return up to five labels, that with the most turns first.

    The turns of topics with the same label are added. Equal ones are in the order of topics. Labels
    without turns are left out.
    """
    turn_counts = Counter[str]()
    for topic in topics:
        turn_counts[topic.label] += len(topic.turns)
    return [label for label, count in turn_counts.most_common(_MAX_INTERESTS) if count]
