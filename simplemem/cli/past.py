"""Commands about earlier versions: history, diff, restore, undo, redo, sync. Each restore or undo can itself be undone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from simplemem.cli.command import WHO, Answer, agree, command, finish, opened, preview
from simplemem.cli.options import (
    WHEN,
    Name,
    VaultOption,
    argument,
    complete_name,
    flag,
    limit_option,
    option,
)
from simplemem.cli.output import OPTIONAL, SHRINKS, WHOLE, Lines, Part, ago, diff_lines, one_line
from simplemem.cli.paths import new_name_in_vault
from simplemem.cli.write import undo_with
from simplemem.errors import Conflict, Invalid
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.models import HistoryEntry, Undone, UndoneMany
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "History"
_WOULD = {  # how a plan names what becomes of a note
    "moved back": "would move back",
    "deleted": "would delete",
    "changed back": "would change back",
    "brought back": "would bring back",
}
_MAX_SEARCHED = 1000  # changes whose authors are looked at
_MAX_AUTHORS = 10
_AUTHOR = "The version of a client can be left out. The name of a token includes each client that used it."
What = Annotated[
    str | None, argument("NAME|VERSION", "A note, or the version of a step.", complete_name)
]


@command(commands, _PANEL, old_options={"--by": "author"})
def history(
    name: What = None,
    diff: Annotated[bool, flag("--diff", "Show what each change did.")] = False,
    blame: Annotated[bool, flag("--blame", "Show who last changed each line of the note.")] = False,
    author: Annotated[
        str, option("--author", "AUTHOR", f"Only changes by this author. {_AUTHOR}")
    ] = "",
    since: Annotated[str, option("--since", "WHEN", f"Only changes since {WHEN}.")] = "",
    until: Annotated[str, option("--until", "WHEN", f"Only changes up to {WHEN}.")] = "",
    limit: Annotated[int, limit_option("The maximum number of changes.")] = 20,
    vault: VaultOption = None,
) -> Answer:
    """List changes, newest first.

    Each change has a version, which `undo`, `diff` and `show --version` accept. The history of one note in a git
    repository includes the commits of the note, which `show --version` and `restore --at` accept.

    $ simplemem history Dipper --diff
    $ simplemem history Dipper --blame
    $ simplemem history --author claude-ai --since yesterday"""
    lines, table = Lines(), Lines()
    with opened(vault) as store:
        if blame:
            if name is None:
                raise Invalid("--blame needs a note", hint="Use `simplemem history NAME --blame`.")
            blamed = store.blame(name)
            facts = {"name": store.resolve(name), "lines": [each.as_dict() for each in blamed]}
            table = [[each.who or each.kind, (ago(each.when), "dim"), each.text] for each in blamed]
            return Answer(facts, table=table)
        entries = store.history(
            name, limit=limit, diff=diff, by=author, since=since, until=until, steps=True
        )
        warnings = [store.git_trouble] if name and store.git_trouble else []
        if author and not entries:
            lines = _nothing_by(author, store.history(name, limit=_MAX_SEARCHED))
    for entry in entries:
        title = f"{entry.name} → {entry.new_name}" if entry.new_name else entry.name
        if entry.notes > 1:
            title += f" and {format_count(entry.notes - 1, 'more note')}"
        changed_by = entry.who or "a program"
        details = (ago(entry.when), changed_by, entry.tool, one_line(entry.reason))
        table.append(
            [
                (entry.version, "yellow"),
                entry.op,
                (title, "cyan"),
                *((each, "dim") for each in details),
            ]
        )
        if diff:
            lines += [
                [part for cell in table.pop() for part in (cell, "  ")],
                *diff_lines(entry.diff),
                [],
            ]
    facts = {"versions": [entry.as_dict() for entry in entries]}
    columns = (WHOLE, WHOLE, WHOLE, WHOLE, OPTIONAL, OPTIONAL, SHRINKS)
    return Answer(
        facts,
        lines or ([] if entries else [["No changes through simplemem."]]),
        table=table,
        columns=columns,
        warnings=warnings,
    )


def _nothing_by(author: str, entries: Sequence[HistoryEntry]) -> Lines:
    """Say that an author has changed nothing, and name those who have."""
    others = list(dict.fromkeys(entry.who for entry in entries if entry.who))[:_MAX_AUTHORS]
    lines: Lines = [[f"{one_line(author)} has changed nothing here."]]
    if others:
        lines.append([("near: ", "dim"), ", ".join(map(one_line, others))])
    return lines


@command(commands, _PANEL)
def diff(
    what: Annotated[
        str, argument("VERSION|NAME", "A version in `history`, or a note.", complete_name)
    ],
    other: Annotated[
        str | None, argument("VERSION", "A second version, to compare with the first.")
    ] = None,
    since: Annotated[str | None, option("--since", "WHEN", f"For a note: since {WHEN}.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Show what a change did, or how two versions differ.

    For a note, the last change is shown, or all changes since --since.

    $ simplemem diff 12
    $ simplemem diff Dipper --since 'last week'"""
    with opened(vault) as store:
        differences = store.diff(what, other, since=since)
    lines = Lines()
    for each in differences:
        moved = each.name != each.new_name and other is None
        lines += [[(f"{each.name} → {each.new_name}", "cyan")]] if moved else []
        lines += diff_lines(each.diff)
        lines += (
            [[f"{each.new_name}: no difference."]] if not (each.diff or each.doubt or moved) else []
        )
    doubts = [f"{each.name}: {each.doubt}" for each in differences if each.doubt]
    return Answer({"differences": [each.as_dict() for each in differences]}, lines, warnings=doubts)


