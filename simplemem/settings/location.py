"""Find the vault and the user's own settings file before any setting is read.

A command that a running server answers loads this module alone, so it imports nothing but `os`.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # as in `typing`, which is not imported here
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENV_PREFIX = "SIMPLEMEM_"


def user_config_file(env: Mapping[str, str]) -> str:
    """Return the path of the user's own settings file, which need not exist.

    That is `$XDG_CONFIG_HOME/simplemem/config.toml` by `env`, by default below `~/.config`.
    """
    folder = os.path.expanduser(env.get("XDG_CONFIG_HOME") or "~/.config")
    return os.path.join(folder, "simplemem", "config.toml")


def named_vault(name: str, folder: str) -> str:
    """Return the path of a vault that a user names by a path, which may be relative to `folder`.

    A `~` at its beginning is the home folder. The vault need not exist.
    """
    return os.path.normpath(os.path.join(folder, os.path.expanduser(name)))


_VAULT_FOLDERS = (".simplemem", ".obsidian")
# Of the entries below a folder, only so many are read: a large tree must not slow a command down.
_MAX_ENTRIES = 2_000


def enclosing_vault(folder: str) -> str | None:
    """Return the vault that a folder belongs to; None if it belongs to none.

    That is the nearest folder, from this one upwards, that simplemem or Obsidian uses. If there is
    none, it is the folder `.memories` in this folder, if that exists.
    """
    marked = marked_vault(folder)
    if marked is not None:
        return marked

    memories = os.path.join(folder, ".memories")
    return memories if os.path.isdir(memories) else None


def marked_vault(folder: str) -> str | None:
    """Return the nearest folder, from this one upwards, that simplemem or Obsidian uses.

    That is one with a folder `.simplemem` or `.obsidian`. None if there is none.
    """
    for candidate in _upwards(folder):
        if is_marked(candidate):
            return candidate
    return None


def is_marked(folder: str) -> bool:
    """Return whether simplemem or Obsidian uses this folder as a vault.

    It then has a folder `.simplemem` or `.obsidian`.
    """
    return any(os.path.isdir(os.path.join(folder, name)) for name in _VAULT_FOLDERS)


def home_vault(home: str) -> str:
    """Return `~/simplemem`, the vault of a user who is in no vault and names none.

    It need not exist.
    """
    return os.path.join(home, "simplemem")


def may_use_home_vault(folder: str, home: str) -> bool:
    """Return whether a command in a folder may use `~/simplemem` if no other vault is found.

    False if the folder is outside of `~/simplemem` and has Markdown files, or is inside a folder
    that has (see `is_among_notes`): the user may mean these. False too if `~/simplemem` has the
    source code of this program and is no vault. `home` is the home folder.
    """
    vault = home_vault(home)
    if is_source_checkout(vault):
        return False
    return not is_among_notes(folder, home) or _is_within(folder, vault)


def is_source_checkout(folder: str) -> bool:
    """Return whether a folder has the source code of simplemem at its top, and is no vault."""
    source = os.path.join(folder, "simplemem", "__main__.py")
    return os.path.isfile(source) and not is_marked(folder)


def is_in_source_checkout(folder: str) -> bool:
    """Return whether a folder is a checkout of simplemem that is no vault, or is inside one."""
    return any(is_source_checkout(candidate) for candidate in _upwards(folder))


def contains_home(folder: str, home: str) -> bool:
    """Return whether a folder is the home folder or a folder above it."""
    return _is_within(home, folder)


def is_among_notes(folder: str, home: str) -> bool:
    """Return whether a folder has Markdown files, at any depth, or is inside one that has.

    The home folder and the folders above it do not count: files there say nothing about the folders
    below. Of a large tree, only about 2,000 entries are looked at. Links are not followed.
    """
    # This folder, then its parents.
    folders = [parent for parent in _upwards(folder) if not _is_within(home, parent)]
    if not folders:
        return False
    if _has_markdown_below(folder):
        return True
    return any(_has_markdown(parent) for parent in folders[1:])


def _upwards(folder: str) -> Iterator[str]:
    """Yield a folder, its parent, and so on up to the root."""
    while True:
        yield folder
        parent = os.path.dirname(folder)
        if parent == folder:
            return
        folder = parent


def _is_within(folder: str, outer: str) -> bool:
    """Return whether a folder is `outer` or below it, after following links.

    Case matters only where the operating system distinguishes it.
    """
    inner_path = os.path.normcase(os.path.realpath(folder))
    outer_path = os.path.normcase(os.path.realpath(outer))
    return inner_path == outer_path or inner_path.startswith(os.path.join(outer_path, ""))


def _has_markdown(folder: str) -> bool:
    """Return whether a folder itself has Markdown files that are not hidden.

    False if it cannot be read.
    """
    try:
        return any(_is_markdown(name) for name in os.listdir(folder))
    except OSError:
        return False


def _has_markdown_below(folder: str) -> bool:
    """Return whether a folder or those below have Markdown files, by their first 2,000 entries.

    Nearer folders are looked at first. Hidden folders and those that cannot be read are skipped.
    """
    folders = [folder]
    entry_count = 0
    for current in folders:  # this list grows in the loop, so nearer folders come first
        try:
            entries = list(os.scandir(current))
        except OSError:
            continue

        for entry in entries:
            if _is_markdown(entry.name):
                return True
            if _may_contain_notes(entry):
                folders.append(entry.path)
        entry_count += len(entries)
        if entry_count >= _MAX_ENTRIES:
            return False
    return False


def _may_contain_notes(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a folder that is neither hidden nor `node_modules`."""
    is_skipped = entry.name.startswith(".") or entry.name == "node_modules"
    return not is_skipped and entry.is_dir(follow_symlinks=False)


def _is_markdown(name: str) -> bool:
    """Return whether a file name is that of a Markdown file that is not hidden."""
    return name.lower().endswith(".md") and not name.startswith(".")
