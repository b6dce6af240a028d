"""Links that lead nowhere, with what they may mean; and links that could mean several files.

The history is asked first, then names, aliases and titles. Sure is only what somebody said: the history tells where the
note went, or one note alone bears that very name. What merely looks alike is offered, never taken.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cached_property
from hashlib import sha256
from typing import Literal

from simplemem.index.links import StoredLink, named_in_memory
from simplemem.memory import Finding
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.store.doctor.case import Case, Noticed, Point
from simplemem.vault.links import Named, name_key, resolve

# Names that many folders have: the one that is elsewhere is not the one that was meant.
_COMMON_NAMES = frozenset({"readme", "index", "untitled", "home", "notes", "note", "todo", "inbox", "log", "template"})
_WHY = {
    "name": "the only file of that name is {}",
    "alias": "it is another name of {}",
    "title": "it is the title of {}",
}
_EMPTY = sha256(b"").hexdigest()
_MOST = 3  # candidates
_MOST_ASKED = 100  # names that are compared with every other; a vault full of links to nowhere must not take all day
_LIKE = 0.8  # how alike two names are, letter by letter, when one is a slip for the other


def check_links(case: Case) -> Iterator[Noticed]:
    links = [link for link in case.links if link.source not in case.copies]
    # `[[{{title}}]]` in a template is no link yet.
    broken = [link for link in links if link.path is None and "{{" not in link.target]
    targets = LikelyTargets(case)
    for done, link in enumerate(broken):
        yield _broken(case, link, targets.of(link.target, link.source))
        if done % 100 == 0:
            case.tell("links", done, len(broken))
    for link in links:
        if link.path is not None and link.ambiguous:
            message = f"[[{link.target}]] could mean {', '.join(map(name_of, link.ambiguous))}"
            hint = f"It is taken for {name_of(link.path)}. A folder before the name says which is meant."
            yield Noticed(Finding("links", "note", link.source, message, hint, link.line, link.ambiguous))


@dataclass(frozen=True, slots=True)
class Likely:
    """What a link may mean, the likeliest first. `sure` is the one that is clearly right, `was` the path it had when
    the link was right; `why` says how that is known, `way_back` what brings a deleted note back."""

    paths: tuple[str, ...] = ()
    sure: str | None = None
    was: str = ""
    why: str = ""
    way_back: str = ""


def _broken(case: Case, link: StoredLink, likely: Likely) -> Noticed:
    message = f"[[{link.target}]] leads nowhere" + (f": {likely.why}" if likely.why else "")
    candidates = tuple(map(name_of, likely.paths))
    hint, fix, remedy = "", "", None
    if likely.sure is None:
        hint = f"Perhaps {' or '.join(candidates)}." if candidates else likely.way_back
    elif not case.may_be_written(link.source):
        hint = f"It means {candidates[0]}; the header above it must be mended first."
    else:
        fix = f"lead [[{link.target}]] to {name_of(likely.sure)}"
        remedy = Point(link.source, link.target, likely.sure, likely.was)
    level: Literal["warning", "note"] = "warning" if hint or fix else "note"
    return Noticed(Finding("links", level, link.source, message, hint, link.line, candidates, fix), remedy)


class LikelyTargets:
    """What broken links may mean, in one vault. Asked for the same target again, it knows."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._known: dict[tuple[str, str], Likely] = {}
        self._asked = 0

    def of(self, target: str, source: str) -> Likely:
        """What `[[target]]` in the note `source` may mean."""
        key = (target, source.rpartition("/")[0])
        if key not in self._known:
            self._known[key] = self._by_history(target, source) or self._by_name(target)
        return self._known[key]

    @cached_property
    def _files(self) -> frozenset[str]:
        return frozenset(self._case.index.files()) - self._case.copies

    @cached_property
    def _by_loose_name(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path in sorted(self._files):
            found.setdefault(loose_key(base_name(path)), []).append(path)
        return found

    def _near(self, target: str) -> list[str]:
        """The files whose names are nearest to that of a target: the same but for accents, spaces and marks, or a slip."""
        loose = loose_key(base_name(target))
        names = self._by_loose_name
        if loose and loose not in names and self._asked < _MOST_ASKED:
            self._asked += 1
            # "Chapter 1" is no slip for "Chapter 2", nor one day for another.
            like = [name for name in names if _digits(name) == _digits(loose) and abs(len(name) - len(loose)) < 4]
            return [path for name in get_close_matches(loose, like, _MOST, _LIKE) for path in names[name]]
        return names.get(loose, [])

    def _by_history(self, target: str, source: str) -> Likely | None:
        """Where the note is now that the link once meant, as far as the log tells; None when that is not certain."""
        was = resolve(target, source, self._past).path
        changes = self._case.core.changes.lineage(was) if was is not None else []
        if was is None or not changes:
            return None
        last = changes[0]
        now = last.new_path or last.path
        if last.after is None:
            why, way_back = (
                f"{name_of(last.path)} was deleted in {last.id}",
                f"`simplemem undo {last.id}` brings it back.",
            )
            return Likely(_few((*self._named(target), *self._near(target))), why=why, way_back=way_back)
        if now in self._files and now != was:
            moved = next((change for change in changes if change.new_path == now), last)
            return Likely((now,), now, was, f"it was moved to {name_of(now)} in {moved.id}")
        held = self._by_hash.get(last.after, []) if last.after != _EMPTY else []
        if now not in self._files and len(held) == 1:  # another program moved it
            return Likely((held[0],), held[0], was, f"what {name_of(now)} held is in {name_of(held[0])} now")
        return None

    @cached_property
    def _past(self) -> Named:
        """The names of paths that the log knows, and where nothing lies any more."""
        changes = self._case.core.changes.recent()
        return named_in_memory(
            sorted({path for each in changes for path in (each.path, each.new_path) if path} - self._files)
        )

    @cached_property
    def _by_hash(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for path, known in self._case.known.items():
            if path not in self._case.copies:
                found.setdefault(known.sha256, []).append(path)
        return found

    def _by_name(self, target: str) -> Likely:
        named = self._named(target)
        is_whole = not self._case.vault.access.hidden  # else the link may well lead to what is not seen from here
        if is_whole and len(named) == 1 and compare_key(base_name(target)) not in _COMMON_NAMES:
            ((path, how),) = named.items()
            return Likely((path,), path, path if how == "name" else "", _WHY[how].format(name_of(path)))
        return Likely(_few((*named, *self._near(target))))

    def _named(self, target: str) -> dict[str, str]:
        """The files that bear this very name, elsewhere, and the notes that have it as an alias or a title."""
        key, files = name_key(target), self._by_key
        found = dict.fromkeys(files(key) or files(key + ".md"), "name")
        _, _, titled, with_alias = self._case.index.paths_named(compare_key(base_name(target)))
        for how, paths in (("alias", with_alias), ("title", titled)):
            for path in paths:
                if path not in self._case.copies:
                    found.setdefault(path, how)
        return found

    @cached_property
    def _by_key(self) -> Named:
        return named_in_memory(self._files)


def _few(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))[:_MOST]


def loose_key(name: str) -> str:
    """A name without case, accents, spaces and marks."""
    plain = unicodedata.normalize("NFKD", name).casefold()
    return "".join(char for char in plain if char.isalnum())


def _digits(name: str) -> str:
    return "".join(char for char in name if char.isdigit())
