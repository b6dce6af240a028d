"""Find earlier facts that a later statement puts in doubt, where no rule reads the new value.

`read_change` reads a statement such as "I've changed the alarm code", "We moved" or "I sold the
Volvo". `subject_of` reads what an earlier fact is about. `find_doubtful` compares the two. A fact
is in doubt if the statement and the fact are about the same person, and about one of these:

- the same thing, in the same words ("alarm code"),
- the same topic, of which people have one (home, work, car, partner, diet),
- the value that the statement says is no longer true ("the Volvo").

`changes.toml` has the patterns of each language. Pure.
"""

from __future__ import annotations

from simplemem.features.changes.comparing import StatedSubject, find_doubtful, puts_in_doubt
from simplemem.features.changes.reading import Change, changes_in, read_change
from simplemem.features.changes.subjects import Subject, subject_of

__all__ = [
    "Change",
    "StatedSubject",
    "Subject",
    "changes_in",
    "find_doubtful",
    "puts_in_doubt",
    "read_change",
    "subject_of",
]
