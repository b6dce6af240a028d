"""Engine in terminals of 60, 80 and 120 columns: what the next command needs is never cut."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from simplemem import open_store
from simplemem.cli.output import OPTIONAL, SHRINKS, WHOLE, Screen, fitted_widths

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("words_only")

WIDTHS = [60, 80, 120]
LONG = "projects/balloons/The long report on the second flight of Dipper and on everything that was found afterwards"
UNBROKEN = "log/" + "pressure-sensor-calibration-" * 6


@pytest.fixture
def long_names(vault: Path) -> Path:
    """Notes with names that fit into no terminal, titles, tags, and changes by a client with a reason."""
    for name in (LONG, UNBROKEN):
        (vault / name).parent.mkdir(parents=True, exist_ok=True)
        text = f"---\ntitle: {'A title of many words ' * 5}\ntags: [{', '.join(f'tag-{n}' for n in range(9))}]\n---\nText.\n"
        (vault / f"{name}.md").write_text(text)
        os.utime(vault / f"{name}.md", (1_767_225_600, 1_767_225_600))
    with open_store(vault) as store:
        store.sync()
        for name in (LONG, UNBROKEN, "people/Ada"):
            store.update(
                name,
                append="More.",
                who="claude-ai 1.2",
                tool="update_memory",
                reason="because " * 20,
            )
    return vault


def unwrapped(output: str) -> str:
    """What a table shows without the white space by which its cells are aligned and wrapped."""
    return re.sub(r"\s+", "", output)


def first_column(output: str, width: int) -> list[str]:
    """The cells of the first column, wrapped lines put together. A cell begins where the last column has a date."""
    cells: list[str] = []
    for line in output.splitlines():
        is_new = bool(re.search(r"\d{4}-\d\d-\d\d", line))
        cell = re.split(r" {2,}", line)[0].strip()
        if is_new or not cells:
            cells.append(cell)
        else:
            cells[-1] += cell
    return cells


@pytest.mark.parametrize("width", WIDTHS)
def test_a_list_never_cuts_a_name_or_a_date(
    run: Run, long_names: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    output = run("list").out
    assert max(map(len, output.splitlines())) <= width
    names = {cell.replace(" ", "") for cell in first_column(output, width)}
    assert {
        LONG.replace(" ", ""),
        UNBROKEN,
        "people/Ada",
        "projects/apollo",
        "log/2026-01-24",
    } == names
    assert len(re.findall(r"(?<=  )\d{4}-\d\d-\d\d$", output, re.MULTILINE)) == 5


@pytest.mark.parametrize("width", WIDTHS)
def test_a_history_never_cuts_a_version_a_name_or_a_date(
    run: Run, long_names: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    output = run("history").out
    assert max(map(len, output.splitlines())) <= width
    assert re.findall(r"^v\d{6}  update  ", output, re.MULTILINE) == [
        f"v00000{n}  update  " for n in (3, 2, 1)
    ]
    assert output.count("just now") == 3 and "…" not in re.sub(r"because[^\n]*", "", output)
    columns = [re.split(r" {2,}", line.strip()) for line in output.splitlines()]
    joined = "".join(
        cells[2] if cells[0].startswith("v0") else cells[0] for cells in columns
    ).replace(" ", "")
    assert LONG.replace(" ", "") in joined and UNBROKEN in joined


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    "command",
    [("history", "people/Ada", "--blame"), ("inspect",), ("config",), ("tools",), ("conflicts",)],
)
def test_other_tables_fit_and_keep_their_first_column(
    run: Run,
    long_names: Path,
    monkeypatch: pytest.MonkeyPatch,
    width: int,
    command: tuple[str, ...],
) -> None:
    (long_names / f"{LONG}.sync-conflict-20260101-120000-ABCDEFG.md").write_text("Text.\nLess.\n")
    facts = run(*command, "--json").json
    monkeypatch.setenv("COLUMNS", str(width))
    output = run(*command).out
    assert max(map(len, output.splitlines())) <= width
    keys = {
        "history": ["claude-ai1.2"],
        "inspect": [f"{LONG}.md"],
        "config": list(facts),
        "tools": [tool["name"] for tool in facts.get("tools", [])],
        "conflicts": [],
    }[command[0]]
    letters = unwrapped(re.sub(r" {2,}\d+ (out|in)\b.*", "", output))
    assert [key for key in keys if key.replace(" ", "") not in letters] == []
    if command[0] == "conflicts":
        assert all(
            word in letters for word in ("20260101-120000-ABCDEFG.md", "afterwards", "balloons")
        )


def test_columns_shrink_then_disappear_and_whole_columns_wrap_last() -> None:
    kinds = {0: WHOLE, 1: SHRINKS, 2: OPTIONAL, 3: WHOLE, 4: SHRINKS}
    widths = {0: 30, 1: 40, 2: 8, 3: 10, 4: 20}
    assert fitted_widths(widths, kinds, 200) == widths
    assert fitted_widths(widths, kinds, 100) == {0: 30, 1: 24, 2: 8, 3: 10, 4: 20}
    assert fitted_widths(widths, kinds, 80) == {0: 30, 1: 12, 2: 8, 3: 10, 4: 12}
    assert fitted_widths(widths, kinds, 70) == {0: 30, 1: 16, 2: 8, 3: 10}
    assert fitted_widths(widths, kinds, 58) == {0: 30, 1: 14, 3: 10}
    assert fitted_widths(widths, kinds, 50) == {0: 30, 3: 10}
    assert fitted_widths(widths, kinds, 30) == {0: 18, 3: 10}


def test_a_pipe_gets_every_column_whole(run: Run, long_names: Path) -> None:
    for name in (LONG, UNBROKEN):
        [line] = [line for line in run("list").out.splitlines() if line.startswith(name)]
        assert "A title of many words A title" in line and "#tag-8" in line
        assert [
            line
            for line in run("history").out.splitlines()
            if name in line and "because because" in line
        ]


def test_a_table_of_nothing_prints_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    Screen().table([["", ""], ["", ""]], columns=(WHOLE, SHRINKS))
    assert capsys.readouterr().out == ""
