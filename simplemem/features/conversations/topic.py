"""A topic of conversations: the note `topics/YYYY/MM/<day> <label>.md` with its turns.

Here the note is read, made, and gets more turns. `turns.py` reads and writes the text of one turn,
and `topic_summary.py` changes what the frontmatter says when a topic pauses or grows. Whatever else
is between turns belongs to the user. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.features.conversations.turns import Turn, read_turns, render_turn
from simplemem.features.fact import EPOCH
from simplemem.features.note_type import NoteType
from simplemem.note.dates import parse_moment
from simplemem.note.names import base_name, legal_name, name_of
from simplemem.note.note import Note, read_tags
from simplemem.note.words import newline_of
from simplemem.store import Read

_MAX_NAME: Final = 71  # characters of a note's name: the day and a label
# A topic with more turns or bytes is full: another topic continues it.
_MAX_TURNS = 300
_MAX_BYTES: Final = 500_000  # of the note
_STATUSES: Final = ("active", "paused", "closed")
_ID: Final = re.compile(r"\bblock_\d{8}_\d{6}(?:_\w+)?", re.ASCII)
_DAY_HEADING: Final = re.compile(r"^## (?:\w+day )?\d{1,2} \w+ \d{4}[ \t\r]*$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True, eq=False)
class ConversationNote:
    """What the notes of topics and of user profiles have in common."""

    path: str
    sha256: str = ""
    problem: str = ""  # why the note cannot be changed, or ""
    text: str = ""
    is_own: bool = True  # False if it is of another type

    @property
    def name(self) -> str:
        """The name of the note: its path without `.md`."""
        return name_of(self.path)


@dataclass(frozen=True, eq=False)
class Topic(ConversationNote):
    """A topic with its turns. When its note changes, a new object is made."""

    id: str
    label: str
    status: str
    created: datetime  # UTC
    turns: tuple[Turn, ...]
    keywords: tuple[str, ...] = ()
    summary: str = ""
    session: str = ""
    named_by: str = ""  # "agent" if an agent gave its label or chose it by name
    facts_read: str = ""  # the block id of the last turn whose facts a model has read

    @property
    def last(self) -> datetime:
        """The time of the last turn; `created` if there is none."""
        return self.turns[-1].at if self.turns else self.created

    @property
    def is_full(self) -> bool:
        """Whether the note is so large that another topic must continue it."""
        return len(self.turns) >= _MAX_TURNS or len(self.text.encode()) >= _MAX_BYTES


def read_topic(read: Read) -> Topic:
    """Return the topic in a note, with the turns that can be read.

    Never raises: the topic's `problem` says why its note cannot be changed.
    """
    note, fields = TOPIC.parse(read)
    turns = tuple(read_turns(note.text, note.header.body_start))
    name = base_name(read.path)
    topic_id = _read_id(note, turns, name)
    return Topic(
        id=topic_id,
        label=note.text_property("title") or name,
        status=_read_status(note),
        created=_read_created(topic_id, turns),
        turns=turns,
        keywords=_read_keywords(note),
        summary=note.text_property("description") or "",
        session=note.text_property("session") or "",
        named_by=note.text_property("named_by") or "",
        facts_read=note.text_property("facts_read") or "",
        text=note.text,
        **fields,
    )


TOPIC: Final[NoteType[Topic]] = NoteType(
    "topics", "topic", read=read_topic, sort_key=lambda topic: (topic.created, topic.path)
)


def _read_id(note: Note, turns: tuple[Turn, ...], name: str) -> str:
    """Return the id in a topic's frontmatter, else one made of its first turn, else its name."""
    header = note.text[: note.header.body_start]
    aliases_and_header = " ".join([*note.aliases, header])
    match = _ID.search(aliases_and_header)
    if match:
        return match[0]
    if not turns:
        return name

    day_and_time = turns[0].id.removeprefix("turn_")[:15]
    return f"block_{day_and_time}"


def _read_status(note: Note) -> str:
    """Return the status in a topic's tags, "paused" if they state none."""
    tags = {tag.name.casefold() for tag in read_tags(note.header.properties, ())}
    for status in _STATUSES:
        if f"status/{status}" in tags:
            return status
    return "paused"


