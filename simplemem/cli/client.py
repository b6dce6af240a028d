"""The commands `connect` and `disconnect`: they edit the entry of this server in the configuration of a client."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit, urlunsplit

import typer

from simplemem.cli.command import Answer, agree, command, finish, preview
from simplemem.cli.files import replace_text
from simplemem.cli.options import (
    DryRunOption,
    VaultOption,
    YesOption,
    argument,
    completing,
    flag,
    option,
)
from simplemem.cli.output import SHRINKS, WHOLE, Lines, Part, diff_lines
from simplemem.errors import Invalid, NotFound, SimplememError, Unreadable

if TYPE_CHECKING:
    from simplemem.clients.client import Client

commands = typer.Typer()
_PANEL = "Agents and servers"
_NAME = option("--name", "NAME", "The name of the server in the client's configuration.")
_STATES = {  # how the table of clients names each state of the JSON answer
    "knows it": "connected",
    "has another": "connected to something else",
    "not yet": "not connected",
    "not here": "not installed",
}
_PLAIN = re.compile(r"[A-Za-z][\w-]*+", re.ASCII)


def _client_names() -> list[str]:
    from simplemem.clients.client import clients

    return [*clients()]


@command(commands, _PANEL)
def connect(
    client: Annotated[
        str,
        argument(
            "CLIENT", "The client. Without it, the clients are listed.", completing(_client_names)
        ),
    ] = "",
    options: Annotated[list[str] | None, argument("-- OPTIONS", "Options for `serve`.")] = None,
    vault: VaultOption = None,
    profile: Annotated[
        str, option("--profile", "NAME", "The profile: see `simplemem serve --help`.")
    ] = "",
    name: Annotated[str, _NAME] = "simplemem",
    http: Annotated[
        str,
        option(
            "--http",
            "URL",
            "Connect to a running server at this URL, which ends in /mcp, instead of starting one.",
        ),
    ] = "",
    token_env: Annotated[
        str,
        option(
            "--token-env",
            "VARIABLE",
            "With --http: the environment variable that contains the token.",
        ),
    ] = "",
    dry_run: Annotated[
        bool, flag("--dry-run --print", "Show what would change, and change nothing.")
    ] = False,
    yes: YesOption = False,
) -> Answer:
    """Connect Claude, Cursor, VS Code, Codex or another client.

    The command adds one entry for this server to the client's configuration file; every other byte stays as it is. It
    shows the difference, asks for confirmation, and keeps a copy of the old file beside the new one. If the vault does
    not exist, the command creates it. `json` prints an entry for any other client.

    $ simplemem connect
    $ simplemem connect claude-desktop --vault ~/notes
    $ simplemem connect codex --profile server-memory -- --read-only
    $ simplemem connect cursor --http https://memory.example.org/mcp --token-env MEMORY_TOKEN"""
    from simplemem.clients.client import client_called
    from simplemem.clients.splice import entries, is_put_into, put

    if not _PLAIN.fullmatch(name):
        raise Invalid(
            f"{name!r} is not a server name",
            hint="Use letters, digits, - and _; begin with a letter.",
        )
    if not client:
        try:
            _, entry_for = _entries(name, http, token_env, vault, profile, options or ())
        except NotFound:  # no vault is named or found, and listing the clients needs none
            return _listed(name, None)
        return _listed(name, entry_for)
    chosen = client_called(client)
    folder, entry_for = _entries(name, http, token_env, vault, profile, options or ())
    new_vault = _vault_to_create(folder)
    entry, file = entry_for(chosen), chosen.find()
    token_warnings = [_about_missing_token(chosen)] if http and not token_env else []
    if file is None:
        warnings = [f"{new_vault} does not exist; the server will create it"] if new_vault else []
        warnings += token_warnings
        text = put(chosen.form, "", chosen.key, name, entry)
        return Answer({"client": chosen.name, "entry": entry}, text=text, warnings=warnings)
    before, backup, keep = _text_of(file), _backup(file, name), True
    after = _spliced(file, put, chosen, before or "", name, entry)
    if name in _spliced(
        file, entries, chosen, before or ""
    ):  # then kept is what was there before; nothing, if we made it
        keep = not (backup.exists() or _spliced(file, is_put_into, chosen, before or "", name, ""))
    shown = _shown(chosen, file, before, after, dry_run, new_vault)
    shown = replace(shown, warnings=[*shown.warnings, *token_warnings])
    if before == after and new_vault is None:
        return shown
    shown = replace(
        shown, lines=[*shown.lines, [_consequence(chosen, folder or Path(), http, entry)]]
    )
    if dry_run:
        return shown
    _confirm(shown, yes)
    if new_vault is not None:
        (new_vault / ".simplemem").mkdir(parents=True)
    if before != after:
        replace_text(file, before, after, backup.name if keep else "")
    lines: Lines = [[("Created", "green"), f": {new_vault}"]] if new_vault else []
    return Answer(shown.facts, [*lines, [("Written", "green"), f": {file}. Then: {chosen.then}."]])


