"""Find the facts and topics that answer a question, with the turns. Changes nothing."""

from __future__ import annotations

import re
from calendar import day_name, month_name
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from simplemem.features.answers import ConversationRecall, FactOut, RecalledTopic
from simplemem.features.conversations.recalled_facts import recall_facts
from simplemem.features.conversations.service import ConversationService
from simplemem.features.conversations.topic import TOPIC, Topic
from simplemem.features.conversations.turn_choice import TurnBudget
from simplemem.features.conversations.turn_search import TurnSearch, content_stems
from simplemem.features.conversations.turns import Turn, turns_out
from simplemem.features.pinned import pinned_notes
from simplemem.models import NOTHING_FOUND, Filter, Found, Hit
from simplemem.note.dates import now
from simplemem.note.names import path_of
from simplemem.note.scopes import DEFAULT_SCOPE
from simplemem.store import as_words

_SEARCH_FACTOR: Final = 2  # this many times `limit` topics are searched; the turns decide which
_MAX_SEARCHED: Final = 100  # topics, unless `limit` is greater
_TURNS_PER_TOPIC: Final = 4  # for each topic of `limit`; the best turns of all topics share them
_TOKENS_PER_TOPIC: Final = 400
_MAX_QUESTION: Final = 2_000  # characters
_MAX_NAMING_TOPICS: Final = 50  # the last topics, in which names are counted
_MIN_SCORE: Final = 1e-4
_LATER_WORD: Final = re.compile(r"(?<=\s)[^\W\d_]{2,}")  # a word behind the first one


def recall(service: ConversationService, query: str, limit: int = 5) -> ConversationRecall:
    """Return the facts that a question asks for, and at most `limit` topics that answer it.

    The constraints of the user and the pinned notes are there whatever the question is. Both lists
    come best first. There are at most ten facts, with their dates, each behind the sentence that
    disputes it, if there is one; those that the question asks for by way of others come behind
    these (`fact_chains.py`). Facts that no longer hold are left out.

    The question is taken as words, whatever query syntax it contains. Only its first 2,000
    characters count. Both lists are empty if nothing is found. Raises Invalid for a `limit` below 1
    if there are topics, and a SimplememError such as Unavailable if the index cannot be brought up
    to date.
    """
    question = query[:_MAX_QUESTION]
    with service.collection.reading():
        topics = {topic.path: topic for topic in service.loaded(Topic)}
        facts = service.current_facts(now())

    fact_rows = recall_facts(question, facts, topics.values())
    answer = _new_answer(service, fact_rows)
    if question.strip() and topics:
        _add_topics(service, question, topics, limit, answer)
    return answer


def _new_answer(service: ConversationService, facts: list[FactOut]) -> ConversationRecall:
    """Return an answer without topics: the user's constraints, pinned notes, and these facts.

    Constraints and pinned notes are left out if there are none.
    """
    constraints = list(service.profile().constraints)
    relevant_notes = pinned_notes(service.store, DEFAULT_SCOPE)
    pinned = [row for row in relevant_notes if row["kind"] == "pinned"]

    answer = ConversationRecall(
        constraints=constraints,
        pinned=pinned,
        memories=[],
        facts=facts,
        method="words",
    )
    # Removed rather than added, because both stand before the others in an answer.
    if not constraints:
        del answer["constraints"]
    if not pinned:
        del answer["pinned"]
    return answer


