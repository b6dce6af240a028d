"""Where notes are that the history knows under a path where nothing lies any more. Pure: made of the log's lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from simplemem.note.names import name_of
from simplemem.vault.log import Version

_EMPTY = sha256(b"").hexdigest()


@dataclass(frozen=True, slots=True)
class Place:
    """Where a note is now, None when it was deleted in `version`; and how that is known."""

    path: str | None
    how: str
    version: str = ""


class Whereabouts:
    """What became of every path of the log. `holding` says which notes have a text, by its hash: a note that another
    program moved is found by what it holds."""

    def __init__(
        self, changes: Iterable[Version], files: Collection[str], holding: Callable[[str], Sequence[str]]
    ) -> None:
        self._files = files
        self._holding = holding
        self._now: dict[str, str] = {}  # from a former path to the one it led to
        self._moved_in: dict[str, str] = {}
        self._were: dict[str, set[str]] = {}  # the former paths of what lies at a path
        self._deleted_in: dict[str, str] = {}
        self._text: dict[str, str] = {}
        for change in changes:
            if change.op != "recovered":
                self._take_in(change)
        known = {*self._now, *self._text, *self._deleted_in}
        self.former = sorted(path for path in known if path not in files)

    def of(self, path: str) -> Place | None:
        """Where the note is that once was at this path, None when that is not certain."""
        now = self._now.get(path, path)
        if now in self._files:
            return Place(now, f"it was moved to {name_of(now)} in {self._moved_in[path]}") if now != path else None
        if now in self._deleted_in:
            version = self._deleted_in[now]
            return Place(None, f"{name_of(now)} was deleted in {version}", version)
        text = self._text.get(now, _EMPTY)
        held = self._holding(text) if text != _EMPTY else ()
        return Place(held[0], f"what {name_of(now)} held is in {name_of(held[0])} now") if len(held) == 1 else None

    def _take_in(self, change: Version) -> None:
        path = change.path
        if change.before is None:  # something new lies there; what had moved away is no longer meant by this path
            led_to = self._now.pop(path, None)
            if led_to is not None:
                self._were[led_to].discard(path)
            self._deleted_in.pop(path, None)
        if change.new_path is not None:
            self._follow(path, change.new_path, change.id)
            path = change.new_path
        if change.after is None:
            self._deleted_in[path] = change.id
        else:
            self._text[path] = change.after

    def _follow(self, path: str, new_path: str, version: str) -> None:
        former = self._were.pop(path, set()) | {path}
        former.discard(new_path)
        for one in former:
            self._now[one], self._moved_in[one] = new_path, version
        self._now.pop(new_path, None)
        self._text.pop(path, None)
        self._deleted_in.pop(new_path, None)
        self._were.setdefault(new_path, set()).update(former)
