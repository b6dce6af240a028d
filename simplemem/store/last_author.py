"""The last author of a note: who made the text that it has now, as the log of changes tells it.

A text that no change of ours made was written by a person, in an editor or with another program. An undo or a move writes
nothing new: the text keeps its author.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from datetime import datetime

from simplemem.index.filters import Narrow
from simplemem.note.authors import HUMAN, Origin, is_by, origin_of
from simplemem.store.core import Core


class LastAuthors:
    """Who made the texts of one vault. Any thread may ask."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self._seen = 0  # the last change that was taken in
        self._by_text: dict[str, Origin] = {}
        self._guard = threading.Lock()

    def of(self, sha256: str) -> tuple[str, str | None]:
        """Who made a text, and when if that is known."""
        with self._guard:
            self._follow()
            origin = self._by_text.get(sha256, HUMAN)
        return origin.shown, local(origin.when)

    def narrowed(self, narrow: Narrow) -> Narrow:
        """The filter with the texts that its author made; for `human`, with those that others made."""
        if not narrow.author:
            return narrow
        with self._guard:
            self._follow()
            is_human = narrow.author.casefold() == "human"
            made = {text for text, origin in self._by_text.items() if is_by(origin, narrow.author) is not is_human}
        return replace(narrow, texts=tuple(sorted(made)))

    def _follow(self) -> None:
        """Take in what the log has that was not seen yet."""
        fresh = []
        for version in self._core.vault.history.log.backwards():
            if version.number <= self._seen:
                break
            fresh.append(version)
        for version in reversed(fresh):
            self._seen = version.number
            if version.op != "recovered" and version.after is not None and version.after != version.before:
                self._by_text.setdefault(version.after, origin_of(version.who, version.tool, version.when))


def local(when: str) -> str | None:
    """A time of the log as notes say theirs."""
    try:
        moment = datetime.fromisoformat(when).astimezone()
    except (ValueError, OverflowError, OSError):
        return None
    return moment.replace(tzinfo=None).isoformat(timespec="seconds")
