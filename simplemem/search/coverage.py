"""How much of a question one place of a note covers: for every word of the question the nearest word there, by the
vectors of single words, and the mean of all. Pure.

A question is answered in one place, so this orders the best notes of a question; a statement or a list of words names
what a whole note is about, and is left as it was (docs/search.md has the figures of both).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from simplemem.note.words import STOP_WORDS, words_in_order

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

NOTES = 12  # so many of the best are compared; with 60 the order is the same
WEIGHT = 0.4  # beside 1 of all else; a plateau from 0.25 to 0.5
PASSAGES = 64  # of one note
_CHARACTERS = 4_000  # of one passage

_FIRST_WORDS = frozenset(
    """what when where who whom whose which why how did do does is are was were can could should would will has have had
    wann wo wohin woher wer wen wem wessen welche welcher welches warum wieso weshalb wie
    quand qui que quel quelle quels quelles pourquoi comment combien
    qué cuándo dónde quién quiénes cuál cuáles cómo cuánto cuántos""".split()
)


@runtime_checkable
class WordVectors(Protocol):
    """What gives every word a vector of unit length."""

    def words(self, words: Sequence[str]) -> NDArray[np.float32]: ...


def is_question(text: str) -> bool:
    """Whether a text asks: by its mark, or by its first word."""
    stripped = text.strip()
    if stripped.endswith(("?", "\uff1f", "\u061f")) or stripped.startswith("\u00bf"):
        return True
    first = re.match(r"\w+", stripped)
    return first is not None and first[0].casefold() in _FIRST_WORDS and len(stripped) > len(first[0])


def coverage(asked: Sequence[str], notes: Sequence[Sequence[str]], vectors: WordVectors) -> list[float]:
    """For each note, given as the texts of its passages, how well its best passage covers the words that are asked."""
    import numpy as np

    passages = [[_words(text) for text in note[:PASSAGES]] for note in notes]
    distinct = list(dict.fromkeys(word for note in passages for words in note for word in words))
    if not asked or not distinct:
        return [0.0] * len(notes)
    row_of = {word: row for row, word in enumerate(distinct)}
    near = np.maximum(vectors.words([word.lower() for word in asked]) @ vectors.words(distinct).T, 0.0)
    found = []
    for note in passages:
        rows = [[row_of[word] for word in words] for words in note if words]
        found.append(max((float(near[:, at].max(axis=1).mean()) for at in rows), default=0.0))
    return found


def _words(text: str) -> list[str]:
    """The different words of a passage that carry meaning."""
    return [word for word in dict.fromkeys(words_in_order(text[:_CHARACTERS].lower())) if word not in STOP_WORDS]
