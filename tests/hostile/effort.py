"""The amount of hostile tests: few in each run, many in `make soak` (PROOF=long)."""

from __future__ import annotations

import os
import random

# Each short run has the same seed, and so the same results. Each long run draws a seed.
LONG = os.environ.get("PROOF") == "long"
SEED = int(
    os.environ.get("PROOF_SEED")
    or (random.SystemRandom().randrange(1 << 32) if LONG else 20_261_121)
)


def rounds(short: int, long: int) -> int:
    """Return the number of rounds of a short or a long run."""
    return long if LONG else short


def chance(what: str) -> random.Random:
    """Return the random numbers of a test, the same for the same seed.

    The seed is printed, and so pytest shows it when the test fails.
    """
    print(f"{what}: PROOF_SEED={SEED}" + (" PROOF=long" if LONG else ""))
    return random.Random(f"{what} {SEED}")
