"""What lies between two texts: of a change, of two versions, of a moment and now. Changes nothing."""

from __future__ import annotations

import re

from simplemem.errors import Invalid, NotFound
from simplemem.memory import Difference
from simplemem.note.diff import LONG_DIFF, unified_diff
from simplemem.note.names import name_of, path_of
from simplemem.store import from_git
from simplemem.store.core import Core
from simplemem.store.past import last_change, path_with_a_past, version_called
from simplemem.store.reading import bytes_at
from simplemem.store.then import GONE, moment_of, note_then
from simplemem.vault.history import Version

_SPELLED = re.compile(r"v?[0-9]{1,15}")


def diff(core: Core, what: str, other: str | None, since: str | None) -> tuple[Difference, ...]:
    """What a version changed; what lies between two versions; or what changed in a memory since a date or version."""
    version = version_called(core, what)
    if version is None and _SPELLED.fullmatch(what.strip()) and core.entry(path_of(what.strip())) is None:
        core.changes.find(what)  # says that there is none
    if other is not None:
        later = version_called(core, other)
        if version is None or later is None:
            raise Invalid("a difference is asked for between two versions", hint="history lists the versions.")
        before, after = _text_of(core, version), _text_of(core, later)
        names = (name_of(version.new_path or version.path), name_of(later.new_path or later.path))
        return (_difference(names, (version.id, later.id), before, after),)
    if version is not None and since is None:
        return tuple(_done_by(core, each) for each in core.changes.step(version.group))
    return (_since(core, path_with_a_past(core, what), since),)


def _text_of(core: Core, version: Version) -> bytes:
    """What a version left, or what it took away."""
    if version.after is None and version.op != "recovered":
        return b""
    data = bytes_at(core, version, version.after) if version.after else None
    if data is None:
        raise NotFound(f"the text of version {version.id} is no longer kept")
    return data


def _done_by(core: Core, version: Version) -> Difference:
    before = bytes_at(core, version, version.before) if version.before else b""
    after = bytes_at(core, version, version.after) if version.after else b""
    names = (name_of(version.path), name_of(version.new_path or version.path))
    return _difference(names, (f"before {version.id}", version.id), before, after)


def _since(core: Core, path: str, since: str | None) -> Difference:
    now = core.vault.read(path).data if core.entry(path) is not None else b""
    if since is None:
        last = last_change(core, path)
        moment, label = moment_of(core, last.id, start=True), f"before {last.id}"
    elif (committed := from_git.note_at(core, path, since)) is not None:
        return _difference((name_of(committed.path), name_of(path)), (since, "now"), committed.data, now)
    else:
        moment, label = moment_of(core, since, start=True), f"before {since}"
    then = note_then(core, path, moment)
    before = b"" if then.sha256 is None else then.data
    return _difference((name_of(then.path), name_of(path)), (label, "now"), before, now, then.doubt)


def _difference(
    names: tuple[str, str], labels: tuple[str, str], before: bytes | None, after: bytes | None, doubt: str = ""
) -> Difference:
    shown = ""
    if before is not None and after is not None:
        titles = (f"{names[0]} ({labels[0]})", f"{names[1]} ({labels[1]})")
        shown = unified_diff(before, after, titles, LONG_DIFF)
        doubt = doubt or ("" if shown or before == after else "the texts are too large to be compared")
    else:
        doubt = doubt or GONE
    return Difference(names[0], names[1], labels[0], labels[1], shown, doubt)
