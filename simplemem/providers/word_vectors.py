"""The default embedder: word vectors for many languages, which are in `model/` with their licences.

The vector of a text is the sum of two: WordLlama's, which knows English best, and that of the
pieces of its words, which were mapped into WordLlama's space so that words of all languages with
the same meaning are near each other. docs/model-card.md describes the model. Nothing is downloaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from itertools import accumulate, chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias

from simplemem.errors import Unavailable
from simplemem.note.words import well_formed
from simplemem.providers.api import IsCancelled, never_cancelled
from simplemem.providers.piece_vocabulary import PieceVocabulary
from simplemem.providers.tensors import map_tensors
from simplemem.providers.tokenizer import Tokenizer

# numpy is imported where it is used: it takes 70 ms, and a search by words does without vectors.
if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float32]
    VectorsOfWords: TypeAlias = Callable[[Sequence[str]], Floats]

_FOLDER = Path(__file__).with_name("model")
_WEIGHTS = "l2_supercat_256.safetensors"
_TOKENIZER = "l2_supercat_tokenizer_config.json"
_PIECES = "pieces_256.safetensors"
_DIMENSIONS = 256
_BATCH = 4096
_TINY = 1e-12  # the least divisor, so that zeros can be scaled
_ZERO = 8  # the half byte that stands for 0

_MAX_CHARACTERS = 20_000  # of one text; passages are far shorter
# The two remembered vectors of a word take 2 kB: 100 MB while many texts are embedded, and 8 MB in
# a server that embeds a few now and then, for as long as it lives.
_MAX_WORDS = 50_000
_MAX_WORDS_FOR_FEW_TEXTS = 4_000
_FEW_TEXTS = 256  # at most; a long note has about as many passages
_WORDS_PER_STEP = 500  # whose vectors are computed at once

# The two vectors of a text point the same way if it is English, and hardly if it is not: WordLlama
# knows little of other languages. From one cosine to the other, WordLlama's share rises.
_COSINES: Final = (0.45, 0.6)
_SHARES: Final = (0.2, 0.85)


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
            raise _unreadable_model() from error
        self._sums = WordSums(_DIMENSIONS, self.sum_tokens)

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

    def sum_tokens(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the sum of the token vectors of each word, a row per word. Remembers none.

        There is at least one word, and none is empty or has a space.
        """
        import numpy as np

        tokens = [self._tokenizer.tokens(word) for word in words]
        all_tokens = list(chain.from_iterable(tokens))
        weights = self._weights.take(all_tokens, 0)

        sizes = map(len, tokens[:-1])
        starts = [0, *accumulate(sizes)]
        sums: NDArray[np.float32] = np.add.reduceat(weights, starts, dtype=np.float32)
        return sums


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
            raise _unreadable_model() from error
        self.words = words
        self.dimension = words.dimension
        self._halves: NDArray[np.uint8] = tensors["halves"]
        self._scales: NDArray[np.float16] = tensors["scales"]
        self._vocabulary = PieceVocabulary(
            tensors["children"], tensors["parents"], tensors["scores"]
        )
        # Both vectors of a word are in one row, so that a text is split and summed once.
        self._sums = WordSums(2 * _DIMENSIONS, self._sum_tokens_and_pieces)

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

        sums = self._sums.of_texts(texts)
        by_words = unit_length(sums[:, :_DIMENSIONS])
        by_pieces = unit_length(sums[:, _DIMENSIONS:])
        cosines = np.einsum("ij,ij->i", by_words, by_pieces)
        shares = np.interp(cosines, _COSINES, _SHARES).astype(np.float32)[:, None]
        return unit_length(shares * by_words + (1 - shares) * by_pieces)

    def close(self) -> None:
        """Do nothing: the mapped file is released with the last object that uses it."""

    def _sum_tokens_and_pieces(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return for each word a row with the sum of its tokens, then that of its pieces."""
        import numpy as np

        return np.concatenate([self.words.sum_tokens(words), self._sum_pieces(words)], axis=1)

    def _sum_pieces(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return the sum of the vectors of the pieces of each word, a row per word."""
        import numpy as np

        pieces = [self._vocabulary.pieces_of(word) for word in words]
        sums = np.zeros((len(words), _DIMENSIONS), np.float32)
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
        components = np.empty((len(packed), _DIMENSIONS), np.float32)
        components[:, 0::2] = packed & 15
        components[:, 1::2] = packed >> 4
        components -= _ZERO
        components *= self._scales.take(numbers).astype(np.float32)[:, None]
        return components


def _unreadable_model() -> Unavailable:
    """Return the error for a file of the model that is missing or cannot be read."""
    return Unavailable(
        "the word vectors that come with simplemem cannot be read",
        hint="Install simplemem again, or set embed.provider to none.",
    )


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


def is_one_piece(word: str) -> bool:
    """Return whether a word in lower case is a piece of the bundled vocabulary.

    Frequent words of all languages are. Loads only the vocabulary at the first call. Returns False
    if it cannot be read.
    """
    try:
        vocabulary = _vocabulary_of(_FOLDER)
    except OSError:
        return False
    return vocabulary.has(word)


@cache
def _vocabulary_of(folder: Path) -> PieceVocabulary:
    """Return the pieces of the model in a folder, without their vectors."""
    tensors = map_tensors(folder / _PIECES)
    return PieceVocabulary(tensors["children"], tensors["parents"], tensors["scores"])
