"""A proposal in the inbox, as people decide about it."""

from __future__ import annotations

from simplemem.models import Value


class Proposal(Value):
    """A change that an agent proposes.

    `name` is the note of the proposal, and `what` says what the change does, a line per note.
    `targets` are the names of the notes that it changes. `diff` is the difference that accepting it
    would make now. `conflict` says why it cannot be accepted as it is; "" if it can. `who`, `tool`,
    `reason`, `session` and `sources` are those of a `HistoryEntry`, and `when` is a time in UTC.
    """

    name: str
    sha256: str
    what: tuple[str, ...]
    targets: tuple[str, ...]
    who: str
    tool: str
    reason: str
    when: str
    session: str = ""
    sources: tuple[str, ...] = ()
    diff: str = ""
    conflict: str = ""


class Decided(Value):
    """What became of a proposal: "accepted", "declined", or "open" because of a `problem`.

    `version` is that of the change in the history, which one undo takes back.
    """

    name: str
    outcome: str
    version: str = ""
    targets: tuple[str, ...] = ()
    problem: str = ""
