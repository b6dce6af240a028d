"""The figures of a run as a bar chart, drawn by matplotlib where it is installed (the extra `plot`)."""

from __future__ import annotations

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simplemem.errors import Invalid, Unavailable

_BARS = (("recall5", "recall@5"), ("recall10", "recall@10"), ("mrr", "MRR"))


def must_be_able_to_draw(file: Path) -> None:
    """Say so before a long run when nothing could be drawn after it."""
    if file.suffix.lower() != ".png":
        raise Invalid(f"a chart is a PNG file, and {file.name} does not end with .png")
    if not file.absolute().parent.is_dir():
        raise Invalid(f"there is no folder {file.parent} to put the chart in")
    if importlib.util.find_spec("matplotlib") is None:
        raise Unavailable(
            "a chart needs matplotlib, which is not installed",
            hint="`pip install 'simplemem-vault[plot]'` brings it; everything else of eval works without.",
        )


def draw(shown: Mapping[str, Any], file: Path) -> None:
    """A group of bars for each row, with their intervals."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = shown["rows"]
    figure = Figure(figsize=(max(6.0, 2.2 * len(rows)), 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    width = 0.8 / len(_BARS)
    for place, (key, label) in enumerate(_BARS):
        values = [row[key]["value"] for row in rows]
        below = [row[key]["value"] - row[key]["low"] for row in rows]
        above = [row[key]["high"] - row[key]["value"] for row in rows]
        at = [number + (place - 1) * width for number in range(len(rows))]
        axes.bar(at, values, width, yerr=[below, above], capsize=3, label=label)
    axes.set_xticks(range(len(rows)), [row["name"].replace("=", "\n= ") for row in rows])
    axes.set_ylim(0, 1)
    axes.set_title(f"{rows[0]['questions']} questions about {shown['notes']} notes")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.legend(loc="upper right", ncols=len(_BARS))
    figure.savefig(file, format="png", dpi=150)
