"""A topic of conversations: the note `topics/YYYY/MM/<day> <label>.md` with its turns.

A message of the user is an open quote with its block id below; answers are folded. A message comes back byte for byte
and is no structure of the note. Whatever else is between turns belongs to the user. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from simplemem.features.answers import TurnOut
from simplemem.features.conversations.patterns import PATTERNS, keywords_of
from simplemem.features.note_type import NoteType
from simplemem.note.body import read_body
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.names import base_name, legal_name
from simplemem.note.note import Note, read_tags
from simplemem.note.properties import set_property
from simplemem.note.sentences import sentence_spans
from simplemem.note.tag_changes import change_tags
from simplemem.note.words import newline_of
from simplemem.store import Read

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of what states none."""

_MAX_NAME: Final = 71  # characters of a note's name: the day and a label
_MAX_TURNS = 300  # of a topic; then another topic continues it
_MAX_BYTES: Final = 500_000  # of a topic's note, likewise
_STATUSES: Final = ("active", "paused", "closed")
_SUMMARY_SENTENCES: Final = 2
_TURN: Final = PATTERNS["turn"]
_FOLDED: Final = re.compile(
    r"^> \[!\w+\]-? (Answer|Context)[ \t\r]*+(?:\n|\Z)((?:^>.*(?:\n|\Z))*+)", re.MULTILINE
)
_TITLE: Final = re.compile(r"\A> \[!.*\n?")
_FENCED: Final = re.compile(r"(`{3,}+)\n(.*)\n\1", re.DOTALL)
_ID: Final = re.compile(r"\bblock_\d{8}_\d{6}(?:_\w+)?", re.ASCII)
_DAY: Final = re.compile(r"^## (?:\w+day )?\d{1,2} \w+ \d{4}[ \t\r]*$", re.MULTILINE)
_NOT_QUOTABLE: Final = re.compile(r"[`#|<>\[\]]|.{301}", re.DOTALL)  # in a summary
# What would reach out of a quote, or be lost in it. The scanner finds everything else that is structure.
_STRUCTURE: Final = {"html", "definition", "math"}
_LEAKS: Final = re.compile(
    r"%%|\$\$|<[!/?A-Za-z]|\t|[ ]$|\[[ ]\]|\[!|\A[ ]*(?:```|~~~)", re.MULTILINE
)


class Turn(NamedTuple):
    """A message of the user, its answer, and where both are in the note's text."""

    id: str
    at: datetime  # UTC
    message: str
    answer: str
    context: str
    start: int = 0
    end: int = 0

    @property
    def mark(self) -> str:
        """Its block id in the note, without the caret."""
        return self.id.replace("_", "-")


@dataclass(frozen=True, kw_only=True, eq=False)
class ConversationNote:
    """What topics and profiles have in common."""

    path: str
    sha256: str = ""
    problem: str = ""  # why the note cannot be changed, or ""
    text: str = ""
    is_own: bool = True


@dataclass(frozen=True, eq=False)
class Topic(ConversationNote):
    """A topic with its turns. There is a new object when its note changes."""

    id: str
    label: str
    status: str
    created: datetime  # UTC
    turns: tuple[Turn, ...]
    keywords: tuple[str, ...] = ()
    summary: str = ""
    session: str = ""
    facts_read: str = ""  # the block id of the last turn whose facts a model has read

    @property
    def last(self) -> datetime:
        """The time of the last turn."""
        return self.turns[-1].at if self.turns else self.created

    @property
    def is_full(self) -> bool:
        """Whether another topic continues it."""
        return len(self.turns) >= _MAX_TURNS or len(self.text.encode()) >= _MAX_BYTES


def turns_out(turns: Iterable[Turn]) -> list[TurnOut]:
    """Return turns as clients know them."""
    return [
        TurnOut(
            turn_id=turn.id,
            timestamp=format_moment(turn.at),
            user_message=turn.message,
            ai_response=turn.answer,
        )
        for turn in turns
    ]


