"""One voice a fact: passages that say the same are one, and where notes disagree the newest speaks first. Pure.

A passage is taken up into another when all it says stands there, or nearly all: then what it says otherwise is quoted
beneath, word for word, with its place. Nothing that only one of them says is lost, and nothing is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from simplemem.note.body import count_lines
from simplemem.note.names import date_in
from simplemem.note.sentences import Sentence, disagree, nearly_same, neighbours, sentences

MOST_SAID = 4  # sentences quoted beneath a passage; who says more than finds room there speaks for itself
_FEW = 2  # sentences in which near-duplicates may differ


@dataclass(frozen=True, slots=True)
class Piece:
    """A passage that could go into a pack: the text as it stands in the note from `start`, on `line`. `at` is where in
    it the words of the question begin, `via` how it was found when it is no hit of its own."""

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
    def cited(self) -> str:
        return f"{self.name}:{self.line}"

    @property
    def about(self) -> str:
        """What tells its subject from others."""
        return f"{self.name} {self.title} {self.heading}"


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence of another passage that says it differently. `label` is `older`, `newer`, or `differs` on one day."""

    label: str
    text: str
    cited: str
    when: str


@dataclass(slots=True)
class Voice:
    """A passage that speaks for all that say the same."""

    piece: Piece
    spoken: Sequence[Sentence] = ()
    words: frozenset[tuple[str, ...]] = frozenset()
    also: list[str] = field(default_factory=list)  # where the same words stand
    nearly: list[str] = field(default_factory=list)  # where nearly the same stands
    said: list[Quotation] = field(default_factory=list)
    more: int = 0  # sentences that differ and found no room beneath

    def quote(self, piece: Piece, sentence: Sentence) -> bool:
        """Quote a sentence beneath the passage; whether there was room."""
        mine, its = self.piece.when, piece.when
        label = "older" if its < mine else "newer" if its > mine else "differs"
        line = piece.line + count_lines(piece.text, 0, sentence.start)
        said = Quotation(label, " ".join(sentence.text.split()), f"{piece.name}:{line}", its)
        if said not in self.said:
            if len(self.said) >= MOST_SAID:
                self.more += 1
                return False
            self.said.append(said)
        return True

    def takes_up(self, other: Voice, quoted: set[int]) -> bool:
        """Speak for another passage, if what it says stands in this one or nearly so. The sentences that begin at `quoted`
        stand beneath already."""
        there = {sentence.words for sentence in self.spoken}
        rest = [each for each in other.spoken if each.words not in there and each.start not in quoted]
        if self.words != other.words and (rest or not other.spoken):
            few = len(rest) <= min(_FEW, MOST_SAID - len(self.said))
            if not (few and nearly_same(self.words, other.words)):
                return False
        for sentence in rest:
            self.quote(other.piece, sentence)
        if all(sentence.words in there for sentence in other.spoken):
            self.also.append(other.piece.cited)
        elif any(sentence.words in there for sentence in other.spoken):  # else its place stands with the quotation
            self.nearly.append(other.piece.cited)
        return True


def voices(given: Iterable[Piece]) -> tuple[list[Voice], list[tuple[Piece, Piece]]]:
    """The passages that speak, in order, and those that were taken up with the one that speaks for them."""
    every = [Voice(piece, sentences(piece.text), neighbours(piece.text)) for piece in given if piece.text.strip()]
    place = [float(number) for number in range(len(every))]
    quoted: dict[tuple[int, int], set[int]] = {}  # beneath a voice, from another, where the sentences begin
    for (newest, _), (older, sentence) in _disagreements(every):
        if every[newest].quote(every[older].piece, sentence):
            quoted.setdefault((newest, older), set()).add(sentence.start)
        if every[newest].piece.when > every[older].piece.when:
            place[newest] = min(place[newest], place[older] - 0.5)
    for (earlier, one), (later, other) in combinations(enumerate(every), 2):
        is_another = other.piece.when > one.piece.when and one.words != other.words
        if is_another and nearly_same(one.words, other.words):
            place[later] = min(place[later], place[earlier] - 0.5)
    kept: list[int] = []
    taken_up: list[tuple[Piece, Piece]] = []
    for number in sorted(range(len(every)), key=lambda each: (place[each], each)):
        speaks = (each for each in kept if every[each].takes_up(every[number], quoted.get((each, number), set())))
        if (speaker := next(speaks, None)) is None:
            kept.append(number)
        else:
            taken_up.append((every[number].piece, every[speaker].piece))
    return [every[number] for number in kept], taken_up


def _disagreements(every: Sequence[Voice]) -> Iterator[tuple[tuple[int, Sentence], tuple[int, Sentence]]]:
    """Pairs of sentences of different notes that disagree, each with its passage, the newest of its kind first."""
    by_frame: dict[tuple[str, ...], list[tuple[int, Sentence]]] = {}
    for number, voice in enumerate(every):
        for sentence in voice.spoken:
            if sentence.says_enough():
                by_frame.setdefault(sentence.frame, []).append((number, sentence))
    for group in by_frame.values():
        group.sort(key=lambda each: every[each[0]].piece.when, reverse=True)  # stable: of one day, the best first
        newest = every[group[0][0]].piece
        for other in group[1:]:
            piece = every[other[0]].piece
            if piece.name != newest.name and disagree(group[0][1], other[1], newest.about, piece.about):
                yield group[0], other
