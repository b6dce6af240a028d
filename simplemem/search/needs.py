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
        """Return the text of a note as it is now; None if it is not there, or cannot be read.

        Bytes that are not UTF-8 are replaced. None also if the note must not be read. Raises
        Unavailable if nothing can be read at the moment.
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
        """Bring the index up to date before a question, with at most about a second of work.

        A vault that was never scanned is read completely. With `vectors`, missing vectors are made
        too, for at most about another second. Never raises for a vault or an index that fails: the
        question that follows then raises the error.
        """

    def revalidated(self, ask: Callable[[], T], rows: Callable[[T], Iterable[NoteRow]]) -> T:
        """Return the answer of `ask`, asked again if a note in it has changed on the disk.

        `rows` returns the notes that an answer shows. Those that changed are indexed before the
        next call. If they cannot be indexed now, the last answer is returned. `ask` may be called
        several times, so it must have no effects. Raises what `ask` raises.
        """


class IndexMonitor(Protocol):
    """Tells how far the index can be trusted."""

    @property
    def is_in_doubt(self) -> bool:
        """Whether the index may differ from the vault until a scan of the whole vault.

        So it is before the first scan, after many notes vanished at once, and while notes that were
        written could not be indexed. `is_behind` may be False then.
        """

    @property
    def is_behind(self) -> bool:
        """Whether notes that were not read yet may be missing from the index.

        So it is before the first scan, while the background thread compares the vault, and while
        the index has notes to read. Independent of `is_in_doubt`.
        """

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

        `state_behind` is the result of `state_if_behind` before the question. If it is None, the
        state at the time of `status` is returned, or the state now without a `status`. What an
        answer may lack also becomes a notice of the calling thread.
        """

    def state_of_list(self, state_behind: IndexState | None) -> IndexState:
        """Return the state of the index that a list of notes was made of.

        Like `state_of_answer`, but an index that lacks only vectors is ready: a list needs none.
        """

    def not_indexed(self) -> list[tuple[str, str]]:
        """Return the paths of files that are not in the index, each with the reason."""


class Authors(Protocol):
    """Knows from the change log who wrote the notes."""

    def newest(self) -> int:
        """Copy new changes of the log into the index; return the number of the last one, or 0."""

    def first_author(self, sha256: str) -> Origin:
        """Return who first wrote the text of a hash; a person if simplemem did not.

        Undoing and restoring do not count.
        """


class Embeddings(Protocol):
    """The embedder of the vault."""

    def load(self) -> tuple[Embedder | None, str]:
        """Return the embedder of the settings, or None and a sentence that says why.

        The sentence is "" if there is an embedder, and if the settings name none.
        """

    def embed_query(
        self,
        text: str,
        status: IndexProgress | None = None,
    ) -> tuple[QueryVector | None, str]:
        """Return the vector of a question and a sentence on what limits the search, "" if nothing.

        The vector is None without an embedder, if the embedder fails, or if the vector cannot be
        compared with those of the index. `status` is how far the index is; None to ask it.
        """

    def coverage(self) -> Coverage | None:
        """Return what measures how well a passage covers the words of a question.

        Returns None if there are no vectors of words to compare.
        """
