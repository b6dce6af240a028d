"""Very many files in one folder: what looks at all of them does four times the work for four times the files, and what
looks at one does the same. Work is counted, as calls of functions and as steps of SQLite."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from simplemem.store import EnhancedStore

FEW, MANY = 2_500, 10_000
LINEAR = 1.3 * MANY / FEW  # with the square it is 16
SAME = 1.5
STEPS = 100  # of SQLite, counted as one: less than some of these is nothing
LEAST = 20


def work(store: EnhancedStore, act: Callable[[], object]) -> tuple[int, int]:
    """The calls of functions that something takes, in Python and C, and the hundreds of steps of SQLite."""
    calls = steps = 0
    connection: Any = store._parts.index.database.connection()

    def called(_frame: object, event: str, _argument: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    def stepped() -> bool:
        nonlocal steps
        steps += 1
        return False

    connection.raw.set_progress_handler(stepped, STEPS)
    sys.setprofile(called)
    try:
        act()
    finally:
        sys.setprofile(None)
        connection.raw.set_progress_handler(None)
    return calls, steps


def measured(vault: Path, count: int) -> Mapping[str, tuple[int, int]]:
    folder = vault / "all"
    folder.mkdir(parents=True)
    for number in range(count):
        (folder / f"n{number}.md").write_text(f"A plum {number}.\n")
        os.utime(
            folder / f"n{number}.md", (1_700_000_000, 1_700_000_000)
        )  # else a list sorts as many as share a second
    with EnhancedStore(vault) as store:
        counted = {
            name: work(store, lambda: store.sync(embed=False)) for name in ("first index", "scan")
        }
        store.update("all/n1", append="More.")  # what is loaded at first is no work of any file
        store.create("all/first", "A fig.")
        acts: dict[str, Callable[[], object]] = {
            "search": lambda: store.search("plum 777", mode="text"),
            "list": lambda: store.list(limit=50),
            "read": lambda: store.read("all/n777"),
            "append": lambda: store.update("all/n777", append="More."),
            "create": lambda: store.create("all/new", "A pear."),
        }
        return counted | {name: work(store, act) for name, act in acts.items()}


MOST = {
    "first index": LINEAR,
    "scan": LINEAR,
    "search": LINEAR,
    "list": LINEAR,
    "read": SAME,
    "append": SAME,
    "create": SAME,
}


# One test, because each worker that had a part of it would fill both vaults.
@pytest.mark.slow
def test_work_grows_no_faster_than_the_number_of_files_in_a_folder(tmp_path: Path) -> None:
    few = measured(tmp_path / "few", FEW)
    many = measured(tmp_path / "many", MANY)
    assert few.keys() == many.keys() == MOST.keys()
    for act, most in MOST.items():
        print(f"{act}: calls and hundreds of steps {few[act]}, four times the files {many[act]}")
        for before, now in zip(few[act], many[act], strict=True):
            assert now <= most * max(before, LEAST), act
