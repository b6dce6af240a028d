"""Load the settings in force.

Flags override environment variables, these override the vault's file, that overrides the user's
file, and that overrides the defaults. The vault's file counts only as far as the policy of each
setting allows (`VaultPolicy`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, get_args

from simplemem.errors import Invalid, NotFound, Unavailable
from simplemem.settings.files import read_toml, user_config_path
from simplemem.settings.location import ENV_PREFIX
from simplemem.settings.model import SETTINGS, Settings
from simplemem.settings.section import Section, as_names, types_of

Env: TypeAlias = Mapping[str, str] | None
"""Environment variables; None means those of this process."""
Flags: TypeAlias = Mapping[str, object] | None
"""Values by dotted names; a value of None counts as absent."""

# Settings of earlier versions, which are ignored.
_REMOVED = frozenset(
    {
        "graph.dialect",
        "embed.cache_mb",
        "embed.download",
        "embed.max_tokens_unasked",
        "rerank.download",
    }
)
# Variables that are not settings but are read elsewhere. If you read a new one, add it here.
_OTHER_VARIABLES = frozenset(
    ENV_PREFIX + name for name in ("VAULT", "PROFILE", "TOOLS", "TOKEN", "TOKEN_FILE", "NOW")
)
# The last parts of the names of settings whose values are never shown, not even in an error.
SECRET_NAMES = frozenset({"api_key", "engine", "replica"})


class SourcedSetting(NamedTuple):
    """A setting in force."""

    name: str  # dotted
    value: Any
    source: str  # a file, "$VARIABLE", "flag" or "default"


def load_settings(flags: Flags = None, *, vault: Path | None = None, env: Env = None) -> Settings:
    """Return the settings in force for a vault; without a vault, those without its own file.

    `flags` override `env` (None: of this process), which overrides the files. Raises Invalid for a
    value that is not allowed, and Unavailable for a file that cannot be read. A file that does not
    exist sets nothing.
    """
    layers = _load_layers(flags, vault, env)
    return _validate(layers.values, layers.sources)


def settings_with_sources(
    flags: Flags = None, *, vault: Path | None = None, env: Env = None
) -> list[SourcedSetting]:
    """Return every setting in force for a vault, with where its value comes from.

    They are in the order of `SETTINGS`. Secrets are not masked. Arguments and errors are those of
    `load_settings`.
    """
    layers = _load_layers(flags, vault, env)
    settings = _validate(layers.values, layers.sources)
    values = attrgetter(*SETTINGS)(settings)
    sourced = []
    for key, value in zip(SETTINGS, values, strict=True):
        source = layers.sources.get(key, "default")
        sourced.append(SourcedSetting(key, value, source))
    return sourced


class _Layers:
    """Collects values by dotted names, the lowest precedence first, and the source of each."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}
        self.sources: dict[str, str] = {}

    def add(self, settings: Mapping[str, object], source: str) -> None:
        """Let settings from `source` override those of earlier sources.

        Lists of the policy "adds" are combined instead: they hide or protect notes.
        """
        for key, value in settings.items():
            is_combined = key in self.values and SETTINGS[key].vault == "adds"
            if is_combined:
                names = as_names(self.values[key])
                more_names = as_names(value)
                self.values[key] = [*names, *more_names]

                other_sources = self.sources[key]
                self.sources[key] = f"{other_sources}, {source}"
            else:
                self.values[key] = value
                self.sources[key] = source


def _load_layers(flags: Flags, vault: Path | None, env: Env) -> _Layers:
    """Return what the user's file, the vault's file, the environment and the flags set together.

    Values are not validated. A vault's file that is a link is ignored; a variable that is empty and
    a flag that is None set nothing. Raises Invalid if a file is not TOML or sets a name that is no
    setting, or the vault's file one that it may not set. Raises Unavailable for a file that cannot
    be read.
    """
    if env is None:
        env = os.environ
    layers = _Layers()
    user_file = user_config_path(env)
    layers.add(read_settings(user_file), str(user_file))

    if vault is not None:
        vault_file = vault / ".simplemem" / "config.toml"
        # A link could lead out of the vault.
        is_linked = vault_file.is_symlink() or vault_file.parent.is_symlink()
        if not is_linked:
            settings = read_settings(vault_file)
            allowed = _apply_policy(settings, vault_file, user_file, layers.values)
            layers.add(allowed, str(vault_file))

    for key in SETTINGS:
        variable = _variable_of(key)
        value = env.get(variable)
        if value:
            layers.add({key: value}, f"${variable}")

    for key, flag in (flags or {}).items():
        if flag is not None:
            layers.add({key: flag}, "flag")
    return layers