def _read_keywords(note: Note) -> tuple[str, ...]:
    """Return the keywords in a topic's frontmatter, in their order; () if they are no list."""
    keywords = note.header.get("keywords")
    if not isinstance(keywords, list):
        return ()
    return tuple(map(str, keywords))


def _read_created(topic_id: str, turns: tuple[Turn, ...]) -> datetime:
    """Return the time in a topic's id, else that of its first turn, else 1970."""
    day_and_time = topic_id.split("_")[1:3]
    moment = "T".join(day_and_time) + "Z"
    time = parse_moment(moment)
    if time is not None:
        return time
    return turns[0].at if turns else EPOCH


def day_of(at: datetime) -> str:
    """Return the heading of a time's local day, with a line break at its end."""
    local_time = at.astimezone()
    return f"## {local_time:%A} {local_time.day} {local_time:%B %Y}\n"


class _Position(NamedTuple):
    """Where a turn belongs in the text of its topic."""

    offset: int
    needs_heading: bool  # of its day


def insert_turn(topic: Topic, turn: Turn) -> str:
    """Return the text of a topic's note with one more turn, inserted in the order of time.

    The turn gets the heading of its day if the day has none yet. Every other byte stays.
    """
    position = _find_position(topic, turn)
    rendered = render_turn(turn)
    if position.needs_heading:
        rendered = f"{day_of(turn.at)}\n{rendered}"

    newline = newline_of(topic.text)
    text_before = topic.text[: position.offset]
    text_after = topic.text[position.offset :]
    has_line_after = bool(text_after) and not text_after.startswith(("\n", "\r"))

    parts = [
        text_before,
        _gap_after(text_before, newline),
        rendered.replace("\n", newline),
        newline if has_line_after else "",
        text_after,
    ]
    return "".join(parts)


def _gap_after(text: str, newline: str) -> str:
    """Return the newlines that a text lacks to end with a blank line. An empty text lacks none."""
    if not text or text.endswith(newline * 2):
        return ""
    if text.endswith(newline):
        return newline
    return newline * 2


def _find_position(topic: Topic, turn: Turn) -> _Position:
    """Return where a turn belongs: after the turns that are not later, and under its day.

    The turns of a topic are taken to be in the order of time.
    """
    day = day_of(turn.at)
    earlier_turns = [topic_turn for topic_turn in topic.turns if topic_turn.at <= turn.at]
    later_turns = topic.turns[len(earlier_turns) :]
    is_new_day = not earlier_turns or day_of(earlier_turns[-1].at) != day
    if not later_turns:
        return _Position(len(topic.text), needs_heading=is_new_day)

    next_turn = later_turns[0]
    if is_new_day and day_of(next_turn.at) == day:
        return _Position(next_turn.start, needs_heading=False)

    # The heading of the next turn's day, if there is one, stays with that turn.
    search_from = earlier_turns[-1].end if earlier_turns else 0
    heading = _DAY_HEADING.search(topic.text, search_from, next_turn.start)
    offset = heading.start() if heading else next_turn.start
    return _Position(offset, needs_heading=is_new_day)


def render_new_topic(
    label: str,
    turn: Turn,
    keywords: list[str],
    session: str,
    topic_id: str,
    continues: str = "",
) -> str:
    """Return the text of a new topic's note, with its first turn. Its status is "paused".

    `label` becomes its title. `session` is the id of its session, "" for none. `continues` is a
    link to the full topic that it continues, "" if there is none.
    """
    properties: dict[str, object] = {
        "title": label,
        "aliases": [topic_id],
        "tags": ["status/paused"],
        "keywords": keywords,
        "session": session or None,
        "continues": continues or None,
    }
    created = turn.at.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    return TOPIC.render(properties, f"{day_of(turn.at)}\n{render_turn(turn)}", created)


def topic_name(label: str, at: datetime) -> str:
    """Return the name of a new topic's note, with its folder: the day and the label.

    `at` is the time of its first turn. Day and label have 71 characters at most; the rest of a
    longer label is cut off. A note with this name may exist already.
    """
    local_time = at.astimezone()
    title = f"{local_time:%Y-%m-%d} {label}"[:_MAX_NAME]
    return f"{TOPIC.folder}/{local_time:%Y}/{local_time:%m}/{legal_name(title)}"
