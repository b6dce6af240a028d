"""What a search needs beside the index: protocols that the store's objects satisfy.

The classes of this package receive such objects in their constructors. `store/` makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from simplemem.index.api import IndexProgress, NoteRow
from simplemem.index.changes import Origin
from simplemem.index.vectors import QueryVector
from simplemem.models import IndexState
from simplemem.providers.api import Embedder
from simplemem.search.judgement import Coverage

T = TypeVar("T")


class NoteFile(Protocol):
    """The content of a note's file, from one moment."""

    @property
    def data(self) -> bytes:
        """The bytes of the file."""

    @property
    def sha256(self) -> str:
        """The hash of the bytes."""


class NoteReader(Protocol):
    """Reads the files of notes."""

    def text_of(self, path: str) -> str | None:
        """Return the text of a note as it is now; None if it was deleted or must not be read.

        Raises Unavailable if nothing can be read at the moment.
        """

    def file(self, path: str) -> NoteFile | None:
        """Return the content of a note's file as it is now; None if there is none.

        Raises a SimplememError if it cannot be read.
        """


class NameResolver(Protocol):
    """Finds notes by what people call them."""

    def path_of(self, name: str) -> str:
        """Return the path of the note that a name, title, alias or wikilink means.

        Raises NotFound, with similar names, and Ambiguous.
        """


class IndexKeeper(Protocol):
    """Brings the index up to date with the notes."""

    def prepare(self, *, vectors: bool = True) -> None:
        """Bring the index up to date before it is asked, as far as a second of work goes.

        `vectors` are made for as long. Never raises: the question itself meets what is wrong.
        """

    def revalidated(self, ask: Callable[[], T], rows: Callable[[T], Iterable[NoteRow]]) -> T:
        """Return the answer of `ask`, asked again if a note it is made of has changed on the disk.

        `rows` returns the notes that an answer shows. Those that changed are indexed first.
        """


class IndexMonitor(Protocol):
    """Tells how far the index can be trusted."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether only a scan of the whole vault can tell which notes the index lacks."""

    @property
    def is_behind(self) -> bool:
        """Whether notes may be missing from the index."""

    def state(self, status: IndexProgress | None = None) -> IndexState:
        """Return the state of the index now, or at the time of `status`."""

    def state_if_behind(self) -> IndexState | None:
        """Return the state of the index if notes may be missing from it; else None."""

    def state_of_answer(
        self,
        state_behind: IndexState | None,
        status: IndexProgress | None = None,
    ) -> IndexState:
        """Return the state of the index that an answer was made of.

        `state_behind` is the result of `state_if_behind` before the question.
        """

    def state_of_list(self, state_behind: IndexState | None) -> IndexState:
        """Return the same for a list, which is complete without vectors."""

    def not_indexed(self) -> list[tuple[str, str]]:
        """Return the paths of files that are not in the index, each with the reason."""


class Authors(Protocol):
    """Knows from the change log who wrote the notes."""

    def newest(self) -> int:
        """Return the number of the last change, after the index has followed the log."""

    def last_author(self, sha256: str) -> Origin:
        """Return who wrote a text first; a person if no change of simplemem did."""


class Embeddings(Protocol):
    """The embedder of the vault."""

    def load(self) -> tuple[Embedder | None, str]:
        """Return the embedder of the settings, or None and a sentence that says why."""

    def embed_query(
        self,
        text: str,
        status: IndexProgress | None = None,
    ) -> tuple[QueryVector | None, str]:
        """Return the vector of a question and a sentence on what limits the search, "" if nothing.

        The vector is None if it could not be compared with those of the index.
        """

    def coverage(self) -> Coverage | None:
        """Return what tells how well a passage covers the words of a question; None without
        vectors.
        """
