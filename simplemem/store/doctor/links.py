"""Links that lead nowhere, with what they may mean; and links that could mean several files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from simplemem.index.links import StoredLink
from simplemem.memory import Finding
from simplemem.note.names import name_of
from simplemem.store.doctor.case import Case, Noticed, Point
from simplemem.store.doctor.likely import Likely, LikelyTargets


def check_links(case: Case) -> Iterator[Noticed]:
    likely: LikelyTargets | None = None
    links = [link for link in case.links if link.source not in case.copies]
    # `[[{{title}}]]` in a template is no link yet.
    broken = [link for link in links if link.path is None and "{{" not in link.target]
    for done, link in enumerate(broken):
        likely = likely or LikelyTargets(case)
        yield _broken(case, link, likely.of(link.target, link.source))
        if done % 100 == 0:
            case.tell("links", done, len(broken))
    for link in links:
        if link.path is not None and link.ambiguous:
            others = ", ".join(name_of(path) for path in link.ambiguous)
            message = f"[[{link.target}]] could mean {others}"
            hint = f"It is taken for {name_of(link.path)}. A folder before the name says which is meant."
            yield Noticed(Finding("links", "note", link.source, message, hint, link.line, link.ambiguous))


def _broken(case: Case, link: StoredLink, found: Likely) -> Noticed:
    message = f"[[{link.target}]] leads nowhere" + (f": {found.why}" if found.why else "")
    candidates = tuple(name_of(path) for path in found.paths)
    if found.sure is None:
        hint = f"Perhaps {' or '.join(candidates)}." if candidates else found.way_back
        level: Literal["warning", "note"] = "warning" if hint else "note"
        return Noticed(Finding("links", level, link.source, message, hint, link.line, candidates))
    if not _may_be_written(case, link.source):
        hint = f"It means {candidates[0]}; the header above it must be mended first."
        return Noticed(Finding("links", "warning", link.source, message, hint, link.line, candidates))
    fix = f"lead [[{link.target}]] to {name_of(found.sure)}"
    remedy = Point(link.source, link.target, found.sure, found.was)
    return Noticed(Finding("links", "warning", link.source, message, "", link.line, candidates, fix), remedy)


def _may_be_written(case: Case, path: str) -> bool:
    """Whether a note has a header that can be read, or will have one once the other remedies are applied."""
    return path not in case.problems or (case.asks_for("headers") and path in case.mendable_headers)
