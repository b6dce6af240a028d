"""Notes ranked by what speaks for them (words, words side by side, meaning, and what is put beside these), and the part
of each that is shown. Pure. Each is divided by its own maximum and added: rank fusion cost six points of MRR."""

from __future__ import annotations

import math
import re
import threading
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, islice
from typing import TYPE_CHECKING, Literal, NamedTuple

from simplemem.index.door import BLOCKS_COUNTED, Match, Matches, NoteId, PlaceId, Position
from simplemem.note.passages import as_read
from simplemem.note.words import STOP_WORDS, is_unspaced, words_in_order, words_key

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simplemem.services.wordllama import WordLlama

Mode = Literal["hybrid", "text", "semantic"]
MODES: tuple[Mode, ...] = ("hybrid", "text", "semantic")
_Texts = Mapping[
    Hashable, Callable[[], Sequence[str]]
]  # how passages are read, by what tells the text of a note apart

_BLOCK_WEIGHT = 0.5  # beside 1 of the whole note
_PHRASES = 0.1  # of a score, when there are words; a plateau from 0.07 to 0.14
# A question is answered in one place, so this orders the best notes of a question; a statement or a list of words names
# what a whole note is about, and is left as it was.
COVERED_NOTES = 12  # so many of the best are compared; with 60 the order is the same
COVERED_WEIGHT = 0.4  # beside 1 of all else; a plateau from 0.25 to 0.5
COVERED_PASSAGES = 64  # of one note
_COVERED_LINES = 3  # in a row; a plateau from 2 to 4
_COVERED_CHARACTERS = 4_000  # of one passage
_NAMELESS = (
    0.3  # of coverage that a passage with none of the names keeps; a plateau from 0.1 to 0.4
)
_SAME_WORD = 0.9  # of cosine: another form of a word, never another name
_KEPT_WORDS, _KEPT_NOTES = 20_000, 400  # 20 MB, and 6 of the longest notes
COMPARED = 6  # of the ranking: the first with the sixth
_FAR_AHEAD = 0.3  # few notes lead far, whatever they hold: a farther lead counts no more
# A note whose name or alias is a part of the question: it gains 3 to 17 thousandths of MRR where notes are asked for by
# their own descriptions, and nothing where names tell nothing.
NAMED_WEIGHT = (
    0.3  # beside 1 of all else, for a name that is the whole question; the same up to 0.6
)
_NAMED_SHARE = 0.3  # of the question; 0.4 gains as much
_HALF = 0.5
_NAME_WORDS = 8
_NOT_TITLED = 9  # behind every note that is called as the question is
_STEM = 4  # letters of a word that its forms share, and of an ending
_LETTER = re.compile(r"\w")
_AMID_A_SENTENCE = re.compile(r"(?<!^)(?<![.?!:]\s)\b[^\W\d_]\w*")
_ENDING = 3  # letters that a form of a word may lack
_LOOKED_AT = 100  # words found
_READ_BEFORE = 500  # characters before those that are shown
_FIRST_WORDS = frozenset(
    """what when where who whom whose which why how did do does is are was were can could should would will has have had
    wann wo wohin woher wer wen wem wessen welche welcher welches warum wieso weshalb wie
    quand qui que quel quelle quels quelles pourquoi comment combien
    qué cuándo dónde quién quiénes cuál cuáles cómo cuánto cuántos""".split()
)


class Signal(NamedTuple):
    """Something that speaks for notes: how much of it each has, and what it counts beside the others."""

    name: str
    weight: float
    values: Mapping[NoteId, float]

    @property
    def best(self) -> float:
        """What every note's is divided by."""
        return max(self.values.values(), default=0.0) or 1.0


class Ranked(NamedTuple):
    """A note's place in the ranking: its score, its best block by words, 0 without one, and whether it holds a word."""

    note: NoteId
    path: str
    score: float
    place: PlaceId = 0
    has_word: bool = False


