"""Collect what a model should know before it answers a message, within a budget of tokens.

Changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from heapq import nlargest
from typing import Any, Final

from simplemem.errors import TooLong
from simplemem.features.answers import (
    Constraint,
    ConversationRecall,
    FactOut,
    MessageContext,
    TurnOut,
)
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.profile import Profile
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.service import ConversationService
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turn_search import content_stems
from simplemem.features.conversations.turns import turns_out
from simplemem.note.words import count_tokens, format_count, shorten

_MAX_OTHER_TOPICS: Final = 4
_MAX_PROFILE_TOKENS: Final = 300  # for what is known of the user except for the constraints
_PINNED_SHARE: Final = 4  # pinned notes get at most a quarter of what constraints leave
_FACTS_SHARE: Final = 5  # facts get at most a fifth of what is left
_CURRENT_TOPIC_SHARE: Final = 2  # the current topic gets at most a half of what is left then
_MAX_ANSWER: Final = 400  # characters of an answer
_MAX_LAST_TURNS: Final = 20  # of the session, whatever they are about
_OMITTED_LINE_TOKENS: Final = 10  # for a line that says how many turns were left out

Item = dict[str, Any]
Lines = dict[str, Item]
"""The lines of a section in their order, each with the item that describes it in the answer.

An item has a `kind`, and what identifies a turn, a fact, a constraint or something of the user.
"""


def build_context(
    service: ConversationService, message: str, budget: int, session: str = ""
) -> MessageContext:
    """Return what to know before answering a message, in at most `budget` tokens.

    All constraints come first, then pinned notes, the user, facts, the current topic, other topics,
    the session's last turns, and the message; what does not fit is left out and counted. Raises
    TooLong if constraints and message exceed the budget, or if the message exceeds the limit of a
    text; Invalid if the message is empty or cannot be stored; Unavailable or another SimplememError
    if the index cannot be brought up to date.
    """
    profile = service.profile()
    topics = service.items(Topic)
    exchange = new_exchange(message, session=session)
    current = service.decide(exchange, topics).decision.topic
    recalled = recall(service, message, _MAX_OTHER_TOPICS + 1)

    context = _ContextBuilder(message, budget, profile.constraints)
    pinned_lines = _pinned_lines(recalled)
    context.add_section("# Pinned", pinned_lines, context.remaining // _PINNED_SHARE)
    profile_lines = _profile_lines(profile)
    context.add_section("# The user", profile_lines, _MAX_PROFILE_TOKENS)
    fact_lines = _fact_lines(recalled)
    context.add_section("# Facts", fact_lines, context.remaining // _FACTS_SHARE)

    if current is not None:
        _add_current_topic(context, current)
    _add_other_topics(context, message, recalled, current)
    last_lines = _last_turn_lines(topics, session, current, context.turn_ids)
    context.add_section("# Last messages, on other topics", last_lines, budget, prefer_newest=True)
    return context.build()


class _ContextBuilder:
    """Adds sections to a context as far as its budget allows.

    Guards the sections so far and the items that they contain.
    """

    def __init__(self, message: str, budget: int, constraints: Sequence[Constraint]) -> None:
        """Start with all constraints and the message. Raises TooLong if they exceed the budget."""
        self.budget = budget
        self._message_section = f"# Message\n{message.strip()}"
        self._sections = list[str]()
        self._items = list[Item]()
        self._omitted_count = 0
        self._add_constraints(constraints)

    def _add_constraints(self, constraints: Sequence[Constraint]) -> None:
        """Add all constraints. Raises TooLong if there is no room for them and the message."""
        lines = Lines()
        for constraint in constraints:
            item = {"kind": "constraint", "text": constraint["text"]}
            lines[_constraint_line(constraint)] = item
        if lines:
            section = "\n".join(["# Constraints", *lines])
            self._sections.append(section)
        self._items += lines.values()

        tokens = self._count_tokens()
        if tokens > self.budget:
            raise TooLong(
                f"constraints and message need {tokens} tokens",
                hint=f"Set budget_tokens to at least {tokens}.",
            )

    @property
    def turn_ids(self) -> set[str]:
        """The ids of the turns that the sections so far contain."""
        return {item["turn_id"] for item in self._items if "turn_id" in item}

    @property
    def remaining(self) -> int:
        """The tokens of the budget that the sections so far and the message leave."""
        return self.budget - self._count_tokens()

    def _count_tokens(self, *sections: str) -> int:
        """Return the tokens of the context, including the message, with these sections added."""
        parts = [*self._sections, *sections, self._message_section]
        return count_tokens("\n\n".join(parts))

    def add_section(
        self, title: str, lines: Lines, max_tokens: int, *, prefer_newest: bool = False
    ) -> None:
        """Add a section with the lines that fit, in their order; no section if none fits.

        The section gets at most `max_tokens`, and no more than the budget leaves. The first lines
        are preferred; with `prefer_newest`, the last ones, and a line says how many are left out.
        Lines that are left out are counted.
        """
        if prefer_newest:
            newest_first = reversed(lines)
            chosen = self._choose_lines(title, newest_first, max_tokens, _OMITTED_LINE_TOKENS)
        else:
            chosen = self._choose_lines(title, lines, max_tokens)

        omitted_count = len(lines) - len(chosen)
        self._omitted_count += omitted_count
        if not chosen:
            return

        header = [title]
        if prefer_newest and omitted_count:
            header.append(f"({format_count(omitted_count, 'earlier turn')} omitted)")
        in_order = [line for line in lines if line in chosen]
        self._sections.append("\n".join(header + in_order))
        self._items += [lines[line] for line in in_order]

    def _choose_lines(
        self, title: str, candidates: Iterable[str], max_tokens: int, reserve: int = 0
    ) -> list[str]:
        """Return the lines of a section that fit, tried in their order.

        The section and the budget keep `reserve` tokens. A line that does not fit is skipped;
        shorter ones may follow.
        """
        chosen = list[str]()
        for line in candidates:
            section = "\n".join([title, *chosen, line])
            fits_section = count_tokens(section) <= max_tokens - reserve
            if fits_section and self._count_tokens(section) <= self.budget - reserve:
                chosen.append(line)
        return chosen

    def build(self) -> MessageContext:
        """Return the context, with the message as its last section."""
        return MessageContext(
            text="\n\n".join([*self._sections, self._message_section]),
            tokens=self._count_tokens(),
            items=self._items,
            left_out=self._omitted_count,
        )


def _pinned_lines(recalled: ConversationRecall) -> Lines:
    """Return one line per pinned note."""
    lines = Lines()
    for note in recalled.get("pinned", []):
        name = note["name"]
        text = " ".join(note["text"].split())
        lines[f"- {text} ({name})"] = {"kind": "pinned", "name": name}
    return lines


def _profile_lines(profile: Profile) -> Lines:
    """Return what is known of the user, one line per thing, without constraints."""
    texts = list[str]()
    if profile.user_name:
        texts.append(f"Name: {profile.user_name}")
    texts += profile.preferences.values()
    texts += profile.identity

    lines = Lines()
    for text in texts:
        lines[f"- {text}"] = {"kind": "person", "text": text}
    return lines


def _fact_lines(recalled: ConversationRecall) -> Lines:
    """Return one line per fact that answers the message."""
    lines = Lines()
    for fact in recalled["facts"]:
        lines[_fact_line(fact)] = {"kind": "fact", "key": fact["key"]}
    return lines


def _add_current_topic(context: _ContextBuilder, topic: Topic) -> None:
    """Add a section with the last turns of the current topic, at most half of what is left."""
    title = f"# Current topic: {topic.label}"
    lines = _turn_lines(topic.id, turns_out(topic.turns))
    max_tokens = context.remaining // _CURRENT_TOPIC_SHARE
    context.add_section(title, lines, max_tokens, prefer_newest=True)


def _add_other_topics(
    context: _ContextBuilder,
    message: str,
    recalled: ConversationRecall,
    current: Topic | None,
) -> None:
    """Add a section for each of the best four topics that answer the message.

    The current topic is left out. Nothing is added if topics are only the nearest ones and the
    message has no words that could be similar.
    """
    is_only_nearest = bool(recalled.get("only_nearest"))
    if is_only_nearest and not content_stems(message):
        return  # "And so?" asks for nothing, so no topic is similar to it

    relation = "Earlier,"
    if is_only_nearest:
        relation = "Nothing earlier answers this; the closest is"
    current_id = current.id if current else ""
    other_topics = [topic for topic in recalled["memories"] if topic["block_id"] != current_id]
    for topic in other_topics[:_MAX_OTHER_TOPICS]:
        title = f"# {relation} about {topic['topic']}"
        lines = _turn_lines(topic["block_id"], topic["turns"])
        context.add_section(title, lines, context.budget)


def _last_turn_lines(
    topics: Iterable[Topic],
    session: str,
    current: Topic | None,
    listed_ids: Collection[str],
) -> Lines:
    """Return those of a session's last 20 turns that the context lacks, in the order of time.

    Left out are turns of the current topic, and those with `listed_ids`: the context contains them
    already.
    """
    turns = []
    for topic in topics:
        if topic.session == session:
            turns += [(turn.at, topic.id, turn) for turn in topic.turns]
    newest_first = nlargest(_MAX_LAST_TURNS, turns)

    current_id = current.id if current else ""
    lines = Lines()
    for _, topic_id, turn in reversed(newest_first):
        if topic_id != current_id and turn.id not in listed_ids:
            lines |= _turn_lines(topic_id, turns_out([turn]))
    return lines


def _fact_line(fact: FactOut) -> str:
    """Return a fact as a line, with its dates, or since when a later sentence disputes it."""
    key = fact["key"].replace("_", " ")
    remarks = []
    if "disputed" in fact:
        remarks.append(f"disputed since {fact['disputed'][:10]}")
    elif "since" in fact:
        remarks.append(f"since {fact['since'][:10]}")
    if "until" in fact:
        remarks.append(f"until {fact['until'][:10]}")

    line = f"- {key}: {fact['value']}"
    if remarks:
        line += f" ({', '.join(remarks)})"
    return line


def _constraint_line(constraint: Constraint) -> str:
    """Return a constraint as a line, with a mark if a later sentence disputes it."""
    remarks = constraint["severity"]
    if "disputed" in constraint:
        remarks += f", disputed since {constraint['disputed']}"
    return f"- {constraint['text']} ({remarks})"


def _turn_lines(topic_id: str, turns: Sequence[TurnOut]) -> Lines:
    """Return the message of each turn with its local time, and its answer below.

    The answer is shortened to 400 characters. `topic_id` is that of the topic of all turns.
    """
    lines = Lines()
    for turn in turns:
        time = datetime.fromisoformat(turn["timestamp"]).astimezone()
        line = f"- {time:%Y-%m-%d %H:%M} You: {turn['user_message'].strip()}"
        answer = shorten(turn["ai_response"], _MAX_ANSWER)
        if answer:
            line += f"\n  Answer: {answer}"
        lines[line] = {"kind": "turn", "block_id": topic_id, "turn_id": turn["turn_id"]}
    return lines
