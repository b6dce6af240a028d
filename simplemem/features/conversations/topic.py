"""A block is what was said about one subject: the note `topics/YYYY/MM/<day> <label>.md`. What the person said stands in
an open quote, its block id below it, answers are folded. A message comes back byte for byte and is no structure of the
note; whatever else stands between turns is the person's. Pure."""

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
from simplemem.note.note import read_tags
from simplemem.note.properties import set_property
from simplemem.note.sentences import sentence_spans
from simplemem.note.tag_changes import change_tags
from simplemem.note.words import newline_of
from simplemem.store import Read

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)  # of what tells no time
_MOST_NAME: Final = 71  # characters of a note's name: the day and a label
_MAX_TURNS, _MAX_BYTES = 300, 500_000  # of a block; then a successor goes on
_TURN: Final = PATTERNS["turn"]
_FOLDED: Final = re.compile(
    r"^> \[!\w+\]-? (Answer|Context)[ \t\r]*+(?:\n|\Z)((?:^>.*(?:\n|\Z))*+)", re.MULTILINE
)
_TITLE: Final = re.compile(r"\A> \[!.*\n?")
_FENCED: Final = re.compile(r"(`{3,}+)\n(.*)\n\1", re.DOTALL)
_ID: Final = re.compile(r"\bblock_\d{8}_\d{6}(?:_\w+)?", re.ASCII)
_DAY: Final = re.compile(r"^## (?:\w+day )?\d{1,2} \w+ \d{4}[ \t\r]*$", re.MULTILINE)
_ODD: Final = re.compile(r"[`#|<>\[\]]|.{301}", re.DOTALL)  # no sentence to quote in a summary
# What would reach out of a quote, or be lost in it; the scanner is asked about all that is structure.
_STRUCTURE: Final = {"html", "definition", "math"}
_LEAKS: Final = re.compile(
    r"%%|\$\$|<[!/?A-Za-z]|\t|[ ]$|\[[ ]\]|\[!|\A[ ]*(?:```|~~~)", re.MULTILINE
)


class Turn(NamedTuple):
    """What the person said, what was answered, and where both stand in the note's text."""

    id: str
    at: datetime  # UTC
    message: str
    answer: str
    context: str
    start: int = 0
    end: int = 0

    @property
    def mark(self) -> str:
        """Its block id in the note, without the hat."""
        return self.id.replace("_", "-")


@dataclass(frozen=True, kw_only=True, eq=False)
class ConversationNote:
    """What all notes of conversations have."""

    path: str
    sha256: str = ""
    problem: str = ""
    text: str = ""
    is_own: bool = True


@dataclass(frozen=True, eq=False)
class Topic(ConversationNote):
    """One subject and its turns; another when its note changes."""

    id: str
    label: str
    status: str
    created: datetime  # UTC
    turns: tuple[Turn, ...]
    keywords: tuple[str, ...] = ()
    summary: str = ""
    session: str = ""
    facts_read: str = ""  # the last turn whose facts a model has read

    @property
    def last(self) -> datetime:
        """When something was said last."""
        return self.turns[-1].at if self.turns else self.created

    @property
    def is_full(self) -> bool:
        """Whether another goes on in its place."""
        return len(self.turns) >= _MAX_TURNS or len(self.text.encode()) >= _MAX_BYTES


def turns_out(turns: Iterable[Turn]) -> list[TurnOut]:
    """Turns as clients know them."""
    return [
        TurnOut(
            turn_id=e.id,
            timestamp=format_moment(e.at),
            user_message=e.message,
            ai_response=e.answer,
        )
        for e in turns
    ]


def read_topic(read: Read) -> Topic:
    """The block that a note is, as far as it is one."""
    note, where = TOPIC.parse(read)
    turns = tuple(_turns(note.text, note.header.body_start))
    named = _ID.search(" ".join([*note.aliases, note.text[: note.header.body_start]]))
    id_ = named[0] if named else f"block_{turns[0].id[5:20]}" if turns else base_name(read.path)
    tags = {tag.name.casefold() for tag in read_tags(note.header.properties, ())}
    keywords = note.header.get("keywords")
    return Topic(
        id=id_,
        label=note.text_property("title") or base_name(read.path),
        status=next(
            (each for each in ("active", "paused", "closed") if f"status/{each}" in tags), "paused"
        ),
        created=parse_moment("T".join(id_.split("_")[1:3]) + "Z")
        or (turns[0].at if turns else EPOCH),
        turns=turns,
        keywords=tuple(map(str, keywords)) if isinstance(keywords, list) else (),
        summary=note.text_property("description") or "",
        session=note.text_property("session") or "",
        facts_read=note.text_property("facts_read") or "",
        text=note.text,
        **where,
    )


TOPIC: Final[NoteType[Topic]] = NoteType(
    "topics", "topic", read=read_topic, sort_key=lambda block: (block.created, block.path)
)


