"""Questions to an index that may be gone, replaced or damaged under them: then it is made anew, and they are asked again."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TypeVar

from simplemem.errors import Unavailable
from simplemem.index.failures import Damaged, Replaced, SqliteError
from simplemem.index.sidecar import Sidecar

T = TypeVar("T")
_CHECK_SECONDS = 24 * 3600.0
_TRIES = 5
_LOG = logging.getLogger(__name__)


class Healing:
    """One index, asked through this. `begin_anew` is called when another file lies where it was, which may be empty."""

    def __init__(self, index: Sidecar, begin_anew: Callable[[], None]) -> None:
        self._index = index
        self._begin_anew = begin_anew
        self._generation = index.generation

    @property
    def generation(self) -> int:
        """That of the index file as it was when it was last asked."""
        return self._generation

    def ask(self, question: Callable[[], T]) -> T:
        """Answer, and if the index turns out to be gone or damaged, make it anew and answer then."""
        generation = self.generation_now()
        if generation != self._generation:
            self._take_up(generation)
        try:
            return question()
        except Replaced:
            return self._ask_again(question)
        except (Damaged, SqliteError, TypeError, ValueError) as error:
            if not self._is_damage(error):
                raise
            self._make_anew(error)
            return question()

    def check(self) -> None:
        """Once a day, look for damage that no question has met yet: what it hides would be missing from answers."""
        database = self._index.database
        last = float(self.ask(lambda: database.meta("checked")) or 0)
        if abs(time.time() - last) < _CHECK_SECONDS:
            return
        if found := database.check():
            self._make_anew(found[0])
        self.ask(lambda: database.set_meta("checked", f"{time.time():.0f}"))

    def generation_now(self) -> int:
        """That of the file that lies there now, one made anew if it is damaged."""
        try:
            return self._index.generation
        except Damaged:
            self._index.database.discard()
            return self._index.generation

    def _ask_again(self, question: Callable[[], T]) -> T:
        """The index was replaced in the middle of a question."""
        for _ in range(_TRIES):
            self._take_up(self.generation_now())
            with suppress(Replaced):
                return question()
        raise Unavailable("the index is replaced again and again", hint="Does another program delete it?")

    def _make_anew(self, found: object) -> None:
        _LOG.warning("the index is damaged and will be rebuilt: %s", found)
        self._index.database.discard()
        self._take_up(self._index.generation)

    def _take_up(self, generation: int) -> None:
        self._generation = generation
        self._begin_anew()

    def _is_damage(self, error: Exception) -> bool:
        """Whether a question failed because the index says what we never wrote: not every damage shows as one to SQLite."""
        if isinstance(error, (Damaged, json.JSONDecodeError, UnicodeDecodeError)):
            return True
        return bool(self._index.database.check())
