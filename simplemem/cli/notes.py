"""Commands that write notes: new, edit, tag, move, rm. Each says what it did, and how to take it back."""

from __future__ import annotations

import hashlib
import sys
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from simplemem.cli.options import (
    DASHED_WORDS,
    JsonOption,
    Name,
    VaultOption,
    command,
    complete_name,
    complete_tag,
    refuse_unknown_options,
)
from simplemem.errors import Conflict, Invalid, SimplememError, Unreadable

if TYPE_CHECKING:
    from simplemem.cli.editor import Draft
    from simplemem.memory import Memory, Saved

commands = typer.Typer()
_PANEL = "Write"


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem new 'people/Ada Holm' --content 'Sews our parachutes.' --type person",
        "simplemem new 'meetings/2026-03-02 Spring' --title 'Spring meeting' --tag meeting --edit",
        "git log -5 | simplemem new 'log/week 9' - --description 'What was done' --tag log",
        "simplemem new 'flights/Flight 5 Fulmar' --tag status=planned --property payload_grams=540",
    ],
)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Folder and name of the new note.")],
    stdin: Annotated[str | None, typer.Argument(metavar="-", help="Read the text from standard input.")] = None,
    content: Annotated[
        str | None,
        typer.Option("--content", metavar="TEXT", help="The text of the note."),
    ] = None,
    edit: Annotated[bool, typer.Option("--edit", "-e", help="Write the text in $EDITOR.")] = False,
    title: Annotated[str | None, typer.Option("--title", metavar="TEXT")] = None,
    description: Annotated[str | None, typer.Option("--description", metavar="TEXT")] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option(
            "--tag",
            metavar="TAG",
            autocompletion=complete_tag,
            help="`todo`, `status=open`.",
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option("--type", metavar="TYPE")] = None,
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="KEY=VALUE", help="Any other property. Again for more."),
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Make a note."""
    from simplemem.cli.editor import Draft
    from simplemem.cli.opening import WHO, finishing, opened

    text = _text_of_new_note(stdin, content, edit)
    metadata: dict[str, Any] = dict(_property(each) for each in properties or ())
    given = {"title": title, "description": description, "type": kind}
    metadata |= {key: value for key, value in given.items() if value is not None}
    if tag:
        metadata["tags"] = dict(_tag_change(each) for each in tag)
    with opened(vault) as store:
        draft = Draft(store, name, text) if edit else None
        try:
            if draft is not None:
                text = _written(draft)
            with finishing():
                saved = store.create(name, text, metadata, who=WHO, tool="new")
                if draft is not None:
                    draft.discard()
                _report(saved, f"Made {saved.name}", as_json)
        except SimplememError as error:
            raise (draft.kept(error) if draft is not None else error) from error


def _text_of_new_note(stdin: str | None, content: str | None, edit: bool) -> str:
    if stdin not in (None, "-"):
        raise typer.BadParameter(f"only `-` may follow the name, not {stdin!r}; give the text with --content")
    if content is not None and stdin:
        raise typer.BadParameter("either `-` or --content, not both")
    if not stdin:
        return content or ""
    if edit:
        raise typer.BadParameter("either `-` or --edit, not both")
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(
            f"Standard input is not UTF-8 (byte {error.start}).",
            hint="Convert it first, with iconv for instance.",
        ) from error


def _written(draft: Draft) -> str:
    written = draft.edited()
    if not written.strip():
        raise Invalid("The text is empty: no note was made.", hint="Without --edit an empty note is made.")
    return written


def _property(given: str) -> tuple[str, Any]:
    """One `key=value`. Values that read as JSON (numbers, true, lists) are that, anything else is text."""
    import json

    key, sign, value = given.partition("=")
    if not sign or not key.strip():
        raise typer.BadParameter(f"a property is KEY=VALUE, not {given!r}")
    try:
        # NaN and the infinities are Python's additions to JSON; here they are words.
        return key.strip(), json.loads(value, parse_constant=_no_number)
    except (ValueError, RecursionError):
        return key.strip(), value


def _no_number(word: str) -> NoReturn:
    raise ValueError(word)


def _tag_change(given: str) -> tuple[str, str | bool | None]:
    """What `todo`, `status=done`, `+todo` and `-old` ask for."""
    if given.startswith("-"):
        return given[1:].removeprefix("#").partition("=")[0], None
    key, sign, value = given.removeprefix("+").removeprefix("#").partition("=")
    return key, value if sign else True


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem edit Dipper",
        "EDITOR='code --wait' simplemem edit 'decisions/Hydrogen for lift'",
    ],
)
def edit(
    name: Name,
    merge: Annotated[
        bool, typer.Option("--merge", help="Do not ask when somebody else changed other lines meanwhile: save both.")
    ] = False,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Edit a note in $EDITOR.

    If somebody else changed it meanwhile, nothing is overwritten. You are shown what both make together, and
    asked; where there is nobody to ask, your text is kept in a file, and the difference is shown.
    """
    from simplemem.cli.bring_together import bring_together
    from simplemem.cli.editor import Draft
    from simplemem.cli.opening import WHO, finishing, opened

    with opened(vault) as store:
        memory = store.read(name)
        if hashlib.sha256(memory.text.encode("utf-8", "surrogatepass")).hexdigest() != memory.sha256:
            # What is shown of it is not all that is in it: saving that would lose the rest.
            raise Unreadable(f"{memory.name} is not UTF-8 text.", hint="Convert it first, with iconv for instance.")
        draft = Draft(store, memory.name, memory.text)
        written = draft.edited()
        try:
            with finishing():
                if written == memory.text:
                    saved = _unchanged(memory)
                else:
                    saved = store.write_text(memory.name, written, if_sha256=memory.sha256, who=WHO, tool="edit")
                draft.discard()
                said = f"Saved {saved.name}" if saved.changed else f"Nothing changed in {saved.name}"
                _report(saved, said, as_json)
        except Conflict as conflict:
            saved = bring_together(store, memory, written, draft, conflict, merge=merge, quiet=as_json)
            draft.discard()
            _report(saved, f"Saved {saved.name}, with what the others changed", as_json)
        except SimplememError as error:
            raise draft.kept(error) from error


