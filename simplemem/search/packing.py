"""Pack passages into a budget of tokens. Pure.

Passages that say the same go in once. If a sentence disagrees with a sentence of a newer passage of
another note, it is quoted beneath the newer passage.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from simplemem.note.dates import date_in_name
from simplemem.note.plain_text import without_gaps
from simplemem.note.sentences import Sentence, contradicts, sentence_spans, sentences
from simplemem.note.words import count_lines, count_tokens, words_in_order
from simplemem.search.changed import EarlierValue
from simplemem.search.judgement import falling_scores

# The greatest number of sentences and earlier values that are quoted beneath one passage. A passage
# with a sentence that is not quoted goes into the pack by itself.
MAX_QUOTES = 4

# How many other places with the same words are named beside a passage.
_MAX_OTHER_PLACES = 6

# Only the first passages are considered: as many as have this many characters per token of the
# budget together, but at least this many passages.
_CHARACTERS_PER_TOKEN = 10
_MIN_PASSAGES = 12

# If at least this many tokens of the budget are left, they are filled with a part of a passage.
_MIN_TOKENS_OF_PART = 60

# What pinned passages may take: a share of the budget together, and this many tokens each.
_PINNED_SHARE = 0.25
_MAX_PINNED_TOKENS = 200

_SEPARATOR = "\n\n"
_HEADING_SEPARATOR = " > "
_WORD = re.compile(r"\S+")

# What begins a list item.
_LIST_MARKER = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:\[.\][ \t]+)?")

CountTokens = Callable[[str], int]
"""Returns the number of tokens of a text."""


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage that could go into a pack.

    `text` has spaces in place of what is not quoted, so that offsets in it are offsets in the note.
    """

    # Of its note.
    name: str
    title: str

    heading: str  # the path of headings above it, separated by " > "
    line: int  # the number of its first line
    modified: str  # when its note was last changed, as an ISO time
    text: str
    score: float
    start: int = 0  # the offset in the note at which `text` begins

    # The offset in `text` of what matched the query. A cut passage should begin there.
    at: int = 0

    # How the note was found, if it is no hit.
    via: str = ""

    # Whether the text has spaces in place of something.
    has_gaps: bool = False

    # How much the passage counts for a pack, compared with the best one. Not used by `pack`.
    weight: float = 1.0

    # Which note replaces its note, or which one its note replaces (`changed.Changed`); else "".
    remark: str = ""

    # The values that its fact had before, the newest first.
    earlier: tuple[EarlierValue, ...] = ()

    # The time of its note, if the passages are to be in order of date.
    moment: str = ""

    @property
    def quoted(self) -> str:
        """The text to show: if it has gaps, without them and without blanks at its ends."""
        if not self.has_gaps:
            return self.text
        return without_gaps(self.text).strip()

    @property
    def when(self) -> str:
        """The day it speaks of: the date in the name or title of its note, else its last change.

        It is an ISO day: that of `moment`, if there is one.
        """
        if self.moment:
            return self.moment[:10]
        date = date_in_name(self.name) or date_in_name(self.title)
        return date or self.modified[:10]

    @property
    def cited(self) -> str:
        """The place of the passage as an answer cites it: `name:line`."""
        return f"{self.name}:{self.line}"


class _Quote(NamedTuple):
    """A sentence of another passage that disagrees, or an earlier value of a fact.

    Its fields are keys of JSON answers.
    """

    label: str  # "older", "newer" or "differs", compared with the passage above it
    text: str
    cited: str  # its place, as `name:line`
    when: str  # its day, as an ISO day

    def as_line(self) -> str:
        """Return the line that a pack has beneath the passage."""
        return f'{self.label}: "{self.text}" [{self.cited}] {self.when}'


