"""What of a note is shown for a question."""

from __future__ import annotations

from simplemem.index.sidecar import Sidecar
from simplemem.index.text import Place


def nearest_place(index: Sidecar, note: int, vector: bytes | None) -> Place | None:
    """The place of a note that is nearest to a question's vector."""
    best = index.nearest_place(note, vector) if vector is not None else None
    return None if best is None else index.places([best]).get(best)
