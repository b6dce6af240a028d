"""Embedders and rerankers of other packages: whatever they return or raise, a search goes on."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from simplemem.errors import Invalid, NotFound, Unavailable
from simplemem.providers.api import RequestRefused, to_signed_bytes
from simplemem.providers.embeddings import create_embedder
from simplemem.providers.plugin import PluginEmbedder, PluginReranker

SECRET = "the text of a note"


class LengthEmbedder:
    """Makes of a text a vector of its length. A test replaces `answer`."""

    name = "length"
    remote = False
    batch = 2
    reads_sentences = False
    dimension: int | None = None

    def __init__(self) -> None:
        self.batches: list[Sequence[str]] = []
        self.answer: Callable[[Sequence[str]], Any] = lambda texts: [
            to_signed_bytes([1.0, len(text)]) for text in texts
        ]

    def documents(self, texts: Sequence[str], **_more: object) -> Any:
        self.batches.append(texts)
        return self.answer(texts)

    def query(self, text: str, **_more: object) -> Any:
        return self.answer([text])[0]

    def close(self) -> None:
        raise OSError(SECRET)


class LengthReranker:
    name = "length"
    remote = False

    def __init__(self, answer: Callable[[Sequence[str]], Any]) -> None:
        self.answer = answer

    def scores(self, _query: str, texts: Sequence[str], _deadline: float) -> Any:
        return self.answer(texts)

    def close(self) -> None:
        raise OSError(SECRET)


def raising(error: Exception) -> Callable[[Sequence[str]], Any]:
    def fail(_texts: Sequence[str]) -> Any:
        raise error

    return fail


def test_texts_are_sent_in_batches_of_the_size_that_the_embedder_wants() -> None:
    embedder = LengthEmbedder()
    checked = PluginEmbedder("other", embedder)
    vectors = checked.documents(["a", "bb", "ccc"])
    assert vectors == [b"\x7f\x7f", b"\x40\x7f", b"\x2a\x7f"]
    assert embedder.batches == [["a", "bb"], ["ccc"]]
    assert checked.query("bb") == vectors[1]
    assert checked.name == "other/length" and checked.dimension == 2


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda _texts: [], "returned 0 vectors for 1 text"),
        (lambda _texts: [[1.0, 2.0]], "returned a list instead of bytes"),
        (lambda _texts: [b""], "returned a vector of 0 dimensions where some were expected"),
        (lambda _texts: None, "failed with TypeError"),
        (raising(ValueError(SECRET)), "failed with ValueError (test_plugin.py, line "),
        (raising(NotFound("the model is gone")), "the model is gone"),
    ],
)
def test_an_embedder_that_fails_is_unavailable(answer: Any, problem: str) -> None:
    embedder = LengthEmbedder()
    embedder.answer = answer
    with pytest.raises(Unavailable) as failure:
        PluginEmbedder("other", embedder).documents(["a"])
    assert problem in failure.value.message
    assert SECRET not in f"{failure.value.message} {failure.value.hint}"


def test_all_vectors_have_one_dimension() -> None:
    embedder = LengthEmbedder()
    checked = PluginEmbedder("other", embedder)
    checked.documents(["a"])
    embedder.answer = lambda texts: [bytes(3) for _ in texts]
    with pytest.raises(Unavailable, match="3 dimensions where 2 were expected"):
        checked.query("a")


def test_an_embedder_may_refuse_a_text() -> None:
    embedder = LengthEmbedder()
    embedder.answer = raising(RequestRefused("the text is too long"))
    with pytest.raises(RequestRefused, match="the text is too long"):
        PluginEmbedder("other", embedder).documents(["a"])


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (lambda _texts: [1.0], "returned 1 scores for 2 texts"),
        (lambda _texts: [1.0, math.nan], "a score that is not a number"),
        (lambda _texts: ["high", "low"], "failed with ValueError"),
        (raising(KeyError(SECRET)), "failed with KeyError"),
    ],
)
def test_a_reranker_that_fails_is_unavailable(answer: Any, problem: str) -> None:
    with pytest.raises(Unavailable) as failure:
        PluginReranker("other", LengthReranker(answer)).scores("a", ["a", "b"], math.inf)
    assert problem in failure.value.message and SECRET not in failure.value.message


def test_scores_are_in_the_order_of_the_texts() -> None:
    reranker = PluginReranker("other", LengthReranker(lambda texts: map(len, texts)))
    assert reranker.scores("a", ["a", "bbb"], math.inf) == [1.0, 3.0]


def test_closing_never_fails(caplog: pytest.LogCaptureFixture) -> None:
    PluginEmbedder("other", LengthEmbedder()).close()
    PluginReranker("other", LengthReranker(list)).close()
    assert "failed with OSError" in caplog.text and SECRET not in caplog.text


def test_a_name_that_no_package_has_is_invalid() -> None:
    with pytest.raises(Invalid, match="no installed package adds 'nothing' to embedders"):
        create_embedder("nothing")


@pytest.mark.parametrize(
    ("numbers", "vector"),
    [
        ([0.0, 0.0], b"\x00\x00"),
        ([], b""),
        ([1e-9, -1e-9], b"\x7f\x81"),
        ([0.5, 1.0], b"\x40\x7f"),
    ],
)
def test_the_largest_number_of_a_vector_becomes_127(numbers: list[float], vector: bytes) -> None:
    assert to_signed_bytes(numbers) == vector


def test_a_vector_has_only_finite_numbers() -> None:
    for number in (math.nan, math.inf):
        with pytest.raises(ValueError):
            to_signed_bytes([1.0, number])
