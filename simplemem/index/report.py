"""What a pass over the vault says of itself: how far it is, what it found in the end, or that it was stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Progress = Callable[[str, int, int], None]
"""Told what is being done, how many are done, and of how many."""


@dataclass(slots=True)
class SyncReport:
    """What a pass found: the names of the memories it touched, and what it could not read."""

    added: list[str] = field(default_factory=list)
    modified: list[str] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    skipped: list[tuple[str, str]] = field(default_factory=list)
    doubted: int = 0  # notes that seem to have vanished all at once, and were kept
    embedded: int = 0
    trouble: str = ""  # why vectors are missing that could not be made
    seconds: float = 0.0

    def after(self, earlier: SyncReport) -> SyncReport:
        """Two passes, told as one."""
        return SyncReport(
            earlier.added + self.added,
            earlier.modified + self.modified,
            earlier.moved + self.moved,
            earlier.removed + self.removed,
            self.skipped,
            self.doubted,
            earlier.embedded + self.embedded,
            self.trouble,
            earlier.seconds + self.seconds,
        )

    def changed(self) -> set[str]:
        """The paths of all notes whose rows are new."""
        return {*self.added, *self.modified, *self.removed, *(path for pair in self.moved for path in pair)}

    def as_dict(self) -> dict[str, Any]:
        return {
            "added": len(self.added),
            "modified": len(self.modified),
            "moved": len(self.moved),
            "removed": len(self.removed),
            "embedded": self.embedded,
            "skipped": [{"path": path, "why": why} for path, why in self.skipped],
            "doubted": self.doubted,
            "trouble": self.trouble,
            "seconds": round(self.seconds, 3),
        }


class Stopped(Exception):
    """The work was ended before it was done, at a moment where nothing is half done."""
