"""Readers for chats of ChatGPT and Claude, from their data exports.

Each chat becomes a closed topic of the conversations. Facts and the user profile take nothing from
it, because much of a chat is pasted text or a draft.
"""

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
from simplemem.features.conversations.message_labels import keywords_of, label_of
from simplemem.features.conversations.topic import TOPIC
from simplemem.features.conversations.topic_summary import pause_or_close
from simplemem.features.conversations.turns import Turn, render_turn
from simplemem.features.fact import EPOCH
from simplemem.importers.export import (
    SOURCE,
    UNREADABLE,
    ExportedFile,
    Item,
    Skipped,
    convert_records,
    local_time,
    make_note,
    read_time,
)
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.header import read_header
from simplemem.note.properties import set_property
from simplemem.note.secrets import find_secrets
from simplemem.note.text_edits import apply_edits
from simplemem.note.words import well_formed
from simplemem.store import Read

# Characters that are read at once, and those that one record may have.
_CHUNK = 4_000_000
_MAX_RECORD = 64_000_000
# Of one note; another note continues a longer chat.
_MAX_TURNS = 300
_MAX_CHARACTERS = 400_000
# Characters of a title, of the line for a tool call, and of a message for its keywords.
_MAX_LABEL = 120
_MAX_CALL = 120
_MAX_KEYWORD_TEXT = 20_000
_SEPARATORS = re.compile(r"[ \t\r\n,\[]*+")
_CITATION = re.compile("\ue200[^\ue201]{0,2000}\ue201")  # ChatGPT's page shows it as a mark
_LAST_IMPORTED = "source_until"
"""The property with the time of the last imported turn, also if the turn was deleted since."""


class ChatMessage(NamedTuple):
    """A message of the user, or of the assistant.

    Attributes:
        id: Its id in the export, or "".
        is_from_user: Whether the user wrote it.
        at: Its time; None if the export does not state it.
        text: Its text, in Markdown.
        context: The names of attached files, and their texts as far as the export has them.
    """

    id: str
    is_from_user: bool
    at: datetime | None
    text: str
    context: str = ""


class _InvalidRestError(Exception):
    """The rest of a file, after the values that were read, is not JSON."""


def read(files: Mapping[str, ExportedFile]) -> Iterator[Item | Skipped]:
    """Yield the chats of an export, and Claude's memory and projects.

    A chat without a message from the user is skipped, and so are records of an unknown form. Raises
    Unreadable if a file is not JSON from its beginning.
    """
    for name, file in files.items():
        yield from convert_records(_records(name, file), _convert_record)


def _records(name: str, file: ExportedFile) -> Iterator[tuple[str, Any]]:
    """Yield the records of a file one at a time, each with its origin, such as "chats.json 1".

    The origin is `name` and the number of the record. If the file cannot be opened, or be read to
    its end, the last pair is `name` and an Unreadable with the reason, which `_convert_record`
    raises. Raises Unreadable if not even the first record can be parsed.
    """
    number = 0
    try:
        with file.open() as stream:
            reader = codecs.getreader("utf-8-sig")(stream, "replace")
            for value in _json_values(reader):
                number += 1
                yield f"{name} {number}", value
    except _InvalidRestError as error:
        if not number:
            raise Unreadable(
                f"{name} is not the JSON of an export",
                hint="Pass the zip of the export, or its conversations.json.",
            ) from error
        yield name, Unreadable(f"the part after record {number} cannot be read")
    except (SimplememError, *UNREADABLE) as error:
        yield name, Unreadable(f"it cannot be read, nor can the records after it: {error}")


def _json_values(reader: codecs.StreamReader) -> Iterator[Any]:
    """Yield the values of a JSON array, or the only value, one at a time.

    An export can be larger than the memory of the machine, so it is read in chunks. Raises
    _InvalidRestError, after all values before it, if the rest is not JSON or one value is longer
    than 64 million characters.
    """
    decode = json.JSONDecoder().raw_decode
    text = ""
    offset = 0
    while True:
        offset = _skip_separators(text, offset)
        try:
            value, offset = decode(text, offset)
        except (ValueError, RecursionError):
            # The text may end within the value: read on.
            is_too_long = len(text) - offset > _MAX_RECORD
            more_text = "" if is_too_long else reader.read(_CHUNK)
            if not more_text:
                break
            text = text[offset:] + more_text
            offset = 0
        else:
            yield value

    rest = text[offset:]
    if rest.strip("] \t\r\n"):
        raise _InvalidRestError


def _skip_separators(text: str, offset: int) -> int:
    """Return the offset after blanks, commas and opening brackets, where the next value begins."""
    match = _SEPARATORS.match(text, offset)
    assert match is not None  # the pattern also matches no separators
    return match.end()


