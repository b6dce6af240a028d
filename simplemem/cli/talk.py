"""The commands `topics list` and `topics archive`."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated

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
        found = conversation_service(store).topics(closed=closed)
    shown, rows = list[dict[str, object]](), list[list[Part]]()
    for each in found:
        label, status, turns, last = (
            each.label,
            each.status,
            len(each.turns),
            format_moment(each.last),
        )
        about = {
            "block_id": each.id,
            "name": each.path[:-3],
            "topic_label": label,
            "status": status,
        }
        shown.append(about | {"turns": turns, "last": last})
        rows.append(
            [(label, "cyan"), (status, _COLOURS[status]), format_count(turns, "turn"), ago(last)]
        )
    columns = (WHOLE, WHOLE, OPTIONAL, WHOLE)
    return Answer({"topics": shown}, [] if found else [["No topics."]], rows, columns=columns)


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

    Nothing is deleted, and search still finds closed topics. If the settings name a language model, it extracts the
    facts in the topics.

    $ simplemem topics archive --dry-run
    $ simplemem topics archive --older-than 30d
    """
    from simplemem.features.conversations.service import conversation_service

    age = duration(older_than, "--older-than", least=timedelta(days=1))
    with opened(vault) as store:
        talk = conversation_service(store)
        done = talk.archive_stale(topic, age.days, dry_run=dry_run, who=WHO)
        closed = [each for each in talk.topics(closed=True) if each.id in done["closed"]]
    summary = f"{format_count(len(closed), 'topic')} {'would be closed' if dry_run else 'closed'}"
    summary += (
        f", {format_count(len(done['facts']), 'fact')} extracted by {done['method']}"
        if done["facts"]
        else ""
    )
    rows: list[list[Part]] = [[(each.label, "cyan"), (each.id, "dim")] for each in closed]
    return Answer(
        {**done}, [[f"{summary}."]], rows, columns=(WHOLE, WHOLE), warnings=done["warnings"]
    )
