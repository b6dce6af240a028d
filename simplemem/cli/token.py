"""The commands `token new`, `token list` and `token revoke`: who may reach a served vault, and what they see of it."""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime
from typing import Annotated

import typer

from simplemem.cli.command import Answer, command
from simplemem.cli.options import Group, argument, flag, option
from simplemem.cli.output import Part
from simplemem.errors import Invalid

commands = typer.Typer()
_tokens = typer.Typer(cls=Group, no_args_is_help=True, rich_markup_mode="rich")
commands.add_typer(_tokens, name="token", help="Say who may reach a served vault.", rich_help_panel="Serve")
_SECONDS = {"h": 3600, "d": 86_400, "w": 604_800}


@command(_tokens)
def new(
    name: Annotated[str, argument("NAME", "Who or what it is for; the history names its changes so.")],
    write: Annotated[bool, flag("--write", "It may change notes, not only read them.")] = False,
    admin: Annotated[bool, flag("--admin", "It may see metrics and what the doctor finds.")] = False,
    vault: Annotated[list[str] | None, option("--vault", "NAME", "One vault of a server that has several.")] = None,
    folder: Annotated[list[str] | None, option("--folder", "FOLDER", "It sees this folder of the vault alone.")] = None,
    user: Annotated[str | None, option("--user", "NAME", "It speaks for this user_id (container_tag) alone.")] = None,
    expires: Annotated[str, option("--expires", "90d", "How long it is good for: 12h, 90d, 8w.")] = "",
    calls: Annotated[int, option("--calls", "N", "Calls a minute, at most.", min=0)] = 0,
    kilobytes: Annotated[int, option("--kilobytes", "N", "Kilobytes it may send in an hour, at most.", min=0)] = 0,
) -> Answer:
    """Make a token. It is shown now and never again: what is kept of it is a hash.

    $ simplemem token new laptop --write
    $ simplemem token new 'build server' --folder projects/apollo --expires 90d
    $ simplemem token new priya --write --user priya --calls 600
    """
    from simplemem.network.tokens import Grant, Tokens, token_folder

    scopes = ("read", *(("write",) if write else ()), *(("admin",) if admin else ()))
    if user == "" or not all(each.strip("/") for each in folder or ()):
        raise Invalid("--user and --folder want a name", hint="Without them a token sees the whole vault.")
    places = tuple(f"{each.strip('/')}/" for each in folder or ())
    until = int(time.time()) + _seconds(expires) if expires else None
    grant = Grant(name, scopes, tuple(vault or ()), places, user or "", calls, kilobytes, until)
    token = Tokens(token_folder(os.environ)).new(grant)
    told: list[Part] = ["It is not shown again. Send it as ", ("Authorization: Bearer ...", "cyan")]
    return Answer({"name": name, "token": token, "scopes": list(scopes)}, [[(token, "bold")], told])


def _seconds(said: str) -> int:
    if (found := re.fullmatch(r"(\d{1,5})([hdw])", said.strip())) is None or not int(found[1]):
        raise Invalid(f"{said[:20]!r} is no length of time", hint="For example 12h, 90d or 8w.")
    return int(found[1]) * _SECONDS[found[2]]


@command(_tokens, name="list")
def list_() -> Answer:
    """List the tokens there are, and what each may do. The owner's own is not among them.

    $ simplemem token list
    """
    from simplemem.network.tokens import Tokens, token_folder

    found = Tokens(token_folder(os.environ)).all()
    shown, rows = [], list[list[Part]]()
    for each in found:
        until = datetime.fromtimestamp(each.expires, UTC).strftime("%Y-%m-%d") if each.expires else ""
        is_over = each.expires is not None and each.expires <= time.time()
        places = [*each.vaults, *each.folders, *([f"user {each.user}"] if each.user else [])]
        shown.append({
            "name": each.name, "scopes": list(each.scopes), "vaults": list(each.vaults), "folders": list(each.folders),
            "user": each.user, "expires": until, "expired": is_over,
        })  # fmt: skip
        ends: Part = (f"{'expired' if is_over else 'until'} {until}" if until else "", "red" if is_over else "dim")
        rows.append([(each.name, "cyan"), " ".join(each.scopes), ", ".join(places) or "everything", ends])
    return Answer({"tokens": shown}, [] if found else [["No tokens but the owner's."]], rows, gives_way=2)


@command(_tokens)
def revoke(name: Annotated[str, argument("NAME", "The name it was given.")]) -> Answer:
    """Take a token away. A server refuses it from its next request on.

    $ simplemem token revoke laptop
    """
    from simplemem.network.tokens import Tokens, token_folder

    gone = Tokens(token_folder(os.environ)).revoke(name)
    return Answer({"name": gone.name, "revoked": True}, [["Revoked ", (gone.name, "cyan"), "."]])
