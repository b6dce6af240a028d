"""State that is in no note, such as counters and what was imported: a log of JSON lines.

`EventLog` is for any feature that needs such state.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from typing import Any, Final, Generic, TypeVar

from simplemem.errors import SimplememError, Unavailable
from simplemem.store import ExtensionAPI

State = TypeVar("State")
Event = Mapping[str, Any]

_ADD_TIMEOUT: Final = 0.25  # seconds


class EventLog(Generic[State]):
    """Guards a file below `.simplemem/`, and the state that results from the events in it.

    An event is a JSON object. Several processes may append events to the file. It is thread-safe.
    """

    def __init__(
        self,
        extension: ExtensionAPI,
        name: str,
        empty: Callable[[], State],
        apply: Callable[[State, Event], None],
    ) -> None:
        """Name the file by its path below `.simplemem/`. Nothing is read or written yet.

        `empty` returns a new state without events. `apply` changes a state, its first argument, by
        one event. It should ignore an event that it does not know; what it raises, `state` raises,
        except ValueError and RecursionError, which skip the event.
        """
        self._extension = extension
        self._file = extension.side_file(name)
        self._empty = empty
        self._apply = apply
        self._guard = threading.RLock()
        self._state = empty()

    def state(self) -> State:
        """Return a shallow copy of the state after all events, those of other processes included.

        Lines that are not JSON objects are skipped. A file that does not exist or cannot be read
        has no events.
        """
        with self._guard:
            lines, is_replaced = self._file.follow()
            if is_replaced:
                self._state = self._empty()

            for line in lines.split(b"\n"):
                with suppress(ValueError, RecursionError):
                    event = json.loads(line)
                    if isinstance(event, dict):
                        self._apply(self._state, event)
            return copy(self._state)

    def add(self, event: Event) -> None:
        """Append an event for the next call of `state`. Raise nothing.

        The event is lost if the store is read-only, the log cannot be written, or another process
        keeps it locked for longer than a quarter of a second.
        """
        if self._extension.read_only:
            return
        with self._guard, suppress(OSError, SimplememError):  # noqa: SIM117
            with self._file.locked(_ADD_TIMEOUT) as is_locked:
                if is_locked:
                    self._file.append(_encode(event))

    @contextmanager
    def exclusive(self, timeout: float) -> Iterator[Callable[[Event], None]]:
        """Lock the log, and yield a function that appends an event and syncs it to the disk.

        Raise ReadOnly if the vault may not be changed, Unavailable if another process keeps the
        lock for longer than `timeout` seconds, and ReadOnly, Invalid, Unavailable or OSError if the
        log cannot be written. The function that is yielded raises these too.
        """
        self._extension.must_be_writable()
        with self._guard, self._file.locked(timeout) as is_locked:
            if not is_locked:
                raise Unavailable(
                    "another process is still working on this vault",
                    hint="Try again when it is done.",
                )
            self._file.append(b"")  # fails here, before the caller has done anything

            def append(event: Event) -> None:
                self._file.append(_encode(event), sync=True)

            yield append


def _encode(event: Event) -> bytes:
    """Return an event as a line of the log."""
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"
