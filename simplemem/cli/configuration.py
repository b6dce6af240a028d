"""The commands `config list`, `config get`, `config set` and `config unset`."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, NamedTuple

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
    "A flag overrides the environment, which overrides the vault's own `.simplemem/config.toml`,"
    " which overrides your `~/.config/simplemem/config.toml`, which overrides the default.\n\n"
    "The vault is `--vault`, else `$SIMPLEMEM_VAULT`, else the setting `vault`, else the nearest"
    " folder, from the current one upwards, that contains `.simplemem/` or `.obsidian/`, else"
    " `./.memories`, else `~/simplemem`. If the current folder is among other Markdown notes,"
    " `~/simplemem` is not used.",
    "$ simplemem config\n"
    "$ simplemem config get search.limit\n"
    "$ simplemem config set search.limit 10",
)
_COVERED = "**********"  # printed in place of a secret
_OTHER_PLACES = """'{ env = "NAME" }' or '{ path = "FILE" }'"""
_MAX_FILE_BYTES = 64_000  # of a settings file
_USER_AND_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")  # in a URL

# Rules that name folders and notes. A running server does not read these settings again.
_ACCESS_RULES = ("access.hidden", "access.only", "access.read_only", "embed.private")
_RESTART = "If a server is running, restart it to apply this."


def _keys() -> list[str]:
    """Return the keys of all settings, for completion."""
    from simplemem.settings.model import fields

    return [key for key, _ in fields()]


InVault = Annotated[bool, flag("--in-vault", "Write to the vault's own `.simplemem/config.toml`.")]
Key = Annotated[str, argument("KEY", "A setting, such as `search.limit`.", completing(_keys))]


class _Setting(NamedTuple):
    """The value of a setting as in JSON, without readable secrets, and where it comes from."""

    value: Any
    source: str


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
        text = example_config()
        return Answer({"example": text}, text=text)

    warnings = unknown_variables(os.environ)
    try:
        find_existing_vault(vault)
    except NotFound as error:
        warnings.append(f"{error.message}. {error.hint}")

    rows = Lines()
    facts = {}
    for key, setting in _settings_in_force(vault).items():
        style = "" if setting.source == "default" else "bold"
        rows.append([key, (in_words(setting.value), style), (setting.source, "dim")])
        facts[key] = {"value": setting.value, "source": setting.source}
    return Answer(facts, table=rows, columns=(WHOLE, WHOLE, SHRINKS), warnings=warnings)


@command(_config)
def get(key: Key, vault: VaultOption = None) -> Answer:
    """Print one setting.

    Keys and passwords are not printed.

    $ simplemem config get search.limit
    $ simplemem config get embed.provider --json"""
    from simplemem.settings.loading import check_is_setting

    check_is_setting(key)
    setting = _settings_in_force(vault)[key]
    facts = {"key": key, "value": setting.value, "source": setting.source}
    text = in_words(setting.value)
    if isinstance(setting.value, list):
        text = "\n".join(map(str, setting.value))
    return Answer(facts, [[text]] if text else [])


@command(_config, name="set")
def set_setting(
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
    old_text = _text_of(file)
    new_text = with_setting(old_text or "", key, value, file, is_of_vault=in_vault)
    old_value = value_in(old_text or "", key, file)

    is_changed = new_text != old_text
    if is_changed:
        finish()
        replace_text(file, old_text, new_text)
        is_new_user_file = old_text is None and not in_vault
        if is_new_user_file:
            file.chmod(0o600)  # it may contain keys later

    printed_value = _COVERED if is_secret(key) else _as_json(value)
    verdict = "Set" if is_changed else "Already set:"
    lines: Lines = [[(verdict, "green"), f" {key} = {printed_value}", (f"  in {file}", "dim")]]
    if is_changed:
        if old_value is not None:
            lines.append(_old_value_line(key, old_value))
        lines += _restart_lines(key)

    setting = _settings_in_force(vault)[key]
    warnings = [*_precedence_warning(key, setting, file), *_secret_warning(key, value, file)]
    if key in _ACCESS_RULES:
        warnings += _warnings_about_rules(value_in(new_text, key, file), vault)
    facts = {
        "key": key,
        "value": _COVERED if is_secret(key) else setting.value,
        "file": str(file),
        "changed": is_changed,
    }
    return Answer(facts, lines, warnings=warnings)


def _restart_lines(key: str) -> Lines:
    """Return the advice to restart a server, if that is necessary after a change of a setting."""
    if key in _ACCESS_RULES:
        return [[_RESTART]]
    return []


def _precedence_warning(key: str, setting: _Setting, file: Path) -> Iterator[str]:
    """Yield a warning if the setting in force does not come from the file that was changed."""
    if str(file) not in setting.source:
        value = in_words(setting.value)
        yield f"{key} is still {value}, from {setting.source}, which has precedence"


def _secret_warning(key: str, typed: str, file: Path) -> Iterator[str]:
    """Yield a warning if `file` got a secret in plain text, as the new value of the setting `key`.

    `typed` is the value as it was typed. There is no warning if it begins with "{", which names an
    environment variable or another file that contains the secret.
    """
    from simplemem.settings.editing import is_secret

    if is_secret(key) and not typed.startswith("{"):
        problem = f"{file} contains the secret in plain text"
        yield f"{problem}; to store it elsewhere, set {_OTHER_PLACES}"


@command(_config)
def unset(key: Key, in_vault: InVault = False, vault: VaultOption = None) -> Answer:
    """Remove one setting from your own settings file.

    The value then comes from another file, the environment or the default. The rest of the file
    stays as it is.

    $ simplemem config unset search.limit
    $ simplemem config unset access.hidden --in-vault"""
    from simplemem.settings.editing import is_secret, value_in, without_setting

    file = _file_to_change(vault, in_vault)
    old_text = _text_of(file)
    new_text = without_setting(old_text or "", key, file, is_of_vault=in_vault)
    old_value = value_in(old_text or "", key, file)
    finish()
    replace_text(file, old_text, new_text)

    setting = _settings_in_force(vault)[key]
    current_value = in_words(setting.value)
    if is_secret(key) and setting.value:
        current_value = _COVERED
    lines: Lines = [
        [("Removed", "green"), f" {key}", (f"  from {file}", "dim")],
        _old_value_line(key, old_value),
        [f"now: {current_value}", (f"  from {setting.source}", "dim")],
        *_restart_lines(key),
    ]
    facts = {
        "key": key,
        "value": setting.value,
        "source": setting.source,
        "file": str(file),
        "changed": True,
    }
    return Answer(facts, lines)


def _one_value(key: str, values: list[str]) -> str:
    """Return the value that was typed as one or several words, with commas between several.

    Of several words, raises NotFound for an unknown setting, and Invalid for one that is no list.
    """
    from simplemem.settings.editing import is_list

    if len(values) > 1 and not is_list(key):
        hint = "Put a value that contains spaces in quotation marks."
        raise Invalid(f"{key} takes one value", hint=hint)
    return ",".join(values)


def _file_to_change(vault: Path | None, in_vault: bool) -> Path:
    """Return the path of the user's settings file, or with `in_vault` of the vault's own.

    The file need not exist. Raises Invalid if the vault's own is reached through a link, and
    NotFound if there is no vault.
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


