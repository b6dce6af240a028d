"""One voice a fact: passages that say the same are one, and where notes disagree the newest speaks first. Pure.

A passage is taken up into another when all it says stands there, or nearly all: then what it says otherwise is quoted
beneath, word for word, with its place. Nothing that only one of them says is lost, and nothing is rewritten.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import combinations

from simplemem.note.body import count_lines
from simplemem.search.alike import Sentence, disagree, nearly_same, neighbours, sentences

MOST_SAID = 4  # sentences quoted beneath a passage; who says more than finds room there speaks for itself
_TOGETHER = 10  # minutes
_FEW = 2  # sentences in which near-duplicates may differ
_DATE = re.compile(r"(?<!\d)(\d{4})-?(\d{2})-?(\d{2})(?!\d)")


@dataclass(frozen=True, slots=True)
class Moment:
    """A day, and a minute of it when that is known."""

    day: str
    minute: int | None = None

    def is_later_than(self, other: Moment) -> bool:
        """Files that changed within ten minutes may have come together, with a clone or from another machine: none of
        them is the newer."""
        if self.day != other.day or self.minute is None or other.minute is None:
            return self.day > other.day
        return self.minute - other.minute >= _TOGETHER


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage that could go into a pack: the text as it stands in the note from `start`, on `line`. `at` is where in
    it the words of the question begin, `via` how it was come by when it is no hit of its own."""

    name: str
    title: str
    heading: str
    line: int
    modified: str
    text: str
    score: float
    start: int = 0
    at: int = 0
    via: str = ""

    @property
    def when(self) -> str:
        """The day it speaks of: the date its note is named by, else when the note last changed."""
        return date_in(self.name) or date_in(self.title) or self.modified[:10]

    @property
    def moment(self) -> Moment:
        """That day, and the minute of the last change where the day is of the change."""
        named = date_in(self.name) or date_in(self.title)
        return Moment(named) if named else Moment(self.modified[:10], _minute(self.modified))

    @property
    def cited(self) -> str:
        return f"{self.name}:{self.line}"

    @property
    def about(self) -> str:
        """What tells its subject from others."""
        return f"{self.name} {self.title} {self.heading}"


@dataclass(frozen=True, slots=True)
class Said:
    """A sentence of another passage that says it differently. `label` is `older`, `newer`, or `differs` on one day."""

    label: str
    text: str
    cited: str
    when: str


@dataclass(slots=True)
class Voice:
    """A passage that speaks for all that say the same."""

    piece: Piece
    also: list[str] = field(default_factory=list)  # where the same words stand
    nearly: list[str] = field(default_factory=list)  # where nearly the same stands
    said: list[Said] = field(default_factory=list)
    more: int = 0  # sentences that differ and found no room beneath


@dataclass(frozen=True, slots=True)
class _Spoken:
    """A sentence of the piece with that number."""

    number: int
    sentence: Sentence


def date_in(text: str) -> str:
    """The last date in a name, as `2026-01-24`; empty when there is none."""
    for year, month, day in reversed(_DATE.findall(text)):
        try:
            return date(int(year), int(month), int(day)).isoformat()
        except ValueError:
            continue
    return ""


def _minute(time: str) -> int | None:
    """The minute of its day, of a time such as 2026-01-24T12:00:00; None of a day alone."""
    hour, minute = time[11:13], time[14:16]
    return int(hour) * 60 + int(minute) if hour.isdigit() and minute.isdigit() else None


