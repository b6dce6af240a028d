"""A person's text and a note that somebody else changed while it was in the editor: shown together, and saved if agreed.

Until something is saved the person's text stays in its draft. Nothing is written that was not shown.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from simplemem.errors import Conflict, SimplememError

if TYPE_CHECKING:
    from simplemem.cli.editor import Draft
    from simplemem.memory import Memory, Saved
    from simplemem.store import EnhancedStore

_SIDES = ("your text", "the note as it is now")
_MOST_ROUNDS = 20


def bring_together(
    store: EnhancedStore,
    memory: Memory,
    written: str,
    draft: Draft,
    conflict: Conflict,
    *,
    merge: bool,
    quiet: bool,
) -> Saved:
    """Save the person's text with what others changed, as far as they agree. Raises the conflict, with the draft named,
    where they do not or cannot be asked. `merge` says that they agree to whatever fits together."""
    from simplemem.cli.opening import WHO, finishing

    asking = not quiet and sys.stdin.isatty() and sys.stdout.isatty()
    base, kept = memory.sha256, list[Path]()
    for _ in range(_MOST_ROUNDS):
        offer = conflict.details.get("accept")
        try:
            if offer and (merge or (asking and _agreed(conflict, f"Save both together in {memory.name}?"))):
                saved = _saved(store, memory.name, written, offer)
            elif not offer and asking and "merged" in conflict.details:
                now = store.read(memory.name)
                marked = _marked(store, memory.name, base, written, now.text)
                if marked is None or not _agreed(conflict, "Edit the text with both sides marked?"):
                    raise draft.lost_race(conflict)
                kept.append(draft.path)
                written, base = draft.again(marked), now.sha256
                with finishing():
                    saved = store.write_text(memory.name, written, if_sha256=base, who=WHO, tool="edit")
            else:
                raise draft.lost_race(conflict)
        except Conflict as again:
            if "draft" in again.details:
                raise
            conflict = again
            continue
        except SimplememError as error:
            raise draft.kept(error) from error
        for path in kept:
            path.unlink(missing_ok=True)
        return saved
    raise draft.lost_race(conflict)


def _saved(store: EnhancedStore, name: str, written: str, offer: str) -> Saved:
    from simplemem.cli.opening import WHO, finishing

    with finishing():
        return store.write_text(name, written, if_sha256=offer, who=WHO, tool="edit")


def _agreed(conflict: Conflict, question: str) -> bool:
    from simplemem.cli import output

    output.warn("somebody else changed the note while you edited it; both together:")
    output.print_diff(conflict.details["merged"]["diff"], output.console())
    try:
        return typer.confirm(question)
    except typer.Abort:  # Ctrl-C is a no, after which is said where the text is kept
        return False


def _marked(store: EnhancedStore, name: str, base: str, written: str, now: str) -> str | None:
    """Both texts in one, with marks where they differ; None when the text both began as is not kept any more."""
    from simplemem.note.merge import merge

    try:
        began = store.read(name, version=base).text
    except SimplememError:
        return None
    return merge(began, written, now, _SIDES).text
