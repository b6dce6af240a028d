"""A person's text on its way through their editor. Until it is safely in the note, it is kept in a file.

Drafts lie in `.simplemem/drafts/`, beside the index: neither Obsidian nor git looks there, and a crash of the editor or
the machine leaves them. What somebody else wrote meanwhile is shown together with the person's text, and both are saved
only if the person agrees.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING

import typer

from simplemem.cli.command import can_ask, finish
from simplemem.cli.opening import WHO, warn
from simplemem.errors import Conflict, Invalid, ReadOnly, SimplememError, Unavailable, Unreadable

if TYPE_CHECKING:
    from simplemem.memory import Saved
    from simplemem.store import EnhancedStore


def edit_note(store: EnhancedStore, name: str, *, merge: bool) -> Saved:
    """Have a note edited and save it. `merge` says that the person agrees to whatever fits together."""
    from simplemem.memory import Saved

    memory = store.read(name)
    if hashlib.sha256(memory.text.encode("utf-8", "surrogatepass")).hexdigest() != memory.sha256:
        # What is shown of it is not all that is in it: saving that would lose the rest.
        raise Unreadable(f"{memory.name} is not UTF-8 text", hint="Convert it first, with iconv for instance.")
    draft = DraftFile(store, memory.name, memory.text)
    written, expected, together = draft.edited(), memory.sha256, False
    if written == memory.text:
        draft.discard()
        return Saved(memory.name, memory.path, expected, expected, False, "", memory.tags, memory.tag_map)
    while True:
        held = finish()
        try:
            saved = store.write_text(memory.name, written, if_sha256=expected, who=WHO, tool="edit")
        except Conflict as conflict:
            held.close()
            offer = conflict.details.get("accept")  # both together, where they changed different lines
            if not offer or not (merge or (can_ask() and _agreed(conflict, memory.name))):
                raise draft.lost_race(conflict) from None
            expected, together = offer, True
        except SimplememError as error:
            raise draft.kept(error) from error
        else:
            draft.discard()
            also = ("what others changed meanwhile was saved with it",) if together else ()
            return replace(saved, warnings=(*saved.warnings, *also))


def _agreed(conflict: Conflict, name: str) -> bool:
    from simplemem.cli.output import Screen

    warn("somebody else changed the note while you edited it; both together:")
    Screen().diff(conflict.details["merged"]["diff"])
    try:
        return typer.confirm(f"Save both together in {name}?")
    except typer.Abort:  # Ctrl-C is a no, after which is said where the text is kept
        return False


class DraftFile:
    """The text of one note while it is in an editor."""

    def __init__(self, store: EnhancedStore, name: str, text: str) -> None:
        if store.read_only:
            raise ReadOnly("this vault is opened for reading only", hint="Nothing can be saved in it.")
        self._store = store
        self._name = name
        self._text = text
        folder = store.root / ".simplemem" / "drafts"
        # The name of a new note is not checked yet: only its harmless characters are used.
        harmless = (c if c.isalnum() or c in " -_" else "-" for c in self._name.rsplit("/", 1)[-1])
        stem = "".join(harmless)[:60].strip() or "draft"
        names = (f"{stem}{number or ''}.md" for number in count())
        try:
            folder.mkdir(parents=True, exist_ok=True)
            while True:  # the first free name: a draft replaces no other
                self.path = folder / next(names)
                with contextlib.suppress(FileExistsError), self.path.open("xb") as file:
                    file.write(text.encode())
                    break
        except OSError as error:
            raise Unavailable(f"a draft cannot be written in {folder}: {error.strerror}") from error

    def edited(self) -> str:
        """The text after the editor is done with it."""
        editor = _editor()
        try:
            code = _wait_for([*editor, str(self.path)])
        except OSError as error:
            self.discard()
            raise Unavailable(
                f"the editor {editor[0]!r} cannot be started: {error.strerror}",
                hint="Set $EDITOR to one that can: EDITOR=nano, EDITOR='code --wait'.",
            ) from error
        if code:
            raise self.kept(Unavailable(f"the editor {editor[0]!r} ended with code {code}: nothing was saved"))
        try:
            return self.path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise self.kept(Invalid(f"the text is not UTF-8 (byte {error.start}): nothing was saved")) from error

    def discard(self) -> None:
        """Remove the draft: its text is in the note, or was never changed."""
        self.path.unlink(missing_ok=True)

    def kept(self, error: SimplememError) -> SimplememError:
        """The failure, which now says where the text is kept. A text that was not changed is not kept."""
        if "draft" in error.details:
            return error
        if not self.path.exists() or self.path.read_bytes() == self._text.encode():
            self.discard()
            return error
        error.hint = f"{error.hint} Your text is kept in {self.path}".strip()
        error.details["draft"] = str(self.path)
        return error

    def lost_race(self, conflict: Conflict) -> SimplememError:
        """The failure to show when somebody else changed the note meanwhile, with both texts compared."""
        from simplemem.note.diff import unified_diff

        ours = self.path.read_bytes()
        try:
            theirs = self._store.read(self._name).text.encode()
        except SimplememError:
            theirs = b""
        together = " With --merge both are saved." if conflict.details.get("accept") else ""
        conflict.message = f"{self._name} was changed by somebody else while you edited it: nothing was overwritten"
        conflict.hint = f"Your text is kept in {self.path}; edit the note again to bring both together.{together}"
        names = ("the note as it is now", "your text")
        conflict.details |= {"diff": unified_diff(theirs, ours, names), "draft": str(self.path)}
        return conflict


def _wait_for(command: list[str]) -> int:
    """Run an editor to its end. A Ctrl-C typed there is the editor's, and does not end us under it."""
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, before)


def _editor() -> list[str]:
    if chosen := (os.environ.get("VISUAL") or os.environ.get("EDITOR") or "").strip():
        try:
            return [word.strip('"') for word in shlex.split(chosen, posix=os.name != "nt")]
        except ValueError as error:
            raise Invalid(f"$EDITOR cannot be read: {error}", hint="Quote it as a shell would.") from error
    for known in ["notepad"] if sys.platform == "win32" else ["editor", "nano", "vim", "vi"]:
        if path := shutil.which(known):
            return [path]
    raise Unavailable("there is no editor", hint="Set $EDITOR to one: EDITOR=nano, EDITOR='code --wait'.")
