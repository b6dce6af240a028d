"""Fit the weights by which search judges whether its hits answer.

    python bench/calibrate.py [--locomo FILE.json.gz] [--longmemeval FILE.json.xz]
                              [--vault DIR --questions FILE.tsv]
                              [--paraphrases FILE.json] [--precision FILE.tar.gz]

Asks the half of the questions of `bench/honesty.py` that its `--held-out` leaves out, and the same
without the notes that answer them. It records the evidence of each answer, fits a logistic model to
it for each kind of question, and prints the weights for `simplemem/search/judgement.py`.

- Questions in other words than the notes are left out: with the bundled vectors, they look like
  questions without an answer. `bench/honesty.py` reports them.
- An answerable question counts if a note that answers it is among the first five hits.
- Each set of questions weighs the same, whatever its size.
- The minimum is the confidence below which 1.8 or 3 % of the answerable questions are.
- The weights for small vaults, `ENGLISH_WEIGHTS[0]`, are chosen by hand.

The same files give the same weights.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from bench.honesty import (
    QuestionSet,
    Recorder,
    Sample,
    add_set_options,
    family_of,
    fitted_sets,
    is_held_out,
    minimum_that_refuses,
)
from simplemem.search import judgement
from simplemem.search.judgement import Weights
from simplemem.settings.model import Settings
from simplemem.store import EnhancedStore

_WEIGHT_OF_ANSWERABLE: Final = 4.0  # relative to 1 of a question without an answer
_OTHER_WORDS: Final = ("paraphrase", "other words")  # the ends of the names of sets
_RIDGE: Final = 0.003
_STEPS: Final = 50


@dataclass(frozen=True)
class Model:
    """Weights to fit: their name, those of today, and the figures that they weigh.

    `max_refused` is the share of the answerable questions that its minimum refuses.
    """

    name: str
    weights: Weights
    figures: tuple[str, ...]
    max_refused: float


_MODELS: Final = (
    Model(
        "ENGLISH_WEIGHTS[1]",
        judgement.ENGLISH_WEIGHTS[1],
        ("coverage", "word_count", "missing_names", "text_length", "lead", "similarity"),
        0.018,
    ),
    Model(
        "FOREIGN_WEIGHTS[0]",
        judgement.FOREIGN_WEIGHTS[0],
        ("coverage", "word_count", "similarity"),
        0.03,
    ),
)


def main() -> None:
    """Record the evidence, and print the weights of each model."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    add_set_options(parser)
    options = parser.parse_args()

    samples = record(options)
    for model in _MODELS:
        chosen = [sample for sample in samples if model.weights in sample.weights]
        print_weights(model.name, fit_weights(model, chosen))


def record(options: argparse.Namespace) -> list[Sample]:
    """Return the evidence of all questions that are not held out."""
    samples: list[Sample] = []
    with tempfile.TemporaryDirectory() as folder:
        for questions in fitted_sets(options, Path(folder)):
            if questions.name.endswith(_OTHER_WORDS):
                continue
            half = _half_to_fit(questions)
            with EnhancedStore(half.vault, Settings()) as store:
                store.sync()
                Recorder(store, "hybrid", family_of(half.name), samples).ask(half, 1)
    return samples


def _half_to_fit(questions: QuestionSet) -> QuestionSet:
    """Return a set with those of its questions that are not held out."""
    answered = [item for item in questions.answered if not is_held_out(item[0])]
    absent = [question for question in questions.absent if not is_held_out(question)]
    return replace(questions, answered=answered, absent=absent)


def fit_weights(model: Model, samples: Sequence[Sample]) -> Weights:
    """Return the weights of a logistic model, with the minimum that refuses few of the answers."""
    uncertain = [sample for sample in samples if not sample.is_certain]
    values = np.array([_values_of(sample, model.figures) for sample in uncertain])
    is_answered = np.array([sample.is_answered for sample in uncertain], float)

    shares = _shares_of(uncertain) * np.where(is_answered, _WEIGHT_OF_ANSWERABLE, 1.0)
    coefficients = _fit_logistic(values, is_answered, shares)
    rounded = np.round(coefficients, 2).tolist()
    weights = _weights_of(dict(zip(model.figures, rounded, strict=True)))

    judged = [replace(sample, weights=(weights,)) for sample in samples]
    minimum = minimum_that_refuses(judged, model.max_refused)
    return replace(weights, minimum=round(minimum, 2))


def _values_of(sample: Sample, figures: Iterable[str]) -> list[float]:
    """Return what each figure adds to the confidence if its weight is 1."""
    units = [_weights_of({figure: 1.0}) for figure in figures]
    return [replace(sample, weights=(unit,)).confidence for unit in units]


def _weights_of(values: Mapping[str, float]) -> Weights:
    """Return weights with the given values; all others are 0."""
    zeros = {field.name: 0.0 for field in fields(Weights)}
    return Weights(**(zeros | values))


def _shares_of(samples: Sequence[Sample]) -> NDArray[np.float64]:
    """Return the weight of each sample: those of a family and an outcome have 1 together."""
    groups = [(sample.family, sample.is_answered) for sample in samples]
    counts = Counter(groups)
    return np.array([1 / counts[group] for group in groups])


def _fit_logistic(
    values: NDArray[np.float64], outcomes: NDArray[np.float64], shares: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the coefficients of a logistic regression with a small ridge, by Newton's method."""
    shares = shares / shares.sum()
    mean = shares @ values
    deviation = np.sqrt(shares @ (values - mean) ** 2) + 1e-9
    columns = np.column_stack([(values - mean) / deviation, np.ones(len(values))])
    ridge = np.full(columns.shape[1], _RIDGE)
    ridge[-1] = 1e-9

    coefficients = np.zeros(columns.shape[1])
    for _ in range(_STEPS):
        chances = 1 / (1 + np.exp(-columns @ coefficients))
        gradient = columns.T @ (shares * (chances - outcomes)) + ridge * coefficients
        curvature = shares * chances * (1 - chances)
        hessian = (columns.T * curvature) @ columns + np.diag(ridge)
        coefficients -= np.linalg.solve(hessian, gradient)
    return coefficients[:-1] / deviation


def print_weights(model: str, weights: Weights) -> None:
    """Print the weights as they stand in `judgement.py`, without those that are 0."""
    print(f"{model} = Weights(")
    for field in fields(Weights):
        value = getattr(weights, field.name)
        if value or field.name == "minimum":
            print(f"    {field.name}={value},")
    print(")")


if __name__ == "__main__":
    main()
