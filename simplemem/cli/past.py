"""Commands about earlier versions: history, diff, restore, undo, redo, sync.

Each restore or undo can itself be undone.
"""

from __future__ import annotations

import shlex
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
    from simplemem.models import Difference, HistoryEntry, Synced, Undone, UndoneMany
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "History"
_PLANNED = {  # how a plan words the outcome for a note
    "moved back": "would move back",
    "deleted": "would delete",
    "changed back": "would change back",
    "brought back": "would bring back",
}
_MAX_SEARCHED = 1000  # changes that are searched for other authors
_MAX_AUTHORS = 10
_AUTHOR = (
    "The version of a client can be left out. The name of a token includes each client that used"
    " it."
)
NoteOrVersion = Annotated[
    str | None, argument("NAME|VERSION", "A note, or the version of a step.", complete_name)
]


@command(commands, _PANEL, old_options={"--by": "author"})
def history(
    name: NoteOrVersion = None,
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

    Each change has a version, which `undo`, `diff` and `show --version` accept. The history of one
    note in a git repository includes the commits of the note, which `show --version` and `restore
    --at` accept.

    $ simplemem history Dipper --diff
    $ simplemem history Dipper --blame
    $ simplemem history --author claude-ai --since yesterday"""
    with opened(vault) as store:
        if blame:
            return _blame(store, name)

        entries = store.history(
            name, limit=limit, diff=diff, by=author, since=since, until=until, steps=True
        )
        warnings = [store.git_trouble] if name and store.git_trouble else []
        if not entries:
            lines = _nothing_found(store, name, author)
            return Answer({"versions": []}, lines, warnings=warnings)

    facts = {"versions": [entry.as_dict() for entry in entries]}
    if diff:
        lines = Lines()
        for entry in entries:
            lines += _entry_with_diff(entry)
        return Answer(facts, lines, warnings=warnings)

    columns = (WHOLE, WHOLE, WHOLE, WHOLE, OPTIONAL, OPTIONAL, SHRINKS)
    rows = [_entry_row(entry) for entry in entries]
    return Answer(facts, table=rows, columns=columns, warnings=warnings)


def _blame(store: EnhancedStore, name: str | None) -> Answer:
    """Return who last changed each line of a note, and when.

    Where nobody is named, the kind of author is shown: human, agent or unknown. Raises Invalid if
    `name` is None or not a legal name, NotFound if there is no such note, and Ambiguous if there
    are several.
    """
    if name is None:
        raise Invalid("--blame needs a note", hint="Use `simplemem history NAME --blame`.")

    lines = store.blame(name)
    facts = {"name": store.resolve(name), "lines": [line.as_dict() for line in lines]}
    rows: Lines = [[line.who or line.kind, (ago(line.when), "dim"), line.text] for line in lines]
    return Answer(facts, table=rows)


def _entry_row(entry: HistoryEntry) -> list[Part]:
    """Return a change as a row: version, operation, name, time, author, tool and reason.

    A change without an author is one of "a program".
    """
    title = _name_and_new_name(entry.name, entry.new_name)
    if entry.notes > 1:
        title += f" and {format_count(entry.notes - 1, 'more note')}"
    return [
        (entry.version, "yellow"),
        entry.op,
        (title, "cyan"),
        (ago(entry.when), "dim"),
        (entry.who or "a program", "dim"),
        (entry.tool, "dim"),
        (one_line(entry.reason), "dim"),
    ]


def _entry_with_diff(entry: HistoryEntry) -> Lines:
    """Return a change on one line, what it did, and an empty line."""
    heading: list[Part] = []
    for cell in _entry_row(entry):
        heading += [cell, "  "]
    return [heading, *diff_lines(entry.diff), []]


def _name_and_new_name(name: str, new_name: str | None) -> str:
    """Return the name of a note, with the new one if a change moved it."""
    return f"{name} → {new_name}" if new_name else name


def _nothing_found(store: EnhancedStore, name: str | None, author: str) -> Lines:
    """Return lines that say that there is no change.

    `name` is the note whose history was read, or None for all notes. If `author` is not "", up to
    ten other authors of the last 1,000 changes are named, if there are any.
    """
    if not author:
        return [["No changes through simplemem."]]

    lines: Lines = [[f"{one_line(author)} has changed nothing here."]]
    entries = store.history(name, limit=_MAX_SEARCHED)
    authors = list(dict.fromkeys(entry.who for entry in entries if entry.who))
    if authors:
        names = [one_line(other_author) for other_author in authors[:_MAX_AUTHORS]]
        lines.append([("near: ", "dim"), ", ".join(names)])
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
    warnings = []
    for difference in differences:
        lines += _difference_lines(difference, is_of_versions=other is not None)
        if difference.doubt:
            warnings.append(f"{difference.name}: {difference.doubt}")
    facts = {"differences": [difference.as_dict() for difference in differences]}
    return Answer(facts, lines, warnings=warnings)


def _difference_lines(difference: Difference, *, is_of_versions: bool) -> Lines:
    """Return what changed in a note: its name, its text, or nothing.

    The names that a note had in two versions that are compared are not shown.
    """
    lines = Lines()
    is_moved = not is_of_versions and difference.name != difference.new_name
    if is_moved:
        lines.append([(f"{difference.name} → {difference.new_name}", "cyan")])
    lines += diff_lines(difference.diff)
    if not (difference.diff or difference.doubt or is_moved):
        lines.append([f"{difference.new_name}: no difference."])
    return lines


@command(commands, _PANEL)
def restore(
    name: Name,
    at: Annotated[str | None, option("--at", "WHEN", f"{WHEN.capitalize()}, `before v12`.")] = None,
    new_name: Annotated[str | None, option("--as", "NAME", "Restore it under this name.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Restore an earlier version of a note, or a deleted note.

    The text is restored byte for byte. A date means the end of that day. A deleted note needs no
    --at. If another note has its name now, give the restored note a new name with --as. The current
    text stays in the history, and `undo` takes the restore back.

    $ simplemem restore Dipper
    $ simplemem restore Dipper --at '3 days ago' --as 'Dipper as it was'"""
    with opened(vault) as store:
        if new_name is not None:
            new_name = new_name_in_vault(new_name, store.root)
        finish()
        try:
            restored = store.restore(name, at=at, new_name=new_name, who=WHO)
        except Invalid as error:
            needs_at = at is None and "`at`" in error.hint
            if not needs_at:
                raise
            hint = _hint_with_at(store, name, new_name)
            raise Invalid(error.message, hint=hint) from error

    time = restored.at
    if not time.startswith("before "):
        time = f"at {time}"
    already = "" if restored.changed else "already "
    text = f"{restored.name} is {already}as it was {time}."
    return Answer(restored.as_dict(), [[(text, "green")]], warnings=restored.warnings)


def _hint_with_at(store: EnhancedStore, name: str, new_name: str | None) -> str:
    """Return the hint for `restore` without `--at` of a note that was not deleted.

    It has the command that restores the text before the last change; without a history, the
    command has WHEN in place of a version.
    """
    quoted_name = shlex.quote(name)
    at = "WHEN"
    entries = store.history(name, limit=1)
    if entries:
        at = shlex.quote(f"before {entries[0].version}")

    command_line = f"simplemem restore {quoted_name} --at {at}"
    if new_name is not None:
        command_line += f" --as {shlex.quote(new_name)}"
    return (
        f"Pass `--at`: `{command_line}` restores an earlier text;"
        f" `simplemem history {quoted_name}` lists the versions."
    )


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

    A second `undo` undoes the change before that; `redo` redoes what was undone. With --author, a
    note that somebody else has changed since is left as it is, and listed.

    $ simplemem undo
    $ simplemem undo Dipper
    $ simplemem undo --author claude-ai --since '2 hours ago' --dry-run"""
    _check_undo_options(what, author, since, needs_author=dry_run or yes)
    with opened(vault) as store:
        if not author:
            finish()
            return _undo_one(store, what)

        plan = store.undo_all(author, since, preview=True)
        if dry_run or not plan.notes:
            return _plan_answer(plan)
        return _undo_plan(store, plan, author, since, yes=yes)


def _undo_plan(
    store: EnhancedStore, plan: UndoneMany, author: str, since: str, *, yes: bool
) -> Answer:
    """Show what undoing the changes of an author would do, and do it if the user agrees.

    With `yes`, the user is not asked. Raises Invalid if there is no terminal to ask at, Conflict if
    the plan is no longer up to date, and ReadOnly if nothing may be written.
    """
    preview(_plan_answer(plan))
    refused = "this needs confirmation, but there is no terminal"
    hint = "Add --yes, or preview with --dry-run."
    agree("Undo these changes?", refused=refused, hint=hint, yes=yes)
    finish()
    undone = store.undo_all(author, since, expected=plan.plan, who=WHO)

    notes = format_count(len(undone.notes), "note")
    summary: Part = (f"Undid what {undone.by} changed in {notes}", "green")
    lines: Lines = [[summary], undo_with(undone.version)]
    if undone.left:
        notes_left = format_count(len(undone.left), "note")
        lines.append([(f"{notes_left} left unchanged, as listed above", "yellow")])
    return Answer(undone.as_dict(), lines)


def _check_undo_options(what: str | None, author: str, since: str, *, needs_author: bool) -> None:
    """Raise Invalid if the options of `undo` contradict each other, or one is missing.

    `needs_author` says that an option is there which is only allowed with `--author`.
    """
    if author and not since:
        example = f"simplemem undo --author {shlex.quote(author)} --since '2 hours ago' --dry-run"
        message = "--author needs --since: a date or version from which to undo"
        raise Invalid(message, hint=f"Use `{example}`.")
    if since and not author:
        example = f"simplemem undo --author AUTHOR --since {shlex.quote(since)}"
        message = "--since needs --author: the author whose changes to undo"
        raise Invalid(message, hint=f"Use `{example}`; `simplemem history` shows the authors.")

    is_combined = bool(author) and what is not None
    if is_combined or (needs_author and not author):
        message = (
            "--author cannot be combined with a version or name, and --dry-run and --yes need"
            " --author"
        )
        hint = "Use `simplemem undo --author AUTHOR --since WHEN`, or `simplemem undo VERSION`."
        raise Invalid(message, hint=hint)


@command(commands, _PANEL)
def redo(vault: VaultOption = None) -> Answer:
    """Redo what `undo` took back.

    This works until something else is changed.

    $ simplemem redo"""
    with opened(vault) as store:
        finish()
        version = store.next_to_undo(undone=True)
        return _undo_answer(store.undo(version, who=WHO, tool="redo"))


@command(commands, "Vault")
def sync(vault: VaultOption = None) -> Answer:
    """Exchange changes with your other machines through git.

    The command commits changes that you have not staged, under your name. It merges changes from
    elsewhere note by note, and your git pushes the result. If two texts cannot be merged, one
    becomes a conflict copy beside the note, and `simplemem conflicts` lists it. Everything that was
    pulled is one step, which one `undo` takes back.

    $ simplemem sync"""
    with opened(vault) as store:
        finish()
        result = store.sync_with_remote(who=WHO)
    return _synced_answer(result)


def _synced_answer(result: Synced) -> Answer:
    """Return the answer about an exchange with the remote repository."""
    received = "nothing new received"
    if result.changed:
        received = f"{format_count(len(result.changed), 'file')} received"
    committed = format_count(result.committed, "change")
    summary = f" with {result.remote}: {committed} committed, {received}"
    lines: Lines = [[("In sync", "green"), summary]]
    if result.version:
        lines.append(undo_with(result.version))
    for copy in result.copies:
        label: Part = ("conflict copy: ", "yellow")
        lines.append([label, (copy, "cyan"), " (`simplemem conflicts` lists it)"])
    warnings = [
        f"{name} was not committed, because you have staged changes in it"
        for name in result.waiting
    ]
    return Answer(result.as_dict(), lines, warnings=warnings)


def _undo_one(store: EnhancedStore, what: str | None) -> Answer:
    """Undo the last change, or with `what` a version or the last change of a note.

    Raises Conflict if the note has changed since; its hint names the command to use instead. Raises
    NotFound if there is nothing to undo or a text is no longer kept, AlreadyExists if the former
    name of a moved note is in use, Ambiguous if several notes have the name, Invalid for a commit
    of git, and ReadOnly.
    """
    try:
        version = store.next_to_undo() if what is None else what
        undone = store.undo(version, who=WHO, tool="undo")
    except Conflict as error:
        restore_at = error.details.get("restore_at")
        if restore_at:
            name = shlex.quote(error.details["path"].removesuffix(".md"))
            command_line = f"simplemem restore {name} --at {shlex.quote(restore_at)}"
            error.hint += f" `{command_line}` restores it; the current text stays in the history."
        raise
    return _undo_answer(undone)


def _undo_answer(undone: Undone) -> Answer:
    """Return the answer about one change that was undone or redone.

    Its line is the description in `undone`, with its first letter in upper case.
    """
    text = undone.what[:1].upper() + undone.what[1:]
    return Answer(undone.as_dict(), [[(one_line(text), "green")]])


def _plan_answer(plan: UndoneMany) -> Answer:
    """Return what undoing the changes of an author would do.

    The answer failed if there are notes to undo, but none of them can be restored.
    """
    lines = Lines()
    for note in plan.notes:
        name = _name_and_new_name(note.name, note.new_name)
        if note.is_moved_with_earlier_text:
            name += ", with its earlier text"
        action = f"{_PLANNED[note.becomes]:<20}  "
        lines.append([action, (name, "cyan"), (f"  before {note.since}", "dim")])
    if not plan.notes:
        lines.append([f"No change by {plan.by} since {plan.since} can be undone."])
    for note_left in plan.left:
        label: Part = ("would leave as it is  ", "yellow")
        lines.append([label, (note_left.name, "cyan"), (f"  {note_left.why}", "dim")])
    return Answer(plan.as_dict(), lines, failed=bool(plan.left) and not plan.notes)
