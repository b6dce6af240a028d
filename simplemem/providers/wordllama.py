"""WordLlama's word vectors, which are in `model/` with their licence: the model's English part.

The vector of a text is the sum of the vectors of its tokens, scaled. Nothing is downloaded.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, chain, count
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.errors import Unavailable
from simplemem.note.words import well_formed
from simplemem.providers.api import IsCancelled, never_cancelled
from simplemem.providers.tensors import map_tensors
from simplemem.providers.tokenizer import Tokenizer

# numpy is imported where it is used: it takes 70 ms, and a search by words does without vectors.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FOLDER = Path(__file__).with_name("model")
_WEIGHTS = "l2_supercat_256.safetensors"
_TOKENIZER = "l2_supercat_tokenizer_config.json"
_DIMENSIONS = 256
_MAX_CHARACTERS = 20_000  # of one text; passages are far shorter
_BATCH = 4096
# Remembered word vectors take 1 kB each: 50 MB while many texts are embedded, and 4 MB in a server
# that embeds a few now and then, for as long as it lives.
_MAX_WORDS = 50_000
_MAX_WORDS_FOR_FEW_TEXTS = 4_000
_FEW_TEXTS = 256  # at most; a long note has about as many passages
_WORDS_PER_STEP = 500  # whose vectors are summed at once
_TINY = 1e-12  # the least divisor, so that zeros can be scaled


class WordLlama:
    """An embedder without network or GPU, for any thread, with the methods of `Embedder`.

    A token is part of one word, so the vector of a text is the sum of the vectors of its words.
    Guards the vectors of the words that were seen.
    """

    name = "wordllama-l2-supercat-256"
    remote = False
    dimension: int | None = _DIMENSIONS
    batch = _BATCH
    reads_sentences = False

    def __init__(self) -> None:
        """Load the model. Raises Unavailable if its files cannot be read."""
        import numpy as np

        try:
            self._weights: NDArray[np.float16] = map_tensors(_FOLDER / _WEIGHTS)["embedding.weight"]
            self._tokenizer = Tokenizer(_FOLDER / _TOKENIZER)
        except OSError as error:
            raise Unavailable(
                "the word vectors that come with simplemem cannot be read",
                hint="Install simplemem again, or set embed.provider to none.",
            ) from error
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}  # of a word in `_sums`
        # The operating system provides memory only for the rows that are written.
        self._sums: NDArray[np.float32] = np.empty((_MAX_WORDS, _DIMENSIONS), np.float32)

    def documents(
        self,
        texts: Sequence[str],
        *,
        stopped: IsCancelled = never_cancelled,  # noqa: ARG002 - nothing is awaited
    ) -> list[bytes]:
        """Return one vector per text, in their order. A blank text gets zeros.

        Zeros resemble nothing. `stopped` is not called. Texts are cut at 20,000 characters.
        """
        return scale_to_bytes(self._sum_texts(texts))

    def query(self, text: str, *, deadline: float | None = None) -> bytes:  # noqa: ARG002
        """Return the vector of a query, which is that of a document with the same text.

        The deadline is ignored: this takes less than a millisecond once the model is loaded.
        """
        return self.documents([text])[0]

    def unit_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts at length one, a row per text, not rounded to bytes.

        A blank text has zeros.
        """
        return unit_length(self._sum_texts(texts))

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of words at length one, a row per word.

        Any word has one: of an unknown word, its parts or bytes have vectors. Words have no spaces
        and are not empty.
        """
        return unit_length(self._word_vectors(words))

    def word_lengths(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the length of the vector of each word; words with much meaning have long ones.

        Words have no spaces and are not empty.
        """
        import numpy as np

        lengths: NDArray[np.float32] = np.linalg.norm(self._word_vectors(words), axis=1)
        return lengths

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in a text, by the tokenizer of this model. Nothing is cut."""
        return self._tokenizer.count(well_formed(text))

    def close(self) -> None:
        """Do nothing: the mapped weights are released with the last object that uses them."""

    def _sum_texts(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the sum of the word vectors of each text, a row per text; zeros if it is blank."""
        import numpy as np

        words_of_texts = []
        for text in texts:
            shortened = well_formed(text[:_MAX_CHARACTERS])
            words_of_texts.append(shortened.split())

        sums = np.zeros((len(texts), _DIMENSIONS), np.float32)
        with self._lock:
            rows, word_sums = self._load_words(words_of_texts)
            for index, words in enumerate(words_of_texts):
                if words:
                    text_rows = [rows[word] for word in words]
                    word_sums.take(text_rows, 0).sum(axis=0, out=sums[index])
        return sums

    def _word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the sum of the token vectors of each word, a row per word, not scaled.

        Words have no spaces and are not empty. New ones are computed and remembered.
        """
        with self._lock:
            rows, sums = self._load_words([words])
            word_rows = [rows[word] for word in words]
            vectors: NDArray[np.float32] = sums.take(word_rows, 0)
        return vectors

    def _load_words(
        self, words_of_texts: Sequence[Sequence[str]]
    ) -> tuple[dict[str, int], NDArray[np.float32]]:
        """Compute the vectors of new words. Return the row number of each known word, and all rows.

        Called with the lock held. Words have no spaces and are not empty. If there is no room for
        the new words, all words are forgotten first, and those of these texts are computed again.
        """
        distinct_words = dict.fromkeys(chain.from_iterable(words_of_texts))
        new_words = [word for word in distinct_words if word not in self._rows]

        max_words = len(self._sums)
        if len(words_of_texts) <= _FEW_TEXTS:
            max_words = _MAX_WORDS_FOR_FEW_TEXTS
        if len(self._rows) + len(new_words) > max_words:
            self._forget_words(len(distinct_words))
            new_words = list(distinct_words)

        for start in range(0, len(new_words), _WORDS_PER_STEP):
            self._add_words(new_words[start : start + _WORDS_PER_STEP])
        return self._rows, self._sums

    def _forget_words(self, needed: int) -> None:
        """Forget all word vectors, and make room for `needed` ones. Called with the lock held."""
        import numpy as np

        is_large = len(self._rows) > 2 * _MAX_WORDS_FOR_FEW_TEXTS
        if is_large or needed > len(self._sums):
            # Replacing the array returns its written memory to the operating system.
            max_words = max(_MAX_WORDS, needed)
            self._sums = np.empty((max_words, _DIMENSIONS), np.float32)
        self._rows = {}

    def _add_words(self, words: Sequence[str]) -> None:
        """Sum the token vectors of each new word into the next free rows, with the lock held.

        There is at least one word, none is empty, and there is room for all.
        """
        import numpy as np

        tokens = [self._tokenizer.tokens(word) for word in words]
        all_tokens = list(chain.from_iterable(tokens))
        weights = self._weights.take(all_tokens, 0)

        sizes = map(len, tokens[:-1])
        starts = [0, *accumulate(sizes)]
        first_row = len(self._rows)
        last_row = first_row + len(words)
        np.add.reduceat(
            weights,
            starts,
            dtype=np.float32,
            out=self._sums[first_row:last_row],
        )
        self._rows.update(zip(words, count(first_row)))


def scale_to_bytes(vectors: NDArray[np.float32]) -> list[bytes]:
    """Return each row with one signed byte per component, scaled so that the largest is 127.

    Zeros stay zeros.
    """
    import numpy as np

    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = np.rint(vectors / np.maximum(largest, _TINY) * 127)
    return [row.tobytes() for row in scaled.astype(np.int8)]


def unit_length(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale vectors to length one, in place, and return them; zeros stay zeros."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.maximum(lengths, _TINY)
    return vectors


def shared_wordllama() -> WordLlama:
    """Return the only instance of this process, which is loaded at the first call.

    An instance takes some 15 MB, and a server may have one store per user. Raises Unavailable if
    the files of the model cannot be read.
    """
    return _wordllama_of(_FOLDER)


@cache
def _wordllama_of(_folder: Path) -> WordLlama:
    """Return the model in `_FOLDER`. A change of that folder, as in a test, loads it again."""
    return WordLlama()
