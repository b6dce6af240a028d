"""The default embedder: WordLlama's word vectors, read from its two data files, which lie in `model/` with their
licence. A text's vector is the mean of its tokens' vectors. Never downloads anything."""

from __future__ import annotations

import heapq
import json
import re
import struct
import threading
from array import array
from collections.abc import Sequence
from functools import cache, cached_property, lru_cache
from itertools import accumulate, chain, count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.errors import Unavailable
from simplemem.note.formatting import well_formed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from simplemem.providers.client import Stopped

_FOLDER = Path(__file__).with_name("model")
_WEIGHTS, _TOKENIZER = "l2_supercat_256.safetensors", "l2_supercat_tokenizer_config.json"
_WIDTH = 256
_MAX_CHARACTERS = 20_000  # of one text; passages are far shorter
_MAX_WORDS = 50_000  # remembered while many texts are embedded; 50 MB at most
_MAX_WORDS_BETWEEN = (
    4_000  # and once few texts come again, as a server gets them for as long as it lives: 4 MB
)
_AT_ONCE = 500  # words whose vectors are summed
_FEW = 256  # texts: the passages of a long note
_SPACE = "\u2581"
_PIECES = re.compile(f"\n|{_SPACE}*[^{_SPACE}\n]+|{_SPACE}+")
_SPECIAL = {"<unk>": 0, "<s>": 1, "</s>": 2}  # what these spell in a text is one token
_SPECIALS = re.compile("(<unk>|<s>|</s>)")
_FIRST_BYTE = 3  # the token of the byte 0
_WORDS_CUT = 10_000  # whose tokens are remembered, in a twentieth of that


