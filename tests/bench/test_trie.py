"""The trie of the bundled pieces: every piece is found in it again, and nothing else."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench.distil.trie import build_trie
from simplemem.providers.piece_vocabulary import PieceVocabulary

WORDS = st.text("abcdeé語", min_size=1, max_size=6)


@given(st.lists(WORDS, min_size=1, max_size=60, unique=True), st.lists(WORDS, max_size=20))
def test_a_trie_of_any_size_has_its_pieces_and_no_others(
    words: list[str], others: list[str]
) -> None:
    children, parents = build_trie([f" {word}".encode() for word in words])
    vocabulary = PieceVocabulary(children, parents, np.zeros(len(words), np.int16))
    assert [vocabulary.pieces_of(word) for word in words] == [[n] for n in range(len(words))]
    assert all(vocabulary.has(word) == (word in words) for word in others)
