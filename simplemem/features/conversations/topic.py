"""A topic of conversations: the note `topics/YYYY/MM/<day> <label>.md` with its turns.

A message of the user is an open quote with its block id below; answers are folded. A message is
read back byte for byte, and nothing in it is structure of the note. Whatever else is between turns
belongs to the user. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from simplemem.features.answers import TurnOut
from simplemem.features.conversations.labels import label_of_exchanges
from simplemem.features.conversations.outcomes import choose_outcome
from simplemem.features.conversations.patterns import PATTERNS
from simplemem.features.fact import EPOCH
from simplemem.features.note_type import NoteType
from simplemem.note.body import read_body
from simplemem.note.dates import format_moment, parse_moment
from simplemem.note.names import base_name, legal_name, name_of
from simplemem.note.note import Note, read_tags
from simplemem.note.properties import set_property
from simplemem.note.sentences import sentence_spans
from simplemem.note.tag_changes import change_tags
from simplemem.note.words import newline_of
from simplemem.store import Read

_MAX_NAME: Final = 71  # characters of a note's name: the day and a label
_MAX_TURNS = 300  # of a topic; then another topic continues it
_MAX_BYTES: Final = 500_000  # of a topic's note, likewise
_STATUSES: Final = ("active", "paused", "closed")
_TURN: Final = PATTERNS["turn"]
_FOLDED: Final = re.compile(
    r"^> \[!\w+\]-? (Answer|Context)[ \t\r]*+(?:\n|\Z)((?:^>.*(?:\n|\Z))*+)", re.MULTILINE
)
_TITLE: Final = re.compile(r"\A> \[!.*\n?")
_FENCED: Final = re.compile(r"(`{3,}+)\n(.*)\n\1", re.DOTALL)
_ID: Final = re.compile(r"\bblock_\d{8}_\d{6}(?:_\w+)?", re.ASCII)
_DAY: Final = re.compile(r"^## (?:\w+day )?\d{1,2} \w+ \d{4}[ \t\r]*$", re.MULTILINE)
_NOT_QUOTABLE: Final = re.compile(r"[`#|<>\[\]]|.{301}", re.DOTALL)  # in a summary
# What would have an effect outside of a quote, or be lost in it. The scanner finds the rest.
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
    context: str  # what the agent knew at the time
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
    is_own: bool = True  # False if it is of another type

    @property
    def name(self) -> str:
        """The name of the note: its path without `.md`."""
        return name_of(self.path)


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
    named_by: str = ""  # "agent" if an agent gave its label or chose it by name
    facts_read: str = ""  # the block id of the last turn whose facts a model has read

    @property
    def last(self) -> datetime:
        """The time of the last turn; that of the topic if it has none."""
        return self.turns[-1].at if self.turns else self.created

    @property
    def is_full(self) -> bool:
        """Whether it is so large that the next turn goes into another topic, which continues it."""
        return len(self.turns) >= _MAX_TURNS or len(self.text.encode()) >= _MAX_BYTES


def turns_out(turns: Iterable[Turn]) -> list[TurnOut]:
    """Return turns in the form that clients get."""
    rows = []
    for turn in turns:
        row = TurnOut(
            turn_id=turn.id,
            timestamp=format_moment(turn.at),
            user_message=turn.message,
            ai_response=turn.answer,
        )
        rows.append(row)
    return rows


def read_topic(read: Read) -> Topic:
    """Return the topic that a note is, with the turns that can be read.

    Never raises: `problem` says why a note cannot be changed.
    """
    note, fields = TOPIC.parse(read)
    turns = tuple(_read_turns(note.text, note.header.body_start))
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
    match = _ID.search(" ".join([*note.aliases, header]))
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


def _read_turns(text: str, start: int) -> Iterator[Turn]:
    """Yield the turns of a body, in their order. Those whose time cannot be read are skipped."""
    for match in _TURN.finditer(text, start):
        time = parse_moment(f"{match['day']}T{match['time']}Z")
        if not match["mark"] or not time:
            continue

        folded = {title: _unquote(quote) for title, quote in _FOLDED.findall(match["folded"])}
        message = _TITLE.sub("", match["message"])
        yield Turn(
            id=match["mark"].replace("-", "_"),
            at=time,
            message=_unquote(message),
            answer=folded.get("Answer", ""),
            context=folded.get("Context", ""),
            start=match.start(),
            end=match.end(),
        )


def _unquote(quote: str) -> str:
    """Return the text of a quote, out of its fence if it is in one."""
    lines = quote.removesuffix("\n")
    text = re.sub(r"(?m)^> ?|\r$", "", lines)
    fenced = _FENCED.fullmatch(text)
    return fenced[2] if fenced else text


def _quote(title: str, text: str) -> str:
    """Return a callout with a text and a final line break.

    `title` is its first line, such as "[!note]- Answer". The text is in a fence if it would be
    structure of the note, or if bytes of it would be lost.
    """
    lines = "\n".join(_quote_line(line) for line in text.split("\n"))
    if _needs_fence(title, lines, text):
        longest_run = max(map(len, re.findall("`+", text)), default=0)
        fence = "`" * max(3, 1 + longest_run)
        lines = f"> {fence}\n{lines}\n> {fence}"
    return f"> {title}\n{lines}\n"


def _quote_line(line: str) -> str:
    """Return a line of a quote; an empty one gets no space behind the `>`."""
    return f"> {line}" if line else ">"


def _needs_fence(title: str, lines: str, text: str) -> bool:
    """Return whether a text must be fenced because its quote would be more than a quote.

    `lines` is the text as quoted lines, `title` the line above them without its `> `.
    """
    if _LEAKS.search(text):
        return True

    body = read_body(f"> {title}\n{lines}\n\n# end\n", 0)
    if body.links or body.tags or body.block_ids:
        return True

    kinds = {block.kind for block in body.blocks}
    headings = [heading.text for heading in body.headings]
    return bool(kinds & _STRUCTURE) or headings != ["end"]


def render_turn(turn: Turn) -> str:
    """Return the lines of a turn in its note: the message, the block id, answer and context."""
    text = _quote(f"[!quote] You, {turn.at.astimezone():%H:%M}", turn.message)
    text += f"\n^{turn.mark}\n"
    if turn.answer:
        text += "\n" + _quote("[!note]- Answer", turn.answer)
    if turn.context:
        text += "\n" + _quote("[!info]- Context", turn.context)
    return text


def day_of(at: datetime) -> str:
    """Return the heading of the local day of a time, with a line break at its end."""
    day = at.astimezone()
    return f"## {day:%A} {day.day} {day:%B %Y}\n"


class _Position(NamedTuple):
    """Where a turn belongs in the text of its topic."""

    offset: int
    needs_heading: bool  # of its day


def insert_turn(topic: Topic, turn: Turn) -> str:
    """Return the text of a topic with one more turn, inserted in the order of time.

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
    """Return where a turn belongs: behind the turns of its time and before, under its day."""
    day = day_of(turn.at)
    earlier = [earlier_turn for earlier_turn in topic.turns if earlier_turn.at <= turn.at]
    later = topic.turns[len(earlier) :]
    is_new_day = not earlier or day_of(earlier[-1].at) != day
    if not later:
        return _Position(len(topic.text), needs_heading=is_new_day)

    next_turn = later[0]
    if is_new_day and day_of(next_turn.at) == day:
        return _Position(next_turn.start, needs_heading=False)

    # The heading of the next turn's day, if there is one, stays with that turn.
    search_from = earlier[-1].end if earlier else 0
    heading = _DAY.search(topic.text, search_from, next_turn.start)
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

    `label` is its title, `session` the id of its session, "" for none. `continues` is a link to the
    full topic that it continues, "" if there is none.
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
    longer label is cut off. There may be a note with this name already.
    """
    day = at.astimezone()
    title = f"{day:%Y-%m-%d} {label}"[:_MAX_NAME]
    return f"{TOPIC.folder}/{day:%Y}/{day:%m}/{legal_name(title)}"


def pause_or_close(text: str, topic: Topic, status: str = "") -> str:
    """Return the text of a topic's note with another status and with a summary of its turns.

    `text` is the text of the note, which may have changes that `topic` lacks; the summary is made
    of the turns of `topic`. Without a `status`, a full topic is closed and any other one paused. A
    description that the user wrote stays, and so does an earlier summary if the turns give none.
    """
    if not status:
        status = "closed" if topic.is_full else "paused"
    text = change_tags(text, {"status": status})
    if topic.summary and not _is_generated(topic.summary):
        return text

    summary = summary_of(topic)
    if not summary:
        return text
    return set_property(text, "description", summary)


def _is_generated(summary: str) -> bool:
    """Return whether a description has the form of those that `summary_of` returns."""
    return summary.startswith("“") and summary.endswith("”")


def summary_of(topic: Topic) -> str:
    """Return how a topic ended, as far as the user said it: one or two sentences, quoted.

    They are those of `choose_outcome`. "" if no sentence can be quoted.
    """
    outcome = choose_outcome(_quotable_sentences(topic))
    if not outcome:
        return ""
    return f"“{' … '.join(outcome)}”"


def refined_label(topic: Topic, turn: Turn) -> str:
    """Return the label of a topic with one more turn at its end.

    It is another one only if the topic is young, and its label was made of its turns: one that an
    agent, a model or the user gave stays.
    """
    exchanges = [(earlier.message, earlier.answer) for earlier in topic.turns]
    if topic.named_by or not exchanges or topic.label != label_of_exchanges(exchanges):
        return topic.label
    return label_of_exchanges([*exchanges, (turn.message, turn.answer)])


def _quotable_sentences(topic: Topic) -> list[str]:
    """Return the sentences of a topic's messages that a summary may contain, each once.

    They are in their order, each on one line. Those over 300 characters, or with characters that
    are markup, are left out.
    """
    sentences = dict[str, None]()
    for turn in topic.turns:
        for start, stop in sentence_spans(turn.message):
            sentence = turn.message[start:stop]
            if not _NOT_QUOTABLE.search(sentence):
                on_one_line = " ".join(sentence.split())
                sentences[on_one_line] = None
    return list(sentences)