@dataclass(slots=True)
class Group:
    """A passage, the places of others that say the same, and the sentences quoted beneath it."""

    piece: Piece
    sentences: Sequence[Sentence] = ()

    # Of the passages that it stands for, as `name:line`.
    other_places: list[str] = field(default_factory=list)

    # At most `MAX_QUOTES`.
    quotes: list[_Quote] = field(default_factory=list)

    # The number of sentences that disagree, but are not quoted.
    unquoted_count: int = 0

    def quote(self, piece: Piece, sentence: Sentence) -> bool:
        """Quote a sentence of another passage beneath this one; return whether it is quoted.

        `piece` is the other passage. Returns False, and counts the sentence as unquoted, if 4
        others are quoted already. Returns True, and changes nothing, if the sentence itself is
        quoted already.
        """
        lines_before = count_lines(piece.text, 0, sentence.start)
        line = piece.line + lines_before
        quote = _Quote(
            label=_label_of_age(piece.when, self.piece.when),
            text=" ".join(sentence.text.split()),
            cited=f"{piece.name}:{line}",
            when=piece.when,
        )
        if quote in self.quotes:
            return True

        if len(self.quotes) >= MAX_QUOTES:
            self.unquoted_count += 1
            return False

        self.quotes.append(quote)
        return True

    def absorb(self, other: Group, quoted_starts: Set[int]) -> bool:
        """Let this passage stand for another if nothing gets lost; return whether it does.

        Each sentence of the other passage must be in this one, or be quoted beneath it:
        `quoted_starts` are the offsets of the quoted ones in the other passage. A passage without
        sentences, such as a heading, must have the same words.

        Adds the place of the other passage to `other_places`, unless all its sentences are quoted.
        Changes nothing if it returns False.
        """
        if not other.sentences:
            own_words = words_in_order(self.piece.text)
            other_words = words_in_order(other.piece.text)
            has_same_words = own_words == other_words
            if has_same_words:
                self.other_places.append(other.piece.cited)
            return has_same_words

        own_sentences = {sentence.words for sentence in self.sentences}
        shares_sentence = False
        for sentence in other.sentences:
            if sentence.words in own_sentences:
                shares_sentence = True
            elif sentence.start not in quoted_starts:
                return False

        # If all its sentences are quoted, the quotes have the place of the passage already.
        if shares_sentence:
            self.other_places.append(other.piece.cited)
        return True


def _label_of_age(day: str, own_day: str) -> str:
    """Return "older" or "newer", as `day` is before or after `own_day`; "differs" if equal."""
    if day < own_day:
        return "older"
    if day > own_day:
        return "newer"
    return "differs"


class Grouping(NamedTuple):
    """Passages in groups, in the order of the pack, and the passages that others stand for."""

    groups: list[Group]
    absorbed: list[tuple[Piece, Piece]]  # the passage, and the one that stands for it


_QuotedStarts = defaultdict[tuple[int, int], set[int]]
"""The offsets of the sentences of one passage that another one quotes.

The keys are the numbers of the quoting passage and of the quoted one, in this order.
"""


def group_pieces(pieces: Iterable[Piece]) -> Grouping:
    """Group passages that say the same. Of two that disagree, the newest comes first.

    `pieces` are the best first. A sentence that disagrees with a newer passage of another note is
    quoted beneath that passage, as far as there are at most 4 quotes. Blank passages are left out.
    The other passages keep their order.
    """
    with_text = (piece for piece in pieces if piece.text.strip())
    passages = [
        Group(piece, sentences(piece.text), quotes=_earlier_values_of(piece)) for piece in with_text
    ]
    in_order, quoted_starts = _quote_disagreements(passages)

    first_numbers: list[int] = []  # of the passages that stand for themselves
    absorbed: list[tuple[Piece, Piece]] = []
    for number in in_order:
        passage = passages[number]
        for first in first_numbers:
            first_passage = passages[first]
            if first_passage.absorb(passage, quoted_starts[first, number]):
                absorbed.append((passage.piece, first_passage.piece))
                break
        else:
            first_numbers.append(number)

    groups = [passages[number] for number in first_numbers]
    return Grouping(groups, absorbed)


