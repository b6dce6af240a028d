"""Where a vault and the user's own settings are: what can be said before any setting is read.

A command that a running server answers loads this in place of `config`, and so nothing here imports more than `os`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in `typing`, which is not imported here
if TYPE_CHECKING:
    from collections.abc import Mapping

ENV_PREFIX = "SIMPLEMEM_"


def user_config_file(env: Mapping[str, str]) -> str:
    """The user's own settings: `$XDG_CONFIG_HOME/simplemem/config.toml`, by default below `~/.config`."""
    folder = os.path.expanduser(env.get("XDG_CONFIG_HOME") or "~/.config")
    return os.path.join(folder, "simplemem", "config.toml")


def named_vault(named: str, here: str) -> str:
    """The folder that somebody named, from the folder they were in."""
    return os.path.normpath(os.path.join(here, os.path.expanduser(named)))


def nearest_vault(here: str, home: str) -> str:
    """The vault where nobody named one: the nearest upward, `./.memories`, or `simplemem` in the home folder."""
    folder = here
    while not os.path.isdir(os.path.join(folder, ".simplemem")):
        above = os.path.dirname(folder)
        if above == folder:
            memories = os.path.join(here, ".memories")
            return memories if os.path.isdir(memories) else os.path.join(home, "simplemem")
        folder = above
    return folder
