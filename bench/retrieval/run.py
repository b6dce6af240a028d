"""Ask the questions of a benchmark, and show the figures as a table or as JSON."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from bench.retrieval.data import Benchmark, Document, Question
from bench.retrieval.metrics import Figures, Outcome, figures_by_kind
from bench.retrieval.systems import System

DEFAULT_KS: Final = (1, 5, 10, 20)
_WHOLE: Final = "whole corpus"
_PER_QUESTION: Final = "haystack of each question"

Progress: TypeAlias = Callable[[str, int, int], None]
"""Takes a stage, how many questions are done, and how many there are."""


@dataclass(frozen=True)
class Row:
    """The figures of one way to search a system, for one kind of question."""

    system: str
    way: str
    figures: Figures

    def as_dict(self) -> dict[str, Any]:
        """Return the row as JSON values."""
        return {"system": self.system, "search": self.way, **self.figures.as_dict()}


@dataclass(frozen=True)
class Report:
    """What a run measured, and on what."""

    benchmark: str
    scope: str  # whole corpus, or haystack of each question
    ks: tuple[int, ...]
    rows: tuple[Row, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as JSON values."""
        rows = [row.as_dict() for row in self.rows]
        return {"benchmark": self.benchmark, "scope": self.scope, "k": self.ks, "rows": rows}

    def as_table(self) -> str:
        """Return the report as a Markdown table."""
        heads = ["system", "search", "questions", "n", "notes"]
        for k in self.ks:
            heads += [f"hit@{k}", f"recall@{k}"]
        heads += ["MRR", "refused", "refused of unanswerable"]

        lines = [f"{self.benchmark}, {self.scope}", "", _line(heads), _line(["---"] * len(heads))]
        lines += [_line(self._cells(row)) for row in self.rows]
        return "\n".join(lines)

    def _cells(self, row: Row) -> list[str]:
        figures = row.figures
        cells = [row.system, row.way, figures.kind, str(figures.n), f"{figures.corpus_size:.0f}"]
        interval_k = self.ks[min(1, len(self.ks) - 1)]
        for k in self.ks:
            recall = f"{figures.recalls[k]:.3f}"
            if k == interval_k:
                low, high = figures.recall_interval
                recall += f" [{low:.3f}, {high:.3f}]"
            cells += [f"{figures.hits[k]:.3f}", recall]
        refused = f"{figures.unanswerable_refused} of {figures.unanswerable}"
        return [*cells, f"{figures.mrr:.3f}", str(figures.refused), refused]


def run(
    benchmark: Benchmark,
    systems: Sequence[System],
    *,
    is_whole: bool,
    ks: Sequence[int],
    progress: Progress,
) -> Report:
    """Ask each system all questions, in the haystack of each or, if `is_whole`, in the corpus."""
    rows = []
    for system in systems:
        outcomes = ask_all(benchmark, system, is_whole=is_whole, limit=max(ks), progress=progress)
        for way, of_way in outcomes.items():
            rows += [Row(system.name, way, figures) for figures in figures_by_kind(of_way, ks)]
    scope = _WHOLE if is_whole else _PER_QUESTION
    return Report(benchmark.name, scope, tuple(ks), tuple(rows))


def ask_all(
    benchmark: Benchmark, system: System, *, is_whole: bool, limit: int, progress: Progress
) -> dict[str, list[Outcome]]:
    """Ask a system all questions. Return the outcomes by the way of searching."""
    outcomes: dict[str, list[Outcome]] = {}
    done = 0
    for documents, questions in _searched_together(benchmark, is_whole):
        # A server may still write into its folder while this is removed.
        with (
            tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
            system.open(documents, Path(folder) / "vault") as searches,
        ):
            for question in questions:
                for way, search in searches.items():
                    answer = search(question.text, limit)
                    outcome = Outcome(question, answer.names, answer.is_refused, len(documents))
                    outcomes.setdefault(way, []).append(outcome)
                done += 1
                progress(system.name, done, len(benchmark.questions))
    return outcomes


def _searched_together(
    benchmark: Benchmark, is_whole: bool
) -> Iterator[tuple[Sequence[Document], list[Question]]]:
    """Yield documents that are indexed together, with the questions that they are asked."""
    if is_whole:
        yield benchmark.corpus, list(benchmark.questions)
        return
    for key, documents in benchmark.haystacks.items():
        questions = [question for question in benchmark.questions if question.haystack == key]
        if questions:
            yield documents, questions


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
