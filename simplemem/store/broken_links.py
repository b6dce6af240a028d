"""Find links that lead nowhere, and what they may mean."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from simplemem.index.api import StoredLink
from simplemem.index.changes import ChangeTable
from simplemem.index.notes import named_in_memory
from simplemem.index.service import IndexService
from simplemem.models import Finding
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.obsidian.link_edits import LinkTarget
from simplemem.obsidian.settings import name_key, resolve_link
from simplemem.vault.source import NoteSource
from simplemem.vault.values import Version

_MAX_CANDIDATES = 3
# Names that are compared with every other: in a vault full of broken links, that would take long.
_MAX_NAMES_COMPARED = 100
_MAX_LENGTH_DIFFERENCE = 3
_MIN_NAME_SIMILARITY = 0.8

# Names that many folders have: the one in another folder need not be the one that was meant.
_COMMON_NAMES = frozenset(
    {"readme", "index", "untitled", "home", "notes", "note", "todo", "inbox", "log", "template"}
)
_REASONS = {
    "name": "the only file of that name is",
    "alias": "it is an alias of",
    "title": "it is the title of",
}


class BrokenLink(NamedTuple):
    """A link that leads nowhere.

    `target` is its text, `finding` what the doctor says of it. `new_target` is the file that it is
    certainly meant to lead to, None if that is not certain.
    """

    finding: Finding
    target: str
    new_target: LinkTarget | None


class _Guess(NamedTuple):
    """What a link may mean: `paths`, the likeliest first.

    `new_target` is the file that it is certainly meant to lead to, None if that is not certain.
    `reason` says how that is known, or what became of the target; "" if there is nothing to say.
    """

    paths: tuple[str, ...]
    new_target: LinkTarget | None = None
    reason: str = ""


class BrokenLinkFinder:
    """Finds the broken links of a vault. Guards no state of its own."""

    def __init__(self, vault: NoteSource, index: IndexService, changes: ChangeTable) -> None:
        self._vault = vault
        self._index = index
        self._changes = changes

    def find(self) -> Iterator[BrokenLink]:
        """Yield every broken link, except those in conflict copies and those that contain `{{`.

        The latter are variables of templates. `new_target` is None for a link in a note that has a
        problem, because such a note cannot be changed.
        """
        targets = _LikelyTargets(self._vault, self._index, self._changes)
        unreadable = {row["path"] for row in self._index.counts()["problems"]}
        for link in self._index.links():
            is_template = "{{" in link.target
            if link.path is not None or is_template or link.source in targets.copies:
                continue

            guess = targets.guess(link.target, link.source)
            new_target = guess.new_target
            if link.source in unreadable:
                new_target = None
            finding = _finding_of(link, guess, is_fixable=new_target is not None)
            yield BrokenLink(finding, link.target, new_target)


def _finding_of(link: StoredLink, guess: _Guess, *, is_fixable: bool) -> Finding:
    """Return what the doctor says of a broken link."""
    names = tuple(name_of(path) for path in guess.paths)
    message = f"unresolved link [[{link.target}]]"
    if guess.reason:
        message += f": {guess.reason}"

    hint = ""
    fix = ""
    if is_fixable:
        fix = f"point [[{link.target}]] to {names[0]}"
    elif names:
        hint = f"Did you mean {' or '.join(names)}?"
    return Finding(
        check="links",
        level="warning" if names or guess.reason else "note",
        path=link.source,
        message=message,
        hint=hint,
        line=link.line,
        candidates=names,
        fix=fix,
    )


class _LikelyTargets:
    """Guesses what broken links mean. Guards a snapshot of the names in one vault."""

    def __init__(self, vault: NoteSource, index: IndexService, changes: ChangeTable) -> None:
        self._is_partial_view = vault.access.is_partial
        self._index = index
        self._changes = changes
        rows = index.rows()
        self.copies = {path for path, row in rows.items() if row.is_copy}
        self._files = index.files() - self.copies
        self._files_named = named_in_memory(self._files)

        former_paths = set[str]()
        for version in changes.recent():
            former_paths.add(version.path)
            if version.new_path:
                former_paths.add(version.new_path)
        self._former_files_named = named_in_memory(former_paths - self._files)

        self._paths_by_base_name: dict[str, list[str]] = {}
        for path in sorted(self._files):
            key = compare_key(base_name(path))
            self._paths_by_base_name.setdefault(key, []).append(path)
        # The paths with a similar name, by the name that was looked up.
        self._misspelt: dict[str, list[str]] = {}

    def guess(self, target: str, source: str) -> _Guess:
        """Return what `[[target]]` in the note `source` may mean.

        The history is asked first, then names, aliases and titles, then similar names.
        """
        guess = self._guess_from_history(target, source)
        if guess is None:
            guess = self._guess_from_names(target)
        if guess is None:
            guess = _Guess(self._candidates(target))
        return guess

    def _guess_from_history(self, target: str, source: str) -> _Guess | None:
        """Return what became of the file that the link once led to, by the change log.

        Returns None if it led to none, or if it is not known where that file is today.
        """
        former_path = resolve_link(target, source, self._former_files_named).path
        if former_path is None:
            return None
        changes = self._changes.lineage(former_path)
        if not changes:
            return None

        last = changes[0]
        if last.after is None:
            reason = (
                f"{name_of(last.path)} was deleted in {last.id},"
                f" and `simplemem undo {last.id}` restores it"
            )
            return _Guess(self._candidates(target), None, reason)

        path = last.new_path or last.path
        if path not in self._files or path == former_path:
            return None
        move = _move_to(path, changes) or last
        reason = f"it was moved to {name_of(path)} in {move.id}"
        return _Guess((path,), LinkTarget(path, former_path), reason)

    def _guess_from_names(self, target: str) -> _Guess | None:
        """Return the only file with a name, alias or title; None if there are none or several.

        None also in a view of a part of a vault, and for a common name such as "readme".
        """
        # The link may be meant for a file that this view hides.
        if self._is_partial_view:
            return None
        if compare_key(base_name(target)) in _COMMON_NAMES:
            return None
        matches = self._matches(target)
        if len(matches) != 1:
            return None

        (path,) = matches
        kind = matches[path]
        # A title or an alias never was the name of a file.
        former_path = path if kind == "name" else ""
        target_file = LinkTarget(path, former_path)
        reason = f"{_REASONS[kind]} {name_of(path)}"
        return _Guess((path,), target_file, reason)

    def _matches(self, target: str) -> Mapping[str, str]:
        """Return the files with this very name, and the notes with this alias or title, by path.

        The values are the keys of `_REASONS`.
        """
        key = name_key(target)
        named = self._files_named(key) or self._files_named(key + ".md")
        matches = dict.fromkeys(named, "name")

        name = compare_key(base_name(target))
        _, _, titles, aliases = self._index.find_by_name(name)
        for kind, paths in (("alias", aliases), ("title", titles)):
            for path in paths:
                if path not in self.copies:
                    matches.setdefault(path, kind)
        return matches

    def _candidates(self, target: str) -> tuple[str, ...]:
        """Return files with this name; if there are none, files with a similar one. At most 3.

        Similar names are looked up for the first 100 targets only.
        """
        matches = self._matches(target)
        if matches:
            return tuple(matches)[:_MAX_CANDIDATES]

        name = compare_key(base_name(target))
        may_compare = len(self._misspelt) < _MAX_NAMES_COMPARED
        if name not in self._misspelt and may_compare:
            self._misspelt[name] = self._find_similar(name)
        similar = self._misspelt.get(name, [])
        return tuple(similar[:_MAX_CANDIDATES])

    def _find_similar(self, name: str) -> list[str]:
        """Return the paths whose base name is so similar to a name that one may be a misspelling.

        The most similar come first. Names with other digits are left out.
        """
        digits = _digits_of(name)
        names = []
        for other in self._paths_by_base_name:
            length_difference = abs(len(other) - len(name))
            if length_difference > _MAX_LENGTH_DIFFERENCE:
                continue
            if _digits_of(other) == digits:  # "Chapter 1" is no misspelling of "Chapter 2"
                names.append(other)

        paths = list[str]()
        for similar in difflib.get_close_matches(
            name, names, _MAX_CANDIDATES, _MIN_NAME_SIMILARITY
        ):
            paths += self._paths_by_base_name[similar]
        return paths


def _move_to(path: str, changes: Sequence[Version]) -> Version | None:
    """Return the newest of some changes that moved a note to a path; None if none did."""
    for change in changes:
        if change.new_path == path:
            return change
    return None


def _digits_of(name: str) -> list[str]:
    """Return the digits of a name in their order."""
    return [character for character in name if character.isdigit()]
