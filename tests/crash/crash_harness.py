"""Dying, or failing, at every system call of an operation: how the crash tests do it.

The operation runs in a forked child in which each call that changes the disk goes through a counter. At the chosen call
the child kills itself with SIGKILL before making it (or after half of a write), or the call fails. A process that dies
keeps what the kernel was already told, so syncing is counted but left out: it would only make the tests slow.
"""

from __future__ import annotations

import gc
import os
import pickle
import signal
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from simplemem.vault.folder import disk

_IN_OS = (
    "open write pwrite truncate ftruncate fsync rename replace link symlink unlink remove mkdir rmdir chmod fchmod chown "
    "fchown setxattr utime"
).split()
_IN_KERNEL = ("exchange", "rename_new")


@dataclass
class Outcome:
    """How the child ended: `died` by our hand, or what it returned, or the error it raised."""

    died: bool
    calls: list[str]
    value: Any = None
    error: BaseException | None = None


def run(
    action: Callable[[], Any],
    *,
    at: int | None = None,
    how: Literal["die", "half", "fail"] = "die",
    errno: int = 0,
    also: Sequence[tuple[Any, str]] = (),
) -> Outcome:
    """Run `action` in a child; at its call number `at` (from 1) let it die or fail. Without `at`, only count. `also`
    names further functions, as (owner, name), whose calls are counted: what writes without `os`, such as a database.
    """
    write, leave = os.write, os._exit

    def counted(writing: int) -> None:
        gc.disable()  # a collection would touch, and so copy, every page that the child shares with us
        calls = _wire(at, how, errno, also)
        try:
            told: tuple[Any, ...] = (calls, action(), None)
        except Exception as error:
            error.__traceback__ = error.__cause__ = error.__context__ = None
            told = (calls, None, error)
        answer = pickle.dumps(told)
        while answer:
            answer = answer[write(writing, answer) :]
        leave(0)

    answer, status = _forked(counted)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return Outcome(died=True, calls=[])
    assert os.WEXITSTATUS(status) == 0, "the harness itself failed in the child"
    calls, value, error = pickle.loads(answer)
    return Outcome(died=False, calls=calls, value=value, error=error)


def in_child(action: Callable[[], Any]) -> Any:
    """What `action` returns in a child, which may ruin its own limits and mounts. Its exceptions come back as text."""

    def told(writing: int) -> None:
        try:
            answer = (True, action())
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(writing, "wb") as pipe:
            pickle.dump(answer, pipe)

    answer, _ = _forked(told)
    fine, value = pickle.loads(answer) if answer else (False, "it ended without an answer")
    assert fine, value
    return value


def _forked(action: Callable[[int], None]) -> tuple[bytes, int]:
    """What a child writes to the descriptor it is given, and how it ended."""
    reading, writing = os.pipe()
    leave = os._exit
    pid = os.fork()
    if pid == 0:
        os.close(reading)
        try:
            action(writing)
            leave(0)
        except BaseException:
            traceback.print_exc()
            leave(9)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    return answer, os.waitpid(pid, 0)[1]


def _wire(at: int | None, how: str, errno: int, also: Sequence[tuple[Any, str]]) -> list[str]:
    """Put the counter around every call that changes the disk; the list it fills names the calls made."""
    calls: list[str] = []
    real_write, kill, me = os.write, os.kill, os.getpid()

    def wrap(name: str, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            if name == "open" and not args[1] & os.O_CREAT:
                return real(*args, **keywords)
            calls.append(name)
            if len(calls) == at:
                if how == "fail":
                    raise OSError(errno, os.strerror(errno))
                if how == "half" and name == "write":
                    real_write(args[0], bytes(args[1])[: len(args[1]) // 2])
                kill(me, signal.SIGKILL)
            return None if name == "fsync" else real(*args, **keywords)

        return call

    for name in _IN_OS:
        setattr(os, name, wrap(name, getattr(os, name)))
    for owner, name in (*((disk, name) for name in _IN_KERNEL), *also):
        setattr(owner, name, wrap(name, getattr(owner, name)))
    return calls
