"""Which changes of ours another program took back before they were committed: a person's `git checkout` of a note, say.

A commit of them would bring to the branch what the person threw away. Pure: made of the log's lines and what there is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set

from simplemem.vault.log import Version


def taken_back(changes: Iterable[Version], waiting: Set[str], now: Callable[[str], str | None]) -> set[str]:
    """The ids of these changes, the oldest first, whose note then was again what an earlier change of them had found.
    `waiting` are the groups to look at, `now` says the hash of what lies at a path, None when nothing does.

    What was moved is left out: where a note went, and where from, are two places, and a person may mean either.
    """
    lines: dict[str, list[Version]] = {}
    found: set[str] = set()
    for change in changes:
        if change.op == "recovered":
            continue
        line = lines.setdefault(change.path, [])
        _cut(line, change.before, found)
        if change.new_path is not None:
            line.clear()
            lines.pop(change.new_path, None)
        elif change.group in waiting:
            line.append(change)
        else:
            line.clear()  # in git already, or not ours to commit
    for path, line in lines.items():
        if line:
            _cut(line, now(path), found)
    return found


def _cut(line: list[Version], there: str | None, found: set[str]) -> None:
    """Take from the end of a line of changes what is not there any more, once `there` is what the note is next."""
    if not line or line[-1].after == there:
        return
    at = next((k for k in reversed(range(len(line))) if line[k].before == there), None)
    if at is not None:
        found.update(change.id for change in line[at:])
        del line[at:]
    else:
        line.clear()  # somebody wrote on: theirs and ours are told apart by the commit
