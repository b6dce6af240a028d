"""The doctor: what is wrong with a vault, its index, or the disk they are on. It looks, and changes nothing.

Each check gives its findings one by one. Links, and what of them can be mended, are in `mending.py`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path
from textwrap import shorten

from simplemem.errors import Invalid, SimplememError
from simplemem.index.audit import Difference, differences
from simplemem.index.notes import stat_of
from simplemem.index.reconcile import Progress
from simplemem.memory import Finding
from simplemem.note.secrets import find_secrets
from simplemem.store.conflicts import conflict_copies
from simplemem.store.core import Core
from simplemem.store.mending import check_links
from simplemem.vault.place import file_system, is_shared, leaves_out_sidecar, synced_by

_SHOWN = 20  # rows in which two indexes differ
_PLACE = re.compile(r" \(line (\d+), column (\d+)\)$")
_SERVED = "served and searched, but not changed by any tool"
_ANEW = "`simplemem index --rebuild` makes it anew"
_ELSEWHERE = "Put it on this computer alone: `--db` when serving, or $SIMPLEMEM_DB for every command."


def examine(core: Core, only: Collection[str], progress: Progress | None) -> Iterator[Finding]:
    """What the checks find, in their order: those in `only`, or all. Of a damaged index nothing but that is asked."""
    for name in sorted(set(only) - CHECKS.keys()):
        near = difflib.get_close_matches(name, CHECKS, 1)
        hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(CHECKS)}."
        raise Invalid(f"there is no check {name!r}", hint=hint)
    tell = progress or (lambda _stage, _done, _total: None)
    for name, check in CHECKS.items():
        found = list(check(core, tell)) if not only or name in only else []
        yield from found
        if any("damaged" in finding.message for finding in found if name == "index"):
            return


# -- notes


def _check_headers(core: Core, _: Progress) -> Iterator[Finding]:
    for row in core.index.counts()["problems"]:
        if row["problem"].startswith("its header"):
            place, why = _PLACE.search(row["problem"]), _PLACE.sub("", row["problem"])
            line = int(place[1]) if place else 0
            yield Finding("headers", "warning", row["path"], f"{why}; {_SERVED}", "Mend it in an editor.", line)


def _check_notes(core: Core, _: Progress) -> Iterator[Finding]:
    for path, why in core.not_indexed():
        hint = "Split it, or raise the setting index.max_note_mb." if why.endswith("are not indexed") else ""
        yield Finding("notes", "warning", path, why, hint)
    for row in core.index.counts()["problems"]:
        if not row["problem"].startswith("its header"):
            hint = "Save it as UTF-8 in an editor; if it is no text, it wants another extension than .md."
            yield Finding("notes", "warning", row["path"], row["problem"], hint)


def _check_conflicts(core: Core, _: Progress) -> Iterator[Finding]:
    for copy in conflict_copies(core):
        whose = f"a conflict copy of {copy.of} by {copy.maker}"
        hint = "`simplemem conflicts` shows what differs, and merges the two."
        yield Finding("conflicts", "warning", copy.path, whose, hint)


def _check_secrets(core: Core, tell: Progress) -> Iterator[Finding]:
    """Their kind and line, never what they are; only a name has to be shown, to say which note it is."""
    hint = "Keep it in a password manager, write here where it is, and renew it: it may have been copied and sent."
    notes = [entry for entry in core.vault.scan() if entry.path.casefold().endswith(".md")]
    for done, entry in enumerate(notes):
        if done % 250 == 0:
            tell("secrets", done, len(notes))
        text = ""
        with suppress(SimplememError, OSError):  # another check tells of what cannot be read
            if entry.size <= core.settings.max_note_bytes:
                text = core.vault.read(entry.path).data.decode("utf-8", "replace")
        for secret in find_secrets(entry.path[:-3]):
            message = f"its name holds a {secret.kind}: {secret.shown}"
            yield Finding("secrets", "warning", entry.path, message, hint)
        for secret in find_secrets(text)[:20]:  # a dump of keys is one finding too many
            yield Finding("secrets", "warning", entry.path, f"{secret.kind}: {secret.shown}", hint, secret.line)


# -- what the vault is on


def _check_place(core: Core, _: Progress) -> Iterator[Finding]:
    """A vault that something else carries to other computers. The notes are safe there; the index is better elsewhere."""
    root, index = core.vault.root, Path(core.index.path)
    service, inside = synced_by(root), index.resolve().is_relative_to(root.resolve())
    if service and inside and not (service == "Syncthing" and leaves_out_sidecar(root)):
        message = f"the vault is in a folder of {service}, and its index with it, which other computers may overwrite"
        yield Finding("place", "warning", "", message, _ELSEWHERE)
    elif service:
        message = f"the vault is in a folder of {service}: the lock that keeps writers apart holds on one computer only"
        yield Finding("place", "note", "", message, "Notes changed on two computers at once come as conflict copies.")
    yield from on_disks(file_system(str(root)), file_system(str(index.parent)))


def on_disks(of_vault: str, of_index: str) -> Iterator[Finding]:
    """What the kinds of disk mean that the vault and its index are on."""
    if is_shared(of_vault):
        message = f"the vault is on a {of_vault} disk: what other computers change is looked for, and not announced"
        yield Finding("place", "note", "", message, "The lock that keeps writers apart may not hold between computers.")
    if is_shared(of_index):
        message = f"the index is on a {of_index} disk, where SQLite cannot keep several computers apart"
        yield Finding("place", "warning", "", message, _ELSEWHERE)


# -- the index


def _check_index(core: Core, tell: Progress) -> Iterator[Finding]:
    """The promise: rebuilt beside itself it is equal, row for row; but for the vectors, which are dear to make again."""
    damage = core.index.database.check()
    for problem in damage:
        yield Finding("index", "error", "", f"the index is damaged: {problem}", f"{_ANEW}.")
    for here, there in _differences(core, tell) if not damage else ():
        row = here or there or ("", "")
        ours, theirs = ("nothing" if each is None else shorten(repr(each), 160) for each in (here, there))
        message = f"the index holds {ours} where a rebuilt one holds {theirs}"
        path = str(row[1]) if len(row) > 1 else ""
        yield Finding("index", "error", path, message, f"{_ANEW}; please report how it came to this.")


def _differences(core: Core, tell: Progress) -> list[Difference]:
    """The first rows in which our index is not what one made anew beside it is, which is gone afterwards."""
    core.changes.newest()  # the table of changes has all that is in the log
    before = {entry.path for entry in core.vault.scan()}  # what lies there before anything is read
    rebuilt = core.index.build_beside()
    fresh = core.sync_of(rebuilt)

    def compared() -> list[Difference]:
        with core.index.database.reading() as ours, rebuilt.reading() as theirs:
            return list(islice(differences(ours, theirs, vectors=False), _SHOWN))

    try:
        fresh.scan(tell)
        found = compared()
        # What another program changed since our index, or the one beside it, was updated is no difference.
        now = {entry.path: stat_of(entry) for entry in core.vault.scan()} if found else {}
        changed = {path for path, row in core.index.known().items() if now.get(path) != row.stat} if found else set()
        if found and (changed := changed | fresh.scan().changed() | (now.keys() ^ before)):
            # Under the lock nobody writes through simplemem, and both are brought up to that moment.
            with nullcontext() if core.vault.read_only else core.vault.lock():
                core.look_at(changed)
                fresh.scan(tell)
                found = compared()
        return found
    finally:
        rebuilt.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{rebuilt.path}{suffix}").unlink(missing_ok=True)


CHECKS: Mapping[str, Callable[[Core, Progress], Iterator[Finding]]] = {
    "index": _check_index,
    "headers": _check_headers,
    "notes": _check_notes,
    "links": check_links,
    "conflicts": _check_conflicts,
    "secrets": _check_secrets,
    "place": _check_place,
}
