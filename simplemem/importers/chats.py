"""Chats of ChatGPT and Claude, from their data exports: each becomes a conversation as the vault keeps them, closed, so
that it is found and in nobody's way. Facts and the profile take nothing from it: much in a chat is pasted or a draft."""

from __future__ import annotations

import codecs
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from simplemem.errors import Invalid, SimplememError, Unreadable
from simplemem.features.conversations import topic as topics
from simplemem.features.conversations.patterns import keywords_of, label_of
from simplemem.features.conversations.topic import EPOCH, TOPIC, Turn
from simplemem.importers.export import (
    SOURCE,
    UNREADABLE,
    ExportedFile,
    Item,
    Left,
    each,
    moment,
    note,
    wall_time,
)
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.header import read_header
from simplemem.note.properties import set_property
from simplemem.note.secrets import find_secrets
from simplemem.note.text_edits import apply_edits
from simplemem.note.words import well_formed
from simplemem.store import Read

_AT_ONCE, _MOST_RECORD = 4_000_000, 64_000_000  # characters
_MOST_TURNS, _MOST_CHARACTERS = 300, 400_000  # of one note; then the next goes on
_MOST_LABEL, _MOST_CALL, _MOST_READ = (
    120,
    120,
    20_000,
)  # characters: of a title, of a call of a tool; for keywords
_CITED = re.compile("\ue200[^\ue201]{0,2000}\ue201")  # what ChatGPT's page draws as a mark
_UNTIL = (
    "source_until"  # the property that says how far turns came: one that was deleted since stays so
)


class Said(NamedTuple):
    """A message: of the person, or of who answers."""

    id: str
    is_asked: bool
    at: datetime | None
    text: str
    context: str = ""


def read(files: Mapping[str, ExportedFile]) -> Iterator[Item | Left]:
    """All that is in an export."""
    for name, file in files.items():
        yield from each(_records(name, file), _items)


def _records(name: str, file: ExportedFile) -> Iterator[tuple[str, Any]]:
    """The values of a JSON array, or the one there is, one after the other: an export can be larger than the memory."""
    text, at, number, decode = "", 0, 0, json.JSONDecoder().raw_decode
    try:
        with file.open() as stream:
            reader = codecs.getreader("utf-8-sig")(stream, "replace")
            while True:
                at = next(
                    k
                    for k in range(at, len(text) + 1)
                    if k == len(text) or text[k] not in " \t\r\n,["
                )
                try:
                    value, at = decode(text, at)
                except (ValueError, RecursionError):
                    if len(text) - at > _MOST_RECORD or not (more := reader.read(_AT_ONCE)):
                        break
                    text, at = text[at:] + more, 0
                else:
                    number += 1
                    yield f"{name} {number}", value
    except (SimplememError, *UNREADABLE) as error:
        yield name, Unreadable(f"it cannot be read, nor can the records after it: {error}")
        return
    if text[at:].strip("] \t\r\n"):
        if not number:
            raise Unreadable(
                f"{name} is not the JSON of an export",
                hint="Pass the zip of the export, or its conversations.json.",
            )
        yield name, Unreadable(f"the part after record {number} cannot be read")


def _items(where: str, record: Any) -> Iterator[Item]:
    match record:
        case Unreadable():
            raise record
        case {"mapping": dict()}:
            id_, begun = (
                record.get("conversation_id") or record["id"],
                moment(record.get("create_time")),
            )
            yield from _conversation(
                where, f"chatgpt:{id_}", record.get("title"), turns_of(_of_chatgpt(record), begun)
            )
        case {"chat_messages": list(messages), "uuid": id_}:
            yield from _conversation(
                where, f"claude:{id_}", record.get("name"), turns_of(map(_of_claude, messages))
            )
        case {"conversations_memory": text}:
            told = {
                f"Memory of {id_}": text
                for id_, text in (record.get("project_memories") or {}).items()
            }
            for name, memory in {"Memory": text, **told}.items():
                yield from _beside(
                    where, name, memory, f"claude:{record.get('account_uuid')}/{name}"
                )
        case {"docs": list(docs), "uuid": id_, "name": str(title)}:
            for doc in ({"filename": title, "content": record.get("prompt_template")}, *docs):
                path = "/".join(
                    part.replace("/", "-") for part in (title, doc["filename"].removesuffix(".md"))
                )
                of = f"claude:{id_}/{doc.get('uuid') or 'instructions'}"
                yield from _beside(where, path, doc["content"], of, doc.get("created_at"))
        case _:
            raise Invalid("it is not a conversation")


