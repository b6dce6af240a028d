"""What is known of a scope in short, the note `profiles/<scope>.md`: statements as they were said, with links to their
notes, between marks. All else in the note is the person's, or conversations'."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Unpack

from simplemem.errors import Conflict, Unreadable
from simplemem.kinds.answers import Profile
from simplemem.kinds.atoms import life
from simplemem.kinds.atoms.atom import Atom, check_scope, folder_of
from simplemem.kinds.atoms.keeping import Memories
from simplemem.kinds.talk.profile import PROFILE
from simplemem.memory import By
from simplemem.note.clock import now, stamp
from simplemem.note.header import read_header
from simplemem.note.properties import set_property
from simplemem.store import Draft
from simplemem.store import now as local_stamp

_SURE: Final = 0.7  # of what lasts
_LATELY: Final = timedelta(days=30)
_SECTIONS: Final = ("static", "dynamic")


def profile_of(memories: Memories, scope: str, regenerate: bool = False, **by: Unpack[By]) -> Profile:
    """What is known of a scope, and its note if that says otherwise."""
    scope, at = check_scope(scope), now()
    held = sorted(memories.atoms(scope), key=lambda each: each.path)
    static = [
        each for each in held if each.memory_type in ("fact", "preference") and life.confidence_at(each, at) >= _SURE
    ]
    dynamic = [e for e in held if e not in static and (e.valid_from is None or e.valid_from >= at - _LATELY)]
    parts = {"static": static, "dynamic": dynamic}
    is_same = not _write(memories, scope, parts, by) if held or regenerate else True
    return {
        "container_tag": scope,
        "static": [each.statement for each in static],
        "dynamic": [each.statement for each in dynamic],
        "sources": {key: [each.id for each in some] for key, some in parts.items()},
        "generated_at": stamp(at),
        "cached": is_same and not regenerate,
        "method": "rules",
    }


def _write(memories: Memories, scope: str, parts: dict[str, list[Atom]], by: By) -> bool:
    """Bring the sections of the note up to date; whether they were not."""
    bench = memories.bench
    if bench.read_only:
        return False

    def draft() -> Sequence[Draft]:
        path, text = _note_of(memories, scope)
        before, after = (
            text,
            text or PROFILE.render({"title": f"Profile of {scope}", "scope": scope}, "", local_stamp()),
        )
        for key in _SECTIONS:
            lines = [f"- {each.statement} {memories.link_text(each.path)}" for each in parts[key]]
            after = _with_section(after, key, lines)
        if not read_header(after).get("scope") and scope != "default":
            after = set_property(after, "scope", scope)
        return [Draft(path, after, before)] if after != (before or "") and (before or any(parts.values())) else []

    return bool(bench.change(draft, **by).written)


def _note_of(memories: Memories, scope: str) -> tuple[str, str | None]:
    """The path and the text of a scope's profile; no text where there is none yet."""
    stem = f"{PROFILE.folder}/{folder_of(scope)}"
    for number in range(1, 1000):
        path = f"{stem} {number}.md" if number > 1 else f"{stem}.md"
        if (read := next(memories.bench.read([path]), None)) is None:
            return path, None
        if (problem := read.problem or read_header(read.text).problem) is not None and problem:
            raise Unreadable(f"{path} cannot be changed", hint="Mend its header in an editor.")
        if str(read_header(read.text).get("scope") or folder_of(scope)) in (scope, folder_of(scope)):
            return path, read.text
    raise Conflict(f"there are too many notes called {stem}", current_sha256=None)


def _with_section(text: str, key: str, lines: Sequence[str]) -> str:
    """The note with these lines between the marks of a section, which is made when it is not there."""
    begin, end = f"%% simplemem:begin {key} %%", "%% simplemem:end %%"
    inside = "\n".join([begin, *lines, end])
    at = text.find(begin)
    if at >= 0 and (stop := text.find(end, at)) >= 0:
        return text[:at] + inside + text[stop + len(end) :]
    return f"{text.rstrip()}\n\n## {key.capitalize()}\n\n{inside}\n" if lines else text
