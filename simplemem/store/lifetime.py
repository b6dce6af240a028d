"""How long a process uses a store, and what ends with it."""

from __future__ import annotations

from collections.abc import Callable


class Lifetime:
    """How long a store is used. Guards whether more questions will come, and what ends with it."""

    def __init__(self) -> None:
        # True if more questions will come: then it is worth loading what is slow to load.
        self.is_long = False
        self._endings: list[Callable[[], None]] = []

    def expect_more(self) -> None:
        """Record that more questions will come, as in a server."""
        self.is_long = True

    def on_close(self, end: Callable[[], None]) -> None:
        """Call a function when the store closes, after those that were added before it."""
        self._endings.append(end)

    def end(self) -> None:
        """Call the functions that were passed to `on_close`, in that order."""
        for end in self._endings:
            end()
