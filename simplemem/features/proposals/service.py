"""The proposals of one store: list them, accept and decline them.

docs/proposals.md describes proposals for people, docs/internals/history.md#proposals how they work.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Unpack

from simplemem.errors import AlreadyExists, Conflict, NotFound, SimplememError
from simplemem.features.proposals.applying import apply_step, current_path, describe_difference
from simplemem.features.proposals.proposal import Decided, Proposal
from simplemem.features.service import FeatureService
from simplemem.models import AuthorArgs
from simplemem.note.names import base_name, name_of
from simplemem.note.proposal import (
    ProposedChange,
    decision_in,
    read_proposal,
    with_conflict,
)
from simplemem.store import PROPOSAL_FOLDER, Draft

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_EDITOR: Final = "editor"  # the person who ticked a box, whose name is not known
_WITHOUT_DECISION: Final = ("undo", "restore")


def proposals_of(store: EnhancedStore) -> ProposalService:
    """Return the proposals of a store, the same object for each call."""
    return ProposalService.of(store)


@dataclass(frozen=True)
class _OpenProposal:
    """The note of a proposal as it is on the disk, and the change that it proposes."""

    path: str
    text: str
    sha256: str
    change: ProposedChange

    @property
    def name(self) -> str:
        """The name of the note."""
        return name_of(self.path)

    @property
    def targets(self) -> tuple[str, ...]:
        """The names of the notes that the change concerns, before it is made."""
        return tuple(name_of(step.path) for step in self.change.steps)

    @property
    def data(self) -> bytes:
        """The bytes of the note."""
        return self.text.encode("utf-8", "surrogatepass")


class ProposalService(FeatureService):
    """Lists the proposals of a vault, and carries out what people decide. Guards no state."""

    def list(self) -> tuple[Proposal, ...]:
        """Return the proposals that nobody has decided about, oldest first."""
        found = sorted(self._open_proposals(), key=lambda found: (found.change.when, found.path))
        return tuple(map(self._describe, found))

    def _open_proposals(self) -> Iterator[_OpenProposal]:
        """Yield the proposals in the folder of proposals. Damaged ones are left out."""
        entries = self.extension.entries_below(PROPOSAL_FOLDER)
        paths = [entry.path for entry in entries if entry.path.endswith(".md")]
        for note in self.extension.read(paths):
            change = None if note.problem else read_proposal(note.text)
            if change is not None:
                yield _OpenProposal(note.path, note.text, note.sha256, change)

    def _describe(self, found: _OpenProposal) -> Proposal:
        """Return a proposal with what accepting it would do now."""
        diff, conflict = describe_difference(self.store, found.change.steps)
        return Proposal(name_of(found.path), found.sha256, found.change, diff, conflict)

    def find(self, name: str) -> Proposal:
        """Return a proposal by its name, which may lack the folder. Raises NotFound."""
        return self._describe(self._find(name))

    def _find(self, name: str) -> _OpenProposal:
        """Return an open proposal by its name or the last part of it.

        Raises NotFound, with the names of the others as candidates.
        """
        wanted = name.strip().removesuffix(".md")
        names = []
        for found in self._open_proposals():
            if wanted in (found.name, base_name(found.path)):
                return found
            names.append(found.name)
        raise NotFound(
            f"no open proposal called {name[:100]!r}",
            candidates=names,
            hint="Perhaps somebody has decided about it already; the history says so.",
        )

    # Decisions

    def accept(
        self, name: str, *, overwrite: bool = False, **author: Unpack[AuthorArgs]
    ) -> Decided:
        """Make the change that was proposed, and remove the proposal, as one step of the history.

        `author` is the person who accepts it; the reason of the step names the agent. If a note has
        changed since, both changes are merged. Raises Conflict if they cannot be merged, unless the
        proposal may `overwrite` the other change; NotFound if there is no such proposal,
        AlreadyExists if a note to move would replace another one, and ReadOnly. Nothing is changed
        then.
        """
        self.extension.must_be_writable()
        found = self._find(name)
        change = found.change
        by = _accepted_by(change, author)
        new_names = tuple(name_of(step.new_path or step.path) for step in change.steps)

        moves = {
            current_path(self.store, step): step.new_path
            for step in change.steps
            if step.new_path is not None
        }
        if moves:
            moved = self.extension.move(moves, deleted={found.path: found.sha256}, **by)
            return Decided(found.name, "accepted", moved[0].version, new_names)

        written = self.extension.change(lambda: self._drafts(found, overwrite=overwrite), **by)
        version = written.written[0].version
        return Decided(found.name, "accepted", version, new_names)

    def _drafts(self, found: _OpenProposal, *, overwrite: bool) -> Sequence[Draft]:
        """Return what the files become that a proposal changes. Its own note is deleted.

        Raises what `apply_step` raises, and NotFound if somebody else decided meanwhile.
        """
        if self.extension.bytes_of(found.path) != found.data:
            raise NotFound(f"{found.name} has changed meanwhile", hint="List the proposals again.")
        drafts = []
        for step in found.change.steps:
            text = apply_step(self.store, step, overwrite=overwrite)
            if text is not None:
                drafts.append(Draft(text.path, text.new, text.old))
        drafts.append(Draft(found.path, None, found.data))
        return drafts

    def decline(self, name: str, **author: Unpack[AuthorArgs]) -> Decided:
        """Remove a proposal without making its change. One undo brings the proposal back.

        Raises NotFound if there is no such proposal, and ReadOnly.
        """
        self.extension.must_be_writable()
        found = self._find(name)
        change = found.change
        by = author | AuthorArgs(tool="decline", kind="human")
        by["reason"] = _reason("declined, proposed", change, author.get("reason", ""))
        written = self.extension.change(lambda: [Draft(found.path, None, found.data)], **by)
        return Decided(found.name, "declined", written.written[0].version, found.targets)

    # Boxes in the notes

    def carry_out_ticked(self) -> tuple[Decided, ...]:
        """Carry out the proposals in which a person has ticked a box, in an editor or elsewhere.

        A box that an agent has ticked does not count, nor one that an undo has brought back. If a
        proposal cannot be accepted, its boxes are emptied, and a callout says why. Does nothing in
        a read-only vault.
        """
        if self.extension.read_only:
            return ()
        decided = []
        for found in list(self._open_proposals()):
            decision = decision_in(found.text)
            if decision and self._is_by_person(found):
                # Another process may carry it out at the same moment.
                with suppress(NotFound):
                    decided.append(self._carry_out(found, decision))
        return tuple(decided)

    def _is_by_person(self, found: _OpenProposal) -> bool:
        """Return whether a person has given the note of a proposal its present text."""
        versions = self.extension.changes_of(found.path, 1)
        if not versions or versions[0].after != found.sha256:
            return True
        return versions[0].is_by_person and versions[0].op not in _WITHOUT_DECISION

    def _carry_out(self, found: _OpenProposal, decision: str) -> Decided:
        """Accept or decline a proposal for the person who ticked a box.

        Raises NotFound if somebody else has decided meanwhile.
        """
        name = found.name
        if decision == "decline":
            return self.decline(name, who=_EDITOR)
        try:
            return self.accept(name, who=_EDITOR)
        except (Conflict, AlreadyExists) as error:
            text = with_conflict(found.text, f"{error.message}. {error.hint}".strip())
            with suppress(SimplememError):  # the person is editing it
                self.store.write_text(
                    name, text, if_sha256=found.sha256, who=_EDITOR, tool="accept", kind="human"
                )
            return Decided(name, "open", "", found.targets, error.message)


def _accepted_by(change: ProposedChange, author: AuthorArgs) -> AuthorArgs:
    """Return the author of an accepted change: the person, and the agent in the reason."""
    by = author | AuthorArgs(tool="accept", kind="human")
    by["reason"] = _reason("proposed", change, author.get("reason", ""))
    by["session"] = change.session
    by["sources"] = change.sources
    return by


def _reason(verb: str, change: ProposedChange, persons_reason: str) -> str:
    """Return the reason of a step: who proposed it with which tool and why, and the person's."""
    reason = f"{verb} by {change.who or 'an agent'} ({change.tool})"
    for text in (change.reason, persons_reason):
        if text:
            reason += f": {text}"
    return reason
