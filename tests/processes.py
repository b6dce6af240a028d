"""simplemem in a process of its own, which a test starts quickly.

To import the modules of a server takes two seconds of CPU time. A `Program` is forked from a process
that has imported them. Everything else is as with `python -m simplemem`: process, environment,
streams, signals and exit. Tests of the start itself use `subprocess`.
"""

from __future__ import annotations

import ctypes
import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

_PROGRAM = [sys.executable, "-m", "simplemem"]
_PR_SET_CHILD_SUBREAPER = 36
# Variables that a process reads only when it starts: a forked one cannot have others than its parent.
_READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "COVERAGE")
# What Popen passes on for signals, groups, user, umask and session by default.
_DEFAULT_PROCESS_OPTIONS = (True, None, None, None, -1, False, -1)


class _ForkServer:
    """A process that forks programs on request. The programs become children of this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel, remote_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = Path(__file__).with_name("forking.py")
        with remote_end:
            # It exits together with this process, because that closes this end of the channel.
            self._process = subprocess.Popen(
                [sys.executable, script, str(remote_end.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[remote_end.fileno()],
            )
        self._libc = ctypes.CDLL(None)

    def start(self, order: dict[str, Any], descriptors: list[int]) -> int:
        """Start a program with these streams, and return its process id."""
        message = json.dumps(order | {"parent": os.getpid()}).encode()
        with self._lock:
            self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._channel, [message], descriptors)
                pid = int(self._channel.recv(100))
                assert self._channel.recv(100) == b"adopted"
            finally:
                self._libc.prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        return pid


_fork_server_lock = threading.Lock()
_fork_servers: list[_ForkServer] = []


def _fork_server() -> _ForkServer:
    """Return the fork server of this process.

    Threads that ask at the same time get the same one: with two, each would turn off the adoption
    of orphans while the other needs it.
    """
    with _fork_server_lock:
        if not _fork_servers:
            _fork_servers.append(_ForkServer())
        return _fork_servers[0]


def _variables_read_at_start(env: dict[str, str]) -> dict[str, str]:
    return {name: env[name] for name in env if name.startswith(_READ_AT_START)}


class Program(subprocess.Popen[Any]):
    """`subprocess.Popen` for `[sys.executable, "-m", "simplemem", …]`.

    It is forked if its options permit that, and started otherwise. When a forked one exits, it
    writes into the file `command_line_used` whether it imported the command line: "no" means that a
    server answered the command.

    A program with another PYTHONPATH is forked only with `late_path`: it gets the path after the
    modules of simplemem were imported, and so imports no `sitecustomize` from it.
    """

    def __init__(
        self,
        *arguments: Any,
        command_line_used: Path | None = None,
        late_path: bool = False,
        **options: Any,
    ) -> None:
        self._command_line_used = command_line_used
        self._late_path = late_path
        super().__init__(*arguments, **options)

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
        *process_options: Any,
    ) -> None:
        """Fork the program instead of starting it. Overrides the method of Popen."""
        variables = dict(os.environ if env is None else env)
        read_at_start = _variables_read_at_start(variables)
        if self._late_path:
            read_at_start.pop("PYTHONPATH", None)
        must_be_started = (
            sys.platform != "linux"
            or args[:3] != _PROGRAM
            or (preexec_fn, pass_fds, executable, shell) != (None, (), None, False)
            or process_options != _DEFAULT_PROCESS_OPTIONS
            or read_at_start != _variables_read_at_start(dict(os.environ))
        )
        if must_be_started:
            assert self._command_line_used is None, "only a forked program reports this"
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *process_options,
            )  # fmt: skip
            return

        order = {
            "arguments": [os.fspath(argument) for argument in args[3:]],
            "env": variables,
            "cwd": os.getcwd() if cwd is None else os.fspath(cwd),
            "command_line_used": str(self._command_line_used or ""),
        }
        # -1 means that the program shares a stream of this process.
        streams = [
            standard if descriptor == -1 else descriptor
            for standard, descriptor in enumerate([p2cread, c2pwrite, errwrite])
        ]
        self.pid = _fork_server().start(order, streams)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]

    def __exit__(self, error_type: type[BaseException] | None, *error: Any) -> None:
        """Wait for the program, as Popen does. Kill it first if the test failed meanwhile."""
        if error_type is not None:
            self.kill()
        super().__exit__(error_type, *error)


def run_program(
    *arguments: str, env: dict[str, str] | None = None, stdin_data: Any = None, **options: Any
) -> subprocess.CompletedProcess[Any]:
    """Run a command, wait for it, and return its output and exit code. `options` are those of Popen.

    Kills it after a minute, and raises TimeoutExpired.
    """
    command = [*_PROGRAM, *arguments]
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    if stdin_data is not None:
        streams["stdin"] = subprocess.PIPE
    with Program(command, env=env, **(streams | options)) as process:
        out, err = process.communicate(stdin_data, timeout=60)
    return subprocess.CompletedProcess(command, process.returncode, out, err)
