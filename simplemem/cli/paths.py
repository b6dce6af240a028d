"""Paths on the disk in place of the names of notes: `./flights/Flight 2 Dipper.md`."""

from __future__ import annotations

import os
from pathlib import Path

from simplemem.errors import Ambiguous, Invalid


def path_in_vault(typed: str, root: Path, here: Path) -> str:
    """The path inside a vault that was typed as an absolute path, or as one relative to the folder `here`.

    Anything else is returned as it is. Raises Ambiguous for `a.md` if the vault has one note at that path, and the
    folder `here` another; `./a.md` always means the latter.
    """
    path = _absolute(typed, here)
    inside = _inside(path, root)
    is_explicit = _is_path(typed)
    if inside is None:
        if is_explicit and os.path.isfile(path):
            raise Invalid(
                f"{path} is outside the vault {root}",
                hint="To use another vault, pass `--vault FOLDER`.",
            )
        return typed
    if not os.path.isfile(path):
        return inside if is_explicit else typed
    if not is_explicit and inside != typed and (root / typed).is_file():
        hint = f"Use `./{typed}` for the note in the current folder, `{typed.removesuffix('.md')}` for the other one."
        raise Ambiguous(
            f"{typed} could mean two notes: {inside} and {typed}",
            candidates=[inside, typed],
            hint=hint,
        )
    return inside


def new_name_in_vault(typed: str, root: Path) -> str:
    """The name for a note that was typed as a name, as an absolute path, or as a path that begins with `./` or `../`."""
    inside = _inside(_absolute(typed, Path.cwd()), root) if _is_path(typed) else None
    if inside is None:
        return typed
    return f"{inside}/" if typed.endswith("/") else inside


def _is_path(typed: str) -> bool:
    """Whether what was typed can only be a path on the disk, and not one in the vault."""
    return typed.startswith(("./", "../", "~/")) or os.path.isabs(typed)


def _absolute(typed: str, here: Path) -> str:
    return os.path.abspath(os.path.join(here, os.path.expanduser(typed)))


def _inside(path: str, root: Path) -> str | None:
    """The path in the vault of a path on the disk; None for one outside. Links are followed only if need be."""
    return _relative(path, str(root)) or _relative(os.path.realpath(path), os.path.realpath(root))


def _relative(path: str, folder: str) -> str | None:
    """The path below a folder, with `/`; None if it is not below it."""
    below = path.removeprefix(os.path.join(folder, ""))
    return None if below == path else below.replace(os.sep, "/")
