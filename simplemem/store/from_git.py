"""What git knows of a memory, told beside our own history: its commits, and its text at one of them. Changes nothing.

git is started only when the past of one memory is asked for. When it cannot answer, our own history is told alone, and
that is said.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.errors import NotFound, SimplememError
from simplemem.memory import HistoryEntry
from simplemem.note.diff import LONG_DIFF, unified_diff
from simplemem.note.names import name_of
from simplemem.store.core import Core
from simplemem.store.then import NoteThen
from simplemem.vault.log import Version

if TYPE_CHECKING:
    from simplemem.vault.git import Commit

_LOG = logging.getLogger(__name__)
_MOST_NAMES = 5


def is_in_git(core: Core) -> bool:
    """Whether there may be something to ask: cheap, and no git is started for it."""
    if not core.settings.git.history:
        return False
    real = Path(os.path.realpath(core.root))
    return any(os.path.lexists(folder / ".git") for folder in (real, *real.parents))


def means_commit(core: Core, text: str) -> bool:
    """Whether a version that somebody names is one of git: no version of ours and no date looks like its ids."""
    if not is_in_git(core):
        return False
    from simplemem.vault.git import is_commit

    return is_commit(text)


def commits_of(core: Core, path: str, limit: int) -> list[Commit]:
    """The commits of a memory, newest first; none when git cannot say, which is logged."""
    if not is_in_git(core):
        return []
    from simplemem.vault.git import commits

    try:
        for name in _names(core, path):  # a move that nobody has committed yet is known to our history alone
            if found := commits(core.root, name, limit):
                return [each for each in found if core.vault.access.all_seen((each.path, each.old_path))]
    except SimplememError as error:
        _LOG.warning("the history of git is not told: %s", error)
    return []


def entries_of(
    core: Core, commits: Sequence[Commit], ours: Iterable[Version], *, diff: bool
) -> tuple[list[HistoryEntry], dict[str, str]]:
    """Commits as entries of a history, and for those that we made of changes our history has, their ids by change."""
    from simplemem.vault.git import texts

    known = {version.group for version in ours}
    folded = {group: each.commit for each in commits for group in each.versions if group in known}
    told = [each for each in commits if not each.versions or not known.issuperset(each.versions)]
    wanted = [oid for each in told for oid in (each.before, each.after) if oid is not None]
    try:
        texts_of = texts(core.root, wanted)
    except SimplememError as error:
        _LOG.warning("texts of git are not told: %s", error)
        texts_of = {}
    entries = [_entry_of(each, texts_of, diff=diff) for each in told]
    if core.vault.access.hidden:  # what is said of a commit may be of the hidden notes in it
        entries = [replace(each, reason="") for each in entries]
    return entries, folded


def changes_in(core: Core, commit: str) -> tuple[str, ...]:
    """The changes of ours that a commit of ours holds; none for a person's commit."""
    from simplemem.vault.git import changes_in

    log = core.changes
    return tuple(each for each in changes_in(core.root, commit) if log.step(each))


def note_at(core: Core, path: str, commit: str) -> NoteThen | None:
    """A memory at a commit, under the name it had then; None when the text given cannot be a commit's id."""
    if not means_commit(core, commit):
        return None
    from simplemem.vault.git import text_at

    missing: NotFound | None = None
    for name in _names(core, path):
        try:
            then, data = text_at(core.root, name, commit.strip())
        except NotFound as error:
            missing = missing or error
        else:
            if core.vault.access.hides(then):
                raise NotFound(f"{path!r} was not there at commit {commit[:12]}, under no name it has had.")
            return NoteThen(then, sha256(data).hexdigest(), data)
    raise missing or NotFound(f"{path!r} was not there at commit {commit[:12]}.")


def _names(core: Core, path: str) -> list[str]:
    """The last names of a memory that our own history knows, as far as they may be seen; itself first."""
    known = (path, *(version.path for version in core.changes.of(path, 1000)))
    return [name for name in dict.fromkeys(known) if not core.vault.access.hides(name)][:_MOST_NAMES]


def _entry_of(commit: Commit, texts: dict[str, bytes], *, diff: bool) -> HistoryEntry:
    from simplemem.vault.git import short

    before = b"" if commit.before is None else texts.get(commit.before)
    after = b"" if commit.after is None else texts.get(commit.after)
    shown = None
    if diff and before is not None and after is not None:
        shown = unified_diff(before, after, ("before", "after"), LONG_DIFF)
    return HistoryEntry(
        version=short(commit.commit),
        name=name_of(commit.old_path or commit.path),
        new_name=name_of(commit.path) if commit.old_path else None,
        when=commit.when,
        op=commit.op,
        who=commit.actor or commit.who,
        tool=commit.tool or "git",
        reason=commit.reason if commit.actor else commit.subject,
        before=_hash(before) if commit.before else None,
        sha256=_hash(after) if commit.after else None,
        diff=shown,
        source="git",
        commit=commit.commit,
    )


def _hash(data: bytes | None) -> str | None:
    return None if data is None else sha256(data).hexdigest()
