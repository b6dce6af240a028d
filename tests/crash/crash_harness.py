"""Crash or fail at a chosen system call of an operation.

The operation runs in a forked child that counts the calls that change the disk. At the chosen call
the child kills itself with SIGKILL before the call (or after half of a write), or the call fails.
What a process has passed to the kernel survives the process, so syncs are counted and not executed:
they would only make the tests slow.
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
    "open write pwrite truncate ftruncate fsync rename replace link symlink unlink remove mkdir "
    "rmdir chmod fchmod chown fchown setxattr utime"
).split()
_IN_KERNEL = ("exchange", "rename_new")


@dataclass
class Outcome:
    """How the child ended: whether it was killed, or its value, or the error that it raised."""

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
    """Run an action in a child that dies, or whose call fails, at the call number `at`, from 1.

    Without `at`, only count the calls. `also` has further functions, as (owner, name), whose calls
    are counted, for what writes without `os`, such as a database.
    """
    real_write = os.write
    real_exit = os._exit

    def run_and_report(pipe: int) -> None:
        gc.disable()  # a collection would write to, and so copy, every page shared with the parent
        calls = _count_calls(at, how, errno, also)
        try:
            outcome: tuple[Any, ...] = (calls, action(), None)
        except Exception as error:
            error.__traceback__ = error.__cause__ = error.__context__ = None
            outcome = (calls, None, error)

        answer = pickle.dumps(outcome)
        while answer:
            written = real_write(pipe, answer)
            answer = answer[written:]
        real_exit(0)

    answer, status = _fork(run_and_report)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return Outcome(died=True, calls=[])
    assert os.WEXITSTATUS(status) == 0, "the harness itself failed in the child"
    calls, value, error = pickle.loads(answer)
    return Outcome(died=False, calls=calls, value=value, error=error)


def in_child(action: Callable[[], Any]) -> Any:
    """Run an action in a child, which may change its own limits and mounts, and return its value.

    Fails the test with the traceback if the action raises an exception.
    """

    def run_and_report(descriptor: int) -> None:
        try:
            answer = (True, action())
        except BaseException:
            answer = (False, traceback.format_exc())
        with os.fdopen(descriptor, "wb") as pipe:
            pickle.dump(answer, pipe)

    answer, _ = _fork(run_and_report)
    succeeded, value = pickle.loads(answer) if answer else (False, "it ended without an answer")
    assert succeeded, value
    return value


def _fork(action: Callable[[int], None]) -> tuple[bytes, int]:
    """Run an action in a child. Return what it wrote to its pipe, and its wait status."""
    read_end, write_end = os.pipe()
    real_exit = os._exit
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        try:
            action(write_end)
            real_exit(0)
        except BaseException:
            traceback.print_exc()
            real_exit(9)

    os.close(write_end)
    with os.fdopen(read_end, "rb") as pipe:
        answer = pipe.read()
    return answer, os.waitpid(pid, 0)[1]


def _count_calls(
    at: int | None, how: str, errno: int, also: Sequence[tuple[Any, str]]
) -> list[str]:
    """Count the calls that change the disk. Return the list to which their names are added."""
    calls: list[str] = []
    real_write = os.write
    kill = os.kill
    own_pid = os.getpid()

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
                kill(own_pid, signal.SIGKILL)
            return None if name == "fsync" else real(*args, **keywords)

        return call

    for name in _IN_OS:
        setattr(os, name, wrap(name, getattr(os, name)))
    for owner, name in (*((disk, name) for name in _IN_KERNEL), *also):
        setattr(owner, name, wrap(name, getattr(owner, name)))
    return calls
