"""What is looked up for one item that a person opens: similar notes and possible contradictions.

The rules compare words. They find what is worth a look, and do not judge what is true.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from simplemem.errors import SimplememError
from simplemem.features.review.inbox import Contradiction, NoteTexts, SimilarNote
from simplemem.note.header import content_start, read_header
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


def find_similar(store: EnhancedStore, texts: NoteTexts) -> list[tuple[SimilarNote, str]]:
    """Return the notes that resemble a changed one, the most similar first, with their texts.

    At most five are returned. The text is that of the body.
    """
    text = _body_of(texts.new or texts.old)
    words = content_words(_words_of(text))
    own_names = {texts.note.name, texts.note.current_name}
    similar = []
    for name, title in _candidates(store, texts, words):
        if name in own_names:
            continue
        with suppress(SimplememError):
            other = store.read(name).content[:_MAX_CHARACTERS]
            shared = shared_words(words, content_words(_words_of(other)))
            if shared >= _MIN_SIMILAR:
                is_duplicate = shared >= _MIN_DUPLICATE
                similar.append((SimilarNote(name, title, round(shared, 2), is_duplicate), other))

    similar.sort(key=lambda pair: pair[0].shared, reverse=True)
    return similar[:_MAX_SIMILAR]


def _candidates(
    store: EnhancedStore, texts: NoteTexts, words: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the names and titles of notes that may resemble a changed one, each once."""
    names = dict[str, str]()
    with suppress(SimplememError):
        for name in store.related(texts.note.current_name, limit=_MAX_SIMILAR):
            names[name] = name.rpartition("/")[2]

    title = texts.note.current_name.rpartition("/")[2]
    query_words = [*_words_of(title), *_words_of(_changed_text(texts)), *words][:_MAX_QUERY_WORDS]
    with suppress(SimplememError):
        found = store.search(" ".join(query_words), limit=_MAX_CANDIDATES, rerank=False)
        for hit in found.hits:
            names[hit.name] = hit.title
    yield from names.items()


def find_contradictions(
    store: EnhancedStore, texts: NoteTexts, similar: Sequence[tuple[SimilarNote, str]]
) -> list[Contradiction]:
    """Return statements of a change that differ from others in a number or a negation.

    The others are in the same note before the change, and in similar notes. Disputed facts that
    link to the note are among the results. At most six are returned.
    """
    found = list(_replaced_values(texts))
    lines = _added_lines(texts)
    for note, text in similar:
        if not note.is_duplicate:
            found += _compare_lines(lines, note.name, _lines_of(text))
    found += _disputed_facts(store, texts.note.current_name)
    return found[:_MAX_CONTRADICTIONS]


def _replaced_values(texts: NoteTexts) -> Iterator[Contradiction]:
    """Yield the lines of a note in which a change replaced a number or negated a statement."""
    old_lines = _lines_of(_body_of(texts.old))
    new_lines = _lines_of(_body_of(texts.new))
    changes = compare_blocks(
        [split_into_words(line) for line in old_lines],
        [split_into_words(line) for line in new_lines],
    )
    for change in changes:
        if change.old is None or change.new is None or not change.is_changed:
            continue
        old = old_lines[change.old]
        new = new_lines[change.new]
        why = _describe_difference(new, old)
        if why:
            yield Contradiction(texts.note.name, new, old, f"the note said {why} before")


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

    is_negated = not _NEGATIONS.isdisjoint(_words_of(line))
    is_other_negated = not _NEGATIONS.isdisjoint(_words_of(other))
    if is_negated != is_other_negated:
        return "the opposite"
    return ""


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


def _added_lines(texts: NoteTexts) -> list[str]:
    """Return the lines that a change added to a note."""
    old_lines = set(_lines_of(_body_of(texts.old)))
    return [line for line in _lines_of(_body_of(texts.new)) if line not in old_lines]


def _changed_text(texts: NoteTexts) -> str:
    """Return the lines that a change added, as one text."""
    return "\n".join(_added_lines(texts))


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
