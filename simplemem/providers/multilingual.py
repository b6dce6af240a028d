"""The default embedder: word vectors for many languages, which come with the package.

The vector of a text is the sum of two: WordLlama's, which knows English best, and that of the
pieces of its words, which were mapped into WordLlama's space so that words of all languages with
the same meaning are near each other. docs/model-card.md describes the model. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import accumulate, chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from simplemem.errors import Unavailable
from simplemem.providers.api import IsCancelled, never_cancelled
from simplemem.providers.piece_vocabulary import PieceVocabulary
from simplemem.providers.tensors import map_tensors
from simplemem.providers.word_sums import WordSums
from simplemem.providers.wordllama import WordLlama, scale_to_bytes, shared_wordllama, unit_length

# numpy is imported where it is used: it takes 70 ms, and a search by words does without vectors.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FOLDER = Path(__file__).with_name("model")
_PIECES = "pieces_256.safetensors"
_ZERO = 8  # the half byte that stands for 0

# The two vectors of a text point the same way if it is English, and hardly if it is not: WordLlama
# knows little of other languages. From one cosine to the other, WordLlama's share rises.
_COSINES: Final = (0.45, 0.6)
_SHARES: Final = (0.2, 0.7)


class _Parts(NamedTuple):
    """The vectors of texts at length one, by words and by pieces, and the cosines of the two."""

    words: NDArray[np.float32]
    pieces: NDArray[np.float32]
    cosines: NDArray[np.float32]


class Multilingual:
    """An embedder without network or GPU, for any thread, with the methods of `Embedder`.

    `words` is the English part of the model.
    """

    name = "wordllama-pieces-256"
    remote = False
    batch = WordLlama.batch
    reads_sentences = False

    def __init__(self, words: WordLlama) -> None:
        """Load the model. Raises Unavailable if its file cannot be read."""
        try:
            tensors = map_tensors(_FOLDER / _PIECES)
        except OSError as error:
            raise Unavailable(
                "the word vectors that come with simplemem cannot be read",
                hint="Install simplemem again, or set embed.provider to none.",
            ) from error
        self.words = words
        self.dimension = words.dimension
        self._halves: NDArray[np.uint8] = tensors["halves"]
        self._scales: NDArray[np.float16] = tensors["scales"]
        self._vocabulary = PieceVocabulary(
            tensors["children"], tensors["parents"], tensors["scores"]
        )
        self._sums = WordSums(2 * self._halves.shape[1], self._sum_pieces)

    def documents(
        self,
        texts: Sequence[str],
        *,
        stopped: IsCancelled = never_cancelled,  # noqa: ARG002 - nothing is awaited
    ) -> list[bytes]:
        """Return one vector per text, in their order. A blank text gets zeros.

        Zeros resemble nothing. `stopped` is not called. Texts are cut at 20,000 characters.
        """
        return scale_to_bytes(self.unit_vectors(texts))

    def query(self, text: str, *, deadline: float | None = None) -> bytes:  # noqa: ARG002
        """Return the vector of a query, which is that of a document with the same text.

        The deadline is ignored: this takes less than a millisecond once the model is loaded.
        """
        return self.documents([text])[0]

    def unit_vectors(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return the vectors of texts at length one, a row per text, not rounded to bytes.

        A blank text has zeros.
        """
        import numpy as np

        parts = self._parts(texts)
        shares = np.interp(parts.cosines, _COSINES, _SHARES).astype(np.float32)[:, None]
        return unit_length(shares * parts.words + (1 - shares) * parts.pieces)

    def is_english(self, text: str) -> bool:
        """Return whether a text may be English: both parts of the model agree on its meaning."""
        return bool(self._parts([text]).cosines[0] >= _COSINES[0])

    def close(self) -> None:
        """Do nothing: the mapped file is released with the last object that uses it."""

    def _parts(self, texts: Sequence[str]) -> _Parts:
        """Return the vectors of texts by both parts of the model."""
        import numpy as np

        words = self.words.unit_vectors(texts)
        pieces = unit_length(self._sums.of_texts(texts))
        return _Parts(words, pieces, np.einsum("ij,ij->i", words, pieces))

    def _sum_pieces(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the sum of the vectors of the pieces of each word, a row per word."""
        import numpy as np

        pieces = [self._vocabulary.pieces_of(word) for word in words]
        sums = np.zeros((len(words), 2 * self._halves.shape[1]), np.float32)
        rows = [row for row, of_word in enumerate(pieces) if of_word]
        if rows:
            sizes = [len(pieces[row]) for row in rows]
            starts = [0, *accumulate(sizes[:-1])]
            vectors = self._unpack(list(chain.from_iterable(pieces)))
            sums[rows] = np.add.reduceat(vectors, starts)
        return sums

    def _unpack(self, numbers: Sequence[int]) -> NDArray[np.float32]:
        """Return the vectors of pieces, a row per number. A byte has two components of a row."""
        import numpy as np

        packed = self._halves.take(numbers, 0)
        components = np.empty((len(packed), 2 * packed.shape[1]), np.float32)
        components[:, 0::2] = packed & 15
        components[:, 1::2] = packed >> 4
        components -= _ZERO
        components *= self._scales.take(numbers).astype(np.float32)[:, None]
        return components


def shared_multilingual() -> Multilingual:
    """Return the only instance of this process, which is loaded at the first call.

    A server may have one store per user. Raises Unavailable if the files of the model cannot be
    read.
    """
    return _multilingual_of(_FOLDER)


@cache
def _multilingual_of(_folder: Path) -> Multilingual:
    """Return the model in `_FOLDER`. A change of that folder, as in a test, loads it again."""
    return Multilingual(shared_wordllama())
