"""The doctor: what is wrong with a vault, its index, or the disk they are on, and mending the links that lead nowhere.
It changes nothing unless asked, and then only what is sure: what merely looks alike is offered, never taken."""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path
from textwrap import shorten
from typing import Literal, Unpack

from simplemem.errors import Invalid, SimplememError
from simplemem.index.audit import Difference, differences
from simplemem.index.door import Progress
from simplemem.index.notes import named_in_memory
from simplemem.models import By, Finding, Mend, Mended, Mending
from simplemem.note.diff import unified_diff
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.note.note import read_note
from simplemem.obsidian.link_edits import LinkTarget, redirect_links
from simplemem.obsidian.links import name_key, resolve_link
from simplemem.store.core import Core, change_by
from simplemem.vault.folder.vault import FileChange
from simplemem.vault.folder.watch import SHARED, file_system

_PLACE = re.compile(r" \(line (\d+), column (\d+)\)$")
_ANEW = "`simplemem index --rebuild` rebuilds it"
_ELSEWHERE = "Put the index on a local disk: with `--db` when serving, or with $SIMPLEMEM_DB for every command."
_SYNCED = re.compile(
    r"/(Dropbox|OneDrive|iCloud ?Drive|Mobile Documents|Google ?Drive|My Drive|CloudStorage|Nextcloud)([ (-][^/]*)?(/|$)"
)
# Names that many folders have: the one that is elsewhere is not the one that was meant.
_COMMON_NAMES = frozenset(
    {"readme", "index", "untitled", "home", "notes", "note", "todo", "inbox", "log", "template"}
)
_WHY = {
    "name": "the only file of that name is",
    "alias": "it is an alias of",
    "title": "it is the title of",
}
# How `problem` of a note begins where its frontmatter cannot be read; the latter in indexes of older versions.
_UNREADABLE_FRONTMATTER = ("its frontmatter", "its header")
_MOST = 3  # candidates
_MOST_ASKED = 100  # names that are compared with every other; a vault full of broken links must not take all day


def examine(
    core: Core, progress: Progress | None = None, *, only: Collection[str] = ()
) -> tuple[Finding, ...]:
    """What is wrong with the vault, its index or what they are on, by all checks or those in `only`. Changes no note.
    Of a damaged index nothing but that is asked."""
    for name in sorted(set(only) - CHECKS.keys()):
        raise Invalid(f"no check called {name!r}", hint=f"The checks are {', '.join(CHECKS)}.")
    tell, found = progress or (lambda _stage, _done, _total: None), list[Finding]()
    for name, check in CHECKS.items():
        if not only or name in only:
            found += [each for each in check(core, tell) if each.check == name]
        if name == "index" and any("damaged" in finding.message for finding in found):
            break
    return tuple(found)


def _check_notes(core: Core, _: Progress) -> Iterator[Finding]:
    """Headers that cannot be read, and notes that are no text or too large to be indexed."""
    for path, why in core.not_indexed():
        hint = (
            "Split it, or raise the setting index.max_note_mb."
            if why.endswith("are not indexed")
            else ""
        )
        yield Finding("notes", "warning", path, why, hint)
    for path, problem in ((row["path"], row["problem"]) for row in core.index.counts()["problems"]):
        if problem.startswith(_UNREADABLE_FRONTMATTER):
            place = _PLACE.search(problem)
            why = (
                f"{_PLACE.sub('', problem)}; the note can still be read and found, but not changed"
            )
            yield Finding(
                "headers",
                "warning",
                path,
                why,
                "Fix it in an editor.",
                int(place[1]) if place else 0,
            )
        else:
            hint = "Save it as UTF-8 in an editor. If it is not text, give it an extension other than .md."
            yield Finding("notes", "warning", path, problem, hint)


def _check_conflicts(core: Core, _: Progress) -> Iterator[Finding]:
    for copy in core.parts.conflicts.copies():
        hint = "`simplemem conflicts merge` merges the two; --dry-run shows the differences."
        yield Finding(
            "conflicts", "warning", copy.path, f"a conflict copy of {copy.of} by {copy.maker}", hint
        )


