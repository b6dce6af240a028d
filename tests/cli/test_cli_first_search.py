"""The first search of a vault: the vectors of a small one are made on the way, those of a large one are not waited for."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Run


@pytest.fixture
def large(vault: Path) -> Path:
    """A vault of more notes than a search may embed on its way."""
    for number in range(520):
        (vault / f"note {number:03}.md").write_text(
            f"Beacon number {number} answered.\n", encoding="utf-8"
        )
    return vault


@pytest.mark.parametrize("command", ["search", "context"])
def test_the_first_search_of_a_large_vault_goes_by_words_and_names_what_makes_the_vectors(
    run: Run, large: Path, command: str
) -> None:
    ran = run(command, "launch", "rehearsed")
    assert "launch rehearsed" in ran.out
    assert "523 notes are searchable by words, not yet by meaning." in ran.err.replace("\n", " ")
    assert "`simplemem index` or a running server creates their vectors" in ran.err.replace(
        "\n", " "
    )

    index = run(command, "launch", "rehearsed", "--json").json["index"]
    assert (index["state"], index["pending"]) == ("partial", 523)
    assert "`simplemem index`" in index["reason"]

    run("index")
    index = run(command, "launch", "rehearsed", "--json").json["index"]
    assert index == {"state": "ready", "notes": 523, "pending": 0, "reason": ""}


def test_init_says_that_vectors_come_later_and_what_makes_them(run: Run, large: Path) -> None:
    lines = run("init", str(large), vault=None).out.splitlines()
    assert "  No vectors yet for 523 notes: until they are made, search uses words only" in lines
    assert any(line.startswith("  simplemem index") for line in lines)
    assert run("init", str(large), "--json", vault=None).json["pending_vectors"] == 523

    run("index")
    assert "pending_vectors" not in run("init", str(large), "--json", vault=None).json


def test_the_first_search_of_a_small_vault_makes_its_vectors(run: Run) -> None:
    ran = run("search", "launch", "--json")
    assert ran.json["index"] == {"state": "ready", "notes": 3, "pending": 0, "reason": ""}
    assert ran.err == ""


def test_a_few_new_notes_of_a_large_vault_get_their_vectors_on_the_way(
    run: Run, large: Path
) -> None:
    run("index")
    (large / "new.md").write_text("Xylograph.\n", encoding="utf-8")
    assert run("search", "xylograph", "--json").json["index"]["pending"] == 0
