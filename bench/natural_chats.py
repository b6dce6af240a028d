"""How chats of the natural material are routed to topics, and whether questions find the turns.

Each chat is stored in a vault of its own, through `store_conversation`, one call per message with
the assistant's reply as `response`. `bench/natural.py` prints the figures.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from bench.natural_figures import Count, content_stems, sum_counts
from bench.natural_material import Chat, Exchange, Question
from bench.tool_caller import ToolCaller, open_tools, set_clock

_LATER: Final = timedelta(days=1)  # between a chat and the questions about it
_MAX_TOPICS: Final = 5  # that a question asks for, which is the default of the tool


class RoutedExchange(NamedTuple):
    """An exchange, and where the store put it."""

    exchange: Exchange
    block_id: str
    turn_id: str


class ChatObserver(Protocol):
    """Is told what is being stored, before the next exchange is."""

    def open_chat(self, chat: Chat) -> None:
        """Take note that a chat will be stored, from its first exchange on."""

    def stored(self, routed: RoutedExchange) -> None:
        """Take note of where the next exchange of the chat was stored."""


@dataclass(frozen=True)
class ChatFigures:
    """What was measured of chats.

    - `right`: messages whose topic stands for their subject (`topics_by_subject`). All messages
      count, the first one too.
    - `right_decisions`: the same as `acceptance/talk_quality.py` counts it, over all messages but
      the first of a chat. A message that continues its subject is right if it is in the topic of
      the message before. One that begins a subject is right if it is the first of its topic. One
      that resumes a subject is right if the first message of its topic was about that subject.
    - `changes`: messages with another subject than the message before, and how many of them are in
      another topic than the message before. If the assistant changed the subject, the change is
      that of the user's next message.
    - `kept`: the other messages, and how many of them stayed in the topic of the message before.
    - `found`: questions that a chat answers, and how many got a turn with evidence from
      `retrieve_memory`, in any of its topics. A turn is a message with the reply to it.
    - `found_all`: the same, if all turns with evidence were returned.
    - `turns_returned`: turns in the answers to those questions; the total is that of questions.
    - `stale`: questions with an outdated answer, and how many got that as a current fact: an
      undisputed row of `facts` whose value has all content words of the outdated answer, and not
      all of the current one.
    """

    right: Count
    right_decisions: Count
    changes: Count
    kept: Count
    found: Count
    found_all: Count
    turns_returned: Count
    stale: Count


class _Answer(NamedTuple):
    """How one question was answered."""

    has_some: bool
    has_all: bool
    turn_count: int
    is_stale: bool | None  # None: the question has no outdated answer


def measure_chats(
    chats: Iterable[Chat],
    questions: Sequence[Question],
    *,
    names_topics: bool = False,
    settings: Mapping[str, Any] | None = None,
    observer: ChatObserver | None = None,
) -> ChatFigures:
    """Store each chat in a new vault, ask the questions about it, and return the figures.

    With `names_topics`, an agent passes the label of the subject at each change and with the first
    message, as the instructions of the profile ask. The caller restores the clock.
    """
    routed_chats = []
    answers: list[_Answer] = []
    found_answers: list[_Answer] = []
    for chat in chats:
        with tempfile.TemporaryDirectory() as folder:
            vault = Path(folder)
            with open_tools(vault, "hmlr", settings=settings) as call:
                routed = store_chat(call, chat, names_topics=names_topics, observer=observer)
                routed_chats.append(routed)
                set_clock(chat.exchanges[-1].at + _LATER)
                call.index()
                for question in questions:
                    if question.chat != chat.id:
                        continue
                    answer = _ask(call, question, routed)
                    answers.append(answer)
                    if question.is_answerable:
                        found_answers.append(answer)

    staleness = [answer.is_stale for answer in answers if answer.is_stale is not None]
    return ChatFigures(
        right=sum_counts(count_right(routed) for routed in routed_chats),
        right_decisions=sum_counts(count_right_decisions(routed) for routed in routed_chats),
        changes=sum_counts(count_noticed_changes(routed) for routed in routed_chats),
        kept=sum_counts(count_kept(routed) for routed in routed_chats),
        found=Count.of(answer.has_some for answer in found_answers),
        found_all=Count.of(answer.has_all for answer in found_answers),
        turns_returned=Count(
            sum(answer.turn_count for answer in found_answers), len(found_answers)
        ),
        stale=Count.of(staleness),
    )


def store_chat(
    call: ToolCaller, chat: Chat, *, names_topics: bool, observer: ChatObserver | None = None
) -> list[RoutedExchange]:
    """Store the exchanges of a chat at their times, and return where they were put."""
    if observer is not None:
        observer.open_chat(chat)
    routed = []
    for position, exchange in enumerate(chat.exchanges):
        set_clock(exchange.at)
        arguments = {"message": exchange.message, "response": exchange.response}
        if names_topics and (exchange.is_change or position == 0):
            arguments["topic"] = chat.labels[exchange.topic]
        stored = call("store_conversation", **arguments)
        routed_exchange = RoutedExchange(exchange, stored["block_id"], stored["turn_id"])
        routed.append(routed_exchange)
        if observer is not None:
            observer.stored(routed_exchange)
    return routed


# Routing


def topics_by_subject(routed: Sequence[RoutedExchange]) -> dict[str, str]:
    """Return the topic that stands for each subject, one topic for one subject at most.

    The pair of a topic and a subject with the most common messages is taken first, then the next
    one of which neither is taken; of equal pairs, the one whose first message came first. So a
    topic that swallows several subjects stands for one of them, and a subject that is split over
    several topics is stood for by one of them. A subject may be left without a topic.
    """
    shared = Counter((item.exchange.topic, item.block_id) for item in routed)
    topics: dict[str, str] = {}
    # The sort is stable, and a counter keeps the order in which its keys came.
    for (subject, block_id), _ in sorted(shared.items(), key=_by_count):
        if subject not in topics and block_id not in topics.values():
            topics[subject] = block_id
    return topics


def _by_count(item: tuple[tuple[str, str], int]) -> int:
    """Return a key that sorts the largest counts first."""
    return -item[1]


def count_right(routed: Sequence[RoutedExchange]) -> Count:
    """Count the messages that are in the topic that stands for their subject."""
    topics = topics_by_subject(routed)
    return Count.of(topics.get(item.exchange.topic) == item.block_id for item in routed)


def count_noticed_changes(routed: Sequence[RoutedExchange]) -> Count:
    """Count the changes of subject at which the topic changed too, of all changes of subject."""
    noticed = []
    for before, item in pairwise(routed):
        if item.exchange.is_change:
            noticed.append(item.block_id != before.block_id)
    return Count.of(noticed)


def count_kept(routed: Sequence[RoutedExchange]) -> Count:
    """Count the messages without a change of subject that stayed in the topic."""
    kept = []
    for before, item in pairwise(routed):
        if not item.exchange.is_change:
            kept.append(item.block_id == before.block_id)
    return Count.of(kept)


def count_right_decisions(routed: Sequence[RoutedExchange]) -> Count:
    """Count the right decisions as `acceptance/talk_quality.py` does, all but the first one."""
    subject_of_block: dict[str, str] = {}
    subjects: set[str] = set()
    block_before = ""
    decisions = []
    for item in routed:
        subject = item.exchange.topic
        is_new_block = item.block_id not in subject_of_block
        subject_of_block.setdefault(item.block_id, subject)
        if not block_before:
            pass  # the first message is always right
        elif not item.exchange.is_change:
            decisions.append(item.block_id == block_before)
        elif subject in subjects:
            is_its_block = subject_of_block[item.block_id] == subject
            decisions.append(is_its_block and not is_new_block)
        else:
            decisions.append(is_new_block)
        subjects.add(subject)
        block_before = item.block_id
    return Count.of(decisions)


# Questions


def _ask(call: ToolCaller, question: Question, routed: Sequence[RoutedExchange]) -> _Answer:
    """Ask a question of a stored chat, and return how it was answered."""
    recalled = call("retrieve_memory", query=question.text, max_results=_MAX_TOPICS)
    returned: set[str] = set()
    for topic in recalled["memories"]:
        returned.update(turn["turn_id"] for turn in topic["turns"])
    wanted = turns_with_evidence(question, routed)

    is_stale = None
    if question.outdated:
        is_stale = any(_is_stale(row, question) for row in recalled["facts"])
    return _Answer(
        has_some=bool(wanted & returned),
        has_all=wanted <= returned,
        turn_count=len(returned),
        is_stale=is_stale,
    )


def turns_with_evidence(question: Question, routed: Sequence[RoutedExchange]) -> set[str]:
    """Return the ids of the stored turns that have the evidence of a question.

    A turn of the assistant is in the stored turn of the message that it answers.
    """
    turn_ids: dict[int, str] = {}
    for item in routed:
        for number in item.exchange.turn_numbers:
            turn_ids[number] = item.turn_id
    return {turn_ids[number] for number in question.evidence}


def _is_stale(row: Mapping[str, Any], question: Question) -> bool:
    """Return whether a row of `facts` gives the outdated answer of a question as current."""
    if "disputed" in row:
        return False
    words = content_stems(row["value"])
    has_outdated = content_stems(question.outdated) <= words
    return has_outdated and not content_stems(question.answer) <= words
