"""What no note holds: counters, decisions, what was imported. Lines of JSON under `.simplemem/`, only ever added.

Several processes add to one log. It is derived from nothing and never rebuilt; what is no line of ours is passed over.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any, Final, Generic, TypeVar

from simplemem.errors import SimplememError, Unavailable
from simplemem.store import Bench

S = TypeVar("S")
Line = Mapping[str, Any]
_PATIENCE: Final = 0.25  # seconds; lines that find no turn go with the next ones


class StateLog(Generic[S]):
    """One log, and the state that its lines make: `fold` takes one into it, and passes over what it does not know.
    Where nothing can be written, what is added is this process's alone. Any thread may ask."""

    def __init__(self, bench: Bench, name: str, empty: Callable[[], S], fold: Callable[[S, Line], None]) -> None:
        self._bench = bench
        self._file = bench.side(name)
        self._empty, self._fold = empty, fold
        self._guard = threading.RLock()
        self._state = empty()
        self._pending = b""

    def state(self) -> S:
        """What all lines make, those of other processes too."""
        with self._guard:
            lines, is_another = self._file.follow()
            if is_another:
                self._state = self._empty()
            self._take(self._state, lines)
            state = copy(self._state)
            self._take(state, self._pending)
            return state

    def add(self, line: Line) -> None:
        """Add a line."""
        with self._guard:
            self._pending += _encoded(line)
            if not self._bench.read_only:
                with suppress(OSError, SimplememError), self._file.held(_PATIENCE) as has_turn:
                    if has_turn:
                        self._file.append(self._pending)
                        self._pending = b""

    @contextmanager
    def held(self, patience: float) -> Iterator[Callable[[Line], None]]:
        """Hold the log: whoever else wants to add to it waits. Yields what adds a line and has it on the disk."""
        self._bench.must_be_writable()
        with self._guard, self._file.held(patience) as has_turn:
            if not has_turn:
                raise Unavailable("another process has been at work for long", hint="Try again when it is done.")
            self._file.append(b"")  # whatever is in the way of writing is found before anything is done
            yield lambda line: self._file.append(_encoded(line), sync=True)

    def _take(self, state: S, lines: bytes) -> None:
        for line in lines.split(b"\n"):
            with suppress(ValueError, RecursionError):
                said = json.loads(line)
                if isinstance(said, dict):
                    self._fold(state, said)


def _encoded(line: Line) -> bytes:
    return json.dumps(line, separators=(",", ":")).encode() + b"\n"
