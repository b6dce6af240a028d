"""The log of a server: one line per record, to stderr.

A record of an error has its type and place, never its message, which may quote a note.
"""

from __future__ import annotations

import logging
import logging.handlers
import os
import queue
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any

from simplemem.server.executor import finishes_within

log = logging.getLogger("simplemem.server")

_MAX_WAITING_LINES = 1000  # a reader that is slower loses the others
_MAX_PLACES = 8  # of a traceback
_FLUSH_SECONDS = 0.2


class _OneLineFormatter(logging.Formatter):
    """Formats a record as one line, with its control characters escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as a line: time, level, logger, message, and the place of an error."""
        time = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        level = record.levelname.lower()
        text = f"{time} {level} {record.name}: {record.getMessage()}"
        if record.exc_info and record.exc_info[1] is not None:
            text += f" [{_type_and_place(record.exc_info[1])}]"
        return "".join(_escape(character) for character in text)


def _type_and_place(error: BaseException) -> str:
    """Return the type of an error and the places in its traceback, the innermost first.

    At most the eight innermost places are named.
    """
    name = type(error).__name__
    frames = traceback.extract_tb(error.__traceback__)[-_MAX_PLACES:]
    if not frames:
        return name

    places = []
    for frame in reversed(frames):
        file = os.path.basename(frame.filename)
        places.append(f"{file}:{frame.lineno} {frame.name}")
    return f"{name} at {' < '.join(places)}"


def _escape(character: str) -> str:
    """Return a printable character, or the escape of another, such as `\\n`."""
    if character.isprintable():
        return character
    return repr(character)[1:-1]


def log_to_stderr(level: str) -> Callable[[], object]:
    """Send all logs and uncaught errors to stderr, from a thread of its own.

    Replaces the handlers of the root logger and the hooks for uncaught errors of this process.
    Returns a function that writes what is left, to be called at the end of the process; it takes at
    most 0.2 seconds. `level` is that of simplemem's own loggers, which never write the text of a
    note or a key. Libraries log whole messages and requests below WARNING, so their level is never
    below it. If stderr is read too slowly, lines are lost.
    """
    lines: queue.Queue[Any] = queue.Queue(_MAX_WAITING_LINES)
    handler = logging.handlers.QueueHandler(lines)
    handler.setFormatter(_OneLineFormatter())
    # Otherwise a full queue would be reported on the stderr that nobody reads.
    logging.raiseExceptions = False
    writer = logging.handlers.QueueListener(lines, logging.StreamHandler(sys.stderr))
    writer.start()

    root = logging.getLogger()
    root.handlers[:] = [handler]
    own = logging.getLogger("simplemem")
    own.setLevel(level.upper())
    root.setLevel(max(logging.WARNING, own.level))
    logging.captureWarnings(True)

    threading.excepthook = _log_thread_error
    sys.unraisablehook = lambda args: log.error("cleanup failed", exc_info=args.exc_value)
    sys.excepthook = _log_error
    return partial(finishes_within, _FLUSH_SECONDS, writer.stop)


def _log_thread_error(args: threading.ExceptHookArgs) -> None:
    """Log an error that ended a thread, as `threading.excepthook`."""
    name = None
    if args.thread is not None:
        name = args.thread.name
    log.error("the thread %s failed", name, exc_info=args.exc_value)


def _log_error(
    _type: type[BaseException], error: BaseException, _traceback: TracebackType | None
) -> None:
    """Log an error that ends the process, as `sys.excepthook`."""
    log.error("the server failed", exc_info=error)
