"""A sentence that states several facts is divided, and no other."""

from __future__ import annotations

import pytest

from simplemem.features.facts.clauses import clauses_of


@pytest.mark.parametrize(
    ("sentence", "clauses"),
    [
        (
            "I'm Ana, I live in Rome and work at Fiat.",
            ["I'm Ana", "I live in Rome", "I work at Fiat"],
        ),
        (
            "Soy Ana, vivo en Roma y trabajo en Fiat.",
            ["Soy Ana", "Vivo en Roma", "Trabajo en Fiat"],
        ),
        (
            "My sister Ruth lives in Leeds and my brother works at Aldi",
            ["My sister Ruth lives in Leeds", "My brother works at Aldi"],
        ),
        ("I live in Rome and Milan.", ["I live in Rome and Milan."]),
        ("I live in Paris, France.", ["I live in Paris, France."]),
        ("I live in Rome and love it.", ["I live in Rome and love it."]),
        ("Do I live in Rome and work at Fiat?", ["Do I live in Rome and work at Fiat?"]),
    ],
)
def test_a_sentence_is_divided_if_each_clause_states_a_fact(
    sentence: str, clauses: list[str]
) -> None:
    assert clauses_of(sentence) == clauses
