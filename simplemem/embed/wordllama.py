"""The default embedder: WordLlama's word vectors, read from the two files its wheel carries. Never downloads anything.

A text's vector is the mean of its tokens' vectors. The package itself is not imported: it pads, copies the weights and
may go to the network, while its weights read in place give the same vectors for half the work (limits.md E.3).
"""

from __future__ import annotations

import importlib.util
import json
import os
import struct
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplemem.errors import Unavailable

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WEIGHTS = "weights/l2_supercat_256.safetensors"
_TOKENIZER = "tokenizers/l2_supercat_tokenizer_config.json"
_TENSOR = "embedding.weight"
_MAX_CHARACTERS = 20_000  # of one text; passages are far shorter
_MAX_WORDS = 50_000  # remembered while many texts are embedded; 50 MB at most
_MAX_WORDS_BETWEEN = 4_000  # and once few texts come again, as a server gets them for as long as it lives: 4 MB
_FEW = 256  # texts: the passages of a long note
_FIRST_ROWS = 1_024


class WordLlama:
    """256 dimensions, no network, no GPU.

    Tokens never reach across a space, so the sum of a word's tokens is the same wherever it stands: it is looked up once
    and remembered, and a vault's hundred thousand passages cost no more tokenizing than their vocabulary.
    """

    name = "wordllama-l2-supercat-256"
    remote = False
    batch = 4096
    reads_sentences = False

    def __init__(self) -> None:
        import numpy as np

        folder = _package_folder()
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from tokenizers import Tokenizer

        self._weights = _mapped(folder / _WEIGHTS)
        self.dimension = int(self._weights.shape[1])
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._lock = threading.Lock()
        self._rows: dict[str, int] = {}
        self._sums: NDArray[np.float32] = np.empty((0, self.dimension), np.float32)

    def documents(self, texts: Sequence[str], *, stopped: Callable[[], bool] = lambda: False) -> list[bytes]:  # noqa: ARG002
        """One vector a text; a text without a known word gives zeros, which are near to nothing."""
        import numpy as np

        split = [_clean(text).split() for text in texts]
        with self._lock:
            rows, words = self._known(split)
            sums = np.zeros((len(texts), self.dimension), np.float32)
            for k, found in enumerate(split):
                if found:
                    words.take([rows[word] for word in found], 0).sum(axis=0, out=sums[k])
        largest = np.abs(sums).max(axis=1, keepdims=True)
        scaled = np.rint(sums / np.maximum(largest, 1e-12) * 127).astype(np.int8)
        return [row.tobytes() for row in scaled]

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

    def close(self) -> None:
        """The mapped weights go with the last who uses them."""

    def count_tokens(self, text: str) -> int:
        """How many tokens of this tokenizer a text is."""
        return len(self._tokenizer.encode(_well_formed(text), add_special_tokens=False).ids)

    def _known(self, split: Sequence[Sequence[str]]) -> tuple[dict[str, int], NDArray[np.float32]]:
        """Every word's row, those seen for the first time added."""
        import numpy as np

        asked = dict.fromkeys(word for words in split for word in words)
        fresh = [word for word in asked if word not in self._rows]
        if len(self._rows) + len(fresh) > (_MAX_WORDS_BETWEEN if len(split) <= _FEW else _MAX_WORDS):
            self._forget()
            fresh = list(asked)
        if fresh:
            first = len(self._rows)
            self._make_room(first + len(fresh))
            sums = self._sums[first : first + len(fresh)]
            for k, encoding in enumerate(self._tokenizer.encode_batch_fast(fresh, add_special_tokens=False)):
                if encoding.ids:
                    self._weights.take(encoding.ids, 0, mode="clip").sum(axis=0, dtype=np.float32, out=sums[k])
                else:
                    sums[k] = 0.0
            self._rows.update((word, first + k) for k, word in enumerate(fresh))
        return self._rows, self._sums

    def _forget(self) -> None:
        """Begin to remember anew: in the same place, so that memory stays as it is, unless that place is a large one."""
        import numpy as np

        self._rows = {}
        if len(self._sums) > 1.5 * _MAX_WORDS_BETWEEN:
            self._sums = np.empty((0, self.dimension), np.float32)

    def _make_room(self, rows: int) -> None:
        """Room for so many rows. It doubles: a new word now and then must not cost a copy of all that are known."""
        import numpy as np

        if rows > len(self._sums):
            room = np.empty((max(rows + rows // 4, 2 * len(self._sums), _FIRST_ROWS), self.dimension), np.float32)
            room[: len(self._rows)] = self._sums[: len(self._rows)]
            self._sums = room


def _clean(text: str) -> str:
    return _well_formed(text[:_MAX_CHARACTERS])


def _well_formed(text: str) -> str:
    """The tokenizer takes no lone surrogates."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable("the package wordllama is not installed", hint="Set embed.provider to 'none', or install it.")
    return Path(next(iter(spec.submodule_search_locations)))


def _mapped(path: Path) -> NDArray[np.float16]:
    """The one tensor of a safetensors file, mapped: an 8-byte length, a JSON header, then the numbers."""
    import numpy as np

    with path.open("rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header: dict[str, Any] = json.loads(file.read(length))
    tensor = header[_TENSOR]
    if tensor["dtype"] != "F16":
        raise Unavailable(f"{path.name} holds {tensor['dtype']} where F16 was expected")
    start = 8 + length + int(tensor["data_offsets"][0])
    return np.memmap(path, np.float16, "r", start, tuple(tensor["shape"]))