def signals_of(answer: Matches, mode: Mode = "hybrid", lexical_weight: float = 0.6) -> list[Signal]:
    """What an answer of the index says for notes: their words, neighbouring words and meaning."""
    own = _own_shares(answer)
    others = (
        sum(own.values()) / len(own) if own else 1.0
    )  # of a note whose blocks were not looked at
    words = {match.note: match.score * own.get(match.note, others) for match in answer.notes}
    for note, (_block, score) in _best_blocks(answer).items():
        words[note] += _BLOCK_WEIGHT * score
    phrases = {match.note: match.score * own.get(match.note, others) for match in answer.pairs}
    meaning = {note: near.score for note, near in (answer.near or {}).items()}
    share = {"hybrid": lexical_weight if meaning else 1.0, "text": 1.0, "semantic": 0.0}[mode]
    left = 1 - _PHRASES if phrases else 1.0
    return [
        Signal("words", left * share, words),
        Signal("phrases", 1 - left, phrases),
        Signal("meaning", left * (1 - share), meaning),
    ]


def _best_blocks(answer: Matches) -> dict[NoteId, tuple[Match, float]]:
    """Return the best block of each note by its words, with its score: less the more notes have its text."""
    best: dict[NoteId, tuple[Match, float]] = {}
    repeated = answer.repeated
    for match in answer.blocks:
        score = match.score * repeated.get(match.place, 1.0)
        known = best.get(match.note)
        if known is None or score > known[1]:
            best[match.note] = (match, score)
    return best


def _own_shares(answer: Matches) -> dict[NoteId, float]:
    """Return how much of the scores of a note's best blocks is not due to text that many notes have."""
    repeated = answer.repeated
    if not repeated:
        return {}
    counts = Counter[NoteId]()
    totals: dict[NoteId, float] = {}
    own: dict[NoteId, float] = {}
    for match in answer.blocks:
        note = match.note
        counts[note] += 1
        if counts[note] <= BLOCKS_COUNTED:
            totals[note] = totals.get(note, 0.0) + match.score
            own[note] = own.get(note, 0.0) + match.score * repeated.get(match.place, 1.0)
    return {note: own[note] / total for note, total in totals.items()}


def beside(
    signals: Sequence[Signal], name: str, weight: float, values: Mapping[NoteId, float]
) -> list[Signal]:
    """The signals with a further one, whose weight is said beside 1 of all others. One that nobody has is left out."""
    if not any(values.values()):
        return list(signals)
    every = [*signals, Signal(name, weight, values)]
    return [signal._replace(weight=signal.weight / (1 + weight)) for signal in every]


def names_within(spoken: Sequence[str], weights: Mapping[str, float]) -> dict[str, float]:
    """The parts of a question that may be the name of a note (words.words_key), and the share of the question that each
    is: of the weights of its words, or of their number where that is half of them. A part begins and ends with a word
    that counts, and is enough of the question to say what it is about."""
    found: dict[str, float] = {}
    total = sum(weights.values())
    places = [place for place, word in enumerate(spoken) if word in weights] if total else []
    for first in places:
        for last in places:
            if not first <= last < first + _NAME_WORDS:
                continue
            part = spoken[first : last + 1]
            held = {word for word in part if word in weights}
            share = sum(weights[word] for word in held) / total
            of_number = len(held) / len(weights)
            share = max(share, of_number if of_number >= _HALF else 0.0)
            if share >= _NAMED_SHARE:
                key = words_key(" ".join(part))
                found[key] = max(share, found.get(key, 0.0))
    found.pop("", None)
    return found


def ordered(answer: Matches, signals: Sequence[Signal], most: int | None = None) -> list[Ranked]:
    """The notes for which anything speaks, best first; equal scores in order of their names. With `most` those that are
    behind so many others may be left out."""
    scores: dict[NoteId, float] = {}
    for signal in signals:
        weight, known = signal.weight / signal.best, scores.get
        scores |= {note: known(note, 0.0) + weight * value for note, value in signal.values.items()}
    paths, titled = (
        answer.paths,
        answer.titled,
    )  # what is called as the question is comes before the others
    if most is not None and most < len(scores):
        least = sorted(scores.values())[-most] - 1e-6
        scores = {note: score for note, score in scores.items() if score >= least or note in titled}
    scores = (
        dict.fromkeys(titled, 0.0) | scores
    )  # also one that is far behind, or for which nothing else speaks
    scored = sorted(
        (titled.get(note, _NOT_TITLED), -round(score, 6), paths[note], note, score)
        for note, score in scores.items()
        if score > 0 or note in titled
    )
    places = {note: match.place for note, (match, _score) in _best_blocks(answer).items()}
    worded = {match.note for match in answer.notes}
    return [
        Ranked(note, path, 1.0 if note in titled else score, places.get(note, 0), note in worded)
        for _, _, path, note, score in scored
    ]


