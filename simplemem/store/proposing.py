"""Turn changes by agents into proposals, where the settings ask for review.

Each write of each interface passes `Proposing.check`, once the vault knows that it is possible.
docs/internals/history.md#proposals describes what becomes of a proposal.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from simplemem.errors import Proposed, ReadOnly
from simplemem.note.dates import format_log_time
from simplemem.note.header import read_header
from simplemem.note.names import base_name, name_of
from simplemem.note.proposal import (
    PROPOSING_TOOL,
    ProposedChange,
    ProposedStep,
    describe_step,
    format_proposal,
    is_proposal,
)
from simplemem.note.scopes import is_private_by_rule
from simplemem.store.edits import encoded
from simplemem.store.vault_index import IndexKeeper
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Author, FileChange, sha256

PROPOSAL_FOLDER = "inbox"
"""The folder of the proposals."""

_MAX_NAME = 60  # characters of the target in the name of a proposal
_MAX_STEPS_NAMED = 3


class Proposing:
    """Decides which changes become proposals, and writes these. Guards no state of its own."""

    def __init__(self, vault: NoteSource, keeper: IndexKeeper, review: Sequence[str]) -> None:
        """Begin with the rules for the paths where agents may only propose changes."""
        self._vault = vault
        self._keeper = keeper
        self._review = review

    def check(
        self, changes: Sequence[FileChange], texts: Mapping[str, bytes], author: Author
    ) -> None:
        """Return if the changes may be made.

        `texts` are the bytes of the files that they change. Those of people always may. Raises
        Proposed if an agent's change needs review, after its proposal was written, and ReadOnly if
        an agent would write, move or delete a proposal.
        """
        kind = author.kind or self._vault.history.log.kind
        if kind == "human":
            return

        for change in changes:
            _check_is_no_proposal(change, texts)
        requested = _requested(changes)
        if any(self._needs_review(change) for change in requested):
            self._propose(requested, texts, author)

    def _needs_review(self, change: FileChange) -> bool:
        """Return whether a person decides about changes at the old or the new path of a file."""
        paths = (change.path, change.target)
        return any(is_private_by_rule(path, self._review) for path in paths)

    def _propose(
        self, changes: Sequence[FileChange], texts: Mapping[str, bytes], author: Author
    ) -> None:
        """Write a proposal, unless an earlier call has written the same one, and raise Proposed."""
        proposal = ProposedChange(
            steps=tuple(_step_of(change) for change in changes),
            who=author.who,
            tool=author.tool,
            reason=author.reason,
            when=format_log_time(datetime.now(UTC)),
            session=author.session,
            sources=author.sources,
        )
        path = _path_of(proposal)
        whole_vault = self._vault.without_rules()  # the inbox may be hidden from the agent
        whole_vault.before_write = None
        if whole_vault.entry(path) is None:
            text = format_proposal(proposal, texts)
            whole_vault.create(path, encoded(text), author._replace(tool=PROPOSING_TOOL))
            # For a merge, if the file changes or is created meanwhile.
            templates = [change.template for change in changes if change.template is not None]
            for base in (*texts.values(), *templates):
                whole_vault.store_text(base)
            if not self._vault.access.hides(path):
                self._keeper.index_written({path})
        raise _proposed(proposal, path)


def _check_is_no_proposal(change: FileChange, texts: Mapping[str, bytes]) -> None:
    """Raise ReadOnly if a change makes, changes, moves or removes a proposal."""
    for data in (change.data, texts.get(change.path)):
        if data is None or b"change-proposal" not in data:
            continue
        text = data.decode("utf-8", "replace")
        if is_proposal(read_header(text).properties):
            raise ReadOnly(
                f"{name_of(change.target)} is a proposal, and nothing was changed",
                hint="A person accepts or declines it.",
            )


def _requested(changes: Sequence[FileChange]) -> Sequence[FileChange]:
    """Return the changes without the links that a move rewrites: they follow from the move."""
    moves = [change for change in changes if change.new_path is not None]
    return moves or changes


def _step_of(change: FileChange) -> ProposedStep:
    """Return a change as a step of a proposal."""
    if change.new_path is not None:
        return ProposedStep("move", change.path, change.old_sha256, change.new_path)
    if change.is_deletion:
        return ProposedStep("delete", change.path, change.old_sha256)
    if change.old_sha256 is None:
        base = None if change.template is None else sha256(change.template)
        return ProposedStep("create", change.path, base, data=change.data or b"")
    return ProposedStep("update", change.path, change.old_sha256, data=change.data or b"")


def _path_of(proposal: ProposedChange) -> str:
    """Return the path of a proposal's note, which a repeated call has too."""
    target = base_name(proposal.steps[0].path)[:_MAX_NAME].strip()
    return f"{PROPOSAL_FOLDER}/{target} {proposal.id}.md"


def _proposed(proposal: ProposedChange, path: str) -> Proposed:
    """Return the error that tells an agent that a person decides about its change."""
    steps = [describe_step(step) for step in proposal.steps[:_MAX_STEPS_NAMED]]
    if len(proposal.steps) > _MAX_STEPS_NAMED:
        steps.append(f"{len(proposal.steps) - _MAX_STEPS_NAMED} more")
    return Proposed(
        f"nothing is changed yet: to {' and '.join(steps)} is a proposal now, {name_of(path)}",
        hint="A person accepts or declines it. Do not repeat the call, and tell the user.",
        proposal=name_of(path),
    )
