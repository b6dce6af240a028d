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
from typing import Final

from simplemem.errors import Invalid, SimplememError
from simplemem.index.api import Progress
from simplemem.index.changes import ChangeTable
from simplemem.index.comparison import RowDifference, differences
from simplemem.index.engine import Engine
from simplemem.index.service import IndexService
from simplemem.index.updater import IndexUpdater
from simplemem.models import Finding
from simplemem.note.names import name_of
from simplemem.store.broken_links import BrokenLinkFinder
from simplemem.store.committing import Committing
from simplemem.store.conflicts import ConflictCopies
from simplemem.store.vault_index import IndexKeeper, IndexMonitor, ObsidianSettingsCache
from simplemem.vault.folder.file_systems import SHARED, file_system
from simplemem.vault.source import NoteSource

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


# The names of the checks, in their order.
CHECKS: Final = (
    "index",
    "headers",
    "notes",
    "links",
    "conflicts",
    "secrets",
    "place",
    "git",
)


class Doctor:
    """Runs the checks of a vault. Guards no state of its own."""

    def __init__(
        self,
        *,
        notes: NoteChecks,
        links: LinkChecks,
        place: PlaceChecks,
        index: IndexChecks,
        conflicts: ConflictCopies,
        committing: Committing,
    ) -> None:
        self._conflicts = conflicts
        self._committing = committing
        self._checks: Mapping[str, Callable[[Progress], Iterator[Finding]]] = {
            "index": index.check_index,
            "headers": notes.check_notes,
            "notes": notes.check_notes,
            "links": links.check_links,
            "conflicts": self._check_conflicts,
            "secrets": notes.check_secrets,
            "place": place.check_place,
            "git": self._check_git,
        }

    def examine(
        self, progress: Progress | None = None, *, only: Collection[str] = ()
    ) -> tuple[Finding, ...]:
        """Return what is wrong with the vault, its index or their disk. Changes no note.

        Runs the checks in `only`, or all of them if it is empty, and returns what they find in the
        order of `CHECKS`. `progress` is called while notes are read. The check "index" may bring
        the index up to date. If it finds the index damaged, the checks after it are left out, as
        they would read the index. Raises Invalid for an unknown check.
        """
        for name in sorted(set(only) - set(CHECKS)):
            names = ", ".join(CHECKS)
            raise Invalid(f"no check called {name!r}", hint=f"The checks are {names}.")

        report = progress or _ignore_progress
        findings = list[Finding]()
        for name in CHECKS:
            if not only or name in only:
                check = self._checks[name]
                findings += [finding for finding in check(report) if finding.check == name]
            # `check_index` says "damaged" in its findings if the index cannot be read.
            if name == "index" and any("damaged" in finding.message for finding in findings):
                break
        return tuple(findings)

    def _check_conflicts(self, _: Progress) -> Iterator[Finding]:
        """Yield a warning for each file that a synchroniser left beside a note. Changes nothing."""
        hint = "`simplemem conflicts merge` merges the two; --dry-run shows the differences."
        for copy in self._conflicts.copies():
            message = f"a conflict copy of {copy.of} by {copy.maker}"
            yield _warning("conflicts", copy.path, message, hint)

    def _check_git(self, _: Progress) -> Iterator[Finding]:
        """Yield a remark if the branch and its remote have commits that the other lacks.

        Nobody is contacted: the numbers are as of the last exchange. Yields nothing without a
        remote.
        """
        state = self._committing.state()
        only_local = state.get("ahead")
        only_remote = state.get("behind")
        if only_local or only_remote:
            message = (
                f"commits not yet exchanged with {state['remote']}:"
                f" {only_local} local, {only_remote} remote"
            )
            yield _remark("git", message, "`simplemem sync` exchanges them.")


def _ignore_progress(_stage: str, _done: int, _total: int) -> None:
    """Do nothing: the progress callback of a caller that wants none."""


def _warning(check: str, path: str, message: str, hint: str = "", line: int = 0) -> Finding:
    """Return a finding of the level "warning", without a fix."""
    return Finding(check, "warning", path, message, hint, line)


def _remark(check: str, message: str, hint: str) -> Finding:
    """Return a finding of the level "note" about the whole vault, which need not be fixed."""
    return Finding(check, "note", "", message, hint)


