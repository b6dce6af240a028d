"""What is looked up for one item that a person opens: similar notes and possible contradictions.

The rules compare words. They find what is worth a look, and do not judge what is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from simplemem.errors import SimplememError
from simplemem.features.review.inbox import (
    Contradiction,
    NoteChange,
    NoteTexts,
    SimilarNote,
)
from simplemem.note.header import content_start, read_header
from simplemem.note.names import base_name
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
_NUMBER: Final = re.compile(r"\d+(?:[.,:/-]\d+)*")
_NEGATIONS: Final = frozenset(
    "no not never none cannot kein keine nicht nie ohne nunca sin ne pas jamais sans".split()
)


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
            is_duplicate = shared >= _MIN_DUPLICATE
            similar.append((SimilarNote(name, title, round(shared, 2), is_duplicate), text))

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

    The others are in the same note before the change, and in similar notes. Disputed facts that
    link to the note are among the results. At most six are returned.
    """
    found = list(_replaced_values(note))
    for other, text in similar:
        if not other.is_duplicate:
            found += _compare_lines(note.added_lines, other.name, _lines_of(text))
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