def _old_value_line(key: str, old_value: Any) -> list[Part]:
    """Return the line with the value that was replaced or removed. A secret is not readable."""
    from simplemem.settings.editing import is_secret

    if is_secret(key):
        text = _COVERED
    elif isinstance(old_value, list):
        text = in_words(old_value)
    else:
        text = in_words(_as_json(old_value))
    return [(f"was: {text}", "dim")]


def _warnings_about_rules(rules: Iterable[str], vault: Path | None) -> list[str]:
    """Return a warning for each rule that names a folder or note which the vault does not have.

    `vault` is that of --vault; None stands for the vault in use. If it does not exist, there are no
    warnings. A rule with a wildcard is never warned about. Each warning suggests the most similar
    name, if there is one.
    """
    from simplemem.settings.find_vault import find_existing_vault

    try:
        root = find_existing_vault(vault)
    except NotFound:
        return []

    folders, notes = _folders_and_notes(root)
    warnings = []
    for rule in rules:
        if not _names_one_place(rule) or _matches_any(rule, folders, notes):
            continue

        names = folders
        if not rule.endswith("/"):
            names = folders + [note.removesuffix(".md") for note in notes]
        similar = _most_similar(rule, names)
        suggestion = f". Did you mean {similar}?" if similar else ""
        warnings.append(f"no note matches {rule}{suggestion}")
    return warnings


