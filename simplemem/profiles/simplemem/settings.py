"""The settings file of the original simplemem."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from simplemem.errors import Invalid
from simplemem.settings.files import read_toml

_VOYAGE_KEYS = ("api_key", "model", "rerank_model")


def original_settings(
    folder: Path, env: Mapping[str, str], named: Path | None = None
) -> dict[str, Any]:
    """Return the settings of the original's `config.toml`, by their dotted names.

    It is the file `named`, relative to the vault `folder`, or the first one in the places where the
    original looked; {} without one. Only `max_memory_length` and the keys of Voyage are read. A
    setting for which `env` has a variable is left out. Raises Invalid if the file cannot be read or
    is not valid TOML.
    """
    path = folder / named if named else _find_file(folder, env)
    if path is None:
        return {}
    try:
        table = read_toml(path)
    except OSError as error:
        raise Invalid(f"the settings {path} cannot be read: {error}") from error

    voyage = table.get("voyage_ai")
    if not isinstance(voyage, dict):
        voyage = {}
    settings = {f"voyage_ai.{key}": voyage.get(key) for key in _VOYAGE_KEYS}
    settings["max_memory_length"] = table.get("max_memory_length")
    return {
        name: value
        for name, value in settings.items()
        if value is not None and not env.get(_variable_of(name))
    }


def _find_file(folder: Path, env: Mapping[str, str]) -> Path | None:
    """Return the first `config.toml` in the places of the original; None if there is none."""
    user_folder = env.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    system_folders = env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    bases = [folder / ".config", user_folder, *system_folders]
    places = [folder / "config.toml"]
    places += [Path(base) / "simplemem" / "config.toml" for base in bases if base]
    for place in places:
        if place.is_file():
            return place
    return None


def _variable_of(name: str) -> str:
    """Return the environment variable of a setting: `SIMPLEMEM_VOYAGE_AI_MODEL`, for example."""
    return f"SIMPLEMEM_{name}".replace(".", "_").upper()