def _variable_of(key: str) -> str:
    """Return the name of the environment variable of a setting, such as SIMPLEMEM_SEARCH_LIMIT."""
    return ENV_PREFIX + key.replace(".", "_").upper()


# What a vault may set


def _apply_policy(
    settings: Mapping[str, Any],
    vault_file: Path,
    user_file: Path,
    user_settings: Mapping[str, object],
) -> dict[str, Any]:
    """Return the settings of a vault's own file with the values that count.

    A setting of the policy "narrower" gets the stricter value of the file's and the user's. Raises
    Invalid if the file contains a setting or a value that a vault may not set.
    """
    allowed: dict[str, Any] = {}
    for key, value in settings.items():
        policy = SETTINGS[key].vault
        if policy == "no":
            raise _not_for_vaults(vault_file, key, user_file)
        if isinstance(policy, tuple) and value not in policy:
            raise _not_for_vaults(vault_file, f"{key} = {value!r}", user_file, policy)

        allowed[key] = value
        if policy == "narrower":
            users_value = user_settings.get(key, SETTINGS[key].default)
            allowed[key] = _stricter(key, value, users_value, vault_file)
    return allowed


def _not_for_vaults(
    vault_file: Path,
    assignment: str,
    user_file: Path,
    allowed: tuple[str, ...] = (),
) -> Invalid:
    """Return (not raise) the error for a setting that a vault's own file may not set.

    `allowed` are the values that it may set.
    """
    hint = f"Set it in {user_file}, in the environment or as a flag."
    if allowed:
        hint += f" A vault may set {' or '.join(allowed)}."
    return Invalid(f"{vault_file} sets {assignment}, which a vault may not set", hint=hint)


def _stricter(key: str, value: object, users_value: object, vault_file: Path) -> object:
    """Return the stricter of two values of a setting: `value` of a vault's file, and the user's.

    A Literal type declares its values from the least to the most strict; of any other setting, true
    is the stricter value. Raises Invalid for a value that the setting cannot have.
    """
    order = _allowed_values(key) or (False, True)  # the strictest value last
    for candidate in (value, users_value):
        is_same_type = type(candidate) is type(order[0])  # 0 == False, and 1 == True
        if not is_same_type or candidate not in order:
            choices = [str(choice).lower() for choice in order]
            allowed = " or ".join(choices)
            raise Invalid(
                f"the setting {key} = {candidate!r} ({vault_file}) is not valid: "
                f"it must be {allowed}"
            )
    return max(value, users_value, key=order.index)


def _allowed_values(key: str) -> tuple[object, ...]:
    """Return the values of a setting of type Literal, as declared; () for any other type."""
    section_name, _, name = key.rpartition(".")
    section: type[Section] = Settings
    if section_name:
        section = type(getattr(Settings(), section_name))

    value_type = types_of(section)[name]
    return get_args(value_type)


def check_settings(
    table: Mapping[str, object],
    file: Path,
    *,
    is_of_vault: bool,
    env: Env = None,
) -> None:
    """Raise Invalid if the settings in a file would not be accepted. `table` is its content.

    `file` is for messages, and is not read. With `is_of_vault`, the file is a vault's own, which
    may not set everything. The user's own file, found by `env`, is then read too. Raises what
    `read_settings` raises.
    """
    settings = dict(_flatten(table, file))
    if is_of_vault:
        user_file = user_config_path(os.environ if env is None else env)
        settings = _apply_policy(settings, file, user_file, read_settings(user_file))
    _validate(settings, dict.fromkeys(settings, str(file)))


# Reading and validating


def read_settings(path: Path) -> dict[str, Any]:
    """Return the settings in a file by dotted names; none if there is no such file.

    Values are not checked. Raises Invalid if the file is not TOML, or sets a name that is no
    setting, and Unavailable if it cannot be read.
    """
    try:
        return dict(_flatten(read_toml(path), path))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise Unavailable(f"the settings file {path} cannot be read: {error.strerror}") from error


