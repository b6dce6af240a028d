"""Numbers about one vault: its index, its embedder, what is left out and what is to be warned of."""

from __future__ import annotations

from typing import Any

import apsw

from simplemem.store.in_step import InStep
from simplemem.store.recall import Recall


def stats(step: InStep, recall: Recall) -> dict[str, Any]:
    """What `simplemem stats` shows, for people and programs."""
    counted = step.healing(step.index.counts)
    embedding = step.healing(step.embedding.facts)
    reranker, wrong = recall.reranker()
    files = step.index.path.parent.glob(f"{step.index.path.name}*")
    unread = step.conventions.unread_filters().items()
    warnings = [f"the excluded-files entry {entry} of Obsidian is not applied: {why}" for entry, why in unread]
    return {
        "vault": str(step.root),
        **counted,
        "skipped": [{"path": path, "why": why} for path, why in step.not_indexed()],
        "state": step.healing(step.state).as_dict(),
        "pending_vectors": embedding["waiting"],
        "embedder": embedding["in_use"],
        "embedding": embedding,
        "reranker": reranker,
        "index_path": str(step.index.path),
        "index_bytes": sum(file.stat().st_size for file in files),
        "sqlite": apsw.sqlite_lib_version(),
        "sqlite_vec": step.index.database.vectors_in_sql,
        "read_only": step.read_only,
        "git": step.committing.state(),
        "warnings": [*warnings, *filter(None, [wrong])],
    }
