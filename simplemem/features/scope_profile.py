"""The profile of a scope: the note `profiles/<scope>.md`, with links to the notes of its facts.

The facts are between marks. Everything else in the note belongs to the user, or to conversations.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import count
from typing import Final, NamedTuple, Unpack

from simplemem.errors import Unreadable
from simplemem.features.answers import ScopeProfile
from simplemem.features.conversations.profile import PROFILE
from simplemem.features.conversations.profile_edits import with_traits
from simplemem.features.conversations.trait_reading import Trait
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
_RECENT: Final = timedelta(days=30)  # a dynamic fact has been valid for this long at most


class _Sections(NamedTuple):
    """The facts of a profile: those that last and are certain, and the recent others."""

    static: list[Fact]
    dynamic: list[Fact]


def profile_of(
    service: FactService,
    scope: str,
    regenerate: bool = False,
    **by: Unpack[AuthorArgs],
) -> ScopeProfile:
    """Return the profile of a scope, and write it into its note if that differs.

    It has the texts and ids of the current facts. It is `cached` if this call wrote nothing, but
    never with `regenerate`. Nothing is written if the store is read-only, or the scope has no
    current facts; with `regenerate`, its existing note is then updated. `by` says who asks. Raise
    Invalid if the scope is not valid, Unreadable if the note cannot be changed.
    """
    scope = check_scope(scope)
    time = now()
    facts = service.facts(scope)
    sections = _divide(service, facts, time)

    is_written = False
    if (facts or regenerate) and not service.extension.read_only:
        is_written = _write_note(service, scope, sections, by)
    return ScopeProfile(
        container_tag=scope,
        static=[decay.display_text(fact) for fact in sections.static],
        dynamic=[decay.display_text(fact) for fact in sections.dynamic],
        sources={
            "static": [fact.id for fact in sections.static],
            "dynamic": [fact.id for fact in sections.dynamic],
        },
        generated_at=format_moment(time),
        cached=not (is_written or regenerate),
        method="rules",
    )


def _divide(service: FactService, facts: Sequence[Fact], at: datetime) -> _Sections:
    """Return the facts that a profile has at a time, in order of their paths.

    Each disputed one is behind what disputes it.
    """
    static: list[Fact] = []
    dynamic: list[Fact] = []
    for fact in sorted(facts, key=lambda fact: fact.path):
        if _is_static(fact, at):
            static.append(fact)
        elif _is_recent(fact, at):
            dynamic.append(fact)
    return _Sections(service.put_disputed_behind(static), service.put_disputed_behind(dynamic))


def _is_static(fact: Fact, at: datetime) -> bool:
    """Return whether a fact lasts and is certain."""
    is_lasting = fact.memory_type in ("fact", "preference")
    return is_lasting and decay.confidence_at(fact, at) >= _MIN_CONFIDENCE


def _is_recent(fact: Fact, at: datetime) -> bool:
    """Return whether a fact has been valid for a short time, or it is unknown since when."""
    return fact.valid_from is None or fact.valid_from >= at - _RECENT


def _write_note(
    service: FactService,
    scope: str,
    sections: _Sections,
    by: AuthorArgs,
) -> bool:
    """Bring the note of a profile up to date; return whether that changed it.

    No note is created for a profile without facts. Raise Unreadable if the note cannot be changed.
    """

    def draft() -> Sequence[Draft]:
        """Return the draft of the note with the current sections; none if nothing changes."""
        path, old_text = _find_note(service, scope)
        text = old_text
        if text is None:
            if not any(sections):
                return []
            text = _new_note(scope)

        text = _replace_section(text, "static", _lines(service, sections.static))
        text = _replace_section(text, "dynamic", _lines(service, sections.dynamic))
        if text == old_text:
            return []
        return [Draft(path, text, old_text)]

    result = service.extension.change(draft, **by)
    return bool(result.written)


def add_traits(
    service: FactService,
    scope: str,
    traits: Sequence[Trait],
    link: str,
    **by: Unpack[AuthorArgs],
) -> None:
    """Write traits of the user into the note of a scope's profile, which is made if it is missing.

    `link` is the target of a link to the note that states them. Raise Invalid if the scope is not
    valid, Unreadable if the note cannot be changed, and what a change of notes raises.
    """
    scope = check_scope(scope)

    def draft() -> Sequence[Draft]:
        """Return the draft of the note with the traits; none if nothing changes."""
        path, old_text = _find_note(service, scope)
        text = old_text
        if text is None:
            text = _new_note(scope)
        text = with_traits(text, traits, now(), link)
        if text == old_text:
            return []
        return [Draft(path, text, old_text)]

    service.extension.change(draft, **by)


def _new_note(scope: str) -> str:
    """Return the text of the note of a new profile."""
    properties = {"title": f"Profile of {scope}", "scope": scope}
    return PROFILE.render(properties, "", local_time())


def _lines(service: FactService, facts: Sequence[Fact]) -> list[str]:
    """Return facts as items of a Markdown list, with links to their notes."""
    return [f"- {decay.display_text(fact)} {service.link_text(fact.path)}" for fact in facts]


def _find_note(service: FactService, scope: str) -> tuple[str, str | None]:
    """Return the path and the text of a scope's profile.

    If there is none yet, return a path that is free, and None. A note that declares no scope is
    that of the scope with its name. Raise Unreadable if a note that may be the profile has a
    problem.
    """
    folder = folder_of(scope)
    path = f"{PROFILE.folder}/{folder}.md"
    for number in count(2):
        read = next(iter(service.extension.read([path])), None)
        if read is None:
            break
        header = read_header(read.text)
        if read.problem or header.problem:
            raise Unreadable(f"{path} cannot be changed", hint="Fix its frontmatter in an editor.")

        declared_scope = str(header.get("scope") or folder)
        if declared_scope == scope:
            return path, read.text
        path = f"{PROFILE.folder}/{folder} {number}.md"

    return path, None


def _replace_section(text: str, name: str, lines: Sequence[str]) -> str:
    """Return the text of a note with other lines between the marks of a section.

    `name` is "static" or "dynamic". A section that is missing is added at the end if it has lines.
    """
    begin = f"%% simplemem:begin {name} %%"
    end = "%% simplemem:end %%"
    section = "\n".join([begin, *lines, end])

    start = text.find(begin)
    stop = -1
    if start >= 0:
        stop = text.find(end, start)
    if stop >= 0:
        return text[:start] + section + text[stop + len(end) :]
    if not lines:
        return text
    return f"{text.rstrip()}\n\n## {name.capitalize()}\n\n{section}\n"
