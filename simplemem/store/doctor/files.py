"""Files beside the notes: attachments that nobody links, and what programs left lying about."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from urllib.parse import unquote

from simplemem.memory import Finding
from simplemem.store.doctor.case import Case, Discard, Noticed, remark, warning
from simplemem.vault import kernel
from simplemem.vault.disk import TEMP

# Obsidian's own documents are opened for themselves, and a vault's front page need not be linked.
_OPENED_ITSELF = (".md", ".canvas", ".base", ".excalidraw")
_A_DAY = 86_400.0
# What editors, browsers and synchronisers write beside a file while they save or fetch it. Each is whole elsewhere, or was
# never whole.
_SAFE_SAVE = re.compile(r"\.sb-[0-9a-f]{8}-[A-Za-z0-9]{6}\Z")
_TEMPORARY = re.compile(r"\.te?mp(?:\.\d{1,20}){0,2}\Z")


def check_attachments(case: Case) -> Iterator[Noticed]:
    """Files that no note, canvas or property speaks of. Whether they are wanted, only a person knows."""
    unlinked = {
        path: path.rpartition("/")[2]
        for path in case.entries
        if not path.casefold().endswith(_OPENED_ITSELF) and path not in case.linked and _left_behind(path) is None
    }
    endings = {name.rpartition(".")[2].casefold() for name in unlinked.values()}
    for path, data in case.small_files("attachments", _OPENED_ITSELF) if unlinked else ():
        text = data.decode("utf-8", "replace")
        folded = text.casefold()
        if any(ending in folded for ending in endings):
            text = _unescaped(path, text)
            unlinked = {each: name for each, name in unlinked.items() if name not in text}
    for path in unlinked:
        yield remark("attachments", path, f"no note links to it ({_size(case.entries[path].size)})")


def _unescaped(path: str, text: str) -> str:
    """A text with names as they are on the disk: a canvas escapes them as JSON does, HTML by percent signs."""
    if path.endswith(".canvas"):
        try:
            return json.dumps(json.loads(text), ensure_ascii=False)
        except (ValueError, RecursionError):
            return text
    return f"{text}\n{unquote(text)}" if "%" in text else text


def check_strays(case: Case) -> Iterator[Noticed]:
    """Files that a write which was cut short left: ours, and those of other programs."""
    for path in case.vault.strays():
        found = TEMP.fullmatch(path.rpartition("/")[2])
        if found is None or not kernel.is_alive(int(found[1])):  # else a write is under way
            hint = "The next start of simplemem that may write puts it away, and keeps what it holds."
            yield warning("strays", path, "left by a write that was cut short", hint)
    for path, entry in case.entries.items():
        what = _left_behind(path)
        if what is None or path in case.linked:
            continue
        if abs(time.time() - max(entry.mtime_ns, entry.ctime_ns) / 1e9) > _A_DAY:
            yield Noticed(Finding("strays", "note", path, what, fix="move it to the trash"), Discard(path, what))
        else:
            yield remark("strays", path, what, "It may be in use: it is left alone until it has rested for a day.")


def _left_behind(path: str) -> str | None:
    """What a file is that a program left behind, None for a file that is somebody's."""
    name = path.rpartition("/")[2]
    if name.casefold().endswith(".md"):
        return None
    if name.startswith("~syncthing~") and name.endswith(".tmp"):
        return "a transfer of Syncthing that was cut short"
    if name.startswith("~$"):
        return "the lock file of an open document"
    if name.startswith("#") and name.endswith("#"):
        return "what Emacs had not saved yet"
    if name.endswith("~"):
        return "the copy an editor made before it saved"
    if name.endswith((".crdownload", ".part", ".partial")):
        return "a download that was cut short"
    if _SAFE_SAVE.search(name):
        return "what a Mac left of a save that was cut short"
    return "a temporary file" if _TEMPORARY.search(name) else None


def _size(size: int) -> str:
    if size < 10_000:
        return "1 byte" if size == 1 else f"{size:,} bytes"
    return f"{size / 1e6:.1f} MB" if size >= 1_000_000 else f"{size / 1e3:.0f} kB"
