"""The commands `config list`, `config get`, `config set` and `config unset`."""

from __future__ import annotations

import os
import re
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any

import typer

from simplemem.cli.command import Answer, command, finish
from simplemem.cli.files import replace_text
from simplemem.cli.options import VaultOption, argument, completing, default_group, flag
from simplemem.cli.output import SHRINKS, WHOLE, Lines, Part, in_words
from simplemem.errors import Invalid, NotFound, Unreadable

commands = typer.Typer()
_config = default_group(
    commands,
    "Vault",
    "config",
    "Show and change settings.\n\n"
    "A flag overrides the environment, which overrides the vault's own `.simplemem/config.toml`, which overrides your "
    "`~/.config/simplemem/config.toml`, which overrides the default.\n\n"
    "The vault is `--vault`, else `$SIMPLEMEM_VAULT`, else the setting `vault`, else the nearest folder, from the "
    "current one upwards, that contains `.simplemem/` or `.obsidian/`, else `./.memories`, else `~/simplemem`. If the "
    "current folder is among other Markdown notes, `~/simplemem` is not used.",
    "$ simplemem config\n$ simplemem config get search.limit\n$ simplemem config set search.limit 10",
)
_COVERED = "**********"
_READ_AT_START = ("access.hidden", "access.only", "access.read_only", "embed.private")
_RESTART = "If a server is running, restart it to apply this."


def _keys() -> list[str]:
    from simplemem.settings.model import fields

    return [key for key, _ in fields()]


InVault = Annotated[bool, flag("--in-vault", "Write to the vault's own `.simplemem/config.toml`.")]
Key = Annotated[str, argument("KEY", "A setting, such as `search.limit`.", completing(_keys))]


