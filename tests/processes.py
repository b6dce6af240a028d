"""simplemem as a process of its own that costs a test little to start.

To import what a server needs takes two seconds of processor time. A `Program` is forked from a process which has done
that once. All else is that of `python -m simplemem`: its process, environment, streams, signals and end. What concerns
the start itself is tested with `subprocess`.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_PROGRAM = [sys.executable, "-m", "simplemem"]
_DECIDED_AT_THE_START = ("PYTHON", "LC_", "LANG", "TZ", "COVERAGE")
_PR_SET_CHILD_SUBREAPER = 36
_ORDINARY = (True, None, None, None, -1, False, -1)
"""What Popen is told of signals, groups, user, mask and session, when nobody asks for anything else."""


class _ForkServer:
    """Forks programs, which are children of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = Path(__file__).with_name("forking.py")
        with theirs:
            # It ends when this process does, whose end of the channel is then closed.
            self._process = subprocess.Popen(
                [sys.executable, script, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        self._libc = ctypes.CDLL(None)

    def start(self, order: dict[str, Any], descriptors: list[int]) -> int:
        """The number of the process."""
        message = json.dumps(order | {"parent": os.getpid()}).encode()
        with self._lock:
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._channel, [message], descriptors)
                number = int(self._channel.recv(100))
                assert self._channel.recv(100) == b"adopted"
            finally:
                self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        return number


@functools.cache
def _fork_server() -> _ForkServer:
    return _ForkServer()


def _decided_at_the_start(env: dict[str, str]) -> dict[str, str]:
    return {name: env[name] for name in env if name.startswith(_DECIDED_AT_THE_START)}


class Program(subprocess.Popen[Any]):
    """`subprocess.Popen` for `[sys.executable, "-m", "simplemem", …]`.

    A forked one writes into the file `command_line_used`, as it ends, whether it came to the command line: "no" says
    that a server answered it.
    """

    def __init__(self, *given: Any, command_line_used: Path | None = None, **more: Any) -> None:
        self._command_line_used = command_line_used
        super().__init__(*given, **more)

    def _execute_child(  # type: ignore[override]
        self,
        args: Any,
        executable: Any,
        preexec_fn: Any,
        close_fds: bool,
        pass_fds: Any,
        cwd: Any,
        env: Any,
        startupinfo: Any,
        creationflags: int,
        shell: bool,
        p2cread: int,
        p2cwrite: int,
        c2pread: int,
        c2pwrite: int,
        errread: int,
        errwrite: int,
        *rest: Any,
    ) -> None:
        given = dict(os.environ if env is None else env)
        if (
            sys.platform != "linux"
            or args[:3] != _PROGRAM
            or (preexec_fn, pass_fds, executable, shell) != (None, (), None, False)
            or rest != _ORDINARY
            or _decided_at_the_start(given) != _decided_at_the_start(dict(os.environ))
        ):
            assert self._command_line_used is None, "only a forked program says so"
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *rest,
            )  # fmt: skip
            return
        order = {
            "arguments": [os.fspath(each) for each in args[3:]],
            "env": given,
            "cwd": os.getcwd() if cwd is None else os.fspath(cwd),
            "command_line_used": str(self._command_line_used or ""),
        }
        streams = [p2cread, c2pwrite, errwrite]
        ends = [own if end == -1 else end for own, end in enumerate(streams)]
        self.pid = _fork_server().start(order, ends)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def run_program(
    *arguments: str, env: dict[str, str] | None = None, given: Any = None, **more: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a command to its end, and say what it printed and how it ended."""
    command = [*_PROGRAM, *arguments]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if given is not None:
        streams["stdin"] = subprocess.PIPE
    with Program(command, env=env, **(streams | more)) as process:
        out, err = process.communicate(given, timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
