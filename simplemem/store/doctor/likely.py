"""What a link that leads nowhere may have meant: asked of the history first, then of names, aliases and titles.

Sure is only what somebody said: the history tells where the note went, or one note alone bears that very name. What
merely looks alike is offered, never taken.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from simplemem.index.links import named_in_memory
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.store.doctor.case import Case
from simplemem.store.doctor.near import MOST, NearNames
from simplemem.store.doctor.whereabouts import Place, Whereabouts
from simplemem.vault.links import name_key, resolve

# Names that many folders have: the one that is elsewhere is not the one that was meant.
_COMMON_NAMES = frozenset({"readme", "index", "untitled", "home", "notes", "note", "todo", "inbox", "log", "template"})
_WHY = {
    "name": "the only file of that name is {}",
    "alias": "it is another name of {}",
    "title": "it is the title of {}",
}


@dataclass(frozen=True, slots=True)
class Likely:
    """What a link may mean, the likeliest first. `sure` is the one that is clearly right, `was` the path it had when
    the link was right; `why` says how that is known, `way_back` what brings a deleted note back."""

    paths: tuple[str, ...] = ()
    sure: str | None = None
    was: str = ""
    why: str = ""
    way_back: str = ""


class LikelyTargets:
    """Answers for one vault. Asked for the same target again, it knows."""

    def __init__(self, case: Case) -> None:
        self._case = case
        files = frozenset(case.core.healing(case.index.files)) - case.copies
        self._named = named_in_memory(files)
        self._near = NearNames(files)
        self._whereabouts = Whereabouts(case.changes, files, self._holding)
        self._past = named_in_memory(self._whereabouts.former)
        self._known: dict[tuple[str, str], Likely] = {}

    def of(self, target: str, source: str) -> Likely:
        """What `[[target]]` in the note `source` may mean."""
        key = (target, source.rpartition("/")[0])
        if key not in self._known:
            self._known[key] = self._asked(target, source)
        return self._known[key]

    def _asked(self, target: str, source: str) -> Likely:
        was, place = self._by_history(target, source)
        if place is not None and place.path is not None:
            return Likely((place.path,), place.path, was, place.how)
        named = self._by_name(target)
        if place is not None:
            way_back = f"`simplemem undo {place.version}` brings it back."
            return Likely(_few((*named, *self._near.of(target))), why=place.how, way_back=way_back)
        is_whole = not self._case.vault.access.hidden  # else the link may well lead to what is not seen from here
        if is_whole and len(named) == 1 and compare_key(base_name(target)) not in _COMMON_NAMES:
            ((path, how),) = named.items()
            return Likely((path,), path, path if how == "name" else "", _WHY[how].format(name_of(path)))
        return Likely(_few((*named, *self._near.of(target))))

    def _by_history(self, target: str, source: str) -> tuple[str, Place | None]:
        """The path that the link once meant, and where its note is now, as far as the log tells."""
        meant = resolve(target, source, self._past)
        if meant.path is None or meant.ambiguous:
            return "", None
        return meant.path, self._whereabouts.of(meant.path)

    def _holding(self, sha256: str) -> list[str]:
        return self._by_hash.get(sha256, [])

    @cached_property
    def _by_hash(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, known in self._case.known.items():
            if path not in self._case.copies:
                found.setdefault(known.sha256, []).append(path)
        return found

    def _by_name(self, target: str) -> dict[str, str]:
        """The files that bear this very name, elsewhere, and the notes that have it as an alias or a title."""
        key = name_key(target)
        found = dict.fromkeys([*(self._named(key) or self._named(key + ".md"))], "name")
        by_key = self._case.core.healing(lambda: self._case.index.paths_named(compare_key(base_name(target))))
        for how, paths in (("alias", by_key[3]), ("title", by_key[2])):
            for path in paths:
                if path not in self._case.copies:
                    found.setdefault(path, how)
        return found


def _few(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))[:MOST]
