"""The commands `install` and `uninstall`: a client is told of this server, in its own file, and of nothing else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, TypeVar

import typer

from simplemem.cli.command import Answer, agree, command, finish, preview
from simplemem.cli.options import VaultOption, YesOption, argument, flag, option
from simplemem.cli.output import diff_lines
from simplemem.errors import Conflict, Invalid, NotFound, Unavailable, Unreadable

if TYPE_CHECKING:
    from simplemem.clients.client import Client

T = TypeVar("T")
commands = typer.Typer()
_PANEL = "Serve"
_NAME = option("--name", "NAME", "What the server is called there.")
_REFUSED = "nobody can be asked here, and nothing was changed"


@command(commands, _PANEL)
def install(
    client: Annotated[str, argument("[CLIENT]", "Which one. Without it: those that are there.")] = "",
    options: Annotated[list[str] | None, argument("[-- OPTIONS]", "Further options of `serve`.")] = None,
    vault: VaultOption = None,
    profile: Annotated[str, option("--profile", "NAME", "The tools it shows: see `serve --help`.")] = "",
    name: Annotated[str, _NAME] = "simplemem",
    http: Annotated[str, option("--http", "URL", "A server that runs, in place of one that is started.")] = "",
    token_env: Annotated[str, option("--token-env", "VARIABLE", "With --http: where its token is.")] = "",
    dry_run: Annotated[bool, flag("--dry-run --print", "Only show what would be written.")] = False,
    yes: YesOption = False,
) -> Answer:
    """Tell a client of this server: Claude, Cursor, VS Code, Codex and others. `json` prints the lines for any other.

    The difference is shown first. One entry is added to the client's own file; everything else in it stays, to the byte.
    The file as it was lies beside it.

    $ simplemem install
    $ simplemem install claude-desktop --vault ~/notes
    $ simplemem install codex --profile server-memory -- --read-only
    $ simplemem install cursor --http https://memory.example.org/mcp --token-env MEMORY_TOKEN"""
    from simplemem.cli.serve import for_a_client
    from simplemem.clients.client import client_called, server_command
    from simplemem.clients.splice import entries, put

    if not client:
        return _listed(name)
    chosen = client_called(client)
    if http:
        if vault or profile or options:
            raise Invalid("a server that runs has its vault and tools", hint="Leave out --vault, --profile, OPTIONS.")
        if not http.startswith(("http://", "https://")):
            raise Invalid(f"{http!r} is no address", hint="Write http://127.0.0.1:8080/mcp.")
        entry = chosen.remote_entry(name, http, token_env)
    else:
        said = [*(("--vault", str(vault)) if vault else ()), *(("--profile", profile) if profile else ())]
        folder, more = for_a_client([*said, *(options or ())])
        if not folder.is_dir():
            hint = f"`simplemem init {folder}` makes it; `--vault` names another."
            raise NotFound(f"there is no vault at {folder}", hint=hint)
        entry = chosen.entry(name, server_command(folder, more))
    file = chosen.find()
    if file is None:
        return Answer({"client": chosen.name, "entry": entry}, text=put(chosen.form, "", chosen.keys, name, entry))
    before, backup = _text_of(file), _backup(file)
    known = name in _spliced(file, entries, chosen, before or "") and backup.exists()
    after = _spliced(file, put, chosen, before or "", name, entry)
    change = _Change(chosen, file, before, after, f"{chosen.title} knows {name}")
    return change.carry_out(None if known else before or "", dry_run=dry_run, yes=yes)


@command(commands, _PANEL)
def uninstall(
    client: Annotated[str, argument("CLIENT", "Which one.")],
    name: Annotated[str, _NAME] = "simplemem",
    dry_run: Annotated[bool, flag("--dry-run", "Only show what would be written.")] = False,
    yes: YesOption = False,
) -> Answer:
    """Take the entry of this server out of a client's file. Where nothing else changed, the file is as it was before.

    $ simplemem uninstall cursor"""
    from simplemem.clients.client import client_called
    from simplemem.clients.splice import entries, put, take

    chosen = client_called(client)
    file = chosen.find()
    before = _text_of(file) if file else None
    if file is None or before is None:
        raise NotFound(f"{chosen.title} has no file of servers here", hint="`simplemem install` lists the clients.")
    entry = _spliced(file, entries, chosen, before).get(name)
    after: str | None = _spliced(file, take, chosen, before, name)
    was = _text_of(_backup(file))
    if entry is not None and put(chosen.form, was or "", chosen.keys, name, entry) == before != was:
        after = was or None  # to the byte, also what had to be made around the entry; "" stands for no file
    change = _Change(chosen, file, before, after, f"{chosen.title} does not know {name}")
    return change.carry_out(None, dry_run=dry_run, yes=yes)


