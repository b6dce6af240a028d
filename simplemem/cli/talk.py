"""The commands `topics` and `garden`, for people who look after their conversations."""

from __future__ import annotations

from typing import Annotated

import typer

from simplemem.cli.command import WHO, Answer, command, opened
from simplemem.cli.options import VaultOption, argument, flag, option
from simplemem.cli.output import Part, ago
from simplemem.note.clock import stamp
from simplemem.note.words import counted

commands = typer.Typer()
_COLOURS = {"active": "green", "paused": "yellow", "closed": "dim"}


@command(commands, "Keep")
def topics(closed: Annotated[bool, flag("--all", "Closed ones too.")] = False, vault: VaultOption = None) -> Answer:
    """List the topics of conversation: active ones first, then what was spoken of last.

    $ simplemem topics
    """
    from simplemem.kinds.talk.conversation import conversation_of

    with opened(vault) as store:
        found = conversation_of(store).topics(closed=closed)
    shown, rows = list[dict[str, object]](), list[list[Part]]()
    for each in found:
        label, status, turns, last = each.label, each.status, len(each.turns), stamp(each.last)
        about = {"block_id": each.id, "name": each.path[:-3], "topic_label": label, "status": status}
        shown.append(about | {"turns": turns, "last": last})
        rows.append([(label, "cyan"), (status, _COLOURS[status]), counted(turns, "turn"), ago(last)])
    return Answer({"topics": shown}, [] if found else [["No topics."]], rows, gives_way=0)


@command(commands, "Keep")
def garden(
    topic: Annotated[str, argument("[TOPIC]", "One topic by its id or label, whatever its age.")] = "all",
    after_days: Annotated[int, option("--after-days", "DAYS", "Close what has been paused for so long.", min=1)] = 60,
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would be closed.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Close topics that have been paused for long, as one change. Nothing is deleted; closed topics are still found.

    With a language model in the settings, the facts in them are read too.

    $ simplemem garden --dry-run
    $ simplemem garden --after-days 30
    """
    from simplemem.kinds.talk.conversation import conversation_of

    with opened(vault) as store:
        talk = conversation_of(store)
        done = talk.garden(topic, after_days, dry_run=dry_run, who=WHO)
        closed = [each for each in talk.topics(closed=True) if each.id in done["closed"]]
    said = f"{counted(len(closed), 'topic')} {'would be closed' if dry_run else 'closed'}"
    said += f", {counted(len(done['facts']), 'fact')} read by {done['method']}" if done["facts"] else ""
    rows: list[list[Part]] = [[(each.label, "cyan"), (each.id, "dim")] for each in closed]
    return Answer({**done}, [[f"{said}."]], rows, gives_way=0, warnings=done["warnings"])