def _earlier_values_of(piece: Piece) -> list[_Quote]:
    """Return the newest 4 of the values that the fact of a passage had before, as quotes."""
    return [
        _Quote("older", value.value, f"{piece.name}:{value.line}", value.when)
        for value in piece.earlier[:MAX_QUOTES]
    ]


def _quote_disagreements(passages: Sequence[Group]) -> tuple[list[int], _QuotedStarts]:
    """Quote the sentences of older passages beneath the newer ones that they disagree with.

    Returns the numbers of all passages in their new order, and what was quoted. A passage comes
    before those that it disagrees with, if its day is after theirs. Changes `quotes` and
    `unquoted_count` of the passages.
    """
    positions = [float(number) for number in range(len(passages))]
    quoted_starts: _QuotedStarts = defaultdict(set)
    for newest, older, sentence in _disagreements(passages):
        newest_piece = passages[newest].piece
        older_piece = passages[older].piece
        if passages[newest].quote(older_piece, sentence):
            quoted_starts[newest, older].add(sentence.start)
        if newest_piece.when > older_piece.when:
            # Half a position before the older passage: the one before that keeps its place.
            position_before = positions[older] - 0.5
            positions[newest] = min(positions[newest], position_before)

    numbers = range(len(passages))
    in_order = sorted(numbers, key=lambda number: (positions[number], number))
    return in_order, quoted_starts


class _Statement(NamedTuple):
    """A sentence, and the number and the day of its passage."""

    number: int
    day: str  # an ISO day
    sentence: Sentence


def _disagreements(passages: Sequence[Group]) -> Iterator[tuple[int, int, Sentence]]:
    """Yield each sentence that contradicts the newest one of its kind, with both passages.

    The parts of each tuple are the number of the passage with the newest sentence, the number of
    the other passage, and the sentence of the other one. The passages are of different notes. They
    may be yielded several times, with several sentences.

    Sentences are of one kind if they differ only in their values and negations. They are compared
    only with the newest one; of the same day, that is the one of the better passage.
    """
    names: list[str] = []
    subjects: list[str] = []
    for passage in passages:
        piece = passage.piece
        names.append(piece.name)
        subjects.append(f"{piece.name} {piece.title} {piece.heading}")

    for statements in _statements_by_frame(passages):
        # Stable: of passages of one day, the best stays first.
        statements.sort(key=lambda statement: statement.day, reverse=True)
        newest, *older_statements = statements
        for older in older_statements:
            if names[older.number] == names[newest.number]:
                continue

            is_disagreement = contradicts(
                newest.sentence,
                older.sentence,
                subjects[newest.number],
                subjects[older.number],
            )
            if is_disagreement:
                yield newest.number, older.number, older.sentence


def _statements_by_frame(passages: Sequence[Group]) -> Iterable[list[_Statement]]:
    """Return the sentences of all passages, in one list per frame, in the order of the passages.

    The sentences of a list differ only in their values and negations. Sentences with too few words
    to be compared are left out. No list is empty.
    """
    by_frame: defaultdict[tuple[str, ...], list[_Statement]] = defaultdict(list)
    for number, passage in enumerate(passages):
        day = passage.piece.when
        for sentence in passage.sentences:
            if sentence.says_enough():
                statement = _Statement(number, day, sentence)
                by_frame[sentence.frame].append(statement)
    return by_frame.values()


class Packed(NamedTuple):
    """The passages of a pack, as text and one by one, and those that are not in it."""

    text: str
    tokens: int  # of the text

    # The passages in the order in which they were added. `_item_of` has their keys.
    items: tuple[dict[str, Any], ...]

    # The number of passages for which there was no room.
    left_out: int

    # The number of passages whose text is in the pack by other passages.
    duplicates: int

    # The passages of `left_out`, then of `duplicates`. `_omitted` has their keys.
    omitted: tuple[dict[str, Any], ...]

    # How many of the first items are pinned passages.
    pinned: int = 0