def _flatten(table: Mapping[str, Any], path: Path, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the settings in nested tables by dotted names. Those of earlier versions are left out.

    `prefix` is put before each name. Raises Invalid, with a similar name, for an unknown name.
    """
    for name, value in table.items():
        key = prefix + name
        if key in SETTINGS:
            yield key, value
        elif isinstance(value, dict) and _is_section(key):
            yield from _flatten(value, path, f"{key}.")
        elif key not in _REMOVED:
            similar = _similar_setting(key) or _similar_setting(name)
            hint = "`simplemem config list --example` lists all settings."
            if similar:
                hint = f"Did you mean {similar}?"
            raise Invalid(f"{path} sets {key}, which is not a setting", hint=hint)


def _is_section(key: str) -> bool:
    """Return whether a table has this dotted name, in this version or in an earlier one."""
    prefix = f"{key}."
    names = (*SETTINGS, *_REMOVED)
    return any(name.startswith(prefix) for name in names)


def _similar_setting(name: str) -> str | None:
    """Return the setting whose name is most similar; None if none is."""
    matches = get_close_matches(name, SETTINGS, 1, 0.5)
    return matches[0] if matches else None


def _validate(values: Mapping[str, Any], sources: Mapping[str, str]) -> Settings:
    """Return settings with these values, by dotted names, and defaults for the others.

    Raises Invalid for the first value that is wrong. The message names its source, and shows the
    value unless it is a secret.
    """
    if values.keys() <= {"vault"}:
        # The most common case, which does not need pydantic.
        vault = values.get("vault")
        if vault is None:
            return Settings()
        if isinstance(vault, (str, Path)):
            return Settings.from_checked({"vault": Path(vault)})
    from pydantic import ValidationError

    tables = _as_tables(values)
    try:
        return Settings.model_validate(tables)
    except ValidationError as error:
        problem = error.errors()[0]
        location = problem["loc"]
        key = ".".join(map(str, location[:2]))
        source = sources.get(key, "")
        if not SECRET_NAMES.isdisjoint(location):
            forms = 'a string, { env = "NAME" } or { path = "FILE" }'
            # `from None`, because the cause would show the secret.
            raise Invalid(f"the setting {key} ({source}) must be {forms}") from None

        value = problem["input"]
        reason = problem["msg"]
        raise Invalid(f"the setting {key} = {value!r} ({source}) is not valid: {reason}") from error


def _as_tables(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by dotted names as a tree of tables, as a file of settings has them."""
    tree: dict[str, Any] = {}
    for key, value in values.items():
        section, _, name = key.rpartition(".")
        table = tree
        if section:
            table = tree.setdefault(section, {})
        table[name] = value
    return tree


# Names that do not exist


def check_is_setting(key: str) -> None:
    """Raise NotFound, with a similar name, if no setting has this dotted name."""
    if key in SETTINGS:
        return
    similar = _similar_setting(key)
    hint = "`simplemem config list` lists all settings."
    if similar:
        hint = f"Did you mean {similar}?"
    raise NotFound(f"there is no setting called {key!r}", hint=hint)


def unknown_variables(env: Mapping[str, str]) -> list[str]:
    """Return a warning for each variable that looks like a misspelled one of simplemem.

    Only names that begin with `SIMPLEMEM_` and are very similar to a known one cause a warning:
    Kubernetes sets `SIMPLEMEM_PORT` and more for a service called simplemem. One that a setting of
    the user's file names causes none. Raises what `read_settings` raises for that file.
    """
    setting_variables = {_variable_of(key) for key in SETTINGS}
    read_variables = setting_variables | _OTHER_VARIABLES
    our_names = {name for name in env if name.startswith(ENV_PREFIX)}
    other_names = our_names - read_variables
    if not other_names:
        return []

    user_file = user_config_path(env)
    for value in read_settings(user_file).values():
        if _names_variable(value):
            other_names.discard(value["env"])

    warnings = []
    for name in sorted(other_names):
        matches = get_close_matches(name.upper(), read_variables, 1, 0.85)
        if matches:
            similar = matches[0]
            warnings.append(f"the variable {name} has no effect; did you mean {similar}?")
    return warnings


def _names_variable(value: object) -> bool:
    """Return whether the value of a setting is a table with `env`, the name of a variable."""
    return isinstance(value, dict) and "env" in value
