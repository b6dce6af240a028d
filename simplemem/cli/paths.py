"""Paths on the disk in place of the names of notes: `./flights/Flight 2 Dipper.md`."""

from __future__ import annotations

import os
from pathlib import Path

from simplemem.errors import Ambiguous, Invalid


def path_in_vault(typed: str, root: Path, folder: Path) -> str:
    """Return the path in a vault that a user typed as a path on the disk.

    `root` is the vault. `typed` may be absolute, or relative to `folder`, the current folder of the
    user. A text that is no such path, such as the name of a note, is returned as it is.

    Raises Invalid for a file outside the vault, if what was typed can only be a path on the disk,
    such as `./a.md`; otherwise it may be the name of a note. Raises Ambiguous for `a.md` if the
    vault has one note at that path, and `folder` another; `./a.md` always means the latter.
    """
    path = _absolute(typed, folder)
    inside = _path_below(path, root)
    is_explicit = _is_path(typed)
    is_file = os.path.isfile(path)

    if inside is None:
        if is_explicit and is_file:
            raise Invalid(
                f"{path} is outside the vault {root}",
                hint="To use another vault, pass `--vault FOLDER`.",
            )
        return typed
    if is_explicit:
        return inside
    if not is_file:
        return typed

    if inside != typed and (root / typed).is_file():
        name = typed.removesuffix(".md")
        raise Ambiguous(
            f"{typed} could mean two notes: {inside} and {typed}",
            candidates=[inside, typed],
            hint=f"Use `./{typed}` for the note in the current folder, `{name}` for the other one.",
        )
    return inside


def new_name_in_vault(typed: str, root: Path) -> str:
    """Return the name in a vault for a new note, or a folder that ends with `/`.

    A path on the disk that is absolute, or begins with `./`, `../` or `~/`, becomes one in the
    vault. Any other text, and a path outside the vault, is returned as it is: the check of names
    rejects the latter.
    """
    if not _is_path(typed):
        return typed
    inside = _path_below(_absolute(typed, Path.cwd()), root)
    if inside is None:
        return typed
    return f"{inside}/" if typed.endswith("/") else inside


def _is_path(typed: str) -> bool:
    """Return whether what was typed can only be a path on the disk, and not one in the vault."""
    return typed.startswith(("./", "../", "~/")) or os.path.isabs(typed)


def _absolute(typed: str, folder: Path) -> str:
    """Return a path that was typed in a folder as an absolute path. Links are not followed."""
    return os.path.abspath(os.path.join(folder, os.path.expanduser(typed)))


def _path_below(path: str, root: Path) -> str | None:
    """Return the path in a vault of an absolute path; None for one outside, or the vault itself.

    Links are followed only if the path is not below the vault as it is.
    """
    relative = _relative(path, str(root))
    if relative is not None:
        return relative
    return _relative(os.path.realpath(path), os.path.realpath(root))


def _relative(path: str, folder: str) -> str | None:
    """Return the path below a folder, with `/` as the separator; None if it is not below it."""
    prefix = os.path.join(folder, "")
    if not path.startswith(prefix):
        return None
    return path.removeprefix(prefix).replace(os.sep, "/")
