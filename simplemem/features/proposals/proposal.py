"""A proposal in the inbox, as people decide about it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from simplemem.models import Value
from simplemem.note.names import name_of
from simplemem.note.proposal import ProposedChange, describe_step


class Proposal(Value):
    """A change that an agent proposes, and what accepting it would do now.

    `name` is the note of the proposal, and `sha256` the hash of that. `diff` is the difference that
    accepting it would make. `conflict` says why it cannot be accepted as it is; "" if it can.
    """

    name: str
    sha256: str
    change: ProposedChange
    diff: str = ""
    conflict: str = ""

    @property
    def what(self) -> tuple[str, ...]:
        """What the change does, a line per note."""
        return tuple(map(describe_step, self.change.steps))

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the notes that the change concerns."""
        return tuple(name_of(step.path) for step in self.change.steps)

    def as_dict(self) -> dict[str, Any]:
        """Return what is known of the proposal as JSON values, without the new texts."""
        about_change = asdict(self.change)
        del about_change["steps"]
        return {
            "name": self.name,
            "sha256": self.sha256,
            "what": list(self.what),
            "targets": list(self.targets),
            **about_change,
            "sources": list(self.change.sources),
            "diff": self.diff,
            "conflict": self.conflict,
        }


class Decided(Value):
    """What became of a proposal: "accepted", "declined", or "open" because of a `problem`.

    `version` is that of the change in the history, which one undo takes back.
    """

    name: str
    outcome: str
    version: str = ""
    targets: tuple[str, ...] = ()
    problem: str = ""
