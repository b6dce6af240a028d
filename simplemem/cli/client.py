"""The commands `install` and `uninstall`: a client is told of this server, in its own file, and of nothing else."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, agree, command, finish, preview
from simplemem.cli.options import VaultOption, YesOption, argument, flag, option
from simplemem.cli.output import diff_lines
from simplemem.errors import Conflict, Invalid, NotFound, SimplememError, Unavailable, Unreadable

if TYPE_CHECKING:
    from simplemem.clients.client import Client

commands = typer.Typer()
_PANEL = "Serve"
_NAME = option("--name", "NAME", "What the server is called there.")
_PLAIN = re.compile(r"[A-Za-z][\w-]*+", re.ASCII)


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
    from simplemem.clients.client import client_called
    from simplemem.clients.splice import entries, is_put_into, put

    if not _PLAIN.fullmatch(name):
        raise Invalid(f"{name!r} is no name for a server", hint="Use letters, digits, - and _; begin with a letter.")
    chosen = client_called(client) if client else None
    entry_for = _entries(name, http, token_env, vault, profile, options or (), must_exist=chosen is not None)
    if chosen is None:
        return _listed(name, entry_for)
    entry, file = entry_for(chosen), chosen.find()
    if file is None:
        return Answer({"client": chosen.name, "entry": entry}, text=put(chosen.form, "", chosen.key, name, entry))
    before, backup, keep = _text_of(file), _backup(file, name), True
    after = _spliced(file, put, chosen, before or "", name, entry)
    if name in _spliced(
        file, entries, chosen, before or ""
    ):  # then kept is what was there before; nothing, if we made it
        keep = not (backup.exists() or _spliced(file, is_put_into, chosen, before or "", name, ""))
    shown = _shown(chosen, file, before, after, dry_run)
    if before == after or dry_run:
        return shown
    _write(shown, file, before, after, backup.name if keep else "", yes)
    return Answer(shown.facts, [[("Written", "green"), f": {file}. Then: {chosen.then}."]])


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
    from simplemem.clients.splice import is_put_into, take

    chosen = client_called(client)
    file = chosen.find()
    before = _text_of(file) if file else None
    if file is None or before is None:
        raise NotFound(f"{chosen.title} has no file of servers here", hint="`simplemem install` lists the clients.")
    after, backup = _spliced(file, take, chosen, before, name), _backup(file, name)
    was = _text_of(backup)
    if after != before and _spliced(backup, is_put_into, chosen, before, name, was or ""):
        after = was  # to the byte, also what had to be made around the entry
    shown = _shown(chosen, file, before, after, dry_run)
    if before == after or dry_run:
        return shown
    _write(shown, file, before, after, "", yes)
    if was is not None and after == was:
        backup.unlink()
    return Answer(shown.facts, [[("Written", "green"), f": {file}."]])


def _shown(client: Client, file: Path, before: str | None, after: str | None, dry_run: bool) -> Answer:
    """What becomes of a client's file. None stands for no file."""
    from simplemem.note.diff import unified_diff

    facts = {"client": client.name, "file": str(file), "changed": before != after, "dry_run": dry_run}
    if before == after:
        return Answer(facts, [[f"Nothing to change for {client.title}: ", (str(file), "cyan")]])
    diff = unified_diff((before or "").encode(), (after or "").encode(), (str(file), str(file)), most=None)
    return Answer({**facts, "diff": diff}, diff_lines(diff))


def _write(shown: Answer, file: Path, before: str | None, after: str | None, keep: str, yes: bool) -> None:
    """Have a person agree to what is shown, and write it; `keep` is a name for the file as it was, "" for none."""
    from simplemem.store import Intruded, change_file

    preview(shown)
    hint = "Add --yes, or look with --dry-run."
    agree("Write this?", refused="nobody can be asked here, and nothing was changed", hint=hint, yes=yes)
    finish()
    if before is not None and not os.access(file, os.W_OK):
        raise Unavailable(f"{file} is write-protected", hint="Allow writing to it first.")
    real = Path(os.path.realpath(file))  # it may be a link
    if after is None and _text_of(real) == before:
        return real.unlink()
    real.parent.mkdir(parents=True, exist_ok=True)
    try:
        return change_file(real, None if before is None else before.encode(), (after or "").encode(), keep)
    except (Intruded, FileExistsError) as error:
        raise Conflict(f"{file} has changed meanwhile", current_sha256=None, hint="Try again.") from error