def pack(
    pieces: Iterable[Piece],
    budget: int,
    count: CountTokens = count_tokens,
    pinned: Iterable[Piece] = (),
    *,
    in_order: bool = False,
) -> Packed:
    """Pack passages in their order, leaving out each that does not fit into the budget.

    The first is cut to fit. If 60 tokens or more are left at the end, they are filled with a part
    of one more passage. In the text, the passages of a note are together. Passages that say the
    same are packed once, and of two that disagree the newest comes first. Blank passages are
    ignored.

    The `pinned` passages come first. They take at most a quarter of the budget, and each is cut to
    200 tokens. `count` returns the tokens of a text. The pack never has more than `budget` tokens;
    it is empty if nothing fits. If `in_order`, the text has the notes that are not pinned in the
    order of the `moment` of their passages, and `items` stay as they are. Never raises.
    """
    candidates = [piece for piece in pieces if piece.text.strip()]
    considered_count = _count_to_consider(candidates, budget)
    groups, absorbed = group_pieces(candidates[:considered_count])

    packing = _Packing(budget, count, in_order=in_order)
    packing.add_pinned(group_pieces(pinned))
    packing.omit_without_room(candidates[considered_count:])
    packing.omit_absorbed(absorbed)
    packing.add_all(groups)
    return packing.result()


def _count_to_consider(pieces: Sequence[Piece], budget: int) -> int:
    """Return how many of the first passages to consider: more would not fit into the budget.

    Returns at least 12, even if there are fewer passages.
    """
    max_characters = _CHARACTERS_PER_TOKEN * budget
    count = 0
    characters = 0
    for piece in pieces:
        if characters > max_characters:
            break
        count += 1
        characters += len(piece.text)
    return max(_MIN_PASSAGES, count)


class _Section(NamedTuple):
    """A passage in a pack, and its text there: its place, the passage, and its quotes."""

    group: Group
    text: str


