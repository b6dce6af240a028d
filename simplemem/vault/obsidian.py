"""Read the settings of a vault from its `.obsidian/` folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from simplemem.errors import SimplememError
from simplemem.obsidian.settings import SETTINGS_FILES, ObsidianSettings, parse_obsidian_settings
from simplemem.vault.folder.dir_handles import DirHandles
from simplemem.vault.folder.disk import read_file

_MAX_SETTINGS_BYTES: Final = 1_000_000


def read_obsidian_settings(root: Path) -> ObsidianSettings:
    """Return the settings of the vault in a folder; defaults for what its files do not state.

    Files that are missing or broken count as empty. Raises Unavailable if there is no such folder.
    """
    with DirHandles(str(root)) as handles:
        app, templates, daily = [_read_settings(handles, path) for path in SETTINGS_FILES]
    return parse_obsidian_settings(app, templates, daily)


def _read_settings(handles: DirHandles, path: str) -> Mapping[str, object]:
    """Return the contents of a settings file; nothing if it cannot be read as a JSON object.

    It may be missing, too large, a link, no JSON, or nested too deeply.
    """
    try:
        data, _ = read_file(handles, path, _MAX_SETTINGS_BYTES)
        settings = json.loads(data.decode("utf-8-sig"))
    except (OSError, SimplememError, ValueError, RecursionError):
        return {}
    if not isinstance(settings, dict):
        return {}
    return settings
