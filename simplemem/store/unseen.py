"""Links in notes that a view does not show. A move that would break one is refused, and nothing is told of the note.

A view of part of a vault (`access.hidden`, `access.only`, a token with folders) has an index without those notes, so
the files themselves are asked.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from simplemem.errors import ReadOnly, SimplememError
from simplemem.note.names import base_name, compare_key, name_of
from simplemem.note.note import read_note
from simplemem.vault.obsidian import Move, Named, name_key, would_break_links
from simplemem.vault.vault import File, Vault

_ENCODED_LETTER = re.compile(rb"%[4-7][0-9A-Fa-f]|%[89A-Fa-f][0-9A-Fa-f]|&#")


def check_unseen_links(vault: Vault, move: Move) -> None:
    """Raise ReadOnly if a link in a note that this view does not show would lead elsewhere after a move.

    It is raised for a place that is closed here first, so that the answer is the same whatever lies there.
    """
    for path in (move.old, move.new):
        if path is not None:
            vault.access.check(path, asked=True)
    if not vault.access.is_partial:
        return

    whole = vault.without_rules()
    paths = [entry.path for entry in whole.scan()]
    before = _named_among(paths)
    after = _named_among(move.after(path) for path in paths)
    unseen = [path for path in paths if path.endswith(".md") and vault.access.hides(path)]
    with whole.reading() as read:
        if any(_breaks(read, path, move, before, after) for path in unseen):
            hint = "Leave it where it is, or ask whose notes these are to move it."
            message = (
                f"{name_of(move.old or move.new)!r} cannot be moved: a link in a place that is closed here would break"
            )
            raise ReadOnly(message, hint=hint)


def _breaks(read: Callable[[str], File], path: str, move: Move, before: Named, after: Named) -> bool:
    try:
        data = read(path).data
    except SimplememError:  # it went, or cannot be read: no link of it is known
        return False
    names = [base_name(name) for name in (move.old, move.new) if name is not None]
    if not _may_name(data, names):
        return False
    return would_break_links(read_note(data), path, move, before, after)


def _may_name(data: bytes, names: Sequence[str]) -> bool:
    """Whether a text may hold a link to one of these names. To read every note for its links would take seconds."""
    if b"[" not in data:
        return False
    if _ENCODED_LETTER.search(data):
        return True
    text = data.decode("utf-8", "replace")
    key = compare_key(text) if text.isascii() else unicodedata.normalize("NFC", text.replace("\xa0", " ")).casefold()
    return any(_longest_word(compare_key(name)) in key for name in names)


def _longest_word(key: str) -> str:
    """Return the part of a name that is written the same in every link to it: no spaces, no marks that are encoded."""
    return max(re.split(r"[^\w]", key), key=len)


def _named_among(paths: Iterable[str]) -> Named:
    by_key: dict[str, list[str]] = defaultdict(list)
    for path in sorted(paths):
        by_key[name_key(path)].append(path)
    return lambda key: by_key.get(key, [])