def read_topic(read: Read) -> Topic:
    """Return the topic that a note is, as far as it can be read."""
    note, fields = TOPIC.parse(read)
    turns = tuple(_read_turns(note.text, note.header.body_start))
    topic_id = _read_id(note, turns, base_name(read.path))
    keywords = note.header.get("keywords")
    return Topic(
        id=topic_id,
        label=note.text_property("title") or base_name(read.path),
        status=_read_status(note),
        created=_read_created(topic_id, turns),
        turns=turns,
        keywords=tuple(map(str, keywords)) if isinstance(keywords, list) else (),
        summary=note.text_property("description") or "",
        session=note.text_property("session") or "",
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
    found = _ID.search(" ".join([*note.aliases, header]))
    if found:
        return found[0]
    return f"block_{turns[0].id[5:20]}" if turns else name


def _read_status(note: Note) -> str:
    tags = {tag.name.casefold() for tag in read_tags(note.header.properties, ())}
    for status in _STATUSES:
        if f"status/{status}" in tags:
            return status
    return "paused"


def _read_created(topic_id: str, turns: tuple[Turn, ...]) -> datetime:
    """Return the time in a topic's id, else that of its first turn."""
    time = parse_moment("T".join(topic_id.split("_")[1:3]) + "Z")
    if time:
        return time
    return turns[0].at if turns else EPOCH


def _read_turns(text: str, start: int) -> Iterator[Turn]:
    """Yield the turns of a body, in their order. Those whose time cannot be read are skipped."""
    for match in _TURN.finditer(text, start):
        time = parse_moment(f"{match['day']}T{match['time']}Z")
        if not match["mark"] or not time:
            continue
        folded = {title: _unquote(quote) for title, quote in _FOLDED.findall(match["folded"])}
        yield Turn(
            id=match["mark"].replace("-", "_"),
            at=time,
            message=_unquote(_TITLE.sub("", match["said"])),
            answer=folded.get("Answer", ""),
            context=folded.get("Context", ""),
            start=match.start(),
            end=match.end(),
        )


def _unquote(quote: str) -> str:
    """Return the text of a quote, out of its fence if it is in one."""
    text = re.sub(r"(?m)^> ?|\r$", "", quote.removesuffix("\n"))
    fenced = _FENCED.fullmatch(text)
    return fenced[2] if fenced else text


def _quote(title: str, text: str) -> str:
    """Return a callout with a text, in a fence if it would be structure of the note or lose a byte."""
    lines = "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))
    if _needs_fence(title, lines, text):
        longest_run = max(map(len, re.findall("`+", text)), default=0)
        fence = "`" * max(3, 1 + longest_run)
        lines = f"> {fence}\n{lines}\n> {fence}"
    return f"> {title}\n{lines}\n"


def _needs_fence(title: str, lines: str, text: str) -> bool:
    if _LEAKS.search(text):
        return True
    body = read_body(f"> {title}\n{lines}\n\n# end\n", 0)
    if body.links or body.tags or body.block_ids:
        return True
    if {block.kind for block in body.blocks} & _STRUCTURE:
        return True
    return [heading.text for heading in body.headings] != ["end"]


def render_turn(turn: Turn) -> str:
    """Return a turn as its note has it."""
    text = _quote(f"[!quote] You, {turn.at.astimezone():%H:%M}", turn.message)
    text += f"\n^{turn.mark}\n"
    if turn.answer:
        text += "\n" + _quote("[!note]- Answer", turn.answer)
    if turn.context:
        text += "\n" + _quote("[!info]- Context", turn.context)
    return text


def day_of(at: datetime) -> str:
    """Return the heading of a day, in local time."""
    day = at.astimezone()
    return f"## {day:%A} {day.day} {day:%B %Y}\n"


def insert_turn(topic: Topic, turn: Turn) -> str:
    """Return a topic's note with one more turn, in the order of time. Every other byte stays."""
    position, needs_heading = _find_position(topic, turn)
    rendered = render_turn(turn)
    if needs_heading:
        rendered = f"{day_of(turn.at)}\n{rendered}"

    newline = newline_of(topic.text)
    before = topic.text[:position]
    after = topic.text[position:]
    gap = ""
    if before and not before.endswith(newline * 2):
        gap = newline if before.endswith(newline) else newline * 2
    gap_behind = newline if after and not after.startswith(("\n", "\r")) else ""
    return before + gap + rendered.replace("\n", newline) + gap_behind + after


def _find_position(topic: Topic, turn: Turn) -> tuple[int, bool]:
    """Return where a turn belongs, and whether it needs the heading of its day."""
    day = day_of(turn.at)
    earlier = [other for other in topic.turns if other.at <= turn.at]
    later = topic.turns[len(earlier) :]
    is_new_day = not earlier or day_of(earlier[-1].at) != day
    if not later:
        return len(topic.text), is_new_day
    if is_new_day and day_of(later[0].at) == day:
        return later[0].start, False

    search_from = earlier[-1].end if earlier else 0
    heading = _DAY.search(topic.text, search_from, later[0].start)
    return heading.start() if heading else later[0].start, is_new_day


def render_new_topic(
    label: str, turn: Turn, keywords: list[str], session: str, id_: str, continues: str = ""
) -> str:
    """Return the text of a new topic's note, with its first turn."""
    properties: dict[str, object] = {
        "title": label,
        "aliases": [id_],
        "tags": ["status/paused"],
        "keywords": keywords,
        "session": session or None,
        "continues": continues or None,
    }
    created = turn.at.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    return TOPIC.render(properties, f"{day_of(turn.at)}\n{render_turn(turn)}", created)


def topic_name(label: str, at: datetime) -> str:
    """Return the name of a new topic's note: the day and the label."""
    day = at.astimezone()
    title = f"{day:%Y-%m-%d} {label}"[:_MAX_NAME]
    return f"{TOPIC.folder}/{day:%Y}/{day:%m}/{legal_name(title)}"


def pause_or_close(text: str, topic: Topic, status: str = "") -> str:
    """Return the note of a topic that is left, with a summary in words of the user.

    Without a `status`, a full topic is closed and another one paused. The user's own description stays.
    """
    if not status:
        status = "closed" if topic.is_full else "paused"
    text = change_tags(text, {"status": status})

    description = topic.summary
    is_generated = description.startswith("“") and description.endswith("”")
    if description and not is_generated:
        return text
    summary = summary_of(topic)
    return set_property(text, "description", summary) if summary else text


def summary_of(topic: Topic) -> str:
    """Return the two most central sentences of the user, quoted and in their order; "" if there is none."""
    sentences = dict[str, None]()
    for turn in topic.turns:
        for start, stop in sentence_spans(turn.message):
            sentence = turn.message[start:stop]
            if not _NOT_QUOTABLE.search(sentence):
                sentences[" ".join(sentence.split())] = None

    keywords = set(keywords_of([turn.message for turn in topic.turns]))

    def count_keywords(sentence: str) -> int:
        return len(keywords & set(re.findall(r"\w+", sentence.lower())))

    central = sorted(sentences, key=count_keywords, reverse=True)[:_SUMMARY_SENTENCES]
    if not central:
        return ""
    in_order = [sentence for sentence in sentences if sentence in central]
    return f"“{' … '.join(in_order)}”"
