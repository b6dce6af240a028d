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
_COVERED = "**********"  # printed in place of a secret
_READ_AT_START = (  # settings that a running server does not read again
    "access.hidden",
    "access.only",
    "access.read_only",
    "embed.private",
)
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

    rows = Lines()
    facts = {}
    for key, (value, source) in _in_force(vault).items():
        style = "" if source == "default" else "bold"
        rows.append([key, (in_words(value), style), (source, "dim")])
        facts[key] = {"value": value, "source": source}
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
    text = in_words(value)
    if isinstance(value, list):
        text = "\n".join(map(str, value))
    facts = {"key": key, "value": value, "source": source}
    return Answer(facts, [[text]] if text else [])


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

    The rest of the file stays as it is, with its comments. If the value is not allowed, nothing is
    changed. A vault's own file can only contain settings that a vault may decide: see
    docs/configuration.md.

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
            file.chmod(0o600)  # it may contain keys later

    printed = _COVERED if is_secret(key) else _as_json(value)
    verdict = "Set" if is_changed else "Already set:"
    lines: Lines = [[(verdict, "green"), f" {key} = {printed}", (f"  in {file}", "dim")]]
    if is_changed and old is not None:
        lines.append(_old_value_line(key, old))
    if is_changed and key in _READ_AT_START:
        lines.append([_RESTART])

    in_force, source = _in_force(vault)[key]
    warnings = []
    if str(file) not in source:
        value_in_force = in_words(in_force)
        warnings.append(f"{key} is still {value_in_force}, from {source}, which has precedence")
    if is_secret(key) and not value.startswith("{"):
        elsewhere = """'{ env = "NAME" }' or '{ path = "FILE" }'"""
        problem = f"{file} contains the secret in plain text"
        warnings.append(f"{problem}; to store it elsewhere, set {elsewhere}")
    if key in _READ_AT_START:
        warnings += _without_a_match(value_in(after, key, file), vault)

    facts = {
        "key": key,
        "value": _COVERED if is_secret(key) else in_force,
        "file": str(file),
        "changed": is_changed,
    }
    return Answer(facts, lines, warnings=warnings)


@command(_config)
def unset(key: Key, in_vault: InVault = False, vault: VaultOption = None) -> Answer:
    """Remove one setting from your own settings file.

    The value then comes from another file, the environment or the default. The rest of the file
    stays as it is.

    $ simplemem config unset search.limit
    $ simplemem config unset access.hidden --in-vault"""
    from simplemem.settings.editing import is_secret, value_in, without_setting

    file = _file_to_change(vault, in_vault)
    before = _text_of(file)
    after = without_setting(before or "", key, file, is_of_vault=in_vault)
    old = value_in(before or "", key, file)
    finish()
    replace_text(file, before, after)

    in_force, source = _in_force(vault)[key]
    text = _COVERED if is_secret(key) and in_force else in_words(in_force)
    lines: Lines = [
        [("Removed", "green"), f" {key}", (f"  from {file}", "dim")],
        _old_value_line(key, old),
        [f"now: {text}", (f"  from {source}", "dim")],
    ]
    if key in _READ_AT_START:
        lines.append([_RESTART])
    facts = {
        "key": key,
        "value": in_force,
        "source": source,
        "file": str(file),
        "changed": True,
    }
    return Answer(facts, lines)


def _one_value(key: str, values: list[str]) -> str:
    """Return the value that was typed as one or several words.

    Raises Invalid for several words if the setting is not a list.
    """
    from simplemem.settings.editing import is_list

    if len(values) > 1 and not is_list(key):
        hint = "Put a value that contains spaces in quotation marks."
        raise Invalid(f"{key} takes one value", hint=hint)
    return ",".join(values)


def _file_to_change(vault: Path | None, in_vault: bool) -> Path:
    """Return the user's settings file, or the vault's own.

    Raises Invalid if the vault's own is a link.
    """
    from simplemem.settings.files import user_config_path
    from simplemem.settings.find_vault import find_existing_vault

    if not in_vault:
        return user_config_path(os.environ)
    file = find_existing_vault(vault) / ".simplemem" / "config.toml"
    if file.is_symlink() or file.parent.is_symlink():
        hint = "Replace the link with a file or folder."
        raise Invalid(f"{file} is reached through a symbolic link", hint=hint)
    return file


