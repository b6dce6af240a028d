"""Python's garbage collector, kept from looking while it could only find that nothing is garbage."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_at_rest() -> Iterator[None]:
    """Without Python looking for circles among values that all live until their batch is written, or the vault compared:
    that was a sixth of a first index, and a fifth of a scan that finds nothing. Who reads much looks itself after every
    batch, at what is young."""
    was_at_work = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_at_work:
            gc.enable()
