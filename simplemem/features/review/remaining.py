"""What is left of a change in a note that was changed again since. Pure."""

from __future__ import annotations

from simplemem.note.diff import changed_regions


def remaining_text(old: str, new: str, current: str) -> str:
    """Return the text before a change with those lines of the change that a note still has.

    `old` and `new` are the texts before and after the change, `current` the note as it is now. A
    line that the change added and that was removed or rewritten since is left out; a line that it
    removed and that is back stays.
    """
    current_lines = set(current.splitlines())
    old_lines = old.splitlines(keepends=True)
    new_lines = new.splitlines(keepends=True)
    remaining: list[str] = []
    position = 0

    for region in changed_regions(old_lines, new_lines):
        remaining += old_lines[position : region.old_start]
        removed = old_lines[region.old_start : region.old_end]
        added = new_lines[region.new_start : region.new_end]
        remaining += [line for line in removed if _content_of(line) in current_lines]
        remaining += [line for line in added if _content_of(line) in current_lines]
        position = region.old_end

    remaining += old_lines[position:]
    return "".join(remaining)


def _content_of(line: str) -> str:
    """Return a line without its line end."""
    return line.rstrip("\r\n")