class NoteChecks:
    """Checks the notes themselves. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        monitor: IndexMonitor,
        *,
        obsidian: ObsidianSettingsCache,
        max_note_bytes: int,
    ) -> None:
        self._vault = vault
        self._index = index
        self._monitor = monitor
        self._obsidian = obsidian
        self._max_note_bytes = max_note_bytes

    def check_notes(self, _: Progress) -> Iterator[Finding]:
        """Yield warnings for notes that are not indexed, or that cannot be read completely.

        Those on unreadable frontmatter belong to the check "headers", the others to "notes". The
        frontmatter of a template may contain `{{placeholders}}`, so it need not be readable. Reads
        the index and no note.
        """
        settings = self._obsidian.current
        for path, reason in self._monitor.not_indexed():
            hint = ""
            if reason.endswith("are not indexed"):  # because the note is too large
                hint = "Split it, or raise the setting index.max_note_mb."
            yield _warning("notes", path, reason, hint)

        for row in self._index.counts()["problems"]:
            path = row["path"]
            problem = row["problem"]
            if problem.startswith(_UNREADABLE_FRONTMATTER):
                if settings.template_reason(path) is None:
                    is_searched = settings.hidden_reason(path) is None
                    yield _unreadable_frontmatter(path, problem, is_searched=is_searched)
            else:
                hint = (
                    "Save it as UTF-8 in an editor."
                    " If it is not text, give it an extension other than .md."
                )
                yield _warning("notes", path, problem, hint)

    def check_secrets(self, report: Progress) -> Iterator[Finding]:
        """Yield a warning for each secret in a note's name, and for up to 20 in its text.

        A finding never shows the secret itself. Reads every note on the disk; of notes that are too
        large or cannot be read, only the name is searched.
        """
        # Its patterns take a moment to compile.
        from simplemem.note.secrets import find_secrets

        hint = (
            "Revoke this secret, because it may have been copied,"
            " and keep the new one in a password manager."
        )
        notes = [entry for entry in self._vault.scan() if entry.path.casefold().endswith(".md")]
        with self._vault.reading() as read:
            for number, entry in enumerate(notes):
                if number % _NOTES_PER_STEP == 0:
                    report("secrets", number, len(notes))

                text = ""
                with suppress(SimplememError, OSError):  # another check finds what cannot be read
                    if entry.size <= self._max_note_bytes:
                        text = read(entry.path).data.decode("utf-8", "replace")

                for secret in find_secrets(entry.path[:-3]):
                    message = f"its name contains a {secret.kind}: {secret.shown}"
                    yield _warning("secrets", entry.path, message, hint)
                for secret in find_secrets(text)[:_MAX_SECRETS_PER_NOTE]:
                    message = f"{secret.kind}: {secret.shown}"
                    yield _warning("secrets", entry.path, message, hint, secret.line)


def _unreadable_frontmatter(path: str, problem: str, *, is_searched: bool) -> Finding:
    """Return the warning that the frontmatter of a note cannot be read.

    `problem` is that of the index; the line in it becomes that of the finding, 0 if it names none.
    `is_searched` says whether searches find the note.
    """
    position = _POSITION.search(problem)
    line = int(position["line"]) if position is not None else 0
    reason = _POSITION.sub("", problem)
    uses = "read and found" if is_searched else "read"
    message = f"{reason}; the note can still be {uses}, but not changed"
    return _warning("headers", path, message, "Fix it in an editor.", line)


class PlaceChecks:
    """Checks where a vault and its index are. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        index: IndexService,
        database: Engine,
        keeper: IndexKeeper,
        *,
        is_index_local: bool,
    ) -> None:
        self._vault = vault
        self._index = index
        self._database = database
        self._keeper = keeper
        self._is_index_local = is_index_local

    def check_place(self, _: Progress) -> Iterator[Finding]:
        """Yield findings about the folder, disk or server that the vault and its index are on.

        A finding is a warning if other computers may damage an SQLite index, else a remark, as
        notes are safe on a shared disk. For an index in a database server, there is always a remark
        that says where it is.
        """
        if not self._is_index_local:
            yield self._place_of_index()
        yield from self._check_synced_folder()
        yield from self._check_network_disk()

    def _place_of_index(self) -> Finding:
        """Return a remark on an index in a server: where it is, and its size.

        It also says how long ago this process compared the index with the notes.
        """
        tables = self._database
        comparison = "not yet compared with the notes"
        if self._keeper.compared_at:
            seconds = time.monotonic() - self._keeper.compared_at
            comparison = f"compared with the notes {seconds:.0f} s ago"
        message = (
            f"the index is in {tables.engine}, {tables.size() / 1e6:.1f} MB,"
            f" {comparison}: {tables.place}"
        )
        hint = "Back up the notes and `.simplemem/`, which contains the history and the trash."
        return _remark("place", message, hint)

    def _check_synced_folder(self) -> Iterator[Finding]:
        """Yield one finding if a service copies the vault's folder to other computers.

        It is a warning if the SQLite index is in that folder too, else a remark.
        """
        root = self._vault.root
        service = _sync_service_of(root)
        if not service:
            return

        is_index_inside = Path(self._index.path).resolve().is_relative_to(root.resolve())
        if self._is_index_local and is_index_inside:
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

    def _check_network_disk(self) -> Iterator[Finding]:
        """Yield a remark if the vault is on a disk of another computer, a warning if its index is.

        Only an SQLite index is looked at.
        """
        vault_disk = file_system(str(self._vault.root))
        if vault_disk in SHARED:
            message = (
                f"the vault is on a disk of type {vault_disk}:"
                " simplemem polls for changes that other computers make"
            )
            hint = "The lock may not protect the vault from writers on other computers."
            yield _remark("place", message, hint)

        index_disk = file_system(str(Path(self._index.path).parent))
        if self._is_index_local and index_disk in SHARED:
            message = (
                f"the index is on a disk of type {index_disk},"
                " where SQLite cannot protect it from other computers"
            )
            yield _warning("place", "", message, _MOVE_INDEX)


