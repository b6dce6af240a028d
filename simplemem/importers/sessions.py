"""Reads the sessions that Claude Code, Codex and Gemini CLI store on this machine.

Each session becomes a note with the messages of the user and the agent. A tool call becomes a line,
and its output is left out. Secrets are masked, and the notes are private: their texts are not sent
to remote services.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from simplemem.errors import Invalid
from simplemem.features.conversations.turns import Turn
from simplemem.importers.chats import (
    ChatMessage,
    body_of,
    call_line,
    mask_secrets,
    text_of,
    turns_of,
)
from simplemem.importers.export import (
    Item,
    Skipped,
    convert_records,
    local_time,
    make_note,
    read_time,
    title_of,
)
from simplemem.note.dates import format_moment

# What programs add to the user's messages, and what the user marked as private.
_NOT_FROM_USER = re.compile(
    r"(?is)<(system-reminder|environment_context|user_instructions|session_context|turn_aborted"
    r"|task-notification|local-command-\w++|command-\w++|bash-\w++|ide_\w++|private)"
    r"\b[^<>]*+>.*?(?:</\1>|\Z)"
)
_AGENT_RULES = "# AGENTS.md instructions"
Rows = Iterable[dict[str, Any]]


@dataclass
class _SessionInfo:
    """What is known about a session. A reader fills it in while it reads the messages.

    Attributes:
        id: Its id; the name of its file without a better one.
        project: The path of the folder in which the agent worked; None or "" if it is not known.
        title: Its title; None if the agent gave it none.
    """

    id: str
    project: str | None = None
    title: str | None = None


class Agent(NamedTuple):
    """An agent and its sessions.

    Attributes:
        home_variable: The environment variable with the agent's folder; "" if it has none.
        default_home: The folder without that variable.
        patterns: The files of sessions in the folder.
        read_messages: Yields the messages of a session from its rows, and fills in its info.
    """

    home_variable: str
    default_home: str
    patterns: tuple[str, ...]
    read_messages: Callable[[Rows, _SessionInfo], Iterator[ChatMessage]]


class _Selection(NamedTuple):
    """The sessions to import.

    Attributes:
        agent_name: The name of their agent, a key of `AGENTS`.
        since: The time since which they must have been active; None for any.
        project: The folder in which the agent must have worked; None for any.
    """

    agent_name: str
    since: datetime | None
    project: Path | None


def read(
    agents: Iterable[str], since: datetime | None = None, project: Path | None = None
) -> Iterator[Item | Skipped]:
    """Yield a note for each session of these agents, which are names of `AGENTS`.

    With `since`, only sessions whose files have changed since then are read. With `project`, an
    absolute path, only those in this folder or below it. A session that cannot be read, or has no
    message from the user, is skipped. Sessions of subagents are ignored.
    """
    for name in agents:
        agent = AGENTS[name]
        home = os.environ.get(agent.home_variable) or agent.default_home
        folder = Path(home).expanduser()
        files: list[Path] = []
        for pattern in agent.patterns:
            files += folder.glob(pattern)

        # The file of a subagent's session is called `agent-…`.
        own_files = [file for file in sorted(files) if not file.name.startswith("agent-")]
        records = [(str(file), file) for file in own_files]
        selection = _Selection(name, since, project)
        yield from convert_records(records, partial(_convert_session, selection))


def _convert_session(selection: _Selection, origin: str, file: Path) -> Iterator[Item]:
    """Yield the note of a session, if it is selected.

    Raises Invalid if it contains no message from the user, OSError if it cannot be read, and
    KeyError, TypeError or AttributeError if it has an unexpected form.
    """
    changed_at = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    if selection.since and changed_at < selection.since:
        return

    info = _SessionInfo(id=file.stem)
    with suppress(OSError):  # only sessions of Gemini CLI have this file
        root_file = file.parent.parent / ".project_root"
        info.project = root_file.read_text(encoding="utf-8").strip()

    read_messages = AGENTS[selection.agent_name].read_messages
    messages = read_messages(_read_rows(file), info)
    clean_messages = [message._replace(text=_clean_text(message.text)) for message in messages]
    turns = turns_of(clean_messages, changed_at)

    folder = Path(info.project or "")
    if selection.project and not folder.is_relative_to(selection.project):
        return
    if not turns:
        raise Invalid("it contains no message from the user")
    yield _render_session(selection.agent_name, origin, info, turns)


def _render_session(
    agent_name: str, origin: str, info: _SessionInfo, turns: Sequence[Turn]
) -> Item:
    """Return the note of a session with its turns, of which there must be one.

    It is private. Its path has the day of the first turn and the title: that of `info`, else the
    beginning of the first message.
    """
    title = title_of(_clean_text(info.title or "") or turns[0].message)
    created = local_time(format_moment(turns[0].at)) or ""
    modified = local_time(format_moment(turns[-1].at)) or ""
    properties = {
        "title": title,
        "type": "session",
        "agent": agent_name,
        "project": info.project,
        "private": True,
        "created": created,
        "modified": modified,
    }
    day = created[:10]
    year = day[:4]
    month = day[5:7]
    path = f"{year}/{month}/{day} {title}.md"
    source = f"{agent_name}:{info.id}"
    return make_note(origin, path, body_of(turns), source, properties)


def _clean_text(text: str) -> str:
    """Return a message with its secrets masked, without what the user did not write or share.

    That is what programs add to messages, and what the user marked as private. "" if nothing is
    left.
    """
    if text.startswith(_AGENT_RULES):
        return ""
    return mask_secrets(_NOT_FROM_USER.sub("", text))


def _read_rows(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file: one per line, or one for a `.json` file.

    A line that is not a JSON object is skipped, such as one that is still being written. Raises
    OSError if the file cannot be read.
    """
    with file.open("rb") as stream:
        lines = [stream.read()] if file.suffix == ".json" else stream
        for line in lines:
            with suppress(ValueError, RecursionError):
                row = json.loads(line)
                if isinstance(row, dict):
                    yield row


