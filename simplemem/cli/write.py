"""Commands that write notes: new, edit, daily, tag, move, delete.

Each prints what it did, and how to undo it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import WHO, Answer, command, finish, opened
from simplemem.cli.options import (
    Name,
    VaultOption,
    argument,
    complete_name,
    complete_tag,
    flag,
    option,
)
from simplemem.cli.output import Lines, Part, tags_shown
from simplemem.cli.paths import new_name_in_vault
from simplemem.errors import Invalid
from simplemem.note.words import format_count

if TYPE_CHECKING:
    from simplemem.models import Saved
    from simplemem.store import EnhancedStore

commands = typer.Typer()
_PANEL = "Write"
Changes = Annotated[
    list[str] | None,
    argument("CHANGE", "`todo`, `status=done`, or `-todo` to remove.", complete_tag),
]


@command(commands, _PANEL)
def new(
    name: Annotated[str, argument("NAME", "The folder and name of the new note.")],
    stdin: Annotated[str | None, argument("-", "Read the text from standard input.")] = None,
    content: Annotated[str | None, option("--content", "TEXT", "The text of the note.")] = None,
    edit: Annotated[bool, flag("--edit -e", "Write the text in $EDITOR.")] = False,
    title: Annotated[str | None, option("--title", "TEXT", "The title of the note.")] = None,
    description: Annotated[
        str | None, option("--description", "TEXT", "A summary of the note.")
    ] = None,
    tag: Annotated[
        list[str] | None, option("--tag", "TAG", "A tag: `todo`, `status=open`.", complete_tag)
    ] = None,
    kind: Annotated[str | None, option("--type", "TYPE", "The `type:` of the note.")] = None,
    template: Annotated[
        str, option("--template", "NAME", "Start with this Obsidian template.", complete_name)
    ] = "",
    properties: Annotated[
        list[str] | None, option("--property", "KEY=VALUE", "Another property.")
    ] = None,
    overwrite: Annotated[
        bool, flag("--overwrite", "Allow replacing a note and rewriting links.")
    ] = False,
    vault: VaultOption = None,
) -> Answer:
    """Create a note.

    --tag and --property can be repeated.

    $ simplemem new 'people/Ada Holm' --content 'Sews our parachutes.' --type person
    $ simplemem new 'meetings/2026-03-02 Spring' --title 'Spring meeting' --tag meeting --edit
    $ git log -5 | simplemem new 'log/week 9' - --description 'What was done' --tag log
    $ simplemem new 'flights/Flight 5 Fulmar' --tag status=planned --property payload_grams=540"""
    from simplemem.cli.editor import DraftFile

    if stdin not in (None, "-"):
        message = f"only `-` may follow the name, not {stdin!r}; give the text with --content"
        raise typer.BadParameter(message)
    if stdin and (content is not None or edit):
        other = "--edit" if edit else "--content"
        raise typer.BadParameter(f"`-` and {other} cannot be combined")

    text = _read_stdin() if stdin else content or ""
    metadata: dict[str, Any] = dict(map(_property, properties or ()))
    header = {"title": title, "description": description, "type": kind}
    metadata |= {key: value for key, value in header.items() if value is not None}
    if tag:
        metadata["tags"] = dict(map(_tag_change, tag))
    with (
        opened(vault, make=True) as store,
        DraftFile(store, name, text) if edit else nullcontext() as draft,
    ):
        name = new_name_in_vault(name, store.root)
        if draft is not None:
            text = draft.edited()
            if not text.strip():
                hint = "To create an empty note, leave out --edit."
                raise Invalid("the text is empty: no note was created", hint=hint)

        finish()
        if template:
            return _saved(_create_from_template(store, template, name, text, metadata))
        result = store.create(name, text, metadata, overwrite=overwrite, who=WHO, tool="new")
        return _saved(with_replaced(store, result))


def _read_stdin() -> str:
    """Return the text at standard input. Raises Invalid if it is not UTF-8."""
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"standard input is not UTF-8 (byte {error.start})"
        hint = "Convert it first, for example with iconv."
        raise Invalid(message, hint=hint) from error


def _create_from_template(
    store: EnhancedStore, template: str, name: str, text: str, metadata: Mapping[str, Any]
) -> Saved:
    """Create a note from a template, then add a text at its end and properties."""
    result = store.create_from(template, name, who=WHO, tool="new")
    if not text and not metadata:
        return result
    return store.update(
        result.name, append=text or None, metadata=metadata or None, who=WHO, tool="new"
    )


@command(commands, _PANEL, dashed_words=True)
def daily(
    text: Annotated[list[str] | None, argument("TEXT", "Text to add at the end.")] = None,
    vault: VaultOption = None,
) -> Answer:
    """Create today's daily note, or add text to it.

    Obsidian's settings name the folder, the file name and the template. Other commands find the
    note under the name `daily`: `simplemem show daily`.

    $ simplemem daily
    $ simplemem daily '- [ ] Order helium'"""
    with opened(vault, make=True) as store:
        finish()
        result = store.daily(who=WHO, tool="daily")
        if text:
            result = store.update(result.name, append=" ".join(text), who=WHO, tool="daily")
        return _saved(result)


def _property(typed: str) -> tuple[str, Any]:
    """One `key=value`.

    Values that read as JSON (numbers, true, lists) are that, anything else is text.
    """
    key, sign, value = typed.partition("=")
    if not sign or not key.strip():
        raise typer.BadParameter(f"a property is KEY=VALUE, not {typed!r}")
    try:
        # NaN and the infinities, which are Python's additions to JSON, are words here.
        return key.strip(), json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        return key.strip(), value


@command(commands, _PANEL)
def edit(
    name: Name,
    merge: Annotated[
        bool,
        flag("--merge", "Merge changes that others make to other lines meanwhile, without asking."),
    ] = False,
    vault: VaultOption = None,
) -> Answer:
    """Edit a note in $EDITOR.

    If somebody else changes the note meanwhile, nothing is overwritten: you see the merged text and
    are asked whether to save it. Without a terminal, your text is kept in a file and the difference
    is printed.

    $ simplemem edit Dipper
    $ EDITOR='code --wait' simplemem edit 'decisions/Hydrogen for lift'"""
    from simplemem.cli.editor import edit_note

    with opened(vault) as store:
        return _saved(edit_note(store, name, merge=merge))


def with_replaced(store: EnhancedStore, saved: Saved) -> Saved:
    """Return a write with a warning that says which text it replaced, if any, and how to undo that."""
    from simplemem.tools.session import text_replaced

    if not saved.changed or saved.previous_sha256 is None:
        return saved
    replaced = text_replaced(store, saved.name, saved.previous_sha256)
    warning = f"this replaced a text ({replaced}); `simplemem undo {saved.version}` restores it"
    return replace(saved, warnings=(*saved.warnings, warning))


def _saved(saved: Saved) -> Answer:
    done = (
        "Created"
        if saved.previous_sha256 is None
        else "Saved"
        if saved.changed
        else "Nothing changed in"
    )
    line = (f"{done} {saved.name}", "green" if saved.changed else "")
    return Answer(saved.as_dict(), [[line]], warnings=saved.warnings)


@command(commands, _PANEL, dashed_words=True)
def tag(name: Name, changes: Changes = None, vault: VaultOption = None) -> Answer:
    """Add, remove or list the tags of a note.

    Tags keep the notation that the note uses. Without a CHANGE, the tags are listed.

    $ simplemem tag Dipper
    $ simplemem tag 'Flight 5 Fulmar' flight status=done -planned"""
    with opened(vault) as store:
        if not changes:
            memory = store.read(name).as_dict()
            facts = {key: memory[key] for key in ("name", "sha256", "tags", "tag_map")}
            return Answer(facts, [[(tags_shown(memory["tags"]) or "No tags.", "green")]])
        finish()
        saved = store.change_tags(name, dict(map(_tag_change, changes)), who=WHO, tool="tag")
    tags = f"{saved.name}: {tags_shown(saved.tags) or 'no tags'}"
    return Answer(
        saved.as_dict(), [[(tags, "green" if saved.changed else "")]], warnings=saved.warnings
    )


def _tag_change(typed: str) -> tuple[str, str | bool | None]:
    """What `todo`, `status=done`, `+todo` and `-old` ask for."""
    if typed.startswith("-"):
        return typed[1:].removeprefix("#").partition("=")[0], None
    key, sign, value = typed.removeprefix("+").removeprefix("#").partition("=")
    return key, value if sign else True


@command(commands, _PANEL)
def move(
    old: Annotated[str, argument("NAME", "The note to move.", complete_name)],
    new_name: Annotated[str, argument("NEW", "The new name, or a folder that ends with `/`.")],
    vault: VaultOption = None,
) -> Answer:
    """Move or rename a note. Links to it are updated.

    Each link keeps its form: Markdown link or wikilink, short or full path.

    $ simplemem move 'inbox/Parachute supplier' 'Parachute supplier'
    $ simplemem move 'Helium for lift' archive/
    $ simplemem move people/Ida.md 'people/Ida Marsh.md'"""
    with opened(vault) as store:
        name = store.resolve(old)
        new_name = new_name_in_vault(new_name, store.root)
        if new_name.endswith("/"):
            new_name += name.rsplit("/", 1)[-1]
        finish()
        moved = store.move(name, new_name, who=WHO, tool="move")
    done: list[Part] = [("Moved ", "green"), f"{moved.previous_name} to ", (moved.name, "cyan")]
    rewritten: Lines = [["  links rewritten in ", (each, "cyan")] for each in moved.rewritten]
    return Answer(
        moved.as_dict(), [done, *rewritten, undo_with(moved.version)], warnings=moved.warnings
    )


@command(commands, _PANEL)
def delete(
    names: Annotated[list[str], argument("NAME", "The notes to delete.", complete_name)],
    vault: VaultOption = None,
) -> Answer:
    """Delete notes without confirmation. `undo` restores them.

    Several notes are deleted in one step, which one `undo` takes back. If one of the names is not
    found, no note is deleted.

    $ simplemem delete 'archive/Old packing list'
    $ simplemem delete inbox/a inbox/b && simplemem undo"""
    with opened(vault) as store:
        finish()
        deleted = store.delete_all(names, who=WHO, tool="delete")
    lines: Lines = [[("Deleted ", "green"), (each.name, "cyan")] for each in deleted]
    lines.append(undo_with(deleted[0].version))
    broken = list[str]()
    for each in deleted:
        if count := each.links_left_unresolved:
            broken.append(
                f"{format_count(count, 'link')} to {each.name} {'is' if count == 1 else 'are'} broken now"
            )
    return Answer({"deleted": [each.as_dict() for each in deleted]}, lines, warnings=broken)


def undo_with(version: str) -> list[Part]:
    """How to undo a change."""
    return [(f"  undo with: simplemem undo {version}", "dim")]
