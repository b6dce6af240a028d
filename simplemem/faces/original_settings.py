"""The settings of the original simplemem: where its `config.toml` lies, and what of it means something
here.

SM-17: the first that is found of ./, ./.config/simplemem/, the user's and the system's configuration
folders, or the one that is named. Of a file that may have come with a folder only what is listed here is
taken, and none of it runs or opens anything.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from simplemem.errors import Invalid, Unavailable

_TAKEN = ("max_memory_length", "voyage_ai.api_key", "voyage_ai.model", "voyage_ai.rerank_model")


def original_settings(folder: Path, env: Mapping[str, str], named: Path | None = None) -> dict[str, Any]:
    """What the original's file says, as dotted names; what the environment sets as well is left to that."""
    for path in [folder / named] if named else _places(folder, env):
        try:
            table = tomllib.loads(path.read_text(encoding="utf-8-sig"))
        except OSError as error:
            if named:
                raise Unavailable(f"the settings {path} cannot be read: {error.strerror}") from error
            continue
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise Invalid(f"{path} is not valid TOML: {error}") from error
        return {key: value for key, value in _found(table) if not env.get("SIMPLEMEM_" + key.replace(".", "_").upper())}
    return {}


def _places(folder: Path, env: Mapping[str, str]) -> Iterator[Path]:
    yield folder / "config.toml"
    yield folder / ".config" / "simplemem" / "config.toml"
    own = env.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    for base in (own, *env.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")):
        if base:
            yield Path(base) / "simplemem" / "config.toml"


def _found(table: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for key in _TAKEN:
        value: Any = table
        for part in key.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is not None:
            yield key, value
