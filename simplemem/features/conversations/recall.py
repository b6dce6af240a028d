"""What a question finds in conversations: topics with the turns that answer it, and facts. Changes nothing."""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

from simplemem.features.answers import ConversationRecall, FactOut, RecalledTopic
from simplemem.features.changes import find_doubtful
from simplemem.features.conversations.facts import (
    fact_out,
    find_facts,
    stated_at,
    stated_changes,
    stated_subject,
)
from simplemem.features.conversations.service import ConversationService
from simplemem.features.conversations.topic import TOPIC, Topic, Turn, turns_out
from simplemem.features.fact import Fact
from simplemem.models import NOTHING_FOUND, Filter
from simplemem.note.dates import format_moment
from simplemem.note.names import path_of
from simplemem.note.stems import stem
from simplemem.note.words import STOP_WORDS, shorten, unique_words
from simplemem.store import as_words

MAX_ANSWER: Final = 400  # characters of an answer in a context, and of a sentence that disputes
_MAX_TURNS: Final = 6  # of one topic
_MAX_FACTS: Final = 10
_MAX_QUESTION: Final = 2_000  # characters
_MAX_NAMING_TOPICS: Final = 50  # the last topics, in which names are counted
_MIN_SCORE: Final = 1e-4
_DISPUTED: Final = 0.5
"""Confidence of a sentence that no rule reads, and the share that the fact it disputes keeps."""


def recall(service: ConversationService, query: str, limit: int = 5) -> ConversationRecall:
    """Return the topics, with turns, and the facts that answer a question, best first.

    The question is taken as words, whatever query syntax it contains.
    """
    question = query[:_MAX_QUESTION]
    with service.collection.reading():
        topics = {topic.path: topic for topic in service.held(Topic)}
        facts = service.held(Fact)

    labels = {topic.id: topic.label for topic in topics.values()}
    found_facts = find_facts(question, facts, labels)[:_MAX_FACTS]
    rows = [row for fact in found_facts for row in _fact_rows(fact, topics.values())]
    answer = ConversationRecall(memories=[], facts=rows, method="words")
    if question.strip() and topics:
        _add_topics(service, question, topics, limit, answer)
    return answer


def _add_topics(
    service: ConversationService,
    question: str,
    topics: Mapping[str, Topic],
    limit: int,
    answer: ConversationRecall,
) -> None:
    """Search for the topics that answer a question, and add them to an answer."""
    wanted = as_words(_without_common_names(question, topics.values()))
    found = service.store.search(wanted, filter=Filter(type=TOPIC.type), limit=limit)
    if found.mode != "text" and service.extension.embedder:
        answer["method"] += f" and meaning ({service.extension.embedder})"

    if found.notice and found.hits:
        # Without a common name, the notice would be about other words than those of the question.
        is_whole_question = wanted == as_words(question)
        answer["degraded"] = found.notice if is_whole_question else NOTHING_FOUND
        answer["only_nearest"] = True
    elif found.degraded:
        answer["degraded"] = found.degraded
    if not found.index.is_ready:
        reasons = f"{answer.get('degraded', '')} {found.index.reason}"
        answer["degraded"] = reasons.strip()

    lowest = 1.0  # no score is higher than the one before it
    for hit in found.hits:
        topic = topics.get(path_of(hit.name))
        if topic is not None:
            lowest = min(lowest, max(round(hit.score, 4), _MIN_SCORE))
            answer["memories"].append(_topic_row(topic, lowest, question))


def _topic_row(topic: Topic, score: float, question: str) -> RecalledTopic:
    # The summary of an active topic is what it was about before it was resumed.
    summary = "" if topic.status == "active" else topic.summary
    return RecalledTopic(
        block_id=topic.id,
        topic=topic.label,
        relevance_score=score,
        summary=summary,
        turns=turns_out(answering_turns(topic, question)),
    )


def _fact_rows(fact: Fact, topics: Collection[Topic]) -> list[FactOut]:
    """Return a fact as clients know it, and before it the later sentence that disputes it, if any.

    A turn that was deleted disputes nothing.
    """
    row = fact_out(fact, fact.block_id)
    if fact.disputed is None:
        return [row]
    disputing = _find_turn(fact.disputed_by, topics)
    if disputing is None:
        return [row]

    topic, turn = disputing
    subjects = [stated_subject(fact)]
    sentences = [
        sentence
        for sentence, change in stated_changes(turn.message).items()
        if find_doubtful(subjects, change)
    ]
    later = FactOut(
        key=fact.key,
        value=" ".join(sentences or [shorten(turn.message, MAX_ANSWER)]),
        block_id=topic.id,
        confidence=_DISPUTED,
        valid_from=format_moment(turn.at),
    )
    row["confidence"] = round(_DISPUTED * fact.confidence, 4)
    row["valid_from"] = format_moment(stated_at(fact))
    row["disputed"] = format_moment(fact.disputed)
    return [later, row]


def _find_turn(mark: str, topics: Collection[Topic]) -> tuple[Topic, Turn] | None:
    """Return the turn with this block id, and its topic."""
    for topic in topics:
        for turn in topic.turns:
            if turn.mark == mark:
                return topic, turn

    return None


def _without_common_names(question: str, topics: Collection[Topic]) -> str:
    """Return a question without the names that most of the last topics contain.

    Such names do not tell one topic from another (docs/decisions.md). What does not end like a question keeps its
    names, because a topic may be called so. So does a question of which only one word would be left: one word alone
    says less than the name.
    """
    if not question.rstrip().endswith("?"):
        return question

    last_topics = [*topics][-_MAX_NAMING_TOPICS:]
    words = {*re.findall(r"(?<=\s)[^\W\d_]{2,}", question)} - {*day_name, *month_name}
    shortened = question
    for name in words:
        if not name.istitle():
            continue
        count = sum(bool(re.search(rf"{name}\b", topic.text)) for topic in last_topics)
        if 2 * count > len(last_topics):
            shortened = re.sub(rf"\b{name}(?:['’]s)?\b", "", shortened)
    return shortened if len(content_stems(shortened)) > 1 else question


def answering_turns(topic: Topic, question: str) -> Sequence[Turn]:
    """Return the turns of a topic that answer a question, each with the next one, in their order."""
    if len(topic.turns) <= _MAX_TURNS:
        return topic.turns

    asked = content_stems(question)
    beginnings = {word[:2] for word in asked}  # a stem begins as its word does
    found = [
        asked & content_stems(f"{turn.message} {turn.answer}", beginnings) for turn in topic.turns
    ]
    turns_with = Counter(word for words in found for word in words)
    weights = [sum(1 / turns_with[word] for word in words) for words in found]
    best_first = sorted(
        range(len(weights)), key=lambda index: (weights[index], index), reverse=True
    )

    chosen = dict[int, None]()
    for index in best_first:
        chosen.setdefault(index, None)
        if index + 1 < len(weights):
            chosen.setdefault(index + 1, None)
    return [topic.turns[index] for index in sorted([*chosen][:_MAX_TURNS])]


def content_stems(text: str, beginnings: Collection[str] = ()) -> set[str]:
    """Return the stems of the words of a text, without stop words.

    With `beginnings`, only of words that begin with one of them. They have two letters each.
    """
    words = (
        word
        for word in unique_words(text.lower())
        if word not in STOP_WORDS and (not beginnings or word[:2] in beginnings)
    )
    return {stem(word, "") for word in words}
