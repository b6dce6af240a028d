"""What is wrong with entries that somebody wrote or merged by hand. Pure; nothing is changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from simplemem.kinds.learned.entries import MOST_CHARACTERS, TYPES, Entry


@dataclass(frozen=True, slots=True)
class Problem:
    """Something to mend in an entry; a note is only a remark."""

    level: Literal["error", "warning", "note"]
    entry: Entry
    says: str


def validate(entries: Sequence[Entry], leading_nowhere: Mapping[str, Sequence[str]]) -> list[Problem]:
    """Everything that is wrong with some entries; `leading_nowhere` are the targets of relations, by an entry's path, that
    are no note."""
    ids = Counter(entry.id for entry in entries)
    found: list[Problem] = []
    for entry in entries:
        if entry.problem:
            found.append(Problem("error", entry, entry.problem))
            continue
        if ids[entry.id] > 1:
            found.append(Problem("error", entry, f"its id {entry.id} is that of {ids[entry.id] - 1} more"))
        if entry.id == entry.name:
            found.append(Problem("note", entry, "it has no id; its name stands for it"))
        if entry.type not in TYPES:
            found.append(Problem("warning", entry, f"its type {entry.type} is none of {', '.join(TYPES)}"))
        if not entry.content:
            found.append(Problem("warning", entry, "it says nothing"))
        if len(entry.content) > MOST_CHARACTERS:
            found.append(Problem("note", entry, f"it has more than {MOST_CHARACTERS:,} characters"))
        if entry.confidence is None:
            found.append(Problem("warning", entry, "it has no confidence from 0 to 1"))
        if entry.is_superseded and not entry.superseded_by:
            found.append(Problem("warning", entry, "it is superseded, and does not say by what"))
        found += [
            Problem("warning", entry, f"it leads to {target}, which is no note")
            for target in leading_nowhere.get(entry.path, ())
        ]
    return found
