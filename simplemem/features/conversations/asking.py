"""Ask a language model about a turn before it is stored, if the settings allow it.

What is private stays here: a turn with a credential or of a private topic is not sent, and neither
are private topics, facts and profiles. If the model fails, a warning says so, and the rules decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING

from simplemem.errors import SimplememError
from simplemem.features.conversations.exchange import Exchange
from simplemem.features.conversations.notes import ConversationNotes
from simplemem.features.conversations.profile import Profile
from simplemem.features.conversations.router import Decision, TopicDecision
from simplemem.features.conversations.topic import Topic
from simplemem.features.conversations.topic_lookup import reachable_topics
from simplemem.features.conversations.turn_question import MAX_TOPICS, TurnQuestion
from simplemem.features.fact import Fact
from simplemem.features.facts.comparing import facts_for_model

if TYPE_CHECKING:
    from simplemem.features.conversations.turn_reading import TurnReading


@dataclass(frozen=True)
class AskResult:
    """What a model read in a turn, and warnings for the client."""

    reading: TurnReading | None = None  # None if no model was asked, or if it failed
    warnings: Sequence[str] = ()


Decide = Callable[[Exchange, Sequence[Topic]], TopicDecision]
"""Returns the decision by rules for an exchange among topics."""


def ask_about(notes: ConversationNotes, exchange: Exchange, decide: Decide) -> AskResult:
    """Return what the configured model reads in an exchange. Writes nothing, and locks nothing.

    The result is empty if there is no model, if `llm.route` is off, or if the exchange is private.
    Errors of the model become warnings. Raises NotFound or Ambiguous as `decide` does.
    """
    chat = notes.chat
    llm = notes.settings.llm
    if chat is None or exchange.has_secret or llm.route == "off":
        return AskResult()

    decided = decide(exchange, notes.items(Topic))
    question = _make_question(notes, exchange, decided)
    if question is None:
        return AskResult()

    from simplemem.features.conversations.turn_reading import read_turn

    try:
        reading = read_turn(chat, question, llm.route_seconds)
    except SimplememError as error:
        return AskResult(warnings=[f"the rules decided: {error.message}"])
    return AskResult(reading, reading.warnings)


def _make_question(
    notes: ConversationNotes, exchange: Exchange, decided: TopicDecision
) -> TurnQuestion | None:
    """Return what a model gets about an exchange, None if the exchange is private.

    The model may choose a topic if the settings let it, and if the agent named none. Otherwise it
    gets only the topic of the exchange.
    """
    current, decision = decided
    candidates = _candidates(notes, exchange, decided)
    private_paths = notes.extension.private_among({topic.path for topic in candidates})
    if _is_private(notes, exchange, decided, private_paths):
        return None

    is_named = bool(exchange.topic)
    chooses_topic = may_choose_topic(notes, decision) and bool(candidates) and not is_named
    public_topics = [topic for topic in candidates if topic.path not in private_paths]
    topics = public_topics[:MAX_TOPICS]
    if not chooses_topic:
        topics = [topic for topic in topics if topic is decision.topic]

    return TurnQuestion(
        turn=exchange.turn,
        topics={topic.id: topic for topic in topics},
        current=decision.topic if is_named else current,
        chooses_topic=chooses_topic,
        facts=_facts_for_model(notes, exchange.turn.message, exchange.turn.at),
        profile=_public_profile(notes),
    )


def _is_private(
    notes: ConversationNotes,
    exchange: Exchange,
    decided: TopicDecision,
    private_paths: Collection[str],
) -> bool:
    """Return whether an exchange is in a private topic by the rules' decision, or follows one.

    `private_paths` are those of the private topics. If the settings make new topics private, every
    exchange is private.
    """
    current, decision = decided
    # If the agent named a topic, the exchange does not depend on the current one.
    concerned_topics = [decision.topic] if exchange.topic else [decision.topic, current]
    for topic in concerned_topics:
        if topic is not None and topic.path in private_paths:
            return True
    return notes.is_new_topic_private(exchange.turn.at)


def _candidates(
    notes: ConversationNotes, exchange: Exchange, decided: TopicDecision
) -> list[Topic]:
    """Return the topics that an exchange may belong to: the current one first.

    The topic that the rules chose comes second, and then those most similar to the exchange. If the
    rules did not compare topics, those with the latest turns come instead.
    """
    current, decision = decided
    likely_topics = list(decision.ranked)
    if not likely_topics:
        reachable = reachable_topics(notes.items(Topic), exchange.session)
        likely_topics = [topic for topic in reachable if topic.status != "closed"]
        likely_topics.sort(key=attrgetter("last"), reverse=True)

    candidates_by_path = {}
    for topic in (current, decision.topic, *likely_topics):
        if topic is not None:
            candidates_by_path[topic.path] = topic
    return list(candidates_by_path.values())


def _facts_for_model(notes: ConversationNotes, message: str, at: datetime) -> dict[str, Fact]:
    """Return the facts that a model gets, by their ids: current ones that are not private.

    If there are more than 100, they are those most similar to the message, by its words and by the
    vectors of the configured embedder.
    """
    with notes.collection.reading():
        facts = [fact for fact in notes.current_facts(at) if not fact.problem]
    return {fact.id: fact for fact in facts_for_model(notes.extension, message, facts)}


def _public_profile(notes: ConversationNotes) -> Profile:
    """Return the profile of the user, an empty one if its note is private."""
    profile = notes.profile()
    if profile.path and notes.extension.private_among([profile.path]):
        return Profile(path="")
    return profile


def may_choose_topic(notes: ConversationNotes, decision: Decision) -> bool:
    """Return whether a model may choose another topic than that of the rules' decision."""
    return notes.settings.llm.route == "always" or not decision.is_certain


def follow_advice(
    decision: Decision, reading: TurnReading, open_topics: Mapping[str, Topic], *, is_open: bool
) -> Decision:
    """Return a decision for the topic that a model chose, or for a new one with its label.

    `open_topics` are those that the session may continue in now, by their ids. The decision stays
    as it is if the model chose none, if the topic was closed or deleted while the model was asked,
    or if the model need not be asked any more (`is_open` is false).
    """
    advice = reading.advice
    if advice is None or not is_open:
        return decision._replace(label=decision.label or reading.label)
    if advice.topic_id and advice.topic_id not in open_topics:
        return decision

    reason = "a model decided"
    if not decision.is_certain:
        reason = "a model decided, because the rules were not certain"
    return decision._replace(
        topic=open_topics.get(advice.topic_id),
        reason=reason,
        method=reading.method,
        label=advice.label,
    )