class _Packing:
    """A pack while it is filled. Guards its sections, and the passages that were left out."""

    def __init__(self, budget: int, count: CountTokens, *, in_order: bool) -> None:
        self._budget = budget
        self._count = count
        self._in_order = in_order
        self._used_tokens = 0
        self._sections: list[_Section] = []
        self._pinned_count = 0  # of the first sections
        self._headers: dict[str, str] = {}  # the line above the passages of a note, by its name
        self._without_room: list[Piece] = []
        self._duplicates: list[dict[str, Any]] = []

    def omit_without_room(self, pieces: Iterable[Piece]) -> None:
        """Record passages for which there is no room."""
        self._without_room += pieces

    def omit_absorbed(self, absorbed: Iterable[tuple[Piece, Piece]]) -> None:
        """Record passages as duplicates. `absorbed` is that of a `Grouping`."""
        for piece, first in absorbed:
            item = _omitted(piece, "duplicate")
            item["of"] = first.cited
            self._duplicates.append(item)

    def add_pinned(self, grouping: Grouping) -> None:
        """Add pinned passages, and record those that do not fit as left out.

        Together they may take a quarter of the budget, and each is cut to 200 tokens. Must be
        called before any other passage is added.
        """
        max_tokens = int(self._budget * _PINNED_SHARE)
        for group in grouping.groups:
            room = min(max_tokens - self._used_tokens, _MAX_PINNED_TOKENS)
            if not self._add(group, room, may_cut=True):
                self._without_room.append(group.piece)
        self.omit_absorbed(grouping.absorbed)
        self._pinned_count = len(self._sections)

    def add_all(self, groups: Sequence[Group]) -> None:
        """Add the passages that fit, in their order, and record the others as left out.

        The first one is cut if it does not fit. If 60 tokens or more are left at the end, the first
        of those without room is cut too, and added.
        """
        without_room = []
        for number, group in enumerate(groups):
            is_added = self._add(group, self._rest, may_cut=number == 0)
            if not is_added:
                without_room.append(group)

        if without_room and self._rest >= _MIN_TOKENS_OF_PART:
            is_added = self._add(without_room[0], self._rest, may_cut=True)
            if is_added:
                del without_room[0]
        self.omit_without_room(group.piece for group in without_room)

    @property
    def _rest(self) -> int:
        """How many tokens of the budget are left."""
        return self._budget - self._used_tokens

    def _add(self, group: Group, room: int, *, may_cut: bool) -> bool:
        """Add a passage if it fits; return False if it does not. With `may_cut`, it is cut to fit.

        `room` is the number of tokens that it may take, with the header of its note if that is new.

        Ends that overlap with a packed passage of the same note are removed first, which changes
        the piece of the group. If nothing remains, the passage is recorded as a duplicate, and
        True is returned.
        """
        packed_pieces = [section.group.piece for section in self._sections]
        piece = _without_overlap(group.piece, packed_pieces)
        if piece is None:
            self._duplicates.append(_omitted(group.piece, "duplicate"))
            return True

        group.piece = piece
        header = self._headers.get(piece.name, "") or _header_of(piece)
        header_tokens = 0
        if piece.name not in self._headers:
            header_tokens = self._count(f"{_SEPARATOR}{header}\n")
        text = self._text_that_fits(group, room - header_tokens, may_cut=may_cut)
        if text is None:
            return False

        self._headers[piece.name] = header
        self._used_tokens += header_tokens + self._count(_SEPARATOR + text)
        self._sections.append(_Section(group, text))
        return True

    def _text_that_fits(self, group: Group, room: int, *, may_cut: bool) -> str | None:
        """Return a passage as a section, cut if it must and may be; None if it does not fit.

        A cut changes the group (`_cut_to_fit`).
        """
        text = _section_of(group)
        if self._count(_SEPARATOR + text) <= room:
            return text
        if not may_cut:
            return None
        return _cut_to_fit(group, room, self._count)

    def result(self) -> Packed:
        """Return the pack. If its whole text exceeds the budget, leaves out its last passages.

        Must be called once, after all passages were added.
        """
        self._remove_excess()
        scores = falling_scores(section.group.piece.score for section in self._sections)
        items: list[dict[str, Any]] = []
        for section, score in zip(self._sections, scores, strict=True):
            tokens = self._count(section.text)
            items.append(_item_of(section.group, score, tokens))

        text = self._text()
        without_room = [_omitted(piece, "budget") for piece in self._without_room]
        return Packed(
            text=text,
            tokens=self._count(text),
            items=tuple(items),
            left_out=len(self._without_room),
            duplicates=len(self._duplicates),
            omitted=(*without_room, *self._duplicates),
            pinned=min(self._pinned_count, len(self._sections)),
        )

    def _text(self) -> str:
        """Return the text of the pack: each note once, with its passages in the note's order."""
        by_note: dict[str, list[_Section]] = defaultdict(list)
        for section in self._sections_of_text():
            by_note[section.group.piece.name].append(section)

        notes = []
        for name, sections in by_note.items():
            sections.sort(key=lambda section: section.group.piece.start)
            passages = _SEPARATOR.join(section.text for section in sections)
            notes.append(f"{self._headers[name]}\n{passages}")
        return _SEPARATOR.join(notes)

    def _sections_of_text(self) -> list[_Section]:
        """Return the sections as the text has them: the pinned ones, then by rank or by date."""
        pinned = self._sections[: self._pinned_count]
        found = self._sections[self._pinned_count :]
        if self._in_order:
            found.sort(key=lambda section: section.group.piece.moment)
        return [*pinned, *found]

    def _remove_excess(self) -> None:
        """Remove the last sections until the text fits, and record their passages as left out.

        A tokenizer may count more tokens in a whole text than in its parts.
        """
        while self._sections:
            if self._count(self._text()) <= self._budget:
                return
            section = self._sections.pop()
            self._without_room.append(section.group.piece)


