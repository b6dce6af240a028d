"""`index` before an embedder that is not on this machine: what it says, what it asks, and what it sends."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from embedding_service import EmbeddingService, failing, slow
from waiting import eventually

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.fixture
def far(monkeypatch: pytest.MonkeyPatch) -> Iterator[EmbeddingService]:
    """A service under the name of another machine, which a proxy leads to, and that is set as the embedder."""
    with EmbeddingService() as running:
        for name in ("NO_PROXY", "no_proxy", "ALL_PROXY", "all_proxy", "http_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HTTP_PROXY", running.url)
        for name, value in {
            "PROVIDER": "openai",
            "MODEL": "tiny",
            "URL": "http://embeddings.example/v1",
        }.items():
            monkeypatch.setenv(f"SIMPLEMEM_EMBED_{name}", value)
        yield running


def test_an_embedder_that_fails_is_told_and_words_are_in_step(
    run: Run, far: EmbeddingService
) -> None:
    far.always = failing(401, "this key is not known")
    ran = run("index")
    assert ran.code == 1 and ran.out.startswith("3 added") and "this key is not known" in ran.err
    again = run("index", "--json")
    assert again.code == 1 and "this key is not known" in again.json["trouble"]
    facts = run("stats", "--json").json["embedding"]  # of another process, which asked nobody
    assert "this key is not known" in facts["last_failure"] and facts["trouble"] == ""
    far.always = slow(60)
    found = run("search", "launch", "--json").json  # which does not wait for it
    assert found["hits"] and found["index"]["pending"] == 3


@pytest.mark.skipif(
    os.name == "nt", reason="a console's Ctrl-C cannot be sent to one process there"
)
@pytest.mark.parametrize("number", [signal.SIGINT, getattr(signal, "SIGKILL", signal.SIGTERM)])
def test_a_run_that_is_ended_halfway_goes_on_where_it_was(
    run: Run,
    vault: Path,
    far: EmbeddingService,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
) -> None:
    for k in range(12):
        (vault / f"n{k}.md").write_text(f"Number {k} of the launches.\n")
    monkeypatch.setenv("SIMPLEMEM_EMBED_BATCH", "2")
    far.next(*[slow(0.01)] * 3, slow(60))
    process = subprocess.Popen(
        [sys.executable, "-m", "simplemem", "index", "--vault", str(vault)],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert eventually(lambda: len(far.requests) == 4)
        process.send_signal(number)
        output = " ".join(
            process.communicate(timeout=30)[1].split()
        )  # whatever the width of the terminal
    finally:
        process.kill()
    assert process.returncode != 0 and "Traceback" not in output
    if number == signal.SIGINT:
        waiting = run("stats", "--json").json["embedding"]["waiting"]
        assert "stopped." in output and "`simplemem index` continues from there." in output
        assert (
            0 < waiting < 15
            and f"{waiting} notes are searchable by words, not yet by meaning." in output
        )
    under_way = far.requests[3].texts
    ran = run("index")
    assert ran.code == 0 and "embedded" in ran.out
    assert run("stats", "--json").json["embedding"]["waiting"] == 0
    texts = far.texts()
    assert [text for text in set(texts) if texts.count(text) > 1 and text not in under_way] == []


def test_vectors_show_progress_when_they_are_made(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("simplemem.cli.command._SECONDS_BEFORE_BAR", 0.0)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert re.search(r"vectors.*3/3", run("search", "launch").err)
    assert "vectors" not in run("search", "launch").err
