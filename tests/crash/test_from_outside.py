"""The harnesses of bench/, in their short form: what `make soak` does for hours is done here for seconds.

Each prints its seed; a run that fails is seen again with `python bench/NAME.py --seed SEED`, and becomes a case of its own.
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


def test_killed_at_random_nothing_is_lost_torn_or_left_behind(room: Path) -> None:
    code, said = run(room, "crash", "--kills", "80")
    assert code == 0, said
    assert "80 kills" in said and "nothing was lost" in said


def test_a_writer_that_writes_in_place_does_not_get_past_the_kills(room: Path) -> None:
    code, said = run(room, "crash", "--kills", "200", "--careless")
    assert code == 1, said
    assert "a kill did harm" in said


def test_eight_stores_on_four_notes_lose_nothing(room: Path) -> None:
    code, said = run(room, "contention", "--through", "store", "--writes", "100")
    assert code == 0, said
    assert "800 writes by 8 stores" in said


def test_servers_and_their_clients_on_four_notes_lose_nothing(room: Path) -> None:
    code, said = run(room, "contention", "--servers", "4", "--writes", "20")
    assert code == 0, said
    assert "80 writes by 4 servers" in said


def test_whatever_is_done_to_an_index_no_answer_stays_wrong(room: Path) -> None:
    code, said = run(room, "corruptions", "--rounds", "154")
    assert code == 0, said
    assert "154 damages" in said


def test_eight_stores_that_start_at_once_make_one_index_and_write_to_it_together(room: Path) -> None:
    code, said = run(room, "cold_starts", "--rounds", "5", "--commits", "40")
    assert code == 0, said
    assert "5 cold starts of 8 stores" in said and "8 times 40 changes, 0 failed" in said


def test_a_power_cut_on_a_real_file_system_loses_nothing_that_was_answered(room: Path) -> None:
    code, said = run(room, "power_cuts", "--cuts", "8")
    assert code == 0, said
    if "No power can be cut here" in said:
        pytest.skip(said.strip())
    assert "8 power cuts" in said


def test_a_writer_that_does_not_sync_does_not_get_past_the_power_cuts(room: Path) -> None:
    code, said = run(room, "power_cuts", "--cuts", "40", "--careless")
    if "No power can be cut here" in said:
        pytest.skip(said.strip())
    assert code == 1, said
    assert "a cut did harm" in said


@pytest.mark.parametrize(
    ("late", "code"),
    [
        ("104, 64, 17, 8", 0),
        ("106, 66, 17, 8", 1),
        ("100, 60, 20, 8", 1),
        ("100, 60, 20, 9", 0),
        ("100, 60, 17, 11", 1),
    ],
)
def test_a_long_run_that_ends_with_more_than_it_began_with_fails(late: str, code: int) -> None:
    judge = """
import sys
from bench.soak import Figures, compare
early, late = (Figures(*map(float, given.split(",")), 1.0) for given in sys.argv[1:])
sys.exit(compare([early] * 8 + [late] * 8, 10))
"""
    command = [sys.executable, "-c", judge, "100, 60, 17, 8", late]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("not flat" in done.stdout) == bool(code)