def is_question(text: str) -> bool:
    """Whether a text asks: by its mark, or by its first word."""
    stripped = text.strip()
    if stripped.endswith(("?", "\uff1f", "\u061f")) or stripped.startswith("\u00bf"):
        return True
    first = re.match(r"\w+", stripped)
    return (
        first is not None and first[0].casefold() in _FIRST_WORDS and len(stripped) > len(first[0])
    )


def names_in(question: str) -> set[str]:
    """The words of a question that are written as names, with a capital amid a sentence; none where every word is."""
    words = _AMID_A_SENTENCE.findall(question.strip())
    return (
        {word.lower() for word in words if word[0].isupper()}
        if any(map(str.islower, words))
        else set()
    )


class Coverage:
    """How well notes cover the words that are asked, by their vectors. What notes hold is kept, as numbers of words."""

    def __init__(self, vectors: WordLlama) -> None:
        self.vectors = vectors
        self._lock = threading.Lock()
        self._forget()

    def _forget(self) -> None:
        import numpy as np

        self._number: dict[str, int] = {}
        self._table: NDArray[np.float32] = np.empty(
            (_KEPT_WORDS, self.vectors.dimension or 0), np.float32
        )
        self._notes: dict[Hashable, list[NDArray[np.int32]]] = {}

    def of(self, asked: Sequence[str], notes: _Texts, names: Collection[str] = ()) -> list[float]:
        """For each note how well one of its passages covers the words, as a whole and by a few lines of it. No name is
        near to another: what a passage lacks of the names counts against it."""
        import numpy as np

        by_line, first, passages = self._by_line(asked, notes)
        if not by_line.size:
            return [0.0] * len(passages)
        by_passage = np.maximum.reduceat(by_line, first, axis=1)
        held = (
            (by_passage[[word in names for word in asked]] > _SAME_WORD).mean(axis=0)
            if names
            else 1.0
        )
        goes_on = np.delete(
            np.arange(by_line.shape[1]), first - 1
        )  # lines that are not the last of a passage
        for _ in range(_COVERED_LINES - 1):
            by_line[:, goes_on] = np.maximum(by_line[:, goes_on], by_line[:, goes_on + 1])
        covered = by_passage.mean(axis=0) + np.maximum.reduceat(by_line.mean(axis=0), first)
        found = iter((covered * (_NAMELESS + (1 - _NAMELESS) * held)).tolist())
        return [max(islice(found, each), default=0.0) for each in passages]

    def share(
        self,
        weights: Mapping[str, float],
        called: str,
        key: Hashable,
        texts: Callable[[], list[str]],
    ) -> float:
        """The share of the words, by their weights, that a note holds in what it is called and in its best passage."""
        import numpy as np

        by_line, first, (names, passages) = self._by_line(
            list(weights), {(called,): lambda: [called], key: texts}
        )
        if not by_line.size:
            return 0.0
        near, weight = (
            np.maximum.reduceat(by_line, first, axis=1) ** 2,
            np.array(list(weights.values())),
        )
        if names and passages:
            near = np.maximum(near, near[:, :1])
        return min(1.0, float((weight @ near).max() / weight.sum()))

    def by_word(
        self,
        weights: Mapping[str, float],
        called: str,
        key: Hashable,
        texts: Callable[[], list[str]],
    ) -> tuple[list[float], int]:
        """Return how near each word is to the best passage of a note, with what it is called, and that passage.

        The passage is a number, -1 for a note without text.
        """
        import numpy as np

        words = list(weights)
        by_line, first, (names, passages) = self._by_line(
            words, {(called,): lambda: [called], key: texts}
        )
        if not by_line.size:
            return [0.0] * len(words), -1
        near = np.maximum.reduceat(by_line, first, axis=1)
        if names and passages:
            near = np.maximum(near, near[:, :1])
        best = int((np.array(list(weights.values())) @ near**2).argmax())
        return near[:, best].tolist(), best - names if passages else -1

    def _by_line(
        self, asked: Sequence[str], notes: _Texts
    ) -> tuple[NDArray[np.float32], NDArray[np.int32], list[int]]:
        """How near each word is to each line of all notes; the first line of each passage; each note's passages."""
        import numpy as np

        with self._lock:
            if len(self._number) > _KEPT_WORDS:
                self._forget()
            read = [self._read(key, texts) for key, texts in notes.items()]
            table = self._table[: len(self._number)]
        passages = [len(each) for _, _, each in read]
        if not asked or not any(passages):
            return np.empty((0, 0), np.float32), np.empty(0, np.int32), passages
        every, lengths, lines = map(np.concatenate, zip(*read, strict=True))
        held, place = np.unique(every, return_inverse=True)
        near = np.maximum(self.vectors.words([word.lower() for word in asked]) @ table[held].T, 0.0)
        by_line = np.maximum.reduceat(near[:, place], np.cumsum(lengths) - lengths, axis=1)
        return by_line, np.cumsum(lines) - lines, passages

    def _read(self, key: Hashable, texts: Callable[[], Sequence[str]]) -> list[NDArray[np.int32]]:
        """The words of a note, how many each of its lines has, and how many lines each of its passages."""
        import numpy as np

        if (kept := self._notes.pop(key, None)) is None:
            passages = [
                [words for line in text.split("\n") if (words := _words(line))] for text in texts()
            ]
            lines = list(chain(*passages))
            fresh = [word for word in dict.fromkeys(chain(*lines)) if word not in self._number]
            if fresh:
                vectors, first = self.vectors.words(fresh), len(self._number)
                self._number |= {word: number for number, word in enumerate(fresh, first)}
                while len(self._number) > len(self._table):
                    self._table = np.concatenate([self._table, np.empty_like(self._table)])
                self._table[first : len(self._number)] = vectors
            numbers = [
                map(self._number.__getitem__, chain(*lines)),
                map(len, lines),
                filter(None, map(len, passages)),
            ]
            kept = [np.fromiter(each, np.int32) for each in numbers]
        self._notes[key] = kept
        if len(self._notes) > _KEPT_NOTES:
            del self._notes[next(iter(self._notes))]
        return kept


