"""Apply a proposed change to the notes as they are now. Reads notes, and writes nothing."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, NamedTuple

from simplemem.errors import Conflict, SimplememError
from simplemem.note.appending import append_content
from simplemem.note.diff import LONG_DIFF, unified_diff
from simplemem.note.header import read_header
from simplemem.note.merge import merge
from simplemem.note.names import name_of, path_of
from simplemem.note.note import read_note
from simplemem.note.proposal import ProposedStep

if TYPE_CHECKING:
    from simplemem.store import EnhancedStore

_SIDES = ("the note", "the proposal")
_HINT = "Edit the proposal or the note, or decline the proposal."


class NewText(NamedTuple):
    """What a file becomes: its bytes before and after; None for no file."""

    path: str
    old: bytes | None
    new: bytes | None


def apply_step(store: EnhancedStore, step: ProposedStep, *, overwrite: bool) -> NewText | None:
    """Return what a step that is no move makes of its file; None if nothing is left to do.

    If the file has changed since the proposal, both changes are merged; with `overwrite`, the
    proposal replaces the other change. Raises Conflict if they cannot be merged.
    """
    path = current_path(store, step)
    current = store.extension.bytes_of(path)
    if current == step.data:
        return None
    if current is None:
        if step.change == "create" or overwrite:
            return NewText(path, None, step.data)
        message = f"{name_of(step.path)} was deleted since the proposal"
        raise Conflict(message, current_sha256=None, hint=_HINT)

    change = NewText(path, current, step.data)
    if overwrite or step.base == _hash_of(current):
        return change
    return NewText(path, current, _merge(store, step, current))


def current_path(store: EnhancedStore, step: ProposedStep) -> str:
    """Return where the file of a step is now: it may have been moved since."""
    extension = store.extension
    if step.change == "create" or extension.exists(step.path):
        return step.path
    former = extension.find_former_note(name_of(step.path))
    if former is None or former.current_name is None:
        return step.path
    return path_of(former.current_name)


def _hash_of(data: bytes) -> str:
    """Return the hash by which texts are identified."""
    return sha256(data).hexdigest()


def _merge(store: EnhancedStore, step: ProposedStep, current: bytes) -> bytes:
    """Return the current text with the change of a step, which was made from another text.

    Raises Conflict if the step deletes the file, if both changes touch the same lines, or if a text
    is missing or is not UTF-8.
    """
    base = _base_of(store, step)
    if step.data is None or base is None:
        raise _conflict(step, base, current)
    try:
        texts = [data.decode("utf-8") for data in (base, current, step.data)]
    except UnicodeDecodeError:
        raise _conflict(step, base, current) from None

    base_text, current_text, proposed_text = texts
    split_text = _split_addition(base_text, proposed_text)
    merged = merge(base_text, current_text, split_text.rest, _SIDES, both=True)
    if not merged.is_clean:
        raise _conflict(step, base, current)

    text = merged.text
    if split_text.addition:
        text = append_content(read_note(text.encode("utf-8")), split_text.addition)
    return text.encode("utf-8")


def _base_of(store: EnhancedStore, step: ProposedStep) -> bytes | None:
    """Return the text that a step was made from; None if there was none, or if it is lost."""
    if step.base is None:
        return None
    base = store.extension.text_of_version(step.base, step.path)
    if base is None and step.change == "create" and step.data is not None:
        # The server of a branch that received the proposal keeps the template, and others do not.
        return _beginning_with_hash(step.data, step.base)
    return base


def _beginning_with_hash(data: bytes, digest: str) -> bytes | None:
    """Return the first lines of a text that have a hash together; None if there are no such."""
    hashing = sha256()
    end = 0
    for line in [b"", *data.splitlines(keepends=True)]:
        hashing.update(line)
        end += len(line)
        if hashing.hexdigest() == digest:
            return data[:end]
    return None


class _SplitText(NamedTuple):
    """A proposed text without what it adds at the end of the note, and that addition."""

    rest: str
    addition: str


def _split_addition(base: str, proposed: str) -> _SplitText:
    """Return a proposed text without its addition; "" for none, or if the body changed otherwise.

    A merge by lines would join two paragraphs that were appended to the same text.
    """
    base_body = base[read_header(base).body_start :]
    body_start = read_header(proposed).body_start
    body = proposed[body_start:]
    addition = body.removeprefix(base_body).lstrip("\r\n")
    if not body.startswith(base_body) or not addition:
        return _SplitText(proposed, "")
    return _SplitText(proposed[:body_start] + base_body, addition)


def _conflict(step: ProposedStep, base: bytes | None, current: bytes) -> Conflict:
    """Return the error for a file with another change, and the difference that this made."""
    name = name_of(step.path)
    if step.base is None:
        message = f"there is another note called {name} since the proposal"
    else:
        message = f"{name} has changed since the proposal, which cannot be merged with that"
    return Conflict(
        message,
        current_sha256=_hash_of(current),
        diff=unified_diff(base, current, ("before", "now"), LONG_DIFF),
        hint=_HINT,
    )


def describe_difference(store: EnhancedStore, steps: tuple[ProposedStep, ...]) -> tuple[str, str]:
    """Return the difference that accepting some steps would make now, and why it cannot be made.

    Each is "" if there is none.
    """
    differences = []
    problem = ""
    for step in steps:
        if step.new_path is not None:
            continue
        try:
            change = apply_step(store, step, overwrite=False)
        except SimplememError as error:
            problem = problem or error.message
            current = store.extension.bytes_of(current_path(store, step))
            change = NewText(step.path, current, step.data)
        if change is not None:
            names = (f"{name_of(change.path)} (now)", f"{name_of(change.path)} (proposed)")
            old = change.old or b""
            differences.append(unified_diff(old, change.new or b"", names, LONG_DIFF))
    return "".join(differences), problem