def _add_topics(
    service: ConversationService,
    question: str,
    topics: Mapping[str, Topic],
    limit: int,
    answer: ConversationRecall,
) -> None:
    """Search for the topics that answer a question, and add them and the method to an answer.

    `topics` are all topics by their paths. Twice `limit` topics are searched; those that the answer
    has, and their turns, are chosen by the turns (`turn_search.py`). Scores are from 0.0001 to 1
    and never rise from one topic to the next. Raises Invalid for a `limit` below 1, and a
    SimplememError such as Unavailable if the index cannot be brought up to date.
    """
    words = as_words(_without_common_names(question, topics.values()))
    searched_count = max(limit, min(_SEARCH_FACTOR * limit, _MAX_SEARCHED))
    topic_filter = Filter(type=TOPIC.type)
    result = service.store.search(words, filter=topic_filter, limit=searched_count)

    embedder = service.extension.embedder
    if result.mode != "text" and embedder:
        answer["method"] += f" and meaning ({embedder})"
    is_whole_question = words == as_words(question)
    _add_notices(answer, result, is_whole_question=is_whole_question)

    scores = _scores_of_topics(result.hits, topics)
    budget = TurnBudget(
        topics=limit,
        turns=_TURNS_PER_TOPIC * limit,
        tokens=_TOKENS_PER_TOPIC * limit,
    )
    turns_by_topic = TurnSearch.of(service.store).choose(question, list(scores), budget)
    for topic, turns in turns_by_topic.items():
        answer["memories"].append(_topic_row(topic, scores[topic], turns))


def _scores_of_topics(hits: Iterable[Hit], topics: Mapping[str, Topic]) -> dict[Topic, float]:
    """Return the topics of hits with their scores, rounded, in the order of the hits.

    No score is higher than the one before it. Hits that are none of `topics`, which are by their
    paths, are left out.
    """
    scores = dict[Topic, float]()
    lowest = 1.0
    for hit in hits:
        topic = topics.get(path_of(hit.name))
        if topic is not None:
            score = max(round(hit.score, 4), _MIN_SCORE)
            lowest = min(lowest, score)
            scores[topic] = lowest
    return scores


def _add_notices(answer: ConversationRecall, result: Found, *, is_whole_question: bool) -> None:
    """Add to an answer why the search may have found less than there is; nothing if it has not.

    Sets `only_nearest` if there are hits but none is good enough to be an answer, and `degraded` to
    the reasons, as text. Without `is_whole_question`, names were left out of the question for the
    search, so that a general sentence stands for the notice, which would be about other words.
    """
    if result.notice and result.hits:
        notice = NOTHING_FOUND
        if is_whole_question:
            notice = result.notice
        answer["degraded"] = notice
        answer["only_nearest"] = True
    elif result.degraded:
        answer["degraded"] = result.degraded

    if not result.index.is_ready:
        reason = answer.get("degraded", "")
        answer["degraded"] = f"{reason} {result.index.reason}".strip()


def _topic_row(topic: Topic, score: float, turns: Sequence[Turn]) -> RecalledTopic:
    """Return a topic in the form that clients get, with those of its turns that were chosen."""
    # The summary of an active topic is what it was about before it was resumed.
    summary = "" if topic.status == "active" else topic.summary
    return RecalledTopic(
        block_id=topic.id,
        topic=topic.label,
        relevance_score=score,
        summary=summary,
        turns=turns_out(turns),
    )


def _without_common_names(question: str, topics: Collection[Topic]) -> str:
    """Return a question without the names that most of the last 50 topics contain.

    Such names do not tell one topic from another (docs/decisions.md). What does not end like a
    question keeps its names, because a topic may be called so. So does a question of which only one
    word would be left: one word alone says less than the name.
    """
    if not question.rstrip().endswith("?"):
        return question

    last_topics = list(topics)[-_MAX_NAMING_TOPICS:]
    shortened = question
    for name in _names_in(question):
        if _is_common(name, last_topics):
            shortened = re.sub(rf"\b{name}(?:['’]s)?\b", "", shortened)

    has_few_words = len(content_stems(shortened)) <= 1
    return question if has_few_words else shortened


def _names_in(question: str) -> set[str]:
    """Return the capitalized words behind the first word of a question.

    Names of days and months are left out.
    """
    words = set(_LATER_WORD.findall(question))
    words = words.difference(day_name, month_name)
    return {word for word in words if word.istitle()}


def _is_common(name: str, topics: Collection[Topic]) -> bool:
    """Return whether most of some topics contain a name."""
    pattern = re.compile(rf"{name}\b")
    naming_topics = [topic for topic in topics if pattern.search(topic.text)]
    return 2 * len(naming_topics) > len(topics)
