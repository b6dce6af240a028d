"""The profile of a memory for conversations: HMLR's five tools, and two of ours. The text of
an answer is the JSON of its data."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Final

from pydantic import AfterValidator, Field

from simplemem.features.answers import (
    ArchiveResult,
    ConversationRecall,
    MessageContext,
    RecordedTurn,
    TopicHistory,
    TopicList,
    UserProfileAnswer,
)
from simplemem.features.conversations.context import build_context
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.service import ConversationService
from simplemem.features.conversations.topic import summary_of, turns_out
from simplemem.note.dates import format_moment
from simplemem.tools.arguments import Arguments, Several, about, also
from simplemem.tools.tool import Caller, Reply, as_json, tool


class FactIn(Arguments):
    """Something the user stated, as you read it."""

    key: str
    value: str


@tool("Store a turn of conversation", writes=True, idempotent=False)
def store_conversation(
    talk: ConversationService,
    caller: Caller,
    message: Annotated[str, about("the user's message, word for word")],
    context: Annotated[
        str, about("what was known at the time; without a response, the reply")
    ] = "",
    response: Annotated[str | None, about("your reply")] = None,
    topic: Annotated[
        str, about("if the topic changes: its name, or the block_id of an earlier topic")
    ] = "",
    facts: Annotated[
        Several[FactIn], Field(max_length=50), about("facts the user stated: [{key, value}]")
    ] = [],  # noqa: B006
    timestamp: Annotated[str, about("time of the message, ISO 8601; default now")] = "",
    session_id: Annotated[str, about("one per parallel conversation")] = "",
) -> Reply[RecordedTurn]:
    """Store the user's message and your reply. They are added to their topic; facts and preferences that the user
    states are stored too."""
    told = [(each.key, each.value) for each in facts]
    said = new_exchange(message, context, response, topic, told, timestamp, session_id)
    return as_json(talk.record(said, **caller))


@tool("Search what was said")
def retrieve_memory(
    talk: ConversationService,
    query: Annotated[str, about("a question in plain words")],
    max_results: Annotated[
        int, AfterValidator(lambda most: min(max(most, 1), 50)), also("max_results", "limit")
    ] = 5,
) -> Reply[ConversationRecall]:
    """Find what was said about a subject, by words and meaning. Returns facts, and topics with the turns that answer."""
    return as_json(recall(talk, query, max_results))


@tool("List the topics of conversation")
def list_active_topics(talk: ConversationService) -> Reply[TopicList]:
    """List the active topic, then paused topics, newest first. Archived topics are not listed."""
    topics = [
        {"block_id": each.id, "topic_label": each.label, "status": each.status.upper()}
        | {"turn_count": len(each.turns), "created_at": format_moment(each.created)}
        for each in talk.topics()
    ]
    return as_json({"topics": topics})


@tool("Read a topic")
def get_topic_history(
    talk: ConversationService, block_id: Annotated[str, about("block_id or label")]
) -> Reply[TopicHistory]:
    """Read all turns of one topic, in order."""
    found = talk.find(block_id)
    story = {"block_id": found.id, "topic_label": found.label, "turns": turns_out(found.turns)}
    return as_json(
        story | {"summary": "" if found.status == "active" else found.summary or summary_of(found)}
    )


@tool("Read the user's profile")
def get_user_profile(talk: ConversationService) -> Reply[UserProfileAnswer]:
    """Read what the user said about themselves: name, constraints to respect, preferences, and topics of interest."""
    known = talk.profile()
    fullest = Counter(each.label for each in talk.topics() for _ in each.turns).most_common(5)
    profile = {"name": known.name, "preferences": known.preferences, "last_updated": known.modified}
    more = {
        "topics_of_interest": [label for label, _ in fullest],
        "constraints": [*known.constraints],
    }
    return as_json({"profile": profile | more})


@tool("Context for a message")
def talk_context(
    talk: ConversationService,
    message: Annotated[str, about("the user's current message")],
    budget_tokens: Annotated[int, Field(ge=50, le=100_000), also("budget_tokens", "budget")] = 1500,
    session_id: str = "",
) -> Reply[MessageContext]:
    """Collect what to know before you answer a message, within a token budget: constraints, the user, facts, and what
    was said on the topic and elsewhere. Changes nothing."""
    return as_json(build_context(talk, message, budget_tokens, session_id))


@tool("Archive old topics", writes=True)
def garden_topics(
    talk: ConversationService,
    caller: Caller,
    block_id: Annotated[
        str, about("one topic, or all that have been paused for after_days")
    ] = "all",
    after_days: Annotated[int, Field(ge=1)] = 60,
    dry_run: Annotated[bool, about("only list what would be archived")] = False,
) -> Reply[ArchiveResult]:
    """Archive topics that have been paused for a long time, as one change. Nothing is deleted; searches still find them."""
    return as_json(talk.archive_stale(block_id, after_days, dry_run=dry_run, **caller))


FIVE: Final = (
    store_conversation,
    retrieve_memory,
    list_active_topics,
    get_topic_history,
    get_user_profile,
)
TOOLS: Final = (*FIVE, talk_context, garden_topics)