def with_words(passages: Iterable[str]) -> list[str]:
    """Return the passages that have a word which carries meaning: those whose nearness `Coverage` measures."""
    return [passage for passage in passages if any(_words(line) for line in passage.split("\n"))]


def _words(text: str) -> list[str]:
    """The different words of a passage that carry meaning."""
    words = dict.fromkeys(words_in_order(text[:_COVERED_CHARACTERS].lower()))
    return [word for word in words if word not in STOP_WORDS]


def weights_of(words: Sequence[str], holders: Sequence[int], notes: int) -> dict[str, float]:
    """What each word of a question counts: the fewer notes hold it, the more."""
    rarity = (math.log1p((max(notes - held, 0) + 0.5) / (held + 0.5)) for held in holders)
    return {word: math.sqrt(each) for word, each in zip(words, rarity, strict=True)}


def share_held(weights: Mapping[str, float], called: str, texts: Sequence[str]) -> float:
    """As `Coverage.share`, where there are no vectors: by how words begin."""
    asked = [(_beginning(word), weight) for word, weight in weights.items()]
    plain = [_plain(f"{called}\n{text[:_COVERED_CHARACTERS]}") for text in texts or ("",)]
    held = (
        sum(weight for begin, weight in asked if _has_beginning(text, *begin)) for text in plain
    )
    return max(held) / sum(weights.values())


def share_contained(weights: Mapping[str, float], called: str, passages: Sequence[str]) -> float:
    """Return the share of a question whose words one passage contains as they are spelled, with what its note is called.

    It is never more than what the word vectors say of the passage, and costs a tenth of it.
    """
    of_note = set(_words(called))
    shares = [0.0]
    for passage in passages or ("",):
        contained = of_note.union(*map(_words, passage.split("\n")))
        shares.append(sum(weight for word, weight in weights.items() if word.lower() in contained))
    return max(shares) / (sum(weights.values()) or 1.0)


