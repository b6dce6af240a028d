"""What happens behind the answers is waited for, not timed: one way to wait, and a store whose background is at work."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

PLAIN = Settings.model_validate({"embed": {"provider": "none"}})
PATIENCE = 30.0  # a bound for a machine under load, and no claim


def eventually(holds: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Whether it comes true while we wait."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.02)
    return holds()


@contextmanager
def served(vault: Path, settings: Settings = PLAIN) -> Iterator[EnhancedStore]:
    """A store whose background looks after the vault, once it has read all of it."""
    with EnhancedStore(vault, settings) as store:
        store.start()
        assert store.wait_until_settled(PATIENCE)
        yield store


def indexed(store: EnhancedStore) -> dict[str, str]:
    """The notes that the index knows, with their hashes: what a search would see without looking twice."""
    return dict(store._parts.index.database.rows("SELECT path, sha256 FROM notes"))


def write_many_notes(vault: Path, count: int = 3_000) -> None:
    """Write more notes than are indexed in a second: each is of a `plum` of its number."""
    filler = " ".join(f"Sentence {number} tells of an orchard by the sea." for number in range(30))
    for number in range(count):
        (vault / f"plum {number}.md").write_text(
            f"# Plum {number}\n\nThe plum{number} fell. {filler}\n"
        )