def voices(given: Iterable[Piece]) -> tuple[list[Voice], list[tuple[Piece, Piece]]]:
    """The passages that speak, in order, and those that were taken up with the one that speaks for them."""
    pieces = [piece for piece in given if piece.text.strip()]
    spoken = [sentences(piece.text) for piece in pieces]
    words = [neighbours(piece.text) for piece in pieces]
    moments = [piece.moment for piece in pieces]
    speaking = [Voice(piece) for piece in pieces]
    place = [float(number) for number in range(len(pieces))]
    quoted: set[tuple[int, int, int]] = set()  # of a voice, from a piece, the sentence that begins there
    for newest, older in _disagreements(pieces, spoken, moments):
        if _quote(speaking[newest.number], pieces[older.number], older.sentence):
            quoted.add((newest.number, older.number, older.sentence.start))
        if moments[newest.number].is_later_than(moments[older.number]):
            place[newest.number] = min(place[newest.number], place[older.number] - 0.5)
    for one, other in combinations(range(len(pieces)), 2):
        if (
            moments[other].is_later_than(moments[one])
            and words[one] != words[other]
            and nearly_same(words[one], words[other])
        ):
            place[other] = min(place[other], place[one] - 0.5)
    kept: list[int] = []
    taken_up: list[tuple[Piece, Piece]] = []
    for number in sorted(range(len(pieces)), key=lambda each: (place[each], each)):
        for earlier in kept:
            if _take_up(speaking[earlier], earlier, number, pieces, spoken, words, quoted):
                taken_up.append((pieces[number], pieces[earlier]))
                break
        else:
            kept.append(number)
    return [speaking[number] for number in kept], taken_up


def _disagreements(
    pieces: Sequence[Piece], spoken: Sequence[Sequence[Sentence]], moments: Sequence[Moment]
) -> list[tuple[_Spoken, _Spoken]]:
    """Pairs of sentences of different notes that disagree, the newest of its kind first."""
    groups: dict[tuple[str, ...], list[_Spoken]] = {}
    for number, found in enumerate(spoken):
        for sentence in found:
            if sentence.says_enough():
                groups.setdefault(sentence.frame, []).append(_Spoken(number, sentence))
    pairs = []
    for group in groups.values():
        group.sort(key=lambda each: moments[each.number].day, reverse=True)  # stable: of one day, the best first
        for each in group[1:]:
            if moments[each.number].is_later_than(moments[group[0].number]):
                group.remove(each)
                group.insert(0, each)
        newest = pieces[group[0].number]
        pairs += [
            (group[0], other)
            for other in group[1:]
            if pieces[other.number].name != newest.name
            and disagree(group[0].sentence, other.sentence, newest.about, pieces[other.number].about)
        ]
    return pairs


def _take_up(
    voice: Voice,
    earlier: int,
    number: int,
    pieces: Sequence[Piece],
    spoken: Sequence[Sequence[Sentence]],
    words: Sequence[frozenset[tuple[str, ...]]],
    quoted: set[tuple[int, int, int]],
) -> bool:
    """Let a voice speak for a piece, if what the piece says stands in it or nearly so."""
    piece = pieces[number]
    the_same = words[earlier] == words[number]
    there = {sentence.words for sentence in spoken[earlier]}
    rest = [
        sentence
        for sentence in spoken[number]
        if sentence.words not in there and (earlier, number, sentence.start) not in quoted
    ]
    contained = all(sentence.words in there for sentence in spoken[number])
    if not the_same and (rest or not spoken[number]):
        few = len(rest) <= min(_FEW, MOST_SAID - len(voice.said))
        if not (few and nearly_same(words[earlier], words[number])):
            return False
    for sentence in rest:
        _quote(voice, piece, sentence)
    if contained:
        voice.also.append(piece.cited)
    elif any(sentence.words in there for sentence in spoken[number]):  # else its place stands with the quotation
        voice.nearly.append(piece.cited)
    return True


def _quote(voice: Voice, piece: Piece, sentence: Sentence) -> bool:
    """Quote a sentence beneath a passage; says whether there was room."""
    mine, its = voice.piece.moment, piece.moment
    label = "older" if mine.is_later_than(its) else "newer" if its.is_later_than(mine) else "differs"
    when = f"{its.day} {piece.modified[11:16]}" if label != "differs" and its.day == mine.day else its.day
    line = piece.line + count_lines(piece.text, 0, sentence.start)
    said = Said(label, " ".join(sentence.text.split()), f"{piece.name}:{line}", when)
    if said in voice.said:
        return True
    if len(voice.said) >= MOST_SAID:
        voice.more += 1
        return False
    voice.said.append(said)
    return True