@lru_cache(maxsize=1_000)
def _beginning(word: str) -> tuple[str, bool | None]:
    """How a word begins, and whether a letter may stand before it: never before a letter; None where it does not matter."""
    begin = _plain(word)[: max(_STEM, len(word) - _ENDING)]
    return begin, None if is_unspaced(word) else _LETTER.match(begin) is None


def _has_beginning(text: str, begin: str, after_letter: bool | None) -> bool:
    return any(
        after_letter in (None, _LETTER.match(text[at - 1 : at]) is not None)
        for at in _places(text, begin)
    )


def words_begun(text: str, words: Sequence[str]) -> int:
    """How many of some words a text holds, by how words begin."""
    plain = _plain(text)
    return sum(_has_beginning(plain, *_beginning(word)) for word in words)


def lead_of(ranked: Sequence[Ranked]) -> float:
    """Return the lead of the best over the sixth; few notes lead far, whatever they hold, so a far lead counts less."""
    ahead = ranked[0].score - (ranked[COMPARED - 1].score if len(ranked) >= COMPARED else 0.0)
    return min(ahead, _FAR_AHEAD)


def passage_around(passages: Sequence[Position], place: Position | None) -> Position | None:
    """The passage a block stands in, or the passage itself."""
    if place is None:
        return passages[0] if passages else None
    return next(
        (passage for passage in passages if passage.start <= place.start < passage.stop), place
    )


def where_words_stand(
    text: str,
    passages: Sequence[Position],
    place: Position | None,
    words: Sequence[str],
    limit: int,
) -> tuple[Position | None, Position | None]:
    """The passage to show and the place in it: in a long block, where most of the words stand together."""
    if place is None or place.stop - place.start <= limit:
        return passage_around(passages, place), place
    plain = _plain(text[place.start : place.stop])
    beginnings = {_plain(word)[: max(_STEM, len(word) - _STEM)] for word in words}
    found = sorted((at, word) for word in beginnings for at in _places(plain, word))[:_LOOKED_AT]
    best, most = (
        0,
        len({word for at, word in found if at < limit * 3 // 4}),
    )  # where a stretch with most words begins
    for k, (start, _) in enumerate(found):
        if (held := len({word for at, word in found[k:] if at < start + limit * 2 // 3})) > most:
            best, most = start, held
    at = place.start + best
    there = place._replace(start=at, line=place.line + text.count("\n", place.start, at))
    around = passage_around(passages, there)
    if around is None or at == place.start:
        return around, place
    return around, there._replace(start=max(around.start, at - limit // 4))


def _places(text: str, word: str) -> Iterator[int]:
    at = text.find(word)
    while at >= 0:
        yield at
        at = text.find(word, at + 1)


def snippet(text: str, passage: Position, place: Position | None, limit: int) -> str:
    """The passage in one line of at most `limit` characters, beginning near the place that was found."""
    if passage.stop - passage.start <= limit:
        return as_read(text[passage.start : passage.stop])
    start = (
        passage.start
        if place is None
        else max(passage.start, min(place.start, passage.stop - limit + 2))
    )
    first = max(
        passage.start, start - _READ_BEFORE
    )  # from there on, for the beginning may stand in a link or in code
    whole = as_read(text[first : min(passage.stop, start + 3 * limit)])
    at = max(0, min(len(as_read(text[first:start])), len(whole) - limit + 2))
    if 0 < at < len(whole) and not (whole[at].isspace() or whole[at - 1].isspace()):
        at = max(at, whole.find(" ", at, at + 30))
    before, shown = "… " if at or first > passage.start else "", whole[at:].strip()
    if len(shown) + len(before) > limit:
        cut = shown.rfind(" ", limit // 2, limit - len(before) - 1)
        shown = shown[: cut if cut > 0 else limit - len(before) - 1] + "…"
    return before + shown


def _plain(text: str) -> str:
    """In small letters without accents, every character in its place."""
    return text.lower() if text.isascii() else "".join(map(_letter, text))


@lru_cache(maxsize=10_000)
def _letter(character: str) -> str:
    apart = unicodedata.normalize("NFD", character)
    return (apart[0] if len(apart) > 1 and unicodedata.combining(apart[1]) else character).lower()[
        0
    ]