class WordLlama:
    """256 dimensions, no network, no GPU. No token reaches across a space: the sum of a word's tokens is kept."""

    name = "wordllama-l2-supercat-256"
    remote = False
    dimension: int | None = _WIDTH
    batch = 4096
    reads_sentences = False

    def __init__(self) -> None:
        import numpy as np

        try:
            with (_FOLDER / _WEIGHTS).open(
                "rb"
            ) as file:  # a safetensors file: a length, a JSON header, the numbers
                (length,) = struct.unpack("<Q", file.read(8))
                tensor = json.loads(file.read(length))["embedding.weight"]
            start, shape = 8 + length + tensor["data_offsets"][0], tuple(tensor["shape"])
            self._weights: NDArray[np.float16] = np.memmap(
                _FOLDER / _WEIGHTS, np.float16, "r", start, shape
            )
            self._tokenizer = Tokenizer(_FOLDER / _TOKENIZER)
        except OSError as error:
            hint = "Install simplemem again, or set embed.provider to none."
            raise Unavailable(
                "the word vectors that come with simplemem cannot be read", hint=hint
            ) from error
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}
        self._sums: NDArray[np.float32] = np.empty((_MAX_WORDS, _WIDTH), np.float32)

    def documents(self, texts: Sequence[str], *, stopped: Stopped = lambda: False) -> list[bytes]:  # noqa: ARG002
        """One vector a text; a text without a known word gives zeros, which are near to nothing."""
        import numpy as np

        sums = self._summed(texts)
        largest = np.abs(sums).max(axis=1, keepdims=True)
        return [
            row.tobytes()
            for row in np.rint(sums / np.maximum(largest, 1e-12) * 127).astype(np.int8)
        ]

    def unit(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """The same at length one, and not rounded."""
        import numpy as np

        sums = self._summed(texts)
        sums /= np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
        return sums

    def _summed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import numpy as np

        split = [well_formed(text[:_MAX_CHARACTERS]).split() for text in texts]
        sums = np.zeros((len(texts), _WIDTH), np.float32)
        with self._lock:
            rows, words = self._known(split)
            for k, found in enumerate(split):
                if found:
                    words.take([rows[word] for word in found], 0).sum(axis=0, out=sums[k])
        return sums

    def query(self, text: str, *, deadline: float | None = None) -> bytes:  # noqa: ARG002 - no wait is that short
        return self.documents([text])[0]

    def words(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Single words, without blanks in them, as vectors of unit length; zeros for a word of no known piece."""
        import numpy as np

        with self._lock:
            rows, sums = self._known([words])
            found: NDArray[np.float32] = sums.take([rows[word] for word in words], 0)
        found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-12)
        return found

    def lengths(self, words: Sequence[str]) -> NDArray[np.float32]:
        """Return how long the vector of each word is: the model gives long ones to words that tell much."""
        import numpy as np

        with self._lock:
            rows, sums = self._known([words])
            found: NDArray[np.float32] = sums.take([rows[word] for word in words], 0)
        lengths: NDArray[np.float32] = np.linalg.norm(found, axis=1)
        return lengths

    def close(self) -> None:
        """The mapped weights go with the last who uses them."""

    def count_tokens(self, text: str) -> int:
        """How many tokens of this tokenizer a text is."""
        return self._tokenizer.count(well_formed(text))

    def _known(self, split: Sequence[Sequence[str]]) -> tuple[dict[str, int], NDArray[np.float32]]:
        """Every word's row, those seen for the first time added."""
        import numpy as np

        asked = dict.fromkeys(word for words in split for word in words)
        fresh = [word for word in asked if word not in self._rows]
        if len(self._rows) + len(fresh) > (
            _MAX_WORDS_BETWEEN if len(split) <= _FEW else len(self._sums)
        ):
            if len(self._rows) > 2 * _MAX_WORDS_BETWEEN or len(asked) > len(self._sums):
                # The system gives memory only for rows that are written, and has that of many back.
                self._sums = np.empty((max(_MAX_WORDS, len(asked)), _WIDTH), np.float32)
            self._rows, fresh = {}, list(asked)
        for some in (fresh[at : at + _AT_ONCE] for at in range(0, len(fresh), _AT_ONCE)):
            tokens, first = list(map(self._tokenizer.tokens, some)), len(self._rows)
            weights, starts = (
                self._weights.take(list(chain(*tokens)), 0),
                [0, *accumulate(map(len, tokens[:-1]))],
            )
            np.add.reduceat(
                weights, starts, dtype=np.float32, out=self._sums[first : first + len(some)]
            )
            self._rows |= zip(some, count(first))
        return self._rows, self._sums


def shared_wordllama() -> WordLlama:
    """Return the one instance of this process: each takes some 15 MB, and a server may have a store for each user."""
    return _wordllama_of(_FOLDER)


@cache
def _wordllama_of(_folder: Path) -> WordLlama:
    return WordLlama()


class Tokenizer:
    """Byte pair encoding: the pair that was learned first is joined first, never across a space or a line break."""

    def __init__(self, path: Path) -> None:
        model = json.loads(path.read_bytes())["model"]
        self._ids: dict[str, int] = model["vocab"]
        self._merges: list[str] = model["merges"]
        self._size = lru_cache(maxsize=20_000)(lambda piece: len(self._joined(piece)))
        self.tokens = lru_cache(maxsize=_WORDS_CUT)(lambda word: array("H", self._tokens(word)))

    @cached_property
    def _ranks(self) -> dict[str, int]:
        """The pairs by what was learned first. A question of whole tokens needs none of them."""
        return {pair: rank for rank, pair in enumerate(self._merges)}

    def _tokens(self, word: str) -> list[int]:
        """The tokens of a text without a space, as it stands after one."""
        tokens: list[int] = []
        for part in filter(None, _SPECIALS.split(word)):
            known = _SPECIAL.get(
                part, self._ids.get(_SPACE + part)
            )  # a whole token is what joining its parts ends in
            tokens += self._joined(_SPACE + part) if known is None else [known]
        return tokens

    def count(self, text: str) -> int:
        """How many tokens a text is."""
        parts = (
            one if one in _SPECIAL else _SPACE + one.replace(" ", _SPACE)
            for one in _SPECIALS.split(text)
            if one
        )
        return sum(
            1 if part in _SPECIAL else sum(map(self._size, _PIECES.findall(part))) for part in parts
        )

    def _joined(self, text: str) -> list[int]:
        parts, end, ranks = list(text), len(text), self._ranks
        # Neighbours that are a pair, by rank and then from the left. A part that was joined to the one before it is "".
        pairs = [
            (rank, at, left, right)
            for at, (left, right) in enumerate(pairwise(parts))
            if (rank := ranks.get(f"{left} {right}")) is not None
        ]
        heapq.heapify(pairs)
        before, after = list(range(-1, end - 1)), list(range(1, end + 1))
        while pairs:
            _, at, left, right = heapq.heappop(pairs)
            follower = after[at]
            if parts[at] != left or follower == end or parts[follower] != right:
                continue  # one of the two is part of another by now
            parts[at], parts[follower] = left + right, ""
            after[at] = after[follower]
            if after[at] < end:
                before[after[at]] = at
            for start in (before[at], at):
                if start >= 0 and after[start] < end:
                    left, right = parts[start], parts[after[start]]
                    if (rank := ranks.get(f"{left} {right}")) is not None:
                        heapq.heappush(pairs, (rank, start, left, right))
        tokens: list[int] = []
        for part in filter(None, parts):
            known = self._ids.get(part)  # a character that no token holds is its bytes
            tokens += (
                [known] if known is not None else [_FIRST_BYTE + byte for byte in part.encode()]
            )
        return tokens