def _entries(
    name: str, http: str, token_env: str, vault: Path | None, profile: str, options: Sequence[str], must_exist: bool
) -> Callable[[Client], dict[str, Any]]:
    """What makes the entry for a client."""
    from simplemem.cli.serve import for_a_client
    from simplemem.clients.client import server_command

    if http:
        if vault or profile or options:
            raise Invalid("a server that runs has its vault and tools", hint="Leave out --vault, --profile, OPTIONS.")
        if not http.startswith(("http://", "https://")):
            raise Invalid(f"{http!r} is no address", hint="Write http://127.0.0.1:8080/mcp.")
        if token_env and not token_env.isidentifier():
            raise Invalid("--token-env wants the name of a variable", hint="The token itself stays out of the file.")
        return lambda client: client.remote_entry(name, http, token_env)
    if token_env:
        raise Invalid("--token-env goes with --http", hint="A server that a client starts asks for no token.")
    said = [*(("--vault", str(vault)) if vault else ()), *(("--profile", profile) if profile else ())]
    folder, more = for_a_client([*said, *options])
    if must_exist and not folder.is_dir():
        hint = f"`simplemem init {folder}` makes it; `--vault` names another."
        raise NotFound(f"there is no vault at {folder}", hint=hint)
    return lambda client: client.entry(name, server_command(folder, more))


def _backup(file: Path, name: str) -> Path:
    """Where the file lies as it was before it had an entry of that name."""
    real = Path(os.path.realpath(file))
    return real.with_name(f"{real.name}.before-{name}")


def _text_of(file: Path) -> str | None:
    """What a file says, None where there is none."""
    try:
        return file.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        hint = "Save it as UTF-8 first."
        raise Unreadable(f"{file} is left as it is: byte {error.start} is not UTF-8", hint=hint) from error


def _spliced(file: Path, do: Callable[..., Any], client: Client, text: str, *more: Any) -> Any:
    """What becomes of a file's text. What cannot be read is left as it is, and said with the file's name."""
    try:
        return do(client.form, text, client.key, *more)
    except Unreadable as error:
        hint = f"{error.hint} `simplemem install json` prints an entry to copy."
        raise Unreadable(f"{file} is left as it is: {error.message}", hint=hint) from error


def _listed(name: str, entry_for: Callable[[Client], dict[str, Any]]) -> Answer:
    """The clients of this machine, what each has under that name, and what it would get."""
    from simplemem.clients.client import clients
    from simplemem.clients.splice import entries

    facts, table = [], []
    for client in clients().values():
        if (file := client.find()) is None:
            continue
        now = gets = None
        try:
            gets = entry_for(client)
            now = _spliced(file, entries, client, _text_of(file) or "").get(name)
            is_there = file.exists() or (file.parent.is_dir() and file.parent != Path.home())
            state = "knows it" if now == gets else "has another" if now else "not yet" if is_there else "not here"
        except (SimplememError, OSError) as error:
            state = str(error)
        row = {"client": client.name, "title": client.title, "file": str(file), "state": state}
        facts.append({**row, "now": now, "gets": gets})
        style = {"knows it": "green", "not here": "dim"}.get(state, "yellow")
        table.append([(client.name, "cyan"), (state, style), (str(file), "dim")])
    plain = entry_for(clients()["json"])
    would = plain.get("url") or " ".join([plain["command"], *plain["args"]])
    hint = f"`simplemem install CLIENT` adds {name}, after it showed the difference: {would}"
    return Answer({"name": name, "clients": facts}, [[hint]], table, gives_way=2)