def _convert_record(origin: str, record: Any) -> Iterator[Item]:
    """Yield the notes of a record: a chat, Claude's memory or a project of Claude.

    Raises Invalid for a record of an unknown form, and a record that is itself an Unreadable.
    """
    match record:
        case Unreadable():
            raise record
        case {"mapping": dict()}:
            yield from _convert_chatgpt_chat(origin, record)
        case {"chat_messages": list(messages), "uuid": chat_id}:
            turns = turns_of(map(_claude_message, messages))
            yield from _convert_turns(origin, f"claude:{chat_id}", record.get("name"), turns)
        case {"conversations_memory": _}:
            yield from _convert_claude_memory(origin, record)
        case {"docs": list(), "uuid": _, "name": str()}:
            yield from _convert_claude_project(origin, record)
        case _:
            raise Invalid("it is not a conversation")


def _convert_chatgpt_chat(origin: str, record: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the notes of a chat with ChatGPT. Raises Invalid if the user wrote nothing in it."""
    chat_id = record.get("conversation_id") or record["id"]
    created = read_time(record.get("create_time"))
    messages = _chatgpt_messages(record)
    turns = turns_of(messages, created)
    yield from _convert_turns(
        origin,
        source=f"chatgpt:{chat_id}",
        title=record.get("title"),
        turns=turns,
    )


def _convert_claude_memory(origin: str, record: Mapping[str, Any]) -> Iterator[Item]:
    """Yield what Claude remembers: one note for all chats, and one for each project.

    Blank texts are left out.
    """
    memories = {"Memory": record["conversations_memory"]}
    project_memories = record.get("project_memories") or {}
    for project_id, memory in project_memories.items():
        title = f"Memory of {project_id}"
        memories[title] = memory

    account = record.get("account_uuid")
    for title, memory in memories.items():
        source = f"claude:{account}/{title}"
        yield from _convert_document(origin, title, memory, source)


def _convert_claude_project(origin: str, record: Mapping[str, Any]) -> Iterator[Item]:
    """Yield the instructions and the documents of a project of Claude as notes in its folder.

    Blank ones are left out. Raises KeyError, TypeError or AttributeError for a document of an
    unexpected form.
    """
    folder = record["name"].replace("/", "-")
    source = f"claude:{record['uuid']}"
    instructions = {"filename": record["name"], "content": record.get("prompt_template")}
    for document in (instructions, *record["docs"]):
        name = document["filename"].removesuffix(".md").replace("/", "-")
        document_id = document.get("uuid") or "instructions"
        yield from _convert_document(
            origin,
            f"{folder}/{name}",
            document["content"],
            f"{source}/{document_id}",
            document.get("created_at"),
        )


def _convert_document(
    origin: str, path: str, text: str | None, source: str, created: object = None
) -> Iterator[Item]:
    """Yield a text of Claude as a note below `claude/`. A blank text is left out.

    `path` has no ending. `source` identifies the text, so that a later import recognises its note.
    """
    if text and text.strip():
        properties = {
            "title": path.rpartition("/")[2],
            "type": "memory",
            "created": local_time(created),
        }
        yield make_note(origin, f"claude/{path}.md", text, source, properties)


def _chatgpt_messages(record: Mapping[str, Any]) -> Iterator[ChatMessage]:
    """Yield the messages that ChatGPT's page shows, of the branch that was seen last.

    Raises KeyError, TypeError or AttributeError for a record of an unexpected form.
    """
    for message_id, message in _chatgpt_branch(record):
        if not _is_visible(message):
            continue

        content = message["content"]
        if content.get("content_type") == "code":
            text = f"```\n{content['text']}\n```"
        else:
            text = text_of(content.get("parts"))

        metadata = message.get("metadata") or {}
        files = [str(file.get("name")) for file in metadata.get("attachments") or ()]
        yield ChatMessage(
            id=message_id,
            is_from_user=message["author"]["role"] == "user",
            at=read_time(message.get("create_time")),
            text=_CITATION.sub("", text),
            context=f"Attached: {', '.join(files)}" if files else "",
        )


def _chatgpt_branch(record: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the messages of the branch that was seen last, with their ids, the first one first.

    A node without a message has {}. Raises KeyError, TypeError or AttributeError for a record of an
    unexpected form.
    """
    nodes = record["mapping"]
    branch: dict[str, dict[str, Any]] = {}
    last_node_id = next(reversed(nodes), None)
    node_id = str(record.get("current_node") or last_node_id)
    node = nodes.get(node_id)
    while node and node_id not in branch:
        branch[node_id] = node["message"] or {}
        node_id = node.get("parent")
        node = nodes.get(node_id)

    messages = list(branch.items())
    messages.reverse()
    return messages


def _is_visible(message: Mapping[str, Any]) -> bool:
    """Return whether ChatGPT's page shows a message: one of the user, or a final answer."""
    author = message.get("author") or {}
    metadata = message.get("metadata") or {}
    return (
        author.get("role") in ("user", "assistant")
        and message.get("recipient") in (None, "all")
        and message.get("channel") in (None, "final")
        and not metadata.get("is_visually_hidden_from_conversation")
    )


def _claude_message(message: Mapping[str, Any]) -> ChatMessage:
    """Return a message of Claude's export, with the texts of its files as context.

    Raises KeyError or AttributeError for a message of an unexpected form.
    """
    files = [*(message.get("attachments") or ()), *(message.get("files") or ())]
    file_texts = []
    for file in files:
        content = file.get("extracted_content") or ""
        file_texts.append(f"{file.get('file_name')}\n{content}".strip())

    return ChatMessage(
        id=message["uuid"],
        is_from_user=message["sender"] == "human",
        at=read_time(message.get("created_at")),
        text=text_of(message.get("content")) or message.get("text") or "",
        context="\n\n".join(file_texts),
    )


def text_of(content: Any) -> str:
    """Return the text of a message, with a line per tool call, and Claude's artifacts.

    `content` is a text, a list of parts or None. Parts are separated by empty lines. Thoughts,
    blank parts and parts of other kinds are left out. "" if nothing is left.
    """
    parts: Iterable[Any] = content or ()
    if isinstance(content, str):
        parts = [content]
    texts: list[str] = []
    for part in parts:
        match part:
            case {
                "type": "tool_use",
                "name": "artifacts",
                "input": {"content": str(text)} as artifact,
            }:
                title = artifact.get("title") or "Artifact"
                texts.append(f"{title}:\n\n{text}")
            case {"type": "tool_use", "name": str(name)}:
                texts.append(call_line(name, part.get("input")))
            case {"thought": True}:
                continue
            case str(text) | {"text": str(text)} if text.strip():
                texts.append(text)
    return "\n\n".join(texts)


def call_line(name: str, arguments: object) -> str:
    """Return the line for a tool call, `- NAME: ARGUMENT`.

    The argument is the first one that is a text or a list, up to 120 characters; there may be none.
    `arguments` is an object, its JSON, or a single value. Secrets are masked.
    """
    if isinstance(arguments, str):
        with suppress(ValueError, RecursionError):
            arguments = json.loads(arguments)

    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    first_text = ""
    for value in values:
        if isinstance(value, list):
            value = " ".join(map(str, value))
        if isinstance(value, str):
            first_text = value
            break

    words = mask_secrets(first_text).split()
    text = " ".join(words)[:_MAX_CALL]
    return f"- {name}: {text}".rstrip(": ")


def mask_secrets(text: str) -> str:
    """Return a text with `[redacted]` in place of each secret."""
    edits = [(secret.start, secret.end, "[redacted]") for secret in find_secrets(text)]
    return apply_edits(text, edits)


def turns_of(messages: Iterable[ChatMessage], begun: datetime | None = None) -> list[Turn]:
    """Return the messages of the user with their answers, in order and with rising times.

    A message without a time, or with an earlier one, gets the time of the message before it. A
    first message without a time gets `begun`, or 1970. Several answers to a message are joined.
    Answers before the first message of the user are left out, and so are blank messages. [] if the
    user wrote nothing.
    """
    turns: list[Turn] = []
    last_time = EPOCH
    for message in messages:
        is_first = last_time == EPOCH
        default_time = begun if begun and is_first else last_time
        time = message.at or default_time
        last_time = max(last_time, time.replace(microsecond=0))

        text = _clean(message.text)
        context = _clean(message.context)
        if message.is_from_user and (text or context):
            short_hash = _short_hash(message.id)
            turn = Turn(
                f"turn_{last_time:%Y%m%d_%H%M%S}_{short_hash}",
                last_time,
                text or "(a file)",
                "",
                context,
            )
            turns.append(turn)
        elif turns and text:
            turn = turns.pop()
            answer = f"{turn.answer}\n\n{text}".strip("\n")
            turns.append(turn._replace(answer=answer))
    return turns


def _short_hash(text: str) -> str:
    """Return six hexadecimal digits of a text's hash, so that ids made in a second differ."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:6]


def _clean(text: str) -> str:
    """Return a text that a note can contain, without empty lines around it; "" for a blank one."""
    if not text.strip():
        return ""
    text = re.sub(r"\r\n?", "\n", text).replace("\0", "")
    return well_formed(text).strip("\n")


def body_of(turns: Iterable[Turn]) -> str:
    """Return turns as the body of a note, with a heading before the first turn of each day."""
    parts = []
    current_day = ""
    for turn in turns:
        rendered = render_turn(turn)
        day = topics.day_of(turn.at)
        if day != current_day:
            rendered = f"{day}\n{rendered}"
            current_day = day
        parts.append(rendered)
    return "\n".join(parts)


def _convert_turns(
    origin: str, source: str, title: str | None, turns: Sequence[Turn]
) -> Iterator[Item]:
    """Yield the notes of a chat: one, or several for a very long chat.

    `source` identifies the chat, so that a later import recognises its notes: it adds newer turns
    to them. A chat without a `title` gets one from its first message. Raises Invalid if there are
    no turns.
    """
    if not turns:
        raise Invalid("it contains no message from the user")

    words = _clean(title or "").split()
    label = " ".join(words)[:_MAX_LABEL] or label_of(turns[0].message)
    for number, part in enumerate(_split_turns(turns), start=1):
        part_label = label
        part_source = source
        if number > 1:
            part_label = f"{label} {number}"
            part_source = f"{source}/{number}"
        yield Item(
            origin,
            path=f"{topics.topic_name(part_label, part[0].at)}.md",
            data=_render_chat(part_label, part_source, part),
            source=part_source,
            modified_at=part[-1].at.timestamp(),
            update=partial(_add_turns, part),
        )


def _split_turns(turns: Sequence[Turn]) -> list[list[Turn]]:
    """Return the turns of each note, in order: up to 300, and up to 400,000 characters.

    A single turn that is longer has a note of its own.
    """
    parts: list[list[Turn]] = []
    size = 0
    for turn in turns:
        length = len(turn.message) + len(turn.answer) + len(turn.context)
        size += length
        if not parts or len(parts[-1]) == _MAX_TURNS or size > _MAX_CHARACTERS:
            parts.append([])
            size = length
        parts[-1].append(turn)
    return parts


def _render_chat(label: str, source: str, turns: Sequence[Turn]) -> str:
    """Return the note of a chat, as a closed topic with a summary.

    `label` is its title. `source` identifies the note, so that a later import updates it. There
    must be at least one turn.
    """
    first = turns[0]
    time_in_id = first.id[5:20]  # of `turn_20260124_101500_1a2b3c`
    keyword_texts = [turn.message[:_MAX_KEYWORD_TEXT] for turn in turns]
    properties = {
        "title": label,
        "aliases": [f"block_{time_in_id}_{_short_hash(source)}"],
        "tags": ["status/closed"],
        SOURCE: source,
        "keywords": keywords_of(keyword_texts),
    }
    created = local_time(format_moment(first.at)) or ""
    text = TOPIC.render(properties, body_of(turns), created)
    text = pause_or_close(text, _topic_of(text), "closed")
    return _record_turns(text, turns)


def _topic_of(text: str) -> topics.Topic:
    """Parse the text of a note as a topic. Its `problem` says why the note cannot be changed."""
    return topics.read_topic(Read("", text, "", ""))


def _record_turns(text: str, turns: Sequence[Turn]) -> str:
    """Return the text of a note, to which these turns were added, with the time of the last one.

    It is stored as the time of the change and of the last import. The note becomes private if one
    of the turns contains a secret. There must be at least one turn.
    """
    last_time = format_moment(turns[-1].at)
    text = set_property(text, "modified", local_time(last_time))
    text = set_property(text, _LAST_IMPORTED, last_time)
    for turn in turns:
        if find_secrets("\n".join((turn.message, turn.answer, turn.context))):
            return set_property(text, "private", True)
    return text


def _add_turns(turns: Sequence[Turn], text: str) -> str:
    """Return the note of a chat with the turns that are later than those imported before.

    `text` is the note now, and is returned as it is if there are none. A turn that the user deleted
    does not come back. Raises Unreadable if the note cannot be changed.
    """
    topic = _topic_of(text)
    if topic.problem:
        raise Unreadable(f"its note cannot be changed: {topic.problem}")

    last_imported = str(read_header(text).get(_LAST_IMPORTED) or "")
    last_time = parse_moment(last_imported) or topic.last
    new_turns = [turn for turn in turns if turn.at > last_time]
    if not new_turns:
        return text

    for turn in new_turns:
        text = topics.insert_turn(_topic_of(text), turn)
    return _record_turns(text, new_turns)
