"""Commands that write notes: new, edit, daily, tag, move, delete.

Each prints what it did; `move` and `delete` also print how to undo it.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
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

    _check_text_options(stdin, content, edit=edit)
    text = content or ""
    if stdin is not None:
        text = _read_stdin()
    metadata = _metadata(properties or (), tag or (), title, description, kind)

    with opened(vault, make=True) as store:
        name_in_vault = new_name_in_vault(name, store.root)
        if not edit:
            finish()
            return _create(store, name_in_vault, text, metadata, template, overwrite=overwrite)

        with DraftFile(store, name, text) as draft:
            text = draft.edit()
            if not text.strip():
                hint = "To create an empty note, leave out --edit."
                raise Invalid("the text is empty: no note was created", hint=hint)
            finish()
            return _create(store, name_in_vault, text, metadata, template, overwrite=overwrite)


def _check_text_options(stdin: str | None, content: str | None, *, edit: bool) -> None:
    """Raise a usage error unless the text of a new note comes from one place.

    `stdin` is the word after the name, which can only be `-`.
    """
    if stdin is None:
        return
    if stdin != "-":
        message = f"only `-` may follow the name, not {stdin!r}; give the text with --content"
        raise typer.BadParameter(message)
    if content is not None or edit:
        option_name = "--edit" if edit else "--content"
        raise typer.BadParameter(f"`-` and {option_name} cannot be combined")


def _metadata(
    properties: Iterable[str],
    tags: Sequence[str],
    title: str | None,
    description: str | None,
    kind: str | None,
) -> dict[str, Any]:
    """Return the properties of a new note by their keys.

    `properties` and `tags` are as the user typed them. Raises a usage error for a property that is
    not KEY=VALUE.
    """
    metadata = dict(_parse_property(typed) for typed in properties)
    if title is not None:
        metadata["title"] = title
    if description is not None:
        metadata["description"] = description
    if kind is not None:
        metadata["type"] = kind
    if tags:
        metadata["tags"] = _parse_tag_changes(tags)
    return metadata


def _create(
    store: EnhancedStore,
    name: str,
    text: str,
    metadata: Mapping[str, Any],
    template: str,
    *,
    overwrite: bool,
) -> Answer:
    """Create a note, from a template if one is named, and return the answer of the command.

    Raises AlreadyExists if the note exists, unless `overwrite`; NotFound without such a template;
    and Invalid, TooLong, ReadOnly or Unavailable if the note cannot be written.
    """
    if template:
        return saved_answer(_create_from_template(store, template, name, text, metadata))
    saved = store.create(name, text, metadata, overwrite=overwrite, who=WHO, tool="new")
    return saved_answer(with_replaced(store, saved))


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
    """Create a note from a template, then add a text at its end, and properties.

    Raises AlreadyExists if the note exists, NotFound without such a template, and Invalid,
    TooLong, ReadOnly or Unavailable if the note cannot be written.
    """
    saved = store.create_from(template, name, who=WHO, tool="new")
    if not text and not metadata:
        return saved
    return store.update(
        saved.name, append=text or None, metadata=metadata or None, who=WHO, tool="new"
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
        if text:
            return saved_answer(store.append_to_daily(" ".join(text), who=WHO, tool="daily"))
        return saved_answer(store.daily(who=WHO, tool="daily"))


def _parse_property(typed: str) -> tuple[str, Any]:
    """Return the key and the value of a property that was typed as `key=value`.

    A value that is valid JSON (a number, true, a list) is parsed; any other is text. Raises a usage
    error if the key or the `=` is missing.
    """
    key, sign, value = typed.partition("=")
    key = key.strip()
    if not sign or not key:
        raise typer.BadParameter(f"a property is KEY=VALUE, not {typed!r}")
    try:
        # NaN and the infinities, which are Python's additions to JSON, are words here.
        return key, json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        return key, value


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
        return saved_answer(edit_note(store, name, merge=merge))


def with_replaced(store: EnhancedStore, saved: Saved) -> Saved:
    """Return the result of a write with a warning about the text that it replaced.

    The warning describes that text and says how to undo the write. If nothing was replaced, the
    result is returned as it is.
    """
    from simplemem.tools.session import text_replaced

    if not saved.changed or saved.previous_sha256 is None:
        return saved
    replaced = text_replaced(store, saved.name, saved.previous_sha256)
    warning = f"this replaced a text ({replaced}); `simplemem undo {saved.version}` restores it"
    return replace(saved, warnings=(*saved.warnings, warning))


def saved_answer(saved: Saved) -> Answer:
    """Return the answer about a note that was created, saved or left as it was.

    It is one line, with the warnings of `saved`. It does not say how to undo the write.
    """
    verdict = "Saved"
    if saved.previous_sha256 is None:
        verdict = "Created"
    elif not saved.changed:
        verdict = "Nothing changed in"
    style = _style_of(saved)
    return Answer(saved.as_dict(), [[(f"{verdict} {saved.name}", style)]], warnings=saved.warnings)


def _style_of(saved: Saved) -> str:
    """Return the style of the line about a write: green if it changed something."""
    return "green" if saved.changed else ""


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
            tags = tags_shown(memory["tags"]) or "No tags."
            return Answer(facts, [[(tags, "green")]])

        finish()
        saved = store.change_tags(name, _parse_tag_changes(changes), who=WHO, tool="tag")

    tags = tags_shown(saved.tags) or "no tags"
    line: Part = (f"{saved.name}: {tags}", _style_of(saved))
    return Answer(saved.as_dict(), [[line]], warnings=saved.warnings)


def _parse_tag_changes(typed: Iterable[str]) -> dict[str, str | bool | None]:
    """Return the changes that `todo`, `status=done`, `+todo` and `-old` mean, by their tags.

    True adds a tag, a text gives it this value, and None removes it.
    """
    changes: dict[str, str | bool | None] = {}
    for change in typed:
        if change.startswith("-"):
            key, _, _ = change[1:].removeprefix("#").partition("=")
            changes[key] = None
        else:
            key, sign, value = change.removeprefix("+").removeprefix("#").partition("=")
            changes[key] = value if sign else True
    return changes


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

    lines: Lines = [[("Moved ", "green"), f"{moved.previous_name} to ", (moved.name, "cyan")]]
    for note in moved.rewritten:
        lines.append(["  links rewritten in ", (note, "cyan")])
    lines.append(undo_with(moved.version))
    return Answer(moved.as_dict(), lines, warnings=moved.warnings)


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

    lines = Lines()
    warnings = []
    for note in deleted:
        lines.append([("Deleted ", "green"), (note.name, "cyan")])
        if note.links_left_unresolved:
            links = format_count(note.links_left_unresolved, "link")
            verb = "is" if note.links_left_unresolved == 1 else "are"
            warnings.append(f"{links} to {note.name} {verb} broken now")
    lines.append(undo_with(deleted[0].version))
    facts = {"deleted": [note.as_dict() for note in deleted]}
    return Answer(facts, lines, warnings=warnings)


def undo_with(version: str) -> list[Part]:
    """Return the line that says how to undo a change."""
    return [(f"  undo with: simplemem undo {version}", "dim")]
