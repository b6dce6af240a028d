"""Temporary folders for copies of what is in a vault: what a process that was killed left of them goes again."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path

_A_DAY = 86_400.0


def sweep(prefix: str, *, days: float = 1.0) -> None:
    """Remove the temporary folders with this name that are older than so many days: nobody has one open that long."""
    for left in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        try:
            if time.time() - left.stat().st_mtime > days * _A_DAY:
                shutil.rmtree(left, ignore_errors=True)
        except OSError:
            continue
