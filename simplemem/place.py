"""Find the vault and the user's own settings file before any setting is read.

A command that a running server answers loads this module instead of `config`, so it imports nothing but `os`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in `typing`, which is not imported here
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENV_PREFIX = "SIMPLEMEM_"


def user_config_file(env: Mapping[str, str]) -> str:
    """Return the file of the user's own settings: `$XDG_CONFIG_HOME/simplemem/config.toml`, by default in `~/.config`."""
    folder = os.path.expanduser(env.get("XDG_CONFIG_HOME") or "~/.config")
    return os.path.join(folder, "simplemem", "config.toml")


def named_vault(named: str, here: str) -> str:
    """Return the folder that `named` means in the folder `here`."""
    return os.path.normpath(os.path.join(here, os.path.expanduser(named)))


_VAULT_FOLDERS = (".simplemem", ".obsidian")
_MAX_ENTRIES = (
    2_000  # of a folder and what is below it: a tree of sources must not slow a command down
)


def enclosing_vault(here: str) -> str | None:
    """Return the vault that the folder `here` belongs to; None if it belongs to none.

    That is the nearest folder, from `here` upwards, that simplemem or Obsidian uses; else `./.memories` if it exists.
    """
    marked = marked_vault(here)
    if marked is not None:
        return marked

    memories = os.path.join(here, ".memories")
    return memories if os.path.isdir(memories) else None


def marked_vault(here: str) -> str | None:
    """Return the nearest folder, from `here` upwards, that simplemem or Obsidian uses; None if there is none."""
    for folder in _upwards(here):
        if _is_marked(folder):
            return folder
    return None


def _is_marked(folder: str) -> bool:
    """Return whether simplemem or Obsidian uses this folder as a vault."""
    return any(os.path.isdir(os.path.join(folder, name)) for name in _VAULT_FOLDERS)


def home_vault(home: str) -> str:
    """Return the vault for whoever is in no vault and names none. It need not exist."""
    return os.path.join(home, "simplemem")


def may_use_home_vault(here: str, home: str) -> bool:
    """Return whether a command in `here` may fall back to `~/simplemem`.

    False inside other folders of notes, and if `~/simplemem` is a git clone of this program.
    """
    vault = home_vault(home)
    if is_source_checkout(vault):
        return False
    return not is_among_notes(here, home) or _is_within(here, vault)


def is_source_checkout(folder: str) -> bool:
    """Return whether the folder contains the source code of simplemem and is not used as a vault as well."""
    source = os.path.join(folder, "simplemem", "place.py")
    return os.path.isfile(source) and not _is_marked(folder)


def contains_home(folder: str, home: str) -> bool:
    """Whether a folder is the home folder or a folder above it."""
    return _is_within(home, folder)


def is_among_notes(here: str, home: str) -> bool:
    """Whether `here` contains Markdown files or is inside a folder that does.

    The home folder and the folders above it do not count: a file there says nothing about what is below.
    """
    own_folders = [folder for folder in _upwards(here) if not _is_within(home, folder)]
    if not own_folders:
        return False
    return _has_markdown_below(here) or any(_has_markdown(folder) for folder in own_folders[1:])


def _upwards(folder: str) -> Iterator[str]:
    """Yield a folder, its parent, and so on up to the root."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _is_within(folder: str, outer: str) -> bool:
    """Whether `folder` is `outer` or somewhere below it. Links are followed, and case counts as it does on the disk."""
    paths = [os.path.normcase(os.path.realpath(path)) for path in (folder, outer)]
    return paths[0] == paths[1] or paths[0].startswith(os.path.join(paths[1], ""))


def _has_markdown(folder: str) -> bool:
    try:
        return any(_is_markdown(name) for name in os.listdir(folder))
    except OSError:
        return False


def _has_markdown_below(folder: str) -> bool:
    """Whether there is a Markdown file in the folder or below it, as far as `_MAX_ENTRIES` entries show."""
    waiting = [folder]
    seen = 0
    for current in waiting:  # grows as it is read: nearer folders come first
        try:
            entries = list(os.scandir(current))
        except OSError:
            continue
        for entry in entries:
            if _is_markdown(entry.name):
                return True
            if (
                not entry.name.startswith(".")
                and entry.name != "node_modules"
                and entry.is_dir(follow_symlinks=False)
            ):
                waiting.append(entry.path)
        seen += len(entries)
        if seen >= _MAX_ENTRIES:
            return False
    return False


def _is_markdown(name: str) -> bool:
    return name.lower().endswith(".md") and not name.startswith(".")
