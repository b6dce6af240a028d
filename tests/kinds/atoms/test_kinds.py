"""Of what kind a statement is, and until when it holds, told in November."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from simplemem.kinds.atoms.reading import kind_of

NOW = datetime(2026, 11, 22, 9, tzinfo=UTC)


@pytest.mark.parametrize(
    ("said", "kind", "until"),
    [
        ("I prefer window seats on flights.", "preference", ""),
        ("Met Ruth for lunch on 3 November 2026.", "episode", "2026-11-03"),
        ("Met Ruth for lunch yesterday.", "episode", "2026-11-22"),
        ("My parking pass is valid until 30 June 2027.", "fact", "2027-06-30"),
        ("My parking pass is valid until 30 June.", "fact", "2027-06-30"),
        ("Me gusta el café.", "preference", ""),
        ("My sister is called Ingrid.", "fact", ""),
        # what lies further back than an episode lasts was told to be kept
        ("I was born on 4 May 1980.", "fact", ""),
        ("My exam is on 12 January.", "fact", ""),
        ("Apollo ships on 4 May.", "fact", ""),
    ],
)
def test_the_kind_of_a_statement(said: str, kind: str, until: str) -> None:
    found, end = kind_of(said, NOW)
    assert (found, f"{end:%Y-%m-%d}" if end else "") == (kind, until)
