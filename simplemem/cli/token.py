"""The commands `token new`, `token list` and `token revoke`: access tokens of served vaults."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated

import typer

from simplemem.cli.command import Answer, command
from simplemem.cli.options import Group, argument, duration, flag, option
from simplemem.cli.output import WHOLE, Part
from simplemem.errors import Invalid, NotFound

commands = typer.Typer()
_tokens = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
commands.add_typer(
    _tokens,
    name="token",
    help="Manage the access tokens of served vaults.",
    rich_help_panel="Agents and servers",
)


@command(_tokens)
def new(
    name: Annotated[
        str,
        argument(
            "NAME",
            "A name for the token. The history shows it as the author of changes, before the name of the client.",
        ),
    ],
    write: Annotated[
        bool, flag("--write", "Allow changing notes. Without it, the token can only read.")
    ] = False,
    admin: Annotated[
        bool, flag("--admin", "Allow reading metrics and the results of `doctor`.")
    ] = False,
    vault: Annotated[
        list[str] | None,
        option("--vault", "NAME", "Only this vault of a server with several vaults."),
    ] = None,
    folder: Annotated[
        list[str] | None, option("--folder", "FOLDER", "Only this folder of the vault.")
    ] = None,
    user: Annotated[
        str | None, option("--user", "NAME", "Only this user (user_id or container_tag).")
    ] = None,
    expires: Annotated[
        str, option("--expires", "90d", "How long the token is valid: 12h, 90d, 8w.")
    ] = "",
    calls: Annotated[
        int,
        option("--calls", "N", "The maximum number of calls per minute; 0 means no limit.", min=0),
    ] = 0,
    kilobytes: Annotated[
        int,
        option(
            "--kilobytes",
            "N",
            "The maximum number of kilobytes per hour that it may send; 0 means no limit.",
            min=0,
        ),
    ] = 0,
) -> Answer:
    """Create a token.

    The token is printed once, on standard output. Only its hash is stored. `simplemem undo --author
    NAME --since WHEN` undoes what was changed with it.

    $ simplemem token new laptop --write
    $ simplemem token new 'build server' --folder projects/apollo --expires 90d
    $ simplemem token new priya --write --user priya --calls 600
    """
    from simplemem.web.tokens import Grant, Tokens, token_folder

    scopes = ["read"]
    if write:
        scopes.append("write")
    if admin:
        scopes.append("admin")
    if user == "":
        raise _empty_limit()
    folders = tuple(f"{_checked_folder(path)}/" for path in folder or ())

    expiry: int | None = None
    if expires:
        validity = duration(expires, "--expires", least=timedelta(hours=1))
        expiry = int(time.time() + validity.total_seconds())
    vaults = tuple(vault or ())
    grant = Grant(name, tuple(scopes), vaults, folders, user or "", calls, kilobytes, expiry)
    token = Tokens(token_folder(os.environ)).new(grant)

    # On standard error, so that TOKEN=$(simplemem token new NAME) contains the token alone.
    warnings = [] if vault else _about_missing_folders(folders)
    warnings.append("the token is not shown again; send it as `Authorization: Bearer TOKEN`")
    facts = {"name": name, "token": token, "scopes": scopes}
    return Answer(facts, [[(token, "bold")]], warnings=warnings)


def _checked_folder(path: str) -> str:
    """Return the path of a folder without slashes around it. Raises Invalid if it is not in a vault."""
    if not path.strip("/"):
        raise _empty_limit()

    is_absolute = os.path.isabs(path) or path.startswith("/")
    if is_absolute or ".." in path.replace("\\", "/").split("/"):
        hint = "Pass the path of the folder inside the vault, such as projects/apollo."
        raise Invalid(f"--folder {path[:60]!r} is not a folder in the vault", hint=hint)
    return path.strip("/")


def _empty_limit() -> Invalid:
    hint = "To allow the whole vault, leave them out."
    return Invalid("--user and --folder must not be empty", hint=hint)


def _about_missing_folders(places: Sequence[str]) -> list[str]:
    """Say which folders the vault of this user lacks. Nothing if there is no vault."""
    from simplemem.settings.find_vault import find_existing_vault

    try:
        root = find_existing_vault()
    except NotFound:
        return []
    return [
        f"the vault {root} has no folder {place.rstrip('/')}; the token can read no note until it exists"
        for place in places
        if not (root / place).is_dir()
    ]


@command(_tokens, name="list")
def list_() -> Answer:
    """List the tokens and their permissions.

    The owner's token is not listed.

    $ simplemem token list
    """
    from simplemem.web.tokens import Tokens, token_folder

    found = Tokens(token_folder(os.environ)).all()
    shown, rows = [], list[list[Part]]()
    for each in found:
        until = (
            datetime.fromtimestamp(each.expires, UTC).strftime("%Y-%m-%d") if each.expires else ""
        )
        is_over = each.expires is not None and each.expires <= time.time()
        places = [*each.vaults, *each.folders, *([f"user {each.user}"] if each.user else [])]
        shown.append({
            "name": each.name, "scopes": list(each.scopes), "vaults": list(each.vaults), "folders": list(each.folders),
            "user": each.user, "expires": until, "expired": is_over,
        })  # fmt: skip
        ends: Part = (
            f"{'expired' if is_over else 'until'} {until}" if until else "",
            "red" if is_over else "dim",
        )
        rows.append(
            [(each.name, "cyan"), " ".join(each.scopes), ", ".join(places) or "everything", ends]
        )
    return Answer(
        {"tokens": shown},
        [] if found else [["No tokens."]],
        rows,
        columns=(WHOLE, WHOLE, WHOLE, WHOLE),
    )


@command(_tokens)
def revoke(name: Annotated[str, argument("NAME", "The name of the token.")]) -> Answer:
    """Revoke a token. A server refuses it from the next request on.

    $ simplemem token revoke laptop
    """
    from simplemem.web.tokens import Tokens, token_folder

    gone = Tokens(token_folder(os.environ)).revoke(name)
    return Answer({"name": gone.name, "revoked": True}, [["Revoked ", (gone.name, "cyan"), "."]])
