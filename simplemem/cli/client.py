"""The commands `connect` and `disconnect`: they edit a client's configuration file."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias
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
_STATES = {  # how the table of clients words a state of the JSON answer, and its style
    "knows it": ("connected", "green"),
    "knows it over http": ("connected over HTTP", "green"),
    "has another": ("connected to something else", "yellow"),
    "not yet": ("not connected", "yellow"),
    "not here": ("not installed", "dim"),
}
_PLAIN_NAME = re.compile(r"[A-Za-z][\w-]*+", re.ASCII)
Entry: TypeAlias = dict[str, Any]
"""The entry for a server in a client's configuration file, as JSON."""
EntryMaker: TypeAlias = "Callable[[Client], Entry]"
"""Returns the entry for one server in the form of a client.

Raises Invalid if the client cannot have such an entry.
"""


@dataclass(frozen=True)
class _FileChange:
    """What a command does to the configuration file of a client.

    Attributes:
        client: The client.
        file: Its configuration file.
        old_text: The text of the file; None if there is no file.
        new_text: The text that the file gets; None if it is removed.
        is_dry_run: Whether the change is only shown.
        new_vault: The vault that the command creates, too; None if it exists.
    """

    client: Client
    file: Path
    old_text: str | None
    new_text: str | None
    is_dry_run: bool
    new_vault: Path | None = None

    @property
    def is_changed(self) -> bool:
        """Whether the file gets another text, is created or is removed."""
        return self.old_text != self.new_text


@dataclass(frozen=True)
class _ServerOptions:
    """The options of `connect` that describe the server.

    Attributes:
        name: Its name in the client's configuration.
        http: The URL of a running server; "" for one that the client starts.
        token_env: The environment variable with the token of a running server, or "".
        vault: The vault; None if it is not named.
        profile: The profile; "" for the default.
        serve_options: Further options for `serve`.
    """

    name: str
    http: str
    token_env: str
    vault: Path | None
    profile: str
    serve_options: Sequence[str]


def _client_names() -> list[str]:
    """Return the names of all clients, for completion in the shell."""
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

    The command adds one entry for this server to the client's configuration file, or replaces the
    one of this name; every other byte stays as it is. It shows the difference, asks for
    confirmation, and keeps a copy of the old file beside the new one. If the vault does not exist,
    the command creates it. `json` prints an entry for any other client.

    $ simplemem connect
    $ simplemem connect claude-desktop --vault ~/notes
    $ simplemem connect codex --vault ~/notes -- --read-only
    $ simplemem connect cursor --http https://memory.example.org/mcp --token-env MEMORY_TOKEN"""
    from simplemem.clients.client import client_called
    from simplemem.clients.splice import put

    if not _PLAIN_NAME.fullmatch(name):
        hint = "Use letters, digits, - and _; begin with a letter."
        raise Invalid(f"{name!r} is not a server name", hint=hint)

    server = _ServerOptions(name, http, token_env, vault, profile, options or ())
    if not client:
        return _list_clients(server)

    chosen = client_called(client)
    folder, make_entry = _entries(server)
    new_vault = _vault_to_create(folder)
    entry = make_entry(chosen)
    token_warnings = []
    if http and not token_env:
        token_warnings.append(_missing_token(chosen))

    file = chosen.find()
    if file is None:
        return _entry_to_copy(chosen, name, entry, new_vault, token_warnings)

    old_text = _text_of(file)
    new_text = _spliced(file, put, chosen, old_text or "", name, entry)
    change = _FileChange(chosen, file, old_text, new_text, dry_run, new_vault)
    plan = _plan(change)
    plan = replace(plan, warnings=[*plan.warnings, *token_warnings])
    if not change.is_changed and new_vault is None:
        return plan

    consequence = _consequence(chosen, folder or Path(), http, entry)
    plan = replace(plan, lines=[*plan.lines, [consequence]])
    if dry_run:
        return plan

    backup_name = _backup_to_store(change, name)
    _confirm(plan, yes)
    return Answer(plan.facts, _apply(change, backup_name))


def _list_clients(server: _ServerOptions) -> Answer:
    """Return the clients of this machine, with the entry that each has and would get.

    If there is no vault, the latter is left out. Raises Invalid if the options contradict each
    other.
    """
    make_entry: EntryMaker | None = None
    with suppress(NotFound):
        _, make_entry = _entries(server)
    return _client_table(server.name, make_entry)


