"""The rules of the [access] settings: who may see and change which notes."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from simplemem.errors import ReadOnly
from simplemem.note.names import name_of
from simplemem.note.scopes import is_private_by_rule

_SHORT_NAME = re.compile(r"~\d")  # as in `PRIVAT~1`


class Access(NamedTuple):
    """The [access] settings: which paths are hidden or read-only, and whether notes may be deleted.

    If `only` has paths, all others are hidden.
    """

    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    no_delete: bool = False
    only: tuple[str, ...] = ()

    @property
    def is_partial(self) -> bool:
        """Whether there may be hidden notes."""
        return bool(self.hidden or self.only)

    def hides(self, path: str) -> bool:
        """Return whether nothing of a file may be shown."""
        if self._is_outside(path):
            return True
        if not self.hidden:
            return False
        if is_private_by_rule(path, self.hidden):
            return True
        # For Windows, `Private` is `PRIVAT~1` too, so a short name may be that of a hidden note.
        return sys.platform == "win32" and bool(_SHORT_NAME.search(path))

    def _is_outside(self, path: str) -> bool:
        """Return whether only some paths are visible, and this file is in none of them."""
        return bool(self.only) and not any(_is_in(path, visible) for visible in self.only)

    def check(self, path: str, *, asked: bool) -> None:
        """Raise ReadOnly if a path may not be changed.

        `asked` says that the caller named the path: the message never names another hidden note.
        """
        note = f"{name_of(path)!r}" if asked else "a note that this would change"
        if self._is_outside(path):
            hint = "Only notes there can be read here. Choose a name there, or ask the user."
            message = f"{note} is outside {_list_paths(self.only)}, and nothing was changed"
            raise ReadOnly(message, hint=hint)
        if self.hides(path):
            message = f"{note} is hidden here, and nothing was changed"
            raise ReadOnly(message, hint=_FORBIDDEN_HINT)
        if not self.may_change(path):
            message = f"{name_of(path)!r} is read-only here, and nothing was changed"
            raise ReadOnly(message, hint=_FORBIDDEN_HINT)

    def may_change(self, path: str) -> bool:
        """Return whether a path that is not hidden may be changed."""
        return not (self.read_only and is_private_by_rule(path, self.read_only))

    def check_gone(
        self, path: str, *, instead: str = "Tag it instead, for example as archived, or move it."
    ) -> None:
        """Raise ReadOnly if no note may be deleted, nor its text be replaced unread."""
        if self.no_delete:
            message = f"deleting is not allowed here, and {name_of(path)!r} was not changed"
            raise ReadOnly(message, hint=instead)


_FORBIDDEN_HINT = "The [access] settings forbid it. Choose another folder, or ask the user."


def _list_paths(paths: Sequence[str]) -> str:
    """Return the first three paths, and how many more there are."""
    text = ", ".join(paths[:3])
    more = len(paths) - 3
    if more > 0:
        text += f" and {more} more"
    return text


def _is_in(path: str, visible: str) -> bool:
    """Return whether a file belongs to one of the visible paths. Case matters.

    Such a path is `folder/` with all below it, `folder/*` without its folders, `note.md`, or a name
    without extension, which is that of a note or of a folder.
    """
    path = unicodedata.normalize("NFC", path)
    visible = unicodedata.normalize("NFC", visible)
    if visible.endswith("/*"):
        return path.rpartition("/")[0] == visible[:-2]
    if visible.endswith(".md"):
        return path == visible
    if path in (visible, f"{visible}.md"):
        return True
    folder = visible if visible.endswith("/") else f"{visible}/"
    return path.startswith(folder)