@command(commands, _PANEL)
def disconnect(
    client: Annotated[str, argument("CLIENT", "The client.", completing(_client_names))],
    name: Annotated[str, _NAME] = "simplemem",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Answer:
    """Remove this server from the configuration of a client.

    If nothing else in the file has changed since `connect`, the file becomes what it was before, byte for byte.

    $ simplemem disconnect cursor"""
    from simplemem.clients.client import client_called
    from simplemem.clients.splice import is_put_into, remove_entry

    chosen = client_called(client)
    file = chosen.find()
    before = _text_of(file) if file else None
    if file is None or before is None:
        message = f"{chosen.title} is not connected: it has no configuration file on this machine"
        raise NotFound(message, hint="`simplemem connect` lists the clients.")
    after, backup = _spliced(file, remove_entry, chosen, before, name), _backup(file, name)
    was = _text_of(backup)
    if after != before and _spliced(backup, is_put_into, chosen, before, name, was or ""):
        after = was  # to the byte, also what had to be made around the entry
    shown = _shown(chosen, file, before, after, dry_run)
    if before == after:
        return replace(
            shown,
            lines=[
                [f"{chosen.title} is not connected: ", (str(file), "cyan"), f" has no entry {name}"]
            ],
        )
    if dry_run:
        return shown
    _confirm(shown, yes)
    replace_text(file, before, after)
    if was is not None and after == was:
        backup.unlink()
    done: list[Part] = [("Written", "green"), f": {file}."]
    if after is None:
        done = [("Removed", "green"), f" {file}, which connect had created."]
    return Answer(
        shown.facts, [done, [f"Restart {chosen.title}, because it may still use the server."]]
    )


def _consequence(client: Client, folder: Path, http: str, entry: Mapping[str, Any]) -> str:
    """What a client that is connected can do with the notes, and who receives what it reads."""
    words = json.dumps(entry)
    if http:
        access = f"use the notes of the server at {http}"
    elif '"--read-only"' in words:
        access = f"read notes in {folder}"
    elif '"--no-delete"' in words:
        access = f"read and change notes in {folder}"
    else:
        access = f"read, change and delete notes in {folder}"
    return f"{client.title} will be able to {access}. What it reads goes to the provider of its model. See docs/privacy.md."


def _about_missing_token(client: Client) -> str:
    """What the user must do so that a server accepts a client whose entry contains no token."""
    if client.token is None:
        return f"the entry contains no token, which the server needs. {client.token_by_hand}"
    return (
        "the entry contains no token, which the server needs."
        " Add --token-env VARIABLE with the name of the environment variable that contains it."
    )


def _vault_to_create(folder: Path | None) -> Path | None:
    """The folder of the vault if it does not exist. Raises Invalid if it is a file."""
    if folder is None or folder.is_dir():
        return None
    if folder.exists():
        raise Invalid(
            f"{folder} is a file", hint="A vault is a folder. Pass a folder with `--vault`."
        )
    return folder


def _shown(
    client: Client,
    file: Path,
    before: str | None,
    after: str | None,
    dry_run: bool,
    new_vault: Path | None = None,
) -> Answer:
    """What becomes of a client's file, and of a vault that does not exist. None stands for no file."""
    from simplemem.note.diff import unified_diff
    from simplemem.settings.find_vault import similar_folder

    facts: dict[str, Any] = {
        "client": client.name,
        "file": str(file),
        "changed": before != after,
        "dry_run": dry_run,
    }
    lines: Lines = []
    if new_vault is not None:
        facts["creates"] = str(new_vault)
        lines.append(
            [
                ("This creates the vault ", "yellow"),
                (str(new_vault), "cyan"),
                ", which does not exist yet.",
            ]
        )
        near = similar_folder(new_vault)
        lines += [[("Did you mean ", "yellow"), (str(near), "cyan"), "?"]] if near else []
    if before == after:
        return Answer(
            facts, [*lines, [f"Nothing to change for {client.title}: ", (str(file), "cyan")]]
        )
    diff = unified_diff(
        (before or "").encode(), (after or "").encode(), (str(file), str(file)), max_characters=None
    )
    return Answer({**facts, "diff": diff}, [*lines, *diff_lines(diff)])


def _confirm(shown: Answer, yes: bool) -> None:
    """Show the changes, and have the user confirm them. Raises Invalid without a terminal and without --yes."""
    from simplemem.settings.find_vault import similar_folder

    preview(shown)
    near = similar_folder(Path(shown.facts["creates"])) if "creates" in shown.facts else None
    suggestion = f"Did you mean {near}? " if near else ""
    missing = (
        f"the vault {shown.facts['creates']} does not exist, and "
        if "creates" in shown.facts
        else ""
    )
    refused = f"{missing}this needs confirmation, but there is no terminal"
    question = "Create the vault and write this?" if missing else "Write this?"
    agree(
        question,
        refused=refused,
        hint=f"{suggestion}Add --yes, or preview with --dry-run.",
        yes=yes,
    )
    finish()


def _entries(
    name: str, http: str, token_env: str, vault: Path | None, profile: str, options: Sequence[str]
) -> tuple[Path | None, Callable[[Client], dict[str, Any]]]:
    """The vault of the server, None for a server that runs, and what makes the entry for a client."""
    from simplemem.cli.serve import for_a_client
    from simplemem.clients.client import server_command

    if http:
        if vault or profile or options:
            message = "--http cannot be combined with --vault, --profile or options of `serve`"
            raise Invalid(
                message, hint="Leave them out: the running server already has a vault and tools."
            )
        if not http.startswith(("http://", "https://")):
            raise Invalid(
                f"{http!r} is not a URL", hint="Pass a URL such as http://127.0.0.1:8080/mcp."
            )
        if token_env and not token_env.isidentifier():
            message = "the value of --token-env is not the name of an environment variable"
            raise Invalid(
                message,
                hint="Pass the name of the variable that contains the token, not the token.",
            )
        url = _with_path(http)
        return None, lambda client: client.remote_entry(name, url, token_env)
    if token_env:
        raise Invalid(
            "--token-env needs --http",
            hint="Leave out --token-env: a server that the client starts needs no token.",
        )
    said = [
        *(("--vault", str(vault)) if vault else ()),
        *(("--profile", profile) if profile else ()),
    ]
    folder, more = for_a_client([*said, *options])
    return folder, lambda client: client.entry(name, server_command(folder, more))


def _with_path(url: str) -> str:
    """Return the URL of MCP on a server. Raises Invalid if its path cannot be one of simplemem."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/") or "/mcp"
    if path.endswith(("/mcp", "/sse")):
        return urlunsplit(parts._replace(path=path))
    right = urlunsplit(parts._replace(path=f"{path}/mcp"))
    raise Invalid(f"{url} does not end in /mcp, where simplemem serves MCP", hint=f"Pass {right}.")


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
        raise Unreadable(
            f"{file} was not changed: byte {error.start} is not UTF-8", hint=hint
        ) from error


def _spliced(file: Path, do: Callable[..., Any], client: Client, text: str, *more: Any) -> Any:
    """What becomes of a file's text. What cannot be read is left as it is, and said with the file's name."""
    try:
        return do(client.form, text, client.key, *more)
    except Unreadable as error:
        hint = f"{error.hint} `simplemem connect json` prints an entry to copy."
        raise Unreadable(f"{file} was not changed: {error.message}", hint=hint) from error


def _listed(name: str, entry_for: Callable[[Client], dict[str, Any]] | None) -> Answer:
    """The clients of this machine, what each has under that name, and what it would get.

    Without a vault there is no entry to compare: any entry of that name counts as connected.
    """
    from simplemem.clients.client import clients
    from simplemem.clients.splice import entries

    facts, table = [], []
    for client in clients().values():
        if (file := client.find()) is None:
            continue
        now = gets = None
        try:
            gets = entry_for(client) if entry_for else None
            now = _spliced(file, entries, client, _text_of(file) or "").get(name)
            is_there = file.exists() or (file.parent.is_dir() and file.parent != Path.home())
            state = (
                "knows it"
                if now and now == gets
                else "knows it over http"
                if now and client.url_of(now)
                else "knows it"
                if now and gets is None
                else "has another"
                if now
                else "not yet"
                if is_there
                else "not here"
            )
        except (SimplememError, OSError) as error:
            state = str(error)
        row = {"client": client.name, "title": client.title, "file": str(file), "state": state}
        facts.append({**row, "now": now, "gets": gets})
        style = {
            "knows it": "green",
            "knows it over http": "green",
            "not here": "dim",
        }.get(state, "yellow")
        told = _STATES.get(state, state)
        url = client.url_of(now) if now and state.startswith("knows it") else ""
        told = f"connected over HTTP to {url}" if url else told
        table.append([(client.name, "cyan"), (told, style), (str(file), "dim")])
    if entry_for is None:
        hint = f"To connect one, name the vault: `simplemem connect CLIENT --vault FOLDER` shows the change, asks for confirmation, and adds {name}."
    else:
        plain = entry_for(clients()["json"])
        would = plain.get("url") or " ".join([plain["command"], *plain["args"]])
        hint = f"`simplemem connect CLIENT` shows the change, asks for confirmation, and adds {name}: {would}"
    return Answer(
        {"name": name, "clients": facts}, [[hint]], table, columns=(WHOLE, WHOLE, SHRINKS)
    )
