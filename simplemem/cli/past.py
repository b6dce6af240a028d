"""Commands about what was: history, diff, restore, undo. Each restore or undo is a change, and can itself be undone."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Annotated

import typer

from simplemem.cli.command import WHO, Answer, agree, command, finish, opened, preview
from simplemem.cli.options import WHEN, Name, VaultOption, argument, complete_name, flag, limit_option, option
from simplemem.cli.output import Lines, Part, ago, diff_lines, one_line
from simplemem.cli.write import undo_with
from simplemem.errors import Invalid
from simplemem.note.words import counted

if TYPE_CHECKING:
    from simplemem.memory import Undone, UndoneMany

commands = typer.Typer()
_PANEL = "Go back"
What = Annotated[str | None, argument("NAME|VERSION", "One note, or one step. Without it: all.", complete_name)]


@command(commands, _PANEL)
def history(
    name: What = None,
    diff: Annotated[bool, flag("--diff", "Show what each change did.")] = False,
    blame: Annotated[bool, flag("--blame", "Show who last changed each line of the note instead.")] = False,
    by: Annotated[str, option("--by", "WHO", "Only changes of this client, with or without its version.")] = "",
    since: Annotated[str, option("--since", "WHEN", f"Only changes since {WHEN}.")] = "",
    until: Annotated[str, option("--until", "WHEN", f"Only changes up to {WHEN}.")] = "",
    limit: Annotated[int, limit_option("How many changes at most.")] = 20,
    vault: VaultOption = None,
) -> Answer:
    """Show changes, newest first: ours, each with a version that `undo` and `show --version` take.

    Of one note in a git repository its commits too, which `show --version` and `restore --at` take.

    $ simplemem history Dipper --diff
    $ simplemem history Dipper --blame
    $ simplemem history --by claude-ai --since yesterday"""
    lines, table = Lines(), Lines()
    with opened(vault) as store:
        if blame:
            if name is None:
                raise Invalid("--blame is of one note", hint="simplemem history NAME --blame")
            blamed = store.blame(name)
            facts = {"name": store.resolve(name), "lines": [each.as_dict() for each in blamed]}
            table = [[each.who or each.kind, (ago(each.when), "dim"), each.text] for each in blamed]
            return Answer(facts, table=table)
        entries = store.history(name, limit=limit, diff=diff, by=by, since=since, until=until, steps=True)
        warnings = [store.git_trouble] if name and store.git_trouble else []
    for entry in entries:
        title = f"{entry.name} → {entry.new_name}" if entry.new_name else entry.name
        title += f", {entry.notes} notes" if entry.notes > 1 else ""
        said = (ago(entry.when), " ".join(filter(None, (entry.who, entry.tool))), one_line(entry.reason))
        table.append([(entry.version, "yellow"), entry.op, (title, "cyan"), *((each, "dim") for each in said)])
        if diff:
            lines += [[part for cell in table.pop() for part in (cell, "  ")], *diff_lines(entry.diff), []]
    facts = {"versions": [entry.as_dict() for entry in entries]}
    return Answer(facts, lines if entries else [["No changes."]], table=table, warnings=warnings)


@command(commands, _PANEL)
def diff(
    what: Annotated[str, argument("VERSION|NAME", "A version of `history`, or a note.", complete_name)],
    other: Annotated[str | None, argument("[VERSION]", "A second version, to compare the first with.")] = None,
    since: Annotated[str | None, option("--since", "WHEN", f"Of a note: since {WHEN}. Else: its last change.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Show what a version changed, what lies between two, or what changed in a note.

    $ simplemem diff 12
    $ simplemem diff Dipper --since 'last week'"""
    with opened(vault) as store:
        differences = store.diff(what, other, since=since)
    lines = Lines()
    for each in differences:
        moved = each.name != each.new_name and other is None
        lines += [[(f"{each.name} → {each.new_name}", "cyan")]] if moved else []
        lines += diff_lines(each.diff)
        lines += [[f"{each.new_name}: no difference."]] if not (each.diff or each.doubt or moved) else []
    doubts = [f"{each.name}: {each.doubt}" for each in differences if each.doubt]
    return Answer({"differences": [each.as_dict() for each in differences]}, lines, warnings=doubts)


