"""Standard input and output, taken for the protocol before anything else is imported that might print."""

from __future__ import annotations

import os
import sys


def take_standard_streams() -> tuple[int, int]:
    """The wire's two ends as descriptors of our own. Whatever prints from now on, prints to stderr;
    whatever reads, reads nothing."""
    if sys.platform == "win32":
        import msvcrt

        for stream in (0, 1):
            msvcrt.setmode(stream, os.O_BINARY)
    wire_in, wire_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        os.dup2(nothing, 1)
    os.close(nothing)
    return wire_in, wire_out
