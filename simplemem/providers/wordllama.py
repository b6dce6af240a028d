"""WordLlama's word vectors, which are in `model/` with their licence: the model's English part.

The vector of a text is the sum of the vectors of its tokens, scaled. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.errors import Unavailable
from simplemem.note.words import well_formed
from simplemem.providers.api import IsCancelled, never_cancelled
from simplemem.providers.tensors import map_tensors
from simplemem.providers.tokenizer import Tokenizer
from simplemem.providers.word_sums import WordSums

# numpy is imported where it is used: it takes 70 ms, and a search by words does without vectors.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FOLDER = Path(__file__).with_name("model")
_WEIGHTS = "l2_supercat_256.safetensors"
_TOKENIZER = "l2_supercat_tokenizer_config.json"
_DIMENSIONS = 256
_BATCH = 4096
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

        try:
            self._weights: NDArray[np.float16] = map_tensors(_FOLDER / _WEIGHTS)["embedding.weight"]
            self._tokenizer = Tokenizer(_FOLDER / _TOKENIZER)
        except OSError as error:
            raise Unavailable(
                "the word vectors that come with simplemem cannot be read",
                hint="Install simplemem again, or set embed.provider to none.",
            ) from error
        self._sums = WordSums(_DIMENSIONS, self._sum_tokens)

    def documents(
        self,
        texts: Sequence[str],
        *,
        stopped: IsCancelled = never_cancelled,  # noqa: ARG002 - nothing is awaited
    ) -> list[bytes]:
        """Return one vector per text, in their order. A blank text gets zeros.

        Zeros resemble nothing. `stopped` is not called. Texts are cut at 20,000 characters.
        """
        return scale_to_bytes(self._sums.of_texts(texts))

    def query(self, text: str, *, deadline: float | None = None) -> bytes:  # noqa: ARG002
        """Return the vector of a query, which is that of a document with the same text.

        The deadline is ignored: this takes less than a millisecond once the model is loaded.
        """
        return self.documents([text])[0]

    def unit_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts at length one, a row per text, not rounded to bytes.

        A blank text has zeros.
        """
        return unit_length(self._sums.of_texts(texts))

    def word_vectors(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of words at length one, a row per word.

        Any word has one: of an unknown word, its parts or bytes have vectors. Words have no spaces
        and are not empty.
        """
        return unit_length(self._sums.of_words(words))

    def word_lengths(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the length of the vector of each word; words with much meaning have long ones.

        Words have no spaces and are not empty.
        """
        import numpy as np

        lengths: NDArray[np.float32] = np.linalg.norm(self._sums.of_words(words), axis=1)
        return lengths

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in a text, by the tokenizer of this model. Nothing is cut."""
        return self._tokenizer.count(well_formed(text))

    def close(self) -> None:
        """Do nothing: the mapped weights are released with the last object that uses them."""

    def _sum_tokens(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the sum of the token vectors of each word, a row per word.

        There is at least one word, and none is empty.
        """
        import numpy as np

        tokens = [self._tokenizer.tokens(word) for word in words]
        all_tokens = list(chain.from_iterable(tokens))
        weights = self._weights.take(all_tokens, 0)

        sizes = map(len, tokens[:-1])
        starts = [0, *accumulate(sizes)]
        sums: NDArray[np.float32] = np.add.reduceat(weights, starts, dtype=np.float32)
        return sums


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