@command(commands, _PANEL)
def restore(
    name: Name,
    at: Annotated[str | None, option("--at", "WHEN", f"{WHEN}, `before v12`. A day means its end.")] = None,
    new_name: Annotated[str | None, option("--as", "NAME", "Bring it back under this name.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Bring an earlier text of a note back, to the byte. A deleted note needs no --at.

    What the note says now stays in the history: `undo` takes a restore back.

    $ simplemem restore Dipper
    $ simplemem restore Dipper --at '3 days ago' --as 'Dipper as it was'"""
    with opened(vault) as store:
        finish()
        restored = store.restore(name, at=at, new_name=new_name, who=WHO)
    already, at = "" if restored.changed else "already ", "" if restored.at.startswith("before ") else "at "
    said = f"{restored.name} is {already}as it was {at}{restored.at}."
    return Answer(restored.as_dict(), [[(said, "green")]], warnings=restored.warnings)


@command(commands, _PANEL)
def undo(
    what: Annotated[str | None, argument("VERSION|NAME", "Without it: the last change of all.", complete_name)] = None,
    by: Annotated[str, option("--by", "WHO", "Everything this client changed, with or without its version.")] = "",
    since: Annotated[str, option("--since", "WHEN", f"With --by: since {WHEN}.")] = "",
    dry_run: Annotated[bool, flag("--dry-run", "With --by: only show what would become of what.")] = False,
    yes: Annotated[bool, flag("--yes", "With --by: do not ask.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Undo a change, or everything a client changed. Again for the one before; `redo` goes forward.

    Of everything a client changed, what somebody else has changed since is left as it is, and named.

    $ simplemem undo
    $ simplemem undo Dipper
    $ simplemem undo --by claude-ai --since '2 hours ago' --dry-run"""
    if by and not since:
        hint = f"simplemem undo --by {shlex.quote(by)} --since '2 hours ago' --dry-run"
        raise Invalid("--by needs --since: a date or version from which to undo", hint=hint)
    if since and not by:
        hint = f"simplemem undo --by WHO --since {shlex.quote(since)} --dry-run; `simplemem history` shows who"
        raise Invalid("--since needs --by: the client whose changes to undo", hint=hint)
    if (by and what is not None) or (not by and (dry_run or yes)):
        hint = "simplemem undo --by WHO --since WHEN [--dry-run]"
        raise Invalid("--by and --since go together, without a version or a name", hint=hint)
    with opened(vault) as store:
        if not by:
            finish()
            return _undone(store.undo(store.last_step() if what is None else what, who=WHO, tool="undo"))
        plan = store.undo_all(by, since, preview=True)
        if dry_run or not plan.notes:
            return _plan(plan)
        preview(_plan(plan))
        refused, hint = "nobody can be asked here, and nothing was changed", "Add --yes, or look with --dry-run."
        agree("Do it?", refused=refused, hint=hint, yes=yes)
        finish()
        done = store.undo_all(by, since, expected=plan.plan, who=WHO)
        said: list[Part] = [(f"Undid what {done.by} changed in {counted(len(done.notes), 'note')}", "green")]
        return Answer(done.as_dict(), [said, undo_with(done.version)])


@command(commands, _PANEL)
def redo(vault: VaultOption = None) -> Answer:
    """Do again what `undo` took back last, while nothing else was changed since.

    $ simplemem redo"""
    with opened(vault) as store:
        finish()
        return _undone(store.undo(store.last_step(undone=True), who=WHO, tool="redo"))


@command(commands, _PANEL)
def sync(vault: VaultOption = None) -> Answer:
    """Exchange changes with your other machines, over the remote of the vault's git repository.

    What is saved and not staged is committed under your name, what was changed elsewhere is merged note by note, and both
    are pushed, by your own git. What cannot be merged lies beside its note: `simplemem conflicts` lists it. All that came
    is one step, which one `undo` takes back.

    $ simplemem sync"""
    with opened(vault) as store:
        finish()
        done = store.sync_with_remote(who=WHO)
    came = f"{counted(len(done.changed), 'file')} came" if done.changed else "nothing new came"
    lines: Lines = [
        [("In step", "green"), f" with {done.remote}: {counted(done.committed, 'change')} committed, {came}"]
    ]
    lines += [undo_with(done.version)] if done.version else []
    lines += [[("beside its note: ", "yellow"), (each, "cyan"), " (`simplemem conflicts`)"] for each in done.copies]
    waits = [f"{each} waits: it is staged by you" for each in done.waiting]
    return Answer(done.as_dict(), lines, warnings=waits)


def _undone(undone: Undone) -> Answer:
    return Answer(undone.as_dict(), [[(one_line(f"{undone.what[:1].upper()}{undone.what[1:]}"), "green")]])


def _plan(plan: UndoneMany) -> Answer:
    lines = Lines()
    for note in plan.notes:
        name = f"{note.name} → {note.new_name}" if note.new_name else note.name
        lines.append([f"{note.becomes:<12}  ", (name, "cyan"), (f"  before {note.since}", "dim")])
    lines = lines or [[f"Nothing that {plan.by} changed since {plan.since} is to be undone."]]
    left = [[("left as it is  ", "yellow"), (each.name, "cyan"), (f"  {each.why}", "dim")] for each in plan.left]
    return Answer(plan.as_dict(), [*lines, *left])
