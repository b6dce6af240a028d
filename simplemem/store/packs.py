"""Context packs: the best passages for a question, cited, within a budget of tokens. Passages that say the same are one;
where notes disagree the newest speaks first, the older quoted beneath. Notes beside the best join and weigh little."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import accumulate, islice
from typing import Any, NamedTuple

from simplemem.index.door import NoteId, Position, Shown
from simplemem.models import Filter, Pack
from simplemem.note.comments import without_gaps
from simplemem.note.dates import date_in_name
from simplemem.note.lines import count_lines
from simplemem.note.names import name_of
from simplemem.note.sentences import Sentence, contradicts, sentence_spans, sentences
from simplemem.note.words import count_tokens, words_in_order
from simplemem.providers.wordllama import WordLlama
from simplemem.search.excerpt import Quotable, quoted_heading
from simplemem.search.judgement import falling_scores, notice_of
from simplemem.search.rank import passage_around
from simplemem.store.core import Core
from simplemem.store.recall import Ranking, only_nearest, ranked, text_of, within

_NOTES = 20
_PASSAGES = 3  # of one note
MOST_SAID = (
    4  # sentences quoted beneath a passage; who says more than finds room there speaks for itself
)
_MOST_CITED = 6  # places named beside one
_BETWEEN = "\n\n"
_WORD = re.compile(r"\S+")
_MARK = re.compile(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)?(?:\[.\][ \t]+)?")  # of a list item


class Piece(NamedTuple):
    """A passage that could go into a pack. `at` is where the words of the question begin, `via` how it was found.

    `text` has spaces in place of what is not quoted, so that places in it are places in the note.
    """

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
    has_gaps: bool = False  # something is left out of the text

    @property
    def quoted(self) -> str:
        """The text to show, without the room that is left where a comment stood."""
        return without_gaps(self.text).strip() if self.has_gaps else self.text

    @property
    def when(self) -> str:
        """The day it speaks of: the date its note is named by, else when the note last changed."""
        return date_in_name(self.name) or date_in_name(self.title) or self.modified[:10]

    @property
    def cited(self) -> str:
        return f"{self.name}:{self.line}"


@dataclass(slots=True)
class Voice:
    """A passage that speaks for all that say the same."""

    piece: Piece
    spoken: Sequence[Sentence] = ()
    also: list[str] = field(default_factory=list)  # where the same words stand
    said: list[dict[str, str]] = field(
        default_factory=list
    )  # what others say differently: older, newer, or differs
    more: int = 0  # sentences that differ and found no room beneath

    def quote(self, piece: Piece, sentence: Sentence) -> bool:
        """Quote a sentence beneath the passage; whether there was room."""
        mine, its = self.piece.when, piece.when
        label = "older" if its < mine else "newer" if its > mine else "differs"
        cited = f"{piece.name}:{piece.line + count_lines(piece.text, 0, sentence.start)}"
        said = {
            "label": label,
            "text": " ".join(sentence.text.split()),
            "cited": cited,
            "when": its,
        }
        if said not in self.said and len(self.said) >= MOST_SAID:
            self.more += 1
            return False
        self.said += [said] if said not in self.said else []
        return True

    def takes_up(self, other: Voice, quoted: set[int]) -> bool:
        """Speak for another passage, if all that it says stands in this one, or beneath it where `quoted` begin."""
        there = {sentence.words for sentence in self.spoken}
        same = [sentence.words in there for sentence in other.spoken]
        if not same and words_in_order(self.piece.text) != words_in_order(other.piece.text):
            return False
        if not all(
            known or each.start in quoted for known, each in zip(same, other.spoken, strict=True)
        ):
            return False
        if any(same) or not same:  # else its place stands with the quotation
            self.also.append(other.piece.cited)
        return True


def voices(given: Iterable[Piece]) -> tuple[list[Voice], list[tuple[Piece, Piece]]]:
    """The passages that speak, the newest of two that disagree first; and those taken up, with who speaks for them."""
    every = [Voice(piece, sentences(piece.text)) for piece in given if piece.text.strip()]
    place = [float(number) for number in range(len(every))]
    quoted: dict[
        tuple[int, int], set[int]
    ] = {}  # beneath a voice, from another, where the sentences begin
    for newest, older, sentence in _disagreements(every):
        if every[newest].quote(every[older].piece, sentence):
            quoted.setdefault((newest, older), set()).add(sentence.start)
        if every[newest].piece.when > every[older].piece.when:
            place[newest] = min(place[newest], place[older] - 0.5)
    kept, taken_up = list[int](), list[tuple[Piece, Piece]]()
    for number in sorted(range(len(every)), key=lambda each: (place[each], each)):
        speaks = (
            each
            for each in kept
            if every[each].takes_up(every[number], quoted.get((each, number), set()))
        )
        if (speaker := next(speaks, None)) is None:
            kept.append(number)
        else:
            taken_up.append((every[number].piece, every[speaker].piece))
    return [every[number] for number in kept], taken_up


def _disagreements(every: Sequence[Voice]) -> Iterator[tuple[int, int, Sentence]]:
    """Passages of different notes of which the first, the newest, disagrees with a sentence of the second."""
    by_frame: dict[tuple[str, ...], list[tuple[int, Sentence]]] = {}
    for number, voice in enumerate(every):
        for sentence in voice.spoken:
            if sentence.says_enough():
                by_frame.setdefault(sentence.frame, []).append((number, sentence))
    about = [f"{each.piece.name} {each.piece.title} {each.piece.heading}" for each in every]
    for group in by_frame.values():
        group.sort(
            key=lambda each: every[each[0]].piece.when, reverse=True
        )  # stable: of one day, the best first
        (newest, says), *others = group
        for older, sentence in others:
            is_another = every[older].piece.name != every[newest].piece.name
            if is_another and contradicts(says, sentence, about[newest], about[older]):
                yield newest, older, sentence


class Packed(NamedTuple):
    """What went in, how much there was no room for, how much was taken up into others, and which those were."""

    text: str
    tokens: int
    items: tuple[dict[str, Any], ...]
    left_out: int
    duplicates: int
    omitted: tuple[dict[str, Any], ...]


def pack(
    pieces: Iterable[Piece], budget: int, count: Callable[[str], int] = count_tokens
) -> Packed:
    """Take passages in order while they fit; the best of all is cut after a sentence."""
    given = [piece for piece in pieces if piece.text.strip()]
    before = accumulate((len(piece.text) for piece in given[:-1]), initial=0)
    enough = max(
        12, sum(characters <= 10 * budget for characters in before)
    )  # so many are looked at
    speaking, taken_up = voices(given[:enough])
    no_room, duplicates = (
        given[enough:],
        [_omitted(piece, "duplicate", of=of.cited) for piece, of in taken_up],
    )
    taken: list[tuple[Voice, str]] = []
    used = 0
    for voice in speaking:
        if (piece := _without_overlap(voice.piece, [each.piece for each, _ in taken])) is None:
            duplicates.append(_omitted(voice.piece, "duplicate"))
            continue
        voice.piece = piece
        section: str | None = _section(voice)
        if used + count(f"{_BETWEEN}{section}") > budget:
            section = _shorten(voice, budget, count) if voice is speaking[0] else None
        if section is None:
            no_room.append(piece)
        else:
            used += count(_BETWEEN + section)
            taken.append((voice, section))
    while taken and count(_BETWEEN.join(section for _, section in taken)) > budget:
        no_room.append(
            taken.pop()[0].piece
        )  # a tokenizer may count a whole otherwise than its parts
    text = _BETWEEN.join(section for _, section in taken)
    items: list[dict[str, Any]] = []
    scores = falling_scores(voice.piece.score for voice, _ in taken)
    for (voice, section), score in zip(taken, scores, strict=True):
        piece = voice.piece
        about = {
            name: getattr(piece, name) for name in ("name", "title", "heading", "line", "modified")
        }
        more = {"via": piece.via, "also": voice.also, "said": voice.said}
        shown = {key: value for key, value in more.items() if value}
        items.append({**about, "score": round(score, 4), "tokens": count(section), **shown})
    omitted = (*(_omitted(piece, "budget") for piece in no_room), *duplicates)
    return Packed(text, count(text), tuple(items), len(no_room), len(duplicates), omitted)


def _omitted(piece: Piece, why: str, **more: str) -> dict[str, Any]:
    return {"name": piece.name, "line": piece.line, "why": why, **more}


def _section(voice: Voice) -> str:
    piece = voice.piece
    heading = f"{piece.heading} > ".removeprefix(f"{piece.title} > ").removesuffix(
        " > "
    )  # the title is said already
    head = " · ".join(filter(None, (f"[{piece.cited}] {piece.when}", piece.via)))
    if voice.also:
        more = f" and {len(voice.also) - _MOST_CITED} more" if len(voice.also) > _MOST_CITED else ""
        head += f" · also in {', '.join(f'[{place}]' for place in voice.also[:_MOST_CITED])}{more}"
    title = f"### {piece.title} › {heading}" if heading else f"### {piece.title}"
    said = ['{label}: "{text}" [{cited}] {when}'.format(**each) for each in voice.said]
    said += [f"({voice.more} more that differ)"] if voice.more else []
    text = piece.quoted.replace("\r\n", "\n").strip()
    return "\n\n".join(filter(None, (f"{title}\n{head}", text, "\n".join(said))))


def _without_overlap(piece: Piece, taken: Sequence[Piece]) -> Piece | None:
    """A passage without what a neighbouring one of its note has said; None when nothing is left."""
    start, stop = piece.start, piece.start + len(piece.text)
    for other in taken:
        if other.name != piece.name:
            continue
        first, last = other.start, other.start + len(other.text)
        if first <= start < last:
            start = min(last, stop)
        elif first < stop <= last:
            stop = max(first, start)
    return _part(piece, start - piece.start, stop - piece.start)


def _part(piece: Piece, start: int, stop: int) -> Piece | None:
    """A stretch of a passage under its own line; None when it is blank."""
    stretch = piece.text[start:stop]
    start += len(stretch) - len(stretch.lstrip())
    if not (kept := stretch.strip()):
        return None
    line = piece.line + count_lines(piece.text, 0, start)
    return piece._replace(
        text=kept, line=line, start=piece.start + start, at=max(0, piece.at - start)
    )


def _shorten(voice: Voice, budget: int, count: Callable[[str], int]) -> str | None:
    """Cut a passage to as many whole sentences as fit, from the place that was found, or words; returns its section."""
    piece = voice.piece
    said = sentence_spans(piece.text)
    ends = [stop for start, stop in said if start >= piece.at]
    last = ends[-1] if ends else len(piece.text)
    words = [
        found.end() for found in _WORD.finditer(piece.text, piece.at, ends[0] if ends else last)
    ]
    earlier = [(start, last) for start, _ in said if start < piece.at] if ends else []
    for at, stop in (*earlier, *((piece.at, end) for end in reversed(words + ends))):
        line = piece.text.rfind("\n", 0, at) + 1
        start = line if at < piece.at and _MARK.fullmatch(piece.text, line, at) else at
        if (part := _part(piece, start, stop)) is None:
            continue
        before = "…\n" if piece.text[:start].strip() else ""
        part = part._replace(
            text=f"{part.text} …" if piece.text[stop:].strip() else f"{before}{part.text}"
        )
        section = _section(Voice(part))
        if count(section) <= budget:
            voice.piece, voice.also, voice.said, voice.more = part, [], [], 0
            return section
    return None


class _Source(NamedTuple):
    """A note whose passages may go in; `via` says how it was found when it is no hit."""

    note: Shown
    score: float
    via: str


def context(
    core: Core, query: str, *, budget_tokens: int = 1500, filter: Filter | None = None
) -> Pack:
    """The best passages for a question within a budget of tokens."""
    budget = within(budget_tokens, 50, 100_000, "budget_tokens")
    core.prepare()
    behind = core.state_if_behind()

    def once() -> tuple[Ranking, list[_Source]]:
        ranking = ranked(core, query, filter, _NOTES)
        return ranking, sources_of(core, ranking)

    ranking, sources = core.fresh(
        once, lambda found: [source.note.row for source in found[1] if source.via]
    )
    embedder, _ = core.embedding.load()
    tokenizer, count = "estimate", count_tokens
    if isinstance(embedder, WordLlama):
        tokenizer, count = embedder.name, embedder.count_tokens
    packed = pack(pieces_of(core, sources, ranking.query.words), budget, count)
    state = core.state_of_answer(behind, ranking.standing)
    absent = () if state.missing_notes else ranking.query.absent
    nearest = state.is_ready and only_nearest(core, ranking)
    notice = notice_of(nearest, ranking.query.words, absent)
    return Pack(
        query, packed.text, packed.tokens, packed.items, packed.left_out, state,
        ranking.degraded_by, packed.duplicates, packed.omitted, tokenizer,
        absent, nearest, notice,
    )  # fmt: skip


def sources_of(core: Core, ranking: Ranking) -> list[_Source]:
    """The hits in their order, and between them the neighbours of the best, by their scores."""
    hits = {found.note: found for found in ranking.best}
    near = {
        found.note: found for found in ranking.every if found.has_word and found.note not in hits
    }
    strong = (
        [found.note for found in ranking.best[:5]] if near else []
    )  # whose neighbours are looked at
    question = ranking.question
    shown = core.index.shown(
        dict.fromkeys(hits, 0), question, blocks=True, beside=strong, among=frozenset(near)
    )
    sources = [
        _Source(shown[note], found.score, "") for note, found in hits.items() if note in shown
    ]
    neighbours: dict[NoteId, _Source] = {}
    for hit in (hits[note] for note in strong if note in shown):
        for note, via in shown[hit.note].beside:
            if note in near and note in shown and note not in neighbours:
                score = near[note].score + 0.1 * hit.score  # which lends a tenth
                if (
                    ranking.reranker
                ):  # what it scored is of another scale, on which no reranker has seen this one
                    score = min(score, ranking.best[-1].score)
                neighbours[note] = _Source(shown[note], score, f"{via} {name_of(hit.path)}")
    sources += sorted(neighbours.values(), key=lambda source: source.note.row.path)
    return sorted(sources, key=lambda source: -round(source.score, 6))


def pieces_of(core: Core, sources: Sequence[_Source], words: Sequence[str]) -> list[Piece]:
    """The best passage of every note in order, then the next best ones, as they are quoted to who asked these words."""
    pieces: list[tuple[int, Piece]] = []
    for note, score, via in sources:
        row, text = note.row, text_of(core, note.row.path)
        if text is None:
            continue
        around: dict[
            Position, int
        ] = {}  # the passages of the best blocks, each with where its block begins
        for block in note.blocks:
            if (passage := passage_around(note.passages, block)) is not None:
                around.setdefault(passage, block.start)
        if not around and (passage := passage_around(note.passages, note.best)) is not None:
            around[passage] = passage.start
        quotable = Quotable.of(text)
        quoted = [(place, quotable.passage(place, words)) for place in islice(around, _PASSAGES)]
        if not any(
            shown.strip() for _, shown in quoted
        ):  # the note was found by what is not quoted
            quoted = [(place, quotable.passage(place, words)) for place in note.passages]
            quoted = [(place, shown) for place, shown in quoted if shown.strip()][:1]
        for k, (place, shown) in enumerate(quoted):
            at = around.get(place, place.start)
            piece = Piece(
                name=name_of(row.path),
                title=row.title,
                heading=quoted_heading(place.headings),
                line=place.line,
                modified=row.modified,
                text=shown,
                score=score / (k + 1),
                start=place.start,
                at=max(0, at - place.start),
                via=via,
                has_gaps=shown != text[place.start : place.stop],
            )
            if shown.strip():
                pieces.append((k, piece))
    return [piece for _, piece in sorted(pieces, key=lambda each: each[0])]
