"""What the options of `serve` and the environment choose: vault, settings, profile and tools.

`server_start.py` serves what is chosen. `connect` writes it as a command line into the
configuration of a client.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simplemem.cli.serve_options import LogLevel, ServeOptions
from simplemem.errors import Invalid
from simplemem.profiles.variables import (
    KNOWLEDGE_BASE_VARIABLES,
    REST_API_VARIABLE,
    SSE_VARIABLE,
)

if TYPE_CHECKING:
    from simplemem.profiles.profile import Profile
    from simplemem.settings.model import Settings


def is_sse_wanted(options: ServeOptions) -> bool:
    """Return whether the older SSE transport is to be served, by an option or a variable."""
    return bool(options.sse) or _is_enabled(SSE_VARIABLE)


def is_http_only(options: ServeOptions) -> bool:
    """Return whether a server is to serve over HTTP, and not over standard input and output."""
    return options.http is not None or is_sse_wanted(options)


def is_http_beside_streams(options: ServeOptions) -> bool:
    """Return whether a server is to serve over HTTP as well as over standard input and output."""
    return bool(options.rest_api_serve) or _is_enabled(REST_API_VARIABLE)


def _is_enabled(variable: str) -> bool:
    """Return whether an environment variable is `1`, `true` or `yes`, in any case."""
    return os.environ.get(variable, "").lower() in ("1", "true", "yes")


def profile_name(options: ServeOptions, vault_name: str = "") -> str:
    """Return the name of the profile for a vault, from an option or a variable.

    `vault_name` is "" for a vault without a name. An option for this vault counts most, then one
    for all vaults, then SIMPLEMEM_PROFILE. Returns "" if none is named.
    """
    profiles = options.profiles_by_vault()
    if vault_name in profiles:
        return profiles[vault_name]
    return profiles.get("", os.environ.get("SIMPLEMEM_PROFILE", ""))


def choose_profile(options: ServeOptions, vault_name: str = "") -> Profile:
    """Return the profile for a vault: the default profile if none is named.

    `vault_name` is "" for a vault without a name. Raises Invalid if there is no profile of the
    name, and Unavailable if its package cannot be loaded.
    """
    from simplemem.profiles.registry import DEFAULT_PROFILE, find_profile

    return find_profile(profile_name(options, vault_name) or DEFAULT_PROFILE)


def tool_group_changes(options: ServeOptions) -> str:
    """Return the tool groups to add and to remove, as `choose_tools` reads them.

    The option counts more than SIMPLEMEM_TOOLS. Returns "" if neither names any.
    """
    return ",".join(options.tools or ()) or os.environ.get("SIMPLEMEM_TOOLS", "")


def choose_folder(options: ServeOptions, profile: Profile, vault_name: str = "") -> Path:
    """Return the folder of a vault, which need not exist yet.

    If neither an option nor SIMPLEMEM_VAULT names one, it is the profile's own, else the nearest
    vault. Raises Invalid for an empty name, or if the settings that name a vault cannot be read.
    """
    from simplemem.settings.find_vault import find_vault

    named = options.vaults_by_name().get(vault_name)
    if named is None and not os.environ.get("SIMPLEMEM_VAULT"):
        own_folder = profile.folder(os.environ)
        if own_folder is not None:
            return own_folder
    return find_vault(named, default=options.default_vault)


def choose_settings(options: ServeOptions, profile: Profile, root: Path) -> Settings:
    """Return the settings of a vault. Options count most, then the settings file of the profile.

    Raises Invalid for a setting that is wrong, and for a `--config` that the profile does not read.
    """
    from simplemem.settings.loading import load_settings

    flags: dict[str, Any] = {
        "db": options.db,
        "read_only": options.read_only,
        "no_delete": options.no_delete,
        "log_level": options.log_level,
        "documents.knowledge_base": knowledge_base_folder(options),
    }
    for key, variable in profile.settings_env.items():
        flags[key] = flags.get(key) or _variable_of_setting(key, variable)

    return load_settings({**read_own_settings(options, profile), **flags}, vault=root)


def _variable_of_setting(key: str, variable: str) -> str | None:
    """Return what a variable of another server sets, or None.

    `key` is the dotted name of the setting. A log level that simplemem does not have is ignored.
    """
    value = os.environ.get(variable)
    if key != "log_level" or not value:
        return value or None

    level = value.lower()
    return level if level in list(LogLevel) else None


def knowledge_base_folder(options: ServeOptions) -> str | None:
    """Return the folder of the knowledge base, from an option or a variable.

    Returns None if none is named.
    """
    if options.knowledge_base:
        return options.knowledge_base
    for variable in KNOWLEDGE_BASE_VARIABLES:
        folder = os.environ.get(variable)
        if folder:
            return folder
    return None


def read_own_settings(options: ServeOptions, profile: Profile) -> dict[str, Any]:
    """Return what the settings file of the server that a profile replaces says, by dotted name.

    It is the file of `--config`, else the one that the profile finds from the current folder and
    the environment; {} if there is none. Raises Invalid if a file is named and the profile reads
    none, or if the file is wrong.
    """
    named = Path(options.config).expanduser() if options.config else None
    if named is not None and not profile.settings_reader:
        hint = "Leave out --config. `simplemem config --help` says which files contain settings."
        raise Invalid(f"the profile {profile.name} has no settings file of its own", hint=hint)
    return profile.read_settings_file(Path.cwd(), os.environ, named)


def client_arguments(options: ServeOptions) -> tuple[Path, list[str]]:
    """Return the vault, and the other options with which a client starts its server.

    These are the options that were passed, and what variables choose now: the client may not have
    these variables. Paths are absolute. Raises Invalid if a server cannot start with these options.
    """
    from simplemem.profiles.registry import choose_tools

    if is_http_only(options):
        hint = "To connect a client to an HTTP server, use `connect --http URL`."
        raise Invalid("a client can start a server only over standard streams", hint=hint)

    # A mistake is reported now, rather than in the log of a client.
    profile = choose_profile(options)
    changes = tool_group_changes(options)
    choose_tools(profile, changes)
    if options.config:
        read_own_settings(options, profile)

    arguments = _option("--profile", profile_name(options))
    if changes:
        arguments.append(f"--tools={changes}")  # the name of a tool group may follow a minus
    arguments += _flags({"--read-only": options.read_only, "--no-delete": options.no_delete})
    arguments += _path_option("--knowledge-base", knowledge_base_folder(options))
    arguments += _path_option("--config", options.config)
    arguments += _path_option("--db", options.db)
    arguments += _option("--log-level", options.log_level)
    arguments += _flags({"--rest-api-serve": is_http_beside_streams(options)})
    return choose_folder(options, profile), arguments


def _option(name: str, value: str | None) -> list[str]:
    """Return the words of an option; [] if it has no value."""
    return [name, str(value)] if value else []


def _path_option(name: str, path: str | None) -> list[str]:
    """Return the words of an option with an absolute path; [] if it has no value."""
    if not path:
        return []
    return [name, os.path.abspath(os.path.expanduser(path))]


def _flags(values: dict[str, bool | None]) -> list[str]:
    """Return the names of the flags that are set. `values` has the value of each by its name."""
    return [name for name, is_set in values.items() if is_set]