@command(commands, _PANEL)
def restore(
    name: Name,
    at: Annotated[str | None, option("--at", "WHEN", f"{WHEN.capitalize()}, `before v12`.")] = None,
    new_name: Annotated[str | None, option("--as", "NAME", "Restore it under this name.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Restore an earlier version of a note, or a deleted note.

    The text is restored byte for byte. A date means the end of that day. A deleted note needs no --at. If another note
    has its name now, give the restored note a new name with --as. The current text stays in the history, and `undo`
    takes the restore back.

    $ simplemem restore Dipper
    $ simplemem restore Dipper --at '3 days ago' --as 'Dipper as it was'"""
    with opened(vault) as store:
        if new_name is not None:
            new_name = new_name_in_vault(new_name, store.root)
        finish()
        try:
            restored = store.restore(name, at=at, new_name=new_name, who=WHO)
        except Invalid as error:
            if at is None and "`at`" in error.hint:
                raise Invalid(
                    error.message, hint=_restore_command(store, name, new_name)
                ) from error
            raise
    already, at = (
        "" if restored.changed else "already ",
        "" if restored.at.startswith("before ") else "at ",
    )
    said = f"{restored.name} is {already}as it was {at}{restored.at}."
    return Answer(restored.as_dict(), [[(said, "green")]], warnings=restored.warnings)


def _restore_command(store: EnhancedStore, name: str, new_name: str | None) -> str:
    """The hint with the whole command that restores the text before the last change of a note that is there."""
    latest = store.history(name, limit=1)
    at = shlex.quote(f"before {latest[0].version}") if latest else "WHEN"
    words = ["simplemem restore", shlex.quote(name), "--at", at]
    if new_name is not None:
        words += ["--as", shlex.quote(new_name)]
    restores = f"Pass `--at`: `{' '.join(words)}` restores an earlier text"
    return f"{restores}; `simplemem history {shlex.quote(name)}` lists the versions."


@command(commands, _PANEL, old_options={"--by": "author"})
def undo(
    what: Annotated[
        str | None, argument("VERSION|NAME", "A version in `history`, or a note.", complete_name)
    ] = None,
    author: Annotated[
        str,
        option("--author", "AUTHOR", f"Undo every change by this author; needs --since. {_AUTHOR}"),
    ] = "",
    since: Annotated[str, option("--since", "WHEN", f"With --author: since {WHEN}.")] = "",
    dry_run: Annotated[
        bool, flag("--dry-run", "With --author: show what would change, and change nothing.")
    ] = False,
    yes: Annotated[bool, flag("--yes", "With --author: do not ask for confirmation.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Undo the last change, or every change of one author.

    A second `undo` undoes the change before that; `redo` redoes what was undone. With --author, a note that somebody
    else has changed since is left as it is, and listed.

    $ simplemem undo
    $ simplemem undo Dipper
    $ simplemem undo --author claude-ai --since '2 hours ago' --dry-run"""
    if author and not since:
        hint = (
            f"Use `simplemem undo --author {shlex.quote(author)} --since '2 hours ago' --dry-run`."
        )
        raise Invalid("--author needs --since: a date or version from which to undo", hint=hint)
    if since and not author:
        hint = f"Use `simplemem undo --author AUTHOR --since {shlex.quote(since)}`; `simplemem history` shows the authors."
        raise Invalid("--since needs --author: the author whose changes to undo", hint=hint)
    if (author and what is not None) or (not author and (dry_run or yes)):
        hint = "Use `simplemem undo --author AUTHOR --since WHEN`, or `simplemem undo VERSION`."
        raise Invalid(
            "--author cannot be combined with a version or name, and --dry-run and --yes need --author",
            hint=hint,
        )
    with opened(vault) as store:
        if not author:
            finish()
            return _undo_one(store, what)
        plan = store.undo_all(author, since, preview=True)
        if dry_run or not plan.notes:
            return _plan(plan)
        preview(_plan(plan))
        refused, hint = (
            "this needs confirmation, but there is no terminal",
            "Add --yes, or preview with --dry-run.",
        )
        agree("Undo these changes?", refused=refused, hint=hint, yes=yes)
        finish()
        done = store.undo_all(author, since, expected=plan.plan, who=WHO)
        said: list[Part] = [
            (f"Undid what {done.by} changed in {format_count(len(done.notes), 'note')}", "green")
        ]
        lines: Lines = [said, undo_with(done.version)]
        if done.left:
            lines.append(
                [
                    (
                        f"{format_count(len(done.left), 'note')} left unchanged, as listed above",
                        "yellow",
                    )
                ]
            )
        return Answer(done.as_dict(), lines)


@command(commands, _PANEL)
def redo(vault: VaultOption = None) -> Answer:
    """Redo what `undo` took back.

    This works until something else is changed.

    $ simplemem redo"""
    with opened(vault) as store:
        finish()
        return _undone(store.undo(store.next_to_undo(undone=True), who=WHO, tool="redo"))


@command(commands, "Vault")
def sync(vault: VaultOption = None) -> Answer:
    """Exchange changes with your other machines through git.

    The command commits changes that you have not staged, under your name. It merges changes from elsewhere note by
    note, and your git pushes the result. If two texts cannot be merged, one becomes a conflict copy beside the note, and
    `simplemem conflicts` lists it. Everything that was pulled is one step, which one `undo` takes back.

    $ simplemem sync"""
    with opened(vault) as store:
        finish()
        done = store.sync_with_remote(who=WHO)
    came = (
        f"{format_count(len(done.changed), 'file')} received"
        if done.changed
        else "nothing new received"
    )
    lines: Lines = [
        [
            ("In sync", "green"),
            f" with {done.remote}: {format_count(done.committed, 'change')} committed, {came}",
        ]
    ]
    lines += [undo_with(done.version)] if done.version else []
    lines += [
        [("conflict copy: ", "yellow"), (each, "cyan"), " (`simplemem conflicts` lists it)"]
        for each in done.copies
    ]
    waits = [
        f"{each} was not committed, because you have staged changes in it" for each in done.waiting
    ]
    return Answer(done.as_dict(), lines, warnings=waits)


def _undo_one(store: EnhancedStore, what: str | None) -> Answer:
    """Undo the last change, or the one that is named. A conflict names the command that goes on."""
    try:
        version = store.next_to_undo() if what is None else what
        return _undone(store.undo(version, who=WHO, tool="undo"))
    except Conflict as error:
        restore_at = error.details.get("restore_at")
        if restore_at:
            name = shlex.quote(error.details["path"].removesuffix(".md"))
            command = f"`simplemem restore {name} --at {shlex.quote(restore_at)}`"
            error.hint += f" {command} restores it; the current text stays in the history."
        raise


def _undone(undone: Undone) -> Answer:
    return Answer(
        undone.as_dict(), [[(one_line(f"{undone.what[:1].upper()}{undone.what[1:]}"), "green")]]
    )


def _plan(plan: UndoneMany) -> Answer:
    lines = Lines()
    for note in plan.notes:
        name = f"{note.name} → {note.new_name}" if note.new_name else note.name
        if note.is_moved_with_earlier_text:
            name += ", with its earlier text"
        lines.append(
            [f"{_WOULD[note.becomes]:<20}  ", (name, "cyan"), (f"  before {note.since}", "dim")]
        )
    lines = lines or [[f"No change by {plan.by} since {plan.since} can be undone."]]
    left = [
        [("would leave as it is  ", "yellow"), (each.name, "cyan"), (f"  {each.why}", "dim")]
        for each in plan.left
    ]
    return Answer(plan.as_dict(), [*lines, *left], failed=bool(left) and not plan.notes)
