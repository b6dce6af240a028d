"""The default embedder: word vectors for many languages, which are in `model/` with their licences.

The vector of a text is the weighted sum of two: WordLlama's, which knows English best, and that of
the pieces of its words. The vectors of the pieces are in WordLlama's space, in which words of the
same meaning are near each other, whatever their language. docs/model-card.md describes the model.
Nothing is downloaded.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cache
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

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
_LONG_RUN = 8  # rows; most words have fewer tokens, and fewer pieces
_TINY = 1e-12  # the least divisor, so that zeros can be scaled
_ZERO = 8  # the half byte of the component 0; 7 stands for -1, and 9 for 1

_MAX_CHARACTERS = 20_000  # of one text; passages are far shorter
# How many words are remembered: the first limit holds while many texts are embedded, the second in
# a server that embeds a few now and then. The two vectors of a word take 2 kB, so the limits are
# 100 MB and 8 MB.
_MAX_WORDS = 50_000
_MAX_WORDS_FOR_FEW_TEXTS = 4_000
_FEW_TEXTS = 256  # the largest number that is few; a long note has about as many passages
_WORDS_PER_STEP = 500  # whose vectors are computed at once

# The two vectors of an English text point nearly the same way. Those of another text hardly do,
# because WordLlama knows little of other languages. WordLlama's share in the sum is the first one
# up to the first cosine of the two vectors, the second one from the second cosine on, and rises
# evenly between them.
_COSINES: Final = (0.45, 0.6)
_SHARES: Final = (0.2, 0.85)


class WordSums:
    """Sums the vectors of words. Any thread may call it. Guards the remembered vectors.

    `dimension` is the number of components of a vector. `compute` returns the vectors of words, a
    row per word. It is called with at least one word, never with the same word twice, and by one
    thread at a time. Words contain no white space and are not empty.
    """

    def __init__(self, dimension: int, compute: VectorsOfWords) -> None:
        self._dimension = dimension
        self._compute = compute
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}  # from a word to its row in `_vectors`
        self._vectors = self._empty_table(_MAX_WORDS)

    def of_texts(self, texts: Sequence[str]) -> Floats:
        """Return the sum of the word vectors of each text, a row per text.

        The sum of a blank text is zeros. Texts are cut at 20,000 characters.
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
        """Make sure that the vectors of all words are remembered. Call it with the lock held.

        Returns the row number by word, and the rows. Both may contain more than these words. If
        more words than allowed would be remembered, all are forgotten first, and the vectors of
        these texts' words are computed again. The words of one call may exceed the limit.
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
        """Forget all word vectors, and make room for `needed` ones. Call it with the lock held."""
        uses_much_memory = len(self._rows) > 2 * _MAX_WORDS_FOR_FEW_TEXTS
        if uses_much_memory or needed > len(self._vectors):
            # Replacing the array returns its written memory to the operating system.
            self._vectors = self._empty_table(max(_MAX_WORDS, needed))
        self._rows = {}

    def _add_words(self, words: Sequence[str]) -> None:
        """Compute the vectors of new words into the next free rows. Call it with the lock held."""
        first_row = len(self._rows)
        end_row = first_row + len(words)
        self._vectors[first_row:end_row] = self._compute(words)
        self._rows.update(zip(words, count(first_row)))

    def _empty_table(self, word_count: int) -> Floats:
        """Return an array for the vectors of `word_count` words, a row per word.

        The operating system provides memory only for the rows that are written.
        """
        import numpy as np

        return np.empty((word_count, self._dimension), np.float32)


class WordLlama:
    """The English part of the model. Any thread may call it. Guards the remembered word vectors.

    It has a vector per token. No token belongs to two words, so the vector of a text is the sum of
    the vectors of its words. Words contain no white space and are not empty.
    """

    name = "wordllama-l2-supercat-256"
    """Names the tokenizer where `count_tokens` is used."""
    dimension = _DIMENSIONS

    def __init__(self) -> None:
        """Load the model. Raises Unavailable if its files cannot be read."""
        try:
            self._weights: NDArray[np.float16] = map_tensors(_FOLDER / _WEIGHTS)["embedding.weight"]
            self._tokenizer = Tokenizer(_FOLDER / _TOKENIZER)
        except OSError as error:
            raise _unreadable_model() from error
        self._sums = WordSums(_DIMENSIONS, self.sum_tokens)

    def unit_vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts at length one, a row per text.

        A blank text has zeros. Texts are cut at 20,000 characters.
        """
        return unit_length(self._sums.of_texts(texts))

    def word_vectors(self, words: Sequence[str]) -> Floats:
        """Return the vectors of words at length one, a row per word.

        An unknown word has the vectors of its parts or bytes.
        """
        return unit_length(self._sums.of_words(words))

    def word_lengths(self, words: Sequence[str]) -> Floats:
        """Return the length of the vector of each word; words with much meaning have long ones."""
        import numpy as np

        lengths: Floats = np.linalg.norm(self._sums.of_words(words), axis=1)
        return lengths

    def count_tokens(self, text: str) -> int:
        """Return the number of tokens in a text, by the tokenizer of this model. Nothing is cut."""
        return self._tokenizer.count(well_formed(text))

    def sum_tokens(self, words: Sequence[str]) -> Floats:
        """Return the sum of the token vectors of each word, a row per word. Remembers none.

        There must be at least one word.
        """
        tokens_of_words = [self._tokenizer.tokens(word) for word in words]
        all_tokens = list(chain.from_iterable(tokens_of_words))
        weights = self._weights.take(all_tokens, 0)
        return _sums_of_runs(weights, [len(tokens) for tokens in tokens_of_words])


