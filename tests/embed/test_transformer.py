"""The embedder in the same process, with a stand-in for sentence-transformers that has its signatures: the real one
brings gigabytes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from simplemem.embed import Choice, Embedder, embedder_named
from simplemem.errors import Unavailable
from simplemem.remote.failures import Refused

PACKAGE = """
import json, os, time
import numpy as np

CALLS = []

class SentenceTransformer:
    def __init__(self, model_name_or_path, *, local_files_only=False, truncate_dim=None, trust_remote_code=False):
        CALLS.append(("load", model_name_or_path, local_files_only, truncate_dim, trust_remote_code,
                      os.environ.get("HF_HUB_OFFLINE")))
        if "slow" in model_name_or_path:
            time.sleep(1.0)
        if local_files_only and "there" not in model_name_or_path:
            raise OSError(f"{model_name_or_path} is not a local folder")
        self.width = truncate_dim or 24

    def _made(self, kind, inputs, prompt):
        CALLS.append((kind, list(inputs), prompt))
        if any("overflow" in text for text in inputs):
            raise RuntimeError("CUDA out of memory")
        rows = [[float(len(text) + k) for k in range(self.width)] for text in inputs]
        if any("nothing" in text for text in inputs):
            rows = [[float("nan")] * self.width if "nothing" in text else row for text, row in zip(inputs, rows)]
        return np.array(rows, np.float32)

    def encode(self, inputs, prompt_name=None, prompt=None, batch_size=32, show_progress_bar=None,
               convert_to_numpy=True):
        return self._made("encode", inputs, prompt)

    def encode_query(self, inputs, prompt_name=None, prompt=None, batch_size=32, show_progress_bar=None,
                     convert_to_numpy=True):
        return self._made("query", inputs, prompt)

    def encode_document(self, inputs, prompt_name=None, prompt=None, batch_size=32, show_progress_bar=None,
                        convert_to_numpy=True):
        return self._made("document", inputs, prompt)
"""


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """What the package was asked, with the package in place."""
    (tmp_path / "sentence_transformers.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    monkeypatch.delenv("HF_HUB_OFFLINE")
    monkeypatch.delitem(sys.modules, "sentence_transformers", raising=False)
    import sentence_transformers

    yield sentence_transformers.CALLS
    del sys.modules["sentence_transformers"]


def transformer(model: str = "there/model", **more: Any) -> Embedder:
    found = embedder_named("transformer", Choice(model=model, **more))
    assert found is not None
    return found


def test_nothing_is_loaded_until_a_text_comes_and_then_once(calls: list[Any]) -> None:
    embedder = transformer()
    assert (embedder.remote, embedder.dimension, calls) == (False, None, [])
    made = embedder.documents(["one", "three"])
    assert embedder.query("one") == made[0]
    assert np.frombuffer(made[0], np.int8).max() == 127
    assert [call[0] for call in calls] == ["load", "document", "query"]
    assert embedder.dimension == 24


def test_a_model_that_is_not_there_is_not_fetched_unless_that_is_allowed(calls: list[Any]) -> None:
    with pytest.raises(Unavailable, match="not on this machine") as caught:
        transformer("far/model").query("one")
    assert "embed.download = true" in caught.value.hint
    assert calls[-1] == ("load", "far/model", True, None, False, "1")
    os.environ.pop("HF_HUB_OFFLINE")
    assert len(transformer("far/model", download=True).query("one")) == 24
    assert calls[-2] == ("load", "far/model", False, None, False, None)


def test_a_folder_may_be_named_from_home(calls: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/there")
    transformer("~/models/mine").query("one")
    assert calls[0][1] == os.path.expanduser("~/models/mine")


def test_our_words_go_before_a_text_or_the_models_own_and_never_both(calls: list[Any]) -> None:
    transformer("there/e5-small", dimensions=8).documents(["crane"])
    transformer("there/model").documents(["crane"])
    transformer("there/model", query_prefix="ask: ").query("crane")
    asked = [call for call in calls if call[0] != "load"]
    assert asked == [
        ("encode", ["passage: crane"], ""), ("document", ["crane"], None), ("encode", ["ask: crane"], ""),
    ]  # fmt: skip


def test_what_fails_inside_is_a_sentence_and_not_a_crash(calls: list[Any]) -> None:
    with pytest.raises(Unavailable, match="RuntimeError"):
        transformer().documents(["overflow"])
    with pytest.raises(Refused, match="NaN"):
        transformer().documents(["nothing", "something"])


def test_a_question_does_not_wait_for_the_model_to_be_loaded(calls: list[Any]) -> None:
    embedder = transformer("there/slow")
    with pytest.raises(Unavailable, match="no answer within"):
        embedder.query("one", deadline=time.monotonic() + 0.05)
    assert len(embedder.query("one")) == 24
    assert [call[0] for call in calls].count("load") == 1


def test_models_and_their_widths_have_names_of_their_own(calls: list[Any]) -> None:
    names = {transformer().name, transformer("there/e5-small").name, transformer(dimensions=8).name}
    assert len(names) == 3
    assert calls == []


REAL = """
import sys, socket
from pathlib import Path
import torch
from transformers import BertConfig, BertModel, BertTokenizerFast
from sentence_transformers import SentenceTransformer
from sentence_transformers.models import Pooling, Transformer

folder = Path(sys.argv[1])
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "harbour", "crane", "tax", "ask", "the", ":"]
raw = folder / "bert"
raw.mkdir()
(raw / "vocab.txt").write_text("\\n".join(words))
BertTokenizerFast(vocab_file=str(raw / "vocab.txt")).save_pretrained(raw)
torch.manual_seed(4)
sizes = dict(hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
BertModel(BertConfig(vocab_size=len(words), initializer_range=1.0, **sizes)).save_pretrained(raw)
model = SentenceTransformer(modules=[Transformer(str(raw)), Pooling(32)], prompts={"query": "ask: ", "document": ""})
model.save(str(folder / "model"))

print("BERT IS MADE", file=sys.stderr)
sys.addaudithook(lambda event, args: print("NETWORK", event, args) if event.startswith("socket.connect") else None)
from simplemem.embed import Choice, embedder_named
from simplemem.errors import Unavailable

def embedder(**more):
    return embedder_named("transformer", Choice(model=str(folder / "model"), **more))

plain = embedder()
documents = plain.documents(["harbour crane", "tax", "harbour crane"])
print(plain.dimension, documents[0] == documents[2] != documents[1])
print(plain.query("harbour crane") != documents[0])  # the model's own words for a question
print(embedder(document_prefix="ask: ").documents(["harbour crane"])[0] == plain.query("harbour crane"))
print(len(embedder(dimensions=16).documents(["harbour crane"])[0]))
try:
    embedder_named("transformer", Choice(model="nobody/no-such-model-anywhere")).query("tax")
except Unavailable as error:
    print(error.message, "|", error.hint)
"""


@pytest.mark.skipif(find_spec("sentence_transformers") is None, reason="the extra transformer is not installed")
def test_a_real_model_of_a_folder_is_used_and_one_that_is_not_there_is_not_fetched(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", REAL, str(tmp_path)], capture_output=True, text=True, timeout=300, check=False
    )
    width, own_words, our_words, narrow, missing = done.stdout.splitlines()
    assert (width, own_words, our_words, narrow) == ("32 True", "True", "True", "16"), done.stdout + done.stderr
    assert "not on this machine" in missing
    assert "embed.download" in missing
    assert "Loading weights" not in done.stderr.rpartition("BERT IS MADE")[2]  # a server's log has no bars in it
