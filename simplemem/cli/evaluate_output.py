"""How `eval run` shows its figures to people: what was found, what it cost, and the kinds of questions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from simplemem.cli import output

_QUALITY = (("recall5", "recall@5"), ("recall10", "recall@10"), ("mrr", "MRR"))


def print_report(shown: Mapping[str, Any]) -> None:
    """The figures as tables. Intervals stand in brackets."""
    rows = shown["rows"]
    head = f"{rows[0]['questions']} questions about {shown['notes']} notes"
    output.say((head, "bold"), f": {shown['about']}", (f"  MRR@{shown['limit']}", "dim"))
    if shown["skipped"]:
        output.warn(
            f"{shown['skipped']} questions were left out: their notes are gone or cannot be changed; "
            "`simplemem eval init` makes new ones"
        )
    if shown["private"]:
        output.warn(f"{shown['private']} questions about private notes were left out: they would be sent to a service")
    for row in rows:
        for told in row.get("degraded", ()):
            if told["questions"] > 1:  # of a single one it is the question's own: a phrase that no note holds
                output.warn(f"{row['name']}, {told['questions']} of {row['questions']} questions: {told['why']}")
    output.say()
    _table("what is found", _QUALITY, [_cells(row["name"], row, _QUALITY) for row in rows])
    differences = [row for row in rows if "difference" in row]
    if differences:
        name = rows[0]["name"]
        cells = [_cells(row["name"], row["difference"], _QUALITY, signed=True) for row in differences]
        _table(f"beside {name}", _QUALITY, cells)
    costs = (("ms_median", "CPU ms, median"), ("ms_p95", "CPU ms, p95"), ("tokens", "tokens of five"))
    _table("what it takes", costs, [_cells(row["name"], row, costs) for row in rows])
    if len(rows[0]["kinds"]) > 1:
        for key, name in (_QUALITY[0], _QUALITY[2]):
            _by_kind(key, name, rows)


def _by_kind(key: str, name: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """One figure of every row, a line for each kind of questions. The intervals are wide: `--json` has them."""
    cells = [
        [f"{kinds[0]['kind']} ({kinds[0]['questions']})", *(f"{kind[key]['value']:.3f}" for kind in kinds)]
        for kinds in zip(*(row["kinds"] for row in rows), strict=True)
    ]
    _table(f"{name} by kind", [(row["name"], row["name"]) for row in rows], cells)


def _table(title: str, columns: Sequence[tuple[str, str]], rows: Sequence[Sequence[str]]) -> None:
    output.print_table(
        [
            [output.styled((title, "bold")), *(output.styled((name, "bold")) for _, name in columns)],
            *([output.styled((row[0], "cyan")), *map(output.styled, row[1:])] for row in rows),
        ]
    )
    output.say()


def _cells(
    name: str, figures: Mapping[str, Any], columns: Sequence[tuple[str, str]], *, signed: bool = False
) -> list[str]:
    return [name, *(_cell(key, figures.get(key), "+" if signed else "") for key, _ in columns)]


def _cell(key: str, figure: Mapping[str, float] | None, sign: str) -> str:
    if figure is None:
        return "-"
    digits = {"tokens": 0, "ms_median": 1, "ms_p95": 1}.get(key, 3)
    value, low, high = (f"{figure[each]:{sign}.{digits}f}" for each in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"
