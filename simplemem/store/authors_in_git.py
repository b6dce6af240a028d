"""What git says of lines that our own history knows nothing of: who committed them. Asked of a few notes, never of all."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING

from simplemem.errors import SimplememError
from simplemem.note.authors import COMMAND_LINE, Origin, counted_lines
from simplemem.store.core import Core
from simplemem.store.from_git import is_in_git
from simplemem.vault.vault import File

if TYPE_CHECKING:
    from simplemem.vault.git import Line

_LOG = logging.getLogger(__name__)


def with_git(core: Core, file: File, origins: Sequence[Origin]) -> list[Origin]:
    """The origins with the names and times that git has for what was written outside simplemem."""
    told = list(origins)
    if all(origin.kind != "human" or origin.name for origin in told) or not is_in_git(core):
        return told
    from simplemem.vault.git import blame

    try:
        lines = blame(core.root, file.path, file.data)
    except (SimplememError, OSError) as error:
        _LOG.warning("git was asked who wrote %r: %s", file.path, error)
        return told
    # Git ends a line at a line feed and nowhere else, and has none after the last.
    if counted_lines(file.data.decode("utf-8", "replace")) - len(lines) not in (0, 1):
        return told
    return [_of(origin, line) for origin, line in zip(told, lines, strict=False)] + told[len(lines) :]


def _of(origin: Origin, line: Line) -> Origin:
    if origin.kind != "human" or not line.commit:
        return origin
    if line.actor and line.actor != COMMAND_LINE:  # our own commit, of a history that is not here
        return Origin("agent", line.actor, line.when)
    return Origin("human", line.who, line.when)