class Multilingual:
    """The bundled embedder: the whole model, with the methods of `Embedder`.

    It needs neither a network nor a GPU. Any thread may call it. Guards the remembered word
    vectors. `wordllama` is the English part of the model.
    """

    name = "wordllama-pieces-256-2"  # changes with the vectors, so that old ones are not kept
    remote = False
    dimension: int | None = _DIMENSIONS
    batch = _BATCH
    reads_sentences = False

    def __init__(self, wordllama: WordLlama) -> None:
        """Map the vectors of the pieces. Raises Unavailable if their file cannot be read."""
        try:
            tensors = map_tensors(_FOLDER / _PIECES)
            self._vocabulary = _vocabulary_of(_FOLDER)
        except OSError as error:
            raise _unreadable_model() from error
        self.wordllama = wordllama
        self._halves: NDArray[np.uint8] = tensors["halves"]
        self._scales: NDArray[np.float16] = tensors["scales"]
        # A row has both vectors of a word, so that a text is split and summed only once.
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
        (vector,) = self.documents([text])
        return vector

    def unit_vectors(self, texts: Sequence[str]) -> Floats:
        """Return the vectors of texts at length one, a row per text, not rounded to bytes.

        A blank text has zeros. Texts are cut at 20,000 characters.
        """
        import numpy as np

        sums = self._sums.of_texts(texts)
        by_tokens = unit_length(sums[:, :_DIMENSIONS])
        by_pieces = unit_length(sums[:, _DIMENSIONS:])
        cosines = np.einsum("ij,ij->i", by_tokens, by_pieces)  # of the two vectors of each text
        shares = np.interp(cosines, _COSINES, _SHARES).astype(np.float32)[:, None]
        return unit_length(shares * by_tokens + (1 - shares) * by_pieces)

    def close(self) -> None:
        """Do nothing: the mapped file is released with the last object that uses it."""

    def _sum_tokens_and_pieces(self, words: Sequence[str]) -> Floats:
        """Return a row per word: the sum of its token vectors, then that of its piece vectors."""
        import numpy as np

        token_sums = self.wordllama.sum_tokens(words)
        piece_sums = self._sum_pieces(words)
        return np.concatenate([token_sums, piece_sums], axis=1)

    def _sum_pieces(self, words: Sequence[str]) -> Floats:
        """Return the sum of the vectors of the pieces of each word, a row per word.

        A word without pieces, such as a punctuation mark, has zeros.
        """
        import numpy as np

        pieces_of_words = [self._vocabulary.pieces_of(word) for word in words]
        sums = np.zeros((len(words), _DIMENSIONS), np.float32)
        rows = [row for row, pieces in enumerate(pieces_of_words) if pieces]
        if rows:
            sizes = [len(pieces_of_words[row]) for row in rows]
            vectors = self._unpack(list(chain.from_iterable(pieces_of_words)))
            sums[rows] = _sums_of_runs(vectors, sizes)
        return sums

    def _unpack(self, pieces: Sequence[int]) -> Floats:
        """Return the vectors of pieces, which are given by their numbers, a row per piece.

        In the file, a byte has two components: the lower four bits have the first.
        """
        import numpy as np

        packed = self._halves.take(pieces, 0)
        components = np.empty((len(packed), _DIMENSIONS), np.float32)
        components[:, 0::2] = packed & 15
        components[:, 1::2] = packed >> 4
        components -= _ZERO
        components *= self._scales.take(pieces).astype(np.float32)[:, None]
        return components