def _old_value_line(key: str, old: Any) -> list[Part]:
    """Return the line with the value that was replaced or removed."""
    from simplemem.settings.editing import is_secret

    if is_secret(key):
        text = _COVERED
    elif isinstance(old, list):
        text = in_words(old)
    else:
        text = in_words(_as_json(old))
    return [(f"was: {text}", "dim")]


def _without_a_match(rules: Any, vault: Path | None) -> list[str]:
    """Return a warning for each rule that names one folder or note which the vault does not contain.

    The warning suggests the most similar name.
    """
    from simplemem.note.scopes import is_private_by_rule
    from simplemem.settings.find_vault import find_existing_vault

    try:
        folders, notes = _folders_and_notes(find_existing_vault(vault))
    except NotFound:
        return []

    paths = notes + [f"{folder}any.md" for folder in folders]
    warnings = []
    for rule in rules:
        has_wildcard = "*" in rule or "?" in rule
        if has_wildcard or not rule.strip("./\\ "):
            continue
        if any(is_private_by_rule(path, [rule]) for path in paths):
            continue

        names = folders
        if not rule.endswith("/"):
            names = folders + [note.removesuffix(".md") for note in notes]
        similar = _most_similar(rule, names)
        suggestion = f". Did you mean {similar}?" if similar else ""
        warnings.append(f"no note matches {rule}{suggestion}")
    return warnings


def _most_similar(rule: str, names: list[str]) -> str:
    """Return the name that is most similar to a rule, or ""."""
    from simplemem.note.names import compare_key

    by_key = {compare_key(name): name for name in names}
    keys = get_close_matches(compare_key(rule.removeprefix("./")), by_key, 1)
    return by_key[keys[0]] if keys else ""


def _folders_and_notes(root: Path) -> tuple[list[str], list[str]]:
    """Return the folders of a vault, each with a slash at its end, and its notes, without hidden folders."""
    folders: list[str] = []
    notes: list[str] = []
    for path, subfolders, files in os.walk(root):
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        folder = Path(path).relative_to(root)
        folders += [f"{(folder / name).as_posix()}/" for name in subfolders]
        notes += [(folder / name).as_posix() for name in files if name.lower().endswith(".md")]
    return folders, notes


def _text_of(file: Path) -> str | None:
    """Return the text of a settings file, or None if there is none.

    Raises Unreadable if it is not UTF-8.
    """
    from simplemem.settings.files import read_bounded

    try:
        return read_bounded(file, 64_000).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        message = f"{file} is not UTF-8 (byte {error.start})"
        raise Unreadable(message, hint="Save it as UTF-8 first.") from error


def _in_force(vault: Path | None) -> dict[str, tuple[Any, str]]:
    """Return each setting by its key: its value as in JSON, and its source."""
    from simplemem.settings.find_vault import find_vault
    from simplemem.settings.loading import settings_with_sources

    try:
        root = find_vault(vault)
    except NotFound:
        root = None

    settings: dict[str, tuple[Any, str]] = {}
    for key, value, source in settings_with_sources({"vault": vault}, vault=root):
        settings[key] = (_as_json(value), source)
    _, source = settings["vault"]
    path = None if root is None else str(root)
    settings["vault"] = (path, _source_of_vault(root, source))
    return settings


def _source_of_vault(root: Path | None, source: str) -> str:
    """Return where the vault was found if no setting names it, or else the source of the setting."""
    if source != "default" or root is None:
        return source
    here = Path.cwd()
    if root in (here, *here.parents):
        return "the nearest vault upward"
    if root == here / ".memories":
        return "./.memories"
    return source


def _as_json(value: Any) -> Any:
    """Return a setting as in JSON: a path is a text, and no secret is readable."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str):
        return re.sub(r"(?<=://)[^/@\s]+@", f"{_COVERED}@", value)  # user and password in a URL
    if value is None or isinstance(value, (int, float, dict)):
        return value
    return str(value)