def _entry_to_copy(
    client: Client, name: str, entry: Entry, new_vault: Path | None, token_warnings: Sequence[str]
) -> Answer:
    """Return the answer with an entry to copy, for a client whose file simplemem does not know.

    `name` is that of the server. The answer warns that `new_vault` does not exist, if it is not
    None, and has `token_warnings`. Nothing is changed, and the vault is not created.
    """
    from simplemem.clients.splice import put

    warnings = []
    if new_vault is not None:
        warnings.append(f"{new_vault} does not exist; the server will create it")
    warnings += token_warnings
    text = put(client.form, "", client.key, name, entry)
    return Answer({"client": client.name, "entry": entry}, text=text, warnings=warnings)


def _backup_to_store(change: _FileChange, name: str) -> str:
    """Return the file name of the copy to store of the old file, "" if no copy is needed.

    None is needed if the file has the entry `name`, and the first `connect` stored a copy or
    created the file. Raises Unreadable if the old file cannot be read.
    """
    from simplemem.clients.splice import entries, is_put_into

    text = change.old_text or ""
    backup = _backup(change.file, name)
    if name not in _spliced(change.file, entries, change.client, text):
        return backup.name
    if backup.exists():
        return ""
    was_created = _spliced(change.file, is_put_into, change.client, text, name, "")
    return "" if was_created else backup.name


def _apply(change: _FileChange, backup_name: str) -> Lines:
    """Create the vault and write the file, if they change, and return lines that say so.

    With a `backup_name`, the old file is kept beside the new one under this name. Raises
    Unavailable if the file is write-protected, Conflict if another program has changed it, and
    OSError if the vault cannot be created.
    """
    lines: Lines = []
    if change.new_vault is not None:
        own_folder = change.new_vault / ".simplemem"
        own_folder.mkdir(parents=True)
        lines.append([("Created", "green"), f": {change.new_vault}"])
    if change.is_changed:
        replace_text(change.file, change.old_text, change.new_text, backup_name)
        lines.append([("Written", "green"), f": {change.file}. Then: {change.client.next_step}."])
    return lines


@command(commands, _PANEL)
def disconnect(
    client: Annotated[str, argument("CLIENT", "The client.", completing(_client_names))],
    name: Annotated[str, _NAME] = "simplemem",
    dry_run: DryRunOption = False,
    yes: YesOption = False,
) -> Answer:
    """Remove this server from the configuration of a client.

    If nothing else in the file has changed since `connect`, the file becomes what it was before,
    byte for byte.

    $ simplemem disconnect cursor"""
    from simplemem.clients.client import client_called
    from simplemem.clients.splice import is_put_into, remove_entry

    chosen = client_called(client)
    file = chosen.find()
    old_text = _text_of(file) if file else None
    if file is None or old_text is None:
        message = f"{chosen.title} is not connected: it has no configuration file on this machine"
        raise NotFound(message, hint="`simplemem connect` lists the clients.")

    new_text = _spliced(file, remove_entry, chosen, old_text, name)
    backup = _backup(file, name)
    original = _text_of(backup)
    # Byte for byte, also what connect had to add around the entry.
    is_restorable = new_text != old_text and _spliced(
        backup, is_put_into, chosen, old_text, name, original or ""
    )
    if is_restorable:
        new_text = original

    change = _FileChange(chosen, file, old_text, new_text, dry_run)
    plan = _plan(change)
    if not change.is_changed:
        title: Part = f"{chosen.title} is not connected: "
        return replace(plan, lines=[[title, (str(file), "cyan"), f" has no entry {name}"]])
    if dry_run:
        return plan

    _confirm(plan, yes)
    replace_text(file, old_text, new_text)
    if original is not None and new_text == original:
        backup.unlink()

    result: list[Part] = [("Written", "green"), f": {file}."]
    if new_text is None:
        result = [("Removed", "green"), f" {file}, which connect had created."]
    restart = f"Restart {chosen.title}, because it may still use the server."
    return Answer(plan.facts, [result, [restart]])


def _consequence(client: Client, folder: Path, http: str, entry: Mapping[str, Any]) -> str:
    """Return sentences on what a client with this entry can do, and who gets its data.

    `folder` is the vault, and `http` the URL of a running server, or "".
    """
    text = json.dumps(entry)
    if http:
        access = f"use the notes of the server at {http}"
    elif '"--read-only"' in text:
        access = f"read notes in {folder}"
    elif '"--no-delete"' in text:
        access = f"read and change notes in {folder}"
    else:
        access = f"read, change and delete notes in {folder}"
    return (
        f"{client.title} will be able to {access}. What it reads goes to the provider of its model."
        " See docs/privacy.md."
    )


def _missing_token(client: Client) -> str:
    """Return the warning that an entry for a running server contains no token, and what to do.

    That is `--token-env`, or an edit by hand if the client may not read variables.
    """
    problem = "the entry contains no token, which the server needs."
    if client.token is None:
        return f"{problem} {client.token_by_hand}"
    return (
        f"{problem} Add --token-env VARIABLE with the name of the environment variable that"
        " contains it."
    )