def _check_secrets(core: Core, tell: Progress) -> Iterator[Finding]:
    """Their kind and line, never what they are; only a name has to be shown, to say which note it is."""
    from simplemem.note.secrets import find_secrets  # its patterns take a moment

    hint = "Revoke this secret, because it may have been copied, and keep the new one in a password manager."
    notes = [entry for entry in core.vault.scan() if entry.path.casefold().endswith(".md")]
    with core.vault.reading() as read:
        for done, entry in enumerate(notes):
            if done % 250 == 0:
                tell("secrets", done, len(notes))
            text = ""
            with suppress(SimplememError, OSError):  # another check tells of what cannot be read
                if entry.size <= core.settings.max_note_bytes:
                    text = read(entry.path).data.decode("utf-8", "replace")
            for secret in find_secrets(entry.path[:-3]):
                yield Finding(
                    "secrets",
                    "warning",
                    entry.path,
                    f"its name contains a {secret.kind}: {secret.shown}",
                    hint,
                )
            for secret in find_secrets(text)[:20]:  # a dump of keys is one finding too many
                yield Finding(
                    "secrets",
                    "warning",
                    entry.path,
                    f"{secret.kind}: {secret.shown}",
                    hint,
                    secret.line,
                )


def _check_place(core: Core, _: Progress) -> Iterator[Finding]:
    """A vault that something else carries to other computers. The notes are safe there, the index is not."""
    root, index, tables = core.vault.root, Path(core.index.path), core.index.database
    is_here = not core.settings.index.engine
    if not is_here:
        ago = f"compared with the notes {time.monotonic() - core.compared_at:.0f} s ago"
        message = (
            f"the index is in {tables.engine}, {tables.size() / 1e6:.1f} MB, {ago}: {tables.place}"
        )
        yield Finding(
            "place",
            "note",
            "",
            message,
            "Back up the notes and `.simplemem/`, which contains the history and the trash.",
        )
    by_name, inside = (
        _SYNCED.search(root.as_posix()),
        is_here and index.resolve().is_relative_to(root.resolve()),
    )
    has_mark = any((above / ".stfolder").exists() for above in (root, *root.parents))
    service = "Syncthing" if has_mark else by_name[1] if by_name is not None else ""
    if service and inside:
        message = f"the vault and its index are in a synced folder ({service}), so other computers may overwrite the index"
        yield Finding("place", "warning", "", message, _ELSEWHERE)
    elif service:
        message = f"the vault is in a synced folder ({service}): the lock protects it from writers on this computer only"
        yield Finding(
            "place",
            "note",
            "",
            message,
            "If a note is changed on two computers at once, a conflict copy appears.",
        )
    of_vault, of_index = file_system(str(root)), file_system(str(index.parent))
    if of_vault in SHARED:
        message = f"the vault is on a disk of type {of_vault}: simplemem polls for changes that other computers make"
        yield Finding(
            "place",
            "note",
            "",
            message,
            "The lock may not protect the vault from writers on other computers.",
        )
    if is_here and of_index in SHARED:
        message = f"the index is on a disk of type {of_index}, where SQLite cannot protect it from other computers"
        yield Finding("place", "warning", "", message, _ELSEWHERE)


def _check_git(core: Core, _: Progress) -> Iterator[Finding]:
    state = core.committing.state()
    if state.get("ahead") or state.get("behind"):
        message = "commits not yet exchanged with {remote}: {ahead} local, {behind} remote".format(
            **state
        )
        yield Finding("git", "note", "", message, "`simplemem sync` exchanges them.")


