"""The user profile in short: the note `profiles/<scope>.md`, with links to the notes of the facts.

The facts are between marks. Everything else in the note belongs to the user, or to conversations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Final, Unpack

from simplemem.errors import Unreadable
from simplemem.features.answers import ScopeProfile
from simplemem.features.conversations.profile import PROFILE
from simplemem.features.fact import Fact
from simplemem.features.facts import decay
from simplemem.features.facts.service import FactService
from simplemem.models import AuthorArgs
from simplemem.note.dates import format_moment, now
from simplemem.note.header import read_header
from simplemem.note.scopes import check_scope, folder_of
from simplemem.store import Draft
from simplemem.store import now as local_time

_MIN_CONFIDENCE: Final = 0.7  # of a static fact
_RECENT: Final = timedelta(days=30)


def profile_of(
    service: FactService, scope: str, regenerate: bool = False, **by: Unpack[AuthorArgs]
) -> ScopeProfile:
    """Return the profile of a scope, and write it into the note if that differs.

    Raise Unreadable if the note cannot be changed.
    """
    scope = check_scope(scope)
    time = now()
    facts = sorted(service.facts(scope), key=lambda fact: fact.path)
    static = [fact for fact in facts if _is_static(fact, time)]
    dynamic = [fact for fact in facts if fact not in static and _is_recent(fact, time)]
    sections = {
        "static": service.newest_first(static),
        "dynamic": service.newest_first(dynamic),
    }

    is_written = False
    if (facts or regenerate) and not service.extension.read_only:
        is_written = _write_note(service, scope, sections, by)
    return ScopeProfile(
        container_tag=scope,
        static=[decay.display_text(fact) for fact in sections["static"]],
        dynamic=[decay.display_text(fact) for fact in sections["dynamic"]],
        sources={name: [fact.id for fact in facts] for name, facts in sections.items()},
        generated_at=format_moment(time),
        cached=not (is_written or regenerate),
        method="rules",
    )


def _is_static(fact: Fact, at: datetime) -> bool:
    """Return whether a fact lasts and is certain."""
    is_lasting = fact.memory_type in ("fact", "preference")
    return is_lasting and decay.confidence_at(fact, at) >= _MIN_CONFIDENCE


def _is_recent(fact: Fact, at: datetime) -> bool:
    return fact.valid_from is None or fact.valid_from >= at - _RECENT


def _write_note(
    service: FactService, scope: str, sections: Mapping[str, Sequence[Fact]], by: AuthorArgs
) -> bool:
    """Bring the note of a profile up to date; return whether it was not."""

    def draft() -> Sequence[Draft]:
        path, before = _find_note(service, scope)
        text = before
        if text is None:
            properties = {"title": f"Profile of {scope}", "scope": scope}
            text = PROFILE.render(properties, "", local_time())
        for name, facts in sections.items():
            lines = [
                f"- {decay.display_text(fact)} {service.link_text(fact.path)}" for fact in facts
            ]
            text = _replace_section(text, name, lines)

        is_needed = before is not None or any(sections.values())
        return [Draft(path, text, before)] if is_needed and text != before else []

    result = service.extension.change(draft, **by)
    return bool(result.written)


def _find_note(service: FactService, scope: str) -> tuple[str, str | None]:
    """Return the path and the text of a scope's profile; None as text if there is none yet.

    A note that declares no scope is that of the scope with its name.
    """
    stem = f"{PROFILE.folder}/{folder_of(scope)}"
    path = f"{stem}.md"
    for number in count(2):
        read = next(iter(service.extension.read([path])), None)
        if read is None:
            break
        header = read_header(read.text)
        if read.problem or header.problem:
            raise Unreadable(f"{path} cannot be changed", hint="Fix its frontmatter in an editor.")
        if str(header.get("scope") or folder_of(scope)) == scope:
            return path, read.text
        path = f"{stem} {number}.md"

    return path, None


def _replace_section(text: str, name: str, lines: Sequence[str]) -> str:
    """Return a note with other lines between the marks of a section.

    A section that is missing is added if it has lines.
    """
    begin = f"%% simplemem:begin {name} %%"
    end = "%% simplemem:end %%"
    section = "\n".join([begin, *lines, end])
    start = text.find(begin)
    stop = text.find(end, start) if start >= 0 else -1
    if stop >= 0:
        return text[:start] + section + text[stop + len(end) :]
    if not lines:
        return text
    return f"{text.rstrip()}\n\n## {name.capitalize()}\n\n{section}\n"
