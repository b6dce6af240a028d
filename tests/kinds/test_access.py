"""How often entries are read: counted by several processes together, kept outside the notes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from simplemem.kinds.learned.access import Access, Read

FILE = ".simplemem/state/access.jsonl"


def lines(vault: Path) -> list[dict]:
    return [json.loads(line) for line in (vault / FILE).read_text().split("\n") if line.strip()]


def test_a_count_is_there_at_once_for_all_who_ask(vault: Path) -> None:
    one, other = Access(vault), Access(vault)
    one.count(["a", "b"], "2026-11-22T10:00:00Z")
    other.count(["a"], "2026-11-22T09:00:00Z")
    assert one.all() == other.all() == {"a": Read(2, "2026-11-22T10:00:00Z"), "b": Read(1, "2026-11-22T10:00:00Z")}
    assert Access(vault).all() == one.all()


def test_nothing_is_written_for_nothing(vault: Path) -> None:
    access = Access(vault)
    access.count([])
    assert access.all() == {} and not (vault / FILE).exists()


def test_what_is_not_a_line_of_ours_is_passed_over_and_what_comes_after_a_torn_one_is_whole(vault: Path) -> None:
    access = Access(vault)
    access.count(["a"], "2026-01-01T00:00:00Z")
    with (vault / FILE).open("ab") as file:
        file.write(
            b'nonsense\n[1]\n{"at": 5, "ids": ["a"]}\n{"at": "2026", "ids": "a"}\n{"at": "2026", "ids": [7, "b"]}\n'
        )
        file.write(b'{"at": "2026-01-02", "ids": ["to')  # a power cut
    access.count(["a"], "2026-01-03T00:00:00Z")
    assert access.all() == {"a": Read(2, "2026-01-03T00:00:00Z"), "b": Read(1, "2026")}
    assert Access(vault).all() == access.all()


def test_a_grown_file_is_written_anew_when_a_process_first_counts_and_no_count_is_lost(vault: Path) -> None:
    running = Access(vault)
    running.count(["a", "b"], "2026-01-01T00:00:00Z")
    with (vault / FILE).open("ab") as file:
        file.write(b'{"at":"2026-01-02T00:00:00Z","ids":["a"]}\n' * 8000)
    before = (vault / FILE).stat().st_size
    Access(vault).count(["c"], "2026-01-03T00:00:00Z")
    assert (vault / FILE).stat().st_size < before / 1000
    assert sorted(line["ids"][0] for line in lines(vault)) == ["a", "b", "c"]
    expected = {"a": Read(8001, "2026-01-02T00:00:00Z"), "b": Read(1, "2026-01-01T00:00:00Z")}
    assert running.all() == {**expected, "c": Read(1, "2026-01-03T00:00:00Z")}
    running.count(["a"], "2026-01-04T00:00:00Z")
    assert Access(vault).all()["a"] == Read(8002, "2026-01-04T00:00:00Z")


def test_several_processes_count_together(vault: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from simplemem.kinds.learned.access import Access\n"
        "access = Access(Path(sys.argv[1]))\n"
        "for k in range(100): access.count(['shared', sys.argv[2]])\n"
    )
    Access(vault).count(["shared"] * 9000)  # so that each of them finds a file to write anew
    running = [subprocess.Popen([sys.executable, "-c", program, str(vault), str(k)]) for k in range(3)]
    assert [each.wait(60) for each in running] == [0, 0, 0]
    found = Access(vault).all()
    assert {key: read.count for key, read in found.items()} == {"shared": 9300, "0": 100, "1": 100, "2": 100}


def test_where_nothing_may_be_written_a_process_counts_for_itself(vault: Path) -> None:
    Access(vault).count(["a"], "2026-01-01T00:00:00Z")
    before = (vault / FILE).read_bytes()
    access = Access(vault, read_only=True)
    access.count(["a"], "2026-01-02T00:00:00Z")
    assert access.all() == {"a": Read(2, "2026-01-02T00:00:00Z")}
    assert (vault / FILE).read_bytes() == before and Access(vault).all()["a"].count == 1


@pytest.mark.skipif(sys.platform == "win32", reason="links need rights there")
def test_no_link_is_followed_out_of_the_vault(vault: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (vault / ".simplemem").mkdir()
    (vault / ".simplemem" / "state").symlink_to(elsewhere)
    access = Access(vault)
    access.count(["a"])
    assert list(elsewhere.iterdir()) == [] and access.all()["a"].count == 1
