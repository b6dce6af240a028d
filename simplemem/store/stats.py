"""Numbers about one vault: its index, its embedder, what is left out and what is to be warned of."""

from __future__ import annotations

from typing import Any

import apsw

from simplemem.store.core import Core
from simplemem.store.recall import Recall


def stats(core: Core, recall: Recall) -> dict[str, Any]:
    """What `simplemem stats` shows, for people and programs."""
    counted = core.index.counts()
    embedding = core.embedding.facts()
    reranker, wrong = recall.reranker()
    files = core.index.path.parent.glob(f"{core.index.path.name}*")
    unread = core.conventions.unread_filters().items()
    warnings = [f"the excluded-files entry {entry} of Obsidian is not applied: {why}" for entry, why in unread]
    return {
        "vault": str(core.root),
        **counted,
        "skipped": [{"path": path, "why": why} for path, why in core.not_indexed()],
        "state": core.state().as_dict(),
        "pending_vectors": embedding["waiting"],
        "embedder": embedding["in_use"],
        "embedding": embedding,
        "reranker": reranker,
        "index_path": str(core.index.path),
        "index_bytes": sum(file.stat().st_size for file in files),
        "sqlite": apsw.sqlite_lib_version(),
        "sqlite_vec": core.index.database.vectors_in_sql,
        "read_only": core.read_only,
        "git": core.committing.state(),
        "warnings": [*warnings, *filter(None, [wrong])],
    }