def _beside(
    where: str, path: str, text: str | None, source: str, created: Any = None
) -> Iterator[Item]:
    """What Claude remembers, or has in a project."""
    if text and text.strip():
        told = {"title": path.rpartition("/")[2], "type": "memory", "created": wall_time(created)}
        yield note(where, f"claude/{path}.md", text, source, told)


def _of_chatgpt(record: Mapping[str, Any]) -> Iterator[Said]:
    """The branch of a chat that was seen last."""
    nodes, path = record["mapping"], dict[str, Any]()
    id_ = str(record.get("current_node") or next(reversed(nodes), None))
    while id_ not in path and (node := nodes.get(id_)):
        path[id_], id_ = node["message"] or {}, node.get("parent")
    for id_, message in reversed(path.items()):
        more, role = message.get("metadata") or {}, (message.get("author") or {}).get("role")
        is_shown = message.get("recipient") in (None, "all") and message.get("channel") in (
            None,
            "final",
        )
        if (
            is_shown
            and role in ("user", "assistant")
            and not more.get("is_visually_hidden_from_conversation")
        ):
            content, names = (
                message["content"],
                [str(file.get("name")) for file in more.get("attachments") or ()],
            )
            is_code = content.get("content_type") == "code"
            text = f"```\n{content['text']}\n```" if is_code else text_of(content.get("parts"))
            attached = f"Attached: {', '.join(names)}" if names else ""
            yield Said(
                id_,
                role == "user",
                moment(message.get("create_time")),
                _CITED.sub("", text),
                attached,
            )


def _of_claude(message: Any) -> Said:
    text = text_of(message.get("content")) or message.get("text") or ""
    files = [*(message.get("attachments") or ()), *(message.get("files") or ())]
    told = (
        f"{file.get('file_name')}\n{file.get('extracted_content') or ''}".strip() for file in files
    )
    at = moment(message.get("created_at"))
    return Said(message["uuid"], message["sender"] == "human", at, text, "\n\n".join(told))


def text_of(content: Any) -> str:
    """What is said in a message, with the calls in it, and what Claude made beside it."""
    texts = list[str]()
    parts: Sequence[Any] = [content] if isinstance(content, str) else content or ()
    for part in parts:
        match part:
            case {
                "type": "tool_use",
                "name": "artifacts",
                "input": {"content": str(made)} as given,
            }:
                texts.append(f"{given.get('title') or 'Artifact'}:\n\n{made}")
            case {"type": "tool_use", "name": str(name)}:
                texts.append(call_of(name, part.get("input")))
            case {"thought": True}:
                continue
            case str(text) | {"text": str(text)} if text.strip():
                texts.append(text)
    return "\n\n".join(texts)


def call_of(name: str, given: Any) -> str:
    """A call of a tool: its name, and the first text that it was given."""
    if isinstance(given, str):
        with suppress(ValueError, RecursionError):
            given = json.loads(given)
    values = given.values() if isinstance(given, dict) else [given]
    texts = (" ".join(map(str, value)) if isinstance(value, list) else value for value in values)
    text = masked(next((text for text in texts if isinstance(text, str)), ""))
    return f"- {name}: {' '.join(text.split())[:_MOST_CALL]}".rstrip(": ")


def masked(text: str) -> str:
    """A text without its secrets."""
    return apply_edits(
        text, ((secret.start, secret.end, "[redacted]") for secret in find_secrets(text))
    )


