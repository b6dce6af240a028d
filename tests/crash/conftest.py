"""A place for the thousands of files that the crash tests make."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder in memory where there is one: thousands of files are made here, and no power is cut."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else None) as name:
        yield Path(name)
