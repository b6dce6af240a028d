"""A folder of Markdown beside the memory, asked and written by itself: a folder of the vault, or another with a store of
its own, which is looked after for as long as the first is open."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import NamedTuple, Unpack

from simplemem.errors import Conflict, Invalid, NotFound
from simplemem.features.answers import Passage
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note.names import name_of
from simplemem.store import Draft, EnhancedStore, falling_scores


def located(folder: Path, vault: Path) -> tuple[Path, str]:
    """Where a knowledge base lies, and how its paths begin in the vault, "" beside it. Invalid where it can be none."""
    root, base = (Path(os.path.realpath(each.expanduser())) for each in (vault, folder))
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
    return base, f"{base.relative_to(root).as_posix()}/" if base.is_relative_to(root) else ""


class WrittenFile(NamedTuple):
    """A file that was written: its hash, whether it is new, else the hash of what it replaced, and the step."""

    sha256: str
    is_new: bool
    replaced: str | None
    version: str


class KnowledgeBase(FeatureService):
    """The folder that the settings name. A source and a file path are paths in it."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        if (folder := self.settings.documents.knowledge_base) is None:
            raise NotFound(
                "no knowledge base is set",
                hint="Set it with `simplemem serve --knowledge-base FOLDER`.",
            )
        base, self._prefix = located(folder, store.root)
        self._base = base
        self._beside: EnhancedStore | None = None
        if not self._prefix:
            beside = EnhancedStore(
                base,
                self.settings.model_copy(update={"db": None}),
                read_only=self.extension.read_only,
            )
            self.extension.on_close(beside.close)
            beside.start()
            self.extension = beside.extension
            self._beside = beside

    @property
    def is_beside(self) -> bool:
        """Whether its folder is none of the vault's, with a history of its own."""
        return self._beside is not None

    @property
    def notes(self) -> EnhancedStore:
        """The store that its files are notes of."""
        return self._beside or self.store

    def note_name(self, file_path: str) -> str:
        """Return the name of a file as a note of its store."""
        return name_of(f"{self._prefix}{file_path}")

    def place_of(self, file_path: str) -> str:
        """Return what tells a file from those of the vault: its path there, or the whole path of one beside it."""
        return f"{self._prefix}{file_path}" if self._prefix else str(self._base / file_path)

    def query(self, question: str, limit: int) -> tuple[list[Passage], str]:
        """Return the passages for a question, best first, and a notice where none of them answers it."""
        self.extension.catch_up()
        sources = {
            name_of(path): path
            for path in self.extension.indexed()
            if path.startswith(self._prefix)
        }
        found = self.extension.answers(question, [*sources.values()], limit, passages=limit)
        # The best passage has the score 1 among its like, however far it is from the question.
        scores = falling_scores(found.quality * piece.score for piece in found.passages)
        passages: list[Passage] = [
            {
                "content": piece.text,
                "source": sources[piece.name].removeprefix(self._prefix),
                "score": round(score, 4),
                "heading": piece.heading,
                "line": piece.line,
            }
            for piece, score in zip(found.passages, scores, strict=True)
        ]
        return passages, found.notice if passages else ""

    def update(
        self, file_path: str, content: str, known: str | None = None, **by: Unpack[AuthorArgs]
    ) -> WrittenFile:
        """Give a file this text, to the byte, whether it is there or not.

        With the hash that is `known` of it, raise Conflict if it is another text by now.
        """
        path = f"{self._prefix}{file_path}"
        if name_of(file_path) == file_path:
            raise Invalid(
                f"{file_path[:200]!r} is not a path of a note",
                hint="Give a path in the knowledge base, such as docs/plan.md.",
            )

        def draft() -> list[Draft]:
            before = self.extension.bytes_of(path)
            current = hashlib.sha256(before).hexdigest() if before is not None else None
            if (
                known
                and current not in (None, known)
                and before != content.encode("utf-8", "surrogatepass")
            ):
                hint = "query_knowledge_base shows its current text. To replace all of it, repeat the call."
                raise Conflict(
                    f"{file_path} has changed since it was written",
                    current_sha256=current,
                    hint=hint,
                )
            return [Draft(path, content, before)]

        written = self.extension.change(draft, **by).written[0]
        replaced = written.previous_sha256 if written.changed else None
        return WrittenFile(
            written.sha256 or "", written.previous_sha256 is None, replaced, written.version
        )


base_of = KnowledgeBase.of
