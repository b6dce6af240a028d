"""Compare variants of the bundled word vectors, by vectors alone.

    python bench/distil/variants.py --teacher FILE --words FOLDER --names node_modules \\
        [--facts FILE.json]

The options that name the sources are those of `build.py`, and the facts are those of
`bench/languages.py`. Prints for each variant how many of the right facts are among the three
nearest to their questions: in English; in the same language, as the mean of the other languages;
and for English facts with questions in another language, as the mean of those languages.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from bench.distil.build import (
    Pieces,
    Recipe,
    map_pieces,
    read_pieces,
    source_parser,
    vocabulary_of,
)
from bench.distil.names import Names, read_names
from bench.distil.teacher import Floats, Teacher
from bench.languages import FACTS, PLACES, Facts, read_facts, texts_of
from simplemem.providers.word_vectors import WordLlama, unit_length

Embed = Callable[[Sequence[str]], Floats]
"""Returns the vectors of texts at length one, a row per text."""

VARIANTS: Final = {
    "the recipe": Recipe(),
    "without names": Recipe(weight_of_names=0.0),
    "names count a tenth": Recipe(weight_of_names=0.1),
    "names count as words": Recipe(weight_of_names=1.0),
    "linear map alone": Recipe(share_of_neighbours=0.0),
    "neighbours alone": Recipe(share_of_neighbours=1.0),
    "4 neighbours": Recipe(neighbours=4),
    "without lengths": Recipe(has_lengths=False),
    "frequent pieces count more": Recipe(frequent=1e-4),
}
FEWER_ROWS: Final = {"without words": Recipe().pieces, "60,000 pieces without words": 60_000}
"""How many of the pieces, which come before the words, a variant has."""

SHARES: Final = (0.2, 0.3, 0.5, 0.7)
"""The shares of WordLlama's own vector in the sum, for texts of all languages alike."""


def main() -> None:
    """Print a row for each variant, and for the recipe with each share of WordLlama."""
    parser = source_parser(__doc__)
    parser.add_argument("--facts", type=Path, default=FACTS)
    options = parser.parse_args()

    facts = read_facts(options.facts)
    names = read_names(options.names)
    wordllama = WordLlama()
    all_pieces = read_pieces(Teacher(options.teacher), options.words, Recipe().pieces)
    print("| variant | English | same language | of English facts |\n|---|---|---|---|")
    print_row("WordLlama alone", facts, wordllama.unit_vectors)
    for title, count in FEWER_ROWS.items():
        pieces = all_pieces.take(count)
        print_row(title, facts, embed_by_recipe(pieces, names, wordllama, Recipe()))
    for title, recipe in VARIANTS.items():
        embed = embed_by_recipe(all_pieces, names, wordllama, recipe)
        print_row(title, facts, embed)
        if title == "the recipe":
            for share in SHARES:
                print_row(f"with {share} WordLlama", facts, mixed(wordllama, embed, share))


def embed_by_recipe(
    pieces: Pieces, names: Sequence[Names], wordllama: WordLlama, recipe: Recipe
) -> Embed:
    """Return a function that returns the vectors of texts by pieces with a recipe's vectors."""
    return embed_by_pieces(pieces, map_pieces(pieces, names, wordllama, recipe))


def embed_by_pieces(pieces: Pieces, vectors: Floats) -> Embed:
    """Return a function that sums the vectors of the pieces of a text."""
    vocabulary = vocabulary_of(pieces)

    def embed(texts: Sequence[str]) -> Floats:
        """Return the sums of the vectors of pieces at length one."""
        numbers = (vocabulary.pieces_of(text) for text in texts)
        return unit_length(np.array([vectors[of_text].sum(axis=0) for of_text in numbers]))

    return embed


def mixed(wordllama: WordLlama, embed: Embed, share: float) -> Embed:
    """Return a function that adds WordLlama's vectors, which get a share, and those of `embed`."""
    return lambda texts: unit_length(
        share * wordllama.unit_vectors(texts) + (1 - share) * embed(texts)
    )


def print_row(title: str, facts: Facts, embed: Embed) -> None:
    """Print the figures of a variant."""
    others = [language for language in facts[0]["facts"] if language != "en"]
    english = count_found(facts, embed, "en", "en")
    same = np.mean([count_found(facts, embed, language, language) for language in others])
    across = np.mean([count_found(facts, embed, "en", language) for language in others])
    print(f"| {title} | {english} | {same:.1f} | {across:.1f} |", flush=True)


def count_found(facts: Facts, embed: Embed, language: str, asked_in: str) -> int:
    """Return how many right facts are among the three nearest to their questions.

    The facts are in `language`, the questions in `asked_in`. A tie counts for the right fact.
    """
    vectors = embed(texts_of(facts, "facts", language))
    cosines = embed(texts_of(facts, "questions", asked_in)) @ vectors.T
    better = (cosines > np.diag(cosines)[:, None]).sum(axis=1)
    return int((better < PLACES).sum())


if __name__ == "__main__":
    main()
