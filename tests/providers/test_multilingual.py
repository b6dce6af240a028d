"""The bundled word vectors: texts of one meaning are near each other, in many languages."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from simplemem.errors import Unavailable
from simplemem.providers import word_vectors
from simplemem.providers.piece_vocabulary import PieceVocabulary
from simplemem.providers.tensors import map_tensors
from simplemem.providers.word_vectors import Multilingual, shared_multilingual, shared_wordllama

MODEL = Path(word_vectors.__file__).with_name("model") / "pieces_256.safetensors"
FACTS = json.loads(
    (Path(__file__).parents[2] / "bench" / "languages.json").read_text(encoding="utf-8")
)
LANGUAGES = [language for language in FACTS[0]["facts"] if language != "en"]
TEXTS = [
    "The user is allergic to peanuts.",
    "El gato se esconde cuando hay truenos.",
    "Die Heizung im Büro ist kaputt.",
    "用户对花生过敏。",
    "プリンターのトナーが切れている。",
    "हमने शादी जून में रखी है।",
    "فاتورة الكهرباء تصل في بداية الشهر",
    "",
]


@pytest.fixture(scope="module")
def embedder() -> Multilingual:
    return shared_multilingual()


@pytest.fixture(scope="module")
def vocabulary() -> PieceVocabulary:
    tensors = map_tensors(MODEL)
    return PieceVocabulary(tensors["children"], tensors["parents"], tensors["scores"])


@pytest.fixture(scope="module")
def pieces() -> dict[int, str]:
    """The text of each piece by its number, as the trie spells it."""
    tensors = map_tensors(MODEL)
    children, parents = tensors["children"], tensors["parents"]
    codes = {}
    for node in range(1, len(parents)):
        if parents[node] >= 0:
            codes[node] = node - int(children[parents[node]])
    texts = {}
    for node, code in codes.items():
        if code == 0:  # a piece ends at the parent of this node
            spelled = bytearray()
            at = int(parents[node])
            while at:
                spelled.append(codes[at] - 1)
                at = int(parents[at])
            texts[int(children[node])] = bytes(reversed(spelled)).decode()
    return texts


def numbers(vectors: Sequence[bytes]) -> NDArray[np.float32]:
    return np.array([np.frombuffer(vector, np.int8) for vector in vectors], np.float32)


def count_nearest(embedder: Multilingual, language: str, asked_in: str) -> int:
    """How many of the 24 facts are among the three nearest to their questions."""
    facts = numbers(embedder.documents([fact["facts"][language] for fact in FACTS]))
    questions = numbers(embedder.documents([fact["questions"][asked_in] for fact in FACTS]))
    facts /= np.linalg.norm(facts, axis=1, keepdims=True)
    cosines = questions @ facts.T
    return int(((cosines > np.diag(cosines)[:, None]).sum(axis=1) < 3).sum())


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_question_in_any_language_finds_english_facts(
    embedder: Multilingual, language: str
) -> None:
    """By chance, three of 24 would be found; WordLlama alone finds five on average."""
    assert count_nearest(embedder, "en", language) >= 8


def test_facts_are_found_in_their_own_language(embedder: Multilingual) -> None:
    """WordLlama alone finds three on average."""
    found = [count_nearest(embedder, language, language) for language in LANGUAGES]
    assert sum(found) / len(found) >= 9
    assert count_nearest(embedder, "en", "en") >= 18


def test_the_words_of_one_meaning_are_near_each_other(embedder: Multilingual) -> None:
    one = embedder.unit_vectors(["peanut", "bicycle", "wedding", "Tuesday", "rain"])
    other = embedder.unit_vectors(["cacahuete", "велосипед", "Hochzeit", "火曜日", "pluie"])
    cosines = one @ other.T
    assert (cosines.argmax(axis=1) == np.arange(5)).all()


@pytest.mark.parametrize("text", ["", "   \n\t ", "\u00a0", "!? …"])
def test_a_text_without_words_is_near_to_nothing_of_pieces(
    embedder: Multilingual, text: str
) -> None:
    if not text.strip():
        assert embedder.query(text) == bytes(256)
    assert len(embedder.query(text)) == 256


def test_order_company_and_repetition_change_no_vector(embedder: Multilingual) -> None:
    fresh = Multilingual(shared_wordllama())
    alone = {text: fresh.query(text) for text in reversed(TEXTS)}
    shuffled = TEXTS * 80  # more than are summed in one step
    random.Random(3).shuffle(shuffled)
    assert embedder.documents(shuffled) == [alone[text] for text in shuffled]
    assert embedder.documents([]) == []


def test_no_text_is_too_strange(embedder: Multilingual) -> None:
    for text in ("\ud800 lone", "x" * 1_000_000, "\x00\x01", "a\u2028b", "\U0010ffff", "\u0301"):
        assert len(embedder.query(text)) == 256


def test_every_piece_is_found_again(vocabulary: PieceVocabulary, pieces: dict[int, str]) -> None:
    """A whole word that is a piece is hardly ever more probable in parts."""
    assert len(pieces) == len(map_tensors(MODEL)["scores"])
    words = {number: text for number, text in pieces.items() if text[0] == " " and len(text) > 4}
    split = {number: list(vocabulary.pieces_of(text[1:])) for number, text in words.items()}
    changed = [words[number] for number, found in split.items() if found != [number]]
    assert len(changed) < len(words) / 100


@given(st.text(max_size=80))
def test_the_pieces_of_a_text_stand_in_it_in_this_order(
    vocabulary: PieceVocabulary, pieces: dict[int, str], text: str
) -> None:
    import unicodedata

    plain = unicodedata.normalize("NFKC", text).lower()
    position = 0
    for number in vocabulary.pieces_of(text):
        piece = pieces[number].lstrip(" ")
        position = plain.find(piece, position) + len(piece)
        assert position >= len(piece), (piece, plain)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("हिन्दी में", [" हिन्दी", " में"]),  # vowel signs are part of a word
        ("l'année", [" l", "'", "année"]),
        ("Größe", [" größe"]),
        ("ＦＵＬＬ", [" full"]),
    ],
)
def test_words_are_split_as_a_reader_of_the_language_would(
    vocabulary: PieceVocabulary, pieces: dict[int, str], text: str, expected: list[str]
) -> None:
    found = [pieces[number] for number in vocabulary.pieces_of(text)]
    assert [piece for piece in found if piece != "'"] == [
        piece for piece in expected if piece != "'"
    ]


def test_without_its_file_the_reason_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(word_vectors, "_FOLDER", tmp_path)
    with pytest.raises(Unavailable, match="word vectors that come with simplemem"):
        shared_multilingual()