@command(_config, name="list")
def list_settings(
    example: Annotated[
        bool, flag("--example", "Print a settings file that contains every setting.")
    ] = False,
    vault: VaultOption = None,
) -> Answer:
    """List the settings in force, and where each comes from.

    $ simplemem config list
    $ simplemem config list --example > ~/.config/simplemem/config.toml
    $ SIMPLEMEM_SEARCH_LIMIT=10 simplemem config list --json"""
    from simplemem.settings.example import example_config
    from simplemem.settings.find_vault import find_existing_vault
    from simplemem.settings.loading import unknown_variables

    if example:
        return Answer({"example": example_config()}, text=example_config())

    warnings = unknown_variables(os.environ)
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

    Keys and passwords are not printed.

    $ simplemem config get search.limit
    $ simplemem config get embed.provider --json"""
    from simplemem.settings.loading import check_is_setting

    check_is_setting(key)
    value, source = _in_force(vault)[key]
    shown = "\n".join(map(str, value)) if isinstance(value, list) else in_words(value)
    return Answer({"key": key, "value": value, "source": source}, [[shown]] if shown else [])


@command(_config, name="set")
def set_(
    key: Key,
    values: Annotated[
        list[str],
        argument("VALUE...", "The new value. Separate the items of a list with commas or spaces."),
    ],
    in_vault: InVault = False,
    vault: VaultOption = None,
) -> Answer:
    """Change one setting in your own settings file.

    The rest of the file stays as it is, with its comments. If the value is not allowed, nothing is changed. A vault's
    own file can only contain settings that a vault may decide: see docs/configuration.md.

    $ simplemem config set search.limit 10
    $ simplemem config set access.hidden Private/ Journal/ --in-vault
    $ simplemem config set embed.api_key '{ env = "VOYAGE_API_KEY" }'"""
    from simplemem.settings.editing import is_secret, value_in, with_setting

    value = _one_value(key, values)
    file = _file_to_change(vault, in_vault)
    before = _text_of(file)
    after = with_setting(before or "", key, value, file, is_of_vault=in_vault)
    is_changed = after != before
    old = value_in(before or "", key, file)
    if is_changed:
        finish()
        replace_text(file, before, after)
        if before is None and not in_vault:
            file.chmod(0o600)  # it may come to contain keys

    now, source = _in_force(vault)[key]
    shown = _COVERED if is_secret(key) else _shown(value)
    done = "Set" if is_changed else "Already set:"
    lines: Lines = [[(done, "green"), f" {key} = {shown}", (f"  in {file}", "dim")]]
    if is_changed and old is not None:
        lines.append(_was(key, old))
    if is_changed and key in _READ_AT_START:
        lines.append([_RESTART])

    facts = {
        "key": key,
        "value": _COVERED if is_secret(key) else now,
        "file": str(file),
        "changed": is_changed,
    }
    warnings = (
        []
        if str(file) in source
        else [f"{key} is still {in_words(now)}, from {source}, which has precedence"]
    )
    if is_secret(key) and not value.startswith("{"):
        elsewhere = """'{ env = "NAME" }' or '{ path = "FILE" }'"""
        warnings.append(
            f"{file} contains the secret in plain text; to store it elsewhere, set {elsewhere}"
        )
    if key in _READ_AT_START:
        warnings += _without_a_match(value_in(after, key, file), vault)
    return Answer(facts, lines, warnings=warnings)


@command(_config)
def unset(key: Key, in_vault: InVault = False, vault: VaultOption = None) -> Answer:
    """Remove one setting from your own settings file.

    The value then comes from another file, the environment or the default. The rest of the file stays as it is.

    $ simplemem config unset search.limit
    $ simplemem config unset access.hidden --in-vault"""
    from simplemem.settings.editing import is_secret, value_in, without_setting

    file = _file_to_change(vault, in_vault)
    before = _text_of(file)
    after = without_setting(before or "", key, file, is_of_vault=in_vault)
    old = value_in(before or "", key, file)
    finish()
    replace_text(file, before, after)

    now, source = _in_force(vault)[key]
    lines: Lines = [
        [("Removed", "green"), f" {key}", (f"  from {file}", "dim")],
        _was(key, old),
        [
            f"now: {_COVERED if is_secret(key) and now else in_words(now)}",
            (f"  from {source}", "dim"),
        ],
    ]
    if key in _READ_AT_START:
        lines.append([_RESTART])
    facts = {"key": key, "value": now, "source": source, "file": str(file), "changed": True}
    return Answer(facts, lines)


def _one_value(key: str, values: list[str]) -> str:
    """The value that was typed as one or several words. Raises Invalid for several words if the setting is no list."""
    from simplemem.settings.editing import is_list

    if len(values) > 1 and not is_list(key):
        raise Invalid(
            f"{key} takes one value", hint="Put a value that contains spaces in quotation marks."
        )
    return ",".join(values)


def _file_to_change(vault: Path | None, in_vault: bool) -> Path:
    """Your own settings file, or the vault's own. Raises Invalid if the vault's own is a link."""
    from simplemem.settings.files import user_config_path
    from simplemem.settings.find_vault import find_existing_vault

    if not in_vault:
        return user_config_path(os.environ)
    file = find_existing_vault(vault) / ".simplemem" / "config.toml"
    if file.is_symlink() or file.parent.is_symlink():
        raise Invalid(
            f"{file} is reached through a symbolic link",
            hint="Replace the link with a file or folder.",
        )
    return file


def _was(key: str, old: Any) -> list[Part]:
    """The line that shows which value was replaced or removed."""
    from simplemem.settings.editing import is_secret

    shown = in_words(old if isinstance(old, list) else _shown(old))
    return [(f"was: {_COVERED if is_secret(key) else shown}", "dim")]


def _without_a_match(rules: Any, vault: Path | None) -> list[str]:
    """A warning for each rule that names one folder or note which the vault does not contain, with the nearest name."""
    from simplemem.note.names import compare_key
    from simplemem.note.scopes import is_private_by_rule
    from simplemem.settings.find_vault import find_existing_vault

    plain_rules = [rule for rule in rules if not {"*", "?"} & {*rule} and rule.strip("./\\ ")]
    try:
        folders, notes = _folders_and_notes(find_existing_vault(vault))
    except NotFound:
        return []

    warnings = []
    for rule in plain_rules:
        inside = [f"{folder}any.md" for folder in folders]
        if any(is_private_by_rule(path, [rule]) for path in [*notes, *inside]):
            continue
        names = (
            folders
            if rule.endswith("/")
            else [*folders, *(note.removesuffix(".md") for note in notes)]
        )
        by_key = {compare_key(name): name for name in names}
        near = get_close_matches(compare_key(rule.removeprefix("./")), by_key, 1)
        suggestion = f". Did you mean {by_key[near[0]]}?" if near else ""
        warnings.append(f"no note matches {rule}{suggestion}")
    return warnings


def _folders_and_notes(root: Path) -> tuple[list[str], list[str]]:
    """The folders of a vault, each with a slash at its end, and its notes. Hidden folders are left out."""
    folders, notes = list[str](), list[str]()
    for folder, below, files in os.walk(root):
        below[:] = [name for name in below if not name.startswith(".")]
        above = Path(folder).relative_to(root)
        folders += [f"{(above / name).as_posix()}/" for name in below]
        notes += [(above / name).as_posix() for name in files if name.lower().endswith(".md")]
    return folders, notes


def _text_of(file: Path) -> str | None:
    """The text of a settings file, or None if there is none."""
    from simplemem.settings.files import read_bounded

    try:
        return read_bounded(file, 64_000).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        raise Unreadable(
            f"{file} is not UTF-8 (byte {error.start})", hint="Save it as UTF-8 first."
        ) from error


def _in_force(vault: Path | None) -> dict[str, tuple[Any, str]]:
    """Every setting by its name: its value as JSON has it, and where it comes from."""
    from simplemem.settings.find_vault import find_vault
    from simplemem.settings.loading import settings_with_sources

    try:
        root = find_vault(vault)
    except NotFound:
        root = None
    found = {
        key: (_shown(value), source)
        for key, value, source in settings_with_sources({"vault": vault}, vault=root)
    }
    found["vault"] = (
        None if root is None else str(root),
        _source_of_vault(root, found["vault"][1]),
    )
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
        return re.sub(
            r"(?<=://)[^/@\s]+@", f"{_COVERED}@", value
        )  # who asks and by which password, in an address
    return value if value is None or isinstance(value, (str, int, float, dict)) else str(value)
