"""A folder for the thousands of files that the crash tests create."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def room() -> Iterator[Path]:
    """Yield a folder, in memory if the system has such a file system: it is faster than a disk."""
    memory = Path("/dev/shm")
    parent = memory if os.access(memory, os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=parent) as name:
        yield Path(name)
