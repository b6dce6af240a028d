"""The harnesses of bench/, in their short form: what `make soak` does for hours is done here for seconds.

Each prints its seed; a run that fails is seen again with `python bench/NAME.py --seed SEED`, and becomes a case of its
own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("the harnesses fork", allow_module_level=True)

REPOSITORY = Path(__file__).resolve().parents[2]


def run(room: Path, name: str, *words: str) -> tuple[int, str]:
    """The exit code of a harness, and what it printed."""
    command = [sys.executable, str(REPOSITORY / "bench" / f"{name}.py"), *words]
    done = subprocess.run(
        command,
        cwd=REPOSITORY,
        env={**os.environ, "TMPDIR": str(room), "OPENBLAS_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        ("crash --kills 40", 0, ("40 kills", "nothing was lost")),
        ("crash --kills 200 --careless", 1, ("a kill did harm",)),
        ("corruptions --rounds 60", 0, ("60 damages",)),
        (
            "cold_starts --rounds 2 --commits 40",
            0,
            ("2 cold starts of 8 stores", "8 times 40 changes"),
        ),
        ("power_cuts --cuts 8", 0, ("8 power cuts",)),
        ("power_cuts --cuts 40 --careless", 1, ("a cut did harm",)),
    ],
)
def test_nothing_is_lost_and_a_careless_writer_is_caught(
    room: Path, words: str, code: int, said: tuple[str]
) -> None:
    found, printed = run(room, *words.split())
    if "No power can be cut here" in printed:
        pytest.skip(printed.strip())
    assert found == code, printed
    assert all(each in printed for each in said), printed
