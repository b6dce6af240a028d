"""The commands `config list`, `config get` and `config set`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any

import typer

from simplemem.cli.command import Answer, command, finish
from simplemem.cli.options import DefaultGroup, VaultOption, argument, completing, flag
from simplemem.cli.output import SHRINKS, WHOLE, Lines, in_words
from simplemem.errors import Conflict, Invalid, NotFound, Unavailable, Unreadable

commands = typer.Typer()
_config = typer.Typer(cls=DefaultGroup)
commands.add_typer(
    _config,
    name="config",
    help="Show and change settings.\n\n"
    "A flag overrides the environment, which overrides the vault's own `.simplemem/config.toml`, which overrides your "
    "`~/.config/simplemem/config.toml`, which overrides the default.\n\n"
    "The vault is `--vault`, else `$SIMPLEMEM_VAULT`, else the setting `vault`, else the nearest folder, from the "
    "current one upwards, that contains `.simplemem/` or `.obsidian/`, else `./.memories`, else `~/simplemem`. The last "
    "is never used inside another folder of Markdown notes.",
    epilog="$ simplemem config\n$ simplemem config get search.limit\n$ simplemem config set search.limit 10",
    rich_help_panel="Vault",
)
_COVERED = "**********"


def _keys() -> list[str]:
    from simplemem.config import fields

    return [key for key, _ in fields()]


Key = Annotated[str, argument("KEY", "A setting, such as `search.limit`.", completing(_keys))]


@command(_config, name="list")
def list_settings(
    example: Annotated[bool, flag("--example", "Print a settings file that contains every setting.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """List the settings in force, and where each comes from.

    $ simplemem config list
    $ simplemem config list --example > ~/.config/simplemem/config.toml
    $ SIMPLEMEM_SEARCH_LIMIT=10 simplemem config list --json"""
    from simplemem.config import example_config, find_existing_vault

    if example:
        return Answer({"example": example_config()}, text=example_config())

    warnings = list[str]()
    try:
        find_existing_vault(vault)
    except NotFound as error:
        warnings.append(f"{error.message}. {error.hint}")
    found = _in_force(vault)
    rows: Lines = [
        [key, (in_words(value), "" if source == "default" else "bold"), (source, "dim")]
        for key, (value, source) in found.items()
    ]
    facts = {key: {"value": value, "source": source} for key, (value, source) in found.items()}
    return Answer(facts, table=rows, columns=(WHOLE, WHOLE, SHRINKS), warnings=warnings)


@command(_config)
def get(key: Key, vault: VaultOption = None) -> Answer:
    """Print one setting.

    A key or password is not printed.

    $ simplemem config get search.limit
    $ simplemem config get embed.provider --json"""
    from simplemem.config import check_is_setting

    check_is_setting(key)
    value, source = _in_force(vault)[key]
    shown = "\n".join(map(str, value)) if isinstance(value, list) else in_words(value)
    return Answer({"key": key, "value": value, "source": source}, [[shown]] if shown else [])


@command(_config, name="set")
def set_(
    key: Key,
    value: Annotated[str, argument("VALUE", "The new value. Separate the items of a list with commas.")],
    in_vault: Annotated[bool, flag("--in-vault", "Write to the vault's own `.simplemem/config.toml`.")] = False,
    vault: VaultOption = None,
) -> Answer:
    """Change one setting in your own settings file.

    The rest of the file stays as it is, with its comments. If the value is not allowed, nothing is changed. A vault's
    own file can only contain settings that a vault may decide: see docs/configuration.md.

    $ simplemem config set search.limit 10
    $ simplemem config set access.hidden 'Private/, Journal/' --in-vault
    $ simplemem config set embed.api_key '{ env = "VOYAGE_API_KEY" }'"""
    from simplemem.config import find_existing_vault, user_config_path
    from simplemem.settings_file import is_secret, with_setting

    file = user_config_path(os.environ)
    if in_vault:
        file = find_existing_vault(vault) / ".simplemem" / "config.toml"
        if file.is_symlink() or file.parent.is_symlink():
            raise Invalid(f"{file} is a link, which is not read", hint="Replace it with a file.")
    before = _text_of(file)
    after = with_setting(before or "", key, value, file, is_of_vault=in_vault)
    is_changed = after != before
    if is_changed:
        finish()
        _write(file, before, after)
        if before is None and not in_vault:
            file.chmod(0o600)  # it may come to contain keys

    now, source = _in_force(vault)[key]
    shown = _COVERED if is_secret(key) else _shown(value)
    done = "Set" if is_changed else "Already set:"
    facts = {"key": key, "value": _COVERED if is_secret(key) else now, "file": str(file), "changed": is_changed}
    warnings = [] if str(file) in source else [f"{key} is still {in_words(now)}, from {source}, which has precedence"]
    if is_secret(key) and not value.startswith("{"):
        elsewhere = """'{ env = "NAME" }' or '{ path = "FILE" }'"""
        warnings.append(f"{file} contains it in plain text; {elsewhere} keeps it elsewhere")
    return Answer(facts, [[(done, "green"), f" {key} = {shown}", (f"  in {file}", "dim")]], warnings=warnings)


def _text_of(file: Path) -> str | None:
    """The text of a settings file, or None if there is none."""
    from simplemem.config import read_bounded

    try:
        return read_bounded(file, 64_000).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise Unreadable(f"{file} is not UTF-8 (byte {error.start})", hint="Save it as UTF-8 first.") from error


def _write(file: Path, before: str | None, after: str) -> None:
    """Write a settings file. Raises Conflict if it is no longer what was read."""
    from simplemem.store import Intruded, change_file

    real = Path(os.path.realpath(file))  # your own file may be a link
    if before is not None and not os.access(real, os.W_OK):
        raise Unavailable(f"{file} is write-protected", hint="Allow writing to it first.")
    real.parent.mkdir(parents=True, exist_ok=True)
    try:
        change_file(real, None if before is None else before.encode(), after.encode(), "")
    except (Intruded, FileExistsError) as error:
        raise Conflict(f"{file} has changed meanwhile", current_sha256=None, hint="Try again.") from error


def _in_force(vault: Path | None) -> dict[str, tuple[Any, str]]:
    """Every setting by its name: its value as JSON has it, and where it comes from."""
    from simplemem.config import find_vault, settings_with_sources

    try:
        root = find_vault(vault)
    except NotFound:
        root = None
    found = {key: (_shown(value), source) for key, value, source in settings_with_sources({"vault": vault}, vault=root)}
    found["vault"] = (None if root is None else str(root), _source_of_vault(root, found["vault"][1]))
    return found


def _source_of_vault(root: Path | None, source: str) -> str:
    """Say where the vault was found if no setting names it."""
    if source != "default" or root is None:
        return source
    here = Path.cwd()
    if root in (here, *here.parents):
        return "the nearest vault upward"
    if root == here / ".memories":
        return "./.memories"
    return source


def _shown(value: Any) -> Any:
    """A setting as JSON has it: paths are texts, and a secret stays covered."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@\s]+@", "**********@", value)  # who asks and by which password, in an address
    return value if value is None or isinstance(value, (str, int, float, dict)) else str(value)
