"""How far the hostile tests go: the short form in every run, the long one in `make soak` (PROOF=long)."""

from __future__ import annotations

import os
import random

LONG = os.environ.get("PROOF") == "long"
SEED = int(
    os.environ.get("PROOF_SEED")
    or (random.SystemRandom().randrange(1 << 32) if LONG else 20_261_121)
)
"""The same in every short run, so that what passes here passes everywhere. A long run takes another and prints it."""


def rounds(short: int, long: int) -> int:
    """How many times to try."""
    return long if LONG else short


def chance(what: str) -> random.Random:
    """Numbers for one test, the same again for the same seed. Printed, and so shown when the test fails."""
    print(f"{what}: PROOF_SEED={SEED}" + (" PROOF=long" if LONG else ""))
    return random.Random(f"{what} {SEED}")