def turns_of(said: Iterable[Said], begun: datetime | None = None) -> list[Turn]:
    """Questions with their answers, in their order. What has no time has that of what stands before it."""
    turns, last = list[Turn](), EPOCH
    for id_, is_asked, at, *texts in said:
        last = max(
            last, (at or (begun if begun and last == EPOCH else last)).replace(microsecond=0)
        )
        text, context = map(_clean, texts)
        if is_asked and (text or context):
            turns.append(
                Turn(
                    f"turn_{last:%Y%m%d_%H%M%S}_{_mark(id_)}", last, text or "(a file)", "", context
                )
            )
        elif turns and text:
            turns[-1] = turns[-1]._replace(answer=f"{turns[-1].answer}\n\n{text}".strip("\n"))
    return turns


def _mark(id_: str) -> str:
    return hashlib.sha256(id_.encode("utf-8", "replace")).hexdigest()[:6]


def _clean(text: str) -> str:
    return (
        well_formed(re.sub(r"\r\n?", "\n", text).replace("\0", "")).strip("\n")
        if text.strip()
        else ""
    )


def body_of(turns: Sequence[Turn]) -> str:
    """Turns as they stand in a note, beneath their days."""
    days = [topics.day_of(turn.at) for turn in turns]
    pairs = zip(["", *days], days, turns, strict=False)
    return "\n".join(
        (f"{day}\n" if day != before else "") + topics.render_turn(turn)
        for before, day, turn in pairs
    )


def _conversation(
    where: str, source: str, title: str | None, every: Sequence[Turn]
) -> Iterator[Item]:
    """The notes of a conversation: one, unless it is very long."""
    if not every:
        raise Invalid("it contains no message from the user")
    label = " ".join(_clean(title or "").split())[:_MOST_LABEL] or label_of(every[0].message)
    parts, size = list[list[Turn]](), 0
    for turn in every:
        size += (length := len("".join(turn[2:5])))
        if not parts or len(parts[-1]) == _MOST_TURNS or size > _MOST_CHARACTERS:
            parts.append([])
            size = length
        parts[-1].append(turn)
    for number, turns in enumerate(parts, 1):
        name, of = (label, source) if number == 1 else (f"{label} {number}", f"{source}/{number}")
        path, at = f"{topics.topic_name(name, turns[0].at)}.md", turns[-1].at.timestamp()
        yield Item(where, path, _new(name, of, turns), of, at, grown=partial(_grown, turns))


def _new(label: str, source: str, turns: Sequence[Turn]) -> str:
    """The note of a conversation."""
    told = {
        "title": label,
        "aliases": [f"block_{turns[0].id[5:20]}_{_mark(source)}"],
        "tags": ["status/closed"],
    }
    told |= {SOURCE: source, "keywords": keywords_of([turn.message[:_MOST_READ] for turn in turns])}
    text = TOPIC.render(told, body_of(turns), wall_time(format_moment(turns[0].at)) or "")
    return _dated(topics.pause_or_close(text, _block(text), "closed"), turns)


def _block(text: str) -> topics.Topic:
    return topics.read_topic(Read("", text, "", ""))


def _dated(text: str, turns: Sequence[Turn]) -> str:
    """A note whose last turns are these."""
    text = set_property(text, "modified", wall_time(at := format_moment(turns[-1].at)))
    text = set_property(text, _UNTIL, at)
    return (
        set_property(text, "private", True)
        if any(find_secrets("\n".join(turn[2:5])) for turn in turns)
        else text
    )


def _grown(turns: Sequence[Turn], text: str) -> str:
    """The note of a conversation with the turns that came to it since."""
    if (block := _block(text)).problem:
        raise Unreadable(f"its note cannot be changed: {block.problem}")
    until = parse_moment(str(read_header(text).get(_UNTIL) or "")) or block.last
    new = [turn for turn in turns if turn.at > until]
    for turn in new:
        text = topics.insert_turn(_block(text), turn)
    return _dated(text, new) if new else text
