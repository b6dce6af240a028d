"""Links that lead nowhere: what they may mean, and mending those where that is sure, as one change that one undo takes back.

Sure is only what somebody said: the history tells where the note went, or one note alone bears that very name. What merely
looks alike is offered, never taken.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator
from difflib import get_close_matches
from typing import Literal, NamedTuple

from simplemem.errors import SimplememError
from simplemem.index.links import named_in_memory
from simplemem.index.reconcile import Progress
from simplemem.memory import Finding, Mend, Mended, Mending
from simplemem.note.diff import unified_diff
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.note.note import read_note
from simplemem.store.core import Core
from simplemem.store.undo import carry_out
from simplemem.vault.links import Aim, lead_links, name_key, resolve
from simplemem.vault.vault import Change, Wish

# Names that many folders have: the one that is elsewhere is not the one that was meant.
_COMMON_NAMES = frozenset({"readme", "index", "untitled", "home", "notes", "note", "todo", "inbox", "log", "template"})
_WHY = {"name": "the only file of that name is", "alias": "it is another name of", "title": "it is the title of"}
_MOST = 3  # candidates
_MOST_ASKED = 100  # names that are compared with every other; a vault full of broken links must not take all day
_LIKE = 0.8  # how alike two names are, letter by letter, when one is a slip for the other


def check_links(core: Core, _: Progress) -> Iterator[Finding]:
    """Broken links with what they may mean, and links that could mean several files."""
    yield from (finding for finding, _ in _broken_links(core))
    for link in core.index.links():
        if link.path is not None and link.ambiguous:
            message = f"[[{link.target}]] could mean {', '.join(map(name_of, link.ambiguous))}"
            hint = f"It is taken for {name_of(link.path)}. A folder before the name says which is meant."
            yield Finding("links", "note", link.source, message, hint, link.line, link.ambiguous)


def plan_mending(core: Core, findings: tuple[Finding, ...], only: Collection[str]) -> Mending:
    """All that can be mended in what was found, as one change. Writes nothing."""
    aims: dict[str, dict[str, Aim]] = {}
    for finding, aim in _broken_links(core) if not only or "links" in only else ():
        if aim is not None:
            aims.setdefault(finding.path, {})[aim[0]] = aim[1]
    named, changes, unmended = named_in_memory(core.index.files()), dict[str, Mend](), list[str]()
    for path in sorted(aims):
        try:
            core.vault.access.check(path, asked=True)
            file = core.vault.read(path)
            note = read_note(file.data)
            note.must_be_editable(path)
        except SimplememError as error:
            unmended.append(error.message)
            continue
        text = lead_links(note, path, aims[path], named, core.conventions.link_format)
        nowhere = {link.target for link in read_note(text.encode()).links if not resolve(link.target, path, named).path}
        what = [
            f"[[{target}]] leads to {name_of(aim.path)}" for target, aim in aims[path].items() if target not in nowhere
        ]
        stuck = nowhere & aims[path].keys()
        unmended += [f"{path}: [[{target}]] can be written in no way that leads there" for target in sorted(stuck)]
        if what:
            diff = unified_diff(file.data, text.encode(), (path, path), most=None)
            changes[path] = Mend(path, tuple(what), diff, file.sha256, text)
    left = tuple(each for each in findings if not each.fix or each.path not in changes)
    return Mending(findings, left, tuple(changes.values()), tuple(unmended))


def mend(core: Core, mending: Mending, change: Change) -> Mended:
    """Do what was planned. Conflict, and nothing is done, when one of the notes has changed since."""
    if not mending.changes:
        return Mended("", (), mending.unmended)
    core.must_be_writable()
    wishes = [Wish.update(each.path, each.sha256, each.text.encode()) for each in mending.changes]
    with core.vault.lock():
        written, warnings = carry_out(core, wishes, change)
    return Mended(written[0].version, tuple(each.path for each in written), (*mending.unmended, *warnings))


# -- what a broken link may mean


class _Likely(NamedTuple):
    """What a link may mean, the likeliest first; where it clearly leads; and how that is known, or what became of it."""

    paths: tuple[str, ...] = ()
    aim: Aim | None = None
    why: str = ""


def _broken_links(core: Core) -> Iterator[tuple[Finding, tuple[str, Aim] | None]]:
    """Each broken link, and the target that it shall lead elsewhere where that is sure. What a conflict copy says, its note
    says as well; `[[{{title}}]]` in a template is no link yet."""
    targets = _LikelyTargets(core)
    closed = {row["path"] for row in core.index.counts()["problems"]}
    for link in core.index.links():
        if link.path is not None or "{{" in link.target or link.source in targets.copies:
            continue
        paths, aim, why = targets.of(link.target, link.source)
        names = tuple(map(name_of, paths))
        message = f"[[{link.target}]] leads nowhere" + (f": {why}" if why else "")
        sure = aim is not None and link.source not in closed
        hint = f"Perhaps {' or '.join(names)}." if names and not sure else ""
        fix = f"lead [[{link.target}]] to {names[0]}" if sure else ""
        level: Literal["warning", "note"] = "warning" if names or why else "note"
        finding = Finding("links", level, link.source, message, hint, link.line, names, fix)
        yield finding, (link.target, aim) if aim is not None and sure else None


class _LikelyTargets:
    """What broken links may mean, in one vault. Asked for the same target again, it knows."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.copies = {path for path, row in core.index.known().items() if row.is_copy}
        self._files = core.index.files() - self.copies
        self._named_now = named_in_memory(self._files)
        named_once = {path for each in core.changes.recent() for path in (each.path, each.new_path) if path}
        self._named_then = named_in_memory(named_once - self._files)
        self._by_loose_name: dict[str, list[str]] = {}
        for path in sorted(self._files):
            self._by_loose_name.setdefault(_loose(base_name(path)), []).append(path)
        self._known: dict[tuple[str, str], _Likely] = {}
        self._asked = 0

    def of(self, target: str, source: str) -> _Likely:
        """What `[[target]]` in the note `source` may mean: by the history first, then by names, aliases and titles."""
        key = (target, source.rpartition("/")[0])
        if key not in self._known:
            self._known[key] = self._by_history(target, source) or self._by_name(target)
        return self._known[key]

    def _by_history(self, target: str, source: str) -> _Likely | None:
        """Where the note is now that the link once meant, as far as the log tells; None when that is not certain."""
        was = resolve(target, source, self._named_then).path
        changes = self._core.changes.lineage(was) if was is not None else []
        if was is None or not changes:
            return None
        last = changes[0]
        now = last.new_path or last.path
        if last.after is None:
            why = f"{name_of(last.path)} was deleted in {last.id}, `simplemem undo {last.id}` brings it back"
            return _Likely(self._near(target), None, why)
        if now in self._files and now != was:
            moved = next((change for change in changes if change.new_path == now), last)
            return _Likely((now,), Aim(now, was), f"it was moved to {name_of(now)} in {moved.id}")
        return None

    def _by_name(self, target: str) -> _Likely:
        """The one file that bears this very name, elsewhere, or has it as an alias or a title."""
        named = self._named(target)
        is_whole = not self._core.vault.access.hidden  # else the link may well lead to what is not seen from here
        if is_whole and len(named) == 1 and compare_key(base_name(target)) not in _COMMON_NAMES:
            ((path, how),) = named.items()
            return _Likely((path,), Aim(path, path if how == "name" else ""), f"{_WHY[how]} {name_of(path)}")
        return _Likely(self._near(target))

    def _named(self, target: str) -> dict[str, str]:
        key = name_key(target)
        found = dict.fromkeys(self._named_now(key) or self._named_now(key + ".md"), "name")
        _, _, titled, with_alias = self._core.index.called(compare_key(base_name(target)))
        for how, paths in (("alias", with_alias), ("title", titled)):
            found |= dict.fromkeys((path for path in paths if path not in found and path not in self.copies), how)
        return found

    def _near(self, target: str) -> tuple[str, ...]:
        """The files of that very name, then those whose name is the same but for accents, spaces and marks, or a slip."""
        loose = _loose(base_name(target))
        near = self._by_loose_name.get(loose, [])
        if loose and not near and self._asked < _MOST_ASKED:
            self._asked += 1
            # "Chapter 1" is no slip for "Chapter 2", nor one day for another.
            digits = list(filter(str.isdigit, loose))
            like = [name for name in self._by_loose_name if abs(len(name) - len(loose)) < 4]
            like = [name for name in like if list(filter(str.isdigit, name)) == digits]
            near = [path for name in get_close_matches(loose, like, _MOST, _LIKE) for path in self._by_loose_name[name]]
        return tuple(dict.fromkeys((*self._named(target), *near)))[:_MOST]


def _loose(name: str) -> str:
    """A name without case, accents, spaces and marks."""
    return "".join(char for char in unicodedata.normalize("NFKD", name).casefold() if char.isalnum())
