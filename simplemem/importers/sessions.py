"""Sessions that Claude Code, Codex and Gemini CLI leave on this machine: a note each, of what the person said and the agent
answered. A call of a tool is a line and what it gave is left out; secrets are masked, and no text of a note leaves here."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

from simplemem.errors import Invalid
from simplemem.importers.chats import Said, body_of, call_of, masked, text_of, turns_of
from simplemem.importers.export import Item, Left, each, moment, note, title_of, wall_time
from simplemem.note.dates import format_moment

# What programs put among a person's words; and what a person marked as private.
_NOT_SAID = re.compile(
    r"(?is)<(system-reminder|environment_context|user_instructions|session_context|turn_aborted|task-notification"
    r"|local-command-\w++|command-\w++|bash-\w++|ide_\w++|private)\b[^<>]*+>.*?(?:</\1>|\Z)"
)
_RULES = "# AGENTS.md instructions"
_Rows = Iterable[dict[str, Any]]
_About = dict[str, str]  # what is said of a session: id, project, title


def read(
    agents: Iterable[str], since: datetime | None = None, project: Path | None = None
) -> Iterator[Item | Left]:
    """The sessions of some agents, of a project and with a change since then if that is said."""
    for name in agents:
        variable, home, places, _ = AGENTS[name]
        folder = Path(os.environ.get(variable) or home).expanduser()
        found = sorted(
            file
            for place in places
            for file in folder.glob(place)
            if not file.name.startswith("agent-")
        )
        yield from each(
            ((str(file), file) for file in found), partial(_session, name, since, project)
        )


def _session(
    agent: str, since: datetime | None, project: Path | None, where: str, file: Path
) -> Iterator[Item]:
    changed = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    if since and changed < since:
        return
    about = {"id": file.stem}
    with suppress(OSError):  # Gemini's
        about["project"] = (
            (file.parent.parent / ".project_root").read_text(encoding="utf-8").strip()
        )
    said = (
        message._replace(text=_shown(message.text))
        for message in AGENTS[agent][3](_rows(file), about)
    )
    turns = turns_of(said, changed)
    if project and not Path(about.get("project", "")).is_relative_to(project):
        return
    if not turns:
        raise Invalid("it contains no message from the user")
    first, last = (wall_time(format_moment(turn.at)) or "" for turn in (turns[0], turns[-1]))
    title = title_of(_shown(about.get("title", "")) or turns[0].message) or "Session"
    told = {
        "title": title,
        "type": "session",
        "agent": agent,
        "project": about.get("project"),
        "private": True,
    }
    path = f"{first[:4]}/{first[5:7]}/{first[:10]} {title}.md"
    yield note(
        where,
        path,
        body_of(turns),
        f"{agent}:{about['id']}",
        {**told, "created": first, "modified": last},
    )


def _shown(text: str) -> str:
    """A text without what nobody said or wants read."""
    return "" if text.startswith(_RULES) else masked(_NOT_SAID.sub("", text))


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    """The lines of a file, or all of it; one that is still being written is passed over."""
    with file.open("rb") as stream:
        for line in [stream.read()] if file.suffix == ".json" else stream:
            with suppress(ValueError, RecursionError):
                if isinstance(row := json.loads(line), dict):
                    yield row


def _claude_code(rows: _Rows, about: _About) -> Iterator[Said]:
    for row in rows:
        match row:
            case {"type": "summary", "summary": str(title)} | {
                "type": "ai-title",
                "aiTitle": str(title),
            }:
                about.setdefault("title", title)
            case {"type": "custom-title", "customTitle": str(title)}:
                about["title"] = title
            case {"isSidechain": True} | {"isMeta": True} | {"isCompactSummary": True}:
                continue
            case {"type": "user" | "assistant" as role, "message": {"content": content}}:
                about.setdefault("project", str(row.get("cwd") or ""))
                yield Said(
                    str(row.get("uuid")),
                    role == "user",
                    moment(row.get("timestamp")),
                    text_of(content),
                )


def _codex(rows: _Rows, about: _About) -> Iterator[Said]:
    at = None
    for number, row in enumerate(rows):
        at = moment(row.get("timestamp")) or at
        match row.get("payload", row):
            case {"type": "message", "role": "user" | "assistant" as role, "content": content}:
                yield Said(str(number), role == "user", at, text_of(content))
            case {"type": "function_call" | "custom_tool_call" | "local_shell_call"} as call:
                given = call.get("arguments") or call.get("input") or call["action"]["command"]
                yield Said("", False, at, call_of(call.get("name", "shell"), given))
            case {"id": str(id_), "timestamp": str()} as begin if not number:
                about |= {"id": id_, "project": begin.get("cwd", "")}


def _gemini(rows: _Rows, about: _About) -> Iterator[Said]:
    messages = dict[str, dict[str, Any]]()
    for row in rows:
        about |= {
            key: row[name]
            for key, name in (("id", "sessionId"), ("title", "summary"))
            if row.get(name)
        }
        if row.get("kind") == "subagent":
            return
        if (every := row.get("$set", row).get("messages")) is not None:
            messages = {message["id"]: message for message in every}
        elif (gone := row.get("$rewindTo")) in messages:
            messages = dict(list(messages.items())[: list(messages).index(gone)])
        elif "id" in row and "type" in row:
            messages[row["id"]] = row
    for id_, row in messages.items():
        if row["type"] in ("user", "gemini"):
            calls = [call_of(call["name"], call.get("args")) for call in row.get("toolCalls") or ()]
            text = "\n\n".join(filter(None, [text_of(row.get("content")), *calls]))
            yield Said(id_, row["type"] == "user", moment(row.get("timestamp")), text)


AGENTS: Final = {  # by name: a variable that says where its home is, its home, its sessions there, and what reads one
    "claude-code": ("CLAUDE_CONFIG_DIR", "~/.claude", ["projects/*/*.jsonl"], _claude_code),
    "codex": (
        "CODEX_HOME",
        "~/.codex",
        ["sessions/*/*/*/*.jsonl", "archived_sessions/*.jsonl"],
        _codex,
    ),
    "gemini-cli": ("", "~/.gemini", ["tmp/*/chats/session-*.json*"], _gemini),
}
