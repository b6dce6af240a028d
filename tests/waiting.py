"""Wait for what happens in the background instead of timing it, and a store whose background works."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

PLAIN = Settings.model_validate({"embed": {"provider": "none"}})
PATIENCE = 30.0  # an upper bound for a machine under load; no test asserts a duration


def eventually(condition: Callable[[], bool], seconds: float = PATIENCE) -> bool:
    """Return whether the condition becomes true within some seconds; return as soon as it does."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.02)
    return condition()


@contextmanager
def served(vault: Path, settings: Settings = PLAIN) -> Iterator[EnhancedStore]:
    """Yield a store whose background watches the vault, once it has indexed all notes."""
    with EnhancedStore(vault, settings) as store:
        store.start()
        assert store.wait_until_settled(PATIENCE)
        yield store


def indexed(store: EnhancedStore) -> dict[str, str]:
    """Return the hash of each note in the index, by its path, without comparing with the files."""
    return dict(store._parts.index.database.rows("SELECT path, sha256 FROM notes"))


def write_many_notes(vault: Path, count: int = 3_000) -> None:
    """Write more notes than are indexed in a second. Each contains the word `plum` with its number."""
    filler = " ".join(f"Sentence {number} tells of an orchard by the sea." for number in range(30))
    for number in range(count):
        text = f"# Plum {number}\n\nThe plum{number} fell. {filler}\n"
        (vault / f"plum {number}.md").write_text(text)