def _unchanged(memory: Memory) -> Saved:
    from simplemem.memory import Saved

    sha256 = memory.sha256
    return Saved(memory.name, memory.path, sha256, sha256, False, "", memory.tags, memory.tag_map)


@command(
    commands,
    _PANEL,
    context_settings=DASHED_WORDS,
    examples=[
        "simplemem tag Dipper",
        "simplemem tag 'Flight 5 Fulmar' flight status=done -planned",
    ],
)
def tag(
    ctx: typer.Context,
    name: Name,
    changes: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="CHANGE",
            autocompletion=complete_tag,
            help="`todo` or `status=done` sets, `-todo` removes. Without any: show the tags.",
        ),
    ] = None,
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set and remove tags, in the notation the note has."""
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing, opened

    refuse_unknown_options(ctx, [name, *(changes or ())])
    with opened(vault) as store:
        if not changes:
            memory = store.read(name)
            shown = {"name": memory.name, "sha256": memory.sha256, "tags": list(memory.tags)}
            if as_json:
                output.print_json(shown | {"tag_map": memory.tag_map})
            else:
                output.say((output.tags_shown(memory.tags) or "No tags.", "green"))
            return
        with finishing():
            wanted = dict(_tag_change(each) for each in changes)
            saved = store.change_tags(name, wanted, who=WHO, tool="tag")
            _report(saved, f"{saved.name}: {output.tags_shown(saved.tags) or 'no tags'}", as_json)


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem move 'inbox/Parachute supplier' 'Parachute supplier'",
        "simplemem move 'Helium for lift' archive/",
        "simplemem move people/Ida.md 'people/Ida Marsh.md'",
    ],
)
def move(
    old: Annotated[str, typer.Argument(metavar="OLD", autocompletion=complete_name, help="The note.")],
    new_name: Annotated[
        str,
        typer.Argument(metavar="NEW", help="Its new name, or a folder with `/` at its end."),
    ],
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Move or rename a note. Links to it follow, each in its own form."""
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing, opened

    with opened(vault) as store:
        name = store.resolve(old)
        if new_name.endswith("/"):
            new_name += name.rsplit("/", 1)[-1]
        with finishing():
            moved = store.move(name, new_name, who=WHO, tool="move")
            if as_json:
                output.print_json(moved.as_dict())
                return
            output.say(("Moved ", "green"), f"{moved.previous_name} to ", (moved.name, "cyan"))
            for rewritten in moved.rewritten:
                output.say("  links rewritten in ", (rewritten, "cyan"))
            for warning in moved.warnings:
                output.warn(warning)
            _say_undo(moved.version)


@command(
    commands,
    _PANEL,
    examples=[
        "simplemem rm 'archive/Old packing list'",
        "simplemem rm inbox/a inbox/b && simplemem undo inbox/b",
    ],
)
def rm(
    names: Annotated[
        list[str],
        typer.Argument(metavar="NAME", autocompletion=complete_name, help="The notes."),
    ],
    vault: VaultOption = None,
    as_json: JsonOption = False,
) -> None:
    """Delete notes, without asking: `undo` brings them back."""
    from simplemem.cli import output
    from simplemem.cli.opening import WHO, finishing, opened

    with opened(vault) as store:
        # All names are looked up first, so that a mistyped one deletes none of the others.
        resolved = list(dict.fromkeys(store.resolve(name) for name in names))
        gone: list[dict[str, Any]] = []
        with finishing():
            for name in resolved:
                deleted = store.delete(name, who=WHO, tool="rm")
                gone.append(deleted.as_dict())
                if as_json:
                    continue
                output.say(("Deleted ", "green"), (deleted.name, "cyan"))
                if deleted.links_left_unresolved:
                    count = deleted.links_left_unresolved
                    output.warn(f"{count} link{'' if count == 1 else 's'} to it now lead nowhere")
                _say_undo(deleted.version)
            if as_json:
                output.print_json({"deleted": gone})


def _report(saved: Saved, sentence: str, as_json: bool) -> None:
    from simplemem.cli import output

    if as_json:
        output.print_json(saved.as_dict())
        return
    output.say((sentence, "green" if saved.changed else ""))
    for warning in saved.warnings:
        output.warn(warning)


def _say_undo(version: str) -> None:
    from simplemem.cli import output

    output.say(("  undo with: ", "dim"), (f"simplemem undo {version}", "dim"))