def _item_of(group: Group, score: float, tokens: int) -> dict[str, Any]:
    """Return a passage of a pack as JSON answers have it.

    `also` are the places of passages that it stands for, and `said` are the quotes beneath it. The
    keys `via`, `remark`, `also` and `said` are left out if they are empty.
    """
    piece = group.piece
    item = {
        "name": piece.name,
        "title": piece.title,
        "heading": piece.heading,
        "line": piece.line,
        "modified": piece.modified,
        "score": round(score, 4),
        "tokens": tokens,
    }
    optional = {
        "via": piece.via,
        "remark": piece.remark,
        "also": group.other_places,
        "said": [quote._asdict() for quote in group.quotes],
    }
    return item | {key: value for key, value in optional.items() if value}


def _omitted(piece: Piece, why: str) -> dict[str, Any]:
    """Return a passage that is not in the pack as JSON answers have it.

    `why` is "budget" if there was no room for it, or "duplicate".
    """
    return {"name": piece.name, "line": piece.line, "why": why}


def _header_of(piece: Piece) -> str:
    """Return the line above the passages of a note: title, day, remark, and how it was found."""
    parts = (f"### {piece.title}", piece.when, piece.remark, piece.via)
    return " · ".join(filter(None, parts))


def _section_of(group: Group) -> str:
    """Return a passage as a section of a pack: its place, text and quotes."""
    piece = group.piece
    text = piece.quoted.replace("\r\n", "\n").strip()

    place = f"[{piece.cited}]"
    headings = _headings_above(piece, text)
    if headings:
        place += f" {headings}"
    if group.other_places:
        place += f" · also in {_listed_places(group.other_places)}"

    parts = (place, text, _quoted_sentences(group))
    return "\n\n".join(filter(None, parts))


def _headings_above(piece: Piece, text: str) -> str:
    """Return the path of headings, without the title, and without the heading that begins `text`.

    `text` is the passage as it is quoted. Returns "" if no heading remains.
    """
    headings = _headings_below_title(piece)
    first_line = text.partition("\n")[0]
    if not first_line.startswith("#"):
        return headings
    above, _, last = headings.rpartition(_HEADING_SEPARATOR)
    is_first_line = first_line.lstrip("#").strip() == last
    return above if is_first_line else headings


def _headings_below_title(piece: Piece) -> str:
    """Return the path of headings, without the first one if it is the title; "" for no heading."""
    # With a separator at the end, the title is a prefix only if it is a whole heading, and is
    # removed too if it is the only one.
    path = f"{piece.heading}{_HEADING_SEPARATOR}"
    title = f"{piece.title}{_HEADING_SEPARATOR}"
    return path.removeprefix(title).removesuffix(_HEADING_SEPARATOR)


def _quoted_sentences(group: Group) -> str:
    """Return the quotes beneath a passage, one per line, and how many more there are; or ""."""
    lines = [quote.as_line() for quote in group.quotes]
    if group.unquoted_count:
        lines.append(f"({group.unquoted_count} more that differ)")
    return "\n".join(lines)


def _listed_places(places: Sequence[str]) -> str:
    """Return the first 6 places and the number of others: `[a:1], [b:7] and 3 more`."""
    first_places = places[:_MAX_OTHER_PLACES]
    listed = ", ".join(f"[{place}]" for place in first_places)
    more_count = len(places) - len(first_places)
    if more_count:
        listed += f" and {more_count} more"
    return listed


