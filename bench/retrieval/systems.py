"""What is measured: the interface of a system, and simplemem with its modes and embedders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeAlias

from bench.retrieval.data import Document, write_notes
from simplemem.settings.loading import load_settings
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

MODES: Final = {"words": "text", "meaning": "semantic", "both": "hybrid"}


@dataclass(frozen=True)
class Answer:
    """The names of the notes that were found, best first. Refused: it says that nothing was."""

    names: tuple[str, ...]
    is_refused: bool


Search: TypeAlias = Callable[[str, int], Answer]
"""Takes a question and how many notes to return at most."""


class System(Protocol):
    """A memory system, or one configuration of it."""

    @property
    def name(self) -> str:
        """Return its name, for the first column of the table."""
        ...

    def open(
        self, documents: Sequence[Document], folder: Path
    ) -> AbstractContextManager[Mapping[str, Search]]:
        """Index documents below an empty folder; yield the ways to search them, by their names."""
        ...


@dataclass(frozen=True)
class Simplemem:
    """simplemem through its Python interface, in each mode of search, with one embedder."""

    settings: Settings
    embedder: str  # as it is shown
    modes: Mapping[str, str]  # the mode of search by the name of the way

    @property
    def name(self) -> str:
        """Return the name with the embedder."""
        return f"simplemem, {self.embedder}"

    @contextmanager
    def open(self, documents: Sequence[Document], folder: Path) -> Iterator[Mapping[str, Search]]:
        """Index the documents with vectors, and yield a search for each mode.

        Raises:
            SystemExit: The embedder made no vectors.
        """
        write_notes(documents, folder)
        with EnhancedStore(folder, self.settings) as store:
            report = store.sync()
            if report.trouble:
                raise SystemExit(f"{self.name}: {report.trouble}")
            yield {label: _search_in_mode(store, mode) for label, mode in self.modes.items()}


def _search_in_mode(store: EnhancedStore, mode: str) -> Search:
    def search(question: str, limit: int) -> Answer:
        found = store.search(question, limit=limit, mode=mode)
        names = tuple(hit.name for hit in found.hits)
        return Answer(names, found.only_nearest or not names)

    return search


def simplemem_systems(embedders: Sequence[str], modes: Sequence[str]) -> list[Simplemem]:
    """Return a system per embedder, such as `wordllama` or `ollama:bge-m3`.

    The other settings are those of the user's file and of `SIMPLEMEM_…`. Words alone are searched
    with the first embedder only, since they are the same with all.
    """
    systems = []
    for number, embedder in enumerate(embedders):
        provider, _, model = embedder.partition(":")
        settings = load_settings({"embed.provider": provider, "embed.model": model or None})
        of_embedder = {}
        for label in modes:
            if label != "words" or number == 0:
                of_embedder[label] = MODES[label]
        systems.append(Simplemem(settings, embedder, of_embedder))
    return systems
