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
        self._deleted: dict[str, tuple[str, str]] = {}  # from a path to where its note lay at last, and the version
        self._gone: dict[str, set[str]] = {}  # the former paths of what was deleted last at a path
        self._text: dict[str, str] = {}
        for change in changes:
            if change.op != "recovered":
                self._take_in(change)
        known = {*self._now, *self._text, *self._deleted}
        self.former = sorted(path for path in known if path not in files)

    def of(self, path: str) -> Place | None:
        """Where the note is that once was at this path, None when that is not certain."""
        if path in self._deleted:
            last, version = self._deleted[path]
            return Place(None, f"{name_of(last)} was deleted in {version}", version)
        now = self._now.get(path, path)
        if now in self._files:
            return Place(now, f"it was moved to {name_of(now)} in {self._moved_in[path]}") if now != path else None
        text = self._text.get(now, _EMPTY)
        held = self._holding(text) if text != _EMPTY else ()
        return Place(held[0], f"what {name_of(now)} held is in {name_of(held[0])} now") if len(held) == 1 else None

    def _take_in(self, change: Version) -> None:
        path = change.path
        if change.before is None:
            self._appear(path, back=change.op == "undo")
        if change.new_path is not None:
            self._follow(path, change.new_path, change.id)
            path = change.new_path
        if change.after is None:
            self._disappear(path, change.id)
        else:
            self._text[path] = change.after

    def _appear(self, path: str, *, back: bool) -> None:
        """Something lies there that did not: what had moved away is no longer meant by this path."""
        if (led_to := self._now.pop(path, None)) is not None:
            self._were[led_to].discard(path)
        for one in self._gone.pop(path, set()) if back else ():
            if self._deleted.pop(one, None) is not None and one != path:  # it is what was deleted, with all its names
                self._now[one] = path
                self._were.setdefault(path, set()).add(one)
        self._deleted.pop(path, None)

    def _follow(self, path: str, new_path: str, version: str) -> None:
        if (led_to := self._now.pop(new_path, None)) is not None:
            self._were[led_to].discard(new_path)
        former = self._were.pop(path, set()) | {path}
        former.discard(new_path)
        for one in former:
            self._now[one], self._moved_in[one] = new_path, version
        self._text.pop(path, None)
        self._deleted.pop(new_path, None)
        self._were[new_path] = former

    def _disappear(self, path: str, version: str) -> None:
        former = self._were.pop(path, set()) | {path}
        for one in former:
            self._now.pop(one, None)
            self._deleted[one] = (path, version)
        self._gone[path] = former
        self._text.pop(path, None)
