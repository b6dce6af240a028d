"""The commands `topics list` and `topics archive`."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import WHO, Answer, command, opened
from simplemem.cli.options import (
    DryRunOption,
    VaultOption,
    argument,
    default_group,
    duration,
    flag,
    option,
)
from simplemem.cli.output import OPTIONAL, WHOLE, Part, ago
from simplemem.note.dates import format_moment
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.features.conversations.topic import Topic

commands = typer.Typer()
_topics = default_group(
    commands,
    "Collections",
    "topics",
    "Topics of conversations with agents.",
    "$ simplemem topics\n$ simplemem topics archive --dry-run",
)
_COLOURS = {"active": "green", "paused": "yellow", "closed": "dim"}


@command(_topics, name="list")
def list_topics(
    closed: Annotated[bool, flag("--all", "Include closed topics.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """List the topics: active topics first, then the most recent.

    $ simplemem topics
    $ simplemem topics list --all
    """
    from simplemem.features.conversations.service import conversation_service

    with opened(vault) as store:
        topics = conversation_service(store).topics(closed=closed)

    facts = {"topics": [_topic_facts(topic) for topic in topics]}
    rows = [_topic_row(topic) for topic in topics]
    lines = [] if topics else [["No topics."]]
    return Answer(facts, lines, rows, columns=(WHOLE, WHOLE, OPTIONAL, WHOLE))


def _topic_facts(topic: Topic) -> dict[str, Any]:
    """Return a topic as the JSON answer has it.

    The keys are `block_id`, `name` (of the note), `topic_label`, `status`, `turns` (their number)
    and `last` (the time of the last one).
    """
    return {
        "block_id": topic.id,
        "name": topic.name,
        "topic_label": topic.label,
        "status": topic.status,
        "turns": len(topic.turns),
        "last": format_moment(topic.last),
    }


def _topic_row(topic: Topic) -> list[Part]:
    """Return a topic as a row of the table: label, status, number of turns, age."""
    return [
        (topic.label, "cyan"),
        (topic.status, _COLOURS[topic.status]),
        format_count(len(topic.turns), "turn"),
        ago(format_moment(topic.last)),
    ]


@command(_topics, old_options={"--after-days": "older_than"})
def archive(
    topic: Annotated[
        str, argument("TOPIC", "Only this topic, by its id or label, whatever its age.")
    ] = "all",
    older_than: Annotated[
        str, option("--older-than", "TIME", "Topics that have been paused for this long.")
    ] = "60d",
    dry_run: DryRunOption = False,
    vault: VaultOption = None,
) -> Answer:
    """Close topics that have been paused for a long time, in one step.

    A topic that is named is closed even if it is not paused. Nothing is deleted, and search still
    finds closed topics. If the settings name a language model, it extracts the facts in the topics.

    $ simplemem topics archive --dry-run
    $ simplemem topics archive --older-than 30d
    """
    from simplemem.features.conversations.service import conversation_service

    age = duration(older_than, "--older-than", least=timedelta(days=1))
    with opened(vault) as store:
        conversations = conversation_service(store)
        result = conversations.archive_stale(topic, age.days, dry_run=dry_run, who=WHO)
        topics = conversations.topics(closed=True)
        closed_topics = [topic for topic in topics if topic.id in result["closed"]]

    verb = "would be closed" if dry_run else "closed"
    summary = f"{format_count(len(closed_topics), 'topic')} {verb}"
    if result["facts"]:
        facts = format_count(len(result["facts"]), "fact")
        summary += f", {facts} extracted by {result['method']}"
    rows: list[list[Part]] = [
        [(closed.label, "cyan"), (closed.id, "dim")] for closed in closed_topics
    ]
    return Answer(
        {**result},
        [[f"{summary}."]],
        rows,
        columns=(WHOLE, WHOLE),
        warnings=result["warnings"],
    )
