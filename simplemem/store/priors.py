"""The best notes of a ranking, ordered by what else speaks for them: links, and days that the question names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from simplemem.index.index import Index
from simplemem.index.notes import Row
from simplemem.note.names import base_name
from simplemem.search import priors
from simplemem.search.rank import Ranked, with_part
from simplemem.search.spans import any_holds, day_in, spans_in
from simplemem.search.voices import date_in


def with_priors(
    index: Index, question: str, every: Sequence[Ranked], first: Sequence[Ranked], rows: Mapping[int, Row]
) -> list[Ranked]:
    """The whole ranking with the scores that its `first` notes come to have."""
    note_of = {rows[found.note].path: found.note for found in first}
    strong = [found.note for found in first[: priors.STRONG]]
    links = [(source, note_of[path]) for source, path in index.links_among(strong, note_of)]
    ranked = with_part(every, "linked", priors.lent(first, links), priors.LINKED)
    spans = spans_in(question, datetime.now())  # noqa: DTZ005  (local, as notes are)
    if not spans:
        return ranked
    dated = [float(any_holds(spans, _days_of(rows[found.note]))) for found in first]
    return with_part(ranked, "dated", dated, priors.DATED)


def _days_of(row: Row) -> tuple[str, ...]:
    """The day in a note's name or title; of a note without one, when it was made and changed."""
    named = date_in(base_name(row.path)) or day_in(row.title)
    return (named,) if named else (row.created[:10], row.modified[:10])