def _vault_to_create(folder: Path | None) -> Path | None:
    """Return the folder of the vault if it does not exist; None if it does, or for None.

    Raises Invalid if it is a file.
    """
    if folder is None or folder.is_dir():
        return None
    if folder.exists():
        hint = "A vault is a folder. Pass a folder with `--vault`."
        raise Invalid(f"{folder} is a file", hint=hint)
    return folder


def _plan(change: _FileChange) -> Answer:
    """Return the answer that shows what would change in a client's file. Nothing is changed.

    Its facts have `client`, `file`, `changed` and `dry_run`, `creates` with the vault if one would
    be created, and `diff` if the file would change.
    """
    from simplemem.note.diff import unified_diff
    from simplemem.settings.find_vault import similar_folder

    client = change.client
    facts: dict[str, Any] = {
        "client": client.name,
        "file": str(change.file),
        "changed": change.is_changed,
        "dry_run": change.is_dry_run,
    }
    lines: Lines = []
    if change.new_vault is not None:
        vault = str(change.new_vault)
        facts["creates"] = vault
        new: Part = ("This creates the vault ", "yellow")
        lines.append([new, (vault, "cyan"), ", which does not exist yet."])
        similar = similar_folder(change.new_vault)
        if similar:
            lines.append([("Did you mean ", "yellow"), (str(similar), "cyan"), "?"])
    if not change.is_changed:
        lines.append([f"Nothing to change for {client.title}: ", (str(change.file), "cyan")])
        return Answer(facts, lines)

    old_data = (change.old_text or "").encode()
    new_data = (change.new_text or "").encode()
    name = str(change.file)
    diff = unified_diff(old_data, new_data, (name, name), max_characters=None)
    facts["diff"] = diff
    return Answer(facts, [*lines, *diff_lines(diff)])


def _confirm(plan: Answer, yes: bool) -> None:
    """Show the changes of a plan, and have the user confirm them. From then on, Ctrl-C waits.

    A no ends the command. Raises Invalid without a terminal and without --yes.
    """
    from simplemem.settings.find_vault import similar_folder

    preview(plan)
    question = "Write this?"
    refused = "this needs confirmation, but there is no terminal"
    hint = "Add --yes, or preview with --dry-run."
    if "creates" in plan.facts:
        vault = plan.facts["creates"]
        question = "Create the vault and write this?"
        refused = f"the vault {vault} does not exist, and {refused}"
        similar = similar_folder(Path(vault))
        if similar:
            hint = f"Did you mean {similar}? {hint}"
    agree(question, refused=refused, hint=hint, yes=yes)
    finish()


def _entries(server: _ServerOptions) -> tuple[Path | None, EntryMaker]:
    """Return the vault of the server, and the function that makes the entry for a client.

    The vault is None for a server that runs already; another one need not exist. Raises Invalid if
    the options contradict each other, and NotFound if no vault is named and none is found.
    """
    from simplemem.cli.serve import parse_options
    from simplemem.cli.serve_choice import client_arguments
    from simplemem.clients.client import server_command

    name = server.name
    if server.http:
        if server.vault or server.profile or server.serve_options:
            message = "--http cannot be combined with --vault, --profile or options of `serve`"
            hint = "Leave them out: the running server already has a vault and tools."
            raise Invalid(message, hint=hint)

        url = _checked_url(server.http, server.token_env)
        return None, lambda client: client.remote_entry(name, url, server.token_env)

    if server.token_env:
        hint = "Leave out --token-env: a server that the client starts needs no token."
        raise Invalid("--token-env needs --http", hint=hint)

    serve_options: list[str] = []
    if server.vault:
        serve_options += ["--vault", str(server.vault)]
    if server.profile:
        serve_options += ["--profile", server.profile]
    folder, arguments = client_arguments(parse_options([*serve_options, *server.serve_options]))
    return folder, lambda client: client.entry(name, server_command(folder, arguments))


def _checked_url(url: str, token_env: str) -> str:
    """Return the URL of MCP on a running server, with its path `/mcp` if it has none.

    `token_env` is the variable of the token, or "". Raises Invalid if the URL is none of HTTP or
    has another path, or if `token_env` cannot be the name of a variable. The server is not asked.
    """
    if not url.startswith(("http://", "https://")):
        hint = "Pass a URL such as http://127.0.0.1:8080/mcp."
        raise Invalid(f"{url!r} is not a URL", hint=hint)
    if token_env and not token_env.isidentifier():
        message = "the value of --token-env is not the name of an environment variable"
        hint = "Pass the name of the variable that contains the token, not the token."
        raise Invalid(message, hint=hint)
    return _with_path(url)


