"""A folder of Markdown files that agents query and write: part of the vault, or beside it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Final, NamedTuple, Unpack

from simplemem.errors import Conflict, Invalid, NotFound
from simplemem.features.answers import Passage
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note.names import name_of
from simplemem.store import Draft, EnhancedStore, falling_scores


def locate_folder(folder: Path, vault: Path) -> tuple[Path, str]:
    """Return the path of a knowledge base, and its prefix in the vault, "" if it is outside.

    Raise Invalid if it is no folder, or contains the vault.
    """
    root = Path(os.path.realpath(vault.expanduser()))
    base = Path(os.path.realpath(folder.expanduser()))
    if not base.is_dir():
        raise Invalid(
            f"the knowledge base {folder} is not a folder",
            hint="Create the folder, or name another.",
        )
    if root.is_relative_to(base):
        raise Invalid(
            f"the knowledge base {folder} contains the vault",
            hint="Name a folder inside the vault, or one outside it that does not contain it.",
        )

    if not base.is_relative_to(root):
        return base, ""
    return base, f"{base.relative_to(root).as_posix()}/"


class WrittenFile(NamedTuple):
    """A file that was written."""

    sha256: str
    is_new: bool
    replaced: str | None  # the hash of the text that it replaced; None if new or unchanged
    version: str  # the name of the change in the history


class KnowledgeBase(FeatureService):
    """The knowledge base that the settings name. File paths are relative to its folder.

    Guards the store of a folder outside the vault, which is open as long as the vault's store. A
    folder inside the vault needs none: its files are notes of the vault.
    """

    def __init__(self, store: EnhancedStore) -> None:
        """Open the folder of a vault's settings. Callers use `knowledge_base_of`.

        Raise NotFound if the settings name no folder, and Invalid if it does not exist or contains
        the vault.
        """
        super().__init__(store)
        folder = self.settings.documents.knowledge_base
        if folder is None:
            raise NotFound(
                "no knowledge base is set",
                hint="Set it with `simplemem serve --knowledge-base FOLDER`.",
            )
        self._folder, self._prefix = locate_folder(folder, store.root)
        self._own_store: EnhancedStore | None = None
        if not self._prefix:
            self._own_store = self._open_own_store()
            self.extension = self._own_store.extension

    def _open_own_store(self) -> EnhancedStore:
        """Open the store of a folder outside the vault; it closes with the vault's store."""
        own_store = EnhancedStore(
            self._folder,
            self.settings.model_copy(update={"db": None}),
            read_only=self.extension.read_only,
        )
        self.extension.on_close(own_store.close)
        own_store.start()
        return own_store

    @property
    def has_own_store(self) -> bool:
        """Whether the folder is outside the vault, with a history of its own."""
        return self._own_store is not None

    @property
    def note_store(self) -> EnhancedStore:
        """The store whose notes the files are: the folder's own one, else that of the vault."""
        return self._own_store or self.store

    def note_name(self, file_path: str) -> str:
        """Return the name of a file as a note of its store."""
        return name_of(f"{self._prefix}{file_path}")

    def unique_path(self, file_path: str) -> str:
        """Return the path of a file in the vault, or its absolute path if it is outside."""
        if self._prefix:
            return f"{self._prefix}{file_path}"
        return str(self._folder / file_path)

    def query(self, question: str, limit: int) -> tuple[list[Passage], str]:
        """Return up to `limit` passages for a question, best first, and a notice.

        The notice says that no passage answers the question; it is "" if one does, or there are no
        passages. No score is higher than the one before it.
        """
        self.extension.catch_up()
        paths_by_name: dict[str, str] = {}
        for path in self.extension.indexed():
            if path.startswith(self._prefix):
                paths_by_name[name_of(path)] = path

        answers = self.extension.answers(
            question,
            [*paths_by_name.values()],
            limit,
            passages=limit,
        )
        # The search gives the best passage the score 1, however bad it is.
        own_scores = [answers.quality * passage.score for passage in answers.passages]
        passages: list[Passage] = []
        for passage, score in zip(answers.passages, falling_scores(own_scores), strict=True):
            path = paths_by_name[passage.name]
            row: Passage = {
                "content": passage.text,
                "source": path.removeprefix(self._prefix),
                "score": round(score, 4),
                "heading": passage.heading,
                "line": passage.line,
            }
            passages.append(row)

        notice = answers.notice if passages else ""
        return passages, notice

    def update(
        self,
        file_path: str,
        content: str,
        expected_sha256: str | None = None,
        **by: Unpack[AuthorArgs],
    ) -> WrittenFile:
        """Write a text to a file, byte for byte, whether or not the file exists.

        `expected_sha256` is the hash of the text that the caller has seen; without it, any text is
        replaced. `by` says who makes the change. Raise Conflict if the file has another text by
        now, Invalid if the path is not one of a note, TooLong, and ReadOnly.
        """
        if name_of(file_path) == file_path:
            raise Invalid(
                f"{file_path[:200]!r} is not a path of a note",
                hint="Give a path in the knowledge base, such as docs/plan.md.",
            )
        path = f"{self._prefix}{file_path}"

        def draft() -> list[Draft]:
            """Return the draft of the file. Raise Conflict if it has an unexpected text."""
            current = self.extension.bytes_of(path)
            if expected_sha256 and current is not None:
                _check_unchanged(file_path, current, expected_sha256, content)
            return [Draft(path, content, current)]

        written = self.extension.change(draft, **by).written[0]
        return WrittenFile(
            sha256=written.sha256 or "",
            is_new=written.previous_sha256 is None,
            replaced=written.previous_sha256 if written.changed else None,
            version=written.version,
        )


knowledge_base_of: Final = KnowledgeBase.of  # returns the one knowledge base of a store


def _check_unchanged(file_path: str, current: bytes, expected_sha256: str, content: str) -> None:
    """Raise Conflict if a file has neither the expected text nor the one to be written.

    `current` are its bytes, `expected_sha256` is the hash of the expected text, and `content` is
    the text to be written.
    """
    sha256 = hashlib.sha256(current).hexdigest()
    if sha256 == expected_sha256 or current == content.encode("utf-8", "surrogatepass"):
        return
    raise Conflict(
        f"{file_path} has changed since it was written",
        current_sha256=sha256,
        hint="query_knowledge_base shows its current text. To replace all of it, repeat the call.",
    )
