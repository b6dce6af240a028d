"""The commands `review`: what agents changed, and what they propose to change.

In a terminal, `review` shows one after the other and asks what to do with it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from simplemem.cli.command import WHO, Answer, can_ask, command, finish, opened, show
from simplemem.cli.options import WHEN, VaultOption, argument, default_group, flag, option
from simplemem.cli.output import SHRINKS, WHOLE, Lines, Part, ago, diff_lines, one_line
from simplemem.models import OWNER
from simplemem.note.diff import unified_diff
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.features.proposals.proposal import Decided, Proposal
    from simplemem.features.review.inbox import ActionResult, InboxFilter, LaterEdit, ReviewItem
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_review = default_group(
    commands,
    "History",
    "review",
    "Review what agents changed or propose.",
    "$ simplemem review\n$ simplemem review keep v12\n$ simplemem review accept 'Plan 1a2b3c4d'",
)
_MAX_ITEMS = 1000
_KEYS = "k keep, u undo, e edit, s skip, q quit"
_PROPOSAL_KEYS = "a accept, d decline, e edit, s skip, q quit"

Versions = Annotated[list[str], argument("VERSION...", "Versions that the list shows.")]
ProposalName = Annotated[str, argument("NAME", "A proposal that the list shows.")]


class _Quit(Exception):
    """The user wants to see no more. `has_decided` says whether the last action was a decision."""

    def __init__(self, *, has_decided: bool = False) -> None:
        super().__init__()
        self.has_decided = has_decided


@command(_review, name="list")
def list_review(
    agent: Annotated[str, option("--agent", "AGENT", "Only changes by this agent.")] = "",
    folder: Annotated[str, option("--folder", "FOLDER", "Only notes in this folder.")] = "",
    since: Annotated[str, option("--since", "WHEN", f"Only changes since {WHEN}.")] = "",
    everything: Annotated[bool, flag("--all", "Include what you have kept or undone.")] = False,
    warnings: Annotated[
        bool, flag("--warnings", "Only what is to be reviewed and has a warning.")
    ] = False,
    no_questions: Annotated[
        bool, flag("--list", "Only list, also in a terminal; ask nothing.")
    ] = False,
    vault: VaultOption = None,
) -> Answer:
    """List what agents changed and propose; in a terminal, decide one by one.

    Proposals with a ticked box are carried out first.

    $ simplemem review
    $ simplemem review list --agent claude-ai --since yesterday"""
    from simplemem.features.proposals.service import proposals_of
    from simplemem.features.review.inbox import InboxFilter

    with opened(vault) as store:
        decided = proposals_of(store).carry_out_ticked()
        proposals = proposals_of(store).list()
        conditions = InboxFilter(
            OWNER,
            agent,
            folder,
            since,
            only_unreviewed=not everything or warnings,
            only_with_warnings=warnings,
            limit=_MAX_ITEMS,
        )
        items = _list_items(store, conditions)
        is_empty = not items and not proposals
        if can_ask() and not no_questions and not is_empty:
            return _ask_about_all(store, proposals, items)

    return _list_answer(decided, proposals, items)


def _list_items(store: EnhancedStore, conditions: InboxFilter) -> list[ReviewItem]:
    """Return the items of the inbox."""
    from simplemem.features.review.service import review_of

    groups = review_of(store).inbox(conditions).groups
    return [item for group in groups for item in group.items]


def _list_answer(
    decided: Sequence[Decided], proposals: Sequence[Proposal], items: Sequence[ReviewItem]
) -> Answer:
    """Return the list of proposals and items, with the proposals that were just decided."""
    facts = {
        "decided": [each.as_dict() for each in decided],
        "proposals": [proposal.as_dict() for proposal in proposals],
        "items": [item.as_dict() for item in items],
        "left": sum(item.is_open for item in items),
    }
    if not items and not proposals:
        return Answer(facts, [[("Nothing to review.", "green")]])
    rows = [_proposal_row(proposal) for proposal in proposals]
    rows += [_item_row(item) for item in items]
    return Answer(facts, table=rows, columns=(WHOLE, WHOLE, WHOLE, WHOLE, SHRINKS))


def _proposal_row(proposal: Proposal) -> list[Part]:
    """Return a proposal as a row: its name, what it does, time, author and reason."""
    what = ", ".join(proposal.what)
    if proposal.conflict:
        what += " (conflict)"
    return [
        (proposal.name, "yellow"),
        (what, "cyan"),
        (ago(proposal.change.when), "dim"),
        (proposal.change.who or "a program", "dim"),
        (one_line(proposal.change.reason), "dim"),
    ]


def _item_row(item: ReviewItem) -> list[Part]:
    """Return an item of the inbox as a row: its versions, what was done, time, author, reason."""
    what = f"{item.op} {item.name}"
    if len(item.notes) > 1:
        what += f" and {format_count(len(item.notes) - 1, 'more note')}"
    if item.is_undone:
        what += " (undone)"
    elif item.is_kept:
        what += " (kept)"
    return [
        (" ".join(item.versions), "yellow"),
        (what, "cyan"),
        (ago(item.when), "dim"),
        (item.who or "a program", "dim"),
        (one_line(item.reason), "dim"),
    ]


# -- one by one


def _ask_about_all(
    store: EnhancedStore, proposals: Sequence[Proposal], items: Sequence[ReviewItem]
) -> Answer:
    """Show each proposal and each open item, and do what the user wants with it.

    Returns how many were decided. Ctrl-C ends it between two decisions, which are never half done.
    """
    decided = 0
    try:
        for proposal in proposals:
            decided += _ask_about_proposal(store, proposal)
        for item in items:
            if item.is_open:
                decided += _ask_about_item(store, item)
    except _Quit as end:
        decided += end.has_decided
    return Answer({"decided": decided}, [[f"Decided about {format_count(decided, 'change')}."]])


def _ask_about_proposal(store: EnhancedStore, proposal: Proposal) -> bool:
    """Show a proposal and carry out the answer. Return whether the user decided."""
    from simplemem.features.proposals.service import proposals_of

    def edit() -> Answer:
        """Have the user edit the proposal, in which the proposed text may be changed."""
        saved = _edit(store, proposal.name)
        changed = proposals_of(store).find(proposal.name)
        return replace(saved, lines=[*saved.lines, *_proposal_lines(changed)])

    show(Answer({}, _proposal_lines(proposal)))
    decisions: dict[str, Callable[[], Answer]] = {
        "a": lambda: _accept(store, proposal.name, overwrite=False),
        "d": lambda: _decline(store, proposal.name),
    }
    return _ask(_PROPOSAL_KEYS, decisions, edit)


def _proposal_lines(proposal: Proposal) -> Lines:
    """Return a proposal with the difference that it would make, as lines."""
    lines: Lines = [_spaced(_proposal_row(proposal))]
    if proposal.conflict:
        lines.append([("conflict: ", "red"), proposal.conflict])
    return [*lines, *diff_lines(proposal.diff)]


def _ask_about_item(store: EnhancedStore, item: ReviewItem) -> bool:
    """Show a change and carry out the answer. Return whether the user decided."""
    lines: Lines = [_spaced(_item_row(item))]
    lines += [[("warning: ", "yellow"), warning] for warning in item.text.warnings]
    if item.later_edit is None:
        lines += _difference_of_steps(store, item)
    else:
        lines += _what_is_left(store, item, item.later_edit)
    show(Answer({}, lines))
    decisions: dict[str, Callable[[], Answer]] = {
        "k": lambda: _keep(store, item.versions),
        "u": lambda: _undo(store, item.versions),
    }
    return _ask(_KEYS, decisions, lambda: _edit(store, item.name))


def _difference_of_steps(store: EnhancedStore, item: ReviewItem) -> Lines:
    """Return what each step of an item changed, below its version and reason if there are several.

    `simplemem review undo VERSION` undoes one step.
    """
    reasons = {step.version: one_line(step.reason) for step in item.steps}
    lines: Lines = []
    for version in item.versions:
        if version in reasons:
            lines.append([(version, "yellow"), "  ", (reasons[version], "dim")])
        for difference in store.diff(version):
            lines += diff_lines(difference.diff)
    return lines


def _what_is_left(store: EnhancedStore, item: ReviewItem, edit: LaterEdit) -> Lines:
    """Return what is left of a change in a note that a person changed since."""
    from simplemem.features.review.service import review_of

    what = "deleted" if edit.op == "delete" else "edited"
    note = f"{what} since by {edit.who}, {ago(edit.when)}; to keep it leaves the note as it is now"
    lines: Lines = [[(note, "cyan")]]
    for texts in review_of(store).texts_of(item):
        names = (texts.note.name, texts.note.current_name)
        lines += diff_lines(unified_diff(texts.old.encode(), texts.new.encode(), names))
    return lines


def _spaced(row: Sequence[Part]) -> list[Part]:
    """Return the cells of a row as one line, with two spaces between them."""
    parts: list[Part] = []
    for cell in row:
        parts += [cell, "  "]
    return parts


def _ask(
    keys: str, decisions: Mapping[str, Callable[[], Answer]], edit: Callable[[], Answer]
) -> bool:
    """Ask for a key until the user decides or skips. Return whether it was a decision.

    After `edit`, or if a decision is refused, it asks again. Raises _Quit for "q" and for Ctrl-C,
    which does not interrupt an action that has begun.
    """
    actions = {**decisions, "e": edit}
    while True:
        try:
            key = typer.prompt(keys, default="s", show_default=False, err=True).strip().lower()
        except (typer.Abort, KeyboardInterrupt):
            raise _Quit from None
        if key == "q":
            raise _Quit
        if key == "s":
            return False
        action = actions.get(key)
        if action is None:
            continue

        is_done = _act(action, is_decision=key in decisions)
        if is_done and key in decisions:
            return True


def _act(action: Callable[[], Answer], *, is_decision: bool) -> bool:
    """Carry out an action, and show what it did or why it was refused. Return whether it was done.

    If the user presses Ctrl-C meanwhile, raises _Quit when the action is done and shown.
    """
    from simplemem.errors import SimplememError

    is_done = False
    try:
        with finish():
            answer = action()
            show(answer)
            is_done = not answer.failed
    except SimplememError as error:
        show(Answer({}, [[(error.message, "red")], [(error.hint, "dim")]]))
    except KeyboardInterrupt:
        raise _Quit(has_decided=is_done and is_decision) from None
    return is_done


def _edit(store: EnhancedStore, name: str) -> Answer:
    """Have the user edit a note in $EDITOR. Raises what `edit_note` raises."""
    from simplemem.cli.editor import edit_note
    from simplemem.cli.write import saved_answer

    return saved_answer(edit_note(store, name, merge=False))


# -- decisions


@command(_review)
def keep(versions: Versions, vault: VaultOption = None) -> Answer:
    """Record that you have reviewed changes and want them to stay.

    $ simplemem review keep v12 v13"""
    with opened(vault) as store:
        finish()
        return _keep(store, versions)


@command(_review)
def undo(versions: Versions, vault: VaultOption = None) -> Answer:
    """Undo changes, the newest first. Each is undone or not by itself.

    $ simplemem review undo v12"""
    with opened(vault) as store:
        finish()
        return _undo(store, versions)


@command(_review)
def accept(
    name: ProposalName,
    overwrite: Annotated[
        bool, flag("--overwrite", "Replace what else has changed in the note since.")
    ] = False,
    vault: VaultOption = None,
) -> Answer:
    """Make a proposed change, as one step of the history.

    If the note has changed since, both changes are merged. If they touch the same lines, nothing is
    changed.

    $ simplemem review accept 'Plan 1a2b3c4d'"""
    with opened(vault) as store:
        finish()
        return _accept(store, name, overwrite=overwrite)


@command(_review)
def decline(name: ProposalName, vault: VaultOption = None) -> Answer:
    """Remove a proposal without making its change. `undo` brings it back.

    $ simplemem review decline 'Plan 1a2b3c4d'"""
    with opened(vault) as store:
        finish()
        return _decline(store, name)


def _keep(store: EnhancedStore, versions: Sequence[str]) -> Answer:
    """Keep changes, and return what was done."""
    from simplemem.features.review.service import review_of

    return _results_answer(review_of(store).keep(versions, OWNER))


def _undo(store: EnhancedStore, versions: Sequence[str]) -> Answer:
    """Undo changes, and return what was done."""
    from simplemem.features.review.service import review_of

    return _results_answer(review_of(store).undo(versions, who=WHO, tool="review", kind="human"))


def _results_answer(results: Sequence[ActionResult]) -> Answer:
    """Return what became of each version, and a failure if one was refused."""
    lines: Lines = []
    for result in results:
        if result.is_done:
            lines.append([(f"{result.version}: {result.what}", "green")])
        else:
            lines.append([(f"{result.version}: {result.error}", "red")])
            if result.hint:
                lines.append([(result.hint, "dim")])
    facts = {"results": [result.as_dict() for result in results]}
    return Answer(facts, lines, failed=any(not result.is_done for result in results))


def _accept(store: EnhancedStore, name: str, *, overwrite: bool) -> Answer:
    """Accept a proposal, and return what was done. Raises what `ProposalService.accept` raises."""
    from simplemem.features.proposals.service import proposals_of

    decided = proposals_of(store).accept(name, overwrite=overwrite, who=WHO)
    text = f"Accepted: {', '.join(decided.targets)} ({decided.version})"
    return Answer(decided.as_dict(), [[(text, "green")]])


def _decline(store: EnhancedStore, name: str) -> Answer:
    """Decline a proposal, and return what was done."""
    from simplemem.features.proposals.service import proposals_of

    decided = proposals_of(store).decline(name, who=WHO)
    text = f"Declined {decided.name} ({decided.version})"
    return Answer(decided.as_dict(), [[(text, "green")]])
