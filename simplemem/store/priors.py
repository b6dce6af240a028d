"""The best notes of a ranking, ordered by the days that the question names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from simplemem.index.notes import Row
from simplemem.note.names import base_name
from simplemem.search import priors
from simplemem.search.rank import Ranked, with_part
from simplemem.search.spans import any_holds, day_in, spans_in
from simplemem.search.voices import date_in


def with_priors(
    question: str, every: Sequence[Ranked], first: Sequence[Ranked], rows: Mapping[int, Row]
) -> list[Ranked]:
    """The whole ranking with the scores that its `first` notes come to have."""
    spans = spans_in(question, datetime.now())  # noqa: DTZ005  (local, as notes are)
    if not spans:
        return list(every)
    dated = [float(any_holds(spans, _days_of(rows[found.note]))) for found in first]
    return with_part(every, "dated", dated, priors.DATED)


def _days_of(row: Row) -> tuple[str, ...]:
    """The day in a note's name or title; of a note without one, when it was made and changed."""
    named = date_in(base_name(row.path)) or day_in(row.title)
    return (named,) if named else (row.created[:10], row.modified[:10])
