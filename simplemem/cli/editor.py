"""The text of a note in the user's editor, and how it is saved.

Until the text is in the note, it is kept in `.simplemem/drafts/`, where neither Obsidian nor git
looks. If somebody else changes the note meanwhile, both changes are saved only if the user agrees.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import typer

from simplemem.cli.command import WHO, Answer, can_ask, finish, show, warn
from simplemem.cli.output import diff_lines
from simplemem.errors import Conflict, Invalid, ReadOnly, SimplememError, Unavailable, Unreadable

if TYPE_CHECKING:
    from simplemem.models import Memory, Saved
    from simplemem.store import EnhancedStore


_MAX_STEM = 60  # characters of the name of a note that the name of its draft has
_MERGED = "changes that others made meanwhile were saved too"


def edit_note(store: EnhancedStore, name: str, *, merge: bool) -> Saved:
    """Have the user edit a note in an editor, and save the text.

    With `merge`, changes that others make to other lines meanwhile are saved too, without asking.
    Returns what was saved; `changed` is False if the text is unchanged.

    Raises NotFound or Ambiguous for the name, Unreadable if the note is not UTF-8, ReadOnly,
    Unavailable if there is no editor or it fails, and Conflict if others changed the note and the
    user does not agree to save both. If the text was edited by then, it is kept in a file, which
    the error names.
    """
    memory = store.read(name)
    data = memory.text.encode("utf-8", "surrogatepass")
    if hashlib.sha256(data).hexdigest() != memory.sha256:
        # The text does not show everything that is in the file: saving it would lose the rest.
        message = f"{memory.name} is not UTF-8 text"
        raise Unreadable(message, hint="Convert it first, for example with iconv.")

    with DraftFile(store, memory.name, memory.text) as draft:
        text = draft.edit()
        if text == memory.text:
            return _unchanged(memory)
        return _save(store, memory, text, draft, merge=merge)


def _unchanged(memory: Memory) -> Saved:
    """Return the result for a note that was not written, because its text is the same."""
    from simplemem.models import Saved

    return Saved(
        name=memory.name,
        path=memory.path,
        sha256=memory.sha256,
        previous_sha256=memory.sha256,
        changed=False,
        version="",
        tags=memory.tags,
        tag_map=memory.tag_map,
    )


def _save(
    store: EnhancedStore, memory: Memory, text: str, draft: DraftFile, *, merge: bool
) -> Saved:
    """Save the text of a note that was read as `memory`.

    If others changed the note, it is tried again with each merge to which the user agrees; with
    `merge`, to all. Raises Conflict, with the difference to `draft`, if that is not possible.
    """
    expected_sha256 = memory.sha256
    is_merged = False
    while True:
        interrupt_delay = finish()
        try:
            saved = store.write_text(
                memory.name, text, if_sha256=expected_sha256, who=WHO, tool="edit"
            )
        except Conflict as conflict:
            interrupt_delay.close()
            # The hash that accepts the merge of both texts, if they changed different lines.
            merged_sha256 = conflict.details.get("accept")
            if not merged_sha256 or not (merge or _accepts_merge(conflict, memory.name)):
                draft.explain_conflict(conflict)
                raise
            expected_sha256 = merged_sha256
            is_merged = True
            continue

        if is_merged:
            return replace(saved, warnings=(*saved.warnings, _MERGED))
        return saved


def _accepts_merge(conflict: Conflict, name: str) -> bool:
    """Show the merged text of a conflict, and return whether the user wants to save it.

    Without a terminal, the answer is no.
    """
    if not can_ask():
        return False

    warn("somebody else changed the note while you edited it; this is the merged text:")
    show(Answer({}, diff_lines(conflict.details["merged"]["diff"])))
    try:
        return typer.confirm(f"Save the merged text in {name}?")
    except typer.Abort:  # Ctrl-C means no; the error then says where the text is kept
        return False


class DraftFile:
    """The file with the text of one note while it is in an editor.

    The constructor writes the file, in `.simplemem/drafts/`. The end of the context deletes it. If
    the context ends with an error and the user has edited the text, the file is kept, and an error
    of simplemem gets a hint that says where.
    """

    def __init__(self, store: EnhancedStore, name: str, text: str) -> None:
        """Write `text` to a new file, which is named after the note `name`.

        Raises ReadOnly, and Unavailable if the file cannot be written.
        """
        if store.read_only:
            raise ReadOnly(
                "this vault is read-only",
                hint="Check `read_only` and the permissions of the folder.",
            )
        self._store = store
        self._name = name
        self._data = text.encode()
        folder = _drafts_folder(store.root)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._path = _write_new_file(folder, _stem(name), self._data)
        except OSError as error:
            raise Unavailable(f"a draft cannot be written in {folder}: {error.strerror}") from error

    def __enter__(self) -> DraftFile:
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        if error is None or not self._is_edited():
            self._path.unlink(missing_ok=True)
        elif isinstance(error, SimplememError):
            error.hint = f"{error.hint} Your text is kept in {self._path}".strip()
            error.details["draft"] = str(self._path)

    def _is_edited(self) -> bool:
        """Return whether the file exists with another text than at the start."""
        return self._path.exists() and self._path.read_bytes() != self._data

    def edit(self) -> str:
        """Run the editor of the user on the file, and return the text when the editor ends.

        Raises Unavailable if the editor cannot be started or fails, and Invalid if the text is not
        UTF-8.
        """
        editor = _editor_command()
        try:
            exit_code = _run_in_terminal([*editor, str(self._path)])
        except OSError as error:
            message = f"the editor {editor[0]!r} cannot be started: {error.strerror}"
            hint = "Set $EDITOR to another editor, such as EDITOR=nano or EDITOR='code --wait'."
            raise Unavailable(message, hint=hint) from error
        if exit_code:
            message = f"the editor {editor[0]!r} ended with code {exit_code}: nothing was saved"
            raise Unavailable(message)

        try:
            return self._path.read_bytes().decode("utf-8")
        except UnicodeDecodeError as error:
            message = f"the text is not UTF-8 (byte {error.start}): nothing was saved"
            raise Invalid(message) from error

    def explain_conflict(self, conflict: Conflict) -> None:
        """Change a conflict so that it compares the edited text with the note as it is now."""
        from simplemem.note.diff import unified_diff

        try:
            note_data = self._store.read(self._name).text.encode()
        except SimplememError:
            note_data = b""
        titles = ("the note as it is now", "your text")
        conflict.details["diff"] = unified_diff(note_data, self._path.read_bytes(), titles)
        conflict.message = (
            f"{self._name} was changed by somebody else while you edited it:"
            " nothing was overwritten"
        )
        conflict.hint = "Edit the note again to combine the two texts."
        if conflict.details.get("accept"):
            conflict.hint += " With --merge, both changes are merged and saved."


def _drafts_folder(root: Path) -> Path:
    """Return the folder of the drafts in a vault, which need not exist.

    Raises Unavailable if links lead to another folder.
    """
    folder = root / ".simplemem" / "drafts"
    expected = os.path.join(os.path.realpath(root), ".simplemem", "drafts")
    if os.path.realpath(folder) != expected:
        raise Unavailable(
            f"{folder} is a link or leads through one",
            hint="Replace the link with a folder: drafts are written only inside the vault.",
        )
    return folder


def _stem(name: str) -> str:
    """Return the name of a draft without its suffix, made of the harmless characters of a name.

    The name of a new note is not checked yet.
    """
    last_part = name.rsplit("/", 1)[-1]
    characters = [char if char.isalnum() or char in " -_" else "-" for char in last_part]
    return "".join(characters)[:_MAX_STEM].strip() or "draft"


def _write_new_file(folder: Path, stem: str, data: bytes) -> Path:
    """Write a file with the first free name: `stem.md`, `stem 2.md` and so on. Return its path.

    Each existing file with such a name is the text of an earlier edit, which is kept; the user is
    told where. Raises OSError if the file cannot be written.
    """
    number = 1
    while True:
        path = folder / (f"{stem}.md" if number == 1 else f"{stem} {number}.md")
        try:
            with path.open("xb") as file:
                file.write(data)
        except FileExistsError:
            warn(f"the text of an earlier edit is kept in {path}")
            number += 1
        else:
            return path


def _run_in_terminal(command: list[str]) -> int:
    """Run a program that uses the terminal, and return its exit code.

    Until it ends, a Ctrl-C does not end this process: it is meant for the program. Raises OSError
    if the program cannot be started.
    """
    old_handler = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        return subprocess.run(command, check=False).returncode
    finally:
        signal.signal(signal.SIGINT, old_handler)


def _editor_command() -> list[str]:
    """Return the command of the user's editor: `$VISUAL`, `$EDITOR` or an installed editor.

    Raises Invalid if the variable cannot be parsed, and Unavailable if there is no editor.
    """
    variable = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    command = variable.strip()
    if command:
        try:
            words = shlex.split(command, posix=os.name != "nt")
        except ValueError as error:
            message = f"$EDITOR cannot be parsed: {error}"
            raise Invalid(message, hint="Quote its value as in a shell.") from error
        return [word.strip('"') for word in words]

    names = ["editor", "nano", "vim", "vi"]
    if sys.platform == "win32":
        names = ["notepad"]
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return [path]
    hint = "Set $EDITOR, for example to nano or to 'code --wait'."
    raise Unavailable("no editor was found", hint=hint)