def _sync_service_of(root: Path) -> str:
    """Return the name of the service that copies a folder elsewhere; "" if none is found.

    Syncthing is recognised by its `.stfolder` in the folder or one above it, others by the path.
    """
    if any((folder / ".stfolder").exists() for folder in (root, *root.parents)):
        return "Syncthing"
    match = _SYNC_SERVICE.search(root.as_posix())
    return match["service"] if match is not None else ""


class IndexChecks:
    """Checks the index of a vault. Guards no state of its own."""

    def __init__(
        self,
        vault: NoteSource,
        database: Engine,
        changes: ChangeTable,
        keeper: IndexKeeper,
        make_updater: Callable[[Engine], IndexUpdater],
    ) -> None:
        self._vault = vault
        self._database = database
        self._changes = changes
        self._keeper = keeper
        self._make_updater = make_updater

    def check_index(self, report: Progress) -> Iterator[Finding]:
        """Yield an error for each damage of the index, or each row unlike one in a rebuilt index.

        Builds a second index from the notes and removes it afterwards. The two may differ only
        because a note was written meanwhile. So if they differ, the vault is locked, unless it is
        read-only, the index is brought up to date, and they are compared again. At most 20 rows are
        reported, and none if the index is damaged. Vectors are not compared, as it costs much to
        make them again. Raises Unavailable if another process keeps the vault locked.
        """
        damage = self._database.check()
        for problem in damage:
            message = f"the index is damaged: {problem}"
            yield Finding("index", "error", "", message, f"{_REBUILD}.")
        if damage:
            return

        self._changes.newest()  # brings the table of changes up to date with the log
        rebuilt = self._database.build_replacement()
        updater = self._make_updater(rebuilt)
        updater.waiting = None  # no vectors are made
        try:
            unequal_rows = self._compare_indexes(rebuilt, updater, report)
            if unequal_rows:
                # Perhaps because of a write meanwhile: compare them again while nobody writes.
                with nullcontext() if self._vault.read_only else self._vault.lock():
                    self._keeper.compare_all()
                    unequal_rows = self._compare_indexes(rebuilt, updater, report)
        finally:
            rebuilt.drop()
        for difference in unequal_rows:
            yield _unequal_row(difference)

    def _compare_indexes(
        self,
        rebuilt: Engine,
        updater: IndexUpdater,
        report: Progress,
    ) -> list[RowDifference]:
        """Bring the rebuilt index up to date, and return where it differs from the current one.

        At most 20 differences are returned. `report` is called while notes are read.
        """
        updater.scan(report)
        with self._database.reading() as current_rows, rebuilt.reading() as rebuilt_rows:
            return list(
                islice(differences(current_rows, rebuilt_rows, vectors=False), _MAX_DIFFERENCES)
            )


def _unequal_row(difference: RowDifference) -> Finding:
    """Return the error for a row in which the index differs from a rebuilt one.

    The finding has the path of the note if the row has one, else "".
    """
    current, rebuilt = difference
    message = (
        f"the index contains {_show_row(current)} where a rebuilt index contains"
        f" {_show_row(rebuilt)}"
    )
    row = current or rebuilt or ()
    path = str(row[1]) if len(row) > 1 else ""  # after the name of the table
    return Finding("index", "error", path, message, f"{_REBUILD}. Please report this bug.")


def _show_row(row: tuple[object, ...] | None) -> str:
    """Return a row of the index as a finding shows it, shortened; "nothing" if there is no row."""
    return "nothing" if row is None else shorten(repr(row), _MAX_ROW_SHOWN)


class LinkChecks:
    """Checks the links of a vault. Guards no state of its own."""

    def __init__(self, index: IndexService, broken_links: BrokenLinkFinder) -> None:
        self._index = index
        self._broken_links = broken_links

    def check_links(self, _: Progress) -> Iterator[Finding]:
        """Yield a finding for each broken link, and for each link that could mean several files.

        The finding of a broken link may have candidates and a fix. A link that could mean several
        files works, so its finding has the level "note".
        """
        for broken_link in self._broken_links.find():
            yield broken_link.finding

        for link in self._index.links():
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
