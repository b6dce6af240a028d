"""The English part of the bundled word vectors: means of token vectors, computed without a network."""

from __future__ import annotations

import hashlib
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simplemem.providers import word_vectors
from simplemem.providers.tokenizer import Tokenizer
from simplemem.providers.word_vectors import WordLlama
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

MODEL = Path(word_vectors.__file__).with_name("model")
ORACLE = tokenizers.Tokenizer.from_file(str(MODEL / "l2_supercat_tokenizer_config.json"))
TOKENS = Tokenizer(MODEL / "l2_supercat_tokenizer_config.json")
TEXTS = [
    "The harbour crane was repaired in spring.",
    "crane",
    "A sentence with punctuation: brackets (round), dashes - and 3.14159!",
    "Über die Straße läuft eine Katze",
    "昨日私は京都に行きました。",
    "한국어를 공부하고 있습니다",
    "https://example.org/a?b=c&d=e",
    "snake_case camelCase kebab-case",
    "🙂 emoji 🦀 in between",
    "antidisestablishmentarianism " * 30,
]


@pytest.fixture(scope="module")
def embedder() -> WordLlama:
    return WordLlama()


def cosine(one: NDArray[np.float32], two: NDArray[np.float32]) -> float:
    return float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))


def test_the_files_are_those_of_the_published_model() -> None:
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in MODEL.iterdir()
    }
    assert digests["l2_supercat_256.safetensors"] == "64b47a2dc493cb8e"
    assert digests["l2_supercat_tokenizer_config.json"] == "bf467c9e0f536bda"


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_tokens_are_those_of_the_tokenizer_that_the_model_was_made_with(text: str) -> None:
    assert TOKENS.count(text) == len(ORACLE.encode(text, add_special_tokens=False).ids)
    for word in text.split():
        assert list(TOKENS.tokens(word)) == ORACLE.encode(word, add_special_tokens=False).ids


@pytest.mark.parametrize("word", ["<s>struck</s>", "a<unk>b", "<s", "</s></s>"])
def test_what_spells_a_special_token_is_one(word: str) -> None:
    assert list(TOKENS.tokens(word)) == ORACLE.encode(word, add_special_tokens=False).ids
    text = f"spoken {word} <unk> here"
    assert TOKENS.count(text) == len(ORACLE.encode(text, add_special_tokens=False).ids)


def mean_of_token_vectors(text: str) -> NDArray[np.float32]:
    """What the model's own package gives: all tokens of the text, their vectors from the weights, the mean."""
    weights = np.fromfile(MODEL / "l2_supercat_256.safetensors", np.float16, offset=96).reshape(
        -1, 256
    )
    return (
        weights[ORACLE.encode(text, add_special_tokens=False).ids].astype(np.float32).mean(axis=0)
    )


@pytest.mark.parametrize("text", TEXTS)
def test_a_vector_is_the_mean_of_its_tokens_vectors(embedder: WordLlama, text: str) -> None:
    (vector,) = embedder.unit_vectors([text])
    assert cosine(vector, mean_of_token_vectors(text.strip())) > 0.999_99


@pytest.mark.parametrize("text", ["", "   \n\t ", "\u00a0"])
def test_a_text_without_words_is_near_to_nothing(embedder: WordLlama, text: str) -> None:
    assert (embedder.unit_vectors([text]) == np.zeros((1, 256))).all()


def test_order_company_and_repetition_change_no_vector(embedder: WordLlama) -> None:
    fresh = WordLlama()
    alone = {text: fresh.unit_vectors([text])[0] for text in reversed(TEXTS)}
    shuffled = TEXTS * 2
    random.Random(3).shuffle(shuffled)
    expected = np.array([alone[text] for text in shuffled])
    assert np.array_equal(embedder.unit_vectors(shuffled), expected)
    one_by_one = np.concatenate([embedder.unit_vectors([text]) for text in TEXTS])
    assert np.array_equal(one_by_one, embedder.unit_vectors(TEXTS))


@pytest.mark.parametrize("few", [2, 8])
def test_more_words_than_are_remembered_change_no_vector(
    monkeypatch: pytest.MonkeyPatch, embedder: WordLlama, few: int
) -> None:
    monkeypatch.setattr(word_vectors, "_MAX_WORDS" if few < 4 else "_MAX_WORDS_FOR_FEW_TEXTS", 20)
    monkeypatch.setattr(word_vectors, "_FEW_TEXTS", few)
    forgetful = WordLlama()
    chosen = random.Random(5)
    for _ in range(20):
        texts = [" ".join(f"word{chosen.randrange(60)}" for _ in range(6)) for _ in range(4)]
        assert np.array_equal(forgetful.unit_vectors(texts), embedder.unit_vectors(texts))


def test_no_text_is_too_strange(embedder: WordLlama) -> None:
    for text in ("\ud800 lone", "x" * 1_000_000, "\x00\x01", "a\u2028b", "\U0010ffff"):
        assert embedder.unit_vectors([text]).shape == (1, 256)


OFFLINE = """
import sys

def refuse(event, args):
    if event.startswith(("socket.", "urllib.", "http.")):
        print("NETWORK", event, args, flush=True)
        sys.stdout.flush()
        import os
        os._exit(9)

sys.addaudithook(refuse)
from pathlib import Path
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

root = Path(sys.argv[1])
with EnhancedStore(root, Settings()) as store:
    store.create("vet", "The puppy was taken to the veterinarian.")
    store.sync()
    print([hit.name for hit in store.search("dog doctor").hits])
print(sorted({"tokenizers", "huggingface_hub", "requests", "httpx", "safetensors"} & sys.modules.keys()))
"""


def test_a_first_use_asks_no_network_and_loads_no_package_that_could(
    vault: Path, tmp_path: Path
) -> None:
    home = tmp_path / "empty home"
    home.mkdir()
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(vault)],
        capture_output=True, text=True, timeout=60, env={"HOME": str(home), "PATH": "/usr/bin:/bin"}, check=False,
    )  # fmt: skip
    assert done.stdout.split("\n")[:2] == ["['vet']", "[]"], done.stdout + done.stderr
    assert done.returncode == 0
    assert list(home.iterdir()) == []  # nothing was fetched or cached


def test_without_its_files_words_still_find_and_the_answer_says_so(
    vault: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word_vectors, "_FOLDER", tmp_path / "not there")
    with EnhancedStore(vault, Settings()) as store:
        store.create("vet", "The puppy was taken to the veterinarian.")
        store.sync()
        found = store.search("puppy")
        assert [hit.name for hit in found.hits] == ["vet"] and "word vectors" in found.degraded
        assert store.context("puppy").degraded == found.degraded
        assert found.index.pending == 1  # its vectors are owed, and come once the package is there


def test_a_word_that_is_a_token_of_the_model_is_that_token() -> None:
    words = [
        piece[1:]
        for piece in ORACLE.get_vocab()
        if piece.startswith("\u2581") and not piece[1:].isspace()
    ]
    every = [word for word in words if word and "\u2581" not in word]
    assert len(every) > 16_000
    for word, asked in zip(
        every, ORACLE.encode_batch(every, add_special_tokens=False), strict=True
    ):
        assert list(TOKENS.tokens(word)) == asked.ids
