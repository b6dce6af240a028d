"""How long a process uses a store, and what ends with it."""

from __future__ import annotations

from collections.abc import Callable


class Lifetime:
    """Guards whether more questions will come, and what has to be ended when the store closes."""

    def __init__(self) -> None:
        # If it is long, what is slow to load may be loaded for later questions.
        self.is_long = False
        self._endings: list[Callable[[], None]] = []

    def expect_more(self) -> None:
        """Note that more questions will come."""
        self.is_long = True

    def on_close(self, end: Callable[[], None]) -> None:
        """Call a function when the store closes, after those that were added before it."""
        self._endings.append(end)

    def end(self) -> None:
        """Call what has to be ended."""
        for end in self._endings:
            end()