class _Change(NamedTuple):
    """What a client's file says, what it shall say, None for no file, and what is true then."""

    client: Client
    file: Path
    before: str | None
    after: str | None
    done: str

    def carry_out(self, kept: str | None, *, dry_run: bool, yes: bool) -> Answer:
        """Show the difference, have a person agree, keep the file as it was if that is wanted, and write."""
        from simplemem.note.diff import unified_diff

        file, before, after = self.file, self.before, self.after
        facts = {"client": self.client.name, "file": str(file), "changed": before != after, "dry_run": dry_run}
        if before == after:
            return Answer(facts, [[f"{self.done} already: ", (str(file), "cyan")]])
        diff = unified_diff((before or "").encode(), (after or "").encode(), (str(file), str(file)), most=None)
        shown = Answer({**facts, "diff": diff}, diff_lines(diff))
        if dry_run:
            return shown
        preview(shown)
        agree("Write this?", refused=_REFUSED, hint="Add --yes, or look with --dry-run.", yes=yes)
        finish()
        if _text_of(file) != before:
            raise Conflict(f"{file} has changed meanwhile", current_sha256=None, hint="Try again.")
        if kept is not None:
            _write(_backup(file), kept, like=file)
        if after is not None:
            _write(Path(os.path.realpath(file)), after, like=file)  # it is often a link into a folder of settings
        else:
            file.unlink()
        return Answer({**facts, "diff": diff}, [[(f"{self.done} now.", "green"), f" Then: {self.client.then}."]])


def _write(file: Path, text: str, like: Path) -> None:
    from simplemem.store import write_file

    mode = like.stat().st_mode if like.exists() else None
    if mode is not None and not os.access(like, os.W_OK):
        raise Unavailable(f"{like} is write-protected", hint="Allow writing to it first.")
    file.parent.mkdir(parents=True, exist_ok=True)
    write_file(file, text.encode())
    if mode is not None:
        file.chmod(mode)


def _backup(file: Path) -> Path:
    return file.with_name(f"{file.name}.before-simplemem")


def _text_of(file: Path) -> str | None:
    """What a file says, None where there is none."""
    try:
        return file.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        hint = "Save it as UTF-8 first."
        raise Unreadable(f"{file} is left as it is: byte {error.start} is not UTF-8", hint=hint) from error


def _spliced(file: Path, do: Callable[..., T], client: Client, text: str, *more: Any) -> T:
    """What becomes of a file's text. What cannot be read is left as it is, and said with the file's name."""
    try:
        return do(client.form, text, client.keys, *more)
    except Unreadable as error:
        hint = f"{error.hint} `simplemem install json` prints an entry to copy."
        raise Unreadable(f"{file} is left as it is: {error.message}", hint=hint) from error


def _listed(name: str) -> Answer:
    """The clients of this machine, and which of them know this server."""
    from simplemem.clients.client import clients
    from simplemem.clients.splice import entries

    facts, table = [], []
    for client in clients().values():
        if (file := client.find()) is None:
            continue
        try:
            text = _text_of(file)
            known = name in _spliced(file, entries, client, text or "")
            state = "knows it" if known else "not yet" if file.parent.is_dir() else "not here"
        except (Unreadable, OSError) as error:
            state = str(error)
        facts.append({"client": client.name, "title": client.title, "file": str(file), "state": state})
        style = {"knows it": "green", "not here": "dim"}.get(state, "")
        table.append([(client.name, "cyan"), (state, style), (str(file), "dim")])
    hint = [["`simplemem install CLIENT` adds it: the difference is shown first."]]
    return Answer({"name": name, "clients": facts}, hint, table, gives_way=2)