def _claude_code_messages(rows: Rows, info: _SessionInfo) -> Iterator[ChatMessage]:
    """Yield the messages of a session of Claude Code, without those of subagents.

    The title and the project are stored in `info`. A title by the user takes precedence over one by
    the agent.
    """
    for row in rows:
        match row:
            case {"type": "summary", "summary": str(title)} | {
                "type": "ai-title",
                "aiTitle": str(title),
            }:
                if info.title is None:
                    info.title = title
            case {"type": "custom-title", "customTitle": str(title)}:
                info.title = title
            case {"isSidechain": True} | {"isMeta": True} | {"isCompactSummary": True}:
                continue
            case {"type": "user" | "assistant" as role, "message": {"content": content}}:
                if info.project is None:
                    info.project = str(row.get("cwd") or "")
                yield ChatMessage(
                    id=str(row.get("uuid")),
                    is_from_user=role == "user",
                    at=read_time(row.get("timestamp")),
                    text=text_of(content),
                )


def _codex_messages(rows: Rows, info: _SessionInfo) -> Iterator[ChatMessage]:
    """Yield the messages and tool calls of a session of Codex.

    One without a time has that of the row before it. The id and the project are stored in `info`.
    """
    time = None
    for number, row in enumerate(rows):
        time = read_time(row.get("timestamp")) or time
        match row.get("payload", row):
            case {"type": "message", "role": "user" | "assistant" as role, "content": content}:
                yield ChatMessage(str(number), role == "user", time, text_of(content))
            case {"type": "function_call" | "custom_tool_call" | "local_shell_call"} as call:
                arguments = call.get("arguments") or call.get("input") or call["action"]["command"]
                line = call_line(call.get("name", "shell"), arguments)
                yield ChatMessage("", False, time, line)
            case {"id": str(session_id), "timestamp": str()} as first_row if number == 0:
                info.id = session_id
                info.project = first_row.get("cwd", "")


def _gemini_messages(rows: Rows, info: _SessionInfo) -> Iterator[ChatMessage]:
    """Yield the messages and tool calls of a session of Gemini CLI; none for a subagent's.

    The id and the title are stored in `info`.
    """
    messages: dict[str, dict[str, Any]] = {}
    for row in rows:
        info.id = row.get("sessionId") or info.id
        info.title = row.get("summary") or info.title
        if row.get("kind") == "subagent":
            return
        _apply_gemini_row(messages, row)

    for message_id, message in messages.items():
        if message["type"] not in ("user", "gemini"):
            continue
        calls = message.get("toolCalls") or ()
        call_lines = [call_line(call["name"], call.get("args")) for call in calls]
        texts = [text_of(message.get("content")), *call_lines]
        yield ChatMessage(
            id=message_id,
            is_from_user=message["type"] == "user",
            at=read_time(message.get("timestamp")),
            text="\n\n".join(text for text in texts if text),
        )


def _apply_gemini_row(messages: dict[str, dict[str, Any]], row: dict[str, Any]) -> None:
    """Change `messages`, the rows of a session's messages by id, as a row of its file says.

    A row contains all messages, goes back to before one of them, or adds or replaces one. Other
    rows change nothing.
    """
    all_messages = row.get("$set", row).get("messages")
    first_dropped = row.get("$rewindTo")
    if all_messages is not None:
        messages.clear()
        messages.update({message["id"]: message for message in all_messages})
    elif first_dropped in messages:
        ids = list(messages)
        for message_id in ids[ids.index(first_dropped) :]:
            del messages[message_id]
    elif "id" in row and "type" in row:
        messages[row["id"]] = row


AGENTS: Final = {
    "claude-code": Agent(
        home_variable="CLAUDE_CONFIG_DIR",
        default_home="~/.claude",
        patterns=("projects/*/*.jsonl",),
        read_messages=_claude_code_messages,
    ),
    "codex": Agent(
        home_variable="CODEX_HOME",
        default_home="~/.codex",
        patterns=("sessions/*/*/*/*.jsonl", "archived_sessions/*.jsonl"),
        read_messages=_codex_messages,
    ),
    "gemini-cli": Agent(
        home_variable="",
        default_home="~/.gemini",
        patterns=("tmp/*/chats/session-*.json*",),
        read_messages=_gemini_messages,
    ),
}
"""The agents whose sessions can be imported, by name."""