def _sums_of_runs(vectors: NDArray[np.floating[Any]], sizes: Sequence[int]) -> Floats:
    """Return the sum of each run of rows, in their order. `sizes` are those of the runs, above 0.

    There must be at least one run.
    """
    import numpy as np

    counts = np.array(sizes)
    starts = np.cumsum(counts) - counts
    sums: Floats = vectors[starts].astype(np.float32)
    # Adding the second rows of all runs at once, then the third, and so on, takes less than half
    # the time of `np.add.reduceat`. Only long runs, which are rare, are summed one by one.
    for position in range(1, min(counts.max(), _LONG_RUN)):
        longer = np.flatnonzero((counts > position) & (counts <= _LONG_RUN))
        sums[longer] += vectors[starts[longer] + position]
    for run in np.flatnonzero(counts > _LONG_RUN):
        start = starts[run]
        sums[run] = vectors[start : start + counts[run]].sum(axis=0, dtype=np.float32)
    return sums


def _unreadable_model() -> Unavailable:
    """Return the error for a file of the model that is missing or cannot be read."""
    return Unavailable(
        "the word vectors that come with simplemem cannot be read",
        hint="Install simplemem again, or set embed.provider to none.",
    )


def scale_to_bytes(vectors: Floats) -> list[bytes]:
    """Return each row as one signed byte per component.

    Each row is scaled so that its largest component is 127 or -127. Zeros stay zeros.
    """
    import numpy as np

    largest = np.abs(vectors).max(axis=1, keepdims=True)
    scaled = np.rint(vectors / np.maximum(largest, _TINY) * 127)
    return [row.tobytes() for row in scaled.astype(np.int8)]


def unit_length(vectors: Floats) -> Floats:
    """Change each row of an array to length one, and return the same array; zeros stay zeros."""
    import numpy as np

    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors /= np.maximum(lengths, _TINY)
    return vectors


def shared_wordllama() -> WordLlama:
    """Return the English part of the model, which is loaded once per process, at the first call.

    All stores share it: it takes some 15 MB, and a server may have one store per user. Raises
    Unavailable if the files of the model cannot be read.
    """
    return _wordllama_of(_FOLDER)


@cache
def _wordllama_of(_folder: Path) -> WordLlama:
    """Return the model in `_FOLDER`, which is the key of the cache: a test may change it."""
    return WordLlama()


def shared_multilingual() -> Multilingual:
    """Return the bundled embedder, which is loaded once per process, at the first call.

    All stores share it. Raises Unavailable if the files of the model cannot be read.
    """
    return _multilingual_of(_FOLDER)


@cache
def _multilingual_of(_folder: Path) -> Multilingual:
    """Return the model in `_FOLDER`, which is the key of the cache: a test may change it."""
    return Multilingual(shared_wordllama())


def is_one_piece(word: str) -> bool:
    """Return whether a word is one piece of the model, as frequent words of all languages are.

    The word must be in lower case. The first call loads the vocabulary, without the vectors.
    Returns False if the vocabulary cannot be read.
    """
    try:
        vocabulary = _vocabulary_of(_FOLDER)
    except OSError:
        return False
    return vocabulary.has(word)


@cache
def _vocabulary_of(folder: Path) -> PieceVocabulary:
    """Return the pieces of the model in a folder, without their vectors. Raises OSError."""
    tensors = map_tensors(folder / _PIECES)
    return PieceVocabulary(tensors["children"], tensors["parents"], tensors["scores"])