def _turns(text: str, start: int) -> Iterator[Turn]:
    """The turns of a body, in the order they stand there."""
    for turn in _TURN.finditer(text, start):
        if turn["mark"] and (at := parse_moment(f"{turn['day']}T{turn['time']}Z")):
            folded = {title: _said(quote) for title, quote in _FOLDED.findall(turn["folded"])}
            said = (
                _said(_TITLE.sub("", turn["said"])),
                folded.get("Answer", ""),
                folded.get("Context", ""),
            )
            yield Turn(turn["mark"].replace("-", "_"), at, *said, *turn.span())


def _said(quote: str) -> str:
    """What a quote says, out of its fence when it stands in one."""
    said = re.sub(r"(?m)^> ?|\r$", "", quote.removesuffix("\n"))
    fenced = _FENCED.fullmatch(said)
    return fenced[2] if fenced else said


def _quoted(title: str, text: str) -> str:
    """A text in a callout of that title, in a fence if it would be structure of the note or lose a byte otherwise."""
    plain = "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))
    body = read_body(f"> {title}\n{plain}\n\n# end\n", 0)
    odd = (
        body.links
        or body.tags
        or body.block_ids
        or {each.kind for each in body.blocks} & _STRUCTURE
    )
    if odd or _LEAKS.search(text) or [heading.text for heading in body.headings] != ["end"]:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        plain = f"> {fence}\n{plain}\n> {fence}"
    return f"> {title}\n{plain}\n"


def render_turn(turn: Turn) -> str:
    """A turn as it stands in a note."""
    said = (
        _quoted(f"[!quote] You, {turn.at.astimezone():%H:%M}", turn.message) + f"\n^{turn.mark}\n"
    )
    for title, text in (("[!note]- Answer", turn.answer), ("[!info]- Context", turn.context)):
        said += f"\n{_quoted(title, text)}" if text else ""
    return said


def day_of(at: datetime) -> str:
    """The heading of a day, in local time."""
    day = at.astimezone()
    return f"## {day:%A} {day.day} {day:%B %Y}\n"


def insert_turn(block: Topic, turn: Turn) -> str:
    """The note with a turn more, where it belongs in time. Every byte that stands there stays."""
    text, newline, day = block.text, newline_of(block.text), day_of(turn.at)
    before = [each for each in block.turns if each.at <= turn.at]
    after = block.turns[len(before) :]
    is_new_day = not before or day_of(before[-1].at) != day
    if not after:
        at = len(text)
    elif is_new_day and day_of(after[0].at) == day:
        at, is_new_day = after[0].start, False
    else:
        heading = _DAY.search(text, before[-1].end if before else 0, after[0].start)
        at = heading.start() if heading else after[0].start
    said = (f"{day}\n" if is_new_day else "") + render_turn(turn)
    head, tail = text[:at], text[at:]
    gap = newline * (2 - head.endswith(newline) - head.endswith(newline * 2)) if head else ""
    below = newline if tail and not tail.startswith(("\n", "\r")) else ""
    return head + gap + said.replace("\n", newline) + below + tail


def render_new_topic(
    label: str, turn: Turn, keywords: list[str], session: str, id_: str, continues: str = ""
) -> str:
    """The text of a new block's note, with its first turn."""
    properties: dict[str, object] = {
        "title": label,
        "aliases": [id_],
        "tags": ["status/paused"],
        "keywords": keywords,
    }
    properties |= {"session": session or None, "continues": continues or None}
    now = turn.at.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    return TOPIC.render(properties, f"{day_of(turn.at)}\n{render_turn(turn)}", now)


def topic_name(label: str, at: datetime) -> str:
    """Where a new block lies, without its ending: the day and the label."""
    day = at.astimezone()
    return f"{TOPIC.folder}/{day:%Y}/{day:%m}/{legal_name(f'{day:%Y-%m-%d} {label}'[:_MOST_NAME])}"


def pause_or_close(text: str, block: Topic, status: str = "") -> str:
    """The note of a block that is left, with a summary in words that were said. A person's own description stays."""
    text = change_tags(text, {"status": status or ("closed" if block.is_full else "paused")})
    is_ours = not block.summary or (block.summary.startswith("“") and block.summary.endswith("”"))
    said = summary_of(block) if is_ours else ""
    return set_property(text, "description", said) if said else text


def summary_of(block: Topic) -> str:
    """The two most central sentences that the person said, quoted, in their order."""
    said = (
        turn.message[start:stop]
        for turn in block.turns
        for start, stop in sentence_spans(turn.message)
    )
    every = list(dict.fromkeys(" ".join(each.split()) for each in said if not _ODD.search(each)))
    central = set(keywords_of([turn.message for turn in block.turns]))
    best = sorted(every, key=lambda each: -len(central & set(re.findall(r"\w+", each.lower()))))[:2]
    return f"“{' … '.join(each for each in every if each in best)}”" if best else ""
