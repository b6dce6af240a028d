"""Sum the vectors of words to those of texts, and remember the vectors of words."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from itertools import chain, count
from typing import TYPE_CHECKING, Final, TypeAlias

from simplemem.note.words import well_formed

# numpy is imported where it is used: it takes 70 ms, and a search by words does without vectors.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    VectorsOfWords: TypeAlias = Callable[[Sequence[str]], Floats]

_MAX_CHARACTERS: Final = 20_000  # of one text; passages are far shorter
# Remembered word vectors take 1 kB each: 50 MB while many texts are embedded, and 4 MB in a server
# that embeds a few now and then, for as long as it lives.
_MAX_WORDS: Final = 50_000
_MAX_WORDS_FOR_FEW_TEXTS: Final = 4_000
_FEW_TEXTS: Final = 256  # at most; a long note has about as many passages
_WORDS_PER_STEP: Final = 500  # whose vectors are computed at once


class WordSums:
    """Sums vectors of words, for any thread. Guards the vectors of the words that were seen.

    `compute` returns the vectors of words, a row per word. It is called with at least one word,
    never with the same word twice, and by one thread at a time. Words have no spaces and are not
    empty.
    """

    def __init__(self, dimension: int, compute: VectorsOfWords) -> None:
        self._dimension = dimension
        self._compute = compute
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}  # of a word in `_vectors`
        self._vectors = self._empty_table(_MAX_WORDS)

    def of_texts(self, texts: Sequence[str]) -> Floats:
        """Return the sum of the word vectors of each text, a row per text; zeros if it is blank.

        Texts are cut at 20,000 characters.
        """
        import numpy as np

        words_of_texts = []
        for text in texts:
            shortened = well_formed(text[:_MAX_CHARACTERS])
            words_of_texts.append(shortened.split())

        sums = np.zeros((len(texts), self._dimension), np.float32)
        with self._lock:
            rows, vectors = self._load_words(words_of_texts)
            for index, words in enumerate(words_of_texts):
                if words:
                    text_rows = [rows[word] for word in words]
                    vectors.take(text_rows, 0).sum(axis=0, out=sums[index])
        return sums

    def of_words(self, words: Sequence[str]) -> Floats:
        """Return the vector of each word, a row per word."""
        with self._lock:
            rows, vectors = self._load_words([words])
            word_rows = [rows[word] for word in words]
            return vectors.take(word_rows, 0)

    def _load_words(self, words_of_texts: Sequence[Sequence[str]]) -> tuple[dict[str, int], Floats]:
        """Compute the vectors of new words. Return the row number of each known word, and all rows.

        Called with the lock held. If there is no room for the new words, all words are forgotten
        first, and those of these texts are computed again.
        """
        distinct_words = dict.fromkeys(chain.from_iterable(words_of_texts))
        new_words = [word for word in distinct_words if word not in self._rows]

        max_words = len(self._vectors)
        if len(words_of_texts) <= _FEW_TEXTS:
            max_words = _MAX_WORDS_FOR_FEW_TEXTS
        if len(self._rows) + len(new_words) > max_words:
            self._forget_words(len(distinct_words))
            new_words = list(distinct_words)

        for start in range(0, len(new_words), _WORDS_PER_STEP):
            self._add_words(new_words[start : start + _WORDS_PER_STEP])
        return self._rows, self._vectors

    def _forget_words(self, needed: int) -> None:
        """Forget all word vectors, and make room for `needed` ones. Called with the lock held."""
        is_large = len(self._rows) > 2 * _MAX_WORDS_FOR_FEW_TEXTS
        if is_large or needed > len(self._vectors):
            # Replacing the array returns its written memory to the operating system.
            self._vectors = self._empty_table(max(_MAX_WORDS, needed))
        self._rows = {}

    def _add_words(self, words: Sequence[str]) -> None:
        """Compute the vectors of new words into the next free rows, with the lock held."""
        first_row = len(self._rows)
        last_row = first_row + len(words)
        self._vectors[first_row:last_row] = self._compute(words)
        self._rows.update(zip(words, count(first_row)))

    def _empty_table(self, words: int) -> Floats:
        """Return room for the vectors of so many words.

        The operating system provides memory only for the rows that are written.
        """
        import numpy as np

        return np.empty((words, self._dimension), np.float32)