def _with_path(url: str) -> str:
    """Return a URL with the path `/mcp` if it has no path, and without a slash at its end.

    Raises Invalid if it has a path that does not end in /mcp or /sse.
    """
    parts = urlsplit(url)
    path = parts.path.rstrip("/") or "/mcp"
    if path.endswith(("/mcp", "/sse")):
        return urlunsplit(parts._replace(path=path))
    suggestion = urlunsplit(parts._replace(path=f"{path}/mcp"))
    raise Invalid(
        f"{url} does not end in /mcp, where simplemem serves MCP", hint=f"Pass {suggestion}."
    )


def _backup(file: Path, name: str) -> Path:
    """Return the path of the copy that the first `connect` of that name keeps of a file.

    The copy need not exist. If the file is a link, it is beside the target.
    """
    real = Path(os.path.realpath(file))
    return real.with_name(f"{real.name}.before-{name}")


def _text_of(file: Path) -> str | None:
    """Return the text of a file, or None if there is none.

    Raises Unreadable if it is not UTF-8.
    """
    try:
        return file.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        message = f"{file} was not changed: byte {error.start} is not UTF-8"
        raise Unreadable(message, hint="Save it as UTF-8 first.") from error


def _spliced(
    file: Path, edit: Callable[..., Any], client: Client, text: str, *arguments: Any
) -> Any:
    """Return what `edit`, a function of `clients.splice`, returns for a file's text.

    It is called with the form and the key of the client's file, and with `arguments`. `file` only
    names the file in an error. Raises Unreadable, which names the file, if the function does.
    Nothing is changed.
    """
    try:
        return edit(client.form, text, client.key, *arguments)
    except Unreadable as error:
        hint = f"{error.hint} `simplemem connect json` prints an entry to copy."
        raise Unreadable(f"{file} was not changed: {error.message}", hint=hint) from error


def _client_table(name: str, make_entry: EntryMaker | None) -> Answer:
    """Return the answer with the clients of this machine, and the entry `name` that each has.

    With `make_entry`, it also has the entry that each would get. Without it, any entry of that name
    counts as connected. Clients without a known file are left out.
    """
    from simplemem.clients.client import clients

    facts = []
    table: list[list[Part]] = []
    for client in clients().values():
        file = client.find()
        if file is None:
            continue

        row, wording = _client_row(client, file, name, make_entry)
        facts.append(row)
        table.append([(client.name, "cyan"), wording, (str(file), "dim")])

    connects = "shows the change, asks for confirmation, and adds"
    if make_entry is None:
        command_line = "`simplemem connect CLIENT --vault FOLDER`"
        hint = f"To connect one, name the vault: {command_line} {connects} {name}."
    else:
        entry = make_entry(clients()["json"])
        server = entry.get("url") or " ".join([entry["command"], *entry["args"]])
        hint = f"`simplemem connect CLIENT` {connects} {name}: {server}"
    columns = (WHOLE, WHOLE, SHRINKS)
    return Answer({"name": name, "clients": facts}, [[hint]], table, columns=columns)


def _client_row(
    client: Client, file: Path, name: str, make_entry: EntryMaker | None
) -> tuple[dict[str, Any], Part]:
    """Return one client as `--json` shows it, and the cell of the table that says its state.

    The keys are `client`, `title`, `file`, `state`, and the entries `now` and `gets`, which may be
    None. If the file cannot be read, or the client cannot have such an entry, the text of the error
    is the state. Raises nothing.
    """
    from simplemem.clients.splice import entries

    current: Entry | None = None
    new: Entry | None = None
    try:
        if make_entry is not None:
            new = make_entry(client)
        text = _text_of(file) or ""
        current = _spliced(file, entries, client, text).get(name)
        state = _state_of(client, file, current, new)
    except (SimplememError, OSError) as error:
        state = str(error)

    wording, style = _STATES.get(state, (state, "yellow"))
    is_connected = state.startswith("knows it")
    if current and is_connected and client.url_of(current):
        wording = f"connected over HTTP to {client.url_of(current)}"
    facts = {
        "client": client.name,
        "title": client.title,
        "file": str(file),
        "state": state,
        "now": current,
        "gets": new,
    }
    return facts, (wording, style)


def _state_of(client: Client, file: Path, current: Entry | None, new: Entry | None) -> str:
    """Return the state of a client: one of the keys of `_STATES`, which `--json` shows.

    `current` is its entry, and `new` the one that it would get; None if there is none. An entry
    with a URL counts as connected, whatever the URL. Without an entry, the state says whether the
    client seems to be installed: whether its file or the file's folder exists.
    """
    if current:
        if current == new:
            return "knows it"
        if client.url_of(current):
            return "knows it over http"
        return "knows it" if new is None else "has another"

    is_installed = file.exists() or (file.parent.is_dir() and file.parent != Path.home())
    return "not yet" if is_installed else "not here"
