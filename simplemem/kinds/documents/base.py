"""A folder of Markdown beside the memory, asked and written by itself: a folder of the vault, or another with a store of
its own, which is looked after for as long as the first is open."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Unpack

from simplemem.errors import Invalid, NotFound
from simplemem.kinds.answers import Passage, Written
from simplemem.kinds.kind import Keeper
from simplemem.memory import By
from simplemem.note.names import name_of
from simplemem.store import Draft, EnhancedStore, falling_scores


def located(folder: Path, vault: Path) -> tuple[Path, str]:
    """Where a knowledge base lies, and how its paths begin in the vault, "" beside it. Invalid where it can be none."""
    root, base = (Path(os.path.realpath(each.expanduser())) for each in (vault, folder))
    if not base.is_dir():
        raise Invalid(f"the knowledge base {folder} is no folder", hint="Make it, or name another.")
    if root.is_relative_to(base):
        raise Invalid(f"the knowledge base {folder} holds the vault", hint="Name a folder in it, or beside it.")
    return base, f"{base.relative_to(root).as_posix()}/" if base.is_relative_to(root) else ""


class KnowledgeBase(Keeper):
    """The folder that the settings name. A source and a file path are paths in it."""

    def __init__(self, store: EnhancedStore) -> None:
        super().__init__(store)
        if (folder := self.settings.documents.knowledge_base) is None:
            raise NotFound("there is no knowledge base", hint="`simplemem serve --knowledge-base FOLDER` names one.")
        base, self._prefix = located(folder, store.root)
        if not self._prefix:
            beside = EnhancedStore(base, self.settings.model_copy(update={"db": None}), read_only=self.bench.read_only)
            self.bench.closing.append(beside.close)
            beside.start()
            self.bench = beside.bench

    def query(self, question: str, limit: int) -> tuple[list[Passage], str]:
        """Return the passages for a question, best first, and a notice where none of them answers it."""
        self.bench.catch_up()
        sources = {name_of(path): path for path in self.bench.indexed() if path.startswith(self._prefix)}
        found = self.bench.answers(question, [*sources.values()], limit, passages=limit)
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

    def update(self, file_path: str, content: str, **by: Unpack[By]) -> Written:
        """Give a file this text, to the byte, whether it is there or not."""
        path = f"{self._prefix}{file_path}"
        if name_of(file_path) == file_path:
            raise Invalid(f"{file_path[:200]!r} is no path of a note", hint="Give one in the folder: docs/plan.md")
        written = self.bench.change(lambda: [Draft(path, content, self.bench.bytes_of(path))], **by).written[0]
        return {"file_path": file_path, "sha256": written.sha256 or "", "created": written.previous_sha256 is None}


base_of = KnowledgeBase.of
