"""What is looked up for one item that a person opens: similar notes and possible contradictions.

The rules compare words. They find what is worth a look, and do not judge what is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.errors import SimplememError
from simplemem.features.review.inbox import (
    Contradiction,
    NoteChange,
    NoteTexts,
    SimilarNote,
)
from simplemem.note.header import content_start, read_header
from simplemem.note.names import base_name
from simplemem.note.plain_text import plain_text
from simplemem.note.word_diff import compare_blocks, shared_words, split_into_words
from simplemem.note.words import content_words

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MAX_SIMILAR: Final = 5
_MAX_CANDIDATES: Final = 10
_MAX_QUERY_WORDS: Final = 40
_MAX_CHARACTERS: Final = 50_000  # of a note that is compared
_MIN_DUPLICATE: Final = 0.75  # of the words, so that a note may be a duplicate
_MIN_SIMILAR: Final = 0.2
_MIN_SAME_SUBJECT: Final = 0.6  # of the words of two lines that are about the same
_MIN_WORDS: Final = 3  # of a line that is compared
_MAX_CONTRADICTIONS: Final = 6
_MAX_LINES: Final = 200  # of a change, and of each similar note
_MAX_PASSAGE: Final = 240  # characters
_WORDS_PER_UNIT: Final = 3  # shared words that a shared unit of measurement counts for
_MAX_LINKED: Final = 10  # notes that an added line links to
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_QUANTITY: Final = re.compile(
    r"(?<![\w.,])(\d+(?:[.,]\d+)?)[ \u00a0]?([^\W\d_]{1,5}(?:/[^\W\d_]{1,3})?|%)"
)
_LINK: Final = re.compile(r"\[\[([^\[\]\n|#]{1,400})")
_NEGATIONS: Final = frozenset(
    "no not never none cannot kein keine nicht nie ohne nunca sin ne pas jamais sans".split()
)
_BOUNDS: Final = frozenset(
    "below under above over exceed exceeds most least limit max maximum min minimum unter über "
    "höchstens mindestens grenze límite máximo mínimo moins plus limite".split()
)


class _Subject(NamedTuple):
    """What a change is about: its words without stop words, and its units of measurement."""

    words: frozenset[str]
    units: frozenset[str]

    @classmethod
    def of(cls, text: str) -> _Subject:
        """Return the subject of a text."""
        return cls(frozenset(content_words(_words_of(text))), frozenset(_quantities_in(text)))

    def best_line_of(self, text: str) -> str:
        """Return the line of a text that shares most with the subject, without markup; else ""."""
        best = ""
        best_score = 0
        for line in _lines_of(text):
            words = self.words.intersection(_words_of(line))
            units = self.units.intersection(_quantities_in(line))
            score = len(words) + _WORDS_PER_UNIT * len(units)
            if score > best_score:
                best = line
                best_score = score
        return plain_text(best)[:_MAX_PASSAGE]


@dataclass(frozen=True)
class ComparedNote:
    """A changed note as the rules compare it.

    Lines are those of three words or more. `words` are those of its text that carry meaning.
    """

    change: NoteChange
    old_lines: Sequence[str]
    new_lines: Sequence[str]
    added_lines: Sequence[str]
    words: Sequence[str]


def compare_note(texts: NoteTexts) -> ComparedNote:
    """Return a changed note as the rules compare it."""
    old_lines = _lines_of(_body_of(texts.old))
    new_lines = _lines_of(_body_of(texts.new))
    known_lines = set(old_lines)
    body = _body_of(texts.new or texts.old)
    return ComparedNote(
        change=texts.note,
        old_lines=old_lines,
        new_lines=new_lines,
        added_lines=[line for line in new_lines if line not in known_lines],
        words=content_words(_words_of(body)),
    )


def find_similar(store: EnhancedStore, note: ComparedNote) -> list[tuple[SimilarNote, str]]:
    """Return the notes that resemble a changed one, the most similar first, with their texts.

    At most five are returned. The text is that of the body.
    """
    subject = _Subject.of("\n".join(note.added_lines or note.old_lines))
    own_names = {note.change.name, note.change.current_name}
    similar = []
    for name, title in _candidates(store, note).items():
        if name in own_names:
            continue
        with suppress(SimplememError):
            text = store.read(name).content[:_MAX_CHARACTERS]
            shared = shared_words(note.words, content_words(_words_of(text)))
            if shared < _MIN_SIMILAR:
                continue
            similar_note = SimilarNote(
                name=name,
                title=title,
                shared=round(shared, 2),
                is_duplicate=shared >= _MIN_DUPLICATE,
                passage=subject.best_line_of(text),
            )
            similar.append((similar_note, text))

    similar.sort(key=lambda pair: pair[0].shared, reverse=True)
    return similar[:_MAX_SIMILAR]


def _candidates(store: EnhancedStore, note: ComparedNote) -> dict[str, str]:
    """Return the titles of notes that may resemble a changed one, by their names."""
    titles = dict[str, str]()
    name = note.change.current_name
    with suppress(SimplememError):
        for related in store.related(name, limit=_MAX_SIMILAR):
            titles[related] = base_name(related)

    changed_words = _words_of("\n".join(note.added_lines))
    words = [*_words_of(base_name(name)), *changed_words, *note.words]
    query = " ".join(words[:_MAX_QUERY_WORDS])
    with suppress(SimplememError):
        for hit in store.search(query, limit=_MAX_CANDIDATES, rerank=False).hits:
            titles[hit.name] = hit.title
    return titles


def find_contradictions(
    store: EnhancedStore, note: ComparedNote, similar: Sequence[tuple[SimilarNote, str]]
) -> list[Contradiction]:
    """Return statements of a change that differ from others in a number or a negation.

    The others are in the same note before the change, in similar notes, and in notes that the
    statement links to. Disputed facts that link to the note are among the results. At most six are
    returned.
    """
    found = list(_replaced_values(note))
    for other, text in similar:
        if not other.is_duplicate:
            found += _compare_lines(note.added_lines, other.name, _lines_of(text))
    found += _other_limits(store, note)
    found += _disputed_facts(store, note.change.current_name)
    return found[:_MAX_CONTRADICTIONS]


def _replaced_values(note: ComparedNote) -> Iterator[Contradiction]:
    """Yield the lines of a note in which a change replaced a number or negated a statement."""
    changes = compare_blocks(
        [split_into_words(line) for line in note.old_lines],
        [split_into_words(line) for line in note.new_lines],
    )
    for change in changes:
        if change.old is None or change.new is None or not change.is_changed:
            continue
        old = note.old_lines[change.old]
        new = note.new_lines[change.new]
        why = _describe_difference(new, old)
        if why:
            yield Contradiction(note.change.name, new, old, f"the note said {why} before")


def _compare_lines(
    lines: Sequence[str], name: str, other_lines: Sequence[str]
) -> Iterator[Contradiction]:
    """Yield the lines that say something else than a line of another note about the same."""
    others = [(line, split_into_words(line)) for line in other_lines]
    for line in lines:
        words = split_into_words(line)
        for other, other_words in others:
            if shared_words(words, other_words) < _MIN_SAME_SUBJECT:
                continue
            why = _describe_difference(line, other)
            if why:
                yield Contradiction(name, line, other, f"the other note says {why}")


def _other_limits(store: EnhancedStore, note: ComparedNote) -> Iterator[Contradiction]:
    """Yield limits, such as "wind below 8 m/s", that link to a note with another limit.

    Only limits are compared: two measurements often differ without a contradiction.
    """
    for line in note.added_lines:
        quantities = _quantities_in(line)
        if not quantities or not _is_limit(line):
            continue
        for target in _LINK.findall(line)[:_MAX_LINKED]:
            with suppress(SimplememError):
                other = store.read(target.strip())
                if other.name != note.change.current_name:
                    yield from _compare_limits(line, quantities, other.name, other.content)


def _compare_limits(
    line: str, quantities: dict[str, list[str]], name: str, text: str
) -> Iterator[Contradiction]:
    """Yield the first limit in the units of a line that a linked note has, if it is another one.

    The two lines must share a word, such as "wind".
    """
    words = frozenset(content_words(_words_of(line)))
    limits = [other for other in _lines_of(text[:_MAX_CHARACTERS]) if _is_limit(other)]
    for unit, numbers in quantities.items():
        subject = words.difference(_words_of(unit))
        for other in limits:
            other_numbers = _quantities_in(other).get(unit)
            if not other_numbers or subject.isdisjoint(_words_of(other)):
                continue
            if set(numbers).isdisjoint(other_numbers):
                why = f"that note says {other_numbers[0]} {unit}, and not {numbers[0]} {unit}"
                yield Contradiction(name, plain_text(line), plain_text(other), why)
            break


def _is_limit(line: str) -> bool:
    """Return whether a line says how much is too much or too little."""
    return not _BOUNDS.isdisjoint(_words_of(line))


def _quantities_in(line: str) -> dict[str, list[str]]:
    """Return the numbers of a line by their units, such as "m/s"."""
    quantities: dict[str, list[str]] = {}
    for number, unit in _QUANTITY.findall(line):
        quantities.setdefault(unit, []).append(number)
    return quantities


def _describe_difference(line: str, other: str) -> str:
    """Return what another line has instead: a number, or a statement without "not"; else ""."""
    numbers = _NUMBER.findall(line)
    other_numbers = _NUMBER.findall(other)
    if len(numbers) == len(other_numbers):
        for number, other_number in zip(numbers, other_numbers, strict=True):
            if number != other_number:
                return f"{other_number} instead of {number}"

    return "the opposite" if _is_negated(line) != _is_negated(other) else ""


def _is_negated(line: str) -> bool:
    """Return whether a line has a word such as "not"."""
    return not _NEGATIONS.isdisjoint(_words_of(line))


def _disputed_facts(store: EnhancedStore, name: str) -> Iterator[Contradiction]:
    """Yield the disputed facts that link to a note."""
    links = []
    with suppress(SimplememError):
        links = [link for link in store.backlinks(name, limit=20) if link.kind == "link"]
    for link in links:
        with suppress(SimplememError):
            fact = store.read(link.name)
            if fact.frontmatter.get("status") == "disputed":
                why = "it is disputed, and links to this note"
                yield Contradiction(link.name, "", link.title, why)


def _lines_of(body: str) -> list[str]:
    """Return the first 200 lines of a text that have three words or more."""
    lines = [line.strip() for line in body.splitlines()]
    return [line for line in lines if len(_words_of(line)) >= _MIN_WORDS][:_MAX_LINES]


def _body_of(text: str) -> str:
    """Return the beginning of a note without its frontmatter."""
    start = content_start(text, read_header(text))
    return text[start : start + _MAX_CHARACTERS]


def _words_of(text: str) -> list[str]:
    """Return the words of a text in small letters, without spaces and signs."""
    return [word.casefold() for word in split_into_words(text) if word[:1].isalnum()]