def _without_overlap(piece: Piece, packed_pieces: Iterable[Piece]) -> Piece | None:
    """Return a passage without text at its ends that packed passages of its note contain.

    It has no blanks at its ends either. Returns None if nothing remains. If a packed passage is in
    its middle, that text stays.
    """
    start = piece.start
    stop = piece.start + len(piece.text)
    for other in packed_pieces:
        if other.name != piece.name:
            continue
        other_stop = other.start + len(other.text)
        if other.start <= start < other_stop:
            start = min(other_stop, stop)
        elif other.start < stop <= other_stop:
            stop = max(other.start, start)
    return _part_of(piece, start=start - piece.start, stop=stop - piece.start)


def _part_of(piece: Piece, start: int, stop: int) -> Piece | None:
    """Return a part of a passage as a passage, without blanks at its ends; None if it is blank.

    `start` and `stop` are offsets in the text of the passage.
    """
    part = piece.text[start:stop]
    text = part.strip()
    if not text:
        return None
    blank_length = len(part) - len(part.lstrip())
    start += blank_length
    return replace(
        piece,
        text=text,
        line=piece.line + count_lines(piece.text, 0, start),
        start=piece.start + start,
        at=max(0, piece.at - start),
    )


def _cut_to_fit(group: Group, room: int, count: CountTokens) -> str | None:
    """Cut a passage to the longest part that fits into `room` tokens; return its section.

    The part has whole sentences, or words of one sentence (`_cuts_of`). Replaces the piece of the
    group, and drops its other places and quotes. Returns None if nothing fits; then the group stays
    as it is.
    """
    piece = group.piece
    for cut_start, stop in _cuts_of(piece):
        start = _with_list_marker(piece, cut_start)
        part = _part_of(piece, start, stop)
        if part is None:
            continue

        text = _with_ellipsis(piece, part.text, start, stop)
        cut_piece = replace(part, text=text)
        cut_group = Group(cut_piece)
        section = _section_of(cut_group)
        if count(_SEPARATOR + section) <= room:
            group.piece = cut_piece
            group.other_places = []
            group.quotes = []
            group.unquoted_count = 0
            return section
    return None


def _cuts_of(piece: Piece) -> Iterator[tuple[int, int]]:
    """Yield ranges to which a passage may be cut, as offsets in its text, the longest first.

    The first ranges begin with a sentence before `piece.at`, and end with the last sentence. The
    next ones begin at `piece.at`, and end with a sentence that begins there or later. The last ones
    begin there too, and end with a word of the first such sentence. If no sentence begins there or
    later, all ranges begin at `piece.at` and end with a word.
    """
    spans = sentence_spans(piece.text)
    sentence_ends = [stop for start, stop in spans if start >= piece.at]
    first_end = len(piece.text)
    if sentence_ends:
        first_end = sentence_ends[0]
        last_end = sentence_ends[-1]
        for start, _ in spans:
            if start < piece.at:
                yield start, last_end

    words = _WORD.finditer(piece.text, piece.at, first_end)
    word_ends = [word.end() for word in words]
    for end in reversed(word_ends + sentence_ends):
        yield piece.at, end


def _with_list_marker(piece: Piece, start: int) -> int:
    """Return where a cut that begins at `start` should begin, so that a list item has its marker.

    If `start` is before `piece.at`, and only a list marker is before it on its line, that is the
    start of the line, else `start` itself. Both are offsets in the text of the passage.
    """
    if start >= piece.at:
        return start
    line_start = piece.text.rfind("\n", 0, start) + 1
    if _LIST_MARKER.fullmatch(piece.text, line_start, start):
        return line_start
    return start


def _with_ellipsis(piece: Piece, text: str, start: int, stop: int) -> str:
    """Return the text of a part with an ellipsis at its end, or at its start, if text is missing.

    If the passage was cut at both ends, only the end gets one. `start` and `stop` are the offsets
    of the part in the text of the passage.
    """
    if piece.text[stop:].strip():
        return f"{text} …"
    if piece.text[:start].strip():
        return f"…\n{text}"
    return text