def _check_index(core: Core, tell: Progress) -> Iterator[Finding]:
    """Rebuilt beside itself it is equal, row for row; but for the vectors, which are dear to make again."""
    damage = core.index.database.check()
    for problem in damage:
        yield Finding("index", "error", "", f"the index is damaged: {problem}", f"{_ANEW}.")
    if damage:
        return
    core.changes.newest()  # the table of changes has all that is in the log
    rebuilt = core.index.database.beside()
    fresh = core.sync_of(rebuilt)
    fresh.waiting = None  # no vectors are made of it

    def compared() -> list[Difference]:
        fresh.scan(tell)
        with core.index.database.reading() as ours, rebuilt.reading() as theirs:
            return list(islice(differences(ours, theirs, vectors=False), 20))

    try:
        if (
            found := compared()
        ):  # perhaps by what was written meanwhile: both are brought up to one moment of rest
            with nullcontext() if core.vault.read_only else core.vault.lock():
                core.compare_all()
                found = compared()
    finally:
        rebuilt.drop()
    for here, there in found:
        row = here or there or ("", "")
        ours, theirs = (
            "nothing" if each is None else shorten(repr(each), 160) for each in (here, there)
        )
        message = f"the index contains {ours} where a rebuilt index contains {theirs}"
        path = str(row[1]) if len(row) > 1 else ""
        yield Finding("index", "error", path, message, f"{_ANEW}. Please report this bug.")


def _check_links(core: Core, _: Progress) -> Iterator[Finding]:
    """Broken links with what they may mean, and links that could mean several files."""
    yield from (finding for finding, _ in _broken_links(core))
    for link in core.index.links():
        if link.path is not None and link.ambiguous:
            message = f"[[{link.target}]] could mean {', '.join(map(name_of, link.ambiguous))}"
            hint = f"It resolves to {name_of(link.path)}. Put a folder before the name to choose another note."
            yield Finding("links", "note", link.source, message, hint, link.line, link.ambiguous)


CHECKS: Mapping[str, Callable[[Core, Progress], Iterator[Finding]]] = {
    "index": _check_index,
    "headers": _check_notes,
    "notes": _check_notes,
    "links": _check_links,
    "conflicts": _check_conflicts,
    "secrets": _check_secrets,
    "place": _check_place,
    "git": _check_git,
}


def plan_mending(
    core: Core, progress: Progress | None = None, *, only: Collection[str] = ()
) -> Mending:
    """What `doctor` finds and the broken links among it that can be mended. Writes nothing; `mend` does."""
    findings = examine(core, progress, only=only)
    aims: dict[str, dict[str, LinkTarget]] = {}
    for finding, aim in _broken_links(core) if not only or "links" in only else ():
        if aim is not None:
            aims.setdefault(finding.path, {})[aim[0]] = aim[1]
    named, changes, unmended = named_in_memory(core.index.files()), dict[str, Mend](), list[str]()
    for path in sorted(aims):
        try:
            core.vault.access.check(path, asked=True)
            file = core.vault.read(path)
            note = read_note(file.data)
            note.check_editable(path)
        except SimplememError as error:
            unmended.append(error.message)
            continue
        text = redirect_links(note, path, aims[path], named, core.conventions.link_format)
        nowhere = {
            link.target
            for link in read_note(text.encode()).links
            if not resolve_link(link.target, path, named).path
        }
        what = [
            f"[[{link}]] now leads to {name_of(aim.path)}"
            for link, aim in aims[path].items()
            if link not in nowhere
        ]
        stuck = nowhere & aims[path].keys()
        unmended += [
            f"{path}: [[{target}]] cannot be rewritten to link to its note"
            for target in sorted(stuck)
        ]
        if what:
            diff = unified_diff(file.data, text.encode(), (path, path), most=None)
            changes[path] = Mend(path, tuple(what), diff, file.sha256, text)
    left = tuple(each for each in findings if not each.fix or each.path not in changes)
    return Mending(findings, left, tuple(changes.values()), tuple(unmended))


def mend(core: Core, mending: Mending, **by: Unpack[By]) -> Mended:
    """Do what was planned: all of it as one change, which one `undo` takes back, or nothing. Conflict when one of the
    notes has changed since."""
    if not mending.changes:
        return Mended("", (), mending.unmended)
    core.must_be_writable()
    wishes = [
        FileChange.update(each.path, each.sha256, each.text.encode()) for each in mending.changes
    ]
    by["reason"] = by.get("reason") or "fixed unresolved links"
    with core.vault.lock():
        written, warnings = core.parts.writer.carry_out(wishes, change_by(by, "doctor"))
    return Mended(
        written[0].version, tuple(each.path for each in written), (*mending.unmended, *warnings)
    )


