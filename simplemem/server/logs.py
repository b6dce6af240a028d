"""What the server says about itself: lines on stderr, without a word of any note and without secrets.

A failure is told by its kind and the places in the code it passed, never by its message, which may quote a note. A client
that does not read our stderr costs lines of the log, never an answer.
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
from typing import Any

log = logging.getLogger("simplemem.server")

_WAITING = 1000
"""Lines kept for a reader that is slow. More are dropped."""


class _Line(logging.Formatter):
    """One record, one line; control characters are shown, not obeyed."""

    def format(self, record: logging.LogRecord) -> str:
        when = self.formatTime(record, "%Y-%m-%dT%H:%M:%S")
        line = f"{when} {record.levelname.lower()} {record.name}: {record.getMessage()}"
        if record.exc_info and (error := record.exc_info[1]) is not None:
            places = reversed(traceback.extract_tb(error.__traceback__)[-8:])  # nearest first
            path = " < ".join(f"{os.path.basename(each.filename)}:{each.lineno} {each.name}" for each in places)
            line += f" [{type(error).__name__}{' at ' if path else ''}{path}]"
        return "".join(c if c.isprintable() else repr(c)[1:-1] for c in line)


def log_to_stderr(level: str) -> Callable[[], None]:
    """Send every log of this process to stderr, and what nobody catches, which Python would print with its message. The
    SDK speaks only of warnings: below that it quotes messages. What is returned gives the log a moment to be read before
    the process ends."""
    lines: queue.Queue[Any] = queue.Queue(_WAITING)
    handler = logging.handlers.QueueHandler(lines)
    handler.setFormatter(_Line())
    logging.raiseExceptions = False  # else a full queue would be told on the stderr that nobody reads
    writer = logging.handlers.QueueListener(lines, logging.StreamHandler(sys.stderr))
    writer.start()
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    for noisy in ("mcp", "asyncio", "watchfiles"):
        logging.getLogger(noisy).setLevel(max(logging.WARNING, root.level))
    logging.captureWarnings(True)
    threading.excepthook = lambda args: log.error(
        "the thread %s failed", args.thread and args.thread.name, exc_info=args.exc_value
    )
    sys.unraisablehook = lambda args: log.error("clearing up failed", exc_info=args.exc_value)
    sys.excepthook = lambda _kind, error, _trace: log.error("the server failed", exc_info=error)

    def last_words() -> None:
        waiting = threading.Thread(target=writer.stop, daemon=True)
        waiting.start()
        waiting.join(0.2)

    return last_words


def log_lost_task(_loop: Any, context: dict[str, Any]) -> None:
    """Have the event loop log a task that failed unheard; by itself it would print the task with its exception."""
    log.error("a task of the event loop failed", exc_info=context.get("exception"))
