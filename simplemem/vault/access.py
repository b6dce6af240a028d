"""What whoever opened a vault may see and change of it: rules by folder. Pure.

What is hidden is to its reader as if it were not there, like a folder whose name begins with a dot. A rule is written as
in `embed.private`: a folder (`Private/`), a note (`plans/will`), or a pattern.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass

from simplemem.errors import ReadOnly
from simplemem.note.names import name_of
from simplemem.note.privacy import private_by_rule as is_meant


@dataclass(frozen=True, slots=True)
class Access:
    """Which paths are hidden, which are not to be changed, and whether a note may go. Nothing is forbidden at first."""

    hidden: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    no_delete: bool = False

    def hides(self, path: str) -> bool:
        """Whether nothing may be seen of this file."""
        return bool(self.hidden) and (is_meant(path, self.hidden) or _may_be_another_name(path))

    def check(self, path: str, *, asked: bool) -> None:
        """ReadOnly when this path may not be changed. Unless it was asked for by name it is not named: a change may
        touch what its reader does not see."""
        if self.hides(path):
            where = f"{name_of(path)!r}" if asked else "a memory that this would change"
            raise ReadOnly(f"{where} is in a place that is closed here: nothing was changed.", hint=_ELSEWHERE)
        if not self.may_change(path):
            raise ReadOnly(f"{name_of(path)!r} may be read here, not changed: nothing was changed.", hint=_ELSEWHERE)

    def may_change(self, path: str) -> bool:
        """Whether this path, which is not hidden, may be changed."""
        return not (self.read_only and is_meant(path, self.read_only))

    def check_gone(self, path: str, *, instead: str = "Tag it, for example as archived, or move it.") -> None:
        """ReadOnly when no note may be deleted, nor its text replaced unread."""
        if self.no_delete:
            raise ReadOnly(f"Nothing may be deleted here: {name_of(path)!r} was not changed.", hint=instead)

    def all_seen(self, paths: Iterable[str | None]) -> bool:
        """Whether none of these is hidden."""
        return not (self.hidden and any(self.hides(path) for path in paths if path is not None))


def _may_be_another_name(path: str) -> bool:
    """Windows knows `Private` as `PRIVAT~1` too: where something is hidden, such a name is not believed."""
    return sys.platform == "win32" and _SHORT_NAME.search(path) is not None


_SHORT_NAME = re.compile(r"~\d")
_ELSEWHERE = (
    "The settings say so ([access], or no_delete). Choose another place, or ask the person whose notes these are."
)

WHOLE_ACCESS = Access()
