"""A cross-encoder on this machine: nothing is downloaded unless allowed, and it keeps to the time there is."""

from __future__ import annotations

import importlib.util
import shutil
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from simplemem.errors import Unavailable
from simplemem.rerank import Reranker, reranker_named

TEXTS = ["the tide in the harbour", "a valve froze in cold air", "the cold harbour crane"]

needs_the_library = pytest.mark.skipif(
    importlib.util.find_spec("sentence_transformers") is None, reason="the extra transformer is not here"
)


def cross_encoder(model: Path | str, *, download: bool = False) -> Reranker:
    made = reranker_named("cross-encoder", model=str(model), download=download)
    assert made is not None
    return made


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real cross-encoder of one layer and a few words, with weights that mean nothing."""
    import torch
    from transformers import BertConfig, BertForSequenceClassification, BertTokenizerFast

    folder = tmp_path_factory.mktemp("models") / "tiny"
    folder.mkdir()
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *" ".join(TEXTS).split(), "balloon"]
    (folder / "vocab.txt").write_text("\n".join(dict.fromkeys(words)))
    BertTokenizerFast(vocab_file=str(folder / "vocab.txt")).save_pretrained(folder)
    torch.manual_seed(4)
    BertForSequenceClassification(
        BertConfig(
            vocab_size=len(words),
            hidden_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            num_labels=1,
            initializer_range=1.0,
            max_position_embeddings=64,
        )
    ).save_pretrained(folder)
    return folder


def test_without_its_package_it_says_how_to_get_it() -> None:
    program = (
        "import sys; sys.modules['sentence_transformers'] = None\n"
        "from simplemem.errors import Unavailable\n"
        "from simplemem.rerank import reranker_named\n"
        "try: reranker_named('cross-encoder')\n"
        "except Unavailable as error: print(error.message, '|', error.hint)"
    )
    said = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "needs the package sentence-transformers" in said
    assert "simplemem-vault[transformer]" in said


@needs_the_library
def test_it_gives_what_the_model_gives_for_each_pair(model: Path) -> None:
    from sentence_transformers import CrossEncoder

    made = cross_encoder(model)
    assert (made.name, made.remote) == ("cross-encoder/tiny", False)
    scores = made.scores("balloon in cold air", TEXTS, time.monotonic() + 60)
    direct = CrossEncoder(str(model)).predict([("balloon in cold air", text) for text in TEXTS])
    assert scores == pytest.approx(direct.tolist(), abs=1e-5)
    assert len(set(scores)) == 3


@needs_the_library
def test_it_stops_when_its_time_is_over_and_is_then_left_alone(model: Path) -> None:
    made = cross_encoder(model)
    for _ in range(3):
        with pytest.raises(Unavailable, match="had time for 0 of 3 texts"):
            made.scores("balloon", TEXTS, time.monotonic())
    with pytest.raises(Unavailable, match="tried again in"):
        made.scores("balloon", TEXTS, time.monotonic() + 60)


@needs_the_library
def test_a_model_that_is_not_here_is_not_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[object] = []

    def nobody(host: object, *_: object, **__: object) -> object:
        asked.append(host)
        raise OSError("no network in this test")

    monkeypatch.setattr(socket, "getaddrinfo", nobody)
    for name in ("", "nobody/nothing", "/no/such/folder", "./neither", "not a name/of a/model"):
        with pytest.raises(Unavailable, match="is not on this machine") as refused:
            cross_encoder(name)
        assert "rerank.download" in refused.value.hint
    assert asked == []


@needs_the_library
def test_a_model_that_was_downloaded_before_is_found_by_its_name(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "models--someone--tiny"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("abc")
    shutil.copytree(model, place / "snapshots" / "abc")
    program = (
        "import time; from simplemem.rerank import reranker_named\n"
        "made = reranker_named('cross-encoder', model='someone/tiny')\n"
        f"print(made.name, len(made.scores('balloon', {TEXTS!r}, time.monotonic() + 60)))"
    )
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "cross-encoder/tiny 3\n"
    assert "%|" not in done.stderr


@needs_the_library
def test_a_model_that_sorts_pairs_into_several_classes_is_no_reranker(model: Path, tmp_path: Path) -> None:
    from transformers import BertConfig, BertForSequenceClassification

    shutil.copytree(model, tmp_path / "classes")
    config = BertConfig.from_pretrained(model, num_labels=3)
    BertForSequenceClassification(config).save_pretrained(tmp_path / "classes")
    with pytest.raises(Unavailable, match="no number"):
        cross_encoder(tmp_path / "classes")


@needs_the_library
def test_a_folder_without_a_model_is_told_of(tmp_path: Path) -> None:
    with pytest.raises(Unavailable, match="cannot be loaded"):
        cross_encoder(tmp_path)
