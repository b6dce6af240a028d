"""The commands `token new`, `token list` and `token revoke`: access tokens of served vaults.

Each raises Unavailable if the file of tokens cannot be read or written. `token new` raises Invalid
if an option is wrong or the name is taken, and `token revoke` NotFound for an unknown name.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from simplemem.cli.command import Answer, command
from simplemem.cli.options import Group, argument, duration, flag, option
from simplemem.cli.output import WHOLE, Part
from simplemem.errors import Invalid, NotFound

if TYPE_CHECKING:
    from simplemem.web.tokens import Grant

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
            "A name for the token. The history shows it as the author of changes, before the "
            "name of the client.",
        ),
    ],
    write: Annotated[
        bool, flag("--write", "Allow changing notes. Without it, the token can only read.")
    ] = False,
    propose: Annotated[
        bool,
        flag("--propose", "Allow proposing changes, which a person accepts or declines."),
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
        str | None, option("--user", "NAME", "Only this user of facts and documents.")
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
    from simplemem.web.tokens import Grant, Tokens, limiting_folder, scopes_of, token_folder

    if write and propose:
        raise typer.BadParameter("--write and --propose exclude each other")
    scopes = scopes_of(write=write, propose=propose, admin=admin)
    if user == "" or "" in (folder or ()):
        hint = "To allow the whole vault, leave them out."
        raise Invalid("--user and --folder must not be empty", hint=hint)
    folders = tuple(map(limiting_folder, folder or ()))
    grant = Grant(
        name,
        scopes,
        vaults=tuple(vault or ()),
        folders=folders,
        user=user or "",
        calls=calls,
        kilobytes=kilobytes,
        expires=_expiry(expires),
    )
    token = Tokens(token_folder(os.environ)).new(grant)

    warnings = []
    if not vault:
        warnings += _warn_of_missing_folders(folders)
    warnings.append("the token is not shown again; send it as `Authorization: Bearer TOKEN`")
    fields = {"name": name, "token": token, "scopes": list(scopes)}
    # The warnings are on standard error, so that TOKEN=$(simplemem token new NAME) contains the
    # token alone.
    return Answer(fields, [[(token, "bold")]], warnings=warnings)


def _expiry(validity: str) -> int | None:
    """Return when a token ends that is valid from now on, in seconds since 1970.

    Returns None for "": the token never ends. Raises Invalid unless the validity is a duration of
    at least an hour, such as 90d.
    """
    if not validity:
        return None
    length = duration(validity, "--expires", least=timedelta(hours=1))
    return int(time.time() + length.total_seconds())


def _warn_of_missing_folders(folders: Sequence[str]) -> list[str]:
    """Return a warning per folder that the user's vault lacks; [] if the user has no vault.

    Each folder ends in `/`.
    """
    from simplemem.settings.find_vault import find_existing_vault

    try:
        root = find_existing_vault()
    except NotFound:
        return []

    missing = [folder.rstrip("/") for folder in folders if not (root / folder).is_dir()]
    consequence = "the token can read no note until it exists"
    return [f"the vault {root} has no folder {folder}; {consequence}" for folder in missing]


@command(_tokens, name="list")
def list_() -> Answer:
    """List the tokens and their permissions.

    The owner's token is not listed.

    $ simplemem token list
    """
    from simplemem.web.tokens import Tokens, token_folder

    grants = Tokens(token_folder(os.environ)).all()
    lines = []
    if not grants:
        lines = [["No tokens."]]
    return Answer(
        {"tokens": [_describe(grant) for grant in grants]},
        lines,
        [_row(grant) for grant in grants],
        columns=(WHOLE, WHOLE, WHOLE, WHOLE),
    )


def _describe(grant: Grant) -> dict[str, Any]:
    """Return what `--json` shows of a token: its name, rights, limits and expiry.

    Neither the token nor its hash is in it. `expires` is a day, or "" for never.
    """
    return {
        "name": grant.name,
        "scopes": list(grant.scopes),
        "vaults": list(grant.vaults),
        "folders": list(grant.folders),
        "user": grant.user,
        "expires": _last_day(grant),
        "expired": grant.has_expired,
    }


def _row(grant: Grant) -> list[Part]:
    """Return a token as a row of the table: name, scopes, limits and validity.

    A token without limits shows `everything`, and one that never expires an empty validity.
    """
    limits = "; ".join(grant.limits) or "everything"

    validity: Part = ("", "dim")
    if grant.has_expired:
        validity = (f"expired {_last_day(grant)}", "red")
    elif grant.expires:
        validity = (f"until {_last_day(grant)}", "dim")
    return [(grant.name, "cyan"), " ".join(grant.scopes), limits, validity]


def _last_day(grant: Grant) -> str:
    """Return the day in UTC on which a token expires, or "" if it does not."""
    if not grant.expires:
        return ""
    return datetime.fromtimestamp(grant.expires, UTC).strftime("%Y-%m-%d")


@command(_tokens)
def revoke(name: Annotated[str, argument("NAME", "The name of the token.")]) -> Answer:
    """Revoke a token. A server refuses it from the next request on.

    $ simplemem token revoke laptop
    """
    from simplemem.web.tokens import Tokens, token_folder

    grant = Tokens(token_folder(os.environ)).revoke(name)
    line: list[Part] = ["Revoked ", (grant.name, "cyan"), "."]
    return Answer({"name": grant.name, "revoked": True}, [line])
