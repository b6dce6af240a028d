"""Choose from scored turns those that an answer has, within a budget of topics, turns and tokens.

`turn_search.py` scores them. docs/conversations.md says how many turns are returned. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.turns import Turn
from simplemem.note.words import count_tokens

_MAX_CANDIDATES: Final = 2_000  # turns that are compared; of more, those of the first topics
_MAX_CHARACTERS: Final = 2_000  # of a message, and of an answer, that count
_MAX_SHORT_REPLY: Final = 80  # characters of a message that is not understood without the question
_MAX_ENDING: Final = 300  # characters at the end of a turn, of which the question is taken
_SENTENCE_END: Final = re.compile(r"[.!?\n]")


class TurnBudget(NamedTuple):
    """How much one answer has at most."""

    topics: int
    turns: int  # of all topics together
    tokens: int  # of messages and answers


class TurnText(NamedTuple):
    """What of a turn is compared with a question."""

    message: str
    answer: str
    question_before: str  # to which it is a short reply, such as "By the station"; "" for none

    @property
    def exchange(self) -> str:
        """All of it, in the order in which it was said."""
        return f"{self.question_before} {self.message} {self.answer}"


@dataclass(frozen=True, eq=False)
class Candidate:
    """A turn that may answer a question, and the position of its topic."""

    topic_index: int
    turn: Turn
    text: TurnText

    @property
    def tokens(self) -> int:
        """How many tokens the turn has in an answer, about."""
        return count_tokens(f"{self.turn.message} {self.turn.answer}")


def candidates_of(topics: Iterable[Topic]) -> list[Candidate]:
    """Return the turns of topics in their order, 2,000 at most.

    The first topics come first. Of the topic that exceeds the limit, the last turns are taken.
    """
    candidates = list[Candidate]()
    for topic_index, topic in enumerate(topics):
        max_turns = _MAX_CANDIDATES - len(candidates)
        omitted_count = max(0, len(topic.turns) - max_turns)
        turns = topic.turns[omitted_count:]
        for index, turn in enumerate(turns):
            text = TurnText(
                message=turn.message[:_MAX_CHARACTERS],
                answer=turn.answer[:_MAX_CHARACTERS],
                question_before=_question_before(turns, index),
            )
            candidates.append(Candidate(topic_index, turn, text))
    return candidates


def _question_before(turns: Sequence[Turn], index: int) -> str:
    """Return the question to which a turn replies: the end of the turn before it, if that asks.

    Returns "" if it does not, or if the message is long enough to be understood alone.
    """
    if index == 0 or len(turns[index].message) > _MAX_SHORT_REPLY:
        return ""

    before = turns[index - 1]
    text = before.answer or before.message
    ending = text[-_MAX_ENDING:].rstrip()
    if not ending.endswith("?"):
        return ""

    sentences = _SENTENCE_END.split(ending.removesuffix("?"))
    return f"{sentences[-1].strip()}?"


def choose_turns(
    topics: Sequence[Topic],
    candidates: Sequence[Candidate],
    scores: Sequence[float],
    budget: TurnBudget,
) -> dict[Topic, list[Turn]]:
    """Return the turns of an answer in their order, by topic. The topics keep their order.

    `candidates` are the turns of `topics` (`candidates_of`), and `scores` has one score for each.
    The topics are best first. If they exceed the number of topics in the budget, the first half of
    that number is taken, and then those with the best turns. Every topic that is taken gets its
    best turn, however long; the rest of the budget goes to the best turns of all of them. Of turns
    with one score, the later one is preferred.
    """
    best_first = _sort_best_first(candidates, scores)
    best_turns = dict[int, Candidate]()  # by the positions of their topics
    for candidate in best_first:
        best_turns.setdefault(candidate.topic_index, candidate)

    chosen_topics = _choose_topics(len(topics), best_turns, budget.topics)
    required = [turn for index, turn in best_turns.items() if index in chosen_topics]
    optional = [turn for turn in best_first if turn.topic_index in chosen_topics]
    chosen = _choose_within(budget, required, optional)

    turns: dict[Topic, list[Turn]] = {topics[index]: [] for index in sorted(chosen_topics)}
    for candidate in candidates:
        if candidate in chosen:
            topic = topics[candidate.topic_index]
            turns[topic].append(candidate.turn)
    return turns


def _sort_best_first(candidates: Sequence[Candidate], scores: Sequence[float]) -> list[Candidate]:
    """Return candidates in order of their scores, the highest first; of equal ones, the later."""

    def rank(index: int) -> tuple[float, int]:
        """Return what candidates are ordered by, the highest first."""
        return scores[index], index

    indexes = sorted(range(len(candidates)), key=rank, reverse=True)
    return [candidates[index] for index in indexes]


def _choose_topics(
    topic_count: int, best_turns: Mapping[int, Candidate], max_topics: int
) -> set[int]:
    """Return the positions of the topics that an answer has, `max_topics` at most.

    `best_turns` has the best turn of each topic with turns, the best of all first. If there are
    more topics than the answer may have, those without turns are left out.
    """
    if topic_count <= max_topics:
        return set(range(topic_count))

    half = (max_topics + 1) // 2
    chosen = {index for index in best_turns if index < half}
    for index in best_turns:
        if len(chosen) < max_topics:
            chosen.add(index)
    return chosen


def _choose_within(
    budget: TurnBudget, required: Iterable[Candidate], optional: Iterable[Candidate]
) -> set[Candidate]:
    """Return all required turns, and the first optional ones that fit into a budget with them.

    A turn that is too long is skipped; shorter ones behind it may still fit.
    """
    chosen = set(required)
    tokens = sum(candidate.tokens for candidate in chosen)
    for candidate in optional:
        if len(chosen) >= budget.turns:
            break
        fits = tokens + candidate.tokens <= budget.tokens
        if fits and candidate not in chosen:
            chosen.add(candidate)
            tokens += candidate.tokens
    return chosen
