"""A person's text on its way through their editor. Until it is safely in the note it is kept in `.simplemem/drafts/`,
where neither Obsidian nor git looks. What somebody else wrote meanwhile is saved with it only if the person agrees."""

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

from simplemem.cli.command import WHO, Answer, can_ask, finish, show, warn
from simplemem.cli.output import diff_lines
from simplemem.errors import Conflict, Invalid, ReadOnly, SimplememError, Unavailable, Unreadable

if TYPE_CHECKING:
    from simplemem.models import Saved
    from simplemem.store import EnhancedStore


def edit_note(store: EnhancedStore, name: str, *, merge: bool) -> Saved:
    """Have a note edited and save it. `merge` says that the person agrees to whatever fits together."""
    from simplemem.models import Saved

    memory = store.read(name)
    if hashlib.sha256(memory.text.encode("utf-8", "surrogatepass")).hexdigest() != memory.sha256:
        # What is shown of it is not all that is in it: saving that would lose the rest.
        raise Unreadable(
            f"{memory.name} is not UTF-8 text", hint="Convert it first, for example with iconv."
        )
    expected, also = memory.sha256, ""
    with DraftFile(store, memory.name, memory.text) as draft:
        written = draft.edited()
        if written == memory.text:
            return Saved(
                memory.name, memory.path, expected, expected, False, "", memory.tags, memory.tag_map
            )
        while True:
            held = finish()
            try:
                saved = store.write_text(
                    memory.name, written, if_sha256=expected, who=WHO, tool="edit"
                )
                return replace(saved, warnings=(*saved.warnings, also)) if also else saved
            except Conflict as conflict:
                held.close()
                offer = conflict.details.get(
                    "accept"
                )  # both together, where they changed different lines
                if not offer or not (merge or (can_ask() and _agreed(conflict, memory.name))):
                    draft.compare(conflict)
                    raise
                expected, also = offer, "changes that others made meanwhile were saved too"


def _agreed(conflict: Conflict, name: str) -> bool:
    warn("somebody else changed the note while you edited it; this is the merged text:")
    show(Answer({}, diff_lines(conflict.details["merged"]["diff"])))
    try:
        return typer.confirm(f"Save the merged text in {name}?")
    except typer.Abort:  # Ctrl-C is a no, after which is said where the text is kept
        return False


class DraftFile:
    """The text of one note while it is in an editor: gone once it is in the note; a failure says where it is kept."""

    def __init__(self, store: EnhancedStore, name: str, text: str) -> None:
        if store.read_only:
            raise ReadOnly(
                "this vault is read-only",
                hint="Check `read_only` and the permissions of the folder.",
            )
        self._store = store
        self._name = name
        self._text = text.encode()
        folder = store.root / ".simplemem" / "drafts"
        if os.path.realpath(folder) != os.path.join(
            os.path.realpath(store.root), ".simplemem", "drafts"
        ):
            why = f"{folder} is a link or leads through one"
            raise Unavailable(
                why,
                hint="Replace the link with a folder: drafts are written only inside the vault.",
            )
        # The name of a new note is not checked yet: only its harmless characters are used.
        stem = (
            "".join(c if c.isalnum() or c in " -_" else "-" for c in name.rsplit("/", 1)[-1])[
                :60
            ].strip()
            or "draft"
        )
        names = (f"{stem}{f' {number}' if number > 1 else ''}.md" for number in count(1))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            while True:  # the first free name: a draft replaces no other
                self.path = folder / next(names)
                with contextlib.suppress(FileExistsError), self.path.open("xb") as file:
                    file.write(self._text)
                    break
                warn(f"the text of an earlier edit is kept in {self.path}")
        except OSError as error:
            raise Unavailable(f"a draft cannot be written in {folder}: {error.strerror}") from error

    def __enter__(self) -> DraftFile:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None or not self.path.exists() or self.path.read_bytes() == self._text:
            self.path.unlink(missing_ok=True)
        elif isinstance(error, SimplememError):
            error.hint = f"{error.hint} Your text is kept in {self.path}".strip()
            error.details["draft"] = str(self.path)

    def edited(self) -> str:
        """The text after the editor is done with it."""
        editor = _editor()
        try:
            # A Ctrl-C typed in the editor is the editor's, and does not end us under it.
            before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
            try:
                code = subprocess.run([*editor, str(self.path)], check=False).returncode
            finally:
                signal.signal(signal.SIGINT, before)
        except OSError as error:
            hint = "Set $EDITOR to another editor, such as EDITOR=nano or EDITOR='code --wait'."
            raise Unavailable(
                f"the editor {editor[0]!r} cannot be started: {error.strerror}", hint=hint
            ) from error
        if code:
            raise Unavailable(f"the editor {editor[0]!r} ended with code {code}: nothing was saved")
        try:
            return self.path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            raise Invalid(
                f"the text is not UTF-8 (byte {error.start}): nothing was saved"
            ) from error

    def compare(self, conflict: Conflict) -> None:
        """Have a lost race show the person's text beside the note as it is now."""
        from simplemem.note.diff import unified_diff

        try:
            theirs = self._store.read(self._name).text.encode()
        except SimplememError:
            theirs = b""
        ours = self.path.read_bytes()
        conflict.details["diff"] = unified_diff(
            theirs, ours, ("the note as it is now", "your text")
        )
        together = (
            " With --merge, both changes are merged and saved."
            if conflict.details.get("accept")
            else ""
        )
        conflict.message = f"{self._name} was changed by somebody else while you edited it: nothing was overwritten"
        conflict.hint = f"Edit the note again to combine the two texts.{together}"


def _editor() -> list[str]:
    if chosen := (os.environ.get("VISUAL") or os.environ.get("EDITOR") or "").strip():
        try:
            return [word.strip('"') for word in shlex.split(chosen, posix=os.name != "nt")]
        except ValueError as error:
            raise Invalid(
                f"$EDITOR cannot be parsed: {error}", hint="Quote its value as in a shell."
            ) from error
    for known in ["notepad"] if sys.platform == "win32" else ["editor", "nano", "vim", "vi"]:
        if path := shutil.which(known):
            return [path]
    raise Unavailable(
        "no editor was found", hint="Set $EDITOR, for example to nano or to 'code --wait'."
    )
