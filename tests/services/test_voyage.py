"""The embedder for Voyage, by Voyage's own package, against a server that speaks its protocol."""

from __future__ import annotations

import logging
import math
import subprocess
import sys
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from embedding_service import CUT, HANGS_UP, PAGE, Answer, EmbeddingService, limited, slow, spoilt
from pydantic import SecretStr

from simplemem.errors import Invalid, Unavailable
from simplemem.services.embed import Choice, Embedder, embedder_named
from simplemem.services.failures import Refused

pytestmark = pytest.mark.skipif(find_spec("voyageai") is None, reason="the package voyageai is not installed")
KEY = "pa-test-0123456789abcdefghij"
TEXTS = ["the harbour crane was repaired", "a puppy at the veterinarian", "income tax for last year"]


def voyage(service: EmbeddingService, **more: Any) -> Embedder:
    choice = {"url": f"{service.url}/v1", "api_key": SecretStr(KEY), "timeout_seconds": 20.0} | more
    found = embedder_named("voyage", Choice(**choice))
    assert found is not None
    return found


def says(status: int, detail: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, f'{{"detail": "{detail}"}}'.encode(), headers or {})


def cosine(one: bytes, two: list[float]) -> float:
    a, b = np.frombuffer(one, np.int8).astype(float), np.array(two)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_documents_and_questions_are_sent_as_such(service: EmbeddingService) -> None:
    embedder = voyage(service, dimensions=32)
    made = embedder.documents(TEXTS)
    assert [len(vector) for vector in made] == [32, 32, 32]
    assert cosine(made[1], service.vector(TEXTS[1], 32)) > 0.999
    embedder.query("crane")
    documents, question = service.asked
    assert (documents.json["input_type"], question.json["input_type"]) == ("document", "query")
    assert documents.json["model"] == "voyage-3.5"
    assert documents.json["output_dimension"] == 32
    assert documents.headers["Authorization"] == f"Bearer {KEY}"
    assert embedder.name == f"voyage/voyage-3.5 at {service.host} in 32 dimensions"
    assert embedder.remote  # wherever its url leads: its package may go through a proxy


def test_without_a_key_nothing_is_sent_and_the_way_out_is_named(
    service: EmbeddingService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("VOYAGE_API_KEY", raising=False)
    with pytest.raises(Unavailable) as caught:
        voyage(service, api_key=None).query("crane")
    assert "VOYAGE_API_KEY" in caught.value.hint
    assert service.asked == []


@pytest.mark.parametrize(
    ("trouble", "message"),
    [
        (says(429, "slow down", {"Retry-After": "7200"}), "429, slow down"),
        (limited("7200"), "does not answer"),
        (says(500, "out of memory"), "500, out of memory"),
        (says(401, "no such key"), "does not accept the key: 401, no such key"),
        (says(403, "not yours"), "does not accept the key: 403, not yours"),
        (says(404, "nothing there"), "404, nothing there"),
        (says(529, "overloaded"), "does not answer"),
        (PAGE, "a web page where JSON was expected"),
        (CUT, "broke off"),
        (HANGS_UP, "broke off"),
        (slow(9.0), "no answer"),
        (Answer(200, b"{}"), "not what the protocol says"),
        (Answer(200, b"[1, 2"), "not what the protocol says"),
        (spoilt(lambda rows: rows[:-1]), "2 vectors for 3 texts"),
        (spoilt(lambda rows: [row[:-4] if isinstance(row, str) else row[:-1] for row in rows]), "does not answer"),
        (spoilt(lambda rows: [[1.0] * (63 + k) for k, _ in enumerate(rows)]), "dimensions where"),
        (spoilt(lambda rows: [[math.nan] * 64 for _ in rows]), "NaN or infinity in it for 3 texts"),
        (spoilt(lambda rows: [[0.0] * 64, [1.0] * 64, [1.0] * 64]), "zeros alone for 1 text"),
    ],
)
def test_what_is_no_vector_is_named_and_never_given_out(
    service: EmbeddingService, trouble: Answer, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    service.always = trouble
    embedder = voyage(service, timeout_seconds=0.4 if trouble.seconds else 20.0)
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as caught:
        embedder.documents(TEXTS)
    assert message in caught.value.message
    assert embedder.name in caught.value.message
    shown = str(caught.value.as_dict()) + caplog.text
    assert KEY not in shown
    assert not any(text in shown for text in TEXTS)


@pytest.mark.parametrize("status", [400, 422])
def test_a_text_that_is_refused_is_told_apart_from_a_service_that_is_down(
    service: EmbeddingService, status: int
) -> None:
    service.next(says(status, "Request to model is too long"))
    with pytest.raises(Refused, match="too long"):
        voyage(service).documents(TEXTS)
    assert len(service.asked) == 1


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 200])
def test_what_the_service_repeats_is_not_shown(
    service: EmbeddingService, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    service.always = says(status, f"{KEY}: the harbour crane was repaired", {"Retry-After": "7200"})
    with caplog.at_level(logging.DEBUG), pytest.raises(Unavailable) as caught:
        voyage(service).documents(TEXTS)
    shown = str(caught.value.as_dict()) + repr(caught.value) + caplog.text
    assert KEY not in shown
    assert "harbour" not in shown


def test_a_model_that_its_package_would_fetch_and_run_here_is_refused() -> None:
    with pytest.raises(Invalid, match="runs on this machine"):
        embedder_named("voyage", Choice(model="voyage-4-nano"))


UNUSED = """
import sys
from simplemem.services.embed import Choice, embedder_named
print(embedder_named("voyage", Choice()).remote, sorted({"voyageai", "httpx2", "numpy"} & sys.modules.keys()))
"""


def test_its_package_is_loaded_only_when_it_is_used() -> None:
    done = subprocess.run([sys.executable, "-c", UNUSED], capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout == "True []\n", done.stderr


MISSING = """
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "voyageai" else real(name)
from simplemem.errors import Unavailable
from simplemem.services.embed import embedder_named
from simplemem.services.rerank import reranker_named
for make in (lambda: embedder_named("voyage"), lambda: reranker_named("voyage", model="m")):
    try:
        make()
    except Unavailable as error:
        print(error.message, "|", error.hint)
"""


def test_an_extra_that_is_not_installed_is_named_with_the_command_that_brings_it() -> None:
    done = subprocess.run([sys.executable, "-c", MISSING], capture_output=True, text=True, timeout=60, check=False)
    for line in done.stdout.splitlines():
        assert "needs the package voyageai" in line
        assert "simplemem-vault[voyage]" in line
    assert len(done.stdout.splitlines()) == 2, done.stderr
