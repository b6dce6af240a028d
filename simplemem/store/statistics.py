"""Numbers about a vault and its index, as `stats` shows them."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from simplemem.index.engine import Engine
from simplemem.index.service import IndexService
from simplemem.store.committing import Committing
from simplemem.store.embedding import Embedding
from simplemem.store.vault_index import IndexKeeper, IndexMonitor, ObsidianSettingsCache
from simplemem.vault.source import NoteSource


class Statistics:
    """Collects numbers from the objects of a store. Guards no state of its own."""

    def __init__(
        self,
        root: Path,
        vault: NoteSource,
        index: IndexService,
        database: Engine,
        *,
        obsidian: ObsidianSettingsCache,
        keeper: IndexKeeper,
        monitor: IndexMonitor,
        embedding: Embedding,
        committing: Committing,
        read_only: bool,
    ) -> None:
        self._root = root
        self._vault = vault
        self._index = index
        self._database = database
        self._obsidian = obsidian
        self._keeper = keeper
        self._monitor = monitor
        self._embedding = embedding
        self._committing = committing
        self._read_only = read_only

    def collect(self, *, reranker: str, rerank_trouble: str) -> dict[str, Any]:
        """Return numbers about the vault and its index, by their names in the output of `stats`.

        `reranker` is the name of the reranker in use, and is returned as it is. `rerank_trouble`
        says why it does not work, or is ""; it becomes one of the `warnings`. There is a `branch`
        and a `commit` only if the vault is a branch. The index is not brought up to date first.
        """
        embedding = self._embedding.report()
        stats: dict[str, Any] = {"vault": str(self._root)}
        if self._vault.revisions is not None:
            stats["branch"] = self._vault.location
            stats["commit"] = self._index.progress().commit
        counts = self._index.counts()
        stats |= counts
        stats |= {
            "problems": self._without_templates(counts["problems"]),
            "skipped": [{"path": path, "why": why} for path, why in self._monitor.not_indexed()],
            "state": self._monitor.state().as_dict(),
            "pending_vectors": embedding["waiting"],
            "embedder": embedding["in_use"],
            "embedding": embedding,
            "reranker": reranker,
            "index_path": self._database.place,
            "index_bytes": self._database.size(),
            "engine": self._database.engine,
            "vector_storage": self._database.vector_storage,
            "lag_seconds": self._lag_seconds(),
            "read_only": self._read_only,
            "git": self._committing.state(),
            "warnings": self._warnings(rerank_trouble),
        }
        return stats

    def _without_templates(self, problems: Sequence[Mapping[str, str]]) -> list[Mapping[str, str]]:
        """Return the problems of notes other than templates, which may contain placeholders."""
        template_reason = self._obsidian.current.template_reason
        return [row for row in problems if template_reason(row["path"]) is None]

    def _lag_seconds(self) -> int | None:
        """Return how many seconds ago this process compared the vault with the index.

        Returns None if it never did.
        """
        if not self._keeper.compared_at:
            return None
        return round(time.monotonic() - self._keeper.compared_at)

    def _warnings(self, rerank_trouble: str) -> list[str]:
        """Return sentences on settings that have no effect: Obsidian's filters, and the reranker.

        `rerank_trouble` is the last of them, unless it is "".
        """
        warnings = []
        for entry, reason in self._obsidian.current.refused_filters().items():
            warnings.append(f"Obsidian's excluded-files entry {entry} is not applied: {reason}")
        if rerank_trouble:
            warnings.append(rerank_trouble)
        return warnings
