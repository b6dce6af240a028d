"""The tools of the profile hmlr: HMLR's five, and two of ours.

The text of an answer is the JSON of its data.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import AfterValidator, Field

from simplemem.features.answers import (
    ArchiveResult,
    ConversationRecall,
    MessageContext,
    RecordedTurn,
    TopicHistory,
    TopicList,
    TopicRow,
    UserProfileAnswer,
)
from simplemem.features.conversations.context import build_context
from simplemem.features.conversations.exchange import new_exchange
from simplemem.features.conversations.recall import recall
from simplemem.features.conversations.topic_summary import summary_of
from simplemem.features.conversations.turns import turns_out
from simplemem.features.conversations.user_profile import describe_user
from simplemem.features.services import ConversationService
from simplemem.note.dates import format_moment, now
from simplemem.tools.arguments import about, aliases
from simplemem.tools.statements import (
    ConstraintsIn,
    FactsIn,
    PreferencesIn,
    UserNameIn,
    statements_of,
)
from simplemem.tools.tool import Caller, Reply, as_json, tool

_MAX_RESULTS: Final = 50  # topics of one answer
_MAX_LISTED: Final = 200  # topics that are listed unless a client asks for fewer or more


def _limit_results(count: int) -> int:
    """Return the number of results that a client asks for, but 1 at least and 50 at most."""
    return min(max(count, 1), _MAX_RESULTS)


@tool("Store a turn of conversation", writes=True, idempotent=False)
def store_conversation(
    conversations: ConversationService,
    caller: Caller,
    message: Annotated[str, about("the user's message, word for word")],
    context: Annotated[
        str, about("what was known at the time; without a response, the reply")
    ] = "",
    response: Annotated[str | None, about("your reply")] = None,
    topic: Annotated[
        str, about("if the topic changes: its name, or the block_id of an earlier topic")
    ] = "",
    facts: FactsIn = [],  # noqa: B006
    timestamp: Annotated[str, about("time of the message, ISO 8601; default now")] = "",
    session_id: Annotated[str, about("one per parallel conversation")] = "",
    constraints: ConstraintsIn = [],  # noqa: B006
    preferences: PreferencesIn = [],  # noqa: B006
    user_name: UserNameIn = "",
) -> Reply[RecordedTurn]:
    """Store the user's message and your reply. Pass what the user stated in facts, constraints and
    preferences. needs_review lists facts that it may replace: confirm with replaces."""
    exchange = new_exchange(
        message,
        context=context,
        response=response,
        topic=topic,
        timestamp=timestamp,
        session=session_id,
        stated=statements_of(facts, constraints, preferences, user_name),
    )
    return as_json(conversations.record(exchange, **caller))


@tool("Search what was said")
def retrieve_memory(
    conversations: ConversationService,
    query: Annotated[str, about("a question in plain words")],
    max_results: Annotated[
        int, AfterValidator(_limit_results), aliases("max_results", "limit")
    ] = 5,
) -> Reply[ConversationRecall]:
    """Find what was said about a subject, by words and meaning. Returns facts, and topics with the
    turns that answer."""
    return as_json(recall(conversations, query, max_results))


@tool("List the topics of conversation")
def list_active_topics(
    conversations: ConversationService,
    limit: Annotated[int, Field(ge=1, le=1000), about("topics of one page")] = _MAX_LISTED,
    cursor: Annotated[
        str, Field(pattern=r"^\d{0,9}$"), about("next_cursor of the previous page")
    ] = "",
) -> Reply[TopicList]:
    """List the active topic, then paused topics, newest first. Archived topics are not listed."""
    topics = conversations.topics()
    start = int(cursor or 0)
    stop = start + limit

    rows = []
    for topic in topics[start:stop]:
        row = TopicRow(
            block_id=topic.id,
            topic_label=topic.label,
            status=topic.status.upper(),
            turn_count=len(topic.turns),
            created_at=format_moment(topic.created),
        )
        rows.append(row)

    page = TopicList(topics=rows)
    if stop < len(topics):
        page["more"] = len(topics) - stop
        page["next_cursor"] = str(stop)
    return as_json(page)


@tool("Read a topic")
def get_topic_history(
    conversations: ConversationService, block_id: Annotated[str, about("block_id or label")]
) -> Reply[TopicHistory]:
    """Read all turns of one topic, in order."""
    topic = conversations.find(block_id)
    summary = ""
    if topic.status != "active":
        summary = topic.summary or summary_of(topic)
    history = TopicHistory(
        block_id=topic.id,
        topic_label=topic.label,
        turns=turns_out(topic.turns),
        summary=summary,
    )
    return as_json(history)


@tool("Read the user's profile")
def get_user_profile(
    conversations: ConversationService,
    by_model: Annotated[bool, about("let the configured model write the text")] = False,
) -> Reply[UserProfileAnswer]:
    """Read what the user said about themselves: name, constraints to respect, preferences, what
    holds, what is planned, what was said lately, and topics of interest. `text` is for a prompt."""
    profile = describe_user(conversations, now(), by_model=by_model)
    return as_json(UserProfileAnswer(profile=profile))


@tool("Context for a message")
def talk_context(
    conversations: ConversationService,
    message: Annotated[str, about("the user's current message")],
    budget_tokens: Annotated[
        int, Field(ge=50, le=100_000), aliases("budget_tokens", "budget")
    ] = 1500,
    session_id: str = "",
) -> Reply[MessageContext]:
    """Collect what to know before you answer a message, within a token budget: constraints, the
    user, facts, and what was said on the topic and elsewhere. Changes nothing."""
    return as_json(build_context(conversations, message, budget_tokens, session_id))


@tool("Archive old topics", writes=True)
def garden_topics(
    conversations: ConversationService,
    caller: Caller,
    block_id: Annotated[
        str, about("one topic, or all that have been paused for after_days")
    ] = "all",
    after_days: Annotated[int, Field(ge=1)] = 60,
    dry_run: Annotated[bool, about("only list what would be archived")] = False,
) -> Reply[ArchiveResult]:
    """Archive topics that have been paused for a long time, as one change. Nothing is deleted;
    searches still find them."""
    result = conversations.archive_stale(block_id, after_days, dry_run=dry_run, **caller)
    return as_json(result)


HMLR_TOOLS: Final = (
    store_conversation,
    retrieve_memory,
    list_active_topics,
    get_topic_history,
    get_user_profile,
)
TOOLS: Final = (*HMLR_TOOLS, talk_context, garden_topics)
