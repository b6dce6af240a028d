"""What is known of a scope in short, the note `profiles/<scope>.md`: statements as they were said, with links to their
notes, between marks. All else in the note is the person's, or conversations'."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final, Unpack

from simplemem.errors import Unreadable
from simplemem.features.answers import Profile
from simplemem.features.conversations.profile import PROFILE
from simplemem.features.fact import Fact
from simplemem.features.facts import decay
from simplemem.features.facts.service import FactService
from simplemem.models import AuthorArgs
from simplemem.note.dates import format_moment, now
from simplemem.note.header import read_header
from simplemem.note.scopes import check_scope, folder_of
from simplemem.store import Draft
from simplemem.store import now as local_stamp

_SURE: Final = 0.7  # of what lasts
_LATELY: Final = timedelta(days=30)


def profile_of(
    memories: FactService, scope: str, regenerate: bool = False, **by: Unpack[AuthorArgs]
) -> Profile:
    """What is known of a scope, and its note if that says otherwise."""
    scope, at = check_scope(scope), now()
    held = sorted(memories.facts(scope), key=lambda each: each.path)
    kinds = ("fact", "preference")
    static = dict.fromkeys(
        e for e in held if e.memory_type in kinds and decay.confidence_at(e, at) >= _SURE
    )
    dynamic = [
        e
        for e in held
        if e not in static and (e.valid_from is None or e.valid_from >= at - _LATELY)
    ]
    parts = {"static": [*static], "dynamic": dynamic}
    parts = {key: memories.newest_first(atoms) for key, atoms in parts.items()}
    wrote = (
        bool(held or regenerate)
        and not memories.extension.read_only
        and _write(memories, scope, parts, by)
    )
    return {
        "container_tag": scope, "static": [decay.display_text(each) for each in parts["static"]],
        "dynamic": [decay.display_text(each) for each in parts["dynamic"]],
        "sources": {key: [each.id for each in some] for key, some in parts.items()},
        "generated_at": format_moment(at), "cached": not (wrote or regenerate), "method": "rules",
    }  # fmt: skip


def _write(memories: FactService, scope: str, parts: dict[str, list[Fact]], by: AuthorArgs) -> bool:
    """Bring the sections of the note up to date; whether they were not."""

    def draft() -> Sequence[Draft]:
        path, before = _note_of(memories, scope)
        after = before or PROFILE.render(
            {"title": f"Profile of {scope}", "scope": scope}, "", local_stamp()
        )
        for key, atoms in parts.items():
            lines = [
                f"- {decay.display_text(each)} {memories.link_text(each.path)}" for each in atoms
            ]
            after = _with_section(after, key, lines)
        return (
            [Draft(path, after, before)]
            if after != before and (before or any(parts.values()))
            else []
        )

    return bool(memories.extension.change(draft, **by).written)


def _note_of(memories: FactService, scope: str) -> tuple[str, str | None]:
    """The path and the text of a scope's profile; no text where there is none yet. One that says none is its name's."""
    number, path = 1, f"{PROFILE.folder}/{folder_of(scope)}.md"
    while (read := next(memories.extension.read([path]), None)) is not None:
        header = read_header(read.text)
        if read.problem or header.problem:
            raise Unreadable(f"{path} cannot be changed", hint="Fix its frontmatter in an editor.")
        if str(header.get("scope") or folder_of(scope)) == scope:
            return path, read.text
        number += 1
        path = f"{PROFILE.folder}/{folder_of(scope)} {number}.md"
    return path, None


def _with_section(text: str, key: str, lines: Sequence[str]) -> str:
    """The note with these lines between the marks of a section, which is made when it is not there."""
    begin, end = f"%% simplemem:begin {key} %%", "%% simplemem:end %%"
    inside = "\n".join([begin, *lines, end])
    at = text.find(begin)
    if at >= 0 and (stop := text.find(end, at)) >= 0:
        return text[:at] + inside + text[stop + len(end) :]
    return f"{text.rstrip()}\n\n## {key.capitalize()}\n\n{inside}\n" if lines else text