def _names_one_place(rule: str) -> bool:
    """Return whether a rule names one folder or note: it has no wildcard, and is not the vault."""
    has_wildcard = "*" in rule or "?" in rule
    is_vault = not rule.strip("./\\ ")
    return not has_wildcard and not is_vault


def _matches_any(rule: str, folders: Iterable[str], notes: Iterable[str]) -> bool:
    """Return whether a rule matches a note, or would match a note in one of the folders."""
    from simplemem.note.scopes import is_private_by_rule

    paths = [*notes, *(f"{folder}any.md" for folder in folders)]
    return any(is_private_by_rule(path, [rule]) for path in paths)


def _most_similar(rule: str, names: Iterable[str]) -> str:
    """Return the name that is most similar to a rule; "" if none is similar."""
    from simplemem.note.names import compare_key

    names_by_key = {compare_key(name): name for name in names}
    rule_key = compare_key(rule.removeprefix("./"))
    similar_keys = get_close_matches(rule_key, names_by_key, 1)
    return names_by_key[similar_keys[0]] if similar_keys else ""


def _folders_and_notes(root: Path) -> tuple[list[str], list[str]]:
    """Return the paths of the folders of a vault, and of its notes, without hidden folders.

    The path of a folder ends with a slash.
    """
    folders: list[str] = []
    notes: list[str] = []
    for path, subfolders, files in os.walk(root):
        # `os.walk` enters only the folders that are left in its list.
        subfolders[:] = [name for name in subfolders if not name.startswith(".")]
        folder = Path(path).relative_to(root)
        names_of_notes = [name for name in files if name.lower().endswith(".md")]
        folders += [f"{(folder / name).as_posix()}/" for name in subfolders]
        notes += [(folder / name).as_posix() for name in names_of_notes]
    return folders, notes


def _text_of(file: Path) -> str | None:
    """Return the text of a settings file, or None if there is none.

    Raises Unreadable if it is not UTF-8, Invalid if it is not a regular file or is longer than
    64,000 bytes, and OSError if it cannot be read.
    """
    from simplemem.settings.files import read_bounded

    try:
        return read_bounded(file, _MAX_FILE_BYTES).decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    except UnicodeDecodeError as error:
        message = f"{file} is not UTF-8 (byte {error.start})"
        raise Unreadable(message, hint="Save it as UTF-8 first.") from error


def _settings_in_force(vault: Path | None) -> dict[str, _Setting]:
    """Return all settings by their keys. `vault` is the value of `--vault`.

    Raises Invalid if a settings file or variable is not valid.
    """
    from simplemem.settings.find_vault import find_vault
    from simplemem.settings.loading import settings_with_sources

    try:
        root = find_vault(vault)
    except NotFound:
        root = None

    settings = {}
    for key, value, source in settings_with_sources({"vault": vault}, vault=root):
        settings[key] = _Setting(_as_json(value), source)

    source = _source_of_vault(root, settings["vault"].source)
    settings["vault"] = _Setting(None if root is None else str(root), source)
    return settings


def _source_of_vault(root: Path | None, source: str) -> str:
    """Return where the vault was found, if no setting names it; otherwise `source`."""
    if source != "default" or root is None:
        return source

    folder = Path.cwd()
    if root in (folder, *folder.parents):
        return "the nearest vault upward"
    if root == folder / ".memories":
        return "./.memories"
    return source


def _as_json(value: Any) -> Any:
    """Return a setting as in JSON: a path is a text, and no secret is readable."""
    if isinstance(value, tuple):
        return list(value)
    if isinstance(value, str):
        return _USER_AND_PASSWORD.sub(f"{_COVERED}@", value)
    if value is None or isinstance(value, (int, float, dict)):
        return value
    return str(value)  # of a path, or of a secret, which pydantic covers