def _broken_links(core: Core) -> Iterator[tuple[Finding, tuple[str, LinkTarget] | None]]:
    """Each broken link, but for those of conflict copies and templates, and where it shall lead if that is sure."""
    targets = _LikelyTargets(core)
    closed = {row["path"] for row in core.index.counts()["problems"]}
    for link in core.index.links():
        if (
            link.path is not None or "{{" in link.target or link.source in targets.copies
        ):  # whose notes say the same
            continue
        paths, aim, why = targets.of(link.target, link.source)
        names = tuple(map(name_of, paths))
        message = f"unresolved link [[{link.target}]]" + (f": {why}" if why else "")
        sure = aim is not None and link.source not in closed
        hint = f"Did you mean {' or '.join(names)}?" if names and not sure else ""
        fix = f"point [[{link.target}]] to {names[0]}" if sure else ""
        level: Literal["warning", "note"] = "warning" if names or why else "note"
        finding = Finding("links", level, link.source, message, hint, link.line, names, fix)
        yield finding, (link.target, aim) if aim is not None and sure else None


class _LikelyTargets:
    """What broken links may mean, in one vault."""

    def __init__(self, core: Core) -> None:
        self._core = core
        self.copies = {path for path, row in core.index.known().items() if row.is_copy}
        self._files = core.index.files() - self.copies
        self._named_now = named_in_memory(self._files)
        named_once = {
            path for each in core.changes.recent() for path in (each.path, each.new_path) if path
        }
        self._named_then = named_in_memory(named_once - self._files)
        self._bare: dict[str, list[str]] = {}  # by their names without a folder
        for path in sorted(self._files):
            self._bare.setdefault(compare_key(base_name(path)), []).append(path)
        self._slips: dict[str, list[str]] = {}  # of the names that were asked for

    def of(self, target: str, source: str) -> tuple[tuple[str, ...], LinkTarget | None, str]:
        """What `[[target]]` in the note `source` may mean: by the history first, then by names, aliases and titles. The
        likeliest first; where it clearly leads; and how that is known, or what became of it."""
        was = resolve_link(target, source, self._named_then).path
        if was is not None and (changes := self._core.changes.lineage(was)):
            last = changes[0]
            now = last.new_path or last.path
            if last.after is None:
                why = f"{name_of(last.path)} was deleted in {last.id}, and `simplemem undo {last.id}` restores it"
                return self._near(target), None, why
            if now in self._files and now != was:
                moved = next((change for change in changes if change.new_path == now), last)
                return (now,), LinkTarget(now, was), f"it was moved to {name_of(now)} in {moved.id}"
        named = self._named(target)
        is_whole = (
            not self._core.vault.access.is_partial
        )  # else the link may well lead to what is not seen from here
        if is_whole and len(named) == 1 and compare_key(base_name(target)) not in _COMMON_NAMES:
            ((path, how),) = named.items()
            return (
                (path,),
                LinkTarget(path, path if how == "name" else ""),
                f"{_WHY[how]} {name_of(path)}",
            )
        return self._near(target), None, ""

    def _named(self, target: str) -> dict[str, str]:
        """The files that have this very name, and the notes that have it as an alias or a title."""
        key = name_key(target)
        found = dict.fromkeys(self._named_now(key) or self._named_now(key + ".md"), "name")
        _, _, titled, with_alias = self._core.index.called(compare_key(base_name(target)))
        for how, paths in (("alias", with_alias), ("title", titled)):
            found |= dict.fromkeys(
                (path for path in paths if path not in found and path not in self.copies), how
            )
        return found

    def _near(self, target: str) -> tuple[str, ...]:
        """The files of that name, or else those for whose name it may be a slip."""
        named, name = self._named(target), compare_key(base_name(target))
        if not named and name not in self._slips and len(self._slips) < _MOST_ASKED:
            digits = list(
                filter(str.isdigit, name)
            )  # "Chapter 1" is no slip for "Chapter 2", nor one day for another
            like = [each for each in self._bare if abs(len(each) - len(name)) < 4]
            like = [each for each in like if list(filter(str.isdigit, each)) == digits]
            close = difflib.get_close_matches(name, like, _MOST, 0.8)  # letter by letter
            self._slips[name] = [path for each in close for path in self._bare[each]]
        return tuple(named or self._slips.get(name, ()))[:_MOST]
