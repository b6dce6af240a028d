"""Catching up at the cost of what has changed, for whoever asks often: the kernel has a list of that, once it was asked
for one. Without it, or where anything is in doubt, the whole vault is compared."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from simplemem.errors import SimplememError

if TYPE_CHECKING:
    from simplemem.store.core import Core
    from simplemem.vault.watch import RecentChanges


class CatchingUp:
    """What one store knows of the vault as it was when all of it was last compared."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._guard = threading.Lock()
        self._changed: RecentChanges | None = None
        self._seen_whole_at = 0.0
        self._seen_whole: int | None = None  # the generation of the index that was compared with the whole vault

    def catch_up(self) -> None:
        """Have the index know all that was saved up to this moment."""
        core = self._core
        with self._guard:
            core.vault.finish_interrupted()
            # Whatever fails from here on, the next time all is compared.
            seen, self._seen_whole = self._seen_whole, None
            paths = self._changed.paths() if self._changed is not None and seen == core.generation_now() else None
            long_ago = time.monotonic() - self._seen_whole_at > 60 * core.settings.index.scan_minutes
            if paths is None or long_ago or core.is_in_doubt:
                self._listen()
                core.catch_up()
                self._seen_whole_at = time.monotonic()
            else:
                changed = {path for path in paths if not self._is_as_known(path)}
                if changed:
                    core.look_at(changed)
            self._seen_whole = core.generation

    def end(self) -> None:
        if self._changed is not None:
            self._changed.end()

    def _listen(self) -> None:
        """From now on, where the settings have us listen to the kernel at all."""
        if self._changed is None and self._core.settings.index.watch == "auto":
            from simplemem.vault.watch import RecentChanges

            self._changed = RecentChanges(self._core.root)
        if self._changed is not None:
            self._changed.begin()

    def _is_as_known(self, path: str) -> bool:
        """Whether a note is, to the byte, what the index knows: mostly it was we who changed it."""
        known = self._core.index.known(path)
        try:
            return known is not None and self._core.vault.read(path).sha256 == known.sha256
        except SimplememError:
            return False
