"""The default embedder: WordLlama's word vectors, read from the two files its wheel carries. Never downloads anything.

A text's vector is the mean of its tokens' vectors. The package itself is not imported: it pads, copies the weights and
may go to the network, while its weights read in place give the same vectors for half the work (limits.md E.3).
"""

from __future__ import annotations

import importlib.util
import json
import os
import struct
from collections.abc import Sequence
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
_MANY = 1_000  # texts for which the weights are widened to float32 once (32 MB) rather than row by row


class WordLlama:
    """256 dimensions, no network, no GPU."""

    name = "wordllama-l2-supercat-256"

    def __init__(self) -> None:
        folder = _package_folder()
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        from tokenizers import Tokenizer

        self._weights = _mapped(folder / _WEIGHTS)
        self.dimension = int(self._weights.shape[1])
        self._tokenizer = Tokenizer.from_file(str(folder / _TOKENIZER))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()

    def documents(self, texts: Sequence[str]) -> list[bytes]:
        """One vector a text; a text without a known word gives zeros, which are near to nothing."""
        encoded = self._tokenizer.encode_batch_fast(
            [_clean(text) for text in texts], add_special_tokens=False
        )
        import numpy as np

        weights = self._weights
        if len(texts) >= _MANY:
            weights = weights.astype(np.float32)
        sums = np.zeros((len(texts), self.dimension), np.float32)
        for k, encoding in enumerate(encoded):
            if encoding.ids:
                rows = weights.take(np.array(encoding.ids, np.int32), 0, mode="clip")
                rows.sum(axis=0, dtype=np.float32, out=sums[k])
        largest = np.abs(sums).max(axis=1, keepdims=True)
        scaled = np.rint(sums / np.maximum(largest, 1e-12) * 127).astype(np.int8)
        return [row.tobytes() for row in scaled]

    def query(self, text: str) -> bytes:
        return self.documents([text])[0]

    def count_tokens(self, text: str) -> int:
        """How many tokens of this tokenizer a text is."""
        return len(self._tokenizer.encode(_clean(text), add_special_tokens=False).ids)


def _clean(text: str) -> str:
    """The tokenizer takes no lone surrogates."""
    return text[:_MAX_CHARACTERS].encode("utf-8", "replace").decode("utf-8")


def _package_folder() -> Path:
    spec = importlib.util.find_spec("wordllama")
    if spec is None or not spec.submodule_search_locations:
        raise Unavailable(
            "the package wordllama is not installed", hint="Set embed.provider to 'none', or install it."
        )
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
