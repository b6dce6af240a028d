"""A person's text on its way through their editor. Until it is safely in the note, it is kept in a file.

Drafts lie in `.simplemem/drafts/`, beside the index: neither Obsidian nor git looks there, and a crash of the
editor or the machine leaves them. This writes drafts only, never a note.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from simplemem.errors import Conflict, Invalid, ReadOnly, SimplememError, Unavailable

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_MOST_LINES = 5_000
"""Lines of a text beyond which a difference is not worked out: it takes time that grows with the square."""


class Draft:
    """The text of one note while it is in an editor."""

    def __init__(self, store: EnhancedStore, name: str, text: str) -> None:
        if store.read_only:
            raise ReadOnly("This vault is opened for reading only.", hint="Nothing can be saved in it.")
        self._store = store
        self._name = name
        self._text = text
        folder = store.root / ".simplemem" / "drafts"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self.path = _new_file(folder, name.rsplit("/", 1)[-1], text.encode())
        except OSError as error:
            raise Unavailable(f"A draft cannot be written in {folder}: {error.strerror}.") from error

    def edited(self) -> str:
        """The text after the editor is done with it."""
        editor = _editor()
        try:
            code = _run([*editor, str(self.path)])
        except OSError as error:
            self.discard()
            raise Unavailable(
                f"The editor {editor[0]!r} cannot be started: {error.strerror}.",
                hint="Set $EDITOR to one that can: EDITOR=nano, EDITOR='code --wait'.",
            ) from error
        if code:
            raise self.kept(Unavailable(f"The editor {editor[0]!r} ended with code {code}: nothing was saved."))
        try:
            return self.path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.kept(Invalid(f"The text is not UTF-8 (byte {error.start}): nothing was saved.")) from error

    def _differs(self) -> bool:
        return self.path.exists() and self.path.read_bytes() != self._text.encode()

    def discard(self) -> None:
        """Remove the draft: its text is in the note, or was never changed."""
        with contextlib.suppress(FileNotFoundError):
            self.path.unlink()

    def kept(self, error: SimplememError) -> SimplememError:
        """The failure, which now says where the text is kept. A text that was not changed is not kept."""
        if "draft" in error.details:
            return error
        if not self._differs():
            self.discard()
            return error
        error.hint = f"{error.hint} Your text is kept in {self.path}".strip()
        error.details["draft"] = str(self.path)
        return error

    def lost_race(self, conflict: Conflict) -> SimplememError:
        """The failure to show when somebody else changed the note meanwhile, with both texts compared."""
        ours = self.path.read_bytes().decode("utf-8", "replace")
        try:
            theirs = self._store.read(self._name).text
        except SimplememError:
            theirs = ""
        together = " With --merge both are saved." if conflict.details.get("accept") else ""
        told = {key: conflict.details[key] for key in ("base_sha256", "merged") if key in conflict.details}
        return Conflict(
            f"{self._name} was changed by somebody else while you edited it: nothing was overwritten.",
            hint=f"Your text is kept in {self.path}; edit the note again to bring both together.{together}",
            current_sha256=conflict.details.get("current_sha256"),
            diff=_difference(theirs, ours),
            draft=str(self.path),
            **told,
        )

    def again(self, text: str) -> str:
        """Another text of the same note after the editor is done with it. What was in the draft stays beside it."""
        folder = self.path.parent
        self._text = text
        self.path = _new_file(folder, self._name.rsplit("/", 1)[-1], text.encode())
        return self.edited()


def _new_file(folder: Path, base: str, data: bytes) -> Path:
    """A new file of that name, or of the first free one like it. A draft never replaces another."""
    # The name of a new note is not checked yet: only its harmless characters are used.
    stem = "".join(c if c.isalnum() or c in " -_" else "-" for c in base)[:60].strip() or "draft"
    number = 1
    while True:
        path = folder / (f"{stem}.md" if number == 1 else f"{stem} {number}.md")
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            number += 1
            continue
        return path


def _run(command: list[str]) -> int:
    """Run an editor to its end. A Ctrl-C typed there is the editor's, and does not end us under it."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def _editor() -> list[str]:
    chosen = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    if chosen:
        try:
            words = shlex.split(chosen, posix=os.name != "nt")
        except ValueError as error:
            raise Invalid(f"$EDITOR cannot be read: {error}.", hint="Quote it as a shell would.") from error
        if words:
            return [word.strip('"') for word in words] if os.name == "nt" else words
    for known in ["notepad"] if sys.platform == "win32" else ["editor", "nano", "vim", "vi"]:
        found = shutil.which(known)
        if found:
            return [found]
    raise Unavailable("There is no editor.", hint="Set $EDITOR to one: EDITOR=nano, EDITOR='code --wait'.")


def _difference(theirs: str, ours: str) -> str:
    """From the note as it is now to the person's text, as a unified diff."""
    import difflib

    now, mine = (text.replace("\r\n", "\n").split("\n") for text in (theirs, ours))
    if len(now) + len(mine) > _MOST_LINES:
        return ""
    lines = difflib.unified_diff(now, mine, "the note as it is now", "your text", lineterm="")
    return "\n".join(lines)
