"""Tokens: the words of texts as the term index stores them, and the terms of a query."""

from __future__ import annotations

import itertools
import threading
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import apsw

from simplemem.index.api import Term

# SQLite's full-text tokenizer with Porter's stemmer. Letters, digits and marks belong to words, and
# so do characters for private use: they mark the stems of other languages than English
# (note/stems.py).
_TOKENIZER = ("unicode61", "remove_diacritics", "2", "categories", "L* N* Co Mn Mc")
_MAX_PIECE_CHARACTERS = 100_000
_BARE_ACCENT = "\ufffd"  # what is left of an accent that stands alone
_MAX_TOKEN_CHARACTERS = 200  # PostgreSQL's index of terms refuses texts of some thousand bytes

# A tokenizer belongs to the connection that made it, and so to a thread.
_thread = threading.local()


class Phrase(NamedTuple):
    """Tokens that stand side by side. If `is_prefix`, the last one is the beginning of a token."""

    tokens: tuple[str, ...]
    is_prefix: bool = False


def tokenize(text: str) -> list[str]:
    """Return the tokens of a text, in order: words without case and accents, stemmed.

    Porter's rules for English make the stems. Tokens over 200 characters are cut, in notes and
    queries alike. Raises nothing for any text.
    """
    if not hasattr(_thread, "tokenizer"):
        connection = apsw.Connection(":memory:")
        _thread.tokenizer = connection.fts5_tokenizer("porter", list(_TOKENIZER))

    if len(text) <= _MAX_PIECE_CHARACTERS:
        return _tokenize_piece(text)

    # Equal tokens of a long text become one object, with which the list takes a tenth of the
    # memory.
    unique_tokens: dict[str, str] = {}
    tokens: list[str] = []
    for piece in _pieces(text):
        tokens += [unique_tokens.setdefault(token, token) for token in _tokenize_piece(piece)]
    return tokens


def _tokenize_piece(text: str) -> list[str]:
    """Return the tokens of a text of at most 100,000 characters.

    Uses the tokenizer of this thread, which must exist.
    """
    tokens: list[str] = _thread.tokenizer(
        text.encode("utf-8", "replace"),
        apsw.FTS5_TOKENIZE_DOCUMENT,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    if "" in tokens:
        tokens = [token or _BARE_ACCENT for token in tokens]
    if max(map(len, tokens), default=0) > _MAX_TOKEN_CHARACTERS:
        return [token[:_MAX_TOKEN_CHARACTERS] for token in tokens]
    return tokens


def _pieces(text: str) -> Iterator[str]:
    """Yield a text in pieces of at most 100,000 characters, cut after their last white space.

    Only line feeds and spaces count as such. 100,000 characters without either are one piece.
    """
    start = 0
    while start < len(text):
        end = start + _MAX_PIECE_CHARACTERS
        if end < len(text):
            blank = max(text.rfind("\n", start, end), text.rfind(" ", start, end))
            end = blank + 1 if blank >= 0 else end
        yield text[start:end]
        start = end


def phrases_of(terms: Iterable[Term]) -> list[Phrase]:
    """Return each distinct term of a query as a phrase of tokens, in their order.

    Terms without a token are left out. Two different terms with the same tokens become two equal
    phrases, so they count twice.
    """
    phrases = map(_phrase_of, dict.fromkeys(terms))
    return [phrase for phrase in phrases if phrase.tokens]


@lru_cache(maxsize=2_000)
def _phrase_of(term: Term) -> Phrase:
    """Return a term as a phrase of tokens, which may be empty.

    Cached, because a search asks for each of its terms five times.
    """
    tokens = tokenize(" ".join(term.words))
    return Phrase(tuple(tokens), term.beginning)


class TextTokens(NamedTuple):
    """The tokens of the words of a text, in order, and extra ones: parts of names, and stems.

    In a segment, the extra ones come after all words of all notes, so no phrase contains both.
    """

    words: Sequence[str]
    extras: Sequence[str] = ()


class NoteTokens(NamedTuple):
    """The tokens of a note: of its title, of its summary, and of each of its blocks.

    The summary is what only the note as a whole has: description, aliases, and a mark of its
    language. `text_keys` has for each block a hash of its text (`text_key` in note/passages.py), 0
    if it has no words. If it is empty, the blocks of the note never count as repeated.
    """

    note_id: int
    title: TextTokens
    summary: TextTokens
    blocks: Sequence[TextTokens]
    text_keys: Sequence[int] = ()


class _Numbers(dict[str, int]):
    """Numbers each different term, from 0, when it is looked up for the first time."""

    def __missing__(self, term: str) -> int:
        number = self[term] = len(self)
        return number


class SegmentBuilder:
    """Collects the tokens of notes for a new segment.

    A token is kept as the number of its term. A text is the title, the summary or a block of a
    note.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = _Numbers()  # of each different term
        self.tokens = array("I")  # of all texts, one after the other
        self.note_ids: list[int] = []
        self.block_counts: list[int] = []
        self.word_counts = array("I")  # of each text
        self.extra_counts = array("I")  # of each text; its extra tokens follow its words
        self.text_keys = array("Q")  # of each block

    def add(self, note: NoteTokens) -> None:
        """Add the tokens of a note. A note must not be added twice."""
        self.note_ids.append(note.note_id)
        self.block_counts.append(len(note.blocks))
        self.text_keys.extend(note.text_keys or [0] * len(note.blocks))

        number_of = self.numbers.__getitem__
        for text in itertools.chain((note.title, note.summary), note.blocks):
            self.word_counts.append(len(text.words))
            self.extra_counts.append(len(text.extras))
            self.tokens.extend(map(number_of, text.words))
            if text.extras:
                self.tokens.extend(map(number_of, text.extras))
