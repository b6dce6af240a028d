"""Find the vault that a command or a server is for."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path

from simplemem.errors import Invalid, NotFound
from simplemem.settings.files import user_config_path
from simplemem.settings.loading import Env, read_settings
from simplemem.settings.location import (
    ENV_PREFIX,
    contains_home,
    enclosing_vault,
    home_vault,
    is_in_source_checkout,
    is_marked,
    is_source_checkout,
    may_use_home_vault,
    named_vault,
)


def find_vault(
    flag: str | Path | None = None,
    *,
    env: Env = None,
    cwd: Path | None = None,
    default: str | Path | None = None,
) -> Path:
    """Return the folder of the vault to use. It need not exist yet, and is not created.

    The first of these that there is decides: `flag`; $SIMPLEMEM_VAULT in `env` (None: of this
    process); the setting `vault` of the user; a vault that contains `cwd` (None: the current
    folder); `default`; `~/simplemem`.

    Where `~/simplemem` would be returned, raises NotFound if `cwd` is among notes that are in no
    vault, or if `~/simplemem` is a checkout of this program. Raises Invalid if `flag` is "", which
    an unset variable of a script leaves, and what `read_settings` raises.
    """
    env = os.environ if env is None else env
    current = os.fspath(cwd or Path.cwd())
    home = str(Path.home())

    name = _configured_vault(flag, env)
    if name:
        return Path(named_vault(name, current))
    enclosing = enclosing_vault(current)
    if enclosing is not None:
        return Path(enclosing)
    if default is not None:
        return Path(named_vault(os.fspath(default), current))
    if not may_use_home_vault(current, home):
        raise _no_vault_around(current)
    return Path(home_vault(home))


def find_existing_vault(flag: str | Path | None = None) -> Path:
    """Return the folder of the vault to use, as `find_vault` does, if it exists.

    Raises NotFound if it does not, with a hint what to do, and what `find_vault` raises.
    """
    vault = find_vault(flag)
    if vault.is_dir():
        return vault
    if not _configured_vault(flag, os.environ):
        raise _no_vault_around(os.getcwd())
    if vault.exists():
        raise NotFound(
            f"{vault} is a file",
            hint="A vault is a folder. Name the folder that contains the file.",
        )

    hint = f"`simplemem init {shlex.quote(str(vault))}` creates it."
    similar = similar_folder(vault)
    if similar:
        hint = f"Did you mean {similar}? {hint}"
    raise NotFound(f"no vault at {vault}", hint=hint)


def similar_folder(missing: Path) -> Path | None:
    """Return the folder beside a missing one whose name is most similar.

    Returns None if no name is similar, or if the parent folder cannot be read. Hidden folders are
    left out.
    """
    try:
        names = [
            entry.name
            for entry in missing.parent.iterdir()
            if entry.is_dir() and not entry.name.startswith(".")
        ]
    except OSError:
        return None

    by_key = {name.casefold(): name for name in sorted(names)}
    matches = get_close_matches(missing.name.casefold(), by_key, 1, 0.75)
    return missing.parent / by_key[matches[0]] if matches else None


def _configured_vault(flag: str | Path | None, env: Mapping[str, str]) -> str | None:
    """Return the vault that a flag, the environment or the user's settings name, as written.

    None if none does. Raises Invalid if `flag` is the empty text, and what `read_settings` raises.
    """
    if flag == "":
        raise Invalid(
            "the path of the vault is empty", hint="Name a folder, or leave the vault out."
        )
    name = flag or env.get(f"{ENV_PREFIX}VAULT")
    if not name:
        name = read_settings(user_config_path(env)).get("vault")
    return os.fspath(name) if name else None


def vault_directly_below(folder: str) -> str | None:
    """Return the first folder in a folder, by name, that simplemem or Obsidian uses as a vault.

    None if there is none, or if the folder cannot be read.
    """
    try:
        names = sorted(os.listdir(folder))
    except OSError:
        return None
    for name in names:
        path = os.path.join(folder, name)
        if is_marked(path):
            return path
    return None


def _no_vault_around(folder: str) -> NotFound:
    """Return (not raise) the error for a folder that is in no vault; its hint says what to do."""
    home = str(Path.home())
    default = home_vault(home)
    suggestion = "`simplemem init .` makes this folder a vault"
    if contains_home(folder, home) or is_in_source_checkout(folder):
        suggestion = "`simplemem init FOLDER` makes a folder of notes a vault"

    hint = f"{suggestion}. To use another vault, pass `--vault FOLDER`."
    below = vault_directly_below(folder)
    if below is not None:
        hint = f"`--vault {shlex.quote(below)}` uses the vault in this folder. {suggestion}."
    if is_source_checkout(default):
        hint += f" {default} contains the source code of simplemem, so it is not used."
    return NotFound(f"no vault in {folder} or in a folder above it", hint=hint)
