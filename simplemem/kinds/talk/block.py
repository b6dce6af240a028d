"""A block is what was said about one subject: the note `topics/YYYY/MM/<day> <label>.md`. What the person said stands in
an open quote, its block id below it, answers are folded. A message comes back byte for byte and is no structure of the
note; whatever else stands between turns is the person's. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from simplemem.kinds.kind import Kind
from simplemem.note.body import newline_of, read_body
from simplemem.note.header import read_header
from simplemem.note.names import base_name, legal_name
from simplemem.note.note import Note, read_note, read_tags
from simplemem.note.tags import change_tags
from simplemem.store import Read

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)  # of what tells no time
_MOST_LABEL: Final = 60  # characters of a label in the note's name
# A quote of any kind; a turn if its id stands below it, with what is folded behind that.
_TURN: Final = re.compile(
    r"""(?P<said>(?:^>.*(?:\n|\Z))++)(?:\s*+^\^(?P<mark>turn-(?P<day>\d{8})-(?P<time>\d{6})-[0-9a-z]{6,40})[ \t\r]*+(?:\n|\Z)
    (?P<folded>(?:\s*+^>[ ]\[!\w+\]-?[ ](?:Answer|Context)[ \t\r]*+(?:\n|\Z)(?:^>.*(?:\n|\Z))*+)*+))?""",
    re.MULTILINE | re.VERBOSE,
)
_FOLDED: Final = re.compile(r"^> \[!\w+\]-? (Answer|Context)[ \t\r]*+(?:\n|\Z)((?:^>.*(?:\n|\Z))*+)", re.MULTILINE)
_TITLE: Final = re.compile(r"\A> \[!.*\n?")
_ID: Final = re.compile(r"block_\d{8}_\d{6}(?:_\w+)?", re.ASCII)
_DAY: Final = re.compile(r"## (?:\w+day )?\d{1,2} \w+ \d{4}\s*")
# What would reach out of a quote, or be lost in it; the scanner is asked about all that is structure.
_LEAKS: Final = re.compile(r"%%|\$\$|<[!/?A-Za-z]|\t|[ ]$|\[[ ]\]|\[!|\A[ ]*(?:```|~~~)", re.MULTILINE)


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
class Kept:
    """What all notes of conversations have. `problem` says why one cannot be changed, "" when it can."""

    path: str
    sha256: str = ""
    problem: str = ""
    text: str = ""
    is_own: bool = True


@dataclass(frozen=True, eq=False)
class Block(Kept):
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


def stamp(at: datetime) -> str:
    """A moment as answers say it."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_of(text: str) -> datetime | None:
    """The moment that a text of a header or a line says, in UTC; None when it says none."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def kept(read: Read, kind: Kind[Any]) -> tuple[Note, dict[str, Any]]:
    """A note, and what all notes of conversations have."""
    note = read_note(read.text.encode("utf-8", "surrogatepass"), read.sha256)
    is_own, problem = kind.holds(read.path, note.string("type")), read.problem or note.problem or ""
    return note, {"path": read.path, "sha256": read.sha256, "problem": problem, "text": note.text, "is_own": is_own}


def read_block(read: Read) -> Block:
    """The block that a note is, as far as it is one."""
    note, where = kept(read, TOPIC)
    turns = _turns(note.text, note.header.body_start)
    ids = [*filter(_ID.fullmatch, note.aliases), *_ID.findall(note.text[: note.header.body_start])]
    id_ = next(iter(ids), f"block_{turns[0].id[5:20]}" if turns else base_name(read.path))
    tags = {tag.name.casefold() for tag in read_tags(note.header.properties, ())}
    keywords = note.header.get("keywords")
    told = moment_of("T".join(id_.split("_")[1:3]) + "Z") or moment_of(note.string("created") or "")
    return Block(
        id=id_,
        label=note.string("title") or base_name(read.path),
        status=next((each for each in ("active", "paused", "closed") if f"status/{each}" in tags), "paused"),
        created=told or (turns[0].at if turns else EPOCH),
        turns=turns,
        keywords=tuple(map(str, keywords)) if isinstance(keywords, list) else (),
        summary=note.string("description") or "",
        session=note.string("session") or "",
        facts_read=note.string("facts_read") or "",
        **where,
    )


TOPIC: Final[Kind[Block]] = Kind("topics", "topic", read=read_block, place=lambda block: (block.created, block.path))


def _turns(text: str, start: int) -> tuple[Turn, ...]:
    """The turns of a body, in the order they stand there."""
    found: list[Turn] = []
    for turn in _TURN.finditer(text, start):
        if turn["mark"] and (at := moment_of(f"{turn['day']}T{turn['time']}Z")):
            folded = {title: _said(quote) for title, quote in _FOLDED.findall(turn["folded"])}
            answer, context = folded.get("Answer", ""), folded.get("Context", "")
            message = _said(_TITLE.sub("", turn["said"]))
            found.append(Turn(turn["mark"].replace("-", "_"), at, message, answer, context, *turn.span()))
    return tuple(found)


def _said(quote: str) -> str:
    """What a quote says, out of its fence when it stands in one."""
    said = [re.sub(r"\A> ?", "", line.removesuffix("\r")) for line in quote.removesuffix("\n").split("\n")]
    if len(said) > 1 and re.fullmatch("`{3,}", said[0]) and said[-1] == said[0]:
        said = said[1:-1]
    return "\n".join(said)


def _quoted(title: str, text: str) -> str:
    """A text in a callout of that title, in a fence if it would be structure of the note or lose a byte otherwise."""
    plain = "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))
    if not _is_inert(text, f"> {title}\n{plain}\n\n# end\n"):
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
        plain = f"> {fence}\n{plain}\n> {fence}"
    return f"> {title}\n{plain}\n"


def _is_inert(text: str, quoted: str) -> bool:
    """Whether a text in its quote is text alone: no heading, tag, link or id, and the quote ends where it should."""
    if _LEAKS.search(text):
        return False
    body = read_body(quoted, 0)
    kinds = {block.kind for block in body.blocks}
    is_closed = [heading.text for heading in body.headings] == ["end"]
    return is_closed and not (body.links or body.tags or body.block_ids or kinds & {"html", "definition", "math"})


def render_turn(turn: Turn) -> str:
    """A turn as it stands in a note."""
    said = _quoted(f"[!quote] You, {turn.at.astimezone():%H:%M}", turn.message) + f"\n^{turn.mark}\n"
    for title, text in (("[!note]- Answer", turn.answer), ("[!info]- Context", turn.context)):
        said += f"\n{_quoted(title, text)}" if text else ""
    return said


def day_of(at: datetime) -> str:
    """The heading of a day, in local time."""
    day = at.astimezone()
    return f"## {day:%A} {day.day} {day:%B %Y}\n"


def with_turn(block: Block, turn: Turn) -> str:
    """The note with a turn more, where it belongs in time. Every byte that stands there stays."""
    text, newline, day = block.text, newline_of(block.text), day_of(turn.at)
    before = [each for each in block.turns if each.at <= turn.at]
    after = block.turns[len(before) :]
    is_new_day = not before or day_of(before[-1].at) != day
    if not after:
        at = len(text)
    elif is_new_day and day_of(after[0].at) == day:
        at, is_new_day = after[0].start, False
    elif before:
        at = before[-1].end
    else:
        headings = read_body(text, read_header(text).body_start).headings
        at = min([each.start for each in headings if _DAY.fullmatch(text[each.start : each.end])] + [after[0].start])
    said = (f"{day}\n" if is_new_day else "") + render_turn(turn)
    head, tail = text[:at], text[at:]
    gap = newline * (2 - head.endswith(newline) - head.endswith(newline * 2)) if head else ""
    below = newline if tail and not tail.startswith(("\n", "\r")) else ""
    return head + gap + said.replace("\n", newline) + below + tail


def new_block(label: str, turn: Turn, keywords: list[str], session: str, id_: str, continues: str = "") -> str:
    """The text of a new block's note, with its first turn."""
    properties: dict[str, object] = {"title": label, "aliases": [id_], "tags": ["status/active"], "keywords": keywords}
    properties |= {"session": session or None, "continues": continues or None}
    now = turn.at.astimezone().strftime("%Y-%m-%dT%H:%M:%S")
    return TOPIC.render(properties, f"{day_of(turn.at)}\n{render_turn(turn)}", now)


def place_of(label: str, at: datetime) -> str:
    """Where a new block lies, without its ending: the day and the label."""
    day = at.astimezone()
    name = legal_name(f"{day:%Y-%m-%d} {label}"[: 11 + _MOST_LABEL].strip())
    return f"{TOPIC.folder}/{day:%Y}/{day:%m}/{name}"


def with_status(text: str, status: str) -> str:
    """The note with another status among its tags, in its place."""
    return change_tags(text, {"status": status})
