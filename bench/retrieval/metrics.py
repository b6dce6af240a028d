"""Figures of retrieval: hits, recall of the evidence, reciprocal ranks, refusals, intervals."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from bench.retrieval.data import Question

ALL_KINDS: Final = "all"
_RESAMPLINGS: Final = 2_000


@dataclass(frozen=True)
class Outcome:
    """What a system answered to a question: the names of notes, best first, each once."""

    question: Question
    names: tuple[str, ...]
    is_refused: bool  # the answer says that nothing was found
    corpus_size: int  # how many notes were searched

    def hit(self, k: int) -> float:
        """Return 1 if any evidence is among the first `k` notes, else 0."""
        return float(not self.question.evidence.isdisjoint(self.names[:k]))

    def recall(self, k: int) -> float:
        """Return the share of the evidence that is among the first `k` notes."""
        found = self.question.evidence.intersection(self.names[:k])
        return len(found) / len(self.question.evidence)


@dataclass(frozen=True)
class Figures:
    """The means over the questions of one kind, as one row of a table."""

    kind: str
    n: int  # answerable questions
    corpus_size: float  # notes searched per question
    hits: dict[int, float]  # by k
    recalls: dict[int, float]  # by k
    recall_interval: tuple[float, float]  # of the recall at the second k, 95 %
    mrr: float
    refused: int  # answerable questions that were answered with "nothing found"
    unanswerable: int
    unanswerable_refused: int

    def as_dict(self) -> dict[str, Any]:
        """Return the figures as JSON values."""
        values: dict[str, Any] = {"type": self.kind, "n": self.n}
        values["corpus"] = round(self.corpus_size, 1)
        for k in self.hits:
            values[f"hit@{k}"] = round(self.hits[k], 4)
            values[f"recall@{k}"] = round(self.recalls[k], 4)
        values["recall_interval"] = [round(bound, 4) for bound in self.recall_interval]
        values["mrr"] = round(self.mrr, 4)
        values["refused"] = self.refused
        values["unanswerable"] = self.unanswerable
        values["unanswerable_refused"] = self.unanswerable_refused
        return values


def figures_by_kind(outcomes: Sequence[Outcome], ks: Sequence[int]) -> list[Figures]:
    """Return the figures of each kind of question, in alphabetical order, and of all together."""
    kinds = sorted({outcome.question.kind for outcome in outcomes})
    rows = []
    for kind in kinds:
        of_kind = [outcome for outcome in outcomes if outcome.question.kind == kind]
        rows.append(figures_of(kind, of_kind, ks))
    if len(kinds) > 1:
        rows.append(figures_of(ALL_KINDS, outcomes, ks))
    return rows


def figures_of(kind: str, outcomes: Sequence[Outcome], ks: Sequence[int]) -> Figures:
    """Return the means of some outcomes. Questions without evidence count as refusals only."""
    answerable = [outcome for outcome in outcomes if outcome.question.evidence]
    unanswerable = [outcome for outcome in outcomes if not outcome.question.evidence]
    middle_k = ks[min(1, len(ks) - 1)]
    ranks = [
        reciprocal_rank(outcome.names[: max(ks)], outcome.question.evidence)
        for outcome in answerable
    ]
    return Figures(
        kind=kind,
        n=len(answerable),
        corpus_size=mean(outcome.corpus_size for outcome in outcomes),
        hits={k: mean(outcome.hit(k) for outcome in answerable) for k in ks},
        recalls={k: mean(outcome.recall(k) for outcome in answerable) for k in ks},
        recall_interval=interval([outcome.recall(middle_k) for outcome in answerable]),
        mrr=mean(ranks),
        refused=sum(outcome.is_refused for outcome in answerable),
        unanswerable=len(unanswerable),
        unanswerable_refused=sum(outcome.is_refused for outcome in unanswerable),
    )


def mean(values: Iterable[float]) -> float:
    """Return the mean of some values, or 0 if there are none."""
    numbers = list(values)
    return sum(numbers) / max(1, len(numbers))


def reciprocal_rank(names: Sequence[str], right: frozenset[str]) -> float:
    """Return 1 divided by the rank of the first right note, or 0 if there is none."""
    for place, name in enumerate(names, 1):
        if name in right:
            return 1 / place
    return 0.0


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the 95 % interval of a mean: resample 2,000 times, drop 2.5 % at either end."""
    if not values:
        return 0.0, 0.0
    rng = random.Random(1)
    means = []
    for _ in range(_RESAMPLINGS):
        resampled = rng.choices(values, k=len(values))
        means.append(sum(resampled) / len(resampled))
    means.sort()
    return means[50], means[1949]
