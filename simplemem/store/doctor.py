"""Find what is wrong with a vault, its index, or the disk that they are on. Changes no note.

How broken links are fixed is in `link_fixes`.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import nullcontext, suppress
from itertools import islice
from pathlib import Path
from textwrap import shorten

from simplemem.errors import Invalid, SimplememError
from simplemem.index.comparison import RowDifference, differences
from simplemem.index.door import Progress
from simplemem.index.engine import Engine
from simplemem.index.sync import Sync
from simplemem.models import Finding
from simplemem.note.names import name_of
from simplemem.store.broken_links import find_broken_links
from simplemem.store.core import Core
from simplemem.vault.folder.file_systems import SHARED, file_system

_MAX_DIFFERENCES = 20  # between the index and a rebuilt one
_MAX_ROW_SHOWN = 160  # characters
_MAX_SECRETS_PER_NOTE = 20  # a file full of keys needs no finding for each
_NOTES_PER_STEP = 250  # after which the progress is reported

_POSITION = re.compile(r" \(line (?P<line>\d+), column \d+\)$")
# How the problem of a note begins if its frontmatter cannot be read. The second one is in indexes
# that an older version made.
_UNREADABLE_FRONTMATTER = ("its frontmatter", "its header")
_SYNC_SERVICE = re.compile(
    r"/(?P<service>Dropbox|OneDrive|iCloud ?Drive|Mobile Documents|Google ?Drive|My Drive"
    r"|CloudStorage|Nextcloud)([ (-][^/]*)?(/|$)"
)
_REBUILD = "`simplemem index --rebuild` rebuilds it"
_MOVE_INDEX = (
    "Put the index on a local disk: with `--db` when serving,"
    " or with $SIMPLEMEM_DB for every command."
)


def examine(
    core: Core, progress: Progress | None = None, *, only: Collection[str] = ()
) -> tuple[Finding, ...]:
    """Return what is wrong with the vault, its index or their disk. Changes no note.

    Runs all checks, or those in `only`. If the index is damaged, the checks after that are left
    out, as they would ask it. Raises Invalid for an unknown check.
    """
    for name in sorted(set(only) - CHECKS.keys()):
        raise Invalid(f"no check called {name!r}", hint=f"The checks are {', '.join(CHECKS)}.")

    report = progress or _ignore_progress
    findings = list[Finding]()
    for name, check in CHECKS.items():
        if not only or name in only:
            findings += [finding for finding in check(core, report) if finding.check == name]
        if name == "index" and any("damaged" in finding.message for finding in findings):
            break
    return tuple(findings)


def _ignore_progress(_stage: str, _done: int, _total: int) -> None:
    pass


def _warning(check: str, path: str, message: str, hint: str = "", line: int = 0) -> Finding:
    return Finding(check, "warning", path, message, hint, line)


def _remark(check: str, message: str, hint: str) -> Finding:
    """Return a finding about the whole vault that asks for nothing."""
    return Finding(check, "note", "", message, hint)


def _check_notes(core: Core, _: Progress) -> Iterator[Finding]:
    """Find notes that cannot be indexed, or whose frontmatter cannot be read."""
    for path, reason in core.not_indexed():
        hint = ""
        if reason.endswith("are not indexed"):  # a size
            hint = "Split it, or raise the setting index.max_note_mb."
        yield _warning("notes", path, reason, hint)

    for row in core.index.counts()["problems"]:
        path = row["path"]
        problem = row["problem"]
        if problem.startswith(_UNREADABLE_FRONTMATTER):
            yield _unreadable_frontmatter(path, problem)
        else:
            hint = (
                "Save it as UTF-8 in an editor."
                " If it is not text, give it an extension other than .md."
            )
            yield _warning("notes", path, problem, hint)


def _unreadable_frontmatter(path: str, problem: str) -> Finding:
    position = _POSITION.search(problem)
    line = int(position["line"]) if position is not None else 0
    reason = _POSITION.sub("", problem)
    message = f"{reason}; the note can still be read and found, but not changed"
    return _warning("headers", path, message, "Fix it in an editor.", line)


def _check_conflicts(core: Core, _: Progress) -> Iterator[Finding]:
    """Find files that a synchroniser left beside a note."""
    hint = "`simplemem conflicts merge` merges the two; --dry-run shows the differences."
    for copy in core.parts.conflicts.copies():
        message = f"a conflict copy of {copy.of} by {copy.maker}"
        yield _warning("conflicts", copy.path, message, hint)


def _check_secrets(core: Core, report: Progress) -> Iterator[Finding]:
    """Find secrets in notes and their names. A finding never shows the secret itself."""
    # Its patterns take a moment to compile.
    from simplemem.note.secrets import find_secrets

    hint = (
        "Revoke this secret, because it may have been copied,"
        " and keep the new one in a password manager."
    )
    notes = [entry for entry in core.vault.scan() if entry.path.casefold().endswith(".md")]
    with core.vault.reading() as read:
        for number, entry in enumerate(notes):
            if number % _NOTES_PER_STEP == 0:
                report("secrets", number, len(notes))

            text = ""
            with suppress(SimplememError, OSError):  # another check finds what cannot be read
                if entry.size <= core.settings.max_note_bytes:
                    text = read(entry.path).data.decode("utf-8", "replace")

            for secret in find_secrets(entry.path[:-3]):
                message = f"its name contains a {secret.kind}: {secret.shown}"
                yield _warning("secrets", entry.path, message, hint)
            for secret in find_secrets(text)[:_MAX_SECRETS_PER_NOTE]:
                message = f"{secret.kind}: {secret.shown}"
                yield _warning("secrets", entry.path, message, hint, secret.line)


def _check_place(core: Core, _: Progress) -> Iterator[Finding]:
    """Find a vault or index that other computers write too, and say where an index server is.

    Notes are safe on a shared disk, an SQLite index is not.
    """
    is_index_local = not core.settings.index.engine
    if not is_index_local:
        yield _place_of_index(core)
    yield from _check_synced_folder(core, is_index_local=is_index_local)
    yield from _check_network_disk(core, is_index_local=is_index_local)


def _place_of_index(core: Core) -> Finding:
    tables = core.index.database
    seconds = time.monotonic() - core.compared_at
    message = (
        f"the index is in {tables.engine}, {tables.size() / 1e6:.1f} MB,"
        f" compared with the notes {seconds:.0f} s ago: {tables.place}"
    )
    hint = "Back up the notes and `.simplemem/`, which contains the history and the trash."
    return _remark("place", message, hint)


def _check_synced_folder(core: Core, *, is_index_local: bool) -> Iterator[Finding]:
    """Find a vault in a folder that a service copies to other computers."""
    root = core.vault.root
    service = _sync_service_of(root)
    if not service:
        return

    is_index_inside = Path(core.index.path).resolve().is_relative_to(root.resolve())
    if is_index_local and is_index_inside:
        message = (
            f"the vault and its index are in a synced folder ({service}),"
            " so other computers may overwrite the index"
        )
        yield _warning("place", "", message, _MOVE_INDEX)
    else:
        message = (
            f"the vault is in a synced folder ({service}):"
            " the lock protects it from writers on this computer only"
        )
        hint = "If a note is changed on two computers at once, a conflict copy appears."
        yield _remark("place", message, hint)


def _sync_service_of(root: Path) -> str:
    """Return the service that copies a folder to other computers; "" if none is recognised."""
    if any((folder / ".stfolder").exists() for folder in (root, *root.parents)):
        return "Syncthing"
    match = _SYNC_SERVICE.search(root.as_posix())
    return match["service"] if match is not None else ""


def _check_network_disk(core: Core, *, is_index_local: bool) -> Iterator[Finding]:
    """Find a vault or an SQLite index on a disk of another computer."""
    vault_disk = file_system(str(core.vault.root))
    if vault_disk in SHARED:
        message = (
            f"the vault is on a disk of type {vault_disk}:"
            " simplemem polls for changes that other computers make"
        )
        hint = "The lock may not protect the vault from writers on other computers."
        yield _remark("place", message, hint)

    index_disk = file_system(str(Path(core.index.path).parent))
    if is_index_local and index_disk in SHARED:
        message = (
            f"the index is on a disk of type {index_disk},"
            " where SQLite cannot protect it from other computers"
        )
        yield _warning("place", "", message, _MOVE_INDEX)


def _check_git(core: Core, _: Progress) -> Iterator[Finding]:
    """Find commits that were not exchanged with the remote."""
    state = core.committing.state()
    ahead = state.get("ahead")
    behind = state.get("behind")
    if ahead or behind:
        message = (
            f"commits not yet exchanged with {state['remote']}: {ahead} local, {behind} remote"
        )
        yield _remark("git", message, "`simplemem sync` exchanges them.")


def _check_index(core: Core, report: Progress) -> Iterator[Finding]:
    """Find damage of the index, or rows that differ from those of a rebuilt one.

    Vectors are not compared, as it costs much to make them again.
    """
    damage = core.index.database.check()
    for problem in damage:
        message = f"the index is damaged: {problem}"
        yield Finding("index", "error", "", message, f"{_REBUILD}.")
    if damage:
        return

    core.changes.newest()  # the table of changes follows the log
    rebuilt = core.index.database.beside()
    rows = core.sync_of(rebuilt)
    rows.waiting = None  # no vectors are made
    try:
        unequal_rows = _compare_indexes(core, rebuilt, rows, report)
        if unequal_rows:
            # Perhaps because of a write meanwhile: compare them again while nobody writes.
            with nullcontext() if core.vault.read_only else core.vault.lock():
                core.compare_all()
                unequal_rows = _compare_indexes(core, rebuilt, rows, report)
    finally:
        rebuilt.drop()
    for difference in unequal_rows:
        yield _unequal_row(difference)


def _compare_indexes(
    core: Core, rebuilt: Engine, rows: Sync, report: Progress
) -> list[RowDifference]:
    """Bring the rebuilt index up to date, and return where it differs from the current one."""
    rows.scan(report)
    with core.index.database.reading() as ours, rebuilt.reading() as theirs:
        return list(islice(differences(ours, theirs, vectors=False), _MAX_DIFFERENCES))


def _unequal_row(difference: RowDifference) -> Finding:
    current, rebuilt = difference
    message = (
        f"the index contains {_show_row(current)} where a rebuilt index contains"
        f" {_show_row(rebuilt)}"
    )
    row = current or rebuilt or ()
    path = str(row[1]) if len(row) > 1 else ""  # after the name of the table
    return Finding("index", "error", path, message, f"{_REBUILD}. Please report this bug.")


def _show_row(row: tuple[object, ...] | None) -> str:
    return "nothing" if row is None else shorten(repr(row), _MAX_ROW_SHOWN)


def _check_links(core: Core, _: Progress) -> Iterator[Finding]:
    """Find broken links, with what they may mean, and links that could mean several files."""
    for broken_link in find_broken_links(core):
        yield broken_link.finding

    for link in core.index.links():
        if link.path is None or not link.ambiguous:
            continue
        names = ", ".join(name_of(path) for path in link.ambiguous)
        hint = (
            f"It resolves to {name_of(link.path)}."
            " Put a folder before the name to choose another note."
        )
        yield Finding(
            check="links",
            level="note",
            path=link.source,
            message=f"[[{link.target}]] could mean {names}",
            hint=hint,
            line=link.line,
            candidates=link.ambiguous,
        )


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
